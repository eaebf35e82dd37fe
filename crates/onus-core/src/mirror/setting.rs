//! How a mirror is set up in `onus.yaml`.

use crate::id::{Handle, MirrorName, ProjectKey};
use crate::refusal::Refusal;
use crate::task::StateName;
use crate::time::Millis;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

words!(
    /// What a far end is.
    MirrorKind {
        Redmine = "redmine",
        Github = "github",
        Gitlab = "gitlab",
    }
);

words!(
    /// When a far end is told of an assignment.
    MirrorAt {
        /// Soon after. A far end that is away holds nobody up.
        Async = "async",
        /// Before the agent is told to begin: where the fields cannot be set and read back, the claim is refused.
        AssignmentRequired = "assignment-required",
    }
);

words!(
    /// What becomes of what somebody changed at the far end and Onus owns.
    OnDrift {
        /// It is told, and stays.
        Report = "report",
        /// It is told, and put back.
        Restore = "restore",
    }
);

words!(
    /// Whether a milestone needs what a far end shows.
    InMilestones {
        Ignored = "ignored",
        /// It closes only when the fields of all its tasks were read back as they were told.
        Required = "required",
    }
);

words!(
    /// Whether tasks that nobody asked for at the far end get a counterpart there.
    MirrorCreate {
        Never = "never",
        Always = "always",
    }
);

/// One mirror of `onus.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// Without it: what the mirror is called.
    #[serde(default)]
    pub kind: Option<MirrorKind>,
    /// Where it is, e.g. `https://redmine.example`. No redirect is followed.
    pub url: String,
    /// The environment variable that has the key, where the outbox is sent from.
    #[serde(default)]
    pub key_env: Option<String>,
    /// A file that has it, instead.
    #[serde(default)]
    pub key_file: Option<String>,
    /// A key may travel in the clear beyond this machine, e.g. through a private tunnel.
    #[serde(default)]
    pub insecure: bool,
    /// The project there: an identifier of Redmine's, `OWNER/NAME` of GitHub's, a path of GitLab's.
    pub project: String,
    /// When it is told of an assignment.
    #[serde(default = "asynchronous")]
    pub at: MirrorAt,
    #[serde(default = "report")]
    pub drift: OnDrift,
    #[serde(default = "never")]
    pub create: MirrorCreate,
    /// Whether a milestone needs that its tasks' fields were read back.
    #[serde(default = "ignored")]
    pub milestones: InMilestones,
    /// The registered agent in whose name its new issues become tasks. Without it none do.
    #[serde(default)]
    pub worker: Option<Handle>,
    /// The project here that they go to.
    #[serde(default)]
    pub to_project: Option<ProjectKey>,
    /// How often it is asked for new and changed issues.
    #[serde(default = "minute")]
    pub poll: Millis,
    /// How long it may still be at work on what it was asked and did not answer. So long it is left alone.
    #[serde(default = "half_a_minute")]
    pub silence: Millis,
    /// Redmine: the tracker of issues that are made for tasks.
    #[serde(default)]
    pub tracker: Option<String>,
    /// What carries Onus's own: custom fields of Redmine's by their names, prefixes of labels elsewhere.
    #[serde(default)]
    pub fields: MirrorFields,
    /// The far end's word for each state; a state without one leaves the far end's as it is.
    #[serde(default)]
    pub statuses: BTreeMap<StateName, String>,
    /// Redmine: what time is booked under, by the task's kind; `default` for all others.
    #[serde(default)]
    pub activities: BTreeMap<String, String>,
    /// Who a worker is there: a number of Redmine's, a login elsewhere.
    #[serde(default)]
    pub users: BTreeMap<Handle, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MirrorFields {
    pub agent: Option<String>,
    pub workstation: Option<String>,
    /// The task's id: by it an issue that was made for a task is found again.
    pub task: Option<String>,
    /// The task's type.
    #[serde(rename = "type")]
    pub task_type: Option<String>,
}

fn asynchronous() -> MirrorAt {
    MirrorAt::Async
}

fn report() -> OnDrift {
    OnDrift::Report
}

fn never() -> MirrorCreate {
    MirrorCreate::Never
}

fn ignored() -> InMilestones {
    InMilestones::Ignored
}

fn minute() -> Millis {
    Millis::minutes(1)
}

fn half_a_minute() -> Millis {
    Millis::secs(30)
}

impl Mirror {
    pub fn kind(&self, name: &MirrorName) -> Result<MirrorKind, Refusal> {
        self.kind.or_else(|| MirrorKind::parse(name.as_str())).ok_or_else(|| {
            let words: Vec<&str> = MirrorKind::ALL.iter().map(|kind| kind.name()).collect();
            Refusal::invalid(format!("what the mirror {name} is cannot be told by its name"))
                .hint(format!("set mirrors.{name}.kind in onus.yaml: {}", words.join(", ")))
        })
    }

    /// The channel that its asks' origins begin with.
    pub fn channel(&self, name: &MirrorName) -> Result<&'static str, Refusal> {
        self.kind(name).map(MirrorKind::name)
    }
}
