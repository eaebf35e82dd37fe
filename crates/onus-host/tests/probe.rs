//! Probes of real things: listeners, servers, working trees, commands, a disk.

use super::server::Server;
use super::support::Area;
use onus_core::probe::{Probe, ProbeResult, Verdict};
use onus_core::time::Timestamp;
use onus_host::probe::{Surroundings, run};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn now() -> Timestamp {
    Timestamp(1_792_000_000_000)
}

fn probe(spec: &str, around: &Surroundings<'_>) -> ProbeResult {
    let probe: Probe = spec.parse().unwrap();
    let mut results = run(std::slice::from_ref(&probe), around, now);
    let result = results.pop().unwrap();
    assert_eq!((result.probe.as_str(), result.at), (probe.to_string().as_str(), now()));
    assert_eq!(result.passed(), result.verdict == Verdict::Passed);
    result
}

/// The verdict, and every part of the detail.
#[track_caller]
fn expect(spec: &str, around: &Surroundings<'_>, verdict: Verdict, parts: &[&str]) {
    let result = probe(spec, around);
    assert_eq!(result.verdict, verdict, "{result:?}");
    for part in parts {
        assert!(result.detail.contains(part), "{part}: {result:?}");
    }
}

const NOWHERE: Surroundings<'static> = Surroundings { directory: None, branch: None, main: None };

/// A port on which nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

mod command {
    use super::*;

    #[test]
    fn the_exit_decides_and_the_last_line_tells() {
        let area = Area::new();
        let here = Surroundings { directory: Some(&area.path), ..NOWHERE };
        let pwd = area.path.display().to_string();
        expect("command:pwd", &here, Verdict::Passed, &["exit 0", &pwd]);
        expect(
            "command:echo a; echo no docker >&2; exit 4",
            &here,
            Verdict::Failed,
            &["exit 4, expected 0", "no docker"],
        );
        expect("command:kill -15 $$", &here, Verdict::Failed, &["signal 15"]);
        expect("command:no-such-program", &here, Verdict::Failed, &["exit 127"]);
        expect("command:sleep 600;timeout=200ms", &here, Verdict::TimedOut, &["did not end within 200ms"]);
        expect("command:printf 'a\\033[2J'; exit 1", &here, Verdict::Failed, &["a [2J"]);
    }

    #[test]
    fn without_a_directory_it_runs_at_the_root_and_in_a_missing_one_not_at_all() {
        expect("command:pwd", &NOWHERE, Verdict::Passed, &["it said: /)"]);
        let area = Area::new();
        let gone = area.at("gone");
        let there = Surroundings { directory: Some(&gone), ..NOWHERE };
        expect("command:true", &there, Verdict::CouldNotRun, &["cannot run a command in", "gone"]);
    }
}

mod tcp {
    use super::*;

    #[test]
    fn a_listener_and_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        expect(&format!("tcp:{address}"), &NOWHERE, Verdict::Passed, &["connected to", &address]);
        let port = listener.local_addr().unwrap().port();
        expect(&format!("tcp:localhost:{port}"), &NOWHERE, Verdict::Passed, &["connected to 127.0.0.1"]);
        let closed = format!("tcp:127.0.0.1:{}", free_port());
        expect(&closed, &NOWHERE, Verdict::Failed, &["no connection: 127.0.0.1", "refused"]);
        expect("tcp:no-such-host.invalid:80;timeout=30s", &NOWHERE, Verdict::Failed, &["has no address"]);
    }

    /// A queue that is full and never emptied: connections are neither taken nor refused.
    #[test]
    fn a_black_hole_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200));
        let filled: Vec<_> = std::iter::repeat_with(connect).take_while(Result::is_ok).take(64).collect();
        assert!(filled.len() < 64, "the queue is never full");
        expect(
            &format!("tcp:{address};timeout=300ms"),
            &NOWHERE,
            Verdict::TimedOut,
            &["no connection", "within 300ms"],
        );
    }

    #[test]
    fn link_local_addresses_are_no_target() {
        for spec in
            ["tcp:169.254.169.254:80", "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/"]
        {
            expect(spec, &NOWHERE, Verdict::CouldNotRun, &["link-local"]);
        }
    }
}

mod http {
    use super::*;

    #[test]
    fn status_and_body_are_compared() {
        let server = Server::new();
        for (tail, verdict, part) in [
            ("/ok", Verdict::Passed, "status 200"),
            ("/ok#status=200", Verdict::Passed, "status 200"),
            ("/ok#status=204", Verdict::Failed, "status 200, expected 204"),
            ("/down", Verdict::Failed, "status 503, expected 200 to 299"),
            ("/down#status=503", Verdict::Passed, "status 503"),
            ("/ok#pointer=/db/state,equals=up", Verdict::Passed, "/db/state is `up`"),
            ("/ok#pointer=/db/state,equals=down", Verdict::Failed, "/db/state is `up`, expected `down`"),
            ("/ok#pointer=/cache", Verdict::Failed, "there is no /cache in the body"),
            ("/text#pointer=/a", Verdict::Failed, "the body is not JSON"),
            ("/broken", Verdict::Failed, "no answer"),
        ] {
            expect(&format!("http:{}{tail}", server.url()), &NOWHERE, verdict, &[part]);
        }
    }

