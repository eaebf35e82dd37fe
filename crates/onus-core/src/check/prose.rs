//! Sentences that stand where a command should.

/// Words that begin sentences and name no program.
const OPENERS: &[&str] = &[
    "a",
    "an",
    "the",
    "all",
    "any",
    "each",
    "every",
    "no",
    "none",
    "some",
    "it",
    "its",
    "this",
    "that",
    "these",
    "there",
    "user",
    "users",
    "tests",
    "code",
    "must",
    "should",
    "can",
    "cannot",
    "will",
    "ensure",
    "ensures",
    "verify",
    "verified",
    "confirm",
    "manual",
    "manually",
    "works",
    "when",
    "where",
    "given",
    "returns",
    "feature",
    "page",
    "docs",
    "documentation",
];

/// Words that hold sentences together and are rarely anybody's argument.
const JOINTS: &[&str] = &[
    "a", "an", "the", "is", "are", "was", "were", "be", "been", "that", "which", "with", "without", "and",
    "or", "in", "on", "by", "to", "of", "not", "no", "must", "should", "can", "will", "when", "for", "from",
    "uses", "returns", "works", "after", "before", "than", "as", "at", "has", "have", "it", "its", "does",
];

/// Programs with a capital letter that people do run.
const CAPITALS: &[&str] = &["R", "Rscript", "MSBuild", "Xvfb", "X"];

/// Whether the text is a sentence and no command.
pub fn looks_like_prose(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let start = words.iter().position(|word| !is_prefix(word)).unwrap_or(words.len());
    let Some(first) = words.get(start) else {
        return false;
    };
    let rest = &words[start..];
    !names_a_program(first) || OPENERS.contains(first) || is_sentence(rest)
}

/// `!`, an opening bracket or an assignment: what may stand before a command.
fn is_prefix(word: &str) -> bool {
    matches!(word, "!" | "(" | "{") || is_assignment(word)
}

pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn names_a_program(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '"', '\'']).trim_end_matches(['"', '\'', ')', ';']);
    if matches!(word, ":" | "." | "[" | "[[") {
        return true;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-/~$@%{}".contains(c);
    let is_path = word.contains('/') || word.contains('$');
    let capital = word.starts_with(|c: char| c.is_ascii_uppercase());
    let has_extension = word.rsplit_once('.').is_some_and(|(_, end)| !end.is_empty());
    !word.is_empty()
        && word.chars().all(is_plain)
        && !word.starts_with('-')
        && !word.ends_with('.')
        && (!capital || is_path || has_extension || CAPITALS.contains(&word))
}

/// Plain words held together by grammar, with nothing in them that a shell would notice.
fn is_sentence(words: &[&str]) -> bool {
    if words.iter().any(|word| is_shell_like(word)) {
        return false;
    }
    let bare = |word: &&str| word.trim_end_matches(['.', ',', '!', '?']).to_ascii_lowercase();
    let joints = words.iter().map(bare).filter(|word| JOINTS.contains(&word.as_str())).count();
    let only_letters = words.iter().map(bare).all(|word| word.chars().all(char::is_alphabetic));
    let full_stop = words.last().is_some_and(|last| last.len() > 1 && last.ends_with('.'));
    joints >= 2 || (words.len() >= 4 && only_letters && joints >= 1) || (words.len() >= 3 && full_stop)
}

fn is_shell_like(word: &str) -> bool {
    let inner_dot = word.trim_end_matches('.').contains('.') || word == ".";
    word.starts_with('-') || inner_dot || word.contains(|c: char| "/=$|&;<>*\"'`(){}[]~\\@:".contains(c))
}
