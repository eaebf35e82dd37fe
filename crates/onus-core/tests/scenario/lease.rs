//! "Lease and fence", sentence by sentence.

use crate::tests::support::script::{check, refusal, story};

#[test]
fn a_grant_raises_the_epoch_and_only_one_worker_gets_it() {
    check("add; claim a; tick 60s; claim b", "ok; ok e1; ok; lease_held");
    check("add; claim a; release a; claim b; state", "ok; ok e1; ok; ok e2; in_progress b");
    check("add; claim a; tick 16m; tick 1m; takeover b; state", "ok; ok e1; ok; ok; ok e2; in_progress b");
    check("add; claim a; claim! p; state", "ok; ok e1; ok e2 forced; in_progress p forced");
    check("add; claim a; state; verbs; version", "ok; ok e1; in_progress a; added claimed; 2");
}

#[test]
fn two_processes_of_one_worker_are_two_claimants() {
    check("add; claim a; claim a", "ok; ok e1; lease_held");
    check("add; claim a; claim a ws=b", "ok; ok e1; lease_held");
    check("add; claim p; claim p", "ok; ok e1; lease_held");
    // The second process takes over after expiry: the first one's token is stale although the name is the same.
    check(
        "add; claim a; tick 16m; takeover a; renew a token=first; renew a",
        "ok; ok e1; ok; ok e2; fenced; ok",
    );
}

#[test]
fn every_mutation_by_a_holder_needs_its_token() {
    for verb in ["renew", "release", "block", "complete"] {
        check(&format!("add; claim a; {verb} a token=none"), "ok; ok e1; lease_required");
        check(&format!("add; claim a; {verb} a token=forged; state"), "ok; ok e1; fenced; in_progress a");
        check(&format!("add; claim a; {verb} b; {verb} p"), "ok; ok e1; lease_required; lease_required");
        check(&format!("add; claim a; {verb} a token=epoch; state"), "ok; ok e1; fenced; in_progress a");
        // A token is not a bearer's: it opens the lease for its assignee alone.
        check(&format!("add; claim a; {verb} b token=a; {verb} p token=a"), "ok; ok e1; fenced; fenced");
        check(&format!("add; claim a; {verb} a"), "ok; ok e1; ok");
    }
    check(
        "add; claim a; block a; unblock b; unblock b token=a; unblock a token=forged; unblock a; state",
        "ok; ok e1; ok; lease_required; fenced; fenced; ok; in_progress a",
    );
}

#[test]
fn a_stale_holder_can_change_nothing() {
    for verb in ["renew", "release", "block", "complete", "note"] {
        check(
            &format!("add; claim a; tick 16m; takeover b; {verb} a; state; version"),
            "ok; ok e1; ok; ok e2; fenced; in_progress b; 3",
        );
        check(
            &format!("add; claim a; release a; {verb} a; claim a; {verb} a token=first; state; version"),
            "ok; ok e1; ok; fenced; ok e2; fenced; in_progress a; 4",
        );
        check(&format!("add; claim a; complete a; {verb} a; version"), "ok; ok e1; ok; fenced; 3");
    }
    check(
        "add; claim a; block a; tick 24h; tick 60s; takeover b; unblock a; state",
        "ok; ok e1; ok; ok; ok; ok e2; fenced; blocked b",
    );
}

#[test]
fn a_fenced_caller_is_told_who_holds_the_task_and_since_when() {
    let told = refusal("add; claim a; tick 16m; takeover b; renew a");
    assert_eq!(told.detail, "T-1 is held by @b since 2026-09-21T14:29:20.000Z");
    assert_eq!(told.task.as_deref(), Some("T-1"));
    let stop = "stop writing; onus show T-1 tells what became of it";
    let kept = format!("{stop}; if anything was left behind, it is kept in refs/onus/salvage/T-1/1");
    assert_eq!(told.hint, Some(kept));
    let told = refusal("add; claim a; release a; renew a");
    assert_eq!(told.detail, "T-1 is open since 2026-09-21T14:13:20.000Z");
    assert_eq!(told.hint.as_deref(), Some(stop), "nothing was taken from it");
}

#[test]
fn who_shows_no_lease_is_told_the_way_in() {
    let hint = |steps| refusal(steps).hint.unwrap();
    assert_eq!(hint("add; renew a"), "onus claim T-1");
    assert_eq!(
        hint("add; claim a; renew b"),
        "@a holds it; pass its --lease, or run from its workstation ws-a"
    );
}

