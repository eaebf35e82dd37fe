//! What the template of a task is filled with.

use crate::form::FORMS;
use crate::html::{Html, when};
use askama::Template;
use onus_app::allowed_actions::Choice;
use onus_app::view::{CheckRunView, EntryView, StoryView};
use onus_core::code::Code;
use onus_core::evidence::Review;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::CheckState;
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
    pub(super) graph: Option<Html>,
    pub(super) checks: Vec<CheckLine>,
    pub(super) notes: Vec<NoteLine>,
    /// What another system says of it, one line each.
    pub(super) extra: Vec<(String, String)>,
    pub(super) handoff: Option<Html>,
    pub(super) commits: Vec<(String, String)>,
    /// What it is verified for, together with others.
    pub(super) milestones: Vec<String>,
    pub(super) reviews: Vec<Review>,
    pub(super) seal: Seal,
    pub(super) entries: Vec<EntryView>,
    /// Where what came before is told, and what came last.
    pub(super) earlier: Option<String>,
    pub(super) latest: Option<String>,
    pub(super) now: Timestamp,
}

/// Something that could be done with the task.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) verb: &'static str,
    pub(super) title: &'static str,
    pub(super) refusal: Option<Why>,
    /// A person may do it all the same, by force.
    pub(super) forcible: bool,
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
        Action {
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
