//! What git's hooks ask: may this reference move? The rules are in `onus_core::guard`; here is what they need to know
//! (mission B5, E1). Nothing is written: a refusal is git's to report.

use crate::remote::calls;
use crate::{Onus, Sight};
use onus_core::boundary;
use onus_core::guard::{self, Change, Credentials, Held, Local, Mover, Post};
use onus_core::id::{Generation, Handle, TaskId, WorkstationName};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Assignment;
use onus_core::worker::Kind;
use onus_core::workstation::Workstation;
use onus_host::hook::{self, Site, Update};
use onus_host::refs::{self, History};
use onus_host::repository::Repo;
use onus_host::{identity_map, lease_file, ref_file};
use onus_store::load;
use onus_store::read::show;
use onus_store::registry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The caller of a hook in a repository that people work in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Desk<'a> {
    /// The top of the working tree it stands in.
    pub root: Option<&'a Path>,
    /// Where that working tree keeps its leases.
    pub leases: Option<&'a Path>,
    /// The token it showed by hand.
    pub token: Option<&'a Token>,
    /// Who it says it is.
    pub worker: Option<&'a Handle>,
    /// The person whose clone it is.
    pub owner: Option<&'a Handle>,
    /// The variable by which a coding client shows itself.
    pub client: Option<&'a str>,
}

/// Who works where, as of now.
#[derive(Serialize, Deserialize)]
pub(crate) struct Fleet {
    pub(crate) generation: Generation,
    pub(crate) workstations: Vec<Workstation>,
    pub(crate) held: BTreeMap<WorkstationName, (TaskId, Assignment)>,
    #[serde(default)]
    pub(crate) workers: BTreeMap<Handle, Kind>,
}

impl Fleet {
    pub(crate) fn post<'a>(&'a self, workstation: &'a Workstation) -> Post<'a> {
        let held = self.held.get(&workstation.name);
        Post {
            workstation: &workstation.name,
            kind: workstation.kind,
            state: workstation.state,
            held: held.map(|(task, assignment)| Held {
                task,
                assignment,
                by: self.kind(&assignment.assignee),
            }),
        }
    }

    /// What a worker is. An unregistered one counts as an agent, which has the fewest rights.
    fn kind(&self, worker: &Handle) -> Kind {
        self.workers.get(worker).copied().unwrap_or(Kind::Agent)
    }

