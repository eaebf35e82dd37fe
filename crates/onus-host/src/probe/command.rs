//! `command:TEXT` exits with 0.

use super::{Around, Clock, Seen};
use crate::process::{CommandLine, Environment, Ran};
use std::path::Path;
use std::time::Duration;

/// How long a command may take to obey.
const GRACE: Duration = Duration::from_millis(500);
/// Until a command that does not end is gone, with what it printed.
pub(super) const MARGIN: Duration = Duration::from_secs(4);
const KEEP: usize = 4_096;

pub(super) fn see(line: &str, around: &Around, clock: &Clock) -> Seen {
    // Not the caller's own directory: what a relative path in the line means would be the caller's choice.
    let directory = around.directory.as_deref().unwrap_or(Path::new("/"));
    let environment = Environment::of_process();
    let command = CommandLine {
        line,
        directory,
        environment: &environment,
        limit: clock.left(),
        grace: GRACE,
        keep: KEEP,
    };
    match command.run() {
        Ok(ran) if ran.timed_out => clock.timed_out(&format!("it did not end{}", said(&ran))),
        Ok(ran) if ran.succeeded() => Seen::passed(format!("exit 0{}", said(&ran))),
        Ok(ran) => match (ran.exit, ran.signal) {
            (Some(exit), _) => Seen::failed(format!("exit {exit}, expected 0{}", said(&ran))),
            (None, Some(signal)) => Seen::failed(format!("ended by signal {signal}{}", said(&ran))),
            (None, None) => Seen::failed(format!("it has not ended{}", said(&ran))),
        },
        Err(e) => Seen::could_not_run(format!("cannot run a command in {}: {e}", directory.display())),
    }
}

fn said(ran: &Ran) -> String {
    ran.output.last_line().map(|line| format!(" (it said: {line})")).unwrap_or_default()
}
