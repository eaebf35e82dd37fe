//! What `decide` never makes, `evolve` does not believe, even when every hash fits.

use crate::tests::support::script::story;
use crate::tests::support::{WORKSPACE, World};
use onus_core::hash::Digest;
use onus_core::ledger::Entry;

/// Forges the last entry of a story, seals it again, and reads the story.
fn forged(steps: &str, forge: impl FnOnce(&mut Entry)) -> Result<(), String> {
    let mut chain = story(steps);
    let entry = chain.last_mut().unwrap();
    forge(entry);
    entry.hash = entry.expected_hash(WORKSPACE);
    World::replay(&chain).map(|_| ())
}

fn says(entry: &mut Entry, verb: &str, data: &str) {
    entry.verb = verb.to_owned();
    entry.data = data.to_owned();
}

#[test]
fn an_honest_story_reads() {
    assert_eq!(forged("add; claim a; renew a", |_| {}), Ok(()));
    assert_eq!(forged("add; claim a; note b", |_| {}), Ok(()));
    assert_eq!(forged("add; complete! p", |_| {}), Ok(()));
}

#[test]
fn only_the_holder_acts_as_the_holder() {
    for act in ["renew a", "note a", "block a", "release a", "complete a"] {
        assert!(forged(&format!("add; claim a; {act}"), |e| e.actor = "@b".into()).is_err(), "{act}");
    }
    assert!(forged("add; claim a; block a; unblock a", |e| e.actor = "@b".into()).is_err());
}

#[test]
fn a_claim_over_a_holder_was_forced() {
    let unforced = |e: &mut Entry| e.data = e.data.replace(",\"forced\":true", "");
    assert!(forged("add; claim a; claim! p", unforced).is_err());
    assert!(forged("add; claim! p", unforced).is_ok());
}

#[test]
fn nobody_completes_what_nobody_holds() {
    let unforced = |e: &mut Entry| e.data = e.data.replace(",\"forced\":true", "");
    assert!(forged("add; complete! p", unforced).is_err());
}

#[test]
fn what_has_ended_stays_so() {
    let reopened = |e: &mut Entry| {
        says(e, "reopened", "{\"reason\":\"because\"}");
        e.epoch = 1;
    };
    assert!(forged("add archived=complete; note p", reopened).is_err());
    assert!(forged("add; complete! p; note p", reopened).is_ok());
    let claimed = |e: &mut Entry| {
        let grant = story("add; claim a").pop().unwrap();
        says(e, &grant.verb, &grant.data);
        (e.workstation, e.epoch) = (grant.workstation, 1);
    };
    assert!(forged("add; note p", claimed).is_ok());
    assert!(forged("add; complete! p; note p", claimed).is_err());
}

#[test]
fn an_epoch_is_never_made_up() {
    for epoch in [0, 2, 7] {
        assert!(forged("add; claim a", |e| e.epoch = epoch).is_err(), "{epoch}");
        assert!(forged("add; claim a; renew a", |e| e.epoch = epoch).is_err(), "{epoch}");
    }
}

#[test]
fn unknown_words_are_not_skipped() {
    assert!(forged("add; claim a; renew a", |e| e.verb = "blessed".into()).is_err());
    for place in ["{", "{\"renewal\":{"] {
        let more = |e: &mut Entry| e.data = e.data.replacen(place, &format!("{place}\"extra\":1,"), 1);
        assert!(forged("add; claim a; renew a", more).is_err(), "{place}");
    }
    assert!(forged("add; claim a", |e| e.workstation = None).is_err());
    assert!(forged("add", |e| e.prev = Digest([1; 32])).is_err());
}
