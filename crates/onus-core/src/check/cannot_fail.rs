//! Commands that succeed whatever they find.

use super::prose::is_assignment;

/// Shells that run their argument after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ash"];

/// Whether the command ends well whatever it finds: `true`, `echo …`, `… || true`, nothing at all.
pub fn cannot_fail(command: &str) -> bool {
    !script_may_fail(command, false)
}

fn script_may_fail(command: &str, strict: bool) -> bool {
    let parts = split(command);
    let ends_well =
        |part: &ShellPart| match part.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["trap", script, signals @ ..] => {
                script.contains("exit 0") && signals.iter().any(|one| matches!(*one, "EXIT" | "0"))
            }
            _ => false,
        };
    if parts.iter().any(ends_well) {
        return false;
    }
    // What a shell builds of words decides by itself; reading it here would be guessing.
    if parts.iter().any(|part| part.words.first().is_some_and(|word| KEYWORDS.contains(&word.as_str()))) {
        return compound_may_fail(&parts);
    }
    // Under `set -e` the first failure ends the whole line.
    let strict = strict
        || parts.iter().any(|part| part.words.first().is_some_and(|w| w == "set") && is_errexit(&part.words));
    let whole_pipes = parts.iter().any(|part| {
        part.words.first().is_some_and(|w| w == "set") && part.words.iter().any(|word| word == "pipefail")
    });
    let mut may_fail = false;
    for part in parts.iter().filter(|part| !part.words.is_empty()) {
        let passes_on = part.after == Joint::Pipe && is_passing_on(&part.words);
        let this = part.ending == ShellEnding::Awaited && !passes_on && simple_may_fail(&part.words);
        may_fail = match part.after {
            Joint::Pipe if whole_pipes => may_fail || this,
            Joint::And => may_fail || this,
            Joint::Or => may_fail && this,
            Joint::Then if strict => may_fail || this,
            Joint::Then | Joint::Pipe => this,
        };
    }
    may_fail
}

/// Words that begin or go on with a compound command.
const KEYWORDS: &[&str] = &["if", "for", "while", "until", "case", "then", "else", "elif", "do"];

/// A compound command may fail where any command in it may.
fn compound_may_fail(parts: &[ShellPart]) -> bool {
    let ends = ["fi", "done", "esac"];
    let bare = |part: &ShellPart| -> Vec<String> {
        let words = part.words.iter().skip_while(|word| KEYWORDS.contains(&word.as_str()));
        words.filter(|word| !ends.contains(&word.as_str())).cloned().collect()
    };
    let is_loop = |part: &ShellPart| part.words.first().is_some_and(|word| word == "for" || word == "case");
    let last =
        parts.iter().rev().find(|part| part.words.first().is_some_and(|word| !ends.contains(&word.as_str())));
    // Behind `done` or `fi` stands what decides, if anything does: `; true`.
    match last.filter(|part| part.after != Joint::Then || !KEYWORDS.contains(&part.words[0].as_str())) {
        Some(part) if matches!(part.after, Joint::Or | Joint::Then) && !simple_may_fail(&bare(part)) => false,
        _ => parts.iter().filter(|part| !is_loop(part)).any(|part| simple_may_fail(&bare(part))),
    }
}

fn is_errexit(words: &[String]) -> bool {
    words.iter().skip(1).any(|word| word.starts_with('-') && word.contains('e'))
}

/// Programs that run their arguments.
const STARTERS: &[&str] =
    &["env", "command", "builtin", "exec", "nohup", "nice", "time", "timeout", "sudo", "stdbuf", "setsid"];

/// The command behind a program that starts it: its own flags, numbers and assignments come before.
fn started(rest: &[&str]) -> Vec<String> {
    // A redirection begins with a number too, and what it names may not be there.
    let is_own = |word: &&&str| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains(['<', '>']);
        word.starts_with('-') || is_assignment(word) || is_number
    };
    let skipped = rest.iter().take_while(is_own).count();
    rest[skipped..].iter().map(|word| (*word).to_owned()).collect()
}

/// `-c`, also with others: `-ec`, `-lc`.
fn is_script_flag(word: &str) -> bool {
    word.starts_with('-') && word.ends_with('c') && !word.starts_with("--")
}

