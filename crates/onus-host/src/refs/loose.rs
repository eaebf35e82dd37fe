//! What new commits are and change, read from git's own files: a process of git would cost a hook, or the end of a task, more
//! than everything else that it does.
//!
//! Only objects that lie alone in a file are read, as everything does that was just made. Whatever is packed, or odd, is git's to
//! read: the answer is then none.

use crate::file::read_capped;
use flate2::read::ZlibDecoder;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A commit or a directory that is larger is left to git.
const FILE_MAX: usize = 1024 * 1024;
const OBJECT_MAX: u64 = 4 * 1024 * 1024;
/// So are more paths than a person changes in one commit, and deeper directories.
const PATHS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 64;
/// So is a longer line of commits.
const LINE_MAX: usize = 200;

/// Every path in which `new` differs from `old`, if that is its only parent.
pub fn changed_paths(common_dir: &Path, new: &str, old: &str) -> Option<Vec<String>> {
    let objects = LooseObjects::of(common_dir);
    (objects.commit(new)?.parents == [old]).then(|| objects.changed_by(new))?
}

pub(crate) struct LooseObjects {
    dir: PathBuf,
}

/// A commit as its file has it.
struct LooseCommit {
    tree: String,
    parents: Vec<String>,
    /// As git's `%s`; none where it is written in another encoding.
    subject: Option<String>,
}

/// By name: mode and id of an entry of a directory.
type TreeEntries = BTreeMap<Vec<u8>, (Vec<u8>, String)>;

impl LooseObjects {
    pub(crate) fn of(common_dir: &Path) -> LooseObjects {
        LooseObjects { dir: common_dir.join("objects") }
    }

    pub(super) fn is_commit(&self, id: &str) -> bool {
        self.commit(id).is_some()
    }

    pub(super) fn subject(&self, id: &str) -> Option<String> {
        self.commit(id)?.subject
    }

    /// The commits from `tip` back to before `onto`, newest first, if each of them has one parent.
    pub(super) fn line(&self, tip: &str, onto: &str) -> Option<Vec<String>> {
        let (mut ids, mut next) = (Vec::new(), tip.to_owned());
        while next != onto {
            let [parent] = <[String; 1]>::try_from(self.commit(&next)?.parents).ok()?;
            ids.push(std::mem::replace(&mut next, parent));
            if ids.len() > LINE_MAX {
                return None;
            }
        }
        Some(ids)
    }

    /// Every path in which a commit differs from its only parent.
    pub(super) fn changed_by(&self, id: &str) -> Option<Vec<String>> {
        let commit = self.commit(id)?;
        let [parent] = commit.parents.as_slice() else { return None };
        let mut paths = Vec::new();
        self.compare(Some(&self.commit(parent)?.tree), Some(&commit.tree), "", &mut paths)?;
        Some(paths)
    }

