//! The agents, as people read them.

use super::table::Table;
use super::{YELLOW, paint, when};
use onus_app::fleet::FleetView;

pub(crate) fn fleet(view: &FleetView) -> String {
    let mut table = Table::new(["AGENT", "STATE", "TASK", "SINCE", "LAST OUTPUT", "TOKENS", "COST", "TODAY"]);
    for agent in &view.agents {
        let is_calm = matches!(agent.state.as_str(), "working" | "idle");
        table.row([
            agent.worker.to_string(),
            if is_calm { agent.state.clone() } else { paint(YELLOW, &agent.state) },
            agent.task.as_ref().map(ToString::to_string).unwrap_or_default(),
            agent.since.map(when).unwrap_or_default(),
            agent.last_output_at.map(when).unwrap_or_default(),
            agent.tokens.to_string(),
            agent.cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.2}")),
            agent.limits.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(", "),
        ]);
    }
    table.to_string()
}
