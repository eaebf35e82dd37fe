//! A server whose disk fails: at every n-th sync, write or cut of its store the kernel says no. What it acknowledged is
//! there, what it did not is told by its key, and the store opens.

use crate::support::crowd::in_parallel;
use crate::support::server::{Server, key};
use crate::support::{Agent, Site, text};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const CALLERS: usize = 4;

/// What goes wrong, in the words of strace: once, or from then on.
const FAULTS: &[(&str, &str)] = &[
    ("fsync", "error=EIO:when={n}"),
    ("fsync", "error=EIO:when={n}+"),
    ("pwrite64", "error=EIO:when={n}"),
    ("pwrite64", "error=ENOSPC:when={n}+"),
    ("ftruncate", "error=EIO:when={n}+"),
    ("pread64", "error=EIO:when={n}00"),
    ("fsync", "signal=SIGKILL:when={n}"),
];

fn injectable() -> bool {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("skipped: strace is not installed, or ptrace is not permitted");
    }
    can
}

/// A server on the site's store under a fault; none where it met the fault before it could listen.
fn failing(site: &Site, syscall: &str, fault: &str) -> Option<Server> {
    let serve =
        site.command(&["serve", "--json", "--log", "quiet", "--rate", "1000000", "--listen", "127.0.0.1:0"]);
    let mut strace = Command::new("strace");
    strace.args(["-D", "-f", "-qq", "-o", "/dev/null", "-P"]).arg(site.store());
    strace.arg("-P").arg(format!("{}-wal", site.store().display()));
    strace.args(["-e", &format!("trace={syscall}"), "-e", &format!("inject={syscall}:{fault}")]);
    strace.arg(serve.get_program()).args(serve.get_args());
    site.surroundings(&mut strace);
    Server::try_spawn(&mut strace, Stdio::null())
}

/// What one caller was told: the tasks that it knows of, and the calls of which it does not.
#[derive(Default)]
struct Told {
    known: Vec<(String, String)>,
    unknown: Vec<(String, Value)>,
}

fn add_some(server: &Server, agent: &Agent, token: &str, round: usize) -> Told {
    let mut told = Told::default();
    for n in 0..6 {
        let (name, body) = (key(), json!({ "title": format!("{round}/{}/{n}", agent.handle) }));
        match server.try_post(token, "/v1/tasks", &[("idempotency-key", &name)], body.clone()) {
            Ok(reply) if reply.status == 201 => {
                told.known.push((name, text(&reply.body["task"]["id"]).to_owned()));
            }
            Ok(reply) => {
                assert_eq!(reply.status, 503, "{reply:#?}");
                told.unknown.push((name, body));
            }
            Err(_) => told.unknown.push((name, body)),
        }
    }
    told
}

#[test]
fn a_server_whose_disk_fails_loses_nothing_that_it_acknowledged() {
    if !injectable() {
        return;
    }
    let (most, apart) = if std::env::var_os("ONUS_SOAK").is_some() { (20, 9) } else { (5, 13) };
    let site = Site::at(None).founded();
    let bearers = site.token_bearers(CALLERS);
    let (mut round, mut known, mut unknown) = (0, 0, 0);
    for (syscall, effect) in FAULTS {
        for n in (1..).step_by(apart).take(most) {
            round += 1;
            let fault = effect.replace("{n}", &n.to_string());
            let told: Vec<Told> = match failing(&site, syscall, &fault) {
                None => Vec::new(),
                Some(server) => {
                    in_parallel(&bearers, |_, agent, token| add_some(&server, agent, token, round))
                }
            };
            let server = Server::start(&site);
            for (told, (_, token)) in told.iter().zip(&bearers) {
                known += told.known.len();
                unknown += told.unknown.len();
                for (name, id) in &told.known {
                    let title = server.get(token, &format!("/v1/tasks/{id}")).ok()["task"]["title"].clone();
                    let body = json!({ "title": title });
                    let again = server.post_with(token, "/v1/tasks", &[("idempotency-key", name)], body).ok();
                    assert_eq!(text(&again["task"]["id"]), id, "{syscall} {fault}: an acknowledged write");
                }
                for (name, body) in &told.unknown {
                    server.post_with(token, "/v1/tasks", &[("idempotency-key", name)], body.clone()).ok();
                }
            }
            drop(server);
            assert_eq!(site.tasks().len(), known + unknown, "{syscall} {fault}: one key, one task");
        }
        site.assert_sound();
        eprintln!("{syscall} {effect}: {known} acknowledged, {unknown} not, all there once");
    }
    assert!(known > 0 && unknown > 0, "the faults must hit, and not always: {known}, {unknown}");
}

#[test]
fn a_server_on_a_read_only_store_answers_questions_and_refuses_changes() {
    let site = Site::at(None).founded();
    let task = site.add("written before");
    let person = site.token(&site.person);
    let at = site.repo();
    let serve = site.command(&["serve", "--json", "--log", "quiet", "--listen", "127.0.0.1:0"]);
    let mut inside = Command::new("unshare");
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && cd \"$0\" && exec \"$@\"";
    site.surroundings(&mut inside).args(["--mount", "sh", "-c", script]).arg(&at);
    inside.arg(serve.get_program()).args(serve.get_args());
    let Some(server) = Server::try_spawn(&mut inside, Stdio::null()) else {
        eprintln!("skipped: nothing can be mounted read-only here");
        return;
    };
    let shown = server.get(&person, &format!("/v1/tasks/{task}")).ok();
    assert_eq!(shown["task"]["title"], "written before");
    let refused = server.post(&person, "/v1/tasks", json!({ "title": "written now" }));
    refused.refused(503, "store_unavailable");
    drop(server);
    assert_eq!(site.tasks().len(), 1);
    site.assert_sound();
}
