//! What the template of the board is filled with.

use super::card::Card;
use crate::html::Html;
use askama::Template;
use onus_core::task::StateName;

#[derive(Debug, Template)]
#[template(path = "board.html")]
pub(super) struct BoardView {
    pub(super) columns: Vec<Column>,
    pub(super) lanes: Vec<Lane>,
    /// Whether lanes have names.
    pub(super) laned: bool,
    pub(super) selects: Vec<Select>,
    pub(super) q: String,
    pub(super) filtered: bool,
    pub(super) clear: String,
    pub(super) now: Html,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) state: StateName,
    pub(super) count: String,
    /// The address that shows more of it.
    pub(super) further: Option<String>,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) cells: Vec<(StateName, Vec<Card>)>,
}

#[derive(Debug)]
pub(super) struct Select {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) choices: Vec<Choice>,
}

#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) chosen: bool,
}

impl Choice {
    pub(super) fn any(chosen: bool) -> Choice {
        Choice { value: String::new(), label: "any".to_owned(), chosen }
    }
}

/// What a column is called.
pub(super) fn title(state: &StateName) -> &'static str {
    match state {
        StateName::Open => "Open",
        StateName::InProgress => "In progress",
        StateName::Blocked => "Blocked",
        StateName::Complete => "Complete",
        StateName::Dropped => "Dropped",
    }
}
