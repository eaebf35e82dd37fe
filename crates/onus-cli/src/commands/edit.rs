//! `onus edit`

use super::{LeaseArg, show_change, task_id, text_argument, word};
use crate::context::{Store, World};
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::input;
use onus_app::submit::{Receipt, ReceiptKind, Target, step};
use onus_app::view::{ListView, TaskView};
use onus_core::code::Code;
use onus_core::command::{Envelope, Patch};
use onus_core::id::{Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::{Priority, Risk};
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Command as Program, ExitCode};
use std::str::FromStr;

/// Put what a task asks for differently; of several tasks the same
///
/// A list takes the place of what was there; `+x` adds to it and `-x` takes away from it. `none` empties a field. Before
/// and after are in the ledger, and whoever holds the task is told.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// The task, e.g. API-12; may be repeated
    #[arg(value_name = "TASK", required = true, value_parser = task_id)]
    tasks: Vec<TaskId>,

    /// What is to be done, in one line
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// More words; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    body: Option<String>,

    /// Opens the body in $VISUAL or $EDITOR
    #[arg(long, conflicts_with = "body")]
    editor: bool,

    /// What the identity map routes by
    #[arg(long = "type", value_name = "TYPE|none", value_parser = or_none::<TaskType>)]
    task_type: Option<Patch<TaskType>>,

    /// feature, defect, chore, docs, …
    #[arg(long)]
    kind: Option<String>,

    /// P0 (drop everything) to P4 (some day)
    #[arg(long, value_parser = |t: &str| t.parse::<Priority>())]
    priority: Option<Priority>,

    /// A tag, or +TAG and -TAG; may be repeated
    #[arg(long, value_name = "TAG", allow_hyphen_values = true)]
    tag: Vec<String>,

    /// Paths that the work may touch, as a glob, or +GLOB and -GLOB; may be repeated
    #[arg(long, value_name = "GLOB", allow_hyphen_values = true)]
    scope: Vec<String>,

    /// A task that must be complete first, or +TASK and -TASK; may be repeated
    #[arg(long, value_name = "TASK", allow_hyphen_values = true)]
    depends_on: Vec<String>,

    /// A command that proves the work, or +COMMAND and -COMMAND; may be repeated
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    check: Vec<String>,

    /// What the holder may do, e.g. path:docs/**, or +CONSTRAINT and -CONSTRAINT; may be repeated; by a person only
    #[arg(long, value_name = "CONSTRAINT", allow_hyphen_values = true)]
    constraint: Vec<String>,

    /// The role that the work is for
    #[arg(long, value_name = "ROLE|none", value_parser = or_none::<Role>)]
    role: Option<Patch<Role>>,

    /// The role's lane
    #[arg(long, value_name = "N|none", value_parser = number)]
    lane: Option<Patch<i64>>,

    /// The sprint
    #[arg(long, value_name = "SPRINT|none")]
    sprint: Option<String>,

    /// The task that this is a slice of
    #[arg(long, value_name = "TASK|none", value_parser = or_none::<TaskId>)]
    parent: Option<Patch<TaskId>>,

    /// The slice's place in the parent's merge order
    #[arg(long, value_name = "N|none", value_parser = number)]
    merge_order: Option<Patch<i64>>,

    /// low, normal or high; none is normal
    #[arg(long, value_name = "RISK|none", value_parser = risk)]
    risk: Option<Risk>,

    #[command(flatten)]
    lease: LeaseArg,
}

fn or_none<T: FromStr<Err = String>>(text: &str) -> Result<Patch<T>, String> {
    if text == "none" { Ok(Patch::Clear) } else { text.parse().map(Patch::To) }
}

fn number(text: &str) -> Result<Patch<i64>, String> {
    match text {
        "none" => Ok(Patch::Clear),
        text => text.parse().map(Patch::To).map_err(|_| format!("{text} is neither a number nor none")),
    }
}

fn risk(text: &str) -> Result<Risk, String> {
    let known = |word: &str| if word == "none" { Some(Risk::Normal) } else { Risk::parse(word) };
    word("a risk", text, known, "low, normal, high, none")
}

