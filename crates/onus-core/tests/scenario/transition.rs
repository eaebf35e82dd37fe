//! "Transitions", command by command: from which state, under which guards, by whom.

use crate::tests::support::script::{check, refusal};

#[test]
fn a_takeover_keeps_the_state_and_records_its_reason() {
    check(
        "add; claim a; tick 16m; takeover b why=silent; assignments",
        "ok; ok e1; ok; ok e2; a e1 taken_over 0s, b e2 (silent) held",
    );
    check(
        "add; claim a; block a; tick 24h; tick 1m; takeover b; state; unblock b; state",
        "ok; ok e1; ok; ok; ok; ok e2; blocked b; ok; in_progress b",
    );
    check("add; takeover b", "ok; not_claimable");
    check("add; claim a; complete a; takeover b", "ok; ok e1; ok; not_claimable");
    check("add; drop p; takeover! p", "ok; ok e1; not_claimable");
}

#[test]
fn force_is_for_people_with_a_reason() {
    for verb in ["claim", "takeover", "release", "complete"] {
        check(
            &format!("add; claim a; {verb}! b; {verb}! v; {verb}! a; state"),
            "ok; ok e1; human_required; human_required; human_required; in_progress a",
        );
        check(
            &format!("add; claim a; {verb}! p mute; {verb}! p why=; state"),
            "ok; ok e1; reason_required; reason_required; in_progress a",
        );
    }
    check("add; claim a; release! p; renew a; state", "ok; ok e1; ok forced; fenced; open");
    check("add; claim a; complete! p; renew a; state", "ok; ok e1; ok forced; fenced; complete p forced");
    check("add; complete! p; state", "ok; ok forced; complete p forced");
    check("add; complete! p silent; complete! p blank", "ok; resolution_required; resolution_required");
    // One reason serves both: why it is taken over, and why against the rules.
    check("add; claim a; takeover! p bare", "ok; ok e1; ok e2 forced");
    check(
        "add; claim a; takeover! p; renew a; state",
        "ok; ok e1; ok e2 forced; fenced; in_progress p forced",
    );
    check("add; claim a; block a; claim! p; state", "ok; ok e1; ok; ok e2 forced; in_progress p forced");
    check("add; claim a; block a free; claim! p; state", "ok; ok e1; ok; ok e2 forced; in_progress p forced");
    check("add; claim a; block a; complete! p; state", "ok; ok e1; ok; ok forced; complete p forced");
    check("add; claim a; block a free; release! p; state", "ok; ok e1; ok; ok forced; open");
}

#[test]
fn force_never_revives_what_has_ended() {
    check("add; release! p", "ok; wrong_state");
    for verb in ["claim", "takeover"] {
        check(&format!("add; claim a; complete a; {verb}! p"), "ok; ok e1; ok; not_claimable");
        check(&format!("add; drop p; {verb}! p"), "ok; ok e1; not_claimable");
    }
    for verb in ["release", "complete"] {
        check(&format!("add; claim a; complete a; {verb}! p"), "ok; ok e1; ok; wrong_state");
        check(&format!("add; drop p; {verb}! p"), "ok; ok e1; wrong_state");
    }
}

#[test]
fn what_was_forced_stays_flagged_for_ever() {
    check(
        "add; claim a; claim! p; renew p; note p; complete p; assignments",
        "ok; ok e1; ok e2 forced; ok; ok; ok; a e1 forced 0s, p e2 forced completed 0s",
    );
    check("add; complete! p; note a; dep q on=1; state", "ok; ok forced; ok; wrong_state; complete p forced");
}

#[test]
fn reopen_and_drop_raise_the_epoch_and_kill_tokens() {
    check(
        "add; claim a; complete a; reopen p; state; renew a; claim b",
        "ok; ok e1; ok; ok e2; open; fenced; ok e3",
    );
    check("add; claim a; drop p; state; renew a; complete a", "ok; ok e1; ok e2; dropped p; fenced; fenced");
    check("add; drop p; claim a; reopen p; drop p", "ok; ok e1; not_claimable; wrong_state; wrong_state");
    check("add; claim a; complete a; drop p; state", "ok; ok e1; ok; ok e2; dropped p");
    check("add; claim a; block a; drop p; state", "ok; ok e1; ok; ok e2; dropped p");
    check(
        "add; reopen p; claim a; reopen p; block a; reopen p",
        "ok; wrong_state; ok e1; wrong_state; ok; wrong_state",
    );
}

