//! What an assignment allows its holder, beside the scope of its task (mission B1). Where any constraint of a kind is given, what
//! none of that kind names is not allowed; one that names a workstation opens that place beside the holder's own.
//!
//! Set by the identity map or by whoever grants; enforced where Onus stands in the way: paths and workstations by git's hooks
//! and the guard of clients' tools, verbs by every door, commands by the guard of clients' tools, the network by the checks'
//! sandbox and by `run`.

use crate::code::Code;
use crate::command::Command;
use crate::id::{WorkstationName, shown};
use crate::identity_map::Policy;
use crate::refusal::{Finding, Refusal};
use crate::scope::Glob;
use crate::task::{Spec, Task};
use crate::text::GLOB_MAX;
use crate::worker::Worker;
use schemars::JsonSchema;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// What verbs can be held back: a holder may always show that it lives, and give the task back.
const VERBS: &[&str] = &["note", "check", "handoff", "block", "complete", "merge", "edit"];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Constraint {
    /// `path:GLOB`: the paths that may change.
    Path(String),
    /// `verb:NAME`: the verbs that the holder may use.
    Verb(String),
    /// `command:WORDS`: how the lines begin that a client's shell may run.
    Command(String),
    /// `network:none`: checks, and what `run` starts, have none.
    NoNetwork,
    /// `workstation:NAME`: where the holder may write beside its own workstation, as long as nobody holds a task there.
    Workstation(WorkstationName),
}

impl FromStr for Constraint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{} is no constraint: path:GLOB, verb:NAME, command:WORDS, network:none or workstation:NAME",
                shown(text)
            )
        };
        let (kind, value) = text.split_once(':').ok_or_else(bad)?;
        let value = value.trim();
        if value.is_empty() || value.len() > GLOB_MAX || value.chars().any(crate::text::is_unprintable) {
            return Err(bad());
        }
        match kind {
            "path" => Glob::parse(value).map(|_| Constraint::Path(value.to_owned())),
            "verb" if VERBS.contains(&value) => Ok(Constraint::Verb(value.to_owned())),
            "verb" => Err(format!("{} is no verb of a holder: one of {}", shown(value), VERBS.join(", "))),
            "command" => Ok(Constraint::Command(value.split_whitespace().collect::<Vec<_>>().join(" "))),
            "network" if value == "none" => Ok(Constraint::NoNetwork),
            "workstation" => value.parse().map(Constraint::Workstation),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constraint::Path(glob) => write!(f, "path:{glob}"),
            Constraint::Verb(verb) => write!(f, "verb:{verb}"),
            Constraint::Command(words) => write!(f, "command:{words}"),
            Constraint::NoNetwork => f.write_str("network:none"),
            Constraint::Workstation(name) => write!(f, "workstation:{name}"),
        }
    }
}

crate::serde_by_display!(Constraint);

impl JsonSchema for Constraint {
    fn schema_name() -> Cow<'static, str> {
        "Constraint".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^(path:|verb:|command:|network:none$|workstation:).*"})
    }
}

/// What a grant is held to: the map's rule for the type, its role's, and what whoever grants it adds.
pub fn of_grant(policy: &Policy, spec: &Spec, asked: &[Constraint]) -> Vec<Constraint> {
    let map = policy.in_force().map(|in_force| &in_force.map);
    let rule = map.and_then(|map| map.rule_of(spec)).map(|(_, rule)| &rule.constraints);
    let role = map.and_then(|map| map.roles.get(map.role_of(spec)?)).map(|role| &role.constraints);
    let mut all: Vec<Constraint> = rule.into_iter().chain(role).flatten().chain(asked).cloned().collect();
    all.sort();
    all.dedup();
    all
}

/// Several, for people.
pub fn words(constraints: &[Constraint]) -> String {
    constraints.iter().map(ToString::to_string).collect::<Vec<_>>().join(" · ")
}

/// Each changed path that no constraint allows, with the reason.
pub fn against_path(constraints: &[Constraint], path: &str) -> Option<String> {
    let mut globs = constraints
        .iter()
        .filter_map(|one| match one {
            Constraint::Path(glob) => Some(glob),
            _ => None,
        })
        .peekable();
    globs.peek()?;
    let allowed = globs.any(|glob| Glob::parse(glob).is_ok_and(|glob| glob.matches(path)));
    (!allowed).then(|| "outside what the assignment allows".to_owned())
}

