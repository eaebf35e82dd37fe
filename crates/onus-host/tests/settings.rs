//! What `onus.yaml` may and may not say.

use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_core::settings::{Settings, Uncommitted};
use onus_core::time::Millis;
use onus_host::settings::{load, schema};
use std::fs;
use std::path::Path;

fn read(content: &[u8]) -> Result<Settings, Refusal> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("onus.yaml");
    fs::write(&path, content).unwrap();
    load(&path)
}

/// `expected` is `line:column: message`.
#[track_caller]
fn check_refused(content: impl AsRef<[u8]>, expected: &str) {
    let refusal = read(content.as_ref()).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidInput);
    let detail = refusal.detail.split_once("onus.yaml:").map(|(_, rest)| rest);
    assert_eq!(detail, Some(expected));
    assert!(refusal.hint.is_some());
}

#[test]
fn no_file_or_an_empty_one_gives_the_defaults() {
    assert_eq!(load(Path::new("/nonexistent/onus.yaml")), Ok(Settings::default()));
    for content in ["", "\n\n", "# nothing yet\n", "{}\n", "lease:\n"] {
        assert_eq!(read(content.as_bytes()), Ok(Settings::default()), "{content:?}");
    }
}

#[test]
fn what_a_team_writes_is_read() {
    let settings = read(
        b"project: API\nlease:\n  agent_ttl: 1h30m  # long builds\n  types:\n    docs: {grace: 5m}\nqueue:\n  limit: 50\ngit: {main: trunk}\nrouting: {uncommitted: refuse}\n",
    )
    .unwrap();
    assert_eq!(settings.project.unwrap().as_str(), "API");
    assert_eq!(settings.lease.agent_ttl, Millis::minutes(90));
    assert_eq!(settings.lease.human_ttl, Millis::hours(24), "unset keys keep their defaults");
    assert_eq!(settings.lease.types["docs"].grace, Some(Millis::minutes(5)));
    assert_eq!(settings.queue.limit, 50);
    assert_eq!(settings.git.main.as_deref(), Some("trunk"));
    assert_eq!(settings.routing.uncommitted, Uncommitted::Refuse);
}

#[test]
fn unknown_keys_are_refused_at_every_level() {
    check_refused("lanes: 3\n", "1:1: there is no setting `lanes`");
    check_refused("lease:\n  agent_tll: 5m\n", "2:3: there is no setting `agent_tll`");
    check_refused("lease: {types: {docs: {ttl: 5m}}}\n", "1:24: there is no setting `ttl`");
    let refusal = read(b"queue:\n  limits: 5\n").unwrap_err();
    assert_eq!(refusal.hint.as_deref(), Some("known here: limit"));
}

#[test]
fn keys_are_set_once() {
    check_refused("project: API\nproject: WEB\n", "2:1: `project` is set twice");
    check_refused("lease: {types: {a: {}, a: {}}}\n", "1:24: `a` is set twice");
    check_refused(
        "lease: {types: {a: {<<: {grace: 5s}}}}\n",
        "1:21: YAML merge keys are not allowed by configured policy",
    );
}

#[test]
fn values_have_their_type() {
    check_refused("project: api\n", "1:10: `api` is not a project key (^[A-Z][A-Z0-9]{0,15}$)");
    let not_a_duration = "is not a duration; write for example 15m, 1h30m, 90s or 2d";
    check_refused("lease:\n  grace: 5 minutes\n", &format!("2:10: `5 minutes` {not_a_duration}"));
    check_refused("lease:\n  grace: 15\n", &format!("2:10: `15` {not_a_duration}"));
    check_refused("lease:\n  grace: 2000d\n", "2:10: `2000d` is longer than a year");
    check_refused("lease: {grace: null}\n", "1:16: it has no value");
    check_refused("queue: {limit: many}\n", "1:16: not a whole number");
    check_refused("queue: {limit: -1}\n", "1:16: not a whole number");
    check_refused("routing: {uncommitted: ignore}\n", "1:24: `ignore` is none of the words for it");
    check_refused("lease: 5\n", "1:8: settings in the form `key: value` belong here");
    check_refused("- a\n", "1:1: settings in the form `key: value` belong here");
}

#[test]
fn text_that_is_not_yaml_is_refused_where_it_goes_wrong() {
    check_refused("queue: {limit: 5\n", "1:8: unclosed bracket '{'");
    check_refused("project: \"A\u{1b}[31m\"\n", "1:12: unexpected character: `\\u{1b}'");
    check_refused("project: API\n---\nproject: WEB\n", "2:1: too much of one thing for a file of settings");
    check_refused(b"project: API\n# caf\xe9\n", "2:6: not UTF-8 text");
}

#[test]
fn bombs_are_stopped() {
    check_refused("[".repeat(200_000), "1:256: recursion limit exceeded");
    // Known keys only, so that nothing but the limits can stop it.
    let many: String = (0..5_000).map(|n| format!("    t{n}: {{grace: 1s}}\n")).collect();
    let refusal = read(format!("lease:\n  types:\n{many}").as_bytes()).unwrap_err();
    assert!(refusal.detail.contains("too much of one thing"), "{}", refusal.detail);
    let aliases: String = (0..101).map(|n| format!("    t{n}: *a\n")).collect();
    let refusal =
        read(format!("lease:\n  types:\n    t: &a {{grace: 1s}}\n{aliases}").as_bytes()).unwrap_err();
    assert!(refusal.detail.contains("too much of one thing"), "{}", refusal.detail);
}

#[test]
fn only_a_small_regular_file_is_read() {
    let refusal = read(&[b'#'; 256 * 1024 + 1]).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidInput);
    assert!(refusal.detail.ends_with("onus.yaml is larger than 262144 bytes"), "{}", refusal.detail);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(load(dir.path()).unwrap_err().code, Code::InvalidInput);
}

/// `UPDATE_CONTRACT=1 cargo test -p onus-host settings` writes the file anew.
#[test]
fn the_published_schema_is_the_present_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract/onus.schema.json");
    let present = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        fs::write(&path, &present).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(published, present, "run with UPDATE_CONTRACT=1 and review the difference");
}

#[test]
fn the_schema_refuses_unknown_keys_too() {
    let schema = schema();
    assert_eq!(schema["title"], "onus.yaml");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema.get("$id"), None);
}
