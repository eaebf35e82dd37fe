//! Every command of git that moves references, as everybody and everywhere: the table of `docs/reference/git-table.md`, played
//! against git with the hooks in place (mission B5, E1).

use crate::support::fleet::Fleet;
use crate::support::{Answer, finish, start};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/reference/git-table.md");
const PASSES: &str = "passes";
const BARE: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// Who calls git: the column's name, and what the environment says.
const WHO: [(&str, &[(&str, &str)]); 7] = [
    ("holder", &[("ONUS_AS", "@a")]),
    ("other", &[("ONUS_AS", "@b")]),
    ("idle", &[("ONUS_AS", "@c")]),
    ("person", &[("ONUS_AS", "PERSON")]),
    ("owner", &[]),
    ("nobody", &[]),
    ("client", &[("CLAUDECODE", "1")]),
];

/// One command in one place: what each of [`WHO`] is told.
#[derive(Debug, Clone)]
struct Line {
    command: String,
    place: String,
    answers: Vec<String>,
    /// Whom it lets pass has moved something.
    moves: bool,
}

/// The tables of the page, each under its heading: cells by row, the header first.
fn tables() -> Vec<(String, Vec<Vec<String>>)> {
    let mut tables: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    let (mut heading, mut inside) = (String::new(), false);
    for line in PAGE.lines() {
        if let Some(text) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
            text.clone_into(&mut heading);
        }
        let Some(row) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            inside &= line.starts_with("|-");
            continue;
        };
        if !inside {
            tables.push((heading.clone(), Vec::new()));
        }
        inside = true;
        let cells = row.replace("\\|", "\0");
        let cells = cells.split(" | ").map(|cell| cell.trim().replace('\0', "|"));
        tables.last_mut().unwrap().1.push(cells.collect());
    }
    tables
}

fn lines_of(wanted: &[&str]) -> Vec<Line> {
    let tables = tables();
    let mut answers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, rows) in tables.iter().filter(|(_, rows)| rows[0][0] == "answer") {
        assert_eq!(rows[0][1..], WHO.map(|(name, _)| name.to_owned()), "the columns are those of the test");
        answers.extend(rows[1..].iter().map(|row| (row[0].clone(), row[1..].to_vec())));
    }
    let mut lines = Vec::new();
    for name in wanted {
        let (heading, rows) = tables
            .iter()
            .find(|(heading, rows)| heading == name && rows[0][0] == "command")
            .unwrap_or_else(|| panic!("no table under {name}"));
        for row in &rows[1..] {
            let places = rows[0][1..].iter().zip(&row[1..]);
            lines.extend(places.map(|(place, answer)| Line {
                command: row[0].trim_matches('`').to_owned(),
                place: place.clone(),
                answers: answers.get(answer).unwrap_or_else(|| panic!("no answer {answer}")).clone(),
                moves: heading != "What moves no branch" && answer != "anyone",
            }));
        }
    }
    lines
}

/// A fleet with something for every line to move, and a copy of it to begin each line with.
struct Stage {
    fleet: Fleet,
    copy: PathBuf,
    /// When each file was last written by us: what is the same needs no copying.
    written: RefCell<BTreeMap<PathBuf, Stamp>>,
}

type Stamp = (std::time::SystemTime, u64);

fn stamp(path: &Path) -> Stamp {
    let entry = fs::symlink_metadata(path).unwrap();
    (entry.modified().unwrap(), entry.len())
}

/// What is put back between two lines.
const KEPT: [&str; 6] = ["repo", "repo-ws-a", "repo-ws-b", "aside", "other", "shared.git"];

