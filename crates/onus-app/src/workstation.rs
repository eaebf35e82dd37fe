//! `workstation`: where work goes, and whether it may (mission C3, C5, C6).

use crate::Onus;
use crate::idempotent_admin::{Asker, once};
use crate::registry::record;
use crate::remote::calls;
use crate::submit::unexpected;
use crate::token;
use crate::view::{WorkstationView, WorkstationsView};
use onus_core::code::Code;
use onus_core::event::{Event, WorkstationAdded};
use onus_core::facts::Caller;
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::identity_map::{Policy, as_demanded};
use onus_core::probe::ProbeResult;
use onus_core::refusal::Refusal;
use onus_core::registry::probe_report::{Reporter, kept, may_report};
use onus_core::registry::{Registration, person, workstation};
use onus_core::workstation::Workstation;
use onus_host::identity_map;
use onus_store::load;
use onus_store::port::{Outcome, Store, Tx};
use onus_store::registry::{self, Put, WorkstationHolding};
use std::path::{Path, PathBuf};

impl Onus {
    /// Registers a workstation. The naming convention is the identity map's, where it has one.
    pub fn add_workstation<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        wanted: &WorkstationAdded,
    ) -> Result<(Registration, Workstation), Refusal> {
        let asked = asker.into().asks(&calls::AddWorkstation { wanted: wanted.clone() })?;
        if let Some(answer) = self.remote_once(&asked)? {
            return Ok(answer);
        }
        let Onus { store, settings, place, .. } = self;
        once(store.as_mut(), &asked, |tx, caller| {
            let by = person(caller)?;
            let policy = identity_map::load(place, settings)?;
            follows_convention(&wanted.name, &policy)?;
            let wanted = &as_demanded(&policy, wanted);
            let rows = registry::workstations(tx)?;
            let all: Vec<Workstation> = rows.into_iter().map(|row| row.workstation).collect();
            let found = all.iter().find(|other| other.name == wanted.name);
            match (workstation::register(found, &all, wanted)?, found) {
                (None, Some(found)) => Ok(Outcome::Rollback((Registration::Existing, found.clone()))),
                (event, _) => {
                    let event = event.ok_or_else(|| unexpected("an existing workstation vanished"))?;
                    Ok(Outcome::Commit((Registration::Created, change(tx, by, event)?)))
                }
            }
        })
    }

    /// Whether the caller may register a workstation of this name: asked before anything is made for it.
    pub fn may_add_workstation(
        &mut self,
        actor: Option<&Handle>,
        name: &WorkstationName,
    ) -> Result<(), Refusal> {
        if let Some(answer) = self.remote(|| calls::MayAddWorkstation { place: name.clone() })? {
            return Ok(answer);
        }
        let caller = self.ask(|tx| load::caller(tx, actor))?;
        person(&caller)?;
        follows_convention(name, &self.policy()?)
    }

    pub fn workstations(&mut self, only: Option<&WorkstationName>) -> Result<WorkstationsView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Workstations { only: only.cloned() })? {
            return Ok(answer);
        }
        let rows = self.ask(|tx| {
            let mut rows = registry::workstations(tx)?;
            rows.retain(|row| only.is_none_or(|name| row.workstation.name == *name));
            let mut seen = Vec::with_capacity(rows.len());
            for row in rows {
                let results = registry::probes(tx, &row.workstation.name)?;
                seen.push((row, results));
            }
            Ok(seen)
        })?;
        if let (Some(name), true) = (only, rows.is_empty()) {
            return Err(no_workstation(name));
        }
        let views = rows.iter().map(|(row, results)| WorkstationView::new(row, results)).collect();
        Ok(WorkstationsView { workstations: views })
    }

    /// One workstation and what it holds.
    pub fn workstation(&mut self, name: &WorkstationName) -> Result<WorkstationHolding, Refusal> {
        if let Some(answer) = self.remote(|| calls::WorkstationRow { place: name.clone() })? {
            return Ok(answer);
        }
        let rows = self.ask(|tx| registry::workstations(tx))?;
        rows.into_iter().find(|row| row.workstation.name == *name).ok_or_else(|| no_workstation(name))
    }

    /// One workstation, if there is such a one.
    pub fn find_workstation(&mut self, name: &WorkstationName) -> Result<Option<Workstation>, Refusal> {
        if let Some(answer) = self.remote(|| calls::FindWorkstation { place: name.clone() })? {
            return Ok(answer);
        }
        Ok(self.ask(|tx| load::workstation(tx, name))?.map(|(found, _)| found))
    }

    /// Who asks, as far as the store knows.
    pub fn caller(&mut self, actor: Option<&Handle>) -> Result<Caller, Refusal> {
        if let Some(answer) = self.remote(|| calls::CallerOf {})? {
            return Ok(answer);
        }
        self.ask(|tx| load::caller(tx, actor))
    }

    /// All workstations, for whoever looks after them.
    pub fn workstation_rows(&mut self) -> Result<Vec<WorkstationHolding>, Refusal> {
        if let Some(answer) = self.remote(|| calls::WorkstationRows {})? {
            return Ok(answer);
        }
        self.ask(|tx| registry::workstations(tx))
    }

    /// The workstation whose directory contains `here`: the innermost one.
    pub fn workstation_at(&mut self, here: &Path) -> Result<Option<(WorkstationName, PathBuf)>, Refusal> {
        let rows = self.workstation_rows()?;
        let containing = rows.into_iter().filter_map(|row| {
            let path = PathBuf::from(row.workstation.path?);
            here.starts_with(&path).then_some((row.workstation.name, path))
        });
        Ok(containing.max_by_key(|(_, path)| path.components().count()))
    }

    /// The directory of a workstation, if it has one.
    pub fn directory_of(&mut self, name: &WorkstationName) -> Result<Option<PathBuf>, Refusal> {
        if let Some(answer) = self.remote(|| calls::DirectoryOf { place: name.clone() })? {
            return Ok(answer);
        }
        Ok(self.ask(|tx| registry::directory(tx, name))?.map(PathBuf::from))
    }

    /// The directory in which `worker` holds `task`, if it does and the workstation has one.
    pub fn holding_directory(&mut self, task: &TaskId, worker: &Handle) -> Result<Option<PathBuf>, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::HoldingDirectory { task: task.clone(), worker: worker.clone() })?
        {
            return Ok(answer);
        }
        Ok(self.ask(|tx| registry::holding_directory(tx, task, worker))?.map(PathBuf::from))
    }

    pub fn quarantine<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &WorkstationName,
        reason: Option<&str>,
    ) -> Result<WorkstationHolding, Refusal> {
        let call = calls::Quarantine { place: name.clone(), reason: reason.map(str::to_owned) };
        self.administer(asker, &call, |tx, caller| {
            let row = row_of(tx, name)?;
            let decided = workstation::quarantine(caller, &row.workstation, reason)?;
            changed(tx, row, decided)
        })
    }

    pub fn restore<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &WorkstationName,
        reason: Option<&str>,
    ) -> Result<WorkstationHolding, Refusal> {
        let call = calls::Restore { place: name.clone(), reason: reason.map(str::to_owned) };
        self.administer(asker, &call, |tx, caller| {
            let row = row_of(tx, name)?;
            let decided = workstation::restore(caller, &row.workstation, reason)?;
            changed(tx, row, decided)
        })
    }

    /// Retires a workstation; `removed` says that its directory is gone, too.
    pub fn retire<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &WorkstationName,
        reason: Option<&str>,
        removed: bool,
    ) -> Result<WorkstationHolding, Refusal> {
        let call = calls::Retire { place: name.clone(), reason: reason.map(str::to_owned), removed };
        self.administer(asker, &call, |tx, caller| {
            let row = row_of(tx, name)?;
            let decided = workstation::retire(caller, &row.workstation, row.holds.as_ref(), reason, removed)?;
            changed(tx, row, decided)
        })
    }

    /// Whether a workstation may be retired, without doing it: asked before its directory is removed.
    pub fn may_retire(&mut self, actor: Option<&Handle>, name: &WorkstationName) -> Result<(), Refusal> {
        if let Some(answer) = self.remote(|| calls::MayRetire { place: name.clone() })? {
            return Ok(answer);
        }
        let caller = self.ask(|tx| load::caller(tx, actor))?;
        let row = self.workstation(name)?;
        workstation::retire(&caller, &row.workstation, row.holds.as_ref(), None, true).map(drop)
    }

    /// Whether a workstation may be torn down: its role's work must not need it any more.
    pub fn may_remove(&mut self, name: &WorkstationName) -> Result<(), Refusal> {
        if let Some(answer) = self.remote(|| calls::MayRemove { place: name.clone() })? {
            return Ok(answer);
        }
        let found = self.ask(|tx| {
            let rows = registry::workstations(tx)?;
            let all: Vec<Workstation> = rows.into_iter().map(|row| row.workstation).collect();
            let own = all.iter().find(|one| one.name == *name).cloned();
            let pending = match own.as_ref().and_then(|own| own.role.as_ref()) {
                Some(role) => registry::pending(tx, role)?,
                None => Vec::new(),
            };
            Ok(own.map(|own| workstation::still_needed(&own, &all, &pending)))
        })?;
        let findings = found.ok_or_else(|| no_workstation(name))?;
        Refusal::from_findings(findings).map_or(Ok(()), Err)
    }

    /// Keeps what a run of all probes of a workstation said. Whether it is ready follows from that, and a change of
    /// it is on record.
    pub fn record_probes<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        name: &WorkstationName,
        results: &[ProbeResult],
    ) -> Result<Workstation, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::RecordProbes { place: name.clone(), results: results.to_vec() })?
        {
            return Ok(answer);
        }
        let (asker, policy) = (asker.into(), self.policy()?);
        self.store.write(|tx| {
            asker.shown.map(|shown| token::judge(tx, shown)).transpose()?;
            let caller = load::caller(tx, asker.actor)?;
            let row = row_of(tx, name)?;
            let bound = asker.shown.and_then(|shown| shown.principal.workstation.as_ref());
            let holder = row.holds.as_ref().map(|(_, holder)| holder);
            let by = may_report(&Reporter { caller: &caller, bound, policy: &policy }, name, holder)?;
            let after = keep_probes(tx, &by, name, results)?;
            Ok(Outcome::Commit(after))
        })
    }

    /// The same, but results for a workstation that the caller may not report on are dropped without a word.
    pub(crate) fn record_if_own(
        &mut self,
        actor: Option<&Handle>,
        name: &WorkstationName,
        results: &[ProbeResult],
    ) -> Result<Option<Workstation>, Refusal> {
        match self.record_probes(actor, name, results) {
            Err(refusal) if refusal.code == Code::NotPermitted => Ok(None),
            kept => kept.map(Some),
        }
    }
}

