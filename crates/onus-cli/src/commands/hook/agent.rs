//! `onus hook agent EVENT`: what an agent's client asks around its tools. The client writes one JSON object to standard
//! input; exit code 2 stops the tool, and what is on standard error reaches the model.
//!
//! It only ever stops somebody who holds a task, or lost one here: whoever works without tasks notices nothing, and neither
//! does anybody when the store cannot be asked. What must not fail open are git's own hooks.

use crate::cli;
use crate::commands::submit;
use crate::context::{Store, World};
use crate::render::error_text;
use onus_app::agent_hooks::{Holding, Seat};
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use onus_core::task::StateName;
use onus_host::lease_file;
use serde::Deserialize;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A tool's input may hold a whole file.
const INPUT_MAX: u64 = 64 * 1024 * 1024;

/// The exit code by which a client stops the tool and tells the model why.
const STOP: u8 = 2;

/// What the client says. It may say more.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    cwd: Option<PathBuf>,
    tool_name: Option<String>,
    tool_input: ToolInput,
    /// The client already went on once because of us.
    stop_hook_active: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolInput {
    file_path: Option<PathBuf>,
    notebook_path: Option<PathBuf>,
    command: Option<String>,
}

pub(crate) fn run(event: &str) -> ExitCode {
    match answer(event) {
        Ok(said) => {
            drop(std::io::stdout().write_all(said.as_bytes()));
            ExitCode::SUCCESS
        }
        Err(refusal) if stops(&refusal) => {
            drop(std::io::stderr().write_all(error_text(&refusal).as_bytes()));
            ExitCode::from(STOP)
        }
        Err(_) => ExitCode::SUCCESS,
    }
}

fn stops(refusal: &Refusal) -> bool {
    matches!(refusal.code, Code::Fenced | Code::ScopeViolation | Code::NotPermitted | Code::LeaseRequired)
}

fn answer(event: &str) -> Result<String, Refusal> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(INPUT_MAX).read_to_string(&mut text);
    read.map_err(|error| Refusal::invalid(error.to_string()))?;
    let input: Input = serde_json::from_str(&text).map_err(|error| Refusal::invalid(error.to_string()))?;
    if let Some(cwd) = &input.cwd {
        std::env::set_current_dir(cwd).map_err(|error| Refusal::invalid(error.to_string()))?;
    }
    let world = World::find(&cli::global_of_environment()?)?;
    let mut store = world.open()?;
    match event {
        "session-start" => start(&world, &mut store),
        "pre-tool-use" => before(&world, &mut store, &input),
        "post-tool-use" => renew(&world, &mut store),
        "stop" => stop(&world, &mut store, &input),
        "session-end" => end(&world, &mut store),
        _ => Err(Refusal::invalid("there is no such event")),
    }
}

fn holdings(world: &World, store: &mut Store) -> Result<Vec<Holding>, Refusal> {
    world.actor.as_ref().map_or(Ok(Vec::new()), |worker| store.holdings(worker))
}

fn start(world: &World, store: &mut Store) -> Result<String, Refusal> {
    let resting = holdings(world, store)?.into_iter().filter(|held| held.assignment.resting);
    for held in resting {
        // What cannot be resumed is still told.
        drop(by_holder(world, store, &held, Command::StartSession));
    }
    Ok(onus_app::prime::text(&store.prime(world.actor.as_ref(), None)?))
}

fn before(world: &World, store: &mut Store, input: &Input) -> Result<String, Refusal> {
    let Some(worker) = world.actor.clone() else {
        return Ok(String::new());
    };
    let path = match input.tool_name.as_deref() {
        Some("Edit" | "Write" | "MultiEdit") => input.tool_input.file_path.as_deref(),
        Some("NotebookEdit") => input.tool_input.notebook_path.as_deref(),
        Some("Bash") if input.tool_input.command.as_deref().is_some_and(writes_by_git) => None,
        _ => return Ok(String::new()),
    };
    let leases = lease_file::of(&world.own_lease_dir(), &worker);
    let leases = leases.into_iter().filter_map(|(task, text)| Some((task, text.parse().ok()?))).collect();
    let path = path.map(|path| real(&world.place.cwd.join(path)));
    store.may_write(&Seat { worker, leases }, path.as_deref())?;
    Ok(String::new())
}

/// Where a file is, also one that is still to be made.
fn real(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
    }
    path.to_owned()
}

/// Whether a shell's line asks git to change something. A guess that saves the model a detour: git's own hooks decide.
fn writes_by_git(line: &str) -> bool {
    const VERBS: &[&str] =
        &["commit", "push", "merge", "rebase", "cherry-pick", "revert", "reset", "am", "branch", "tag"];
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || ";&|()".contains(c)).collect();
    words.iter().enumerate().any(|(at, word)| {
        let mut rest = words[at + 1..].iter();
        *word == "git" && verb(&mut rest).is_some_and(|verb| VERBS.contains(&verb))
    })
}

/// The first word that is no option of git itself.
fn verb<'a>(words: &mut std::slice::Iter<'_, &'a str>) -> Option<&'a str> {
    loop {
        match *words.next()? {
            "-c" | "-C" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => return Some(word),
        }
    }
}

/// A lease that is a third over is renewed: the agent is at work.
fn renew(world: &World, store: &mut Store) -> Result<String, Refusal> {
    let due = holdings(world, store)?.into_iter().filter(|held| held.due && !held.assignment.resting);
    for held in due {
        by_holder(world, store, &held, Command::Renew { ttl: None, process: None })?;
    }
    Ok(String::new())
}

fn stop(world: &World, store: &mut Store, input: &Input) -> Result<String, Refusal> {
    if input.stop_hook_active {
        return Ok(String::new());
    }
    let mut unfinished = Vec::new();
    for held in holdings(world, store)? {
        if !held.assignment.resting && store.task(&held.task)?.state.name() == StateName::InProgress {
            unfinished.push(held.task.to_string());
        }
    }
    if unfinished.is_empty() {
        return Ok(String::new());
    }
    let tasks = unfinished.join(", ");
    Err(Refusal::new(Code::LeaseRequired, format!("you still hold {tasks}"))
        .hint("finish it (onus complete), hand it on (onus release) or say what it waits for (onus block)"))
}

/// The time of a client that is closed is nobody's work. The lease stays.
fn end(world: &World, store: &mut Store) -> Result<String, Refusal> {
    for held in holdings(world, store)?.into_iter().filter(|held| !held.assignment.resting) {
        by_holder(world, store, &held, Command::StopSession)?;
    }
    Ok(String::new())
}

/// With the lease token that lies here; another session's task is none of ours.
fn by_holder(world: &World, store: &mut Store, held: &Holding, command: Command) -> Result<(), Refusal> {
    match world.token(store, &held.task, None)? {
        Some(token) => submit(world, store, &held.task, Some(token), command).map(drop),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_write_by_git_are_told_from_the_rest() {
        for line in
            ["git commit -m x", "cd a && git -c a=b push", "true;git rebase main", "(git reset --hard)"]
        {
            assert!(writes_by_git(line), "{line}");
        }
        for line in
            ["git status", "git log --grep commit", "cargo test", "echo git", "gitk commit", "git diff && ls"]
        {
            assert!(!writes_by_git(line), "{line}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_yet_has_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(real(&root.join("a/b/c.rs")), root.join("a/b/c.rs"));
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(real(&root.join("link/new.rs")), root.join("real/new.rs"));
    }
}