    /// The same of each of them, every path once.
    pub(super) fn changed_by_all(&self, ids: &[String]) -> Option<Vec<String>> {
        let each: Option<Vec<_>> = ids.iter().map(|id| self.changed_by(id)).collect();
        Some(each?.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Mode and id of what a commit has under a name at its top; none inside where it has nothing.
    pub(crate) fn top_entry(&self, commit: &str, name: &str) -> Option<Option<(String, String)>> {
        let tree = self.tree(Some(&self.commit(commit)?.tree))?;
        let found = tree.get(name.as_bytes());
        Some(found.map(|(mode, id)| (String::from_utf8_lossy(mode).into_owned(), id.clone())))
    }

    fn read(&self, id: &str, kind: &str) -> Option<Vec<u8>> {
        let (first, rest) = id.split_at_checked(2).filter(|_| id.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let packed = read_capped(&self.dir.join(first).join(rest), FILE_MAX).ok()?;
        let mut object = Vec::new();
        ZlibDecoder::new(packed.as_slice()).take(OBJECT_MAX).read_to_end(&mut object).ok()?;
        let end = object.iter().position(|byte| *byte == 0)?;
        let head = object.drain(..=end).collect::<Vec<u8>>();
        let (word, length) = std::str::from_utf8(&head[..end]).ok()?.split_once(' ')?;
        (word == kind && length.parse() == Ok(object.len())).then_some(object)
    }

    fn commit(&self, id: &str) -> Option<LooseCommit> {
        let text = String::from_utf8(self.read(id, "commit")?).ok()?;
        let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let words: Vec<(&str, &str)> = head.lines().filter_map(|line| line.split_once(' ')).collect();
        let parents = words.iter().filter(|(word, _)| *word == "parent").map(|(_, id)| (*id).to_owned());
        let is_recoded = words.iter().any(|(word, _)| *word == "encoding");
        Some(LooseCommit {
            tree: words.iter().find(|(word, _)| *word == "tree")?.1.to_owned(),
            parents: parents.collect(),
            subject: (!is_recoded).then(|| subject(message)),
        })
    }

    fn tree(&self, id: Option<&str>) -> Option<TreeEntries> {
        let Some(id) = id else { return Some(TreeEntries::new()) };
        let content = self.read(id, "tree")?;
        let length = id.len() / 2;
        let (mut rest, mut entries) = (content.as_slice(), TreeEntries::new());
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ')?;
            let zero = rest.iter().position(|byte| *byte == 0)?;
            let id = rest.get(zero + 1..zero + 1 + length)?;
            let name = rest.get(space + 1..zero)?.to_vec();
            entries.insert(
                name,
                (rest[..space].to_vec(), id.iter().map(|byte| format!("{byte:02x}")).collect()),
            );
            rest = &rest[zero + 1 + length..];
        }
        Some(entries)
    }

    fn compare(
        &self,
        old: Option<&str>,
        new: Option<&str>,
        above: &str,
        paths: &mut Vec<String>,
    ) -> Option<()> {
        if above.split('/').count() > DEPTH_MAX {
            return None;
        }
        let (before, after) = (self.tree(old)?, self.tree(new)?);
        let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (was, is) = (before.get(name), after.get(name));
            if was == is {
                continue;
            }
            let directory = |entry: Option<&(Vec<u8>, String)>| {
                entry.filter(|(mode, _)| mode == b"40000").map(|(_, id)| id.clone())
            };
            let path = format!("{above}{}", String::from_utf8_lossy(name));
            let (inside, outside) = (directory(was), directory(is));
            let is_file = |entry: Option<&(Vec<u8>, String)>, directory: &Option<String>| {
                entry.is_some() && directory.is_none()
            };
            if is_file(was, &inside) || is_file(is, &outside) {
                paths.push(path.clone());
            }
            if inside.is_some() || outside.is_some() {
                self.compare(inside.as_deref(), outside.as_deref(), &format!("{path}/"), paths)?;
            }
            if paths.len() > PATHS_MAX {
                return None;
            }
        }
        Some(())
    }
}

/// The first paragraph in one line.
fn subject(message: &str) -> String {
    let lines = message.split('\n').map(|line| line.trim_end_matches([' ', '\t', '\r']));
    let paragraph = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    paragraph.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(dir: &Path, args: &[&str]) -> String {
        let mut made = Command::new("git");
        made.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(args);
        let done = made.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn it_is_what_git_would_say_or_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (dir, common) = (root.path(), root.path().join(".git"));
        git(dir, &["init", "--quiet"]);
        let commit = |changes: &[(&str, Option<&str>)]| {
            for (path, content) in changes {
                let file = dir.join(path);
                match content {
                    Some(content) => {
                        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                        std::fs::write(file, content).unwrap();
                    }
                    None => {
                        std::fs::remove_file(&file).unwrap();
                        // A file may take its place.
                        drop(std::fs::remove_dir(file.parent().unwrap()));
                    }
                }
            }
            git(dir, &["add", "--all"]);
            git(dir, &["commit", "--quiet", "--allow-empty", "--message=x"]);
            git(dir, &["rev-parse", "HEAD"])
        };
        let rounds: [&[(&str, Option<&str>)]; 6] = [
            &[("a", Some("1")), ("src/b", Some("1")), ("src/deep/er/c", Some("1"))],
            &[("src/deep/er/c", Some("2"))],
            &[("a", None), ("new/x", Some("1")), ("new/y", Some("1"))],
            &[("new/x", None), ("new/y", None), ("new", Some("a file now"))],
            &[("src/b", None), ("src/b/inside", Some("a directory now"))],
            &[],
        ];
        let mut last = commit(&[]);
        for changes in rounds {
            let new = commit(changes);
            let args = ["diff-tree", "-r", "--name-only", "--no-renames", "--no-commit-id", &new];
            let mut expected: Vec<String> = git(dir, &args).lines().map(str::to_owned).collect();
            let mut found = changed_paths(&common, &new, &last).unwrap();
            expected.sort();
            found.sort();
            assert_eq!(found, expected);
            assert_eq!(changed_paths(&common, &last, &new), None, "it is not its parent");
            last = new;
        }
        let before = git(dir, &["rev-parse", "HEAD~1"]);
        git(dir, &["gc", "--quiet"]);
        assert_eq!(changed_paths(&common, &last, &before), None, "packed: git is asked");
        assert_eq!(changed_paths(&common, "../../etc", &before), None);
    }

    #[test]
    fn a_line_of_commits_is_told_as_git_tells_it() {
        let root = tempfile::tempdir().unwrap();
        let (dir, common) = (root.path(), root.path().join(".git"));
        git(dir, &["init", "--quiet"]);
        let objects = LooseObjects::of(&common);
        let messages =
            ["one", "\n\n two  \nlines\t\n \nbody", "three\r\n\r\nbody", "fünf\n\nparent 1\ntree 2", ""];
        let commit = |message: &str| {
            std::fs::write(dir.join("message"), message).unwrap();
            let args = ["commit", "--quiet", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim"];
            git(dir, &[&args[..], &["--file=message"]].concat());
            git(dir, &["rev-parse", "HEAD"])
        };
        let first = commit("first");
        let ids: Vec<String> = messages.iter().map(|message| commit(message)).collect();
        for id in &ids {
            let expected =
                git(dir, &["rev-list", "--no-commit-header", "--format=<%s>", "--max-count=1", id]);
            assert_eq!(objects.subject(id).map(|subject| format!("<{subject}>")), Some(expected));
        }
        let (tip, newest_first) = (&ids[4], ids.iter().rev().cloned().collect::<Vec<_>>());
        assert_eq!(objects.line(tip, &first), Some(newest_first));
        assert_eq!(objects.line(tip, tip), Some(Vec::new()));
        assert_eq!(objects.line(&first, tip), None, "it ends before");
        // A merge has two ways back: git is asked.
        git(dir, &["checkout", "--quiet", "-b", "side", &first]);
        let side = commit("side");
        git(dir, &["merge", "--quiet", "--no-ff", "--message=both", tip]);
        let both = git(dir, &["rev-parse", "HEAD"]);
        assert_eq!((objects.line(&both, &side), objects.line(&both, &first)), (None, None));
        assert!(objects.is_commit(&both) && objects.changed_by(&both).is_none());
        // Another encoding is git's to read.
        git(
            dir,
            &[
                "-c",
                "i18n.commitEncoding=ISO-8859-1",
                "commit",
                "--quiet",
                "--allow-empty",
                "--message=latin",
            ],
        );
        assert_eq!(objects.subject(&git(dir, &["rev-parse", "HEAD"])), None);
        let tree = git(dir, &["rev-parse", "HEAD^{tree}"]);
        assert!(!objects.is_commit(&tree) && !objects.is_commit(&"0".repeat(40)));
    }

    #[test]
    fn what_lies_at_the_top_of_a_commit() {
        let root = tempfile::tempdir().unwrap();
        let (dir, common) = (root.path(), root.path().join(".git"));
        git(dir, &["init", "--quiet"]);
        std::fs::create_dir(dir.join("sub")).unwrap();
        for name in ["map.yaml", "sub/map.yaml", "sub/other"] {
            std::fs::write(dir.join(name), name).unwrap();
        }
        git(dir, &["add", "--all"]);
        git(dir, &["commit", "--quiet", "--message=x"]);
        let (head, objects) = (git(dir, &["rev-parse", "HEAD"]), LooseObjects::of(&common));
        let id = git(dir, &["rev-parse", "HEAD:map.yaml"]);
        assert_eq!(objects.top_entry(&head, "map.yaml"), Some(Some(("100644".to_owned(), id))));
        assert_eq!(objects.top_entry(&head, "other"), Some(None));
        git(dir, &["gc", "--quiet"]);
        assert_eq!(objects.top_entry(&head, "map.yaml"), None, "packed: git is asked");
    }
}
