//! Whether the process that a lease names is still there (rules: takeover by proof of death).
//!
//! Errs on the side of the holder: whatever cannot be seen for certain is `Unknown`, and then only expiry counts.

use crate::clock;
use onus_core::hash::Digest;
use onus_core::lease::Lease;
use onus_core::process::{Birth, Process, Vital};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process_group, test_kill_process, test_kill_process_group};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// This process as the wrapper of the group that `leader` leads.
pub(crate) fn supervising(leader: Pid) -> io::Result<Process> {
    let (host, boot) = clock::ids();
    let birth = |pid: Pid| {
        let stat = stat(pid.as_raw_pid())?;
        Ok::<_, io::Error>(Birth { pid: pid.as_raw_pid(), tick: stat.started })
    };
    Ok(Process {
        host: host.to_owned(),
        boot: boot.to_owned(),
        space: space()?,
        wrapper: birth(getpid())?,
        group: birth(leader)?,
    })
}

/// This process and the group that it is in, for a server that must tell its words from somebody else's.
pub fn sender() -> io::Result<Process> {
    let (host, boot) = clock::ids();
    let (own, leader) = (getpid(), rustix::process::getpgrp());
    // The leader may have ended before its group.
    let tick = stat(leader.as_raw_pid()).map(|stat| stat.started).unwrap_or_default();
    Ok(Process {
        host: host.to_owned(),
        boot: boot.to_owned(),
        space: space()?,
        wrapper: Birth { pid: own.as_raw_pid(), tick: stat(own.as_raw_pid())?.started },
        group: Birth { pid: leader.as_raw_pid(), tick },
    })
}

/// This process in words that another one on the same host can judge it by.
pub fn this_process() -> io::Result<String> {
    let (host, boot) = clock::ids();
    let pid = getpid().as_raw_pid();
    Ok(format!("{host} {boot} {} {pid} {}", space()?, stat(pid)?.started))
}

/// Whether the process of these words is gone for certain.
pub fn is_gone(words: &str) -> bool {
    let mut words = words.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (host, boot, own_space) = (next(), next(), next());
    let (Ok(pid), Ok(tick)) = (next().parse(), next().parse()) else { return false };
    let here = clock::ids();
    if host != here.0 {
        return false;
    }
    // Another boot of the same host: nothing of before is left.
    boot != here.1
        || (space().is_ok_and(|space| space == own_space) && wrapper(Birth { pid, tick }) == Vital::Gone)
}

/// What this host knows of the process that works under a lease.
pub fn of(lease: &Lease) -> Vital {
    lease.process.as_ref().map(told).unwrap_or_default()
}

/// How long what is asked to end may take.
const ENDING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// Ends what a wrapper that is gone left behind: its warden, which would have done so, went with it. Whatever has a wrapper,
/// or is not for this host to judge, is left alone.
pub fn end_left_behind(lease: &Lease) {
    let Some(process) = lease.process.as_ref().filter(|process| is_of_here(process)) else { return };
    let Some(leader) = Pid::from_raw(process.group.pid) else { return };
    let is_left = || wrapper(process.wrapper) == Vital::Gone && group(process.group) == Vital::Lives;
    for signal in [Signal::TERM, Signal::KILL] {
        if !is_left() {
            return;
        }
        let _ = kill_process_group(leader, signal);
        let until = Instant::now() + ENDING;
        while is_left() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }
}

/// The same boot of this host, and the same numbers: the same one in another container is another process.
fn is_of_here(process: &Process) -> bool {
    let (host, boot) = clock::ids();
    process.host == host && process.boot == boot && space().is_ok_and(|space| space == process.space)
}

fn told(process: &Process) -> Vital {
    let (host, boot) = clock::ids();
    if process.host != host {
        return Vital::Unknown;
    }
    if process.boot != boot {
        return Vital::Gone;
    }
    // The same number in another container is another process.
    if space().ok().as_ref() != Some(&process.space) {
        return Vital::Unknown;
    }
    // Looking for a group's members takes all of /proc: only where nobody is seen without it.
    match wrapper(process.wrapper) {
        Vital::Lives => Vital::Lives,
        alone => match (alone, group(process.group)) {
            (Vital::Gone, Vital::Gone) => Vital::Gone,
            (_, Vital::Lives) => Vital::Lives,
            _ => Vital::Unknown,
        },
    }
}

fn wrapper(birth: Birth) -> Vital {
    let Some(pid) = Pid::from_raw(birth.pid) else { return Vital::Unknown };
    // Asked of the kernel, and not of /proc, which may hide what belongs to others.
    let is_gone = || test_kill_process(pid) == Err(Errno::SRCH);
    if is_gone() {
        return Vital::Gone;
    }
    match stat(birth.pid) {
        Ok(stat) if stat.started != birth.tick || stat.has_ended => Vital::Gone,
        Ok(_) => Vital::Lives,
        // Somebody may have taken leave of it in between.
        Err(_) if is_gone() => Vital::Gone,
        Err(_) => Vital::Unknown,
    }
}

