//! What git's hooks ask: may this reference move? The rules are in `onus_core::guard`; here is what they need to know
//! (mission B5, E1). Nothing is written: a refusal is git's to report.

use crate::Onus;
use crate::remote::calls;
use onus_core::boundary;
use onus_core::guard::{self, Change, Credentials, Held, Local, Post, Push};
use onus_core::id::{Generation, Handle, TaskId, WorkstationName};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Assignment;
use onus_core::workstation::Workstation;
use onus_host::hook::Update;
use onus_host::refs::History;
use onus_host::{identity_map, lease_file, ref_file};
use onus_store::load;
use onus_store::read::show;
use onus_store::registry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The caller of a hook in a repository that people work in.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'a> {
    /// The top of the linked working tree it stands in; none in the main checkout.
    pub linked: Option<&'a Path>,
    /// Where that working tree keeps its leases.
    pub leases: Option<&'a Path>,
    /// The token it showed by hand.
    pub token: Option<&'a Token>,
    /// Who it says it is.
    pub worker: Option<&'a Handle>,
}

/// Who works where, as of now.
#[derive(Serialize, Deserialize)]
pub(crate) struct Fleet {
    pub(crate) generation: Generation,
    pub(crate) workstations: Vec<Workstation>,
    pub(crate) held: BTreeMap<WorkstationName, (TaskId, Assignment)>,
}

impl Fleet {
    fn post<'a>(&'a self, workstation: &'a Workstation) -> Post<'a> {
        let held = self.held.get(&workstation.name);
        Post {
            workstation: &workstation.name,
            state: workstation.state,
            held: held.map(|(task, assignment)| Held { task, assignment }),
        }
    }

    /// The workstation whose branch a reference is.
    fn owner(&self, refname: &str) -> Option<Post<'_>> {
        let branch = refname.strip_prefix("refs/heads/")?;
        let owns = |one: &&Workstation| one.branch.as_ref().is_some_and(|own| own.as_str() == branch);
        self.live().find(owns).map(|one| self.post(one))
    }

    fn at(&self, directory: &Path) -> Option<Post<'_>> {
        let is_there = |one: &&Workstation| one.path.as_deref().map(Path::new) == Some(directory);
        self.live().find(is_there).map(|one| self.post(one))
    }

    /// The workstation whose live assignment a token opens.
    pub(crate) fn opened_by(&self, token: &Token) -> Option<Post<'_>> {
        let opens = |one: &&Workstation| {
            let held = self.held.get(&one.name);
            held.is_some_and(|(_, held)| held.epoch == token.epoch && held.lease.is_opened_by(token))
        };
        self.live().find(opens).map(|one| self.post(one))
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &Workstation> {
        use onus_core::workstation::WorkstationState::Retired;
        self.workstations.iter().filter(|one| one.state != Retired)
    }
}

impl Onus {
    /// Whether the branches of a working repository may move as `updates` say.
    pub fn guard(&mut self, desk: &Desk<'_>, updates: &[Update]) -> Result<(), Refusal> {
        let fleet = self.fleet()?;
        let from = desk.linked.and_then(|directory| fleet.at(directory));
        for update in updates {
            let owner = fleet.owner(&update.refname);
            let found = from.or(owner).map(|post| token_of(desk, &post)).transpose()?.flatten();
            let credentials = Credentials {
                token: desk.token.or(found.as_ref()),
                generation: fleet.generation,
                worker: desk.worker,
            };
            let local = Local { refname: &update.refname, owner, from, credentials };
            if let Some(held) = guard::local(&local)? {
                let git_dir = self.place.repo.as_ref().map(|repo| repo.git_dir.clone());
                let history = git_dir.as_deref().map(History::at);
                self.within(&held, history.as_ref(), update)?;
            }
        }
        Ok(())
    }

