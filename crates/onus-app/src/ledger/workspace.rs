//! The workspace's own chain: who founded it, who was registered, which generation is in force.

use super::finding::{FindingKind, Findings};
use super::locate::{self, LedgerOverview};
use onus_core::event::{Event, Stamped, TimesheetApproved, ViewSaved, WorkspaceCreated};
use onus_core::hash::Digest;
use onus_core::id::{CloneId, Generation, Handle, MilestoneName, ProjectKey, Seq, TokenId, WorkstationName};
use onus_core::ledger::EntryRef;
use onus_core::main_of_record::{Named, RepositoryClone};
use onus_core::milestone::{self, Milestone};
use onus_core::registry::{token, worker, workstation};
use onus_core::saved_view::SavedView;
use onus_core::token::AccessToken;
use onus_core::worker::Worker;
use onus_core::workstation::Workstation;
use onus_store::error::{Result, StoreError};
use onus_store::load::Workspace;
use onus_store::port::Tx;
use onus_store::read::effort;
use onus_store::registry;
use std::collections::BTreeMap;
use std::fmt::Display;

/// What the workspace's chain says so far.
#[derive(Debug)]
pub(super) struct Register {
    pub(super) founded: Option<WorkspaceCreated>,
    pub(super) generation: Generation,
    projects: BTreeMap<ProjectKey, Seq>,
    workers: BTreeMap<Handle, (Seq, Worker)>,
    workstations: BTreeMap<WorkstationName, (Seq, Workstation)>,
    tokens: BTreeMap<TokenId, (Seq, AccessToken)>,
    milestones: BTreeMap<MilestoneName, (Seq, Milestone)>,
    views: BTreeMap<String, (Seq, SavedView)>,
    approvals: BTreeMap<Seq, TimesheetApproved>,
    clones: BTreeMap<CloneId, (Seq, RepositoryClone)>,
    main: Option<Named>,
    last: Digest,
    count: i64,
    is_suspect: bool,
}

impl Register {
    pub(super) fn new() -> Register {
        Register {
            founded: None,
            generation: 1,
            projects: BTreeMap::new(),
            workers: BTreeMap::new(),
            workstations: BTreeMap::new(),
            tokens: BTreeMap::new(),
            milestones: BTreeMap::new(),
            views: BTreeMap::new(),
            approvals: BTreeMap::new(),
            clones: BTreeMap::new(),
            main: None,
            last: Digest::ZERO,
            count: 0,
            is_suspect: false,
        }
    }

    /// Follows the chain; what is wrong with it is found out by [`Register::examine`].
    pub(super) fn take(&mut self, uid: &str, entry: &EntryRef<'_>, found: &mut Findings) {
        if entry.prev != self.last || entry.expected_hash(uid) != entry.hash {
            self.is_suspect = true;
        }
        self.last = entry.hash;
        self.count += 1;
        if let Err(error) = entry.open().and_then(|stamped| self.play(stamped)) {
            found.add(FindingKind::Inconsistent, entry.seq, None, error);
        }
    }

    fn play(&mut self, entry: Stamped) -> std::result::Result<(), String> {
        let seq = entry.seq;
        let is_new = match entry.event {
            Event::WorkspaceCreated(created) => self.founded.replace(created).is_none() && self.count == 1,
            Event::ProjectAdded(added) => self.projects.insert(added.key, seq).is_none(),
            Event::GenerationRaised(raised) => {
                let rises = raised.generation > self.generation;
                self.generation = raised.generation;
                rises
            }
            Event::Imported(_) | Event::PushedByPerson(_) => true,
            Event::TimesheetApproved(approved) => self.approvals.insert(seq, approved).is_none(),
            Event::ViewSaved(ViewSaved { name, query: None }) => self.views.remove(&name).is_some(),
            Event::ViewSaved(ViewSaved { name, query: Some(query) }) => {
                let view = SavedView { name: name.clone(), query, saved: seq };
                self.views.insert(name, (seq, view)).is_none_or(|(_, before)| before.saved < seq)
            }
            Event::CloneJoined(joined) => {
                let clone = RepositoryClone::from(&joined);
                self.clones.insert(joined.id, (seq, clone.clone())).is_none_or(|(_, before)| before != clone)
            }
            Event::MainOfRecordNamed(named) => {
                let named = Some(Named::from(&named));
                std::mem::replace(&mut self.main, named.clone()) != named
            }
            event => return self.register(&Stamped { event, ..entry }),
        };
        if is_new { Ok(()) } else { Err("it cannot follow what came before it".to_owned()) }
    }

    /// Plays what happened to a worker, a workstation, a token or a milestone.
    fn register(&mut self, entry: &Stamped) -> std::result::Result<(), String> {
        let (seq, event) = (entry.seq, &entry.event);
        if let Some(handle) = worker::changed(event) {
            let before = self.workers.remove(handle).map(|(_, worker)| worker);
            let after = worker::evolve(before, event).map_err(|wrong| wrong.to_string())?;
            self.workers.insert(handle.clone(), (seq, after));
            return Ok(());
        }
        if let Some(name) = workstation::changed(event) {
            let before = self.workstations.remove(name).map(|(_, workstation)| workstation);
            let after = workstation::evolve(before, event).map_err(|wrong| wrong.to_string())?;
            self.workstations.insert(name.clone(), (seq, after));
            return Ok(());
        }
        if let Some(id) = token::changed(event) {
            let before = self.tokens.remove(id).map(|(_, token)| token);
            let after = token::evolve(before, entry).map_err(|wrong| wrong.to_string())?;
            self.tokens.insert(id.clone(), (seq, after));
            return Ok(());
        }
        if let Some(name) = milestone::changed(event) {
            let before = self.milestones.remove(name).map(|(_, milestone)| milestone);
            let after = milestone::evolve(before, entry).map_err(|wrong| wrong.to_string())?;
            self.milestones.insert(name.clone(), (seq, after));
            return Ok(());
        }
        Err(format!("`{}` concerns a task, and names none", event.verb()))
    }

