//! Commands that behave, and commands that do not.

use super::support::Area;
use onus_core::hash::Digest;
use onus_host::process::{CommandLine, Environment, Ran};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than any command here takes unless it is made to hang.
const AMPLE: Duration = Duration::from_secs(60);
/// What a command that hangs is given.
const SHORT: Duration = Duration::from_millis(300);

fn run(area: &Area, line: &str, limit: Duration) -> Ran {
    with_grace(area, line, limit, SHORT)
}

fn with_grace(area: &Area, line: &str, limit: Duration, grace: Duration) -> Ran {
    let environment = Environment::of_process();
    let directory = area.path.as_path();
    CommandLine { line, directory, environment: &environment, limit, grace, keep: 4_096 }.run().unwrap()
}

/// A command that says that it has begun and then hangs. Where it did not come so far, it is given more time.
fn hung(run: impl Fn(Duration) -> Ran) -> Ran {
    let limits = std::iter::successors(Some(SHORT), |limit| Some(*limit * 2));
    let mut runs = limits.take_while(|limit| *limit < AMPLE).map(run);
    runs.find(|ran| ran.output.length > 0).expect("it never said that it has begun")
}

/// Whether a process is there and not only waiting to be reaped.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Signals are delivered in their own time.
fn ends(pid: &str) -> bool {
    let until = Instant::now() + AMPLE;
    while is_alive(pid) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn pid_in(path: &Path) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

#[test]
fn exit_output_and_directory() {
    let area = Area::new();
    let ran = run(&area, "pwd; echo wrong >&2; exit 3", AMPLE);
    assert_eq!((ran.exit, ran.signal, ran.timed_out, ran.succeeded()), (Some(3), None, false, false));
    assert_eq!(ran.output.text(), format!("{}\nwrong\n", area.path.display()));
    assert!(run(&area, "true", AMPLE).succeeded());
    assert_eq!(run(&area, "kill -9 $$", AMPLE).signal, Some(9));
}

#[test]
fn nothing_to_read_and_no_inherited_secret() {
    let area = Area::new();
    assert_eq!(run(&area, "cat; echo done", AMPLE).output.text(), "done\n");
    let environment = Environment::default().with("PATH", "/usr/bin:/bin").with("ONUS_TASK", "API-1");
    let line = CommandLine {
        line: "env",
        directory: &area.path,
        environment: &environment,
        limit: AMPLE,
        grace: SHORT,
        keep: 4_096,
    };
    let printed = line.run().unwrap().output.text();
    // The shell and `env` set these by themselves.
    let own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let names: Vec<_> =
        printed.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let given: Vec<_> = names.iter().filter(|name| !own.contains(name)).collect();
    assert_eq!(given.len(), 2, "{printed}");
    assert!(printed.contains("ONUS_TASK=API-1"), "{printed}");
}

#[test]
fn a_missing_directory_is_an_error() {
    let area = Area::new();
    let (directory, environment) = (area.at("nowhere"), Environment::of_process());
    let line = CommandLine {
        line: "true",
        directory: &directory,
        environment: &environment,
        limit: AMPLE,
        grace: SHORT,
        keep: 0,
    };
    assert_eq!(line.run().unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_command_that_hangs_is_asked_and_ends() {
    let area = Area::new();
    let line = "trap 'echo asked; exit 5' TERM; echo began; while :; do sleep 0.05; done";
    let ran = hung(|limit| with_grace(&area, line, limit, AMPLE));
    assert_eq!((ran.exit, ran.timed_out, ran.succeeded()), (Some(5), true, false));
    assert!(ran.output.text().ends_with("asked\n"), "{}", ran.output.text());
}

#[test]
fn one_that_does_not_listen_is_killed_with_its_children() {
    let area = Area::new();
    let line = "trap '' TERM; sleep 600 & echo $! > child; echo began; while :; do sleep 600; done";
    let ran = hung(|limit| run(&area, line, limit));
    assert_eq!((ran.exit, ran.signal, ran.timed_out), (None, Some(9), true));
    assert!(ends(&pid_in(&area.at("child"))));
}

#[test]
fn what_it_left_running_in_the_background_is_ended() {
    let area = Area::new();
    let ran = run(&area, "sleep 600 & echo $! > child; echo over", AMPLE);
    assert_eq!((ran.exit, ran.timed_out, ran.output.text().as_str()), (Some(0), false, "over\n"));
    assert!(ran.took < AMPLE);
    assert!(ends(&pid_in(&area.at("child"))));
}

/// It left the group and holds the output open: it is not ours to end, nor to wait for.
#[test]
fn a_grandchild_that_went_its_own_way_is_not_waited_for() {
    let area = Area::new();
    let ran = run(
        &area,
        "setsid sh -c 'echo $$ > child; exec sleep 600' & while ! [ -s child ]; do :; done",
        AMPLE,
    );
    let pid = pid_in(&area.at("child"));
    assert_eq!((ran.exit, ran.timed_out), (Some(0), false));
    assert!(is_alive(&pid));
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn much_output_is_hashed_whole_and_kept_at_both_ends() {
    let area = Area::new();
    let ran = run(&area, "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last", AMPLE);
    let whole = format!("first\n{}\nlast\n", "x".repeat(50_000_000));
    assert_eq!(ran.exit, Some(0));
    assert_eq!((ran.output.length, ran.output.sha256), (50_000_012, Digest::of(whole.as_bytes())));
    assert_eq!((ran.output.head.len(), ran.output.tail.len()), (2_048, 2_048));
    assert!(ran.output.head.starts_with(b"first\nxx") && ran.output.tail.ends_with(b"x\nlast\n"));
}

#[test]
fn endless_output_ends_with_the_time() {
    let area = Area::new();
    let ran = hung(|limit| run(&area, "yes", limit));
    assert!(ran.timed_out, "{ran:?}");
}
