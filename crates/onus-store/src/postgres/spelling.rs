//! How PostgreSQL spells what is written once for every database.

/// The shared text as PostgreSQL spells it: `$1` for a parameter. A plus before a column forbids SQLite its index; the
/// planner here knows better by itself.
pub fn spelled(text: &str) -> String {
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    let mut spelled = String::with_capacity(text.len());
    while let Some(c) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        match c {
            '?' if next.is_ascii_digit() => spelled.push('$'),
            '+' if before == ' ' && next.is_ascii_lowercase() => {}
            _ => spelled.push(c),
        }
        before = c;
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn one_text_two_spellings() {
        for (shared, here) in [
            ("SELECT a FROM t WHERE b = ?1 AND c > ?12", "SELECT a FROM t WHERE b = $1 AND c > $12"),
            ("WHERE +l.workspace = ?1", "WHERE l.workspace = $1"),
            ("SET n = n + 1, m = max(m, 0)+1", "SET n = n + 1, m = max(m, 0)+1"),
            ("SELECT 'why?'", "SELECT 'why?'"),
        ] {
            assert_eq!(spelled(shared), here);
        }
    }
}
