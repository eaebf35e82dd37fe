//! The one table of refusal codes. CLI, HTTP, MCP and the documentation all read it; nothing else maps a code
//! to a status or an exit code (mission B4, C2, C4: every refusal has a stable code).

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($variant:ident $name:literal $http:literal $exit:literal $title:literal),+ $(,)?) => {
        /// Why a call was refused. Codes may be added, never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $title] $variant),+ }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            pub const fn name(self) -> &'static str { match self { $(Code::$variant => $name),+ } }
            pub const fn http_status(self) -> u16 { match self { $(Code::$variant => $http),+ } }
            pub const fn exit_code(self) -> u8 { match self { $(Code::$variant => $exit),+ } }
            /// One short sentence, the same for every occurrence.
            pub const fn title(self) -> &'static str { match self { $(Code::$variant => $title),+ } }
            /// The page that explains it, with what to do next: `docs/errors/<code>.md`.
            pub const fn page(self) -> &'static str {
                match self { $(Code::$variant => include_str!(concat!("../../../docs/errors/", $name, ".md"))),+ }
            }
        }
    };
}

codes! {
    IdentityRequired       "identity_required"       401  2 "No write without an identity",
    UnknownWorker          "unknown_worker"          403  2 "The worker is not registered",
    InvalidInput           "invalid_input"           400  2 "The input is not valid",
    RequestConflict        "request_conflict"        409  2 "The request id was used for another command",
    ReasonRequired         "reason_required"         422  2 "A reason is required",
    ResolutionRequired     "resolution_required"     422  2 "A resolution note is required",
    DependencyCycle        "dependency_cycle"        422  2 "The dependency would close a cycle",
    MapInvalid             "map_invalid"             422  2 "The executor identity map is not valid",
    UnknownTask            "unknown_task"            404  3 "There is no such task",
    UnknownName            "unknown_name"            404  3 "There is nothing of that name",
    LeaseHeld              "lease_held"              409  4 "The task is held by somebody else",
    Fenced                 "fenced"                  409  4 "The lease is no longer yours",
    LeaseRequired          "lease_required"          409  4 "Only the holder may do this",
    NotExpired             "not_expired"             409  4 "The lease has not expired",
    NotClaimable           "not_claimable"           409  4 "The task cannot be claimed in its state",
    DependencyIncomplete   "dependency_incomplete"   409  5 "A dependency is not complete",
    RoutingDenied          "routing_denied"          403  5 "The identity map does not allow this",
    WorkstationUnknown     "workstation_unknown"     422  5 "The workstation is not registered",
    WorkstationNotReady    "workstation_not_ready"   409  5 "The workstation is not ready",
    WorkstationBusy        "workstation_busy"        409  5 "The workstation already holds an assignment",
    WorkstationQuarantined "workstation_quarantined" 409  5 "The workstation is quarantined",
    LaneFull               "lane_full"               409  5 "The lane is full",
    ScopeOverlap           "scope_overlap"           409  5 "The scope overlaps a live assignment",
    BudgetExceeded         "budget_exceeded"         409  5 "A limit is reached",
    ScopeViolation         "scope_violation"         403  5 "A path lies outside the assignment's scope",
    HumanRequired          "human_required"          403  5 "Only a person may do this",
    Unauthenticated        "unauthenticated"         401  5 "The token does not prove who calls",
    NotPermitted           "not_permitted"           403  5 "The caller may not do this",
    WrongState             "wrong_state"             409  5 "The task's state does not allow this",
    ChecksMissing          "checks_missing"          409  5 "A check has not been run at this commit",
    CheckUnapproved        "check_unapproved"        409  5 "A check awaits a person's approval",
    EvidenceMissing        "evidence_missing"        409  5 "Required evidence is missing",
    RootCauseMissing       "root_cause_missing"      409  5 "A defect needs its root cause",
    ReviewMissing          "review_missing"          409  5 "The work needs another worker's approval",
    CriteriaOpen           "criteria_open"           409  5 "An acceptance criterion is not ticked",
    NotMerged              "not_merged"              409  5 "The work is not in the main branch",
    NotOwnCommits          "not_own_commits"         403  5 "The branch has commits that are not this assignment's",
    MainOfRecordUnset      "main_of_record_unset"    409  5 "Nobody has named the main branch that counts",
    MirrorStuck            "mirror_stuck"            409  5 "An outside system was not told",
    GateBypassed           "gate_bypassed"           409  5 "A gate was bypassed",
    MilestoneIncomplete    "milestone_incomplete"    409  5 "Something is missing from the milestone",
    SelfReview             "self_review"             403  5 "Nobody reviews their own work",
    QueueInvalid           "queue_invalid"           409  5 "The queue has findings",
    LedgerBroken           "ledger_broken"           409  5 "The record does not verify",
    StoreBehindAnchor      "store_behind_anchor"     503  5 "The store is older than its anchor",
    PreconditionFailed     "precondition_failed"     412  5 "The task has changed meanwhile",
    TooManyRequests        "too_many_requests"       429  5 "The caller asks too often",
    NothingReady           "nothing_ready"           404  6 "No task is ready",
    ChecksFailed           "checks_failed"           422  7 "A check failed",
    StoreBusy              "store_busy"              503 69 "The store is busy",
    StoreUnavailable       "store_unavailable"       503 69 "The store cannot be used",
    Internal               "internal"                500  1 "Something unexpected happened",
}

