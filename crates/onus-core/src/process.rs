//! The process that works under a lease, and the proof that it is dead (mission B3; rules.md "Lease and fence").
//!
//! A number alone proves nothing: it is given again, and it means something else in another container. So a process is
//! named by its host, its boot, the namespaces that count it, and when it was born.

use crate::time::{Now, Tick};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What `onus run` is: the process that renews, and the group of the command that it supervises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub host: String,
    pub boot: String,
    /// The namespaces in which the numbers below mean something.
    pub space: String,
    pub wrapper: Birth,
    /// The leader of the command's group. While the group has members its number is given to nobody else.
    pub group: Birth,
}

/// A process by its number and the clock tick, counted from boot, in which it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    pub pid: i32,
    pub tick: u64,
}

impl Process {
    /// Whether `sender` is this process itself or belongs to the group that it supervises. A leader that has ended is
    /// named by its number alone: that is given to nobody else while the group has members.
    pub fn includes(&self, sender: &Process) -> bool {
        let is_same_machine =
            self.host == sender.host && self.boot == sender.boot && self.space == sender.space;
        let is_group =
            self.group.pid == sender.group.pid && [0, self.group.tick].contains(&sender.group.tick);
        is_same_machine && (self.wrapper == sender.wrapper || is_group)
    }
}

impl fmt::Display for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.tick)
    }
}

impl FromStr for Birth {
    type Err = String;

    fn from_str(text: &str) -> Result<Birth, String> {
        let parsed = text
            .split_once('@')
            .and_then(|(pid, tick)| Some(Birth { pid: pid.parse().ok()?, tick: tick.parse().ok()? }));
        parsed
            .filter(|birth| birth.pid > 0)
            .ok_or_else(|| format!("{} is not a process", crate::id::shown(text)))
    }
}

impl fmt::Display for Process {
    /// `host.boot.space.wrapper.group`; none of the parts contains a dot.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { host, boot, space, wrapper, group } = self;
        write!(f, "{host}.{boot}.{space}.{wrapper}.{group}")
    }
}

impl FromStr for Process {
    type Err = String;

    fn from_str(text: &str) -> Result<Process, String> {
        let parts: Vec<&str> = text.split('.').collect();
        let [host, boot, space, wrapper, group] = parts.as_slice() else {
            return Err(format!("{} is not a process", crate::id::shown(text)));
        };
        Ok(Process {
            host: (*host).to_owned(),
            boot: (*boot).to_owned(),
            space: (*space).to_owned(),
            wrapper: wrapper.parse()?,
            group: group.parse()?,
        })
    }
}

crate::serde_by_display!(Process);

/// What can be told here about the process that a lease names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Vital {
    /// It named none, or it is not for this host to tell.
    #[default]
    Unknown,
    Lives,
    /// Neither the wrapper nor anything in the command's group is left.
    Gone,
}

/// How a holder is known to be dead. It need not expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Death {
    HostRebooted,
    ProcessGone,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Death::HostRebooted => "its host has rebooted",
            Death::ProcessGone => "its process is gone",
        })
    }
}

impl Death {
    /// `seen` is the clock reading of the holder's last sign of life.
    pub(crate) fn proven(seen: &Tick, now: &Now, vital: Vital) -> Option<Death> {
        let rebooted = seen.host == now.tick.host && seen.boot != now.tick.boot;
        if rebooted {
            return Some(Death::HostRebooted);
        }
        (vital == Vital::Gone).then_some(Death::ProcessGone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_reads_back_and_nothing_else_is_one() {
        let text = "aaaaaaaa.bbbbbbbb.cccccccc.12@3400.13@3401";
        let process: Process = text.parse().unwrap();
        assert_eq!((process.wrapper.pid, process.group.tick), (12, 3401));
        assert_eq!(process.to_string(), text);
        for bad in ["", "a.b.c.1@2", "a.b.c.0@2.1@2", "a.b.c.-1@2.1@2", "a.b.c.1.2", "a.b.c.1@2.3@4.5@6"] {
            assert!(bad.parse::<Process>().is_err(), "{bad}");
        }
    }
}
