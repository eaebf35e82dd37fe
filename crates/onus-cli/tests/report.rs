//! Reports by command line, by HTTP and through a server: the same figures everywhere.

use crate::support::map::{ROUTES, field};
use crate::support::server::Server;
use crate::support::{Site, text};
use serde_json::Value;

/// One task completed within the map, one by force outside of it, one refusal, one that nobody can take.
fn worked() -> (Site, String, String) {
    let site = Site::seeded();
    let (_, agent, place) = ROUTES[0];
    let first = site.add_of_type(ROUTES[0].0);
    site.ok(&["claim", &first, "--workstation", place, "--as", agent]);
    site.ok(&["note", &first, "half of it", "--as", agent]);
    site.ok(&["complete", &first, "--resolution", "works", "--as", agent]);
    let second = site.add_of_type(ROUTES[1].0);
    let refused = site.run(&["claim", &second, "--workstation", place, "--as", agent, "--json"]);
    assert_eq!(refused.code(), "routing_denied");
    let force =
        ["claim", &second, "--workstation", place, "--for", agent, "--force", "--reason", "alone here"];
    site.by_person(&force);
    site.by_person(&["complete", &second, "--resolution", "done", "--force", "--reason", "hotfix"]);
    site.add_of_type("docs");
    (site, first, second)
}

#[test]
fn the_same_report_by_command_line_and_by_http() {
    let (site, first, second) = worked();
    let server = Server::start(&site);
    let token = site.token(&site.person);

    let incident = site.by_person(&["report", "incident", &second]);
    assert_eq!((text(&incident["compliance"]), &incident["forced"]), ("outside", &Value::Bool(true)));
    assert_eq!(text(&incident["grants"][0]["assignee"]), ROUTES[0].1);
    assert_eq!(text(&incident["grants"][0]["map_commit"]).len(), 40);
    let within = site.by_person(&["report", "incident", &first]);
    assert_eq!(text(&within["compliance"]), "within");
    assert_eq!(server.get(&token, &format!("/v1/reports/incident?task={second}")).ok(), incident);

    let sprint = site.by_person(&["report", "sprint"]);
    assert_eq!(field(&sprint["workers"], "name"), [ROUTES[0].1]);
    assert_eq!((&sprint["total"]["grants"], &sprint["total"]["outside_policy"]), (&2.into(), &1.into()));
    assert_eq!(server.get(&token, "/v1/reports/sprint").ok(), sprint);

    let audit = site.by_person(&["report", "audit", "--since", "1h", "--only", "forced,outside_policy"]);
    assert_eq!(field(&audit["lines"], "kind"), ["outside_policy", "forced"]);
    let told = server.get(&token, "/v1/reports/audit?since=1h&only=forced,outside_policy").ok();
    assert_eq!(told["lines"], audit["lines"]);
    server.get(&token, "/v1/reports/audit?only=gossip").refused(400, "invalid_input");
    server.get(&token, "/v1/reports/incident?task=APP-999").refused(404, "unknown_task");

    let now = server.get(&token, "/v1/reports/now?since=1h").ok();
    assert_eq!(field(&now["completed"], "task"), [&second, &first]);
    assert_eq!(field(&now["stuck"], "kind"), ["unroutable"]);
    let anomalies = site.by_person(&["report", "anomalies"]);
    assert_eq!(field(&anomalies["anomalies"], "kind"), ["forced_completion", "unproven"]);
}

#[test]
fn a_report_travels_and_an_audit_is_written_as_csv() {
    let (site, first, _) = worked();
    let server = Server::start(&site);
    let token = site.token(&site.person);
    for report in [&["sprint"][..], &["incident", &first], &["now", "--since", "1h"], &["anomalies"]] {
        let args: Vec<&str> = ["report"].into_iter().chain(report.iter().copied()).collect();
        let near = site.by_person(&args);
        let mut far = site.command(&[&args[..], &["--json"]].concat());
        far.env("ONUS_STORE", &server.url).env("ONUS_TOKEN", &token);
        let far = crate::support::finish(crate::support::start(&mut far)).json();
        for field in near.as_object().unwrap().keys().filter(|key| !matches!(key.as_str(), "since" | "until"))
        {
            assert_eq!(near[field], far[field], "{report:?}: {field}");
        }
    }
    let only = "grant,outside_policy,forced,refusal";
    let csv = site.run(&["report", "audit", "--only", only, "--csv", "-", "--as", &site.person]);
    let lines: Vec<&str> = csv.stdout.lines().collect();
    assert!(
        lines[0].starts_with("kind,seq,at,actor,verb,task,workstation,assignee,forced,rule"),
        "{lines:?}"
    );
    // Two grants, one of them by force; a forced completion; a refusal.
    assert_eq!(lines.len(), 1 + 4, "{lines:?}");
    let human = site.run(&["report", "now", "--as", &site.person]);
    assert!(
        human.stdout.contains("needs a person") && human.stdout.contains("no rule of the map"),
        "{human:?}"
    );
}
