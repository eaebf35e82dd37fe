//! The guard: may this reference move? Asked by git's hooks, while git holds the reference's lock (mission B5, E1).
//!
//! Expiry alone takes nothing away here either: a late holder that nobody has replaced may still commit.
//!
//! Two steps, because the second one needs what only the first one tells: [`local`] or [`pushed`] says under which
//! assignment the reference moves, [`within`] whether the paths that it changes are that assignment's.

use crate::code::Code;
use crate::constraint;
use crate::id::{Generation, Handle, TaskId, WorkstationName, shown};
use crate::lease::Token;
use crate::refusal::{Finding, Refusal};
use crate::settings::PeoplePolicy;
use crate::task::Assignment;
use crate::worker::Kind;
use crate::workstation::{WorkstationKind, WorkstationState};

/// Where Onus keeps what must not be lost: salvaged work, the ledger's anchor.
const RECORDS: &str = "refs/onus/";

/// A live assignment and its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held<'a> {
    pub task: &'a TaskId,
    pub assignment: &'a Assignment,
    /// What its holder is.
    pub by: Kind,
}

impl Held<'_> {
    /// Whether the assignment opens another workstation, in which nobody works.
    pub(crate) fn crosses_into(&self, place: &Post<'_>) -> bool {
        place.held.is_none()
            && place.state != WorkstationState::Quarantined
            && constraint::opens(&self.assignment.constraints, place.workstation)
    }
}

/// A registered workstation, and what is held in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post<'a> {
    pub workstation: &'a WorkstationName,
    pub kind: WorkstationKind,
    pub state: WorkstationState,
    pub held: Option<Held<'a>>,
}

impl Post<'_> {
    /// Whether only a lease opens it. The main checkout is its owner's as long as nobody works in it for a task.
    fn is_reserved(&self) -> bool {
        self.kind == WorkstationKind::Worktree
            || self.held.is_some()
            || self.state == WorkstationState::Quarantined
    }
}

/// Who moves a reference, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mover<'a> {
    /// A registered worker, by the name that the caller gives.
    Named { handle: &'a Handle, kind: Kind },
    /// Nobody said who it is: the person whose clone it is.
    Owner(&'a Handle),
    /// A name that the store does not know.
    Unregistered(&'a Handle),
    /// A coding client that does not say for whom it works, by its mark in the environment: an agent, not its owner.
    Client(&'a str),
    /// Nobody said who it is, and the clone has no owner on record.
    Nobody,
}

impl<'a> Mover<'a> {
    pub fn handle(&self) -> Option<&'a Handle> {
        match self {
            Mover::Named { handle, .. } | Mover::Owner(handle) | Mover::Unregistered(handle) => Some(handle),
            Mover::Client(_) | Mover::Nobody => None,
        }
    }

    /// The name that the caller gave itself.
    fn named(&self) -> Option<&'a Handle> {
        match self {
            Mover::Named { handle, .. } | Mover::Unregistered(handle) => Some(handle),
            Mover::Owner(_) | Mover::Client(_) | Mover::Nobody => None,
        }
    }

    pub fn is_person(&self) -> bool {
        matches!(self, Mover::Owner(_) | Mover::Named { kind: Kind::Human, .. })
    }
}

/// The first variable that only coding clients set. `patterns` are names; one that ends in `*` stands for all that begin
/// so, and one that begins with `!` for those that are not meant.
pub fn client<'a>(patterns: &[String], variables: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fits = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    let is_mark = |name: &&str| {
        let excluded = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!'));
        patterns.iter().any(|pattern| fits(pattern, name)) && !excluded.clone().any(|one| fits(one, name))
    };
    variables.into_iter().find(is_mark)
}

/// What the caller shows, and the store's present generation to compare it with.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    /// Shown by hand, or left where the caller stands by a claim in its own name.
    pub token: Option<&'a Token>,
    pub generation: Generation,
    pub mover: Mover<'a>,
}

