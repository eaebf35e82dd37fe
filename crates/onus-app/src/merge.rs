//! `merge`: rebase, ownership, boundaries, checks, and only then the main of record moves forward (mission D5, D11).
//!
//! The rules are asked twice: before anything is touched, and again for the very commit that lands, after its checks. Where
//! the local main branch is the main of record, that is while it is locked, in the transaction that records the merge.
//! Where it is shared, right before the push; a guarded repository asks once more. Whoever lost the lease in between has
//! rebased its own branch and moved nothing else.

mod arrived;
mod checks;
mod land;
mod offer;

pub use arrived::Arrived;
pub use checks::MergeCheckView;
pub use offer::is_offered;

use crate::Onus;
use crate::handoff::made;
use crate::main_of_record::Trunk;
use crate::progress::Progress;
use crate::submit::{step, unexpected};
use crate::view::LandedView;
use onus_core::boundary::path_findings;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Stage};
use onus_core::evidence::{Ground, Proof, RootCause, risky_paths};
use onus_core::id::{CommitId, Handle, RequestId, TaskId, WorkstationName};
use onus_core::identity_map::{IdentityMap, Policy, required_checks};
use onus_core::lease::Token;
use onus_core::own_commits::{self, Holding, Made, Ownership};
use onus_core::refusal::Refusal;
use onus_core::settings::Land;
use onus_core::task::Task;
use onus_host::landing_turn::LandingTurn;
use onus_host::refs::{self, Brought, Commit, History, Sample};
use onus_host::repository::Repo;
use onus_host::worktree::{self, Synced};
use onus_host::{identity_map, ref_file};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is tried anew because somebody else was quicker.
const ATTEMPTS: usize = 12;

/// Who was outrun so often lands before others of the same clone begin again: among many agents somebody always would.
const OUTRUN: usize = 3;

/// So long others let it go first: its checks may take for ever, and their work is as good.
const COURTESY: Duration = Duration::from_secs(60);

/// Who merges what.
#[derive(Debug, Clone, Copy)]
pub struct Merge<'a> {
    pub request: &'a RequestId,
    pub actor: Option<&'a Handle>,
    pub token: Option<&'a Token>,
    pub task: &'a TaskId,
    /// Commits of others that the holder answers for, as it names them.
    pub adopt: &'a [String],
    pub root_cause: Option<&'a RootCause>,
}

/// The answer to `merge`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MergeView {
    pub task: TaskId,
    /// Where the main branch is now, as far as this task is concerned.
    pub commit: CommitId,
    /// Where it was before.
    pub onto: CommitId,
    pub landed: LandedView,
    pub checks: Vec<MergeCheckView>,
    /// How often it was tried: more than once where somebody else was quicker.
    pub attempts: i64,
    /// Checkouts of the main branch whose files could not follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<BehindView>,
    /// What the workstation stood on after its checks, where this call has looked.
    #[serde(skip)]
    pub(crate) ground: Option<Ground>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BehindView {
    pub path: String,
    pub detail: String,
}

/// Where the work of a held task is.
pub(crate) struct Site {
    pub(crate) workstation: WorkstationName,
    pub(crate) directory: PathBuf,
    pub(crate) branch: String,
}

/// What one attempt is made with.
struct Attempt<'a> {
    call: &'a Merge<'a>,
    trunk: &'a Trunk,
    onto: String,
}

/// The paths that no commit has.
type DirtyPaths = Result<Sample<String>, Refusal>;

/// What came of it when the main branch moved.
struct MovedMain {
    behind: Vec<BehindView>,
    ground: Option<Ground>,
}

/// How an attempt ended.
enum Tried {
    Landed(Box<MergeView>),
    /// There is nothing to merge.
    Nothing,
    NotYet(Outrun),
}

/// Why the main branch did not move.
enum Outrun {
    /// Somebody else was quicker.
    Moved,
    /// Somebody holds its lock, by git's words.
    Locked(String),
}

impl Tried {
    fn landed(view: MergeView) -> Tried {
        Tried::Landed(Box::new(view))
    }
}

