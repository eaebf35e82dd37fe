//! Answers to questions that were prefetched, as long as nothing was changed that could alter them.

use super::bound::Bound;
use super::dependencies;
use crate::port::Value;
use std::collections::HashMap;

/// The rows of an answer.
pub(super) type Rows = Vec<Vec<Value<'static>>>;

#[derive(Debug, Default)]
pub(super) struct AnswerCache {
    answers: HashMap<Bound, Rows>,
}

impl AnswerCache {
    pub(super) fn get(&self, question: &Bound) -> Option<&Rows> {
        self.answers.get(question)
    }

    pub(super) fn insert(&mut self, question: Bound, answer: Rows) {
        self.answers.insert(question, answer);
    }

    /// Drops the answers that a change may alter.
    pub(super) fn invalidate(&mut self, change: &Bound) {
        self.answers.retain(|question, answer| !dependencies::may_alter(change, question, answer));
    }

    pub(super) fn clear(&mut self) {
        self.answers.clear();
    }
}
