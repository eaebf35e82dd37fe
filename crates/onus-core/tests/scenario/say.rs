//! What is said to somebody, and what an answer does.

use crate::tests::support::script::{check, refusal, story};
use onus_core::code::Code;
use onus_core::event::Event;

#[test]
fn the_person_asked_lifts_the_block_by_an_answer() {
    for answer in ["unblock q", "say q note=yes"] {
        check(
            &format!("add; claim a; block a on=person:@q; state; {answer}; state; note a; complete a"),
            "ok; ok e1; ok; blocked a; ok; in_progress a; ok; ok",
        );
    }
    // Sent back by the reviewer whom it waits for: the same holder, in the same place, goes on.
    check(
        "add; claim a; block a on=person:@q; review q says=rejected ws=q; state; complete a",
        "ok; ok e1; ok; ok; in_progress a; review_missing",
    );
    // Where the lease was given back, the task is open again.
    check("add; claim a; block a on=person:@q free; say q; state", "ok; ok e1; ok; ok; open");
}

#[test]
fn nobody_else_lifts_it() {
    check(
        "add; claim a; block a on=person:@q; unblock p; unblock b; state; say p; say b; state",
        "ok; ok e1; ok; lease_required; lease_required; blocked a; ok; ok; blocked a",
    );
    let refused = refusal("add; claim a; block a on=person:@q; unblock p");
    assert_eq!(refused.code, Code::LeaseRequired);
    assert!(refused.hint.unwrap().contains("@q is asked"));
    // What waits for something else is not lifted by words.
    check("add; claim a; block a on=external:rain; say q; state", "ok; ok e1; ok; ok; blocked a");
    // Whoever asks itself is the holder, and shows its lease.
    check(
        "add; claim a; block a on=person:@a; unblock a token=none; unblock a; state",
        "ok; ok e1; ok; lease_required; ok; in_progress a",
    );
}

#[test]
fn an_answer_gives_the_holder_its_usual_time() {
    // A blocked lease lasts a day; from the answer on it is the agent's quarter of an hour again.
    check(
        "add; claim a; block a on=person:@q; tick 2h; say q; tick 10m; takeover b; tick 10m; takeover b",
        "ok; ok e1; ok; ok; ok; ok; not_expired; ok; ok e2",
    );
}

#[test]
fn a_message_goes_to_the_holder_or_to_who_asked() {
    let told = |steps: &str| match story(steps).last().unwrap().open().unwrap().event {
        Event::Messaged(said) => said.to.map(|to| to.to_string()),
        other => panic!("{other:?}"),
    };
    assert_eq!(told("add p; claim a; say q"), Some("@a".to_owned()));
    assert_eq!(told("add p; claim a; say a"), Some("@p".to_owned()));
    assert_eq!(told("add p; say q"), None);
    assert_eq!(told("add p; claim a; say q to=b"), Some("@b".to_owned()));
    check("add; claim a; say q to=x", "ok; ok e1; unknown_worker");
    check(
        "add; claim a; say - ; say x; read q through=0; read q through=2",
        "ok; ok e1; identity_required; unknown_worker; invalid_input; ok",
    );
}
