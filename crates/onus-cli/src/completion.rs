//! What a shell asks while somebody types: verbs and flags from the command tree; tasks, workers and workstations from the store.

use crate::cli;
use crate::context::{Store, World};
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use onus_core::refusal::Refusal;
use onus_store::read::queue::{Filter, Which};
use std::ffi::OsStr;
use std::process::ExitCode;

/// A shell sets it to its own name when it asks; `onus completions SHELL` writes it into what it prints.
const ASKED_BY: &str = "ONUS_COMPLETE";

/// More than this nobody reads; who types on gets fewer.
const MOST: i64 = 200;

/// Answers a shell, if one asks.
pub(crate) fn answer() -> Option<ExitCode> {
    std::env::var_os(ASKED_BY)?;
    let asked = CompleteEnv::with_factory(|| completed(cli::tree())).var(ASKED_BY).bin("onus");
    match asked.try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        // A shell that asks for what is not there completes nothing.
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The lines that a shell reads once, so that it asks.
pub(crate) fn registration(shell: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let shells = Shells::builtins();
    let written = shells.completer(shell)?.write_registration(ASKED_BY, "onus", "onus", "onus", &mut text);
    written.ok().map(|()| text)
}

/// The tree, in which arguments know what to offer: they are told apart by the name of their value.
fn completed(tree: Command) -> Command {
    tree.mut_args(offering).mut_subcommands(completed)
}

fn offering(arg: Arg) -> Arg {
    let offers: fn(&OsStr) -> Vec<CompletionCandidate> = match value_name(&arg).as_str() {
        "TASK" | "DEPENDS_ON" => tasks,
        "@HANDLE" => workers,
        "WORKSTATION" => workstations,
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(offers))
}

fn value_name(arg: &Arg) -> String {
    arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string).unwrap_or_default()
}

fn tasks(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, |store| {
        let found = store.list(Which::Active, &Filter::default(), None, MOST)?;
        Ok(found.tasks.into_iter().map(|task| (task.id.to_string(), task.title)).collect())
    })
}

fn workers(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, |store| {
        let found = store.workers(None)?.workers;
        Ok(found.into_iter().map(|one| (one.handle.to_string(), one.kind.name().to_owned())).collect())
    })
}

fn workstations(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, |store| {
        let found = store.workstations(None)?.workstations;
        Ok(found.into_iter().map(|one| (one.name.to_string(), one.state.name().to_owned())).collect())
    })
}

/// What begins like what was typed. Whoever types has no use for a refusal: where nothing can be asked, nothing is offered.
fn offered(
    typed: &OsStr,
    ask: impl FnOnce(&mut Store) -> Result<Vec<(String, String)>, Refusal>,
) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let found = cli::global_of_environment().and_then(|global| ask(&mut World::find(&global)?.open()?));
    let fits = |word: &str| word.to_lowercase().starts_with(&typed.to_lowercase());
    let words = found.unwrap_or_default().into_iter().filter(|(word, _)| fits(word));
    words.map(|(word, help)| CompletionCandidate::new(word).help(Some(help.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_its_lines() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let text = String::from_utf8(registration(shell).unwrap()).unwrap();
            assert!(text.contains(ASKED_BY), "{shell}: {text}");
        }
        assert!(registration("nonsense").is_none());
    }

    /// Whoever adds an argument that names a task, a worker or a place gets its completion by its value's name.
    #[test]
    fn arguments_that_name_something_are_completed() {
        let tree = completed(cli::tree());
        let of = |verb: &str, id: &str| {
            let verb = tree.find_subcommand(verb).unwrap();
            let arg = verb.get_arguments().find(|arg| arg.get_id() == id).unwrap();
            arg.get::<ArgValueCompleter>().is_some()
        };
        assert!(of("claim", "task") && of("show", "task") && of("claim", "workstation"));
        assert!(of("list", "assignee") && !of("add", "title"));
    }
}