    /// The chain against the rows.
    pub(super) fn examine(
        &self,
        tx: &mut dyn Tx,
        site: &LedgerOverview<'_>,
        row: &Workspace,
        found: &mut Findings,
    ) -> Result<()> {
        if self.is_suspect {
            locate::links(site, None, &locate::read_chain(tx, None)?, found);
        }
        if self.last != row.head {
            let detail = format!("the workspace's chain ends with {}, its row says {}", self.last, row.head);
            found.add(FindingKind::Truncated, None, None, detail);
        }
        match &self.founded {
            Some(founded) if founded.uid.to_string() == row.uid && founded.public_key == row.public_key => {}
            Some(_) => found.add(
                FindingKind::RowDiffers,
                1,
                None,
                "the workspace's id or key is not the one it was founded with",
            ),
            None => found.add(FindingKind::Deleted, 1, None, "the entry that founded the workspace is gone"),
        }
        if self.generation != row.generation {
            let detail = format!("the generation is {}, its row says {}", self.generation, row.generation);
            found.add(FindingKind::RowDiffers, None, None, detail);
        }
        if self.main != row.main {
            found.add(
                FindingKind::RowDiffers,
                None,
                None,
                "the main of record is not the one that was named",
            );
        }
        tolerate(self.registered(tx, found), found)
    }

    fn registered(&self, tx: &mut dyn Tx, found: &mut Findings) -> Result<()> {
        let projects = registry::projects(tx)?;
        let unknown = projects.iter().filter(|key| !self.projects.contains_key(key));
        unknown.for_each(|key| {
            found.add(FindingKind::RowMissing, None, None, format!("no entry adds the project {key}"));
        });
        for (key, seq) in self.projects.iter().filter(|(key, _)| !projects.contains(key)) {
            found.add(FindingKind::RowMissing, *seq, None, format!("the project {key} is gone"));
        }
        let mut workers = self.workers.clone();
        for row in registry::workers(tx, None)? {
            let is = row.worker;
            differs(found, "worker", is.handle.as_str(), workers.remove(&is.handle).as_ref(), &is);
        }
        gone(found, "worker", &workers);
        let mut workstations = self.workstations.clone();
        for row in registry::workstations(tx)? {
            let is = row.workstation;
            differs(found, "workstation", is.name.as_str(), workstations.remove(&is.name).as_ref(), &is);
        }
        gone(found, "workstation", &workstations);
        let mut tokens = self.tokens.clone();
        for row in onus_store::token::every(tx)? {
            let is = row.token;
            differs(found, "token", is.id.as_str(), tokens.remove(&is.id).as_ref(), &is);
        }
        gone(found, "token", &tokens);
        let mut milestones = self.milestones.clone();
        for row in onus_store::milestone::every(tx)? {
            let is = row.milestone;
            differs(found, "milestone", is.name.as_str(), milestones.remove(&is.name).as_ref(), &is);
        }
        gone(found, "milestone", &milestones);
        let mut views = self.views.clone();
        for row in onus_store::saved_view::every(tx)? {
            let is = row.view;
            differs(found, "view", &is.name, views.remove(&is.name).as_ref(), &is);
        }
        gone(found, "view", &views);
        let mut clones = self.clones.clone();
        for is in onus_store::landed::clones(tx)? {
            differs(found, "clone", is.id.as_str(), clones.remove(&is.id).as_ref(), &is);
        }
        gone(found, "clone", &clones);
        self.approved(tx, found)
    }

    fn approved(&self, tx: &mut dyn Tx, found: &mut Findings) -> Result<()> {
        let rows: BTreeMap<Seq, TimesheetApproved> = effort::every_approval(tx)?.into_iter().collect();
        for (seq, row) in &rows {
            if self.approvals.get(seq) != Some(row) {
                found.add(FindingKind::RowDiffers, *seq, None, "an approval is not what the record says");
            }
        }
        for seq in self.approvals.keys().filter(|seq| !rows.contains_key(seq)) {
            found.add(FindingKind::RowMissing, *seq, None, "an approval is gone");
        }
        Ok(())
    }
}

fn differs<T: PartialEq>(found: &mut Findings, what: &str, name: &str, said: Option<&(Seq, T)>, is: &T) {
    match said {
        Some((_, said)) if said == is => {}
        Some((seq, _)) => {
            found.add(
                FindingKind::RowDiffers,
                *seq,
                None,
                format!("the {what} {name} is not what the record says"),
            );
        }
        None => found.add(FindingKind::RowMissing, None, None, format!("no entry adds the {what} {name}")),
    }
}

fn gone<N: Display, T>(found: &mut Findings, what: &str, left: &BTreeMap<N, (Seq, T)>) {
    for (name, (seq, _)) in left {
        found.add(FindingKind::RowMissing, *seq, None, format!("the {what} {name} is gone"));
    }
}

/// What cannot be read is a finding, and the rest is still looked at.
pub(super) fn tolerate(result: Result<()>, found: &mut Findings) -> Result<()> {
    match result {
        Err(StoreError::Corrupt(detail)) => {
            found.add(FindingKind::Unreadable, None, None, detail);
            Ok(())
        }
        other => other,
    }
}
