//! What its own system has changed about a task since it came in, and what of that becomes true here (mission E5).
//!
//! Three words are compared: what was said last time, what is said now, and the row. Only what changed there is taken over,
//! so that the same file twice changes nothing, whatever was edited here in between.

use crate::event::{
    Added, Archived, CheckAdded, CheckRemoved, DependencyAdded, DependencyRemoved, Edited, Event, Followed,
    Noted, Outside,
};
use crate::id::TaskId;
use crate::task::{Blocker, Check, CheckState, Criterion, Spec, StateName, Task};
use crate::text::Text;
use std::collections::BTreeSet;

/// What its own system says of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    pub spec: Spec,
    pub depends_on: BTreeSet<TaskId>,
    pub archived: Option<Archived>,
    pub blocked: Option<Blocker>,
}

impl Heard {
    /// What the record has of it: the beginning, and each time that it was refreshed.
    pub fn tell(heard: Option<Heard>, event: Event) -> Option<Heard> {
        match (event, heard) {
            (Event::Added(added), _) => Some(Heard::from(added)),
            (Event::Edited(edited), Some(heard)) => Some(match edited.outside {
                Some(outside) => Heard { spec: outside.spec, depends_on: outside.depends_on, ..heard },
                None => heard,
            }),
            (Event::Followed(Followed { archived, blocked }), Some(heard)) => {
                Some(Heard { archived, blocked, ..heard })
            }
            (_, heard) => heard,
        }
    }

    fn stand(&self) -> StateName {
        match (&self.archived, &self.blocked) {
            (Some(end), _) => end.state,
            (None, Some(_)) => StateName::Blocked,
            (None, None) => StateName::Open,
        }
    }
}

impl From<Added> for Heard {
    fn from(added: Added) -> Heard {
        let Added { spec, depends_on, archived, blocked, .. } = added;
        Heard { spec, depends_on, archived, blocked }
    }
}

/// What stays otherwise here than there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    pub field: &'static str,
    pub here: String,
    pub there: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    pub events: Vec<Event>,
    pub drift: Vec<Drift>,
}

const REASON: &str = "it is gone where the task comes from";

/// What a lease was granted by waits for its end.
const UNDER_LEASE: &[&str] =
    &["type", "kind", "role", "lane", "scope", "risk", "parent", "merge_order", "depends_on", "checks"];
/// What may still be put right when a task has ended here.
const WORDS: &[&str] = &["title", "body", "tags", "sprint", "extra"];

impl Task {
    /// Nobody has begun with it here, so how far it is, its own system says.
    pub fn follows_outside(&self) -> bool {
        use crate::task::State;
        self.epoch == 0
            && match &self.state {
                State::Open | State::Blocked { held: None, .. } => true,
                State::Complete(_) | State::Dropped(_) => self.archived,
                State::InProgress(_) | State::Blocked { held: Some(_), .. } => false,
            }
    }

    /// Whether a field is the outside's to change now.
    fn takes(&self, field: &str) -> bool {
        if self.assignment().is_some() {
            return !UNDER_LEASE.contains(&field);
        }
        self.archived || !self.state.name().is_terminal() || WORDS.contains(&field)
    }
}

/// Whether the row already says what is said now, so that nothing needs to be compared.
pub fn is_current(task: &Task, now: &Heard) -> bool {
    let commands =
        |spec: &Spec| -> Vec<String> { spec.checks.iter().map(|one| one.command.clone()).collect() };
    let criteria =
        |spec: &Spec| -> Vec<String> { spec.criteria.iter().map(|one| one.text.clone()).collect() };
    let bare = |spec: &Spec| Spec { checks: Vec::new(), criteria: Vec::new(), ..spec.clone() };
    let stands = match (&task.state, &now.archived, &now.blocked) {
        (crate::task::State::Open, None, None) => true,
        (crate::task::State::Blocked { on, held: None }, None, Some(blocked)) => on == blocked,
        // The words of its end are not in the row.
        _ => false,
    };
    stands
        && task.depends_on == now.depends_on
        && commands(&task.spec) == commands(&now.spec)
        && criteria(&task.spec) == criteria(&now.spec)
        && bare(&task.spec) == Spec { origin: task.spec.origin.clone(), ..bare(&now.spec) }
}

