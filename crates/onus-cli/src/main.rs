//! The `onus` command: parse, submit, render. Rules live in onus-core.

mod cli;
mod commands;
mod context;
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
    if cli::asks_for_version(std::env::args_os()) {
        return output::print_version();
    }
    if let Some((name, args)) = cli::asks_for_hook(std::env::args_os()) {
        return commands::run_hook(&name, &args);
    }
    if let Some(event) = cli::asks_for_agent_hook(std::env::args_os()) {
        return commands::run_agent_hook(&event);
    }
    if let Some(page) = cli::asks_for_page(std::env::args_os()) {
        return output::print_page(&page);
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
