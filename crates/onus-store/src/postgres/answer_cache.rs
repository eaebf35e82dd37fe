//! Answers to questions that were asked ahead, as long as they are true.

use super::dependencies::{self, Rows};
use crate::port::{Sql, Value};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) args: Vec<Value<'static>>,
}

impl Asked {
    pub(super) fn new(sql: &Sql, args: &[Value<'_>]) -> Asked {
        let args = args.iter().cloned().map(Value::into_owned).collect();
        Asked { name: sql.name, text: sql.text, args }
    }
}

impl Hash for Asked {
    /// The name is as good as the text, and shorter.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.args.hash(state);
    }
}

/// The rows of an answer.
pub(super) type Answer = Vec<Vec<Value<'static>>>;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Each with the rows that it hangs on, where they are known.
    answers: HashMap<Asked, (Option<&'static [Rows]>, Answer)>,
}

impl Memory {
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub(super) fn of(&self, asked: &Asked) -> Option<&Answer> {
        self.answers.get(asked).map(|(_, answer)| answer)
    }

    pub(super) fn keep(&mut self, asked: Asked, answer: Answer) {
        let read = dependencies::read_by(asked.name, asked.text);
        self.answers.insert(asked, (read, answer));
    }

    /// Forgets what a change may have made untrue.
    pub(super) fn changed(&mut self, sql: &Sql, args: &[Value<'_>]) {
        match dependencies::touched_by(sql) {
            None => self.clear(),
            Some(changed) => self.answers.retain(|asked, (read, answer)| {
                read.is_some_and(|read| !dependencies::meet(changed, args, read, asked, answer))
            }),
        }
    }

    pub(super) fn clear(&mut self) {
        self.answers.clear();
    }
}
