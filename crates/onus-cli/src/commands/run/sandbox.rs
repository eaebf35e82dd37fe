//! A command in bubblewrap: it reads what its user may read and writes where its work is.

use super::lease::GrantedLease;
use super::unexpected;
use crate::context::World;
use onus_core::agents::SandboxSetting;
use onus_core::refusal::Refusal;
use onus_host::env::Env;
use onus_host::repository;
use onus_store::location::Location;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where clients keep their own settings and records, below the home directory.
const CLIENTS: &[&str] = &[
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/opencode",
    ".local/share/opencode",
    ".local/state/opencode",
    ".cache",
];

pub(super) fn enclosed(
    world: &World,
    held: &GrantedLease,
    sandbox: SandboxSetting,
    command: Vec<OsString>,
) -> Result<Vec<OsString>, Refusal> {
    let network: &[&str] = match sandbox {
        SandboxSetting::None => return Ok(command),
        // A socket with a name is no network to the kernel: the database's and the agents' own lie here.
        SandboxSetting::Bubblewrap => &["--unshare-net", "--tmpfs", "/run"],
        SandboxSetting::BubblewrapNetwork => &[],
    };
    let Some(directory) = &held.directory else {
        return Err(Refusal::invalid(format!("{} has no directory to write in", held.workstation))
            .hint("onus workstation add NAME --kind worktree"));
    };
    let mut words: Vec<OsString> = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        .into_iter()
        .chain(["--tmpfs", "/tmp"])
        .chain(network.iter().copied())
        .map(OsString::from)
        .collect();
    // Git's hooks ask this program, wherever it lies.
    if let Ok(program) = std::env::current_exe() {
        words.extend(["--ro-bind-try".into(), program.clone().into_os_string(), program.into_os_string()]);
    }
    for path in writable(world, directory)? {
        words.extend(["--bind-try".into(), path.clone().into_os_string(), path.into_os_string()]);
    }
    words.extend(["--chdir".into(), directory.clone().into_os_string()]);
    words.extend(["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--"].map(OsString::from));
    words.extend(command);
    Ok(words)
}

/// Its working tree, the repository that it commits to, the store that it asks, and what its client keeps.
fn writable(world: &World, directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let mut paths = vec![directory.to_owned()];
    let place = repository::find_with(directory, &Env::default())?;
    paths.extend(place.repo.map(|repo| repo.common_dir));
    if let Location::File(store) = &world.location {
        let beside = store.parent().ok_or_else(|| unexpected("a store without a directory"))?;
        paths.push(beside.to_owned());
    }
    if let Some(home) = Env::of_process().home {
        paths.extend(CLIENTS.iter().map(|name| home.join(name)));
    }
    Ok(paths)
}
