//! GitHub's and GitLab's issues, as much of them as their published descriptions of the REST interfaces say and a mirror uses, with
//! a memory. Written by hand, and strict: an unknown path, parameter or field, a wrong type or a missing key is refused. With a
//! judge every request is held against the description itself, too (`judge.rs`).

use super::judge::Judge;
use super::receiver::{Heard, read_request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) const KEY: &str = "0123456789abcdef-forge-key";

#[derive(Debug, Default)]
struct Memory {
    /// What the far end's clock says: every change is a second later.
    seconds: u64,
    issues: Vec<Value>,
    comments: BTreeMap<u64, Vec<Value>>,
    /// So many answers to changes are lost.
    loses: usize,
    /// It is out of order for so many requests.
    fails: usize,
    /// It takes no change.
    refuses: bool,
    /// It says yes to labels, and drops them, as GitHub does with those of whoever may not push.
    drops_labels: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Forge {
    pub(crate) port: u16,
    pub(crate) is_gitlab: bool,
    judge: Option<Arc<Judge>>,
    memory: Arc<Mutex<Memory>>,
}

type Reply = (u16, Value);

impl Forge {
    pub(crate) fn start(is_gitlab: bool) -> Forge {
        Forge::judged(is_gitlab, None)
    }

    /// One that has every request held against the published description, too.
    pub(crate) fn judged(is_gitlab: bool, judge: Option<Arc<Judge>>) -> Forge {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let forge = Forge { port, is_gitlab, judge, memory: Arc::default() };
        let served = forge.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                drop(served.serve(stream));
            }
        });
        forge
    }

    pub(crate) fn lose(&self, answers: usize) {
        self.memory.lock().unwrap().loses = answers;
    }

    pub(crate) fn fail(&self, requests: usize) {
        self.memory.lock().unwrap().fails = requests;
    }

    pub(crate) fn refuse(&self, refuses: bool) {
        self.memory.lock().unwrap().refuses = refuses;
    }

    pub(crate) fn drop_labels(&self) {
        self.memory.lock().unwrap().drops_labels = true;
    }

    pub(crate) fn issues(&self) -> Vec<Value> {
        self.memory.lock().unwrap().issues.clone()
    }

    pub(crate) fn comments(&self, number: u64) -> Vec<String> {
        let memory = self.memory.lock().unwrap();
        let of = memory.comments.get(&number).cloned().unwrap_or_default();
        of.iter().map(|one| one["body"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn labels(&self, number: u64) -> Vec<String> {
        let name = |one: &Value| one["name"].as_str().or(one.as_str()).unwrap().to_owned();
        self.issues()[number as usize - 1]["labels"].as_array().unwrap().iter().map(name).collect()
    }

    /// Somebody asks for something there.
    pub(crate) fn ask(&self, title: &str) -> u64 {
        let made = self.make(&json!({ "title": title }));
        made.1[if self.is_gitlab { "iid" } else { "number" }].as_u64().unwrap()
    }

    /// Somebody gives an issue these labels, and no others.
    pub(crate) fn relabel(&self, number: u64, labels: &[&str]) {
        let labels = if self.is_gitlab { json!(labels.join(",")) } else { json!(labels) };
        assert_eq!(self.change(number, &json!({ "labels": labels })).0, 200);
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let heard = read_request(&mut stream)?;
        if let Some(judge) = &self.judge {
            judge.hear(&heard.head, &heard.body);
        }
        let is_change = !heard.head.starts_with("GET ");
        let (status, body) = self.answer(&heard);
        let mut memory = self.memory.lock().unwrap();
        if is_change && memory.loses > 0 {
            memory.loses -= 1;
            return Ok(());
        }
        drop(memory);
        let text = if body.is_null() { String::new() } else { body.to_string() };
        write!(
            stream,
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        )
    }

    fn answer(&self, heard: &Heard) -> Reply {
        let mut memory = self.memory.lock().unwrap();
        if memory.fails > 0 {
            memory.fails -= 1;
            return (500, json!({ "message": "out of order" }));
        }
        if memory.refuses && !heard.head.starts_with("GET ") {
            return (422, json!({ "message": "Validation Failed" }));
        }
        drop(memory);
        let (header, wanted) = match self.is_gitlab {
            true => ("private-token", KEY.to_owned()),
            false => ("authorization", format!("Bearer {KEY}")),
        };
        if heard.header(header) != wanted || heard.header("user-agent").is_empty() {
            return (401, json!({ "message": "Bad credentials" }));
        }
        let mut words = heard.head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (user, issues, comments) = match self.is_gitlab {
            true => ("/api/v4/user", "/api/v4/projects/acme%2Fapi/issues", "notes"),
            false => ("/user", "/repos/acme/api/issues", "comments"),
        };
        if (method, path) == ("GET", user) {
            return (200, json!({ if self.is_gitlab { "username" } else { "login" }: "onus-bot" }));
        }
        let Some(rest) = path.strip_prefix(issues) else { return (404, json!({ "message": "Not Found" })) };
        let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        // Comments are numbered through there.
        if let (false, "DELETE", ["comments", id]) = (self.is_gitlab, method, &parts[..]) {
            return self.forget(id);
        }
        let body: Value =
            if heard.body.is_empty() { Value::Null } else { serde_json::from_str(&heard.body).unwrap() };
        let number: u64 = parts.first().and_then(|part| part.parse().ok()).unwrap_or(0);
        let update = if self.is_gitlab { "PUT" } else { "PATCH" };
        if number > self.memory.lock().unwrap().issues.len() as u64 {
            return (404, json!({ "message": "Not Found" }));
        }
        match (method, &parts[..]) {
            ("GET", []) => self.list(query),
            ("POST", []) => self.make(&body),
            ("GET", [_]) => (200, self.memory.lock().unwrap().issues[number as usize - 1].clone()),
            (word, [_]) if word == update => self.change(number, &body),
            ("GET", [_, word]) if *word == comments => {
                (200, json!(self.memory.lock().unwrap().comments.get(&number).cloned().unwrap_or_default()))
            }
            ("POST", [_, word]) if *word == comments => self.comment(number, &body),
            ("DELETE", [_, word, id]) if self.is_gitlab && *word == comments => self.forget(id),
            _ => (405, json!({ "message": "no such thing" })),
        }
    }

    fn list(&self, query: &str) -> Reply {
        let known: &[&str] = match self.is_gitlab {
            true => &["scope", "author_username", "order_by", "sort", "updated_after", "per_page", "page"],
            false => &["state", "creator", "sort", "direction", "since", "per_page", "page"],
        };
        let pairs: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let per_page: usize = pairs.get("per_page").map_or(30, |text| text.parse().unwrap());
        if let Some(unknown) = pairs.keys().find(|name| !known.contains(name)) {
            return (422, json!({ "message": format!("unknown parameter {unknown}") }));
        }
        if per_page > 100 {
            return (422, json!({ "message": "per_page is at most 100" }));
        }
        let since = pairs.get("since").or_else(|| pairs.get("updated_after"));
        let since = since.map(|text| text.replace("%3A", ":")).unwrap_or_default();
        let by_creation =
            pairs.get("sort") == Some(&"created") || pairs.get("order_by") == Some(&"created_at");
        let is_down = pairs.get("direction") == Some(&"desc") || pairs.get("sort") == Some(&"desc");
        let mut found = self.issues();
        found.retain(|issue| issue["updated_at"].as_str().unwrap() >= since.as_str());
        let order = if by_creation { "created_at" } else { "updated_at" };
        found.sort_by_key(|issue| issue[order].as_str().unwrap().to_owned());
        if is_down {
            found.reverse();
        }
        let page: usize = pairs.get("page").map_or(1, |text| text.parse().unwrap());
        (200, found.into_iter().skip((page - 1) * per_page).take(per_page).collect())
    }

    fn unknown(body: &Value, known: &[&str]) -> Option<Reply> {
        let fields = body.as_object()?;
        let unknown = fields.keys().find(|name| !known.contains(&name.as_str()))?;
        Some((422, json!({ "message": format!("unknown field {unknown}") })))
    }

    fn text_name(&self) -> &'static str {
        if self.is_gitlab { "description" } else { "body" }
    }

    fn make(&self, body: &Value) -> Reply {
        let known = ["title", self.text_name(), "labels"];
        if let Some(refused) = Forge::unknown(body, &known) {
            return refused;
        }
        if body["title"].as_str().is_none_or(str::is_empty) {
            return (422, json!({ "message": "a title is needed" }));
        }
        let mut memory = self.memory.lock().unwrap();
        memory.seconds += 1;
        let (now, number) = (time(memory.seconds), memory.issues.len() as u64 + 1);
        let issue = json!({ "id": 1_000 + number, if self.is_gitlab { "iid" } else { "number" }: number,
            "title": body["title"], self.text_name(): body[self.text_name()], "labels": [],
            "state": if self.is_gitlab { "opened" } else { "open" }, "created_at": now, "updated_at": now, "milestone": null });
        memory.issues.push(issue.clone());
        (201, issue)
    }

    fn change(&self, number: u64, body: &Value) -> Reply {
        let state = if self.is_gitlab { "state_event" } else { "state" };
        if let Some(refused) = Forge::unknown(body, &["title", self.text_name(), "labels", state]) {
            return refused;
        }
        let labels: Option<Vec<Value>> = match (&body["labels"], self.is_gitlab) {
            (Value::String(text), true) => {
                Some(text.split(',').filter(|one| !one.is_empty()).map(|one| json!(one)).collect())
            }
            (Value::Array(all), false) => Some(all.iter().map(|one| json!({ "name": one })).collect()),
            (Value::Null, _) => None,
            _ => return (422, json!({ "message": "labels" })),
        };
        let state = match (body[state].as_str(), self.is_gitlab) {
            (Some("close"), true) | (Some("closed"), false) => Some("closed"),
            (Some("reopen"), true) => Some("opened"),
            (Some("open"), false) => Some("open"),
            (None, _) => None,
            _ => return (422, json!({ "message": "state" })),
        };
        let mut memory = self.memory.lock().unwrap();
        memory.seconds += 1;
        let (now, drops_labels) = (time(memory.seconds), memory.drops_labels);
        let issue = &mut memory.issues[number as usize - 1];
        issue["updated_at"] = json!(now);
        if let Some(labels) = labels.filter(|_| !drops_labels) {
            issue["labels"] = json!(labels);
        }
        if let Some(state) = state {
            issue["state"] = json!(state);
        }
        (200, issue.clone())
    }

    fn comment(&self, number: u64, body: &Value) -> Reply {
        if let Some(refused) = Forge::unknown(body, &["body"]) {
            return refused;
        }
        if body["body"].as_str().is_none_or(str::is_empty) {
            return (422, json!({ "message": "a body is needed" }));
        }
        let mut memory = self.memory.lock().unwrap();
        memory.seconds += 1;
        let comment = json!({ "id": memory.seconds, "body": body["body"] });
        memory.comments.entry(number).or_default().push(comment.clone());
        (201, comment)
    }

    fn forget(&self, id: &str) -> Reply {
        let mut memory = self.memory.lock().unwrap();
        let is_it = |comment: &Value| comment["id"].as_u64() == id.parse().ok();
        let found = memory.comments.values_mut().find(|all| all.iter().any(is_it));
        let Some(all) = found else { return (404, json!({ "message": "Not Found" })) };
        all.retain(|comment| !is_it(comment));
        (204, Value::Null)
    }
}

fn time(seconds: u64) -> String {
    format!("2026-01-01T{:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
