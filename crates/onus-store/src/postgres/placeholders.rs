//! How PostgreSQL spells what is written once for every database.

/// The shared text as PostgreSQL spells it: `$1` for a parameter. A plus before a column forbids SQLite its index; the
/// planner here knows better by itself.
pub fn postgres_text(text: &str) -> String {
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    let mut postgres_text = String::with_capacity(text.len());
    while let Some(c) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        match c {
            '?' if next.is_ascii_digit() => postgres_text.push('$'),
            '+' if before == ' ' && next.is_ascii_lowercase() => {}
            _ => postgres_text.push(c),
        }
        before = c;
    }
    postgres_text
}

#[cfg(test)]
mod tests {
    use super::postgres_text;

    #[test]
    fn one_text_two_spellings() {
        for (shared, here) in [
            ("SELECT a FROM t WHERE b = ?1 AND c > ?12", "SELECT a FROM t WHERE b = $1 AND c > $12"),
            ("WHERE +l.workspace = ?1", "WHERE l.workspace = $1"),
            ("SET n = n + 1, m = max(m, 0)+1", "SET n = n + 1, m = max(m, 0)+1"),
            ("SELECT 'why?'", "SELECT 'why?'"),
        ] {
            assert_eq!(postgres_text(shared), here);
        }
    }
}
