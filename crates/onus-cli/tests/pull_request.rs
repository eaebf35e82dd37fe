//! Landing by pull request: `complete` offers the branch at a server that follows the providers' published descriptions to the
//! letter, the task waits, and is complete once the request is merged there.

use crate::support::judge::Judge;
use crate::support::server::Server;
use crate::support::team::{Team, ask, commit, files};
use crate::support::wrapper::until;
use crate::support::{Answer, Bench, finish, start, text};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const KEY: &str = "k-3f9a-0123456789abcdef";

/// One provider's words for the same things, from its published description.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    list: &'static str,
    /// What opens and what changes a request, and what each may say.
    change: &'static str,
    opens_with: [&'static str; 4],
    open: &'static str,
}

const SHAPES: [Shape; 3] = [
    Shape {
        name: "github",
        list: "/repos/team/shop/pulls",
        change: "PATCH",
        opens_with: ["base", "body", "head", "title"],
        open: "open",
    },
    Shape {
        name: "gitlab",
        list: "/projects/team%2Fshop/merge_requests",
        change: "PUT",
        opens_with: ["description", "source_branch", "target_branch", "title"],
        open: "opened",
    },
    Shape {
        name: "gitea",
        list: "/repos/team/shop/pulls",
        change: "PATCH",
        opens_with: ["base", "body", "head", "title"],
        open: "open",
    },
];

#[derive(Clone)]
struct Request {
    from: String,
    to: String,
    title: String,
    body: String,
    state: String,
    sha: String,
}

struct Forge {
    shape: Shape,
    /// Who holds every request against the description itself.
    judge: Option<Arc<Judge>>,
    origin: std::path::PathBuf,
    requests: Mutex<Vec<Request>>,
    calls: Mutex<Vec<String>>,
    url: String,
}

impl Forge {
    fn start(shape: Shape, origin: std::path::PathBuf, judge: Option<Arc<Judge>>) -> Arc<Forge> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api", listener.local_addr().unwrap());
        let forge = Arc::new(Forge {
            shape,
            judge,
            origin,
            requests: Mutex::default(),
            calls: Mutex::default(),
            url,
        });
        let own = Arc::clone(&forge);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                own.serve(stream);
            }
        });
        forge
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                match line.trim_end() {
                    "" => break,
                    line => lines.push(line.to_owned()),
                }
            }
            let header = |name: &str| {
                let named = lines.iter().filter_map(|line| line.split_once(": "));
                named
                    .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.to_owned())
                    .next()
            };
            let mut body = vec![0; header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let mut words = lines[0].split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            self.calls.lock().unwrap().push(format!("{method} {path}"));
            if let Some(judge) = &self.judge {
                judge.hear(&lines.join("\r\n"), &String::from_utf8_lossy(&body));
            }
            let (status, answer) = match header("authorization") {
                Some(shown) if shown == format!("Bearer {KEY}") => {
                    self.answer(method, path.strip_prefix("/api").unwrap(), &body)
                }
                _ => (401, json!({ "message": "Bad credentials" })),
            };
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).unwrap();
        }
    }

    fn sha(&self, branch: &str) -> Option<String> {
        let mut git = std::process::Command::new("git");
        let found = git
            .arg("-C")
            .arg(&self.origin)
            .args(["rev-parse", "--verify", "--quiet", branch])
            .output()
            .unwrap();
        found.status.success().then(|| String::from_utf8(found.stdout).unwrap().trim().to_owned())
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let shape = self.shape;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut requests = self.requests.lock().unwrap();
        let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() };
        let said = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let [_, words, from, to] = match shape.name {
            "gitlab" => ["", "description", "source_branch", "target_branch"],
            _ => ["", "body", "head", "base"],
        };
        if method == "GET" && path == shape.list {
            assert!(query.contains("state=all"), "{query}");
            let all = requests.iter().enumerate().map(|(at, one)| self.shown(at, one)).collect();
            return (200, Value::Array(all));
        }
        if method == "POST" && path == shape.list {
            let mut keys: Vec<&String> = body.as_object().unwrap().keys().collect();
            keys.sort();
            let is_open = |one: &Request| one.state == shape.open && one.from == said(from);
            if keys != shape.opens_with || requests.iter().any(is_open) {
                return (422, json!({ "message": "Validation Failed" }));
            }
            let Some(sha) = self.sha(&said(from)) else {
                return (422, json!({ "message": "no such branch" }));
            };
            let (title, body) = (said("title"), said(words));
            let one =
                Request { from: said(from), to: said(to), title, body, state: shape.open.to_owned(), sha };
            requests.push(one.clone());
            return (201, self.shown(requests.len() - 1, &one));
        }
        let number =
            path.strip_prefix(shape.list).and_then(|rest| rest.strip_prefix('/')?.parse::<usize>().ok());
        match number.and_then(|number| Some((number - 1, requests.get_mut(number - 1)?))) {
            Some((at, one)) if method == shape.change => {
                (one.title, one.body) = (said("title"), said(words));
                one.sha = self.sha(&one.from).unwrap();
                let one = one.clone();
                (if shape.name == "gitea" { 201 } else { 200 }, self.shown(at, &one))
            }
            _ => (404, json!({ "message": "Not Found" })),
        }
    }

    fn shown(&self, at: usize, one: &Request) -> Value {
        let (number, is_merged) = (at + 1, one.state == "merged");
        let url = format!("https://forge.example/team/shop/{number}");
        let closed = if one.state == self.shape.open { "open" } else { "closed" };
        match self.shape.name {
            "gitlab" => json!({
                "id": 900 + number, "iid": number, "web_url": url, "state": one.state, "sha": one.sha, "title": one.title,
                "source_branch": one.from, "target_branch": one.to, "merged_at": is_merged.then_some("2026-11-18T09:00:00Z"),
            }),
            "github" => json!({
                "id": 900 + number, "number": number, "html_url": url, "state": closed, "title": one.title,
                "head": { "ref": one.from, "sha": one.sha }, "base": { "ref": one.to },
                "merged_at": is_merged.then_some("2026-11-18T09:00:00Z"),
            }),
            _ => json!({
                "id": 900 + number, "number": number, "html_url": url, "state": closed, "title": one.title, "merged": is_merged,
                "head": { "ref": one.from, "sha": one.sha }, "base": { "ref": one.to },
            }),
        }
    }

    fn decide(&self, state: &str) {
        self.requests.lock().unwrap().last_mut().unwrap().state = state.to_owned();
    }

    fn count(&self, method: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| call.starts_with(&format!("{method} "))).count()
    }
}

