//! `edit`: what is asked for is put differently, by those whose it is (rules.md, row `edit`).

use super::{Context, Decision, add};
use crate::code::Code;
use crate::command::Changes;
use crate::constraint::{self, Constraint};
use crate::event::{
    CheckAdded, CheckRemoved, Constrained, DependencyAdded, DependencyRemoved, Edited, Event, Noted,
};
use crate::id::TaskId;
use crate::queue;
use crate::refusal::{Finding, Refusal};
use crate::scope;
use crate::task::{Check, CheckKind, CheckState, Risk, Spec};
use crate::text::{LIST_MAX, Text};
use std::collections::BTreeSet;

/// What the holder's lease was granted by, and what its work is judged by: under a lease only a person changes it.
const GUARDED: &[&str] = &["type", "kind", "role", "lane", "scope", "risk", "parent", "merge_order"];
/// What may still be put right when a task has ended.
const WORDS: &[&str] = &["title", "body", "tags", "sprint"];
const CONSTRAINTS: &str = "constraints";
const EDITED: &str = "edited";

pub(super) fn decide(context: &Context<'_>, changes: &Changes) -> Result<Decision, Refusal> {
    if changes.is_empty() {
        return Err(Refusal::invalid("an edit that changes nothing").hint("say what, e.g. --title TEXT"));
    }
    if context.task.archived {
        return Err(context.wrong_state("edited: it is history from elsewhere"));
    }
    // Without a token nobody claims to be the holder. With one the caller does, and must be.
    let held = context.facts.token.is_some().then(|| context.holder()).transpose()?;
    let wanted = Wanted::of(context, changes)?;
    let findings = wanted.findings(context);
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal);
    }
    let mut events = wanted.events(context);
    if events.is_empty() {
        return Ok(Decision::Existing(context.task.id.clone()));
    }
    if let (Some(Event::Edited(edited)), Some(held)) =
        (events.first_mut(), held.filter(|_| !context.facts.suspended))
    {
        edited.renewal = Some(context.renewal(held, None));
    }
    Ok(Decision::Change { events, workstation: held.map(|held| held.workstation.clone()) })
}

/// The task as it is to be.
struct Wanted {
    spec: Spec,
    depends_on: BTreeSet<TaskId>,
    added: Vec<Check>,
    removed: Vec<Check>,
    /// What the holder is held to.
    constraints: Vec<Constraint>,
    /// By their names in documents.
    fields: Vec<&'static str>,
}

impl Wanted {
    fn of(context: &Context<'_>, changes: &Changes) -> Result<Wanted, Refusal> {
        let (task, now) = (context.task, &context.task.spec);
        let spec = Spec {
            title: changes
                .title
                .as_deref()
                .map_or_else(|| now.title.clone(), |title| title.trim().to_owned()),
            body: changes.body.over(now.body.as_ref()),
            task_type: changes.task_type.over(now.task_type.as_ref()),
            kind: changes.kind.clone().unwrap_or_else(|| now.kind.clone()),
            priority: changes.priority.unwrap_or(now.priority),
            risk: changes.risk.unwrap_or(now.risk),
            role: changes.role.over(now.role.as_ref()),
            lane: changes.lane.over(now.lane.as_ref()),
            sprint: changes.sprint.over(now.sprint.as_ref()),
            tags: amended(&now.tags, changes.tags.as_deref()),
            scope: amended(&now.scope, changes.scope.as_deref()),
            parent: changes.parent.over(now.parent.as_ref()),
            merge_order: changes.merge_order.over(now.merge_order.as_ref()),
            origin: now.origin.clone(),
            checks: Vec::new(),
            criteria: now.criteria.clone(),
            extra: now.extra.clone(),
        };
        let commands: Vec<String> = now.checks.iter().map(|check| check.command.clone()).collect();
        let proven_by = amended(&commands, changes.checks.as_deref());
        let is_new = |command: &&String| !commands.contains(command);
        let state = if context.caller.is_human() { CheckState::Approved } else { CheckState::Proposed };
        let check = |command: &String| Check { command: command.clone(), state, kind: CheckKind::default() };
        let gone = now.checks.iter().filter(|check| !proven_by.contains(&check.command));
        let depends_on = dependencies(&task.depends_on, changes.depends_on.as_deref())?;
        let mut wanted = Wanted {
            added: proven_by.iter().filter(is_new).map(check).collect(),
            removed: gone.cloned().collect(),
            constraints: allowed(context, changes.constraints.as_deref())?,
            fields: Vec::new(),
            spec,
            depends_on,
        };
        wanted.fields = wanted.changed(now, &task.depends_on);
        if wanted.constraints != held_to(context) {
            wanted.fields.push(CONSTRAINTS);
        }
        Ok(wanted)
    }

