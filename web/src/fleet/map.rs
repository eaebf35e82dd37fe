//! The identity map as a graph, who is in which lane, and since when work goes where it goes.

use crate::graph::{self, Node};
use crate::html::{Html, when};
use onus_app::route::{HistoryView, RoleView, RouteView};
use onus_core::identity_map::{Candidate, Sends, When};
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;

/// Rules that are drawn; all of them are in the file.
const RULES: usize = 60;
/// Changes that are listed.
const CHANGES: usize = 30;

#[derive(Debug)]
pub(super) struct MapPart {
    pub(super) graph: Html,
    pub(super) commit: String,
    pub(super) edited: bool,
    pub(super) left_out: usize,
    pub(super) changes: Vec<ChangeRow>,
}

#[derive(Debug)]
pub(super) struct ChangeRow {
    pub(super) at: Html,
    pub(super) commit: String,
    pub(super) author: String,
    pub(super) subject: String,
    pub(super) what: String,
}

#[derive(Debug)]
pub(super) struct RolePart {
    pub(super) role: String,
    pub(super) owns: String,
    pub(super) lanes: Vec<LanePart>,
}

#[derive(Debug)]
pub(super) struct LanePart {
    pub(super) number: i64,
    /// The task, and who has it.
    pub(super) holds: Vec<(String, String)>,
    pub(super) limit: u32,
    pub(super) full: bool,
}

pub(super) fn draw(
    route: RouteView,
    history: &HistoryView,
    now: Timestamp,
) -> Result<(MapPart, Vec<RolePart>), Refusal> {
    let (nodes, edges) = graph_of(&route);
    let map = MapPart {
        graph: graph::draw("Which work goes to whom, and where", &nodes, &edges)?,
        commit: route.map_commit.as_deref().map_or("not committed", brief).to_owned(),
        edited: route.edited,
        left_out: route.rules.len().saturating_sub(RULES),
        changes: changes(history, now),
    };
    Ok((map, route.roles.into_iter().map(role_part).collect()))
}

/// Types of work on the left, then agents, then workstations.
fn graph_of(route: &RouteView) -> (Vec<Node>, Vec<(usize, usize)>) {
    let mut nodes: Vec<Node> = Vec::new();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut node = |label: String, about: String, href: String, layer: usize| {
        let known = nodes.iter().position(|node: &Node| node.layer == layer && node.label == label);
        known.unwrap_or_else(|| {
            nodes.push(Node { label, about, href, class: "node".to_owned(), layer });
            nodes.len() - 1
        })
    };
    for rule in route.rules.iter().take(RULES) {
        let about = if rule.independent { "by who did not build it" } else { "" };
        let href = format!("/board?type={}", rule.task_type);
        let from = node(rule.task_type.to_string(), about.to_owned(), href, 0);
        for (rank, candidate) in rule.candidates.iter().enumerate() {
            let Candidate { agent_name, workstation, when } = candidate;
            let day = format!("/effort/day?worker={agent_name}");
            let agent = node(agent_name.to_string(), conditions(rank, when), day, 1);
            let board = format!("/board?lanes=workstation#lane-{workstation}");
            let place = node(workstation.to_string(), String::new(), board, 2);
            for edge in [(from, agent), (agent, place)] {
                if !edges.contains(&edge) {
                    edges.push(edge);
                }
            }
        }
    }
    (nodes, edges)
}

fn conditions(rank: usize, when: &When) -> String {
    let mut words = Vec::new();
    if !when.tier.is_empty() {
        words.push(when.tier.join("/"));
    }
    if when.priority.is_some() {
        words.push("by priority".to_owned());
    }
    if when.available {
        words.push("if free".to_owned());
    }
    if when.workstation_ready {
        words.push("if ready".to_owned());
    }
    if when.max_utilisation.is_some() {
        words.push("if not busy".to_owned());
    }
    if words.is_empty() && rank > 0 {
        words.push(format!("choice {}", rank + 1));
    }
    words.join(", ")
}

fn role_part(role: RoleView) -> RolePart {
    let limit = role.max_in_progress;
    let lanes = role.lanes.into_iter().map(|lane| LanePart {
        number: lane.lane,
        full: lane.holds.len() >= limit as usize,
        holds: lane.holds.iter().map(|held| (held.task.to_string(), held.worker.to_string())).collect(),
        limit,
    });
    RolePart { role: role.role.to_string(), owns: role.owns.join(" "), lanes: lanes.collect() }
}

fn changes(history: &HistoryView, now: Timestamp) -> Vec<ChangeRow> {
    let mut all: Vec<_> = history
        .types
        .iter()
        .flat_map(|types| types.changes.iter().map(move |change| (&types.task_type, change)))
        .collect();
    all.sort_by_key(|(_, change)| std::cmp::Reverse(change.at));
    let row = |(task_type, change): (&_, &onus_core::identity_map::RouteChange)| ChangeRow {
        at: when(change.at, now),
        commit: brief(&change.commit).to_owned(),
        author: change.author.clone(),
        subject: change.subject.clone(),
        what: format!("{task_type} {}", sends(&change.sends)),
    };
    all.into_iter().take(CHANGES).map(row).collect()
}

fn sends(sends: &Sends) -> String {
    match sends {
        Sends::To(candidates) => {
            let pairs = candidates.iter().map(|one| format!("{} in {}", one.agent_name, one.workstation));
            format!("to {}", pairs.collect::<Vec<_>>().join(", then "))
        }
        Sends::NoRule => "to no agent: no rule".to_owned(),
        Sends::NoMap => "to anybody: no map".to_owned(),
        Sends::Invalid(_) => "to no agent: the map could not be followed".to_owned(),
    }
}

fn brief(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
