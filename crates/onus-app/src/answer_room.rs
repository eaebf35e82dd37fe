//! How much of what others wrote is told in one answer: nobody is answered with as much as somebody wrote.

/// What a list may have at most; what is more comes with the next call.
pub(crate) const LIST_BYTES: usize = if cfg!(test) { 256 * 1024 } else { 2 * 1024 * 1024 };

/// About what the names and marks around a line's words take.
pub(crate) const AROUND: usize = 300;

/// So many bytes. One line is told, however long it is; after the first one that has no room there is none for any.
#[derive(Debug)]
pub(crate) struct AnswerRoom {
    left: Option<usize>,
    is_empty: bool,
}

impl AnswerRoom {
    pub(crate) const fn new(bytes: usize) -> AnswerRoom {
        AnswerRoom { left: Some(bytes), is_empty: true }
    }

    /// Whether so many bytes of words, and what is around them, are told.
    pub(crate) fn has(&mut self, words: usize) -> bool {
        let bytes = words.saturating_add(AROUND);
        self.left = match self.left {
            Some(left) if self.is_empty => Some(left.saturating_sub(bytes)),
            Some(left) => left.checked_sub(bytes),
            None => None,
        };
        self.is_empty = false;
        self.left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_told_and_nothing_after_the_first_that_does_not_fit() {
        let mut room = AnswerRoom::new(1_000);
        assert!(room.has(5_000) && !room.has(0));
        let mut room = AnswerRoom::new(1_000);
        assert!(room.has(100) && room.has(100) && !room.has(200) && !room.has(0));
    }
}