/// A reference that is about to move in a repository people work in: a branch, or a `HEAD` that is on none.
#[derive(Debug, Clone, Copy)]
pub struct Local<'a> {
    pub refname: &'a str,
    pub change: Change,
    /// The full name of the main branch, if there is one yet.
    pub main: Option<&'a str>,
    /// The workstation that the branch is registered for.
    pub owner: Option<Post<'a>>,
    /// The registered workstation whose directory the caller stands in.
    pub from: Option<Post<'a>>,
    /// The workstation whose live assignment the token names, wherever that is.
    pub holder: Option<Post<'a>>,
    /// What the mover holds somewhere, by its name alone: it opens nothing, and says where to work.
    pub elsewhere: Option<Held<'a>>,
    pub credentials: Credentials<'a>,
    pub people: PeoplePolicy,
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

/// Whether a push brings anything that nobody has answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Every commit of it is on record as some task's that has landed.
    Landed,
    Unseen,
}

/// A reference that is about to move in a repository people push to.
#[derive(Debug, Clone, Copy)]
pub struct Push<'a> {
    pub refname: &'a str,
    pub change: Change,
    pub news: News,
    /// The full name of the main branch.
    pub main: &'a str,
    /// The workstation that the branch is registered for.
    pub owner: Option<Post<'a>>,
    /// The workstation whose live assignment the token names.
    pub holder: Option<Post<'a>>,
    /// The person whose own token was shown.
    pub person: Option<&'a Handle>,
    pub people: PeoplePolicy,
    pub naming: Naming,
    pub credentials: Credentials<'a>,
}

/// Whether whoever shows a lease must say who it is as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// It was shown by hand: a secret that only its holder has.
    #[default]
    Free,
    /// It lay in the working tree, where anybody who stands there would show it.
    Required,
}

/// By what right a pushed reference moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit<'a> {
    Held(Held<'a>),
    /// In a person's own name, which goes on record.
    Person(&'a Handle),
    /// It was judged when it landed.
    Landed,
}

/// Under which assignment a local reference moves; `None` when it needs none.
pub fn local<'a>(update: &Local<'a>) -> Result<Option<Held<'a>>, Refusal> {
    if update.refname.starts_with(RECORDS) {
        return record(update).map(|()| None);
    }
    if !update.refname.starts_with("refs/heads/") && update.refname != "HEAD" {
        return Ok(None);
    }
    // A retired workstation is gone; what it left behind is anybody's.
    let in_use = |post: &Post<'a>| post.state != WorkstationState::Retired;
    let (owner, from) = (update.owner.filter(in_use), update.from.filter(in_use));
    let mut held = None;
    if let Some(from) = from.filter(Post::is_reserved) {
        let holder = update.holder.filter(in_use);
        let crossing = holder.filter(|holder| holder.held.is_some_and(|held| held.crosses_into(&from)));
        let from = crossing.unwrap_or(from);
        held = Some(opened(&from, &update.credentials).map_err(|finding| refusal(finding, &from))?);
    }
    match owner {
        Some(owner) if from.is_some_and(|from| from.workstation == owner.workstation) => return Ok(held),
        // The token has opened the caller's own workstation, so it is not stale: it is another one's.
        Some(owner) if held.is_some() => return Err(not_yours(update.refname, &owner)),
        Some(owner) => {
            let opened = opened(&owner, &update.credentials).map_err(|finding| refusal(finding, &owner))?;
            return Ok(Some(opened));
        }
        None => {}
    }
    if held.is_none()
        && let Some(holder) = update.holder.filter(in_use)
    {
        held = Some(opened(&holder, &update.credentials).map_err(|finding| refusal(finding, &holder))?);
    }
    unowned(update, held)
}

/// A branch that is no workstation's: a person's as they like, an agent's under its lease; the main one a person's only.
fn unowned<'a>(update: &Local<'a>, held: Option<Held<'a>>) -> Result<Option<Held<'a>>, Refusal> {
    let Local { credentials: Credentials { mover, .. }, main, refname, .. } = update;
    let is_main = Some(*refname) == *main;
    match held {
        Some(held) if is_main && held.by == Kind::Agent => Err(only_by_merge(refname, held.task)),
        Some(held) => Ok(Some(held)),
        None if mover.is_person() && update.people == PeoplePolicy::Free => Ok(None),
        // Who has a token was a holder once.
        None if update.credentials.token.is_some() => {
            let detail = format!("the lease that you show is over: {} does not move", branch(refname));
            Err(Refusal::new(Code::Fenced, detail).hint("stop writing; onus status tells what you hold"))
        }
        None => Err(match update.elsewhere {
            Some(held) => held_elsewhere(&held, refname),
            None => nothing_held(mover, refname),
        }),
    }
}