#[test]
fn reopen_is_for_people_and_verifiers_and_drop_for_people() {
    check(
        "add; claim a; complete a; reopen a; reopen b; state",
        "ok; ok e1; ok; human_required; human_required; complete a",
    );
    check("add; claim a; complete a; reopen v; state", "ok; ok e1; ok; ok e2; open");
    check("add; drop a; drop v; state", "ok; human_required; human_required; open");
    check(
        "add; claim a; complete a; reopen p mute; drop p mute",
        "ok; ok e1; ok; reason_required; reason_required",
    );
}

#[test]
fn a_blocked_task_is_kept_or_given_back_by_choice() {
    check("add; claim a; block a; state; lease", "ok; ok e1; ok; blocked a; 24h until 86400s renewed 1");
    check(
        "add; claim a; block a; unblock a; state; lease",
        "ok; ok e1; ok; ok; in_progress a; 15m until 900s renewed 2",
    );
    check("add; claim p ttl=2d; block p; lease", "ok; ok e1; ok; 2d until 172800s renewed 1");
    check("add; claim a; block a; release a; state", "ok; ok e1; ok; ok; open");
    check(
        "add; claim a; block a free; state; renew a; unblock p; state",
        "ok; ok e1; ok; blocked; fenced; ok; open",
    );
    check("add; claim a; block a; block a; complete a", "ok; ok e1; ok; wrong_state; wrong_state");
    check("add; claim a; block a; claim b", "ok; ok e1; ok; lease_held");
    check("add; claim a; block a free; claim b", "ok; ok e1; ok; not_claimable");
    check("add; claim a; block a on=task:T-1", "ok; ok e1; invalid_input");
    check(
        "add; claim a; block a on=task:T-9; block a on=person:@nobody",
        "ok; ok e1; unknown_task; unknown_worker",
    );
    check("add; claim a; block a on=person:@q; state", "ok; ok e1; ok; blocked a");
    check(
        "add; claim a; unblock a; unblock b; unblock b token=a",
        "ok; ok e1; wrong_state; lease_required; fenced",
    );
}

#[test]
fn a_free_task_stays_blocked_until_a_person_or_the_blockers_end_opens_it() {
    check(
        "add; claim a; block a free; unblock a; unblock b; state",
        "ok; ok e1; ok; human_required; human_required; blocked",
    );
    check(
        "add; add on=1; claim! p; except p on=1; block p on=exception:T-1 free; unblock b; unblock p",
        "ok; ok; ok e1 forced; ok; ok; human_required; ok",
    );
    // What is not there, or not waited for any more, would be waited for for ever.
    check("add; claim a; block a on=exception:77", "ok; ok e1; unknown_name");
    check(
        "add; add on=1; claim! p; block p on=exception:T-1; except p on=1; approve q on=1; block p on=exception:T-1",
        "ok; ok; ok e1 forced; unknown_name; ok; ok; invalid_input",
    );
    check(
        "add; claim a; block a free; takeover b; takeover p; takeover! p",
        "ok; ok e1; ok; not_claimable; not_claimable; not_claimable",
    );
    let waits = "add; add; claim a; block a on=task:T-1 free; unblock b";
    check(waits, "ok; ok; ok e1; ok; human_required");
    check(
        &format!("{waits}; complete! p #1; unblock b; state"),
        "ok; ok; ok e1; ok; human_required; ok forced; ok; open",
    );
    check(
        &format!("{waits}; drop p #1; unblock b"),
        "ok; ok; ok e1; ok; human_required; ok e1; human_required",
    );
    // The end of some other task says nothing.
    check(
        "add; complete! p; add; add on=1; claim a; block a on=task:T-2 free; unblock b; state",
        "ok; ok forced; ok; ok; ok e1; ok; human_required; blocked",
    );
}

