//! What people type: global flags and one verb.

use crate::commands::Verb;
use crate::output::{Format, refuse};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use onus_core::id::{Handle, RequestId};
use onus_core::refusal::Refusal;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// The coordination system of people and AI agents who share repositories.
///
/// One task row owns each unit of work: whoever holds its lease may write, everyone else is refused.
#[derive(Debug, Parser)]
#[command(name = "onus", version, max_term_width = 110)]
#[command(after_help = "Exit codes: 0 ok, 1 unexpected, 2 invalid input, 3 not found, 4 held or fenced, \
    5 refused by policy, 6 nothing ready, 7 a check failed, 69 store unavailable (retry).")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Where the tasks are: sqlite:PATH, postgres://USER@HOST/DATABASE[?workspace=NAME], or https://SERVER with ONUS_TOKEN. Default: the repository's own store, the same for all its worktrees
    // An address may hold a password, which has no place in a help text.
    #[arg(
        long,
        global = true,
        env = "ONUS_STORE",
        hide_env_values = true,
        value_name = "URL",
        help_heading = "Global options"
    )]
    pub(crate) store: Option<String>,

    /// Who you are; required for every change
    #[arg(long = "as", global = true, env = "ONUS_AS", value_name = "@HANDLE", help_heading = "Global options",
          value_parser = handle)]
    pub(crate) actor: Option<Handle>,

    /// One JSON document on stdout; errors as one JSON document on stderr
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,

    /// Lists as one JSON object per line
    #[arg(long, global = true, conflicts_with = "json", help_heading = "Global options")]
    pub(crate) jsonl: bool,

    /// Times in UTC, to the second; default: this machine's own zone
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) utc: bool,

    /// No hints and no progress
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,

    /// Names this call: repeating it with the same id gives the same answer and no second effect
    #[arg(long, global = true, value_name = "ID", help_heading = "Global options", value_parser = request)]
    pub(crate) request_id: Option<RequestId>,
}

impl Global {
    pub(crate) fn format(&self) -> Format {
        match (self.json, self.jsonl) {
            (_, true) => Format::JsonLines,
            (true, _) => Format::Json,
            _ => Format::Human,
        }
    }
}

/// `@ada`, or `ada`: people forget the sign, and shells sometimes eat it.
pub(crate) fn handle(text: &str) -> Result<Handle, String> {
    if text.starts_with('@') { text.parse() } else { format!("@{text}").parse() }
}

fn request(text: &str) -> Result<RequestId, String> {
    text.parse()
}

/// Arguments that do not make a call: help, version or a typing error.
#[derive(Debug)]
pub(crate) struct NotACall {
    error: clap::Error,
    format: Format,
    /// The call that tells what would have been understood.
    usage: String,
}

/// Answered before the whole command tree is built: scripts ask this most often, and only want to know that we are there.
pub(crate) fn asks_for_version(mut args: impl Iterator<Item = OsString>) -> bool {
    let only = (args.nth(1), args.next());
    matches!(only, (Some(word), None) if word == "--version" || word == "-V" || word == "version")
}

/// `onus` alone, or `onus --all`: no call, but a page to read.
pub(crate) fn asks_for_page(args: impl Iterator<Item = OsString>) -> Option<String> {
    let words: Vec<OsString> = args.skip(1).take(2).collect();
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    crate::home::answer(&words?)
}

/// `onus hook run NAME …`, as our hooks write it. Git waits for it at every commit, and building the whole command tree
/// would cost it more than the answer.
pub(crate) fn asks_for_hook(mut args: impl Iterator<Item = OsString>) -> Option<(OsString, Vec<OsString>)> {
    let words = (args.nth(1)?, args.next()?, args.next()?);
    (words.0 == "hook" && words.1 == "run").then(|| (words.2, args.collect()))
}

/// `onus hook agent EVENT`, as `onus setup` writes it: an agent's client waits for it around every tool.
pub(crate) fn asks_for_agent_hook(mut args: impl Iterator<Item = OsString>) -> Option<String> {
    let words = (args.nth(1)?, args.next()?, args.next()?, args.next());
    (words.0 == "hook" && words.1 == "agent" && words.3.is_none()).then(|| words.2.into_string().ok())?
}

/// What the environment says, for a call that has no flags.
pub(crate) fn global_of_environment() -> Result<Global, Refusal> {
    let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let actor = text("ONUS_AS").map(|text| handle(&text)).transpose().map_err(Refusal::invalid)?;
    Ok(Global {
        store: text("ONUS_STORE"),
        actor,
        json: false,
        jsonl: false,
        utc: false,
        quiet: false,
        request_id: None,
    })
}

pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Cli, NotACall> {
    let args: Vec<OsString> = args.collect();
    if let Some(cli) = parse_hot(&args) {
        return Ok(cli);
    }
    let parsed = tree().try_get_matches_from(&args).and_then(|words| Cli::from_arg_matches(&words));
    parsed.map_err(|error| {
        // The flags could not be parsed, so whoever wrote --json is known only from the words themselves.
        let json = args.iter().any(|arg| arg == "--json" || arg == "--jsonl");
        let format = if json { Format::Json } else { Format::Human };
        NotACall { error, format, usage: usage(args.iter().skip(1)) }
    })
}

/// `onus worker add --help`: what tells about the verb that these words name.
pub(crate) fn usage<W: AsRef<OsStr>>(words: impl Iterator<Item = W>) -> String {
    let tree = tree();
    let (mut verb, mut line) = (&tree, String::from("onus"));
    for word in words {
        if let Some(next) = verb.find_subcommand(word.as_ref()) {
            verb = next;
            line.push(' ');
            line.push_str(verb.get_name());
        }
    }
    line + " --help"
}

