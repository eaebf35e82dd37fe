//! What a team may set in `onus.yaml`. Every field has a safe default; unknown keys are refused by the reader.

use crate::agents::{AgentSettings, Preset};
use crate::id::{ChannelName, Handle, MirrorName, PresetName, ProjectKey};
use crate::intake::channel::Channel;
use crate::limits::LimitSettings;
use crate::mirror::setting::Mirror;
use crate::notify::setting::{NotifyChannel, NotifyRule, PersonSettings, Transition};
use crate::price::Prices;
use crate::time::Millis;
use crate::worker::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings of one repository, from `onus.yaml` at its root.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The project that new tasks go to when `--project` is not given, e.g. `API`.
    pub project: Option<ProjectKey>,
    pub lease: LeaseSettings,
    pub queue: QueueSettings,
    pub complete: CompleteSettings,
    pub git: GitSettings,
    pub workstation: WorkstationSettings,
    pub routing: RoutingSettings,
    pub exception: ExceptionSettings,
    pub effort: EffortSettings,
    pub intake: IntakeSettings,
    /// Outside systems that are told what happens here, and asked for work (mission C8).
    pub mirrors: BTreeMap<MirrorName, Mirror>,
    /// By what people and rooms are told of what happens.
    pub channels: BTreeMap<MirrorName, NotifyChannel>,
    /// Who is told of what.
    pub notify: Vec<NotifyRule>,
    /// How each person wants to be told.
    pub people: BTreeMap<Handle, PersonSettings>,
    /// Command lines that run after a change: `{completed: ["./after-done"]}`. Where one fails it is tried again.
    pub on: BTreeMap<Transition, Vec<String>>,
    pub run: RunSettings,
    /// What agents may use up before a person looks (mission E10).
    pub limits: LimitSettings,
    /// The agents that `onus fleet up` starts.
    pub agents: Vec<AgentSettings>,
    /// How other clients than ours are called, or ours in another way.
    pub presets: BTreeMap<PresetName, Preset>,
    pub fleet: FleetSettings,
    /// What a model's tokens cost, for records that tell no cost. A model that is not named has none.
    pub prices: Prices,
}

/// How long a lease lasts and when it may be taken over (mission B1, B3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeaseSettings {
    /// An agent's lease.
    pub agent_ttl: Millis,
    /// A person's lease.
    pub human_ttl: Millis,
    /// A blocked task's lease when the holder keeps it.
    pub blocked_ttl: Millis,
    /// How long after expiry a takeover is still refused.
    pub grace: Millis,
    /// Other lengths for some task types.
    pub types: BTreeMap<String, LeaseOverride>,
}

/// What a task type may set differently.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeaseOverride {
    pub agent_ttl: Option<Millis>,
    pub human_ttl: Option<Millis>,
    pub blocked_ttl: Option<Millis>,
    pub grace: Option<Millis>,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        LeaseSettings {
            agent_ttl: Millis::minutes(15),
            human_ttl: Millis::hours(24),
            blocked_ttl: Millis::hours(24),
            grace: Millis::secs(60),
            types: BTreeMap::new(),
        }
    }
}

impl LeaseSettings {
    fn overridden(&self, task_type: Option<&str>) -> Option<&LeaseOverride> {
        self.types.get(task_type?)
    }

    pub fn ttl(&self, kind: Kind, task_type: Option<&str>) -> Millis {
        let special = self.overridden(task_type);
        match kind {
            Kind::Human => special.and_then(|o| o.human_ttl).unwrap_or(self.human_ttl),
            Kind::Agent => special.and_then(|o| o.agent_ttl).unwrap_or(self.agent_ttl),
        }
    }

    pub fn blocked_ttl(&self, task_type: Option<&str>) -> Millis {
        self.overridden(task_type).and_then(|o| o.blocked_ttl).unwrap_or(self.blocked_ttl)
    }

    pub fn grace(&self, task_type: Option<&str>) -> Millis {
        self.overridden(task_type).and_then(|o| o.grace).unwrap_or(self.grace)
    }
}

/// What `complete` asks for beyond passed checks (mission D8, D11, D12).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompleteSettings {
    /// Whether the commits of a workstation's branch must be in the main branch.
    pub merged: MergePolicy,
    /// Whose work another worker must have reviewed.
    pub review: ReviewPolicy,
    /// Whether a passed check counts that a caller elsewhere states.
    pub evidence: EvidencePolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidencePolicy {
    /// What a holder's own machine reports counts.
    #[default]
    Stated,
    /// Only what Onus itself ran on a machine that it sees.
    Witnessed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergePolicy {
    #[default]
    Required,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewPolicy {
    #[default]
    Never,
    HighRisk,
    Always,
}

/// How much of the queue is shown at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSettings {
    /// How many tasks `ready` and `list` print by default.
    pub limit: u32,
}

impl Default for QueueSettings {
    fn default() -> Self {
        QueueSettings { limit: 20 }
    }
}

/// What the repository's branches mean (mission C1), and who moves them (mission E1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GitSettings {
    /// The branch that policy is read from and work is merged to. Without it: `main`, else `master`, else the branch
    /// that the main checkout is on.
    pub main: Option<String>,
    /// The remote whose branch is the main of record, e.g. `origin`. The store remembers it for every clone. Without it
    /// the local branch is, as long as one clone uses the store.
    pub remote: Option<String>,
    /// How work gets there.
    pub land: Land,
    /// Where pull requests are opened, with `land: pr`. Without it the branch is pushed, and somebody opens one.
    pub pull_requests: Option<PullRequestSettings>,
    /// What `consistency` makes of commits in the main of record that belong to no task.
    pub unowned: Unowned,
    /// Whether people need a task to commit where no workstation is.
    pub people: PeoplePolicy,
    /// The environment variables by which a coding client is known. Whoever sets one and does not say who it is
    /// (`ONUS_AS`) is an agent without a lease. A name that ends in `*` stands for all that begin so; one that begins with
    /// `!` is not meant.
    pub clients: Vec<String>,
}

