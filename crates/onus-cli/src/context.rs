//! Where a call stands: repository, store, settings, identity, lease.

use crate::cli::Global;
use crate::remote;
use onus_app::idempotent_admin::Asker;
use onus_app::{Onus, Sight};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::facts::Caller;
use onus_core::guard;
use onus_core::id::{Handle, RequestId, TaskId, WorkstationName};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_host::env::Env;
use onus_host::push_option::For;
use onus_host::repository::{Place, Repo};
use onus_host::{clock, filesystem, hook, lease_file, push_option, repository, settings, setup};
use onus_store::location::Location;
use onus_store::port::Driver;
use onus_store::postgres::Address;
use std::path::{Path, PathBuf};

pub(crate) use onus_app::Onus as Store;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) place: Place,
    pub(crate) location: Location,
    pub(crate) actor: Option<Handle>,
    /// The store was named by this call, not found.
    pub(crate) is_store_named: bool,
    request: Option<RequestId>,
}

impl World {
    pub(crate) fn find(global: &Global) -> Result<World, Refusal> {
        let place = repository::here()?;
        let configured = match &global.store {
            Some(_) => None,
            None => place.configured_store()?,
        };
        let location = match global.store.as_ref().or(configured.as_ref()) {
            None => Location::File(place.default_store()),
            Some(url) => Location::parse(url, &place.cwd).map_err(|why| {
                Refusal::invalid(why)
                    .hint("--store sqlite:PATH, postgres://USER@HOST/DATABASE or https://SERVER")
            })?,
        };
        let mut world = World {
            actor: match &global.actor {
                Some(actor) => Some(actor.clone()),
                None => set_up_for(&place, IsClient::AsItsMarkSays)?,
            },
            place,
            location,
            is_store_named: global.store.is_some(),
            request: global.request_id.clone(),
        };
        // Whom the token speaks for is the server's to say; whoever said it saves the question.
        if let (Location::Server(_), None) = (&world.location, &world.actor) {
            world.actor = match world.open()?.caller(None)? {
                Caller::Registered(worker) => Some(worker.handle),
                Caller::Anonymous | Caller::Unregistered(_) => None,
            };
        }
        Ok(world)
    }

    /// The same where only a coding client calls.
    pub(crate) fn of_client(mut self) -> Result<World, Refusal> {
        if self.actor.is_none() {
            self.actor = set_up_for(&self.place, IsClient::Yes)?;
        }
        Ok(self)
    }

    /// Lets later calls in this clone find the store that this one named. Its address is no secret: a password is left out.
    pub(crate) fn keep_store(&self) -> Result<(), Refusal> {
        let Some(repo) = self.place.repo.as_ref().filter(|_| self.is_store_named) else {
            return Ok(());
        };
        let token_file = std::env::var_os("ONUS_TOKEN_FILE").filter(|path| !path.is_empty());
        let token_file = token_file.map(|path| self.place.cwd.join(path));
        let is_server = matches!(self.location, Location::Server(_));
        hook::keep_store(repo, &self.location.public_url(), token_file.as_deref().filter(|_| is_server))
    }

    /// Who calls, where it has to be known.
    pub(crate) fn identity(&self) -> Result<&Handle, Refusal> {
        self.actor.as_ref().ok_or_else(|| {
            Refusal::new(Code::IdentityRequired, "who are you?").hint("pass --as @handle or set ONUS_AS")
        })
    }

    /// Opens the store that is there.
    pub(crate) fn open(&self) -> Result<Store, Refusal> {
        self.check_file_system()?;
        self.with(match &self.location {
            Location::Server(url) => remote::open(url, self.actor.as_ref(), &self.place)?,
            near => near.open(clock::now)?,
        })
    }

    /// Opens the store for as long as a server runs, for callers whose workstations are elsewhere.
    pub(crate) fn open_for_others(&self) -> Result<Store, Refusal> {
        self.check_file_system()?;
        Ok(Onus { sight: Sight::Store, ..self.with(self.location.open_to_stay(clock::now)?)? })
    }

    /// Opens the store, making it first where there is none.
    pub(crate) fn create(&self) -> Result<Store, Refusal> {
        self.check_file_system()?;
        self.with(self.location.create(clock::now)?)
    }

    fn with(&self, store: Box<dyn Driver>) -> Result<Store, Refusal> {
        let file = self.place.settings_file();
        let settings = match &self.place.repo {
            // What people push to follows what they have committed, unless its host says something else.
            Some(repo) if repo.root.is_none() && !file.exists() => settings::committed(repo)?,
            _ => settings::load(&file)?,
        };
        let (path, place) = (self.beside(), self.place.clone());
        Ok(Onus { store, settings, path, place, sight: Sight::Workstations, bearer: None })
    }

