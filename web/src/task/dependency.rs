//! What a task waits for, and what waits for it, as a graph.

use crate::graph::{self, Node};
use crate::html::Html;
use onus_app::view::StoryView;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::task::StateName;
use onus_store::error::Result as StoreResult;
use onus_store::load;
use onus_store::port::Tx;
use std::collections::{BTreeMap, BTreeSet};

/// So many boxes are drawn on either side; the lists beside them have the rest.
const DRAWN: usize = 30;

#[derive(Debug)]
pub(super) struct Surroundings {
    task: TaskId,
    states: BTreeMap<TaskId, Option<StateName>>,
    /// Who waits for whom.
    waits: Vec<(TaskId, TaskId)>,
    /// How far each is from the task: dependencies to the left, dependents to the right.
    depth: BTreeMap<TaskId, i64>,
}

pub(super) fn load(tx: &mut dyn Tx, id: &TaskId, story: &StoryView) -> StoreResult<Surroundings> {
    let reach = load::reachable(tx, id)?;
    let mut depth = BTreeMap::from([(id.clone(), 0)]);
    let mut waits = BTreeSet::new();
    let mut next = vec![id.clone()];
    // The longest way counts, so that every line leads to the right; a circle, which the rules refuse, would end it.
    while let Some(task) = next.pop() {
        let here = depth.get(&task).copied().unwrap_or_default();
        for on in reach.get(&task).into_iter().flatten() {
            if depth.len() >= DRAWN && !depth.contains_key(on) {
                continue;
            }
            waits.insert((task.clone(), on.clone()));
            let known = depth.get(on).copied();
            if known.is_none_or(|known| known > here - 1) && -here < DRAWN as i64 {
                depth.insert(on.clone(), here - 1);
                next.push(on.clone());
            }
        }
    }
    for dependent in story.dependents.iter().take(DRAWN) {
        depth.entry(dependent.clone()).or_insert(1);
        waits.insert((dependent.clone(), id.clone()));
    }
    let mut states = BTreeMap::new();
    for task in depth.keys() {
        states.insert(task.clone(), load::state(tx, task)?);
    }
    Ok(Surroundings { task: id.clone(), states, waits: waits.into_iter().collect(), depth })
}

impl Surroundings {
    /// Nothing where the task stands alone.
    pub(super) fn draw(&self) -> Result<Option<Html>, Refusal> {
        if self.waits.is_empty() {
            return Ok(None);
        }
        let least = self.depth.values().min().copied().unwrap_or_default();
        let nodes: Vec<Node> = self
            .depth
            .iter()
            .map(|(task, depth)| {
                let state = self.states.get(task).copied().flatten().map_or("missing", StateName::name);
                let own = if *task == self.task { " own" } else { "" };
                Node {
                    label: task.to_string(),
                    about: state.replace('_', " "),
                    href: format!("/tasks/{task}"),
                    class: format!("node {state}{own}"),
                    layer: usize::try_from(depth - least).unwrap_or_default(),
                }
            })
            .collect();
        let order: Vec<&TaskId> = self.depth.keys().collect();
        let number = |task: &TaskId| order.iter().position(|known| *known == task);
        let edges: Vec<(usize, usize)> =
            self.waits.iter().filter_map(|(waiting, on)| Some((number(on)?, number(waiting)?))).collect();
        graph::draw("What it waits for, and what waits for it", &nodes, &edges).map(Some)
    }
}
