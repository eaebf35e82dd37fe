//! How much of a random test is played, and from where.

use std::ops::Range;
use std::str::FromStr;

/// Few cases, or with `ONUS_SOAK` many; each case is made from its seed alone. `ONUS_CASES` says how many and `ONUS_SEED`
/// which is the first, so that a long run can be played in parts.
pub fn seeds(few: u64, many: u64) -> Range<u64> {
    let usual = if std::env::var_os("ONUS_SOAK").is_some() { many } else { few };
    let first = set("ONUS_SEED").unwrap_or(1);
    first..first.saturating_add(set("ONUS_CASES").unwrap_or(usual))
}

fn set<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}