    /// The store's file. What goes with a database lies where the repository's own store would: its anchor is the
    /// repository's.
    fn beside(&self) -> PathBuf {
        match &self.location {
            Location::File(path) => path.clone(),
            Location::Database(_) | Location::Server(_) => self.place.default_store(),
        }
    }

    /// The database, where the store is in one.
    pub(crate) fn database(&self) -> Option<&Address> {
        match &self.location {
            Location::File(_) | Location::Server(_) => None,
            Location::Database(address) => Some(address),
        }
    }

    /// Whether there is a store to ask; a database is asked, and says so itself.
    pub(crate) fn has_store(&self) -> bool {
        match &self.location {
            Location::File(path) => path.exists(),
            Location::Database(_) | Location::Server(_) => true,
        }
    }

    /// SQLite's log needs memory that all processes share, which no network file system gives.
    fn check_file_system(&self) -> Result<(), Refusal> {
        let Location::File(path) = &self.location else {
            return Ok(());
        };
        match filesystem::network_file_system(path) {
            Some(kind) if std::env::var_os("ONUS_UNSAFE_FILE_SYSTEM").is_none() => Err(Refusal::new(
                Code::StoreUnavailable,
                format!("{} lies on {kind}", path.display()),
            )
            .hint(
                "put the store on a local disk: --store sqlite:PATH (ONUS_UNSAFE_FILE_SYSTEM=1 overrides)",
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn request(&self) -> Result<RequestId, Refusal> {
        self.request.clone().map_or_else(|| self.another_request(), Ok)
    }

    /// Who asks for a change of the workspace, and under which request id.
    pub(crate) fn asker<'a>(&'a self, request: &'a RequestId) -> Asker<'a> {
        Asker { actor: self.actor.as_ref(), request: Some(request), shown: None }
    }

    /// For a call that makes many requests: one name cannot stand for all of them.
    pub(crate) fn refuse_request_id(&self) -> Result<(), Refusal> {
        match &self.request {
            None => Ok(()),
            Some(_) => Err(Refusal::invalid("this call makes many requests, each under an id of its own")
                .hint("leave --request-id out: repeating the call is safe")),
        }
    }

    /// A request of our own beside the one that was asked for.
    pub(crate) fn another_request(&self) -> Result<RequestId, Refusal> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
        let id = uuid::Builder::from_random_bytes(random).into_uuid().to_string();
        id.parse().map_err(|e: String| Refusal::new(Code::Internal, e))
    }

    pub(crate) fn envelope(
        &self,
        task: Option<TaskId>,
        token: Option<Token>,
        command: Command,
    ) -> Result<Envelope, Refusal> {
        Ok(Envelope {
            request: self.request()?,
            actor: self.actor.clone(),
            token,
            task,
            project: None,
            base: None,
            command,
        })
    }

    /// The holder's token: given, from the environment, or left by the claim in the workstation.
    pub(crate) fn token(
        &self,
        store: &mut Store,
        task: &TaskId,
        given: Option<&str>,
    ) -> Result<Option<Token>, Refusal> {
        if let Some(text) = given {
            return text.parse().map(Some).map_err(|e: String| Refusal::invalid(e).hint("--lease TOKEN"));
        }
        if let Some(text) = environment_lease(task) {
            return text.parse().map(Some).map_err(|e: String| Refusal::invalid(e).hint("check ONUS_LEASE"));
        }
        let Some(worker) = &self.actor else {
            return Ok(None);
        };
        let mut found = lease_file::load(&self.own_lease_dir(), task, worker)?;
        if found.is_none()
            && let Some(directory) = store.holding_directory(task, worker)?
        {
            found = lease_file::load(&self.lease_dir(Some(&directory)), task, worker)?;
        }
        found.map(|text| text.parse().map_err(Refusal::invalid)).transpose()
    }

    /// Where this place keeps its leases: in the worktree's private git directory, and outside git beside the store.
    pub(crate) fn own_lease_dir(&self) -> PathBuf {
        self.place.lease_dir().unwrap_or_else(|| self.beside().with_file_name("lease"))
    }

    /// Where the lease file of a task held in `directory` lies.
    pub(crate) fn lease_dir(&self, directory: Option<&Path>) -> PathBuf {
        let there = directory.and_then(|directory| repository::lease_dir_of(directory).ok().flatten());
        there.unwrap_or_else(|| self.own_lease_dir())
    }

    /// Forgets the token of a task that the caller no longer holds. That there is none is fine.
    pub(crate) fn forget_lease(&self, task: &TaskId, directory: Option<&Path>) {
        if let Some(worker) = &self.actor {
            drop(lease_file::remove(&self.own_lease_dir(), task, worker));
            drop(lease_file::remove(&self.lease_dir(directory), task, worker));
            self.show_no_token(directory);
        }
    }

    /// Pushes from a directory no longer show the token of a task that is over.
    pub(crate) fn show_no_token(&self, directory: Option<&Path>) {
        let there = directory.and_then(|directory| repository::find_with(directory, &Env::default()).ok());
        if let Some(repo) = there.and_then(|place| place.repo) {
            drop(push_option::forget(&repo));
        }
    }

    /// Pushes from the holder's own directory show its token by themselves, where the other side asks for one.
    fn show_token(
        &self,
        store: &mut Store,
        (token, holder): (&Token, &Handle),
        directory: Option<&Path>,
    ) -> Result<(), Refusal> {
        let Some(directory) = directory else { return Ok(()) };
        let Some(repo) = repository::find_with(directory, &Env::default())?.repo else { return Ok(()) };
        if !asks_for_token(store, &repo)? {
            return Ok(());
        }
        // A repository of this machine sees the pusher's environment. Who is known by a token, or by what `setup` kept, says
        // nothing there.
        let is_told = push_option::is_asked_for(&repo)?
            && !matches!(self.location, Location::Server(_))
            && setup::worker::kept(&repo.git_dir).is_none();
        let whose = if is_told { For::Environment } else { For::Holder(holder) };
        push_option::keep(&repo, &token.to_string(), whose)
    }

    /// Leaves the token where the holder's next command finds it. The holder need not be who asked for the grant.
    pub(crate) fn keep_lease(
        &self,
        store: &mut Store,
        task: &Task,
        token: &Token,
        directory: Option<&Path>,
    ) -> Result<(), Refusal> {
        let Some(held) = task.assignment() else {
            return Ok(());
        };
        let leases = self.lease_dir(directory);
        self.show_token(store, (token, &held.assignee), directory)?;
        lease_file::save(&leases, &task.id, &held.assignee, &token.to_string())?;
        // The task was given to somebody else at a workstation without a directory: commits made here are not theirs.
        if directory.is_none() && self.actor.as_ref() != Some(&held.assignee) {
            return Ok(());
        }
        lease_file::save_trailers(&leases, &guard::trailers(&task.id, held))
    }

    /// The store knows from now on that this clone uses it. Asked once for a clone and a store: a merge asks again.
    pub(crate) fn join(&self, store: &mut Store) {
        let Some(repo) = &self.place.repo else { return };
        let known = format!("{}\n{}\n", self.location.shown(), repo.common_dir.display());
        let file = repo.common_dir.join("onus/joined");
        if std::fs::read_to_string(&file).is_ok_and(|text| text == known) {
            return;
        }
        if store.join_clone(self.actor.as_ref()).is_ok() {
            drop(std::fs::write(file, known));
        }
    }

    /// The workstation whose directory contains this one.
    pub(crate) fn here(&self, store: &mut Store) -> Result<Option<WorkstationName>, Refusal> {
        Ok(store.workstation_at(&self.place.cwd)?.map(|(name, _)| name))
    }
}

/// Whether a coding client makes the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsClient {
    Yes,
    /// By its variables (`git.clients`).
    AsItsMarkSays,
}

/// For whom `onus setup --worker` says that a coding client works here. A person who stands here is nobody's agent.
fn set_up_for(place: &Place, is_client: IsClient) -> Result<Option<Handle>, Refusal> {
    let Some(worker) = place.repo.as_ref().and_then(|repo| setup::worker::kept(&repo.git_dir)) else {
        return Ok(None);
    };
    if is_client == IsClient::Yes {
        return Ok(Some(worker));
    }
    let settings = settings::load(&place.settings_file())?;
    let variables = client_variables();
    let mark = guard::client(&settings.git.clients, variables.iter().map(String::as_str));
    Ok(mark.is_some().then_some(worker))
}

/// The variables that are set to something.
pub(crate) fn client_variables() -> Vec<String> {
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    set.filter_map(|(name, _)| name.into_string().ok()).collect()
}

/// Whether whatever this clone pushes to asks for a token.
pub(crate) fn asks_for_token(store: &mut Store, repo: &Repo) -> Result<bool, Refusal> {
    Ok(push_option::is_asked_for(repo)? || (repo.has_remotes()? && store.is_main_guarded()?))
}

/// The token in `ONUS_LEASE`, whichever task it is for.
pub(crate) fn environment_token() -> Result<Option<Token>, Refusal> {
    let text = std::env::var("ONUS_LEASE").ok().filter(|text| !text.is_empty());
    let token = text.map(|text| text.parse()).transpose();
    token.map_err(|error: String| Refusal::invalid(error).hint("check ONUS_LEASE"))
}

/// `ONUS_LEASE` belongs to `ONUS_TASK`, where that is set: a comment on another task is no holder's act.
fn environment_lease(task: &TaskId) -> Option<String> {
    let lease = std::env::var("ONUS_LEASE").ok().filter(|text| !text.is_empty())?;
    match std::env::var("ONUS_TASK").ok().filter(|text| !text.is_empty()) {
        Some(own) if own != task.to_string() => None,
        _ => Some(lease),
    }
}