#[test]
fn a_raised_generation_kills_every_token_given_before() {
    for verb in ["renew", "release", "block", "complete", "note"] {
        check(&format!("add; claim a; generation; {verb} a; state"), "ok; ok e1; ok; fenced; in_progress a");
    }
    check("add; claim a; generation; tick 16m; takeover b; renew b", "ok; ok e1; ok; ok; ok e2; ok");
    check("add; generation; claim a; renew a", "ok; ok; ok e1; ok");
}

#[test]
fn expiry_takes_nothing_away_and_lateness_is_on_record() {
    check("add; claim a; tick 14m59s; renew a", "ok; ok e1; ok; ok");
    check("add; claim a; tick 15m; renew a", "ok; ok e1; ok; ok late 0ms");
    check("add; claim a; tick 20m; renew a; tick 10m; renew a", "ok; ok e1; ok; ok late 5m; ok; ok");
    check("add; claim a; tick 1h; release a; state", "ok; ok e1; ok; ok late 45m; open");
    check("add; claim a; tick 1h; complete a; state", "ok; ok e1; ok; ok late 45m; complete a");
    check("add; claim a; tick 1h; note a; tick 5m; renew a", "ok; ok e1; ok; ok late 45m; ok; ok");
    check("add; claim a; tick 1h; block a; state", "ok; ok e1; ok; ok late 45m; blocked a");
    check("add; claim a; tick 1h; block a free; state", "ok; ok e1; ok; ok late 45m; blocked");
    check("add; claim a; tick 2d; tick 2d; state", "ok; ok e1; ok; ok; in_progress a");
}

#[test]
fn takeover_waits_for_expiry_and_grace() {
    check("add; claim a; takeover b", "ok; ok e1; not_expired");
    check("add; claim a; tick 15m; takeover b", "ok; ok e1; ok; not_expired");
    check("add; claim a; tick 15m59s; tick 999ms; takeover b", "ok; ok e1; ok; ok; not_expired");
    check("add; claim a; tick 16m; takeover b", "ok; ok e1; ok; ok e2");
    check("add; claim a; tick 16m; takeover b mute; state", "ok; ok e1; ok; reason_required; in_progress a");
    check(
        "add; claim a; tick 15m; renew a; tick 15m; takeover b",
        "ok; ok e1; ok; ok late 0ms; ok; not_expired",
    );
    check("add; claim a ttl=1m; tick 2m; takeover b", "ok; ok e1; ok; ok e2");
    check(
        "grace 5m slow; add type=slow; claim a; tick 16m; takeover b; tick 4m; takeover b",
        "ok; ok; ok e1; ok; not_expired; ok; ok e2",
    );
    assert_eq!(
        refusal("add; claim a; tick 10m; takeover b").detail,
        "@a holds T-1; it may be taken over in 6m"
    );
    assert_eq!(
        refusal("add; claim a; tick 15m30s; takeover b").detail,
        "@a holds T-1; it may be taken over in 30s"
    );
}

#[test]
fn any_activity_of_the_holder_renews() {
    check(
        "add; claim a; tick 10m; note a; lease; notes; tick 10m; renew a",
        "ok; ok e1; ok; ok; 15m until 1500s renewed 1; progress; ok; ok",
    );
    check(
        "add; claim a; tick 10m; renew a ttl=1h; lease; tick 59m; renew a; lease",
        "ok; ok e1; ok; ok; 1h until 4200s renewed 1; ok; ok; 1h until 7740s renewed 2",
    );
    // A comment is no sign of life, not even the holder's own: it showed no token.
    check("add; claim a; tick 10m; note a token=none; lease", "ok; ok e1; ok; ok; 15m until 900s renewed 0");
    check(
        "add; claim a; tick 10m; note b; lease; notes",
        "ok; ok e1; ok; ok; 15m until 900s renewed 0; comment",
    );
}

#[test]
fn people_hold_longer_and_every_length_is_positive() {
    check("add; claim a; lease", "ok; ok e1; 15m until 900s renewed 0");
    check("add; claim p; lease", "ok; ok e1; 24h until 86400s renewed 0");
    check("add; claim a ttl=0; claim a ttl=-5", "ok; invalid_input; invalid_input");
    check("add; claim a ttl=24h; renew a ttl=86400001", "ok; ok e1; invalid_input");
    check(
        "add; claim a ttl=86400001; claim p ttl=31622400001; claim p ttl=366d",
        "ok; invalid_input; invalid_input; ok e1",
    );
    check(
        "add; claim a; renew a ttl=0; renew a ttl=-1; lease",
        "ok; ok e1; invalid_input; invalid_input; 15m until 900s renewed 0",
    );
    check(
        "add; claim p; tick 23h; takeover q; tick 61m; takeover q",
        "ok; ok e1; ok; not_expired; ok; ok e2",
    );
}