/// What becomes of a task of which its own system said `before` and says `now`.
pub fn refresh(task: &Task, before: &Heard, now: &Heard) -> Refreshed {
    let mut merge = Comparison { task, drift: Vec::new(), heard: before.clone(), after: task.spec.clone() };
    merge.fields(&before.spec, &now.spec);
    let mut events = Vec::new();
    let checks = merge.checks(&before.spec.checks, &now.spec.checks);
    let depends_on = merge.dependencies(&before.depends_on, &now.depends_on);
    let Comparison { drift, heard, after, .. } = merge;
    let mut refreshed = Refreshed { events: Vec::new(), drift };
    if (&heard.spec, &heard.depends_on) != (&before.spec, &before.depends_on) {
        let row = Spec { checks: Vec::new(), ..task.spec.clone() };
        let after = Spec { checks: Vec::new(), ..after };
        let told = task.assignment().map(|_| row.differences(&after)).filter(|told| !told.is_empty());
        let outside = Outside { spec: heard.spec, depends_on: heard.depends_on };
        events.push(
            Edited {
                before: Box::new(row),
                after: Box::new(after),
                renewal: None,
                outside: Some(Box::new(outside)),
            }
            .into(),
        );
        events.extend(checks);
        events.extend(depends_on);
        events.extend(told.map(|told| {
            let text =
                format!("The task was changed where it comes from, while you hold it.\n{}", told.join("\n"));
            Event::from(Noted { text: Text::new(text), renewal: None, handoff: false, said: None })
        }));
    }
    if (&before.archived, &before.blocked) != (&now.archived, &now.blocked) {
        if task.follows_outside() {
            events.push(Followed { archived: now.archived.clone(), blocked: now.blocked.clone() }.into());
        } else if task.state.name() != now.stand() {
            refreshed.drift.push(Drift {
                field: "state",
                here: task.state.name().to_string(),
                there: now.stand().to_string(),
            });
        }
    }
    refreshed.events = events;
    refreshed
}

/// The row on its way, and what is then on record as said.
struct Comparison<'a> {
    task: &'a Task,
    drift: Vec<Drift>,
    heard: Heard,
    after: Spec,
}

impl Comparison<'_> {
    fn fields(&mut self, before: &Spec, now: &Spec) {
        macro_rules! take {
            ($($field:ident = $name:literal),+) => { $(
                if before.$field != now.$field {
                    if self.task.takes($name) {
                        self.after.$field = now.$field.clone();
                        self.heard.spec.$field = now.$field.clone();
                    } else {
                        let later = Spec { $field: now.$field.clone(), ..before.clone() };
                        self.waits($name, before.differences(&later).join("; "));
                    }
                }
            )+ };
        }
        take!(
            title = "title",
            body = "body",
            task_type = "type",
            kind = "kind",
            priority = "priority",
            risk = "risk",
            role = "role",
            lane = "lane",
            sprint = "sprint",
            tags = "tags",
            scope = "scope",
            parent = "parent",
            merge_order = "merge_order",
            extra = "extra"
        );
        let texts =
            |spec: &Spec| -> Vec<String> { spec.criteria.iter().map(|one| one.text.clone()).collect() };
        if texts(before) != texts(now) && self.task.takes("criteria") {
            let was = &self.task.spec.criteria;
            let kept = |one: &Criterion| was.iter().find(|had| had.text == one.text).unwrap_or(one).clone();
            self.after.criteria = now.criteria.iter().map(kept).collect();
            self.heard.spec.criteria = now.criteria.clone();
        }
    }

    fn waits(&mut self, field: &'static str, there: String) {
        let here = match self.task.assignment() {
            Some(held) => format!("kept while {} holds the task", held.assignee),
            None => format!("kept: the task is {}", self.task.state.name()),
        };
        self.drift.push(Drift { field, here, there });
    }

    /// A command from elsewhere waits for a person's approval; one that a person has approved stays.
    fn checks(&mut self, before: &[Check], now: &[Check]) -> Vec<Event> {
        let has = |list: &[Check], one: &Check| list.iter().any(|other| other.command == one.command);
        let news: Vec<&Check> = now.iter().filter(|one| !has(before, one)).collect();
        let gone: Vec<&Check> = before.iter().filter(|one| !has(now, one)).collect();
        if news.is_empty() && gone.is_empty() {
            return Vec::new();
        }
        if !self.task.takes("checks") {
            self.waits("checks", news.iter().map(|one| one.command.as_str()).collect::<Vec<_>>().join("; "));
            return Vec::new();
        }
        self.heard.spec.checks = now.to_vec();
        let here = &self.task.spec.checks;
        let mut events: Vec<Event> = Vec::new();
        for check in news.into_iter().filter(|one| !has(here, one)) {
            events.push(CheckAdded { check: Check { state: CheckState::Proposed, ..check.clone() } }.into());
        }
        let proposed = here.iter().filter(|one| one.state == CheckState::Proposed);
        for check in proposed.filter(|one| gone.iter().any(|other| other.command == one.command)) {
            events.push(CheckRemoved { check: check.id(), reason: REASON.to_owned() }.into());
        }
        events
    }

    fn dependencies(&mut self, before: &BTreeSet<TaskId>, now: &BTreeSet<TaskId>) -> Vec<Event> {
        if before == now {
            return Vec::new();
        }
        if !self.task.takes("depends_on") {
            let names: Vec<String> = now.iter().map(TaskId::to_string).collect();
            self.waits("depends_on", names.join(" "));
            return Vec::new();
        }
        self.heard.depends_on = now.clone();
        let here = &self.task.depends_on;
        let news = now.difference(before).filter(|on| !here.contains(on));
        let gone = before.difference(now).filter(|on| here.contains(on));
        let added = news.map(|on| DependencyAdded { on: on.clone() }.into());
        added.chain(gone.map(|on| DependencyRemoved { on: on.clone() }.into())).collect()
    }
}