    #[test]
    fn a_redirect_is_not_followed() {
        let server = Server::new();
        let spec = format!("http:{}/moved", server.url());
        expect(&spec, &NOWHERE, Verdict::Failed, &["status 302 (to `/ok`, not followed)"]);
        expect(&format!("{spec}#status=302"), &NOWHERE, Verdict::Passed, &["status 302"]);
        assert_eq!(server.asked(), ["/moved", "/moved"]);
    }

    #[test]
    fn a_body_without_end_is_not_read_to_its_end() {
        let server = Server::new();
        let spec = format!("http:{}/huge#pointer=/a;timeout=60s", server.url());
        expect(&spec, &NOWHERE, Verdict::Failed, &["longer than 1000000 bytes"]);
        // Without a look at the body, the status is enough.
        expect(
            &format!("http:{}/huge;timeout=60s", server.url()),
            &NOWHERE,
            Verdict::Passed,
            &["status 200"],
        );
    }

    /// A byte now and then, for ever: every single read succeeds.
    #[test]
    fn a_dripping_answer_times_out() {
        let server = Server::new();
        for path in ["/slow-head", "/slow-body#pointer=/a", "/silent"] {
            let spec = format!("http:{}{path};timeout=500ms", server.url());
            expect(&spec, &NOWHERE, Verdict::TimedOut, &["within 500ms"]);
        }
        assert!(server.is_left_alone());
    }

    #[test]
    fn https_to_a_server_without_tls_fails() {
        let server = Server::new();
        let spec = format!("{}/ok", server.url().replace("http://", "https://"));
        expect(&spec, &NOWHERE, Verdict::Failed, &["no answer"]);
    }

    #[test]
    fn the_health_of_localstack() {
        let server = Server::new();
        let url = server.url();
        for (tail, verdict, part) in [
            ("", Verdict::Passed, "up, with 3 services"),
            ("#services=s3+sqs", Verdict::Passed, "s3 running, sqs available"),
            ("#services=s3+sns", Verdict::Failed, "sns is `disabled`, expected running or available"),
            ("#services=ec3", Verdict::Failed, "ec3 is unknown here"),
            ("/ok", Verdict::Failed, "status 404 at /_localstack/health"),
        ] {
            expect(&format!("localstack:{url}{tail}"), &NOWHERE, verdict, &[part]);
        }
    }
}

mod git {
    use super::*;
    use std::fs;

    /// A repository with a worktree `tree` on the branch `agent/a`.
    fn area() -> Area {
        let area = Area::with_main(&[]);
        area.git("main", &["worktree", "add", "-q", "-b", "agent/a", "../tree"]);
        area
    }

    #[test]
    fn present_and_on_its_branch() {
        let area = area();
        let path = area.at("tree");
        let tree = Surroundings { directory: Some(&path), branch: Some("agent/a"), main: Some("main") };
        expect("git", &tree, Verdict::Passed, &["on branch agent/a"]);
        expect("git:branch=main", &tree, Verdict::Failed, &["on branch agent/a, expected main"]);
        area.git("tree", &["checkout", "-q", "--detach"]);
        expect("git", &tree, Verdict::Failed, &["on no branch, expected agent/a"]);
        expect("git", &Surroundings { branch: None, ..tree }, Verdict::Passed, &["on no branch"]);
        area.git("main", &["worktree", "remove", "--force", "../tree"]);
        expect("git", &tree, Verdict::Failed, &["is not there"]);
        expect("git", &NOWHERE, Verdict::CouldNotRun, &["no directory"]);
    }

    #[test]
    fn a_directory_is_not_taken_for_the_repository_around_it() {
        let area = area();
        let inside = area.mkdir("main/inside");
        let there = Surroundings { directory: Some(&inside), ..NOWHERE };
        expect("git", &there, Verdict::Failed, &["no working tree of its own"]);
        let outside = area.mkdir("outside");
        let there = Surroundings { directory: Some(&outside), ..NOWHERE };
        expect("git", &there, Verdict::Failed, &["is no git working tree"]);
    }

    #[test]
    fn clean_means_nothing_changed_and_nothing_untracked() {
        let area = area();
        let path = area.at("tree");
        let tree = Surroundings { directory: Some(&path), ..NOWHERE };
        fs::write(path.join(".gitignore"), "built\n").unwrap();
        area.git("tree", &["add", "."]);
        area.git("tree", &["commit", "-q", "-m", "ignore"]);
        fs::write(path.join("built"), "x").unwrap();
        expect("git:clean", &tree, Verdict::Passed, &["clean"]);
        for name in ["new 1", "new 2", "new 3", "new 4"] {
            fs::write(path.join(name), "x").unwrap();
        }
        fs::write(path.join(".gitignore"), "built\nmore\n").unwrap();
        expect(
            "git:clean",
            &tree,
            Verdict::Failed,
            &["5 changed or untracked (.gitignore, new 1, new 2, …)"],
        );
        expect("git", &tree, Verdict::Passed, &[]);
    }

