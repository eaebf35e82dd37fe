//! The words of a text, as a search knows them: the same on every database.

use std::collections::BTreeSet;

/// What is longer is known by its beginning.
const LETTERS_MAX: usize = 32;

/// So many different words of one text can be found.
const WORDS_MAX: usize = 2_000;

/// So many words of a question are looked for: the longest, which tell most.
const SOUGHT_MAX: usize = 3;

/// Words that nearly every text has: they would fill the index and find everything.
const COMMON: [&str; 24] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "not", "of", "on",
    "or", "so", "that", "the", "this", "to", "was", "with",
];

/// The different words of a text, in small letters: runs of letters and digits. Writing without spaces between its words
/// gives each sign for itself.
pub fn words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut word, mut letters) = (String::new(), 0);
    for c in text.chars().flat_map(char::to_lowercase).chain([' ']) {
        if c.is_alphanumeric() && !stands_alone(c) {
            letters += 1;
            if letters <= LETTERS_MAX {
                word.push(c);
            }
            continue;
        }
        letters = 0;
        keep(&mut found, std::mem::take(&mut word));
        if stands_alone(c) {
            keep(&mut found, c.to_string());
        }
        if found.len() >= WORDS_MAX {
            break;
        }
    }
    found
}

fn keep(found: &mut BTreeSet<String>, word: String) {
    if !word.is_empty() && COMMON.binary_search(&word.as_str()).is_err() {
        found.insert(word);
    }
}

/// Han and kana.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3134f}')
}

/// A word that is looked for, as the first and the last one that it may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    pub from: String,
    pub to: String,
}

/// What a question looks for: words by their beginnings, since people are found typing, and numbers as they are.
pub fn sought(question: &str) -> Vec<Sought> {
    let mut asked: Vec<String> = words(question).into_iter().collect();
    asked.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    asked.truncate(SOUGHT_MAX);
    let range = |from: String| {
        let is_number = from.chars().all(|c| c.is_ascii_digit());
        let to = if is_number { from.clone() } else { format!("{from}\u{10ffff}") };
        Sought { from, to }
    };
    asked.into_iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        words(text).into_iter().collect()
    }

    #[test]
    fn a_text_is_its_different_words() {
        assert_eq!(of("The API-12 of the API: retry, RETRY!"), ["12", "api", "retry"]);
        assert_eq!(of("src/main_loop.rs v1.2"), ["2", "loop", "main", "rs", "src", "v1"]);
        assert_eq!(of("Straße ÄRGER 車庫"), ["straße", "ärger", "庫", "車"]);
        assert_eq!(of("100%_no"), ["100", "no"]);
        assert!(of(" -- %% ").is_empty());
    }

    #[test]
    fn words_are_bounded() {
        let long = "x".repeat(1_000);
        assert_eq!(of(&long), [&long[..LETTERS_MAX]]);
        let many: Vec<String> = (0..10_000).map(|n| format!("w{n}")).collect();
        assert_eq!(of(&many.join(" ")).len(), WORDS_MAX);
    }

    #[test]
    fn a_question_looks_for_beginnings_and_for_whole_numbers() {
        let found: Vec<(String, String)> =
            sought("zepp 12 of it").into_iter().map(|sought| (sought.from, sought.to)).collect();
        assert_eq!(found, [("zepp".into(), "zepp\u{10ffff}".into()), ("12".to_owned(), "12".to_owned())]);
        let longest: Vec<String> = sought("aa bbbb c ddd").into_iter().map(|sought| sought.from).collect();
        assert_eq!(longest, ["bbbb", "ddd", "aa"]);
    }

    #[test]
    fn the_common_words_are_in_order() {
        assert!(COMMON.is_sorted());
    }
}
