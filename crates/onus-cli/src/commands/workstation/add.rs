//! `onus workstation add`

use super::NameArg;
use crate::commands::{file_error, setup, word};
use crate::context::{Store, World};
use crate::output::Output;
use clap::Args;
use onus_app::view::WorkstationAddedView;
use onus_core::code::Code;
use onus_core::event::WorkstationAdded;
use onus_core::id::{BranchName, Role};
use onus_core::identity_map::RoleRule;
use onus_core::probe::Probe;
use onus_core::refusal::Refusal;
use onus_core::registry::Registration;
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind};
use onus_host::repository;
use onus_host::{env::Env, identity_map, ref_file, worktree};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Register a workstation: people only. One workstation holds one live assignment
///
/// A worktree is really made: a directory of its own beside the main checkout, on a branch of its own. With probes it
/// is ready once they all pass.
#[derive(Debug, Args)]
pub(super) struct WorkstationAdd {
    #[command(flatten)]
    name: NameArg,

    /// logical (a name only), checkout (a directory that is there) or worktree (a git working tree, made if missing)
    #[arg(long, default_value = "logical", value_parser = kind)]
    kind: WorkstationKind,

    /// Its directory. Default of a worktree: beside the main checkout, or below $WORKTREE_ROOT
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// The branch of a worktree; default: agent/NAME
    #[arg(long, value_name = "BRANCH", value_parser = |t: &str| t.parse::<BranchName>())]
    branch: Option<BranchName>,

    /// Take directory and branch from this role's templates in the identity map
    #[arg(long, value_name = "ROLE", value_parser = |t: &str| t.parse::<Role>())]
    role: Option<Role>,

    /// Which lane of the role
    #[arg(long, value_name = "N", requires = "role", value_parser = clap::value_parser!(u32).range(1..=1000))]
    lane: Option<u32>,

    /// reusable, or single-task and retired afterwards
    #[arg(long, default_value = "reusable", value_parser = |t: &str| word("a lifecycle", t, Lifecycle::parse, "reusable, single-task"))]
    lifecycle: Lifecycle,

    /// What must hold before work goes there, e.g. 'tcp:localhost:5432', 'git:clean', 'command:make doctor'; repeatable
    #[arg(long = "probe", value_name = "SPEC", value_parser = |t: &str| t.parse::<Probe>())]
    probes: Vec<Probe>,
}

impl WorkstationAdd {
    pub(super) fn run(&self, world: &World, store: &mut Store, out: &Output) -> Result<ExitCode, Refusal> {
        let actor = world.actor.as_ref();
        let name = &self.name.name;
        // Nothing is made on disk for a name that would be refused.
        store.may_add_workstation(actor, name)?;
        let (path, branch) = match self.kind {
            WorkstationKind::Logical => (self.directory(world)?, None),
            WorkstationKind::Checkout => {
                let path = self.directory(world)?;
                let branch = path.as_deref().and_then(|path| linked_branch(world, path));
                (path, branch)
            }
            WorkstationKind::Worktree => {
                let (path, branch) = self.make(world, store)?;
                (Some(path), Some(branch))
            }
        };
        let path = path.map(|path| path.into_os_string().into_string());
        let path = path.transpose().map_err(|_| Refusal::invalid("the path is not UTF-8"))?;
        let wanted = WorkstationAdded {
            name: name.clone(),
            kind: self.kind,
            path,
            lifecycle: self.lifecycle,
            branch,
            probes: self.probes.clone(),
            role: self.role.clone(),
            lane: self.role.is_some().then(|| i64::from(self.lane.unwrap_or(1))),
        };
        let (registration, mut workstation) =
            store.add_workstation(world.asker(&world.request()?), &wanted)?;
        // The map may ask for more than the caller did.
        let has_probes = !workstation.probes.is_empty();
        if registration == Registration::Created && has_probes {
            (workstation, _) = store.probe(actor, name)?;
        }
        let code = out.show(&WorkstationAddedView { outcome: registration, workstation }, text)?;
        if registration == Registration::Created && has_probes {
            out.hint(&format!("onus workstation show {name} tells what its probes said"));
        }
        Ok(code)
    }

