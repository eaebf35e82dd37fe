//! The steps of a run: plain data, drawn from a seed. Leaving some of them out leaves the others meaningful, so that a
//! failing run can be made shorter.

use super::fault::Fault;
use crate::rng::Rng;

/// Processes, each with a connection of its own.
pub(super) const SEATS: usize = 3;
/// People, agents, an agent that verifies, and somebody whom nobody registered.
pub(super) const WORKERS: [&str; 7] = ["@p", "@q", "@a", "@b", "@c", "@v", "@stranger"];
pub(super) const PEOPLE: usize = 2;
pub(super) const REGISTERED: usize = 6;
pub(super) const WORKSTATIONS: usize = 5;
/// Tasks that a run begins with; few enough that workers meet.
pub(super) const TASKS: usize = 5;
/// More are not asked for.
pub(super) const TASKS_MAX: usize = 12;
/// Each lies in the one before it, or is apart from all others.
pub(super) const SCOPES: [&str; 4] = ["src", "src/api", "web", "docs"];
pub(super) const ROLES: [&str; 2] = ["A-backend", "B-ui"];

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

/// Which lease token a caller shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    /// The one that opens the task's lease now.
    Live,
    /// One that somebody was given at some time, for some task.
    Given(usize),
    /// Everything right but the secret.
    WrongSecret,
    WrongEpoch,
    WrongGeneration,
}

/// By the rules, or by a person's force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Rules,
    Force,
}

/// What is asked. Numbers stand for tasks, workstations and workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Add { role: Option<usize>, scope: Option<usize>, on: Option<usize>, origin: Option<usize> },
    Claim(usize, By),
    Next(usize),
    Assign { to: usize, place: usize },
    Takeover(usize, By),
    Renew,
    Release(By),
    BlockKeeping,
    BlockReleasing,
    BlockOnTask(usize),
    Unblock,
    Note,
    Complete(By),
    Reopen,
    Drop,
    Depend(usize),
    Undepend(usize),
    Except(usize),
    ApproveException(usize),
    StartSession,
    StopSession,
    Correct { session: usize, from: i64, to: i64 },
    Use { session: usize, tokens: i64 },
}

/// For what kind of task something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Any,
    Open,
    Held,
    Ended,
}

impl Ask {
    pub(super) const fn aim(self) -> Aim {
        match self {
            Ask::Claim(..) | Ask::Assign { .. } => Aim::Open,
            Ask::Takeover(..)
            | Ask::Renew
            | Ask::Release(_)
            | Ask::BlockKeeping
            | Ask::BlockReleasing
            | Ask::BlockOnTask(_)
            | Ask::Complete(_)
            | Ask::StartSession
            | Ask::StopSession => Aim::Held,
            Ask::Reopen => Aim::Ended,
            _ => Aim::Any,
        }
    }
}

/// One call. `who` beyond the workers is whoever holds the task; a task beyond [`TASKS_MAX`] is none that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub who: usize,
    pub task: usize,
    pub shown: Shown,
    pub ask: Ask,
}

/// What a person does to somebody or something other than a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    Pause(usize),
    Resume(usize),
    Quarantine(usize),
    Restore(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Call {
        seat: usize,
        call: Call,
        fault: Option<Fault>,
    },
    /// Several callers, one commit.
    Batch {
        seat: usize,
        calls: Vec<Call>,
        fault: Option<Fault>,
    },
    /// An earlier request is sent once more, from anywhere.
    Again {
        seat: usize,
        request: usize,
        fault: Option<Fault>,
    },
    /// The id of an earlier request is used for another command.
    Misuse {
        seat: usize,
        request: usize,
    },
    Care {
        seat: usize,
        who: usize,
        care: Care,
        fault: Option<Fault>,
    },
    /// A process ends and another takes its place.
    Restart(usize),
    /// Time passes.
    Pass(i64),
    /// Somebody sets the wall clock.
    Jump(i64),
    /// The calls that follow come from another machine.
    Host(usize),
    Reboot,
    /// The identity map is edited.
    Map(usize),
}

/// As many steps as asked for, always the same for a seed.
pub(super) fn drawn(seed: u64, count: usize) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    (0..count).map(|_| step(&mut rng)).collect()
}

#[derive(Clone, Copy)]
enum Kind {
    Call,
    Batch,
    Again,
    Misuse,
    Care,
    Restart,
    Pass,
    Jump,
    Host,
    Reboot,
    Map,
}

