//! Two clones, one shared repository, two tasks: claim, merge, takeover and complete in every order, with a crash at every
//! step (invariants clean-start and own-commits).
//!
//! A grant makes at most one commit, known by its task and epoch; a rebase leaves it what it is. Whose a commit is says
//! `onus-core`. A push and the question whether it may are one step: the other model shows that the reference's lock does
//! that.

use onus_core::own_commits::{Holding, Made, Ownership, ownership};
use stateright::{Model, Property};

const TASKS: usize = 2;
/// The first two work in one clone, the third in the other.
const WORKERS: usize = 3;
const CLONES: usize = 2;
/// Those that the model tries, and those that getting well again may need.
const EPOCHS: usize = 6;
const COMMITS: usize = TASKS * EPOCHS;
/// How many rounds of everybody's next step may pass until all is done.
const ROUNDS: usize = 40;

/// Commits, one bit each.
type Set = u16;

/// Which of the defences are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Whole,
    /// A merge takes whatever lies on the branch.
    WithoutOwnCommits,
    /// A grant leaves the branch as it is.
    WithoutCleanStart,
    /// A merge and a completion believe what their clone saw last.
    WithoutFetch,
    /// What an earlier call brought to the main branch before it died is not looked for.
    WithoutRecord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    task: u8,
    epoch: u8,
}

impl Grant {
    fn commit(self) -> Set {
        1 << (usize::from(self.task) * EPOCHS + usize::from(self.epoch) - 1)
    }
}

