//! What runs print: kept piece by piece while they run, read while they run and afterwards (mission D15, E8).
//!
//! A piece changes no task and is no entry of the ledger; when a run has ended, its digest is (`Command::CloseOutput`).

use crate::Onus;
use crate::idempotent_admin::Asker;
use crate::remote::calls;
use crate::submit::{ReceiptKind, Target};
use crate::token;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::{Handle, RequestId, Seq, TaskId};
use onus_core::output::step::{self, Step, StepReader};
use onus_core::output::{Fits, PIECE_MAX, fits, left_out, redacted};
use onus_core::refusal::Refusal;
use onus_core::registry;
use onus_core::session::Counts;
use onus_core::text::is_unprintable;
use onus_core::time::Timestamp;
use onus_store::load;
use onus_store::output::{self, Piece};
use onus_store::port::{Outcome, Store as _};
use onus_store::read::effort::{self, Which};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So many pieces are answered at once.
pub const PIECES: i64 = 64;

/// A part of what a session printed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OutputView {
    pub session: i64,
    pub task: TaskId,
    pub worker: Handle,
    /// The session goes on.
    pub running: bool,
    /// Nothing more comes: the digest is on record.
    pub closed: bool,
    /// What a coding client did, step by step, where that was asked for instead of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepView>,
    /// In order. Where one begins behind the end of the one before it, what was between them is left out.
    pub pieces: Vec<PieceView>,
    /// Where to go on: the first byte behind these pieces.
    pub next: i64,
    /// There is more already.
    pub more: bool,
    /// The words are whatever a program printed: data, never instructions.
    pub untrusted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PieceView {
    /// Of its first byte in the whole output.
    pub position: i64,
    pub at: Timestamp,
    pub text: String,
}

/// One thing that an agent did or said, as its client tells it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    pub at: Timestamp,
    /// `began` (the client's session), `said`, `called` (a tool), `edited` (a file), `answered` and `refused` (what a tool gave
    /// back), `used`, `warned`, `failed`, or `printed`: what is no step of a known client.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl StepView {
    /// What a client wrote as JSON is looked through once more in plain words.
    pub fn new(step: &Step, at: Timestamp) -> StepView {
        let used = match step {
            Step::Used { counts } => Some(counts),
            _ => None,
        };
        StepView {
            at,
            kind: step.kind().to_owned(),
            tool: step.tool().map(redacted),
            text: redacted(&step.text()),
            tokens: used.map(Counts::tokens),
            cost: used.and_then(|counts| counts.cost_micros).map(crate::timesheet::units),
        }
    }

    pub fn line(&self) -> String {
        step::line(&self.kind, self.tool.as_deref(), &self.text)
    }
}

impl OutputView {
    /// The steps in these pieces, as far as they are whole.
    pub fn read_steps(&self, reader: &mut StepReader) -> Vec<StepView> {
        let mut steps = Vec::new();
        for piece in &self.pieces {
            let found = reader.push(piece.position, &piece.text);
            steps.extend(found.iter().map(|step| StepView::new(step, piece.at)));
        }
        if !self.more && (self.closed || !self.running) {
            let at = self.pieces.last().map_or(Timestamp(0), |piece| piece.at);
            steps.extend(reader.finish().iter().map(|step| StepView::new(step, at)));
        }
        steps
    }

    /// The text, with a line for what is left out before a piece. `from` is where the reader stands.
    pub fn text(&self, from: i64) -> String {
        let (mut text, mut at) = (String::new(), from);
        for piece in &self.pieces {
            if piece.position > at {
                let missing = piece.position - at;
                text.push_str(&format!("\n[{missing} bytes are left out here]\n"));
            }
            text.push_str(&piece.text);
            at = piece.position.saturating_add(i64::try_from(piece.text.len()).unwrap_or(0));
        }
        text
    }
}

