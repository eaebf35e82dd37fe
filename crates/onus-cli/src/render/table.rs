//! Aligned columns that fit the terminal: the last one takes what is left, and where that is too little, the widest of the
//! others give way.

use super::{DIM, paint};
use std::fmt;
use unicode_width::UnicodeWidthChar;

#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Table {
        Table { rows: vec![header.map(|title| paint(DIM, title)).to_vec()] }
    }

    /// As many columns as there are titles.
    pub(crate) fn titled(titles: Vec<String>) -> Table {
        Table { rows: vec![titles.into_iter().map(|title| paint(DIM, title)).collect()] }
    }

    pub(crate) fn cells(&mut self, cells: Vec<String>) {
        self.rows.push(cells.into_iter().map(one_line).collect());
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(one_line).to_vec());
    }

    /// The text, in so many columns; as wide as it is where nobody says how many.
    pub(super) fn within(&self, columns: Option<usize>) -> String {
        let mut widths = self.widths();
        if let Some(columns) = columns {
            fit(&mut widths, columns);
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, column)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell, *column);
                line.push_str(&cell);
                if i + 1 < row.len() {
                    line.extend(std::iter::repeat_n(' ', column.saturating_sub(width(&cell)) + 2));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        (0..columns).map(|i| self.rows.iter().map(|row| width(&row[i])).max().unwrap_or(0)).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.within(terminal_width()))
    }
}

/// The last column keeps twenty, if it has so much to say; no other one is cut below ten.
fn fit(widths: &mut [usize], columns: usize) {
    const LAST: usize = 20;
    const OTHERS: usize = 10;
    let Some((last, others)) = widths.split_last_mut() else { return };
    let between = 2 * others.len();
    let room = columns.saturating_sub(between);
    while others.iter().sum::<usize>() + (*last).min(LAST) > room {
        match others.iter_mut().max() {
            Some(widest) if *widest > OTHERS => *widest -= 1,
            _ => break,
        }
    }
    let left = room.saturating_sub(others.iter().sum());
    *last = (*last).min(left.max(LAST));
}

/// A pipe has no width: nothing is cut.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(columns, _)| usize::from(columns.0))
}

fn one_line(text: String) -> String {
    if text.contains(['\n', '\r', '\t']) { text.replace(['\n', '\r', '\t'], " ") } else { text }
}

/// The columns a text takes, its colours aside.
fn width(text: &str) -> usize {
    let mut in_escape = false;
    let mut columns = 0;
    for c in text.chars() {
        match (in_escape, c) {
            (false, '\u{1b}') => in_escape = true,
            (true, 'm') => in_escape = false,
            (true, _) => {}
            (false, c) => columns += c.width().unwrap_or(0),
        }
    }
    columns
}

/// The first columns of a text, with an ellipsis where something is missing; its colours end with it.
pub(super) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (mut short, mut used, mut in_escape, mut coloured) = (String::new(), 0, false, false);
    for c in text.chars() {
        match (in_escape, c) {
            (false, '\u{1b}') => (in_escape, coloured) = (true, true),
            (true, 'm') => in_escape = false,
            (true, _) => {}
            (false, c) => used += c.width().unwrap_or(0),
        }
        if used >= room {
            break;
        }
        short.push(c);
    }
    short.push('…');
    if coloured {
        short.push_str("\u{1b}[0m");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_and_colours_keep_the_columns() {
        let mut table = Table::new(["A", "B"]);
        table.row(["日本".into(), "x".into()]);
        table.row([paint(DIM, "abcd"), "y".into()]);
        let plain = anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(plain, "A     B\n日本  x\nabcd  y\n");
    }

    #[test]
    fn a_table_fits_eighty_columns_whatever_is_in_it() {
        let mut table = Table::new(["NAME", "STATE", "TARGET", "CLOSED", "TASKS", "TITLE"]);
        table.row([
            paint(DIM, "a-milestone-with-a-name-as-long-as-they-get-in-practice"),
            "open".into(),
            "2026-11-30, 12 days left".into(),
            "2026-11-16 14:05".into(),
            "API-1, API-2, API-3, API-4, API-5, API-6, API-7, API-8, API-9, API-10".into(),
            "Everything that the first customers will see of it".into(),
        ]);
        let widest = |columns| table.within(Some(columns)).lines().map(width).max().unwrap_or(0);
        assert!(widest(80) <= 80 && widest(80) > 70, "{}", table.within(Some(80)));
        assert!(widest(120) <= 120 && widest(120) > widest(80));
        let plain = anstream::adapter::strip_str(&table.within(Some(80))).to_string();
        assert!(plain.contains("open") && plain.contains('…'), "{plain}");
        assert!(!table.within(None).contains('…'), "a pipe has no width");
    }

    #[test]
    fn long_texts_are_cut_with_an_ellipsis() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abc", 4), "abc");
        assert_eq!(cut("\u{1b}[1mabcdef\u{1b}[0m", 4), "\u{1b}[1mabc…\u{1b}[0m");
    }
}
