//! The identity map for people.

use super::refusal::coded;
use super::table::Table;
use super::{BOLD, DIM, GREEN, RED, YELLOW, paint, when};
use onus_app::route::{CallerView, ExplainView, HistoryView, RoleView, RouteView};
use onus_core::identity_map::{Candidate, Sends, Verdict, When};
use std::fmt::Write as _;

pub(crate) fn route(view: &RouteView) -> String {
    let commit = view.map_commit.as_deref().map_or("not committed", short);
    let edited = if view.edited { paint(YELLOW, ", edited in the main checkout") } else { String::new() };
    let mut text = format!("map {} · sha256 {}{edited}\n\n", paint(BOLD, commit), short(&view.map_hash));
    let mut table = Table::new(["TYPE", "TO", "IN", "WHEN", "RULE"]);
    for rule in &view.rules {
        for candidate in &rule.candidates {
            let independent = if rule.independent { " independent" } else { "" };
            table.row([
                paint(BOLD, &rule.task_type),
                candidate.agent_name.to_string(),
                candidate.workstation.to_string(),
                conditions(&candidate.when),
                format!("{}{independent}", rule.rule),
            ]);
        }
    }
    text.push_str(&table.to_string());
    if !view.roles.is_empty() {
        let _ = writeln!(text, "\n{}", roles(&view.roles).trim_end());
    }
    for entry in &view.co_edited {
        let with: Vec<&str> = entry.with.iter().map(|role| role.as_str()).collect();
        let _ =
            writeln!(text, "co-edited {}: {} with {}", entry.paths.join(" "), entry.primary, with.join(" "));
    }
    for contract in &view.contracts {
        let _ = writeln!(text, "contract {}: only {}", contract.paths.join(" "), contract.owner);
    }
    let risks = &view.high_risk;
    let risks: Vec<&str> =
        risks.paths.iter().map(String::as_str).chain(risks.types.iter().map(|it| it.as_str())).collect();
    if !risks.is_empty() {
        let _ = writeln!(text, "high risk {}", risks.join(" "));
    }
    if let Some(naming) = &view.naming {
        let scopes = if naming.scopes.is_empty() { "SCOPE".to_owned() } else { naming.scopes.join("|") };
        let stages = naming.stages.join("|");
        let _ = writeln!(text, "workstations {}-{scopes}[-DOMAIN]-NUMBER|{stages}", naming.prefix);
    }
    text
}

fn roles(roles: &[RoleView]) -> String {
    let mut table = Table::new(["ROLE", "LANE", "AT WORK", "OWNS"]);
    for role in roles {
        for lane in &role.lanes {
            let holds: Vec<String> =
                lane.holds.iter().map(|held| format!("{} by {}", held.task, held.worker)).collect();
            table.row([
                paint(BOLD, &role.role),
                format!("{} ({}/{})", lane.lane, lane.holds.len(), role.max_in_progress),
                holds.join(", "),
                role.owns.join(" "),
            ]);
        }
    }
    table.to_string()
}

fn conditions(when: &When) -> String {
    let mut all = Vec::new();
    if !when.tier.is_empty() {
        all.push(format!("tier {}", when.tier.join("|")));
    }
    all.extend(when.priority.map(|range| range.to_string()));
    all.extend(when.available.then(|| "available".to_owned()));
    all.extend(when.workstation_ready.then(|| "ready".to_owned()));
    all.extend(when.max_utilisation.map(|max| format!("use <= {max}%")));
    all.extend(when.max_dependency_depth.map(|max| format!("depth <= {max}")));
    all.join(", ")
}

pub(crate) fn explain(view: &ExplainView) -> String {
    let explanation = &view.explanation;
    let subject = view.task.as_ref().map_or_else(|| "such a task".into(), ToString::to_string);
    let kind = view.task_type.as_ref().map_or("no type", |task_type| task_type.as_str());
    let mut text = format!("{} ({kind}, {})", paint(BOLD, subject), view.priority);
    match (&explanation.rule, &explanation.map_hash) {
        (Some(rule), _) => {
            let _ = writeln!(text, " follows {rule}");
        }
        (None, None) if explanation.findings.is_empty() => {
            text.push_str(": there is no map, anybody may take it\n");
        }
        _ => text.push('\n'),
    }
    if !explanation.candidates.is_empty() {
        let mut table = Table::new(["", "AGENT", "WORKSTATION", "WHY"]);
        for candidate in &explanation.candidates {
            let verdict = match candidate.verdict {
                Verdict::Won => paint(GREEN, "won"),
                Verdict::Eligible => paint(YELLOW, "eligible"),
                Verdict::Lost => paint(RED, "lost"),
            };
            table.row([
                verdict,
                candidate.agent_name.to_string(),
                candidate.workstation.to_string(),
                candidate.reasons.join("; "),
            ]);
        }
        text.push_str(&table.to_string());
    }
    for finding in &explanation.findings {
        let _ = writeln!(text, "{}", coded(&finding.detail, finding.code));
        if let Some(hint) = &finding.hint {
            let _ = writeln!(text, "  {}", paint(DIM, hint));
        }
    }
    if let Some(caller) = &view.caller {
        text.push_str(&told(caller));
    }
    text
}

fn told(caller: &CallerView) -> String {
    let place = caller.workstation.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
    let word = if caller.allowed { "may take it" } else { "is refused" };
    let mut text = format!("{}{place} {word}\n", caller.worker);
    for finding in &caller.findings {
        let _ = writeln!(text, "  - {}", coded(&finding.detail, finding.code));
        if let Some(hint) = &finding.hint {
            let _ = writeln!(text, "    {}", paint(DIM, hint));
        }
    }
    text
}

pub(crate) fn history(view: &HistoryView) -> String {
    if view.types.iter().all(|one| one.changes.is_empty()) {
        return "no commit of the main branch says anything about it\n".into();
    }
    let mut table = Table::new(["TYPE", "SINCE", "COMMIT", "AUTHOR", "TO", "WHY"]);
    for one in &view.types {
        for change in &one.changes {
            table.row([
                paint(BOLD, &one.task_type),
                when(change.at),
                short(&change.commit).to_owned(),
                change.author.clone(),
                sends(&change.sends),
                change.subject.clone(),
            ]);
        }
    }
    table.to_string()
}

fn sends(sends: &Sends) -> String {
    let candidate = |candidate: &Candidate| format!("{} in {}", candidate.agent_name, candidate.workstation);
    match sends {
        Sends::To(candidates) => candidates.iter().map(candidate).collect::<Vec<_>>().join(", "),
        Sends::NoRule => "no agent".into(),
        Sends::NoMap => "anybody".into(),
        Sends::Invalid(_) => "nobody: not valid".into(),
    }
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
