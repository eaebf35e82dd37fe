//! What a shell's line writes, as far as its words tell (mission E2). A guess that saves a model a detour: what it cannot tell
//! (variables, programs that write by themselves) passes here, and git's own hooks decide.

/// Something that a line changes. `dir` is where its `cd`s lead, seen from where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineWrite {
    Path {
        dir: String,
        path: String,
    },
    /// The working tree or the branches of the repository at `dir`.
    Git {
        dir: String,
    },
}

/// Lines within lines (`sh -c`) are followed this deep.
const DEPTH: usize = 3;

pub fn written(line: &str) -> Vec<LineWrite> {
    let mut found = Vec::new();
    read(line, DEPTH, &mut found);
    found
}

/// Each command of a line, as its words; one that cannot be told is a question mark. What is set before it is left out.
pub fn commands(line: &str) -> Vec<String> {
    let all = pieces(line);
    let each = all.split(|piece| *piece == LinePiece::End);
    let words = each.map(|command| {
        let words = command.iter().filter_map(|piece| match piece {
            LinePiece::Word(word) => Some(word.clone().unwrap_or_else(|| "?".to_owned())),
            _ => None,
        });
        let is_set = |word: &String| {
            word.split_once('=')
                .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        };
        words.skip_while(is_set).collect::<Vec<_>>().join(" ")
    });
    words.filter(|words| !words.is_empty()).collect()
}

/// A word that cannot be told is none.
type Word = Option<String>;

#[derive(Debug, PartialEq, Eq)]
enum LinePiece {
    Word(Word),
    /// What follows is a file that is written.
    Out,
    /// What follows is a file that is read.
    In,
    End,
}

fn read(line: &str, depth: usize, found: &mut Vec<LineWrite>) {
    // None as soon as a `cd` cannot be told: what follows is anywhere.
    let mut dir = Some(String::new());
    for command in pieces(line).split(|piece| *piece == LinePiece::End) {
        let (mut words, mut outs) = (Vec::new(), Vec::new());
        let mut kind = &LinePiece::End;
        for piece in command {
            match (piece, kind) {
                (LinePiece::Word(word), LinePiece::Out) => outs.push(word.clone()),
                (LinePiece::Word(_), LinePiece::In) => {}
                (LinePiece::Word(word), _) => words.push(word.clone()),
                _ => {}
            }
            kind = piece;
        }
        let Some(here) = dir.clone() else { return };
        let paths = outs.into_iter().chain(targets(&words));
        found.extend(paths.flatten().map(|path| LineWrite::Path { dir: here.clone(), path }));
        let words = plain(&words);
        match words.first().and_then(|word| word.as_deref()).map(program) {
            Some("cd" | "pushd") => dir = words.get(1).cloned().flatten().map(|to| joined(&here, &to)),
            Some("git") => found.extend(git(&here, &words[1..])),
            Some("sh" | "bash" | "zsh" | "dash") if depth > 0 => {
                let inner = words.iter().flatten().skip_while(|word| !is_cluster(word, 'c')).nth(1);
                let before = found.len();
                inner.into_iter().for_each(|line| read(line, depth - 1, found));
                found[before..].iter_mut().for_each(|one| one.below(&here));
            }
            _ => {}
        }
    }
}

impl LineWrite {
    fn below(&mut self, above: &str) {
        let (LineWrite::Path { dir, .. } | LineWrite::Git { dir }) = self;
        *dir = joined(above, dir);
    }
}

fn joined(dir: &str, to: &str) -> String {
    match (dir, to) {
        (_, to) if to.starts_with('/') => to.to_owned(),
        ("", to) => to.to_owned(),
        (dir, "") => dir.to_owned(),
        (dir, to) => format!("{dir}/{to}"),
    }
}

fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// `-lc` has the letter `c`.
fn is_cluster(word: &str, letter: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
}

/// The command without what only stands before it.
fn plain(words: &[Word]) -> &[Word] {
    const BEFORE: &[&str] = &[
        "env", "command", "exec", "builtin", "nohup", "nice", "sudo", "time", "then", "do", "else", "if",
        "elif", "while", "until", "!", "{",
    ];
    let is_before = |word: &&Word| {
        let Some(word) = word else { return false };
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        is_assignment || BEFORE.contains(&program(word))
    };
    &words[words.iter().take_while(is_before).count()..]
}

