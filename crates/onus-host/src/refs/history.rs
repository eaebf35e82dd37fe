//! Reading commits: what is new, what it touches, and whether it has arrived in the main branch.

use super::LooseObjects;
use crate::git::{Git, Incoming, is_object_id};
use crate::repository::Repo;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::collections::BTreeSet;
use std::path::Path;

/// The first few of many, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample<T> {
    pub first: Vec<T>,
    pub count: usize,
}

impl<T> Sample<T> {
    const MAX: usize = 20;

    pub(crate) fn of(mut all: Vec<T>) -> Sample<T> {
        let count = all.len();
        all.truncate(Self::MAX);
        Sample { first: all, count }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Under which assignment a commit says it was made. As written: nobody has checked it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    pub task: Option<String>,
    pub agent: Option<String>,
    pub workstation: Option<String>,
    pub epoch: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    pub subject: String,
    pub trailers: Trailers,
    parents: Vec<String>,
    /// Git found the same patch on the other side.
    is_matched: bool,
}

/// NUL cannot occur in a commit's message, so it separates the fields.
const FORMAT: &str = "--format=%H%x00%s%x00%(trailers:key=Onus-Task,valueonly,separator=%x2C)\
    %x00%(trailers:key=Onus-Agent,valueonly,separator=%x2C)\
    %x00%(trailers:key=Onus-Workstation,valueonly,separator=%x2C)\
    %x00%(trailers:key=Onus-Epoch,valueonly,separator=%x2C)%x00%P%x00%m%x00";
const FIELDS: usize = 8;

/// The commits of one repository; inside a push also those that are not yet its own.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    pub(super) dir: &'a Path,
    pub(super) incoming: Option<&'a Incoming>,
    /// Where its objects are known to lie: new ones are read there without asking git.
    common_dir: Option<&'a Path>,
}

/// What a branch has that the main branch has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// Neither in the main branch nor the same patch as something in it, newest first.
    pub unmerged: Vec<Commit>,
    /// Nothing has come to the main branch that the branch has not.
    pub is_on_top: bool,
}