/// A team that lands there.
fn team(shape: Shape) -> (Team, Bench, Arc<Forge>) {
    judged_team(shape, None)
}

fn judged_team(shape: Shape, judge: Option<Arc<Judge>>) -> (Team, Bench, Arc<Forge>) {
    let team = Team::new();
    team.site.by_person(&["init", "--remote", "origin"]);
    let forge = Forge::start(shape, team.origin.clone(), judge);
    std::fs::write(team.site.root().join("key"), format!("{KEY}\n")).unwrap();
    set(&team, &forge, "key");
    let one = team.site.bench("one");
    (team, one, forge)
}

fn set(team: &Team, forge: &Forge, key: &str) {
    let (provider, url, key) = (forge.shape.name, &forge.url, team.site.root().join(key));
    let settings = format!(
        "git:\n  land: pr\n  pull_requests: {{ provider: {provider}, url: \"{url}\", repository: team/shop, key_file: \"{}\", poll: 200ms }}\n",
        key.display()
    );
    std::fs::write(team.site.repo().join("onus.yaml"), settings).unwrap();
}

fn complete(team: &Team, one: &Bench, task: &str) -> Answer {
    team.as_agent(one, &["complete", task, "--resolution", "done"])
}

/// What somebody does there with a button.
fn merge_there(team: &Team, branch: &str) {
    let site = &team.site;
    site.git_in(&team.other, &["fetch", "--quiet", "origin"]);
    site.git_in(&team.other, &["merge", "--quiet", "--no-ff", "-m", "pr", &format!("origin/{branch}")]);
    site.git_in(&team.other, &["push", "--quiet", "origin", "main"]);
}

#[test]
fn complete_offers_the_branch_and_ends_once_it_is_merged() {
    for shape in SHAPES {
        // Gitea has no description that could be had as a package.
        let judge = match shape.name {
            "github" => Judge::of_github("/api"),
            "gitlab" => Judge::of_gitlab("/api"),
            _ => None,
        };
        let (team, one, forge) = judged_team(shape, judge.clone());
        let site = &team.site;
        let task = ask(site, &["sell shoes", "--check", "test -e a"]);
        team.ok(&one, &["claim", &task]);
        commit(site, &one, "a", "1\n");
        let offered = complete(&team, &one, &task);
        assert_eq!(offered.code(), "not_merged", "{}: {offered:#?}", shape.name);
        assert!(
            text(&offered.error()["detail"]).contains("https://forge.example/team/shop/1"),
            "{offered:#?}"
        );
        // It waits, for everybody to see.
        let waits = site.task(&task);
        assert_eq!(waits["state"], "blocked");
        assert!(
            text(&waits["blocked_on"]).contains("pull request https://forge.example/team/shop/1"),
            "{waits}"
        );
        {
            let requests = forge.requests.lock().unwrap();
            assert_eq!(requests[0].title, format!("{task}: sell shoes"));
            assert!(requests[0].body.contains("`test -e a`: exit code 0"), "{}", requests[0].body);
        }
        // Nothing is done twice while nothing happens there.
        assert_eq!(complete(&team, &one, &task).code(), "not_merged");
        assert_eq!((forge.count("POST"), forge.count(shape.change)), (1, 0), "{}", shape.name);
        // More work changes the same request.
        team.ok(&one, &["unblock", &task]);
        let more = commit(site, &one, "b", "1\n");
        assert_eq!(complete(&team, &one, &task).code(), "not_merged");
        assert_eq!((forge.count("POST"), forge.count(shape.change)), (1, 1), "{}", shape.name);
        assert_eq!(forge.requests.lock().unwrap()[0].sha, more);
        // Merged there: complete, and never twice.
        merge_there(&team, "agent/ws-one");
        forge.decide("merged");
        let done = complete(&team, &one, &task);
        assert_eq!(done.exit, Some(0), "{}: {done:#?}", shape.name);
        assert_eq!(site.task(&task)["state"], "complete");
        assert_eq!(files(site, &team.origin, "main"), ["a", "b"]);
        site.assert_sound();
        if let Some(judge) = judge {
            judge.assert_content();
        }
    }
}

