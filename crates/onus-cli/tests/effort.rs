//! A day of five agents and two people through the real command line: the timesheet is the sum of the sessions, to the
//! second, however it is grouped; a worker that is killed is not paid after its last renewal; no table holds a total.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;
use support::{Agent, Rng, Site, start, text};

const AGENTS: usize = 5;

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("not a number: {value}"))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

/// One worker's morning: two tasks, with a note, a rest, a blocker and a handoff.
fn work(site: &Site, agent: &Agent, tasks: &[String], rng: &mut Rng) {
    let (who, place) = (agent.handle.as_str(), agent.workstation.as_str());
    let lease = |task: &str| {
        let claimed = site.ok(&["claim", task, "--workstation", place, "--as", who, "--ttl", "60s"]);
        text(&claimed["lease"]["token"]).to_owned()
    };
    let mut pause = || std::thread::sleep(Duration::from_millis(200 + rng.below(1_300)));
    let call = |words: &[&str], token: &str| site.ok(&[words, &["--as", who, "--lease", token]].concat());
    let token = lease(&tasks[0]);
    pause();
    call(&["note", &tasks[0], "half of it"], &token);
    pause();
    call(&["session", "stop", &tasks[0]], &token);
    pause();
    call(&["session", "start", &tasks[0]], &token);
    pause();
    call(&["complete", &tasks[0], "--resolution", "it works"], &token);
    let token = lease(&tasks[1]);
    pause();
    call(&["block", &tasks[1], "--on", "external:rain"], &token);
    pause();
    call(&["unblock", &tasks[1]], &token);
    pause();
    call(&["release", &tasks[1], "--note", "see the branch"], &token);
}

/// A worker that renews until somebody kills it with SIGKILL, at a moment that it does not know.
fn killed(site: &Site, agent: &Agent, task: &str, rng: &mut Rng) {
    let (who, place) = (agent.handle.as_str(), agent.workstation.as_str());
    site.ok(&["claim", task, "--workstation", place, "--as", who, "--ttl", "1s"]);
    let mut shell = std::process::Command::new("sh");
    let renewing =
        format!("while :; do '{}' renew {task} --as {who} -q; done >/dev/null 2>&1", support::ONUS);
    let mut child = start(site.surroundings(&mut shell).args(["-c", &renewing]).stdin(Stdio::null()));
    std::thread::sleep(Duration::from_millis(300 + rng.below(1_500)));
    child.kill().unwrap();
    child.wait().unwrap();
    // A call that was under way may end by itself; nothing renews after it.
    std::thread::sleep(Duration::from_millis(2_500));
    let person = site.person.as_str();
    let why = ["--reason", "it is dead"];
    let taken = ["takeover", task, "--workstation", place, "--force", "--as", person];
    let token = site.ok(&[&taken[..], &why].concat());
    let token = text(&token["lease"]["token"]).to_owned();
    site.ok(&["release", task, "--as", person, "--lease", &token]);
}

#[test]
fn a_day_of_five_agents_and_two_people() {
    let site = Site::new();
    let mut rng = Rng::seeded(7);
    site.by_person(&["worker", "add", "@grace", "--kind", "human", "--tz", "Asia/Tokyo"]);
    site.by_person(&["workstation", "add", "ws-grace", "--kind", "logical"]);
    let mut workers = site.agents(AGENTS);
    workers.push(Agent { handle: "@grace".into(), workstation: "ws-grace".into() });
    site.by_person(&["workstation", "add", "ws-person", "--kind", "logical"]);
    workers.push(Agent { handle: site.person.clone(), workstation: "ws-person".into() });
    let tasks: Vec<Vec<String>> = workers
        .iter()
        .map(|worker| (0..2).map(|n| site.add(&format!("{} {n}", worker.handle))).collect())
        .collect();
    let fatal = site.add("the last thing it did");
    std::thread::scope(|scope| {
        for (n, (worker, own)) in workers.iter().zip(&tasks).enumerate() {
            let (site, fatal, mut rng) = (&site, &fatal, rng.fork());
            scope.spawn(move || {
                work(site, worker, own, &mut rng);
                if n == 0 {
                    killed(site, worker, fatal, &mut rng);
                }
            });
        }
    });
    let sessions = array(&site.ok(&["session", "list", "--limit", "500"])["sessions"]).to_vec();
    assert_eq!(sessions.len(), workers.len() * 4 + 2, "{sessions:#?}");
    let expected: i64 = sessions.iter().map(|session| int(&session["seconds"])).sum();
    assert!(expected > 0);
    every_grouping_adds_up(&site, expected);
    the_rows_say_the_same(&site, expected);
    the_dead_are_not_paid(&site, &sessions, &fatal, &workers[0].handle);
    none_overlap(&sessions);
    the_days_of_the_workers(&site, &workers, &sessions);
    corrections_and_exports(&site, &sessions);
    site.assert_sound();
}

