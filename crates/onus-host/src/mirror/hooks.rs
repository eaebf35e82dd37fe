//! Commands that run after a change (`on` in the settings), from the outbox: after the commit, in the order of each task's story,
//! and again where one failed. They get the environment that probes get, and no secret.

use super::{FarEnd, TriedSetting};
use crate::process::{CommandLine, Environment};
use onus_core::event::Event;
use onus_core::mirror::{Counterpart, Tidings, Undelivered};
use onus_core::notify::message::described;
use onus_core::notify::setting::Transition;
use onus_core::text::shortened;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a command may take; the sender's lease is longer.
const LIMIT: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);
const KEEP: usize = 4_096;

#[derive(Debug)]
pub struct Hooks {
    on: BTreeMap<Transition, Vec<String>>,
    root: PathBuf,
}

impl Hooks {
    pub fn new(on: BTreeMap<Transition, Vec<String>>, root: PathBuf) -> Hooks {
        Hooks { on, root }
    }
}

impl FarEnd for Hooks {
    fn wants(&self, event: &Event) -> bool {
        Transition::of(event).is_some_and(|transition| self.on.contains_key(&transition))
    }

    fn begins_now(&self) -> bool {
        true
    }

    fn deliver(&mut self, news: &Tidings, told: &mut Counterpart) -> Result<(), Undelivered> {
        let Some(lines) = Transition::of(&news.event).and_then(|transition| self.on.get(&transition)) else {
            return Ok(());
        };
        for (at, line) in lines.iter().enumerate() {
            let (name, seq) = (format!("on:{at}"), news.seq.to_string());
            // Those before one that failed are not run again.
            if told.done.get(&name) == Some(&seq) {
                continue;
            }
            let event = described(news, news.event.verb()).to_string();
            let environment = with_task(Environment::of_process(), news)
                .with("ONUS_EVENT", event)
                .with("ONUS_EVENT_ID", news.id.as_str())
                .with("ONUS_VERB", news.event.verb());
            run(line, &self.root, &environment)?;
            told.done.insert(name, seq);
        }
        Ok(())
    }

    /// Whatever failed was that command: other tasks' go on.
    fn is_well(&mut self) -> Result<(), Undelivered> {
        Ok(())
    }

    fn check(&mut self) -> Vec<TriedSetting> {
        let lines =
            self.on.iter().flat_map(|(transition, lines)| lines.iter().map(move |line| (transition, line)));
        lines
            .map(|(transition, line)| {
                let found = run(&format!("set -n\n{line}"), &self.root, &Environment::of_process());
                let found =
                    found.map(|()| "the shell can read it; it was not run".to_owned()).map_err(super::why);
                TriedSetting::new(format!("on {transition:?}: {line}"), found)
            })
            .collect()
    }
}

fn with_task(environment: Environment, news: &Tidings) -> Environment {
    match &news.task {
        Some(task) => {
            environment.with("ONUS_TASK", task.id.to_string()).with("ONUS_TITLE", task.title.as_str())
        }
        None => environment,
    }
}

/// Runs a line of the settings; the end of what it printed is the reason where it fails.
pub(super) fn run(line: &str, root: &Path, environment: &Environment) -> Result<(), Undelivered> {
    let command = CommandLine { line, directory: root, environment, limit: LIMIT, grace: GRACE, keep: KEEP };
    let ran = command.run().map_err(|error| Undelivered::Away(format!("it cannot be run: {error}")))?;
    if ran.succeeded() {
        return Ok(());
    }
    let how = match (ran.timed_out, ran.exit, ran.signal) {
        (true, ..) => format!("it took longer than {} s", LIMIT.as_secs()),
        (_, Some(exit), _) => format!("it ended with {exit}"),
        (.., Some(signal)) => format!("signal {signal} ended it"),
        _ => "it did not end".to_owned(),
    };
    let output = ran.output.text();
    let last: Vec<&str> = output.lines().rev().take(3).collect();
    let words: String = last.into_iter().rev().collect::<Vec<_>>().join(" ");
    let words: String =
        words.chars().map(|c| if onus_core::text::is_unprintable(c) { ' ' } else { c }).collect();
    Err(Undelivered::Away(shortened(format!("{how}: {words}").trim_end_matches([':', ' ']), 500)))
}