    #[test]
    fn not_too_far_behind_and_at_the_commit() {
        let area = area();
        let path = area.at("tree");
        let tree = Surroundings { directory: Some(&path), branch: None, main: Some("refs/heads/main") };
        let head = area.git("tree", &["rev-parse", "HEAD"]);
        for _ in 0..3 {
            area.git("main", &["commit", "-q", "--allow-empty", "-m", "more"]);
        }
        expect("git:behind=3", &tree, Verdict::Passed, &["3 behind refs/heads/main"]);
        expect(
            "git:behind=2",
            &tree,
            Verdict::Failed,
            &["3 commits behind refs/heads/main, expected at most 2"],
        );
        expect("git:behind=2", &Surroundings { main: None, ..tree }, Verdict::Failed, &["no main branch"]);
        let gone = Surroundings { main: Some("gone"), ..tree };
        expect("git:behind=2", &gone, Verdict::Failed, &["git rev-list failed"]);
        let option = Surroundings { main: Some("x --output=/tmp/owned"), ..tree };
        expect("git:behind=2", &option, Verdict::Failed, &["git rev-list failed"]);
        expect(&format!("git:at={}", &head[..7]), &tree, Verdict::Passed, &[&head[..12]]);
        expect(&format!("git:at={head}"), &tree, Verdict::Passed, &[&head[..12]]);
        expect(
            "git:clean,behind=2,at=0000000",
            &tree,
            Verdict::Failed,
            &["expected 0000000; 3 commits behind"],
        );
    }

    #[test]
    fn before_the_first_commit() {
        let area = Area::new();
        area.git(".", &["init", "-q", "-b", "main", "new"]);
        let path = area.at("new");
        let tree = Surroundings { directory: Some(&path), branch: Some("main"), main: None };
        expect("git:clean", &tree, Verdict::Passed, &["no commit", "on branch main", "clean"]);
        expect("git:at=0123456", &tree, Verdict::Failed, &["no commit, expected 0123456"]);
    }

    /// The monitor is a program of the repository's choice; a probe looks, it does not run what it looks at.
    #[test]
    fn the_repositorys_monitor_is_not_run() {
        let area = area();
        let mark = area.at("ran");
        let hook = area.at("monitor");
        fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        std::process::Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
        area.git("main", &["config", "core.fsmonitor", &hook.display().to_string()]);
        let path = area.at("tree");
        expect("git:clean", &Surroundings { directory: Some(&path), ..NOWHERE }, Verdict::Passed, &["clean"]);
        assert!(!mark.exists());
    }
}

mod disk {
    use super::*;

    #[test]
    fn free_space_where_the_workstation_is() {
        let area = Area::new();
        let here = Surroundings { directory: Some(&area.path), ..NOWHERE };
        expect("disk:1KB", &here, Verdict::Passed, &["free, expected 1000 B"]);
        expect("disk:9000000TB", &here, Verdict::Failed, &["free, expected 9000000000 GB"]);
        let gone = area.at("gone");
        let there = Surroundings { directory: Some(&gone), ..NOWHERE };
        expect("disk:1KB", &there, Verdict::Failed, &["cannot look at the disk"]);
        expect("disk:1KB", &NOWHERE, Verdict::CouldNotRun, &["no directory"]);
    }
}

/// Each of these commands ends only when all of them run at once.
#[test]
fn probes_run_side_by_side_and_answer_in_order() {
    let area = Area::new();
    let here = Surroundings { directory: Some(&area.path), ..NOWHERE };
    let wait = |own: usize| {
        format!(
            "command:touch {own}; while ! [ -e 0 -a -e 1 -a -e 2 ]; do sleep 0.02; done; echo {own};timeout=60s"
        )
    };
    let probes: Vec<Probe> = (0..3).map(|own| wait(own).parse().unwrap()).collect();
    let results = run(&probes, &here, now);
    for (own, result) in results.iter().enumerate() {
        assert_eq!(result.detail, format!("exit 0 (it said: {own})"), "{result:?}");
    }
    assert!(run(&[], &here, now).is_empty());
}

#[test]
fn one_that_hangs_does_not_take_the_others_along() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let specs = [
        "command:trap '' TERM; sleep 600;timeout=300ms".to_owned(),
        format!("tcp:{}", listener.local_addr().unwrap()),
        "command:exit 1".to_owned(),
    ];
    let probes: Vec<Probe> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
    let verdicts: Vec<_> = run(&probes, &NOWHERE, now).iter().map(|result| result.verdict).collect();
    assert_eq!(verdicts, [Verdict::TimedOut, Verdict::Passed, Verdict::Failed]);
}

#[test]
fn every_example_in_the_reference_is_a_probe() {
    let page = include_str!("../../../docs/reference/probes.md");
    let (_, examples) = page.split_once("| spec | detail |").unwrap();
    let rows = examples.lines().skip(2).take_while(|line| line.starts_with('|'));
    let specs: Vec<_> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    assert!(specs.len() > 5, "{specs:?}");
    for spec in specs {
        assert_eq!(spec.parse::<Probe>().unwrap().to_string(), spec);
    }
}
