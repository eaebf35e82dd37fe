//! Where we are: the repository, its store and its settings (mission B8).
//!
//! Every command asks this first, so it reads a few files and starts no process.

use crate::env::Env;
use crate::file::{if_exists, read_capped, refused, shown};
use crate::git_config::GitConfig;
use onus_core::code::Code;
use onus_core::id::{Handle, ProjectKey};
use onus_core::refusal::Refusal;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files of git that hold one path.
const PATH_FILE_MAX: usize = 16 * 1024;
const CONFIG_MAX: usize = 1024 * 1024;

/// A directory, and the repository that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub cwd: PathBuf,
    pub repo: Option<Repo>,
}

/// A git repository as one of its working trees sees it. All paths are absolute and free of symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repo {
    /// The working tree's top; none in a bare repository.
    pub root: Option<PathBuf>,
    /// What belongs to this working tree alone.
    pub git_dir: PathBuf,
    /// What all working trees share.
    pub common_dir: PathBuf,
}

/// The place this process was started in.
pub fn here() -> Result<Place, Refusal> {
    let cwd = std::env::current_dir().map_err(|e| no_directory(Path::new("."), &e))?;
    find(&cwd)
}

pub fn find(cwd: &Path) -> Result<Place, Refusal> {
    find_with(cwd, &Env::of_process())
}

pub fn find_with(cwd: &Path, env: &Env) -> Result<Place, Refusal> {
    let cwd = cwd.canonicalize().map_err(|e| no_directory(cwd, &e))?;
    let found = match &env.git_dir {
        Some(named) => Some(FoundGitDir { git_dir: named_by_environment(&cwd.join(named))?, holder: None }),
        None => discover(&cwd)?,
    };
    let repo = found.map(|found| found.repo(&cwd, env)).transpose()?;
    Ok(Place { cwd, repo })
}

/// The directory that keeps the leases of another workstation; the variables of this one say nothing about it.
pub fn lease_dir_of(workstation_path: &Path) -> Result<Option<PathBuf>, Refusal> {
    Ok(find_with(workstation_path, &Env::default())?.lease_dir())
}

impl Place {
    pub fn default_store(&self) -> PathBuf {
        match &self.repo {
            Some(repo) => repo.common_dir.join("onus/onus.db"),
            None => self.plain_root().join(".onus/onus.db"),
        }
    }

    /// The store that this clone was told to ask: by `onus --store URL init`, or by `onus hook install` in a bare one.
    pub fn configured_store(&self) -> Result<Option<String>, Refusal> {
        Ok(self.config()?.and_then(|config| config.store))
    }

    /// Where the token for that store is kept.
    pub fn configured_token_file(&self) -> Result<Option<PathBuf>, Refusal> {
        Ok(self.config()?.and_then(|config| config.token_file))
    }

    /// The person whose clone it is: whoever commits here without a word is taken for them.
    pub fn person(&self) -> Result<Option<Handle>, Refusal> {
        let person = self.config()?.and_then(|config| config.person);
        person.map(|handle| handle.parse()).transpose().map_err(|why: String| {
            Refusal::invalid(format!("onus.person in git's configuration: {why}"))
                .hint("git config onus.person @you")
        })
    }

    fn config(&self) -> Result<Option<GitConfig>, Refusal> {
        self.repo.as_ref().map(Repo::config).transpose()
    }

    /// One store, one set of settings: those of the main checkout. An agent in a worktree of its own could otherwise
    /// shorten everybody's leases on its branch. A bare repository has no tree to keep settings in; there they lie
    /// beside the store.
    pub fn settings_file(&self) -> PathBuf {
        match &self.repo {
            Some(Repo { common_dir, .. }) if common_dir.file_name() == Some(OsStr::new(".git")) => {
                common_dir.with_file_name("onus.yaml")
            }
            Some(Repo { root: Some(root), .. }) => root.join("onus.yaml"),
            Some(Repo { root: None, common_dir, .. }) => common_dir.join("onus/onus.yaml"),
            None => self.plain_root().join("onus.yaml"),
        }
    }

    /// Where this working tree keeps its leases: in its own private git directory. Outside git there is none.
    pub fn lease_dir(&self) -> Option<PathBuf> {
        self.repo.as_ref().map(|repo| repo.git_dir.join("onus/lease"))
    }

