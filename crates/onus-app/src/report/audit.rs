//! `report audit`: every grant, force, refusal, exception and quarantine of a stretch of time, for people who answer for
//! it.

use super::When;
use crate::Onus;
use crate::answer_room::{AnswerRoom, LIST_BYTES};
use crate::remote::calls;
use onus_core::event::{Event, Stamped};
use onus_core::id::{Handle, Seq, TaskId, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::report::{Compliance, forced, grant, said};
use onus_core::time::{Millis, Timestamp};
use onus_store::error::StoreError;
use onus_store::read::report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an audit asks for when nothing is said: the last thirty days.
const USUAL: Millis = Millis::hours(30 * 24);
/// The most lines that are put together of several answers.
const LINES_MAX: usize = 100_000;

/// And the most bytes of them.
const WHOLE_BYTES: usize = 8 * LIST_BYTES;

/// What the hashes of a line take.
const HASHES: usize = 200;

/// Which kinds of things an audit looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    Grant,
    /// A grant that a person made against the identity map.
    OutsidePolicy,
    /// Another act by force: a release or a completion.
    Forced,
    Refusal,
    Exception,
    Quarantine,
    /// Who may call over a network, and an end to that.
    Token,
    /// A session's times were corrected, or a timesheet approved.
    Time,
    /// Earlier lease tokens were declared dead.
    Generation,
    /// Tasks are verified together, or were.
    Milestone,
}

impl AuditKind {
    pub const ALL: [AuditKind; 10] = [
        AuditKind::Grant,
        AuditKind::OutsidePolicy,
        AuditKind::Forced,
        AuditKind::Refusal,
        AuditKind::Exception,
        AuditKind::Quarantine,
        AuditKind::Token,
        AuditKind::Time,
        AuditKind::Generation,
        AuditKind::Milestone,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            AuditKind::Grant => "grant",
            AuditKind::OutsidePolicy => "outside_policy",
            AuditKind::Forced => "forced",
            AuditKind::Refusal => "refusal",
            AuditKind::Exception => "exception",
            AuditKind::Quarantine => "quarantine",
            AuditKind::Token => "token",
            AuditKind::Time => "time",
            AuditKind::Generation => "generation",
            AuditKind::Milestone => "milestone",
        }
    }

    pub fn parse(text: &str) -> Option<AuditKind> {
        AuditKind::ALL.into_iter().find(|kind| kind.name() == text)
    }

    /// What an entry is to an audit; nothing for the daily work.
    fn of(entry: &Stamped) -> Option<AuditKind> {
        Some(match &entry.event {
            Event::Claimed(_) | Event::TakenOver(_) => match grant(entry) {
                Some((grant, _)) if grant.forced => match Compliance::of(grant.route.as_ref(), true) {
                    Compliance::Outside => AuditKind::OutsidePolicy,
                    Compliance::Within | Compliance::NoPolicy => AuditKind::Forced,
                },
                _ => AuditKind::Grant,
            },
            Event::Refused(_) => AuditKind::Refusal,
            Event::ExceptionRequested(_) | Event::ExceptionApproved(_) => AuditKind::Exception,
            Event::WorkstationQuarantined(_) | Event::WorkstationRestored(_) => AuditKind::Quarantine,
            Event::TokenIssued(_) | Event::TokenRevoked(_) => AuditKind::Token,
            Event::SessionCorrected(_) | Event::TimesheetApproved(_) => AuditKind::Time,
            Event::GenerationRaised(_) => AuditKind::Generation,
            Event::MilestoneAdded(_) | Event::MilestoneEdited(_) | Event::MilestoneClosed(_) => {
                AuditKind::Milestone
            }
            other => return forced(other).map(|_| AuditKind::Forced),
        })
    }
}

/// A stretch of time for people who answer for it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AuditView {
    pub since: Timestamp,
    pub until: Timestamp,
    /// How many of each kind there are, after the entry that was asked for.
    pub counts: BTreeMap<String, i64>,
    /// In the order of the record.
    pub lines: Vec<AuditLine>,
    /// Whether the stretch has more than one answer holds: ask for what comes after `next`, or for a shorter one.
    pub more: bool,
    /// The last entry that was told, where there is more.
    #[serde(default)]
    pub next: Option<Seq>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AuditLine {
    pub kind: AuditKind,
    pub seq: i64,
    pub at: Timestamp,
    pub actor: Handle,
    pub verb: String,
    pub task: Option<TaskId>,
    pub workstation: Option<WorkstationName>,
    /// Who got the work.
    pub assignee: Option<Handle>,
    pub forced: bool,
    pub rule: Option<String>,
    pub map_commit: Option<String>,
    pub map_hash: Option<String>,
    /// The code of a refusal.
    pub code: Option<String>,
    pub detail: String,
    /// The entry's hash: it proves the line.
    pub hash: String,
}