/// What Onus keeps in git: anybody may fetch what is new, and a person may tidy up.
fn record(update: &Local<'_>) -> Result<(), Refusal> {
    if update.change == Change::Create || update.credentials.mover.is_person() {
        return Ok(());
    }
    let detail = format!("{} is a record: agents neither move nor delete it", shown(update.refname));
    Err(Refusal::new(Code::NotPermitted, detail).hint("leave it; a person may remove it"))
}

/// By what right a pushed reference moves. Without one nothing does.
pub fn pushed<'a>(push: &Push<'a>) -> Result<Permit<'a>, Refusal> {
    let is_lossless = matches!(push.change, Change::Create | Change::Forward);
    if push.refname == push.main && is_lossless && push.news == News::Landed {
        return Ok(Permit::Landed);
    }
    let permit = match (push.credentials.token, push.person) {
        (Some(_), _) => Permit::Held(by_holder(push)?),
        (None, Some(person)) => Permit::Person(by_person(push, person)?),
        (None, None) => {
            let detail =
                format!("{} moves only with a lease, or in a person's own name", shown(push.refname));
            return Err(Refusal::new(Code::LeaseRequired, detail).hint(
                "push from the workstation where you hold the task; a person runs once, in their clone: onus hook install",
            ));
        }
    };
    if push.refname == push.main && !is_lossless {
        return Err(not_permitted(push, "only goes forward", "rebase the work on it and push again"));
    }
    if push.refname.starts_with(RECORDS) && push.change != Change::Create {
        return Err(not_permitted(push, "is a record: it is never moved", "push it under a new name"));
    }
    match (push.owner, push.holder, permit) {
        (Some(owner), ..) if owner.state == WorkstationState::Retired => Ok(permit),
        (Some(owner), Some(holder), Permit::Held(_)) if owner.workstation == holder.workstation => Ok(permit),
        (Some(owner), ..) => Err(not_yours(push.refname, &owner)),
        (None, ..) => Ok(permit),
    }
}

fn by_holder<'a>(push: &Push<'a>) -> Result<Held<'a>, Refusal> {
    let Some(holder) = push.holder else {
        return Err(Refusal::new(Code::Fenced, "the lease token is that of no live assignment")
            .hint("stop writing; onus show TASK tells what became of it"));
    };
    let held = opened(&holder, &push.credentials).map_err(|finding| refusal(finding, &holder))?;
    let is_unknown = match push.credentials.mover {
        Mover::Client(_) => true,
        // A person need not say so in their own clone.
        Mover::Nobody | Mover::Owner(_) => push.naming == Naming::Required && held.by == Kind::Agent,
        Mover::Named { .. } | Mover::Unregistered(_) => false,
    };
    if !is_unknown {
        return Ok(held);
    }
    let (task, assignee) = (held.task, &held.assignment.assignee);
    let detail = format!("the lease of {task} is {assignee}'s, and nobody said who pushes");
    Err(Refusal::new(Code::IdentityRequired, detail)
        .task(task)
        .hint(format!("if you are {assignee}: export ONUS_AS={assignee}; else push with your own lease")))
}

