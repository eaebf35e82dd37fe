//! `add`: one ask, one task (mission A2).

use super::Decision;
use super::check::fault;
use crate::code::Code;
use crate::command::Archive;
use crate::event::{Added, Archived};
use crate::facts::{Facts, Fresh};
use crate::id::TaskId;
use crate::refusal::{Finding, Refusal};
use crate::scope::Scope;
use crate::task::{Check, CheckState, Spec};
use crate::text;
use crate::worker::Worker;
use std::collections::BTreeSet;

pub(super) fn decide(
    facts: &Facts<'_>,
    caller: &Worker,
    spec: &Spec,
    depends_on: &BTreeSet<TaskId>,
    archived: Option<&Archive>,
    fresh: &Fresh,
) -> Result<Decision, Refusal> {
    // The same ask, even with edited words, is the existing task: its words live in their own system.
    if let Some(existing) = &facts.existing {
        return Ok(Decision::Existing(existing.clone()));
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
    for dependency in facts.dependencies.iter().filter(|d| d.state.is_none()) {
        let finding = Finding::new(Code::UnknownTask, format!("there is no task {}", dependency.id));
        findings.push(finding.hint("onus list --state all"));
    }
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal);
    }
    let added = Added {
        uid: fresh.uid,
        spec: Spec { checks: checks(caller, &spec.checks), ..spec.clone() },
        depends_on: depends_on.clone(),
        archived: archived.map(|a| Archived { state: a.state, resolution: a.resolution.clone() }),
    };
    Ok(Decision::one(added, None))
}

/// A check runs as a command: only a person's word lets it.
fn checks(caller: &Worker, asked: &[Check]) -> Vec<Check> {
    let state = if caller.is_human() { None } else { Some(CheckState::Proposed) };
    asked.iter().map(|check| Check { state: state.unwrap_or(check.state), ..check.clone() }).collect()
}

fn findings(spec: &Spec, depends_on: &BTreeSet<TaskId>) -> Vec<Finding> {
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
    if spec.lane.is_some_and(|lane| !(1..=1_000).contains(&lane)) {
        check(Err("a lane is a number from 1 to 1000".into()));
    }
    for (what, count) in [
        ("tags", spec.tags.len()),
        ("scope globs", spec.scope.len()),
        ("checks", spec.checks.len()),
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
