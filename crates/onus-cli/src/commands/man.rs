//! `onus man`

use super::file_error;
use crate::cli;
use crate::output::Output;
use clap::Args;
use onus_core::refusal::Refusal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the manual page, or write one page per verb into a directory
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to write onus.1, onus-add.1, …
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self, out: &Output) -> Result<ExitCode, Refusal> {
        match &self.dir {
            Some(dir) => {
                clap_mangen::generate_to(cli::tree(), dir).map_err(|error| file_error(dir, &error))?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(cli::tree())
                    .render(&mut page)
                    .map_err(|error| Refusal::invalid(error.to_string()))?;
                out.print(&String::from_utf8_lossy(&page));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
