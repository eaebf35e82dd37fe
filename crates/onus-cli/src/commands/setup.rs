//! `onus setup`

use super::word;
use crate::cli::handle;
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_host::setup::{Client, Edit, Told, Way, edits};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// Write the settings of agents' clients: the MCP server, hooks, the block in AGENTS.md
///
/// Running it again changes nothing; --remove takes out exactly what it put in.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// claude, codex, cursor, gemini or agents; several at once
    #[arg(value_name = "CLIENT", required = true,
          value_parser = |t: &str| word("a client", t, Client::parse, Client::NAMES))]
    clients: Vec<Client>,

    /// In whose name the client's server works; default: ONUS_AS of the client's own environment
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
        let root = world.place.repo.as_ref().and_then(|repo| repo.root.as_deref());
        let root = root.unwrap_or(&world.place.cwd);
        let told = Told { worker: self.worker.clone() };
        let way = if self.remove { Way::Out } else { Way::In };
        // All of them are understood before the first one is written.
        let mut all = Vec::new();
        for client in &self.clients {
            all.extend(edits(root, *client, &told, way)?);
        }
        if !self.print {
            all.iter().try_for_each(Edit::apply)?;
        }
        let view = SetupView { files: all.into_iter().map(|edit| self.file(root, edit)).collect() };
        out.show(&view, |view| {
            let line = |file: &FileView| match &file.text {
                Some(text) => format!("{}:\n{text}\n", file.path),
                None => format!("{}: {}\n", file.path, file.change),
            };
            view.files.iter().map(line).collect()
        })
    }

    fn file(&self, root: &Path, edit: Edit) -> FileView {
        let change = edit.change();
        let path = edit.path.strip_prefix(root).unwrap_or(&edit.path).display().to_string();
        FileView { path, change, text: edit.after.filter(|_| self.print) }
    }
}
