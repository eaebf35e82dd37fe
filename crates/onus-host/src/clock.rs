//! The clocks. Wall time is for people; leases expire by the monotonic clock (rules: nobody can set it, and a
//! suspended machine has not worked).

use onus_core::hash::Digest;
use onus_core::time::{Now, Tick, Timestamp};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;
use std::sync::OnceLock;

/// Both clocks, one after the other.
pub fn now() -> Now {
    let (host, boot) = ids();
    Now {
        wall: Timestamp(millis(clock_gettime(ClockId::Realtime))),
        // Not BOOTTIME: it counts suspension, and a closed lid would age every lease.
        tick: Tick {
            host: host.to_owned(),
            boot: boot.to_owned(),
            millis: millis(clock_gettime(ClockId::Monotonic)),
        },
    }
}

/// Which host this is, and which boot of it.
pub(crate) fn ids() -> (&'static str, &'static str) {
    static IDS: OnceLock<(String, String)> = OnceLock::new();
    let (host, boot) = IDS.get_or_init(|| (host_id(), boot_id()));
    (host, boot)
}

fn millis(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

fn host_id() -> String {
    let machine = ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().find_map(|path| id_in(path));
    short(&machine.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned()))
}

/// Without a boot id every boot looks the same. That is the safe side: a new boot is taken as proof that a holder is
/// dead, and there is no proof here.
fn boot_id() -> String {
    short(&id_in("/proc/sys/kernel/random/boot_id").unwrap_or_default())
}

/// A machine that has not chosen its id yet has an empty file, or the word systemd writes there.
fn id_in(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let id = text.trim();
    (!id.is_empty() && id != "uninitialized").then(|| id.to_owned())
}

/// Tells hosts and boots apart without telling the ledger's readers which machine it was: machine ids are secrets.
fn short(id: &str) -> String {
    Digest::of(id.as_bytes()).to_string()[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_rise_and_read_back() {
        let (first, second) = (now(), now());
        assert!(first.tick.millis <= second.tick.millis);
        assert_eq!((&first.tick.host, &first.tick.boot), (&second.tick.host, &second.tick.boot));
        assert_eq!(Tick::parse(&first.tick.to_string()), Some(first.tick.clone()));
        for id in [&first.tick.host, &first.tick.boot] {
            assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        }
        assert_ne!(first.tick.host, first.tick.boot);
    }

    #[test]
    fn the_wall_clock_is_the_wall_clock_and_the_tick_is_uptime() {
        let system = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let now = now();
        assert!(i128::from(now.wall.0).abs_diff(system.cast_signed()) < 5_000);
        // Since boot, suspension excluded: never more than the uptime, which includes it.
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        assert!(now.tick.millis as f64 <= uptime * 1_000.0 + 1_000.0, "{} {uptime}", now.tick.millis);
    }

    #[test]
    fn an_unset_machine_id_is_no_id() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine-id");
        let path = path.to_str().unwrap();
        assert_eq!(id_in(path), None);
        for (content, id) in [("", None), ("\n", None), ("uninitialized\n", None), ("abc\n", Some("abc"))] {
            fs::write(path, content).unwrap();
            assert_eq!(id_in(path).as_deref(), id, "{content:?}");
        }
    }

    #[test]
    fn ids_are_shortened_hashes() {
        assert_eq!(short("abc"), "ba7816bf");
    }
}
