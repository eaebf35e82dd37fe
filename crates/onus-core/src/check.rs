//! Acceptance checks are commands that can fail (mission D7): a sentence proves nothing, and neither does a command
//! that always succeeds. These are readings of a command line, not a shell: where they are unsure, they let it pass.

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

/// Shells that run their argument after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ash"];

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

fn is_assignment(word: &str) -> bool {
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

/// Whether the command ends well whatever it finds: `true`, `echo …`, `… || true`, nothing at all.
pub fn cannot_fail(command: &str) -> bool {
    let parts = split(command);
    // Under `set -e` the first failure ends the whole line.
    let strict =
        parts.iter().any(|part| part.words.first().is_some_and(|w| w == "set") && is_errexit(&part.words));
    let whole_pipes = parts.iter().any(|part| {
        part.words.first().is_some_and(|w| w == "set") && part.words.iter().any(|word| word == "pipefail")
    });
    let mut may_fail = false;
    for part in parts.iter().filter(|part| !part.words.is_empty()) {
        let passes_on = part.after == Joint::Pipe && is_passing_on(&part.words);
        let this = part.ending == Ending::Awaited && !passes_on && simple_may_fail(&part.words);
        may_fail = match part.after {
            Joint::Pipe if whole_pipes => may_fail || this,
            Joint::And => may_fail || this,
            Joint::Or => may_fail && this,
            Joint::Then if strict => may_fail || this,
            Joint::Then | Joint::Pipe => this,
        };
    }
    !may_fail
}

fn is_errexit(words: &[String]) -> bool {
    words.iter().skip(1).any(|word| word.starts_with('-') && word.contains('e'))
}

fn simple_may_fail(words: &[String]) -> bool {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    while words.first().is_some_and(|word| matches!(*word, "(" | "{") || is_assignment(word)) {
        words.remove(0);
    }
    while words.last().is_some_and(|word| matches!(*word, ")" | "}")) {
        words.pop();
    }
    match words.as_slice() {
        [] | ["true" | ":" | "/bin/true" | "/usr/bin/true" | "echo" | "printf" | "set", ..] => false,
        ["exit" | "return"] | ["exit" | "return", "0", ..] => false,
        ["!", "false", ..] => false,
        [shell, "-c", script, ..] if SHELLS.contains(shell) => !cannot_fail(script),
        ["test", condition @ ..] | ["[", condition @ .., "]"] | ["[[", condition @ .., "]]"] => {
            !is_always_true(condition)
        }
        ["ls", more @ ..] => more.iter().any(|word| !word.starts_with('-')),
        ["pwd" | "whoami" | "hostname" | "uname", ..] | ["date"] | ["date", "-u"] => false,
        ["sleep", ..] => false,
        _ => true,
    }
}

/// A condition of words that mean themselves, and that hold.
fn is_always_true(condition: &[&str]) -> bool {
    let is_literal = |word: &&str| !word.contains(['$', '`', '*', '?']);
    if !condition.iter().all(is_literal) {
        return false;
    }
    match condition {
        [one] => !one.is_empty(),
        ["-n", word] => !word.is_empty(),
        ["-z", word] => word.is_empty(),
        [left, "=" | "==" | "-eq" | "-le" | "-ge", right] => left == right,
        [left, "!=" | "-ne", right] => left != right,
        _ => false,
    }
}

/// Whether the end of a pipe only hands on what it is given: then nobody hears how the command before it ended.
fn is_passing_on(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_file = |word: &&str| !word.starts_with('-') && word.parse::<u64>().is_err();
    match words.as_slice() {
        ["tee", ..] => true,
        ["sort", more @ ..]
            if more.iter().any(|word| {
                word.starts_with("-c") || word.starts_with("-C") || word.starts_with("--check")
            }) =>
        {
            false
        }
        [
            "cat" | "head" | "tail" | "sort" | "uniq" | "wc" | "nl" | "tac" | "less" | "more" | "column"
            | "fold" | "ts",
            more @ ..,
        ] => !more.iter().any(is_file),
        _ => false,
    }
}

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    Then,
    And,
    Or,
    Pipe,
}

/// Whether anybody asks how a command ended; after `&` nobody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Awaited,
    SentAway,
}

#[derive(Debug)]
struct Part {
    after: Joint,
    words: Vec<String>,
    ending: Ending,
}

/// Cuts a command line at its operators; quotes and comments are respected, nothing is expanded.
fn split(command: &str) -> Vec<Part> {
    let mut cut = Cutter {
        parts: vec![Part { after: Joint::Then, words: Vec::new(), ending: Ending::Awaited }],
        word: String::new(),
        in_word: false,
    };
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                cut.in_word = true;
                for inner in chars.by_ref().take_while(|inner| *inner != c) {
                    cut.word.push(inner);
                }
            }
            '\\' => cut.letter(chars.next().unwrap_or('\\')),
            '#' if !cut.in_word => break,
            '|' if chars.next_if_eq(&'|').is_some() => cut.next(Joint::Or),
            '|' => cut.next(Joint::Pipe),
            '&' if chars.next_if_eq(&'&').is_some() => cut.next(Joint::And),
            // `2>&1` and `&>` redirect; they end nothing.
            '&' if cut.word.ends_with(['>', '<']) || chars.peek() == Some(&'>') => cut.letter(c),
            '&' => {
                cut.end_word();
                if let Some(part) = cut.parts.last_mut() {
                    part.ending = Ending::SentAway;
                }
                cut.next(Joint::Then);
            }
            ';' | '\n' => cut.next(Joint::Then),
            '(' | ')' => {
                cut.end_word();
                cut.letter(c);
                cut.end_word();
            }
            c if c.is_whitespace() => cut.end_word(),
            c => cut.letter(c),
        }
    }
    cut.end_word();
    cut.parts
}

