//! `edit`: whose a task is, and what may be put differently while somebody works on it.

use crate::tests::support::script::{check, refusal, story};

#[test]
fn a_person_puts_it_better() {
    check(
        r#"add; edit p {"title":"put~better","priority":"P0","tags":["a","b"]}; task; verbs"#,
        "ok; ok; put better P0 [a b] [] []; added edited",
    );
    // Lists are replaced; signs add and take away.
    check(
        r#"add; edit p {"tags":["a","b"]}; edit p {"tags":["+c","-a"]}; task; edit p {"tags":[]}; task"#,
        "ok; ok; ok; a task P2 [b c] [] []; ok; a task P2 [] [] []",
    );
    check(r#"add; edit p {"title":"a~task"}; verbs"#, "ok; existing T-1; added");
    check(r"add; edit p {}", "ok; invalid_input");
}

#[test]
fn before_and_after_are_in_the_ledger() {
    let entries = story(r#"add title=old; edit p {"title":"new","priority":"P1"}"#);
    let data = &entries.last().unwrap().data;
    assert!(
        data.contains(r#""before":{"title":"old""#) && data.contains(r#""after":{"title":"new""#),
        "{data}"
    );
}

#[test]
fn an_earlier_body_is_kept() {
    check(
        r#"add; edit p {"body":"one"}; notes; edit p {"body":"two"}; notes; edit p {"body":null}; notes"#,
        "ok; ok; ; ok; earlier_body; ok; earlier_body earlier_body",
    );
}

#[test]
fn an_agent_edits_what_it_asked_for_and_no_more() {
    check(r#"add a; edit a {"title":"mine"}; edit b {"title":"not~mine"}"#, "ok; ok; not_permitted");
    check(r#"add; edit a {"tags":["+x"]}"#, "ok; not_permitted");
    // A holder has its tags; activity renews.
    check(
        r#"add; claim a; tick 60s; edit a {"tags":["+x"]}; lease; edit a {"title":"t"}; edit a {"tags":["y"],"priority":"P0"}"#,
        "ok; ok e1; ok; ok; 15m until 960s renewed 1; not_permitted; not_permitted",
    );
    check(
        r#"add; claim a; edit a token=forged {"tags":["+x"]}; edit b token=a {"tags":["+x"]}"#,
        "ok; ok e1; fenced; fenced",
    );
    // An agent never makes its own work easier to prove.
    check(
        r#"add a risky check; edit a {"risk":"normal"}; edit a {"checks":[]}; edit a {"checks":["+make~lint"]}; checks"#,
        "ok; human_required; human_required; ok; proposed proposed",
    );
    check(
        r#"add; add a on=1; edit a {"depends_on":[]}; edit p {"depends_on":[]}; task"#,
        "ok; ok; human_required; ok; a task P2 [] [] []",
    );
}

#[test]
fn under_a_lease_a_person_decides_and_the_holder_is_told() {
    for change in [
        r#"{"scope":["src/**"]}"#,
        r#"{"risk":"high"}"#,
        r#"{"checks":["make~lint"]}"#,
        r#"{"kind":"chore"}"#,
        r#"{"depends_on":["T-1"]}"#,
    ] {
        check(
            &format!("add; add a; claim b; edit a {change}; notes; edit p {change}; notes"),
            "ok; ok; ok e1; human_required; ; ok; comment",
        );
    }
    // Its words are still the asker's.
    check(r#"add a; claim b; edit a {"title":"better"}; notes"#, "ok; ok e1; ok; comment");
    // The holder knows what it did itself.
    check(r#"add; claim p; edit p {"scope":["src/**"]}; notes"#, "ok; ok e1; ok; ");
}

#[test]
fn two_holders_never_share_a_path_by_an_edit() {
    check(
        r#"add scope=src/a/**; claim a; add; claim b; edit p {"scope":["src/**"]}; edit p {"scope":["docs/**"]}"#,
        "ok; ok e1; ok; ok e1; scope_overlap; ok",
    );
}

#[test]
fn what_has_ended_keeps_its_meaning() {
    check(
        r#"add; complete! p; edit p {"title":"a~typo~less"}; edit p {"scope":["src/**"]}; edit a {"tags":["x"]}"#,
        "ok; ok forced; ok; wrong_state; human_required+not_permitted",
    );
}

#[test]
fn what_the_outside_owns_stays_its_own() {
    check(
        r#"add origin=github:12; edit p {"title":"t"}; edit p {"body":"b"}; edit p {"priority":"P0"}; edit p {"tags":["x"]}"#,
        "ok; not_permitted; not_permitted; ok; ok",
    );
    check(r#"add origin=redmine:12; edit p {"priority":"P0","sprint":"s"}"#, "ok; not_permitted");
    let refusal = refusal(r#"add origin=github:12; edit p {"title":"t"}"#);
    assert!(refusal.detail.contains("github:12") && refusal.hint.is_some(), "{refusal:?}");
}

#[test]
fn everything_wrong_is_told_at_once() {
    check(
        r#"add; edit p {"title":"","scope":["../x"],"depends_on":["T-1","T-9"],"parent":"T-8","lane":0}"#,
        "ok; invalid_input+invalid_input+invalid_input+unknown_task+unknown_task+dependency_cycle",
    );
    check(r#"add; edit p {"depends_on":["nonsense","T-0"]}"#, "ok; invalid_input+invalid_input");
}

#[test]
fn nothing_leads_back_to_itself() {
    check(r#"add; add on=1; edit p #1 {"depends_on":["T-2"]}"#, "ok; ok; dependency_cycle");
    check(
        r#"add; add parent=1; edit p #1 {"parent":"T-2"}; edit p #1 {"parent":"T-1"}"#,
        "ok; ok; invalid_input; invalid_input",
    );
    check(r#"add; add; edit p {"parent":"T-1"}; edit p {"parent":null}"#, "ok; ok; ok; ok");
}
