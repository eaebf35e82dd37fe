//! What checks showed and reviewers said, as rows.

use crate::codec::word;
use crate::error::{Result, StoreError};
use crate::port::{Tx, Value};
use crate::{args, sql};
use onus_core::event::{CheckRun, Reviewed};
use onus_core::evidence::{CheckVerdict, Classification, Evidence, Ground, Review, ReviewVerdict, RunPlace};
use onus_core::id::{Seq, TaskId};
use onus_core::time::Timestamp;
use serde::{Deserialize, Serialize};

sql! {
    INSERT_EVIDENCE = "INSERT INTO evidence (workspace, task, seq, output, check_id, verdict, exit, signal, took_ms, \
        commit_id, dirty, output_length, output_sha256, environment, sandbox) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    INSERT_REVIEW = "INSERT INTO review (workspace, task, seq, note, verdict, classification, commit_id) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    pub(crate) EVIDENCE = "SELECT e.seq, e.check_id, e.verdict, e.commit_id, e.dirty, l.at, e.sandbox FROM evidence e \
        JOIN ledger l ON l.workspace = e.workspace AND l.seq = e.seq WHERE e.workspace = ?1 AND e.task = ?2";
    pub(crate) REVIEWS = "SELECT r.seq, l.actor, l.workstation, r.verdict, r.classification, r.commit_id FROM review r \
        JOIN ledger l ON l.workspace = r.workspace AND l.seq = r.seq WHERE r.workspace = ?1 AND r.task = ?2";
    RUNS = "SELECT e.seq, e.check_id, e.verdict, e.commit_id, e.dirty, l.at, e.sandbox, l.actor, l.workstation, e.exit, e.signal, \
        e.took_ms, e.output, e.output_length, e.output_sha256, e.environment, e.sandbox FROM evidence e \
        JOIN ledger l ON l.workspace = e.workspace AND l.seq = e.seq WHERE e.workspace = ?1 AND e.task = ?2 ORDER BY e.seq DESC LIMIT ?3";
}

pub(crate) fn insert_run(tx: &mut dyn Tx, task: &str, seq: Seq, run: &CheckRun) -> Result<()> {
    let workspace = tx.workspace();
    let [output, rest] = run_columns(run);
    let output = run.output.content().map(Value::from).or_else(|| output.into_iter().next());
    let output = output.ok_or_else(|| StoreError::Guard("a run without its output".into()))?;
    let mut args = args![workspace.0, task, seq].to_vec();
    args.push(output);
    args.extend(rest);
    tx.run_one(&INSERT_EVIDENCE, &args)
}

pub(crate) fn insert_review(tx: &mut dyn Tx, task: &str, seq: Seq, review: &Reviewed) -> Result<()> {
    let workspace = tx.workspace();
    let note = review.note.as_ref().and_then(|note| note.content());
    let mut args = args![workspace.0, task, seq, note].to_vec();
    args.extend(review_columns(review)[1].clone());
    tx.run_one(&INSERT_REVIEW, &args)
}

/// The columns of a run as the record has them: the output's digest, then the rest.
pub fn run_columns(run: &CheckRun) -> [Vec<Value<'_>>; 2] {
    let rest = args![
        run.check.as_str(),
        run.verdict.name(),
        run.exit.map(i64::from),
        run.signal.map(i64::from),
        run.took_ms,
        run.ground.commit.as_ref().map(|commit| commit.as_str()),
        run.ground.dirty,
        run.output_length,
        run.output_sha256.as_str(),
        run.environment.as_str(),
        run.sandbox.as_str(),
    ];
    [args![run.output.digest()].into(), rest.into()]
}

/// The columns of a review as the record has them: the note's digest, then the rest.
pub fn review_columns(review: &Reviewed) -> [Vec<Value<'_>>; 2] {
    let rest = args![
        review.verdict.name(),
        review.classification.name(),
        review.commit.as_ref().map(|commit| commit.as_str()),
    ];
    [args![review.note.as_ref().map(|note| note.digest())].into(), rest.into()]
}

pub fn evidence(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Evidence>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&EVIDENCE, &args![workspace.0, task.to_string()])?;
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
    let workspace = tx.workspace();
    let rows = tx.rows(&REVIEWS, &args![workspace.0, task.to_string()])?;
    rows.into_iter().map(|mut row| review(&mut row)).collect()
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

/// The last runs of a task's checks, the newest first.
pub fn runs(tx: &mut dyn Tx, task: &TaskId, limit: i64) -> Result<Vec<KeptRun>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&RUNS, &args![workspace.0, task.to_string(), limit])?;
    rows.into_iter()
        .map(|mut row| {
            Ok(KeptRun {
                evidence: read(&mut row)?,
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
        })
        .collect()
}