/// What kind of obstacle a finding is, so that whoever gets it knows where to look (mission C4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The workstation is not there at all.
    MissingWorkstation,
    /// It is there, but cannot be given work now.
    NotReady,
    /// The identity map cannot be followed.
    MisconfiguredMap,
    /// Somebody else's turn comes first.
    Sequencing,
    /// The caller may not have this.
    Policy,
}

impl Code {
    /// Which obstacle of a grant this is; none for what is no obstacle of a grant.
    pub const fn class(self) -> Option<Class> {
        match self {
            Code::WorkstationUnknown => Some(Class::MissingWorkstation),
            Code::WorkstationNotReady | Code::WorkstationBusy | Code::WorkstationQuarantined => {
                Some(Class::NotReady)
            }
            Code::MapInvalid => Some(Class::MisconfiguredMap),
            Code::DependencyIncomplete | Code::LaneFull | Code::ScopeOverlap => Some(Class::Sequencing),
            Code::RoutingDenied
            | Code::SelfReview
            | Code::NotPermitted
            | Code::ScopeViolation
            | Code::BudgetExceeded => Some(Class::Policy),
            _ => None,
        }
    }

    pub fn parse(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }

    /// Refused by policy rather than by a race or a typing error: these refusals are kept in the ledger.
    pub const fn is_policy(self) -> bool {
        matches!(
            self,
            Code::DependencyIncomplete
                | Code::RoutingDenied
                | Code::MapInvalid
                | Code::WorkstationUnknown
                | Code::WorkstationNotReady
                | Code::WorkstationBusy
                | Code::WorkstationQuarantined
                | Code::LaneFull
                | Code::ScopeOverlap
                | Code::ScopeViolation
                | Code::BudgetExceeded
                | Code::SelfReview
                | Code::HumanRequired
                | Code::NotPermitted
        )
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl schemars::JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    /// Open to codes of later versions: they may be added.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[a-z_]+$"})
    }
}

impl<'de> serde::Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Code::parse(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown code `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_parse_back() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.name()), Some(*code));
        }
    }

    /// The exit codes that interface.md fixes, word for word: everything it does not name is 5.
    #[test]
    fn exit_codes_follow_the_contract() {
        let fixed: &[(u8, &str)] = &[
            (
                2,
                "invalid_input map_invalid dependency_cycle reason_required resolution_required identity_required unknown_worker request_conflict",
            ),
            (3, "unknown_task unknown_name"),
            (4, "lease_held fenced lease_required not_expired not_claimable"),
            (6, "nothing_ready"),
            (7, "checks_failed"),
            (69, "store_busy store_unavailable"),
            (1, "internal"),
        ];
        for code in Code::ALL {
            let expected = fixed
                .iter()
                .find(|(_, names)| names.split(' ').any(|n| n == code.name()))
                .map_or(5, |(exit, _)| *exit);
            assert_eq!(code.exit_code(), expected, "{code}");
        }
    }
}
