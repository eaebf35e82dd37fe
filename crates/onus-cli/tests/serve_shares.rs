//! One caller cannot shut the others out, and what was revoked hears nothing more.

use crate::support::server::Server;
use crate::support::{HANG, Site, text};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection on which something was asked.
struct Line(BufReader<TcpStream>);

impl Line {
    fn ask(server: &Server, token: &str, path: &str) -> Line {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        let mut line = Line(BufReader::new(stream));
        line.again(token, path);
        line
    }

    fn again(&mut self, token: &str, path: &str) {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
        self.0.get_mut().write_all(head.as_bytes()).unwrap();
    }

    /// The status of the answer; its headers are read, too.
    fn status(&mut self) -> u16 {
        let mut first = String::new();
        self.0.read_line(&mut first).unwrap();
        let mut header = String::new();
        while header != "\r\n" {
            header.clear();
            self.0.read_line(&mut header).unwrap();
        }
        first.split(' ').nth(1).unwrap_or_else(|| panic!("{first:?}")).parse().unwrap()
    }

    /// What is said until the connection ends.
    fn rest(mut self) -> String {
        let mut said = String::new();
        self.0.read_to_string(&mut said).unwrap();
        said
    }

    /// What is said until the stream ends: by a chunk without a length.
    fn stream(mut self) -> String {
        let mut said = String::new();
        while !said.ends_with("\r\n0\r\n") && said != "0\r\n" {
            assert!(self.0.read_line(&mut said).unwrap() > 0, "{said}");
        }
        said
    }
}

fn issue(site: &Site, more: &[&str]) -> (String, String) {
    let args = [&["worker", "token", "add", "--as", &site.person], more].concat();
    let issued = site.ok(&args);
    (text(&issued["token"]["id"]).to_owned(), text(&issued["secret"]).to_owned())
}

#[test]
fn a_revoked_tokens_stream_ends() {
    let site = Site::new();
    let (id, token) = issue(&site, &["--kind", "service"]);
    let (_, other) = issue(&site, &["--kind", "service"]);
    let server = Server::start(&site);
    let (mut heard, mut stays) =
        (Line::ask(&server, &token, "/v1/events"), Line::ask(&server, &other, "/v1/events"));
    assert_eq!((heard.status(), stays.status()), (200, 200));
    let before = site.add("heard by both");
    site.ok(&["worker", "token", "revoke", &id, "--as", &site.person]);
    let after = site.add("not for the revoked one");
    let said = heard.stream();
    assert!(said.contains(&format!("\"{before}\"")), "{said}");
    assert!(!said.contains(&format!("\"{after}\"")), "{said}");
    assert!(!said.contains("token_revoked"), "{said}");
    // Whoever still may hears all of it.
    let mut line = String::new();
    while !line.contains(&format!("\"{after}\"")) {
        line.clear();
        assert!(stays.0.read_line(&mut line).unwrap() > 0);
    }
    // Come back, it is turned away at the door.
    assert_eq!(Line::ask(&server, &token, "/v1/events").status(), 401);
}

#[test]
fn an_expired_tokens_stream_ends() {
    let site = Site::new();
    let server = Server::start(&site);
    // On a machine with much to do the first ones may have expired before anybody listens.
    for seconds in [2, 10, 60] {
        let (_, token) = issue(&site, &["--kind", "service", "--expires", &format!("{seconds}s")]);
        let mut line = Line::ask(&server, &token, "/v1/events");
        if line.status() == 401 {
            continue;
        }
        line.stream();
        assert_eq!(Line::ask(&server, &token, "/v1/events").status(), 401);
        return;
    }
    panic!("no token was ever good");
}

#[test]
fn one_token_has_its_share_of_streams_and_connections_and_no_more() {
    let site = Site::new();
    let (_, hostile) = issue(&site, &["--kind", "service"]);
    let person = site.token(&site.person);
    let server = Server::start_with(&site, &["--listen", "127.0.0.1:0", "--connections", "32"]);
    // Known from here on.
    assert_eq!(Line::ask(&server, &hostile, "/v1/ready").status(), 200);
    let mut streams: Vec<Line> = (0..4).map(|_| Line::ask(&server, &hostile, "/v1/events")).collect();
    assert!(streams.iter_mut().all(|line| line.status() == 200));
    let mut fifth = Line::ask(&server, &hostile, "/v1/events");
    assert_eq!(fifth.status(), 429);
    // A refused one can still ask for something else; so can others, up to the share of connections.
    let mut lines: Vec<Line> = vec![fifth];
    let mut refused = 0;
    for _ in 0..40 {
        let mut line = Line::ask(&server, &hostile, "/healthz");
        match line.status() {
            200 => lines.push(line),
            status => {
                assert_eq!(status, 429);
                assert!(line.rest().contains("connections"), "it is told why, and the connection ends");
                refused += 1;
            }
        }
    }
    assert!(streams.len() + lines.len() <= 8, "{}", lines.len());
    assert!(refused >= 32, "{refused}");
    let task = server.add(&person, "by somebody else");
    assert_eq!(server.get(&person, &format!("/v1/tasks/{task}")).ok()["task"]["id"], json!(task));
    // A stream that ends makes room for another one.
    drop(streams.pop());
    let opened = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(20));
        Line::ask(&server, &hostile, "/v1/events").status()
    });
    assert!(opened.take(500).any(|status| status == 200));
}

/// How many there are of something: few in a daily loop, and as many as once shut everybody out where time is no matter.
fn many(few: usize, all: usize) -> usize {
    if std::env::var_os("ONUS_SOAK").is_some() { all } else { few }
}