#[test]
fn dependencies_gate_the_claim() {
    check("add; add on=1; claim a", "ok; ok; dependency_incomplete");
    check("add; add on=1; claim a #1; claim b #2", "ok; ok; ok e1; dependency_incomplete");
    check("add; add on=1; claim a #1; complete a #1; claim b", "ok; ok; ok e1; ok; ok e1");
    check("add; add on=1; drop p #1; claim b", "ok; ok; ok e1; dependency_incomplete");
    check(
        "add; add on=1; claim a #1; complete a #1; reopen p #1; claim b",
        "ok; ok; ok e1; ok; ok e2; dependency_incomplete",
    );
    check("add; add; add on=1,2; claim a", "ok; ok; ok; dependency_incomplete+dependency_incomplete");
    check("add; add on=1; claim! p; state", "ok; ok; ok e1 forced; in_progress p forced");
    check(
        "add; add; dep q on=1; claim a; undep a on=1; undep p on=1; claim a",
        "ok; ok; ok; dependency_incomplete; human_required; ok; ok e1",
    );
    check("add on=9", "unknown_task");
    check("add; dep p on=9; undep p on=9", "ok; unknown_task; unknown_name");
    check("add; add; dep p on=1; dep q on=1; version", "ok; ok; ok; existing T-2; 2");
    // An agent adds dependencies to what it holds or asked for; else one agent could stall the queue.
    check("add; add; dep a on=1; claim a; dep a on=1", "ok; ok; not_permitted; ok e1; ok");
    check("add; add; claim a; dep b on=1; dep b on=1 token=a", "ok; ok; ok e1; not_permitted; not_permitted");
    check("add; add a; dep a on=1; dep b on=1", "ok; ok; ok; not_permitted");
    check(
        "add; add; claim a; complete a; dep p on=1; undep p on=1",
        "ok; ok; ok e1; ok; wrong_state; wrong_state",
    );
    assert_eq!(refusal("add; add on=1; claim a").detail, "it depends on T-1, which is open");
}

#[test]
fn a_circle_is_refused_with_its_path() {
    check("add; dep p on=1", "ok; dependency_cycle");
    check("add; add on=1; dep p #1 on=2; version #1", "ok; ok; dependency_cycle; 1");
    check("add; add on=1; add on=2; add on=1,3; dep p #1 on=4", "ok; ok; ok; ok; dependency_cycle");
    check("add; add on=1; add on=1; dep p #3 on=2", "ok; ok; ok; ok");
    let told = refusal("add; add on=1; add on=2; add on=3; dep p #1 on=4");
    assert_eq!(told.detail, "T-1 cannot depend on T-4: T-1 -> T-4 -> T-3 -> T-2 -> T-1");
    assert_eq!(refusal("add; dep p on=1").detail, "T-1 cannot depend on T-1: T-1 -> T-1");
}

#[test]
fn the_same_ask_is_the_existing_task() {
    check("add origin=gh:1; add origin=gh:1; add origin=gh:2", "ok; existing T-1; ok");
    check("add origin=gh:1; add b origin=gh:1 title=edited; version", "ok; existing T-1; 1");
    // Only the key tells: the same words are two asks.
    check("add title=same; add title=same", "ok; ok");
    check("add origin=gh:1; drop p; add origin=gh:1; state", "ok; ok e1; existing T-1; dropped p");
}

#[test]
fn asks_are_checked_and_every_finding_is_told() {
    check("add scope=../secrets; add scope=/etc; add scope=src/**", "invalid_input; invalid_input; ok");
    check("add scope=/etc title=\u{202e}", "invalid_input+invalid_input");
    check(
        "add archived=open; add archived=blocked; add archived=in_progress",
        "invalid_input; invalid_input; invalid_input",
    );
    check("add scope=/etc on=8,9", "invalid_input+unknown_task+unknown_task");
}

#[test]
fn archived_history_is_never_work() {
    for state in ["complete", "dropped"] {
        for verb in ["claim a", "claim! p", "takeover a", "takeover! p"] {
            check(&format!("add archived={state}; {verb}; version"), "ok; not_claimable; 1");
        }
    }
    check("add archived=complete; reopen p; reopen v", "ok; not_claimable; not_claimable");
    check("add archived=dropped; reopen p", "ok; wrong_state");
    check("add archived=complete; drop p; state", "ok; wrong_state; complete p");
    check("add a archived=complete; add v archived=dropped", "human_required; human_required");
    check("add archived=complete; add on=1; claim a", "ok; ok; ok e1");
    check("add archived=complete; complete! p; release! p; note a", "ok; wrong_state; wrong_state; ok");
}

#[test]
fn nothing_is_complete_on_somebodys_word_alone() {
    check(
        "add check; checks; claim a; complete a; state",
        "ok; approved; ok e1; checks_missing; in_progress a",
    );
    check(
        "add a check; checks; claim a; complete a; state",
        "ok; proposed; ok e1; check_unapproved; in_progress a",
    );
    check("add check; claim a; complete! p; state", "ok; ok e1; ok forced; complete p forced");
    check("add; claim a; complete a silent; state", "ok; ok e1; resolution_required; in_progress a");
    check("add; claim a; complete a; notes; state", "ok; ok e1; ok; resolution; complete a");
    check(
        "add; complete a; complete p; claim a; complete b",
        "ok; lease_required; lease_required; ok e1; lease_required",
    );
}