impl Onus {
    /// Brings the holder's commits into the main of record, or changes nothing there.
    pub fn merge(&mut self, call: &Merge<'_>, progress: &mut dyn Progress) -> Result<MergeView, Refusal> {
        self.ask_first(call)?;
        let trunk = self.trunk_to_land_on(call.actor)?;
        if let Some(view) = self.merge_if_any(call, &trunk, progress)? {
            return Ok(view);
        }
        let task = self.task(call.task)?;
        let (site, main) = (self.site_of(&task)?, trunk.name());
        let detail = format!("{} has no commit that {main} has not", site.workstation);
        Err(Refusal::new(Code::NotMerged, detail)
            .task(&task.id)
            .hint(format!("commit the work in {} first", site.directory.display())))
    }

    /// Whoever does not hold the task is refused before anything of git is touched.
    fn ask_first(&mut self, call: &Merge<'_>) -> Result<(), Refusal> {
        let none: CommitId = "0".repeat(40).parse().map_err(unexpected)?;
        let command = Command::Merge {
            commit: none.clone(),
            onto: none,
            checks: Vec::new(),
            root_cause: call.root_cause.cloned(),
            stage: Stage::Ask,
            proof: Proof::default(),
        };
        match self.rehearse_one(&step_envelope(call, "ask", command)?) {
            // What is said of the work itself shows once the work was looked at.
            Err(refusal) if refusal.findings.is_empty() => Err(refusal),
            _ => Ok(()),
        }
    }

    /// The main branch that counts, asked by a clone that uses the store from now on.
    pub(crate) fn trunk_to_land_on(&mut self, actor: Option<&Handle>) -> Result<Trunk, Refusal> {
        self.join_clone(actor)?;
        self.trunk()
    }

    /// The same; none where there is nothing to merge.
    pub(crate) fn merge_if_any(
        &mut self,
        call: &Merge<'_>,
        trunk: &Trunk,
        progress: &mut dyn Progress,
    ) -> Result<Option<MergeView>, Refusal> {
        let (mut own_turn, mut outrun, mut patience) = (None, Outrun::Moved, COURTESY);
        for attempt in 1..=ATTEMPTS {
            if own_turn.is_none() {
                let turn = LandingTurn::take(&trunk.repo.common_dir, patience)?;
                if turn.is_none() {
                    patience = Duration::ZERO;
                }
                own_turn = turn.filter(|_| attempt > OUTRUN);
            }
            if attempt > 1 {
                progress.begin(&format!("{} has moved: attempt {attempt}", trunk.name()), None);
                progress.end();
            }
            match self.attempt(call, trunk, progress)? {
                Tried::Landed(view) => return Ok(Some(MergeView { attempts: attempt as i64, ..*view })),
                Tried::Nothing => return Ok(None),
                Tried::NotYet(why) => outrun = why,
            }
        }
        let main = trunk.name();
        if let Outrun::Locked(words) = outrun {
            return Err(still_locked(&main, &words).task(call.task));
        }
        Err(Refusal::new(
            Code::NotMerged,
            format!("{main} moved {ATTEMPTS} times while the checks of {} ran", call.task),
        )
        .task(call.task)
        .hint("others are merging too: run it again"))
    }

    /// The repository and the full name of its main branch.
    pub fn main_of_repository(&self) -> Result<(Repo, String), Refusal> {
        let repo = self.place.repo.clone();
        let repo = repo.ok_or_else(|| Refusal::invalid("this is no git repository").hint("cd into it"))?;
        let main = identity_map::main_branch(&repo, &self.settings)?;
        let main = main.ok_or_else(|| {
            Refusal::invalid("the repository has no main branch yet").hint("commit something")
        })?;
        Ok((repo, main))
    }