/// Paths that are there wherever a check runs.
fn is_always_there(path: &str) -> bool {
    matches!(path, "." | "./" | ".." | "../" | "/" | "/dev/null" | "/tmp" | "/bin" | "/etc" | "~")
}

/// The few commands that are sure to fail, so that `!` before them is sure to succeed.
fn always_fails(words: &[&str]) -> bool {
    match words {
        ["false" | "/bin/false" | "/usr/bin/false", ..] => true,
        ["!", rest @ ..] => !simple_may_fail(&rest.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
        ["test", condition @ ..] | ["[", condition @ .., "]"] | ["[[", condition @ .., "]]"] => {
            truth(condition) == Some(false)
        }
        _ => false,
    }
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
        [] | ["true" | ":" | "/bin/true" | "/usr/bin/true" | "echo" | "printf" | "set" | "wait", ..] => false,
        ["export" | "unset" | "alias" | "umask" | "trap", ..] | ["yes" | "clear" | "id" | "env"] => false,
        ["exit" | "return" | "break" | "continue"] | ["exit" | "return", "0", ..] => false,
        ["!", rest @ ..] => !always_fails(rest),
        // What only starts another command ends as that one does.
        [starter, rest @ ..] if STARTERS.contains(starter) => simple_may_fail(&started(rest)),
        ["eval", rest @ ..] => !cannot_fail(&rest.join(" ")),
        ["cd"] | ["cd", "." | "./" | "/" | "~" | "-P" | "-L"] => false,
        ["git", "status" | "version" | "--version" | "help", ..] => false,
        ["git", "diff", more @ ..] => {
            more.iter().any(|word| matches!(*word, "--exit-code" | "--quiet" | "--check"))
        }
        ["expr", number] => number.parse::<i64>().is_err() || number.parse() == Ok(0),
        ["cat", more @ ..] => more.iter().any(|word| !word.starts_with('-') && *word != "/dev/null"),
        [shell, flags, script, ..] if SHELLS.contains(shell) && is_script_flag(flags) => {
            if flags.contains('e') { script_may_fail(script, true) } else { !cannot_fail(script) }
        }
        [shell, flag, more @ ..] if SHELLS.contains(shell) && matches!(*flag, "-e" | "-u" | "-x") => {
            simple_may_fail(
                &[&[*shell], more].concat().iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(),
            )
        }
        ["test", condition @ ..] | ["[", condition @ .., "]"] | ["[[", condition @ .., "]]"] => {
            truth(condition) != Some(true)
        }
        ["ls" | "stat", more @ ..] => {
            more.iter().any(|word| !word.starts_with('-') && !is_always_there(word))
        }
        ["pwd" | "whoami" | "hostname" | "uname", ..] | ["date"] | ["date", "-u"] => false,
        ["sleep", ..] => false,
        _ => true,
    }
}

/// Whether a condition holds, where its words mean themselves; none where only a shell could tell.
fn truth(condition: &[&str]) -> Option<bool> {
    let is_read = |word: &&str| !word.contains(['$', '`', '*', '?']);
    if !condition.iter().all(is_read) && !condition.iter().any(|word| matches!(*word, "-o" | "-a")) {
        return None;
    }
    let numbers = |left: &str, right: &str| Some((left.parse::<i64>().ok()?, right.parse::<i64>().ok()?));
    match condition {
        [] => Some(false),
        ["!", rest @ ..] if !rest.is_empty() => truth(rest).map(|holds| !holds),
        [one] => Some(!one.is_empty()),
        ["-n", word] => Some(!word.is_empty()),
        ["-z", word] => Some(word.is_empty()),
        [left, "=" | "==", right] => Some(left == right),
        [left, "!=", right] => Some(left != right),
        [left, "-eq", right] => numbers(left, right).map(|(left, right)| left == right),
        [left, "-ne", right] => numbers(left, right).map(|(left, right)| left != right),
        [left, "-le", right] => numbers(left, right).map(|(left, right)| left <= right),
        [left, "-ge", right] => numbers(left, right).map(|(left, right)| left >= right),
        [left, "-lt", right] => numbers(left, right).map(|(left, right)| left < right),
        [left, "-gt", right] => numbers(left, right).map(|(left, right)| left > right),
        _ => {
            let at = condition.iter().position(|word| matches!(*word, "-o" | "-a"))?;
            let (left, right) = (truth(&condition[..at]), truth(&condition[at + 1..]));
            match condition[at] {
                "-o" if left == Some(true) || right == Some(true) => Some(true),
                "-a" if left == Some(false) || right == Some(false) => Some(false),
                _ => left
                    .zip(right)
                    .map(|(left, right)| if condition[at] == "-o" { left || right } else { left && right }),
            }
        }
    }
}

