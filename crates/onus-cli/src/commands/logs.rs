//! `onus logs`

use crate::context::{Store, World};
use crate::output::{Format, Output};
use crate::shutdown::Ending;
use clap::Args;
use onus_app::output::{OutputView, StepView};
use onus_app::session::SessionView;
use onus_core::code::Code;
use onus_core::id::{Handle, Seq, TaskId, shown};
use onus_core::output::step::StepReader;
use onus_core::refusal::Refusal;
use std::process::ExitCode;
use std::time::Duration;

/// How often what is followed is asked for.
const LOOK: Duration = Duration::from_millis(100);

/// What a worker's run prints, or printed: without control sequences and secrets
///
/// `onus run` keeps the beginning and the end of it (`run.keep`). What Claude Code, Codex, Gemini CLI and opencode tell of
/// themselves in JSON is shown as steps. The words are whatever a program printed.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// A worker or a task, e.g. @builder-1 or API-12: its last session
    #[arg(value_name = "@WORKER|TASK", value_parser = target)]
    of: LogTarget,

    /// Another session than the last one: its number in `onus session list`
    #[arg(long, value_name = "N")]
    session: Option<Seq>,

    /// Go on with what is printed next, until the session ends; of a worker, with its next sessions as well
    #[arg(long, short)]
    follow: bool,

    /// As it was printed: no steps
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Clone)]
enum LogTarget {
    Worker(Handle),
    Task(TaskId),
}

fn target(text: &str) -> Result<LogTarget, String> {
    match text.starts_with('@') {
        true => text.parse().map(LogTarget::Worker),
        false => text.parse().map(LogTarget::Task).map_err(|_: String| {
            format!("{} is neither a worker (@builder-1) nor a task (API-12)", shown(text))
        }),
    }
}

impl Logs {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let session = match self.session {
            Some(session) => store.session(session)?,
            None => self.last(&mut store)?.ok_or_else(|| self.nothing())?,
        };
        if self.follow {
            return self.follow(&mut store, out, session.id);
        }
        if out.format != Format::Human {
            return out.show(&whole(&mut store, session.id)?, |_| String::new());
        }
        if self.show(&mut store, out, session.id, 0)?.next == 0 {
            out.hint(&format!("nothing was kept of session {}: what runs under onus run is", session.id));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The same for a worker, to be followed.
    pub(super) fn attached(worker: &Handle) -> Logs {
        Logs { of: LogTarget::Worker(worker.clone()), session: None, follow: true, raw: false }
    }

    fn last(&self, store: &mut Store) -> Result<Option<SessionView>, Refusal> {
        let found = match &self.of {
            LogTarget::Worker(worker) => store.sessions(None, Some(worker), 1)?,
            LogTarget::Task(task) => store.sessions(Some(task), None, 1)?,
        };
        Ok(found.sessions.into_iter().next())
    }

    fn nothing(&self) -> Refusal {
        let what = match &self.of {
            LogTarget::Worker(worker) => worker.to_string(),
            LogTarget::Task(task) => task.to_string(),
        };
        Refusal::new(Code::UnknownName, format!("{what} has no session yet")).hint("onus run -- COMMAND")
    }

    fn follow(&self, store: &mut Store, out: &Output, mut session: Seq) -> Result<ExitCode, Refusal> {
        let mut ending = Ending::watch()?;
        let mut from = 0;
        loop {
            let view = self.show(store, out, session, from)?;
            from = view.next;
            if view.closed || !view.running {
                // What was printed last may still be on its way.
                from = self.show(store, out, session, from)?.next;
                let newer = match &self.of {
                    LogTarget::Worker(_) if self.session.is_none() => self.last(store)?,
                    _ => None,
                };
                match newer {
                    Some(next) if next.id > session => (session, from) = (next.id, 0),
                    None if view.closed => return Ok(ExitCode::SUCCESS),
                    _ => {}
                }
            }
            if ending.within(LOOK) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// Prints everything from a byte on; where it ended.
    fn show(
        &self,
        store: &mut Store,
        out: &Output,
        session: Seq,
        mut from: i64,
    ) -> Result<OutputView, Refusal> {
        loop {
            let is_stepped = out.format == Format::Human && !self.raw;
            let view = if is_stepped { store.steps(session, from)? } else { store.output(session, from)? };
            let text = match is_stepped {
                true => view.steps.iter().map(StepView::line).collect(),
                false => view.text(from),
            };
            if !text.is_empty() {
                match out.format {
                    Format::Human => out.print(&text),
                    Format::Json | Format::JsonLines => drop(out.show(&view, |_| String::new())?),
                }
            }
            if !view.more {
                return Ok(view);
            }
            from = view.next;
        }
    }
}

fn whole(store: &mut Store, session: Seq) -> Result<OutputView, Refusal> {
    let mut view = store.output(session, 0)?;
    while view.more {
        let more = store.output(session, view.next)?;
        view.pieces.extend(more.pieces);
        (view.next, view.more, view.closed) = (more.next, more.more, more.closed);
    }
    // What no client tells is in the pieces already.
    let steps = view.read_steps(&mut StepReader::default());
    if steps.iter().any(|step| step.kind != "printed") {
        view.steps = steps;
    }
    Ok(view)
}
