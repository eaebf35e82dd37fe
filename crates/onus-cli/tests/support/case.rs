//! A call that must be refused, as data.

use super::{Answer, Site, is_soak};
use serde_json::Value;
use std::ffi::{OsStr, OsString};

/// A call and the codes it may be refused with, separated by `|`.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    words: Vec<OsString>,
    input: Vec<u8>,
    codes: &'static str,
}

/// Words are separated by blanks.
pub(crate) fn case(line: &str, codes: &'static str) -> Case {
    Case { words: line.split(' ').map(OsString::from).collect(), input: Vec::new(), codes }
}

/// `{}` in the line is replaced by one word with anything in it.
pub(crate) fn with(line: &str, value: impl AsRef<OsStr>, codes: &'static str) -> Case {
    let mut case = case(line, codes);
    for word in &mut case.words {
        if let Some((before, after)) = word.to_str().and_then(|word| word.split_once("{}")) {
            let parts = [OsStr::new(before), value.as_ref(), OsStr::new(after)];
            *word = parts.join(OsStr::new(""));
        }
    }
    case
}

impl Case {
    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Case {
        self.input = bytes.into();
        self
    }

    fn shown(&self) -> String {
        brief(&format!("onus {:?}", self.words))
    }
}

fn brief(text: &str) -> String {
    text.trim_end().chars().take(300).collect()
}

/// A site with `@ada-lovelace`, `@a1` at `ws-1`, T-1 open, T-2 held by `@a1`, T-3 complete.
pub(crate) fn furnished() -> Site {
    let site = Site::new();
    let agents = site.agents(2);
    for title in ["open", "held", "complete"] {
        site.add(title);
    }
    for (task, agent) in [("T-3", &agents[0]), ("T-2", &agents[0])] {
        site.ok(&["claim", task, "--as", &agent.handle, "--workstation", &agent.workstation]);
        if task == "T-3" {
            site.ok(&["complete", task, "--as", &agent.handle, "--resolution", "done"]);
        }
    }
    site
}

/// Neither stream may carry what a terminal would obey or a reader would be deceived by.
pub(crate) fn is_plain(answer: &Answer) -> bool {
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hostile = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || bidi(c);
    [&answer.stdout, &answer.stderr].iter().all(|stream| !stream.contains(hostile) && stream.len() < 20_000)
}

/// What no refusal may change. A refusal by policy is an entry in the task's chain, so its length is left out.
fn everything(site: &Site) -> Vec<Value> {
    let mut all = site.tasks();
    for task in &mut all {
        task["version"].take();
    }
    all.extend([site.ok(&["worker", "list"]), site.ok(&["workstation", "list"])]);
    all
}

/// Runs every case for a script and for a person; afterwards the store is as it was.
pub(crate) fn refuse(site: &Site, cases: &[Case]) {
    let before = everything(site);
    let mut wrong = Vec::new();
    // Most are refused before the store is asked: where that is not the embedded one, every third shows that it is the same.
    let apart = if site.database.is_some() && !is_soak() { 3 } else { 1 };
    for case in cases.iter().step_by(apart) {
        let mut words = case.words.clone();
        let person = site.feed(&words, case.input.clone());
        words.push("--json".into());
        let script = site.feed(&words, case.input.clone());
        for answer in [&person, &script].into_iter().filter(|answer| !is_plain(answer)) {
            wrong.push(format!("{}: hostile or endless words: {:?}", case.shown(), brief(&answer.stderr)));
        }
        let answered = if script.is_ok() { "ok".to_owned() } else { script.code() };
        if !case.codes.split('|').any(|code| code == answered) {
            wrong.push(format!(
                "{}: {answered}, not {}: {}",
                case.shown(),
                case.codes,
                script.stderr.trim_end()
            ));
        } else if person.exit != script.exit || !person.stdout.is_empty() || person.stderr.trim().is_empty() {
            wrong.push(format!(
                "{}: people are answered differently: {:?}",
                case.shown(),
                brief(&person.stderr)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert_eq!(everything(site), before);
    site.assert_sound();
}
