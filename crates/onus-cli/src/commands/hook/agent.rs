//! `onus hook agent EVENT`: what an agent's client asks around its tools. The client writes one JSON object to standard
//! input; exit code 2 stops the tool, and what is on standard error reaches the model.
//!
//! In a repository whose hooks are in place an agent that holds nothing writes nothing. All pass while the store cannot be
//! reached: this hook is a convenience. Git's own hooks are the ones that must refuse then.

use crate::cli;
use crate::commands::submit;
use crate::context::{Store, World};
use crate::render::error_text;
use anstream::adapter::strip_str;
use onus_app::agent_hooks::{HeldTask, Seat, ToolTarget};
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use onus_core::shell_line::{self, LineWrite};
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
    hook_event_name: Option<String>,
    /// The client already went on once because of us.
    stop_hook_active: bool,
}

/// The words of several clients for the same things.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolInput {
    file_path: Option<PathBuf>,
    notebook_path: Option<PathBuf>,
    command: Option<ShellInput>,
    /// A patch in Codex's form, which names its files.
    input: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ShellInput {
    Text(String),
    Words(Vec<String>),
}

impl ShellInput {
    /// As one would type it. A shell that is named with its line (`bash -lc LINE`) is that line.
    fn text(&self) -> String {
        match self {
            ShellInput::Text(text) => text.clone(),
            ShellInput::Words(words) => match words.as_slice() {
                [_, option, line] if option.starts_with('-') && option.ends_with('c') => line.clone(),
                words => words.join(" "),
            },
        }
    }
}

pub(crate) fn run(event: &str) -> ExitCode {
    match answer(event) {
        Ok(said) => {
            drop(std::io::stdout().write_all(strip_str(&said).to_string().as_bytes()));
            ExitCode::SUCCESS
        }
        Err(refusal) if stops(&refusal) => {
            // A model reads it: no colours.
            let text = strip_str(&error_text(&refusal)).to_string();
            drop(std::io::stderr().write_all(text.as_bytes()));
            ExitCode::from(STOP)
        }
        Err(_) => ExitCode::SUCCESS,
    }
}

fn stops(refusal: &Refusal) -> bool {
    matches!(
        refusal.code,
        Code::Fenced | Code::ScopeViolation | Code::NotPermitted | Code::LeaseRequired | Code::UnknownWorker
    )
}

fn answer(event: &str) -> Result<String, Refusal> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(INPUT_MAX).read_to_string(&mut text);
    read.map_err(|error| Refusal::invalid(error.to_string()))?;
    let input: Input = serde_json::from_str(&text).map_err(|error| Refusal::invalid(error.to_string()))?;
    if let Some(cwd) = &input.cwd {
        std::env::set_current_dir(cwd).map_err(|error| Refusal::invalid(error.to_string()))?;
    }
    let world = World::find(&cli::global_of_environment()?)?.of_client()?;
    let mut store = world.open()?;
    match event {
        "session-start" => start(&world, &mut store),
        "pre-tool-use" => before(&world, &mut store, &input),
        "post-tool-use" => after(&world, &mut store, &input),
        "stop" => stop(&world, &mut store, &input),
        "session-end" => end(&world, &mut store),
        _ => Err(Refusal::invalid("there is no such event")),
    }
}

fn holdings(world: &World, store: &mut Store) -> Result<Vec<HeldTask>, Refusal> {
    world.actor.as_ref().map_or(Ok(Vec::new()), |worker| store.holdings(worker))
}

fn start(world: &World, store: &mut Store) -> Result<String, Refusal> {
    let resting = holdings(world, store)?.into_iter().filter(|held| held.assignment.resting);
    for held in resting {
        // What cannot be resumed is still told.
        drop(by_holder(world, store, &held, Command::StartSession));
    }
    let view = store.prime(world.actor.as_ref(), None)?;
    // What cannot be marked is told once more.
    drop(store.mark_read(world.actor.as_ref(), &view.messages));
    Ok(onus_app::prime::text(&view))
}

fn before(world: &World, store: &mut Store, input: &Input) -> Result<String, Refusal> {
    let touched = touched(&world.place.cwd, input);
    let worker = world.actor.as_ref();
    if let Some(line) = shell_of(input) {
        store.may_run(worker, &line)?;
    }
    if touched.is_empty() {
        return Ok(String::new());
    }
    let leases = worker.map(|worker| lease_file::of(&world.own_lease_dir(), worker)).unwrap_or_default();
    let leases = leases.into_iter().filter_map(|(task, text)| Some((task, text.parse().ok()?))).collect();
    store.may_write(&Seat { worker, leases }, &touched)?;
    Ok(String::new())
}