    fn attempt(
        &mut self,
        call: &Merge<'_>,
        trunk: &Trunk,
        progress: &mut dyn Progress,
    ) -> Result<Tried, Refusal> {
        let history = History::of(&trunk.repo);
        let held = self.find_task(call.task)?;
        let there = held.as_ref().and_then(|task| self.site_of(task).ok());
        let (onto, uncommitted) = looked_at(trunk, there.as_ref().map(|site| site.directory.as_path()));
        let attempt = Attempt { call, trunk, onto: onto? };
        let task = self.asked_before(&attempt, held.as_ref(), there.as_ref())?;
        let mut asked_for = checks::approved(&task)?;
        let site = self.site_of(&task)?;
        let head = tip_of(trunk, &site)?;
        let arrived = self.landing_of(&task.id)?;
        let Brought { unmerged, is_on_top } = history.brought(&head, &attempt.onto)?;
        if unmerged.is_empty() {
            return self.landed_before(&attempt, &task, &arrived);
        }
        let adopt = adopted_by_name(&history, call.adopt)?;
        let mine = self.own(&task, &history, &unmerged, &arrived, &adopt)?;
        let seen = uncommitted.filter(|_| there.is_some_and(|there| there.directory == site.directory));
        let dirty = seen.unwrap_or_else(|| worktree::dirty(&site.directory))?;
        let commit = self.rebase(&task, &site, &attempt, &dirty, (&head, is_on_top))?;
        // It stands on top of it, so that it is there only where nothing is left of it.
        if attempt.onto == commit {
            return self.landed_before(&attempt, &task, &arrived);
        }
        self.within_bounds(&task, &history, &commit, &attempt.onto)?;
        let tip: CommitId = commit.parse().map_err(unexpected)?;
        let mut proof = self.landing_proof(&task, trunk, &commit, &attempt.onto)?;
        asked_for.extend(self.demanded_checks(&task, &proof)?);
        let place = (site.directory.as_path(), &tip);
        let checks = self.run_checks(call, &task, &asked_for, place, progress)?;
        proof.landed = Some(self.arriving(&history, trunk, &commit, &attempt.onto, &mine)?);
        let commands: Vec<String> = asked_for.into_iter().map(|check| check.command).collect();
        let name = format!("merge {commit} {}", self.version(&task)?);
        let stage = Stage::Land;
        let envelope = attempt.envelope(&name, stage, &commit, &attempt.onto, &commands, proof.clone())?;
        if self.settings.git.land == Land::Pr && trunk.shared.is_some() {
            return Err(self.offered(&attempt, &task, &site, (&commit, &checks))?);
        }
        let MovedMain { behind, ground } = match self.land(&attempt, &envelope, &commit, &site.directory)? {
            Ok(moved) => moved,
            Err(outrun) => return Ok(Tried::NotYet(outrun)),
        };
        Ok(Tried::landed(MergeView {
            task: task.id,
            commit: tip,
            onto: attempt.onto.parse().map_err(unexpected)?,
            landed: proof.landed.map(LandedView::from).unwrap_or_default(),
            checks,
            attempts: 1,
            behind,
            ground,
        }))
    }

    /// What the rules say before anything is touched: everything but what the checks will show.
    fn asked_before(
        &mut self,
        attempt: &Attempt<'_>,
        held: Option<&Task>,
        there: Option<&Site>,
    ) -> Result<Task, Refusal> {
        let (trunk, onto) = (attempt.trunk, &attempt.onto);
        let head = there.and_then(|site| tip_of(trunk, site).ok());
        let proof = match (held, &head) {
            (Some(task), Some(head)) => self.landing_proof(task, trunk, head, onto)?,
            _ => Proof { rivals: trunk.rivals.clone(), ..Proof::default() },
        };
        let at = head.as_deref().unwrap_or(onto);
        let envelope = attempt.envelope("ask", Stage::Ask, at, onto, &[], proof)?;
        Ok(self.rehearse_one(&envelope)?.task)
    }

    /// What the work at `commit` is, judged by what it brings to `onto`.
    pub(crate) fn landing_proof(
        &mut self,
        task: &Task,
        trunk: &Trunk,
        commit: &str,
        onto: &str,
    ) -> Result<Proof, Refusal> {
        let proof = self.brought(task, &History::of(&trunk.repo), commit, onto)?;
        Ok(Proof { main: Some(trunk.name()), rivals: trunk.rivals.clone(), ..proof })
    }

