//! How much a call takes: what a server does with many callers depends on it.

/// What one call takes of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// As much with a million tasks as with ten.
    Light,
    /// More with every task, entry or session that there is. A server answers these on threads of their own, one at a time
    /// for each caller.
    Heavy,
}

/// What a call that travels takes.
pub fn of_call(name: &str) -> Weight {
    match name {
        "verify" | "verify_ledger" | "verify_range" | "doctor" | "validate" | "checkpoint"
        | "export_ledger" | "export_tasks" | "import_jsonl" | "queue_about" | "plan" | "timesheet"
        | "calendar" | "approve_timesheet" | "milestone" | "close_milestone" | "report_sprint"
        | "report_incident" | "report_audit" | "report_anomalies" | "search_ledger" => Weight::Heavy,
        _ => Weight::Light,
    }
}
