//! How a store fails, and what a caller is told.

use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::fmt;

pub type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// Nothing was written; try again.
    Busy(String),
    /// Nothing was written; somebody must act first.
    Unavailable { detail: String, hint: Option<String> },
    /// The commit failed halfway: it may or may not have happened. The request id tells.
    Unknown(String),
    /// A row, a page or a file makes no sense.
    Corrupt(String),
    /// A guarded change touched another number of rows than one: nothing was written.
    Guard(String),
    /// The tables refuse what the rules allow: their rows or their schema are not what this program wrote.
    Constraint(String),
    /// There is no store here yet.
    Missing(String),
    /// The store is behind a server, and this cannot be asked through it.
    Elsewhere,
}

impl StoreError {
    pub fn unavailable(detail: impl Into<String>) -> StoreError {
        StoreError::Unavailable { detail: detail.into(), hint: None }
    }

    /// Says which statement found it.
    pub(crate) fn in_statement(self, name: &str) -> StoreError {
        match self {
            StoreError::Corrupt(detail) => StoreError::Corrupt(format!("{detail} ({name})")),
            StoreError::Guard(detail) => StoreError::Guard(format!("{detail} ({name})")),
            StoreError::Constraint(detail) => StoreError::Constraint(format!("{detail} ({name})")),
            other => other,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Busy(text)
            | StoreError::Unavailable { detail: text, .. }
            | StoreError::Unknown(text)
            | StoreError::Corrupt(text)
            | StoreError::Guard(text)
            | StoreError::Constraint(text)
            | StoreError::Missing(text) => f.write_str(text),
            StoreError::Elsewhere => f.write_str("this needs the store itself, not a server in front of it"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            StoreError::Busy(detail) => Refusal::new(Code::StoreBusy, detail).hint("try again"),
            StoreError::Unavailable { detail, hint } => {
                let mut refusal = Refusal::new(Code::StoreUnavailable, detail);
                refusal.hint = Some(hint.unwrap_or_else(|| "try again; onus doctor tells more".into()));
                refusal
            }
            StoreError::Unknown(detail) => Refusal::new(
                Code::StoreUnavailable,
                format!("the outcome is unknown: {detail}"),
            )
            .hint(
                "repeat the call with --request-id and the request id given here: it answers what happened",
            ),
            StoreError::Corrupt(detail) => Refusal::new(
                Code::StoreUnavailable,
                format!("the store is damaged: {detail}"),
            )
            .hint(
                "onus doctor tells more; restore a backup, then: onus ledger raise-generation --reason TEXT",
            ),
            StoreError::Guard(detail) => Refusal::new(Code::StoreBusy, detail).hint("try again"),
            StoreError::Constraint(detail) => Refusal::new(
                Code::StoreUnavailable,
                format!("the store's tables refuse what the rules allow: {detail}"),
            )
            .hint("onus doctor tells what was changed in them; to try again is of no use"),
            StoreError::Missing(detail) => Refusal::new(Code::StoreUnavailable, detail)
                .hint("onus init; or, where a team shares one: onus --store URL init"),
            elsewhere @ StoreError::Elsewhere => Refusal::new(Code::NotPermitted, elsewhere.to_string())
                .hint("run it where the store is: onus --store sqlite:PATH or postgres://…"),
        }
    }
}
