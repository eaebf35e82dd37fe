//! Plays a task's chain again: what its row and the rows beside it must be (architecture: folding a task's ledger
//! gives its row).

use super::row_checksum::{About, Balance, Fact, Scale};
use onus_core::effect::{Effect, effects};
use onus_core::event::{CheckRun, Reviewed, Said};
use onus_core::event::{Event, Stamped};
use onus_core::hash::Digest;
use onus_core::id::{CommitId, Epoch, Seq};
use onus_core::task::{Assignment, Inconsistent, Spec, Task, evolve};
use onus_core::time::Timestamp;
use onus_store::args;
use onus_store::read::audit;
use onus_store::read::show::{PastAssignment, Session};

/// Hears what the record says about the rows beside the task's own.
pub(super) trait Listener {
    fn spec(&mut self, spec: Spec);
    fn assignment(&mut self, held: &Assignment, ended_at: Option<Timestamp>, reason: Option<&'static str>);
    fn session(&mut self, session: Session);
    /// What was said about a session afterwards.
    fn session_fact(&mut self, seq: Seq, effect: &Effect);
    fn note(&mut self, seq: Seq, kind: &'static str, text: &Digest, said: Option<&Said>);
    fn run(&mut self, seq: Seq, run: &CheckRun);
    fn review(&mut self, seq: Seq, review: &Reviewed);
    fn landed(&mut self, seq: Seq, epoch: Epoch, commits: &[CommitId]);
}

#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Without its spec, which the listener has.
    pub(super) task: Option<Task>,
    /// The session that runs.
    session: Option<Session>,
}

impl Fold {
    pub(super) fn step(
        &mut self,
        mut entry: Stamped,
        listener: &mut dyn Listener,
    ) -> Result<(), Inconsistent> {
        if let Event::Added(added) = &mut entry.event {
            // Checks and criteria may change; they are told with the row.
            let (checks, criteria) = (added.spec.checks.clone(), added.spec.criteria.clone());
            let kept = Spec { checks, criteria, ..Spec::titled("") };
            listener.spec(std::mem::replace(&mut added.spec, kept));
        }
        let before = self.task.take();
        let mut after = evolve(before.clone(), &entry)?;
        if let Event::Edited(edited) = &entry.event {
            listener.spec((*edited.after).clone());
            let checks = std::mem::take(&mut after.spec.checks);
            let criteria = std::mem::take(&mut after.spec.criteria);
            after.spec = Spec { checks, criteria, ..Spec::titled("") };
        }
        for effect in effects(before.as_ref(), &entry, &after) {
            match effect {
                // The row has the assignment's last word: it is told at its end.
                Effect::AssignmentStarted(_)
                | Effect::AssignmentRenewed(_)
                | Effect::AssignmentConstrained(_) => {}
                Effect::AssignmentEnded { at, reason, .. } => {
                    if let Some(held) = before.as_ref().and_then(Task::assignment) {
                        listener.assignment(held, Some(at), Some(reason.name()));
                    }
                }
                Effect::SessionStarted { assignment, at } => {
                    self.session = Some(Session {
                        id: entry.seq,
                        epoch: assignment.epoch,
                        worker: assignment.assignee,
                        workstation: assignment.workstation.to_string(),
                        started_at: at,
                        ended_at: None,
                        end_reason: None,
                    });
                }
                Effect::SessionStopped { at, reason, .. } => {
                    if let Some(session) = self.session.take() {
                        let end_reason = Some(reason.name().to_owned());
                        listener.session(Session { ended_at: Some(at), end_reason, ..session });
                    }
                }
                Effect::CheckRan(run) => listener.run(entry.seq, &run),
                Effect::ReviewWritten(review) => listener.review(entry.seq, &review),
                Effect::Landed { epoch, commits } => listener.landed(entry.seq, epoch, &commits),
                Effect::SessionCorrected { .. }
                | Effect::SessionUsed { .. }
                | Effect::OutputClosed { .. } => {
                    listener.session_fact(entry.seq, &effect);
                }
                Effect::NoteWritten { kind, text, said } => {
                    listener.note(entry.seq, kind.name(), text.digest(), said.as_ref());
                }
            }
        }
        self.task = Some(after);
        Ok(())
    }

    /// Tells what is still going on and gives the row.
    pub(super) fn finish(self, listener: &mut dyn Listener) -> Option<Task> {
        if let Some(held) = self.task.as_ref().and_then(Task::assignment) {
            listener.assignment(held, None, None);
        }
        if let Some(session) = self.session {
            listener.session(session);
        }
        self.task
    }
}

/// Adds everything up.
#[derive(Debug)]
pub(super) struct Weigh<'a> {
    pub(super) scale: &'a mut Scale,
    pub(super) balance: &'a mut Balance,
    pub(super) asked: &'a mut Fact,
}