/// What a tool is about to change, as far as its input tells. Names as in Claude Code, Gemini CLI and Codex.
fn touched(cwd: &Path, input: &Input) -> Vec<ToolTarget> {
    let file = |path: &Path| ToolTarget::File(real(&cwd.join(path)));
    let ToolInput { file_path, notebook_path, command, input: patch } = &input.tool_input;
    match input.tool_name.as_deref().unwrap_or_default() {
        "Edit" | "Write" | "MultiEdit" | "write_file" | "replace" => {
            file_path.iter().map(|path| file(path)).collect()
        }
        "NotebookEdit" => notebook_path.iter().map(|path| file(path)).collect(),
        "apply_patch" => {
            let text = patch.clone().or(command.as_ref().map(ShellInput::text)).unwrap_or_default();
            patched(&text).map(|path| file(Path::new(path))).collect()
        }
        name if SHELLS.contains(&name) => {
            let line = command.as_ref().map(ShellInput::text).unwrap_or_default();
            let place = |one| match one {
                LineWrite::Path { dir, path } => ToolTarget::File(real(&cwd.join(dir).join(path))),
                LineWrite::Git { dir } => ToolTarget::Repository(real(&cwd.join(dir))),
            };
            shell_line::written(&line).into_iter().map(place).collect()
        }
        _ => Vec::new(),
    }
}

/// The tools that run lines of a shell.
const SHELLS: &[&str] = &["Bash", "run_shell_command", "shell", "local_shell", "exec_command"];

fn shell_of(input: &Input) -> Option<String> {
    let is_shell = input.tool_name.as_deref().is_some_and(|name| SHELLS.contains(&name));
    is_shell.then(|| input.tool_input.command.as_ref().map(ShellInput::text).unwrap_or_default())
}

/// The files of a patch in Codex's form.
fn patched(text: &str) -> impl Iterator<Item = &str> {
    const MARKS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    text.lines().filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim))
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

/// A lease that is a third over is renewed: the agent is at work. And it hears what was said to it meanwhile.
fn after(world: &World, store: &mut Store, input: &Input) -> Result<String, Refusal> {
    let held = holdings(world, store)?;
    for held in held.iter().filter(|held| held.due && !held.assignment.resting) {
        by_holder(world, store, held, Command::Renew { ttl: None, process: None })?;
    }
    let words = heard(world, store, &held)?;
    if words.is_empty() {
        return Ok(words);
    }
    // The client's own form for words that its model is to read.
    let event = input.hook_event_name.as_deref().unwrap_or("PostToolUse");
    let told = serde_json::json!({
        "hookSpecificOutput": { "hookEventName": event, "additionalContext": words }
    });
    Ok(told.to_string())
}

/// What was said about the tasks of this session, once.
fn heard(world: &World, store: &mut Store, held: &[HeldTask]) -> Result<String, Refusal> {
    let mut own = Vec::new();
    for held in held {
        if world.token(store, &held.task, None)?.is_some() {
            own.extend(store.messages(world.actor.as_ref(), Some(&held.task))?.messages);
        }
    }
    store.mark_read(world.actor.as_ref(), &own)?;
    Ok(onus_app::inbox::told(&own))
}

fn stop(world: &World, store: &mut Store, input: &Input) -> Result<String, Refusal> {
    if input.stop_hook_active {
        return Ok(String::new());
    }
    let mut unfinished = Vec::new();
    let held = holdings(world, store)?;
    let words = heard(world, store, &held)?;
    for held in held {
        if !held.assignment.resting && store.task(&held.task)?.state.name() == StateName::InProgress {
            unfinished.push(held.task.to_string());
        }
    }
    if unfinished.is_empty() {
        return Ok(String::new());
    }
    let tasks = unfinished.join(", ");
    let words = if words.is_empty() { words } else { format!("\n{words}") };
    Err(Refusal::new(Code::LeaseRequired, format!("you still hold {tasks}{words}"))
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
fn by_holder(world: &World, store: &mut Store, held: &HeldTask, command: Command) -> Result<(), Refusal> {
    match world.token(store, &held.task, None)? {
        Some(token) => submit(world, store, &held.task, Some(token), command).map(drop),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_several_clients_name_what_they_change() {
        let told = |name: &str, tool_input: serde_json::Value| {
            let input = serde_json::json!({ "tool_name": name, "tool_input": tool_input });
            touched(Path::new("/nowhere"), &serde_json::from_value(input).unwrap())
        };
        let file = |path: &str| vec![ToolTarget::File(path.into())];
        assert_eq!(told("Write", serde_json::json!({ "file_path": "a/b" })), file("/nowhere/a/b"));
        assert_eq!(told("replace", serde_json::json!({ "file_path": "/x" })), file("/x"));
        assert_eq!(
            told("run_shell_command", serde_json::json!({ "command": "echo >a" })),
            file("/nowhere/a")
        );
        let words = serde_json::json!({ "command": ["bash", "-lc", "cd b && touch a"] });
        assert_eq!(told("shell", words), file("/nowhere/b/a"));
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** End Patch\n";
        assert_eq!(told("apply_patch", serde_json::json!({ "input": patch })), file("/nowhere/src/a.rs"));
        assert_eq!(told("apply_patch", serde_json::json!({ "command": patch })), file("/nowhere/src/a.rs"));
        let git = serde_json::json!({ "command": "git commit -m x" });
        assert_eq!(told("Bash", git), [ToolTarget::Repository("/nowhere".into())]);
        assert_eq!(told("Read", serde_json::json!({ "file_path": "a" })), []);
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
