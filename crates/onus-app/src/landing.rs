//! Landing by whoever has the working tree and is asked over a network: a server in the clone where the work lies does what the
//! command line does there, in the name of a token (mission D11, E8).

use crate::finish::{Finish, FinishView, Landing};
use crate::merge::{Merge, MergeView};
use crate::progress::Silent;
use crate::submit::unexpected;
use crate::token::Shown;
use crate::{Onus, Sight, replay};
use onus_core::code::Code;
use onus_core::evidence::RootCause;
use onus_core::hash::{Digest, Fields};
use onus_core::id::{CommitId, Handle, RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_core::text::Text;
use onus_host::refs::History;
use onus_host::{lease_file, push_option, ref_file, refs, repository};
use onus_store::port::{Outcome, Store};
use onus_store::{apply, load};
use std::path::Path;

/// What is asked for, by the holder of a task.
#[derive(Debug)]
pub struct LandingOrder {
    pub task: TaskId,
    pub request: RequestId,
    /// The version that the task must have.
    pub version: Option<i64>,
    pub lease: Option<Token>,
    pub root_cause: Option<RootCause>,
    pub end: LandingEnd,
}

/// How far it goes.
#[derive(Debug)]
pub enum LandingEnd {
    /// Into the main of record; its holder goes on.
    Merge { adopt: Vec<CommitId> },
    /// The task is complete. `commit` is what its holder believes the work to be at.
    Complete { resolution: Option<Text>, commit: Option<CommitId> },
}

/// What came of it.
#[derive(Debug)]
pub enum LandedAnswer {
    Merged(Box<MergeView>),
    Complete(Box<FinishView>),
}

impl Onus {
    /// Whether the work of a task lies in a working tree of the clone that a server stands in.
    pub fn lies_here(&mut self, task: &TaskId) -> Result<bool, Refusal> {
        let task = self.task(task)?;
        Ok(self.tree_of(&task)?.is_some())
    }

    /// What a server says of work that lies elsewhere.
    pub fn lies_elsewhere(&self, task: &TaskId) -> Refusal {
        Refusal::new(
            Code::NotMerged,
            format!("the work of {task} is in no working tree of this server's clone"),
        )
        .task(task)
        .hint(format!("where the work is: onus merge {task}, or onus complete {task} --resolution TEXT"))
    }

    /// Lands in the name of a token, which each step is judged by.
    pub fn land_for(&mut self, shown: Shown, order: &LandingOrder) -> Result<LandedAnswer, Refusal> {
        let actor = shown.principal.worker.clone();
        // The clone's own workstations may be looked at: `is_in_this_clone` asks where they are.
        (self.sight, self.bearer) = (Sight::Workstations, Some(shown));
        let landed = self.land_as(actor.as_ref(), order);
        (self.sight, self.bearer) = (Sight::Store, None);
        landed.map_err(|refusal| {
            let request_id = refusal.request_id.or_else(|| Some(order.request.to_string()));
            let task = refusal.task.or_else(|| Some(order.task.to_string()));
            Refusal { request_id, task, ..refusal }
        })
    }

    fn land_as(&mut self, actor: Option<&Handle>, order: &LandingOrder) -> Result<LandedAnswer, Refusal> {
        let task = self.task(&order.task)?;
        let request = &order.request;
        let is_repeat = self.ask(|tx| load::replay(tx, request))?.is_some();
        if let Some(version) = order.version.filter(|_| !is_repeat) {
            crate::submit::unchanged_since(version, &task)?;
        }
        let merge = |adopt| Merge {
            request: &order.request,
            actor,
            token: order.lease.as_ref(),
            task: &order.task,
            adopt,
            root_cause: order.root_cause.as_ref(),
        };
        match &order.end {
            LandingEnd::Merge { adopt } => {
                let names: Vec<String> = adopt.iter().map(ToString::to_string).collect();
                self.merge_once(&merge(&names)).map(|view| LandedAnswer::Merged(Box::new(view)))
            }
            LandingEnd::Complete { resolution, commit } => {
                if !is_repeat {
                    self.refuse_other_work(&task, commit.as_ref())?;
                }
                let held = self.tree_of(&task)?;
                let resolution = resolution.as_ref();
                let call = Finish { merge: merge(&[]), resolution, landing: Landing::Merge };
                let view = self.finish(&call, &mut Silent)?;
                if let (Some((directory, _)), Some(actor)) = (held, actor) {
                    // The task is over, whether or not its token is still lying there.
                    drop(forget_lease(&directory, &task.id, actor));
                }
                Ok(LandedAnswer::Complete(Box::new(view)))
            }
        }
    }

    /// Whoever looked at one state of the work does not land another one. The same work may have been rebased meanwhile.
    fn refuse_other_work(&mut self, task: &Task, seen: Option<&CommitId>) -> Result<(), Refusal> {
        let (Some(seen), Some((_, branch))) = (seen, self.tree_of(task)?) else { return Ok(()) };
        let trunk = self.trunk()?;
        let tip = ref_file::commit(&trunk.repo, &refs::branch_ref(branch.as_str()))?.unwrap_or_default();
        if tip == seen.as_str()
            || History::at(&trunk.repo.common_dir).is_same_work(seen.as_str(), &tip, &trunk.seen()?)?
        {
            return Ok(());
        }
        let detail = format!("the work of {} is at {tip} by now, not at {seen}", task.id);
        Err(Refusal::new(Code::PreconditionFailed, detail)
            .task(&task.id)
            .hint(format!("look at it: onus diff {}", task.id)))
    }

    /// A merge under a request id has one effect, and its repeat the first answer; no entry could tell it again.
    fn merge_once(&mut self, call: &Merge<'_>) -> Result<MergeView, Refusal> {
        let asked = asked(call);
        let shown = self.bearer.clone();
        let earlier = self.store.write(|tx| {
            shown.as_ref().map(|shown| crate::token::judge(tx, shown)).transpose()?;
            let kept = match replay::earlier(tx, call.request, &asked)? {
                Some(_) => load::answer(tx, call.request)?,
                None => None,
            };
            Ok::<_, Refusal>(Outcome::Rollback(kept))
        })?;
        if let Some(kept) = earlier {
            return serde_json::from_str(&kept).map_err(unexpected);
        }
        let view = self.merge(call, &mut Silent)?;
        let kept = serde_json::to_string(&view).map_err(unexpected)?;
        self.store.write(|tx| {
            let seq = load::workspace(tx)?.last_seq;
            apply::answered(tx, call.request, &asked, seq, &kept)?;
            Ok::<_, Refusal>(Outcome::Commit(()))
        })?;
        Ok(view)
    }
}

/// What distinguishes this merge from another call under the same request id.
fn asked(call: &Merge<'_>) -> Digest {
    let mut fields = Fields::new("onus-merge-1");
    fields.text(call.actor.map_or("", Handle::as_str)).text(&call.task.to_string());
    for commit in call.adopt {
        fields.text(commit);
    }
    if let Some(RootCause { statement, owner }) = call.root_cause {
        fields.text(statement).text(owner);
    }
    fields.digest()
}

/// Takes the token of a task that is over out of the working tree: pushes from there no longer show it.
pub(crate) fn forget_lease(directory: &Path, task: &TaskId, holder: &Handle) -> Result<(), Refusal> {
    if let Some(leases) = repository::lease_dir_of(directory)? {
        lease_file::remove(&leases, task, holder)?;
    }
    match repository::find_with(directory, &onus_host::env::Env::default())?.repo {
        Some(repo) => push_option::forget(&repo),
        None => Ok(()),
    }
}
