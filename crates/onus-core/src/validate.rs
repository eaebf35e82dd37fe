//! What is wrong with a whole queue: circles, loose ends, tasks that can never start, checks that prove nothing
//! (mission D13).

use crate::check;
use crate::code::Code;
use crate::id::{Epoch, Role, TaskId};
use crate::identity_map::Policy;
use crate::lane;
use crate::queue;
use crate::refusal::Finding;
use crate::task::{Check, StateName};
use std::collections::HashMap;

/// One task as far as its place in the queue matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTask {
    pub id: TaskId,
    pub state: StateName,
    pub epoch: Epoch,
    pub fence: Fence,
    pub parent: Option<TaskId>,
    pub checks: Vec<Check>,
    pub role: Option<Role>,
    pub lane: Option<i64>,
}

/// Whether the row bears a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    Up,
    Down,
}

/// The queue as it is stored.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    pub tasks: Vec<QueuedTask>,
    /// `(task, depends_on)`
    pub edges: Vec<(TaskId, TaskId)>,
    /// Assignments that have not ended.
    pub live: Vec<(TaskId, Epoch)>,
}

/// A finding with the task that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub task: TaskId,
    pub finding: Finding,
}

/// How many tasks of a circle are named.
const NAMED: usize = 10;

/// Everything at once, in the order of the tasks; empty means sound.
pub fn findings(queue: &Queue, policy: &Policy) -> Vec<Found> {
    let places: HashMap<&TaskId, usize> =
        queue.tasks.iter().enumerate().map(|(i, task)| (&task.id, i)).collect();
    let mut survey = Survey { queue, places, found: Vec::new() };
    survey.dependencies();
    survey.parents();
    survey.holders();
    survey.checks();
    survey.roles(policy);
    let Survey { places, mut found, .. } = survey;
    found.sort_by_key(|found| places.get(&found.task).copied().unwrap_or(usize::MAX));
    found
}

struct Survey<'a> {
    queue: &'a Queue,
    places: HashMap<&'a TaskId, usize>,
    found: Vec<Found>,
}

impl<'a> Survey<'a> {
    fn report(&mut self, task: &TaskId, finding: Finding) {
        self.found.push(Found { task: task.clone(), finding });
    }