    /// Whether the references of a repository that people push to may move as `updates` say.
    pub fn guard_push(
        &mut self,
        token: Option<&Token>,
        history: &History<'_>,
        updates: &[Update],
    ) -> Result<(), Refusal> {
        let fleet = self.fleet()?;
        let main = self.main_branch()?.unwrap_or_default();
        let holder = token.and_then(|token| fleet.opened_by(token));
        for update in updates {
            let credentials = Credentials { token, generation: fleet.generation, worker: None };
            let push = Push {
                refname: &update.refname,
                change: change(history, update)?,
                main: &main,
                owner: fleet.owner(&update.refname),
                holder,
                credentials,
            };
            let held = guard::pushed(&push)?;
            self.within(&held, Some(history), update)?;
        }
        Ok(())
    }

    /// What a commit made at this desk says about its assignment; nothing where none is held there.
    pub fn trailers(&mut self, desk: &Desk<'_>) -> Result<Option<[(&'static str, String); 4]>, Refusal> {
        let fleet = self.fleet()?;
        let post = match desk.linked {
            Some(directory) => fleet.at(directory),
            None => desk.token.and_then(|token| fleet.opened_by(token)),
        };
        Ok(post.and_then(|post| post.held).map(|held| guard::trailers(&held)))
    }

    /// The full name of the main branch.
    fn main_branch(&self) -> Result<Option<String>, Refusal> {
        let repo = self.place.repo.as_ref();
        Ok(repo.map(|repo| identity_map::main_branch(repo, &self.settings)).transpose()?.flatten())
    }

    pub(crate) fn fleet(&mut self) -> Result<Fleet, Refusal> {
        if let Some(answer) = self.remote(|| calls::FleetNow {})? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let rows = registry::workstations(tx)?;
            let held = show::live(tx)?.into_iter();
            Ok(Fleet {
                generation: load::workspace(tx)?.generation,
                workstations: rows.into_iter().map(|row| row.workstation).collect(),
                held: held
                    .map(|held| (held.assignment.workstation.clone(), (held.task, held.assignment)))
                    .collect(),
            })
        })
    }

    /// Whether what the new commits change is the assignment's to change.
    fn within(
        &mut self,
        held: &Held<'_>,
        history: Option<&History<'_>>,
        update: &Update,
    ) -> Result<(), Refusal> {
        let (Some(new), Some(history)) = (&update.new, history) else {
            return Ok(());
        };
        let Some(task) = self.find_task(held.task)? else {
            return Ok(());
        };
        let spec = &task.spec;
        // Reading what changed takes a process; a task without limits needs none.
        if spec.scope.is_empty() && spec.role.is_none() {
            return Ok(());
        }
        let main = self.main_branch()?;
        let mut not: Vec<&str> = update.old.iter().map(String::as_str).collect();
        let repo = self.place.repo.as_ref();
        let resolved = match (repo, &main) {
            (Some(repo), Some(main)) => ref_file::commit(repo, main)?,
            _ => None,
        };
        // Whoever moves the main branch itself answers for everything that is new on it.
        not.extend(resolved.as_deref().filter(|_| main.as_deref() != Some(update.refname.as_str())));
        let paths = history.changed_paths(new, &not)?;
        guard::within(held, boundary::path_findings(&self.policy()?, spec, &paths))
    }
}

/// The token that a claim left in the caller's own working tree: that of the assignment in question, else an older one,
/// which tells that the caller was fenced.
fn token_of(desk: &Desk<'_>, post: &Post<'_>) -> Result<Option<Token>, Refusal> {
    let Some(leases) = desk.leases else {
        return Ok(None);
    };
    let text = match post.held {
        Some(held) => lease_file::load(leases, held.task, &held.assignment.assignee)?,
        None => None,
    };
    let text = text.or_else(|| lease_file::any(leases));
    Ok(text.and_then(|text| text.parse().ok()))
}

fn change(history: &History<'_>, update: &Update) -> Result<Change, Refusal> {
    Ok(match (&update.old, &update.new) {
        (_, None) => Change::Delete,
        (None, Some(_)) => Change::Create,
        (Some(old), Some(new)) if history.reaches(new, old)? => Change::Forward,
        (Some(_), Some(_)) => Change::Rewrite,
    })
}
