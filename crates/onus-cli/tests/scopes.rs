//! Many processes claim tasks whose scopes overlap: never two live assignments that share a path (mission C7).

use crate::support::{Agent, Answer, Site, at_once, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// Globs, and which of a few sample paths lie in each: written out by hand, so that the test asks nobody. Two globs
/// overlap exactly if they share a sample.
const SCOPES: [(&str, &[&str]); 8] = [
    ("src/**", &["src/login/form.rs", "src/login/help.md", "src/api/v1.rs", "src/api/README.md"]),
    ("src/login", &["src/login/form.rs", "src/login/help.md"]),
    ("src/{login,api}/*.rs", &["src/login/form.rs", "src/api/v1.rs"]),
    ("src/a*/**", &["src/api/v1.rs", "src/api/README.md"]),
    ("**/*.md", &["src/login/help.md", "src/api/README.md", "docs/index.md", "MAIN.md"]),
    ("docs/", &["docs/index.md"]),
    ("[!dst]*", &["MAIN.md", "Makefile"]),
    ("M*", &["MAIN.md", "Makefile"]),
];

/// A glob that meets none of the others.
const OUTSIDE: &str = "tests/**/*.rs";

fn samples(glob: &str) -> &'static [&'static str] {
    SCOPES.iter().find(|(text, _)| *text == glob).map_or(&[], |(_, samples)| samples)
}

fn add(site: &Site, glob: &str) -> (String, String) {
    let added = site.by_person(&["add", &format!("work on {glob}"), "--scope", glob]);
    (text(&added["task"]["id"]).to_owned(), glob.to_owned())
}

/// Two tasks of every scope: their globs by id.
fn tasks(site: &Site) -> BTreeMap<String, String> {
    SCOPES.iter().chain(&SCOPES).map(|(glob, _)| add(site, glob)).collect()
}

fn claims(site: &Site, which: &[(&Agent, &str)]) -> Vec<Answer> {
    at_once(which.iter().map(|(agent, task)| {
        site.command(&["claim", task, "--as", &agent.handle, "--workstation", &agent.workstation, "--json"])
    }))
}

/// Who holds each sample path, by the public list alone. No path may have two holders.
fn holders(site: &Site) -> BTreeMap<&'static str, String> {
    let mut holders = BTreeMap::new();
    let live = site.ok(&["list", "--state", "in_progress", "--limit", "500"]);
    for task in live["tasks"].as_array().unwrap() {
        let id = text(&task["id"]);
        for path in task["scope"].as_array().unwrap().iter().flat_map(|glob| samples(text(glob))) {
            let other = holders.insert(*path, id.to_owned());
            assert_eq!(other, None, "{path} is in the scope of {id}, too");
        }
    }
    holders
}

fn release_all(site: &Site) {
    let live = site.ok(&["list", "--state", "in_progress", "--limit", "500"]);
    for task in live["tasks"].as_array().unwrap() {
        site.by_person(&["release", text(&task["id"]), "--force", "--reason", "the next round"]);
    }
}

#[test]
fn sixteen_claims_at_once_never_share_a_path() {
    let site = Site::new();
    let agents = site.agents(17);
    let tasks = tasks(&site);
    let (outside, _) = add(&site, OUTSIDE);
    for round in 0..3 {
        let mut which: Vec<(&Agent, &str)> = agents.iter().zip(tasks.keys().map(String::as_str)).collect();
        which.rotate_left(round * 5);
        which.push((&agents[16], &outside));

        let answers = claims(&site, &which);

        let held = holders(&site);
        assert!(answers.last().unwrap().is_ok(), "a task outside goes through: {:#?}", answers.last());
        for ((_, task), answer) in which.iter().zip(&answers).filter(|(_, answer)| !answer.is_ok()) {
            let error = answer.error();
            assert_eq!(error["code"], "scope_overlap", "{answer:#?}");
            // Nobody is refused for nothing: what stood in the way is still there.
            let meets: Vec<&String> =
                samples(&tasks[*task]).iter().filter_map(|path| held.get(path)).collect();
            for finding in error["findings"].as_array().unwrap() {
                let detail = text(&finding["detail"]);
                assert!(meets.iter().any(|id| detail.contains(&format!("scope of {id},"))), "{detail}");
            }
        }
        assert!(answers.iter().filter(|answer| answer.is_ok()).count() >= 3, "{held:?}");
        release_all(&site);
    }
    site.assert_sound();
}

#[test]
fn the_next_task_is_one_that_meets_no_other() {
    let site = Site::new();
    let agents = site.agents(16);
    let tasks = tasks(&site);
    let which: Vec<(&Agent, &str)> = agents.iter().map(|agent| (agent, "--next")).collect();

    let answers = claims(&site, &which);

    let held = holders(&site);
    for answer in answers.iter().filter(|answer| !answer.is_ok()) {
        assert_eq!(answer.code(), "nothing_ready", "{answer:#?}");
    }
    // Whoever got nothing could have got nothing: every open task meets a live one.
    for task in site.tasks().iter().filter(|task| task["state"] == "open") {
        let glob = &tasks[text(&task["id"])];
        assert!(samples(glob).iter().any(|path| held.contains_key(path)), "{glob} was free");
    }
    site.assert_sound();
}

#[test]
fn a_task_can_be_claimed_once_the_other_has_ended() {
    let site = Site::new();
    let agents = site.agents(2);
    let ((first, _), (second, _)) = (add(&site, "src/**"), add(&site, "src/login"));
    let claim = |agent: &Agent, task: &str| {
        let args = ["claim", task, "--as", &agent.handle, "--workstation", &agent.workstation, "--json"];
        site.run(&args)
    };
    assert!(claim(&agents[0], &first).is_ok());
    let error: Value = claim(&agents[1], &second).error();
    assert_eq!(error["detail"], format!("`src/login` is also in the scope of {first}, held by @a1"));
    assert_eq!(error["task"], second);
    site.ok(&["complete", &first, "--as", "@a1", "--resolution", "done"]);
    assert!(claim(&agents[1], &second).is_ok());
}
