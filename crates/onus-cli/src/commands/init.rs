//! `onus init`

use super::hook::{keep_push_token, program};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_app::registry::Founding;
use onus_core::code::Code;
use onus_core::event::{WorkerAdded, WorkstationAdded};
use onus_core::hash::encode_hex;
use onus_core::id::{Handle, ProjectKey, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::worker::Kind;
use onus_core::workstation::{Lifecycle, WorkstationKind};
use onus_host::hook::{self, Site};
use onus_host::{git, key};
use onus_store::location::Location;
use serde::Serialize;
use std::process::ExitCode;

/// Make a store for this repository and guard its branches; harmless when done again
///
/// Registers the person who runs it (from git's user.name, or --as) and this checkout as a workstation, and puts the git hooks in place. Through a server: only the checkout, and the project that --project names. A store that --store names is remembered in this clone.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The key of the project: ids will be KEY-1, KEY-2, … Again with another key: a second project in the same store
    #[arg(long, value_name = "KEY", value_parser = |text: &str| text.parse::<ProjectKey>())]
    project: Option<ProjectKey>,

    /// Leave the git hooks out: then nothing is asked before a branch moves (onus hook install puts them in place later)
    #[arg(long)]
    no_hooks: bool,

    /// The branch of this remote is the main branch that counts for every clone of the store: people only
    #[arg(long, value_name = "REMOTE")]
    remote: Option<String>,
}

#[derive(Debug, Serialize)]
struct InitView {
    created: bool,
    store: String,
    workspace: String,
    project: ProjectKey,
    worker: Option<Handle>,
    workstation: Option<WorkstationName>,
    /// None where there is no working tree of git.
    hooks: Option<HooksSaid>,
}

/// What became of the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum HooksSaid {
    Installed,
    LeftOut,
    /// Something is in the way.
    Refused,
}

impl Init {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let person = world.actor.clone().map_or_else(|| person(world), Ok)?;
        let founding = Founding {
            project: self.project.clone(),
            default_project: world.place.default_project_key()?,
            person: WorkerAdded {
                handle: person,
                kind: Kind::Human,
                tier: None,
                role: None,
                tz: "UTC".into(),
            },
            checkout: checkout(world)?,
        };
        let public_key = |uid: &str| Ok(encode_hex(&key::create_or_load(uid)?.public()));
        let founded = match &world.location {
            // Its store is made where it is kept; here a person joins it.
            Location::Server(_) => world.open()?.join(world.asker(&world.request()?), &founding)?,
            Location::File(_) | Location::Database(_) => world.create()?.init(&founding, public_key)?,
        };
        let hooks = self.guard(world, founded.person.as_ref(), out)?;
        self.place_in_team(world, out, founded.person.as_ref())?;
        let view = InitView {
            hooks,
            created: founded.created,
            store: world.location.shown(),
            workspace: founded.uid,
            project: founded.project,
            worker: founded.person,
            workstation: founded.checkout,
        };
        let code = out.show(&view, text)?;
        if let Some(worker) = &view.worker {
            let project = &view.project;
            out.hint(&format!(
                "\nNext:\n  export ONUS_AS={worker}\n  onus add \"What is to be done\" --project {project}\n  onus claim --next"
            ));
        }
        Ok(code)
    }

    /// The store knows this clone, and the shared branch that the person names.
    fn place_in_team(&self, world: &World, out: &Output, person: Option<&Handle>) -> Result<(), Refusal> {
        let (Some(repo), Some(person)) = (&world.place.repo, person) else {
            return self.remote.as_ref().map_or(Ok(()), |_| Err(no_ones_word(world)));
        };
        let mut store = world.open()?;
        if repo.root.is_some() {
            store.join_clone(Some(person))?;
        }
        if let Some(remote) = &self.remote {
            let named = store.remote_to_name(remote)?;
            store.name_main_of_record(Some(person), &named)?;
            out.hint(&format!("done is what is in {}/{}, for every clone", named.remote, named.branch));
        }
        Ok(())
    }

    /// Notes what belongs to this clone, and has git ask before a branch moves.
    fn guard(
        &self,
        world: &World,
        person: Option<&Handle>,
        out: &Output,
    ) -> Result<Option<HooksSaid>, Refusal> {
        let Some(repo) = &world.place.repo else {
            return Ok(None);
        };
        world.keep_store()?;
        // What people push to is guarded by other hooks, and by name: onus hook install.
        if repo.root.is_none() {
            return Ok(None);
        }
        if let Some(person) = person {
            hook::keep_person(repo, person)?;
        }
        if self.no_hooks {
            return Ok(Some(HooksSaid::LeftOut));
        }
        Ok(Some(match hook::install(repo, Site::Work, &program()?, None) {
            Ok(_) => {
                if let Some(person) = person.filter(|_| repo.has_remotes().unwrap_or(false)) {
                    keep_push_token(world, &mut world.open()?, repo, person)?;
                }
                HooksSaid::Installed
            }
            Err(refusal) => {
                out.warn(&format!("the hooks are not in place: {refusal}"));
                HooksSaid::Refused
            }
        }))
    }
}

