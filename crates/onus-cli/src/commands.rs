//! One file per verb. A command file only translates: parse, submit, render.

mod add;
mod block;
mod board;
mod check;
mod claim;
mod complete;
mod completions;
mod consistency;
mod demo;
mod dep;
mod diff;
mod dispatch;
mod doctor;
mod edit;
mod exception;
mod export;
mod fleet;
mod handoff;
mod hook;
mod import;
mod inbox;
mod init;
mod intake;
mod ledger;
mod list;
mod logs;
mod man;
mod mcp;
mod merge;
mod milestone;
mod mirror;
mod note;
mod preflight;
mod prime;
mod ready;
mod release;
mod renew;
mod reopen;
mod report;
mod rerun;
mod review;
mod route;
mod run;
mod say;
mod serve;
mod session;
mod setup;
mod show;
mod stale;
mod status;
mod takeover;
mod timesheet;
mod validate;
mod view;
mod worker;
mod workstation;

use crate::cli::{self, Cli};
use crate::completion;
use crate::context::{Store, World};
use crate::output::{Format, Output, print_page, print_version, refuse};
use crate::render;
use clap::{Args, Subcommand};
use onus_app::submit::{Receipt, Target};
use onus_app::view::{ChangeView, TaskView};
use onus_core::code::Code;
use onus_core::command::{Command, Warrant};
use onus_core::id::{TaskId, shown};
use onus_core::refusal::Refusal;
use onus_core::text::{BODY_MAX, Text};
use std::io::Read;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Init(init::Init),
    #[command(visible_alias = "create")]
    Add(add::Add),
    Edit(edit::Edit),
    List(list::List),
    View(view::View),
    Show(show::Show),
    Ready(ready::Ready),
    Claim(claim::Claim),
    #[command(visible_alias = "heartbeat")]
    Renew(renew::Renew),
    Release(release::Release),
    #[command(visible_alias = "reclaim")]
    Takeover(takeover::Takeover),
    Block(block::Block),
    Unblock(block::Unblock),
    Note(note::WriteNote),
    Say(say::Say),
    Inbox(inbox::Inbox),
    Handoff(handoff::WriteHandoff),
    Check(check::RunChecks),
    Review(review::Review),
    Diff(diff::Diff),
    Merge(merge::Merge),
    #[command(visible_alias = "close")]
    Complete(complete::Complete),
    Reopen(reopen::Reopen),
    Drop(reopen::Drop),
    Rerun(rerun::Rerun),
    Dep(dep::Dep),
    Exception(exception::Exception),
    Stale(stale::Stale),
    Dispatch(dispatch::Dispatch),
    Preflight(preflight::Preflight),
    Run(run::RunCommand),
    Prime(prime::Prime),
    Status(status::Status),
    Validate(validate::Validate),
    Consistency(consistency::Consistency),
    Doctor(doctor::Doctor),
    Export(export::Export),
    Import(import::Import),
    Intake(intake::Intake),
    Worker(worker::Worker),
    Workstation(workstation::Workstation),
    Route(route::RouteCommand),
    Session(session::Session),
    Logs(logs::Logs),
    Fleet(fleet::FleetCommand),
    Timesheet(timesheet::Timesheet),
    Ledger(ledger::Ledger),
    Report(report::Report),
    Milestone(milestone::Milestone),
    Mirror(mirror::Mirror),
    Hook(hook::Hook),
    Mcp(mcp::Mcp),
    Setup(setup::Setup),
    Serve(serve::Serve),
    Board(board::Board),
    Demo(demo::Demo),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Verb {
    /// One of the verbs that are called all day, built alone.
    pub(crate) fn hot(word: &str) -> Option<clap::Command> {
        fn one<A: Args>(name: &'static str) -> clap::Command {
            A::augment_args(clap::Command::new(name))
        }
        Some(match word {
            "add" | "create" => one::<add::Add>("add").alias("create"),
            "list" => one::<list::List>("list"),
            "show" => one::<show::Show>("show"),
            "ready" => one::<ready::Ready>("ready"),
            "claim" => one::<claim::Claim>("claim"),
            "renew" | "heartbeat" => one::<renew::Renew>("renew").alias("heartbeat"),
            "release" => one::<release::Release>("release"),
            "note" => one::<note::WriteNote>("note"),
            "check" => one::<check::RunChecks>("check"),
            "complete" | "close" => one::<complete::Complete>("complete").alias("close"),
            _ => return None,
        })
    }
}

