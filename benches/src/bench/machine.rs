//! What the figures were measured on: without it they say nothing.

use std::fs;
use std::path::Path;

pub(crate) fn describe(dir: &Path) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let memory = read("/proc/meminfo");
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).map_or("unknown", str::trim);
    format!(
        "CPU {model}, {cores} cores; memory {memory}; Linux {}; file system {}",
        kernel.trim(),
        file_system(&read("/proc/mounts"), dir)
    )
}

/// How many processes wanted to run during the last minute. Above the number of cores, wall times are the others'.
pub(crate) fn load() -> f64 {
    let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    average.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

/// The type of the deepest mount that holds `dir`.
fn file_system(mounts: &str, dir: &Path) -> String {
    let mount = |line: &str| {
        let mut words = line.split(' ');
        let (at, kind) = (words.nth(1)?.to_owned(), words.next()?.to_owned());
        dir.starts_with(&at).then_some((at, kind))
    };
    let deepest = mounts.lines().filter_map(mount).max_by_key(|(at, _)| at.len());
    deepest.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_decides() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/tmp/x")), "tmpfs");
        assert_eq!(file_system(mounts, Path::new("/home")), "ext4");
    }
}