/// Whether the holder may write in a workstation that is not its own.
pub fn opens(constraints: &[Constraint], place: &WorkstationName) -> bool {
    constraints.iter().any(|one| matches!(one, Constraint::Workstation(name) if name == place))
}

/// What a takeover keeps of what was said to the holder before: not the places that were opened to it.
pub(crate) fn kept(constraints: &[Constraint]) -> Vec<Constraint> {
    let is_kept = |one: &&Constraint| !matches!(one, Constraint::Workstation(_));
    constraints.iter().filter(is_kept).cloned().collect()
}

/// Whether checks and commands may reach the network.
pub fn has_network(constraints: &[Constraint]) -> bool {
    !constraints.contains(&Constraint::NoNetwork)
}

/// A holder's command that its assignment holds back. People are not held back: what they do is in the record.
pub(crate) fn forbidden(task: &Task, caller: &Worker, command: &Command) -> Option<Refusal> {
    let held = task.assignment().filter(|held| held.assignee == caller.handle && !caller.is_human())?;
    let verb = verb_of(command)?;
    let allowed: Vec<&str> = held
        .constraints
        .iter()
        .filter_map(|one| match one {
            Constraint::Verb(verb) => Some(verb.as_str()),
            _ => None,
        })
        .collect();
    if allowed.is_empty() || allowed.contains(&verb) {
        return None;
    }
    let detail =
        format!("{verb} is not allowed under this assignment: {} and release are", allowed.join(", "));
    let hint = format!("onus release {} --note TEXT, or ask whoever gave it to you", task.id);
    Some(Refusal::new(Code::NotPermitted, detail).hint(hint))
}

const fn verb_of(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Note { .. } => "note",
        Command::AddCheck { .. } | Command::RecordCheck { .. } => "check",
        Command::Handoff { .. } => "handoff",
        Command::Block { .. } => "block",
        Command::Complete { .. } => "complete",
        Command::Merge { .. } | Command::RequestReview { .. } => "merge",
        Command::Edit { .. } => "edit",
        _ => return None,
    })
}

/// The first of some shell commands that no constraint allows. Every part of a line counts, whatever joins them.
pub fn against_line(constraints: &[Constraint], line: &str) -> Option<Finding> {
    let allowed: Vec<&str> = constraints
        .iter()
        .filter_map(|one| match one {
            Constraint::Command(words) => Some(words.as_str()),
            _ => None,
        })
        .collect();
    if allowed.is_empty() {
        return None;
    }
    let begins = |part: &str, words: &str| part == words || part.starts_with(&format!("{words} "));
    let is_allowed = |part: &str| allowed.iter().any(|words| begins(part, words));
    let hides = ["$(", "`", "<(", ">("].iter().find(|mark| line.contains(*mark));
    let wrong = match hides {
        Some(mark) => (*mark).to_owned(),
        None => crate::shell_line::commands(line).into_iter().find(|part| !is_allowed(part))?,
    };
    let detail =
        format!("{} is not allowed under this assignment: {} are", shown(&wrong), allowed.join(", "));
    Some(Finding::new(Code::NotPermitted, detail).hint("use one of them, or ask whoever gave you the task"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Vec<Constraint> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn they_are_written_as_they_are_read() {
        for text in ["path:src/**", "verb:note", "command:cargo test", "network:none"] {
            assert_eq!(text.parse::<Constraint>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "path:",
            "path:../x",
            "verb:fly",
            "verb:release",
            "network:all",
            "paths:src",
            "command:\u{7}",
        ] {
            assert!(text.parse::<Constraint>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_kind_that_is_not_given_holds_nothing_back() {
        let only = parsed(&["path:docs/**", "command:cargo test", "command:git"]);
        assert_eq!(against_path(&parsed(&["network:none"]), "src/a"), None);
        assert_eq!(against_path(&only, "docs/a.md"), None);
        assert!(against_path(&only, "src/a.rs").is_some());
        assert!(!has_network(&parsed(&["network:none"])) && has_network(&only));
        for line in [
            "cargo test --all",
            "git status && cargo test",
            "cargo  test",
            "git commit -m 'a; b'",
            "A=1 cargo test",
        ] {
            assert!(against_line(&only, line).is_none(), "{line}");
        }
        for line in
            ["cargo build", "git log | sh", "cargo test; rm -rf x", "gitk", "echo $(curl x)", "cargo tests"]
        {
            assert!(against_line(&only, line).is_some(), "{line}");
        }
        assert!(against_line(&parsed(&["verb:note"]), "rm -rf x").is_none());
    }
}