    fn changed(&self, now: &Spec, depends_on: &BTreeSet<TaskId>) -> Vec<&'static str> {
        let to = &self.spec;
        let fields = [
            ("title", now.title != to.title),
            ("body", now.body != to.body),
            ("type", now.task_type != to.task_type),
            ("kind", now.kind != to.kind),
            ("priority", now.priority != to.priority),
            ("risk", now.risk != to.risk),
            ("role", now.role != to.role),
            ("lane", now.lane != to.lane),
            ("sprint", now.sprint != to.sprint),
            ("tags", now.tags != to.tags),
            ("scope", now.scope != to.scope),
            ("parent", now.parent != to.parent),
            ("merge_order", now.merge_order != to.merge_order),
            ("depends_on", depends_on != &self.depends_on),
            ("checks", !(self.added.is_empty() && self.removed.is_empty())),
        ];
        fields.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
    }

    /// Everything that stands against it, at once: whose it is first, then what is wrong with it.
    fn findings(&self, context: &Context<'_>) -> Vec<Finding> {
        let mut found = self.not_theirs(context);
        let resulting = Spec { checks: self.added.clone(), ..self.spec.clone() };
        found.extend(add::findings(&resulting, &self.depends_on));
        found.extend(self.misplaced(context));
        // Two holders never share a path, whoever moves the fence between them.
        if context.task.assignment().is_some() && self.has("scope") {
            found.extend(scope::findings(&self.spec.scope, &context.facts.live_scopes));
        }
        found
    }

    fn has(&self, field: &str) -> bool {
        self.fields.contains(&field)
    }

    /// What the caller may not change, or nobody any more.
    fn not_theirs(&self, context: &Context<'_>) -> Vec<Finding> {
        let (task, caller) = (context.task, context.caller);
        let mut found = Vec::new();
        let ended = task.state.name().is_terminal();
        let late: Vec<&str> = self.fields.iter().filter(|field| !WORDS.contains(field)).copied().collect();
        if ended && !late.is_empty() {
            let (id, state, late) = (&task.id, task.state.name(), late.join(", "));
            let detail = format!("{id} is {state}: its {late} cannot be edited");
            found.push(Finding::new(Code::WrongState, detail).hint(format!("onus show {id}")));
        }
        if let Some(origin) = &task.spec.origin {
            let theirs: Vec<&str> =
                self.fields.iter().filter(|field| owned_outside(origin.as_str(), field)).copied().collect();
            if !theirs.is_empty() {
                let detail = format!("the {} of {} live in {origin}", theirs.join(", "), task.id);
                let hint = "edit them there: the next delivery or import brings them here";
                found.push(Finding::new(Code::NotPermitted, detail).hint(hint));
            }
        }
        if caller.is_human() {
            return found;
        }
        let people = |what: &str| {
            let detail = format!("{} is an agent; only a person may {what}", caller.handle);
            Finding::new(Code::HumanRequired, detail)
                .hint(format!("ask one: onus block {} --on person:@x, or onus note", task.id))
        };
        if ended {
            found.push(people("edit what has ended"));
        }
        let is_holder = context.holder().is_ok();
        if task.created_by != caller.handle
            && !(is_holder && self.fields.iter().all(|field| *field == "tags"))
        {
            let detail = match is_holder {
                true => format!(
                    "{} holds {} and did not ask for it: its tags are its own to edit",
                    caller.handle, task.id
                ),
                false => format!("{} did not ask for {}", caller.handle, task.id),
            };
            found.push(
                Finding::new(Code::NotPermitted, detail)
                    .hint(format!("say it in a note: onus note {} TEXT", task.id)),
            );
        }
        let guarded =
            |field: &&&str| GUARDED.contains(field) || ["depends_on", "checks", CONSTRAINTS].contains(field);
        let guarded: Vec<&str> = self.fields.iter().filter(guarded).copied().collect();
        if task.assignment().is_some() && !guarded.is_empty() {
            found.push(people(&format!("change the {} while somebody holds the task", guarded.join(", "))));
        }
        if !task.depends_on.is_subset(&self.depends_on) {
            found.push(people("remove a dependency"));
        }
        if !self.removed.is_empty() {
            found.push(people("remove a check"));
        }
        if severity(self.spec.risk) < severity(task.spec.risk) {
            found.push(people("lower the risk"));
        }
        found
    }

    /// Parents and dependencies that do not exist, or lead back to the task.
    fn misplaced(&self, context: &Context<'_>) -> Vec<Finding> {
        let (id, facts) = (&context.task.id, context.facts);
        let missing = facts.dependencies.iter().filter(|dependency| dependency.state.is_none());
        let mut found: Vec<Finding> = missing
            .map(|one| {
                let finding = Finding::new(Code::UnknownTask, format!("there is no task {}", one.id));
                finding.hint("onus list --state all")
            })
            .collect();
        for on in self.depends_on.difference(&context.task.depends_on) {
            if let Some(way) = queue::path(&facts.reachable, on, id) {
                let way: Vec<String> = way.iter().map(TaskId::to_string).collect();
                let detail = format!("{id} cannot depend on {on}: {id} -> {}", way.join(" -> "));
                found.push(Finding::new(Code::DependencyCycle, detail).hint(format!("onus show {on}")));
            }
        }
        if self.has("parent") && facts.ancestors.contains(id) {
            let way: Vec<String> = facts.ancestors.iter().map(TaskId::to_string).collect();
            let detail = format!("{id} would be a slice of itself: {id} -> {}", way.join(" -> "));
            found
                .push(Finding::new(Code::InvalidInput, detail).hint(format!("onus edit {id} --parent none")));
        }
        found
    }

    fn events(&self, context: &Context<'_>) -> Vec<Event> {
        let task = context.task;
        let before = Spec { checks: Vec::new(), ..task.spec.clone() };
        let mut events: Vec<Event> = Vec::new();
        if before != self.spec {
            events.push(
                Edited {
                    before: Box::new(before.clone()),
                    after: Box::new(self.spec.clone()),
                    renewal: None,
                    outside: None,
                }
                .into(),
            );
        }
        for on in self.depends_on.difference(&task.depends_on) {
            events.push(DependencyAdded { on: on.clone() }.into());
        }
        for on in task.depends_on.difference(&self.depends_on) {
            events.push(DependencyRemoved { on: on.clone() }.into());
        }
        for check in &self.added {
            events.push(CheckAdded { check: check.clone() }.into());
        }
        for check in &self.removed {
            events.push(CheckRemoved { check: check.id(), reason: EDITED.to_owned() }.into());
        }
        if self.has(CONSTRAINTS) {
            let before = held_to(context);
            events.push(Constrained { before, after: self.constraints.clone() }.into());
        }
        // The holder reads its notes: it is told there what it works on from now on.
        let others = task.assignment().filter(|held| held.assignee != context.caller.handle);
        if others.is_some() && !events.is_empty() {
            let text = Text::new(self.told(&before));
            events.push(Noted { text, renewal: None, handoff: false, said: None }.into());
        }
        events
    }

    fn told(&self, before: &Spec) -> String {
        let mut told = before.differences(&self.spec);
        told.extend(self.has("depends_on").then(|| {
            let on: Vec<String> = self.depends_on.iter().map(TaskId::to_string).collect();
            format!("depends_on: {}", on.join(" "))
        }));
        told.extend(self.added.iter().map(|check| format!("a new check: {}", check.command)));
        told.extend(self.removed.iter().map(|check| format!("no longer a check: {}", check.command)));
        told.extend(self.has(CONSTRAINTS).then(|| match self.constraints.as_slice() {
            [] => "nothing is held back any more".to_owned(),
            held_to => format!("you may do only: {}", constraint::words(held_to)),
        }));
        format!("The task was edited while you hold it.\n{}", told.join("\n"))
    }
}

