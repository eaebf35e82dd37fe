//! The `onus` command: parse, submit, render. Rules live in onus-core.

mod cli;
mod commands;
mod completion;
mod confirm;
mod context;
mod examples;
mod home;
mod output;
mod progress;
mod remote;
mod render;
mod shutdown;

use std::process::ExitCode;

fn main() -> ExitCode {
    output::quiet_panics();
    onus_host::process::keep_secrets();
    if let Some(code) = commands::without_tree() {
        return code;
    }
    match cli::parse(std::env::args_os()) {
        Ok(cli) => {
            let mut out = output::Output::new(&cli.global);
            match commands::run(&cli, &mut out) {
                Ok(code) => code,
                Err(refusal) => out.refuse(&refusal.or_usage(|| cli::usage(std::env::args_os().skip(1)))),
            }
        }
        Err(parsed) => parsed.answer(),
    }
}
