//! A refusal is a value: a stable code, what happened, what to do next, and every finding at once.

use crate::code::{Class, Code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One reason among several; a gate reports all of them together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    pub code: Code,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// What it is, where one code stands for several things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The task that it is about, where a refusal is about several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The directory, branch or reference that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Finding {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Finding {
            code,
            detail: detail.into(),
            hint: None,
            class: code.class(),
            kind: None,
            task: None,
            path: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A hint, where there is one.
    #[must_use]
    pub fn hinted(self, hint: Option<String>) -> Self {
        Finding { hint, ..self }
    }
}

/// The answer "no", with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub code: Code,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Refusal {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Refusal {
            code,
            detail: detail.into(),
            hint: None,
            task: None,
            findings: Vec::new(),
            request_id: None,
        }
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Refusal::new(Code::InvalidInput, detail)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A next step for input that was not valid, where it has none of its own: `usage` is how the front end tells what it
    /// takes.
    #[must_use]
    pub fn or_usage(self, usage: impl FnOnce() -> String) -> Self {
        match (self.code, &self.hint) {
            (Code::InvalidInput, None) => self.hint(usage()),
            _ => self,
        }
    }

    #[must_use]
    pub fn task(mut self, task: &impl ToString) -> Self {
        self.task = Some(task.to_string());
        self
    }

    #[must_use]
    pub fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.findings = findings;
        self
    }

    /// The first finding names the refusal; the others travel with it. `None` when there is nothing to refuse.
    pub fn from_findings(findings: Vec<Finding>) -> Option<Self> {
        let first = findings.first()?;
        let detail = match findings.len() {
            1 => first.detail.clone(),
            n => format!("{} (and {} more)", first.detail, n - 1),
        };
        let mut refusal = Refusal::new(first.code, detail);
        refusal.hint = first.hint.clone();
        refusal.findings = findings;
        Some(refusal)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.detail, self.code)
    }
}

impl std::error::Error for Refusal {}

/// How a list of findings begins: what is wrong, and how much more there is.
pub fn told(count: usize, first: &str) -> String {
    match count {
        1 => first.to_owned(),
        many => format!("{many} findings; the first: {first}"),
    }
}