/// The command's group may outlive its leader.
fn group(birth: Birth) -> Vital {
    let Some(pid) = Pid::from_raw(birth.pid) else { return Vital::Unknown };
    let is_gone = || test_kill_process_group(pid) == Err(Errno::SRCH);
    if is_gone() {
        return Vital::Gone;
    }
    // A number is given again only when its group is empty.
    if stat(birth.pid).is_ok_and(|leader| leader.started != birth.tick) {
        return Vital::Gone;
    }
    let Ok(members) = members(birth.pid) else { return Vital::Unknown };
    match members.as_slice() {
        [] if is_gone() => Vital::Gone,
        [] => Vital::Unknown,
        // Nobody has taken leave of them, but they do nothing any more.
        all if all.iter().all(|member| member.has_ended) => Vital::Gone,
        _ => Vital::Lives,
    }
}

fn members(group: i32) -> io::Result<Vec<Stat>> {
    let entries = fs::read_dir("/proc")?.filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter_map(|pid| stat(pid).ok()).filter(|stat| stat.group == group).collect())
}

/// Process numbers belong to a namespace, and so does the clock that births are counted by.
fn space() -> io::Result<String> {
    let name = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}"));
    let counting = name("pid")?;
    // Older kernels have one time for all.
    let timing = name("time").unwrap_or_default();
    let both = format!("{} {}", counting.display(), timing.display());
    Ok(Digest::of(both.as_bytes()).to_string()[..8].to_owned())
}

struct Stat {
    has_ended: bool,
    group: i32,
    started: u64,
}

fn stat(pid: i32) -> io::Result<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat"))?;
    parsed(&String::from_utf8_lossy(&text)).ok_or_else(|| io::Error::other("not a process's state"))
}

/// `pid (name) state ppid pgrp …`: the name may contain blanks and parentheses, so what follows the last one counts.
fn parsed(text: &str) -> Option<Stat> {
    let rest = text.rsplit_once(") ")?.1;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        has_ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn leader(line: &str) -> Child {
        Command::new("sh").args(["-c", line]).process_group(0).spawn().unwrap()
    }

    fn named(child: &Child) -> Process {
        let own = supervising(Pid::from_child(child)).unwrap();
        // As if this test were not there: the leader stands for both.
        Process { wrapper: own.group, ..own }
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn it_lives_until_it_is_gone() {
        let child = leader("exec sleep 300");
        let process = named(&child);
        assert_eq!(told(&process), Vital::Lives);
        end(child);
        assert_eq!(told(&process), Vital::Gone);
    }

    #[test]
    fn the_wrapper_alone_and_the_group_alone_are_enough_to_live() {
        let child = leader("exec sleep 300");
        let both = supervising(Pid::from_child(&child)).unwrap();
        end(child);
        assert_eq!(told(&both), Vital::Lives, "this process is the wrapper");
        let mut child = leader("sleep 300 & echo; wait");
        let process = named(&child);
        let members = || members(process.group.pid).unwrap().len();
        while members() < 2 {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(told(&process), Vital::Lives, "the leader is gone, its child is not");
        let group = Pid::from_raw(process.group.pid).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        while told(&process) == Vital::Lives {
            std::thread::yield_now();
        }
        assert_eq!(told(&process), Vital::Gone);
    }

    #[test]
    fn the_ended_who_were_not_waited_for_are_gone() {
        let mut child = leader("exec true");
        let process = named(&child);
        while told(&process) == Vital::Lives {
            std::thread::yield_now();
        }
        assert_eq!(told(&process), Vital::Gone);
        child.wait().unwrap();
    }

    /// Whoever is looked at may be buried between two looks.
    #[test]
    fn an_end_is_never_in_doubt() {
        for _ in 0..100 {
            let mut child = leader("exec true");
            let process = named(&child);
            let seen = std::thread::scope(|scope| {
                scope.spawn(|| child.wait().unwrap());
                std::iter::repeat_with(|| told(&process)).find(|vital| *vital != Vital::Lives)
            });
            assert_eq!(seen, Some(Vital::Gone));
        }
    }

    #[test]
    fn another_birth_host_boot_or_container_is_told_apart() {
        let child = leader("exec sleep 300");
        let process = named(&child);
        let later = |birth: Birth| Birth { tick: birth.tick + 1, ..birth };
        let reused =
            Process { wrapper: later(process.wrapper), group: later(process.group), ..process.clone() };
        assert_eq!(told(&reused), Vital::Gone, "the number was given again");
        assert_eq!(told(&Process { boot: "other".into(), ..process.clone() }), Vital::Gone);
        assert_eq!(told(&Process { host: "other".into(), ..process.clone() }), Vital::Unknown);
        assert_eq!(told(&Process { space: "other".into(), ..process }), Vital::Unknown);
        end(child);
    }

    #[test]
    fn a_name_may_look_like_the_rest() {
        let stat = parsed("7 (a) R 1 2) S 1 42 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 900 20").unwrap();
        assert_eq!((stat.has_ended, stat.group, stat.started), (false, 42, 900));
        assert!(parsed("").is_none() && parsed("7 (a) S 1").is_none());
    }
}
