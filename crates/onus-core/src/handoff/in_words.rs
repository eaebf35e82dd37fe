//! A handoff as its reader wants it: what was said, then how the work stands. The document itself has the rest.

use super::{Handoff, Standing};
use crate::report::plain_words::blocker;
use crate::text::counted;

impl Handoff {
    /// What whoever had it said to whoever goes on; the summary has no name.
    pub fn said(&self) -> Vec<(&'static str, String)> {
        let summary = self.summary.iter().map(|text| ("", text.clone()));
        let next = self.next_slice.iter().map(|text| ("Next", text.clone()));
        let risks = self.risks.iter().map(|text| ("Risk", text.clone()));
        let waits = self.blockers.iter().map(|on| ("Waits for", blocker(on).to_owned()));
        summary.chain(next).chain(risks).chain(waits).collect()
    }

    /// `gave it back, in ws-1 · 2 commits · 1 check passed`
    pub fn stands(&self) -> String {
        let passed = self.tests_run.iter().filter(|run| run.verdict == "passed").count();
        let failed = self.tests_run.len() - passed;
        let commits = self.commits.len() + self.left_out.commits;
        let dirty = self.dirty.len() + self.left_out.dirty;
        let how = match self.status {
            Standing::InProgress => "goes on with it",
            Standing::Blocked => "had to stop",
            Standing::Released => "gave it back",
            Standing::TakenOver => "had it until somebody took it over",
            Standing::Done => "finished it",
        };
        let mut facts = vec![format!("{how}, in {}", self.workstation)];
        let mut add = |count: usize, one: &str, what: &str| {
            if count > 0 {
                facts.push(format!("{}{what}", counted(count, one)));
            }
        };
        add(commits, "commit", "");
        add(passed, "check", " passed");
        add(failed, "check", " not passed");
        add(dirty, "changed file", " in no commit");
        facts.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handoff::LeftOut;

    #[test]
    fn a_handoff_is_told_by_what_matters() {
        let text = r#"{"format":"onus-handoff/1","task":"API-1","status":"blocked","depends_on_satisfied":true,"depends_on":[],
            "commits":[],"files":[],"tests_run":[{"command":"make","verdict":"failed","commit":null,"at":"2026-11-16T08:00:00Z"}],"risks":["the cache"],
            "blockers":["external:the bank"],"next_slice":"tests","lane":null,"summary":"Half of it","by":"@b","at":"2026-11-16T08:00:00Z","epoch":1,
            "workstation":"ws-1","branch":null,"base":null,"head":null,"dirty":[],"salvage":null}"#;
        let mut handoff = Handoff::parse(text).unwrap();
        handoff.left_out = LeftOut { commits: 2, ..LeftOut::default() };
        assert_eq!(handoff.stands(), "had to stop, in ws-1 · 2 commits · 1 check not passed");
        let said: Vec<String> = handoff.said().iter().map(|(what, text)| format!("{what}: {text}")).collect();
        assert_eq!(said, [": Half of it", "Next: tests", "Risk: the cache", "Waits for: the bank"]);
    }
}
