//! Dependencies: what must be complete before a task may start (mission D1).

use crate::code::Code;
use crate::contract_request::{KIND, decision};
use crate::facts::Dependency;
use crate::id::TaskId;
use crate::refusal::Finding;
use crate::task::StateName;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// One finding per dependency that is not complete and that nobody may step over.
pub fn findings(dependencies: &[Dependency]) -> Vec<Finding> {
    incomplete(dependencies.iter().filter(|dependency| !dependency.excepted))
}

/// One finding per dependency that is not complete.
pub fn incomplete<'a>(dependencies: impl Iterator<Item = &'a Dependency>) -> Vec<Finding> {
    dependencies
        .filter(|dependency| dependency.state != Some(StateName::Complete))
        .map(|Dependency { id, state, is_request, .. }| {
            let asked = state.filter(|_| *is_request).and_then(|state| decision(KIND, state));
            let word = asked.unwrap_or_else(|| state.map_or("missing", StateName::name));
            let what = if asked.is_some() { "a contract request that is" } else { "which is" };
            Finding::new(
                Code::DependencyIncomplete,
                format!("it depends on {id}, {what} {}", word.replace('_', " ")),
            )
            .hint(format!("onus show {id}"))
        })
        .collect()
}

/// The shortest way from `from` to `to` along `depends_on`, both ends included.
pub fn path(edges: &BTreeMap<TaskId, Vec<TaskId>>, from: &TaskId, to: &TaskId) -> Option<Vec<TaskId>> {
    let mut came_from: HashMap<&TaskId, &TaskId> = HashMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(here) = queue.pop_front() {
        if here == to {
            let mut way = vec![here.clone()];
            let mut step = here;
            while step != from {
                step = came_from.get(step)?;
                way.push(step.clone());
            }
            way.reverse();
            return Some(way);
        }
        for next in edges.get(here).into_iter().flatten() {
            if next != from && !came_from.contains_key(next) {
                came_from.insert(next, here);
                queue.push_back(next);
            }
        }
    }
    None
}

/// How many tasks the longest way along `depends_on` leads through, the first one not counted.
pub fn depth(edges: &BTreeMap<TaskId, Vec<TaskId>>, from: &TaskId) -> u32 {
    let mut depths: HashMap<&TaskId, u32> = HashMap::new();
    // A task is looked at twice: on the way down, and when all below it is known. Chains may be longer than a stack.
    let mut open: Vec<(&TaskId, bool)> = vec![(from, false)];
    while let Some((at, below_is_known)) = open.pop() {
        let next = || edges.get(at).into_iter().flatten();
        if below_is_known {
            let deepest = next().filter_map(|next| depths.get(next)).max();
            depths.insert(at, deepest.map_or(0, |deepest| deepest + 1));
        } else if !depths.contains_key(at) {
            depths.insert(at, 0);
            open.push((at, true));
            open.extend(next().filter(|next| !depths.contains_key(next)).map(|next| (next, false)));
        }
    }
    depths.get(from).copied().unwrap_or(0)
}

/// Every group of tasks that wait for each other, found in one pass over all edges `(task, depends_on)`.
pub fn cycles(edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let graph: DiGraphMap<u32, ()> = edges.map(|(task, on)| (task, on, ())).collect();
    let mut found: Vec<Vec<u32>> = petgraph::algo::tarjan_scc(&graph)
        .into_iter()
        .filter(|group| group.len() > 1 || graph.contains_edge(group[0], group[0]))
        .collect();
    for group in &mut found {
        group.sort_unstable();
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(text: &str) -> BTreeMap<TaskId, Vec<TaskId>> {
        let mut map: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for pair in text.split_whitespace() {
            let (from, to) = pair.split_once('>').unwrap();
            let id = |n: &str| format!("T-{n}").parse::<TaskId>().unwrap();
            map.entry(id(from)).or_default().push(id(to));
        }
        map
    }

    #[test]
    fn the_way_round_is_named() {
        let check = |graph: &str, from: &str, to: &str, way: &str| {
            let found = path(&edges(graph), &from.parse().unwrap(), &to.parse().unwrap());
            let text = found.map_or("none".into(), |ids| {
                ids.iter().map(|id| id.number.to_string()).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(text, way, "{graph}");
        };
        check("1>2 2>3", "T-1", "T-3", "1 2 3");
        check("1>2 2>3 1>3", "T-1", "T-3", "1 3");
        check("1>2 3>1", "T-1", "T-3", "none");
        check("", "T-1", "T-1", "1");
        check("1>2 2>1 2>4", "T-1", "T-4", "1 2 4");
    }

    #[test]
    fn the_longest_way_counts() {
        let check = |graph: &str, deep: u32| {
            assert_eq!(depth(&edges(graph), &"T-1".parse().unwrap()), deep, "{graph}");
        };
        check("", 0);
        check("1>2", 1);
        check("1>2 1>3 2>4 3>4 4>5", 3);
        check("1>5 1>2 2>3 3>5", 3);
        let long: Vec<String> = (1..50_000).map(|n| format!("{n}>{}", n + 1)).collect();
        check(&long.join(" "), 49_999);
    }

    #[test]
    fn cycles_are_found_wherever_they_are() {
        assert!(cycles([(1, 2), (2, 3), (1, 3)].into_iter()).is_empty());
        assert_eq!(cycles([(1, 2), (2, 1), (3, 3), (4, 5)].into_iter()), vec![vec![1, 2], vec![3]]);
    }
}
