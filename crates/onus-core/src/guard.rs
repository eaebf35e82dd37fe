//! The guard: may this reference move? Asked by git's hooks, while git holds the reference's lock (mission B5, E1).
//!
//! Expiry alone takes nothing away here either: a late holder that nobody has replaced may still commit.
//!
//! Two steps, because the second one needs what only the first one tells: [`local`] or [`pushed`] says under which
//! assignment the reference moves, [`within`] whether the paths that it changes are that assignment's.

use crate::code::Code;
use crate::id::{Generation, Handle, TaskId, WorkstationName, shown};
use crate::lease::Token;
use crate::refusal::{Finding, Refusal};
use crate::task::Assignment;
use crate::workstation::WorkstationState;

/// A live assignment and its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held<'a> {
    pub task: &'a TaskId,
    pub assignment: &'a Assignment,
}

/// A registered workstation, and what is held in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post<'a> {
    pub workstation: &'a WorkstationName,
    pub state: WorkstationState,
    pub held: Option<Held<'a>>,
}

/// What the caller shows, and the store's present generation to compare it with.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    pub token: Option<&'a Token>,
    pub generation: Generation,
    /// Who the caller says it is, if it says so (`ONUS_AS`).
    pub worker: Option<&'a Handle>,
}

/// A branch that is about to move in a repository people work in.
#[derive(Debug, Clone, Copy)]
pub struct Local<'a> {
    pub refname: &'a str,
    /// The workstation that the branch is registered for.
    pub owner: Option<Post<'a>>,
    /// The registered linked worktree that the caller stands in.
    pub from: Option<Post<'a>>,
    pub credentials: Credentials<'a>,
}

/// What happens to a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Create,
    /// The new commit has the old one among its ancestors.
    Forward,
    Rewrite,
    Delete,
}

/// A reference that is about to move in a repository people push to.
#[derive(Debug, Clone, Copy)]
pub struct Push<'a> {
    pub refname: &'a str,
    pub change: Change,
    /// The full name of the main branch.
    pub main: &'a str,
    /// The workstation that the branch is registered for.
    pub owner: Option<Post<'a>>,
    /// The workstation whose live assignment the token names.
    pub holder: Option<Post<'a>>,
    pub credentials: Credentials<'a>,
}

/// Under which assignment a local branch moves; `None` when it is nobody's business.
pub fn local<'a>(update: &Local<'a>) -> Result<Option<Held<'a>>, Refusal> {
    if !update.refname.starts_with("refs/heads/") {
        return Ok(None);
    }
    // A retired workstation is gone; what it left behind is anybody's.
    let in_use = |post: &Post<'a>| post.state != WorkstationState::Retired;
    let (owner, from) = (update.owner.filter(in_use), update.from.filter(in_use));
    let mut held = None;
    if let Some(from) = from {
        held = Some(opened(&from, &update.credentials).map_err(|finding| refusal(finding, &from))?);
    }
    match owner {
        Some(owner) if from.is_some_and(|from| from.workstation == owner.workstation) => Ok(held),
        // The token has opened the caller's own workstation, so it is not stale: it is another one's.
        Some(owner) if from.is_some() => Err(not_yours(update.refname, &owner)),
        Some(owner) => match opened(&owner, &update.credentials) {
            Ok(held) => Ok(Some(held)),
            Err(finding) => Err(refusal(finding, &owner)),
        },
        None => Ok(held),
    }
}

/// Under which assignment a pushed reference moves. Without a live one nothing does.
pub fn pushed<'a>(push: &Push<'a>) -> Result<Held<'a>, Refusal> {
    if push.credentials.token.is_none() {
        let detail = format!("{} moves only with a lease", shown(push.refname));
        return Err(Refusal::new(Code::LeaseRequired, detail).hint("git push -o onus=TOKEN"));
    }
    let Some(holder) = push.holder else {
        return Err(Refusal::new(Code::Fenced, "the lease token is that of no live assignment")
            .hint("stop writing; onus show TASK tells what became of it"));
    };
    let held = opened(&holder, &push.credentials).map_err(|finding| refusal(finding, &holder))?;
    let is_lossless = matches!(push.change, Change::Create | Change::Forward);
    if push.refname == push.main && !is_lossless {
        return Err(not_permitted(push, "only goes forward", "rebase the work on it and push again"));
    }
    if push.refname.starts_with("refs/onus/") && push.change != Change::Create {
        return Err(not_permitted(push, "is a record: it is never moved", "push it under a new name"));
    }
    match push.owner {
        Some(owner)
            if owner.workstation != holder.workstation && owner.state != WorkstationState::Retired =>
        {
            Err(not_yours(push.refname, &owner))
        }
        _ => Ok(held),
    }
}