    fn standing(&self, id: &TaskId) -> Option<&'a QueuedTask> {
        self.places.get(id).map(|place| &self.queue.tasks[*place])
    }

    fn dependencies(&mut self) {
        for (task, on) in &self.queue.edges {
            match (self.standing(task), self.standing(on)) {
                (None, _) => {
                    self.report(task, unknown(format!("a dependency belongs to {task}, which is no task")));
                }
                (_, None) => self.report(task, unknown(format!("it depends on {on}, which is no task"))),
                (Some(waiting), Some(dropped))
                    if dropped.state == StateName::Dropped && !waiting.state.is_terminal() =>
                {
                    let detail = format!("it depends on {on}, which was dropped: it can never become ready");
                    let hint = format!("onus dep remove {task} {on}");
                    self.report(task, Finding::new(Code::QueueInvalid, detail).hint(hint));
                }
                _ => {}
            }
        }
        let edges: Vec<(u32, u32)> =
            self.queue.edges.iter().filter_map(|(task, on)| self.pair(task, on)).collect();
        for group in queue::cycles(edges.into_iter()) {
            let (first, names) = self.named(&group);
            self.report(
                &first,
                Finding::new(Code::DependencyCycle, format!("these wait for each other: {names}"))
                    .hint("onus dep remove TASK DEPENDS_ON for one of them"),
            );
        }
    }

    fn parents(&mut self) {
        let mut edges = Vec::new();
        for task in &self.queue.tasks {
            let Some(parent) = &task.parent else { continue };
            match self.pair(&task.id, parent) {
                Some(pair) => edges.push(pair),
                None => self.report(&task.id, unknown(format!("its parent {parent} is no task"))),
            }
        }
        for group in queue::cycles(edges.into_iter()) {
            let (first, names) = self.named(&group);
            let detail = format!("these are each other's parents: {names}");
            self.report(&first, Finding::new(Code::QueueInvalid, detail).hint("onus doctor"));
        }
    }

    /// A task is held exactly when it says so: by its state, by its fence and by one live assignment of its epoch.
    fn holders(&mut self) {
        let mut live: HashMap<&TaskId, Vec<Epoch>> = HashMap::new();
        for (task, epoch) in &self.queue.live {
            live.entry(task).or_default().push(*epoch);
        }
        for (task, _) in &self.queue.live {
            if self.standing(task).is_none() {
                self.report(task, unknown(format!("an assignment belongs to {task}, which is no task")));
            }
        }
        for task in &self.queue.tasks {
            let held: &[Epoch] = live.get(&task.id).map_or(&[], Vec::as_slice);
            if let Some(detail) = disagreement(task, held) {
                self.report(&task.id, Finding::new(Code::QueueInvalid, detail).hint("onus doctor"));
            }
        }
    }

    /// Checks of work that is still to be done; what has ended was proven, or not, by then.
    fn checks(&mut self) {
        for task in self.queue.tasks.iter().filter(|task| !task.state.is_terminal()) {
            for Check { command, .. } in &task.checks {
                let complaint = if check::cannot_fail(command) {
                    "cannot fail: it proves nothing"
                } else if check::looks_like_prose(command) {
                    "is a sentence and no command"
                } else {
                    continue;
                };
                let detail = format!("its check {} {complaint}", crate::id::shown(command));
                let hint = "a check is a command that fails when the work is not done";
                self.report(&task.id, Finding::new(Code::QueueInvalid, detail).hint(hint));
            }
        }
    }

    /// A role that nobody plays, or a lane that there is not: such a task can never be claimed.
    fn roles(&mut self, policy: &Policy) {
        for task in self.queue.tasks.iter().filter(|task| !task.state.is_terminal()) {
            if let Some(finding) = lane::unknown(policy, task.role.as_ref(), task.lane) {
                self.report(&task.id, finding);
            }
        }
    }

    fn pair(&self, from: &TaskId, to: &TaskId) -> Option<(u32, u32)> {
        let place = |id| self.places.get(id).and_then(|place| u32::try_from(*place).ok());
        Some((place(from)?, place(to)?))
    }

    fn named(&self, group: &[u32]) -> (TaskId, String) {
        let ids: Vec<&TaskId> =
            group.iter().filter_map(|i| self.queue.tasks.get(*i as usize)).map(|task| &task.id).collect();
        let mut names: Vec<String> = ids.iter().take(NAMED).map(ToString::to_string).collect();
        if ids.len() > NAMED {
            names.push(format!("and {} more", ids.len() - NAMED));
        }
        (ids[0].clone(), names.join(", "))
    }
}

fn unknown(detail: String) -> Finding {
    Finding::new(Code::UnknownTask, detail).hint("onus doctor")
}

