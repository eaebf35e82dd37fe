//! `onus consistency`

use super::file_error;
use crate::context::{Store, World};
use crate::output::{Format, Output};
use crate::progress::Bar;
use clap::Args;
use onus_app::consistency::{ConsistencyView, consistency_with};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_core::text::counted;
use onus_host::settings;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A task with its assignments is a few hundred bytes.
const QUEUE_MAX: u64 = 1024 * 1024 * 1024;

/// Compare the queue with git: commits, branches, worktrees, hooks. Fit for CI; changes nothing
///
/// Exit code 5 with findings; warnings alone are no reason to fail. In a clone without a store: --store URL, or --queue FILE.
#[derive(Debug, Args)]
pub(crate) struct Consistency {
    /// Look only at commits of the main branch that this one has not
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,

    /// Ask this file instead of a store: what `onus export --format consistency` wrote; - is standard input
    #[arg(long, value_name = "FILE|-")]
    queue: Option<PathBuf>,

    /// Print only the next steps, one per line
    #[arg(long)]
    fix_hints: bool,
}

impl Consistency {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        // Without a path of our own the hooks cannot be ours either.
        let onus = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("onus"));
        let (since, bar) = (self.since.as_deref(), &mut Bar::new(out));
        let view = match &self.queue {
            None => self.open(world)?.consistency(since, &onus, bar)?,
            Some(file) => {
                let settings = settings::load(&world.place.settings_file())?;
                consistency_with(&world.place, &settings, &read(file)?, since, bar)?
            }
        };
        for told in view.warnings.iter().filter(|_| out.format == Format::Human) {
            out.warn(&format!("{}; {}", told.detail, told.hint));
        }
        match view.refusal() {
            None => out.show(&view, text),
            Some(refusal) if self.fix_hints && out.format == Format::Human => {
                out.print(&steps(&view));
                Ok(ExitCode::from(refusal.code.exit_code()))
            }
            Some(refusal) => Err(refusal),
        }
    }
}

impl Consistency {
    fn open(&self, world: &World) -> Result<Store, Refusal> {
        world.open().map_err(|refusal| match (refusal.code, world.has_store()) {
            (Code::StoreUnavailable, false) => refusal.hint(
                "onus consistency --store https://SERVER, or --queue FILE (made by: onus export --format consistency FILE)",
            ),
            _ => refusal,
        })
    }
}

fn read(file: &Path) -> Result<String, Refusal> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(QUEUE_MAX).read_to_string(&mut text)
    } else {
        File::open(file).and_then(|file| file.take(QUEUE_MAX).read_to_string(&mut text))
    };
    read.map(|_| text).map_err(|error| file_error(file, &error))
}

fn text(view: &ConsistencyView) -> String {
    let counts = &view.counts;
    let (commits, places) = (counted(counts.commits, "commit"), counted(counts.workstations, "workstation"));
    format!("{commits} and {places} agree with the queue\n")
}

/// What several findings ask for is done once.
fn steps(view: &ConsistencyView) -> String {
    let mut seen = BTreeSet::new();
    let new = view.findings.iter().filter(|found| seen.insert(&found.hint));
    new.map(|found| format!("{}\n", found.hint)).collect()
}