pub(crate) fn run(cli: &Cli, out: &mut Output) -> Result<ExitCode, Refusal> {
    let call = |run: &dyn Fn(&World) -> Result<ExitCode, Refusal>| run(&World::find(&cli.global)?);
    match &cli.verb {
        Verb::Init(verb) => call(&|world| verb.run(world, out)),
        Verb::Add(verb) => call(&|world| verb.run(world, out)),
        Verb::Edit(verb) => call(&|world| verb.run(world, out)),
        Verb::List(verb) => call(&|world| verb.run(world, out)),
        Verb::View(verb) => call(&|world| verb.run(world, out)),
        Verb::Show(verb) => call(&|world| verb.run(world, out)),
        Verb::Ready(verb) => call(&|world| verb.run(world, out)),
        Verb::Claim(verb) => call(&|world| verb.run(world, out)),
        Verb::Renew(verb) => call(&|world| verb.run(world, out)),
        Verb::Release(verb) => call(&|world| verb.run(world, out)),
        Verb::Takeover(verb) => call(&|world| verb.run(world, out)),
        Verb::Block(verb) => call(&|world| verb.run(world, out)),
        Verb::Unblock(verb) => call(&|world| verb.run(world, out)),
        Verb::Say(verb) => call(&|world| verb.run(world, out)),
        Verb::Inbox(verb) => call(&|world| verb.run(world, out)),
        Verb::Note(verb) => call(&|world| verb.run(world, out)),
        Verb::Handoff(verb) => call(&|world| verb.run(world, out)),
        Verb::Check(verb) => verb.run(&World::find(&cli.global)?, out),
        Verb::Diff(verb) => call(&|world| verb.run(world, out)),
        Verb::Review(verb) => call(&|world| verb.run(world, out)),
        Verb::Merge(verb) => call(&|world| verb.run(world, out)),
        Verb::Complete(verb) => call(&|world| verb.run(world, out)),
        Verb::Reopen(verb) => call(&|world| verb.run(world, out)),
        Verb::Drop(verb) => call(&|world| verb.run(world, out)),
        Verb::Rerun(verb) => call(&|world| verb.run(world, out)),
        Verb::Dep(verb) => call(&|world| verb.run(world, out)),
        Verb::Exception(verb) => call(&|world| verb.run(world, out)),
        Verb::Stale(verb) => call(&|world| verb.run(world, out)),
        Verb::Dispatch(verb) => call(&|world| verb.run(world, out)),
        Verb::Preflight(verb) => call(&|world| verb.run(world, out)),
        Verb::Prime(verb) => call(&|world| verb.run(world, out)),
        Verb::Run(verb) if verb.is_warden() => verb.warden(),
        Verb::Run(verb) => verb.run(&World::find(&cli.global)?, out),
        Verb::Status(verb) => call(&|world| verb.run(world, out)),
        Verb::Validate(verb) => call(&|world| verb.run(world, out)),
        Verb::Consistency(verb) => call(&|world| verb.run(world, out)),
        Verb::Doctor(verb) => call(&|world| verb.run(world, out)),
        Verb::Export(verb) => call(&|world| verb.run(world, out)),
        Verb::Import(verb) => call(&|world| verb.run(world, out)),
        Verb::Intake(verb) => call(&|world| verb.run(world, out)),
        Verb::Worker(verb) => call(&|world| verb.run(world, out)),
        Verb::Workstation(verb) => call(&|world| verb.run(world, out)),
        Verb::Route(verb) => call(&|world| verb.run(world, out)),
        Verb::Session(verb) => call(&|world| verb.run(world, out)),
        Verb::Logs(verb) => call(&|world| verb.run(world, out)),
        Verb::Fleet(verb) => call(&|world| verb.run(world, out)),
        Verb::Timesheet(verb) => call(&|world| verb.run(world, out)),
        Verb::Ledger(verb) => call(&|world| verb.run(world, out)),
        Verb::Report(verb) => call(&|world| verb.run(world, out)),
        Verb::Milestone(verb) => call(&|world| verb.run(world, out)),
        Verb::Mirror(verb) => call(&|world| verb.run(world, out)),
        Verb::Hook(verb) => call(&|world| verb.run(world, out)),
        Verb::Serve(verb) => call(&|world| verb.run(world, out)),
        Verb::Board(verb) => call(&|world| verb.run(world, out)),
        Verb::Setup(verb) => call(&|world| verb.run(world, out)),
        Verb::Mcp(verb) => call(&|world| verb.run(world)),
        Verb::Demo(verb) => verb.run(out),
        Verb::Completions(verb) => verb.run(out),
        Verb::Man(verb) => verb.run(out),
    }
}

