//! Since when a type goes to whom.

use super::{SEED, map};
use onus_core::code::Code;
use onus_core::id::TaskType;
use onus_core::identity_map::{IdentityMap, Sends, Version, since};
use onus_core::refusal::Finding;
use onus_core::time::Timestamp;

/// Versions from the oldest on, as the reader gives them: newest first.
fn versions(maps: Vec<Result<Option<IdentityMap>, Vec<Finding>>>) -> Vec<Version> {
    let version = |(at, map): (usize, _)| Version {
        commit: format!("c{at}"),
        at: Timestamp(at as i64),
        author: "Ada".to_owned(),
        subject: format!("change {at}"),
        map,
    };
    let mut versions: Vec<Version> = maps.into_iter().enumerate().map(version).collect();
    versions.reverse();
    versions
}

/// Each change as `commit: where to`, newest first.
fn told(versions: &[Version], task_type: Option<&str>) -> Vec<String> {
    let task_type: Option<TaskType> = task_type.map(|text| text.parse().unwrap());
    let sends = |sends: &Sends| match sends {
        Sends::To(to) => to.iter().map(|c| format!("{} in {}", c.agent_name, c.workstation)).collect(),
        Sends::NoRule => "no rule".to_owned(),
        Sends::NoMap => "no map".to_owned(),
        Sends::Invalid(findings) => findings[0].detail.clone(),
    };
    let changes = since(versions, task_type.as_ref());
    changes.iter().map(|change| format!("{}: {}", change.commit, sends(&change.sends))).collect()
}

#[test]
fn only_commits_that_changed_the_route_are_told() {
    let other = SEED.replace("@agent-builder-01", "@agent-builder-09");
    let unrelated = SEED.replace("@agent-infra-01", "@agent-infra-02");
    let broken = vec![Finding::new(Code::MapInvalid, "broken")];
    let versions = versions(vec![
        Ok(Some(map(SEED))),
        Ok(Some(map(&unrelated))),
        Ok(Some(map(&other))),
        Err(broken),
        Ok(Some(map(&other))),
        Ok(None),
        Ok(Some(map("routing: [{task_type: docs, agent_name: '@d', workstation: w}]"))),
    ]);
    assert_eq!(
        told(&versions, Some("backend_feature")),
        [
            "c6: no rule",
            "c5: no map",
            "c4: @agent-builder-09 in ws-backend-01",
            "c3: broken",
            "c2: @agent-builder-09 in ws-backend-01",
            "c0: @agent-builder-01 in ws-backend-01",
        ]
    );
    assert_eq!(told(&versions, Some("docs"))[0], "c6: @d in w");
    assert_eq!(told(&versions, None).last().unwrap(), "c0: no rule");
    assert_eq!(told(&[], Some("docs")), Vec::<String>::new());
}

#[test]
fn a_changed_condition_is_a_changed_route() {
    let of = |when: &str| {
        map(&format!(
            "routing: [{{task_type: a, candidates: [{{agent_name: '@a', workstation: w, when: {when}}}]}}]"
        ))
    };
    let versions = versions(vec![Ok(Some(of("{}"))), Ok(Some(of("{available: true}")))]);
    assert_eq!(told(&versions, Some("a")), ["c1: @a in w", "c0: @a in w"]);
}
