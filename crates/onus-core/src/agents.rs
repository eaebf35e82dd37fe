//! The agents that Onus starts by itself (`agents:` in `onus.yaml`), and how each kind of client is called (mission D15).

mod preset;

pub use preset::{PROMPT, Preset, Presets, Transcript, UsageSpan, mistakes};

use crate::code::Code;
use crate::id::{Handle, PresetName, Role, WorkstationName};
use crate::limits::Limit;
use crate::refusal::{Finding, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More agents of one kind than a machine runs.
const COUNT_MAX: u16 = 200;

/// One kind of agent, and how many of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// `@builder`, or `@builder-*` for `@builder-1`, `@builder-2` and so on.
    pub worker: String,
    /// A client whose call is known: `claude`, `codex`, `gemini`, `opencode`, `shell`, or one of `presets`.
    #[serde(default)]
    pub preset: Option<PresetName>,
    /// The words of the call, instead of a preset's; with `shell` a line for `sh -c`. `{prompt}` stands for the task.
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default = "one")]
    pub count: u16,
    /// Where they work, one each. Default: a worktree of each agent's own name, made when it is missing.
    #[serde(default)]
    pub workstations: Vec<WorkstationName>,
    /// The roles that missing agents are registered with, in turn.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// Variables of their environment. `{worker}` in a value stands for the agent's name without its @.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What separates them from the rest of the machine.
    #[serde(default)]
    pub sandbox: SandboxSetting,
    /// What each of them may use up in a day, in the place of `limits.worker_day`.
    #[serde(default)]
    pub limits: Limit,
}

impl AgentSettings {
    /// Whether a worker is one of these agents.
    pub fn is_about(&self, worker: &Handle) -> bool {
        (1..=self.count.min(COUNT_MAX)).any(|number| handle(self, number).is_ok_and(|own| own == *worker))
    }
}

/// Where an agent may write, and whether it has the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxSetting {
    #[default]
    None,
    /// bubblewrap: it writes in its working tree, to git and to the store; the client's own directory and a private /tmp.
    /// No network.
    Bubblewrap,
    /// The same with the network, which a client needs to reach its model.
    BubblewrapNetwork,
}

impl SandboxSetting {
    pub const fn name(self) -> &'static str {
        match self {
            SandboxSetting::None => "none",
            SandboxSetting::Bubblewrap => "bubblewrap",
            SandboxSetting::BubblewrapNetwork => "bubblewrap-network",
        }
    }

    pub fn parse(text: &str) -> Option<SandboxSetting> {
        let all = [SandboxSetting::None, SandboxSetting::Bubblewrap, SandboxSetting::BubblewrapNetwork];
        all.into_iter().find(|one| one.name() == text)
    }
}

fn one() -> u16 {
    1
}

/// One agent, ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub worker: Handle,
    pub workstation: WorkstationName,
    pub role: Option<Role>,
    pub tier: Option<String>,
    pub command: Vec<String>,
    /// The client, where its own words are called: it may go on with a session that was interrupted.
    pub client: Option<PresetName>,
    pub env: BTreeMap<String, String>,
    pub sandbox: SandboxSetting,
}

/// Who the agents of the settings are, however each is started.
pub fn workers(settings: &[AgentSettings]) -> Result<Vec<Handle>, Refusal> {
    let of = |kind: &'_ AgentSettings| {
        (1..=kind.count.min(COUNT_MAX)).map(|number| handle(kind, number)).collect()
    };
    let all: Vec<Vec<Handle>> = settings.iter().map(of).collect::<Result<_, Refusal>>()?;
    Ok(all.concat())
}

/// Every agent that the settings name, in their order.
pub fn agents(settings: &[AgentSettings], presets: &Presets) -> Result<Vec<Agent>, Refusal> {
    let mut all: Vec<Agent> = Vec::new();
    for kind in settings {
        let (command, client) = command(kind, presets)?;
        if !(1..=COUNT_MAX).contains(&kind.count) {
            let detail = format!("agents: {} agents are no number of {}", kind.count, kind.worker);
            return Err(Refusal::invalid(detail).hint(format!("count: 1 to {COUNT_MAX}")));
        }
        for number in 1..=kind.count {
            let worker = handle(kind, number)?;
            let index = usize::from(number) - 1;
            let workstation = match kind.workstations.get(index) {
                Some(named) => named.clone(),
                None if kind.workstations.is_empty() => {
                    worker.as_str().trim_start_matches('@').parse().map_err(Refusal::invalid)?
                }
                None => {
                    return Err(Refusal::invalid(format!(
                        "agents: {} has fewer workstations than agents",
                        kind.worker
                    )));
                }
            };
            if all.iter().any(|other| other.worker == worker || other.workstation == workstation) {
                return Err(Refusal::invalid(format!("agents: {worker} in {workstation} is named twice")));
            }
            all.push(Agent {
                env: environment(kind, &worker),
                worker,
                workstation,
                role: kind.roles.get(index % kind.roles.len().max(1)).cloned(),
                tier: kind.preset.as_ref().map(ToString::to_string),
                command: command.clone(),
                client: client.clone(),
                sandbox: kind.sandbox,
            });
        }
    }
    Ok(all)
}

/// Where the tasks are, as agents see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreReach {
    /// A file of this machine.
    File,
    /// A database over the network.
    Database,
    /// A server, which wants a token of each.
    Server,
}