    fn directory(&self, world: &World) -> Result<Option<PathBuf>, Refusal> {
        let Some(path) = &self.path else {
            return Ok(None);
        };
        let path = world.place.cwd.join(path);
        let path = path.canonicalize().map_err(|error| file_error(&path, &error))?;
        if !path.is_dir() {
            return Err(Refusal::invalid(format!("{} is not a directory", path.display())));
        }
        Ok(Some(path))
    }

    /// Makes the working tree, or takes the one that is there as asked.
    fn make(&self, world: &World, store: &mut Store) -> Result<(PathBuf, BranchName), Refusal> {
        let Some(repo) = &world.place.repo else {
            return Err(Refusal::invalid("a worktree needs a git repository").hint("git init"));
        };
        let Some(main) = identity_map::main_branch(repo, &store.settings)? else {
            return Err(Refusal::invalid("the repository has no commit to start a branch from")
                .hint("git commit --allow-empty -m 'First commit'"));
        };
        let role = self.role_rule(store)?;
        let root = worktree::main_root(repo);
        let path = match (&self.path, &role) {
            (Some(path), _) => world.place.cwd.join(path),
            (None, Some((role, rule))) => {
                let template = rule.worktree.as_deref().unwrap_or("../{repo}-{role}-{lane}");
                worktree::relative_to(&root, &self.filled(template, &root, role))
            }
            (None, None) => worktree::beside(repo, self.name.name.as_str()),
        };
        let there = path.canonicalize().ok().and_then(|path| linked_branch(world, &path));
        let branch = match (&self.branch, there, &role) {
            (Some(branch), ..) => branch.clone(),
            // A tree that is there already has its branch.
            (None, Some(branch), _) => branch,
            (None, None, Some((role, rule))) => {
                let template = rule.branch.as_deref().unwrap_or("agent/{role}-{lane}");
                self.filled(template, &root, role).parse().map_err(Refusal::invalid)?
            }
            (None, None, None) => format!("agent/{}", self.name.name).parse().map_err(Refusal::invalid)?,
        };
        worktree::create(repo, &path, branch.as_str(), &main)?;
        let path = path.canonicalize().map_err(|error| file_error(&path, &error))?;
        setup::follow(repo, &path)?;
        Ok((path, branch))
    }

    fn role_rule(&self, store: &Store) -> Result<Option<(Role, RoleRule)>, Refusal> {
        let Some(role) = &self.role else {
            return Ok(None);
        };
        let policy = store.policy()?;
        let rule = policy.in_force().and_then(|in_force| in_force.map.roles.get(role)).cloned();
        let unknown = || {
            Refusal::new(Code::UnknownName, format!("the identity map has no role {role}"))
                .hint("onus route show")
        };
        rule.map(|rule| Some((role.clone(), rule))).ok_or_else(unknown)
    }

    fn filled(&self, template: &str, root: &Path, role: &Role) -> String {
        let repo = root.file_name().unwrap_or_default().to_string_lossy();
        template
            .replace("{repo}", &repo)
            .replace("{role}", role.as_str())
            .replace("{lane}", &self.lane.unwrap_or(1).to_string())
            .replace("{name}", self.name.name.as_str())
    }
}

/// The branch of a linked working tree of this repository; its commits are guarded, those of the main checkout are not.
fn linked_branch(world: &World, path: &Path) -> Option<BranchName> {
    let here = world.place.repo.as_ref()?;
    let there = repository::find_with(path, &Env::default()).ok()?.repo?;
    let is_linked = there.common_dir == here.common_dir && there.git_dir != there.common_dir;
    let branch = ref_file::head_of(path).branch.filter(|_| is_linked)?;
    branch.strip_prefix("refs/heads/")?.parse().ok()
}

fn kind(text: &str) -> Result<WorkstationKind, String> {
    word("a kind of workstation", text, WorkstationKind::parse, "logical, checkout, worktree")
}

fn text(view: &WorkstationAddedView) -> String {
    let Workstation { name, kind, path, branch, state, .. } = &view.workstation;
    let at = path.as_deref().map(|path| format!(" at {path}")).unwrap_or_default();
    let on = branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    format!("{name} is registered as {}{at}{on}: {}\n", kind.name(), state.name())
}
