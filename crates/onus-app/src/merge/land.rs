//! The last step: the main of record moves, and the record says so.

use super::{
    Arrived, Attempt, BehindView, MergeCheckView, MergeView, MovedMain, Outrun, Site, Tried, still_locked,
};
use crate::Onus;
use crate::handoff::made;
use crate::main_of_record::{Shared, Trunk};
use crate::submit::{Target, unexpected};
use crate::view::LandedView;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Stage};
use onus_core::event::Landed;
use onus_core::evidence::{Ground, Proof};
use onus_core::id::CommitId;
use onus_core::own_commits::{self, Holding, Made, Ownership};
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_host::refs::{self, Commit, FastForward, Forwarded, History, Move, Pushed};
use onus_host::worktree;
use std::path::{Path, PathBuf};

/// How many commits an entry names; the rest lie between its two ends.
const NAMED_MAX: usize = 500;

impl Onus {
    /// Moves the main of record to `commit` and records it. Or who was quicker.
    pub(super) fn land(
        &mut self,
        attempt: &Attempt<'_>,
        envelope: &Envelope,
        commit: &str,
        directory: &Path,
    ) -> Result<Result<MovedMain, Outrun>, Refusal> {
        match &attempt.trunk.shared {
            None => self.land_here(attempt, envelope, commit),
            Some(shared) => self.land_there(attempt, shared, envelope, (commit, directory)),
        }
    }

    fn land_here(
        &mut self,
        attempt: &Attempt<'_>,
        envelope: &Envelope,
        commit: &str,
    ) -> Result<Result<MovedMain, Outrun>, Refusal> {
        let Trunk { local, repo, .. } = attempt.trunk;
        let forwarded = refs::fast_forward(repo, local, commit, || {
            if attempt.trunk.local_tip()? != attempt.onto {
                return Err(Refusal::new(Code::NotMerged, "the main branch has moved"));
            }
            self.submit(envelope, &Target::Named).map(drop)
        });
        match forwarded {
            Ok(forwarded) => Ok(Ok(MovedMain { behind: behind(&forwarded), ground: None })),
            Err(_) if attempt.trunk.local_tip()? != attempt.onto => Ok(Err(Outrun::Moved)),
            Err(refusal) => Err(refusal.task(attempt.call.task)),
        }
    }

    /// The rules are asked right before the push, and once more by a guarded repository. The record follows the push: it
    /// says what is there. After a crash in between, the next call finds the commits and records them.
    fn land_there(
        &mut self,
        attempt: &Attempt<'_>,
        shared: &Shared,
        envelope: &Envelope,
        (commit, directory): (&str, &Path),
    ) -> Result<Result<MovedMain, Outrun>, Refusal> {
        let trunk = attempt.trunk;
        self.rehearse_one(envelope)?;
        let branch = shared.branch.as_str();
        let adopted = match &envelope.command {
            Command::Merge { proof: Proof { landed: Some(landed), .. }, .. } => landed.adopted.as_slice(),
            _ => &[],
        };
        // While the other side takes the commits, the local main branch is made ready to follow, and what the checks have left
        // in the workstation is seen.
        let (pushed, ready, dirty) = std::thread::scope(|scope| {
            let ready = scope.spawn(|| FastForward::prepare(&trunk.repo, &trunk.local, commit).ok());
            let dirty = scope.spawn(|| worktree::is_dirty(directory).ok());
            let pushed = self.pushed(attempt, shared, (branch, commit), adopted, Move::Forward);
            (pushed, ready.join().ok().flatten(), dirty.join().ok().flatten())
        });
        match pushed? {
            Pushed::Done => {}
            Pushed::Behind => return Ok(Err(Outrun::Moved)),
            Pushed::Locked(words) => return Ok(Err(Outrun::Locked(words))),
            Pushed::Refused(words) => return Err(self.turned_away(attempt, &words)),
        }
        self.submit(envelope, &Target::Named)?;
        let ground = dirty.map(|dirty| Ground { commit: commit.parse().ok(), dirty });
        Ok(Ok(MovedMain { behind: follow(trunk, commit, ready), ground }))
    }

    /// Pushes; the token is shown where it is asked for, and which commits the holder answers for though others made them.
    fn pushed(
        &self,
        attempt: &Attempt<'_>,
        shared: &Shared,
        (branch, commit): (&str, &str),
        adopted: &[CommitId],
        how: Move,
    ) -> Result<Pushed, Refusal> {
        let (repo, remote) = (&attempt.trunk.repo, shared.remote.as_str());
        let mut options: Vec<String> =
            attempt.call.token.iter().map(|token| format!("onus={token}")).collect();
        options.extend(attempt.call.actor.map(|actor| format!("onus-as={actor}")));
        options.extend(adopted.iter().map(|id| format!("onus-adopt={id}")));
        let shown: &[String] = if shared.guarded { &options } else { &[] };
        match refs::push(repo, remote, branch, commit, shown, how)? {
            Pushed::Refused(words) if shown.is_empty() && words.contains(Code::LeaseRequired.name()) => {
                refs::push(repo, remote, branch, commit, &options, how)
            }
            pushed => Ok(pushed),
        }
    }

