//! Lease, fence and git's reference lock, in every order in which they can meet (rules.md "Git"; ADR 8).
//!
//! The store's and the hook's decisions are those of `onus-core` itself. Each variant leaves one defence out, and must
//! fail: a model that cannot find a known bug proves nothing.

mod race;
mod road;
mod rules;

use race::{Race, Variant};
use road::Road;
use stateright::{Checker, HasDiscoveries, Model};
use std::collections::BTreeSet;

/// Looks at every state, or at as many as `most` steps reach.
fn keeps_every_promise(race: Race, least: usize, most: usize) {
    let checked = race.checker().threads(2).target_state_count(most).spawn_dfs().join();
    eprintln!("{} steps, {} different states", checked.state_count(), checked.unique_state_count());
    checked.assert_properties();
    assert!(checked.unique_state_count() >= least, "{} states", checked.unique_state_count());
}

/// Two workers, two calls and a push each; without crashes, which only the long run has the time for.
#[test]
fn every_order_keeps_every_promise() {
    let mut whole = Race::new(Variant::Whole, 2, 2);
    if std::env::var_os("ONUS_SOAK").is_none() {
        whole.crashes = 0;
        keeps_every_promise(whole, 100_000, usize::MAX);
        return;
    }
    keeps_every_promise(whole, 500_000, usize::MAX);
    keeps_every_promise(Race::new(Variant::Whole, 2, 3), 10_000_000, 100_000_000);
}

/// Finds what goes wrong without one of the defences, and tells the way there.
fn fails(variant: Variant, promise: &'static str) {
    let enough = HasDiscoveries::AllOf(BTreeSet::from([promise]));
    let checked = Race::new(variant, 2, 2).checker().threads(2).finish_when(enough).spawn_bfs().join();
    let Some(way) = checked.discovery(promise) else { panic!("{variant:?} keeps: {promise}") };
    eprintln!("{variant:?} breaks: {promise}");
    for action in way.into_actions() {
        eprintln!("  {action:?}");
    }
}

#[test]
fn without_the_fence_a_stale_holder_writes() {
    fails(Variant::WithoutFence, "a stale holder changes nothing");
}

#[test]
fn without_the_barrier_a_push_lands_late() {
    fails(Variant::WithoutBarrier, "nothing lands late");
}

#[test]
fn a_check_before_the_lock_lets_a_push_land_late() {
    fails(Variant::CheckBeforeLock, "nothing lands late");
}

#[test]
fn without_request_ids_a_repeated_call_acts_twice() {
    fails(Variant::WithoutRequestIds, "a request has one effect");
}

/// Two clones, one shared repository, two tasks, three workers: each task is given away twice, and one thing fails.
#[test]
fn every_order_of_the_road_keeps_every_promise() {
    let road = match std::env::var_os("ONUS_SOAK") {
        None => Road::new(road::Variant::Whole, 2, 1),
        Some(_) => Road::new(road::Variant::Whole, 2, 3),
    };
    let checked = road.checker().threads(2).spawn_dfs().join();
    eprintln!("{} steps, {} different states", checked.state_count(), checked.unique_state_count());
    checked.assert_properties();
    assert!(checked.unique_state_count() > 10_000, "{} states", checked.unique_state_count());
}

fn road_fails(variant: road::Variant, promise: &'static str) {
    let enough = HasDiscoveries::AllOf(BTreeSet::from([promise]));
    let checked = Road::new(variant, 2, 1).checker().threads(2).finish_when(enough).spawn_bfs().join();
    let Some(way) = checked.discovery(promise) else { panic!("{variant:?} keeps: {promise}") };
    eprintln!("{variant:?} breaks: {promise}");
    for action in way.into_actions() {
        eprintln!("  {action:?}");
    }
}

#[test]
fn without_own_commits_a_fenced_holders_work_lands_with_its_next_task() {
    road_fails(road::Variant::WithoutOwnCommits, "nothing unowned lands");
}

#[test]
fn without_a_clean_start_a_holder_is_stuck_with_what_lies_on_its_branch() {
    road_fails(road::Variant::WithoutCleanStart, "nobody is stuck for ever");
}

#[test]
fn without_a_fetch_a_clone_that_is_behind_never_lands() {
    road_fails(road::Variant::WithoutFetch, "nobody is stuck for ever");
}

#[test]
fn without_a_look_at_the_main_branch_a_landing_is_never_recorded() {
    road_fails(road::Variant::WithoutRecord, "the record knows what has landed, and only that");
}
