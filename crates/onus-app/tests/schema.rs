//! The documents that scripts rely on, as a published JSON schema.

use onus_app::consistency::ConsistencyView;
use onus_app::dispatch::DispatchView;
use onus_app::doctor::DoctorView;
use onus_app::exception::ExceptionsView;
use onus_app::fleet::FleetView;
use onus_app::handoff::HandoffView;
use onus_app::import::{ImportView, RestoreView};
use onus_app::ledger::{CheckpointView, GenerationView, VerifyView};
use onus_app::limits::LimitsView;
use onus_app::merge::MergeView;
use onus_app::milestone::{MilestoneAddedView, MilestonesView, VerifiedView};
use onus_app::preflight::PreflightView;
use onus_app::prime::PrimeView;
use onus_app::report::{AnomaliesView, AuditView, IncidentView, NowView, SearchView, SprintView};
use onus_app::route::{CheckView, ExplainView, HistoryView, RouteView};
use onus_app::session::{DayView, SessionsView};
use onus_app::timesheet::{ApprovedView, TimesheetView};
use onus_app::token::{IssuedView, TokensView};
use onus_app::usage::UsageView;
use onus_app::validate::ValidateView;
use onus_app::view::{
    AddView, ChangeView, ClaimView, LedgerView, ListView, ReadyView, StaleView, StatusView, StoryView,
    WorkersView, WorkstationsView,
};
use schemars::SchemaGenerator;
use serde_json::{Value, json};

fn document() -> String {
    let mut generator = SchemaGenerator::default();
    generator.subschema_for::<AddView>();
    generator.subschema_for::<ChangeView>();
    generator.subschema_for::<ClaimView>();
    generator.subschema_for::<LedgerView>();
    generator.subschema_for::<ListView>();
    generator.subschema_for::<ReadyView>();
    generator.subschema_for::<StaleView>();
    generator.subschema_for::<StatusView>();
    generator.subschema_for::<StoryView>();
    generator.subschema_for::<LimitsView>();
    generator.subschema_for::<WorkersView>();
    generator.subschema_for::<WorkstationsView>();
    generator.subschema_for::<RouteView>();
    generator.subschema_for::<CheckView>();
    generator.subschema_for::<ExplainView>();
    generator.subschema_for::<HistoryView>();
    generator.subschema_for::<DispatchView>();
    generator.subschema_for::<PreflightView>();
    generator.subschema_for::<CheckpointView>();
    generator.subschema_for::<ConsistencyView>();
    generator.subschema_for::<DoctorView>();
    generator.subschema_for::<HandoffView>();
    generator.subschema_for::<PrimeView>();
    generator.subschema_for::<ExceptionsView>();
    generator.subschema_for::<GenerationView>();
    generator.subschema_for::<ImportView>();
    generator.subschema_for::<MergeView>();
    generator.subschema_for::<RestoreView>();
    generator.subschema_for::<ValidateView>();
    generator.subschema_for::<VerifyView>();
    generator.subschema_for::<ApprovedView>();
    generator.subschema_for::<DayView>();
    generator.subschema_for::<SessionsView>();
    generator.subschema_for::<TimesheetView>();
    generator.subschema_for::<NowView>();
    generator.subschema_for::<SprintView>();
    generator.subschema_for::<IncidentView>();
    generator.subschema_for::<AuditView>();
    generator.subschema_for::<AnomaliesView>();
    generator.subschema_for::<SearchView>();
    generator.subschema_for::<UsageView>();
    generator.subschema_for::<MilestoneAddedView>();
    generator.subschema_for::<MilestonesView>();
    generator.subschema_for::<onus_app::saved_view::ViewsView>();
    generator.subschema_for::<VerifiedView>();
    generator.subschema_for::<IssuedView>();
    generator.subschema_for::<TokensView>();
    generator.subschema_for::<FleetView>();
    let definitions: Value =
        generator.take_definitions(true).into_iter().collect::<serde_json::Map<_, _>>().into();
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Documents of onus --json",
        "description": "Every document also has `format`: \"onus/1\". Fields may be added, never renamed.",
        "$defs": definitions,
    });
    format!("{document:#}\n")
}

#[test]
fn the_published_schema_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract/documents.schema.json");
    let text = document();
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == text,
        "contract/documents.schema.json differs: UPDATE_CONTRACT=1 cargo test -p onus-app --test schema"
    );
}

/// The field names of interface.md, word for word.
#[test]
fn no_field_of_the_contract_was_renamed() {
    let schema: Value = serde_json::from_str(&document()).unwrap();
    let fields = |name: &str, wanted: &str| {
        for field in wanted.split_whitespace() {
            assert!(!schema["$defs"][name]["properties"][field].is_null(), "{name} lost `{field}`");
        }
    };
    fields(
        "TaskView",
        "id uid title body type kind state priority risk role lane sprint tags scope depends_on parent merge_order \
         origin_ask_ref checks assignment version created_by created_at updated_at",
    );
    fields(
        "AssignmentView",
        "task assignee tier workstation scope constraints epoch assigned_at lease_ttl_ms lease_expires_at renewed_at \
         renewals handoff_reason forced route ended_at end_reason",
    );
    fields("LeaseView", "token epoch ttl_ms expires_at");
    fields("AddView", "outcome task");
    fields("ClaimView", "task lease assignment");
    fields("ListView", "tasks next");
    fields("ReadyView", "tasks not_ready counts");
    fields("NotReadyView", "task reasons");
    fields("WorkerView", "handle kind tier role state tz");
    fields("WorkstationView", "name kind path state lifecycle version held_by probes");
    fields("TimesheetView", "from to rows total_seconds");
    fields("RowView", "worker task day sessions seconds billable_seconds tokens cost");
    fields("SessionView", "id worker workstation epoch started_at ended_at end_reason seconds");
    fields("EntryView", "seq task at actor workstation epoch verb data prev hash");
}
