//! The agents, as people read them.

use super::table::{Table, cut};
use super::{BOLD, DIM, YELLOW, lease_end, paint, when};
use onus_app::fleet::{AgentView, FleetView};
use onus_core::text::counted;
use std::collections::BTreeMap;

const TITLES: [&str; 10] =
    ["AGENT", "STATE", "TASK", "SINCE", "PLACE", "LEASE", "LAST OUTPUT", "TOKENS", "COST", "TODAY"];

pub(crate) fn fleet(view: &FleetView) -> String {
    let mut table = Table::new(TITLES);
    for agent in &view.agents {
        table.row(cells(agent));
    }
    table.to_string()
}

fn cells(agent: &AgentView) -> [String; 10] {
    let is_calm = matches!(agent.state.as_str(), "working" | "idle");
    let state = agent.state.replace('_', " ");
    let lease = agent.lease.as_ref();
    [
        agent.worker.to_string(),
        if is_calm { state } else { paint(YELLOW, state) },
        agent.task.as_ref().map(ToString::to_string).unwrap_or_default(),
        agent.since.map(when).unwrap_or_default(),
        lease.map(|lease| lease.workstation.to_string()).unwrap_or_default(),
        lease
            .map(|lease| format!("grant {}, {}", lease.epoch, lease_end(lease.expires_at)))
            .unwrap_or_default(),
        agent.last_output_at.map(when).unwrap_or_default(),
        agent.tokens.to_string(),
        agent.cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.2}")),
        agent.limits.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(", "),
    ]
}

/// The same as a page of a terminal: one agent is chosen, and what it printed last stands below, as far as there is room.
pub(crate) fn fleet_page(
    view: &FleetView,
    chosen: usize,
    printed: &[String],
    (columns, rows): (usize, usize),
) -> String {
    let mut text = format!("{}\n\n", cut(&summary(view), columns));
    let mut table = Table::new(TITLES);
    view.agents.iter().for_each(|agent| table.row(cells(agent)));
    let table = table.within(Some(columns.saturating_sub(2)));
    let mut lines = table.lines();
    text.push_str(&format!("  {}\n", lines.next().unwrap_or_default()));
    // The head, the tail's title, the keys, and at least a third of the page for what is printed.
    let room = (rows.saturating_sub(6) * 2 / 3).max(3);
    let first = (chosen + 1).saturating_sub(room);
    for (at, line) in lines.enumerate().skip(first).take(room) {
        text.push_str(&format!("{} {line}\n", if at == chosen { paint(BOLD, ">") } else { " ".to_owned() }));
    }
    if let Some(agent) = view.agents.get(chosen) {
        let title = agent.title.as_deref().unwrap_or("holds nothing");
        text.push_str(&format!("\n{}\n", paint(DIM, cut(&format!("{}: {title}", agent.worker), columns))));
        let left = rows.saturating_sub(text.lines().count() + 2);
        for line in &printed[printed.len().saturating_sub(left)..] {
            text.push_str(&format!("{}\n", cut(line, columns)));
        }
    }
    text
}

/// How many do what.
fn summary(view: &FleetView) -> String {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    view.agents.iter().for_each(|agent| *states.entry(&agent.state).or_default() += 1);
    let states: Vec<String> =
        states.iter().map(|(state, count)| format!("{count} {}", state.replace('_', " "))).collect();
    let supervisor = if view.supervisor.is_some() {
        "the supervisor runs"
    } else {
        "no supervisor runs here: onus fleet up"
    };
    format!("{} · {} · {supervisor}", paint(BOLD, counted(view.agents.len(), "agent")), states.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(count: usize) -> FleetView {
        let agent = |n: usize| {
            json!({ "worker": format!("@a-{n}"), "state": "working", "task": format!("API-{n}"), "title": format!("Work {n}"),
                "session": n, "since": null, "last_output_at": null, "tokens": 7, "cost": null,
                "lease": { "workstation": format!("ws-{n}"), "epoch": 3, "renewed_at": "2026-11-19T10:00:00Z",
                    "expires_at": "2026-11-19T10:15:00Z" } })
        };
        let agents: Vec<_> = (1..=count).map(agent).collect();
        serde_json::from_value(json!({ "agents": agents, "supervisor": 1 })).unwrap()
    }

    #[test]
    fn a_page_fits_the_terminal_and_shows_whom_one_has_chosen() {
        let printed: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        for (count, chosen, rows) in [(3, 0, 24), (3, 2, 24), (50, 40, 24), (50, 49, 10), (1, 0, 60)] {
            let text = fleet_page(&view(count), chosen, &printed, (120, rows));
            let plain = anstream::adapter::strip_str(&text).to_string();
            assert!(plain.lines().count() < rows, "{rows}: {plain}");
            let number = chosen + 1;
            assert!(
                plain.contains(&format!("> @a-{number} ")) && plain.contains(&format!("Work {number}")),
                "{plain}"
            );
            assert!(plain.contains("grant 3") && plain.contains(&format!("ws-{number}")), "{plain}");
            assert!(plain.contains("line 99") || rows == 10, "{plain}");
        }
        assert!(fleet_page(&view(0), 0, &[], (80, 24)).contains("0 agents"));
    }
}
