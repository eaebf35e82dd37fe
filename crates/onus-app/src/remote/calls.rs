//! The table of all calls that travel: name, arguments, answer, class, weight, and who answers.

use super::call::{Call, Class, calls, reply};
use super::{Sent, SentReceipt, SentTask};
use crate::Onus;
use crate::agent_hooks::HeldTask;
use crate::conflict::Relation;
use crate::consistency::Queue;
use crate::diff::LineCommentsView;
use crate::dispatch::{Plan, ProbedWorkstation, Round};
use crate::doctor::DoctorView;
use crate::exception::ExceptionsView;
use crate::export::{ExportPosition, TasksPart};
use crate::fleet::FleetView;
use crate::guard::Fleet;
use crate::handoff::{HandoffFacts, HandoffView};
use crate::idempotent_admin::Asker;
use crate::import::{Import, ImportView, Run};
use crate::inbox::{InboxView, MessagesView};
use crate::ledger::{CheckpointView, GenerationView, LedgerExportPart, RangeView, VerifyView};
use crate::limits::LimitsView;
use crate::main_of_record::ClonesAndMain;
use crate::merge::Arrived;
use crate::milestone::{MilestoneAddedView, MilestoneView, MilestonesView};
use crate::mirror::MirrorsView;
use crate::output::OutputView;
use crate::prime::PrimeView;
use crate::progress::Silent;
use crate::queue::LIMIT_MAX;
use crate::registry::{Founded, Founding};
use crate::report::{
    AnomaliesView, AuditKind, AuditView, IncidentView, NowView, SearchAsk, SearchView, SprintView, When,
};
use crate::route::{ExplainView, RouteView, Subject};
use crate::saved_view::ViewsView;
use crate::session::{DayView, SessionView, SessionsView};
use crate::show::StoryPart;
use crate::submit::Target;
use crate::timesheet::{ApprovalView, ApprovedView, Ask, TimesheetView, ics};
use crate::token::{IssuedView, TokenView, TokensView};
use crate::validate::ValidateView;
use crate::view::{
    HeldView, LandedView, LedgerView, ListView, ReadyView, StatusView, StoryView, WorkersView,
    WorkstationsView,
};
use crate::weight::Weight;
use onus_core::event::{MilestoneAdded, ReferenceMoved, ViewSaved, WorkerAdded, WorkstationAdded};
use onus_core::evidence::Proof;
use onus_core::facts::Caller;
use onus_core::id::{
    CommitId, Handle, MilestoneName, MirrorName, OriginRef, ProjectKey, RequestId, Seq, TaskId, TaskType,
    TokenId, WorkstationName,
};
use onus_core::main_of_record::{Named, RepositoryClone};
use onus_core::milestone::MilestoneEdit;
use onus_core::probe::ProbeResult;
use onus_core::refusal::Refusal;
use onus_core::registry::Registration;
use onus_core::registry::token::TokenOrder;
use onus_core::time::{Date, Timestamp};
use onus_core::worker::Worker;
use onus_core::workstation::Workstation;
use onus_store::evidence::KeptRun;
use onus_store::landed::LandedCommit;
use onus_store::read::queue::{Filter, Which};
use onus_store::read::show::PastAssignment;
use onus_store::registry::WorkstationHolding;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

