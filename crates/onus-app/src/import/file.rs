//! A whole file, read line by line before the store is asked anything.

use super::line::{self, Line, Reference};
use onus_core::code::Code;
use onus_core::id::{OriginRef, TaskId};
use onus_core::refusal::{Finding, Refusal};
use std::collections::HashSet;

/// How many findings a refusal carries; it says how many more there are.
const SHOWN: usize = 50;

/// What is wrong, line by line.
#[derive(Debug, Default)]
pub(super) struct Complaints(Vec<(usize, Finding)>);

impl Complaints {
    pub(super) fn add(&mut self, line: usize, finding: Finding) {
        self.0.push((line, Finding { detail: format!("line {line}: {}", finding.detail), ..finding }));
    }

    pub(super) fn add_refusal(&mut self, line: usize, refusal: Refusal) {
        if refusal.findings.is_empty() {
            self.add(line, Finding::new(refusal.code, refusal.detail).hinted(refusal.hint));
        } else {
            refusal.findings.into_iter().for_each(|finding| self.add(line, finding));
        }
    }

    /// The refusal of the whole file; `None` when nothing is wrong.
    pub(super) fn refusal(mut self) -> Option<Refusal> {
        self.0.sort_by_key(|(line, _)| *line);
        let total = self.0.len();
        let (_, first) = self.0.first()?;
        let mut detail = format!("nothing was imported: {}", first.detail);
        if total > 1 {
            detail.push_str(&format!(" (and {} more)", total - 1));
        }
        let refusal = Refusal::new(first.code, detail);
        let hint = first.hint.clone().unwrap_or_else(|| "correct the file and import it again".to_owned());
        let mut findings: Vec<Finding> = self.0.into_iter().map(|(_, finding)| finding).take(SHOWN).collect();
        if total > SHOWN {
            let more = format!("{} more findings are not shown", total - SHOWN);
            findings.push(Finding::new(Code::InvalidInput, more).hint("correct these first"));
        }
        Some(refusal.hint(hint).findings(findings))
    }
}

/// A file whose lines were read as far as they can be read without the store.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) lines: Vec<Line>,
    pub(super) complaints: Complaints,
    /// Names of lines that are wrong: whoever refers to them is not wrong, too.
    wrong_ids: HashSet<TaskId>,
    wrong_origins: HashSet<OriginRef>,
    illegible: bool,
}

impl File {
    /// Blank lines are skipped, and so is the mark that some editors put at the beginning.
    pub(super) fn read(input: &str) -> File {
        let mut file = File::default();
        let input = input.strip_prefix('\u{feff}').unwrap_or(input);
        for (index, text) in input.lines().enumerate() {
            if text.trim().is_empty() {
                continue;
            }
            let number = index + 1;
            match line::read(number, text) {
                Ok(line) => file.lines.push(line),
                Err(unread) => {
                    unread.findings.into_iter().for_each(|finding| file.complaints.add(number, finding));
                    file.illegible |= unread.names.is_none();
                    let (id, origin) = unread.names.unwrap_or_default();
                    file.wrong_ids.extend(id);
                    file.wrong_origins.extend(origin);
                }
            }
        }
        file
    }

    /// Whether a reference that leads nowhere may mean a line that could not be read.
    pub(super) fn may_name(&self, reference: &Reference) -> bool {
        self.illegible
            || match reference {
                Reference::Id(id) => self.wrong_ids.contains(id),
                Reference::Origin(origin) => self.wrong_origins.contains(origin),
            }
    }
}
