//! Putting Onus between git and the branches (mission E1): which hooks, where, and what becomes of those already there.
//!
//! A hook is a short shell text ([`shim`]) that leaves at once when nothing of ours is touched, and otherwise runs
//! `onus hook run NAME`. The hook that was there before runs first, as `NAME.before-onus`.

mod config;
mod message;
mod movement;
mod push;
mod shim;
mod ticket;

pub use config::{keep_person, keep_store};
pub use message::sign;
pub use movement::moving;
pub use push::{PushOptions, Pushed, Update, pushed, pushed_adopted, updates};
pub use ticket::{Ticket, parent};

use crate::file::{create_new, if_exists, read_capped, refused, shown, temporary_beside};
use crate::repository::Repo;
use onus_core::code::Code;
use onus_core::refusal::{Finding, Refusal};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// No hook that we write is longer.
const SHIM_MAX: usize = 64 * 1024;

/// What a repository is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// People and agents work in its working trees.
    Work,
    /// They push to it.
    Shared,
}

impl Site {
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Site::Work => &["reference-transaction", "prepare-commit-msg", "pre-push"],
            Site::Shared => &["pre-receive", "reference-transaction"],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookState {
    /// Ours, as this program would write it.
    Current,
    /// Ours, by another version or for a program at another place.
    Outdated,
    /// Somebody else's: Onus is not asked.
    Foreign,
    Missing,
}

impl HookState {
    pub const fn name(self) -> &'static str {
        match self {
            HookState::Current => "current",
            HookState::Outdated => "outdated",
            HookState::Foreign => "foreign",
            HookState::Missing => "missing",
        }
    }

    const fn is_ours(self) -> bool {
        matches!(self, HookState::Current | HookState::Outdated)
    }
}

/// One hook as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub name: &'static str,
    pub path: PathBuf,
    pub state: HookState,
    /// The hook that was there before, kept beside it.
    pub before: Option<PathBuf>,
}

impl Hook {
    fn read(dir: &Path, name: &'static str, text: &str) -> Result<Hook, Refusal> {
        let path = dir.join(name);
        let before = dir.join(format!("{name}.before-onus"));
        let failed = |e: io::Error| refused("read the hook", &path, &e);
        let state = match if_exists(fs::symlink_metadata(&path)).map_err(failed)? {
            None => HookState::Missing,
            Some(entry) if !entry.is_file() => HookState::Foreign,
            Some(entry) => match read_capped(&path, SHIM_MAX) {
                Ok(found) if found == text.as_bytes() && entry.mode() & 0o111 != 0 => HookState::Current,
                Ok(found) if shim::is_ours(&found) => HookState::Outdated,
                Ok(_) => HookState::Foreign,
                Err(e) if e.kind() == io::ErrorKind::FileTooLarge => HookState::Foreign,
                Err(e) => return Err(failed(e)),
            },
        };
        let before = if_exists(fs::symlink_metadata(&before)).map_err(failed)?.map(|_| before);
        Ok(Hook { name, path, state, before })
    }

    fn kept(&self) -> PathBuf {
        self.path.with_file_name(format!("{}.before-onus", self.name))
    }

    /// The name and what was kept are one file: an installation died between its two steps.
    fn is_half_installed(&self) -> bool {
        let inode = |path: &Path| fs::symlink_metadata(path).ok().map(|entry| (entry.dev(), entry.ino()));
        self.before.as_deref().is_some_and(|before| inode(before) == inode(&self.path))
    }

    fn conflict(&self) -> Option<Finding> {
        let is_second =
            self.state == HookState::Foreign && self.before.is_some() && !self.is_half_installed();
        is_second.then(|| {
            let (path, kept) = (shown(&self.path), shown(&self.kept()));
            Finding::new(Code::InvalidInput, format!("{path} replaced ours, and {kept} is an older one"))
                .hint("join the two in one of these files and remove the other")
        })
    }

