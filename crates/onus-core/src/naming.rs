//! The names of workstations: what each part of `ws-backend-payments-02` says (mission C3).

use crate::id::{TaskType, WorkstationName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How this repository names its workstations: `PREFIX-SCOPE[-DOMAIN]-NUMBER` or `PREFIX-SCOPE[-DOMAIN]-STAGE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Convention {
    /// What every name begins with.
    pub prefix: String,
    /// What may follow it. Empty: any one word.
    pub scopes: Vec<String>,
    /// What a name may end with instead of a number.
    pub stages: Vec<String>,
    /// The task types that a scope may serve. A scope that is not listed serves all.
    pub types: BTreeMap<String, Vec<TaskType>>,
}

impl Default for Convention {
    fn default() -> Convention {
        Convention {
            prefix: "ws".to_owned(),
            scopes: Vec::new(),
            stages: ["dev", "test", "staging", "prod"].map(str::to_owned).to_vec(),
            types: BTreeMap::new(),
        }
    }
}

/// What a workstation's name says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parsed {
    pub scope: String,
    pub domain: Option<String>,
    pub number: Option<u32>,
    pub stage: Option<String>,
}

impl Convention {
    /// The reason of a refusal names the workstation and the part that does not fit.
    pub fn parse(&self, name: &WorkstationName) -> Result<Parsed, String> {
        let rest = after(name.as_str(), &self.prefix)
            .ok_or_else(|| format!("{name} does not begin with `{}-`", self.prefix))?;
        let (scope, rest) = self.scope(rest).ok_or_else(|| {
            let known = if self.scopes.is_empty() { "a word".to_owned() } else { self.scopes.join(", ") };
            let prefix = &self.prefix;
            format!("{name} names no scope after `{prefix}-` that is followed by more (known: {known})")
        })?;
        let (domain, last) = match rest.rsplit_once('-') {
            Some((domain, last)) => (Some(domain), last),
            None => (None, rest),
        };
        if domain.is_some_and(|domain| domain.split('-').any(str::is_empty)) {
            return Err(format!("{name} has two dashes in a row"));
        }
        let is_number = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
        let number = last.parse().ok().filter(|_| is_number);
        let stage = self.stages.iter().find(|stage| *stage == last).cloned();
        if number.is_none() && stage.is_none() {
            let stages = self.stages.join(", ");
            return Err(format!("{name} ends neither in a number nor in a stage (known: {stages})"));
        }
        Ok(Parsed { scope: scope.to_owned(), domain: domain.map(str::to_owned), number, stage })
    }

    /// The scope at the beginning of the text and what follows it. Of two that fit, the longer one is meant.
    fn scope<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        if self.scopes.is_empty() {
            return text.split_once('-').filter(|(scope, _)| !scope.is_empty());
        }
        let fits = self.scopes.iter().filter_map(|scope| {
            let rest = after(text, scope)?;
            Some((text.get(..scope.len())?, rest))
        });
        fits.max_by_key(|(scope, _)| scope.len())
    }

    /// Whether workstations of the scope may serve the type.
    pub fn serves(&self, scope: &str, task_type: Option<&TaskType>) -> bool {
        match self.types.get(scope) {
            None => true,
            Some(types) => task_type.is_some_and(|wanted| types.contains(wanted)),
        }
    }
}

/// What follows the part and its dash.
fn after<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    text.strip_prefix(part)?.strip_prefix('-')
}
