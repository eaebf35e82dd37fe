//! What a shared repository asks: may this push move these references? (mission B5, E1) The rules are in
//! `onus_core::guard`; here is what they need to know. A person's push goes on record, everything else is only judged.

use crate::Onus;
use crate::guard::{Desk, Fleet};
use crate::registry::record;
use crate::remote::calls;
use crate::submit::unexpected;
use crate::token;
use onus_core::command::{Command, Envelope, Stage};
use onus_core::event::{PushedByPerson, ReferenceMoved};
use onus_core::evidence::Proof;
use onus_core::guard::{self, Change, Credentials, Held, Mover, Naming, News, Permit, Post, Push};
use onus_core::id::{CommitId, Handle, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::registry::token::pushes;
use onus_core::token::TokenText;
use onus_host::hook::Update;
use onus_host::refs::{Commit, History};
use onus_store::port::{Outcome, Store};
use onus_store::{landed, load};

/// How many references one entry names.
const NAMED_MAX: usize = 100;
/// How many new commits are looked up; who pushes more has them judged one and all.
const COMMITS_MAX: usize = 10_000;

/// Who pushes, by what was pushed along.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pusher<'a> {
    /// A lease's token.
    pub lease: Option<&'a Token>,
    /// A person's own token.
    pub person: Option<&'a TokenText>,
    /// Who the caller says it is, where its environment reaches this far.
    pub worker: Option<&'a Handle>,
    /// Who it says it is by what it pushed along.
    pub named: Option<&'a Handle>,
    pub naming: Naming,
    /// The variable by which a coding client shows itself there.
    pub client: Option<&'a str>,
    /// Commits of others that the holder answers for.
    pub adopted: &'a [CommitId],
}

/// Whether a push is about to move something, or only asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushStage {
    /// Before the references are locked.
    Asked,
    /// Under their lock.
    Moving,
}

impl Onus {
    /// Whether the references of a repository that people push to may move as `updates` say.
    pub fn guard_push(
        &mut self,
        pusher: &Pusher<'_>,
        stage: PushStage,
        history: &History<'_>,
        updates: &[Update],
    ) -> Result<(), Refusal> {
        let fleet = self.fleet()?;
        let main = self.main_branch()?.unwrap_or_default();
        let person = pusher.person.map(|text| self.person_of(text.reveal())).transpose()?;
        let holder = pusher.lease.and_then(|token| fleet.opened_by(token));
        let mover = mover(&fleet, pusher, person.as_ref(), holder);
        let mut by_person = Vec::new();
        for update in updates {
            let change = change(history, update)?;
            let push = Push {
                refname: &update.refname,
                change,
                news: self.news(history, update, change, &main)?,
                main: &main,
                owner: fleet.owner(&update.refname),
                holder,
                person: person.as_ref().filter(|_| pusher.lease.is_none()),
                people: self.settings.git.people,
                naming: pusher.naming,
                credentials: Credentials { token: pusher.lease, generation: fleet.generation, mover },
            };
            match guard::pushed(&push)? {
                Permit::Held(held) => {
                    self.within(&held, Some(history), update)?;
                    if update.refname == main && stage == PushStage::Asked {
                        self.may_bring(pusher, &held, history, update)?;
                    }
                }
                Permit::Person(_) => by_person.push(update),
                Permit::Landed => {}
            }
        }
        match pusher.person {
            Some(text) if stage == PushStage::Moving && !by_person.is_empty() => {
                self.record_push(text.reveal(), &moves(&by_person)?, more(&by_person))
            }
            _ => Ok(()),
        }
    }

    /// Whoever pushes to the main branch is asked what `merge` asks, by whatever way it comes: whose the commits are, and
    /// everything that completion will want. Once, before the references are locked; the lease is asked for again then.
    fn may_bring(
        &mut self,
        pusher: &Pusher<'_>,
        held: &Held<'_>,
        history: &History<'_>,
        update: &Update,
    ) -> Result<(), Refusal> {
        let (Some(token), Some(new), Some(old)) = (pusher.lease, &update.new, &update.old) else {
            return Ok(());
        };
        let task = self.task(held.task)?;
        let commits = history.commits(new, &[old])?;
        let ids: Vec<String> = commits.iter().map(|commit| commit.id.clone()).collect();
        let landed = self.landed_among(&ids)?;
        let is_new = |commit: &Commit| !landed.iter().any(|one| one.as_str() == commit.id);
        let commits: Vec<Commit> = commits.into_iter().filter(is_new).collect();
        let arrived = self.landing_of(&task.id)?;
        self.own(&task, history, &commits, &arrived, pusher.adopted)?;
        let proof = self.brought(&task, history, new, old)?;
        let commit = |id: &str| id.parse().map_err(unexpected);
        self.may_land(&task.id, &token.to_string(), &commit(new)?, &commit(old)?, &proof)
    }

    /// What the rules say of a push by whoever shows the lease; nothing is written.
    pub(crate) fn may_land(
        &mut self,
        task: &TaskId,
        token: &str,
        commit: &CommitId,
        onto: &CommitId,
        proof: &Proof,
    ) -> Result<(), Refusal> {
        if let Some(answer) = self.remote(|| calls::MayLand {
            task: task.clone(),
            token: token.to_owned(),
            commit: commit.clone(),
            onto: onto.clone(),
            proof: proof.clone(),
        })? {
            return Ok(answer);
        }
        let holder = self.task(task)?.assignment().map(|held| held.assignee.clone());
        let command = Command::Merge {
            commit: commit.clone(),
            onto: onto.clone(),
            checks: Vec::new(),
            root_cause: None,
            stage: Stage::Receive,
            proof: proof.clone(),
        };
        let envelope = Envelope {
            request: format!("push-{commit}").parse().map_err(unexpected)?,
            actor: holder,
            token: Some(token.parse().map_err(Refusal::invalid)?),
            task: Some(task.clone()),
            project: None,
            base: None,
            command,
        };
        self.rehearse_one(&envelope).map(drop)
    }