    /// A key made from the name people know the project by; `TASK` when that name has no letter in it.
    pub fn default_project_key(&self) -> Result<ProjectKey, Refusal> {
        let name = match &self.repo {
            Some(repo) => repo.name(),
            None => self.plain_root().file_name(),
        };
        let key: String = name
            .unwrap_or_default()
            .to_string_lossy()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .skip_while(char::is_ascii_digit)
            .take(6)
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let key = if key.is_empty() { "TASK" } else { key.as_str() };
        key.parse().map_err(|e: String| Refusal::new(Code::Internal, e))
    }

    /// Outside git: the nearest directory that has a store already, else this one.
    fn plain_root(&self) -> &Path {
        self.cwd.ancestors().find(|dir| dir.join(".onus").is_dir()).unwrap_or(&self.cwd)
    }
}

impl Repo {
    /// What the configuration that all working trees share says, without the main one's own.
    pub(crate) fn shared_config(&self) -> Result<GitConfig, Refusal> {
        let path = self.common_dir.join("config");
        let mut config = GitConfig::default();
        let text = if_exists(read_capped(&path, CONFIG_MAX)).map_err(|e| refused("read", &path, &e))?;
        config.read(&text.unwrap_or_default());
        Ok(config)
    }

    pub fn has_remotes(&self) -> Result<bool, Refusal> {
        Ok(!self.config()?.remotes.is_empty())
    }

    /// What its configuration says of the few things that we ask.
    pub(crate) fn config(&self) -> Result<GitConfig, Refusal> {
        read_config(&self.common_dir).map_err(|e| refused("read the config of", &self.common_dir, &e))
    }

    /// The name of the main checkout, whichever working tree asks.
    fn name(&self) -> Option<&OsStr> {
        let is_hidden = |name: &OsStr| name.as_bytes().starts_with(b".");
        let own = self.common_dir.file_name()?;
        match &self.root {
            _ if is_hidden(own) => self.common_dir.parent()?.file_name(),
            // A submodule's git dir is named after its first path, its checkout after the present one.
            Some(root) if self.git_dir == self.common_dir => root.file_name(),
            _ => Path::new(own).file_stem(),
        }
    }
}

/// A git dir, and the directory whose `.git` led to it.
struct FoundGitDir {
    git_dir: PathBuf,
    holder: Option<PathBuf>,
}

impl FoundGitDir {
    fn repo(self, cwd: &Path, env: &Env) -> Result<Repo, Refusal> {
        let git_dir = self.git_dir.canonicalize().map_err(|e| refused("find", &self.git_dir, &e))?;
        let common_dir = match &env.git_common_dir {
            Some(named) => named_by_environment(&cwd.join(named))?,
            None => common_dir(&git_dir)?,
        };
        let root = match &env.git_work_tree {
            Some(named) => Some(without_links(cwd.join(named))),
            None => root(&git_dir, &common_dir, self.holder, env.git_dir.as_ref().map(|_| cwd))?,
        };
        Ok(Repo { root, git_dir, common_dir })
    }
}

/// Walks up as git does: at each directory first its `.git`, then the directory itself (bare, or inside a `.git`).
fn discover(cwd: &Path) -> Result<Option<FoundGitDir>, Refusal> {
    for dir in cwd.ancestors() {
        let dot_git = dir.join(".git");
        match if_exists(fs::metadata(&dot_git)).map_err(|e| refused("read", &dot_git, &e))? {
            Some(entry) if entry.is_file() => {
                let git_dir = named_by_file(dir, &dot_git)?;
                return Ok(Some(FoundGitDir { git_dir, holder: Some(dir.to_owned()) }));
            }
            Some(entry) if entry.is_dir() && is_git_dir(&dot_git)? => {
                return Ok(Some(FoundGitDir { git_dir: dot_git, holder: Some(dir.to_owned()) }));
            }
            _ => {}
        }
        if is_git_dir(dir)? {
            return Ok(Some(FoundGitDir { git_dir: dir.to_owned(), holder: None }));
        }
    }
    Ok(None)
}

fn is_git_dir(dir: &Path) -> Result<bool, Refusal> {
    let has = |name: &str| {
        let path = dir.join(name);
        // HEAD may be a symbolic link to a branch that has no commit yet.
        if_exists(fs::symlink_metadata(&path))
            .map(|entry| entry.is_some())
            .map_err(|e| refused("read", &path, &e))
    };
    Ok(has("HEAD")? && (has("commondir")? || has("objects")? && has("refs")?))
}

