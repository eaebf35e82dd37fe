//! `onus workstation sync` and `onus workstation remove`

use super::{NameArg, changed};
use crate::commands::{LeaseArg, submit_as_holder};
use crate::context::{Store, World};
use crate::output::Output;
use clap::Args;
use onus_app::clean_start::Begins;
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::id::WorkstationName;
use onus_core::refusal::{Finding, Refusal};
use onus_core::registry::known;
use onus_core::text::counted;
use onus_core::workstation::WorkstationKind;
use onus_host::identity_map;
use onus_host::repository::Repo;
use onus_host::worktree::{self, Branch, Survey, Synced};
use onus_store::registry::WorkstationHolding;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Rebase a worktree on the main branch
///
/// While a task is held there only its holder may do it, and it counts as a sign of life. On a conflict nothing is
/// changed, and the tasks that changed the same paths are named. One that nobody holds is put back on the main branch; what
/// lay there is kept.
#[derive(Debug, Args)]
pub(super) struct Sync {
    #[command(flatten)]
    name: NameArg,

    #[command(flatten)]
    lease: LeaseArg,
}

/// Retire a worktree and delete its directory: people only
///
/// Refused while anything would be lost: a held task, a dirty tree, commits that are neither merged nor pushed; and while
/// the role that it was made for has work that is under way or has nowhere else to go.
#[derive(Debug, Args)]
pub(super) struct Remove {
    #[command(flatten)]
    name: NameArg,

    /// Why; goes into the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct SyncView {
    workstation: WorkstationName,
    outcome: &'static str,
    head: String,
}

impl Sync {
    pub(super) fn run(&self, world: &World, store: &mut Store, out: &Output) -> Result<ExitCode, Refusal> {
        let row = store.workstation(&self.name.name)?;
        match &row.holds {
            Some((task, _)) => {
                drop(submit_as_holder(
                    world,
                    store,
                    task,
                    &self.lease,
                    Command::Renew { ttl: None, process: None },
                )?);
            }
            None => {
                known(&store.caller(world.actor.as_ref())?)?;
                if let Some(code) = self.put_back(world, store, out, &row)? {
                    return Ok(code);
                }
            }
        }
        let (repo, dir, main) = tree_of(world, store, &row)?;
        let (outcome, head) = match worktree::sync(repo, &dir, &main)? {
            Synced::Current { head } => ("current", head),
            Synced::Rebased { new, .. } => ("rebased", new),
            Synced::Conflicts(conflicts) => {
                let task = row.holds.as_ref().map(|(task, _)| task);
                return Err(store.conflicting(task, &self.name.name, &main, &conflicts)?);
            }
        };
        let view = SyncView { workstation: self.name.name.clone(), outcome, head };
        out.show(&view, |view| format!("{} is {} at {}\n", view.workstation, view.outcome, view.head))
    }
}

impl Sync {
    /// A worktree that nobody holds goes back on the main of record; what lay there is kept.
    fn put_back(
        &self,
        world: &World,
        store: &mut Store,
        out: &Output,
        row: &WorkstationHolding,
    ) -> Result<Option<ExitCode>, Refusal> {
        let request = world.another_request()?;
        let begins = Begins { request: &request, actor: world.actor.as_ref(), token: None };
        let Some((trunk, kept)) = store.put_back_free(&begins, &row.workstation)? else {
            return Ok(None);
        };
        if let Some(kept) = kept {
            out.hint(&format!("what lay there is kept in {} ({})", kept.refname, kept.commit));
        }
        let view = SyncView { workstation: self.name.name.clone(), outcome: "current", head: trunk.seen()? };
        out.show(&view, |view| format!("{} is {} at {}\n", view.workstation, view.outcome, view.head))
            .map(Some)
    }
}

impl Remove {
    pub(super) fn run(&self, world: &World, store: &mut Store, out: &Output) -> Result<ExitCode, Refusal> {
        let name = &self.name.name;
        let row = store.workstation(name)?;
        if row.workstation.kind != WorkstationKind::Worktree {
            return Err(Refusal::invalid(format!("{name} is no worktree: there is nothing to remove"))
                .hint(format!("onus workstation retire {name}")));
        }
        store.may_retire(world.actor.as_ref(), name)?;
        store.may_remove(name)?;
        let (repo, dir, main) = tree_of(world, store, &row)?;
        let is_known = worktree::list(repo)?.iter().any(|tree| tree.path == dir);
        let kept = if is_known {
            if dir.is_dir()
                && let Some(refusal) = at_stake(&dir, &worktree::survey(repo, &dir, &main)?, &main)
            {
                return Err(refusal);
            }
            worktree::remove(repo, &dir, &main)?
        } else {
            Branch::None
        };
        let row = store.retire(world.asker(&world.request()?), name, self.reason.as_deref(), true)?;
        changed(out, &row, |name| match kept {
            Branch::Kept(branch) => format!("{name} is removed; its branch {branch} stays\n"),
            Branch::Deleted(branch) => format!("{name} is removed, and its merged branch {branch}\n"),
            Branch::None => format!("{name} is removed\n"),
        })
    }
}

/// Everything that would be lost.
fn at_stake(dir: &Path, survey: &Survey, main: &str) -> Option<Refusal> {
    let shown = dir.display();
    let mut findings = Vec::new();
    if !survey.dirty.is_empty() {
        let paths = survey.dirty.first.join(", ");
        let detail = format!("{shown} has {}: {paths}", counted(survey.dirty.count, "changed path"));
        findings.push(
            Finding::new(Code::WorkstationNotReady, detail).hint("commit them, or remove them by hand"),
        );
    }
    for (what, commits, fix) in [
        ("not in the main branch", &survey.unmerged, format!("onus merge TASK, or rebase on {main}")),
        ("not pushed", &survey.unpushed, "git push".to_owned()),
    ] {
        if !commits.is_empty() {
            let subjects: Vec<&str> = commits.first.iter().map(|commit| commit.subject.as_str()).collect();
            let detail = format!("{} {what}: {}", counted(commits.count, "commit"), subjects.join("; "));
            findings.push(Finding::new(Code::WorkstationNotReady, detail).hint(fix));
        }
    }
    Refusal::from_findings(findings)
}

/// The repository, the directory and the main branch of a worktree.
fn tree_of<'a>(
    world: &'a World,
    store: &Store,
    row: &WorkstationHolding,
) -> Result<(&'a Repo, PathBuf, String), Refusal> {
    let name = &row.workstation.name;
    let repo = world.place.repo.as_ref();
    let repo = repo.ok_or_else(|| Refusal::invalid("this is no git repository").hint("cd into it first"))?;
    let dir = row.workstation.path.as_ref().filter(|_| row.workstation.kind != WorkstationKind::Logical);
    let dir = dir.ok_or_else(|| Refusal::invalid(format!("{name} has no working tree")))?;
    let main = identity_map::main_branch(repo, &store.settings)?
        .ok_or_else(|| Refusal::invalid("the repository has no main branch yet").hint("commit something"))?;
    Ok((repo, PathBuf::from(dir), main))
}
