//! `onus hook`

pub(super) mod agent;

use crate::cli;
use crate::context::{Store, World, asks_for_token, client_variables, environment_token};
use crate::output::Output;
use clap::{Args, Subcommand};
use onus_app::guard::Desk;
use onus_app::idempotent_admin::Asker;
use onus_app::push::{PushStage, Pusher};
use onus_app::view::WorkerView;
use onus_core::code::Code;
use onus_core::guard;
use onus_core::id::{CommitId, Handle};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder;
use onus_core::token::TokenText;
use onus_core::worker::Kind;
use onus_host::git::Incoming;
use onus_host::hook::{self, Hook as Installed, HookState, PushOptions, Site, Update};
use onus_host::push_option;
use onus_host::refs::History;
use onus_host::repository::{self, Place, Repo};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a push may bring on standard input; a line is about 200 bytes.
const INPUT_MAX: u64 = 64 * 1024 * 1024;

/// Git asks Onus before a branch moves; `onus init` puts the hooks in place
///
/// In a repository that people work in: an agent's commits, amendments, `--no-verify`, `branch -f` and pushes need its lease,
/// and so does everybody's in a workstation. In a bare repository that they push to: every push needs a token.
#[derive(Debug, Args)]
pub(crate) struct Hook {
    #[command(subcommand)]
    verb: HookVerb,
}

#[derive(Debug, Subcommand)]
enum HookVerb {
    #[command(flatten)]
    Git(GitVerb),
    /// What an agent's client asks around its tools; `onus setup claude` has it asked
    ///
    /// Reads the client's JSON on standard input. Exit code 2 stops the tool: no lease, a lost one, a path outside the scope or
    /// in another's workstation.
    Agent {
        /// session-start, pre-tool-use, post-tool-use, stop or session-end
        event: String,
    },
}

#[derive(Debug, Subcommand)]
enum GitVerb {
    /// Put the hooks in place; a hook that is there already keeps working
    Install,
    /// Take them away; what was there before is put back
    Uninstall,
    /// Which hooks are in place
    Status,
}

#[derive(Debug, Serialize)]
struct HooksView {
    site: &'static str,
    hooks: Vec<HookView>,
}

#[derive(Debug, Serialize)]
struct HookView {
    name: &'static str,
    path: String,
    state: &'static str,
    before: Option<String>,
}

impl Hook {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        match &self.verb {
            HookVerb::Agent { event } => Ok(agent::run(event)),
            HookVerb::Git(verb) => verb.run(world, out),
        }
    }
}

impl GitVerb {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let (repo, site) = site(&world.place)?;
        match self {
            GitVerb::Install => {
                let hooks = install(world, repo, site)?;
                let code = show(out, site, &hooks)?;
                if site == Site::Shared {
                    out.hint("a claim has its worktree show its lease; people run once, in their clone: onus hook install");
                }
                Ok(code)
            }
            GitVerb::Uninstall => show(out, site, &hook::uninstall(repo, site, &program()?)?),
            GitVerb::Status => {
                let hooks = hook::status(repo, site, &program()?)?;
                let code = show(out, site, &hooks)?;
                if hooks.iter().any(|hook| hook.state != HookState::Current) {
                    out.hint("onus hook install");
                }
                Ok(code)
            }
        }
    }
}

/// Puts the hooks in place, and notes what they need to know: the store, and whose clone it is. A shared repository becomes
/// the main of record.
fn install(world: &World, repo: &Repo, site: Site) -> Result<Vec<Installed>, Refusal> {
    // Hooks that ask a store which is not there would refuse everything.
    let mut store = world.open()?;
    let hooks = hook::install(repo, site, &program()?, Some(&world.location.public_url()))?;
    // A shared repository asks for itself: over a connection nobody's environment arrives.
    world.keep_store()?;
    if site == Site::Work {
        let person = person(world, &mut store)?;
        if let Some(person) = &person {
            hook::keep_person(repo, person)?;
        }
        if let Some(person) = &person {
            keep_push_token(world, &mut store, repo, person)?;
        }
    } else if let (Some(person), Some(named)) = (person(world, &mut store)?, store.shared_here()?) {
        // What people push to is what counts from now on, for every clone of the store.
        store.name_main_of_record(Some(&person), &named)?;
    }
    Ok(hooks)
}