impl Stage {
    fn new() -> Stage {
        let fleet = Fleet::new();
        let stage = Stage { copy: fleet.site.root().join("copy"), fleet, written: RefCell::default() };
        let (fleet, repo) = (&stage.fleet, stage.fleet.site.repo());
        fleet.site.by_person(&["worker", "add", "@c", "--kind", "agent"]);
        let unseen = |args: &[&str]| {
            let said = fleet.git_by(&repo, &[], &[&BARE[..], args].concat());
            assert_eq!(said.exit, Some(0), "{args:?}: {said:?}");
            said.stdout
        };
        let commit = |branch: &str, from: &str, file: &str| {
            unseen(&["switch", "--quiet", "--create", branch, from]);
            fs::write(repo.join(file), branch).unwrap();
            unseen(&["add", "--all"]);
            unseen(&["commit", "--quiet", "--message", &format!("{branch}: {file}")]);
        };
        fs::write(repo.join("file"), "first\n").unwrap();
        unseen(&["add", "--all"]);
        unseen(&["commit", "--quiet", "--message=first"]);
        unseen(&["commit", "--quiet", "--allow-empty", "--message=second"]);
        fleet.site.git(&["push", "--quiet", "origin", "main"]);
        for (task, name) in [("for a", "a"), ("for b", "b")] {
            let task = fleet.site.add(task);
            fleet.claim(&task, name);
            let said = fleet.commit(name, &format!("of-{name}"), "1");
            assert_eq!(said.exit, Some(0), "{said:?}");
            let said = fleet.git(name, &["push", "--quiet", "origin", "HEAD"]);
            assert_eq!(said.exit, Some(0), "{said:?}");
            // And something that the remote has not yet.
            let said = fleet.commit(name, &format!("of-{name}"), "2");
            assert_eq!(said.exit, Some(0), "{said:?}");
        }
        commit("topic", "main", "topic-file");
        commit("incoming", "topic", "incoming-file");
        unseen(&["branch", "gone", "main"]);
        unseen(&["branch", "later-base", "main"]);
        fleet.site.git(&["push", "--quiet", "origin", "incoming", "topic:pushed"]);
        unseen(&["bundle", "create", "--quiet", "../bundle", "incoming"]);
        unseen(&["switch", "--quiet", "main"]);
        unseen(&["branch", "--quiet", "--delete", "--force", "incoming"]);
        // One commit that the remote has not, for a person to push.
        fs::write(repo.join("third"), "x").unwrap();
        unseen(&["add", "--all"]);
        unseen(&["commit", "--quiet", "--message=third"]);
        unseen(&["tag", "old"]);
        unseen(&["update-ref", "refs/onus/salvage/T-9/1", "HEAD"]);
        fleet.site.git(&["push", "--quiet", "origin", "refs/onus/salvage/T-9/1"]);
        unseen(&["worktree", "add", "--quiet", "-b", "aside", "../aside"]);
        unseen(&["worktree", "add", "--quiet", "--detach", "../other"]);
        let patch = unseen(&["format-patch", "--stdout", "-1", "topic"]);
        fs::write(fleet.site.root().join("patch"), patch).unwrap();
        for dir in ["repo", "repo-ws-a", "aside"] {
            fs::write(fleet.site.root().join(dir).join("file"), "stashed\n").unwrap();
        }
        // A stash belongs to the whole repository; made in a tree that is in none of the places.
        fs::write(fleet.site.root().join("other/file"), "stashed\n").unwrap();
        fleet.git_by(&fleet.site.root().join("other"), &[], &[&BARE[..], &["stash"]].concat());
        for dir in ["repo", "repo-ws-a", "aside"] {
            fleet.git_by(&fleet.site.root().join(dir), &[], &[&BARE[..], &["reset", "--hard"]].concat());
        }
        for name in KEPT {
            let place = fleet.site.root().join(name);
            for file in files(&place) {
                stage.written.borrow_mut().insert(file.clone(), stamp(&file));
                let kept = stage.copy.join(file.strip_prefix(fleet.site.root()).unwrap());
                fs::create_dir_all(kept.parent().unwrap()).unwrap();
                fs::copy(&file, &kept).unwrap();
            }
        }
        stage
    }

    fn place(&self, name: &str) -> PathBuf {
        match name {
            "holder's" => self.fleet.tree("a"),
            "main checkout" => self.fleet.site.repo(),
            "aside" => self.fleet.site.root().join("aside"),
            "shared" => self.fleet.shared(),
            other => panic!("no such place: {other}"),
        }
    }

    /// Puts back what a line has changed, made or removed.
    fn reset(&self) {
        let root = self.fleet.site.root();
        drop(fs::remove_dir_all(root.join("fresh")));
        let mut written = self.written.borrow_mut();
        let found: BTreeSet<PathBuf> = KEPT.iter().flat_map(|name| files(&root.join(name))).collect();
        for made in found.iter().filter(|file| !written.contains_key(*file)) {
            fs::remove_file(made).unwrap();
            // A directory where a file is to be again.
            for above in made.ancestors().skip(1).take_while(|above| *above != root) {
                drop(fs::remove_dir(above));
            }
        }
        for (file, last) in written.iter_mut() {
            if !found.contains(file) || stamp(file) != *last {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                drop(fs::remove_file(file));
                fs::copy(self.copy.join(file.strip_prefix(root).unwrap()), file).unwrap();
                *last = stamp(file);
            }
        }
    }

    /// Where every branch, tag and record of both repositories is, and the `HEAD` that stands in the place.
    fn refs(&self, dir: &Path) -> (BTreeMap<String, String>, String) {
        let mut refs = read_refs(&self.fleet.site.repo().join(".git"), "");
        let git_dir = match fs::read_to_string(dir.join(".git")) {
            Ok(text) => PathBuf::from(text.trim().strip_prefix("gitdir: ").unwrap()),
            Err(_) if dir.join(".git").is_dir() => dir.join(".git"),
            Err(_) => dir.to_owned(),
        };
        let head = fs::read_to_string(git_dir.join("HEAD")).unwrap();
        let head = head.trim();
        let at = head.strip_prefix("ref: ").map(|name| refs.get(name).cloned().unwrap_or_default());
        refs.extend(read_refs(&self.fleet.shared(), "shared:"));
        (refs, at.unwrap_or_else(|| head.to_owned()))
    }