#[test]
fn only_people_take_over_from_people() {
    check(
        "add; claim p; tick 2d; takeover a; takeover v; state",
        "ok; ok e1; ok; human_required; human_required; in_progress p",
    );
    check("add; claim p; tick 2d; takeover q", "ok; ok e1; ok; ok e2");
    check("add; claim a; tick 16m; takeover p", "ok; ok e1; ok; ok e2");
    check("add; claim p; reboot; takeover a; takeover q", "ok; ok e1; ok; human_required; ok e2");
}

#[test]
fn wall_clock_jumps_and_suspend_change_nothing_on_the_holders_host() {
    check("add; claim a; wall +1h; takeover b; renew a", "ok; ok e1; ok; not_expired; ok");
    check("add; claim a; wall +1d; takeover b", "ok; ok e1; ok; not_expired");
    check("add; claim a; wall -1d; tick 16m; takeover b", "ok; ok e1; ok; ok; ok e2");
    check("add; claim a; wall -1h; tick 5m; renew a", "ok; ok e1; ok; ok; ok");
    // Nor does a story run backwards: nothing ends before it began.
    check(
        "add; claim a; wall -1h; tick 5m; complete a; sessions",
        "ok; ok e1; ok; ok; ok; a 0s..0s completed",
    );
}

#[test]
fn a_reboot_of_the_holders_host_proves_it_dead() {
    check("add; claim a; reboot; takeover b; renew a", "ok; ok e1; ok; ok e2; fenced");
    // Still no force: if nobody took over, the holder's token is good.
    check("add; claim a; reboot; renew a; takeover b", "ok; ok e1; ok; ok late 0ms; not_expired");
    check("add; claim a; reboot; claim b", "ok; ok e1; ok; lease_held");
    let hint = |steps| refusal(steps).hint.unwrap();
    let over = "onus takeover T-1 --reason TEXT, or take other work: onus ready";
    assert_eq!(hint("add; claim a; reboot; claim b"), format!("its host has rebooted: {over}"));
    assert_eq!(hint("add; claim a; tick 16m; claim b"), format!("the lease has expired: {over}"));
    assert_eq!(hint("add; claim a; claim b"), "take other work: onus ready, or onus claim --next");
    // A reboot of some other host proves nothing.
    check("add; claim a; host h2; reboot; takeover b", "ok; ok e1; ok; ok; not_expired");
}

#[test]
fn another_host_goes_by_wall_time_and_grace() {
    check(
        "add; claim a; host h2; tick 15m; takeover b; tick 1m; takeover b",
        "ok; ok e1; ok; ok; not_expired; ok; ok e2",
    );
    check("add; claim a; host h2; wall -1h; tick 30m; takeover b", "ok; ok e1; ok; ok; ok; not_expired");
    check("add; claim a; host h2; renew a; host h1; takeover b", "ok; ok e1; ok; ok; ok; not_expired");
    check("add; claim a; host h2; tick 20m; renew a", "ok; ok e1; ok; ok; ok late 5m");
}

#[test]
fn a_store_behind_its_anchor_grants_nothing() {
    check(
        "add; anchor ahead; claim a; claim! p; state",
        "ok; ok; store_behind_anchor; store_behind_anchor; open",
    );
    check(
        "add; claim a; tick 16m; anchor ahead; takeover b; takeover! p",
        "ok; ok e1; ok; ok; store_behind_anchor; store_behind_anchor",
    );
    check("add; anchor ahead; claim a; anchor level; claim a", "ok; ok; store_behind_anchor; ok; ok e1");
}

#[test]
fn the_holders_own_act_closes_its_session_at_that_moment() {
    check("add; claim a; tick 5m; complete a; sessions", "ok; ok e1; ok; ok; a 0s..300s completed");
    check("add; claim a; tick 5m; release a; sessions", "ok; ok e1; ok; ok; a 0s..300s released");
    check("add; claim a; tick 5m; block a free; sessions", "ok; ok e1; ok; ok; a 0s..300s blocked");
    // Waiting is not work: a kept lease does not keep the session open.
    check(
        "add; claim a; tick 5m; block a; tick 1h; unblock a; tick 60s; complete a; sessions",
        "ok; ok e1; ok; ok; ok; ok; ok; ok; a 0s..300s blocked, a 3900s..3960s completed",
    );
    check("add; claim p; tick 5h; drop p; sessions", "ok; ok e1; ok; ok e2; p 0s..18000s dropped");
    check("add; claim p; tick 5h; complete! p; sessions", "ok; ok e1; ok; ok forced; p 0s..18000s forced");
    check("add; claim p; tick 5h; release! p; sessions", "ok; ok e1; ok; ok forced; p 0s..18000s forced");
    check("add; claim a; tick 5m; sessions", "ok; ok e1; ok; a 0s..");
    check("add; claim a; tick 20m; complete a; sessions", "ok; ok e1; ok; ok late 5m; a 0s..1200s completed");
}