    /// The same of a repository that may be in the middle of a push.
    pub(crate) fn brought(
        &mut self,
        task: &Task,
        history: &History<'_>,
        commit: &str,
        onto: &str,
    ) -> Result<Proof, Refusal> {
        let policy = self.policy()?;
        let asks = |map: &IdentityMap| !map.high_risk.paths.is_empty() || !map.checks.is_empty();
        let asks_for_paths = policy.in_force().is_some_and(|in_force| asks(&in_force.map));
        let paths = if asks_for_paths { history.changed_paths(commit, &[onto])? } else { Vec::new() };
        let mut same_work = Vec::new();
        for seen in self.reviewed_commits(&task.id)? {
            if seen.as_str() != commit && history.is_same_work(seen.as_str(), commit, onto)? {
                same_work.push(seen);
            }
        }
        Ok(Proof {
            ground: Ground { commit: Some(commit.parse().map_err(unexpected)?), dirty: false },
            risky: risky_paths(&policy, &paths),
            required: required_checks(&policy, &task.spec, Some(&paths))
                .into_iter()
                .map(|check| check.command)
                .collect(),
            same_work,
            ..Proof::default()
        })
    }

    /// The working tree in which a task is held, on the branch that belongs to it.
    pub(crate) fn site_of(&mut self, task: &Task) -> Result<Site, Refusal> {
        let held = task.assignment().ok_or_else(|| unexpected("a merge of what nobody holds"))?;
        let name = held.workstation.clone();
        let found = self.find_workstation(&name)?;
        let place = found.and_then(|found| found.path.zip(found.branch));
        let not_ready = |detail: String| Refusal::new(Code::WorkstationNotReady, detail).task(&task.id);
        let Some((directory, branch)) = place else {
            return Err(not_ready(format!("{name} has no working tree with a branch of its own")).hint(
                "merge by hand, and next time work in one: onus workstation add NAME --kind worktree",
            ));
        };
        let directory = PathBuf::from(directory);
        if ref_file::head_of(&directory).branch != Some(refs::branch_ref(branch.as_str())) {
            return Err(not_ready(format!(
                "{} is not on {branch}, the branch of {name}",
                directory.display()
            ))
            .hint(format!("git -C {} switch {branch}", directory.display())));
        }
        Ok(Site { workstation: name, directory, branch: branch.to_string() })
    }

    /// Whose the commits are that would land; refused where one is neither the holder's nor adopted. The answer tells, by
    /// subject and trailers, which of them are adopted: a rebase gives them other names.
    pub(crate) fn own(
        &mut self,
        task: &Task,
        history: &History<'_>,
        commits: &[Commit],
        arrived: &Arrived,
        adopted: &[CommitId],
    ) -> Result<Vec<(Made, Ownership)>, Refusal> {
        let held = task.assignment().ok_or_else(|| unexpected("a merge of what nobody holds"))?;
        let epochs = arrived.adopted_epochs(held.epoch);
        let holding = Holding {
            task: &task.id,
            epoch: held.epoch,
            workstation: &held.workstation,
            adopted_epochs: &epochs,
            adopted,
        };
        let mut all = Vec::with_capacity(commits.len());
        for commit in commits {
            let mut one = made(commit).ok_or_else(|| unexpected("git named a commit that is none"))?;
            if let Some(base) = held.base.as_ref().filter(|_| one.task.is_none()) {
                one.before_grant = history.resolve(base.as_str())?.is_some()
                    && history.reaches(base.as_str(), &commit.id)?;
            }
            all.push(one);
        }
        match Refusal::from_findings(own_commits::findings(&all, &holding)) {
            Some(refusal) => Err(refusal.task(&task.id)),
            None => Ok(all
                .into_iter()
                .map(|one| {
                    let whose = own_commits::ownership(&one, &holding);
                    (one, whose)
                })
                .collect()),
        }
    }

