//! What the template of a task is filled with.

use super::handed::Handed;
use crate::form::FORMS;
use crate::html::{Html, when};
use crate::limits::LimitRow;
use askama::Template;
use onus_app::allowed_actions::Choice;
use onus_app::output::StepView;
use onus_app::view::{CheckRunView, EntryView, StoryView, TaskView};
use onus_core::code::Code;
use onus_core::evidence::Review;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::{CheckState, StateName};
use onus_core::time::{Millis, Timestamp};

#[derive(Debug, Template)]
#[template(path = "task.html")]
pub(super) struct TaskPage {
    pub(super) story: StoryView,
    pub(super) body: Option<Html>,
    pub(super) ring: Option<Html>,
    /// Whether a person or an agent holds it.
    pub(super) holder_kind: &'static str,
    pub(super) origin: Option<String>,
    pub(super) origin_link: Option<String>,
    /// The commit that was checked last: what a completion is likely to be about.
    pub(super) tried: Option<String>,
    pub(super) actions: Vec<Action>,
    /// Whether there is anybody to tick criteria, and anything left to tick.
    pub(super) ticks: bool,
    pub(super) graph: Option<Html>,
    pub(super) checks: Vec<CheckLine>,
    pub(super) limits: Vec<LimitRow>,
    pub(super) notes: Vec<NoteLine>,
    /// What another system says of it, one line each.
    pub(super) extra: Vec<(String, String)>,
    pub(super) handoff: Option<Handed>,
    pub(super) commits: Vec<(String, String)>,
    /// What it is verified for, together with others.
    pub(super) milestones: Vec<String>,
    pub(super) reviews: Vec<Review>,
    pub(super) printed: Option<Printed>,
    pub(super) seal: Seal,
    pub(super) entries: Vec<EntryView>,
    /// Where what came before is told, and what came last.
    pub(super) earlier: Option<String>,
    pub(super) latest: Option<String>,
    pub(super) now: Timestamp,
    pub(super) person: bool,
    /// The ask as it was written.
    pub(super) raw_body: String,
    pub(super) waits_for: Option<String>,
    pub(super) facts: Vec<Fact>,
    /// What it waits for and what waits for it, by title.
    pub(super) kin: Vec<(String, String, StateName)>,
}

/// What a task says of itself and a person may change.
#[derive(Debug)]
pub(super) struct Fact {
    /// The field of the call.
    pub(super) field: &'static str,
    pub(super) label: &'static str,
    /// As the field is filled with it.
    pub(super) value: String,
    pub(super) shown: String,
    pub(super) is_list: bool,
}

impl Fact {
    fn word(field: &'static str, label: &'static str, word: Option<String>) -> Fact {
        let value = word.unwrap_or_default();
        Fact { field, label, shown: value.clone(), value, is_list: false }
    }

    fn list(field: &'static str, label: &'static str, words: &[String]) -> Fact {
        Fact { field, label, value: words.join("\n"), shown: words.join(", "), is_list: true }
    }

    /// What stands on each line of a list.
    fn words(&self) -> Vec<&str> {
        self.value.lines().collect()
    }

    pub(super) fn all(task: &TaskView) -> Vec<Fact> {
        let waits: Vec<String> = task.depends_on.iter().map(ToString::to_string).collect();
        let checks: Vec<String> = task.checks.iter().map(|check| check.command.clone()).collect();
        vec![
            Fact::word("priority", "Priority", Some(task.priority.to_string())),
            Fact::word("kind", "Kind", Some(task.kind.clone())),
            Fact::word("type", "Type", task.task_type.as_ref().map(ToString::to_string)),
            Fact::list("tags", "Labels", &task.tags),
            Fact::word("sprint", "Sprint", task.sprint.clone()),
            Fact::word("role", "Role", task.role.as_ref().map(ToString::to_string)),
            Fact::word("lane", "Lane", task.lane.map(|lane| lane.to_string())),
            Fact::word("risk", "Risk", Some(task.risk.name().to_owned())),
            Fact::list("depends_on", "Waits for", &waits),
            Fact::list("scope", "Scope", &task.scope),
            Fact::word("parent", "Part of", task.parent.as_ref().map(ToString::to_string)),
            Fact::list("checks", "Checks", &checks),
        ]
    }
}

