//! `onus fleet`: agents that Onus starts, watches and ends (mission D15, E7). Real processes, real worktrees, real clients.

use crate::support::client::program;
use crate::support::model::{Model, Turn};
use crate::support::server::Server;
use crate::support::wrapper::{lives, signal, until};
use crate::support::{ONUS, Site, finish, start, text};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// An agent of the shell that commits a file of its task's name, and crashes or hangs where a file in $ROOT says so.
const AGENT: &str = r#"echo "$ONUS_TASK begins with $SECRET_KEY"
echo "$$" >> "$ROOT/pids"
[ -e "$ROOT/crash-$ONUS_TASK" ] && { echo crashing; exit 3; }
[ -e "$ROOT/slow" ] && { echo half > "half-$ONUS_TASK.txt"; sleep 1000; }
[ -e "$ROOT/hang-$ONUS_TASK" ] && sleep 1000
echo "$ONUS_TASK" > "$ONUS_TASK.txt"
git add . && git commit --quiet --message "$ONUS_TASK"
echo done
"#;

const SECRET: &str = "sk-0123456789abcdefghij";

/// So many agents of the shell; `more` is added to the settings.
fn fleet(count: usize, more: &str) -> Site {
    let site = Site::guarded();
    std::fs::write(site.root().join("agent.sh"), AGENT).unwrap();
    std::fs::write(
        site.repo().join("onus.yaml"),
        format!("fleet: {{ interval: 200ms, attempts: 2 }}\n{more}"),
    )
    .unwrap();
    let (count, line) = (count.to_string(), format!("sh {}/agent.sh", site.root().display()));
    let words =
        ["fleet", "init", "--as", &site.person, "--preset", "shell", "--count", &count, "--worker", "@sh"];
    let made = finish(start(site.command(&words).args(["--json", "--", &line])));
    assert_eq!(made.exit, Some(0), "{made:?}");
    assert_eq!(made.json()["agents"].as_array().unwrap().len().to_string(), count);
    site
}

fn by_person(site: &Site, words: &[&str]) -> Command {
    let mut onus = site.command(&[words, &["--as", &site.person]].concat());
    onus.env("ROOT", site.root()).env("SECRET_KEY", SECRET);
    onus
}

fn up(site: &Site) -> Child {
    start(&mut by_person(site, &["fleet", "up"]))
}

fn up_until_idle(site: &Site) {
    let ended = finish(start(&mut by_person(site, &["fleet", "up", "--until-idle"])));
    assert_eq!(ended.exit, Some(0), "{ended:?}");
}

fn down(site: &Site, supervisor: Child) {
    site.by_person(&["fleet", "down"]);
    assert_eq!(finish(supervisor).exit, Some(0));
}

fn mark(site: &Site, name: &str) -> PathBuf {
    let path = site.root().join(name);
    std::fs::write(&path, "").unwrap();
    path
}

fn states(site: &Site) -> Vec<String> {
    site.tasks().iter().map(|task| text(&task["state"]).to_owned()).collect()
}

