//! A whole file, read line by line before the store is asked anything.

use super::RefusedView;
use super::line::{self, ImportLine, Reference};
use onus_core::code::Code;
use onus_core::id::{OriginRef, TaskId};
use onus_core::refusal::{Finding, Refusal};
use std::collections::HashSet;

/// How many findings a dry run tells.
const REFUSED_MAX: usize = 1_000;

/// How many findings a refusal carries; it says how many more there are.
const SHOWN: usize = 50;

/// How many letters of a path are shown.
const PATH_SHOWN: usize = 120;

/// What is wrong, line by line.
#[derive(Debug, Default)]
pub(super) struct Complaints(Vec<(usize, Finding)>);

impl Complaints {
    pub(super) fn add(&mut self, line: usize, finding: Finding) {
        self.add_told(line, Finding { detail: format!("line {line}: {}", finding.detail), ..finding });
    }

    /// A finding whose words say where it is.
    pub(super) fn add_told(&mut self, line: usize, finding: Finding) {
        self.0.push((line, finding));
    }

    /// One of a file among several.
    pub(super) fn add_at(&mut self, line: usize, place: &str, finding: Finding) {
        match place {
            "" | "-" => self.add(line, finding),
            place => {
                let detail = format!("{}: {}", shown_path(place), finding.detail);
                self.add(line, Finding { detail, ..finding });
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each finding with its line, in the order of the file.
    pub(super) fn into_refused(mut self) -> Vec<RefusedView> {
        self.0.sort_by_key(|(line, _)| *line);
        let view = |(line, finding): (usize, Finding)| RefusedView {
            line,
            code: finding.code,
            detail: finding.detail,
        };
        self.0.into_iter().map(view).take(REFUSED_MAX).collect()
    }

    pub(super) fn add_refusal(&mut self, line: usize, place: &str, refusal: Refusal) {
        if refusal.findings.is_empty() {
            self.add_at(line, place, Finding::new(refusal.code, refusal.detail).hinted(refusal.hint));
        } else {
            refusal.findings.into_iter().for_each(|finding| self.add_at(line, place, finding));
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

/// A file by the end of its path: what many of a directory begin with tells none of them apart.
pub(super) fn shown_path(path: &str) -> String {
    let cut = path.char_indices().rev().nth(PATH_SHOWN).map(|(at, letter)| at + letter.len_utf8());
    match cut {
        Some(at) => format!("`…{}`", path[at..].escape_debug()),
        None => format!("`{}`", path.escape_debug()),
    }
}

/// A file whose lines were read as far as they can be read without the store.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) lines: Vec<ImportLine>,
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
                    let (number, place) = unread.place.unwrap_or((number, String::new()));
                    let complain = |finding| file.complaints.add_at(number, &place, finding);
                    unread.findings.into_iter().for_each(complain);
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
