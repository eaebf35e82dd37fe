//! The handoff (mission D10): what whoever holds a task next needs to know, in one exact structure.
//!
//! Git and the store know most of it; the holder adds what only it knows ([`Words`]). It is kept as a note of kind
//! `handoff`, whose text is this document.

mod in_words;

use crate::id::{CommitId, Epoch, Handle, TaskId, WorkstationName};
use crate::task::StateName;
use crate::text::{BODY_MAX, REASON_MAX, Text, is_unprintable, line, lines, shortened};
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The version of the structure; a reader refuses what it does not know.
pub const FORMAT: &str = "onus-handoff/1";

const LISTED_MAX: usize = 100;
const RISKS_MAX: usize = 32;
const SUMMARY_MAX: usize = 16_384;

/// What only the holder can say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    pub summary: Option<String>,
    pub risks: Vec<String>,
    pub next_slice: Option<String>,
}

impl Words {
    pub fn is_empty(&self) -> bool {
        *self == Words::default()
    }

    /// The words as they were given, by which a repeated request is known.
    pub fn said(&self) -> Option<Text> {
        let text = serde_json::to_string(self).ok().filter(|_| !self.is_empty());
        text.map(Text::new)
    }

    /// All that is wrong with them is told at once.
    pub fn checked(&self) -> Result<Words, String> {
        let mut wrong = Vec::new();
        let mut keep = |checked: Result<String, String>| checked.map_err(|why| wrong.push(why)).ok();
        let summary = self.summary.as_deref().and_then(|text| keep(lines("the summary", text, SUMMARY_MAX)));
        let next_slice =
            self.next_slice.as_deref().and_then(|text| keep(line("the next slice", text, REASON_MAX)));
        let risks = self.risks.iter().filter_map(|text| keep(line("a risk", text, REASON_MAX))).collect();
        if self.risks.len() > RISKS_MAX {
            wrong.push(format!("there are {} risks; the limit is {RISKS_MAX}", self.risks.len()));
        }
        if wrong.is_empty() { Ok(Words { summary, risks, next_slice }) } else { Err(wrong.join("; ")) }
    }
}

/// How the work stood when it was handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The holder goes on.
    InProgress,
    Blocked,
    Released,
    /// Somebody else holds it; the holder had no say in this document.
    TakenOver,
    /// The work is complete.
    Done,
}

impl Standing {
    pub const fn name(self) -> &'static str {
        match self {
            Standing::InProgress => "in_progress",
            Standing::Blocked => "blocked",
            Standing::Released => "released",
            Standing::TakenOver => "taken_over",
            Standing::Done => "done",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DependsOn {
    pub task: TaskId,
    /// `null` where there is no such task.
    pub state: Option<StateName>,
    pub satisfied: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandedCommit {
    pub id: CommitId,
    pub subject: String,
}

/// A check that ran for this task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRun {
    pub command: String,
    /// passed, failed, timed_out or could_not_run
    pub verdict: String,
    pub commit: Option<CommitId>,
    pub at: Timestamp,
    /// A caller says so: Onus did not run it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
}

/// How many of each list were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub commits: usize,
    pub files: usize,
    pub dirty: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// Always `onus-handoff/1`.
    pub format: String,
    pub task: TaskId,
    pub status: Standing,
    /// Whether every dependency is complete, or excepted by a person.
    pub depends_on_satisfied: bool,
    pub depends_on: Vec<DependsOn>,
    /// Since the work began here, newest first.
    pub commits: Vec<HandedCommit>,
    /// What those commits changed.
    pub files: Vec<String>,
    pub tests_run: Vec<TestRun>,
    pub risks: Vec<String>,
    pub blockers: Vec<String>,
    pub next_slice: Option<String>,
    /// The role's slot, as `role:lane`.
    pub lane: Option<String>,
    /// In the holder's words.
    pub summary: Option<String>,
    /// Whose work this is.
    pub by: Handle,
    pub at: Timestamp,
    pub epoch: Epoch,
    pub workstation: WorkstationName,
    pub branch: Option<String>,
    /// Where the workstation stood when the work began, and where it stands.
    pub base: Option<CommitId>,
    pub head: Option<CommitId>,
    /// Changed in the working tree and in no commit.
    pub dirty: Vec<String>,
    /// The reference under which a former holder's work is kept.
    pub salvage: Option<String>,
    #[serde(default)]
    pub left_out: LeftOut,
    /// Acceptance criteria as they stood: `[x] text` is met, `[ ] text` is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
}

impl Handoff {
    /// As it is stored: one line, never longer than a note may be.
    pub fn document(mut self) -> Result<String, serde_json::Error> {
        self.shorten(LISTED_MAX);
        self.tidy();
        let mut limit = LISTED_MAX;
        loop {
            let text = serde_json::to_string(&self)?;
            if text.len() <= BODY_MAX || limit == 0 {
                return Ok(text);
            }
            limit /= 2;
            self.shorten(limit);
            self.tests_run.truncate(limit);
            self.criteria.truncate(limit);
        }
    }