    fn install(&self, text: &str) -> io::Result<()> {
        if self.state == HookState::Foreign && !self.is_half_installed() {
            // A second name first: there is no moment at which it does not run.
            match fs::hard_link(&self.path, self.kept()) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => fs::rename(&self.path, self.kept())?,
                linked => linked?,
            }
        }
        let temporary = temporary_beside(&self.path)?;
        let written = create_new(&temporary, text.as_bytes())
            .and_then(|file| file.set_permissions(Permissions::from_mode(0o755)))
            .and_then(|()| fs::rename(&temporary, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn uninstall(&self) -> io::Result<()> {
        match &self.before {
            Some(before) if self.state != HookState::Foreign => fs::rename(before, &self.path),
            Some(before) if self.is_half_installed() => fs::remove_file(before),
            None if self.state.is_ours() => fs::remove_file(&self.path),
            _ => Ok(()),
        }
    }
}

/// Puts our hooks in place; a second time changes nothing. `onus` is the program they run, `store` what a shared
/// repository's hooks ask.
pub fn install(repo: &Repo, site: Site, onus: &Path, store: Option<&str>) -> Result<Vec<Hook>, Refusal> {
    let found = status(repo, site, onus)?;
    if let Some(refusal) = Refusal::from_findings(found.iter().filter_map(Hook::conflict).collect()) {
        return Err(refusal);
    }
    if site == Site::Shared {
        config::prepare_shared(repo, store)?;
    }
    for hook in found.iter().filter(|hook| hook.state != HookState::Current) {
        let made = hook.path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = made.and_then(|()| hook.install(&shim::text(hook.name, site, &program(onus)?)?));
        written.map_err(|e| refused("write the hook", &hook.path, &e))?;
    }
    status(repo, site, onus)
}

/// Puts everything back as it was. A hook that replaced ours is not touched.
pub fn uninstall(repo: &Repo, site: Site, onus: &Path) -> Result<Vec<Hook>, Refusal> {
    for hook in status(repo, site, onus)? {
        hook.uninstall().map_err(|e| refused("take away the hook", &hook.path, &e))?;
    }
    if site == Site::Shared {
        config::restore_shared(repo)?;
    }
    status(repo, site, onus)
}

/// Every hook that the site needs, in every directory that git would look in.
pub fn status(repo: &Repo, site: Site, onus: &Path) -> Result<Vec<Hook>, Refusal> {
    let onus = program(onus).map_err(|e| refused("find", onus, &e))?;
    let mut hooks = Vec::new();
    for dir in config::directories(repo)? {
        for &name in site.names() {
            let text = shim::text(name, site, &onus).map_err(|e| refused("name", Path::new(&onus), &e))?;
            hooks.push(Hook::read(&dir, name, &text)?);
        }
    }
    Ok(hooks)
}

/// Which hooks of ours git would not run here, as far as the repository's own files tell: no process is started.
pub fn absent(repo: &Repo, site: Site) -> Result<Vec<&'static str>, Refusal> {
    let local = config::hooks_path(repo)?;
    let default = repo.common_dir.join("hooks");
    let dir = match (local, &repo.root) {
        (None, _) => default,
        (Some(path), Some(root)) => root.join(path),
        (Some(path), None) => repo.common_dir.join(path),
    };
    let is_there = |name: &str| {
        let path = dir.join(name);
        let runs = fs::metadata(&path).is_ok_and(|entry| entry.is_file() && entry.mode() & 0o111 != 0);
        runs && read_capped(&path, SHIM_MAX).is_ok_and(|text| shim::is_ours(&text))
    };
    Ok(site.names().iter().copied().filter(|name| !is_there(name)).collect())
}

/// A hook runs in another directory than the one it was installed from.
fn program(onus: &Path) -> io::Result<String> {
    let path = std::path::absolute(onus)?;
    path.to_str().map(str::to_owned).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))
}
