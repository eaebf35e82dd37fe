//! Sets of characters, and one character that two sets share.

use crate::text::is_unprintable;

/// Ranges of code points, both ends included, in order and apart from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CharClass(Vec<(u32, u32)>);

const LAST: u32 = char::MAX as u32;
const SLASH: u32 = '/' as u32;

impl CharClass {
    pub(super) fn one(c: char) -> CharClass {
        CharClass(vec![(u32::from(c), u32::from(c))])
    }

    pub(super) fn any() -> CharClass {
        CharClass(vec![(0, LAST)])
    }

    /// What may stand in a name.
    pub(super) fn in_name() -> CharClass {
        CharClass::one('/').complement()
    }

    /// The listed characters, without the slash: no class crosses a directory.
    pub(super) fn listed(ranges: &[(char, char)]) -> CharClass {
        let mut ranges: Vec<(u32, u32)> = ranges.iter().map(|(lo, hi)| (*lo as u32, *hi as u32)).collect();
        ranges.sort_unstable();
        let mut apart: Vec<(u32, u32)> = Vec::new();
        for (lo, hi) in ranges {
            match apart.last_mut() {
                Some(last) if lo <= last.1 => last.1 = last.1.max(hi),
                _ => apart.push((lo, hi)),
            }
        }
        CharClass(apart).without_slash()
    }

    /// Every other character but the slash.
    pub(super) fn not_listed(ranges: &[(char, char)]) -> CharClass {
        CharClass::listed(ranges).complement().without_slash()
    }

    fn complement(&self) -> CharClass {
        let mut gaps = Vec::new();
        let mut next = 0;
        for (lo, hi) in &self.0 {
            if next < *lo {
                gaps.push((next, lo - 1));
            }
            next = hi + 1;
        }
        if next <= LAST {
            gaps.push((next, LAST));
        }
        CharClass(gaps)
    }

    fn without_slash(&self) -> CharClass {
        let around = |(lo, hi): &(u32, u32)| [(*lo, (*hi).min(SLASH - 1)), ((*lo).max(SLASH + 1), *hi)];
        CharClass(self.0.iter().flat_map(around).filter(|(lo, hi)| lo <= hi).collect())
    }

    pub(super) fn has(&self, c: char) -> bool {
        let c = u32::from(c);
        self.0.iter().any(|(lo, hi)| (*lo..=*hi).contains(&c))
    }

    /// A character of both that is neither a slash nor a dot, the most readable one.
    pub(super) fn shared_letter(&self, other: &CharClass) -> Option<char> {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
        let letters = pairs.filter(|(lo, hi)| lo <= hi).filter_map(|(lo, hi)| letter_in(lo, hi));
        letters.min().map(|(_, c)| c)
    }
}

/// A letter of the range, with its rank among letters: small ones first, what no terminal shows last.
fn letter_in(lo: u32, hi: u32) -> Option<(usize, char)> {
    const BEST: [(char, char); 3] = [('a', 'z'), ('A', 'Z'), ('0', '9')];
    for (rank, (first, last)) in BEST.into_iter().enumerate() {
        let (from, to) = (lo.max(first as u32), hi.min(last as u32));
        if from <= to {
            return char::from_u32(from).map(|c| (rank, c));
        }
    }
    let letters = || (lo..=hi).filter_map(char::from_u32).filter(|c| !matches!(c, '/' | '.'));
    let printable = letters().find(|c| !is_unprintable(*c) && !c.is_whitespace());
    printable.map(|c| (BEST.len(), c)).or_else(|| letters().next().map(|c| (BEST.len() + 1, c)))
}
