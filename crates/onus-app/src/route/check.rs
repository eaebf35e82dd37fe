//! Whether a map can be followed here: its own mistakes, and what the store knows about those it names. Fit for CI.

use super::invalid;
use crate::Onus;
use onus_core::code::Code;
use onus_core::id::{Handle, WorkstationName};
use onus_core::identity_map::{FILE, IdentityMap, Policy};
use onus_core::naming::Convention;
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::Settings;
use onus_core::worker::{Kind, Worker};
use onus_core::workstation::WorkstationState;
use onus_host::identity_map;
use onus_host::repository::Place;
use onus_store::port::Tx;
use onus_store::read::survey;
use onus_store::registry;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What a map was found to be.
#[derive(Debug)]
pub struct Checked {
    map: Option<IdentityMap>,
    findings: Vec<Finding>,
    warnings: Vec<Finding>,
}

/// The answer to `route check`: the map can be followed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckView {
    pub rules: usize,
    pub roles: usize,
    /// Whether there is a store here whose workers, workstations and open tasks were compared.
    pub compared: bool,
    /// What is worth a look and breaks nothing.
    pub warnings: Vec<Finding>,
}

/// The map in force, and the main checkout's file where it differs; or the named file alone.
pub fn read(place: &Place, settings: &Settings, file: Option<&Path>) -> Result<Checked, Refusal> {
    let mut checked = Checked { map: None, findings: Vec::new(), warnings: Vec::new() };
    if let Some(path) = file {
        checked.parse(path)?;
        return Ok(checked);
    }
    match identity_map::load(place, settings)? {
        Policy::Absent => {
            let finding = Finding::new(Code::MapInvalid, format!("there is no {FILE}"));
            checked.findings.push(finding.hint("write one at the repository's root and commit it"));
        }
        Policy::Invalid(broken) => {
            let findings = broken.findings;
            let working = place.settings_file().with_file_name(FILE);
            // It may be refused only because it is not committed: its own mistakes are worth telling, too.
            if working.exists() {
                checked.parse(&working)?;
            }
            let told = std::mem::take(&mut checked.findings);
            let news = told.into_iter().filter(|finding| !findings.contains(finding)).collect::<Vec<_>>();
            checked.findings = findings.into_iter().chain(news).collect();
        }
        Policy::InForce(in_force) => {
            if in_force.edited {
                // What will be committed is what is worth checking.
                let working = place.settings_file().with_file_name(FILE);
                if working.exists() {
                    checked.parse(&working)?;
                }
                let detail = format!("{FILE} in the main checkout is edited; the committed one is in force");
                checked.warn(&detail, "commit it, or undo it: git restore executor-identity-map.yaml");
            } else if in_force.commit.is_none() && place.repo.is_some() {
                let detail = format!("{FILE} is not committed: no grant can name its commit");
                checked.warn(&detail, "git add executor-identity-map.yaml and commit it");
            }
            if checked.map.is_none() && checked.findings.is_empty() {
                checked.map = Some(in_force.map);
            }
        }
    }
    Ok(checked)
}

impl Checked {
    fn parse(&mut self, path: &Path) -> Result<(), Refusal> {
        let bytes = bytes(path)
            .map_err(|error| Refusal::invalid(format!("cannot read {}: {error}", path.display())))?;
        let name = path.file_name().map_or(FILE.into(), |name| name.to_string_lossy());
        match identity_map::parse(&bytes, &name) {
            Ok(map) => self.map = Some(map),
            Err(findings) => self.findings.extend(findings),
        }
        Ok(())
    }

    fn warn(&mut self, detail: &str, hint: &str) {
        self.warnings.push(Finding::new(Code::MapInvalid, detail).hint(hint));
    }

    /// Compares the map with what the store knows.
    pub fn compare(&mut self, onus: &mut Onus) -> Result<(), Refusal> {
        let Some(map) = &self.map else { return Ok(()) };
        let known = onus.ask(KnownNames::load)?;
        self.findings.extend(known.findings(map));
        Ok(())
    }

