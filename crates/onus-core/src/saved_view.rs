//! Saved views: filters of the board and of `list` under a name that the whole team sees (mission E3).
//!
//! A view is words of the board's address. It keeps no tasks: whoever opens it asks anew.

use crate::code::Code;
use crate::event::ViewSaved;
use crate::id::{Seq, shown};
use crate::refusal::Refusal;
use crate::text::{LABEL_MAX, TITLE_MAX, line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many a team keeps: more than that nobody finds again.
pub const VIEWS_MAX: usize = 50;

/// The words of the board's address that a view may have: which tasks, and how they are shown.
pub const WORDS: [&str; 16] = [
    "assignee", "columns", "group", "lane", "lanes", "parent", "priority", "project", "q", "role", "sort",
    "sprint", "state", "tag", "type", "view",
];

/// What a view asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ViewQuery(pub BTreeMap<String, String>);

impl ViewQuery {
    /// One of its words; an empty one is none.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    pub name: String,
    pub query: ViewQuery,
    /// The entry that says so.
    pub saved: Seq,
}

/// Whether a view may be saved, or removed, as it is wanted, and as it goes on record; none where nothing would change.
/// `found` has its name; `count` are all that there are.
pub fn save(
    found: Option<&SavedView>,
    count: usize,
    wanted: &ViewSaved,
) -> Result<Option<ViewSaved>, Refusal> {
    let name = line("the view's name", &wanted.name, LABEL_MAX).map_err(Refusal::invalid)?;
    let Some(query) = &wanted.query else {
        let missing = || {
            Refusal::new(Code::UnknownName, format!("there is no view {}", shown(&name)))
                .hint("onus view list")
        };
        return found.map(|_| Some(ViewSaved { name: name.clone(), query: None })).ok_or_else(missing);
    };
    for (word, value) in &query.0 {
        if !WORDS.contains(&word.as_str()) {
            return Err(Refusal::invalid(format!(
                "a view has no {}; it has {}",
                shown(word),
                WORDS.join(", ")
            )));
        }
        line(word, value, TITLE_MAX).map_err(Refusal::invalid)?;
    }
    if query.0.is_empty() {
        return Err(Refusal::invalid("a view without a filter is the board itself")
            .hint("filter or arrange the tasks first, then save that"));
    }
    if found.is_none() && count >= VIEWS_MAX {
        return Err(Refusal::invalid(format!("there are {VIEWS_MAX} views: more nobody finds again"))
            .hint("onus view remove NAME"));
    }
    if found.is_some_and(|found| found.query == *query) {
        return Ok(None);
    }
    Ok(Some(ViewSaved { name, query: Some(query.clone()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, words: &[(&str, &str)]) -> ViewSaved {
        let query = words.iter().map(|(word, value)| ((*word).to_owned(), (*value).to_owned())).collect();
        ViewSaved { name: name.into(), query: Some(ViewQuery(query)) }
    }

    fn told(found: Option<&SavedView>, count: usize, wanted: &ViewSaved) -> String {
        match save(found, count, wanted) {
            Ok(Some(saved)) => format!("saved {}", saved.name),
            Ok(None) => "as it was".to_owned(),
            Err(refusal) => refusal.detail,
        }
    }

    #[test]
    fn a_view_is_words_that_the_board_knows() {
        let by_holder = wanted(" By holder ", &[("group", "holder"), ("view", "list")]);
        assert_eq!(told(None, 0, &by_holder), "saved By holder");
        let query = by_holder.query.clone().unwrap_or_default();
        let found = SavedView { name: "By holder".into(), query, saved: 3 };
        assert_eq!(told(Some(&found), 1, &by_holder), "as it was");
        assert_eq!(told(Some(&found), VIEWS_MAX, &wanted("By holder", &[("tag", "x")])), "saved By holder");
        assert!(told(None, VIEWS_MAX, &by_holder).contains("50 views"));
        assert!(told(None, 0, &wanted("x", &[("onclick", "1")])).contains("a view has no `onclick`"));
        assert!(told(None, 0, &wanted("x", &[("q", "a\u{1b}[2J")])).contains("control characters"));
        assert!(told(None, 0, &wanted("", &[("q", "a")])).contains("is empty"));
        assert!(told(None, 0, &wanted("x", &[])).contains("the board itself"));
        let gone = ViewSaved { name: "By holder".into(), query: None };
        assert_eq!(told(Some(&found), 1, &gone), "saved By holder");
        assert_eq!(told(None, 0, &gone), "there is no view `By holder`");
    }
}
