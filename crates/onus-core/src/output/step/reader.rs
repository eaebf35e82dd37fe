//! Pieces of an output on their way to steps.

use super::{Step, client};

/// A longer line is none of a client's that would be read.
const LINE_MAX: usize = 1_048_576;

/// Reads an output piece by piece, each at its place in the whole.
#[derive(Debug, Default)]
pub struct StepReader {
    /// The line that has not ended yet, where it may be a client's, and where it begins.
    line: String,
    begins: i64,
    /// Where the next piece goes on.
    at: i64,
    passes: Passes,
    /// The client's session, told once.
    session: Option<String>,
    /// Words that may go on, and where they began: some clients tell them in parts.
    said: Option<(i64, String)>,
}

/// What becomes of the rest of a line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Passes {
    #[default]
    NotYet,
    /// Its beginning was no client's: all of it passes.
    AsItIs,
    /// Its beginning is left out.
    Not,
}

impl StepReader {
    /// Begins at a byte where [`StepReader::next`] once stood.
    pub fn from(at: i64) -> StepReader {
        StepReader { at, begins: at, ..StepReader::default() }
    }

    /// The steps that are known now.
    pub fn push(&mut self, position: i64, text: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        if position > self.at {
            self.end_line(&mut steps);
            let missing = position - self.at;
            self.told(&mut steps, Step::Printed { text: format!("\n[{missing} bytes are left out here]\n") });
            self.at = position;
            if self.session.is_some() {
                self.passes = Passes::Not;
            }
        }
        for part in text.split_inclusive('\n') {
            if self.line.is_empty() {
                self.begins = self.at;
            }
            self.at = self.at.saturating_add(i64::try_from(part.len()).unwrap_or(0));
            self.part(&mut steps, part);
            if part.ends_with('\n') {
                self.passes = Passes::NotYet;
            }
        }
        steps
    }

    /// Nothing more comes: the steps that waited for more.
    pub fn finish(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        self.end_line(&mut steps);
        self.end_said(&mut steps);
        steps
    }

    /// The first byte that is in no step yet.
    pub fn next(&self) -> i64 {
        match (&self.said, self.line.is_empty()) {
            (Some((begins, _)), _) => *begins,
            (None, false) => self.begins,
            (None, true) => self.at,
        }
    }

    fn part(&mut self, steps: &mut Vec<Step>, part: &str) {
        if self.passes == Passes::Not {
            return;
        }
        self.line.push_str(part);
        let may_be_client =
            self.passes == Passes::NotYet && self.line.starts_with('{') && self.line.len() <= LINE_MAX;
        if !may_be_client {
            self.passes = Passes::AsItIs;
            let text = std::mem::take(&mut self.line);
            self.told(steps, Step::Printed { text });
        } else if part.ends_with('\n') {
            self.end_line(steps);
        }
    }

    fn end_line(&mut self, steps: &mut Vec<Step>) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        match client::read(line.trim()) {
            // Gemini CLI tells its words as they come. No text holds this: its quotes would be escaped.
            Some(found) if line.contains("\"delta\":true") => {
                found.into_iter().for_each(|step| self.goes_on(steps, step));
            }
            Some(found) => found.into_iter().for_each(|step| self.told(steps, step)),
            None => self.told(steps, Step::Printed { text: line }),
        }
    }

    fn goes_on(&mut self, steps: &mut Vec<Step>, step: Step) {
        match step {
            Step::Said { text } => {
                self.said.get_or_insert((self.begins, String::new())).1.push_str(&text);
            }
            other => self.told(steps, other),
        }
    }

    fn told(&mut self, steps: &mut Vec<Step>, step: Step) {
        if let Step::Began { session } = &step {
            if self.session.as_ref() == Some(session) {
                return;
            }
            self.session = Some(session.clone());
        }
        self.end_said(steps);
        match (steps.last_mut(), step) {
            (Some(Step::Printed { text }), Step::Printed { text: more }) => text.push_str(&more),
            (_, step) => steps.push(step),
        }
    }

    fn end_said(&mut self, steps: &mut Vec<Step>) {
        if let Some((_, text)) = self.said.take() {
            steps.push(Step::Said { text });
        }
    }
}
