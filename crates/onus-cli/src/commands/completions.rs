//! `onus completions`

use crate::cli;
use crate::output::Output;
use clap::Args;
use clap_complete::Shell;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Print completions for a shell
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self, out: &Output) -> Result<ExitCode, Refusal> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut cli::tree(), "onus", &mut text);
        out.print(&String::from_utf8_lossy(&text));
        Ok(ExitCode::SUCCESS)
    }
}
