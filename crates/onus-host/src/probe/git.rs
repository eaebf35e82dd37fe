//! `git`: the workstation's directory is a working tree in the expected state. All findings at once.

use super::{Around, Seen, directory};
use crate::file::shown;
use crate::git::{Failure, Git};
use onus_core::probe::{Cleanness, Tree};
use std::path::Path;

/// How many changed files are named.
const NAMED: usize = 3;

pub(super) fn see(tree: &Tree, around: &Around) -> Result<Seen, Seen> {
    let directory = directory(around)?;
    let root = directory
        .canonicalize()
        .map_err(|e| Seen::failed(format!("{} is not there: {e}", shown(directory))))?;
    // Its parent may be a repository too; that one is not meant.
    let top = git(&root, "rev-parse").args(&["--show-toplevel"]).line().map_err(not_a_tree(&root))?;
    if Path::new(&top) != root {
        return Err(Seen::failed(format!(
            "{} is no working tree of its own, but inside {top}",
            shown(&root)
        )));
    }
    let mut look = GitLook { root: &root, seen: Vec::new(), findings: Vec::new() };
    look.at_commit(tree.at.as_deref())?;
    look.on_branch(tree.branch.as_deref().or(around.branch.as_deref()))?;
    if tree.cleanness == Cleanness::Clean {
        look.is_clean()?;
    }
    if let Some(limit) = tree.behind {
        look.is_behind(limit, around.main.as_deref())?;
    }
    match look.findings.is_empty() {
        true => Ok(Seen::passed(look.seen.join(", "))),
        false => Err(Seen::failed(look.findings.join("; "))),
    }
}

struct GitLook<'a> {
    root: &'a Path,
    seen: Vec<String>,
    findings: Vec<String>,
}

impl GitLook<'_> {
    fn at_commit(&mut self, wanted: Option<&str>) -> Result<(), Seen> {
        let head = one(git(self.root, "rev-parse").args(&["--verify", "--quiet", "HEAD^{commit}"]))?;
        match (head, wanted) {
            (Some(head), Some(wanted)) if !head.starts_with(wanted) => {
                self.findings.push(format!("at {head}, expected {wanted}"));
            }
            (Some(head), _) => self.seen.push(format!("at {}", head.get(..12).unwrap_or(&head))),
            (None, Some(wanted)) => self.findings.push(format!("no commit, expected {wanted}")),
            (None, None) => self.seen.push("no commit".into()),
        }
        Ok(())
    }

    fn on_branch(&mut self, wanted: Option<&str>) -> Result<(), Seen> {
        let branch = one(git(self.root, "symbolic-ref").args(&["--quiet", "HEAD"]))?;
        let short = |name: &str| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
        match (branch.as_deref().map(short), wanted.map(short)) {
            (Some(branch), Some(wanted)) if branch != wanted => {
                self.findings.push(format!("on branch {branch}, expected {wanted}"));
            }
            (Some(branch), _) => self.seen.push(format!("on branch {branch}")),
            (None, Some(wanted)) => self.findings.push(format!("on no branch, expected {wanted}")),
            (None, None) => self.seen.push("on no branch".into()),
        }
        Ok(())
    }

    fn is_clean(&mut self) -> Result<(), Seen> {
        let options = ["--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"];
        let printed =
            git(self.root, "status").args(&options).run().map_err(|failure| unanswered(&failure))?;
        let entries: Vec<_> = printed.split(|byte| *byte == 0).filter(|entry| entry.len() > 3).collect();
        if entries.is_empty() {
            self.seen.push("clean".into());
            return Ok(());
        }
        let named = entries.iter().take(NAMED).map(|entry| String::from_utf8_lossy(&entry[3..]));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if entries.len() > NAMED { ", …" } else { "" };
        self.findings.push(format!("{} changed or untracked ({named}{more}), expected none", entries.len()));
        Ok(())
    }

    fn is_behind(&mut self, limit: u32, main: Option<&str>) -> Result<(), Seen> {
        let Some(main) = main else {
            self.findings.push("there is no main branch to compare with".into());
            return Ok(());
        };
        let range = format!("HEAD..{main}");
        let printed = git(self.root, "rev-list").args(&["--count"]).values(&[&range]).line();
        let printed = printed.map_err(|failure| unanswered(&failure))?;
        let Ok(count) = printed.parse::<u64>() else {
            return Err(Seen::could_not_run(format!("git rev-list said {printed}")));
        };
        match count <= u64::from(limit) {
            true => self.seen.push(format!("{count} behind {main}")),
            false => self.findings.push(format!("{count} commits behind {main}, expected at most {limit}")),
        }
        Ok(())
    }
}

/// Without a file system monitor: it is a program that the repository's configuration names.
fn git(root: &Path, verb: &str) -> Git {
    Git::in_dir(root, verb)
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .env("GIT_CONFIG_VALUE_0", "false")
}

/// What git printed; none when it says by its exit that there is nothing.
fn one(git: Git) -> Result<Option<String>, Seen> {
    match git.line() {
        Ok(line) => Ok(Some(line)),
        Err(Failure::Failed { exit: Some(1), .. }) => Ok(None),
        Err(failure) => Err(unanswered(&failure)),
    }
}

fn not_a_tree(root: &Path) -> impl Fn(Failure) -> Seen {
    move |failure| match failure {
        Failure::Failed { stderr, .. } => {
            Seen::failed(format!("{} is no git working tree: {}", shown(root), first_line(&stderr)))
        }
        other => unanswered(&other),
    }
}

fn unanswered(failure: &Failure) -> Seen {
    match failure {
        Failure::Missing => Seen::could_not_run("the git command was not found"),
        Failure::NotRun(e) => Seen::could_not_run(format!("git could not be run: {e}")),
        Failure::Failed { verb, stderr, .. } => {
            Seen::failed(format!("git {verb} failed: {}", first_line(stderr)))
        }
        Failure::OptionLike(value) => Seen::could_not_run(format!("{value} begins with a dash")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
}