fn step(rng: &mut Rng) -> Step {
    let kinds = [
        (60, Kind::Call),
        (4, Kind::Batch),
        (9, Kind::Again),
        (1, Kind::Misuse),
        (4, Kind::Care),
        (2, Kind::Restart),
        (12, Kind::Pass),
        (2, Kind::Jump),
        (2, Kind::Host),
        (1, Kind::Reboot),
        (1, Kind::Map),
    ];
    let seat = rng.below(SEATS);
    match rng.weighted(&kinds).unwrap_or(Kind::Call) {
        Kind::Call => Step::Call { seat, call: call(rng), fault: fault(rng, 5) },
        Kind::Batch => {
            let calls = (0..2 + rng.below(4)).map(|_| call(rng)).collect();
            Step::Batch { seat, calls, fault: fault(rng, 3) }
        }
        Kind::Again => Step::Again { seat, request: rng.below(usize::MAX), fault: fault(rng, 8) },
        Kind::Misuse => Step::Misuse { seat, request: rng.below(usize::MAX) },
        Kind::Care => Step::Care { seat, who: rng.below(4), care: care(rng), fault: fault(rng, 6) },
        Kind::Restart => Step::Restart(seat),
        Kind::Pass if rng.one_in(4) => Step::Pass(rng.between(0, 30 * 60 * MINUTE)),
        Kind::Pass => Step::Pass(rng.between(0, 20 * MINUTE)),
        Kind::Jump => Step::Jump(rng.between(-DAY, DAY)),
        Kind::Host => Step::Host(rng.below(3)),
        Kind::Reboot => Step::Reboot,
        Kind::Map => Step::Map(rng.below(super::team::MAPS)),
    }
}

fn fault(rng: &mut Rng, one_in: usize) -> Option<Fault> {
    if !rng.one_in(one_in) {
        return None;
    }
    let at = 1 + u32::try_from(rng.below(24)).unwrap_or(0);
    rng.weighted(&[
        (1, Fault::Busy),
        (3, Fault::Statement(at)),
        (3, Fault::Death(at)),
        (3, Fault::LostCommit),
        (3, Fault::LostAnswer),
    ])
}

fn care(rng: &mut Rng) -> Care {
    let (worker, place) = (rng.below(REGISTERED), rng.below(WORKSTATIONS));
    // Restored more often than taken away, so that work goes on.
    let cares = [
        (2, Care::Pause(worker)),
        (3, Care::Resume(worker)),
        (2, Care::Quarantine(place)),
        (3, Care::Restore(place)),
    ];
    rng.weighted(&cares).unwrap_or(Care::Resume(worker))
}

fn call(rng: &mut Rng) -> Call {
    let given = rng.below(usize::MAX);
    let shown = [
        (14, Shown::Live),
        (2, Shown::Nothing),
        (4, Shown::Given(given)),
        (1, Shown::WrongSecret),
        (1, Shown::WrongEpoch),
        (1, Shown::WrongGeneration),
    ];
    Call {
        who: rng.below(WORKERS.len() * 3),
        task: if rng.one_in(40) { TASKS_MAX } else { rng.below(TASKS_MAX) },
        shown: rng.weighted(&shown).unwrap_or(Shown::Live),
        ask: ask(rng),
    }
}

fn ask(rng: &mut Rng) -> Ask {
    let (place, other, session) = (rng.below(WORKSTATIONS), rng.below(TASKS_MAX), rng.below(usize::MAX));
    let by = if rng.one_in(6) { By::Force } else { By::Rules };
    let to = rng.below(REGISTERED);
    let (from, until) = (rng.between(-15 * MINUTE, 15 * MINUTE), rng.between(-15 * MINUTE, 15 * MINUTE));
    let tokens = rng.between(0, 100_000);
    let add = Ask::Add {
        role: (!rng.one_in(3)).then(|| rng.below(ROLES.len())),
        scope: (!rng.one_in(3)).then(|| rng.below(SCOPES.len())),
        on: rng.one_in(4).then_some(other),
        origin: rng.one_in(4).then(|| rng.below(3)),
    };
    let asks = [
        (4, add),
        (16, Ask::Claim(place, by)),
        (6, Ask::Next(place)),
        (3, Ask::Assign { to, place }),
        (10, Ask::Takeover(place, by)),
        (7, Ask::Renew),
        (4, Ask::Release(by)),
        (2, Ask::BlockKeeping),
        (2, Ask::BlockReleasing),
        (1, Ask::BlockOnTask(other)),
        (5, Ask::Unblock),
        (4, Ask::Note),
        (7, Ask::Complete(by)),
        (5, Ask::Reopen),
        (1, Ask::Drop),
        (2, Ask::Depend(other)),
        (2, Ask::Undepend(other)),
        (2, Ask::Except(other)),
        (2, Ask::ApproveException(other)),
        (5, Ask::StartSession),
        (4, Ask::StopSession),
        (2, Ask::Correct { session, from, to: until }),
        (2, Ask::Use { session, tokens }),
    ];
    rng.weighted(&asks).unwrap_or(Ask::Renew)
}
