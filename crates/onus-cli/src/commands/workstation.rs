//! `onus workstation`

mod add;
mod probe;
mod tree;

use crate::context::{Store, World};
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::view::WorkstationChangedView;
use onus_core::id::WorkstationName;
use onus_core::refusal::Refusal;
use onus_store::registry::WorkstationHolding;
use std::process::ExitCode;

/// Named places where work happens
#[derive(Debug, Args)]
pub(crate) struct Workstation {
    #[command(subcommand)]
    verb: WorkstationVerb,
}

#[derive(Debug, Subcommand)]
enum WorkstationVerb {
    Add(add::WorkstationAdd),
    /// Every workstation, whether it is ready, and what it holds
    List,
    /// One workstation, with what its probes said last
    Show(NameArg),
    Probe(probe::Probe),
    /// No new work there, and whoever works there is suspended: people only
    ///
    /// The holder may still release its task and leave notes; others may take the task over at once.
    Quarantine(Reasoned),
    /// Back from quarantine; with probes it is ready once they pass: people only
    Restore(Reasoned),
    /// No work there ever again, under this registration; its directory stays: people only
    Retire(Reasoned),
    Sync(tree::Sync),
    Remove(tree::Remove),
}

#[derive(Debug, Clone, Args)]
struct NameArg {
    /// The workstation, e.g. ws-backend-01
    #[arg(value_name = "WORKSTATION", value_parser = |t: &str| t.parse::<WorkstationName>())]
    name: WorkstationName,
}

#[derive(Debug, Args)]
struct Reasoned {
    #[command(flatten)]
    name: NameArg,

    /// Why; goes into the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Workstation {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        match &self.verb {
            WorkstationVerb::List => {
                out.show_list(&store.workstations(None)?, |view| &view.workstations, render::workstations)
            }
            WorkstationVerb::Show(NameArg { name }) => out.show_list(
                &store.workstations(Some(name))?,
                |view| &view.workstations,
                render::workstation_details,
            ),
            WorkstationVerb::Add(add) => add.run(world, &mut store, out),
            WorkstationVerb::Probe(probe) => probe.run(world, &mut store, out),
            WorkstationVerb::Quarantine(Reasoned { name, reason }) => {
                let row = store.quarantine(world.asker(&world.request()?), &name.name, reason.as_deref())?;
                quarantined(&mut store, out, &row)
            }
            WorkstationVerb::Restore(Reasoned { name, reason }) => {
                store.restore(world.asker(&world.request()?), &name.name, reason.as_deref())?;
                // Whether it is ready again is for its probes to say, at once.
                store.probe(world.actor.as_ref(), &name.name)?;
                let row = store.workstation(&name.name)?;
                let state = row.workstation.state.name();
                changed(out, &row, |name| format!("{name} is restored: {state}\n"))
            }
            WorkstationVerb::Retire(Reasoned { name, reason }) => {
                let row =
                    store.retire(world.asker(&world.request()?), &name.name, reason.as_deref(), false)?;
                changed(out, &row, |name| format!("{name} is retired\n"))
            }
            WorkstationVerb::Sync(sync) => sync.run(world, &mut store, out),
            WorkstationVerb::Remove(remove) => remove.run(world, &mut store, out),
        }
    }
}

fn quarantined(store: &mut Store, out: &Output, row: &WorkstationHolding) -> Result<ExitCode, Refusal> {
    // What was on its way when the quarantine was committed has arrived or is refused after this.
    if let Some((task, _)) = &row.holds {
        super::takeover::bar(store, out, task, &row.workstation.name);
    }
    let code = changed(out, row, |name| format!("{name} is quarantined: no new work goes there\n"))?;
    if let Some((task, holder)) = &row.holds {
        out.hint(&format!(
            "{holder} held {task} there; it can be recovered: onus takeover {task} --workstation NAME --reason TEXT"
        ));
    }
    Ok(code)
}

fn changed(
    out: &Output,
    row: &WorkstationHolding,
    said: impl FnOnce(&WorkstationName) -> String,
) -> Result<ExitCode, Refusal> {
    out.show(&WorkstationChangedView::from(row), |view| said(&view.workstation.name))
}
