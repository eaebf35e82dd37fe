//! A network of its own for a program, with cables to ours that can be pulled out.

use std::process::Command;

/// A namespace; gone with its cables when dropped.
#[derive(Debug)]
pub(crate) struct Network {
    name: String,
}

/// One of its two ends is ours.
#[derive(Debug)]
pub(crate) struct Cable {
    name: String,
    pub(crate) ours: String,
    pub(crate) theirs: String,
    pub(crate) net: String,
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).output().is_ok_and(|done| done.status.success())
}

impl Network {
    /// None where we may not make one, and it says so.
    pub(crate) fn new() -> Option<Network> {
        let network = Network { name: format!("onus-{}", std::process::id()) };
        if !ip(&["netns", "add", &network.name]) {
            eprintln!("skipped: no network namespace can be made here (needs root and iproute2)");
            return None;
        }
        assert!(ip(&["-n", &network.name, "link", "set", "lo", "up"]));
        Some(network)
    }

    /// A cable on a network that nobody else uses: 198.18.0.0/15 is for tests alone.
    pub(crate) fn cable(&self, n: u8) -> Cable {
        // Two programs that test at once must not meet.
        let base = std::process::id() % 250;
        let address = |host: u8| format!("198.18.{base}.{}", u32::from(n) * 4 + u32::from(host));
        let name = format!("onus{}.{n}", std::process::id());
        let cable = Cable { name, ours: address(1), theirs: address(2), net: format!("{}/30", address(0)) };
        let inner = format!("eth{n}");
        let made =
            ip(&["link", "add", &cable.name, "type", "veth", "peer", "name", &inner, "netns", &self.name])
                && ip(&["addr", "add", &format!("{}/30", cable.ours), "dev", &cable.name])
                && ip(&["link", "set", &cable.name, "up"])
                && ip(&["-n", &self.name, "addr", "add", &format!("{}/30", cable.theirs), "dev", &inner])
                && ip(&["-n", &self.name, "link", "set", &inner, "up"]);
        assert!(made, "no cable {cable:?}");
        cable
    }

    /// The same command, run inside.
    pub(crate) fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        inside.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        inside
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.name]);
    }
}

impl Cable {
    /// From here on every packet is lost in both directions, and nobody is told.
    pub(crate) fn cut(&self) {
        assert!(ip(&["link", "set", &self.name, "down"]));
    }

    pub(crate) fn mend(&self) {
        assert!(ip(&["link", "set", &self.name, "up"]));
    }
}