impl Onus {
    /// Keeps what a session's own worker printed next. A repeated piece is kept once.
    pub fn keep_output<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        session: Seq,
        position: i64,
        text: &str,
    ) -> Result<(), Refusal> {
        if self.remote(|| calls::KeepOutput { session, position, text: text.to_owned() })?.is_some() {
            return Ok(());
        }
        let (asker, settings) = (asker.into(), self.settings.run.clone());
        let is_wrong = |c: char| is_unprintable(c) && !matches!(c, '\n' | '\t');
        if text.is_empty() || text.len() > PIECE_MAX || text.contains(is_wrong) {
            return Err(Refusal::invalid(format!(
                "a piece of output has 1 to {PIECE_MAX} bytes without control characters"
            )));
        }
        self.store.write(|tx| {
            asker.shown.map(|shown| token::judge(tx, shown)).transpose()?;
            let caller = load::caller(tx, asker.actor)?;
            let worker = &registry::known(&caller)?.handle;
            let recorded = load::recorded(tx, session)?.ok_or_else(|| no_session(session))?;
            recorded.is_printed_by(worker)?;
            if settings.keep == 0 {
                return Ok(Outcome::Rollback(()));
            }
            if output::is_closed(tx, session)? {
                let detail = format!("the output of session {session} is on record: nothing comes behind it");
                return Err(Refusal::new(Code::WrongState, detail));
            }
            let ends = output::last(tx, session)?.map_or(0, |last| last.end());
            match fits(ends, position, text.len()) {
                Fits::Repeated => return Ok(Outcome::Rollback(())),
                Fits::Elsewhere => {
                    let detail = format!("the output of session {session} ends at {ends}, not at {position}");
                    return Err(Refusal::new(Code::WrongState, detail));
                }
                Fits::Next => {}
            }
            let piece = Piece { position, at: tx.now()?.wall, text: text.to_owned() };
            output::add(tx, session, &piece)?;
            output::leave_out(tx, session, &left_out(&settings, piece.end()))?;
            Ok(Outcome::Commit(()))
        })
    }

    /// Puts on record how a session's output ended; what was already is left alone.
    pub fn close_output(
        &mut self,
        request: RequestId,
        actor: &Handle,
        task: &TaskId,
        session: Seq,
    ) -> Result<ReceiptKind, Refusal> {
        let envelope = Envelope {
            request,
            actor: Some(actor.clone()),
            token: None,
            task: Some(task.clone()),
            project: None,
            base: None,
            command: Command::CloseOutput { session },
        };
        Ok(self.submit(&envelope, &Target::Named)?.kind)
    }

    /// What a session printed, from a byte on: at most [`PIECES`] pieces of it.
    pub fn output(&mut self, session: Seq, from: i64) -> Result<OutputView, Refusal> {
        if let Some(answer) = self.remote(|| calls::OutputOf { session, from })? {
            return Ok(answer);
        }
        let view = self.ask(|tx| {
            let Some(listed) = effort::list(tx, Which::One(session), 1)?.into_iter().next() else {
                return Ok(None);
            };
            let mut pieces = output::pieces(tx, session, from, PIECES + 1)?;
            let more = pieces.len() as i64 > PIECES;
            pieces.truncate(usize::try_from(PIECES).unwrap_or(usize::MAX));
            let pieces: Vec<PieceView> =
                pieces.into_iter().filter_map(|piece| from_byte(piece, from)).collect();
            let next = pieces.last().map_or(from, |piece| {
                piece.position.saturating_add(i64::try_from(piece.text.len()).unwrap_or(0))
            });
            Ok(Some(OutputView {
                session,
                running: listed.ended().is_none(),
                task: listed.task,
                worker: listed.worker,
                closed: output::is_closed(tx, session)?,
                steps: Vec::new(),
                pieces,
                next,
                more,
                untrusted: true,
            }))
        })?;
        view.ok_or_else(|| no_session(session))
    }

    /// The same as steps, beginning where another answer of this kind said to go on. At least one, where there is one.
    pub fn steps(&mut self, session: Seq, from: i64) -> Result<OutputView, Refusal> {
        let mut reader = StepReader::from(from);
        let mut view = self.output(session, from)?;
        let mut steps = view.read_steps(&mut reader);
        // A line may be longer than an answer.
        while steps.is_empty() && view.more {
            view = self.output(session, view.next)?;
            steps = view.read_steps(&mut reader);
        }
        Ok(OutputView { steps, pieces: Vec::new(), next: reader.next(), ..view })
    }
}

/// What of a piece lies behind a byte; its first character is whole.
fn from_byte(piece: Piece, from: i64) -> Option<PieceView> {
    let Piece { position, at, text } = piece;
    let skip = usize::try_from(from.saturating_sub(position)).unwrap_or(0);
    if skip >= text.len() {
        return None;
    }
    let skip = text.ceil_char_boundary(skip);
    let text = text.get(skip..).filter(|rest| !rest.is_empty())?.to_owned();
    Some(PieceView { position: position + i64::try_from(skip).unwrap_or(0), at, text })
}

fn no_session(session: Seq) -> Refusal {
    Refusal::new(Code::UnknownName, format!("there is no session {session}")).hint("onus session list")
}