/// Nobody says `complete` again: a server in the clone asks, and so does the supervisor of a fleet.
#[test]
fn a_merged_request_completes_by_itself() {
    let (team, one, forge) = team(SHAPES[0]);
    let site = &team.site;
    let task = ask(site, &["by hand"]);
    team.ok(&one, &["claim", &task]);
    commit(site, &one, "a", "1\n");
    assert_eq!(complete(&team, &one, &task).code(), "not_merged");
    let server = Server::start(site);
    until("it asks", || forge.count("GET") > 3);
    assert_eq!(site.task(&task)["state"], "blocked");
    merge_there(&team, "agent/ws-one");
    forge.decide("merged");
    until("it is complete", || site.task(&task)["state"] == "complete");
    drop(server);
    let line = "echo 1 >$ONUS_TASK.txt; git add . && git commit --quiet --message work";
    let agents = json!([{ "worker": "@sh", "preset": "shell", "command": [line] }]);
    let file = site.repo().join("onus.yaml");
    let settings = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{settings}fleet: {{ interval: 200ms }}\nagents: {agents}\n")).unwrap();
    let task = ask(site, &["by the fleet"]);
    let supervisor = start(&mut site.command(&["fleet", "up", "--as", &site.person]));
    until("it waits", || site.task(&task)["state"] == "blocked");
    merge_there(&team, "agent/sh");
    forge.decide("merged");
    until("it is complete", || site.task(&task)["state"] == "complete");
    site.by_person(&["fleet", "down"]);
    assert_eq!(finish(supervisor).exit, Some(0));
    assert_eq!(forge.count("POST"), 2);
    site.assert_sound();
}

#[test]
fn a_request_that_nobody_wants_is_told_and_offered_anew() {
    let (team, one, forge) = team(SHAPES[0]);
    let task = ask(&team.site, &["work"]);
    team.ok(&one, &["claim", &task]);
    commit(&team.site, &one, "a", "1\n");
    complete(&team, &one, &task);
    forge.decide("closed");
    let told = complete(&team, &one, &task);
    assert_eq!(told.code(), "not_merged");
    assert!(text(&told.error()["detail"]).contains("closed without being merged"), "{told:#?}");
    assert_eq!(team.site.task(&task)["state"], "in_progress");
    commit(&team.site, &one, "a", "2\n");
    assert_eq!(complete(&team, &one, &task).code(), "not_merged");
    assert_eq!(forge.requests.lock().unwrap().len(), 2);
    team.site.assert_sound();
}

#[test]
fn a_key_that_is_not_taken_or_not_there_is_told_and_never_shown() {
    let (team, one, forge) = team(SHAPES[2]);
    let task = ask(&team.site, &["work"]);
    team.ok(&one, &["claim", &task]);
    commit(&team.site, &one, "a", "1\n");
    std::fs::write(team.site.root().join("wrong"), "k-wrong-77-0123456789\n").unwrap();
    for (key, words) in [("wrong", "the key is not accepted"), ("nowhere", "nowhere")] {
        set(&team, &forge, key);
        let told = complete(&team, &one, &task);
        assert_eq!(told.code(), "not_merged", "{told:#?}");
        assert!(text(&told.error()["detail"]).contains(words), "{told:#?}");
        assert!(!format!("{told:#?}").contains("k-wrong-77-0123456789"), "{told:#?}");
    }
    assert_eq!(team.site.task(&task)["state"], "in_progress");
    set(&team, &forge, "key");
    complete(&team, &one, &task);
    assert_eq!(team.site.task(&task)["state"], "blocked");
    // What is wrong in the settings is told by its name.
    std::fs::write(
        team.site.repo().join("onus.yaml"),
        "git: { land: pr, pull_requests: { provider: github, url: \"http://127.0.0.1:1\", repository: shop, key_env: X } }\n",
    )
    .unwrap();
    let told = complete(&team, &one, &task);
    assert_eq!(told.code(), "invalid_input", "{told:#?}");
    assert!(text(&told.error()["detail"]).contains("git.pull_requests"), "{told:#?}");
}
