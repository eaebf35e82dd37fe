//! What checks showed and reviewers said, as rows.

use crate::codec::{row, word};
use crate::error::{Result, StoreError};
use crate::port::{Tx, Value};
use crate::sql;
use crate::tables::{EvidenceRow, ReviewRow};
use onus_core::event::{CheckRun, Reviewed};
use onus_core::evidence::{CheckVerdict, Classification, Evidence, Ground, Review, ReviewVerdict, RunPlace};
use onus_core::id::{Seq, TaskId};
use onus_core::time::Timestamp;
use serde::{Deserialize, Serialize};

sql! {
    pub(crate) EVIDENCE(task) reads [] = "SELECT e.seq, e.check_id, e.verdict, e.commit_id, e.dirty, l.at, e.sandbox \
        FROM evidence e JOIN ledger l ON l.workspace = e.workspace AND l.seq = e.seq WHERE e.workspace = :workspace AND e.task = :task";
    pub(crate) REVIEWS(task) reads [] = "SELECT r.seq, l.actor, l.workstation, r.verdict, r.classification, \
        r.commit_id FROM review r \
        JOIN ledger l ON l.workspace = r.workspace AND l.seq = r.seq WHERE r.workspace = :workspace AND r.task = :task";
    RUNS(task, limit) = "SELECT e.seq, e.check_id, e.verdict, e.commit_id, e.dirty, l.at, e.sandbox, l.actor, l.workstation, \
        e.exit, e.signal, \
        e.took_ms, e.output, e.output_length, e.output_sha256, e.environment, e.sandbox FROM evidence e \
        JOIN ledger l ON l.workspace = e.workspace AND l.seq = e.seq WHERE e.workspace = :workspace AND e.task = :task \
        ORDER BY e.seq DESC LIMIT :limit";
}

pub(crate) fn insert_run(tx: &mut dyn Tx, task: &str, seq: Seq, run: &CheckRun) -> Result<()> {
    if run.output.content().is_none() {
        return Err(StoreError::Guard("a run without its output".into()));
    }
    tx.run_one(&run_row(task, seq, run))
}

pub(crate) fn insert_review(tx: &mut dyn Tx, task: &str, seq: Seq, review: &Reviewed) -> Result<()> {
    tx.run_one(&review_row(task, seq, review))
}

pub(crate) fn run_row<'e>(task: &'e str, seq: Seq, run: &'e CheckRun) -> EvidenceRow<Value<'e>> {
    row!(EvidenceRow {
        task: task,
        output: run.output.content(),
        seq: seq,
        check_id: run.check.as_str(),
        verdict: run.verdict.name(),
        exit: run.exit.map(i64::from),
        signal: run.signal.map(i64::from),
        took_ms: run.took_ms,
        commit_id: run.ground.commit.as_ref().map(|commit| commit.as_str()),
        dirty: run.ground.dirty,
        output_length: run.output_length,
        output_sha256: run.output_sha256.as_str(),
        environment: run.environment.as_str(),
        sandbox: run.sandbox.as_str(),
    })
}

pub(crate) fn review_row<'e>(task: &'e str, seq: Seq, review: &'e Reviewed) -> ReviewRow<Value<'e>> {
    row!(ReviewRow {
        task: task,
        note: review.note.as_ref().and_then(|note| note.content()),
        seq: seq,
        verdict: review.verdict.name(),
        classification: review.classification.name(),
        commit_id: review.commit.as_ref().map(|commit| commit.as_str()),
    })
}

pub fn evidence(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Evidence>> {
    let rows = tx.rows(&EVIDENCE { task })?;
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

fn read(row: &mut crate::port::Row) -> Result<Evidence> {
    Ok(Evidence {
        seq: row.int()?,
        check: row.parsed()?,
        verdict: word(row.text()?.as_str(), CheckVerdict::parse)?,
        ground: Ground { commit: row.opt_parsed()?, dirty: row.flag()? },
        at: Timestamp(row.int()?),
        stated: row.text()? == RunPlace::Stated.name(),
    })
}

pub fn reviews(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Review>> {
    tx.rows(&REVIEWS { task })?.into_iter().map(|mut row| review(&mut row)).collect()
}

pub(crate) fn review(row: &mut crate::port::Row) -> Result<Review> {
    Ok(Review {
        seq: row.int()?,
        by: row.parsed()?,
        workstation: row.opt_parsed()?,
        verdict: word(row.text()?.as_str(), ReviewVerdict::parse)?,
        classification: word(row.text()?.as_str(), Classification::parse)?,
        commit: row.opt_parsed()?,
    })
}

/// A run with everything that is kept of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptRun {
    pub evidence: Evidence,
    pub by: String,
    pub workstation: Option<String>,
    pub exit: Option<i64>,
    pub signal: Option<i64>,
    pub took_ms: i64,
    pub output: String,
    pub output_length: i64,
    pub output_sha256: String,
    pub environment: String,
    pub sandbox: String,
}

/// Of so many runs, and so many bytes of what they printed, is told at once.
const RUNS_MAX: i64 = 1_000;
const PRINTED_MAX: usize = 2 * 1024 * 1024;

/// The last runs of a task's checks, the newest first. Of those before the last ones only what came of them: their output is
/// empty, and its length says so.
pub fn runs(tx: &mut dyn Tx, task: &TaskId, limit: i64) -> Result<Vec<KeptRun>> {
    let (mut told, mut bytes) = (Vec::new(), 0);
    tx.each(&RUNS { task, limit: limit.min(RUNS_MAX) }, &mut |mut row| {
        let mut run = kept(&mut row)?;
        if bytes > PRINTED_MAX {
            run.output = String::new();
        }
        bytes += run.output.len();
        told.push(run);
        Ok(())
    })?;
    Ok(told)
}

fn kept(row: &mut crate::port::Row) -> Result<KeptRun> {
    Ok(KeptRun {
        evidence: read(row)?,
        by: row.text()?,
        workstation: row.opt_text()?,
        exit: row.opt_int()?,
        signal: row.opt_int()?,
        took_ms: row.int()?,
        output: row.text()?,
        output_length: row.int()?,
        output_sha256: row.text()?,
        environment: row.text()?,
        sandbox: row.text()?,
    })
}