/// What the present holder is held to.
fn held_to(context: &Context<'_>) -> Vec<Constraint> {
    context.task.assignment().map(|held| held.constraints.clone()).unwrap_or_default()
}

/// What the holder is to be held to. What the map demands of such work stays, whatever a person says.
fn allowed(context: &Context<'_>, words: Option<&[String]>) -> Result<Vec<Constraint>, Refusal> {
    let present = held_to(context);
    if words.is_none() {
        return Ok(present);
    }
    let id = &context.task.id;
    if context.task.assignment().is_none() {
        let detail = format!("nobody holds {id}: what is allowed is said with the grant");
        return Err(Refusal::new(Code::WrongState, detail)
            .hint(format!("onus claim {id} --for @WORKER --constraint KIND:VALUE")));
    }
    let present: Vec<String> = present.iter().map(ToString::to_string).collect();
    let (parsed, wrong): (Vec<_>, Vec<_>) = amended(&present, words)
        .into_iter()
        .filter(|word| word != "none")
        .map(|word| word.parse::<Constraint>())
        .partition(Result::is_ok);
    let mut found: Vec<Finding> =
        wrong.into_iter().filter_map(Result::err).map(|why| Finding::new(Code::InvalidInput, why)).collect();
    let mut wanted: Vec<Constraint> = parsed.into_iter().flatten().collect();
    wanted.sort();
    wanted.dedup();
    if wanted.len() > LIST_MAX {
        let detail = format!("{} constraints; the limit is {LIST_MAX}", wanted.len());
        found.push(Finding::new(Code::InvalidInput, detail));
    }
    let demanded = constraint::of_grant(context.facts.policy, &context.task.spec, &[]);
    let gone: Vec<Constraint> = demanded.into_iter().filter(|one| !wanted.contains(one)).collect();
    if !gone.is_empty() {
        let detail = format!("the identity map demands {} of such work", constraint::words(&gone));
        found.push(Finding::new(Code::NotPermitted, detail).hint("leave it, or change the map"));
    }
    match Refusal::from_findings(found) {
        Some(refusal) => Err(refusal),
        None => Ok(wanted),
    }
}

