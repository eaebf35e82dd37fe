//! `add`: one ask, one task (mission A2).

use super::Decision;
use super::check::fault;
use crate::code::Code;
use crate::command::{Archive, Arrival};
use crate::event::{Added, Archived};
use crate::facts::{Facts, Fresh};
use crate::id::TaskId;
use crate::refusal::{Finding, Refusal};
use crate::scope::Scope;
use crate::task::{Blocker, Check, CheckState, Criterion, Spec};
use crate::text;
use crate::time::{Now, Timestamp};
use crate::worker::{Worker, WorkerState};
use std::collections::BTreeSet;

/// What is asked for, and how it arrives.
pub(super) struct NewTask<'a> {
    pub(super) spec: &'a Spec,
    pub(super) depends_on: &'a BTreeSet<TaskId>,
    pub(super) archived: Option<&'a Archive>,
    pub(super) arrival: Option<&'a Arrival>,
}

pub(super) fn decide(
    facts: &Facts<'_>,
    caller: &Worker,
    ask: &NewTask<'_>,
    now: &Now,
    fresh: &Fresh,
) -> Result<Decision, Refusal> {
    let NewTask { spec, depends_on, archived, arrival } = *ask;
    // The same ask, even with edited words, is the existing task: its words live in their own system.
    if let Some(existing) = &facts.existing {
        return Ok(Decision::Existing(existing.clone()));
    }
    // What brings others' asks in is silent while it is paused.
    if caller.state == WorkerState::Paused && spec.origin.is_some() {
        let detail = format!("{} is paused: it brings no asks in", caller.handle);
        return Err(Refusal::new(Code::NotPermitted, detail)
            .hint(format!("a person runs: onus worker resume {}", caller.handle)));
    }
    if facts.behind_anchor {
        return Err(super::behind());
    }
    let mut findings = findings(spec, depends_on);
    if let Some(archive) = archived {
        // History would otherwise let an agent answer an ask, or satisfy a dependency, without any work.
        if !caller.is_human() {
            return Err(Refusal::new(Code::HumanRequired, "only a person may bring finished history in")
                .hint("ask a person"));
        }
        findings.extend(archive_findings(archive));
    }
    let blocked = arrival.and_then(|arrival| arrival.blocked.as_ref());
    findings.extend(blocked.and_then(|on| blocked_finding(on, archived)));
    for dependency in facts.dependencies.iter().filter(|d| d.state.is_none()) {
        let finding = Finding::new(Code::UnknownTask, format!("there is no task {}", dependency.id));
        findings.push(finding.hint("onus list --state all"));
    }
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal);
    }
    // A clock elsewhere that is ahead of ours says nothing.
    let past = |at: Option<Timestamp>| at.filter(|at| *at <= now.wall);
    let added = Added {
        uid: fresh.uid,
        spec: Spec {
            checks: checks(caller, &spec.checks),
            criteria: spec.criteria.iter().map(|one| Criterion::open(one.text.clone())).collect(),
            ..spec.clone()
        },
        depends_on: depends_on.clone(),
        archived: archived.map(|a| Archived {
            state: a.state,
            resolution: a.resolution.clone(),
            at: past(a.at),
        }),
        created_at: arrival.and_then(|arrival| past(arrival.created_at)),
        blocked: blocked.cloned(),
    };
    Ok(Decision::one(added, None))
}

/// A check runs as a command: only a person's word lets it.
fn checks(caller: &Worker, asked: &[Check]) -> Vec<Check> {
    let state = if caller.is_human() { None } else { Some(CheckState::Proposed) };
    asked.iter().map(|check| Check { state: state.unwrap_or(check.state), ..check.clone() }).collect()
}

/// What waited elsewhere waits for something elsewhere: people and tasks of this store were not asked.
fn blocked_finding(on: &Blocker, archived: Option<&Archive>) -> Option<Finding> {
    let detail = match (on, archived) {
        (_, Some(_)) => "what has ended waits for nothing",
        (Blocker::External(_), None) => return None,
        _ => "an ask arrives blocked on something external, or on nothing",
    };
    Some(Finding::new(Code::InvalidInput, detail))
}