    fn play(&self, line: &Line, who: usize) -> Answer {
        let dir = self.place(&line.place);
        let (name, variables) = WHO[who];
        if name == "nobody" {
            let file = self.fleet.site.repo().join(".git/config");
            let config = fs::read_to_string(&file).unwrap();
            let without: Vec<&str> = config.lines().filter(|line| !line.contains("person = ")).collect();
            fs::write(&file, without.join("\n") + "\n").unwrap();
        }
        let branch = match line.place.as_str() {
            "holder's" => "agent/ws-a",
            "aside" => "aside",
            _ => "main",
        };
        let stream = format!(
            "commit refs/heads/{branch}\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nx\n\n"
        );
        fs::write(self.fleet.site.root().join("stream"), stream).unwrap();
        let mut shell = Command::new("sh");
        self.fleet.site.surroundings(&mut shell).current_dir(dir).args(["-ec", &line.command]);
        shell.env("GIT_EDITOR", "true").env("FILTER_BRANCH_SQUELCH_WARNING", "1");
        for (variable, value) in variables {
            shell.env(variable, value.replace("PERSON", &self.fleet.site.person));
        }
        finish(start(&mut shell))
    }

    /// What is wrong with the answer to a line, if anything is.
    fn judged(&self, line: &Line, who: usize) -> Option<String> {
        let dir = self.place(&line.place);
        let before = self.refs(&dir);
        let said = self.play(line, who);
        let after = self.refs(&dir);
        let expected = line.answers[who].as_str();
        let code = told_codes(&said.stderr).last();
        let answer = match (said.exit, code) {
            (Some(0), _) => PASSES,
            (_, Some(code)) => code,
            // filter-branch keeps to itself what git told it.
            (_, None) if said.stderr.contains("Could not rewrite") => expected,
            (_, None) => "failed by itself",
        };
        let moved = before.0 != after.0 || (line.moves && before.1 != after.1);
        let wrong = match expected {
            _ if answer != expected => Some(format!("{answer}, not {expected}")),
            PASSES if line.moves && !moved => Some("it moved nothing".to_owned()),
            PASSES => None,
            _ if before.0 != after.0 => Some("it was refused and has moved".to_owned()),
            _ => None,
        };
        self.reset();
        wrong.map(|wrong| {
            format!("{} | {} | {}: {wrong}\n{}", line.command, line.place, WHO[who].0, said.stderr)
        })
    }
}

/// The codes of what was refused, as they stand behind its sentences.
fn told_codes(stderr: &str) -> impl Iterator<Item = &str> {
    let errors = stderr.lines().filter(|line| line.contains("error: "));
    errors.filter_map(|line| line.trim_end().strip_suffix(']')?.rsplit_once(" [")).map(|(_, code)| code)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// References as they are, packed or not. Read here: git would take longer than the line that is judged.
fn read_refs(git_dir: &Path, before: &str) -> BTreeMap<String, String> {
    let packed = fs::read_to_string(git_dir.join("packed-refs")).unwrap_or_default();
    let packed = packed.lines().filter_map(|line| line.split_once(' ')).filter(|(id, _)| id.len() == 40);
    let mut refs: BTreeMap<String, String> =
        packed.map(|(id, name)| (format!("{before}{name}"), id.to_owned())).collect();
    for file in files(&git_dir.join("refs")) {
        let name = file.strip_prefix(git_dir).unwrap().to_str().unwrap();
        refs.insert(format!("{before}{name}"), fs::read_to_string(&file).unwrap().trim().to_owned());
    }
    let is_judged = |name: &str| ["refs/heads/", "refs/onus/"].iter().any(|kind| name.contains(kind));
    refs.retain(|name, _| is_judged(name) || name.starts_with("shared:refs/tags/"));
    refs
}

/// Every third cell, each time others of a line; all of them where time is no matter.
fn is_played(cell: usize) -> bool {
    cell.is_multiple_of(3) || std::env::var_os("ONUS_SOAK").is_some()
}

fn hold(headings: &[&str]) {
    let stage = Stage::new();
    let mut wrong = Vec::new();
    for (number, line) in lines_of(headings).iter().enumerate() {
        let cells = (0..WHO.len()).filter(|who| is_played(number + number / 3 + who));
        wrong.extend(cells.filter_map(|who| stage.judged(line, who)));
    }
    assert!(wrong.is_empty(), "{} of the table do not hold:\n\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_branch_that_is_checked_out() {
    hold(&["The branch that is checked out"]);
}

#[test]
fn another_branch() {
    hold(&["Another branch"]);
}

#[test]
fn the_main_branch_and_what_is_anothers() {
    hold(&["The main branch, and what is another's", "A HEAD that is on no branch"]);
}

#[test]
fn what_moves_no_branch() {
    hold(&["What moves no branch", "What git asks nobody about"]);
}

#[test]
fn the_shared_repository() {
    hold(&["A push", "A push past the hooks of the clone", "On its own host"]);
}

/// A table that nobody plays is only words.
#[test]
fn every_table_of_the_page_is_played() {
    let text = include_str!("git_table.rs");
    for (heading, rows) in tables() {
        let is_played = rows[0][0] != "command" || text.contains(&format!("\"{heading}\""));
        assert!(is_played, "nobody plays {heading}");
    }
}
