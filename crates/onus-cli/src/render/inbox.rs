//! `inbox` for people.

use onus_app::inbox::InboxView;
use onus_core::text::is_unprintable;
use std::fmt::Write as _;

pub(crate) fn inbox(view: &InboxView) -> String {
    if view.items.is_empty() {
        return "nothing waits for you\n".to_owned();
    }
    let mut text = String::new();
    for item in &view.items {
        let task = item.task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
        let from = item.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let at = item.at.map(|at| format!(", {}", super::when(at))).unwrap_or_default();
        let _ = writeln!(text, "{}{task}{from}{at}", item.kind.name());
        let _ = writeln!(text, "  {}", plain(&item.text));
        let _ = writeln!(text, "  > {}", plain(&item.action));
    }
    if view.more {
        text.push_str("and more\n");
    }
    text
}

/// One line that drives no terminal: these are others' words.
fn plain(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect()
}
