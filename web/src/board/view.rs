//! What the template of the board is filled with.

use super::card::Card;
use crate::PageRequest;
use crate::html::Html;
use askama::Template;
use onus_app::saved_view::SavedViewLine;
use onus_core::task::StateName;
use std::collections::BTreeMap;

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
    /// Instead of columns.
    pub(super) list: Option<ListPart>,
    /// The addresses of both.
    pub(super) as_board: String,
    pub(super) as_list: String,
    pub(super) person: bool,
    /// The views that the team keeps.
    pub(super) saved: Vec<SavedLink>,
}

/// A saved view, and whether it is what is shown.
#[derive(Debug)]
pub(super) struct SavedLink {
    pub(super) name: String,
    pub(super) href: String,
    pub(super) by: String,
    pub(super) here: bool,
}

impl SavedLink {
    pub(super) fn new(saved: &SavedViewLine, seen: &PageRequest) -> SavedLink {
        let own = &saved.query.0;
        let words = form_urlencoded::Serializer::new(String::new()).extend_pairs(own).finish();
        SavedLink {
            name: saved.name.clone(),
            href: format!("{}?{words}", seen.path),
            by: saved.saved_by.to_string(),
            here: is_shown(own, seen),
        }
    }
}

/// Whether the address asks for the same, in whatever order. How far somebody has scrolled is no part of a view.
fn is_shown(own: &BTreeMap<String, String>, seen: &PageRequest) -> bool {
    let here: BTreeMap<&str, &str> = seen.words().filter(|(word, _)| *word != "show").collect();
    here.len() == own.len()
        && own.iter().all(|(word, value)| here.get(word.as_str()) == Some(&value.as_str()))
}

/// A column of the board. What is open stands in two: what can begin, and what waits for another task.
#[derive(Debug)]
pub(super) struct ColumnKind {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) icon: &'static str,
    pub(super) state: StateName,
    /// What an empty one says to whoever is new here.
    pub(super) empty: &'static str,
}

pub(super) const COLUMNS: [ColumnKind; 6] = [
    ColumnKind {
        key: "ready",
        title: "Ready",
        icon: "circle",
        state: StateName::Open,
        empty: "Nothing is ready. Ask for something: press c.",
    },
    ColumnKind {
        key: "waiting",
        title: "Waiting",
        icon: "circle-dashed",
        state: StateName::Open,
        empty: "Nothing waits for another task.",
    },
    ColumnKind {
        key: "in_progress",
        title: "In progress",
        icon: "circle-dot",
        state: StateName::InProgress,
        empty: "Nobody works. Drag a card here, or press m on it.",
    },
    ColumnKind {
        key: "blocked",
        title: "Blocked",
        icon: "circle-pause",
        state: StateName::Blocked,
        empty: "Nothing is blocked.",
    },
    ColumnKind {
        key: "complete",
        title: "Complete",
        icon: "circle-check",
        state: StateName::Complete,
        empty: "Nothing is complete yet.",
    },
    ColumnKind {
        key: "dropped",
        title: "Dropped",
        icon: "circle-x",
        state: StateName::Dropped,
        empty: "Nothing was given up.",
    },
];

#[derive(Debug)]
pub(super) struct Column {
    pub(super) kind: &'static ColumnKind,
    pub(super) count: String,
    /// The address that shows more of it.
    pub(super) further: Option<String>,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) name: String,
    /// Of each column the cards, in runs.
    pub(super) cells: Vec<(&'static ColumnKind, Vec<Vec<Card>>)>,
}

/// The same tasks as a table.
#[derive(Debug)]
pub(super) struct ListPart {
    pub(super) heads: Vec<ListHead>,
    pub(super) groups: Vec<(String, Vec<ListRow>)>,
    pub(super) grouped: bool,
    pub(super) more: Option<String>,
    /// The columns that are shown; id and title always are.
    pub(super) columns: Vec<&'static str>,
    /// Each of the others, with the address that shows or hides it.
    pub(super) choices: Vec<Choice>,
    /// Words of the address that another filter leaves as they are.
    pub(super) kept: Vec<(&'static str, String)>,
}

impl ListPart {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }
}

#[derive(Debug)]
pub(super) struct ListHead {
    pub(super) label: &'static str,
    pub(super) href: String,
    /// `ascending` or `descending`, where the list is in its order.
    pub(super) order: Option<&'static str>,
    /// Left out where there is little room.
    pub(super) less: bool,
}

#[derive(Debug)]
pub(super) struct ListRow {
    pub(super) card: Card,
    pub(super) column: &'static ColumnKind,
    pub(super) task_type: String,
    pub(super) changed: Html,
}

#[derive(Debug)]
pub(super) struct Select {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) choices: Vec<Choice>,
}

impl Select {
    /// Whether it holds anything back.
    pub(super) fn is_set(&self) -> bool {
        self.choices.iter().any(|choice| choice.chosen && !choice.value.is_empty())
    }
}

#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) chosen: bool,
}

impl Choice {
    /// `Any role`: what it is a choice of needs no word beside it.
    pub(super) fn any(label: &str, chosen: bool) -> Choice {
        Choice { value: String::new(), label: format!("Any {}", label.to_lowercase()), chosen }
    }
}
