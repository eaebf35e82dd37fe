//! One task for whoever asks whose work it was.

use crate::html::{Html, when};
use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::report::{GrantView, MomentView};
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::report::{Compliance, plain_words};
use onus_core::time::Timestamp;

pub(crate) fn page() -> Page {
    Page { path: "/audit/{id}", name: "Trace", key: None, ask }
}

#[derive(Debug, Template)]
#[template(path = "incident.html")]
struct IncidentPage {
    task: String,
    title: String,
    state: String,
    verdict: (&'static str, &'static str),
    forced: bool,
    grants: Vec<Had>,
    facts: Vec<(&'static str, usize)>,
    timeline: Vec<Moment>,
    /// There is more after this entry.
    next: Option<i64>,
    renewals: i64,
}

/// Who had it.
#[derive(Debug)]
struct Had {
    who: String,
    tier: String,
    place: String,
    by: Option<String>,
    from: Html,
    to: Html,
    end: String,
    verdict: (&'static str, &'static str),
    /// In words, and as it is on record.
    rule: String,
    exact: Option<String>,
    map: String,
    drifted: bool,
    base: String,
}

#[derive(Debug)]
struct Moment {
    seq: i64,
    at: Html,
    actor: String,
    verb: String,
    class: &'static str,
    said: String,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let task: TaskId = seen.param("id")?;
    let after = seen.word("after").map(str::parse).transpose();
    let after = after.map_err(|_| Refusal::invalid("after: it is the number of an entry"))?;
    let view = onus.report_incident(&task, after)?;
    let page = IncidentPage {
        task: view.task.to_string(),
        title: view.title.clone(),
        state: view.state.name().replace('_', " "),
        verdict: verdict(view.compliance),
        forced: view.forced,
        grants: view.grants.iter().map(|grant| Had::new(grant, seen.now)).collect(),
        facts: vec![
            ("grants", view.grants.len()),
            ("acts by force", view.forced_acts.len()),
            ("refusals", view.refusals.len()),
            ("late acts", view.late_acts.len()),
        ],
        timeline: view.timeline.iter().map(|moment| Moment::new(moment, seen.now)).collect(),
        next: view.next,
        renewals: view.renewals,
    };
    Ok(Drawn { title: format!("{task}: whose work it was"), main: rendered(&page)? })
}

fn verdict(compliance: Compliance) -> (&'static str, &'static str) {
    match compliance {
        Compliance::Within => ("good", "within policy"),
        Compliance::Outside => ("bad", "outside the policy"),
        Compliance::NoPolicy => ("warn", "no policy was in force"),
    }
}

impl Had {
    fn new(grant: &GrantView, now: Timestamp) -> Had {
        let brief = |text: &str| text.chars().take(12).collect::<String>();
        let map = grant.map_commit.as_deref().or(grant.map_hash.as_deref()).map(brief);
        Had {
            who: grant.assignee.to_string(),
            tier: grant.tier.clone().unwrap_or_default(),
            place: grant.workstation.to_string(),
            by: grant.by.as_ref().map(ToString::to_string),
            from: when(grant.at, now),
            to: grant.ended_at.map(|at| when(at, now)).unwrap_or_default(),
            end: grant.end_reason.as_deref().unwrap_or("still").replace('_', " "),
            verdict: verdict(grant.compliance),
            rule: grant.rule.as_deref().map(by_rule).unwrap_or_default(),
            exact: grant.rule.clone().filter(|rule| plain_words::rule(rule).is_some()),
            map: map.unwrap_or_default(),
            drifted: grant.named_today == Some(false),
            base: grant.base.as_ref().map(|base| brief(base.as_str())).unwrap_or_default(),
        }
    }
}

/// Which rule let it through.
fn by_rule(text: &str) -> String {
    match plain_words::rule(text) {
        Some((task_type, whom)) => format!("{task_type} goes to {whom}"),
        None => plain_words::plainly("claimed", text),
    }
}

impl Moment {
    fn new(moment: &MomentView, now: Timestamp) -> Moment {
        Moment {
            seq: moment.seq,
            at: when(moment.at, now),
            actor: moment.actor.to_string(),
            class: super::class(&moment.verb, moment.said.contains("by force")),
            verb: crate::html::verb(&moment.verb),
            said: crate::html::plainly(&moment.verb, &moment.said),
        }
    }
}
