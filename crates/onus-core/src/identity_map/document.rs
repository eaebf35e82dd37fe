//! The map as it is written. The seed's three keys per rule are the smallest form.

use super::condition::{NONE, When, is_false};
use crate::constraint::Constraint;
use crate::id::{Handle, Role, TaskType, WorkstationName};
use crate::naming::Convention;
use crate::probe::Probe;
use crate::task::Spec;
use crate::workstation::Lifecycle;
use schemars::JsonSchema;
use serde::de::{MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// `executor-identity-map.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdentityMap {
    /// Which type of task goes to whom. An agent gets nothing that no rule gives it.
    pub routing: Vec<Rule>,
    /// Lanes and boundaries of the roles.
    pub roles: BTreeMap<Role, RoleRule>,
    /// Paths that several roles change.
    pub co_edited: Vec<CoEdited>,
    /// Paths that others rely on: only their owner changes them.
    pub contracts: Vec<Contract>,
    /// What needs more proof before it is complete.
    pub high_risk: HighRisk,
    /// The agents that may review others' work. Empty: those that are given verification, or work of the task's own type or
    /// role. People always may.
    pub reviewers: Vec<Handle>,
    /// How workstations are named. Without it any name will do.
    pub naming: Option<Convention>,
    /// What the workstations of a scope need, by the scope in their names.
    pub workstations: BTreeMap<String, PlaceRule>,
    /// What must have passed before work is merged, by its role and by the paths that it changes.
    pub checks: Vec<RequiredCheck>,
}

/// What the workstations of one scope need (mission C3, C5).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlaceRule {
    /// Each of them has these probes, and is ready only while they pass.
    pub probes: Vec<Probe>,
    /// How long they live.
    pub lifecycle: Option<Lifecycle>,
}

/// Commands that prove work of a role, or on some paths (mission D4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredCheck {
    /// Without it: of every role, and of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Globs; one changed path among them is enough. Without them: whatever changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The commands.
    pub run: Vec<String>,
}

/// Where the tasks of one type go: to one agent in one workstation, or to candidates in order of preference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub task_type: TypePattern,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<Handle>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workstation: Option<WorkstationName>,
    /// In place of `agent_name` and `workstation`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Who built what this task depends on does not do it, and not where it was built.
    #[serde(default, skip_serializing_if = "is_false")]
    pub independent: bool,
    /// What whoever gets such a task is held to: `path:GLOB`, `verb:NAME`, `command:WORDS`, `network:none`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub agent_name: Handle,
    pub workstation: WorkstationName,
    #[serde(default, skip_serializing_if = "When::is_empty")]
    pub when: When,
}

/// What a role has and owns (mission D2, D4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoleRule {
    pub lanes: u32,
    /// Live assignments in each lane.
    pub max_in_progress: u32,
    /// Globs of the paths that only this role changes. Empty: the role has no boundary of its own.
    pub owns: Vec<String>,
    /// The agents that may work in this role. Empty: all.
    pub workers: Vec<Handle>,
    /// Template of a worktree's path: `../{repo}-{role}-{lane}`.
    pub worktree: Option<String>,
    /// Template of its branch: `agent/{role}-{lane}`.
    pub branch: Option<String>,
    /// What whoever works in this role is held to.
    pub constraints: Vec<Constraint>,
}

impl Default for RoleRule {
    fn default() -> RoleRule {
        RoleRule {
            lanes: 1,
            max_in_progress: 1,
            owns: Vec::new(),
            workers: Vec::new(),
            worktree: None,
            branch: None,
            constraints: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoEdited {
    pub paths: Vec<String>,
    /// Who answers for them.
    pub primary: Role,
    #[serde(default)]
    pub with: Vec<Role>,
}

impl CoEdited {
    pub fn names(&self, role: &Role) -> bool {
        self.primary == *role || self.with.contains(role)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    pub paths: Vec<String>,
    pub owner: Role,
}

/// Written as a list of globs, or as `{paths: [...], types: [...]}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HighRisk {
    pub paths: Vec<String>,
    pub types: Vec<TaskType>,
}

/// The long form.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct HighRiskForm {
    paths: Vec<String>,
    types: Vec<TaskType>,
}

impl<'de> Deserialize<'de> for HighRisk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HighRiskVisitor)
    }
}

/// By hand, so that a mistake inside either form is reported where it stands.
struct HighRiskVisitor;

impl<'de> Visitor<'de> for HighRiskVisitor {
    type Value = HighRisk;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of globs, or `paths` and `types`")
    }

    fn visit_unit<E>(self) -> Result<HighRisk, E> {
        Ok(HighRisk::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<HighRisk, A::Error> {
        let paths = Vec::deserialize(value::SeqAccessDeserializer::new(seq))?;
        Ok(HighRisk { paths, types: Vec::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HighRisk, A::Error> {
        let form = HighRiskForm::deserialize(value::MapAccessDeserializer::new(map))?;
        Ok(HighRisk { paths: form.paths, types: form.types })
    }
}

impl JsonSchema for HighRisk {
    fn schema_name() -> Cow<'static, str> {
        "HighRisk".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<String>>();
        let form = generator.subschema_for::<HighRiskForm>();
        schemars::json_schema!({"description": "Globs, or globs and task types.", "anyOf": [list, form]})
    }
}

/// The types that a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypePattern {
    /// `*`: every type without a rule of its own, and tasks without a type.
    Any,
    One(TaskType),
}

impl FromStr for TypePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" { Ok(TypePattern::Any) } else { text.parse().map(TypePattern::One) }
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypePattern::Any => f.write_str("*"),
            TypePattern::One(task_type) => task_type.fmt(f),
        }
    }
}

crate::serde_by_display!(TypePattern);

impl JsonSchema for TypePattern {
    fn schema_name() -> Cow<'static, str> {
        "TypePattern".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^(\\*|[a-z][a-z0-9_-]{0,63})$"})
    }
}

impl Rule {
    /// Both forms as one list, in order of preference.
    pub fn in_order(&self) -> impl Iterator<Item = (&Handle, &WorkstationName, &When)> {
        let short = self.agent_name.as_ref().zip(self.workstation.as_ref());
        let short = short.map(|(agent, workstation)| (agent, workstation, &NONE));
        let long = self.candidates.iter().map(|c| (&c.agent_name, &c.workstation, &c.when));
        short.into_iter().chain(long)
    }
}

impl IdentityMap {
    /// The rule for a task.
    pub fn rule_of(&self, spec: &Spec) -> Option<(usize, &Rule)> {
        self.rule_for(self.type_of(spec).as_ref())
    }

    /// The rule for a type: its own one, else the one for every type.
    pub fn rule_for(&self, task_type: Option<&TaskType>) -> Option<(usize, &Rule)> {
        let rules = || self.routing.iter().enumerate();
        let own = |rule: &Rule| matches!(&rule.task_type, TypePattern::One(one) if Some(one) == task_type);
        rules()
            .find(|(_, rule)| own(rule))
            .or_else(|| rules().find(|(_, rule)| rule.task_type == TypePattern::Any))
    }
}
