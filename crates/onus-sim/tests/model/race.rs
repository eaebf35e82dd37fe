//! Workers, one task's row, one reference with its lock, and a network that loses and delays.

use super::rules::{GRACE, Row, Rules, TTL, Verb};
use stateright::{Model, Property};

/// The most workers of any model; each state is as large as this.
pub(crate) const WORKERS_MAX: usize = 3;
/// The most calls that one worker makes.
pub(crate) const CALLS_MAX: usize = 4;

/// Which of the three defences are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Whole,
    /// The store takes a holder's call from anybody who was one.
    WithoutFence,
    /// A takeover returns as soon as the store has it.
    WithoutBarrier,
    /// The hook asks before git has the reference's lock.
    CheckBeforeLock,
    /// A repeated request is carried out once more.
    WithoutRequestIds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Granted(u8),
    Done,
    Refused,
}

/// A call on its way, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Line {
    Quiet,
    Asked { verb: Verb, shown: Option<u8>, number: u8 },
    Answered { verb: Verb, number: u8, shown: Option<u8>, answer: Answer },
}

/// A push by whoever held an epoch; its process outlives the worker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Push {
    None,
    Begun(u8),
    /// Let through before it has the lock (only where that is the bug).
    LetThrough(u8),
    Locked {
        epoch: u8,
        let_through: bool,
    },
}

/// The end of a takeover: it takes and releases the reference's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Barrier {
    None,
    Wanted(u8),
    Locked(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    /// The epoch whose token lies in its directory; it survives a crash.
    token: Option<u8>,
    line: Line,
    calls: u8,
    push: Push,
    pushes: u8,
    barrier: Barrier,
}

const IDLE: Worker =
    Worker { token: None, line: Line::Quiet, calls: 0, push: Push::None, pushes: 0, barrier: Barrier::None };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    row: Row,
    workers: [Worker; WORKERS_MAX],
    /// What each request did: the store's own memory.
    requests: [[Option<Answer>; CALLS_MAX]; WORKERS_MAX],
    /// A call of a worker that is gone, still on its way.
    stray: Option<(u8, Verb, Option<u8>, u8)>,
    crashes: u8,
    /// The highest epoch whose takeover has returned.
    returned: u8,
    acknowledged: Option<u8>,
    landed: bool,
    turned_away: bool,
    landed_late: bool,
    stale_accepted: bool,
    changed_hands_early: bool,
    done_twice: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Tick,
    Ask(u8, Verb),
    /// The store carries the call out.
    Carry(u8),
    /// The answer is lost: the worker will ask again under the same id.
    LoseAnswer(u8),
    Hear(u8),
    /// The worker's process ends; its call and its push go on without it.
    Crash(u8),
    CarryStray,
    LoseStray,
    BeginPush(u8),
    CheckEarly(u8),
    LockForPush(u8),
    CheckUnderLock(u8),
    Land(u8),
    AbandonPush(u8),
    LockForBarrier(u8),
    EndBarrier(u8),
}

#[derive(Debug)]
pub(crate) struct Race {
    pub(crate) variant: Variant,
    pub(crate) workers: u8,
    pub(crate) calls: u8,
    pub(crate) pushes: u8,
    pub(crate) epochs: u8,
    pub(crate) crashes: u8,
    rules: Rules,
}

impl Race {
    pub(crate) fn new(variant: Variant, workers: u8, calls: u8) -> Race {
        let rules = Rules::new(usize::from(workers));
        Race { variant, workers, calls, pushes: 1, epochs: 3, crashes: 1, rules }
    }
}

impl State {
    fn worker(&mut self, who: u8) -> &mut Worker {
        &mut self.workers[usize::from(who)]
    }

    fn is_locked(&self) -> bool {
        self.workers.iter().any(|worker| {
            matches!(worker.push, Push::Locked { .. }) || matches!(worker.barrier, Barrier::Locked(_))
        })
    }
}