/// The words of an ask live in its own system; Redmine has the priority and the version as well (mirror.md).
fn owned_outside(origin: &str, field: &str) -> bool {
    match field {
        "title" | "body" => true,
        "priority" | "sprint" => origin.starts_with("redmine:"),
        _ => false,
    }
}

const fn severity(risk: Risk) -> u8 {
    match risk {
        Risk::Low => 0,
        Risk::Normal => 1,
        Risk::High => 2,
    }
}

/// The list that comes of words: those without a sign take its place, `+x` adds and `-x` takes away.
fn amended(present: &[String], words: Option<&[String]>) -> Vec<String> {
    let Some(words) = words else {
        return present.to_vec();
    };
    let is_signed = |word: &&String| word.starts_with(['+', '-']);
    let mut list: Vec<String> = match words.iter().all(|word| is_signed(&word)) && !words.is_empty() {
        true => present.to_vec(),
        false => Vec::new(),
    };
    for word in words {
        let word = word.trim();
        if let Some(gone) = word.strip_prefix('-') {
            list.retain(|one| one != gone.trim());
            continue;
        }
        let one = word.strip_prefix('+').unwrap_or(word).trim().to_owned();
        if !list.contains(&one) {
            list.push(one);
        }
    }
    list
}

fn dependencies(present: &BTreeSet<TaskId>, words: Option<&[String]>) -> Result<BTreeSet<TaskId>, Refusal> {
    let present: Vec<String> = present.iter().map(TaskId::to_string).collect();
    // `api-1` is API-1: a sign must find what it means.
    let words = words.map(|words| words.iter().map(|word| word.to_ascii_uppercase()).collect::<Vec<_>>());
    let (ids, wrong): (Vec<_>, Vec<_>) = amended(&present, words.as_deref())
        .into_iter()
        .map(|text| text.parse::<TaskId>())
        .partition(Result::is_ok);
    let wrong = wrong.into_iter().filter_map(Result::err).map(|why| Finding::new(Code::InvalidInput, why));
    match Refusal::from_findings(wrong.collect()) {
        Some(refusal) => Err(refusal),
        None => Ok(ids.into_iter().flatten().collect()),
    }
}
