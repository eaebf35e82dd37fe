//! How a client is called where no person sits at it: what the file of a preset says (mission D15).

use crate::code::Code;
use crate::id::PresetName;
use crate::refusal::{Finding, Refusal};
use crate::text::LIST_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Stands for the task in the words of a call.
pub const PROMPT: &str = "{prompt}";
/// For the name that the client gave its session.
const SESSION: &str = "{session}";
/// For the `command` of an agent, as one line.
const COMMAND: &str = "{command}";
/// For all words of the call, in the words that resume one.
const CALL: &str = "{call}";

/// A client whose call is known: one of ours, or of `presets` in onus.yaml.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The words of a call without a terminal. `{prompt}` stands for the task in words, `{command}` for the agent's own line.
    pub call: Vec<String>,
    /// The words that go on with a session of the client's own, `{session}`; `{call}` stands for all words of the call. Absent
    /// where it cannot.
    #[serde(default)]
    pub resume: Vec<String>,
    /// In which form it tells what it does and uses up. Absent: whatever is known is understood.
    #[serde(default)]
    pub transcript: Option<Transcript>,
    #[serde(default)]
    pub usage: UsageSpan,
    /// Where it keeps its own settings and records, below the home directory: a sandbox lets it write there.
    #[serde(default)]
    pub writes: Vec<String>,
}

/// A form of what clients print about themselves, line by line in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transcript {
    /// Claude Code: `--output-format stream-json`.
    Claude,
    /// Codex: `exec --json`.
    Codex,
    /// Gemini CLI: `-o stream-json`.
    Gemini,
    /// opencode: `run --format json`.
    Opencode,
}

/// What a resumed client counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageSpan {
    /// What it used since it was started.
    #[default]
    Run,
    /// What its session has used from the beginning.
    Thread,
}

impl Preset {
    /// The words of its call, with an agent's own line where it takes one.
    pub(super) fn called(&self, command: &[String]) -> Vec<String> {
        let line = command.join(" ");
        self.call.iter().map(|word| if word == COMMAND { line.clone() } else { word.clone() }).collect()
    }

    /// Whether it runs a line of the agent's own.
    pub(super) fn takes_command(&self) -> bool {
        self.call.iter().any(|word| word == COMMAND)
    }

    /// The words of its call that go on with a session of its own; none where it cannot.
    pub fn resumed(&self, session: &str) -> Option<Vec<String>> {
        let words = self.resume.iter().flat_map(|word| match word.as_str() {
            CALL => self.call.clone(),
            SESSION => vec![session.to_owned()],
            other => vec![other.to_owned()],
        });
        (!self.resume.is_empty()).then(|| words.collect())
    }

    /// What cannot be meant.
    fn mistakes(&self, name: &PresetName) -> Vec<String> {
        let has = |words: &[String], wanted: &str| words.iter().any(|word| word == wanted);
        let is_below_home =
            |path: &String| !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let rules = [
            (self.call.is_empty() || self.call[0].is_empty(), "call: the words of a call are wanted"),
            (
                self.call.len().max(self.resume.len()).max(self.writes.len()) > LIST_MAX,
                "more words than a call has",
            ),
            (
                !self.resume.is_empty() && !has(&self.resume, SESSION),
                "resume: {session} is to stand for the session",
            ),
            (
                has(&self.call, SESSION) || has(&self.call, CALL),
                "call: {session} and {call} belong to resume",
            ),
            (!self.writes.iter().all(is_below_home), "writes: paths below the home directory, e.g. .claude"),
        ];
        let wrong = rules.into_iter().filter(|(is_wrong, _)| *is_wrong);
        wrong.map(|(_, what)| format!("presets.{name}: {what}")).collect()
    }
}

/// One finding for everything that is wrong with presets.
pub fn mistakes(presets: &BTreeMap<PresetName, Preset>) -> Vec<Finding> {
    let all = presets.iter().flat_map(|(name, preset)| preset.mistakes(name));
    all.map(|detail| Finding::new(Code::InvalidInput, detail).hint("docs/reference/presets.md")).collect()
}

/// Every preset that is known here, ours and the team's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Presets(BTreeMap<PresetName, Preset>);

impl Presets {
    /// Later ones take the place of earlier ones of the same name.
    pub fn new(all: impl IntoIterator<Item = (PresetName, Preset)>) -> Presets {
        Presets(all.into_iter().collect())
    }

    pub fn find(&self, name: &PresetName) -> Result<&Preset, Refusal> {
        self.0.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(PresetName::as_str).collect();
            Refusal::invalid(format!("{name} is no preset; known: {}", known.join(", ")))
                .hint("presets: {NAME: {call: [...]}} in onus.yaml adds one")
        })
    }

    /// What all of them write below the home directory.
    pub fn writes(&self) -> impl Iterator<Item = &str> {
        self.0.values().flat_map(|preset| &preset.writes).map(String::as_str)
    }
}