#[test]
fn the_gate_reports_every_finding_at_once() {
    check("add; claim a ws=none; claim a ws=nowhere", "ok; workstation_unknown; workstation_unknown");
    check("add; workstation a registered; claim a", "ok; ok; workstation_not_ready");
    check("add; workstation a retired; claim a", "ok; ok; workstation_not_ready");
    check(
        "add; workstation a quarantined; claim a; claim! p ws=a",
        "ok; ok; workstation_quarantined; workstation_quarantined",
    );
    check(
        "add; add; claim a #1; claim a #2; claim b #2 ws=a",
        "ok; ok; ok e1; workstation_busy; workstation_busy",
    );
    check("add; add; claim a #1; release a #1; claim b #2 ws=a", "ok; ok; ok e1; ok; ok e1");
    check(
        "add; add; add on=2; claim a #1; workstation a quarantined; pause b; claim b #3 ws=a",
        "ok; ok; ok; ok e1; ok; ok; dependency_incomplete+not_permitted+workstation_quarantined+workstation_busy",
    );
    // The task stays unassigned and the refusal is on record.
    check("add; claim a ws=nowhere; state; verbs", "ok; workstation_unknown; open; added refused");
    check(
        "add; tick 60s; claim a ws=nowhere; updated; note a; updated",
        "ok; ok; workstation_unknown; 0s; ok; 60s",
    );
    check("add; claim a; claim b; verbs", "ok; ok e1; lease_held; added claimed");
    assert_eq!(
        refusal("add; add; claim a #1; claim b ws=none").hint.as_deref(),
        Some("--workstation ws-b | ws-p | ws-q | ws-v")
    );
}

#[test]
fn a_takeover_passes_the_same_gate() {
    check("add; claim a; tick 16m; takeover b ws=a; state", "ok; ok e1; ok; ok e2; in_progress b");
    check("add; claim a; tick 16m; takeover b ws=nowhere", "ok; ok e1; ok; workstation_unknown");
    check(
        "add; claim a; tick 16m; workstation b quarantined; takeover b; state",
        "ok; ok e1; ok; ok; workstation_quarantined; in_progress a",
    );
    check(
        "add; add; claim a #1; claim b #2; tick 16m; takeover b #1",
        "ok; ok; ok e1; ok e1; ok; workstation_busy",
    );
    check("add; claim a; claim! p ws=a; state", "ok; ok e1; ok e2 forced; in_progress p forced");
}

#[test]
fn a_paused_worker_gets_no_work_but_may_finish_its_own() {
    check("add; pause a; claim a", "ok; ok; not_permitted");
    check("add; claim a; tick 16m; pause b; takeover b", "ok; ok e1; ok; ok; not_permitted");
    check("add; pause p; claim! p", "ok; ok; not_permitted");
    check("add; claim a; pause a; renew a; note a; complete a", "ok; ok e1; ok; ok; ok; ok");
}

#[test]
fn nothing_anonymous_enters_the_ledger() {
    for verb in [
        "add", "claim", "takeover", "renew", "release", "block", "unblock", "note", "complete", "reopen",
        "drop",
    ] {
        check(&format!("add; {verb} -; {verb} x; version"), "ok; identity_required; unknown_worker; 1");
    }
    check("add; claim a; renew - token=a; renew x token=a", "ok; ok e1; identity_required; unknown_worker");
    check("claim a; note p; drop p #7", "unknown_task; unknown_task; unknown_task");
}

#[test]
fn anybody_may_comment_and_a_stale_holder_may_not_pose_as_one() {
    check(
        "add; note a; claim a; note b; complete a; note q; notes",
        "ok; ok; ok e1; ok; ok; ok; comment comment resolution comment",
    );
    check("add; claim a; release a note=half-done; notes", "ok; ok e1; ok; handoff");
    check("add; claim a; note b token=a; note a token=forged; notes", "ok; ok e1; fenced; fenced; ");
    check(
        "add; note a note=\u{7}; claim a; release a note=\u{7}; state",
        "ok; invalid_input; ok e1; invalid_input; in_progress a",
    );
}

#[test]
fn lists_have_an_end() {
    check("add tags=255; add tags=256; add tags=257", "ok; ok; invalid_input");
    assert_eq!(refusal("add tags=257").detail, "257 tags; the limit is 256");
}
