//! What was measured against its goal, as bars: the line is the goal, and a bar that stays left of it has met it.

use crate::table::{Table, Verdict};
use std::fmt::Write as _;

/// Pixels.
const ROW: usize = 22;
const NAMES: usize = 470;
const GOAL: f64 = 240.0;
const WIDTH: usize = 960;

/// A picture of all rows that have a goal in figures.
pub(crate) fn bars(tables: &[Table]) -> String {
    let mut body = String::new();
    let mut line = 0;
    for table in tables {
        let rows: Vec<_> = table.shares().collect();
        if rows.is_empty() {
            continue;
        }
        line += 1;
        text(&mut body, 8, line, "title", &table.title);
        for (what, share, verdict) in rows {
            line += 1;
            let class = if verdict == Verdict::Met { "met" } else { "missed" };
            let width = (share * GOAL).clamp(1.0, GOAL * 2.0);
            text(&mut body, 8, line, "row", what);
            let top = line * ROW - 14;
            let _ = writeln!(
                body,
                "<rect class=\"{class}\" x=\"{NAMES}\" y=\"{top}\" width=\"{width:.0}\" height=\"14\"/>"
            );
        }
    }
    let height = (line + 1) * ROW;
    let goal = NAMES as f64 + GOAL;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<style>.title{{font-weight:bold}}.met{{fill:#2a7f4f}}.missed{{fill:#b3402a}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}<line x1=\"{goal}\" y1=\"0\" x2=\"{goal}\" \
         y2=\"{height}\" stroke=\"black\" stroke-dasharray=\"3\"/>\n</svg>\n"
    )
}

fn text(body: &mut String, x: usize, line: usize, class: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(body, "<text class=\"{class}\" x=\"{x}\" y=\"{}\">{words}</text>", line * ROW - 3);
}

#[cfg(test)]
mod tests {
    use super::bars;
    use crate::table::Table;

    #[test]
    fn a_goal_that_is_half_used_is_half_a_bar() {
        let mut table = Table::new("a < b");
        table.at_most("x", 2.0, 1.0, "");
        table.at_least("y", 1.0, 0.5, "");
        let svg = bars(&[table]);
        assert!(svg.contains("a &lt; b"));
        assert!(svg.contains("class=\"met\" x=\"470\" y=\"30\" width=\"120\""), "{svg}");
        assert!(svg.contains("class=\"missed\" x=\"470\" y=\"52\" width=\"480\""), "{svg}");
    }
}
