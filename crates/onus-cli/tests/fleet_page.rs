//! Presets of a team's own, and `fleet status` as people watch it: at a real terminal (mission D15, E7).

use crate::fleet::{by_person, merged};
use crate::support::wrapper::until;
use crate::support::{HANG, ONUS, Site, finish, start, text};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const LINE: &str = "echo \"$0\" | grep -c 'you hold the task' >said.txt; echo \"$ONUS_TASK\" >$ONUS_TASK.txt; \
    git add . && git commit --quiet --message work; echo '{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}'; \
    echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":30,\"output_tokens\":12}}'";

fn settings(site: &Site, value: Value) {
    std::fs::write(site.repo().join("onus.yaml"), value.to_string()).unwrap();
}

#[test]
fn a_team_adds_a_client_of_its_own() {
    let site = Site::guarded();
    let preset =
        json!({ "call": ["sh", "-c", LINE, "{prompt}"], "transcript": "codex", "writes": [".mine"] });
    std::fs::write(site.repo().join("onus.yaml"), format!("presets:\n  mine: {preset}\n")).unwrap();
    let made = site.by_person(&["fleet", "init", "--preset", "mine", "--count", "1"]);
    assert_eq!(made["agents"], json!(["@mine-1"]));
    let task = site.add("work");
    let ended = finish(start(&mut by_person(&site, &["fleet", "up", "--until-idle"])));
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert_eq!(merged(&site, &task), task);
    assert_eq!(site.git_in(&site.repo(), &["show", "main:said.txt"]), "1", "it was handed the task in words");
    let used = site.ok(&["session", "list", "--task", &task])["sessions"][0]["tokens"].clone();
    assert_eq!(used, 42, "its transcript is Codex's");
    let worker = site.ok(&["worker", "list"])["workers"].clone();
    assert!(worker.as_array().unwrap().iter().any(|one| one["tier"] == "mine"), "{worker}");
    site.assert_sound();
}

#[test]
fn what_no_preset_can_mean_is_refused_with_what_is_known() {
    let site = Site::new();
    let up = |value: Value| {
        settings(&site, value);
        site.run(&["fleet", "up", "--until-idle", "--as", &site.person, "--json"])
    };
    let unknown = up(json!({ "agents": [{ "worker": "@a", "preset": "clade" }] }));
    assert_eq!((unknown.exit, &*unknown.code()), (Some(2), "invalid_input"), "{unknown:?}");
    assert!(
        text(&unknown.error()["detail"]).contains("claude, codex, gemini, opencode, shell"),
        "{unknown:?}"
    );
    let wrong = json!({ "call": ["{session}"], "resume": ["x"], "writes": ["../up"] });
    let wrong = up(json!({ "presets": { "mine": wrong }, "agents": [{ "worker": "@a", "preset": "mine" }] }));
    assert_eq!(wrong.error()["findings"].as_array().unwrap().len(), 3, "{wrong:?}");
    let typo = up(json!({ "presets": { "mine": { "call": ["x"], "prompt": 1 } } }));
    assert_eq!(typo.code(), "invalid_input", "{typo:?}");
}

/// A program at a terminal of its own; what it wrote so far.
struct Terminal {
    child: Child,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(site: &Site, line: &str) -> Terminal {
        let mut script = Command::new("script");
        site.surroundings(&mut script).env("TERM", "xterm").env("ONUS", ONUS).env("ONUS_AS", &site.person);
        script.args(["--quiet", "--flush", "--return", "--command", line, "/dev/null"]);
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut out, kept) = (child.stdout.take().unwrap(), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = out.read(&mut piece) {
                kept.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Terminal { child, written }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    fn press(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    fn ended(mut self) -> String {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < HANG, "it does not end: {}", self.shown());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(self.child.wait().unwrap().success(), "{}", self.shown());
        self.shown()
    }
}

#[test]
fn at_a_terminal_the_fleet_is_a_page_that_changes() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no program `script` here (Debian package bsdutils)");
        return;
    }
    let site = Site::guarded();
    let go = site.root().join("go");
    let line =
        format!("echo \"$ONUS_TASK prints\"; while ! [ -e {} ]; do sleep 0.1; done; exit 1", go.display());
    let agents = json!([{ "worker": "@sh-*", "preset": "shell", "command": [line], "count": 2 }]);
    settings(&site, json!({ "fleet": { "interval": "200ms", "attempts": 1 }, "agents": agents }));
    let supervisor = start(&mut by_person(&site, &["fleet", "up"]));
    until("it runs", || !site.by_person(&["fleet", "status"])["supervisor"].is_null());
    let mut terminal = Terminal::start(
        &site,
        "stty -a >modes; \"$ONUS\" fleet status; stty -a | cmp - modes && echo the same modes",
    );
    until("nobody works", || terminal.shown().contains("2 idle"));
    let tasks = [site.add("First of them"), site.add("Second of them")];
    until("both work", || terminal.shown().contains("2 working"));
    until("the first one's words are there", || terminal.shown().contains("@sh-1: "));
    terminal.press("j");
    until("the second one is chosen", || terminal.shown().contains("@sh-2: "));
    until("what it prints is there", || {
        tasks.iter().all(|task| terminal.shown().contains(&format!("{task} prints")))
    });
    let live = terminal.shown();
    assert!(live.contains("grant 1") && live.contains("PLACE") && live.contains("LEASE"), "{live}");
    std::fs::write(&go, "").unwrap();
    until("both wait for a person", || site.tasks().iter().all(|task| task["state"] == "blocked"));
    until("it is seen", || {
        terminal.shown().matches("2 idle").count() > 1 || terminal.shown().contains("0 agents")
    });
    terminal.press("q");
    let shown = terminal.ended();
    let (page, after) = shown.rsplit_once("\u{1b}[?1049l").unwrap();
    assert!(page.contains("\u{1b}[?1049h"), "a page of its own: {shown:?}");
    assert!(
        after.contains("@sh-1") && after.contains("the same modes"),
        "how things stood last is left: {after:?}"
    );
    site.by_person(&["fleet", "down"]);
    assert_eq!(finish(supervisor).exit, Some(0));
    // Where nobody sits, it is told once.
    let once = finish(start(&mut by_person(&site, &["fleet", "status"])));
    assert!(once.stdout.contains("@sh-2") && !once.stdout.contains('\u{1b}'), "{once:?}");
}