fn row_of(tx: &mut dyn Tx, name: &WorkstationName) -> Result<WorkstationHolding, Refusal> {
    let row = registry::workstations(tx)?.into_iter().find(|row| row.workstation.name == *name);
    row.ok_or_else(|| no_workstation(name))
}

/// What was decided about a workstation, carried out; what it holds stays as it is.
fn changed(
    tx: &mut dyn Tx,
    row: WorkstationHolding,
    (by, event): (Handle, Event),
) -> Result<Outcome<WorkstationHolding>, Refusal> {
    let workstation = change(tx, &by, event)?;
    Ok(Outcome::Commit(WorkstationHolding { workstation, ..row }))
}

/// Whether a name is as the identity map has them, where it says how.
fn follows_convention(name: &WorkstationName, policy: &Policy) -> Result<(), Refusal> {
    if let Policy::InForce(map) = policy
        && let Some(convention) = &map.map.naming
    {
        convention.parse(name).map_err(|why| {
            Refusal::invalid(why).hint("the convention is in executor-identity-map.yaml, under naming")
        })?;
    }
    Ok(())
}

fn no_workstation(name: &WorkstationName) -> Refusal {
    Refusal::new(Code::UnknownName, format!("{name} is not registered")).hint("onus workstation list")
}

pub(crate) fn keep_probes(
    tx: &mut dyn Tx,
    by: &Handle,
    name: &WorkstationName,
    results: &[ProbeResult],
) -> Result<Workstation, Refusal> {
    let (found, _) = load::workstation(tx, name)?.ok_or_else(|| no_workstation(name))?;
    let results = &kept(&found, results, tx.now()?.wall)?;
    let at = results.iter().map(|result| result.at).max().unwrap_or(tx.now()?.wall);
    registry::put_probes(tx, name, at, results)?;
    match workstation::readiness(&found, results) {
        Some(event) => change(tx, by, event),
        None => Ok(found),
    }
}

/// Records what happened to a workstation, and makes its row say so.
pub(crate) fn change(tx: &mut dyn Tx, by: &Handle, event: Event) -> Result<Workstation, Refusal> {
    let name = workstation::changed(&event).ok_or_else(|| unexpected("an event about no workstation"))?;
    let before = load::workstation(tx, name)?.map(|(workstation, _)| workstation);
    let put = if before.is_none() { Put::New } else { Put::Changed };
    let after = workstation::evolve(before, &event).map_err(unexpected)?;
    registry::put_workstation(tx, put, &after)?;
    record(tx, by, event)?;
    Ok(after)
}