    /// Subjects and paths are whatever git found; a note holds nothing that drives a terminal.
    fn tidy(&mut self) {
        let subjects = self.commits.iter_mut().map(|commit| &mut commit.subject);
        let commands = self.tests_run.iter_mut().map(|run| &mut run.command);
        for text in subjects.chain(commands).chain(&mut self.files).chain(&mut self.dirty) {
            if text.chars().any(is_unprintable) {
                *text = plain(text);
            }
        }
    }

    fn shorten(&mut self, limit: usize) {
        let over = |length: usize| length.saturating_sub(limit);
        self.left_out.commits += over(self.commits.len());
        self.left_out.files += over(self.files.len());
        self.left_out.dirty += over(self.dirty.len());
        self.commits.truncate(limit);
        self.files.truncate(limit);
        self.dirty.truncate(limit);
    }

    /// The same in few words: so many names of each list, so many bytes of each text.
    #[must_use]
    pub fn in_short(mut self, names: usize, bytes: usize) -> Handoff {
        self.shorten(names);
        self.depends_on.truncate(names);
        self.tests_run.truncate(names);
        self.risks.truncate(names);
        self.blockers.truncate(names);
        self.criteria.truncate(names);
        let subjects = self.commits.iter_mut().map(|commit| &mut commit.subject);
        let commands = self.tests_run.iter_mut().map(|run| &mut run.command);
        let lists =
            self.files.iter_mut().chain(&mut self.dirty).chain(&mut self.risks).chain(&mut self.blockers);
        let lists = lists.chain(&mut self.criteria);
        let words = self.summary.iter_mut().chain(&mut self.next_slice).chain(&mut self.branch);
        for text in subjects.chain(commands).chain(lists).chain(words) {
            *text = shortened(text, bytes);
        }
        self
    }

    /// Reads a note of kind `handoff`.
    pub fn parse(text: &str) -> Result<Handoff, String> {
        let read: Handoff = serde_json::from_str(text).map_err(|e| format!("no handoff: {e}"))?;
        if read.format == FORMAT {
            Ok(read)
        } else {
            Err(format!(
                "a handoff of the format {}; this version knows {FORMAT}",
                crate::id::shown(&read.format)
            ))
        }
    }

    /// The same for people, and for agents that read prose.
    pub fn markdown(&self) -> String {
        let mut text = format!("# Handoff of {}\n\n", self.task);
        let _ = writeln!(text, "- **Task**: {}", self.task);
        // Whoever takes over does not speak here: this is what the former holder left.
        let word = if self.status == Standing::TakenOver { "from" } else { "by" };
        let _ = writeln!(text, "- **Status**: {} {word} {} at {}", self.status.name(), self.by, self.at);
        let _ = writeln!(text, "- **Depends on satisfied**: {}", self.dependencies());
        section(&mut text, "Commits", self.commits.iter().map(commit_line), self.left_out.commits);
        section(&mut text, "Files", self.files.iter().map(|path| code(path)), self.left_out.files);
        let tests = self.tests_run.iter().map(|run| {
            let stated = if run.stated { " (stated)" } else { "" };
            format!("{}{stated} {}", run.verdict, code(&run.command))
        });
        section(&mut text, "Tests run", tests, 0);
        if !self.criteria.is_empty() {
            section(&mut text, "Criteria", self.criteria.iter().map(|one| plain(one)), 0);
        }
        let dirty = self.dirty.iter().map(|path| code(path));
        let risks = self.risks.iter().map(|risk| plain(risk));
        let blockers = self.blockers.iter().map(|on| format!("blocked on {}", plain(on)));
        section(&mut text, "Risks and blockers", risks.chain(blockers), 0);
        let or_none = |value: Option<&str>| value.map_or_else(|| "none".into(), plain);
        let _ = writeln!(text, "- **Next slice**: {}", or_none(self.next_slice.as_deref()));
        let _ = writeln!(text, "- **Lane**: {}", or_none(self.lane.as_deref()));
        let _ = writeln!(text, "- **Where**: {}", self.place());
        if !self.dirty.is_empty() {
            section(&mut text, "Not committed", dirty, self.left_out.dirty);
        }
        if let Some(reference) = &self.salvage {
            let _ = writeln!(text, "- **Kept in**: {}", code(reference));
        }
        if let Some(summary) = &self.summary {
            let quoted: Vec<String> = summary.lines().map(|line| format!("> {}", plain(line))).collect();
            let _ = writeln!(text, "\n{}", quoted.join("\n"));
        }
        text
    }