impl Model for Race {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            row: Row::default(),
            workers: [IDLE; WORKERS_MAX],
            requests: [[None; CALLS_MAX]; WORKERS_MAX],
            stray: None,
            crashes: 0,
            returned: 0,
            acknowledged: None,
            landed: false,
            turned_away: false,
            landed_late: false,
            stale_accepted: false,
            changed_hands_early: false,
            done_twice: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.row.holder.is_some() && state.row.age <= TTL + GRACE {
            actions.push(Action::Tick);
        }
        if state.stray.is_some() {
            actions.extend([Action::CarryStray, Action::LoseStray]);
        }
        for who in 0..self.workers {
            let worker = &state.workers[usize::from(who)];
            self.calls_of(who, worker, state, actions);
            self.git_of(who, worker, state, actions);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = *last;
        match action {
            Action::Tick => state.row.age += 1,
            Action::Ask(who, verb) => {
                let worker = state.worker(who);
                let shown = if matches!(verb, Verb::Renew | Verb::Complete) { worker.token } else { None };
                worker.line = Line::Asked { verb, shown, number: worker.calls };
                worker.calls += 1;
            }
            Action::Carry(who) => {
                let Line::Asked { verb, shown, number } = state.worker(who).line else { return None };
                let answer = self.carry(&mut state, who, verb, shown, number);
                state.worker(who).line = Line::Answered { verb, number, shown, answer };
            }
            Action::LoseAnswer(who) => {
                let Line::Answered { verb, number, shown, .. } = state.worker(who).line else { return None };
                state.worker(who).line = Line::Asked { verb, shown, number };
            }
            Action::Hear(who) => self.hear(&mut state, who)?,
            Action::Crash(who) => {
                let worker = state.worker(who);
                let stray = match worker.line {
                    Line::Asked { verb, shown, number } => Some((who, verb, shown, number)),
                    _ => None,
                };
                (worker.line, worker.barrier) = (Line::Quiet, Barrier::None);
                state.stray = stray.or(state.stray);
                state.crashes += 1;
            }
            Action::CarryStray => {
                let (who, verb, shown, number) = state.stray.take()?;
                self.carry(&mut state, who, verb, shown, number);
            }
            Action::LoseStray => state.stray = None,
            git => self.git_step(&mut state, git)?,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing lands late", |_, state: &State| !state.landed_late),
            Property::always("a stale holder changes nothing", |_, state: &State| !state.stale_accepted),
            Property::always("no lease changes hands early", |_, state: &State| !state.changed_hands_early),
            Property::always("a request has one effect", |_, state: &State| !state.done_twice),
            Property::always("an acknowledged completion stays", |_, state: &State| {
                state.acknowledged.is_none_or(|epoch| state.row.complete == Some(epoch))
            }),
            // A model in which nothing happens keeps every promise.
            Property::sometimes("a takeover returns", |_, state: &State| state.returned > 0),
            Property::sometimes("a push lands after a takeover", |_, state: &State| {
                state.landed && state.returned > 0
            }),
            Property::sometimes("a push is turned away", |_, state: &State| state.turned_away),
            Property::sometimes("a completion is acknowledged", |_, state: &State| {
                state.acknowledged.is_some()
            }),
        ]
    }
}

impl Race {
    fn calls_of(&self, who: u8, worker: &Worker, state: &State, actions: &mut Vec<Action>) {
        match worker.line {
            Line::Quiet if worker.calls < self.calls && worker.barrier == Barrier::None => {
                if state.row.epoch < self.epochs {
                    actions.extend([Action::Ask(who, Verb::Claim), Action::Ask(who, Verb::Takeover)]);
                }
                if worker.token.is_some() {
                    actions.extend([Action::Ask(who, Verb::Renew), Action::Ask(who, Verb::Complete)]);
                }
            }
            Line::Quiet => {}
            Line::Asked { .. } => actions.push(Action::Carry(who)),
            Line::Answered { .. } => actions.extend([Action::Hear(who), Action::LoseAnswer(who)]),
        }
        let is_busy = worker.line != Line::Quiet || worker.barrier != Barrier::None;
        if is_busy && state.crashes < self.crashes && !matches!(worker.barrier, Barrier::Locked(_)) {
            actions.push(Action::Crash(who));
        }
    }

    fn git_of(&self, who: u8, worker: &Worker, state: &State, actions: &mut Vec<Action>) {
        let is_free = !state.is_locked();
        match worker.push {
            Push::None if worker.token.is_some() && worker.pushes < self.pushes => {
                actions.push(Action::BeginPush(who));
            }
            Push::None => {}
            Push::Begun(_) if self.variant == Variant::CheckBeforeLock => {
                actions.push(Action::CheckEarly(who));
            }
            Push::Begun(_) | Push::LetThrough(_) if is_free => actions.push(Action::LockForPush(who)),
            Push::Begun(_) | Push::LetThrough(_) => {}
            Push::Locked { let_through: false, .. } => actions.push(Action::CheckUnderLock(who)),
            Push::Locked { let_through: true, .. } => {
                actions.extend([Action::Land(who), Action::AbandonPush(who)]);
            }
        }
        match worker.barrier {
            Barrier::Wanted(_) if is_free => actions.push(Action::LockForBarrier(who)),
            Barrier::Locked(_) => actions.push(Action::EndBarrier(who)),
            _ => {}
        }
    }