/// Where pushes are asked about, a person's clone shows who they are. Not in a workstation: there a lease does.
pub(super) fn keep_push_token(
    world: &World,
    store: &mut Store,
    repo: &Repo,
    person: &Handle,
) -> Result<(), Refusal> {
    let is_own = repo.git_dir == repo.common_dir;
    if !is_own || push_option::person(repo)?.is_some() || !asks_for_token(store, repo)? {
        return Ok(());
    }
    let request = world.another_request()?;
    let asker = Asker { actor: Some(person), request: Some(&request), shown: None };
    let issued = store.issue_token(asker, &TokenOrder::push(person.clone()))?;
    push_option::keep_person(repo, &issued.secret)
}

/// The person who runs this, if the store knows them.
fn person(world: &World, store: &mut Store) -> Result<Option<Handle>, Refusal> {
    let handle = match &world.actor {
        Some(actor) => actor.clone(),
        None => super::init::person(world)?,
    };
    let workers = store.workers(None)?.workers;
    let is_person = |worker: &WorkerView| worker.handle == handle && worker.kind == Kind::Human;
    Ok(workers.iter().any(is_person).then_some(handle))
}

pub(super) fn program() -> Result<PathBuf, Refusal> {
    std::env::current_exe().map_err(|error| Refusal::new(Code::Internal, error.to_string()))
}

fn show(out: &Output, site: Site, hooks: &[Installed]) -> Result<ExitCode, Refusal> {
    let view = HooksView {
        site: match site {
            Site::Work => "work",
            Site::Shared => "shared",
        },
        hooks: hooks
            .iter()
            .map(|hook| HookView {
                name: hook.name,
                path: hook.path.display().to_string(),
                state: hook.state.name(),
                before: hook.before.as_ref().map(|before| before.display().to_string()),
            })
            .collect(),
    };
    out.show(&view, |view| {
        let mut text = String::new();
        for hook in &view.hooks {
            let after = hook.before.as_ref().map_or("", |_| ", after the one that was there before");
            text.push_str(&format!("{}: {}{after}\n", hook.name, hook.state));
        }
        text
    })
}

fn site(place: &Place) -> Result<(&Repo, Site), Refusal> {
    let repo = place.repo.as_ref();
    let repo = repo.ok_or_else(|| Refusal::invalid("hooks need a git repository").hint("git init"))?;
    Ok((repo, if repo.root.is_some() { Site::Work } else { Site::Shared }))
}