/// Every process that an agent of this site ever was.
fn pids(site: &Site) -> Vec<String> {
    let text = std::fs::read_to_string(site.root().join("pids")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn printed(site: &Site, of: &str) -> String {
    finish(start(&mut site.command(&["logs", of]))).stdout
}

fn merged(site: &Site, task: &str) -> String {
    site.git_in(&site.repo(), &["show", &format!("main:{task}.txt")])
}

#[test]
fn five_tasks_are_merged_and_complete_and_one_that_crashes_waits_for_a_person() {
    let site = fleet(3, "");
    let good: Vec<String> = (0..5).map(|number| site.add(&format!("work {number}"))).collect();
    let bad = site.add("crash");
    mark(&site, &format!("crash-{bad}"));
    up_until_idle(&site);
    let waits = site.task(&bad);
    assert_eq!(waits["state"], "blocked", "{waits}");
    assert_eq!(waits["blocked_on"], format!("person:{}", site.person), "{waits}");
    assert_eq!(site.ok(&["session", "list", "--task", &bad])["sessions"].as_array().unwrap().len(), 2);
    for task in &good {
        assert_eq!(site.task(task)["state"], "complete");
        assert_eq!(merged(&site, task), *task);
        let kept = printed(&site, task);
        assert!(kept.contains("done") && !kept.contains(SECRET), "{kept}");
    }
    let logs = std::fs::read_dir(site.repo().join(".git/onus/fleet")).unwrap();
    for log in logs.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()) {
        assert!(!log.contains(SECRET), "what an agent prints is nowhere but in its output: {log}");
    }
    let agents = site.ok(&["fleet", "status"])["agents"].clone();
    assert_eq!(agents.as_array().unwrap().len(), 3, "{agents}");
    assert!(agents.as_array().unwrap().iter().all(|one| one["state"] == "idle"), "{agents}");
    site.assert_sound();
}

#[test]
fn there_is_one_supervisor_and_it_is_stopped_and_taken_down() {
    let site = fleet(2, "");
    let slow = mark(&site, "slow");
    let tasks = [site.add("one"), site.add("two")];
    let not_up = site.run(&["fleet", "down", "--as", &site.person, "--json"]);
    assert_eq!(not_up.code(), "wrong_state");
    let supervisor = up(&site);
    until("both work", || pids(&site).len() == 2);
    let second = finish(start(&mut by_person(&site, &["fleet", "up", "--json"])));
    assert_eq!(second.code(), "wrong_state", "one supervisor: {second:?}");
    let working = site.ok(&["fleet", "status"])["agents"].clone();
    assert!(working.as_array().unwrap().iter().all(|one| one["state"] == "working"), "{working}");
    assert_eq!(
        site.run(&["fleet", "stop", "@nobody", "--json", "--as", &site.person]).code(),
        "unknown_name"
    );
    site.by_person(&["fleet", "stop", "--all", "--now"]);
    until("both are given back", || states(&site).iter().all(|state| state == "open"));
    until("nobody is left", || !pids(&site).iter().any(|pid| lives(pid)));
    let stopped = site.ok(&["fleet", "status"])["agents"].clone();
    assert!(stopped.as_array().unwrap().iter().all(|one| one["state"] == "stopped"), "{stopped}");
    assert_eq!(pids(&site).len(), 2, "who is stopped begins nothing");
    down(&site, supervisor);
    std::fs::remove_file(slow).unwrap();
    up_until_idle(&site);
    assert!(tasks.iter().all(|task| merged(&site, task) == *task), "the next one goes on");
    site.assert_sound();
}

#[test]
fn a_task_that_somebody_assigned_is_picked_up() {
    let site = fleet(1, "");
    let task = site.add("work");
    site.by_person(&["claim", &task, "--for", "@sh-1", "--workstation", "sh-1"]);
    up_until_idle(&site);
    let done = site.task(&task);
    assert_eq!((text(&done["state"]), text(&done["closed_by"])), ("complete", "@sh-1"), "{done}");
    assert!(printed(&site, "@sh-1").contains("done"));
    // What it took itself is its own affair: somebody may sit there.
    let own = site.add("by hand");
    site.ok(&["claim", &own, "--as", "@sh-1", "--workstation", "sh-1"]);
    let refused = site.run(&["run", &own, "--as", "@sh-1", "--json", "--", "true"]);
    assert_eq!(refused.code(), "lease_held", "{refused:?}");
}

#[test]
fn a_run_that_was_killed_with_its_supervisor_is_taken_up_with_what_it_left() {
    let site = fleet(1, "");
    let slow = mark(&site, "slow");
    let task = site.add("work");
    let supervisor = up(&site);
    let half = || site.ok(&["workstation", "list"])["workstations"][0]["path"].clone();
    let half = PathBuf::from(text(&half())).join(format!("half-{task}.txt"));
    until("it has made half of it", || half.exists());
    // The run and the supervisor at once: nobody gives anything back.
    for run in children(supervisor.id()) {
        assert!(Command::new("kill").args(["-9", &run]).status().unwrap().success());
    }
    signal(&supervisor, "-KILL");
    finish(supervisor);
    until("the agent is gone", || !pids(&site).iter().any(|pid| lives(pid)));
    std::fs::remove_file(slow).unwrap();
    up_until_idle(&site);
    assert_eq!(merged(&site, &task), task);
    assert_eq!(site.git_in(&site.repo(), &["show", &format!("main:half-{task}.txt")]), "half");
    site.assert_sound();
}

#[test]
fn an_agent_in_a_sandbox_writes_where_its_work_is() {
    if Command::new("bwrap").args(["--ro-bind", "/", "/", "true"]).status().map_or(true, |ran| !ran.success())
    {
        eprintln!("skipped: bubblewrap does not run here");
        return;
    }
    let site = Site::guarded();
    let outside = site.root().join("outside");
    let line = format!(
        "echo out >{}; echo \"$ONUS_TASK\" >$ONUS_TASK.txt; git add . && git commit --quiet --message work",
        outside.display()
    );
    let agents = json!([{ "worker": "@sh", "preset": "shell", "command": [line], "sandbox": "bubblewrap" }]);
    std::fs::write(site.repo().join("onus.yaml"), format!("agents: {agents}\n")).unwrap();
    let task = site.add("work");
    up_until_idle(&site);
    assert_eq!(site.task(&task)["state"], "complete", "{}", printed(&site, "@sh"));
    assert_eq!(merged(&site, &task), task);
    assert!(!outside.exists(), "it wrote outside of its place");
}

#[test]
fn through_a_server_each_agent_has_a_token_of_its_own() {
    let site = Site::guarded();
    let server = Server::start(&site);
    let settings = |env: serde_json::Value, sandbox: &str| {
        let line = "echo \"$ONUS_TASK\" >$ONUS_TASK.txt; git add . && git commit --quiet --message work";
        let agents = json!([{ "worker": "@sh-*", "preset": "shell", "count": 2, "command": [line], "env": env, "sandbox": sandbox }]);
        std::fs::write(site.repo().join("onus.yaml"), format!("agents: {agents}\n")).unwrap();
    };
    let token = site.token(&site.person);
    let up = |more: &str| {
        let words = ["fleet", "up", more, "--store", &server.url, "--as", &site.person, "--json"];
        finish(start(site.command(&words).env("ONUS_TOKEN", &token)))
    };
    // Nobody fails again and again for want of what can be known before.
    settings(json!({}), "bubblewrap");
    for more in ["--until-idle", "--detach"] {
        let refused = up(more);
        assert_eq!(refused.code(), "invalid_input", "{refused:#?}");
        assert_eq!(refused.error()["findings"].as_array().unwrap().len(), 4, "{refused:#?}");
    }
    for name in ["sh-1", "sh-2"] {
        site.by_person(&["worker", "add", &format!("@{name}"), "--kind", "agent"]);
        std::fs::write(site.root().join(name), site.token(&format!("@{name}"))).unwrap();
    }
    settings(json!({ "ONUS_TOKEN_FILE": site.root().join("{worker}") }), "none");
    let task = site.add("work");
    let ended = up("--until-idle");
    assert_eq!(ended.exit, Some(0), "{ended:#?}");
    assert_eq!(site.task(&task)["state"], "complete", "{}", printed(&site, "@sh-1"));
    assert_eq!(merged(&site, &task), task);
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    tasks
        .flatten()
        .flat_map(|task| of(task).split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// Agents, tasks, and how often the supervisor is killed. Every eighth task crashes, every eighth hangs.
fn played(agents: usize, tasks: usize, kills: usize) {
    let site = fleet(agents, "run: { silence: 2s }\n");
    let all: Vec<String> = (0..tasks).map(|number| site.add(&format!("work {number}"))).collect();
    let is_bad = |number: usize| matches!(number % 8, 3 | 6);
    for (number, task) in all.iter().enumerate().filter(|(number, _)| is_bad(*number)) {
        mark(&site, &format!("{}-{task}", if number % 8 == 3 { "crash" } else { "hang" }));
    }
    for kill in 1..=kills {
        let supervisor = up(&site);
        let most = tasks / 2 * kill / kills;
        until("something is done", || {
            states(&site).iter().filter(|state| *state == "complete").count() >= most
        });
        signal(&supervisor, "-KILL");
        finish(supervisor);
    }
    up_until_idle(&site);
    for (number, task) in all.iter().enumerate() {
        let row = site.task(task);
        match is_bad(number) {
            true => assert_eq!(row["blocked_on"], format!("person:{}", site.person), "{row}"),
            false => {
                assert_eq!(row["state"], "complete", "{row}");
                assert_eq!(merged(&site, task), *task);
                assert!(printed(&site, task).contains("done"), "{task}");
            }
        }
    }
    let completed = site.ledger().iter().filter(|entry| entry["verb"] == "completed").count();
    assert_eq!(completed, (0..tasks).filter(|number| !is_bad(*number)).count(), "each once");
    assert!(!pids(&site).iter().any(|pid| lives(pid)), "nobody is left behind");
    site.assert_sound();
}

/// `ONUS_SOAK` makes it as large as the goals have it.
#[test]
fn agents_finish_what_can_be_finished_though_their_supervisor_is_killed() {
    match std::env::var_os("ONUS_SOAK") {
        Some(_) => played(50, 500, 10),
        None => played(8, 24, 2),
    }
}

/// What a client needs to find its model, and `onus`.
fn with_client(site: &Site, program: &Path, variables: &str) {
    let path = format!(
        "{}:{}:{}",
        Path::new(ONUS).parent().unwrap().display(),
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let file = site.repo().join("onus.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let env = format!("\"env\":{{\"PATH\":\"{path}\",{variables}}},\"preset\"");
    std::fs::write(&file, text.replace("\"preset\"", &env)).unwrap();
}

/// Three agents of a preset and five tasks, from an empty repository.
fn lands_five(preset: &str, turn: impl Fn(&str) -> Turn, variables: impl Fn(&Site, &Model) -> String) {
    let Some(program) = program(preset) else { return };
    let site = Site::guarded();
    site.by_person(&["fleet", "init", "--preset", preset, "--count", "3"]);
    let tasks: Vec<String> = (0..5).map(|number| site.add(&format!("say hello {number}"))).collect();
    let line = "echo hello > $ONUS_TASK.txt && git add . && git commit --quiet --message hello";
    let model = Model::saying_to_each(vec![turn(line), Turn::Text("hello is said")]);
    with_client(&site, &program, &variables(&site, &model));
    let ended = finish(start(&mut by_person(&site, &["fleet", "up", "--until-idle"])));
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    for task in &tasks {
        let row = site.task(task);
        assert_eq!(row["state"], "complete", "{row}\n{}\n{ended:?}", printed(&site, task));
        assert_eq!(merged(&site, task), "hello");
        assert!(printed(&site, task).contains("hello is said"), "{}", printed(&site, task));
        let used = &site.ok(&["session", "list", "--task", task])["sessions"][0]["tokens"];
        assert!(used.as_i64().unwrap() >= 40, "two turns of twenty tokens each: {used}");
    }
    site.assert_sound();
}

#[test]
fn three_of_claude_code_land_five_tasks() {
    lands_five(
        "claude",
        |line| Turn::Tool("Bash", json!({ "command": line, "description": "work" })),
        |_, model| {
            let address = &model.address;
            format!(
                "\"ANTHROPIC_BASE_URL\":\"{address}\",\"ANTHROPIC_API_KEY\":\"none\",\
                 \"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC\":\"1\",\"DISABLE_AUTOUPDATER\":\"1\""
            )
        },
    );
}

#[test]
fn three_of_codex_land_five_tasks() {
    lands_five(
        "codex",
        |line| Turn::Tool("exec_command", json!({ "cmd": line })),
        |site, model| {
            let home = site.root().join("codex");
            std::fs::create_dir(&home).unwrap();
            let config = format!(
                "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
                 check_for_update_on_startup = false\n\
                 [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\n\
                 wire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n[analytics]\nenabled = false\n",
                model.address
            );
            std::fs::write(home.join("config.toml"), config).unwrap();
            format!("\"CODEX_HOME\":\"{}\",\"SCRIPTED_KEY\":\"none\"", home.display())
        },
    );
}
