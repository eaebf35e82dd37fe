//! The kernel says no, or kills, at every n-th system call: each call succeeds or ends with a documented code, the
//! store opens afterwards, and the request id resolves what was left unknown (rules: an acknowledged write is never
//! lost).

use crate::support::{Agent, Answer, ONUS, Site, finish, is_soak, start, text};
use std::process::Command;

/// What goes wrong, in the words of strace.
#[derive(Debug, Clone, Copy)]
struct Fault {
    syscall: &'static str,
    effect: &'static str,
}

const fn fault(syscall: &'static str, effect: &'static str) -> Fault {
    Fault { syscall, effect }
}

const FAULTS: &[Fault] = &[
    fault("fsync", "error=EIO"),
    fault("fdatasync", "error=EIO"),
    fault("pwrite64", "error=ENOSPC"),
    fault("write", "error=ENOSPC"),
    fault("pread64", "error=EIO"),
    fault("ftruncate", "error=ENOSPC"),
    fault("flock", "error=EINTR"),
    fault("fsync", "signal=SIGKILL"),
    fault("pwrite64", "signal=SIGKILL"),
    fault("openat", "error=EIO"),
];

/// Which calls are hit: each of the first ones, then fewer and fewer, because a long WAL is read page by page.
fn chosen() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |n| Some(if *n < 30 { n + 1 } else { n * 5 / 4 }))
        .take_while(|n| *n < 100_000)
}

/// Whether faults can be injected here; says why not.
fn injectable() -> bool {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    match tried {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("skipped: ptrace is not permitted: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            eprintln!("skipped: strace is not installed: {error}");
            false
        }
    }
}

/// One run under a fault at the `n`-th call.
struct Injected {
    answer: Answer,
    /// The line of the trace that was hit; `None` when there was no n-th call.
    hit: Option<String>,
}

impl Injected {
    /// The fault met the dynamic loader: the program had not begun.
    fn before_main(&self) -> bool {
        self.answer.exit == Some(127) && self.answer.stderr.contains("error while loading shared libraries")
    }
}

fn inject(site: &Site, fault: Fault, n: usize, words: &[String]) -> Injected {
    let trace = site.root().join("trace");
    let mut strace = Command::new("strace");
    site.surroundings(&mut strace);
    strace.args(["-f", "-o"]).arg(&trace).args(["-e", &format!("trace={}", fault.syscall)]);
    strace.args(["-e", &format!("inject={}:{}:when={n}", fault.syscall, fault.effect), ONUS]).args(words);
    let answer = finish(start(&mut strace));
    let trace = std::fs::read_to_string(&trace).unwrap();
    let hit = trace.lines().find(|line| line.contains("(INJECTED)") || line.contains("killed by SIGKILL"));
    Injected { answer, hit: hit.map(str::to_owned) }
}

/// A refusal under a fault says that the store or the machine is at fault, never that the caller is.
fn assert_documented(fault: Fault, run: &Injected) {
    let answer = &run.answer;
    if answer.is_ok() || run.before_main() {
        return;
    }
    let hit = run.hit.as_deref().unwrap_or("nothing was hit");
    if fault.effect.starts_with("signal") {
        assert!(matches!(answer.exit, None | Some(137)), "{hit}: {answer:#?}");
    } else if fault.syscall == "write" {
        // The error document itself may have been what could not be written.
        assert!(matches!(answer.exit, Some(1 | 69)), "{hit}: {answer:#?}");
    } else {
        let code = answer.code();
        assert!(
            matches!(code.as_str(), "store_unavailable" | "store_busy" | "internal"),
            "{hit}: {answer:#?}"
        );
        if code == "internal" {
            eprintln!("unexpected rather than unavailable: {hit}: {}", answer.stderr);
        }
    }
}