/// The verbs that agents call all day, each built alone: the whole tree takes longer to build than such a call takes to
/// answer. Whatever is not understood this way (help, mistakes, other verbs) is read again with the whole tree.
fn parse_hot(args: &[OsString]) -> Option<Cli> {
    let mut words = args.iter().skip(1).map(|word| word.to_str());
    let verb = loop {
        match words.next()?? {
            // The global options that take a value.
            "--store" | "--as" | "--request-id" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => break Verb::hot(word)?,
        }
    };
    let mut tree = Global::augment_args(clap::Command::new("onus")).subcommand(verb);
    let matches = tree.try_get_matches_from_mut(args);
    // The process ends soon: to take the tree apart, leaf by leaf, would only keep the caller waiting.
    std::mem::forget(tree);
    Cli::from_arg_matches(&matches.ok()?).ok()
}

impl NotACall {
    pub(crate) fn answer(self) -> ExitCode {
        match (self.error.kind(), self.format) {
            (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => {
                // A reader that closed the pipe has seen enough.
                drop(self.error.print());
                ExitCode::SUCCESS
            }
            (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, Format::Human) => {
                drop(self.error.print());
                ExitCode::from(2)
            }
            _ => {
                let detail = visible(&in_one_line(&self.error.to_string()));
                refuse(&Refusal::invalid(detail).hint(self.usage), self.format)
            }
        }
    }
}

/// The first paragraph, since which arguments are missing stands below its first line, and what was perhaps meant.
fn in_one_line(text: &str) -> String {
    let said: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let said = said.join(" ");
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    tip.map_or_else(|| said.to_owned(), |tip| format!("{said}; {tip}"))
}

/// An argument quoted back must not drive the terminal.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(4_000));
    for c in text.chars().take(4_000) {
        match c {
            '\n' => shown.push('\n'),
            c if onus_core::text::is_unprintable(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The whole command tree, for completions, manual pages and the reference.
pub(crate) fn tree() -> clap::Command {
    crate::examples::shown(Cli::command())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// Every verb's help, in one file that a reviewer reads first when the interface changes.
    fn reference() -> String {
        let mut text = String::from(
            "# Command line reference\n\nGenerated from the program; `UPDATE_CONTRACT=1` rewrites it.\n",
        );
        let mut root = tree().term_width(100).bin_name("onus");
        root.build();
        page(&mut text, &mut root);
        text
    }

    fn page(text: &mut String, command: &mut clap::Command) {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
        let help = command.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
        // `help` repeats every verb below itself.
        for verb in command.get_subcommands_mut().filter(|verb| verb.get_name() != "help") {
            page(text, verb);
        }
    }

    #[test]
    fn the_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract/cli-reference.md");
        let text = reference();
        if std::env::var_os("UPDATE_CONTRACT").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            stored == text,
            "contract/cli-reference.md differs: run UPDATE_CONTRACT=1 cargo test -p onus-cli"
        );
    }

    #[test]
    fn the_short_way_to_the_version_says_what_the_long_way_says() {
        let asks = |line: &str| asks_for_version(line.split(' ').map(OsString::from));
        assert!(asks("onus --version") && asks("onus -V") && asks("onus version"));
        assert!(!asks("onus") && !asks("onus --version add") && !asks("onus add --version"));
        assert_eq!(tree().render_version(), crate::output::version());
    }

    /// The short way understands exactly what the whole tree does.
    #[test]
    fn the_short_way_to_a_verb_says_what_the_long_way_says() {
        for line in [
            "onus ready --as @ada --limit 3 --json",
            "onus --as @ada --store sqlite:x claim T-1 --workstation ws-1 --ttl 5m --request-id r1",
            "onus create title --scope a --scope b --priority P1 -q",
            "onus heartbeat T-1 --lease 1.2.3",
            "onus close T-1 --resolution done --force --reason why",
            "onus show T-1 --jsonl",
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let short = parse_hot(&args).unwrap_or_else(|| panic!("{line}"));
            let long = Cli::try_parse_from(&args).unwrap();
            assert_eq!(format!("{short:?}"), format!("{long:?}"));
        }
        for line in [
            "onus",
            "onus --help",
            "onus ready --help",
            "onus ready --nonsense",
            "onus ledger log",
            "onus nothing",
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(parse_hot(&args).is_none(), "{line}");
        }
        for verb in ["add", "list", "show", "ready", "claim", "renew", "release", "note", "check", "complete"]
        {
            let (hot, whole) = (Verb::hot(verb).unwrap(), tree().find_subcommand(verb).unwrap().clone());
            let names = |command: &clap::Command| -> Vec<String> {
                command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
            };
            assert_eq!(names(&hot), names(&whole), "{verb}");
        }
    }

    #[test]
    fn the_tree_is_sound() {
        tree().debug_assert();
    }

    #[test]
    fn names_people_already_know_keep_working() {
        for (alias, verb) in
            [("create", "add"), ("close", "complete"), ("heartbeat", "renew"), ("reclaim", "takeover")]
        {
            let found = tree().find_subcommand(alias).map(|command| command.get_name().to_owned());
            assert_eq!(found.as_deref(), Some(verb));
        }
    }

    #[test]
    fn what_is_quoted_back_cannot_drive_a_terminal() {
        assert_eq!(visible("a\u{1b}[31mb\u{202e}\nc"), "a\\u{1b}[31mb\\u{202e}\nc");
    }
}