/// A shared branch was named by nobody who could, or nowhere.
fn no_ones_word(world: &World) -> Refusal {
    match &world.place.repo {
        None => Refusal::invalid("--remote needs a git repository").hint("cd into it"),
        Some(_) => {
            Refusal::new(Code::HumanRequired, "which branch counts for every clone is a person's to say")
                .hint("a registered person runs it: onus init --remote REMOTE --as @you")
        }
    }
}

fn text(view: &InitView) -> String {
    let made = if view.created { "Ready" } else { "Here already" };
    let mut text = format!("{made}: project {} in {}\n", view.project, view.store);
    match &view.worker {
        Some(worker) => text.push_str(&format!("You are {worker}")),
        None => {
            text.push_str("You are not registered here; a person runs: onus worker add @you --kind human");
        }
    }
    if let Some(workstation) = &view.workstation {
        text.push_str(&format!(", and this checkout is the workstation {workstation}"));
    }
    text.push('\n');
    text.push_str(match view.hooks {
        Some(HooksSaid::Installed) => {
            "Git asks Onus before a branch moves: an agent commits only for a task that it holds\n"
        }
        Some(HooksSaid::LeftOut) => "Git asks nobody: the hooks are left out (onus hook install)\n",
        Some(HooksSaid::Refused) => "Git asks nobody yet (onus hook install)\n",
        None => "",
    });
    text
}

/// The person at the keyboard, by the name git knows.
pub(super) fn person(world: &World) -> Result<Handle, Refusal> {
    let name = git::user_name(&world.place.cwd)?.or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    let slug = slug(&name).unwrap_or_else(|| "owner".into());
    format!("@{slug}").parse().map_err(Refusal::invalid)
}

/// The directory that people stand in, as a workstation.
fn checkout(world: &World) -> Result<Option<WorkstationAdded>, Refusal> {
    let root = match &world.place.repo {
        Some(repo) => match &repo.root {
            Some(root) => root.clone(),
            None => return Ok(None),
        },
        None => world.place.cwd.clone(),
    };
    let Some(path) = root.to_str() else {
        return Ok(None);
    };
    let directory = root.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("ws-{}", slug(&directory).unwrap_or_else(|| "main".into()));
    Ok(Some(WorkstationAdded {
        name: name.parse().map_err(Refusal::invalid)?,
        kind: WorkstationKind::Checkout,
        path: Some(path.to_owned()),
        lifecycle: Lifecycle::Reusable,
        branch: None,
        probes: Vec::new(),
        role: None,
        lane: None,
    }))
}

/// Lower-case letters, digits and single dashes, starting with a letter.
fn slug(name: &str) -> Option<String> {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' => slug.push(c),
            '0'..='9' if !slug.is_empty() => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() == 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}
