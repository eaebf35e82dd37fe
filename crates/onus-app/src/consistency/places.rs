//! Holders without a sign of life, workstations and working trees that do not belong together, and what guards them.

use super::queue::{Queue, salvaged_task};
use super::{CloneSight, Disagreement, DisagreementView, Record};
use crate::view::HeldView;
use onus_core::time::Millis;
use onus_core::workstation::{WorkstationKind, WorkstationState};
use onus_host::env::Env;
use onus_host::hook::{self, HookState, Site};
use onus_host::repository::{self, Repo};
use onus_host::worktree::Worktree;
use onus_store::registry::WorkstationHolding;
use std::path::Path;

/// After how many times the length of its lease a silent holder counts as gone.
const FORGOTTEN_LEASES: i64 = 4;

pub(super) fn forgotten(record: &Record, held: &[HeldView], sight: CloneSight) -> Vec<DisagreementView> {
    let silent = held.iter().filter_map(|held| {
        let late = held.expired_for_ms.filter(|_| held.may_be_taken_over)?;
        let ttl = held.expires_at.since(held.renewed_at).0;
        (late > ttl.saturating_mul(FORGOTTEN_LEASES)).then(|| {
            let HeldView { task, assignee, workstation, .. } = held;
            let detail = format!(
                "{task} is held by {assignee} in {workstation}, whose lease ran out {} ago",
                Millis(late)
            );
            forgotten_view(detail, task, workstation)
        })
    });
    let seen = record.unmerged.iter().filter(|_| sight == CloneSight::All);
    let gone = seen.filter_map(|(row, _)| {
        let (task, holder) = row.holds.as_ref()?;
        let path = row.workstation.path.as_deref().filter(|path| !Path::new(path).is_dir())?;
        let name = &row.workstation.name;
        let detail = format!("{task} is held by {holder} in {name}, whose directory {path} is gone");
        Some(forgotten_view(detail, task, name))
    });
    silent.chain(gone).collect()
}

fn forgotten_view(detail: String, task: impl ToString, workstation: impl ToString) -> DisagreementView {
    let task = task.to_string();
    let hint = format!("onus takeover {task} --workstation NAME --reason TEXT");
    DisagreementView::new(Disagreement::Forgotten, detail, hint).task(task).path(workstation)
}

pub(super) fn worktrees(record: &Record, repo: &Repo, sight: CloneSight) -> Vec<DisagreementView> {
    let active = || {
        let rows = record.unmerged.iter().map(|(row, _)| row);
        rows.filter(|row| row.workstation.state != WorkstationState::Retired)
    };
    let owns = |tree: &Worktree, row: &WorkstationHolding| {
        row.workstation.path.as_deref().is_some_and(|path| Path::new(path) == tree.path)
    };
    // The main checkout is everybody's; git lists it first.
    let is_seen = |tree: &&Worktree| !tree.is_bare && sight != CloneSight::Nothing;
    let linked = record.worktrees.iter().skip(1).filter(is_seen);
    let without_owner = linked.filter(|tree| !active().any(|row| owns(tree, row))).map(|tree| {
        let path = tree.path.display();
        let hint = match &tree.prunable {
            Some(_) => "git worktree prune".to_owned(),
            None => format!(
                "onus workstation add NAME --kind worktree --path {path}, or git worktree remove {path}"
            ),
        };
        let detail = format!("the working tree {path} is no workstation");
        DisagreementView::new(Disagreement::WorktreeWithoutOwner, detail, hint).path(path)
    });
    // Where a task is held there, that it is forgotten says it already.
    let is_free = |row: &&WorkstationHolding| {
        sight == CloneSight::All && row.holds.is_none() && row.workstation.kind != WorkstationKind::Logical
    };
    let free = active().filter(is_free);
    let without_tree = free.filter_map(|row| {
        let path = row.workstation.path.as_deref()?;
        let is_listed = record.worktrees.iter().any(|tree| owns(tree, row) && tree.prunable.is_none());
        let is_there = match row.workstation.kind {
            WorkstationKind::Worktree => is_listed || is_elsewhere(Path::new(path), repo),
            WorkstationKind::Checkout | WorkstationKind::Logical => Path::new(path).is_dir(),
        };
        (!is_there).then(|| {
            let name = &row.workstation.name;
            let detail = format!("the working tree of {name}, {path}, is gone");
            let hint = format!("onus workstation remove {name}, or make it again");
            DisagreementView::new(Disagreement::WorkstationWithoutWorktree, detail, hint).path(path)
        })
    });
    without_owner.chain(without_tree).collect()
}

/// Whether a directory is a working tree of another clone: only there is known what git makes of it.
fn is_elsewhere(directory: &Path, repo: &Repo) -> bool {
    let own = repository::find_with(directory, &Env::default()).ok().and_then(|place| place.repo);
    own.is_some_and(|own| own.common_dir != repo.common_dir && own.root.as_deref() == Some(directory))
}

pub(super) fn salvaged(record: &Record, queue: &Queue) -> Vec<DisagreementView> {
    // What lay in a workstation before its first task is kept under its own name.
    let is_place = |name: &str| {
        let place = name.strip_prefix("refs/onus/salvage/").and_then(|rest| rest.strip_suffix("/0"));
        record.unmerged.iter().any(|(row, _)| Some(row.workstation.name.as_str()) == place)
    };
    let is_known = |name: &str| {
        is_place(name) || salvaged_task(name).is_some_and(|task| queue.tasks.contains_key(&task))
    };
    let unknown = record.salvaged.iter().filter(|name| !is_known(name));
    let view = |name: &String| {
        let detail = format!("{name} keeps work of a task that there is not");
        let hint = format!("git log -1 --stat {name}; when nobody needs it: git update-ref -d {name}");
        DisagreementView::new(Disagreement::SalvageOfUnknownTask, detail, hint).path(name)
    };
    unknown.map(view).collect()
}

/// Where no workstation has a branch, there is nothing to guard.
pub(super) fn hooks(record: &Record, repo: &Repo, onus: &Path) -> Option<DisagreementView> {
    let mut guarded = record.unmerged.iter().map(|(row, _)| &row.workstation);
    guarded.find(|place| place.branch.is_some() && place.state != WorkstationState::Retired)?;
    let detail = match hook::status(repo, Site::Work, onus) {
        Ok(hooks) => {
            let lacking = hooks.iter().filter(|hook| hook.state != HookState::Current);
            let words: Vec<String> =
                lacking.map(|hook| format!("{} is {}", hook.name, hook.state.name())).collect();
            (!words.is_empty()).then(|| format!("git does not ask onus: {}", words.join(", ")))?
        }
        Err(refusal) => format!("the hooks cannot be read: {}", refusal.detail),
    };
    let view = DisagreementView::new(Disagreement::HooksMissing, detail, "onus hook install".to_owned());
    Some(view.path(repo.common_dir.display()))
}
