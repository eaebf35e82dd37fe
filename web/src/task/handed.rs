//! The last handoff as its reader wants it: what was said, then how the work stands. The document itself is below.

use crate::html::{Html, blocker, when};
use crate::markdown::markdown;
use onus_app::handoff::HandoffView;
use onus_core::handoff::{Handoff, Standing};
use onus_core::time::Timestamp;

#[derive(Debug)]
pub(super) struct Handed {
    pub(super) by: String,
    pub(super) at: Option<Html>,
    /// How the work stands, in words.
    pub(super) stands: String,
    /// What whoever had it said to whoever goes on.
    pub(super) said: Vec<(&'static str, String)>,
    pub(super) document: Html,
}

impl Handed {
    pub(super) fn new(view: &HandoffView, now: Timestamp) -> Handed {
        let Some(handoff) = &view.handoff else {
            let text = view.text.as_deref().unwrap_or_default();
            return Handed {
                by: String::new(),
                at: None,
                stands: String::new(),
                said: vec![("", text.to_owned())],
                document: Html::default(),
            };
        };
        Handed {
            by: handoff.by.to_string(),
            at: Some(when(handoff.at, now)),
            stands: stands(handoff),
            said: said(handoff),
            document: markdown(&handoff.markdown()),
        }
    }
}

fn said(handoff: &Handoff) -> Vec<(&'static str, String)> {
    let summary = handoff.summary.iter().map(|text| ("", text.clone()));
    let next = handoff.next_slice.iter().map(|text| ("Next", text.clone()));
    let risks = handoff.risks.iter().map(|text| ("Risk", text.clone()));
    let waits = handoff.blockers.iter().map(|on| ("Waits for", blocker(on).to_owned()));
    summary.chain(next).chain(risks).chain(waits).collect()
}

fn stands(handoff: &Handoff) -> String {
    let passed = handoff.tests_run.iter().filter(|run| run.verdict == "passed").count();
    let failed = handoff.tests_run.len() - passed;
    let commits = handoff.commits.len() + handoff.left_out.commits;
    let dirty = handoff.dirty.len() + handoff.left_out.dirty;
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let how = match handoff.status {
        Standing::InProgress => "goes on with it",
        Standing::Blocked => "had to stop",
        Standing::Released => "gave it back",
        Standing::TakenOver => "went silent, and somebody took it over",
        Standing::Done => "finished it",
    };
    let facts = [
        Some(format!("{how}, in {}", handoff.workstation)),
        counted(commits, "commit", "commits"),
        counted(passed, "check passed", "checks passed"),
        counted(failed, "check not passed", "checks not passed"),
        counted(dirty, "changed file in no commit", "changed files in no commit"),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use onus_core::handoff::LeftOut;

    #[test]
    fn a_handoff_is_told_by_what_matters() {
        let text = r#"{"format":"onus-handoff/1","task":"API-1","status":"blocked","depends_on_satisfied":true,"depends_on":[],
            "commits":[],"files":[],"tests_run":[{"command":"make","verdict":"failed","commit":null,"at":"2026-11-16T08:00:00Z"}],"risks":["the cache"],
            "blockers":["external:the bank"],"next_slice":"tests","lane":null,"summary":"Half of it","by":"@b","at":"2026-11-16T08:00:00Z","epoch":1,
            "workstation":"ws-1","branch":null,"base":null,"head":null,"dirty":[],"salvage":null}"#;
        let mut handoff = Handoff::parse(text).unwrap();
        handoff.left_out = LeftOut { commits: 2, ..LeftOut::default() };
        assert_eq!(stands(&handoff), "had to stop, in ws-1 · 2 commits · 1 check not passed");
        let said = said(&handoff);
        let said: Vec<String> = said.iter().map(|(what, text)| format!("{what}: {text}")).collect();
        assert_eq!(said, [": Half of it", "Next: tests", "Risk: the cache", "Waits for: the bank"]);
    }
}