    /// One transaction of the store.
    fn carry(&self, state: &mut State, who: u8, verb: Verb, shown: Option<u8>, number: u8) -> Answer {
        let slot = &mut state.requests[usize::from(who)][usize::from(number)];
        let earlier = *slot;
        if let Some(answer) = earlier
            && self.variant != Variant::WithoutRequestIds
        {
            return answer;
        }
        let before = state.row;
        let is_holders = matches!(verb, Verb::Renew | Verb::Complete);
        // Without a fence whoever was a holder passes for the present one.
        let (caller, seen) = match (self.variant, before.holder) {
            (Variant::WithoutFence, Some(holder)) if is_holders && shown.is_some() => {
                (holder, Some(before.epoch))
            }
            _ => (who, shown),
        };
        let Some(after) = self.rules.decide(&before, caller, verb, seen) else { return Answer::Refused };
        let answer = match verb {
            Verb::Claim | Verb::Takeover => Answer::Granted(after.epoch),
            Verb::Renew | Verb::Complete => Answer::Done,
        };
        *slot = Some(answer);
        state.row = after;
        state.done_twice |= earlier.is_some();
        state.stale_accepted |= is_holders && shown != Some(before.epoch);
        let was_others = before.holder.is_some_and(|holder| Some(holder) != after.holder);
        state.changed_hands_early |= was_others && !is_holders && before.age < TTL + GRACE;
        answer
    }

    /// The worker learns what became of its call.
    fn hear(&self, state: &mut State, who: u8) -> Option<()> {
        let Line::Answered { verb, shown, answer, .. } = state.worker(who).line else { return None };
        state.worker(who).line = Line::Quiet;
        match (verb, answer) {
            (Verb::Claim, Answer::Granted(epoch)) => state.worker(who).token = Some(epoch),
            (Verb::Takeover, Answer::Granted(epoch)) => {
                state.worker(who).token = Some(epoch);
                if self.variant == Variant::WithoutBarrier {
                    state.returned = state.returned.max(epoch);
                } else {
                    state.worker(who).barrier = Barrier::Wanted(epoch);
                }
            }
            (Verb::Complete, Answer::Done) => state.acknowledged = shown,
            _ => {}
        }
        Some(())
    }

    fn git_step(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::BeginPush(who) => {
                let worker = state.worker(who);
                worker.push = Push::Begun(worker.token?);
                worker.pushes += 1;
            }
            Action::CheckEarly(who) => {
                let Push::Begun(epoch) = state.worker(who).push else { return None };
                let passes = self.rules.lets_through(&state.row, epoch);
                state.worker(who).push = if passes { Push::LetThrough(epoch) } else { Push::None };
                state.turned_away |= !passes;
            }
            Action::LockForPush(who) => {
                state.worker(who).push = match state.worker(who).push {
                    Push::Begun(epoch) => Push::Locked { epoch, let_through: false },
                    Push::LetThrough(epoch) => Push::Locked { epoch, let_through: true },
                    _ => return None,
                };
            }
            Action::CheckUnderLock(who) => {
                let Push::Locked { epoch, .. } = state.worker(who).push else { return None };
                let passes = self.rules.lets_through(&state.row, epoch);
                state.worker(who).push =
                    if passes { Push::Locked { epoch, let_through: true } } else { Push::None };
                state.turned_away |= !passes;
            }
            Action::Land(who) => {
                let Push::Locked { epoch, .. } = state.worker(who).push else { return None };
                state.worker(who).push = Push::None;
                state.landed = true;
                state.landed_late |= epoch < state.returned;
            }
            Action::AbandonPush(who) => state.worker(who).push = Push::None,
            Action::LockForBarrier(who) => {
                let Barrier::Wanted(epoch) = state.worker(who).barrier else { return None };
                state.worker(who).barrier = Barrier::Locked(epoch);
            }
            Action::EndBarrier(who) => {
                let Barrier::Locked(epoch) = state.worker(who).barrier else { return None };
                state.worker(who).barrier = Barrier::None;
                state.returned = state.returned.max(epoch);
            }
            _ => return None,
        }
        Some(())
    }
}
