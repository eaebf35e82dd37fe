//! What the map demands: of workstations by their scope, of work by its role and paths; and contract requests.

use crate::support::{Site, text};
use serde_json::{Value, json};

const MAP: &str = r#"
routing:
  - task_type: contract
    agent_name: "@architect"
    workstation: ws-design-01
  - task_type: "*"
    candidates:
      - { agent_name: "@builder", workstation: ws-backend-01 }
      - { agent_name: "@architect", workstation: ws-design-01 }
roles:
  architecture: { workers: ["@architect"] }
  backend: { owns: ["src/**"], workers: ["@builder"] }
  docs: {}
contracts:
  - { paths: ["api/*.yaml"], owner: architecture }
workstations:
  infra: { probes: ["command:test -e /proc"], lifecycle: single-task }
checks:
  - { role: backend, run: ["test -e src/tested"] }
  - { paths: ["src/wire/**"], run: ["test -e src/wire/generated"] }
"#;

fn site() -> Site {
    let site = Site::new();
    for worker in ["@architect", "@builder"] {
        site.by_person(&["worker", "add", worker, "--kind", "agent"]);
    }
    for place in ["ws-design-01", "ws-backend-01"] {
        site.by_person(&["workstation", "add", place, "--kind", "worktree"]);
    }
    site.commit_map(MAP);
    site
}

fn add(site: &Site, args: &[&str]) -> String {
    text(&site.by_person(&[&["add", "a task"], args].concat())["task"]["id"]).to_owned()
}

fn refused(site: &Site, args: &[&str]) -> (String, String) {
    let answer = site.run(&[args, &["--json"]].concat());
    (answer.code(), answer.error().to_string())
}

/// Commits files in the builder's working tree, under the lease that lies there.
fn commit(site: &Site, files: &[&str]) {
    let dir = site.repo().with_file_name("repo-ws-backend-01");
    for file in files {
        std::fs::create_dir_all(dir.join(file).parent().unwrap()).unwrap();
        std::fs::write(dir.join(file), "x\n").unwrap();
    }
    for args in [&["add", "."][..], &["commit", "--quiet", "--message", "work"]] {
        let mut git = std::process::Command::new("git");
        let git = site.surroundings(&mut git).current_dir(&dir).env("ONUS_AS", "@builder").args(args);
        assert!(git.status().unwrap().success());
    }
}

#[test]
fn a_scope_has_its_probes_and_its_lifecycle() {
    let site = site();
    let made = &site.by_person(&["workstation", "add", "ws-infra-01"])["workstation"];
    assert_eq!((&made["lifecycle"], &made["state"]), (&json!("single-task"), &json!("ready")), "{made}");
    assert_eq!(made["probes"], json!(["command:test -e /proc"]));
    // The same once more is the same registration.
    assert_eq!(site.by_person(&["workstation", "add", "ws-infra-01"])["outcome"], "existing");
    let free = &site.by_person(&["workstation", "add", "ws-data-01"])["workstation"];
    assert_eq!((&free["lifecycle"], &free["probes"]), (&json!("reusable"), &json!([])));
    // One that was registered before the map said so is refused, with all that it lacks.
    let stricter = "  data: { probes: [\"command:test -e /proc\"], lifecycle: single-task }\nchecks:";
    site.commit_map(&MAP.replace("checks:", stricter));
    let task = add(&site, &[]);
    let (code, told) = refused(&site, &["claim", &task, "--workstation", "ws-data-01", "--as", &site.person]);
    assert_eq!(code, "workstation_not_ready");
    assert!(
        told.contains("the probe `command:test -e /proc`") && told.contains("lifecycle single-task"),
        "{told}"
    );
    site.by_person(&["workstation", "retire", "ws-data-01"]);
    site.by_person(&["workstation", "add", "ws-data-01"]);
    site.by_person(&["claim", &task, "--workstation", "ws-data-01"]);
    site.assert_sound();
}

