//! Tokens, API keys of the environment and the lease are nowhere that anybody can look (threat 19): planted in everything that an
//! agent can say, and searched for in everything that is kept, logged or shown.

use crate::support::fleet::Fleet;
use crate::support::server::Server;
use crate::support::wrapper::run;
use crate::support::{finish, start, text};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Variables of the agent, and a key that looks like one.
const PLANTED: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "planted-key-4711-abcdef"),
    ("DB_PASSWORD", "planted \"pass\" word"),
    ("GITHUB_TOKEN", "planted-token-xyz"),
];
const LOOKS_LIKE_ONE: &str = "ghp_0123456789abcdefghijKLMNOP";

/// What the agent does: it prints, speaks as a client does, writes down, asks, commits. `visible` tells that it came through.
const LINE: &str = r#"
all="visible $ANTHROPIC_API_KEY $DB_PASSWORD $GITHUB_TOKEN $ONUS_LEASE $LOOKS_LIKE_ONE"
env; echo "$all"; echo "$all" >&2
quoted=$(printf %s "$all" | sed 's/"/\\"/g')
printf '{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"%s"}]}}\n' "$quoted"
printf '{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"%s"}}]}}\n' "$quoted"
printf '{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","content":"%s"}]}}\n' "$quoted"
$ONUS note "$ONUS_TASK" "$all"
$ONUS say "$ONUS_TASK" "$all"
$ONUS handoff "$ONUS_TASK" --summary "$all" --risk "$all" --next "$all"
echo "key = $LOOKS_LIKE_ONE" > planted.txt; git add . && git commit --quiet --message planted
$ONUS review "$ONUS_TASK" --comment planted.txt:1 "$all"
$ONUS check "$ONUS_TASK"
$ONUS block "$ONUS_TASK" --on "person:$PERSON" --note "$all"
"#;

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

fn contains(place: &[u8], secret: &str) -> bool {
    place.windows(secret.len()).any(|part| part == secret.as_bytes())
}

#[test]
fn no_secret_is_anywhere() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let log = site.root().join("server.log");
    let file = std::fs::File::create(&log).unwrap();
    let mut serve =
        site.command(&["serve", "--json", "--log", "json", "--listen", "127.0.0.1:0", "--rate", "1000000"]);
    let server = Server::spawn_with(&mut serve, Stdio::from(file));
    let task = site.add("work");
    site.by_person(&["edit", &task, "--check", "echo visible; env; cat planted.txt; exit 1"]);
    let (person, agent) = (site.token(&site.person), site.token("@a"));
    let mut command = run(site, "a", &[&task], LINE);
    command.envs(PLANTED.iter().copied()).env("ONUS", crate::support::ONUS).env("PERSON", &site.person);
    let ran = finish(start(command.env("LOOKS_LIKE_ONE", LOOKS_LIKE_ONE).env("AGENT_TOKEN", &agent)));
    let lease = ran.stdout.lines().find_map(|line| line.strip_prefix("ONUS_LEASE=")).unwrap().to_owned();
    assert_eq!(site.task(&task)["state"], "blocked", "{ran:#?}");
    // Through the server, in its own words.
    let note = format!("visible {LOOKS_LIKE_ONE} {lease}");
    let said = serde_json::json!({ "text": note, "lease": lease });
    server.post(&agent, &format!("/v1/tasks/{task}/notes"), said).ok();

    let mut places: Vec<(String, Vec<u8>)> = Vec::new();
    let store = site.repo().join(".git/onus");
    // The holder's own copy of its lease is where only the holder looks.
    for path in files(&store).into_iter().chain(files(&site.root().join("fleets"))).chain([log]) {
        places.push((path.display().to_string(), std::fs::read(&path).unwrap()));
    }
    let session = site.ok(&["session", "list", "--task", &task])["sessions"][0]["id"].to_string();
    for words in [
        vec!["logs", &task],
        vec!["logs", "--raw", &task],
        vec!["show", &task],
        vec!["diff", &task],
        vec!["inbox", "--as", &site.person],
        vec!["ledger", "log", "--task", &task],
        vec!["ledger", "export"],
        vec!["handoff", &task, "--show"],
        vec!["check", &task, "--list"],
        vec!["export"],
    ] {
        for format in [&[][..], &["--json"]] {
            let answer = site.run(&[&words, format].concat());
            places
                .push((format!("onus {words:?} {format:?}"), (answer.stdout + &answer.stderr).into_bytes()));
        }
    }
    for path in [
        format!("/v1/tasks/{task}"),
        format!("/v1/tasks/{task}/diff"),
        format!("/v1/tasks/{task}/messages"),
        format!("/v1/sessions/{session}/output"),
        format!("/v1/sessions/{session}/output?format=steps"),
        "/v1/inbox".into(),
        "/v1/fleet".into(),
        "/v1/ledger".into(),
        "/metrics".into(),
    ] {
        let reply = server.get(&person, &path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        places.push((path, reply.body.to_string().into_bytes()));
    }
    let cookie = format!("onus-{}={person}", server.address().rsplit(':').next().unwrap());
    let pages = ["/", "/now", "/inbox", "/fleet", "/effort", "/effort/day", "/audit", "/milestones"]
        .map(str::to_owned);
    let of_task = [format!("/tasks/{task}"), format!("/tasks/{task}/diff")];
    for path in pages.into_iter().chain(of_task) {
        let reply = server.try_call("GET", &path, &[("cookie", &cookie)], None).unwrap();
        assert_eq!(reply.status, 200, "{path}");
        places.push((path, text(&reply.body).as_bytes().to_vec()));
    }
    let id = lease.rsplit('.').next().unwrap();
    let all = PLANTED.iter().map(|(_, value)| *value).chain([
        LOOKS_LIKE_ONE,
        id,
        "pass\\\" word",
        "pass&quot; word",
        "pass&#34; word",
    ]);
    let all: Vec<&str> = all.chain([agent.as_str(), person.as_str()]).collect();
    for (place, words) in &places {
        for secret in &all {
            assert!(!contains(words, secret), "{secret} is in {place}");
        }
    }
    // It looked where the agent's words are.
    let seen = |name: &str| {
        places.iter().filter(|(place, _)| place.contains(name)).any(|(_, words)| contains(words, "visible"))
    };
    for name in
        ["logs", "show", "inbox", "handoff", "check", "/output", "/messages", &format!("/tasks/{task}")]
    {
        assert!(seen(name), "{name} says nothing of it");
    }
}