fn named_by_environment(git_dir: &Path) -> Result<PathBuf, Refusal> {
    if is_git_dir(git_dir)? {
        return git_dir.canonicalize().map_err(|e| refused("find", git_dir, &e));
    }
    Err(Refusal::new(Code::StoreUnavailable, format!("{} is not a git repository", shown(git_dir)))
        .hint("GIT_DIR or GIT_COMMON_DIR names it: correct or unset them"))
}

/// Follows a `.git` file. A broken one is refused: walking on would find another repository, and its store.
fn named_by_file(dir: &Path, dot_git: &Path) -> Result<PathBuf, Refusal> {
    let broken = |why: String| {
        Refusal::new(Code::StoreUnavailable, format!("{} is broken: {why}", shown(dot_git)))
            .hint("if the repository was moved, run `git worktree repair` in its main checkout")
    };
    let bytes = read_capped(dot_git, PATH_FILE_MAX).map_err(|e| broken(e.to_string()))?;
    let target = bytes
        .strip_prefix(b"gitdir: ")
        .map(one_path)
        .ok_or_else(|| broken("it does not say `gitdir: PATH`".into()))?;
    let git_dir = dir.join(target);
    if !is_git_dir(&git_dir)? {
        return Err(broken(format!("{} is not a git directory", shown(&git_dir))));
    }
    Ok(git_dir)
}

fn common_dir(git_dir: &Path) -> Result<PathBuf, Refusal> {
    let file = git_dir.join("commondir");
    let read = if_exists(read_capped(&file, PATH_FILE_MAX)).map_err(|e| refused("read", &file, &e))?;
    let Some(bytes) = read else { return Ok(git_dir.to_owned()) };
    let common_dir = git_dir.join(one_path(&bytes));
    common_dir.canonicalize().map_err(|e| {
        refused("find", &common_dir, &e).hint(format!("{} names it; run `git worktree repair`", shown(&file)))
    })
}

/// The top of the working tree. `named_from` is where we are when the environment names the git dir: without a
/// better answer git takes that for the top.
fn root(
    git_dir: &Path,
    common_dir: &Path,
    holder: Option<PathBuf>,
    named_from: Option<&Path>,
) -> Result<Option<PathBuf>, Refusal> {
    if git_dir != common_dir {
        // A linked working tree: the shared config speaks of the main one.
        return Ok(match holder {
            Some(holder) => Some(holder),
            None => linked_root(git_dir).map_err(|e| refused("read", git_dir, &e))?,
        });
    }
    let config = read_config(git_dir).map_err(|e| refused("read the config of", git_dir, &e))?;
    if let Some(worktree) = config.worktree {
        return Ok(Some(without_links(git_dir.join(worktree))));
    }
    if config.bare {
        return Ok(None);
    }
    let beside = || (git_dir.file_name() == Some(OsStr::new(".git"))).then(|| git_dir.parent()).flatten();
    Ok(holder.or_else(|| beside().or(named_from).map(Path::to_owned)))
}

/// A linked working tree's git dir names the tree's `.git` file.
pub(crate) fn linked_root(git_dir: &Path) -> io::Result<Option<PathBuf>> {
    let read = if_exists(read_capped(&git_dir.join("gitdir"), PATH_FILE_MAX))?;
    let dot_git = read.map(|bytes| git_dir.join(one_path(&bytes)));
    Ok(dot_git.and_then(|path| path.parent().map(Path::to_owned)).map(without_links))
}

fn read_config(git_dir: &Path) -> io::Result<GitConfig> {
    let mut config = GitConfig::default();
    if let Some(text) = if_exists(read_capped(&git_dir.join("config"), CONFIG_MAX))? {
        config.read(&text);
    }
    if config.worktree_config
        && let Some(text) = if_exists(read_capped(&git_dir.join("config.worktree"), CONFIG_MAX))?
    {
        config.read(&text);
    }
    Ok(config)
}

/// A tree that is gone keeps the name it was given.
fn without_links(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

fn one_path(bytes: &[u8]) -> &Path {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..end]))
}

fn no_directory(cwd: &Path, error: &io::Error) -> Refusal {
    refused("use the directory", cwd, error).hint("change to a directory that exists")
}
