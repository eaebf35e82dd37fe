//! `onus completions`

use crate::completion;
use crate::output::Output;
use clap::Args;
use clap_complete::Shell;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Print what a shell needs to complete verbs, flags, tasks, workers and workstations
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self, out: &Output) -> Result<ExitCode, Refusal> {
        let text = completion::registration(&self.shell.to_string())
            .ok_or_else(|| Refusal::new(Code::Internal, format!("no completions for {}", self.shell)))?;
        out.print(&String::from_utf8_lossy(&text));
        Ok(ExitCode::SUCCESS)
    }
}