/// More than a task's lists may have together.
pub(super) fn too_long(bytes: usize) -> String {
    format!("checks, criteria, scope and tags have {bytes} bytes together; the limit is {}", text::LISTS_MAX)
}

/// An object, bounded.
fn extra_fault(content: &str) -> Option<String> {
    if content.len() > text::EXTRA_MAX {
        return Some(format!("extra has {} bytes; the limit is {}", content.len(), text::EXTRA_MAX));
    }
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(content).is_ok();
    (!is_object).then(|| "extra is not a JSON object".to_owned())
}

/// Everything that is wrong with what is asked for, taken by itself.
pub(super) fn findings(spec: &Spec, depends_on: &BTreeSet<TaskId>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut check = |result: Result<String, String>| {
        if let Err(detail) = result {
            found.push(Finding::new(Code::InvalidInput, detail));
        }
    };
    check(text::line("the title", &spec.title, text::TITLE_MAX));
    check(text::line("the kind", &spec.kind, text::LABEL_MAX));
    if let Some(body) = spec.body.as_ref().and_then(|body| body.content()) {
        check(text::lines("the body", body, text::BODY_MAX));
    }
    if let Some(sprint) = &spec.sprint {
        check(text::line("the sprint", sprint, text::LABEL_MAX));
    }
    for tag in &spec.tags {
        check(text::line("the tag", tag, text::LABEL_MAX));
    }
    for reason in Scope::parse(&spec.scope).err().unwrap_or_default() {
        check(Err(reason));
    }
    for one in &spec.checks {
        check(fault(&one.command).map_or(Ok(String::new()), Err));
    }
    for (n, criterion) in spec.criteria.iter().enumerate() {
        check(text::lines("the criterion", &criterion.text, text::CRITERION_MAX));
        if spec.criteria[..n].iter().any(|earlier| earlier.text == criterion.text) {
            check(Err(format!(
                "the criterion `{}` stands there twice",
                text::shortened(&criterion.text, 80)
            )));
        }
    }
    if spec.lists_bytes() > text::LISTS_MAX {
        check(Err(too_long(spec.lists_bytes())));
    }
    if let Some(fault) = spec.extra.as_ref().and_then(|extra| extra_fault(extra.content()?)) {
        check(Err(fault));
    }
    if spec.lane.is_some_and(|lane| !(1..=1_000).contains(&lane)) {
        check(Err("a lane is a number from 1 to 1000".into()));
    }
    for (what, count) in [
        ("tags", spec.tags.len()),
        ("scope globs", spec.scope.len()),
        ("checks", spec.checks.len()),
        ("criteria", spec.criteria.len()),
        ("dependencies", depends_on.len()),
    ] {
        if count > text::LIST_MAX {
            check(Err(format!("{count} {what}; the limit is {}", text::LIST_MAX)));
        }
    }
    found
}

fn archive_findings(archive: &Archive) -> Vec<Finding> {
    let resolution = archive.resolution.as_ref().and_then(|text| text.content());
    let unprintable = resolution.and_then(|text| text::lines("the resolution", text, text::BODY_MAX).err());
    let unfinished = (!archive.state.is_terminal()).then(|| format!("history cannot be {}", archive.state));
    unprintable.into_iter().chain(unfinished).map(|detail| Finding::new(Code::InvalidInput, detail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::CheckKind;

    /// Lists of tasks, the record and a board's page have all of them.
    #[test]
    fn what_a_task_lists_is_bounded_together() {
        let long = |n: usize| Check {
            command: format!("cargo test case_{n} {}", "x".repeat(4_000)),
            state: CheckState::Proposed,
            kind: CheckKind::default(),
        };
        let told = |count: usize| {
            let checks = (0..count).map(long).collect();
            let spec = Spec { kind: "chore".into(), checks, ..Spec::titled("one") };
            findings(&spec, &BTreeSet::new()).into_iter().map(|one| one.detail).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(told(16), "");
        assert!(told(17).ends_with("bytes together; the limit is 65536"), "{}", told(17));
    }
}