#[test]
fn work_is_proven_by_what_its_role_and_its_paths_demand() {
    let site = site();
    let task = add(&site, &["--role", "backend"]);
    let lease = site.ok(&["claim", &task, "--as", "@builder"]);
    let lease = text(&lease["lease"]["token"]);
    let end = ["complete", &task, "--resolution", "done", "--as", "@builder", "--lease", lease];
    commit(&site, &["src/wire/a", "src/b"]);
    let (code, told) = refused(&site, &end);
    assert_eq!(code, "checks_failed");
    assert!(told.contains("test -e src/tested") && told.contains("test -e src/wire/generated"), "{told}");
    commit(&site, &["src/tested", "src/wire/generated"]);
    let done = site.ok(&end);
    assert_eq!(done["task"]["state"], "complete");
    let own: Vec<&str> =
        done["task"]["checks"].as_array().unwrap().iter().map(|c| text(&c["command"])).collect();
    assert_eq!(own, ["test -e src/tested", "test -e src/wire/generated"]);
    // Other paths, other checks.
    let other = add(&site, &[]);
    let lease = site.ok(&["claim", &other, "--as", "@builder"]);
    commit(&site, &["lib/c"]);
    let lease = text(&lease["lease"]["token"]);
    let done = site.ok(&["complete", &other, "--resolution", "done", "--as", "@builder", "--lease", lease]);
    assert_eq!(done["checks"], json!([]));
    site.assert_sound();
}

#[test]
fn a_contract_request_is_its_owners_to_decide() {
    let site = site();
    let request = add(&site, &["--kind", "contract", "--scope", "api/orders.yaml"]);
    let work = add(&site, &["--role", "backend", "--depends-on", &request]);
    let claim = |task: &str, who: &str| refused(&site, &["claim", task, "--as", who]);
    // Nobody but the owner's workers gets it, and nobody begins before it is decided.
    assert_eq!(claim(&request, "@builder").0, "routing_denied");
    let (code, told) = claim(&work, "@builder");
    assert_eq!(code, "dependency_incomplete");
    assert!(told.contains("a contract request that is undecided"), "{told}");
    let decision = |task: &str| site.task(task)["decision"].clone();
    assert_eq!(decision(&request), "undecided");
    assert_eq!(decision(&work), Value::Null);
    let lease = site.ok(&["claim", &request, "--as", "@architect"]);
    let lease = text(&lease["lease"]["token"]);
    let held = ["--as", "@architect", "--lease", lease];
    site.ok(&[&["block", &request, "--on", "external:the next release"], &held[..]].concat());
    assert_eq!(decision(&request), "deferred");
    assert!(claim(&work, "@builder").1.contains("that is deferred"));
    site.ok(&[&["unblock", &request], &held[..]].concat());
    site.ok(&[&["complete", &request, "--resolution", "accepted"], &held[..]].concat());
    assert_eq!(decision(&request), "accepted");
    assert!(site.run(&["show", &request]).stdout.contains("request accepted"));
    site.ok(&["claim", &work, "--as", "@builder"]);
    // Rejected: what depends on it is told so.
    let another = add(&site, &["--kind", "contract", "--scope", "api/users.yaml"]);
    let waits = add(&site, &["--depends-on", &another]);
    site.by_person(&["drop", &another, "--reason", "no"]);
    assert!(claim(&waits, "@architect").1.contains("a contract request that is rejected"));
    site.assert_sound();
}

#[test]
fn a_request_about_no_contract_or_for_another_role_goes_nowhere() {
    let site = site();
    let none = add(&site, &["--kind", "contract", "--scope", "src/a"]);
    let wrong = add(&site, &["--kind", "contract", "--scope", "api/a.yaml", "--role", "docs"]);
    for (task, words) in [(&none, "no contract"), (&wrong, "architecture owns the contract")] {
        let (code, told) = refused(&site, &["claim", task, "--as", "@architect"]);
        assert_eq!(code, "routing_denied");
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn all_mistakes_of_the_demands_are_told_at_once() {
    let site = site();
    site.commit_map(
        "naming: { scopes: [backend] }\nworkstations:\n  infra: { lifecycle: reusable }\n  backend: {}\nchecks:\n  - { run: [] }\n  \
         - { role: nobody, paths: [\"../x\"], run: [\"true\", \"Make sure that it works well.\"] }\n",
    );
    let (code, told) = refused(&site, &["route", "check"]);
    assert_eq!(code, "map_invalid");
    let words = [
        "workstations.infra: `infra` is none of naming.scopes",
        "workstations.backend: it demands nothing",
        "checks[0]: it runs nothing",
        "the role nobody is not in roles",
        "cannot fail",
        "is a sentence",
        "../x",
    ];
    for words in words {
        assert!(told.contains(words), "{words}: {told}");
    }
    let (code, told) = refused(&site, &["validate"]);
    assert_eq!(code, "queue_invalid");
    assert!(told.contains("checks[0]: it runs nothing") && told.contains("is a sentence"), "{told}");
}