    fn dependencies(&self) -> String {
        let waits: Vec<String> = self
            .depends_on
            .iter()
            .map(|on| {
                let state = on.state.map_or("missing", |state| state.name());
                let is_excepted = on.satisfied && on.state != Some(StateName::Complete);
                format!(
                    "{} {state}{}",
                    on.task,
                    if is_excepted { ", let through by an exception" } else { "" }
                )
            })
            .collect();
        let word = if self.depends_on_satisfied { "yes" } else { "no" };
        if waits.is_empty() { format!("{word} (none)") } else { format!("{word} ({})", waits.join(", ")) }
    }

    fn place(&self) -> String {
        let mut text = format!("{}, epoch {}", self.workstation, self.epoch);
        if let Some(branch) = &self.branch {
            let _ = write!(text, ", branch {}", code(branch));
        }
        for (word, commit) in [("base", &self.base), ("head", &self.head)] {
            if let Some(commit) = commit {
                let _ = write!(text, ", {word} {}", short(commit));
            }
        }
        text
    }
}

fn section(text: &mut String, name: &str, entries: impl Iterator<Item = String>, left_out: usize) {
    let entries: Vec<String> = entries.collect();
    if entries.is_empty() {
        let _ = writeln!(text, "- **{name}**: none");
        return;
    }
    let _ = writeln!(text, "- **{name}**:");
    for entry in entries {
        let _ = writeln!(text, "  - {entry}");
    }
    if left_out > 0 {
        let _ = writeln!(text, "  - and {left_out} more");
    }
}

fn commit_line(commit: &HandedCommit) -> String {
    format!("{} {}", short(&commit.id), plain(&commit.subject))
}

fn short(commit: &CommitId) -> String {
    commit.to_string().chars().take(12).collect()
}

/// Paths and commands are anybody's text: they must not end the code they are set in.
fn code(text: &str) -> String {
    format!("`{}`", plain(text).replace('`', "'"))
}

/// One line that drives no terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handoff() -> Handoff {
        Handoff {
            format: FORMAT.into(),
            task: "API-12".parse().unwrap(),
            status: Standing::Released,
            depends_on_satisfied: false,
            depends_on: vec![DependsOn {
                task: "API-3".parse().unwrap(),
                state: Some(StateName::InProgress),
                satisfied: false,
            }],
            commits: vec![HandedCommit { id: "ab".repeat(20).parse().unwrap(), subject: "limiter".into() }],
            files: vec!["src/`limit`.rs".into()],
            tests_run: Vec::new(),
            risks: vec!["the clock".into()],
            blockers: vec!["person:@ada".into()],
            next_slice: Some("tests".into()),
            lane: Some("backend:2".into()),
            summary: Some("half done\nsee the branch\u{1b}[31m".into()),
            by: "@a".parse().unwrap(),
            at: Timestamp(0),
            epoch: 3,
            workstation: "ws-a".parse().unwrap(),
            branch: Some("agent/ws-a".into()),
            base: None,
            head: None,
            dirty: Vec::new(),
            salvage: None,
            left_out: LeftOut::default(),
            criteria: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is() {
        let text = handoff().document().unwrap();
        assert_eq!(Handoff::parse(&text), Ok(handoff()));
        assert!(Handoff::parse(&text.replace("onus-handoff/1", "onus-handoff/2")).is_err());
        assert!(Handoff::parse(&text.replace("\"risks\"", "\"fears\"")).is_err());
        assert!(Handoff::parse("see the branch").is_err());
    }

    #[test]
    fn it_names_every_part_and_drives_no_terminal() {
        let text = handoff().markdown();
        for part in [
            "**Task**: API-12",
            "**Status**: released by @a",
            "**Depends on satisfied**: no (API-3 in_progress)",
            "  - abababababab limiter",
            "`src/'limit'.rs`",
            "**Tests run**: none",
            "  - the clock\n  - blocked on person:@ada",
            "**Next slice**: tests",
            "**Lane**: backend:2",
            "> half done\n> see the branch [31m",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn it_is_never_longer_than_a_note_and_says_what_is_missing() {
        let mut long = handoff();
        long.files = (0..5_000).map(|n| format!("{n}/{}", "x".repeat(2_000))).collect();
        let text = long.document().unwrap();
        assert!(text.len() <= BODY_MAX, "{}", text.len());
        let read = Handoff::parse(&text).unwrap();
        assert_eq!(read.files.len() + read.left_out.files, 5_000);
        assert!(!read.files.is_empty() && read.commits.len() == 1);
    }

    #[test]
    fn words_are_checked_and_all_faults_are_told() {
        let words = Words {
            summary: Some(" ".into()),
            risks: vec!["ok".into(), "a\u{7}".into()],
            next_slice: Some("x\ny".into()),
        };
        let why = words.checked().unwrap_err();
        assert!(
            why.contains("the summary is empty") && why.contains("a risk") && why.contains("the next slice")
        );
        let fine = Words { summary: Some("a\nb\n".into()), ..Words::default() };
        assert_eq!(fine.checked().unwrap().summary.as_deref(), Some("a\nb"));
    }
}