/// What would keep an agent from the store, and make it fail again and again: all of it at once.
pub fn refuse_cut_off(agents: &[Agent], reach: StoreReach) -> Result<(), Refusal> {
    let mut findings = Vec::new();
    for agent in agents {
        let has_token = ["ONUS_TOKEN", "ONUS_TOKEN_FILE"].iter().any(|name| agent.env.contains_key(*name));
        if reach == StoreReach::Server && !has_token {
            let detail = format!("agents: {} has no token for the server", agent.worker);
            findings.push(Finding::new(Code::InvalidInput, detail).hint(
                "onus worker token add @AGENT, and in onus.yaml env: {ONUS_TOKEN_FILE: /home/you/tokens/{worker}}",
            ));
        }
        if reach != StoreReach::File && agent.sandbox == SandboxSetting::Bubblewrap {
            let detail = format!("agents: {} could not reach the store without a network", agent.worker);
            findings.push(Finding::new(Code::InvalidInput, detail).hint("sandbox: bubblewrap-network"));
        }
    }
    Refusal::from_findings(findings).map_or(Ok(()), Err)
}

fn environment(kind: &AgentSettings, worker: &Handle) -> BTreeMap<String, String> {
    let name = worker.as_str().trim_start_matches('@');
    kind.env.iter().map(|(key, value)| (key.clone(), value.replace("{worker}", name))).collect()
}

fn handle(kind: &AgentSettings, number: u16) -> Result<Handle, Refusal> {
    let text = match kind.worker.strip_suffix('*') {
        Some(stem) => format!("{stem}{number}"),
        None if kind.count == 1 => kind.worker.clone(),
        None => {
            let detail = format!("agents: {} cannot be {} agents", kind.worker, kind.count);
            return Err(Refusal::invalid(detail).hint(format!("worker: \"{}-*\"", kind.worker)));
        }
    };
    text.parse().map_err(|why: String| Refusal::invalid(format!("agents: {why}")))
}

/// The words of its call, and whose words they are.
fn command(kind: &AgentSettings, presets: &Presets) -> Result<(Vec<String>, Option<PresetName>), Refusal> {
    let preset = kind.preset.as_ref().map(|name| presets.find(name)).transpose()?;
    let has_command = !kind.command.is_empty();
    match preset {
        Some(preset) if preset.takes_command() == has_command => {
            Ok((preset.called(&kind.command), kind.preset.clone()))
        }
        _ if has_command => Ok((kind.command.clone(), None)),
        _ => Err(Refusal::invalid(format!("agents: {} has no command", kind.worker))
            .hint("command: [\"./agent.sh\"], or preset: claude, codex, gemini, opencode")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn presets() -> Presets {
        let preset = |name: &str, text: Value| (name.parse().unwrap(), serde_json::from_value(text).unwrap());
        Presets::new([
            preset(
                "claude",
                json!({ "call": ["claude", "-p", PROMPT], "resume": ["{call}", "-r", "{session}"] }),
            ),
            preset("shell", json!({ "call": ["sh", "-c", "{command}"] })),
        ])
    }

    fn kind(worker: &str, preset: Option<&str>, command: &[&str], count: u16) -> AgentSettings {
        AgentSettings {
            worker: worker.into(),
            preset: preset.map(|name| name.parse().unwrap()),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            count,
            workstations: Vec::new(),
            roles: Vec::new(),
            env: BTreeMap::new(),
            sandbox: SandboxSetting::default(),
            limits: Limit::default(),
        }
    }

    #[test]
    fn a_star_is_a_number_and_each_has_a_place_of_its_own() {
        let found = agents(&[kind("@claude-*", Some("claude"), &[], 2)], &presets()).unwrap();
        let names: Vec<String> =
            found.iter().map(|agent| format!("{} {}", agent.worker, agent.workstation)).collect();
        assert_eq!(names, ["@claude-1 claude-1", "@claude-2 claude-2"]);
        assert_eq!(found[0].command, ["claude", "-p", PROMPT]);
        assert_eq!(found[0].client.as_ref().unwrap().as_str(), "claude");
        let own = agents(&[kind("@a", Some("claude"), &["./mine"], 1)], &presets()).unwrap();
        assert_eq!(own[0].client, None, "words of one's own are called as they are");
    }

    #[test]
    fn what_cannot_be_started_is_refused() {
        for wrong in [
            vec![kind("@a", Some("shell"), &[], 1)],
            vec![kind("@a", Some("nobody"), &[], 1)],
            vec![kind("@a", None, &[], 1)],
            vec![kind("@a", Some("claude"), &[], 2)],
            vec![kind("a b", Some("claude"), &[], 1)],
            vec![kind("@a-*", Some("claude"), &[], 0)],
            vec![kind("@a-*", Some("claude"), &[], COUNT_MAX + 1)],
            vec![kind("@a", Some("claude"), &[], 1), kind("@a", Some("claude"), &[], 1)],
        ] {
            assert!(agents(&wrong, &presets()).is_err(), "{wrong:?}");
        }
        let shell = agents(&[kind("@a", Some("shell"), &["./x", "y"], 1)], &presets()).unwrap();
        assert_eq!(shell[0].command, ["sh", "-c", "./x y"]);
    }

    #[test]
    fn a_preset_that_cannot_be_meant_is_refused_with_all_that_is_wrong() {
        let found = |text: Value| {
            let preset: Preset = serde_json::from_value(text).unwrap();
            mistakes(&BTreeMap::from([("mine".parse().unwrap(), preset)])).len()
        };
        assert_eq!(found(json!({ "call": ["x"] })), 0);
        assert_eq!(found(json!({ "call": [] })), 1);
        assert_eq!(found(json!({ "call": ["{session}"], "resume": ["x"], "writes": ["../up"] })), 3);
        assert_eq!(found(json!({ "call": ["x"], "writes": ["/etc", "a//b", ""] })), 1);
    }
}