/// The end of what the last session printed.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) session: i64,
    pub(super) worker: String,
    pub(super) steps: Vec<StepView>,
    /// Where to go on.
    pub(super) next: i64,
    pub(super) closed: bool,
}

/// Something that could be done with the task.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) verb: &'static str,
    pub(super) title: &'static str,
    pub(super) refusal: Option<Why>,
    /// A person may do it all the same, by force.
    pub(super) forcible: bool,
    /// Only with the lease that this browser may not have.
    pub(super) needs_lease: bool,
    /// Where it does not, a person has force.
    pub(super) forced_without_lease: bool,
}

/// Why not.
#[derive(Debug)]
pub(super) struct Why {
    pub(super) code: Code,
    pub(super) detail: String,
    pub(super) hint: Option<String>,
    pub(super) findings: Vec<Finding>,
}

impl Action {
    pub(super) fn new(choice: &Choice, person: bool) -> Action {
        let form = FORMS.iter().find(|form| form.verb == choice.verb);
        let refusal = choice.refusal.clone();
        // Force lifts what protects the holder and the order of work; not what a state has no way out of.
        let lifted = refusal.as_ref().is_some_and(|refusal| {
            !matches!(refusal.code, Code::WrongState | Code::NotClaimable | Code::HumanRequired)
        });
        let needs_lease = matches!(choice.verb, "renew" | "release" | "block" | "unblock" | "complete");
        let can_force = person && form.is_some_and(|form| form.force);
        Action {
            needs_lease,
            forced_without_lease: needs_lease && can_force && refusal.is_none(),
            verb: choice.verb,
            title: form.map_or(choice.verb, |form| form.title),
            forcible: person && lifted && form.is_some_and(|form| form.force),
            refusal: refusal.map(|Refusal { code, detail, hint, findings, .. }| Why {
                code,
                detail,
                hint,
                findings,
            }),
        }
    }
}

#[derive(Debug)]
pub(super) struct CheckLine {
    pub(super) command: String,
    pub(super) proposed: bool,
    pub(super) verdict: &'static str,
    pub(super) ran: Option<ShownRun>,
}

#[derive(Debug)]
pub(super) struct ShownRun {
    pub(super) at: Html,
    pub(super) by: String,
    pub(super) took: String,
    pub(super) commit: Option<String>,
    pub(super) dirty: bool,
    pub(super) stated: bool,
    pub(super) output: String,
}

impl CheckLine {
    fn icon(&self) -> &'static str {
        match self.verdict {
            "passed" => "circle-check",
            "failed" | "timed_out" => "circle-x",
            _ => "circle-dashed",
        }
    }

    pub(super) fn new(check: CheckRunView, now: Timestamp) -> CheckLine {
        CheckLine {
            command: check.command,
            proposed: check.state == CheckState::Proposed,
            verdict: check.run.as_ref().map_or("not run", |run| run.verdict.name()),
            ran: check.run.map(|run| ShownRun {
                at: when(run.at, now),
                by: run.by,
                took: Millis(run.took_ms).in_words(),
                commit: run.commit.map(|commit| commit.to_string()),
                dirty: run.dirty,
                stated: run.stated,
                output: run.output,
            }),
        }
    }
}

#[derive(Debug)]
pub(super) struct NoteLine {
    pub(super) place: Option<String>,
    pub(super) kind: String,
    pub(super) by: String,
    pub(super) at: Html,
    pub(super) text: Html,
}

/// What a look at the task's chain showed.
#[derive(Debug)]
pub(super) enum Seal {
    Holds { entries: usize },
    Broken { seq: i64 },
}

/// A commit as people name it.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
