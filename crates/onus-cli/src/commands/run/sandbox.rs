//! A command in bubblewrap: it reads what its user may read and writes where its work is.

use super::lease::GrantedLease;
use super::unexpected;
use crate::context::{Store, World};
use onus_core::agents::SandboxSetting;
use onus_core::refusal::Refusal;
use onus_host::env::Env;
use onus_host::{presets, repository};
use onus_store::location::Location;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What any program keeps below the home directory.
const CACHE: &str = ".cache";

pub(super) fn enclosed(
    world: &World,
    store: &Store,
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
    for path in writable(world, store, directory)? {
        words.extend(["--bind-try".into(), path.clone().into_os_string(), path.into_os_string()]);
    }
    words.extend(["--chdir".into(), directory.clone().into_os_string()]);
    words.extend(["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--"].map(OsString::from));
    words.extend(command);
    Ok(words)
}

/// Its working tree, the repository that it commits to, the store that it asks, and what clients keep of their own.
fn writable(world: &World, store: &Store, directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let mut paths = vec![directory.to_owned()];
    let place = repository::find_with(directory, &Env::default())?;
    paths.extend(place.repo.map(|repo| repo.common_dir));
    if let Location::File(file) = &world.location {
        let beside = file.parent().ok_or_else(|| unexpected("a store without a directory"))?;
        paths.push(beside.to_owned());
    }
    if let Some(home) = Env::of_process().home {
        let presets = presets::with(&store.settings.presets)?;
        paths.extend(presets.writes().chain([CACHE]).map(|name| home.join(name)));
    }
    Ok(paths)
}
