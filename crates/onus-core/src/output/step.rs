//! What coding clients print about themselves (Claude Code `stream-json`, Codex `exec --json`, Gemini CLI `stream-json`, opencode
//! `--format json`), as steps that people can read. Everything else that is printed passes as it is: anybody may print anything.

mod client;
mod reader;

pub use reader::StepReader;

use crate::session::Counts;

/// One thing that an agent did or said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The client's own name of its session, by which it can be resumed.
    Began {
        session: String,
    },
    Said {
        text: String,
    },
    /// A tool, with the part of its input that tells most.
    Called {
        tool: String,
        text: String,
    },
    Edited {
        tool: String,
        path: String,
    },
    /// What a tool gave back.
    Answered {
        text: String,
        failed: bool,
    },
    /// As the client counts it; Codex counts the whole thread.
    Used {
        counts: Counts,
    },
    Warned {
        text: String,
    },
    /// The client gave up.
    Failed {
        text: String,
    },
    /// No step of a client.
    Printed {
        text: String,
    },
}

impl Step {
    pub const fn kind(&self) -> &'static str {
        match self {
            Step::Began { .. } => "began",
            Step::Said { .. } => "said",
            Step::Called { .. } => "called",
            Step::Edited { .. } => "edited",
            Step::Answered { failed: false, .. } => "answered",
            Step::Answered { failed: true, .. } => "refused",
            Step::Used { .. } => "used",
            Step::Warned { .. } => "warned",
            Step::Failed { .. } => "failed",
            Step::Printed { .. } => "printed",
        }
    }

    pub fn tool(&self) -> Option<&str> {
        match self {
            Step::Called { tool, .. } | Step::Edited { tool, .. } => Some(tool),
            _ => None,
        }
    }

    /// What it says, without its kind and its tool.
    pub fn text(&self) -> String {
        match self {
            Step::Began { session: text }
            | Step::Said { text }
            | Step::Called { text, .. }
            | Step::Edited { path: text, .. }
            | Step::Answered { text, .. }
            | Step::Warned { text }
            | Step::Failed { text }
            | Step::Printed { text } => text.clone(),
            Step::Used { counts } => {
                let cost = counts.cost_micros.map(|micros| format!(", cost {}", units(micros)));
                format!("{} tokens{}", counts.tokens(), cost.unwrap_or_default())
            }
        }
    }

    pub fn line(&self) -> String {
        line(self.kind(), self.tool(), &self.text())
    }
}

/// A step for a terminal or a log: a line, or what was printed as it was.
pub fn line(kind: &str, tool: Option<&str>, text: &str) -> String {
    let sign = match kind {
        "printed" => return text.to_owned(),
        "began" => "session",
        "said" => "●",
        "called" => "▸",
        "edited" => "✎",
        "answered" => "  │",
        "refused" => "  ✗",
        "used" => "Σ",
        "failed" => "✗",
        _ => "!",
    };
    let tool = tool.map(|tool| format!("{tool} ")).unwrap_or_default();
    // Each line of an answer stands under the first one.
    let text = text.trim_end().replace('\n', "\n    ");
    format!("{sign} {tool}{text}\n")
}

/// Millionths, as people write money.
fn units(micros: i64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// The session that a client can go on with: the last one it named, unless it gave up by itself.
pub fn resumable(steps: &[Step]) -> Option<&str> {
    let last = |is: fn(&Step) -> bool| steps.iter().rposition(is);
    let began = last(|step| matches!(step, Step::Began { .. }))?;
    if last(|step| matches!(step, Step::Failed { .. })).is_some_and(|failed| failed > began) {
        return None;
    }
    match &steps[began] {
        Step::Began { session } => Some(session),
        _ => None,
    }
}