/// What is answered without the detour through the command tree: git, coding clients and shells wait for it, or it is only
/// a page.
pub(crate) fn without_tree() -> Option<ExitCode> {
    let args = std::env::args_os;
    if cli::asks_for_version(args()) {
        return Some(print_version());
    }
    if let Some((name, words)) = cli::asks_for_hook(args()) {
        return Some(hook::run(&name, &words).unwrap_or_else(|refusal| refuse(&refusal, Format::Human)));
    }
    if let Some(event) = cli::asks_for_agent_hook(args()) {
        return Some(hook::agent::run(&event));
    }
    if let Some(page) = cli::asks_for_page(args()) {
        return Some(print_page(&page));
    }
    completion::answer()
}

/// The task a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskArg {
    /// The task, e.g. API-12
    #[arg(value_name = "TASK", value_parser = task_id)]
    pub(crate) task: TaskId,
}

/// Proof of being the holder.
#[derive(Debug, Clone, Args)]
pub(crate) struct LeaseArg {
    /// The lease token of the claim. Default: $ONUS_LEASE, else the one that the claim left in the workstation
    #[arg(long = "lease", value_name = "TOKEN")]
    pub(crate) lease: Option<String>,
}

/// A person's override.
#[derive(Debug, Clone, Args)]
pub(crate) struct ForceArgs {
    /// Do it against the rules: people only, with a reason, on record for ever
    #[arg(long)]
    pub(crate) force: bool,

    /// Why; goes into the ledger
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

impl ForceArgs {
    pub(crate) fn warrant(&self) -> Warrant {
        if self.force { Warrant::Forced { reason: self.reason.clone() } } else { Warrant::Ordinary }
    }
}

pub(crate) fn task_id(text: &str) -> Result<TaskId, String> {
    text.parse()
}

/// A text argument, or standard input for `-`.
pub(crate) fn text_argument(what: &str, given: &str) -> Result<String, Refusal> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    // One byte more than allowed tells that there is more; the rest need not be read.
    let mut bytes = Vec::new();
    let limit = BODY_MAX as u64 + 1;
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Refusal::invalid(format!("cannot read {what} from standard input: {error}")))?;
    if bytes.len() as u64 == limit {
        return Err(Refusal::invalid(format!("{what} has more than {BODY_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Refusal::invalid(format!("{what} is not UTF-8")))
}

/// Submits a command about one task with the holder's token, if there is one.
pub(crate) fn submit_as_holder(
    world: &World,
    store: &mut Store,
    task: &TaskId,
    lease: &LeaseArg,
    command: Command,
) -> Result<Receipt, Refusal> {
    let token = world.token(store, task, lease.lease.as_deref())?;
    submit(world, store, task, token, command)
}

pub(crate) fn submit(
    world: &World,
    store: &mut Store,
    task: &TaskId,
    token: Option<onus_core::lease::Token>,
    command: Command,
) -> Result<Receipt, Refusal> {
    store.submit(&world.envelope(Some(task.clone()), token, command)?, &Target::Named)
}

/// Renders a change that hands nothing to its caller but the task.
pub(crate) fn show_change(out: &Output, receipt: &Receipt, said: &str) -> Result<ExitCode, Refusal> {
    out.show(&ChangeView { task: TaskView::from(&receipt.task) }, |view| render::change(view, said))
}

pub(crate) fn text(content: &str) -> Text {
    Text::new(content.trim_end().to_owned())
}

/// A closed set of words on the command line.
pub(crate) fn word<T>(
    what: &str,
    text: &str,
    parse: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<T, String> {
    parse(text).ok_or_else(|| format!("{} is not {what}; known: {known}", shown(text)))
}

/// Input and output of files: the refusal names the file.
pub(crate) fn file_error(path: &std::path::Path, error: &std::io::Error) -> Refusal {
    Refusal::new(Code::InvalidInput, format!("{}: {error}", path.display()))
        .hint("check the path and its permissions")
}