/// A call under test: the words that make it, and what it leaves in the ledger exactly once.
struct Subject {
    verb: &'static str,
    words: fn(&Site, &Agent) -> Vec<String>,
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn add(_: &Site, agent: &Agent) -> Vec<String> {
    owned(&["add", "under a fault", "--as", &agent.handle])
}

fn claim(site: &Site, agent: &Agent) -> Vec<String> {
    let task = site.add("to claim");
    owned(&["claim", &task, "--as", &agent.handle, "--workstation", &agent.workstation])
}

fn complete(site: &Site, agent: &Agent) -> Vec<String> {
    let mut words = claim(site, agent);
    let task = words[1].clone();
    words.push("--json".to_owned());
    assert!(site.run(&words).is_ok());
    owned(&["complete", &task, "--as", &agent.handle, "--resolution", "done"])
}

/// Hits every n-th call of one kind in turn until there are no more, and resolves each by its request id.
fn every_call(site: &Site, agent: &Agent, subject: &Subject, fault: Fault) -> usize {
    for (hits, n) in chosen().enumerate() {
        let mut words = (subject.words)(site, agent);
        let request = format!("{}-{}-{}-{n}", subject.verb, fault.syscall, fault.effect);
        words.extend(owned(&["--json", "--request-id", &request]));

        let run = inject(site, fault, n, &words);
        assert_documented(fault, &run);

        let again = site.run(&words);
        assert!(again.is_ok(), "{fault:?} {n}: {again:#?}");
        if run.answer.is_ok() {
            assert_eq!(again.stdout, run.answer.stdout, "{fault:?} {n}: an acknowledged write");
        }
        let task = text(&again.json()["task"]["id"]).to_owned();
        let log = site.ok(&["ledger", "log", "--task", &task]);
        let entries = log["entries"].as_array().unwrap();
        let effects = entries.iter().filter(|entry| entry["verb"] == subject.verb).count();
        assert_eq!(effects, 1, "{fault:?} {n}: one effect: {log:#}");
        if subject.verb == "claimed" {
            site.ok(&["complete", &task, "--as", &agent.handle, "--resolution", "done"]);
        }
        // What a fault has broken stays broken: one look at the end is enough in a short run.
        if run.hit.is_none() || is_soak() {
            site.assert_sound();
        }
        if run.hit.is_none() {
            return hits;
        }
    }
    panic!("{} never stops meeting {fault:?}", subject.verb);
}

fn under_every_fault(subject: &Subject) {
    if !injectable() {
        return;
    }
    let site = Site::new();
    let agent = &site.agents(1)[0];
    let mut total = 0;
    for &fault in FAULTS {
        let hits = every_call(&site, agent, subject, fault);
        eprintln!("{}: {hits} calls of {} ended with {}", subject.verb, fault.syscall, fault.effect);
        total += hits;
    }
    assert!(total > 5, "the faults must hit: {total}");
}

#[test]
fn add_survives_every_fault() {
    under_every_fault(&Subject { verb: "added", words: add });
}

#[test]
fn claim_survives_every_fault() {
    under_every_fault(&Subject { verb: "claimed", words: claim });
}

#[test]
fn complete_survives_every_fault() {
    under_every_fault(&Subject { verb: "completed", words: complete });
}

#[test]
fn init_survives_every_fault() {
    if !injectable() {
        return;
    }
    for &fault in FAULTS {
        let mut hits = 0;
        for n in chosen() {
            let mut site = Site::empty();
            let run = inject(&site, fault, n, &owned(&["init", "--project", "T", "--json"]));
            assert_documented(fault, &run);
            // Whatever the first attempt left behind, the second one finds or makes a whole store.
            site.person = text(&site.ok(&["init", "--project", "T"])["worker"]).to_owned();
            site.add("after the fault");
            site.assert_sound();
            if run.hit.is_none() {
                break;
            }
            hits += 1;
        }
        eprintln!("init: {hits} calls of {} ended with {}", fault.syscall, fault.effect);
    }
}
