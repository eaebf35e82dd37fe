//! Saved views for people.

use super::table::Table;
use super::{BOLD, paint, when};
use onus_app::saved_view::ViewsView;

pub(crate) fn views(view: &ViewsView) -> String {
    if view.views.is_empty() {
        return "no saved views\n".into();
    }
    let mut table = Table::new(["NAME", "SAVED BY", "SAVED", "SHOWS"]);
    for saved in &view.views {
        let words: Vec<String> =
            saved.query.0.iter().map(|(word, value)| format!("{word} {value}")).collect();
        table.row([
            paint(BOLD, &saved.name),
            saved.saved_by.to_string(),
            when(saved.saved_at),
            words.join(", "),
        ]);
    }
    table.to_string()
}
