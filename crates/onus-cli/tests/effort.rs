//! A day of five agents and two people through the real command line: the timesheet is the sum of the sessions, to the
//! second, however it is grouped; a worker that is killed is not paid after its last renewal; no table holds a total.
//! Two of the agents are real processes under `onus run`: one gets its work merged, one is killed and taken over.

use crate::support::fleet::Fleet;
use crate::support::wrapper::{ran, run, until};
use crate::support::{Agent, Rng, Site, start, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often the unlucky one is killed.
const KILLS: usize = 6;

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

/// A real agent under `onus run`: it commits, merges, hands on, and its task is complete and proven.
fn driven(site: &Site, task: &str) {
    let onus = crate::support::ONUS;
    let line = format!(
        "set -e; sleep 1; echo 1 > feature; git add feature; git commit -q -m feature; {onus} merge {task}; sleep 1; \
         {onus} handoff {task} --summary 'limiter with tests'"
    );
    let answer = ran(site, "a", &[task], &line);
    assert_eq!(answer.exit, Some(0), "{answer:#?}");
    assert_eq!(site.task(task)["state"], "complete", "{answer:#?}");
    let checks = site.ok(&["check", task, "--list"])["checks"].clone();
    let run = &checks[0]["run"];
    assert_eq!((&run["verdict"], &run["dirty"]), (&"passed".into(), &false.into()), "{checks:#}");
}

/// An agent that is killed with SIGKILL again and again, at moments that it does not know; another one takes over what it
/// held, works a little, and gives it back.
fn killed(site: &Site, task: &str, relief: &Agent, rng: &mut Rng) {
    let line = format!(
        "while :; do git commit -q --allow-empty -m x; {} note {task} so-far; done",
        crate::support::ONUS
    );
    let (who, place) = (relief.handle.as_str(), relief.workstation.as_str());
    for round in 0..KILLS {
        let mut wrapper = start(&mut run(site, "b", &[task, "--ttl", "15m"], &line));
        // Every other time not before it works, however long that takes here.
        if round % 2 == 0 {
            until("it works", || site.task(task)["assignment"]["renewals"].as_i64() > Some(0));
        }
        std::thread::sleep(Duration::from_millis(rng.below(2_500)));
        wrapper.kill().unwrap();
        wrapper.wait().unwrap();
        // A claim that was under way may still come; a command that was still goes on until its warden has ended it.
        let (mut held, mut nameless) = (Value::Null, false);
        until("it is dead, or never held it", || {
            let story = site.ok(&["show", task]);
            held = story["task"]["assignment"].clone();
            nameless = held["renewals"] == 0;
            held.is_null() || story["dead"] == "process_gone" || nameless
        });
        if held.is_null() {
            continue;
        }
        // It died before it could say what it was: then only a person knows better.
        let by = if nameless { site.person.as_str() } else { who };
        let token = taken_over(site, task, &["--workstation", place, "--as", by], nameless);
        std::thread::sleep(Duration::from_millis(rng.below(1_500)));
        site.ok(&["release", task, "--as", by, "--lease", &token]);
    }
    site.by_person(&["drop", task, "--reason", "enough"]);
}

/// The token of whoever takes over; a lock that a killed git left behind is taken away, as the refusal says.
fn taken_over(site: &Site, task: &str, words: &[&str], forced: bool) -> String {
    let request = format!("takeover-{}", site.task(task)["version"]);
    let mut takeover = vec!["takeover", task, "--reason", "killed", "--request-id", &request, "--json"];
    takeover.extend(words);
    if forced {
        takeover.push("--force");
    }
    let mut answer = site.run(&takeover);
    if answer.exit == Some(69) {
        assert!(answer.stderr.contains("remove the lock file"), "{answer:#?}");
        std::fs::remove_file(site.repo().join(".git/refs/heads/agent/ws-b.lock")).unwrap();
        answer = site.run(&takeover);
    }
    assert_eq!(answer.exit, Some(0), "{answer:#?}");
    text(&answer.json()["lease"]["token"]).to_owned()
}

/// A task with a place in every grouping, or in none of them.
fn planned(site: &Site, worker: &str, n: usize) -> String {
    let title = format!("{worker} {n}");
    let words: &[&str] = match n {
        0 => &["--sprint", "s1", "--type", "backend"],
        1 => &["--project", "U", "--sprint", "s2", "--type", "frontend"],
        _ => &[],
    };
    text(&site.by_person(&[&["add", &title], words].concat())["task"]["id"]).to_owned()
}

#[test]
fn a_day_of_five_agents_and_two_people() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let mut rng = Rng::seeded(7);
    site.ok(&["init", "--project", "U"]);
    site.by_person(&["worker", "add", "@grace", "--kind", "human", "--tz", "Asia/Tokyo"]);
    let mut workers = site.agents(3);
    for (handle, workstation) in [("@grace", "ws-grace"), (site.person.as_str(), "ws-person")] {
        site.by_person(&["workstation", "add", workstation, "--kind", "logical"]);
        workers.push(Agent { handle: handle.into(), workstation: workstation.into() });
    }
    let relief = workers.remove(2);
    let tasks: Vec<Vec<String>> =
        workers.iter().map(|worker| (0..2).map(|n| planned(site, &worker.handle, n)).collect()).collect();
    let proven = site.by_person(&["add", "feature", "--sprint", "s1", "--check", "test -f feature"]);
    let (proven, fatal) = (text(&proven["task"]["id"]), planned(site, "@b", 2));
    std::thread::scope(|scope| {
        for (worker, own) in workers.iter().zip(&tasks) {
            let mut rng = rng.fork();
            scope.spawn(move || work(site, worker, own, &mut rng));
        }
        let mut rng = rng.fork();
        let (relief, fatal) = (&relief, &fatal);
        scope.spawn(move || killed(site, fatal, relief, &mut rng));
        scope.spawn(move || driven(site, proven));
    });
    let sessions = array(&site.ok(&["session", "list", "--limit", "500"])["sessions"]).to_vec();
    let who: BTreeSet<&str> = sessions.iter().map(|session| text(&session["worker"])).collect();
    assert!(who.len() >= 6 && sessions.len() >= workers.len() * 4 + 3, "{sessions:#?}");
    workers.push(relief);
    workers.extend(
        ["a", "b"].map(|name| Agent { handle: format!("@{name}"), workstation: format!("ws-{name}") }),
    );
    let expected: i64 = sessions.iter().map(|session| int(&session["seconds"])).sum();
    assert!(expected > 0);
    every_grouping_adds_up(site, expected);
    every_group_is_its_sessions(site, &sessions);
    the_rows_say_the_same(site, expected);
    the_dead_are_not_paid(site, &sessions);
    none_overlap(&sessions);
    the_days_of_the_workers(site, &workers, &sessions);
    corrections_and_exports(site, &sessions);
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

/// What each row of a timesheet says, added up here from the sessions one by one.
fn every_group_is_its_sessions(site: &Site, sessions: &[Value]) {
    let tasks: BTreeMap<String, Value> =
        site.tasks().into_iter().map(|task| (text(&task["id"]).to_owned(), task)).collect();
    for by in ["worker", "task", "project", "sprint", "type"] {
        let key = |session: &Value| {
            let task = &tasks[text(&session["task"])];
            match by {
                "worker" | "task" => session[by].clone(),
                "project" => text(&session["task"]).split_once('-').unwrap().0.into(),
                own => task[own].clone(),
            }
        };
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for session in sessions {
            *expected.entry(key(session).to_string()).or_default() += int(&session["seconds"]);
        }
        let rows = sheet(site, &["show", "--by", by])["rows"].clone();
        let told = array(&rows).iter().map(|row| (row[by].to_string(), int(&row["seconds"])));
        // A group in which nobody worked a whole second has no row of its own to speak of.
        let told: BTreeMap<String, i64> = told.filter(|(_, seconds)| *seconds > 0).collect();
        expected.retain(|_, seconds| *seconds > 0);
        assert_eq!(told, expected, "{by}");
    }
}

/// Whom somebody else ended was last seen at its last entry under that epoch, and is paid up to that second.
fn the_dead_are_not_paid(site: &Site, sessions: &[Value]) {
    let ledger = site.ledger();
    let ended = |session: &&Value| matches!(text(&session["end_reason"]), "taken_over" | "forced");
    let mut count = 0;
    for dead in sessions.iter().filter(ended) {
        let mut signs = ledger.iter().filter(|entry| {
            entry["task"] == dead["task"]
                && entry["actor"] == dead["worker"]
                && entry["epoch"] == dead["epoch"]
        });
        let last = text(&signs.next_back().unwrap()["at"]).to_owned();
        // To the second: RFC 3339 in UTC sorts as text.
        assert_eq!(text(&dead["ended_at"])[..19], last[..19], "{dead:#}");
        count += 1;
    }
    assert!(count > 0, "nobody was killed in the middle of its work");
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

/// Names that a spreadsheet or a calendar would act on stay names, in every format.
#[test]
fn no_exported_cell_is_a_formula_and_no_title_an_event() {
    const READ: &str = "import sys, zipfile\nbook = zipfile.ZipFile(sys.argv[1])\n\
        for name in book.namelist(): print(name, book.read(name).decode('utf-8', 'replace'))";
    let site = Site::new();
    let agent = site.agents(1).remove(0);
    let names = ["=HYPERLINK(\"http://evil\",\"x\")", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1+9)*cmd|'x'!A0"];
    for sprint in names {
        let title = format!("about {sprint} END:VEVENT; ATTACH:http://evil, \\");
        let added = site.by_person(&["add", &title, &format!("--sprint={sprint}")]);
        let task = text(&added["task"]["id"]);
        let who = ["--as", agent.handle.as_str()];
        site.ok(&[&["claim", task, "--workstation", &agent.workstation], &who[..]].concat());
        site.ok(&[&["complete", task, "--resolution", "done"], &who[..]].concat());
    }
    let period = period();
    let period: Vec<&str> = period.iter().map(String::as_str).collect();
    let export = |format: &str, file: &str| {
        let words = ["timesheet", "export", "--by", "sprint,worker", "--format", format, file];
        let answer = site.run(&[&words[..], &period].concat());
        assert_eq!(answer.exit, Some(0), "{answer:#?}");
        answer.stdout
    };
    let table = export("csv", "-");
    for sprint in names {
        let quoted = sprint.replace('"', "\"\"");
        assert!(table.contains(&format!("'{quoted}")), "{sprint}: {table}");
    }
    assert!(table.contains(&format!(",{},", agent.handle)), "a handle is no formula: {table}");
    let calendar = export("ics", "-");
    assert_eq!(calendar.lines().filter(|line| line.starts_with("BEGIN:VEVENT")).count(), names.len());
    assert!(!calendar.lines().any(|line| line.starts_with("ATTACH")), "{calendar}");
    export("xlsx", "sheet.xlsx");
    let mut python = std::process::Command::new("python3");
    let Ok(read) = python.args(["-c", READ]).arg(site.repo().join("sheet.xlsx")).output() else { return };
    let read = String::from_utf8(read.stdout).unwrap();
    assert!(read.contains("HYPERLINK(") && read.contains("@SUM(1+9)"), "{read}");
    for formula in ["<f>", "<f ", "<hyperlink", "externalLink", "t=\"str\""] {
        assert!(!read.contains(formula), "{formula}: {read}");
    }
}

#[test]
fn a_day_tells_what_was_shown() {
    let site = Site::new();
    let agents = site.agents(2);
    site.by_person(&["add", "work", "--check", "test -d ."]);
    let claimed = site.ok(&["claim", "T-1", "--as", "@a1", "--workstation", &agents[0].workstation]);
    site.ok(&["check", "T-1", "--as", "@a1"]);
    let opinion = ["--approve", "--as-implemented", "--workstation", &agents[1].workstation];
    site.ok(&[&["review", "T-1", "--as", "@a2"], &opinion[..]].concat());
    site.ok(&["complete", "T-1", "--as", "@a1", "--resolution", "it works"]);
    let date = &text(&claimed["assignment"]["assigned_at"])[..10];
    let day = site.ok(&["worker", "day", "@a1", "--date", date]);
    let told: Vec<String> = array(&day["tasks"][0]["acts"])
        .iter()
        .map(|act| {
            let shown = &act["evidence"];
            let words =
                [&act["verb"], &act["by"], &shown["verdict"], &shown["classification"], &shown["command"]];
            words.into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        told,
        ["claimed", "check_run passed test -d .", "reviewed @a2 approved implemented", "noted", "completed"],
        "{day:#}"
    );
    let head = site.git_in(&site.repo(), &["rev-parse", "HEAD"]);
    let commits = array(&day["tasks"][0]["acts"]).iter().filter_map(|act| act["evidence"]["commit"].as_str());
    assert_eq!(commits.collect::<Vec<_>>(), [head.as_str(); 3]);
    let shown = site.run(&["worker", "day", "@a1", "--date", date]).stdout;
    let brief = &head[..8];
    for line in [
        format!("check run: passed, test -d ., at {brief}"),
        format!("reviewed by @a2: approved, implemented, at {brief}"),
        format!("completed: at {brief}"),
    ] {
        assert!(shown.contains(&line), "{line}: {shown}");
    }
}

#[test]
fn a_record_without_a_cost_is_priced_by_the_table_or_not_at_all() {
    let site = Site::new();
    let agent = site.agents(1).remove(0);
    let task = site.add("spend");
    let claimed = site.ok(&["claim", &task, "--workstation", &agent.workstation, "--as", "@a1"]);
    let at = text(&claimed["assignment"]["assigned_at"]);
    let settings = |prices: &str| std::fs::write(site.repo().join("onus.yaml"), prices).unwrap();
    let line = |id: &str, model: &str| {
        format!(
            r#"{{"sessionId":"s","timestamp":"{at}","message":{{"id":"{id}","model":"{model}","usage":{{"input_tokens":1000,"output_tokens":200}}}}}}"#
        )
    };
    std::fs::write(
        site.repo().join("transcript.jsonl"),
        [line("m1", "claude-x"), line("m2", "claude-y")].join("\n"),
    )
    .unwrap();
    let read = || {
        let words = ["session", "usage", &task, "--from-transcript", "transcript.jsonl", "--as", "@a1"];
        let recorded = site.ok(&words)["recorded"].clone();
        array(&recorded).iter().map(|one| one["cost"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(read(), [Value::Null, Value::Null], "without a table nobody knows");
    settings("prices:\n  claude-x: {input: 3000000, output: 15000000}\n");
    assert_eq!(read(), [0.006.into(), Value::Null], "the other model is not guessed");
    assert_eq!(read(), [0.006.into(), Value::Null], "read twice, counted once");
    assert_eq!(sheet(&site, &["show", "--by", "worker"])["rows"][0]["cost"], 0.006);
    // Prices fall, records do not shrink.
    settings("prices:\n  claude-x: {input: 1000000, output: 5000000}\n");
    assert_eq!(read(), [0.002.into(), Value::Null]);
    assert_eq!(sheet(&site, &["show", "--by", "worker"])["rows"][0]["cost"], 0.002);
    for wrong in
        ["input: 1, output: 1, imput: 1", "input: 1", "input: -1, output: 1", "input: 1.5, output: 1"]
    {
        settings(&format!("prices:\n  claude-x: {{{wrong}}}\n"));
        assert_eq!(site.run(&["status", "--json"]).code(), "invalid_input", "{wrong}");
    }
    settings("");
    site.assert_sound();
}