impl AuditLine {
    fn new(kind: AuditKind, entry: &Stamped, hash: String) -> AuditLine {
        let granted = grant(entry);
        let route = granted.and_then(|(grant, _)| grant.route.as_ref());
        let code = match &entry.event {
            Event::Refused(refused) => Some(refused.code.to_string()),
            _ => None,
        };
        AuditLine {
            kind,
            seq: entry.seq,
            at: entry.at,
            actor: entry.actor.clone(),
            verb: entry.event.verb().to_owned(),
            task: entry.task.clone(),
            workstation: entry.workstation.clone(),
            assignee: granted.map(|(_, assignee)| assignee.clone()),
            forced: forced(&entry.event).is_some(),
            rule: route.map(|route| route.rule.clone()),
            map_commit: route.and_then(|route| route.map_commit.clone()),
            map_hash: route.map(|route| route.map_hash.clone()),
            code,
            detail: said(&entry.event),
            hash,
        }
    }
}

impl Onus {
    /// Lines of these kinds, or of all.
    pub fn report_audit(
        &mut self,
        actor: Option<&Handle>,
        when: &When,
        only: &[AuditKind],
    ) -> Result<AuditView, Refusal> {
        let mut view = self.audit_part(actor, when, only, None)?;
        // All parts are about the same stretch, though time goes on.
        let (since, until) = (Some(view.since.to_string()), Some(view.until.to_string()));
        let when = When { since, until };
        let mut bytes = 0;
        while let Some(next) = view.next.filter(|_| view.lines.len() < LINES_MAX && bytes < WHOLE_BYTES) {
            let part = self.audit_part(actor, &when, only, Some(next))?;
            bytes += LIST_BYTES;
            (view.more, view.next) = (part.more, part.next);
            view.lines.extend(part.lines);
        }
        Ok(view)
    }

    /// The same after an entry, as much as fits into one answer.
    pub fn audit_part(
        &mut self,
        actor: Option<&Handle>,
        when: &When,
        only: &[AuditKind],
        after: Option<Seq>,
    ) -> Result<AuditView, Refusal> {
        let sent = || calls::ReportAudit { when: when.clone(), only: only.to_vec(), after };
        if let Some(answer) = self.remote(sent)? {
            return Ok(answer);
        }
        let span = self.span(when, actor, USUAL)?;
        let mut view = AuditView {
            since: span.from,
            until: span.to,
            counts: AuditKind::ALL.iter().map(|kind| (kind.name().to_owned(), 0)).collect(),
            lines: Vec::new(),
            more: false,
            next: None,
        };
        let mut room = AnswerRoom::new(LIST_BYTES);
        self.ask(|tx| {
            report::between(tx, after.unwrap_or(0), span, &mut |entry| {
                let stamped = entry.open().map_err(StoreError::Corrupt)?;
                let Some(kind) = AuditKind::of(&stamped) else { return Ok(()) };
                *view.counts.entry(kind.name().to_owned()).or_default() += 1;
                if view.more || (!only.is_empty() && !only.contains(&kind)) {
                    return Ok(());
                }
                let line = AuditLine::new(kind, &stamped, entry.hash.to_string());
                if room.has(line.detail.len() + HASHES) {
                    view.lines.push(line);
                } else {
                    (view.more, view.next) = (true, view.lines.last().map(|last| last.seq));
                }
                Ok(())
            })
        })?;
        Ok(view)
    }
}

/// The lines as comma-separated values.
pub fn csv(view: &AuditView) -> Result<Vec<u8>, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| error.to_string();
    let header = [
        "kind",
        "seq",
        "at",
        "actor",
        "verb",
        "task",
        "workstation",
        "assignee",
        "forced",
        "rule",
        "map_commit",
        "map_hash",
        "code",
        "detail",
        "hash",
    ];
    writer.write_record(header).map_err(failed)?;
    for line in &view.lines {
        let text = |value: Option<String>| value.unwrap_or_default();
        let row = [
            line.kind.name().to_owned(),
            line.seq.to_string(),
            line.at.to_string(),
            line.actor.to_string(),
            line.verb.clone(),
            text(line.task.as_ref().map(ToString::to_string)),
            text(line.workstation.as_ref().map(ToString::to_string)),
            text(line.assignee.as_ref().map(ToString::to_string)),
            line.forced.to_string(),
            text(line.rule.clone()),
            text(line.map_commit.clone()),
            text(line.map_hash.clone()),
            text(line.code.clone()),
            crate::timesheet::csv::harmless(line.detail.clone()),
            line.hash.clone(),
        ];
        writer.write_record(row).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}