impl Weigh<'_> {
    /// The row that the chain leads to, with its dependencies.
    pub(super) fn task(&mut self, task: &Task) {
        // What cannot be written down weighs like nothing that was.
        if let Ok([seal, rest]) = audit::lifecycle(task) {
            self.balance.add(self.scale.task(*self.asked, [&seal, &rest]));
        }
        for on in &task.depends_on {
            let excepted = task.exceptions.get(on).is_some_and(|exception| exception.approved_by.is_some());
            self.balance.add(self.scale.weigh(About::Dependency, [&[], &args![on.to_string(), excepted]]));
        }
    }
}

impl Listener for Weigh<'_> {
    fn spec(&mut self, spec: Spec) {
        // What cannot be written down weighs like nothing that was.
        if let Ok([body, rest]) = audit::asked(&spec) {
            *self.asked = self.scale.weigh(About::Asked, [&body, &rest]);
        }
    }

    fn assignment(&mut self, held: &Assignment, ended_at: Option<Timestamp>, reason: Option<&'static str>) {
        if let Ok([seal, rest]) = audit::assignment(held, ended_at, reason) {
            self.balance.add(self.scale.weigh(About::Assignment, [&seal, &rest]));
        }
    }

    fn session(&mut self, session: Session) {
        self.balance.add(self.scale.weigh(About::Session, [&[], &audit::session(&session)]));
    }

    fn session_fact(&mut self, seq: Seq, effect: &Effect) {
        if let Some(columns) = audit::session_fact(seq, effect) {
            self.balance.add(self.scale.weigh(About::SessionFact, [&[], &columns]));
        }
    }

    fn note(&mut self, seq: Seq, kind: &'static str, text: &Digest, said: Option<&Said>) {
        self.balance.add(self.scale.weigh(About::Note, [&args![text], &audit::note(seq, kind, said)]));
    }

    fn run(&mut self, seq: Seq, run: &CheckRun) {
        let [text, rest] = audit::run(seq, run);
        self.balance.add(self.scale.weigh(About::Run, [&text, &rest]));
    }

    fn review(&mut self, seq: Seq, review: &Reviewed) {
        let [text, rest] = audit::review(seq, review);
        self.balance.add(self.scale.weigh(About::Review, [&text, &rest]));
    }

    fn landed(&mut self, seq: Seq, epoch: Epoch, commits: &[CommitId]) {
        for commit in commits {
            self.balance.add(self.scale.weigh(About::Landed, [&[], &args![seq, commit.as_str(), epoch]]));
        }
    }
}

/// Keeps everything, to compare it row by row.
#[derive(Debug, Default)]
pub(super) struct Collect {
    pub(super) spec: Option<Spec>,
    pub(super) assignments: Vec<PastAssignment>,
    pub(super) sessions: Vec<Session>,
    pub(super) session_facts: Vec<(Seq, Effect)>,
    pub(super) notes: Vec<(Seq, &'static str, Digest, Option<Said>)>,
    pub(super) runs: Vec<(Seq, CheckRun)>,
    pub(super) reviews: Vec<(Seq, Reviewed)>,
    pub(super) landed: Vec<(Seq, String, Epoch)>,
}

impl Listener for Collect {
    fn spec(&mut self, spec: Spec) {
        self.spec = Some(spec);
    }

    fn assignment(&mut self, held: &Assignment, ended_at: Option<Timestamp>, reason: Option<&'static str>) {
        let end_reason = reason.map(str::to_owned);
        self.assignments.push(PastAssignment { assignment: held.clone(), ended_at, end_reason });
    }

    fn session(&mut self, session: Session) {
        self.sessions.push(session);
    }

    fn session_fact(&mut self, seq: Seq, effect: &Effect) {
        self.session_facts.push((seq, effect.clone()));
    }

    fn note(&mut self, seq: Seq, kind: &'static str, text: &Digest, said: Option<&Said>) {
        self.notes.push((seq, kind, *text, said.cloned()));
    }

    fn run(&mut self, seq: Seq, run: &CheckRun) {
        self.runs.push((seq, run.clone()));
    }

    fn review(&mut self, seq: Seq, review: &Reviewed) {
        self.reviews.push((seq, review.clone()));
    }

    fn landed(&mut self, seq: Seq, epoch: Epoch, commits: &[CommitId]) {
        self.landed.extend(commits.iter().map(|commit| (seq, commit.to_string(), epoch)));
    }
}