calls! {
    // Commands. A server puts many of `submit` into one transaction.
    Submit "submit" (sent: Sent, target: Target) -> SentReceipt, Command Light,
        |onus, asker| {
            let envelope = onus.witnessed(sent.carried_by(asker)?)?;
            onus.submit(&envelope, &target).map(SentReceipt::from)
        };
    RehearseOne "rehearse_one" (sent: Sent) -> SentReceipt, Command Light,
        |onus, asker| onus.rehearse_one(&sent.carried_by(asker)?).map(SentReceipt::from);
    Replayed "replayed" (request: RequestId) -> Option<Result<SentReceipt, Refusal>>, Question Light,
        |onus, asker| onus.replayed(asker.actor, &request)
            .map(|found| found.map(|earlier| earlier.map(SentReceipt::from)));

    // Tasks and the queue.
    List "list" (which: Which, filter: Filter, cursor: Option<String>, limit: i64) -> ListView, Question Light,
        |onus, asker| onus.list(which, &filter, cursor.as_deref(), limit);
    Ready "ready" (filter: Filter, limit: i64) -> ReadyView, Question Light,
        |onus, asker| onus.ready(&filter, limit);
    ReadyFor "ready_for" (filter: Filter, limit: i64) -> ReadyView, Question Light,
        |onus, asker| onus.ready_for(asker.actor, &filter, limit);
    Limits "limits" (task: Option<TaskId>) -> LimitsView, Question Light,
        |onus, asker| onus.limits(task.as_ref());
    MadeReady "made_ready" (by: TaskId) -> Vec<TaskId>, Question Light, |onus, asker| onus.made_ready(&by);
    Held "held" () -> Vec<HeldView>, Question Light, |onus, asker| onus.held();
    Now "now" () -> Timestamp, Question Light, |onus, asker| onus.now();
    Status "status" () -> StatusView, Question Light, |onus, asker| onus.status();
    Show "show" (task: TaskId, part: StoryPart) -> StoryView, Question Light,
        |onus, asker| onus.show_part(&task, part);
    Log "log" (task: Option<TaskId>, after: Option<i64>, limit: i64) -> LedgerView, Question Light,
        |onus, asker| onus.log(task.as_ref(), after, bounded(limit));
    Find "find" (text: String, which: Which, filter: Filter, limit: i64) -> ListView, Question Heavy,
        |onus, asker| onus.find(&text, which, &filter, limit);
    FindTask "find_task" (task: TaskId) -> Option<SentTask>, Question Light,
        |onus, asker| Ok(onus.find_task(&task)?.map(SentTask::from));
    TaskByOrigin "task_by_origin" (origin: OriginRef) -> Option<SentTask>, Question Light,
        |onus, asker| Ok(onus.task_by_origin(&origin)?.map(SentTask::from));
    Assignments "assignments" (task: TaskId) -> Vec<PastAssignment>, Question Light,
        |onus, asker| onus.assignments(&task);
    CheckRuns "check_runs" (task: TaskId, limit: i64) -> Vec<KeptRun>, Question Light,
        |onus, asker| onus.check_runs(&task, bounded(limit));
    LastHandoff "last_handoff" (task: TaskId) -> Option<HandoffView>, Question Light,
        |onus, asker| onus.last_handoff(&task);
    SurroundingsOf "surroundings" (task: TaskId, place: WorkstationName) -> HandoffFacts, Question Light,
        |onus, asker| onus.surroundings(&task, &place);
    KnownClones "known_clones" () -> ClonesAndMain, Question Light, |onus, asker| onus.known_clones();
    AddClone "add_clone" (here: RepositoryClone) -> (), Report Light, |onus, asker| onus.add_clone(asker, &here);
    NameMainOfRecord "name_main_of_record" (wanted: Named) -> (), Report Light,
        |onus, asker| onus.name_main_of_record(asker, &wanted);
    LastWorkHere "last_work_here" (place: WorkstationName, but: Option<(TaskId, i64)>) -> Option<(TaskId, i64)>, Question Light,
        |onus, asker| onus.last_work_here(&place, but.as_ref());
    LandingOf "landing_of" (task: TaskId) -> Arrived, Question Light, |onus, asker| onus.landing_of(&task);
    LandedViewOf "landed_view_of" (task: TaskId) -> Option<LandedView>, Question Light,
        |onus, asker| onus.landed_view_of(&task);
    LandedBy "landed_by" (commits: Vec<CommitId>) -> Vec<LandedCommit>, Question Light,
        |onus, asker| onus.landed_by(&commits);
    ReviewsOf "reviews_of" (task: TaskId) -> Vec<CommitId>, Question Light, |onus, asker| onus.reviewed_commits(&task);
    Relations "relations" (task: TaskId, others: BTreeSet<TaskId>) -> BTreeMap<TaskId, Relation>, Question Light,
        |onus, asker| onus.relations(&task, &others);
    Exceptions "exceptions" (only: Option<TaskId>, after: Option<TaskId>) -> ExceptionsView, Question Light,
        |onus, asker| onus.exceptions(only.as_ref(), after.as_ref());
    Prime "prime" (only: Option<TaskId>) -> PrimeView, Question Light,
        |onus, asker| onus.prime(asker.actor, only.as_ref());
    Route "route" (only: Option<TaskType>) -> RouteView, Question Light, |onus, asker| onus.route(only.as_ref());
    Explain "explain" (subject: Subject, here: Option<WorkstationName>) -> ExplainView, Question Light,
        |onus, asker| onus.explain(&subject, asker.actor, here.as_ref());
    PlanRound "plan" (told: Vec<ProbedWorkstation>, round: Round) -> Plan, Administration Heavy,
        |onus, asker| onus.plan(asker.actor, &told, &round);
    QueueAbout "queue_about" (tasks: BTreeSet<TaskId>) -> Queue, Question Heavy,
        |onus, asker| onus.queue_about(tasks);
    ExportTasks "export_tasks" (which: Which, position: Option<ExportPosition>) -> TasksPart, Question Heavy,
        |onus, asker| onus.export_part(which, position);
    ImportJsonl "import_jsonl" (request: RequestId, project: Option<ProjectKey>, input: String, run: Run) -> ImportView,
        Import Heavy, |onus, asker| {
            let (actor, project) = (asker.actor, project.as_ref());
            onus.import_jsonl(&Import { request: &request, actor, project, input: &input, run }, &mut Silent)
        };

    // The record and the store.
    Validate "validate" () -> ValidateView, Question Heavy, |onus, asker| onus.validate(&mut Silent);
    Verify "verify" () -> VerifyView, Question Heavy, |onus, asker| onus.verify(&mut Silent);
    VerifyRange "verify_range" (after: Seq, limit: i64) -> RangeView, Question Heavy,
        |onus, asker| onus.verify_range(after, bounded(limit));
    Doctor "doctor" () -> DoctorView, Upkeep Heavy, |onus, asker| onus.doctor(&mut Silent);
    Checkpoint "checkpoint" () -> CheckpointView, Administration Heavy, |onus, asker| onus.checkpoint(asker.actor);
    RaiseGeneration "raise_generation" (reason: Option<String>) -> GenerationView, Administration Light,
        |onus, asker| onus.raise_generation(asker, reason.as_deref());
    ExportLedger "export_ledger" (after: Option<Seq>) -> LedgerExportPart, Question Heavy,
        |onus, asker| onus.export_ledger_part(after);
    SearchLedger "search_ledger" (ask: SearchAsk) -> SearchView, Question Heavy,
        |onus, asker| onus.search_ledger(asker.actor, &SearchAsk { limit: bounded(ask.limit), ..ask });

    // What was said.
    Inbox "inbox" () -> InboxView, Question Light, |onus, asker| onus.inbox(asker.actor);
    Messages "messages" (only: Option<TaskId>) -> MessagesView, Question Light,
        |onus, asker| onus.messages(asker.actor, only.as_ref());

    LineComments "line_comments" (task: TaskId) -> LineCommentsView, Question Light,
        |onus, asker| onus.line_comments(&task);

    // Who there is.
    CallerOf "caller" () -> Caller, Question Light, |onus, asker| onus.caller(asker.actor);
    Workers "workers" (only: Option<Handle>) -> WorkersView, Question Light,
        |onus, asker| onus.workers(only.as_ref());
    Join "join" (founding: Founding) -> Founded, Administration Light, |onus, asker| onus.join(asker, &founding);
    AddWorker "add_worker" (wanted: WorkerAdded) -> (Registration, Worker), Administration Light,
        |onus, asker| onus.add_worker(asker, &wanted);
    PauseWorker "pause_worker" (worker: Handle, reason: Option<String>) -> Worker, Administration Light,
        |onus, asker| onus.pause_worker(asker, &worker, reason.as_deref());
    ResumeWorker "resume_worker" (worker: Handle) -> Worker, Administration Light,
        |onus, asker| onus.resume_worker(asker, &worker);
    Holdings "holdings" (worker: Handle) -> Vec<HeldTask>, Question Light, |onus, asker| onus.holdings(&worker);
    Tokens "tokens" (only: Option<Handle>) -> TokensView, Question Light, |onus, asker| onus.tokens(only.as_ref());
    IssueToken "issue_token" (order: TokenOrder) -> IssuedView, Administration Light,
        |onus, asker| onus.issue_token(asker, &order);
    RevokeToken "revoke_token" (id: TokenId, reason: Option<String>) -> TokenView, Administration Light,
        |onus, asker| onus.revoke_token(asker, &id, reason.as_deref());

    // Where they work.
    FleetNow "fleet" () -> Fleet, Question Light, |onus, asker| onus.fleet();
    LandedIds "landed_ids" (commits: Vec<CommitId>) -> Vec<CommitId>, Question Light,
        |onus, asker| onus.landed_ids(commits);
    IsMainGuarded "is_main_guarded" () -> bool, Question Light, |onus, asker| onus.is_main_guarded();
    PersonOf "person_of" (token: String) -> Handle, Question Light, |onus, asker| onus.person_of(&token);
    MayLand "may_land" (task: TaskId, token: String, commit: CommitId, onto: CommitId, proof: Proof) -> (), Push Light,
        |onus, asker| onus.may_land(&task, &token, &commit, &onto, &proof);
    RecordPush "record_push" (token: String, moves: Vec<ReferenceMoved>, more: i64) -> (), Push Light,
        |onus, asker| onus.record_push(&token, &moves, more);
    Places "places" (sent: Sent) -> Vec<Workstation>, Question Light,
        |onus, asker| onus.places(&sent.open(asker.actor)?);
    Workstations "workstations" (only: Option<WorkstationName>) -> WorkstationsView, Question Light,
        |onus, asker| onus.workstations(only.as_ref());
    WorkstationRow "workstation" (place: WorkstationName) -> WorkstationHolding, Question Light,
        |onus, asker| onus.workstation(&place);
    FindWorkstation "find_workstation" (place: WorkstationName) -> Option<Workstation>, Question Light,
        |onus, asker| onus.find_workstation(&place);
    WorkstationRows "workstation_rows" () -> Vec<WorkstationHolding>, Question Light,
        |onus, asker| onus.workstation_rows();
    DirectoryOf "directory_of" (place: WorkstationName) -> Option<PathBuf>, Question Light,
        |onus, asker| onus.directory_of(&place);
    HoldingDirectory "holding_directory" (task: TaskId, worker: Handle) -> Option<PathBuf>, Question Light,
        |onus, asker| onus.holding_directory(&task, &worker);
    AddWorkstation "add_workstation" (wanted: WorkstationAdded) -> (Registration, Workstation), Administration Light,
        |onus, asker| onus.add_workstation(asker, &wanted);
    MayAddWorkstation "may_add_workstation" (place: WorkstationName) -> (), Question Light,
        |onus, asker| onus.may_add_workstation(asker.actor, &place);
    Quarantine "quarantine" (place: WorkstationName, reason: Option<String>) -> WorkstationHolding, Administration Light,
        |onus, asker| onus.quarantine(asker, &place, reason.as_deref());
    Restore "restore" (place: WorkstationName, reason: Option<String>) -> WorkstationHolding, Administration Light,
        |onus, asker| onus.restore(asker, &place, reason.as_deref());
    Retire "retire" (place: WorkstationName, reason: Option<String>, removed: bool) -> WorkstationHolding,
        Administration Light, |onus, asker| onus.retire(asker, &place, reason.as_deref(), removed);
    MayRemove "may_remove" (place: WorkstationName) -> (), Question Light, |onus, asker| onus.may_remove(&place);
    MayRetire "may_retire" (place: WorkstationName) -> (), Question Light,
        |onus, asker| onus.may_retire(asker.actor, &place);
    RecordProbes "record_probes" (place: WorkstationName, results: Vec<ProbeResult>) -> Workstation, Report Light,
        |onus, asker| onus.record_probes(asker, &place, &results);

    // How long.
    FleetStatus "fleet_status" (only: Vec<Handle>) -> FleetView, Question Heavy,
        |onus, asker| onus.fleet_status(&only);
    KeepOutput "keep_output" (session: Seq, position: i64, text: String) -> (), Report Light,
        |onus, asker| onus.keep_output(asker, session, position, &text);
    OutputOf "output" (session: Seq, from: i64) -> OutputView, Question Light, |onus, asker| onus.output(session, from);
    Sessions "sessions" (task: Option<TaskId>, worker: Option<Handle>, limit: i64) -> SessionsView, Question Light,
        |onus, asker| onus.sessions(task.as_ref(), worker.as_ref(), bounded(limit));
    SessionOf "session" (id: Seq) -> SessionView, Question Light, |onus, asker| onus.session(id);
    TaskOfSession "task_of_session" (id: Seq) -> Option<TaskId>, Question Light,
        |onus, asker| onus.task_of_session(id);
    Day "day" (worker: Handle, day: Date) -> DayView, Question Light, |onus, asker| onus.day(&worker, day);
    Timesheet "timesheet" (ask: Ask) -> TimesheetView, Question Heavy, |onus, asker| onus.timesheet(&ask);
    Calendar "calendar" (ask: Ask) -> ics::Calendar, Question Heavy, |onus, asker| onus.calendar(&ask);
    ZoneOf "zone_of" (worker: Option<Handle>) -> String, Question Light, |onus, asker| onus.zone_of(worker.as_ref());
    Today "today" (worker: Option<Handle>) -> Date, Question Light, |onus, asker| onus.today(worker.as_ref());
    ApproveTimesheet "approve_timesheet" (worker: Handle, from: Date, to: Date) -> ApprovedView, Administration Heavy,
        |onus, asker| onus.approve_timesheet(asker, &worker, (from, to));
    ApprovalsOf "approvals_of" (worker: Handle, from: Date, to: Date) -> Vec<ApprovalView>, Question Light,
        |onus, asker| onus.approvals_of(&worker, from, to);

    // How far, and how it went.
    Milestones "milestones" () -> MilestonesView, Question Light, |onus, asker| onus.milestones();
    MilestoneOf "milestone" (name: MilestoneName) -> MilestoneView, Question Heavy, |onus, asker| onus.milestone(&name);
    AddMilestone "add_milestone" (wanted: MilestoneAdded) -> MilestoneAddedView, Administration Light,
        |onus, asker| onus.add_milestone(asker, &wanted);
    EditMilestone "edit_milestone" (name: MilestoneName, wanted: MilestoneEdit) -> MilestoneView, Administration Light,
        |onus, asker| onus.edit_milestone(asker, &name, &wanted);
    CloseMilestone "close_milestone" (name: MilestoneName) -> MilestoneView, Judgement Heavy,
        |onus, asker| onus.close_milestone(asker, &name);
    Views "views" () -> ViewsView, Question Light, |onus, asker| onus.views();
    SaveView "save_view" (wanted: ViewSaved) -> ViewsView, Administration Light,
        |onus, asker| onus.save_view(asker, &wanted);
    Mirrors "mirrors" () -> MirrorsView, Question Light, |onus, asker| onus.mirrors();
    RetryMirror "retry_mirror" (mirror: MirrorName, task: Option<TaskId>) -> MirrorsView, Administration Light,
        |onus, asker| onus.retry_mirror(asker, &mirror, task.as_ref());
    SkipMirror "skip_mirror" (mirror: MirrorName, task: TaskId, reason: Option<String>) -> MirrorsView,
        Administration Light, |onus, asker| onus.skip_mirror(asker, &mirror, &task, reason.as_deref());
    ReportNow "report_now" (when: When) -> NowView, Question Light, |onus, asker| onus.report_now(asker.actor, &when);
    ReportSprint "report_sprint" (sprint: Option<String>) -> SprintView, Question Heavy,
        |onus, asker| onus.report_sprint(asker.actor, sprint.as_deref());
    ReportIncident "report_incident" (task: TaskId, after: Option<Seq>) -> IncidentView, Question Heavy,
        |onus, asker| onus.report_incident(&task, after);
    ReportAudit "report_audit" (when: When, only: Vec<AuditKind>, after: Option<Seq>) -> AuditView, Question Heavy,
        |onus, asker| onus.audit_part(asker.actor, &when, &only, after);
    ReportAnomalies "report_anomalies" (when: When) -> AnomaliesView, Question Heavy,
        |onus, asker| onus.report_anomalies(asker.actor, &when);
}

/// What a caller may have at once of what it asks for by number.
fn bounded(limit: i64) -> i64 {
    limit.clamp(1, LIMIT_MAX)
}
