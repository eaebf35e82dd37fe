//! `onus workstation probe`

use crate::context::{Store, World};
use crate::output::{Format, Output};
use crate::render;
use clap::Args;
use onus_app::view::WorkstationsView;
use onus_core::code::Code;
use onus_core::id::WorkstationName;
use onus_core::refusal::{Finding, Refusal};
use onus_core::time::Millis;
use onus_core::workstation::{Workstation, WorkstationState};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Run the probes of one workstation, or of all, and keep what they say
///
/// Exit code 5 when one is not ready.
#[derive(Debug, Args)]
pub(super) struct Probe {
    /// The workstation; default: all that are not retired
    #[arg(value_name = "WORKSTATION", value_parser = |t: &str| t.parse::<WorkstationName>())]
    name: Option<WorkstationName>,

    /// Go on until interrupted, and tell what changes
    #[arg(long)]
    watch: bool,

    /// How long to wait between two rounds
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = Millis::parse)]
    interval: Millis,
}

impl Probe {
    pub(super) fn run(&self, world: &World, store: &mut Store, out: &Output) -> Result<ExitCode, Refusal> {
        if self.watch {
            return self.watch(world, store, out);
        }
        let probed = self.round(world, store)?;
        let mut view = store.workstations(self.name.as_ref())?;
        view.workstations.retain(|row| probed.iter().any(|probed| probed.name == row.name));
        let code = out.show_list(&view, |view| &view.workstations, render::workstation_details)?;
        match unready(&view) {
            Some(refusal) => Err(refusal),
            None => Ok(code),
        }
    }

    fn round(&self, world: &World, store: &mut Store) -> Result<Vec<Workstation>, Refusal> {
        let names = match &self.name {
            Some(name) => vec![name.clone()],
            None => {
                let rows = store.workstation_rows()?.into_iter().map(|row| row.workstation);
                let live = rows.filter(|workstation| workstation.state != WorkstationState::Retired);
                live.map(|workstation| workstation.name).collect()
            }
        };
        names.iter().map(|name| Ok(store.probe(world.actor.as_ref(), name)?.0)).collect()
    }

    /// Every result is kept when it is there, so an interruption loses nothing.
    fn watch(&self, world: &World, store: &mut Store, out: &Output) -> Result<ExitCode, Refusal> {
        let mut seen: BTreeMap<WorkstationName, WorkstationState> = BTreeMap::new();
        loop {
            for workstation in self.round(world, store)? {
                let was = seen.insert(workstation.name.clone(), workstation.state);
                if was != Some(workstation.state) {
                    tell(store, out, &workstation)?;
                }
            }
            std::thread::sleep(Duration::from_millis(u64::try_from(self.interval.0).unwrap_or(15_000)));
        }
    }
}

fn tell(store: &mut Store, out: &Output, workstation: &Workstation) -> Result<(), Refusal> {
    let view = store.workstations(Some(&workstation.name))?;
    match out.format {
        Format::Human => out.print(&render::workstation_details(&view)),
        Format::Json | Format::JsonLines => {
            for row in &view.workstations {
                out.show(row, |_| String::new())?;
            }
        }
    }
    Ok(())
}

fn unready(view: &WorkstationsView) -> Option<Refusal> {
    let waiting = view.workstations.iter().filter(|row| row.state != WorkstationState::Ready);
    let findings = waiting.map(|row| {
        let code = match row.state {
            WorkstationState::Quarantined => Code::WorkstationQuarantined,
            _ => Code::WorkstationNotReady,
        };
        Finding::new(code, format!("{} is {}", row.name, row.state.name()))
            .hint(format!("onus workstation show {}", row.name))
    });
    Refusal::from_findings(findings.collect())
}
