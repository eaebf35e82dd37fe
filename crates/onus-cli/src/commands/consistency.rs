//! `onus consistency`

use crate::context::World;
use crate::output::{Format, Output};
use crate::progress::Bar;
use clap::Args;
use onus_app::consistency::ConsistencyView;
use onus_core::refusal::Refusal;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare the queue with git: commits, branches, worktrees, hooks. Fit for CI; changes nothing
#[derive(Debug, Args)]
pub(crate) struct Consistency {
    /// Look only at commits of the main branch that this one has not
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,

    /// Print only the next steps, one per line
    #[arg(long)]
    fix_hints: bool,
}

impl Consistency {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        // Without a path of our own the hooks cannot be ours either.
        let onus = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("onus"));
        let view = world.open()?.consistency(self.since.as_deref(), &onus, &mut Bar::new(out))?;
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

fn text(view: &ConsistencyView) -> String {
    let counts = &view.counts;
    format!("{} commits and {} workstations agree with the queue\n", counts.commits, counts.workstations)
}

/// What several findings ask for is done once.
fn steps(view: &ConsistencyView) -> String {
    let mut seen = BTreeSet::new();
    let new = view.findings.iter().filter(|found| seen.insert(&found.hint));
    new.map(|found| format!("{}\n", found.hint)).collect()
}
