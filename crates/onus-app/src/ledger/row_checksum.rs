//! Compares the record with the rows without keeping either: what the record says is added, what a row says is taken
//! off, and zero is left when both say the same, in whatever order they came.
//!
//! The numbers are keyed hashes. The key is drawn anew for each run, so that nobody can prepare rows that cancel out.

use onus_store::port::Value;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A sum of facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Balance(u64);

impl Balance {
    pub(super) fn add(&mut self, fact: Fact) {
        self.0 = self.0.wrapping_add(fact.0);
    }

    pub(super) fn take(&mut self, fact: Fact) {
        self.0 = self.0.wrapping_sub(fact.0);
    }

    pub(super) fn is_even(self) -> bool {
        self.0 == 0
    }
}

/// One statement, as a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fact(u64);

/// What a statement is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum About {
    Asked,
    Task,
    Dependency,
    Assignment,
    Session,
    SessionFact,
    Note,
    Run,
    Review,
    Landed,
}

/// Turns statements into numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Scale {
    key: RandomState,
    bytes: Vec<u8>,
}

impl Scale {
    /// A row's columns; those of the record come in the same order.
    pub(super) fn weigh(&mut self, about: About, columns: [&[Value<'_>]; 2]) -> Fact {
        self.begin(about);
        self.columns(columns)
    }

    /// A task's row: what was asked for, and what became of it.
    pub(super) fn task(&mut self, asked: Fact, lifecycle: [&[Value<'_>]; 2]) -> Fact {
        self.begin(About::Task);
        self.bytes.extend_from_slice(&asked.0.to_le_bytes());
        self.columns(lifecycle)
    }

    fn begin(&mut self, about: About) {
        self.bytes.clear();
        self.bytes.push(about as u8);
    }

    /// Each value with its kind and length, so that no two lists give the same bytes.
    fn columns(&mut self, columns: [&[Value<'_>]; 2]) -> Fact {
        for value in columns.into_iter().flatten() {
            match value {
                Value::Null => self.bytes.push(0),
                Value::Int(n) => {
                    self.bytes.push(1);
                    self.bytes.extend_from_slice(&n.to_le_bytes());
                }
                Value::Text(text) => self.sized(2, text.as_bytes()),
                Value::Blob(bytes) => self.sized(3, bytes),
            }
        }
        let mut hasher = self.key.build_hasher();
        hasher.write(&self.bytes);
        Fact(hasher.finish())
    }

    fn sized(&mut self, kind: u8, bytes: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&bytes.len().to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onus_store::args;

    #[test]
    fn rows_cancel_out_only_what_they_repeat() {
        let mut scale = Scale::default();
        let (one, other) = (args!["T-1", 7, None::<i64>], args!["T-1", 8, None::<i64>]);
        let mut balance = Balance::default();
        for row in [&one, &other] {
            balance.add(scale.weigh(About::Note, [&[], row]));
        }
        for row in [&other, &one] {
            assert!(!balance.is_even());
            balance.take(scale.weigh(About::Note, [&[], row]));
        }
        assert!(balance.is_even());
    }

    #[test]
    fn no_two_lists_weigh_the_same() {
        let mut scale = Scale::default();
        let lists =
            [args!["ab", "c"], args!["a", "bc"], args!["abc", ""], args!["a", 0], args!["a", None::<i64>]];
        let mut facts: Vec<u64> = lists.iter().map(|list| scale.weigh(About::Task, [&[], list]).0).collect();
        facts.push(scale.weigh(About::Note, [&[], &lists[0]]).0);
        facts.sort_unstable();
        facts.dedup();
        assert_eq!(facts.len(), lists.len() + 1);
    }
}