/// The days are the workers' own: from yesterday to tomorrow has all of them.
fn period() -> [String; 4] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let day = |shift: i64| {
        let at = onus_core::time::Timestamp(now + shift * 86_400_000);
        onus_host::zone::date("UTC", at).unwrap().to_string()
    };
    ["--from".into(), day(-2), "--to".into(), day(2)]
}

fn sheet(site: &Site, words: &[&str]) -> Value {
    let period = period();
    let period: Vec<&str> = period.iter().map(String::as_str).collect();
    site.ok(&[&["timesheet"], words, &period].concat())
}

fn every_grouping_adds_up(site: &Site, expected: i64) {
    let groupings =
        ["worker", "task", "project", "sprint", "type", "day", "week", "worker,task,day", "week,type"];
    for by in groupings {
        let view = sheet(site, &["show", "--by", by]);
        let rows: i64 = array(&view["rows"]).iter().map(|row| int(&row["seconds"])).sum();
        assert_eq!((rows, int(&view["total_seconds"])), (expected, expected), "{by}: {view:#}");
    }
    let bare = sheet(site, &[]);
    assert_eq!(int(&bare["total_seconds"]), expected);
    for row in array(&bare["rows"]) {
        assert!(row["worker"].is_string() && row["task"].is_string() && row["day"].is_string(), "{row}");
    }
}

/// The store itself, asked in its own language; and no column of it could hold a total.
fn the_rows_say_the_same(site: &Site, expected: i64) {
    if site.database.is_some() {
        return;
    }
    let db = rusqlite::Connection::open(site.store()).unwrap();
    let millis: i64 =
        db.query_row("SELECT sum(ended_at - started_at) FROM session", [], |row| row.get(0)).unwrap();
    assert_eq!(millis, expected * 1_000);
    let sql = "SELECT m.name || '.' || c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c \
        WHERE m.type = 'table' AND (c.name LIKE '%total%' OR c.name LIKE '%sum%' OR c.name LIKE '%seconds%' \
        OR c.name LIKE '%hours%' OR c.name LIKE '%duration%')";
    let mut statement = db.prepare(sql).unwrap();
    let found: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, [""; 0]);
}

fn the_dead_are_not_paid(site: &Site, sessions: &[Value], task: &str, who: &str) {
    let of_task = |session: &&Value| text(&session["task"]) == task && text(&session["worker"]) == who;
    let dead = sessions.iter().find(of_task).unwrap();
    let log = site.ok(&["ledger", "log", "--task", task, "--limit", "500"]);
    let mut signs = array(&log["entries"]).iter().filter(|entry| {
        text(&entry["actor"]) == who && matches!(text(&entry["verb"]), "claimed" | "renewed")
    });
    let last = text(&signs.next_back().unwrap()["at"]);
    // To the second: RFC 3339 in UTC sorts as text.
    assert_eq!(text(&dead["ended_at"])[..19], last[..19], "{dead:#}");
    assert_eq!(text(&dead["end_reason"]), "forced");
}