impl<'a> History<'a> {
    pub fn at(dir: &'a Path) -> History<'a> {
        History { dir, incoming: None, common_dir: None }
    }

    /// What all working trees of a repository share.
    pub fn of(repo: &'a Repo) -> History<'a> {
        History { dir: &repo.common_dir, incoming: None, common_dir: Some(&repo.common_dir) }
    }

    pub fn receiving(dir: &'a Path, incoming: Option<&'a Incoming>) -> History<'a> {
        History { dir, incoming, common_dir: None }
    }

    fn loose(&self) -> Option<LooseObjects> {
        self.common_dir.map(LooseObjects::of)
    }

    pub(super) fn git(&self, verb: &str) -> Git {
        Git::ours(self.dir, verb).seeing(self.incoming)
    }

    /// The commit that a name stands for; none when there is no such name. Give a branch by its full name: a tag of
    /// the same short name would win.
    pub fn resolve(&self, name: &str) -> Result<Option<String>, Refusal> {
        if is_object_id(name) && self.loose().is_some_and(|loose| loose.is_commit(name)) {
            return Ok(Some(name.to_owned()));
        }
        let name = format!("{name}^{{commit}}");
        match self.git("rev-parse").args(&["--verify", "--quiet"]).values(&[&name]).line() {
            Ok(id) => Ok(Some(id)),
            Err(failure) if failure.is_exit(1) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The same where the name must stand for something.
    pub fn commit(&self, name: &str) -> Result<String, Refusal> {
        self.resolve(name)?.ok_or_else(|| {
            let name = onus_core::id::shown(name);
            Refusal::new(Code::UnknownName, format!("{name} is no commit of this repository"))
                .hint("git branch --all lists what there is")
        })
    }

    /// The same without asking about a whole id: what is made of it fails where there is no such commit.
    pub(crate) fn id(&self, name: &str) -> Result<String, Refusal> {
        if is_object_id(name) { Ok(name.to_owned()) } else { self.commit(name) }
    }

    /// How many parents a commit has.
    pub(crate) fn parents(&self, commit: &str) -> Result<usize, Refusal> {
        let line = self.git("rev-list").args(&["--parents", "--max-count=1"]).values(&[commit]).line()?;
        Ok(line.split_whitespace().count().saturating_sub(1))
    }

    /// Whether `commit` can be reached from `tip`.
    pub fn reaches(&self, tip: &str, commit: &str) -> Result<bool, Refusal> {
        if tip == commit && is_object_id(tip) || self.line(tip, commit).is_some() {
            return Ok(true);
        }
        Ok(self.git("merge-base").args(&["--is-ancestor"]).values(&[commit, tip]).yes()?)
    }

    /// The ids from `tip` back to before `onto`, newest first, where that can be told without git.
    fn line(&self, tip: &str, onto: &str) -> Option<Vec<String>> {
        self.loose().filter(|_| is_object_id(tip) && is_object_id(onto))?.line(tip, onto)
    }

    /// Whether any reference reaches `commit`: it was there before whoever asks.
    pub fn is_known(&self, commit: &str) -> Result<bool, Refusal> {
        let all = self.git("rev-list").args(&["--max-count=1", commit, "--not", "--all"]);
        Ok(all.run()?.is_empty())
    }

    /// The commits that `new` brings and none of `not` has, newest first.
    pub fn commits(&self, new: &str, not: &[&str]) -> Result<Vec<Commit>, Refusal> {
        self.log(&[], &range(new, not))
    }

    pub(crate) fn count(&self, new: &str, not: &[&str]) -> Result<u64, Refusal> {
        let range = range(new, not);
        let values: Vec<&str> = range.iter().map(String::as_str).collect();
        let line = self.git("rev-list").args(&["--count"]).values(&values).line()?;
        line.parse().map_err(|_| unreadable("rev-list --count"))
    }

    pub(crate) fn log(&self, args: &[&str], values: &[String]) -> Result<Vec<Commit>, Refusal> {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        read_log(self.git("rev-list").args(&["--no-commit-header", FORMAT]).args(args).values(&values))
    }

    /// The commits of `new` that touch a path, newest first.
    pub(crate) fn touching(&self, new: &str, not: &[&str], path: &Path) -> Result<Vec<Commit>, Refusal> {
        let range = range(new, not);
        let values: Vec<&str> = range.iter().map(String::as_str).collect();
        let log = self.git("rev-list").args(&["--no-commit-header", FORMAT, "--max-count=5"]);
        read_log(log.values(&values).paths(&[path]))
    }

    /// Every path that the commits of `new` change, commit by commit: what one of them adds and the next one takes
    /// back has been touched, too. A merge counts with what is in none of its parents.
    pub fn changed_paths(&self, new: &str, not: &[&str]) -> Result<Vec<String>, Refusal> {
        if let [onto] = not
            && let Some(paths) = self.line(new, onto).and_then(|line| self.loose()?.changed_by_all(&line))
        {
            return Ok(paths);
        }
        let range = range(new, not);
        let values: Vec<&str> = range.iter().map(String::as_str).collect();
        let args = ["-z", "--format=", "--root", "-r", "--cc", "--name-only", "--no-renames"];
        let log = self.git("log").args(&args).args(&["--ignore-submodules=none", "--no-show-signature"]);
        let found: BTreeSet<String> = paths(&log.values(&values).run()?).into_iter().collect();
        Ok(found.into_iter().collect())
    }

    /// These commits, each with what it says about itself; one that is not here is left out.
    pub fn named(&self, ids: &[onus_core::id::CommitId]) -> Result<Vec<Commit>, Refusal> {
        let list: Vec<String> = ids.iter().map(ToString::to_string).collect();
        // All at once, as it is as a rule.
        if let Ok(all) = self.log(&["--no-walk=unsorted"], &list) {
            return Ok(all);
        }
        let mut found = Vec::with_capacity(ids.len());
        for id in &list {
            if self.resolve(id)?.is_some() {
                found.extend(self.log(&["--max-count=1"], std::slice::from_ref(id))?);
            }
        }
        Ok(found)
    }

    /// Whether two commits are the same work on top of `onto`: the same patches, whatever they are called and wherever
    /// they were made. One that is not here cannot be told.
    pub fn is_same_work(&self, one: &str, other: &str, onto: &str) -> Result<bool, Refusal> {
        if self.resolve(one)?.is_none() || self.resolve(other)?.is_none() {
            return Ok(false);
        }
        Ok(one == other || self.patches(one, onto)? == self.patches(other, onto)?)
    }

    /// The patches that `tip` brings to `onto`, in a fixed order.
    fn patches(&self, tip: &str, onto: &str) -> Result<Vec<String>, Refusal> {
        let args = ["--no-merges", "--patch", "--binary", "--full-index", "--no-ext-diff", "--no-textconv"];
        let log = self.git("log").args(&args).args(&["--no-show-signature", "--no-color"]);
        let range = range(tip, &[onto]);
        let values: Vec<&str> = range.iter().map(String::as_str).collect();
        let patches = log.values(&values).run()?;
        let ids = self.git("patch-id").args(&["--stable"]).input(&patches).line()?;
        let mut ids: Vec<String> =
            ids.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        ids.sort();
        Ok(ids)
    }

    /// The subjects of these commits, each with its id; one that is not here is left out.
    pub fn subjects(&self, ids: &[onus_core::id::CommitId]) -> Result<Vec<(String, String)>, Refusal> {
        let told = |loose: LooseObjects| {
            let one = |id: &onus_core::id::CommitId| Some((id.to_string(), loose.subject(id.as_str())?));
            ids.iter().map(one).collect::<Option<Vec<_>>>()
        };
        match self.loose().and_then(told) {
            Some(all) => Ok(all),
            None => Ok(self.named(ids)?.into_iter().map(|commit| (commit.id, commit.subject)).collect()),
        }
    }

    /// Every path that these commits change.
    pub fn paths_of(&self, commits: &[Commit]) -> Result<Vec<String>, Refusal> {
        let ids: Vec<String> = commits.iter().map(|commit| commit.id.clone()).collect();
        if ids.is_empty() { Ok(Vec::new()) } else { self.changed_by(&ids) }
    }

    /// The ids of the commits that `new` brings and none of `not` has, newest first.
    pub fn ids(&self, new: &str, not: &[&str]) -> Result<Vec<String>, Refusal> {
        if let [onto] = not
            && let Some(line) = self.line(new, onto)
        {
            return Ok(line);
        }
        let range = range(new, not);
        let values: Vec<&str> = range.iter().map(String::as_str).collect();
        let lines = self.git("rev-list").values(&values).line()?;
        Ok(lines.lines().map(str::to_owned).collect())
    }

    /// Every path that these very commits change.
    pub fn changed_by(&self, commits: &[String]) -> Result<Vec<String>, Refusal> {
        if let Some(paths) = self.loose().and_then(|loose| loose.changed_by_all(commits)) {
            return Ok(paths);
        }
        let list: String = commits.iter().map(|id| format!("{id}\n")).collect();
        Ok(self.touched(list.as_bytes())?.into_iter().collect())
    }

    fn touched(&self, list: &[u8]) -> Result<BTreeSet<String>, Refusal> {
        let args = ["--stdin", "--root", "-r", "-z", "--cc", "--name-only", "--no-commit-id", "--no-renames"];
        let output =
            self.git("diff-tree").args(&args).args(&["--ignore-submodules=none"]).input(list).run()?;
        Ok(paths(&output).into_iter().collect())
    }

    /// Paths in which two trees differ.
    pub(crate) fn between(&self, old: &str, new: &str) -> Result<Vec<String>, Refusal> {
        let args = ["-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none"];
        Ok(paths(&self.git("diff-tree").args(&args).values(&[old, new]).run()?))
    }

    /// The commits of `tip` whose change is not in `main`: neither they themselves nor the same patch, nor all of
    /// them together as one commit.
    pub fn unmerged(&self, tip: &str, main: &str) -> Result<Vec<Commit>, Refusal> {
        Ok(self.brought(tip, main)?.unmerged)
    }

    /// The same, and whether the branch has all of `main`.
    pub fn brought(&self, tip: &str, main: &str) -> Result<Brought, Refusal> {
        let (tip, main) = (self.id(tip)?, self.id(main)?);
        if tip == main {
            return Ok(Brought { unmerged: Vec::new(), is_on_top: true });
        }
        let (unmerged, all, is_on_top) = self.unmatched(&tip, &main)?;
        // One commit by itself is its own squash, and was looked for.
        if !unmerged.is_empty() && all > 1 && !is_on_top && self.is_squashed(&tip, &main)? {
            return Ok(Brought { unmerged: Vec::new(), is_on_top });
        }
        Ok(Brought { unmerged, is_on_top })
    }

    /// Whether the work up to `commit` is in `main`, by ancestry or by patch identity.
    pub fn is_merged(&self, commit: &str, main: &str) -> Result<bool, Refusal> {
        Ok(self.unmerged(commit, main)?.is_empty())
    }

    /// The commits of `tip` that `main` has not, nor the same patch; how many there are with those that it has; and whether
    /// one of them stands on `main`, which is so if and only if `tip` has all of it.
    fn unmatched(&self, tip: &str, main: &str) -> Result<(Vec<Commit>, usize, bool), Refusal> {
        let found = self.log(&["--cherry-mark", "--right-only"], &[format!("{main}...{tip}")])?;
        let all = found.len();
        let is_on_top = found.iter().any(|commit| commit.parents.iter().any(|parent| parent == main));
        let (merges, mut unmatched): (Vec<Commit>, Vec<Commit>) = found
            .into_iter()
            .filter(|commit| !commit.is_matched)
            .partition(|commit| commit.parents.len() > 1);
        // A merge has no patch of its own unless somebody resolved a conflict in it.
        for merge in merges {
            if !self.touched(format!("{}\n", merge.id).as_bytes())?.is_empty() {
                unmatched.push(merge);
            }
        }
        Ok((unmatched, all, is_on_top))
    }

    /// Asks about one commit with the whole change; it belongs to nothing and git collects it in time.
    fn is_squashed(&self, tip: &str, main: &str) -> Result<bool, Refusal> {
        let base = match self.git("merge-base").values(&[main, tip]).line() {
            Ok(base) => base,
            Err(failure) if failure.is_exit(1) => return Ok(false),
            Err(failure) => return Err(failure.into()),
        };
        let tree = format!("{tip}^{{tree}}");
        let mut commit = self.git("commit-tree").args(&["--no-gpg-sign", "-m", "onus: all of a branch"]);
        for role in ["AUTHOR", "COMMITTER"] {
            commit = as_onus(commit, role).env(&format!("GIT_{role}_DATE"), "@1 +0000");
        }
        let whole = commit.args(&["-p", &base, &tree]).line()?;
        if self.between(&base, &whole)?.is_empty() {
            return Ok(false);
        }
        Ok(self.unmatched(&whole, main)?.0.is_empty())
    }
}

pub(super) fn as_onus(git: Git, role: &str) -> Git {
    git.env(&format!("GIT_{role}_NAME"), "Onus").env(&format!("GIT_{role}_EMAIL"), "onus@localhost")
}

fn range(new: &str, not: &[&str]) -> Vec<String> {
    // A hook writes zeros for a reference that is not there.
    let is_commit = |id: &&&str| !id.bytes().all(|b| b == b'0');
    std::iter::once(new.to_owned()).chain(not.iter().filter(is_commit).map(|id| format!("^{id}"))).collect()
}

fn read_log(git: Git) -> Result<Vec<Commit>, Refusal> {
    let output = git.run()?;
    let text = String::from_utf8_lossy(&output);
    let fields: Vec<&str> = text.split('\0').collect();
    let commits: Option<Vec<Commit>> = fields.chunks_exact(FIELDS).map(commit).collect();
    commits.ok_or_else(|| unreadable("rev-list"))
}

fn commit(fields: &[&str]) -> Option<Commit> {
    let [id, subject, task, agent, workstation, epoch, parents, mark] = fields else { return None };
    let trailer = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let id = id.trim_start_matches('\n');
    is_object_id(id).then(|| Commit {
        id: id.to_owned(),
        subject: (*subject).to_owned(),
        trailers: Trailers {
            task: trailer(task),
            agent: trailer(agent),
            workstation: trailer(workstation),
            epoch: trailer(epoch),
        },
        parents: parents.split_whitespace().map(str::to_owned).collect(),
        is_matched: *mark == "=",
    })
}

/// Names that git separated by NUL.
pub(crate) fn paths(output: &[u8]) -> Vec<String> {
    let names = output.split(|b| *b == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

pub(crate) fn unreadable(verb: &str) -> Refusal {
    Refusal::new(Code::Internal, format!("git {verb} gave an answer that this program does not understand"))
}