/// The files that a command names in order to change them.
fn targets(words: &[Word]) -> Vec<Word> {
    let words = plain(words);
    let Some(Some(name)) = words.first() else { return Vec::new() };
    let rest = &words[1..];
    let has = |letter| rest.iter().flatten().any(|word| is_cluster(word, letter));
    let files: Vec<Word> = rest
        .iter()
        .filter(|word| !word.as_ref().is_some_and(|word| word.starts_with('-')))
        .cloned()
        .collect();
    match program(name) {
        "tee" | "touch" | "rm" | "rmdir" | "mkdir" | "truncate" | "unlink" | "shred" | "mv" => files,
        "chmod" | "chown" => files.into_iter().skip(1).collect(),
        "cp" | "ln" | "install" | "rsync" => files.into_iter().next_back().into_iter().collect(),
        "dd" => files
            .into_iter()
            .flatten()
            .filter_map(|word| Some(Some(word.strip_prefix("of=")?.to_owned())))
            .collect(),
        "sed" if has('i') || rest.iter().flatten().any(|word| word.starts_with("--in-place")) => {
            // The script is the first word, unless an option says which one is.
            files.into_iter().skip(1).collect()
        }
        "perl" if has('i') => files.into_iter().skip(1).collect(),
        "patch" => vec![Some(".".to_owned())],
        "tar"
            if has('x')
                || rest.first().is_some_and(|word| word.as_ref().is_some_and(|word| word.contains('x'))) =>
        {
            vec![Some(".".to_owned())]
        }
        _ => Vec::new(),
    }
}

/// Whether git changes branches or the working tree.
fn git(here: &str, words: &[Word]) -> Option<LineWrite> {
    let mut dir = here.to_owned();
    let mut words = words.iter();
    let verb = loop {
        match words.next()?.as_deref()? {
            "-C" => dir = joined(&dir, words.next()?.as_deref()?),
            "-c" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => break word,
        }
    };
    let rest: Vec<&str> = words.map(|word| word.as_deref().unwrap_or("?")).collect();
    let names = rest.iter().any(|word| !word.starts_with('-'));
    let writes = match verb {
        "commit" | "push" | "merge" | "rebase" | "cherry-pick" | "revert" | "reset" | "am" | "apply"
        | "pull" | "switch" | "checkout" | "restore" | "clean" | "mv" | "rm" | "add" | "update-ref"
        | "filter-branch" | "fast-import" => true,
        "stash" => !matches!(rest.first(), Some(&("list" | "show"))),
        "branch" | "tag" => {
            const LISTS: &[&str] =
                &["-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
            names && !rest.iter().any(|word| LISTS.contains(word))
        }
        "worktree" => matches!(rest.first(), Some(&("add" | "remove" | "move"))),
        "symbolic-ref" => rest.iter().filter(|word| !word.starts_with('-')).count() > 1,
        _ => false,
    };
    writes.then_some(LineWrite::Git { dir })
}

fn pieces(line: &str) -> Vec<LinePiece> {
    let mut reader =
        LineReader { chars: line.chars().peekable(), pieces: Vec::new(), word: None, documents: Vec::new() };
    while let Some(c) = reader.chars.next() {
        reader.take(c);
    }
    reader.end_word();
    reader.pieces
}

struct LineReader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    pieces: Vec<LinePiece>,
    /// The word that is being read, and whether all of it can be told.
    word: Option<(String, bool)>,
    /// The last lines of texts that follow the line (`<<END`).
    documents: Vec<String>,
}