/// Streams by the thousand, and 40 callers who ask for what takes longest: somebody else is served all the while.
#[test]
fn streams_by_the_thousand_and_heavy_questions_shut_nobody_out() {
    let site = Site::new();
    let (_, hostile) = issue(&site, &["--kind", "service"]);
    let (agent, token) = site.token_bearers(1).remove(0);
    let connections = many(64, 4_096);
    let args = ["--listen", "127.0.0.1:0", "--connections", &connections.to_string()];
    let server = Server::start_with(&site, &args);
    let person = site.token(&site.person);
    assert_eq!(Line::ask(&server, &hostile, "/v1/ready").status(), 200);
    let mut open = Vec::new();
    for _ in 0..many(100, 4_100) {
        let mut line = Line::ask(&server, &hostile, "/v1/events");
        match line.status() {
            200 => open.push(line),
            status => assert_eq!(status, 429),
        }
    }
    assert!(!open.is_empty() && open.len() <= connections / 4, "{}", open.len());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let verify = || {
            let mut answers = (0, 0);
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                match server.get(&hostile, "/v1/ledger/verify").status {
                    200 => answers.0 += 1,
                    429 | 503 => answers.1 += 1,
                    status => panic!("{status}"),
                }
            }
            answers
        };
        let asking: Vec<_> = (0..40).map(|_| scope.spawn(verify)).collect();
        for n in 0..many(5, 50) {
            let task = server.add(&person, &format!("task {n}"));
            let claim = json!({ "workstation": agent.workstation });
            let claimed = server.post(&token, &format!("/v1/tasks/{task}/claim"), claim).ok();
            let lease = json!({ "lease": claimed["lease"]["token"] });
            server.post(&token, &format!("/v1/tasks/{task}/release"), lease).ok();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let answers: Vec<(i32, i32)> = asking.into_iter().map(|one| one.join().unwrap()).collect();
        let (served, refused) = answers.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(served > 0 && refused > 0, "one by one: {served} served, {refused} told to wait");
    });
    assert!(server.memory() < 300 << 20, "{} bytes", server.memory());
}

/// 40 notes of 60 kB make 2.4 MB of words, 2,000 the 120 MB that once came at once. No answer has all of them, and the parts
/// together have each once.
#[test]
fn a_long_story_comes_in_parts_through_every_door() {
    const ENOUGH: usize = 700 * 1024;
    let count = many(40, 2_000);
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let task = server.add(&person, "much is said about it");
    for n in 0..count {
        let words = format!("note {n} {}", "x".repeat(60_000));
        server.post(&person, &format!("/v1/tasks/{task}/notes"), json!({ "text": words })).ok();
    }
    let (mut path, mut told, mut parts) = (format!("/v1/tasks/{task}"), Vec::new(), 0);
    loop {
        let part = server.get(&person, &path).ok();
        assert!(part.to_string().len() < ENOUGH);
        assert_eq!(
            part["notes"].as_array().unwrap().len(),
            part["ledger"].as_array().unwrap().iter().filter(|entry| entry["verb"] == "noted").count()
        );
        told.splice(0..0, part["notes"].as_array().unwrap().iter().map(|note| note["seq"].as_i64().unwrap()));
        parts += 1;
        let Some(before) = part["earlier"].as_i64() else { break };
        path = format!("/v1/tasks/{task}?before={before}");
    }
    assert!(parts > 3, "{parts}");
    assert_eq!(told.len(), count);
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
    // The command line through the server.
    let remote =
        site.command(&["--store", &server.url, "show", &task, "--json"]).env("ONUS_TOKEN", &person).output();
    let remote = remote.unwrap().stdout;
    assert!((1_000..ENOUGH).contains(&remote.len()), "{}", remote.len());
    // A model's tool.
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "show", "arguments": { "task": task } } });
    let accept = ("accept", "application/json, text/event-stream");
    let shown = server.post_with(&person, "/mcp", &[accept], call).ok();
    assert!(shown["result"]["structuredContent"]["earlier"].is_i64(), "{shown}");
    assert!(shown.to_string().len() < ENOUGH / 4);
    // The board.
    let cookie = format!("onus-{}={person}", server.address().rsplit(':').next().unwrap());
    let page = |path: &str| {
        let reply = server.try_call("GET", path, &[("cookie", &cookie)], None).unwrap();
        text(&reply.body).to_owned()
    };
    let first = page(&format!("/tasks/{task}"));
    let last = format!("note {} ", count - 1);
    assert!(first.len() < ENOUGH && first.contains(&last), "{}", first.len());
    let earlier =
        first.split("href=\"").find_map(|rest| rest.split_once('"').filter(|(to, _)| to.contains("before=")));
    let earlier = page(earlier.unwrap().0);
    assert!(!earlier.contains(&last) && earlier.contains("The latest entries"));
}

/// Bodies of 60 kB: a list says that there is more, and where.
#[test]
fn a_list_of_long_tasks_comes_in_parts() {
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    for n in 0..60 {
        let body = json!({ "title": format!("long {n}"), "body": "y".repeat(60_000) });
        server.post(&person, "/v1/tasks", body).ok();
    }
    let (mut path, mut seen) = ("/v1/tasks?limit=1000".to_owned(), 0);
    loop {
        let part = server.get(&person, &path).ok();
        assert!(part.to_string().len() < 3 * 1024 * 1024);
        seen += part["tasks"].as_array().unwrap().len();
        let Some(next) = part["next"].as_str() else { break };
        path = format!("/v1/tasks?limit=1000&cursor={next}");
    }
    assert_eq!(seen, 60);
    let ready = server.get(&person, "/v1/ready?limit=1000").ok();
    assert!(ready.to_string().len() < 3 * 1024 * 1024);
    assert_eq!(ready["counts"]["ready"], 60);
}