fn by_person<'a>(push: &Push<'a>, person: &'a Handle) -> Result<&'a Handle, Refusal> {
    match push.credentials.mover.named() {
        Some(other) if other != person => {
            let detail = format!("the token is {person}'s, and you are {other}");
            Err(Refusal::new(Code::NotPermitted, detail).hint("push with your own lease or token"))
        }
        _ if push.people == PeoplePolicy::Task => Err(nothing_held(&Mover::Owner(person), push.refname)),
        // Whose clone it runs in is not for whom it works.
        None if matches!(push.credentials.mover, Mover::Client(_)) => {
            Err(nothing_held(&push.credentials.mover, push.refname))
        }
        _ => Ok(person),
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
pub fn trailers(task: &TaskId, assignment: &Assignment) -> [(&'static str, String); 4] {
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
    let Held { task, assignment, .. } = held;
    let Some(token) = credentials.token else {
        return Err(not_the_holder(name, task, &assignment.assignee, &credentials.mover));
    };
    let is_live = token.generation == credentials.generation
        && token.epoch == assignment.epoch
        && assignment.lease.is_opened_by(token);
    if !is_live {
        let Assignment { assignee, assigned_at, .. } = assignment;
        return Err(Finding::new(Code::Fenced, format!("{task} is held by {assignee} since {assigned_at}"))
            .hint(format!("stop writing; onus show {task} tells what became of it")));
    }
    match credentials.mover.named() {
        Some(worker) if *worker != assignment.assignee => {
            let detail = format!("the lease of {task} is {}'s, not {worker}'s", assignment.assignee);
            Err(Finding::new(Code::Fenced, detail).hint("use your own workstation and your own lease"))
        }
        _ => Ok(held),
    }
}

/// Somebody else, or the holder without its lease.
fn not_the_holder(name: &WorkstationName, task: &TaskId, holder: &Handle, mover: &Mover<'_>) -> Finding {
    let (detail, hint) = match mover.handle() {
        Some(worker) if worker == holder => (
            format!("{name} holds {task} for {holder}, and no lease was shown"),
            "work in that workstation's directory, or set ONUS_LEASE".to_owned(),
        ),
        Some(worker) => (
            format!("{name} holds {task} for {holder}, and you are {worker}"),
            format!("work in your own workstation; if you are {holder}: export ONUS_AS={holder}"),
        ),
        None => (
            format!("{name} holds {task} for {holder}, and nobody said who you are"),
            format!("export ONUS_AS={holder} if you are; else work in your own workstation"),
        ),
    };
    Finding::new(Code::LeaseRequired, detail).hint(hint)
}

/// Who has a task, and does not work where it is held.
fn held_elsewhere(held: &Held<'_>, refname: &str) -> Refusal {
    let Held { task, assignment: Assignment { assignee, workstation, .. }, .. } = held;
    let detail =
        format!("{assignee} holds {task} in {workstation}, and {} is not moved from here", branch(refname));
    Refusal::new(Code::LeaseRequired, detail)
        .task(task)
        .hint(format!("work in that workstation's directory: onus workstation show {workstation}"))
}

/// Whoever holds nothing, and is not at liberty to do without.
fn nothing_held(mover: &Mover<'_>, refname: &str) -> Refusal {
    const CLAIM: &str = "onus claim --next --workstation NAME, then work in that workstation's directory";
    let branch = branch(refname);
    match mover {
        Mover::Named { handle, kind: Kind::Agent } => {
            Refusal::new(Code::LeaseRequired, format!("{handle} holds no task: it does not move {branch}"))
                .hint(CLAIM)
        }
        Mover::Named { handle, .. } | Mover::Owner(handle) => Refusal::new(
            Code::LeaseRequired,
            format!("{handle} holds no task, and git.people in onus.yaml is `task`"),
        )
        .hint("onus claim TASK"),
        Mover::Unregistered(handle) => {
            Refusal::new(Code::UnknownWorker, format!("{handle} is not registered"))
                .hint(format!("a person runs: onus worker add {handle} --kind agent"))
        }
        Mover::Client(mark) => Refusal::new(
            Code::LeaseRequired,
            format!("a coding client ({mark} is set) that names no worker holds no task: it does not move {branch}"),
        )
        .hint(format!("export ONUS_AS=@you, then {CLAIM}")),
        Mover::Nobody => Refusal::new(Code::IdentityRequired, format!("who moves {branch}?")).hint(
            "export ONUS_AS=@you; a person whose clone it is says so once: onus hook install --as @you",
        ),
    }
}

fn only_by_merge(refname: &str, task: &TaskId) -> Refusal {
    let detail = format!("{} moves only by onus merge, or by a person", branch(refname));
    Refusal::new(Code::NotPermitted, detail)
        .task(task)
        .hint(format!("commit on your workstation's own branch, then: onus merge {task}"))
}

fn branch(refname: &str) -> String {
    shown(refname.strip_prefix("refs/heads/").unwrap_or(refname))
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
        Some(Held { task, assignment, .. }) => format!("which {} holds for {task}", assignment.assignee),
        None => "which nobody holds".to_owned(),
    };
    let detail = format!("{branch} is the branch of {name}, {who}");
    let finding = Finding::new(Code::LeaseRequired, detail).hint("use a branch of your own");
    refusal(finding, owner)
}

fn not_permitted(push: &Push<'_>, detail: &str, hint: &str) -> Refusal {
    Refusal::new(Code::NotPermitted, format!("{} {detail}", shown(push.refname))).hint(hint)
}