#[test]
fn a_session_that_somebody_else_ends_is_closed_at_its_last_renewal() {
    check(
        "add; claim a; tick 5m; renew a; tick 20m; takeover b; sessions",
        "ok; ok e1; ok; ok; ok; ok e2; a 0s..300s taken_over, b 1500s..",
    );
    check(
        "add; claim a; tick 5m; note a; tick 5m; takeover! p; sessions",
        "ok; ok e1; ok; ok; ok; ok e2 forced; a 0s..300s forced, p 600s..",
    );
    check(
        "add; claim a; tick 5m; claim! p; sessions",
        "ok; ok e1; ok; ok e2 forced; a 0s..0s forced, p 300s..",
    );
    check(
        "add; claim a; tick 5m; renew a; tick 5m; release! p; sessions",
        "ok; ok e1; ok; ok; ok; ok forced; a 0s..300s forced",
    );
    check(
        "add; claim a; tick 5m; renew a; tick 5m; complete! p; sessions",
        "ok; ok e1; ok; ok; ok; ok forced; a 0s..300s forced",
    );
    check(
        "add; claim a; tick 5m; renew a; tick 5m; drop p; sessions",
        "ok; ok e1; ok; ok; ok; ok e2; a 0s..300s dropped",
    );
    check(
        "add; claim a; tick 5m; block a; tick 5m; drop p; sessions; assignments",
        "ok; ok e1; ok; ok; ok; ok e2; a 0s..300s blocked; a e1 dropped 300s",
    );
    check(
        "add; claim a; tick 5m; reboot; takeover b; sessions",
        "ok; ok e1; ok; ok; ok e2; a 0s..0s taken_over, b 300s..",
    );
}

#[test]
fn a_process_that_is_gone_permits_takeover_at_once() {
    check(
        "add; claim a; renew a pid=7; takeover b; end 7; takeover b; sessions",
        "ok; ok e1; ok; not_expired; ok; ok e2; a 0s..0s taken_over, b 0s..",
    );
    // Only where it can be seen, and only of who named it.
    check(
        "add; claim a; renew a pid=7; end 7; host h2; takeover b; host h1; takeover b",
        "ok; ok e1; ok; ok; ok; not_expired; ok; ok e2",
    );
    check("add; claim a; end 7; takeover b", "ok; ok e1; ok; not_expired");
    // A grant begins without one; and only people take over from people.
    check(
        "add; claim a; renew a pid=7; end 7; takeover b; takeover a ws=a",
        "ok; ok e1; ok; ok; ok e2; not_expired",
    );
    check(
        "add; claim p; renew p pid=7; end 7; takeover b; takeover q",
        "ok; ok e1; ok; ok; human_required; ok e2",
    );
    let taken = story("add; claim a; renew a pid=7; end 7; takeover b");
    assert!(taken.last().unwrap().data.contains(r#""dead":"process_gone""#), "{taken:#?}");
    let taken = story("add; claim a; reboot; takeover b");
    assert!(taken.last().unwrap().data.contains(r#""dead":"host_rebooted""#), "{taken:#?}");
    let taken = story("add; claim a; renew a pid=7; tick 16m; takeover b");
    assert!(!taken.last().unwrap().data.contains("dead"), "{taken:#?}");
}

#[test]
fn a_holder_that_goes_on_without_its_process_is_not_dead() {
    // A command's own calls keep the process on record; after its end they stand for themselves.
    check(
        "add; claim a; renew a pid=7; note a; end 7; note a; takeover b; tick 15m; takeover b; tick 1m; takeover b",
        "ok; ok e1; ok; ok; ok; ok; not_expired; ok; not_expired; ok; ok e2",
    );
    check("add; claim a; renew a pid=7; note a; end 7; takeover b", "ok; ok e1; ok; ok; ok; ok e2");
    check(
        "add; claim a; renew a pid=7; end 7; renew a pid=8; takeover b; end 8; takeover b",
        "ok; ok e1; ok; ok; ok; not_expired; ok; ok e2",
    );
}