/// Where a worker's process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Idle,
    /// The store has granted it; the workstation is as it was.
    Granted(Grant, Earlier),
    Working(Grant),
    /// `complete` has fetched, asked whose the commits are, and rebased them.
    Rebased(Grant),
    /// They are in the shared main branch, and the record does not know it yet.
    Pushed(Grant, Set),
    Recorded(Grant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Earlier {
    Leave,
    Adopt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Desk {
    step: Step,
    /// How much of the main branch its branch stands on.
    base: u8,
    on_top: Set,
    /// What its present grant has adopted, as the store has it.
    adopted: Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Row {
    epoch: u8,
    holder: Option<u8>,
    complete: bool,
    /// What the record says has landed.
    landed: Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    rows: [Row; TASKS],
    desks: [Desk; WORKERS],
    /// The shared main branch, the first commit first.
    main: [u8; COMMITS],
    length: u8,
    /// How much of it a clone has fetched.
    seen: [u8; CLONES],
    /// What clones keep of work that was put aside.
    kept: [Set; CLONES],
    made: Set,
    faults: u8,
    unowned: bool,
    outrun: bool,
    adopted_landed: bool,
    resumed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Claim(u8, u8, Earlier),
    Takeover(u8, u8, Earlier),
    CleanStart(u8),
    /// The workstation could not be put back: the grant stands all the same.
    StartFails(u8),
    Commit(u8),
    Rebase(u8),
    Push(u8),
    Record(u8),
    Finish(u8),
    Release(u8),
    Crash(u8),
}

#[derive(Debug)]
pub(crate) struct Road {
    variant: Variant,
    /// How often each task is given away.
    epochs: u8,
    faults: u8,
    /// By commit and grant: whose it is, unless it was adopted.
    own: [[bool; COMMITS]; COMMITS],
    /// The same where the holder adopted its epoch.
    adoptable: [[bool; COMMITS]; COMMITS],
}

impl Road {
    pub(crate) fn new(variant: Variant, epochs: u8, faults: u8) -> Road {
        let mut road = Road {
            variant,
            epochs,
            faults,
            own: [[false; COMMITS]; COMMITS],
            adoptable: [[false; COMMITS]; COMMITS],
        };
        for commit in 0..COMMITS {
            for grant in 0..COMMITS {
                road.own[commit][grant] = whose(commit, grant, &[]) == Ownership::Own;
                let of = epoch_of(commit);
                road.adoptable[commit][grant] = whose(commit, grant, &[of]) == Ownership::Adopted;
            }
        }
        road
    }

    fn is_owned(&self, commit: usize, grant: Grant, adopted: Set) -> bool {
        let holding = usize::from(grant.task) * EPOCHS + usize::from(grant.epoch) - 1;
        self.own[commit][holding] || (adopted & (1 << commit) != 0 && self.adoptable[commit][holding])
    }

    fn all_owned(&self, commits: Set, grant: Grant, adopted: Set) -> bool {
        members(commits).all(|commit| self.is_owned(commit, grant, adopted))
    }

    /// Whether everything gets done when nothing fails any more and everybody takes one step after the other.
    fn settles(&self, state: &State) -> bool {
        let mut state = *state;
        for _ in 0..ROUNDS {
            if state.rows.iter().all(|row| row.complete) {
                return true;
            }
            for who in 0..WORKERS as u8 {
                if let Some(action) = self.next_step(&state, who) {
                    state = self.next_state(&state, action).unwrap_or(state);
                }
            }
        }
        false
    }

    /// What a worker does that follows the hints.
    fn next_step(&self, state: &State, who: u8) -> Option<Action> {
        match state.desks[usize::from(who)].step {
            Step::Idle => (0..TASKS as u8).find_map(|task| {
                let row = &state.rows[usize::from(task)];
                // A holder whose process is gone is taken over from, once its lease has run out.
                let is_gone = |holder: u8| state.works_on(holder) != Some((task, row.epoch));
                match row.holder {
                    _ if row.complete || usize::from(row.epoch) >= EPOCHS => None,
                    None => Some(Action::Claim(who, task, Earlier::Leave)),
                    Some(holder) if is_gone(holder) => Some(Action::Takeover(who, task, Earlier::Leave)),
                    Some(_) => None,
                }
            }),
            Step::Granted(..) => Some(Action::CleanStart(who)),
            Step::Working(grant) if state.is_live(who, grant) && state.made & grant.commit() == 0 => {
                Some(Action::Commit(who))
            }
            Step::Working(_) if self.next_state(state, Action::Rebase(who)).is_some() => {
                Some(Action::Rebase(who))
            }
            // not_own_commits: its hint says to give the task back, and the next grant begins clean.
            Step::Working(_) => Some(Action::Release(who)),
            Step::Rebased(_) => Some(Action::Push(who)),
            Step::Pushed(..) => Some(Action::Record(who)),
            Step::Recorded(_) => Some(Action::Finish(who)),
        }
    }
}

impl State {
    fn main(&self, length: u8) -> Set {
        self.main[..usize::from(length)].iter().fold(0, |set, commit| set | (1 << commit))
    }

    fn is_live(&self, who: u8, grant: Grant) -> bool {
        let row = &self.rows[usize::from(grant.task)];
        row.holder == Some(who) && row.epoch == grant.epoch && !row.complete
    }

    fn works_on(&self, who: u8) -> Option<(u8, u8)> {
        match self.desks[usize::from(who)].step {
            Step::Idle => None,
            Step::Granted(grant, _)
            | Step::Working(grant)
            | Step::Rebased(grant)
            | Step::Pushed(grant, _)
            | Step::Recorded(grant) => Some((grant.task, grant.epoch)),
        }
    }

    fn desk(&mut self, who: u8) -> &mut Desk {
        &mut self.desks[usize::from(who)]
    }

    fn grant(&mut self, who: u8, task: u8, earlier: Earlier) {
        let row = &mut self.rows[usize::from(task)];
        row.epoch += 1;
        row.holder = Some(who);
        let grant = Grant { task, epoch: row.epoch };
        let desk = self.desk(who);
        (desk.step, desk.adopted) = (Step::Granted(grant, earlier), 0);
    }

    /// What of a task earlier holders left in a clone.
    fn left_of(&self, grant: Grant, clone: usize) -> Set {
        let branches = (0..WORKERS as u8).filter(|who| clone_of(*who) == clone);
        let branches = branches.fold(0, |set, who| set | self.desks[usize::from(who)].on_top);
        let earlier = (1..grant.epoch).map(|epoch| Grant { epoch, ..grant }.commit()).fold(0, |a, b| a | b);
        (self.kept[clone] | branches) & earlier
    }

    fn of_task(commits: Set, task: usize) -> Set {
        commits & ((((1u32 << EPOCHS) - 1) << (task * EPOCHS)) as Set)
    }
}

impl Model for Road {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let desk = Desk { step: Step::Idle, base: 0, on_top: 0, adopted: 0 };
        vec![State {
            rows: [Row::default(); TASKS],
            desks: [desk; WORKERS],
            main: [0; COMMITS],
            length: 0,
            seen: [0; CLONES],
            kept: [0; CLONES],
            made: 0,
            faults: 0,
            unowned: false,
            outrun: false,
            adopted_landed: false,
            resumed: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for who in 0..WORKERS as u8 {
            let may_fail = state.faults < self.faults;
            match state.desks[usize::from(who)].step {
                Step::Idle => self.grants(state, who, actions),
                Step::Granted(..) => {
                    actions.push(Action::CleanStart(who));
                    if may_fail {
                        actions.extend([Action::StartFails(who), Action::Crash(who)]);
                    }
                }
                Step::Working(grant) if state.made & grant.commit() == 0 => actions.push(Action::Commit(who)),
                Step::Working(_) => actions.extend([Action::Rebase(who), Action::Release(who)]),
                Step::Rebased(_) => actions.push(Action::Push(who)),
                Step::Pushed(..) => actions.push(Action::Record(who)),
                Step::Recorded(_) => actions.push(Action::Finish(who)),
            }
            if may_fail
                && matches!(
                    state.desks[usize::from(who)].step,
                    Step::Rebased(_) | Step::Pushed(..) | Step::Recorded(_)
                )
            {
                actions.push(Action::Crash(who));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = *last;
        match action {
            Action::Claim(who, task, earlier) => {
                let row = &state.rows[usize::from(task)];
                if row.complete || row.holder.is_some() {
                    return None;
                }
                state.grant(who, task, earlier);
            }
            Action::Takeover(who, task, earlier) => state.grant(who, task, earlier),
            Action::CleanStart(who) => self.clean_start(&mut state, who)?,
            Action::StartFails(who) => {
                let Step::Granted(grant, _) = state.desk(who).step else { return None };
                state.desk(who).step = Step::Working(grant);
                state.faults += 1;
            }
            Action::Commit(who) => {
                let Step::Working(grant) = state.desk(who).step else { return None };
                // A hook asks first: without a live lease nothing is committed.
                if !state.is_live(who, grant) {
                    state.desk(who).step = Step::Idle;
                    return Some(state);
                }
                state.made |= grant.commit();
                state.desk(who).on_top |= grant.commit();
            }
            Action::Release(who) => {
                let Step::Working(grant) = state.desk(who).step else { return None };
                if state.is_live(who, grant) {
                    state.rows[usize::from(grant.task)].holder = None;
                }
                state.desk(who).step = Step::Idle;
            }
            Action::Crash(who) => {
                state.faults += 1;
                let desk = state.desk(who);
                desk.step = match desk.step {
                    // Its token was not kept yet: somebody takes over.
                    Step::Granted(..) => Step::Idle,
                    Step::Rebased(grant) | Step::Pushed(grant, _) | Step::Recorded(grant) => {
                        Step::Working(grant)
                    }
                    _ => return None,
                };
                state.resumed |= matches!(last.desks[usize::from(who)].step, Step::Pushed(..));
            }
            end => self.end(&mut state, end)?,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing unowned lands", |_, state: &State| !state.unowned),
            Property::always("what is complete has landed", |_, state: &State| {
                let main = state.main(state.length);
                state.rows.iter().enumerate().filter(|(_, row)| row.complete).all(|(task, row)| {
                    let last = Grant { task: task as u8, epoch: row.epoch };
                    main & last.commit() != 0
                })
            }),
            Property::always("the record knows what has landed, and only that", |_, state: &State| {
                let main = state.main(state.length);
                state.rows.iter().enumerate().all(|(task, row)| {
                    let is_all = !row.complete || State::of_task(main, task) & !row.landed == 0;
                    is_all && row.landed & !main == 0
                })
            }),
            Property::always("no work is destroyed", |_, state: &State| {
                let branches = state.desks.iter().fold(0, |set, desk| set | desk.on_top);
                let kept = state.kept.iter().fold(0, |set, kept| set | kept);
                state.made & !(state.main(state.length) | branches | kept) == 0
            }),
            Property::always("nobody is stuck for ever", |road: &Road, state: &State| road.settles(state)),
            // A model in which nothing happens keeps every promise.
            Property::sometimes("everything is complete after a takeover", |_, state: &State| {
                state.rows.iter().all(|row| row.complete) && state.rows.iter().any(|row| row.epoch > 1)
            }),
            Property::sometimes("somebody else is quicker", |_, state: &State| state.outrun),
            Property::sometimes("adopted work lands", |_, state: &State| state.adopted_landed),
            Property::sometimes(
                "a call that died after its push is repeated to its end",
                |_, state: &State| state.resumed && state.rows.iter().all(|row| row.complete),
            ),
        ]
    }
}

impl Road {
    fn grants(&self, state: &State, who: u8, actions: &mut Vec<Action>) {
        for task in 0..TASKS as u8 {
            let row = &state.rows[usize::from(task)];
            if row.complete || row.epoch >= self.epochs {
                continue;
            }
            let next = Grant { task, epoch: row.epoch + 1 };
            let left = state.left_of(next, clone_of(who));
            let how: &[Earlier] =
                if left == 0 { &[Earlier::Leave] } else { &[Earlier::Leave, Earlier::Adopt] };
            for earlier in how {
                actions.push(match row.holder {
                    None => Action::Claim(who, task, *earlier),
                    // That a lease has run out is nothing that this model looks at: it may at any time.
                    Some(_) => Action::Takeover(who, task, *earlier),
                });
            }
        }
    }

    fn clean_start(&self, state: &mut State, who: u8) -> Option<()> {
        let Step::Granted(grant, earlier) = state.desk(who).step else { return None };
        let clone = clone_of(who);
        state.desk(who).step = Step::Working(grant);
        if self.variant == Variant::WithoutCleanStart {
            return Some(());
        }
        if self.variant != Variant::WithoutFetch {
            state.seen[clone] = state.length;
        }
        let (seen, main) = (state.seen[clone], state.main(state.seen[clone]));
        let adopted = match earlier {
            Earlier::Leave => 0,
            Earlier::Adopt => state.left_of(grant, clone) & !main,
        };
        state.kept[clone] |= state.desk(who).on_top & !main;
        let desk = state.desk(who);
        (desk.base, desk.on_top, desk.adopted) = (seen, adopted, adopted);
        Some(())
    }

    /// The steps of `complete`.
    fn end(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Rebase(who) => {
                let Step::Working(grant) = state.desk(who).step else { return None };
                if !state.is_live(who, grant) {
                    state.desk(who).step = Step::Idle;
                    return Some(());
                }
                let clone = clone_of(who);
                if self.variant != Variant::WithoutFetch {
                    state.seen[clone] = state.length;
                }
                let main = state.main(state.seen[clone]);
                let seen = state.seen[clone];
                let desk = state.desk(who);
                let unmerged = desk.on_top & !main;
                if self.variant != Variant::WithoutOwnCommits
                    && !self.all_owned(unmerged, grant, desk.adopted)
                {
                    return None;
                }
                (desk.base, desk.on_top) = (seen, unmerged);
                // Nothing is left to bring: an earlier call has.
                desk.step = if unmerged == 0 { Step::Pushed(grant, 0) } else { Step::Rebased(grant) };
            }
            Action::Push(who) => self.push(state, who)?,
            Action::Record(who) => {
                let Step::Pushed(grant, pushed) = state.desk(who).step else { return None };
                if !state.is_live(who, grant) {
                    state.desk(who).step = Step::Idle;
                    return Some(());
                }
                state.rows[usize::from(grant.task)].landed |= pushed;
                state.desk(who).step = Step::Recorded(grant);
            }
            Action::Finish(who) => {
                let Step::Recorded(grant) = state.desk(who).step else { return None };
                if !state.is_live(who, grant) {
                    state.desk(who).step = Step::Idle;
                    return Some(());
                }
                let main = state.main(state.seen[clone_of(who)]);
                let found = match self.variant {
                    Variant::WithoutRecord => 0,
                    _ => State::of_task(main, usize::from(grant.task)),
                };
                let row = &mut state.rows[usize::from(grant.task)];
                row.landed |= found;
                (row.complete, row.holder) = (true, None);
                state.desk(who).step = Step::Idle;
            }
            _ => return None,
        }
        Some(())
    }

    fn push(&self, state: &mut State, who: u8) -> Option<()> {
        let Step::Rebased(grant) = state.desk(who).step else { return None };
        if !state.is_live(who, grant) {
            state.desk(who).step = Step::Idle;
            return Some(());
        }
        let desk = *state.desk(who);
        if desk.base != state.length {
            state.outrun = true;
            state.desk(who).step = Step::Working(grant);
            return Some(());
        }
        state.unowned |= !self.all_owned(desk.on_top, grant, desk.adopted);
        state.adopted_landed |= desk.on_top & desk.adopted != 0;
        for commit in members(desk.on_top) {
            state.main[usize::from(state.length)] = commit as u8;
            state.length += 1;
        }
        state.seen[clone_of(who)] = state.length;
        let base = state.length;
        let desk = state.desk(who);
        (desk.base, desk.step) = (base, Step::Pushed(grant, desk.on_top));
        desk.on_top = 0;
        Some(())
    }
}

fn clone_of(who: u8) -> usize {
    usize::from(who / 2)
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..COMMITS).filter(move |commit| set & (1 << commit) != 0)
}

fn epoch_of(commit: usize) -> i64 {
    (commit % EPOCHS) as i64 + 1
}

/// What the core says.
fn whose(commit: usize, grant: usize, adopted_epochs: &[i64]) -> Ownership {
    let name = |n: usize| format!("T-{}", n / EPOCHS + 1);
    let made = Made {
        id: format!("{commit:040x}").parse().unwrap(),
        subject: "a change".into(),
        task: Some(name(commit)),
        epoch: Some(epoch_of(commit).to_string()),
        before_grant: false,
    };
    let (task, workstation) = (name(grant).parse().unwrap(), "ws-a".parse().unwrap());
    let epoch = epoch_of(grant);
    ownership(&made, &Holding { task: &task, epoch, workstation: &workstation, adopted_epochs, adopted: &[] })
}
