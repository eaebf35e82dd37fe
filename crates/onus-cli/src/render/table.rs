//! Aligned columns; the last one is cut to the terminal's width.

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

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        (0..columns).map(|i| self.rows.iter().map(|row| width(&row[i])).max().unwrap_or(0)).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let used: usize = widths.iter().rev().skip(1).map(|w| w + 2).sum();
        let room = terminal_width().map(|all| all.saturating_sub(used).max(20));
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, column)) in row.iter().zip(&widths).enumerate() {
                if i + 1 == row.len() {
                    line.push_str(&room.map_or_else(|| cell.clone(), |room| cut(cell, room)));
                } else {
                    line.push_str(cell);
                    line.extend(std::iter::repeat_n(' ', column.saturating_sub(width(cell)) + 2));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
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

fn cut(text: &str, room: usize) -> String {
    if width(text) <= room || text.contains('\u{1b}') {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= room {
            break;
        }
        short.push(c);
    }
    short.push('…');
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
    fn long_texts_are_cut_with_an_ellipsis() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abc", 4), "abc");
    }
}
