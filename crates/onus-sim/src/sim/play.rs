//! Plays steps against a real store, one after the other, and lets the judge look after each.

use super::command::{Meant, meant};
use super::fault::Fault;
use super::judge::{Answer, Judge, Told, Verdict, Violation, holds, seconds};
use super::seeded_bugs::SeededBug;
use super::snapshot::{Seen, Session};
use super::step::{Aim, Ask, Call, Care, SEATS, Shown, Step, TASKS, TASKS_MAX, WORKERS};
use super::store::{Kind, Seat, Site};
use super::team;
use onus_app::progress::Silent;
use onus_app::submit::{Receipt, Target};
use onus_app::timesheet::Ask as Asked;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::{Handle, RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::{StateName, Task};
use onus_core::time::Now;
use onus_core::timesheet::Dimension;
use std::collections::BTreeMap;

/// What a run came through, so that a quiet one shows.
pub type Counts = BTreeMap<&'static str, u64>;

/// One run: a store, processes in front of it, and a judge beside it.
#[derive(Debug)]
pub(super) struct Play {
    site: Site,
    seats: Vec<Seat>,
    witness: Seat,
    judge: Judge,
    /// The rows as they were last seen: only they know the secret of a lease.
    rows: BTreeMap<TaskId, Task>,
    sessions: Vec<Session>,
    sent: Vec<(Envelope, Target)>,
    /// Calls without an answer.
    pending: Vec<usize>,
    given: Vec<Token>,
    pub counts: Counts,
}

/// The simulation itself does not work: nothing is known about the program under it.
fn broken(refusal: Refusal) -> Violation {
    Violation { promise: "simulation", detail: format!("{}: {}", refusal.code.name(), refusal.detail) }
}

impl Play {
    pub(super) fn new(kind: &Kind, plant: SeededBug) -> Result<Play, Violation> {
        let site = Site::new(kind, plant).map_err(broken)?;
        let seats = (0..SEATS).map(|_| site.seat()).collect::<Result<_, _>>().map_err(broken)?;
        let witness = site.witness().map_err(broken)?;
        let mut play = Play {
            site,
            seats,
            witness,
            judge: Judge::default(),
            rows: BTreeMap::new(),
            sessions: Vec::new(),
            sent: Vec::new(),
            pending: Vec::new(),
            given: Vec::new(),
            counts: Counts::new(),
        };
        play.look(&[], &play.site.clock.now())?;
        for n in 0..TASKS {
            let ask = Ask::Add { role: Some(n % 2), scope: Some(n % 4), on: None, origin: None };
            let call = Call { who: 0, task: n, shown: Shown::Nothing, ask };
            play.step(&Step::Call { seat: 0, call, fault: None })?;
        }
        Ok(play)
    }

    pub(super) fn step(&mut self, step: &Step) -> Verdict {
        let now = self.site.clock.now();
        let told = match step {
            Step::Call { seat, call, fault } => match self.envelope(call).map_err(broken)? {
                Some(sent) => vec![self.send(*seat, sent, *fault)?],
                None => Vec::new(),
            },
            Step::Batch { seat, calls, fault } => self.batch(*seat, calls, *fault)?,
            Step::Again { seat, request, fault } => match self.earlier(*request) {
                Some(at) => vec![self.again(*seat, at, *fault)?],
                None => Vec::new(),
            },
            Step::Misuse { seat, request } => return self.misuse(*seat, *request, &now),
            Step::Care { seat, who, care, fault } => return self.care(*seat, *who, *care, *fault, &now),
            Step::Restart(seat) => {
                self.restart(*seat)?;
                Vec::new()
            }
            Step::Pass(millis) => return self.moved(|site| site.clock.pass(*millis)),
            Step::Jump(millis) => return self.moved(|site| site.clock.jump(*millis)),
            Step::Host(host) => return self.moved(|site| site.clock.go_to(*host)),
            Step::Reboot => return self.moved(|site| site.clock.reboot()),
            Step::Map(n) => {
                self.judge.map = *n;
                self.site.set_map(*n).map_err(broken)?;
                Vec::new()
            }
        };
        self.look(&told, &now)
    }

    /// Asks for every answer that never came, then for what the whole record must be.
    pub(super) fn finish(&mut self) -> Verdict {
        for at in std::mem::take(&mut self.pending) {
            let now = self.site.clock.now();
            let told = self.again(0, at, None)?;
            holds(!matches!(told.answer, Answer::Nothing), "once", || {
                format!("{} has no answer", told.request)
            })?;
            self.look(&[told], &now)?;
        }
        let verified = self.witness.verify(&mut Silent).map_err(broken)?;
        holds(verified.ok, "ledger", || format!("{:#?}", verified.findings))?;
        let valid = self.witness.validate(&mut Silent).map_err(broken)?;
        // That somebody waits for what a person dropped is told, and is nobody's bug.
        let odd: Vec<_> =
            valid.findings.iter().filter(|found| !self.waits_for_dropped(&found.task)).collect();
        holds(odd.is_empty(), "queue", || format!("{odd:#?}"))?;
        let days = |text: &str| text.parse().map_err(Refusal::invalid).map_err(broken);
        let ask = Asked {
            from: days("2026-01-01")?,
            to: days("2036-01-01")?,
            worker: None,
            by: vec![Dimension::Worker, Dimension::Day],
        };
        let sheet = self.witness.timesheet(&ask).map_err(broken)?.total_seconds;
        let worked = seconds(&self.sessions);
        holds(sheet == worked, "timesheet", || format!("{sheet} s on the sheet, {worked} s in the sessions"))
    }

    fn waits_for_dropped(&self, id: &TaskId) -> bool {
        let is_dropped =
            |on: &TaskId| self.rows.get(on).is_some_and(|other| other.state.name() == StateName::Dropped);
        self.rows.get(id).is_some_and(|task| task.depends_on.iter().any(is_dropped))
    }

    fn moved(&mut self, act: impl FnOnce(&Site)) -> Verdict {
        act(&self.site);
        self.count("time");
        Ok(())
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn look(&mut self, told: &[Told], now: &Now) -> Verdict {
        let requests: Vec<RequestId> = told.iter().map(|told| told.request.clone()).collect();
        let seen = Seen::look(&mut self.witness, self.judge.seq(), &requests).map_err(broken)?;
        self.judge.judge(now, told, &seen)?;
        self.given.extend(told.iter().filter_map(|told| match &told.answer {
            Answer::Done { token, .. } => token.clone(),
            _ => None,
        }));
        self.rows = seen.tasks.into_iter().map(|task| (task.id.clone(), task)).collect();
        self.sessions = seen.sessions;
        Ok(())
    }

    fn token(&self, id: &TaskId, shown: Shown) -> Option<Token> {
        let live = || {
            let held = self.rows.get(id)?.assignment()?;
            Some(Token { generation: 1, epoch: held.epoch, lease: *held.lease.id.secret()? })
        };
        match shown {
            Shown::Nothing => None,
            Shown::Live => live(),
            Shown::Given(n) => self.given.get(n % self.given.len().max(1)).cloned(),
            Shown::WrongSecret => live().map(|token| Token { lease: [9; 16], ..token }),
            Shown::WrongEpoch => live().map(|token| Token { epoch: token.epoch - 1, ..token }),
            Shown::WrongGeneration => live().map(|token| Token { generation: 2, ..token }),
        }
    }

    /// What a call is, with the names and tokens of this moment.
    fn envelope(&mut self, call: &Call) -> Result<Option<usize>, Refusal> {
        let ask = match call.ask {
            Ask::Add { .. } if self.rows.len() >= TASKS_MAX => Ask::Note,
            ask => ask,
        };
        let Some(Meant { command, next, task }) = meant(ask, &self.sessions)? else { return Ok(None) };
        let named = match task {
            Some(task) => task,
            None => self.named(call)?,
        };
        let holder = self.rows.get(&named).and_then(Task::assignment).map(|held| held.assignee.clone());
        let caller = team::worker(call.who)?;
        let actor = holder.filter(|_| call.who >= WORKERS.len()).unwrap_or(caller);
        let token = self.token(&named, call.shown);
        let is_new = matches!(command, Command::Add { .. }) || next.is_some();
        let envelope = Envelope {
            request: format!("s{}", self.sent.len()).parse().map_err(Refusal::invalid)?,
            actor: Some(actor),
            token,
            task: (!is_new).then_some(named),
            project: None,
            base: None,
            command,
        };
        self.sent.push((envelope, next.map_or(Target::Named, Target::Next)));
        Ok(Some(self.sent.len() - 1))
    }

    /// Which task a call is about: mostly one for which it can be meant, so that a run gets somewhere.
    fn named(&self, call: &Call) -> Result<TaskId, Refusal> {
        if call.task >= TASKS_MAX {
            return team::task(TASKS_MAX);
        }
        let fits = |task: &&Task| match call.ask.aim() {
            Aim::Any => true,
            Aim::Open => task.state.name() == StateName::Open,
            Aim::Held => task.assignment().is_some(),
            Aim::Ended => task.state.name().is_terminal(),
        };
        let fitting: Vec<&Task> = self.rows.values().filter(fits).collect();
        let aimed = fitting.get(call.task % fitting.len().max(1)).filter(|_| !call.task.is_multiple_of(5));
        match aimed {
            Some(task) => Ok(task.id.clone()),
            None => team::task(call.task % self.rows.len().max(1)),
        }
    }

    /// A request that was sent before; every second time one that has no answer yet.
    fn earlier(&self, n: usize) -> Option<usize> {
        let pending = self.pending.first().filter(|_| n.is_multiple_of(2));
        pending.copied().or_else(|| (!self.sent.is_empty()).then(|| n % self.sent.len()))
    }

    fn again(&mut self, seat: usize, at: usize, fault: Option<Fault>) -> Result<Told, Violation> {
        self.count("sent again");
        self.send(seat, at, fault)
    }

    fn send(&mut self, seat: usize, at: usize, fault: Option<Fault>) -> Result<Told, Violation> {
        let (envelope, target) = self.sent[at].clone();
        let trusting = self.site.plant() == SeededBug::TrustsAnyToken;
        let carried = if trusting { self.with_live_token(&envelope) } else { envelope };
        self.seats[seat].faults.plan(fault);
        let answer = self.seats[seat].submit(&carried, &target);
        let struck = self.struck(seat)?;
        self.answer(at, answer, struck)
    }

    fn batch(&mut self, seat: usize, calls: &[Call], fault: Option<Fault>) -> Result<Vec<Told>, Violation> {
        let mut sent = Vec::new();
        for call in calls {
            sent.extend(self.envelope(call).map_err(broken)?);
        }
        let envelopes: Vec<(Envelope, Target)> = sent.iter().map(|at| self.sent[*at].clone()).collect();
        self.seats[seat].faults.plan(fault);
        let answers = self.seats[seat].submit_many(&envelopes);
        let struck = self.struck(seat)?;
        self.count("batch");
        sent.into_iter().zip(answers).map(|(at, answer)| self.answer(at, answer, struck)).collect()
    }

    /// Which fault struck. Where it took the process with it, another one comes.
    fn struck(&mut self, seat: usize) -> Result<Option<Fault>, Violation> {
        let struck = self.seats[seat].faults.take_struck();
        if let Some(fault) = struck {
            self.count(match fault {
                Fault::Busy => "busy",
                Fault::Statement(_) => "statement failed",
                Fault::Death(_) => "died at a statement",
                Fault::LostCommit => "commit lost",
                Fault::LostAnswer => "answer lost",
            });
        }
        if matches!(struck, Some(Fault::Death(_))) {
            self.restart(seat)?;
        }
        Ok(struck)
    }

    fn restart(&mut self, seat: usize) -> Verdict {
        self.seats[seat] = self.site.seat().map_err(broken)?;
        self.count("restart");
        Ok(())
    }

    fn answer(
        &mut self,
        at: usize,
        answer: Result<Receipt, Refusal>,
        struck: Option<Fault>,
    ) -> Result<Told, Violation> {
        let (envelope, target) = &self.sent[at];
        let is_silent = struck.is_some_and(Fault::is_silent);
        let mut told = Told {
            request: envelope.request.clone(),
            actor: envelope.actor.clone().ok_or_else(|| broken(Refusal::invalid("nobody called")))?,
            token: envelope.token.clone(),
            is_next: matches!(target, Target::Next(_)),
            answer: Answer::Nothing,
        };
        let word = match answer {
            _ if is_silent => {
                self.pending.push(at);
                "unknown"
            }
            Ok(Receipt { kind, task, token }) => {
                told.answer = Answer::Done { kind, task: Box::new(task), token };
                "done"
            }
            Err(refusal) => {
                let bug = matches!(refusal.code, Code::Internal | Code::LedgerBroken);
                holds(!bug, "refusal", || format!("{}: {}", refusal.code.name(), refusal.detail))?;
                told.answer = Answer::Refused(refusal.code);
                refusal.code.name()
            }
        };
        if !is_silent {
            self.pending.retain(|pending| *pending != at);
        }
        self.count(word);
        Ok(told)
    }

    /// The same id with other words is refused, whatever became of the first.
    fn misuse(&mut self, seat: usize, n: usize, now: &Now) -> Verdict {
        let Some(at) = self.earlier(n) else { return Ok(()) };
        let (mut envelope, target) = self.sent[at].clone();
        let stored =
            Seen::look(&mut self.witness, self.judge.seq(), &[envelope.request.clone()]).map_err(broken)?;
        if stored.requests.iter().all(Option::is_none) {
            return Ok(());
        }
        envelope.command = Command::Drop { reason: Some(format!("misuse {at}")) };
        let answer = self.seats[seat].submit(&envelope, &target).err().map(|refusal| refusal.code);
        self.count("misused");
        holds(answer == Some(Code::RequestConflict), "once", || {
            format!("{} took another command: {answer:?}", envelope.request)
        })?;
        self.look(&[], now)
    }

    fn care(&mut self, seat: usize, who: usize, care: Care, fault: Option<Fault>, now: &Now) -> Verdict {
        let actor: Handle = team::worker(who).map_err(broken)?;
        let because = Some("because");
        let onus = &mut self.seats[seat];
        onus.faults.plan(fault);
        let answer = match care {
            Care::Pause(n) => {
                onus.pause_worker(Some(&actor), &team::worker(n).map_err(broken)?, because).map(drop)
            }
            Care::Resume(n) => onus.resume_worker(Some(&actor), &team::worker(n).map_err(broken)?).map(drop),
            Care::Quarantine(n) => {
                onus.quarantine(Some(&actor), &team::workstation(n).map_err(broken)?, because).map(drop)
            }
            Care::Restore(n) => {
                onus.restore(Some(&actor), &team::workstation(n).map_err(broken)?, because).map(drop)
            }
        };
        let struck = self.struck(seat)?;
        let before = self.judge.seq();
        self.look(&[], now)?;
        let written = self.judge.seq() - before;
        self.count("care");
        let expected = match (struck.is_some_and(Fault::is_silent), answer) {
            (true, _) => written <= 1,
            (false, Ok(())) => written <= 1,
            (false, Err(_)) => written == 0,
        };
        holds(expected, "acknowledged", || format!("{care:?} wrote {written} entries"))
    }

    /// A bug on purpose: the caller passes for the holder.
    fn with_live_token(&self, envelope: &Envelope) -> Envelope {
        let mut trusted = envelope.clone();
        let held = envelope.task.as_ref().and_then(|id| Some((id, self.rows.get(id)?.assignment()?)));
        if let Some((id, held)) = held
            && envelope.token.is_some()
            && !envelope.command.is_grant()
        {
            trusted.token = self.token(id, Shown::Live);
            trusted.actor = Some(held.assignee.clone());
        }
        trusted
    }
}