    /// The refusal has all findings; the warnings come after them.
    pub fn view(self, compared: bool) -> Result<CheckView, Refusal> {
        match self.map {
            Some(map) if self.findings.is_empty() => Ok(CheckView {
                rules: map.routing.len(),
                roles: map.roles.len(),
                compared,
                warnings: self.warnings,
            }),
            _ => Err(invalid(self.findings.into_iter().chain(self.warnings).collect())),
        }
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells that there is more.
    File::open(path)?.take(identity_map::SIZE_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > identity_map::SIZE_MAX {
        return Err(io::Error::other(format!("it is larger than {} bytes", identity_map::SIZE_MAX)));
    }
    Ok(bytes)
}

/// What the store knows.
struct KnownNames {
    workers: BTreeMap<Handle, Worker>,
    workstations: BTreeMap<WorkstationName, WorkstationState>,
    open: Vec<(Option<onus_core::id::TaskType>, i64)>,
}

impl KnownNames {
    fn load(tx: &mut dyn Tx) -> onus_store::error::Result<KnownNames> {
        let workers = registry::workers(tx, None)?.into_iter();
        let workstations = registry::workstations(tx)?.into_iter().map(|row| row.workstation);
        Ok(KnownNames {
            workers: workers.map(|row| (row.worker.handle.clone(), row.worker)).collect(),
            workstations: workstations.map(|it| (it.name, it.state)).collect(),
            open: survey::open_types(tx)?,
        })
    }

    fn findings(&self, map: &IdentityMap) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for (at, rule) in map.routing.iter().enumerate() {
            for (agent, workstation, _) in rule.in_order() {
                if seen.insert(agent.to_string()) {
                    found.extend(self.against_agent(&format!("routing[{at}]"), agent));
                }
                if seen.insert(workstation.to_string()) {
                    found.extend(self.against_workstation(at, workstation));
                }
            }
        }
        for (role, rule) in &map.roles {
            for worker in rule.workers.iter().filter(|worker| seen.insert(worker.to_string())) {
                found.extend(self.against_agent(&format!("roles.{role}.workers"), worker));
            }
        }
        if let Some(naming) = &map.naming {
            found.extend(self.against_names(naming));
        }
        found.extend(self.unserved(map));
        found
    }

    fn against_agent(&self, place: &str, agent: &Handle) -> Option<Finding> {
        let (detail, hint) = match self.workers.get(agent) {
            None => (
                format!("{place} names {agent}, who is not registered"),
                format!("a person runs: onus worker add {agent} --kind agent"),
            ),
            Some(worker) if worker.kind == Kind::Human => (
                format!("{place} names {agent}, who is a person: people take what they like"),
                format!("name an agent in {place} of {FILE}"),
            ),
            Some(_) => return None,
        };
        Some(Finding::new(Code::MapInvalid, detail).hint(hint))
    }

    fn against_workstation(&self, at: usize, name: &WorkstationName) -> Option<Finding> {
        let detail = match self.workstations.get(name) {
            None => format!("routing[{at}] names {name}, which is not registered"),
            Some(WorkstationState::Retired) => format!("routing[{at}] names {name}, which is retired"),
            Some(_) => return None,
        };
        let hint = format!("a person runs: onus workstation add {name}");
        Some(Finding::new(Code::MapInvalid, detail).hint(hint))
    }

    /// Registered before there was a convention.
    fn against_names(&self, naming: &Convention) -> Vec<Finding> {
        let live = self.workstations.iter().filter(|(_, state)| **state != WorkstationState::Retired);
        let odd = live.filter_map(|(name, _)| naming.parse(name).err());
        odd.map(|why| {
            Finding::new(Code::MapInvalid, why)
                .hint(format!("retire it: onus workstation retire NAME, or change naming in {FILE}"))
        })
        .collect()
    }

    fn unserved(&self, map: &IdentityMap) -> Vec<Finding> {
        let unserved = self.open.iter().filter(|(task_type, _)| map.rule_for(task_type.as_ref()).is_none());
        unserved
            .map(|(task_type, count)| {
                let tasks =
                    if *count == 1 { "1 open task".to_owned() } else { format!("{count} open tasks") };
                let (detail, rule) = match task_type {
                    Some(one) => (format!("no rule routes the type {one} of {tasks}"), one.to_string()),
                    None => {
                        let have = if *count == 1 { "has" } else { "have" };
                        (format!("{tasks} {have} no type, and no rule routes `*`"), "\"*\"".to_owned())
                    }
                };
                Finding::new(Code::MapInvalid, detail)
                    .hint(format!("add a rule with `task_type: {rule}` to routing in {FILE}"))
            })
            .collect()
    }
}
