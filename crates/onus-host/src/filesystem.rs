//! File systems on which SQLite's write-ahead log does not work: its index is shared memory, and memory is not
//! shared between machines.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// `statfs` types of file systems that several machines can mount at once.
const SHARED: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (FUSE, "FUSE"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0xaad7_aaea, "PanFS"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x786f_4256, "VirtualBox share"),
    (0xbacb_acbc, "VMware share"),
    (0x7c7c_6673, "Parallels share"),
];

const FUSE: u32 = 0x6573_5546;

/// FUSE file systems that only one kernel sees. Rootless containers live on the first of them.
const LOCAL_FUSE: &[&str] = &[
    "fuse.fuse-overlayfs",
    "fuseblk",
    "fuse.bindfs",
    "fuse.gocryptfs",
    "fuse.encfs",
    "fuse.cryfs",
    "fuse.mergerfs",
];

/// The kind of network or cluster file system that `path` is, or will be, on; none when it is local.
pub fn network_file_system(path: &Path) -> Option<&'static str> {
    let existing = path.ancestors().find(|dir| dir.exists())?;
    let kind = rustix::fs::statfs(existing).ok()?.f_type;
    let name = name_of(truncated(kind))?;
    let is_local = || mounted_as(existing).is_some_and(|kind| LOCAL_FUSE.contains(&kind.as_str()));
    (truncated(kind) != FUSE || !is_local()).then_some(name)
}

/// The kernel's numbers have 32 bits; `f_type` is wider on most machines, and signed on some.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unnecessary_cast)]
fn truncated(kind: rustix::fs::FsWord) -> u32 {
    kind as u32
}

fn name_of(kind: u32) -> Option<&'static str> {
    SHARED.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

fn mounted_as(path: &Path) -> Option<String> {
    let device = fs::metadata(path).ok()?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    kind_of_device(&fs::read_to_string("/proc/self/mountinfo").ok()?, &device)
}

/// In `mountinfo` the device is the third field, and the type follows a field that is a lone dash.
fn kind_of_device(mountinfo: &str, device: &str) -> Option<String> {
    let line = mountinfo.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    line.split_once(" - ")?.1.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_file_systems_are_told_from_local_ones() {
        for (kind, name) in [
            (0x6969, Some("NFS")),
            (0x517b, Some("SMB")),
            (0xff53_4d42, Some("CIFS")),
            (0xfe53_4d42, Some("SMB2")),
            (0x0102_1997, Some("9P")),
            (0x6573_5546, Some("FUSE")),
            (0x5346_414f, Some("AFS")),
            (0x00c3_6400, Some("Ceph")),
            (0x0bd0_0bd0, Some("Lustre")),
            (0xef53, None),      // ext4
            (0x5846_5342, None), // XFS
            (0x9123_683e, None), // Btrfs
            (0x2fc1_2fc1, None), // ZFS
            (0x0102_1994, None), // tmpfs
            (0x794c_7630, None), // overlayfs
            (0xf2f5_2010, None), // F2FS
        ] {
            assert_eq!(name_of(kind), name, "{kind:#x}");
        }
    }

    #[test]
    fn no_number_is_listed_twice() {
        for (at, (kind, _)) in SHARED.iter().enumerate() {
            assert!(!SHARED[..at].iter().any(|(other, _)| other == kind), "{kind:#x}");
        }
    }

    #[test]
    fn the_mount_table_names_the_kind_of_a_device() {
        let table = "36 35 98:0 / /mnt1 rw,noatime master:1 - ext4 /dev/root rw\n\
                     97 61 0:48 / /home/a\\040b rw - fuse.sshfs a@b:/ rw,user_id=0\n\
                     98 61 0:49 / / rw shared:1 master:2 - fuse.fuse-overlayfs fuse-overlayfs rw\n";
        assert_eq!(kind_of_device(table, "98:0").as_deref(), Some("ext4"));
        assert_eq!(kind_of_device(table, "0:48").as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind_of_device(table, "0:49").as_deref(), Some("fuse.fuse-overlayfs"));
        assert_eq!(kind_of_device(table, "0:4"), None);
    }

    #[test]
    fn a_path_that_does_not_exist_yet_is_judged_by_its_ancestor() {
        assert_eq!(network_file_system(Path::new("/proc/self/nothing/here/onus.db")), None);
        let device = mounted_as(Path::new("/proc")).unwrap();
        assert_eq!(device, "proc");
    }
}
