//! `onus mirror`

use super::task_id;
use crate::context::{Store, World};
use crate::output::Output;
use crate::render;
use crate::shutdown::Ending;
use clap::{Args, Subcommand};
use onus_app::mirror::{MirrorsView, Sender};
use onus_core::code::Code;
use onus_core::id::{MirrorName, TaskId};
use onus_core::refusal::{Finding, Refusal};
use onus_store::location::Location;
use std::process::ExitCode;
use std::time::Duration;

/// How long a sender that has nothing to do waits before it looks again.
const PAUSE: Duration = Duration::from_millis(500);

/// Outside systems that are told what happens here, such as Redmine
///
/// They are set up in onus.yaml under `mirrors`. `onus serve` tells them by itself; without a server, `onus mirror run` does.
#[derive(Debug, Args)]
pub(crate) struct Mirror {
    #[command(subcommand)]
    verb: MirrorVerb,
}

#[derive(Debug, Subcommand)]
enum MirrorVerb {
    /// How each mirror stands: what waits, what is stuck and why, for how long
    Status,
    /// Try every field, status, tracker and permission that the settings name, and read it back
    Check(MirrorArg),
    /// Tell everything that is missing there, once, beginning with each task's first entry
    ///
    /// What the far end still has is known by its marks and not told twice. Use it after the far end was restored from a backup.
    Sync(OptionalMirror),
    /// Tell the mirrors what happens, and ask them for new issues, until interrupted
    Run(OptionalMirror),
    /// Try what is stuck at once: people only
    Retry(RetryArgs),
    /// Leave out what a mirror was not told of a task: people only, on record
    Skip(SkipArgs),
    /// What somebody changed there and Onus owns
    Diff(MirrorArg),
}

#[derive(Debug, Args)]
struct MirrorArg {
    /// The mirror, e.g. redmine
    #[arg(value_name = "NAME", value_parser = |t: &str| t.parse::<MirrorName>())]
    name: MirrorName,
}

#[derive(Debug, Args)]
struct OptionalMirror {
    /// The mirror, e.g. redmine. Default: all
    #[arg(value_name = "NAME", value_parser = |t: &str| t.parse::<MirrorName>())]
    name: Option<MirrorName>,
}

#[derive(Debug, Args)]
struct RetryArgs {
    #[command(flatten)]
    mirror: MirrorArg,

    /// Only this task. Default: everything that waits
    #[arg(value_name = "TASK", value_parser = task_id)]
    task: Option<TaskId>,
}

#[derive(Debug, Args)]
struct SkipArgs {
    #[command(flatten)]
    mirror: MirrorArg,

    /// The task, e.g. API-12
    #[arg(value_name = "TASK", value_parser = task_id)]
    task: TaskId,

    /// Why; becomes a note of the task
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Mirror {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        match &self.verb {
            MirrorVerb::Status => show(out, &store.mirrors()?),
            MirrorVerb::Check(MirrorArg { name }) => {
                here(world)?;
                let view = store.check_mirror(name)?;
                let failed = view.tried.iter().filter(|one| !one.ok);
                let findings: Vec<Finding> = failed
                    .map(|one| Finding::new(Code::MirrorStuck, format!("{}: {}", one.what, one.detail)))
                    .collect();
                match Refusal::from_findings(findings) {
                    Some(refusal) => Err(refusal
                        .hint(format!("set it right there or in onus.yaml, then onus mirror check {name}"))),
                    None => out.show(&view, render::mirror_check),
                }
            }
            MirrorVerb::Sync(only) => self.sync(world, &mut store, only.name.as_ref(), out),
            MirrorVerb::Run(only) => {
                here(world)?;
                let mut sender = store.sender(only.name.as_ref())?;
                watch(world, &mut store, &mut sender, out)?;
                store.give_mirrors_back(&mut sender)?;
                Ok(ExitCode::SUCCESS)
            }
            MirrorVerb::Retry(RetryArgs { mirror, task }) => {
                let view = store.retry_mirror(world.asker(&world.request()?), &mirror.name, task.as_ref())?;
                show(out, &view)
            }
            MirrorVerb::Skip(SkipArgs { mirror, task, reason }) => {
                let request = world.request()?;
                show(out, &store.skip_mirror(world.asker(&request), &mirror.name, task, reason.as_deref())?)
            }
            MirrorVerb::Diff(MirrorArg { name }) => {
                here(world)?;
                out.show(&store.diff_mirror(name)?, render::mirror_diff)
            }
        }
    }

    fn sync(
        &self,
        world: &World,
        store: &mut Store,
        only: Option<&MirrorName>,
        out: &Output,
    ) -> Result<ExitCode, Refusal> {
        here(world)?;
        let mut sender = store.sender(only)?;
        let names: Vec<MirrorName> = match only {
            Some(name) => vec![name.clone()],
            None => store.outlet_names(),
        };
        for name in &names {
            store.retell_mirror(name)?;
        }
        let mut has_polled = false;
        loop {
            let round = store.mirror_round(&mut sender)?;
            // What came in is told once; a far end that is asked again and again shows its newest issue every time.
            let is_first_poll = round.polled > 0 && !has_polled;
            has_polled |= is_first_poll;
            if round.delivered == 0 && !round.more && !is_first_poll {
                break;
            }
        }
        store.give_mirrors_back(&mut sender)?;
        let mut view = store.mirrors()?;
        view.mirrors.retain(|mirror| names.contains(&mirror.name));
        show(out, &view)
    }
}

fn show(out: &Output, view: &MirrorsView) -> Result<ExitCode, Refusal> {
    out.show_list(view, |view| &view.mirrors, render::mirrors)
}

/// Rounds until the end is asked for. A store that is busy or away for a while ends nothing.
fn watch(world: &World, store: &mut Store, sender: &mut Sender, out: &Output) -> Result<(), Refusal> {
    let mut ending = Ending::watch()?;
    let mut told = None;
    loop {
        let wait = match store.mirror_round(sender) {
            Ok(round) => {
                told = None;
                if round.more || round.delivered > 0 { Duration::ZERO } else { PAUSE }
            }
            Err(refusal)
                if matches!(refusal.code, Code::StoreBusy | Code::StoreUnavailable | Code::Fenced) =>
            {
                let text = refusal.to_string();
                if told.as_ref() != Some(&text) {
                    out.warn(&text);
                    told = Some(text);
                }
                if refusal.code == Code::StoreUnavailable
                    && let Ok(fresh) = world.open()
                {
                    *store = fresh;
                }
                PAUSE * 2
            }
            Err(refusal) => return Err(refusal),
        };
        if ending.within(wait) {
            return Ok(());
        }
    }
}

/// Mirrors are told where the store is: a server does it by itself, with the keys that it has.
fn here(world: &World) -> Result<(), Refusal> {
    match world.location {
        Location::Server(_) => {
            Err(Refusal::invalid("mirrors are told where the store is, and this is a server's")
                .hint("the server tells them by itself; run this verb there"))
        }
        _ => Ok(()),
    }
}