    /// Whether everything that the main branch would gain has landed before.
    fn news(
        &mut self,
        history: &History<'_>,
        update: &Update,
        change: Change,
        main: &str,
    ) -> Result<News, Refusal> {
        let (Change::Forward, Some(new), Some(old)) = (change, &update.new, &update.old) else {
            return Ok(News::Unseen);
        };
        if update.refname != main {
            return Ok(News::Unseen);
        }
        let commits = history.ids(new, &[old])?;
        let is_all = self.landed_among(&commits)?.len() == commits.len();
        Ok(if is_all { News::Landed } else { News::Unseen })
    }

    /// Whether pushes to the shared main branch show a token: somebody put our hooks there.
    pub fn is_main_guarded(&mut self) -> Result<bool, Refusal> {
        if let Some(answer) = self.remote(|| calls::IsMainGuarded {})? {
            return Ok(answer);
        }
        self.ask(|tx| Ok(load::workspace(tx)?.main.is_some_and(|main| main.guarded)))
    }

    /// Which of these commits the record knows as some task's that has landed.
    pub(crate) fn landed_among(&mut self, commits: &[String]) -> Result<Vec<CommitId>, Refusal> {
        let ids = commits.iter().take(COMMITS_MAX).map(|id| id.parse().map_err(unexpected));
        self.landed_ids(ids.collect::<Result<_, _>>()?)
    }

    pub(crate) fn landed_ids(&mut self, commits: Vec<CommitId>) -> Result<Vec<CommitId>, Refusal> {
        if let Some(answer) = self.remote(|| calls::LandedIds { commits: commits.clone() })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let mut landed = Vec::new();
            for commit in commits {
                if landed::by_commit(tx, &commit)?.is_some() {
                    landed.push(commit);
                }
            }
            Ok(landed)
        })
    }

    /// The person whose token this is.
    pub(crate) fn person_of(&mut self, text: &str) -> Result<Handle, Refusal> {
        if let Some(answer) = self.remote(|| calls::PersonOf { token: text.to_owned() })? {
            return Ok(answer);
        }
        let text = token::parse(text)?;
        self.store
            .read_latest(|tx| Ok(token::admit(tx, &text)))?
            .and_then(|(principal, ..)| pushes(&principal))
    }

    /// Puts a person's push on record, under their own token.
    pub(crate) fn record_push(
        &mut self,
        text: &str,
        moves: &[ReferenceMoved],
        more: i64,
    ) -> Result<(), Refusal> {
        if let Some(answer) =
            self.remote(|| calls::RecordPush { token: text.to_owned(), moves: moves.to_vec(), more })?
        {
            return Ok(answer);
        }
        let text = token::parse(text)?;
        let moves: Vec<ReferenceMoved> = moves.iter().take(NAMED_MAX).cloned().collect();
        if let Some(long) = moves.iter().find(|moved| moved.refname.len() > 1_024) {
            return Err(Refusal::invalid(format!("{} is too long", onus_core::id::shown(&long.refname))));
        }
        self.store.write(|tx| {
            let (principal, ..) = token::admit(tx, &text)?;
            let by = pushes(&principal)?;
            record(tx, &by, PushedByPerson { token: principal.token_id, moves, more: more.max(0) })?;
            Ok(Outcome::Commit(()))
        })
    }
}

/// Who pushes. Everything that names somebody must name whoever holds the lease: what contradicts it counts.
fn mover<'a>(
    fleet: &Fleet,
    pusher: &Pusher<'a>,
    person: Option<&'a Handle>,
    holder: Option<Post<'_>>,
) -> Mover<'a> {
    let assignee = holder.and_then(|post| post.held).map(|held| &held.assignment.assignee);
    let beside = person.filter(|_| pusher.lease.is_some());
    let names = [pusher.worker, pusher.named, beside];
    let mut names = names.into_iter().flatten();
    let worker = names.clone().find(|name| Some(*name) != assignee).or_else(|| names.next());
    fleet.mover(&Desk { worker, client: pusher.client, ..Desk::default() })
}

fn moves(updates: &[&Update]) -> Result<Vec<ReferenceMoved>, Refusal> {
    let side = |id: &Option<String>| id.as_ref().map(|id| id.parse().map_err(unexpected)).transpose();
    updates
        .iter()
        .take(NAMED_MAX)
        .map(|update| {
            Ok(ReferenceMoved {
                refname: update.refname.clone(),
                old: side(&update.old)?,
                new: side(&update.new)?,
            })
        })
        .collect()
}

fn more(updates: &[&Update]) -> i64 {
    i64::try_from(updates.len().saturating_sub(NAMED_MAX)).unwrap_or(i64::MAX)
}

fn change(history: &History<'_>, update: &Update) -> Result<Change, Refusal> {
    Ok(match (&update.old, &update.new) {
        (_, None) => Change::Delete,
        (None, Some(_)) => Change::Create,
        (Some(old), Some(new)) if history.reaches(new, old)? => Change::Forward,
        (Some(_), Some(_)) => Change::Rewrite,
    })
}
