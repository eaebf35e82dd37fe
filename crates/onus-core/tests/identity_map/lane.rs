//! How many live assignments a role has, and in which lanes.

use super::{details, handle, in_role, policy, task};
use onus_core::code::Code;
use onus_core::identity_map::Policy;
use onus_core::lane::{Occupied, lane};
use onus_core::task::Spec;

const MAP: &str = "roles: {one: {}, two: {lanes: 2, max_in_progress: 2}}";

fn taken(lanes: &[i64]) -> Vec<Occupied> {
    let taken = |(at, lane): (usize, &i64)| Occupied {
        task: format!("T-{}", at + 1).parse().unwrap(),
        holder: handle("a"),
        lane: *lane,
    };
    lanes.iter().enumerate().map(taken).collect()
}

#[track_caller]
fn check(spec: &Spec, lanes: &[i64], expected: Result<Option<i64>, &str>) {
    let found = lane(&policy(MAP), spec, &taken(lanes), None);
    match (found, expected) {
        (Ok(found), expected) => assert_eq!(Ok(found), expected),
        (Err(findings), expected) => {
            assert!(findings.iter().all(|f| f.code == Code::LaneFull && f.hint.is_some()));
            assert_eq!(Err(details(&findings).join("; ").as_str()), expected);
        }
    }
}

#[test]
fn the_first_lane_with_a_free_slot_is_taken() {
    let two = in_role("two");
    check(&two, &[], Ok(Some(1)));
    check(&two, &[1], Ok(Some(1)));
    check(&two, &[1, 1], Ok(Some(2)));
    check(&two, &[2, 1, 2], Ok(Some(1)));
    check(&two, &[1, 2, 1], Ok(Some(2)));
    check(
        &two,
        &[1, 2, 1, 2],
        Err("every lane of two is full (2 in progress each): \
             T-1 by @a in lane 1, T-2 by @a in lane 2, T-3 by @a in lane 1, T-4 by @a in lane 2"),
    );
    check(&in_role("one"), &[1], Err("every lane of one is full (1 in progress each): T-1 by @a in lane 1"));
}

#[test]
fn a_task_may_ask_for_its_lane() {
    let second = Spec { lane: Some(2), ..in_role("two") };
    check(&second, &[], Ok(Some(2)));
    check(&second, &[1, 1, 2], Ok(Some(2)));
    check(
        &second,
        &[2, 2, 1],
        Err("two:2 is full (2 in progress each): T-1 by @a in lane 2, T-2 by @a in lane 2"),
    );
    for (lane, name) in [(0, "two:0"), (3, "two:3"), (-1, "two:-1")] {
        let expected = format!("{name} does not exist: two has 2 lanes, numbered from 1");
        check(&Spec { lane: Some(lane), ..in_role("two") }, &[], Err(&expected));
    }
}

#[test]
fn without_a_map_or_a_listed_role_there_are_no_lanes() {
    check(&task("-"), &[1], Ok(None));
    check(&Spec { lane: Some(7), ..in_role("unlisted") }, &[7], Ok(None));
    assert_eq!(lane(&Policy::Absent, &in_role("one"), &taken(&[1]), None), Ok(None));
}
