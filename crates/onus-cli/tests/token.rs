//! `onus worker token`, as people and scripts use it.

use crate::support::{Site, text};
use serde_json::Value;

fn site() -> Site {
    let site = Site::new();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    site
}

fn tokens(site: &Site) -> Vec<Value> {
    site.ok(&["worker", "token", "list"])["tokens"].as_array().unwrap().clone()
}

#[test]
fn a_script_takes_the_secret_from_stdout() {
    let site = site();
    let made = site.run(&["worker", "token", "add", "@bot", "--as", &site.person]);
    assert!(made.is_ok(), "{made:#?}");
    let secret = made.stdout.trim_end();
    assert_eq!(made.stdout, format!("{secret}\n"));
    assert!(secret.starts_with("onus_a") && secret.len() == 54, "{secret}");
    assert!(made.stderr.contains("ONUS_TOKEN") && !made.stderr.contains(secret), "{}", made.stderr);
    let json = site.by_person(&["worker", "token", "add", "@bot", "--expires", "never", "--label", "x"]);
    assert_eq!(text(&json["secret"]).len(), 54);
    assert_eq!(json["token"]["expires_at"], Value::Null);

    let listed = tokens(&site);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["state"], "active");
    assert!(!listed[0]["expires_at"].is_null(), "90 days unless somebody says otherwise");
    assert!(!format!("{listed:?}").contains(&secret[15..]));
    let shown = site.run(&["worker", "token", "list", "@bot"]);
    assert!(shown.stdout.contains("LAST USE") && shown.stdout.contains(text(&listed[1]["id"])));
    site.assert_sound();
}

#[test]
fn revoking_is_on_record_and_for_people() {
    let site = site();
    let json = site.by_person(&["worker", "token", "add", "--kind", "service", "--label", "board"]);
    let id = text(&json["token"]["id"]);
    let refused = site.run(&["worker", "token", "revoke", id, "--as", "@bot", "--json"]);
    assert_eq!(refused.code(), "human_required");
    let refused = site.run(&["worker", "token", "add", "@bot", "--as", "@bot", "--json"]);
    assert_eq!(refused.code(), "human_required");
    site.by_person(&["worker", "token", "revoke", id, "--reason", "it leaked"]);
    assert_eq!(tokens(&site)[0]["state"], "revoked");
    let log = site.run(&["ledger", "log"]).stdout;
    assert!(log.contains("token issued") && log.contains("token revoked"), "{log}");
    let unknown = site.run(&["worker", "token", "revoke", "zzzzzzzz", "--as", &site.person, "--json"]);
    assert_eq!(unknown.code(), "unknown_name");
    let bad = site.run(&["worker", "token", "revoke", "no", "--as", &site.person, "--json"]);
    assert_eq!(bad.code(), "invalid_input");
    site.assert_sound();
}
