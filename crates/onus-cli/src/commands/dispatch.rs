//! `onus dispatch`

use super::claim::begin;
use crate::context::World;
use crate::output::{Format, Output};
use crate::render;
use crate::shutdown::Ending;
use clap::Args;
use onus_app::clean_start::Earlier;
use onus_app::dispatch::{DispatchView, Mode, ProbedView, Round, UnplacedView};
use onus_app::submit::Receipt;
use onus_core::code::Code;
use onus_core::id::{TaskId, WorkstationName};
use onus_core::refusal::{Finding, Refusal};
use onus_core::time::Millis;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Give every ready task to the first candidate of the identity map that could begin now: people only
///
/// A round runs the probes of all workstations, then offers the ready tasks in the order of the queue, and explains what
/// it could not place. It never takes over, forces or takes anything away. The lease of each grant is left in its
/// workstation, for the worker it was given to.
#[derive(Debug, Args)]
pub(crate) struct Dispatch {
    /// One round; exit code 6 when nothing was ready. Default: round after round, telling what changes, until interrupted
    #[arg(long)]
    once: bool,

    /// Tell what one round would do, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// How long to wait between two rounds
    #[arg(long, value_name = "DURATION", default_value = "15s", conflicts_with = "once", value_parser = Millis::parse)]
    interval: Millis,

    /// Place at most so many tasks in one round
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
}

impl Dispatch {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        world.refuse_request_id()?;
        if !self.once && !self.dry_run {
            return self.watch(world, out);
        }
        let view = self.round(world, out)?;
        if view.edited {
            out.warn(EDITED);
        }
        if view.placed.is_empty() && view.unplaced.is_empty() {
            return Err(Refusal::new(Code::NothingReady, "no task is ready")
                .hint("onus ready tells what the others wait for"));
        }
        out.show(&view, render::dispatch)
    }

    fn round(&self, world: &World, out: &Output) -> Result<DispatchView, Refusal> {
        let mode = if self.dry_run { Mode::DryRun } else { Mode::Carry };
        dispatched(world, out, mode, &Round { limit: usize::from(self.limit), only: Vec::new() })
    }

    /// The store is opened anew for each round: settings and store may have changed meanwhile.
    fn watch(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut ending = Ending::watch()?;
        let mut seen = AlreadyTold::default();
        let wait = Duration::from_millis(u64::try_from(self.interval.0).unwrap_or(15_000));
        loop {
            match self.round(world, out) {
                Ok(view) => seen.tell(out, view)?,
                Err(refusal) if is_passing(refusal.code) => seen.trouble(out, &refusal.to_string()),
                Err(refusal) => return Err(refusal),
            }
            if ending.within(wait) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// One round; whoever gets a task finds its workstation ready and its lease in it.
pub(super) fn dispatched(
    world: &World,
    out: &Output,
    mode: Mode,
    round: &Round,
) -> Result<DispatchView, Refusal> {
    let mut keep = |receipt: &Receipt, directory: Option<&Path>| {
        let Some(token) = &receipt.token else { return };
        let begun = world.open().and_then(|mut store| begin(world, &mut store, out, receipt, Earlier::Leave));
        if let Err(refusal) = begun {
            out.warn(&format!("{}: {refusal}", receipt.task.id));
        }
        // The grant is committed; a token that cannot be kept in a file can still be passed by hand.
        let kept =
            world.open().and_then(|mut store| world.keep_lease(&mut store, &receipt.task, token, directory));
        if let Err(refusal) = kept {
            out.warn(&format!("{}: {refusal}; pass --lease {token}", receipt.task.id));
        }
    };
    world.open()?.dispatch(world.actor.as_ref(), mode, round, &mut keep)
}

const EDITED: &str = "the identity map is edited in the main checkout; the committed one is followed";

/// Whether the next round may succeed without anybody changing the call: the store or the map was the reason.
fn is_passing(code: Code) -> bool {
    matches!(code, Code::StoreBusy | Code::StoreUnavailable | Code::MapInvalid)
}

/// Whether the same stands against it. What a failing probe says has its time in it, and is told of the workstation.
fn is_same(told: &UnplacedView, now: &UnplacedView) -> bool {
    let is_same = |(one, other): (&Finding, &Finding)| {
        one.code == other.code && (one.code == Code::WorkstationNotReady || one.detail == other.detail)
    };
    told.findings.len() == now.findings.len() && told.findings.iter().zip(&now.findings).all(is_same)
}

/// What was told already, so that only changes are told.
#[derive(Debug, Default)]
struct AlreadyTold {
    workstations: BTreeMap<WorkstationName, ProbedView>,
    unplaced: BTreeMap<TaskId, UnplacedView>,
    trouble: Option<String>,
}

impl AlreadyTold {
    fn tell(&mut self, out: &Output, mut view: DispatchView) -> Result<(), Refusal> {
        match view.edited {
            true => self.trouble(out, EDITED),
            false => self.trouble = None,
        }
        let unplaced: BTreeMap<TaskId, UnplacedView> =
            view.unplaced.iter().map(|one| (one.task.clone(), one.clone())).collect();
        view.unplaced.retain(|one| self.unplaced.get(&one.task).is_none_or(|told| !is_same(told, one)));
        self.unplaced = unplaced;
        view.workstations.retain(|one| {
            let before = self.workstations.insert(one.name.clone(), one.clone());
            before.map_or(one.before, |before| before.state) != one.state
        });
        if view.placed.is_empty() && view.unplaced.is_empty() && view.workstations.is_empty() {
            return Ok(());
        }
        match out.format {
            Format::Human => out.print(&render::change_line(&view)),
            Format::Json | Format::JsonLines => drop(out.show(&view, |_| String::new())?),
        }
        Ok(())
    }

    fn trouble(&mut self, out: &Output, text: &str) {
        if self.trouble.as_deref() != Some(text) {
            out.warn(text);
            self.trouble = Some(text.to_owned());
        }
    }
}
