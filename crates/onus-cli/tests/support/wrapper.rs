//! Commands under `onus run`: started, watched, and killed.

use super::{Answer, HANG, Site, finish, start};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// `onus run` as `@name` in `ws-name`, with a line for the shell.
pub(crate) fn run(site: &Site, name: &str, args: &[&str], line: &str) -> Command {
    let (who, place) = (format!("@{name}"), format!("ws-{name}"));
    let mut words = vec!["run", "--as", &who, "--workstation", &place];
    words.extend(args);
    words.extend(["--", "sh", "-c", line]);
    site.command(&words)
}

pub(crate) fn ran(site: &Site, name: &str, args: &[&str], line: &str) -> Answer {
    finish(start(&mut run(site, name, args, line)))
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < HANG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number that a command wrote there.
pub(crate) fn number_in(file: &Path) -> String {
    until("the command has started", || std::fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n')));
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

pub(crate) fn lives(pid: &str) -> bool {
    // A process that has ended and was not yet waited for does nothing any more.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

pub(crate) fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}