impl Default for GitSettings {
    fn default() -> Self {
        let clients = CLIENTS.iter().map(|name| (*name).to_owned()).collect();
        GitSettings {
            main: None,
            remote: None,
            land: Land::default(),
            pull_requests: None,
            unowned: Unowned::default(),
            people: PeoplePolicy::default(),
            clients,
        }
    }
}

/// What the clients set for the commands that they run; not what people set to configure them.
const CLIENTS: &[&str] = &[
    "CLAUDECODE",
    "GEMINI_CLI",
    "CODEX_*",
    "!CODEX_HOME",
    "!CODEX_API_KEY",
    "CURSOR_*",
    "!CURSOR_TRACE_ID",
    "OPENCODE",
    "CLINE_ACTIVE",
    "AUGMENT_AGENT",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeoplePolicy {
    /// They commit on branches that are no workstation's as they like, and move the main branch.
    #[default]
    Free,
    /// They hold a task, like everybody.
    Task,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Land {
    /// `merge` and `complete` push it.
    #[default]
    Push,
    /// They push the branch; somebody merges its pull request, and that counts as landing.
    Pr,
}

/// A server that opens and merges pull requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PullRequestSettings {
    pub provider: PullProvider,
    /// Of its API: `https://api.github.com`, `https://gitlab.example/api/v4`, `https://gitea.example/api/v1`.
    pub url: String,
    /// `owner/name`; with GitLab also `group/subgroup/name`.
    pub repository: String,
    /// The environment variable that has the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that has the key.
    #[serde(default)]
    pub key_file: Option<String>,
    /// The key may travel unprotected: behind a private tunnel only.
    #[serde(default)]
    pub insecure: bool,
    /// How often a server or a fleet's supervisor asks whether what waits there is merged.
    #[serde(default = "PullRequestSettings::poll")]
    pub poll: Millis,
}

impl PullRequestSettings {
    const fn poll() -> Millis {
        Millis::secs(30)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PullProvider {
    Github,
    Gitlab,
    Gitea,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unowned {
    Allow,
    /// They are told of, and nothing is refused for them.
    #[default]
    Warn,
    /// They are findings.
    Refuse,
}

/// What happens in a worktree when work begins there (mission D3).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkstationSettings {
    /// Whether a grant puts the worktree on the main of record; what was there before is kept.
    pub sync: WorktreeSync,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeSync {
    #[default]
    Claim,
    Never,
}

/// What `onus run` keeps of a command, and how long it waits for it (mission D15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// The bytes of its output that are kept for each session: half from its beginning, half from its end. 0 keeps nothing.
    pub keep: u32,
    /// A command that prints nothing for so long hangs, and is ended. Default: it may be silent for ever.
    pub silence: Option<Millis>,
}

impl Default for RunSettings {
    fn default() -> Self {
        RunSettings { keep: 2_000_000, silence: None }
    }
}

/// How `onus fleet up` looks after its agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetSettings {
    /// How often work is looked for, beside the moments in which an agent becomes free.
    pub interval: Millis,
    /// A task that was begun so often and is not complete waits for a person.
    pub attempts: u16,
}

impl Default for FleetSettings {
    fn default() -> Self {
        FleetSettings { interval: Millis::secs(2), attempts: 5 }
    }
}

/// How strictly the executor identity map is taken (mission C1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingSettings {
    /// What a map in the main checkout that differs from the committed one does.
    pub uncommitted: Uncommitted,
}

/// Where dependency exceptions are written down (mission D1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExceptionSettings {
    /// The directory of the decision records, below the main checkout's root.
    pub adr_dir: String,
}

impl Default for ExceptionSettings {
    fn default() -> Self {
        ExceptionSettings { adr_dir: "docs/adr".into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Uncommitted {
    /// The committed map stays in force, and the difference is told.
    #[default]
    Report,
    /// Nothing is granted until the difference is committed or undone.
    Refuse,
}

/// Where asks come from (mission A2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IntakeSettings {
    /// By the name that their asks' origins begin with.
    pub channels: BTreeMap<ChannelName, Channel>,
}

/// What time is worth (mission A4, E4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EffortSettings {
    /// Which work is billable: the first rule that fits decides; what no rule fits is billable.
    pub billable: Vec<BillableRule>,
    /// Billable time of one worker on one task in one day is rounded up to a multiple of this. Default: not at all.
    pub round_up_to: Option<Millis>,
    /// What costs are counted in.
    pub currency: String,
}

impl Default for EffortSettings {
    fn default() -> Self {
        EffortSettings { billable: Vec::new(), round_up_to: None, currency: "USD".into() }
    }
}

/// Fits work for which everything that it names holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BillableRule {
    pub billable: bool,
    /// The task's kind: `feature`, `defect`, `chore`.
    #[serde(default)]
    pub kind: Option<String>,
    /// The task's type, as the identity map has it.
    #[serde(default, rename = "type")]
    pub task_type: Option<String>,
    #[serde(default)]
    pub sprint: Option<String>,
    #[serde(default)]
    pub project: Option<ProjectKey>,
    /// People or agents.
    #[serde(default)]
    pub worker_kind: Option<Kind>,
    #[serde(default)]
    pub worker: Option<Handle>,
}