    /// Who stands at a desk.
    pub(crate) fn mover<'a>(&self, desk: &Desk<'a>) -> Mover<'a> {
        let known = |handle: &'a Handle| self.workers.get(handle).copied();
        match (desk.worker, desk.client, desk.owner) {
            (Some(handle), ..) => match known(handle) {
                Some(kind) => Mover::Named { handle, kind },
                None => Mover::Unregistered(handle),
            },
            (None, Some(mark), _) => Mover::Client(mark),
            (None, None, Some(owner)) if known(owner) == Some(Kind::Human) => Mover::Owner(owner),
            (None, None, _) => Mover::Nobody,
        }
    }

    /// What a worker holds, and whether each is held in a directory.
    pub(crate) fn held_by(&self, worker: &Handle) -> impl Iterator<Item = (Held<'_>, bool)> {
        let posts = self.live().filter_map(|one| Some((self.post(one).held?, one.path.is_some())));
        posts.filter(move |(held, _)| held.assignment.assignee == *worker)
    }

    /// The workstation whose branch a reference is.
    pub(crate) fn owner(&self, refname: &str) -> Option<Post<'_>> {
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
    /// Whether the references of a working repository may move as `updates` say.
    pub fn guard(&mut self, desk: &Desk<'_>, updates: &[Update]) -> Result<(), Refusal> {
        let fleet = self.fleet()?;
        let main = self.main_branch()?;
        let mover = fleet.mover(desk);
        let from = desk.root.and_then(|directory| fleet.at(directory));
        for update in updates {
            let owner = fleet.owner(&update.refname);
            let lying = token_of(desk, &mover, &fleet, from.or(owner).as_ref())?;
            let token = desk.token.or(lying.as_ref());
            let local = Local {
                refname: &update.refname,
                change: local_change(self.place.repo.as_ref(), update)?,
                main: main.as_deref(),
                owner,
                from,
                holder: token.and_then(|token| fleet.opened_by(token)),
                elsewhere: desk.worker.and_then(|worker| fleet.held_by(worker).next()).map(|(held, _)| held),
                credentials: Credentials { token, generation: fleet.generation, mover },
                people: self.settings.git.people,
            };
            match guard::local(&local) {
                Ok(Some(held)) => self.within_local(&held, update)?,
                Ok(None) => {}
                Err(_) if self.only_looks(update)? => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(())
    }

    fn within_local(&mut self, held: &Held<'_>, update: &Update) -> Result<(), Refusal> {
        let git_dir = self.place.repo.as_ref().map(|repo| repo.git_dir.clone());
        let history = git_dir.as_deref().map(History::at);
        self.within(held, history.as_ref(), update)
    }

    /// Whether a `HEAD` that is on no branch only goes to a commit that is there already: nobody has written anything.
    fn only_looks(&self, update: &Update) -> Result<bool, Refusal> {
        match (&self.place.repo, &update.new) {
            (Some(repo), Some(new)) if update.refname == "HEAD" => History::at(&repo.git_dir).is_known(new),
            _ => Ok(false),
        }
    }

    /// The same for what is about to be pushed. What the main branch has already is nobody's news.
    pub fn guard_before_push(&mut self, desk: &Desk<'_>, updates: &[Update]) -> Result<(), Refusal> {
        let main = self.main_branch()?;
        let mut news = Vec::new();
        for update in updates {
            if Some(&update.refname) != main.as_ref() || !self.is_in_main(main.as_deref(), update)? {
                news.push(update.clone());
            }
        }
        if news.is_empty() { Ok(()) } else { self.guard(desk, &news) }
    }

    fn is_in_main(&self, main: Option<&str>, update: &Update) -> Result<bool, Refusal> {
        match (&self.place.repo, main, &update.new) {
            (Some(repo), Some(main), Some(new)) => History::at(&repo.common_dir).reaches(main, new),
            _ => Ok(false),
        }
    }

    /// What a commit made at this desk says about its assignment; nothing where the caller holds none there.
    pub fn trailers(&mut self, desk: &Desk<'_>) -> Result<Option<[(&'static str, String); 4]>, Refusal> {
        let fleet = self.fleet()?;
        let from = desk.root.and_then(|directory| fleet.at(directory));
        let lying = token_of(desk, &fleet.mover(desk), &fleet, from.as_ref())?;
        let token = desk.token.or(lying.as_ref());
        let held = token.and_then(|token| fleet.opened_by(token)).and_then(|post| post.held);
        Ok(held.map(|held| guard::trailers(held.task, held.assignment)))
    }

    /// A warning where git does not ask us before a branch moves. What cannot be looked at is told by those who need it.
    pub fn unguarded(&self) -> Option<String> {
        let repo = self.place.repo.as_ref().filter(|repo| {
            let is_shared = repo.root.is_none();
            self.sight == Sight::Workstations && !is_shared
        })?;
        let absent = hook::absent(repo, Site::Work).unwrap_or_default();
        (!absent.is_empty()).then(|| {
            format!(
                "git asks nobody before a branch moves here ({} missing): onus hook install",
                absent.join(", ")
            )
        })
    }

    /// The full name of the main branch.
    pub(crate) fn main_branch(&self) -> Result<Option<String>, Refusal> {
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
            let workers = registry::workers(tx, None)?.into_iter();
            Ok(Fleet {
                generation: load::workspace(tx)?.generation,
                workstations: rows.into_iter().map(|row| row.workstation).collect(),
                held: held
                    .map(|held| (held.assignment.workstation.clone(), (held.task, held.assignment)))
                    .collect(),
                workers: workers.map(|row| (row.worker.handle, row.worker.kind)).collect(),
            })
        })
    }

    /// Whether what the new commits change is the assignment's to change.
    pub(crate) fn within(
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
        let allowed = &held.assignment.constraints;
        if spec.scope.is_empty() && spec.role.is_none() && allowed.is_empty() {
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
        let policy = self.policy()?;
        // One commit more on top of what was there: all of it, if not less, is new.
        let by_one = update.old.as_ref().and_then(|old| refs::changed_by_one(&repo?.common_dir, new, old));
        if by_one.is_some_and(|paths| boundary::path_findings(&policy, spec, allowed, &paths).is_empty()) {
            return Ok(());
        }
        let findings = boundary::path_findings(&policy, spec, allowed, &history.changed_paths(new, &not)?);
        if findings.is_empty() {
            return Ok(());
        }
        // Another task's landed commits were judged once, and are not this holder's doing.
        let commits = history.ids(new, &not)?;
        let landed = self.landed_among(&commits)?;
        if landed.is_empty() {
            return guard::within(held, findings);
        }
        let own: Vec<String> =
            commits.into_iter().filter(|id| !landed.iter().any(|one| one.as_str() == id)).collect();
        guard::within(held, boundary::path_findings(&policy, spec, allowed, &history.changed_by(&own)?))
    }
}

/// The token that a claim in the caller's name left in its working tree: that of the assignment in question, else one that
/// opens another, else an older one, which tells that the caller was fenced. Somebody else's is nothing to it.
fn token_of(
    desk: &Desk<'_>,
    mover: &Mover<'_>,
    fleet: &Fleet,
    post: Option<&Post<'_>>,
) -> Result<Option<Token>, Refusal> {
    let (Some(leases), Some(worker)) = (desk.leases, mover.handle()) else {
        return Ok(None);
    };
    if let Some(held) = post.and_then(|post| post.held)
        && let Some(text) = lease_file::load(leases, held.task, worker)?
    {
        return Ok(text.parse().ok());
    }
    let own = lease_file::of(leases, worker).into_iter().filter_map(|(_, text)| text.parse().ok());
    let own: Vec<Token> = own.collect();
    Ok(own.iter().find(|token| fleet.opened_by(token).is_some()).or(own.first()).cloned())
}

/// What happens to a local reference, as far as its rules ask.
fn local_change(repo: Option<&Repo>, update: &Update) -> Result<Change, Refusal> {
    let is_new = |repo: &Repo| ref_file::commit(repo, &update.refname).map(|found| found.is_none());
    Ok(match (repo, &update.new) {
        (_, None) => Change::Delete,
        (Some(repo), Some(_)) if update.refname.starts_with("refs/onus/") && is_new(repo)? => Change::Create,
        _ => Change::Rewrite,
    })
}
