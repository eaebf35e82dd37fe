//! `onus setup`

use super::word;
use crate::cli::handle;
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_host::repository::Repo;
use onus_host::setup::{Client, Edit, Way, clients_of, edits, excluded, worker};
use onus_host::worktree;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write the settings of agents' clients: the MCP server, hooks, the block in AGENTS.md
///
/// For the clone and all its working trees, in files that git does not see; `onus workstation add` does it for a new one. Running it
/// again changes nothing; --remove takes out exactly what it put in.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// claude, codex, cursor, gemini or agents; several at once
    #[arg(value_name = "CLIENT", required = true,
          value_parser = |t: &str| word("a client", t, Client::parse, Client::NAMES))]
    clients: Vec<Client>,

    /// For whom the client works in this working tree; ONUS_AS of its environment counts more
    #[arg(long, value_name = "@HANDLE", value_parser = handle)]
    worker: Option<Handle>,

    /// Take it out again
    #[arg(long)]
    remove: bool,

    /// Show what the files would hold, and write nothing
    #[arg(long)]
    print: bool,
}

#[derive(Debug, Serialize)]
struct SetupView {
    files: Vec<FileView>,
}

#[derive(Debug, Serialize)]
struct FileView {
    path: String,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Setup {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let way = if self.remove { Way::Out } else { Way::In };
        let trees = trees(world)?;
        // All of them are understood before the first one is written.
        let mut all = Vec::new();
        for (at, root) in trees.iter().enumerate() {
            // AGENTS.md is in the repository: a linked working tree gets it by its branch.
            let is_main = |client: &&Client| at == 0 || **client != Client::Agents;
            all.extend(of_tree(root, self.clients.iter().filter(is_main), way)?);
        }
        if let Some(repo) = &world.place.repo {
            all.extend(
                Some(excluded(&repo.common_dir, &self.clients, way)?)
                    .filter(|edit| edit.change() != "unchanged"),
            );
        }
        if !self.print {
            all.iter().try_for_each(Edit::apply)?;
            self.keep_worker(world)?;
        }
        let root = trees.first().unwrap_or(&world.place.cwd);
        let view = SetupView { files: all.into_iter().map(|edit| self.file(root, edit)).collect() };
        let code = out.show(&view, |view| {
            let line = |file: &FileView| match &file.text {
                Some(text) => format!("{}:\n{text}\n", file.path),
                None => format!("{}: {}\n", file.path, file.change),
            };
            view.files.iter().map(line).collect()
        })?;
        for client in self.clients.iter().filter(|_| !self.remove) {
            trust(*client).into_iter().for_each(|text| out.hint(text));
        }
        Ok(code)
    }

    fn keep_worker(&self, world: &World) -> Result<(), Refusal> {
        match (&world.place.repo, &self.worker) {
            (Some(repo), Some(_)) if !self.remove => worker::keep(&repo.git_dir, self.worker.as_ref()),
            (Some(repo), _) if self.remove => worker::keep(&repo.git_dir, None),
            (None, Some(_)) => {
                Err(Refusal::invalid("--worker needs a git repository").hint("export ONUS_AS=@HANDLE"))
            }
            _ => Ok(()),
        }
    }

    fn file(&self, root: &Path, edit: Edit) -> FileView {
        let change = edit.change();
        let path = edit.path.strip_prefix(root).unwrap_or(&edit.path).display().to_string();
        FileView { path, change, text: edit.after.filter(|_| self.print) }
    }
}

/// The working trees of this clone, the main one first; outside git this directory.
fn trees(world: &World) -> Result<Vec<PathBuf>, Refusal> {
    let Some(repo) = &world.place.repo else {
        return Ok(vec![world.place.cwd.clone()]);
    };
    let found = worktree::list(repo)?.into_iter();
    Ok(found.filter(|tree| !tree.is_bare && tree.prunable.is_none()).map(|tree| tree.path).collect())
}

fn of_tree<'a>(
    root: &Path,
    clients: impl IntoIterator<Item = &'a Client>,
    way: Way,
) -> Result<Vec<Edit>, Refusal> {
    let mut all = Vec::new();
    for client in clients {
        all.extend(edits(root, *client, way)?);
    }
    Ok(all)
}

/// A new working tree is set up as the main checkout is.
pub(super) fn follow(repo: &Repo, root: &Path) -> Result<(), Refusal> {
    let Some(main) = worktree::list(repo)?.into_iter().next().filter(|tree| !tree.is_bare) else {
        return Ok(());
    };
    let clients = clients_of(&main.path);
    if main.path == root || clients.is_empty() {
        return Ok(());
    }
    excluded(&repo.common_dir, &clients, Way::In)?.apply()?;
    of_tree(root, &clients, Way::In)?.iter().try_for_each(Edit::apply)
}

/// What a client wants before it reads settings of a folder.
fn trust(client: Client) -> Option<&'static str> {
    match client {
        Client::Codex => Some(
            "Codex reads .codex/ only in folders that it trusts, and runs hooks only once they are trusted: start `codex` once in the main checkout and in each working tree, trust the folder, then the hooks (/hooks)",
        ),
        Client::Gemini => Some(
            "Gemini CLI reads .gemini/settings.json only in folders that it trusts: start `gemini` once in each working tree and trust it (with --skip-trust alone it runs no hooks)",
        ),
        Client::Claude | Client::Cursor | Client::Agents => None,
    }
}
