//! `onus fleet`: agents that Onus starts, watches and ends (mission D15, E7). Real processes, real worktrees, real clients.

use crate::support::server::Server;
use crate::support::wrapper::{lives, signal, until};
use crate::support::{HANG, Site, finish, start, text};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An agent of the shell that commits a file of its task's name, and crashes, hangs or uses up too much where a file in $ROOT
/// says so.
const AGENT: &str = r#"echo "$ONUS_TASK begins with $SECRET_KEY"
echo "$$" >> "$ROOT/pids"
[ -e "$ROOT/crash-$ONUS_TASK" ] && { echo crashing; exit 3; }
[ -e "$ROOT/slow" ] && { echo half > "half-$ONUS_TASK.txt"; sleep 1000; }
[ -e "$ROOT/hang-$ONUS_TASK" ] && sleep 1000
[ -e "$ROOT/dear-$ONUS_TASK" ] && { cat "$ROOT/dear-$ONUS_TASK"; sleep 1000; }
echo "$ONUS_TASK" > "$ONUS_TASK.txt"
git add . && git commit --quiet --message "$ONUS_TASK"
echo done
"#;

pub(crate) const SECRET: &str = "sk-0123456789abcdefghij";

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

pub(crate) fn by_person(site: &Site, words: &[&str]) -> Command {
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

pub(crate) fn mark(site: &Site, name: &str) -> PathBuf {
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

pub(crate) fn printed(site: &Site, of: &str) -> String {
    finish(start(&mut site.command(&["logs", of]))).stdout
}

pub(crate) fn merged(site: &Site, task: &str) -> String {
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
    let kept = std::fs::read_dir(site.root().join("fleets")).unwrap().next().unwrap().unwrap().path();
    for log in
        std::fs::read_dir(kept).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
    {
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
    // Neither here nor in another clone of the same workspace.
    let (other, store) = (site.root().join("other"), site.store_url());
    site.git(&["clone", "--quiet", ".", other.to_str().unwrap()]);
    std::fs::copy(site.repo().join("onus.yaml"), other.join("onus.yaml")).unwrap();
    for dir in [site.repo(), other] {
        let words = ["fleet", "up", "--json", "--store", &store];
        let second = finish(start(by_person(&site, &words).current_dir(dir)));
        assert_eq!(second.code(), "wrong_state", "one supervisor: {second:?}");
    }
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
fn a_run_that_was_killed_with_all_that_watched_it_is_taken_up_with_what_it_left() {
    let site = fleet(1, "");
    let slow = mark(&site, "slow");
    let task = site.add("work");
    let supervisor = up(&site);
    let half = || site.ok(&["workstation", "list"])["workstations"][0]["path"].clone();
    let half = PathBuf::from(text(&half())).join(format!("half-{task}.txt"));
    until("it has made half of it", || half.exists());
    // The run and the supervisor at once: nobody gives anything back.
    // Stopped first, and killed from below: whoever is left for a moment would end the agent, and a stopped one is woken by the
    // kernel when its parent dies.
    let runs = children(supervisor.id());
    let wardens = runs.iter().flat_map(|run| children(run.parse().unwrap()));
    let all: Vec<String> = wardens.chain(runs.iter().cloned()).chain([supervisor.id().to_string()]).collect();
    for word in ["-STOP", "-KILL"] {
        assert!(Command::new("kill").arg(word).args(&all).status().unwrap().success());
    }
    finish(supervisor);
    let left = pids(&site);
    assert!(left.iter().all(|pid| lives(pid)), "nobody was left to end it");
    std::fs::remove_file(slow).unwrap();
    up_until_idle(&site);
    assert!(!left.iter().any(|pid| lives(pid)), "the next one ends what was left behind");
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

/// Sent back with a comment, then approved: nobody but the reviewer says anything.
#[test]
fn work_that_must_be_reviewed_waits_for_it_and_lands_by_itself() {
    let site = Site::guarded();
    let line = "echo \"$0\" | grep -q bluer && echo blue >$ONUS_TASK.txt || echo red >$ONUS_TASK.txt; \
         git add . && git commit --quiet --message work";
    let agents = json!([{ "worker": "@sh", "command": ["sh", "-c", line, "{prompt}"] }]);
    let settings =
        format!("complete: {{ review: always }}\nfleet: {{ interval: 200ms }}\nagents: {agents}\n");
    std::fs::write(site.repo().join("onus.yaml"), settings).unwrap();
    let task = site.add("work");
    let supervisor = up(&site);
    let waits = || site.task(&task)["blocked_on"] == "external:its review";
    until("it waits", waits);
    let states = site.ok(&["fleet", "status"])["agents"].clone();
    assert_eq!(states[0]["state"], "blocked", "{states}");
    site.by_person(&["review", &task, "--comment", &format!("{task}.txt:1"), "bluer, please"]);
    site.by_person(&["review", &task, "--reject", "--as-implemented", "--note", "see the line"]);
    until("it goes on", || site.ok(&["session", "list", "--task", &task])["sessions"][1].is_object());
    until("it waits again", waits);
    site.by_person(&["review", &task, "--approve", "--as-implemented"]);
    until("it is complete", || site.task(&task)["state"] == "complete");
    assert_eq!(merged(&site, &task), "blue", "the comment was in its prompt");
    down(&site, supervisor);
    site.assert_sound();
}

#[test]
fn a_supervisor_ends_with_its_terminal_and_its_agents_with_it() {
    let site = fleet(1, "");
    mark(&site, "slow");
    let task = site.add("work");
    let supervisor = up(&site);
    until("it works", || pids(&site).len() == 1);
    signal(&supervisor, "-HUP");
    assert_eq!(finish(supervisor).exit, Some(0));
    assert_eq!(site.task(&task)["state"], "open", "it is given back");
    assert!(!pids(&site).iter().any(|pid| lives(pid)));
}

#[test]
fn a_supervisor_ends_with_its_repository() {
    let site = fleet(1, "");
    let supervisor = up(&site);
    until("it runs", || !site.by_person(&["fleet", "status"])["supervisor"].is_null());
    std::fs::remove_dir_all(site.repo()).unwrap();
    let ended = finish(supervisor);
    assert!(ended.stderr.contains("the repository is gone"), "{ended:#?}");
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

/// So many tokens a task may use up, where many are played.
const TOKENS: u32 = 1_000;

/// Waits for a supervisor that has so much left to do.
fn ended(mut supervisor: Child, tasks: usize) {
    let (began, patience) = (Instant::now(), HANG + Duration::from_secs(4) * u32::try_from(tasks).unwrap());
    let status = loop {
        match supervisor.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() < patience => std::thread::sleep(Duration::from_millis(100)),
            None => {
                signal(&supervisor, "-KILL");
                panic!("the supervisor does not end within {patience:?}");
            }
        }
    };
    assert!(status.success(), "{status}");
}

/// Agents, tasks, and how often the supervisor is killed. Of every eight tasks, or of a fifth of many, one crashes and one hangs;
/// one of all is dearer than it may be.
fn played(agents: usize, tasks: usize, kills: usize) {
    // Where many share few processors, who works may say nothing for long.
    let silence = if agents > 8 { "60s" } else { "15s" };
    let limits = format!("limits: {{ task: {{ tokens: {TOKENS} }} }}\n");
    let site = fleet(agents, &format!("run: {{ silence: {silence} }}\n{limits}"));
    let all: Vec<String> = (0..tasks).map(|number| site.add(&format!("work {number}"))).collect();
    let part = (tasks / 5).max(8);
    let fate = |number: usize| match number % part {
        _ if number == 1 => Some("dear"),
        3 => Some("crash"),
        6 => Some("hang"),
        _ => None,
    };
    let is_bad = |number: usize| fate(number).is_some();
    let used = json!({ "type": "assistant", "session_id": "s", "message": { "id": "m", "model": "x",
        "usage": { "input_tokens": TOKENS + 1, "output_tokens": 0 } } });
    for (number, task) in all.iter().enumerate() {
        if let Some(fate) = fate(number) {
            std::fs::write(mark(&site, &format!("{fate}-{task}")), format!("{used}\n")).unwrap();
        }
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
    let mut rest = by_person(&site, &["fleet", "up", "--until-idle", "-q"]);
    ended(rest.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), tasks);
    for (number, task) in all.iter().enumerate() {
        let row = site.task(task);
        match is_bad(number) {
            true => {
                assert_eq!(row["blocked_on"], format!("person:{}", site.person), "{row}");
                let why = site.ok(&["handoff", task, "--show"])["handoff"]["summary"].clone();
                let (fate, why) = (fate(number).unwrap(), text(&why));
                let words = match fate {
                    "dear" => "of 1000 tokens",
                    "crash" => "exit code 3",
                    _ => "nothing",
                };
                assert!(why.contains(words), "{fate}: {why}");
            }
            false => {
                assert_eq!(row["state"], "complete", "{row}");
                assert_eq!(merged(&site, task), *task);
                assert!(printed(&site, task).contains("done"), "{task}");
            }
        }
    }
    let completed = site.ledger().iter().filter(|entry| entry["verb"] == "completed").count();
    assert_eq!(completed, (0..tasks).filter(|number| !is_bad(*number)).count(), "each once");
    // Among so many processes a number may be somebody else's by now.
    let own = format!("ROOT={}\0", site.root().display());
    let is_own = |pid: &&String| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains(&own))
    };
    let left: Vec<_> = pids(&site).iter().filter(is_own).filter(|pid| lives(pid)).cloned().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    // Each agent has printed a line, and each has a session.
    let sessions = site.ok(&["session", "list", "--limit", "10000"])["sessions"].clone();
    let has_output = |session: &&serde_json::Value| {
        let (task, id) = (text(&session["task"]), session["id"].to_string());
        finish(start(&mut site.command(&["logs", task, "--session", &id]))).stdout.contains("begins with")
    };
    let kept = sessions.as_array().unwrap().iter().filter(has_output).count();
    assert!(kept >= pids(&site).len(), "{kept} outputs of {} agents", pids(&site).len());
    site.assert_sound();
}

/// `ONUS_SOAK` makes it as large as the goals have it, `ONUS_FLEET=20,100,4` as large as one likes.
#[test]
fn agents_finish_what_can_be_finished_though_their_supervisor_is_killed() {
    let usual = if std::env::var_os("ONUS_SOAK").is_some() { "50,500,10" } else { "8,24,2" };
    let size = std::env::var("ONUS_FLEET").unwrap_or_else(|_| usual.to_owned());
    let size: Vec<usize> = size.split(',').map(|number| number.parse().unwrap()).collect();
    played(size[0], size[1], size[2]);
}

#[test]
fn a_fleet_whose_day_is_used_up_rests() {
    let site = fleet(1, "limits: { worker_day: { tokens: 1000 } }\n");
    let used = json!({ "type": "assistant", "session_id": "s", "message": { "id": "m", "model": "x",
        "usage": { "input_tokens": 600, "output_tokens": 0 } } });
    std::fs::write(site.root().join("agent.sh"), format!("echo '{used}'\n{AGENT}")).unwrap();
    for title in ["one", "two", "three"] {
        site.add(title);
    }
    // It ends although something is ready: there is nobody who may begin it.
    up_until_idle(&site);
    let states: Vec<String> = site.tasks().iter().map(|task| text(&task["state"]).to_owned()).collect();
    // The second one reaches the limit: it is stopped, or just done.
    assert_eq!((states[0].as_str(), states[2].as_str()), ("complete", "open"), "{states:?}");
    let agent = site.by_person(&["fleet", "status"])["agents"][0].clone();
    assert_eq!(text(&agent["limits"][0]["text"]), "1200 of 1000 tokens", "{agent:#}");
    assert!(!site.ledger().iter().any(|entry| entry["verb"] == "refused"), "who polls leaves no trace");
}