/// What git asks. Anything that goes wrong here is a refusal: a guard that fails open is none.
pub(super) fn run(name: &OsStr, args: &[OsString]) -> Result<ExitCode, Refusal> {
    let name = name.to_string_lossy();
    let mut moving = Vec::new();
    if name == "reference-transaction" {
        if args.first().is_none_or(|state| state != "prepared") {
            return Ok(ExitCode::SUCCESS);
        }
        // Asked before the store is: git's housekeeping goes on where nobody can be asked.
        moving = transaction(&repository::here()?)?;
        if moving.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    asked(&World::find(&cli::global_of_environment()?)?, &name, args, &moving)
}

/// What a transaction of git moves that is guarded here.
fn transaction(place: &Place) -> Result<Vec<Update>, Refusal> {
    let (repo, site) = site(place)?;
    let updates = hook::updates(&input()?)?;
    let updates = match site {
        Site::Shared => guarded(updates, &["refs/heads/", "refs/tags/"]),
        Site::Work => {
            // With the branch it is on it goes where that goes.
            let is_detached = !updates.iter().any(|update| update.refname.starts_with("refs/heads/"));
            let own = if is_detached { "HEAD" } else { "refs/heads/" };
            guarded(updates, &["refs/heads/", "refs/onus/", own])
        }
    };
    hook::moving(repo, updates)
}

fn asked(world: &World, name: &str, args: &[OsString], moving: &[Update]) -> Result<ExitCode, Refusal> {
    let (repo, site) = site(&world.place)?;
    let shown = environment_token()?;
    match (name, site) {
        ("reference-transaction", Site::Work) => {
            at_desk(world, repo, shown.as_ref(), |store, desk| store.guard(desk, moving))?;
        }
        ("reference-transaction", Site::Shared) => {
            let shown = hook::parent(repo)?.shown()?;
            let history = History::at(&repo.common_dir);
            pushed(world, (&shown, &[]), PushStage::Moving, &history, moving)?;
        }
        ("pre-receive", Site::Shared) => {
            let shown = PushOptions::of_push(|name| std::env::var(name).ok())?;
            let adopted = hook::pushed_adopted(|name| std::env::var(name).ok())?;
            let incoming = Incoming::of_process();
            let history = History::receiving(&repo.common_dir, incoming.as_ref());
            let updates = hook::updates(&input()?)?;
            pushed(world, (&shown, &adopted), PushStage::Asked, &history, &updates)?;
            if shown.has_token() {
                hook::parent(repo)?.leave(&shown)?;
            }
        }
        ("pre-push", Site::Work) => {
            let updates: Vec<Update> = hook::pushed(&input()?)?.into_iter().map(|line| line.to).collect();
            let updates = guarded(updates, &["refs/heads/"]);
            at_desk(world, repo, shown.as_ref(), |store, desk| store.guard_before_push(desk, &updates))?;
        }
        ("prepare-commit-msg", Site::Work) => {
            let file = args.first().map(PathBuf::from);
            let file = file.ok_or_else(|| Refusal::invalid("git named no message file"))?;
            at_desk(world, repo, shown.as_ref(), |store, desk| sign(store, desk, repo, &file))?;
        }
        _ => {
            return Err(Refusal::invalid(format!("{} is no hook of ours here", onus_core::id::shown(name))));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sign(store: &mut Store, desk: &Desk<'_>, repo: &Repo, file: &Path) -> Result<(), Refusal> {
    let Some(trailers) = store.trailers(desk)? else {
        return Ok(());
    };
    let trailers: Vec<(&str, &str)> = trailers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let root = repo.root.as_deref().unwrap_or(&repo.git_dir);
    hook::sign(root, &root.join(file), &trailers)
}

fn at_desk(
    world: &World,
    repo: &Repo,
    token: Option<&Token>,
    ask: impl FnOnce(&mut Store, &Desk<'_>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let (leases, owner) = (world.place.lease_dir(), world.place.person()?);
    let mut store = world.open()?;
    let variables = client_variables();
    let client = guard::client(&store.settings.git.clients, variables.iter().map(String::as_str));
    let desk = Desk {
        root: repo.root.as_deref(),
        leases: leases.as_deref(),
        token,
        worker: world.actor.as_ref(),
        owner: owner.as_ref(),
        client,
    };
    ask(&mut store, &desk)
}

fn guarded(updates: Vec<Update>, prefixes: &[&str]) -> Vec<Update> {
    let is_guarded = |update: &Update| prefixes.iter().any(|prefix| update.refname.starts_with(prefix));
    updates.into_iter().filter(is_guarded).collect()
}

/// What a shared repository asks about a push, by what was pushed along.
fn pushed(
    world: &World,
    (shown, adopted): (&PushOptions, &[CommitId]),
    stage: PushStage,
    history: &History<'_>,
    updates: &[Update],
) -> Result<(), Refusal> {
    let wrong = |error: String| Refusal::invalid(error).hint("git push -o onus=TOKEN");
    let lease = shown.lease.as_deref().map(|text| text.parse::<Token>().map_err(wrong)).transpose()?;
    let person = shown.person.as_deref().map(|text| text.parse::<TokenText>().map_err(wrong)).transpose()?;
    // What the environment says of who pushes; whose token the store was opened with is another matter.
    let worker = cli::global_of_environment()?.actor;
    let mut store = world.open()?;
    let variables = client_variables();
    let client = guard::client(&store.settings.git.clients, variables.iter().map(String::as_str));
    let pusher = Pusher {
        lease: lease.as_ref(),
        person: person.as_ref(),
        worker: worker.as_ref(),
        named: shown.name.as_ref(),
        naming: shown.naming,
        client,
        adopted,
    };
    store.guard_push(&pusher, stage, history, updates)
}

fn input() -> Result<String, Refusal> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(INPUT_MAX).read_to_string(&mut text);
    read.map(|_| text).map_err(|error| Refusal::invalid(format!("cannot read what git says: {error}")))
}