    fn turned_away(&self, attempt: &Attempt<'_>, words: &str) -> Refusal {
        let code = [Code::Fenced, Code::ScopeViolation, Code::LeaseRequired, Code::NotOwnCommits];
        let code = code.into_iter().find(|code| words.contains(code.name())).unwrap_or(Code::NotMerged);
        Refusal::new(code, format!("{} refused it: {words}", attempt.trunk.name()))
            .task(attempt.call.task)
            .hint("mend what it names, then run it again")
    }

    /// Where a team lands by pull requests: the branch is pushed, and somebody merges it there.
    pub(super) fn offered(
        &mut self,
        attempt: &Attempt<'_>,
        task: &Task,
        site: &Site,
        (commit, checks): (&str, &[MergeCheckView]),
    ) -> Result<Refusal, Refusal> {
        let trunk = attempt.trunk;
        let Some(shared) = &trunk.shared else {
            return Err(unexpected("a pull request to nowhere"));
        };
        match self.pushed(attempt, shared, (&site.branch, commit), &[], Move::Anywhere)? {
            Pushed::Done => self.offer(attempt, task, site, &shared.branch, (commit, checks)),
            Pushed::Behind => Err(unexpected("a branch of one workstation was pushed by two")),
            Pushed::Locked(words) => Err(still_locked(&trunk.name(), &words).task(attempt.call.task)),
            Pushed::Refused(words) => Err(self.turned_away(attempt, &words)),
        }
    }

    /// What is about to arrive: the commits of the rebased branch, and which of them are adopted.
    pub(super) fn arriving(
        &self,
        history: &History<'_>,
        trunk: &Trunk,
        commit: &str,
        onto: &str,
        mine: &[(Made, Ownership)],
    ) -> Result<Landed, Refusal> {
        if !mine.iter().any(|(_, whose)| *whose == Ownership::Adopted) {
            let all = history.ids(commit, &[onto])?.into_iter().rev();
            let all = all.filter_map(|id| id.parse().ok()).collect();
            return Ok(landed(trunk, all, Vec::new(), commit.parse().ok()));
        }
        let mut commits = history.commits(commit, &[onto])?;
        commits.reverse();
        // A rebase gives a commit another name and leaves its words.
        let is_adopted = |commit: &&Commit| {
            mine.iter().any(|(made, whose)| {
                *whose == Ownership::Adopted
                    && made.subject == commit.subject
                    && made.task == commit.trailers.task
                    && made.epoch == commit.trailers.epoch
            })
        };
        let adopted = ids(commits.iter().filter(is_adopted));
        Ok(landed(trunk, ids(commits.iter()), adopted, commit.parse().ok()))
    }

    /// The answer to a call whose work is in the main of record already: the one it had, or the record of what an earlier
    /// call brought there before it died.
    pub(super) fn landed_before(
        &mut self,
        attempt: &Attempt<'_>,
        task: &Task,
        arrived: &Arrived,
    ) -> Result<Tried, Refusal> {
        let held = task.assignment().ok_or_else(|| unexpected("a merge of what nobody holds"))?;
        if let Some(merged) = arrived.last_merge(held.epoch) {
            let mut view = LandedView::default();
            for (_, merged) in arrived.merges.iter().filter(|(epoch, _)| *epoch == held.epoch) {
                view.add(merged.landed.clone().unwrap_or_else(|| LandedView::last_commit(&merged.commit)));
            }
            return Ok(Tried::landed(MergeView {
                task: task.id.clone(),
                commit: merged.commit.clone(),
                onto: merged.onto.clone(),
                landed: view,
                checks: merged.checks.iter().cloned().map(MergeCheckView::passed).collect(),
                attempts: 1,
                behind: Vec::new(),
                ground: None,
            }));
        }
        match self.found_in_main(attempt.trunk, &attempt.onto, task, arrived)? {
            Some(found) => self.record_found(attempt, task, found).map(Tried::landed),
            None => Ok(Tried::Nothing),
        }
    }