/// Whether the end of a pipe only hands on what it is given: then nobody hears how the command before it ended.
fn is_passing_on(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_file = |word: &&str| !word.starts_with('-') && word.parse::<u64>().is_err();
    match words.as_slice() {
        ["tee" | "tr" | "cut", ..] => true,
        // A script may end it with a code of its own.
        ["sed", flags @ .., script] if flags.iter().all(|word| word.starts_with('-')) => {
            !script.contains(['q', 'Q'])
        }
        ["awk", script] => !script.contains("exit"),
        ["sort", more @ ..]
            if more.iter().any(|word| {
                word.starts_with("-c") || word.starts_with("-C") || word.starts_with("--check")
            }) =>
        {
            false
        }
        [
            "cat" | "head" | "tail" | "sort" | "uniq" | "wc" | "nl" | "tac" | "less" | "more" | "column"
            | "fold" | "ts" | "rev" | "logger",
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
enum ShellEnding {
    Awaited,
    SentAway,
}

#[derive(Debug)]
struct ShellPart {
    after: Joint,
    words: Vec<String>,
    ending: ShellEnding,
}

/// Cuts a command line at its operators; quotes and comments are respected, nothing is expanded.
fn split(command: &str) -> Vec<ShellPart> {
    let mut cut = Cutter {
        parts: vec![ShellPart { after: Joint::Then, words: Vec::new(), ending: ShellEnding::Awaited }],
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
                    part.ending = ShellEnding::SentAway;
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
    parts: Vec<ShellPart>,
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
        self.parts.push(ShellPart { after, words: Vec::new(), ending: ShellEnding::Awaited });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "[ -n x ]",
            "[[ 1 ]]",
            "[ 2 -gt 1 ]",
            "[ ! 1 = 2 ]",
            "[ 1 -a 1 ]",
            "[ 1 -o $X ]",
            "! [ 1 = 2 ]",
            "! ! true",
            "sh -c true",
            "sh -ec 'true'",
            "env true",
            "env A=1 true",
            "command true",
            "exec true",
            "timeout 5 true",
            "time true",
            "nice -n 5 echo",
            "eval true",
            "eval 'make test || true'",
            "cd . && true",
            "cd",
            "ls .",
            "ls -la /",
            "make test & wait",
            "make test || exit 0",
            "make test; exit 0",
            "trap 'exit 0' EXIT",
            "trap 'exit 0' EXIT; make test",
            "git status",
            "git diff",
            "cat /dev/null",
            "make test | sed 's/a/b/'",
            "make test | tr a b",
            "make test 2>&1 | awk '{print}'",
            "if make test; then true; fi || true",
            "for f in a b; do echo $f; done",
            "while false; do :; done || true",
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
            "env -i make test",
            "timeout 5 make test",
            "exec make test",
            "exec 3<>/dev/tcp/127.0.0.1/80",
            "eval make test",
            "! grep -q x y",
            "! make broken",
            "git diff --exit-code",
            "git diff --quiet HEAD",
            "cd src && make",
            "cd src",
            "ls src",
            "test -d src",
            "[ 1 -gt 2 ]",
            "bash -ec 'make a; true'",
            "for f in *.sh; do bash -n $f || exit 1; done",
            "if grep -q x y; then exit 1; fi",
            "make test | sed -n '/x/q1'",
            "awk 'END { exit n }' x",
            "! [ -e leftover ]",
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
            let _ = (crate::check::looks_like_prose(odd), cannot_fail(odd));
        }
    }
}
