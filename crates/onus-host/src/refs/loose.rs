//! What one new commit changes, read from git's own files: a process of git would cost a commit more than everything else that
//! its hook does.
//!
//! Only objects that lie alone in a file are read, as everything does that was just made. Whatever is packed, or odd, is git's to
//! read: the answer is then none.

use crate::file::read_capped;
use flate2::read::ZlibDecoder;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// A commit or a directory that is larger is left to git.
const FILE_MAX: usize = 1024 * 1024;
const OBJECT_MAX: u64 = 4 * 1024 * 1024;
/// So are more paths than a person changes in one commit, and deeper directories.
const PATHS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 64;

/// Every path in which `new` differs from `old`, if that is its only parent.
pub fn changed_paths(common_dir: &Path, new: &str, old: &str) -> Option<Vec<String>> {
    let objects = LooseObjects { dir: common_dir.join("objects") };
    let (tree, parents) = objects.commit(new)?;
    if parents != [old] {
        return None;
    }
    let (before, _) = objects.commit(old)?;
    let mut paths = Vec::new();
    objects.compare(Some(&before), Some(&tree), "", &mut paths)?;
    Some(paths)
}

struct LooseObjects {
    dir: std::path::PathBuf,
}

/// By name: mode and id of an entry of a directory.
type TreeEntries = BTreeMap<Vec<u8>, (Vec<u8>, String)>;

impl LooseObjects {
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

    /// Its directory and its parents.
    fn commit(&self, id: &str) -> Option<(String, Vec<String>)> {
        let text = String::from_utf8(self.read(id, "commit")?).ok()?;
        let head = text.lines().take_while(|line| !line.is_empty());
        let words: Vec<(&str, &str)> = head.filter_map(|line| line.split_once(' ')).collect();
        let tree = words.iter().find(|(word, _)| *word == "tree")?.1.to_owned();
        let parents = words.iter().filter(|(word, _)| *word == "parent").map(|(_, id)| (*id).to_owned());
        Some((tree, parents.collect()))
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
        let names: std::collections::BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
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
}
