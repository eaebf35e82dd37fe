//! A checker that finds nothing proves nothing: each of these histories has a bug in it.

use onus_sim::history::{Act, Answer, Call, History, Stage, Verdict};
use std::time::Duration;

fn verdict(calls: &[(i64, i64, Act, Answer)]) -> Verdict {
    let history = History::default();
    for (client, (from, to, act, answer)) in (0..).zip(calls) {
        history.write(client, (*from, *to), Call { task: 1, act: *act, answer: *answer });
    }
    history.check(Duration::from_secs(10))
}

#[test]
fn an_ordinary_story_has_an_order() {
    let story = [
        (0, 10, Act::Claim, Answer::Granted(1)),
        (1, 12, Act::Claim, Answer::NotClaimable),
        (20, 30, Act::Renew(1), Answer::Done),
        (25, 45, Act::Look, Answer::Seen(Stage::Open)),
        (35, 40, Act::Release(1), Answer::Done),
        (41, 50, Act::Claim, Answer::Granted(2)),
        (51, 60, Act::Complete(1), Answer::Fenced),
        (61, 70, Act::Complete(2), Answer::Done),
        (71, 80, Act::Claim, Answer::NotClaimable),
    ];
    assert_eq!(verdict(&story), Verdict::Linearizable);
}

#[test]
fn two_winners_have_none() {
    let one_epoch = [(0, 10, Act::Claim, Answer::Granted(1)), (5, 15, Act::Claim, Answer::Granted(1))];
    assert_eq!(verdict(&one_epoch), Verdict::Violated);
    let two_epochs = [(0, 10, Act::Claim, Answer::Granted(1)), (5, 15, Act::Claim, Answer::Granted(2))];
    assert_eq!(verdict(&two_epochs), Verdict::Violated);
}

#[test]
fn a_stale_holder_that_writes_has_none() {
    let story = [
        (0, 10, Act::Claim, Answer::Granted(1)),
        (11, 20, Act::Release(1), Answer::Done),
        (21, 30, Act::Claim, Answer::Granted(2)),
        (31, 40, Act::Complete(1), Answer::Done),
    ];
    assert_eq!(verdict(&story), Verdict::Violated);
}

#[test]
fn an_acknowledged_write_that_is_lost_has_none() {
    let story = [(0, 10, Act::Claim, Answer::Granted(1)), (20, 30, Act::Look, Answer::Seen(Stage::Open))];
    assert_eq!(verdict(&story), Verdict::Violated);
}

#[test]
fn a_read_from_the_past_has_none() {
    let story = [
        (0, 10, Act::Claim, Answer::Granted(1)),
        (11, 20, Act::Complete(1), Answer::Done),
        (21, 30, Act::Look, Answer::Seen(Stage::Held(1))),
    ];
    assert_eq!(verdict(&story), Verdict::Violated);
}

#[test]
fn an_epoch_that_comes_back_has_none() {
    let story = [
        (0, 10, Act::Claim, Answer::Granted(1)),
        (11, 20, Act::Release(1), Answer::Done),
        (21, 30, Act::Claim, Answer::Granted(1)),
    ];
    assert_eq!(verdict(&story), Verdict::Violated);
}
