//! One suite for every database: what a driver must do. Another driver adds a `Harness` and a module.

mod effort;
pub(crate) mod harness;
mod milestone;
mod queue;
mod report;
mod rows;
mod token;
mod transactions;

use onus_store::sqlite::Options;

/// Runs every case of the suite against each database that is there.
macro_rules! conformance {
    ($([$($module:ident :: $case:ident),+ $(,)?])+) => {
        mod sqlite {
            use super::*;
            $($(#[test] fn $case() { $module::$case(&harness::SqliteFile::new(Options::one_shot)); })+)+
        }

        mod sqlite_that_stays {
            use super::*;
            $($(#[test] fn $case() { $module::$case(&harness::SqliteFile::new(Options::staying)); })+)+
        }

        mod postgres {
            use super::*;
            $($(#[test] fn $case() { if let Some(harness) = harness::PostgresDatabase::new() { $module::$case(&harness); } })+)+
        }
    };
}

conformance!([
    transactions::a_commit_is_seen_by_others,
    transactions::a_rollback_leaves_nothing,
    transactions::an_error_leaves_nothing,
    transactions::a_view_does_not_move,
    transactions::writers_take_turns_and_lose_nothing,
    transactions::numbers_are_used_once,
    transactions::the_clock_is_read_inside,
    transactions::a_mark_divides_a_transaction,
    transactions::a_mark_before_nothing_costs_nothing,
    transactions::what_was_decided_is_never_half_undone,
    rows::every_value_reads_back,
    rows::an_edit_reaches_every_column,
    rows::every_state_reads_back,
    rows::the_guard_of_a_row_holds,
    rows::a_chain_cannot_fork,
    rows::a_workstation_holds_one_assignment,
    rows::an_origin_is_one_task,
    rows::a_request_is_carried_out_once,
    rows::what_refers_to_nothing_is_refused,
    rows::nonsense_is_corruption_not_a_default,
    queue::the_list_is_in_order_and_pages_join,
    queue::ready_means_open_with_complete_dependencies,
    queue::a_parent_is_ready_behind_its_slices,
    queue::filters_narrow,
    queue::a_search_finds_words_wherever_they_stand,
    queue::words_are_indexed_a_little_at_a_time,
    queue::a_search_reads_no_whole_table,
    queue::no_hot_statement_scans_a_table,
    effort::a_period_has_every_session_that_touches_it,
    effort::the_last_correction_counts_and_the_past_stays,
    effort::the_last_usage_of_each_record_counts,
    effort::limits_add_up_what_agents_used,
    effort::a_stop_and_its_end_are_found,
    effort::approvals_are_found_by_the_days_they_touch,
    effort::a_grant_is_told_when_the_worker_last_worked_there,
    report::entries_are_found_by_verb_and_time,
    report::assignments_are_told_with_what_their_tasks_are_about,
    report::what_waits_for_somebody_is_found,
    milestone::a_milestone_reads_back,
    milestone::a_milestone_is_about_what_it_names_and_what_shares_it,
    milestone::a_target_moves_while_it_is_open,
    milestone::a_view_reads_back_and_goes,
    token::a_token_reads_back,
    token::a_token_ends_once_and_its_use_only_rises,
    token::no_two_tokens_share_a_secret,
]);
