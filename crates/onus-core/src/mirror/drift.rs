//! What of Onus's own somebody changed at the far end.

use crate::id::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One field that is not as it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    pub task: TaskId,
    pub far_id: String,
    pub field: String,
    /// What Onus says.
    pub here: String,
    pub there: String,
}

/// Every field that differs. What the far end does not show is no drift: it may hide it from who asks.
pub fn drift(
    task: &TaskId,
    far_id: &str,
    here: &BTreeMap<String, String>,
    there: &BTreeMap<String, String>,
) -> Vec<Drift> {
    let differs = here.iter().filter_map(|(field, wanted)| {
        let found = there.get(field).filter(|found| *found != wanted)?;
        Some(Drift {
            task: task.clone(),
            far_id: far_id.to_owned(),
            field: field.clone(),
            here: wanted.clone(),
            there: found.clone(),
        })
    });
    differs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_differs_is_told_and_one_that_is_hidden_is_not() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let task = "API-1".parse().unwrap();
        let here = of(&[("agent", "@a"), ("status", "In Progress"), ("workstation", "ws")]);
        let there = of(&[("agent", "@b"), ("status", "In Progress"), ("subject", "x")]);
        let found = drift(&task, "7", &here, &there);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].field.as_str(), found[0].here.as_str(), found[0].there.as_str()),
            ("agent", "@a", "@b")
        );
    }
}