impl LineReader<'_> {
    fn push(&mut self, c: char) {
        self.word.get_or_insert((String::new(), true)).0.push(c);
    }

    fn unknown(&mut self) {
        self.word.get_or_insert((String::new(), true)).1 = false;
    }

    fn end_word(&mut self) {
        if let Some((text, is_known)) = self.word.take() {
            self.pieces.push(LinePiece::Word(Some(text).filter(|_| is_known)));
        }
    }

    fn take(&mut self, c: char) {
        match c {
            '\n' => {
                self.end();
                self.skip_documents();
            }
            '&' if self.chars.peek() == Some(&'>') => self.end_word(),
            ';' | '&' | '|' | '(' | ')' | '`' => self.end(),
            '>' => self.redirect(),
            '<' => self.input(),
            '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
            '\\' => match self.chars.next() {
                Some('\n') | None => {}
                Some(c) => self.push(c),
            },
            '\'' => {
                self.word.get_or_insert((String::new(), true));
                while let Some(c) = self.chars.next().filter(|c| *c != '\'') {
                    self.push(c);
                }
            }
            '"' => self.quoted(),
            '$' | '*' | '?' | '~' => {
                self.unknown();
                self.push(c);
            }
            c if c.is_whitespace() => self.end_word(),
            c => self.push(c),
        }
    }

    fn end(&mut self) {
        self.end_word();
        self.pieces.push(LinePiece::End);
    }

    fn quoted(&mut self) {
        self.word.get_or_insert((String::new(), true));
        while let Some(c) = self.chars.next().filter(|c| *c != '"') {
            match c {
                '\\' => self.chars.next().into_iter().for_each(|c| self.push(c)),
                '$' | '`' => self.unknown(),
                c => self.push(c),
            }
        }
    }

    fn redirect(&mut self) {
        // `2>` is which stream, not a word.
        if self.word.as_ref().is_some_and(|(text, _)| text.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.chars.next_if(|c| matches!(c, '>' | '|'));
        // To another stream, `>&1`, is to no file.
        if self.chars.next_if_eq(&'&').is_some()
            && self.chars.peek().is_none_or(|c| c.is_ascii_digit() || *c == '-')
        {
            self.pieces.push(LinePiece::In);
        } else {
            self.pieces.push(LinePiece::Out);
        }
    }

    fn input(&mut self) {
        self.end_word();
        if self.chars.next_if_eq(&'<').is_none() || self.chars.next_if_eq(&'<').is_some() {
            self.pieces.push(LinePiece::In);
            return;
        }
        self.chars.next_if_eq(&'-');
        while self.chars.next_if_eq(&' ').is_some() {}
        let mut last = String::new();
        while let Some(c) = self.chars.next_if(|c| !c.is_whitespace() && !";&|<>".contains(*c)) {
            if !"'\"\\".contains(c) {
                last.push(c);
            }
        }
        self.documents.push(last);
    }

    fn skip_documents(&mut self) {
        for last in std::mem::take(&mut self.documents) {
            let mut line = String::new();
            loop {
                match self.chars.next() {
                    None => return,
                    Some('\n') if line.trim_start_matches('\t') == last => break,
                    Some('\n') => line.clear(),
                    Some(c) => line.push(c),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `file`, `dir/file`, `git` or `git:dir`, separated by spaces.
    fn check(line: &str, expected: &str) {
        let name = |one: LineWrite| match one {
            LineWrite::Path { dir, path } => joined(&dir, &path),
            LineWrite::Git { dir } if dir.is_empty() => "git".to_owned(),
            LineWrite::Git { dir } => format!("git:{dir}"),
        };
        let found: Vec<String> = written(line).into_iter().map(name).collect();
        assert_eq!(found.join(" "), expected, "{line}");
    }

    #[test]
    fn what_writes_is_told_from_what_reads() {
        for line in [
            "ls -la src",
            "cargo test",
            "cat file",
            "git status",
            "git log --grep commit",
            "git diff && ls",
            "echo git",
            "gitk commit",
            "git branch",
            "git branch -a",
            "git branch --list x",
            "git tag -l",
            "git stash list",
            "grep x <file",
            "cat file 2>&1",
            "sed -n 1,5p file",
            "# rm file",
            "onus claim --next",
            "echo 'a > b'",
            "git worktree list",
            "echo \"rm file\"",
            "rm $FILE",
            "git symbolic-ref HEAD",
            "find . -name x",
        ] {
            check(line, "");
        }
        check("echo x >file", "file");
        check("echo x >> 'a file'", "a file");
        check("make 2>log >out", "log out");
        check("cat <<END >f\nrm other\nEND\ntouch g", "f g");
        check("cat a | tee b c", "b c");
        check("rm -rf a b; mkdir -p c", "a b c");
        check("cp a b c/", "c/");
        check("mv a b", "a b");
        check("sed -i s/a/b/ f", "f");
        check("A=1 env B=2 rm f", "f");
        check("if true; then rm f; fi", "f");
        check("x=$(rm f)", "f");
        check("echo x &>f", "f");
        check("dd if=a of=b", "b");
        check("chmod +x f", "f");
        check("ls >/dev/null", "/dev/null");
    }

    #[test]
    fn where_it_writes_is_followed() {
        check("cd a && touch b && cd ../c && rm d", "a/b a/../c/d");
        check("cd /x; touch y", "/x/y");
        check("cd $HOME && rm f", "");
        check("bash -lc 'cd a && echo x >b'", "a/b");
        check("cd a && sh -c 'touch b'", "a/b");
        check("git commit -m 'x; rm y'", "git");
        check("cd a && git -c a=b -C b push", "git:a/b");
        check("true;git rebase main", "git");
        check("(git reset --hard)", "git");
        check("git branch new", "git");
        check("git branch -D old", "git");
        check("git stash", "git");
        check("git add --all && git commit -m x", "git git");
    }
}
