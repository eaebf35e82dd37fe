//! `onus view`: filters that the whole team keeps, at every door; and labels and priorities as filters of `list`.

use crate::support::{Answer, Site, text};
use serde_json::{Value, json};

fn person(site: &Site, args: &[&str]) -> Answer {
    site.run(&[args, &["--as", &site.person, "--json"]].concat())
}

fn titles(view: &Value) -> Vec<&str> {
    view["tasks"].as_array().unwrap().iter().map(|task| text(&task["title"])).collect()
}

#[test]
fn the_team_keeps_filters_under_a_name() {
    let site = Site::new();
    site.agents(1);
    for (title, tag, priority) in [("one", "pay", "P1"), ("two", "pay", "P3"), ("three", "docs", "P1")] {
        site.by_person(&["add", title, "--tag", tag, "--priority", priority]);
    }
    assert_eq!(titles(&site.ok(&["list", "--tag", "pay"])), ["one", "two"]);
    assert_eq!(titles(&site.ok(&["list", "--priority", "P1"])), ["one", "three"]);
    // A label is a whole word: no part of another one, and no pattern.
    assert_eq!(titles(&site.ok(&["list", "--tag", "pa%"])), [""; 0]);

    let saved = site.by_person(&["view", "save", "Pay first", "--tag", "pay", "--priority", "P1"]);
    assert_eq!(saved["views"][0]["query"], json!({ "tag": "pay", "priority": "P1" }));
    assert_eq!(text(&saved["views"][0]["saved_by"]), site.person);
    assert_eq!(titles(&site.ok(&["list", "--view", "Pay first"])), ["one"]);
    // What is said beside it counts.
    assert_eq!(titles(&site.ok(&["list", "--view", "Pay first", "--priority", "P3"])), ["two"]);
    // The same name takes its place; the same again is nothing new.
    let entries = || site.ok(&["ledger", "log"])["entries"].as_array().unwrap().len();
    site.by_person(&["view", "save", "Pay first", "--search", "thr"]);
    let before = entries();
    let again = site.by_person(&["view", "save", "Pay first", "--search", "thr"]);
    assert_eq!((again["views"].as_array().unwrap().len(), entries()), (1, before));
    assert_eq!(titles(&site.ok(&["list", "--view", "Pay first"])), ["three"]);

    let agent = site.run(&["view", "save", "Mine", "--tag", "pay", "--as", "@a1", "--json"]);
    assert_eq!((agent.exit, agent.code().as_str()), (Some(5), "human_required"));
    assert_eq!(person(&site, &["view", "save", "Empty"]).code(), "invalid_input");
    assert_eq!(person(&site, &["view", "remove", "Nothing"]).exit, Some(3));
    let unknown = person(&site, &["list", "--view", "Nothing"]);
    assert_eq!((unknown.exit, unknown.code().as_str()), (Some(3), "unknown_name"));

    let removed = site.by_person(&["view", "remove", "Pay first"]);
    assert_eq!(removed["views"], json!([]));
    site.by_person(&["view", "save", "Docs", "--tag", "docs"]);
    // The record has it all, and the rows are what it says.
    site.ok(&["ledger", "verify"]);
}

#[test]
fn a_milestone_has_a_day_that_moves_until_it_is_closed() {
    let site = Site::new();
    site.agents(1);
    site.by_person(&["add", "one", "--sprint", "12"]);
    let args = ["milestone", "add", "s12", "--sprint", "12", "--target", "2020-02-29"];
    assert_eq!(site.by_person(&args)["milestone"]["target"], "2020-02-29");
    let shown = site.run(&["milestone", "show", "s12"]).stdout;
    assert!(shown.contains("target 2020-02-29") && shown.contains("days late"), "{shown}");
    let listed = site.run(&["milestone", "list"]).stdout;
    assert!(listed.contains("days late"), "{listed}");

    let moved = site.by_person(&["milestone", "edit", "s12", "--target", "2999-01-01", "--title", "Twelve"]);
    assert_eq!((&moved["target"], &moved["title"]), (&json!("2999-01-01"), &json!("Twelve")));
    assert!(site.run(&["milestone", "show", "s12"]).stdout.contains("days left"));
    let gone = site.by_person(&["milestone", "edit", "s12", "--target", "none"]);
    assert_eq!((&gone["target"], &gone["title"]), (&Value::Null, &json!("Twelve")));
    // The very same as at first: the hint says how to change it.
    let again = person(&site, &["milestone", "add", "s12", "--sprint", "12"]);
    assert!(again.stderr.contains("onus milestone edit s12"), "{again:#?}");

    let odd = person(&site, &["milestone", "edit", "s12", "--target", "2026-02-30"]);
    assert_eq!(odd.exit, Some(2), "{odd:#?}");
    let agent = site.run(&["milestone", "edit", "s12", "--target", "none", "--as", "@a1", "--json"]);
    assert_eq!(agent.code(), "human_required");
    assert_eq!(person(&site, &["milestone", "edit", "nothing", "--title", "x"]).code(), "unknown_name");
    site.ok(&["ledger", "verify"]);
}