/// Whether what changes is the assignment's to change; `findings` are those of scope and boundary.
pub fn within(held: &Held<'_>, findings: Vec<Finding>) -> Result<(), Refusal> {
    match Refusal::from_findings(findings) {
        None => Ok(()),
        Some(refusal) => Err(refusal.task(held.task)),
    }
}

/// What a commit says about the assignment it is made under.
pub fn trailers(held: &Held<'_>) -> [(&'static str, String); 4] {
    let Held { task, assignment } = held;
    [
        ("Onus-Task", task.to_string()),
        ("Onus-Agent", assignment.assignee.to_string()),
        ("Onus-Workstation", assignment.workstation.to_string()),
        ("Onus-Epoch", assignment.epoch.to_string()),
    ]
}

/// The assignment held in a workstation, if the caller proves to be its holder.
fn opened<'a>(post: &Post<'a>, credentials: &Credentials<'_>) -> Result<Held<'a>, Finding> {
    let name = post.workstation;
    if post.state == WorkstationState::Quarantined {
        return Err(Finding::new(Code::WorkstationQuarantined, format!("{name} is quarantined"))
            .hint("nothing moves there until a person restores it: onus workstation show"));
    }
    let Some(held) = post.held else {
        // Who has a token was a holder once.
        if credentials.token.is_some() {
            return Err(Finding::new(Code::Fenced, format!("nobody holds a task in {name} any more"))
                .hint("stop writing; onus status tells what you hold"));
        }
        return Err(Finding::new(Code::LeaseRequired, format!("nobody holds a task in {name}"))
            .hint(format!("onus claim TASK --workstation {name}")));
    };
    let Held { task, assignment } = held;
    let Some(token) = credentials.token else {
        let detail = format!("{name} holds {task} for {}, and no lease was shown", assignment.assignee);
        return Err(Finding::new(Code::LeaseRequired, detail)
            .hint("work in that workstation's directory, or set ONUS_LEASE"));
    };
    let is_live = token.generation == credentials.generation
        && token.epoch == assignment.epoch
        && assignment.lease.is_opened_by(token);
    if !is_live {
        let Assignment { assignee, assigned_at, .. } = assignment;
        return Err(Finding::new(Code::Fenced, format!("{task} is held by {assignee} since {assigned_at}"))
            .hint(format!("stop writing; onus show {task} tells what became of it")));
    }
    match credentials.worker {
        Some(worker) if *worker != assignment.assignee => {
            let detail = format!("the lease of {task} is {}'s, not {worker}'s", assignment.assignee);
            Err(Finding::new(Code::Fenced, detail).hint("use your own workstation and your own lease"))
        }
        _ => Ok(held),
    }
}

fn refusal(finding: Finding, post: &Post<'_>) -> Refusal {
    let mut refusal = Refusal::new(finding.code, finding.detail);
    refusal.hint = finding.hint;
    match post.held {
        Some(held) => refusal.task(held.task),
        None => refusal,
    }
}

fn not_yours(refname: &str, owner: &Post<'_>) -> Refusal {
    let (branch, name) = (shown(refname.trim_start_matches("refs/heads/")), owner.workstation);
    let who = match owner.held {
        Some(Held { task, assignment }) => format!("which {} holds for {task}", assignment.assignee),
        None => "which nobody holds".to_owned(),
    };
    let detail = format!("{branch} is the branch of {name}, {who}");
    let finding = Finding::new(Code::LeaseRequired, detail).hint("use a branch of your own");
    refusal(finding, owner)
}

fn not_permitted(push: &Push<'_>, detail: &str, hint: &str) -> Refusal {
    Refusal::new(Code::NotPermitted, format!("{} {detail}", shown(push.refname))).hint(hint)
}
