//! What a part found, as a table in Markdown: readable in a terminal and in the documentation.

use std::fmt::{self, Write as _};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// A figure without a goal.
    Shown,
}

impl Verdict {
    pub(crate) fn of(met: bool) -> Verdict {
        if met { Verdict::Met } else { Verdict::Missed }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Met => "met",
            Verdict::Missed => "**missed**",
            Verdict::Shown => "-",
        })
    }
}

#[derive(Debug)]
struct Row {
    what: String,
    goal: String,
    figure: String,
    verdict: Verdict,
    /// How much of what the goal allows was used: 1 is the goal itself.
    share: Option<f64>,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>) -> Table {
        Table { title: title.into(), rows: Vec::new() }
    }

    pub(crate) fn row(
        &mut self,
        what: impl Into<String>,
        goal: &str,
        figure: impl Into<String>,
        verdict: Verdict,
    ) {
        let (what, goal, figure) = (what.into(), goal.to_owned(), figure.into());
        self.rows.push(Row { what, goal, figure, verdict, share: None });
    }

    fn share(&mut self, share: f64) {
        if let Some(last) = self.rows.last_mut() {
            last.share = Some(share);
        }
    }

    /// A figure that must stay below `limit`.
    pub(crate) fn below(
        &mut self,
        what: impl Into<String>,
        limit: f64,
        unit: &str,
        value: f64,
        figure: String,
    ) {
        self.row(what, &format!("< {limit} {unit}"), figure, Verdict::of(value < limit));
        self.share(value / limit);
    }

    /// The rows that have a goal in figures: what, how much of it was used, and whether it was met.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (&str, f64, Verdict)> {
        self.rows.iter().filter_map(|row| Some((row.what.as_str(), row.share?, row.verdict)))
    }

    /// A ratio that must not exceed `limit`.
    pub(crate) fn at_most(&mut self, what: impl Into<String>, limit: f64, ratio: f64, figure: &str) {
        self.row(
            what,
            &format!("<= {limit}x"),
            format!("{ratio:.2}x ({figure})"),
            Verdict::of(ratio <= limit),
        );
        self.share(ratio / limit);
    }

    /// A ratio that must reach `limit`.
    pub(crate) fn at_least(&mut self, what: impl Into<String>, limit: f64, ratio: f64, figure: &str) {
        self.row(
            what,
            &format!(">= {limit}x"),
            format!("{ratio:.2}x ({figure})"),
            Verdict::of(ratio >= limit),
        );
        self.share(limit / ratio.max(1e-9));
    }

    pub(crate) fn missed(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == Verdict::Missed).count()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells =
            |row: &Row| [row.what.clone(), row.goal.clone(), row.figure.clone(), row.verdict.to_string()];
        let mut lines = vec![["measure", "goal", "figure", "verdict"].map(str::to_owned)];
        lines.extend(self.rows.iter().map(cells));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        writeln!(f, "### {}\n", self.title)?;
        for (number, line) in lines.iter().enumerate() {
            let mut text = String::from("|");
            for (cell, width) in line.iter().zip(widths) {
                write!(text, " {cell:<width$} |")?;
            }
            writeln!(f, "{text}")?;
            if number == 0 {
                let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
                writeln!(f, "|{}|", dashes.join("|"))?;
            }
        }
        Ok(())
    }
}