impl Edit {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let body = self.body.as_deref().map(|given| text_argument("the body", given)).transpose()?;
        if let [task] = self.tasks.as_slice() {
            let receipt = match self.editor {
                true => {
                    let draft = Draft::written(&mut store, task)?;
                    let new = (Some(draft.body.clone()), Target::At(draft.version));
                    let receipt = self.submit(world, &mut store, task, new, None);
                    draft.end(task, receipt)?
                }
                false => self.submit(world, &mut store, task, (body, Target::Named), None)?,
            };
            let said = if receipt.kind == ReceiptKind::Existing { "is like that already" } else { "edited" };
            return show_change(out, &receipt, said);
        }
        if self.editor {
            return Err(Refusal::invalid("an editor opens one body").hint("onus edit TASK --editor"));
        }
        let request = world.request()?;
        let mut tasks: Vec<TaskView> = Vec::new();
        for task in &self.tasks {
            let own = step(&request, &format!("edit {task}"))?;
            let receipt = self.submit(world, &mut store, task, (body.clone(), Target::Named), Some(own));
            let receipt = receipt.map_err(|refusal| {
                let done: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
                let left = if done.is_empty() { "none".to_owned() } else { done.join(", ") };
                Refusal { detail: format!("{} ({left} edited before it)", refusal.detail), ..refusal }
            })?;
            tasks.push(TaskView::from(&receipt.task));
        }
        out.show_list(&ListView { tasks, next: None }, |view| &view.tasks, render::list)
    }

    fn submit(
        &self,
        world: &World,
        store: &mut Store,
        task: &TaskId,
        (body, target): (Option<String>, Target),
        request: Option<onus_core::id::RequestId>,
    ) -> Result<Receipt, Refusal> {
        let token = world.token(store, task, self.lease.lease.as_deref())?;
        let envelope = world.envelope(Some(task.clone()), token, self.input(body).asks().command)?;
        let request = request.unwrap_or_else(|| envelope.request.clone());
        store.submit(&Envelope { request, ..envelope }, &target)
    }

    fn input(&self, body: Option<String>) -> input::EditInput {
        let list = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
        let word = |text: &String| if text == "none" { Patch::Clear } else { Patch::To(text.clone()) };
        input::EditInput {
            title: self.title.clone(),
            body: body.map_or(Patch::Keep, Patch::To),
            task_type: self.task_type.clone().unwrap_or_default(),
            kind: self.kind.clone(),
            priority: self.priority,
            risk: self.risk.map_or(Patch::Keep, Patch::To),
            role: self.role.clone().unwrap_or_default(),
            lane: self.lane.clone().unwrap_or_default(),
            sprint: self.sprint.as_ref().map(word).unwrap_or_default(),
            parent: self.parent.clone().unwrap_or_default(),
            merge_order: self.merge_order.clone().unwrap_or_default(),
            tags: list(&self.tag),
            scope: list(&self.scope),
            depends_on: list(&self.depends_on),
            checks: list(&self.check),
            constraints: list(&self.constraint),
            lease: None,
        }
    }
}

/// The body as a person leaves it in the editor, and the version of the task that it was taken from: whoever came in
/// between is not overwritten.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    body: String,
    version: i64,
}

impl Draft {
    fn written(store: &mut Store, task: &TaskId) -> Result<Draft, Refusal> {
        if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
            return Err(
                Refusal::invalid("an editor needs a terminal").hint("--body TEXT, or --body - from a pipe")
            );
        }
        let found = store.find_task(task)?.ok_or_else(|| {
            Refusal::new(Code::UnknownTask, format!("there is no task {task}")).hint("onus list --state all")
        })?;
        let body = found.spec.body.as_ref().and_then(|body| body.content()).unwrap_or_default();
        let path = std::env::temp_dir().join(format!("onus-{task}-{}.md", std::process::id()));
        let failed = |error: std::io::Error| super::file_error(&path, &error);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        file.write_all(body.as_bytes()).map_err(failed)?;
        let program = ["VISUAL", "EDITOR"].iter().find_map(std::env::var_os).unwrap_or_else(|| "vi".into());
        let mut line = program;
        line.push(" \"$1\"");
        let ended = Program::new("sh").arg("-c").arg(line).arg("sh").arg(&path).status().map_err(failed)?;
        let body = std::fs::read_to_string(&path).map_err(failed)?;
        if !ended.success() {
            let _ = std::fs::remove_file(&path);
            return Err(Refusal::invalid(format!("the editor ended with {ended}; nothing was changed"))
                .hint("set EDITOR"));
        }
        Ok(Draft { path, body, version: found.version })
    }

    /// What somebody wrote is lost by no refusal.
    fn end(self, task: &TaskId, receipt: Result<Receipt, Refusal>) -> Result<Receipt, Refusal> {
        match receipt {
            Ok(receipt) => {
                let _ = std::fs::remove_file(&self.path);
                Ok(receipt)
            }
            Err(refusal) => {
                let path = self.path.display();
                Err(Refusal {
                    detail: format!("{}; your words are kept in {path}", refusal.detail),
                    ..refusal
                }
                .hint(format!("onus show {task}, then onus edit {task} --body - < {path}")))
            }
        }
    }
}