fn disagreement(task: &QueuedTask, live: &[Epoch]) -> Option<String> {
    let state = task.state;
    let has_fence = task.fence == Fence::Up;
    if live.len() > 1 {
        return Some(format!("it has {} live assignments", live.len()));
    }
    match (state, live.first()) {
        (StateName::InProgress, None) => Some("it is in progress, but nobody holds it".to_owned()),
        (StateName::Open | StateName::Complete | StateName::Dropped, Some(_)) => {
            Some(format!("it is {state}, but somebody holds it"))
        }
        (_, Some(epoch)) if *epoch != task.epoch => {
            Some(format!("its assignment has epoch {epoch}, the task has {}", task.epoch))
        }
        (_, held) if held.is_some() != has_fence => Some("its lease and its assignment disagree".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity_map::InForce;
    use crate::task::{CheckKind, CheckState};

    fn id(text: &str) -> TaskId {
        format!("T-{text}").parse().unwrap()
    }

    /// `1 open; 2 in_progress held; 3 open parent=1 check=make`, then edges `1>2`, then live `2@0`.
    fn queue(tasks: &str, edges: &str, live: &str) -> Queue {
        let standing = |line: &str| {
            let mut words = line.split_whitespace();
            let mut task = QueuedTask {
                id: id(words.next().unwrap()),
                state: StateName::parse(words.next().unwrap()).unwrap(),
                epoch: 0,
                fence: Fence::Down,
                parent: None,
                checks: Vec::new(),
                role: None,
                lane: None,
            };
            for word in words {
                match word.split_once('=') {
                    None => task.fence = Fence::Up,
                    Some(("parent", parent)) => task.parent = Some(id(parent)),
                    Some(("role", role)) => task.role = Some(role.parse().unwrap()),
                    Some(("lane", lane)) => task.lane = Some(lane.parse().unwrap()),
                    Some((_, command)) => task.checks.push(Check {
                        command: command.replace('_', " "),
                        state: CheckState::Proposed,
                        kind: CheckKind::default(),
                    }),
                }
            }
            task
        };
        let pair = |text: &str, by| {
            let (left, right) = str::split_once(text, by).unwrap();
            (left.to_owned(), right.to_owned())
        };
        Queue {
            tasks: tasks.split(';').map(str::trim).filter(|line| !line.is_empty()).map(standing).collect(),
            edges: edges
                .split_whitespace()
                .map(|text| pair(text, '>'))
                .map(|(a, b)| (id(&a), id(&b)))
                .collect(),
            live: live
                .split_whitespace()
                .map(|text| pair(text, '@'))
                .map(|(a, b)| (id(&a), b.parse().unwrap()))
                .collect(),
        }
    }

    /// The role `A` has two lanes.
    fn policy() -> Policy {
        let map = serde_json::from_str(r#"{"roles": {"A": {"lanes": 2}}}"#).unwrap();
        Policy::InForce(Box::new(InForce { map, commit: None, hash: String::new(), edited: false }))
    }

    #[test]
    fn a_role_and_a_lane_must_be_there() {
        check("1 open role=A; 2 open role=A lane=2; 3 complete role=B", "", "", "");
        check("1 open role=A lane=9; 2 open role=B", "", "", "T-1 queue_invalid; T-2 queue_invalid");
        check("1 open role=A lane=0", "", "", "T-1 queue_invalid");
    }

    fn check(tasks: &str, edges: &str, live: &str, expected: &str) {
        let found = findings(&queue(tasks, edges, live), &policy());
        let text: Vec<String> = found.iter().map(|f| format!("{} {}", f.task, f.finding.code)).collect();
        assert_eq!(text.join("; "), expected, "{tasks} | {edges} | {live}: {found:#?}");
    }

    #[test]
    fn a_sound_queue_has_no_findings() {
        check("1 open; 2 open parent=1 check=make_test; 3 complete; 4 dropped", "1>2 2>3 3>4", "", "");
        check("1 in_progress held; 2 blocked; 3 blocked held", "", "1@0 3@0", "");
    }

    #[test]
    fn circles_and_loose_ends() {
        check("1 open; 2 open; 3 open", "1>2 2>1 3>1", "", "T-1 dependency_cycle");
        check("1 open", "1>1", "", "T-1 dependency_cycle");
        check("1 open", "1>9", "", "T-1 unknown_task");
        check("1 open", "9>1", "", "T-9 unknown_task");
        check("1 open parent=2; 2 open parent=1", "", "", "T-1 queue_invalid");
        check("1 open parent=9", "", "", "T-1 unknown_task");
    }

    #[test]
    fn what_waits_for_a_dropped_task_waits_for_ever() {
        check("1 open; 2 dropped", "1>2", "", "T-1 queue_invalid");
        check("1 complete; 2 dropped", "1>2", "", "");
    }

    #[test]
    fn state_fence_and_assignment_agree() {
        check("1 in_progress held", "", "", "T-1 queue_invalid");
        check("1 open", "", "1@0", "T-1 queue_invalid");
        check("1 complete", "", "1@0", "T-1 queue_invalid");
        check("1 in_progress held", "", "1@1", "T-1 queue_invalid");
        check("1 in_progress", "", "1@0", "T-1 queue_invalid");
        check("1 in_progress held", "", "1@0 1@0", "T-1 queue_invalid");
        check("1 blocked held", "", "", "T-1 queue_invalid");
        check("1 open", "", "9@0", "T-9 unknown_task");
    }

    #[test]
    fn checks_of_open_work_must_be_able_to_fail() {
        check(
            "1 open check=true; 2 open check=All_tests_pass",
            "",
            "",
            "T-1 queue_invalid; T-2 queue_invalid",
        );
        check("1 complete check=true", "", "", "");
    }

    #[test]
    fn findings_come_in_the_order_of_the_tasks() {
        check(
            "2 open check=true; 1 open check=true",
            "1>1",
            "",
            "T-2 queue_invalid; T-1 dependency_cycle; T-1 queue_invalid",
        );
    }
}