struct Cutter {
    parts: Vec<Part>,
    word: String,
    in_word: bool,
}

impl Cutter {
    fn letter(&mut self, c: char) {
        self.in_word = true;
        self.word.push(c);
    }

    fn end_word(&mut self) {
        if std::mem::take(&mut self.in_word) {
            let word = std::mem::take(&mut self.word);
            if let Some(part) = self.parts.last_mut() {
                part.words.push(word);
            }
        }
    }

    fn next(&mut self, after: Joint) {
        self.end_word();
        self.parts.push(Part { after, words: Vec::new(), ending: Ending::Awaited });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[&str] = &[
        "make test",
        "make",
        "cargo test -p x",
        "cargo test --workspace --all-features",
        "rg -q \"a\" file",
        "test -f x",
        "[ -f x ]",
        "! grep -q x y",
        "! rg 'the old name is used' src",
        "cd a && npm test",
        "npm test",
        "npm run test:unit",
        "go test ./...",
        "go vet .",
        "python3 -m pytest -x tests/test_login.py",
        "pytest tests",
        "./scripts/check.sh",
        "scripts/Check",
        "FOO=1 BAR='x y' make check",
        "bash -c 'cargo test'",
        "sh -c 'true && make test'",
        "curl -fsS http://localhost:8080/healthz",
        "$CARGO test",
        "~/bin/check all",
        "Rscript tests.R",
        "git diff --exit-code",
        "( cd web && npm ci )",
        "set -e; make test; true",
        "make test > log 2>&1",
        "true && make test",
        "echo checking; make test",
        "make test || exit 1",
        "false",
        "exit 1",
        "timeout 60 make it",
        "grep -q 'echo; true' file",
        "psql -c 'select 1 from users where the is not null'",
    ];

    #[test]
    fn commands_pass() {
        for command in GOOD {
            assert!(!looks_like_prose(command), "prose? {command}");
            assert!(!cannot_fail(command), "cannot fail? {command}");
        }
    }

    #[test]
    fn sentences_are_no_commands() {
        for prose in [
            "API route uses facade without moving unrelated service code",
            "All tests pass",
            "all tests pass",
            "tests pass",
            "The user can log in.",
            "users can log in",
            "Works on mobile",
            "works on mobile",
            "no regressions in the login flow",
            "manual test",
            "verify the UI by hand",
            "returns 404 when the user is unknown",
            "login works without a page reload",
            "check that the page loads",
            "make sure that the page loads",
            "dashboard shows totals per sprint.",
            "Endpoint: returns 200",
            "die Seite lädt ohne Fehler in the browser",
            "画面が表示される",
            "- [ ] write tests",
            "— nothing",
            "README mentions the flag",
            "! The flag is gone",
        ] {
            assert!(looks_like_prose(prose), "{prose}");
        }
    }

    #[test]
    fn commands_that_always_succeed_prove_nothing() {
        for idle in [
            "",
            "   ",
            "true",
            ":",
            "/bin/true",
            "echo ok",
            "echo 'make test'",
            "printf done",
            "exit 0",
            "exit",
            "# make test",
            "make test || true",
            "make test || :",
            "make test || echo failed",
            "make test; true",
            "make test ; echo done",
            "make test;true;",
            "make a && make b || true",
            "make test &",
            "(true)",
            "{ true; }",
            "A=1",
            "A=1 true",
            "sh -c 'make test || true'",
            "bash -c true",
            "! false",
            "true && echo ok",
            "make test | echo",
            "set -e",
            "test 1",
            "[ 1 = 1 ]",
            "[[ a == a ]]",
            "[ 1 -eq 1 ]",
            "test -n word",
            "test -z ''",
            "[ 1 != 2 ]",
            "ls",
            "ls -la",
            "pwd",
            "date -u",
            "sleep 1",
            "make test | cat",
            "make test | tee log",
            "make test 2>&1 | tail -n 20",
            "make test | head -5 | cat",
            "make test | wc -l",
            "bash -c 'make test | cat'",
            "make test && ls || true",
        ] {
            assert!(cannot_fail(idle), "{idle}");
        }
        for real in [
            "set -o pipefail; make test | cat",
            "set -euo pipefail; make test | tee log",
            "test \"$(wc -l < x)\" = 3",
            "[ $A = 1 ]",
            "[ 1 = 2 ]",
            "test -z word",
            "test -f x",
            "test ''",
            "ls src/main.rs",
            "cat x | grep -q y",
            "make test | grep -v warning",
            "make test | cat x",
            "sort -c x",
            "make list | sort -c",
            "date -d nonsense",
        ] {
            assert!(!cannot_fail(real), "{real}");
        }
    }

    #[test]
    fn operators_inside_quotes_are_text() {
        assert!(!cannot_fail("grep -q '|| true' Makefile"));
        assert!(!cannot_fail("grep -q \"; true\" Makefile"));
        assert!(!cannot_fail("grep -q a\\;true Makefile"));
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        for odd in [
            "'", "\"", "\\", "&", "|", "||", "&&", ";", "(", ")", "((((", "!", "=", "a=", "\u{0}", "é",
            "'''\"", "& & &", ";;;",
        ] {
            let _ = (looks_like_prose(odd), cannot_fail(odd));
        }
    }
}