    fn rebase(
        &mut self,
        task: &Task,
        site: &Site,
        Attempt { trunk, onto, .. }: &Attempt<'_>,
        dirty: &Sample<String>,
        known: (&str, bool),
    ) -> Result<String, Refusal> {
        let synced = worktree::sync_seen(&trunk.repo, &site.directory, onto, dirty, Some(known));
        match synced.map_err(|refusal| refusal.task(&task.id))? {
            Synced::Current { head } => Ok(head),
            Synced::Rebased { new, .. } => Ok(new),
            Synced::Conflicts(conflicts) => {
                Err(self.conflicting(Some(&task.id), &site.workstation, &trunk.name(), &conflicts)?)
            }
        }
    }

    fn within_bounds(
        &self,
        task: &Task,
        history: &History<'_>,
        commit: &str,
        onto: &str,
    ) -> Result<(), Refusal> {
        let policy = self.policy()?;
        let allowed = task.assignment().map_or(&[][..], |held| &held.constraints);
        let is_free = task.spec.scope.is_empty() && task.spec.role.is_none() && allowed.is_empty();
        let findings = match &policy {
            Policy::Invalid(broken) => broken.findings.clone(),
            // Reading what changed takes a process; a task without limits needs none.
            Policy::Absent | Policy::InForce(_) if is_free => Vec::new(),
            Policy::Absent | Policy::InForce(_) => {
                path_findings(&policy, &task.spec, allowed, &history.changed_paths(commit, &[onto])?)
            }
        };
        Refusal::from_findings(findings).map_or(Ok(()), |refusal| Err(refusal.task(&task.id)))
    }

    fn version(&mut self, task: &Task) -> Result<i64, Refusal> {
        Ok(self.find_task(&task.id)?.map_or(0, |task| task.version))
    }
}

/// Where the main branch is now; and what nobody committed in the workstation, seen while the other side answers.
fn looked_at(trunk: &Trunk, directory: Option<&Path>) -> (Result<String, Refusal>, Option<DirtyPaths>) {
    std::thread::scope(|scope| {
        let looking = directory.map(|directory| scope.spawn(|| worktree::dirty(directory)));
        let onto = if trunk.rivals.is_empty() { trunk.fetched() } else { trunk.seen() };
        (onto, looking.and_then(|looking| looking.join().ok()))
    })
}

/// A git that was killed leaves its lock, and nobody but a person can tell that nothing runs there any more.
fn still_locked(main: &str, words: &str) -> Refusal {
    Refusal::new(Code::NotMerged, format!("{main} is locked: {words}"))
        .hint("run it again; if no git is running there, a person removes the .lock file that it names")
}

/// Where the branch of the work is.
fn tip_of(trunk: &Trunk, site: &Site) -> Result<String, Refusal> {
    let branch = refs::branch_ref(&site.branch);
    match ref_file::commit(&trunk.repo, &branch)? {
        Some(tip) => Ok(tip),
        None => History::at(&trunk.repo.common_dir).commit(&branch),
    }
}

/// Commits as their names stand for them here.
fn adopted_by_name(history: &History<'_>, names: &[String]) -> Result<Vec<CommitId>, Refusal> {
    names.iter().map(|name| history.commit(name)?.parse().map_err(unexpected)).collect()
}

impl Attempt<'_> {
    fn envelope(
        &self,
        name: &str,
        stage: Stage,
        commit: &str,
        onto: &str,
        checks: &[String],
        proof: Proof,
    ) -> Result<Envelope, Refusal> {
        let id = |commit: &str| commit.parse::<CommitId>().map_err(unexpected);
        let command = Command::Merge {
            commit: id(commit)?,
            onto: id(onto)?,
            checks: checks.to_vec(),
            root_cause: self.call.root_cause.cloned(),
            stage,
            proof,
        };
        step_envelope(self.call, name, command)
    }
}

fn step_envelope(call: &Merge<'_>, name: &str, command: Command) -> Result<Envelope, Refusal> {
    Ok(Envelope {
        request: step(call.request, name)?,
        actor: call.actor.cloned(),
        token: call.token.cloned(),
        task: Some(call.task.clone()),
        project: None,
        base: None,
        command,
    })
}

/// A branch as people call it.
pub(crate) fn short(refname: &str) -> &str {
    let shared = refname.strip_prefix("refs/remotes/");
    shared.or(refname.strip_prefix("refs/heads/")).unwrap_or(refname)
}
