//! One caller cannot shut the others out, and what was revoked hears nothing more.

use crate::support::server::Server;
use crate::support::{Site, text};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any answer takes, on a machine with much to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection on which something was asked.
struct Line(BufReader<TcpStream>);

impl Line {
    fn ask(server: &Server, token: &str, path: &str) -> Line {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
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
    let said = heard.rest();
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
        line.0.get_mut().set_read_timeout(Some(PATIENCE * 3)).unwrap();
        line.rest();
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