    fn record_found(
        &mut self,
        attempt: &Attempt<'_>,
        task: &Task,
        found: Landed,
    ) -> Result<MergeView, Refusal> {
        let history = History::of(&attempt.trunk.repo);
        let (Some(first), Some(last)) = (found.commits.first(), found.commits.last()) else {
            return Err(unexpected("nothing was found"));
        };
        let onto = history.commit(&format!("{first}^"))?;
        let mut proof = self.landing_proof(task, attempt.trunk, last.as_str(), &onto)?;
        proof.landed = Some(found.clone());
        let name = format!("merge {last} {}", self.version(task)?);
        let passed: Vec<String> = task.spec.checks.iter().map(|check| check.command.clone()).collect();
        let envelope = attempt.envelope(&name, Stage::Land, last.as_str(), &onto, &passed, proof)?;
        self.submit(&envelope, &Target::Named)?;
        Ok(MergeView {
            task: task.id.clone(),
            commit: last.clone(),
            onto: onto.parse().map_err(unexpected)?,
            landed: found.into(),
            checks: passed.into_iter().map(MergeCheckView::passed).collect(),
            attempts: 1,
            behind: follow(attempt.trunk, &attempt.onto, None),
            ground: None,
        })
    }

    /// The task's commits in the main of record that no entry speaks of yet: its holder's, and those of earlier holders
    /// whose record was never written.
    pub(crate) fn found_in_main(
        &mut self,
        trunk: &Trunk,
        tip: &str,
        task: &Task,
        arrived: &Arrived,
    ) -> Result<Option<Landed>, Refusal> {
        let Some(held) = task.assignment() else { return Ok(None) };
        // Nothing has come there since this holder's last merge.
        let last = arrived.last_merge(held.epoch).and_then(|merged| merged.landed.as_ref()?.tip.as_ref());
        if last.is_some_and(|last| last.as_str() == tip) {
            return Ok(None);
        }
        let history = History::of(&trunk.repo);
        let earliest = self.assignments(&task.id)?.into_iter().find_map(|past| past.assignment.base);
        let Some(base) = earliest.or_else(|| held.base.clone()) else { return Ok(None) };
        if history.resolve(base.as_str())?.is_none() {
            return Ok(None);
        }
        let mut commits = history.commits(tip, &[base.as_str()])?;
        commits.reverse();
        let earlier: Vec<i64> = (1..held.epoch).collect();
        let holding = Holding {
            task: &task.id,
            epoch: held.epoch,
            workstation: &held.workstation,
            adopted_epochs: &earlier,
            adopted: &[],
        };
        let known: Vec<&CommitId> = arrived.landed.iter().map(|landed| &landed.commit).collect();
        let (mut all, mut adopted) = (Vec::new(), Vec::new());
        // One without a word about its task may be anybody's.
        for made in commits.iter().filter_map(made).filter(|made| made.task.is_some()) {
            match own_commits::ownership(&made, &holding) {
                _ if known.contains(&&made.id) => {}
                Ownership::Own => all.push(made.id),
                Ownership::Adopted => {
                    adopted.push(made.id.clone());
                    all.push(made.id);
                }
                Ownership::Foreign => {}
            }
        }
        all.truncate(NAMED_MAX);
        let tip = tip.parse().ok();
        Ok((!all.is_empty()).then(|| landed(trunk, all, adopted, tip)))
    }
}

fn ids<'a>(commits: impl Iterator<Item = &'a Commit>) -> Vec<CommitId> {
    commits.filter_map(|commit| commit.id.parse().ok()).collect()
}

fn landed(
    trunk: &Trunk,
    mut commits: Vec<CommitId>,
    adopted: Vec<CommitId>,
    tip: Option<CommitId>,
) -> Landed {
    commits.truncate(NAMED_MAX);
    Landed {
        remote: trunk.shared.as_ref().map(|shared| shared.remote.clone()),
        branch: trunk.branch().to_owned(),
        commits,
        adopted,
        tip,
        vouched: false,
    }
}

/// The local main branch follows the shared one where it can. That it cannot stops nobody.
fn follow(trunk: &Trunk, commit: &str, ready: Option<FastForward<'_>>) -> Vec<BehindView> {
    let forwarded = match ready.map(FastForward::run_agreed) {
        Some(Ok(forwarded)) => Ok(forwarded),
        // Another call of this clone may have moved it in the meantime.
        Some(Err(_)) | None => {
            FastForward::prepare(&trunk.repo, &trunk.local, commit).and_then(FastForward::run_agreed)
        }
    };
    match forwarded {
        Ok(forwarded) => behind(&forwarded),
        Err(refusal) => vec![BehindView {
            path: trunk.local.trim_start_matches("refs/heads/").to_owned(),
            detail: refusal.detail,
        }],
    }
}

fn behind(forwarded: &Forwarded) -> Vec<BehindView> {
    let view = |(path, detail): &(PathBuf, String)| BehindView {
        path: Path::display(path).to_string(),
        detail: detail.clone(),
    };
    forwarded.behind.iter().map(view).collect()
}
