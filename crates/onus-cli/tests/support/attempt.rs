//! One attempt at a completion, told in short lines.

use super::{Answer, Site, finish, start, text};
use serde_json::Value;
use std::process::Command;

const CAUSE: &str = "--root-cause 'the counter was never reset' --owner src/login.rs";

/// Words by blanks; single quotes hold some together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    let mut empty = false;
    for c in line.chars() {
        match c {
            '\'' => (quoted, empty) = (!quoted, true),
            ' ' if !quoted => {
                words.push(String::new());
                empty = false;
            }
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty() || empty);
    words
}

/// One task, and what is known about it.
pub(crate) struct Attempt<'a> {
    site: &'a Site,
    pub(crate) task: String,
    token: String,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(site: &'a Site, how: &str) -> Attempt<'a> {
        let task = if how.starts_with('{') {
            site.import(how.to_owned() + "\n");
            text(&site.tasks().last().unwrap()["id"]).to_owned()
        } else {
            let (who, flags) =
                how.strip_prefix("own").map_or((site.person.as_str(), how), |own| ("@a1", own));
            let flags = words(flags.trim());
            let mut add = vec!["add", "work", "--as", who];
            add.extend(flags.iter().map(String::as_str));
            text(&site.ok(&add)["task"]["id"]).to_owned()
        };
        let claimed = site.ok(&["claim", &task, "--as", "@a1", "--workstation", "ws-1"]);
        Attempt { site, task, token: text(&claimed["lease"]["token"]).to_owned() }
    }

    fn check(&self) -> String {
        let checks = self.site.ok(&["check", &self.task, "--list"])["checks"].clone();
        checks[0]["id"].as_str().unwrap_or("-").to_owned()
    }

    /// What a step says once its names are replaced.
    fn said(&self, step: &str) -> String {
        let secret = self.token.rsplit_once('.').unwrap().1;
        let epoch: i64 = self.token.split('.').nth(1).unwrap().parse().unwrap();
        let mut said = step.to_owned();
        for (name, value) in [
            ("$approve", "review T --workstation ws-2 --approve --as-implemented".to_owned()),
            ("$cause", CAUSE.to_owned()),
            ("$forged", format!("1.{epoch}.{}", "0".repeat(32))),
            ("$earlier", format!("1.{}.{secret}", epoch - 1)),
            ("$generation", format!("2.{epoch}.{secret}")),
            ("$token", self.token.clone()),
        ] {
            said = said.replace(name, &value);
        }
        if said.contains("$check") {
            said = said.replace("$check", &self.check());
        }
        let named = |word: &str| match word {
            "T" => self.task.clone(),
            word if word.ends_with("-T") => format!("{}{}", &word[..word.len() - 1], self.task),
            word => word.to_owned(),
        };
        said.split(' ').map(named).collect::<Vec<_>>().join(" ")
    }

    fn step(&self, step: &str) -> Answer {
        let said = self.said(step);
        if let Some(line) = said.strip_prefix("sh ") {
            let mut shell = Command::new("sh");
            return finish(start(self.site.surroundings(&mut shell).args(["-c", line])));
        }
        let words = words(&said);
        let (first, rest) = words.split_first().unwrap();
        if first == "git" {
            let mut git = Command::new("git");
            return finish(start(self.site.surroundings(&mut git).args(rest)));
        }
        let who = if first == "@p" { &self.site.person } else { first };
        let mut args: Vec<&str> = rest.iter().map(String::as_str).collect();
        if who != "@-" {
            args.extend(["--as", who]);
        }
        args.push("--json");
        self.site.run(&args)
    }

    /// Everything that a high-risk task asks for but the review.
    fn evidence(&self) {
        for (kind, command) in [("code-anchor", "test -f proof"), ("runtime", "test -s proof")] {
            self.site.by_person(&["check", &self.task, "--add", command, "--kind", kind]);
        }
        self.site.ok(&["check", &self.task, "--as", "@a1"]);
    }

    /// The codes with which the last step is refused.
    pub(crate) fn refused(&self, steps: &[&str]) -> String {
        let (last, before) = steps.split_last().unwrap();
        for step in before {
            if *step == "$evidence" {
                self.evidence();
                continue;
            }
            let may_fail = step.strip_prefix("? ");
            let answer = self.step(may_fail.unwrap_or(step));
            assert!(may_fail.is_some() || answer.is_ok(), "{step}: {answer:#?}");
        }
        let answer = self.step(last);
        if answer.is_ok() {
            return "ok".to_owned();
        }
        let error: Value = serde_json::from_str(&answer.stderr).unwrap_or_else(|_| panic!("{answer:#?}"));
        let findings = error["error"]["findings"].as_array().unwrap();
        match findings.as_slice() {
            [] => text(&error["error"]["code"]).to_owned(),
            some => some.iter().map(|one| text(&one["code"])).collect::<Vec<_>>().join("+"),
        }
    }

    /// The workstation and the repository are as before.
    pub(crate) fn clear(&self) {
        let quarantined = self.site.ok(&["workstation", "list"]);
        let ill =
            quarantined["workstations"].as_array().unwrap().iter().any(|one| one["state"] == "quarantined");
        self.site.by_person(&["drop", &self.task, "--reason", "a cheat"]);
        if ill {
            self.site.by_person(&["workstation", "restore", "ws-1"]);
        }
        self.site.git(&["clean", "-fdq"]);
    }
}