fn none_overlap(sessions: &[Value]) {
    let mut places: BTreeMap<(&str, &str), Vec<(&str, &str)>> = BTreeMap::new();
    for session in sessions {
        let place = (text(&session["worker"]), text(&session["workstation"]));
        places.entry(place).or_default().push((text(&session["started_at"]), text(&session["ended_at"])));
    }
    for (place, mut list) in places {
        list.sort_unstable();
        assert!(list.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{place:?}: {list:?}");
    }
}

fn the_days_of_the_workers(site: &Site, workers: &[Agent], sessions: &[Value]) {
    let period = period();
    for worker in workers {
        let own = sessions.iter().filter(|session| text(&session["worker"]) == worker.handle);
        let expected: i64 = own.map(|session| int(&session["seconds"])).sum();
        let days = array(&sheet(site, &["show", "--by", "day", "--worker", &worker.handle])["rows"]).to_vec();
        let day = |date: &str| site.ok(&["worker", "day", &worker.handle, "--date", date]);
        let sum: i64 = days.iter().map(|row| int(&day(text(&row["day"]))["total_seconds"])).sum();
        assert_eq!(sum, expected, "{worker:?}");
    }
    let shown = site.run(&["worker", "day", "@a1"]);
    assert_eq!(shown.exit, Some(0), "{shown:#?}");
    let nobody = site.run(&["worker", "day", "@nobody", "--date", &period[1]]);
    assert_eq!(nobody.exit, Some(3), "{nobody:#?}");
}

fn corrections_and_exports(site: &Site, sessions: &[Value]) {
    let before = int(&sheet(site, &[])["total_seconds"]);
    let longest = sessions.iter().max_by_key(|session| int(&session["seconds"])).unwrap();
    let (id, seconds) = (longest["id"].to_string(), int(&longest["seconds"]));
    let refused =
        site.run(&["session", "correct", &id, "--duration", "0s", "--reason", "x", "--as", "@a1", "--json"]);
    assert_eq!(refused.exit, Some(5), "{refused:#?}");
    let corrected = site.by_person(&["session", "correct", &id, "--duration", "0s", "--reason", "a pause"]);
    assert_eq!(int(&corrected["sessions"][0]["seconds"]), 0, "{corrected:#}");
    let view = sheet(site, &["show", "--by", "worker"]);
    assert_eq!(int(&view["total_seconds"]), before - seconds);

    let period = period();
    let export = |format: &str, file: &str| {
        let words = ["timesheet", "export", "--format", format, file];
        let period: Vec<&str> = period.iter().map(String::as_str).collect();
        site.run(&[&words[..], &period].concat())
    };
    let rows = export("csv", "-");
    let seconds: i64 =
        rows.stdout.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(seconds, before - seconds_of(longest), "{}", rows.stdout);
    let calendar = export("ics", "-").stdout;
    assert_eq!(calendar.matches("BEGIN:VEVENT").count(), sessions.len());
    assert_eq!(export("xlsx", "sheet.xlsx").exit, Some(0));
    assert!(std::fs::read(site.repo().join("sheet.xlsx")).unwrap().starts_with(b"PK"));
    let document: Value = serde_json::from_str(&export("json", "-").stdout).unwrap();
    assert_eq!(int(&document["total_seconds"]), before - seconds_of(longest));
}

fn seconds_of(session: &Value) -> i64 {
    int(&session["seconds"])
}

#[test]
fn tokens_come_from_the_agents_own_records_and_count_once() {
    let site = Site::new();
    let agent = site.agents(1).remove(0);
    let task = site.add("spend");
    let who = agent.handle.as_str();
    site.ok(&["claim", &task, "--workstation", &agent.workstation, "--as", who]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let at = onus_core::time::Timestamp(now);
    let line = |id: &str, output: i64| {
        format!(
            r#"{{"type":"assistant","sessionId":"s-1","timestamp":"{at}","message":{{"id":"{id}","model":"claude-x","usage":{{"input_tokens":10,"output_tokens":{output},"cache_read_input_tokens":100,"cache_creation_input_tokens":5}}}}}}"#
        )
    };
    let path = site.repo().join("transcript.jsonl");
    let read = |lines: &[String]| {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        site.ok(&["session", "usage", &task, "--from-transcript", "transcript.jsonl", "--as", who])
    };
    let first = read(&[line("m1", 1), line("m1", 7)]);
    assert_eq!(int(&first["recorded"][0]["tokens"]), 122, "{first:#}");
    assert_eq!(text(&read(&[line("m1", 7)])["recorded"][0]["outcome"]), "existing");
    assert_eq!(int(&read(&[line("m1", 7), line("m2", 8)])["recorded"][0]["tokens"]), 245);
    let words = ["--output-tokens", "55", "--cost", "0.25", "--key", "by-hand", "--as", who];
    site.ok(&[&["session", "usage", &task][..], &words].concat());
    let view = sheet(&site, &["show", "--by", "worker"]);
    assert_eq!(int(&view["rows"][0]["tokens"]), 300, "{view:#}");
    assert_eq!(view["rows"][0]["cost"], 0.25);
    // Nobody records what another one used, and a record does not shrink.
    let other = site.run(&[
        "session",
        "usage",
        &task,
        "--output-tokens",
        "1",
        "--worker",
        who,
        "--as",
        "@a1",
        "--json",
    ]);
    assert_eq!(other.exit, Some(0), "its own name is no other: {other:#?}");
    site.by_person(&["worker", "add", "@eve", "--kind", "agent"]);
    let eve = site.run(&["session", "usage", &task, "--output-tokens", "1", "--worker", who, "--as", "@eve"]);
    assert_eq!(eve.exit, Some(5), "{eve:#?}");
    let less =
        site.run(&["session", "usage", &task, "--output-tokens", "54", "--key", "by-hand", "--as", who]);
    assert_eq!(less.exit, Some(2), "{less:#?}");
    site.assert_sound();
}
