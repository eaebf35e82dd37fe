//! Callers that do not behave: no token, a bad one, another's name, too much, too slow, too often.

use crate::support::server::Server;
use crate::support::{HANG, Site, finish, start, text};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Sends bytes as they are and gives what comes back until the server closes.
fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    // A server that has heard enough may close before it has heard all.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn nobody_is_answered_without_a_good_token() {
    let site = Site::new();
    site.agents(2);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let server = Server::start(&site);
    let anonymous = server.try_call("GET", "/v1/tasks", &[], None).unwrap();
    anonymous.refused(401, "unauthenticated");
    assert!(anonymous.header("www-authenticate").unwrap().starts_with("Bearer"));
    for bad in ["nonsense", "", &format!("{agent}x"), &agent[..agent.len() - 1]] {
        server.get(bad, "/v1/ready").refused(401, "unauthenticated");
    }
    let basic = server.try_call("GET", "/v1/ready", &[("authorization", "Basic eDp5")], None).unwrap();
    basic.refused(401, "unauthenticated");
    server.get(&agent, "/v1/ready").ok();
    let task = server.add(&person, "talked about");
    let note = |token: &str, body: Value| server.post(token, &format!("/v1/tasks/{task}/notes"), body);
    note(&agent, json!({ "text": "a word" })).ok();

    // What is revoked is refused at once, also where its bearer was known a moment ago.
    let id = site.by_person(&["worker", "token", "list"])["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["worker"] == "@a1")
        .unwrap()["id"]
        .clone();
    site.by_person(&["worker", "token", "revoke", text(&id)]);
    note(&agent, json!({ "text": "another word" })).refused(401, "unauthenticated");
    note(&agent, json!({ "nonsense": 1 })).refused(401, "unauthenticated");
    server.get(&agent, "/v1/ready").refused(401, "unauthenticated");
    server.get(&person, "/v1/ready").ok();
    let said = site.by_person(&["ledger", "log", "--task", &task]);
    assert_eq!(said["entries"].as_array().unwrap().len(), 2, "{said}");
}

#[test]
fn a_token_carries_no_more_than_its_kind_and_its_place() {
    let site = Site::new();
    site.agents(2);
    let person = site.token(&site.person);
    let bound = text(&site.by_person(&["worker", "token", "add", "@a1", "--workstation", "ws-1"])["secret"])
        .to_owned();
    let server = Server::start(&site);
    let task = server.add(&person, "bound");
    let claim = |body: Value| server.post(&bound, &format!("/v1/tasks/{task}/claim"), body);
    claim(json!({ "workstation": "ws-2" })).refused(403, "not_permitted");
    claim(json!({ "force": true, "reason": "now" })).refused(403, "human_required");
    claim(json!({ "assignee": "@a2" })).refused(403, "human_required");
    assert_eq!(claim(json!({})).ok()["assignment"]["workstation"], "ws-1");
    server
        .post(&bound, &format!("/v1/tasks/{task}/drop"), json!({ "reason": "x" }))
        .refused(403, "human_required");
}

#[test]
fn how_the_store_is_kept_is_told_to_people() {
    let site = Site::new();
    site.agents(1);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let server = Server::start(&site);
    let remote = |token: &str, args: &[&str]| {
        let mut onus = site.command(&[args, &["--json"]].concat());
        finish(start(onus.env("ONUS_STORE", &server.url).env("ONUS_TOKEN", token)))
    };
    let told = remote(&person, &["doctor"]).json();
    let names = |view: &Value| -> Vec<Value> {
        view["checks"].as_array().unwrap().iter().map(|check| check["name"].clone()).collect()
    };
    assert_eq!(told["ok"], true);
    assert_eq!(names(&told), names(&site.run(&["doctor", "--json"]).json()));
    for args in [&["doctor"][..], &["ledger", "raise-generation", "--reason", "lost a day"]] {
        assert_eq!(remote(&agent, args).code(), "human_required");
    }
    assert_eq!(remote(&person, &["ledger", "raise-generation"]).code(), "reason_required");
    let raised = remote(&person, &["ledger", "raise-generation", "--reason", "lost a day"]).json();
    assert_eq!(raised["generation"], 2);
    // What a third party is given is the same wherever it is asked for.
    let exported = remote(&agent, &["ledger", "export"]);
    assert_eq!((exported.exit, exported.stdout), (Some(0), site.run(&["ledger", "export"]).stdout));
}

#[test]
fn only_names_of_the_server_are_answered() {
    let site = Site::new();
    let token = site.token(&site.person);
    let server = Server::start_with(&site, &["--listen", "127.0.0.1:0", "--allow-host", "onus.example"]);
    let bearer = format!("Bearer {token}");
    let ask = |host: &str, origin: Option<&str>| {
        let mut headers = vec![("authorization", bearer.as_str()), ("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        server.try_call("GET", "/v1/ready", &headers, None).unwrap()
    };
    ask("onus.example", None).ok();
    ask("localhost:1", Some("https://onus.example")).ok();
    ask("evil.example", None).refused(403, "not_permitted");
    ask("localhost", Some("https://evil.example")).refused(403, "not_permitted");
    ask("localhost", Some("null")).refused(403, "not_permitted");
}

#[test]
fn a_server_beyond_this_machine_wants_tls() {
    let site = Site::new();
    let answer = site.run(&["serve", "--listen", "0.0.0.0:0", "--json"]);
    assert_eq!((answer.exit, answer.code()), (Some(5), "not_permitted".to_owned()));
    let server = Server::start_with(&site, &["--listen", "0.0.0.0:0", "--insecure"]);
    assert!(server.url.starts_with("http://0.0.0.0:"));
}

#[test]
fn bad_input_is_refused_with_its_reason() {
    let site = Site::new();
    let token = site.token(&site.person);
    let server = Server::start(&site);
    let post = |body: Value| server.post(&token, "/v1/tasks", body);
    post(json!({ "title": "a", "nonsense": 1 })).refused(400, "invalid_input");
    post(json!({ "title": "" })).refused(400, "invalid_input");
    post(json!({ "title": 7 })).refused(400, "invalid_input");
    post(json!({})).refused(400, "invalid_input");
    post(json!([])).refused(400, "invalid_input");
    post(json!({ "title": "a", "priority": "P9" })).refused(400, "invalid_input");
    post(json!({ "title": "a\u{0}b" })).refused(400, "invalid_input");
    post(json!({ "title": "x".repeat(2_000_000) })).refused(413, "invalid_input");
    let bearer = format!("Bearer {token}");
    let head = |path: &str, more: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {bearer}\r\nconnection: close\r\n{more}\r\n"
        )
    };
    let sent = |kind: &str, body: &str| {
        let more = format!("content-type: {kind}\r\ncontent-length: {}\r\n", body.len());
        raw(&server, format!("{}{body}", head("/v1/tasks", &more)).as_bytes())
    };
    for (kind, body, status) in [
        ("application/json", "{\"title\":", "400"),
        ("application/json", "{\"title\":\"a\",\"title\":\"b\"}", "400"),
        ("application/json", "\u{feff}{}", "400"),
        ("text/plain", "{\"title\":\"a\"}", "415"),
        ("application/x-www-form-urlencoded", "title=a", "415"),
        ("application/json; charset=utf-8", "{\"title\":\"a\"}", "201"),
    ] {
        let answer = sent(kind, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{kind} {body}: {answer}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(sent("application/json", &deep).starts_with("HTTP/1.1 400 "));
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let answer = raw(&server, head("/v1/tasks", "").replacen("POST", method, 1).as_bytes());
        assert!(
            answer.starts_with("HTTP/1.1 405 ") && answer.to_lowercase().contains("\r\nallow: "),
            "{answer}"
        );
    }
    assert!(raw(&server, b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let huge = head("/v1/tasks", &format!("x-long: {}\r\n", "y".repeat(200_000)));
    assert!(raw(&server, huge.as_bytes()).starts_with("HTTP/1.1 431 "));
    assert_eq!(site.tasks().len(), 1, "nothing of it was kept but the one good ask");
    server.get(&token, "/v1/ready").ok();
}

/// Callers that never finish what they say are let go, and meanwhile keep nobody else from being served.
#[test]
fn slow_callers_are_let_go() {
    let site = Site::new();
    let token = site.token(&site.person);
    let server = Server::start_with(&site, &["--listen", "127.0.0.1:0", "--patience", "1s"]);
    let slow: Vec<_> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(b"GET /v1/ready HTTP/1.1\r\nhost: loc").unwrap();
            stream
        })
        .collect();
    server.get(&token, "/v1/ready").ok();
    for mut stream in slow {
        stream.set_read_timeout(Some(HANG)).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    }
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{{\"title\""
    );
    assert!(raw(&server, head.as_bytes()).starts_with("HTTP/1.1 408 "));
    // Whoever signs in needs no token to be slow.
    let form =
        "POST /signin HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\nconnection: close\r\n\r\ntoken=";
    assert!(raw(&server, form.as_bytes()).starts_with("HTTP/1.1 400 "));
    assert_eq!(site.tasks().len(), 0);
}

#[test]
fn whoever_asks_too_often_is_told_to_wait_and_others_are_served() {
    let site = Site::new();
    site.agents(1);
    let (person, agent) = (site.token(&site.person), site.token("@a1"));
    let mut command =
        site.command(&["serve", "--json", "--log", "quiet", "--listen", "127.0.0.1:0", "--rate", "1"]);
    let server = Server::spawn(&mut command);
    // Several at once: however slow the machine is, they ask more often than once a second.
    let ask = || (0..50).map(|_| server.get(&agent, "/v1/ready")).find(|answer| answer.status != 200);
    let refused = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().find_map(|one| one.join().unwrap()).unwrap()
    });
    refused.refused(429, "too_many_requests");
    assert_eq!(refused.header("retry-after"), Some("1"));
    server.get(&person, "/v1/ready").ok();
}

#[test]
fn tls_is_spoken_where_there_is_a_certificate() {
    let site = Site::new();
    let token = site.token(&site.person);
    let Some((certificate, key)) = site.certificate() else { return };
    let args = ["--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
    let server = Server::start_with(&site, &args).trusting(&std::fs::read(&certificate).unwrap());
    assert!(server.url.starts_with("https://"));
    server.get(&token, "/v1/ready").ok();
    // Whoever speaks plainly is not answered, and disturbs nobody.
    let plain = raw(&server, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(!plain.starts_with("HTTP/"), "{plain}");
    server.get(&token, "/v1/ready").ok();
    let wrong = site.run(&["serve", "--tls-cert", &key, "--tls-key", &certificate, "--json"]);
    assert_eq!((wrong.exit, wrong.code()), (Some(2), "invalid_input".to_owned()));
}

/// A clone of CI has an address and a token. It compares through a server that it can trust, and shows its token to no other.
#[test]
fn consistency_is_asked_over_https() {
    let site = Site::new();
    let token = site.token(&site.person);
    let Some((certificate, key)) = site.certificate() else { return };
    let args = ["--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
    let server = Server::start_with(&site, &args);
    let clone = site.root().join("ci");
    site.git(&["clone", "--quiet", ".", clone.to_str().unwrap()]);
    let mut ask = site.command(&["consistency", "--json", "--store", &server.url]);
    ask.current_dir(&clone).env("ONUS_TOKEN", &token);
    let doubted = finish(start(&mut ask));
    assert_eq!((doubted.exit, doubted.code().as_str()), (Some(69), "store_unavailable"), "{doubted:#?}");
    let agreed = finish(start(ask.env("SSL_CERT_FILE", &certificate)));
    assert_eq!(agreed.exit, Some(0), "{agreed:#?}");
    assert!(agreed.json()["counts"]["commits"].as_i64() > Some(0), "{agreed:#?}");
}

/// Nobody talks a server down to a protocol that can be read or changed on the way.
#[test]
fn old_versions_of_tls_are_not_spoken() {
    let site = Site::new();
    let Some((certificate, key)) = site.certificate() else { return };
    let args = ["--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
    let server = Server::start_with(&site, &args);
    for (version, spoken) in [("-tls1", false), ("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)] {
        let mut client = std::process::Command::new("openssl");
        client.args(["s_client", version, "-cipher", "ALL:@SECLEVEL=0", "-connect", server.address()]);
        let said =
            client.args(["-CAfile", &certificate]).stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert_eq!(!said.contains("Cipher is (NONE)"), spoken, "{version}: {said}");
    }
}

/// A server that points elsewhere, to a place without encryption as well, is not followed: the token stays here.
#[test]
fn a_token_is_not_carried_to_where_a_server_points() {
    let site = Site::new();
    // Some are followed by asking again for something else, and some by sending the same.
    for status in ["302 Found", "303 See Other", "307 Temporary Redirect"] {
        let [near, far] = [(), ()].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let to = far.local_addr().unwrap();
        let url = format!("http://{}", near.local_addr().unwrap());
        let pointing = std::thread::spawn(move || {
            let mut asked = 0;
            for stream in near.incoming() {
                let mut stream = stream.unwrap();
                let mut line = [0; 4];
                if stream.read_exact(&mut line).is_err() || line == *b"done" {
                    return asked;
                }
                asked += 1;
                let answer = format!(
                    "HTTP/1.1 {status}\r\nlocation: http://{to}/v1/call/list\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        let mut list = site.command(&["list", "--json"]);
        list.env("ONUS_STORE", &url).env("ONUS_TOKEN", site.token(&site.person));
        let answer = crate::support::finish(crate::support::start(&mut list));
        assert!(!answer.is_ok(), "{answer:?}");
        far.set_nonblocking(true).unwrap();
        assert!(far.accept().is_err(), "the caller went where it was pointed");
        let mut done = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
        done.write_all(b"done").unwrap();
        assert!(pointing.join().unwrap() > 0, "nobody was pointed anywhere");
    }
}

/// Which of two names was meant is for nobody to guess.
#[test]
fn a_request_with_two_hosts_is_refused() {
    let site = Site::new();
    let token = site.token(&site.person);
    let server = Server::start(&site);
    for (first, second) in
        [("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")]
    {
        let request = format!(
            "GET /v1/ready HTTP/1.1\r\nhost: {first}\r\nhost: {second}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        let said = raw(&server, request.as_bytes());
        assert!(said.starts_with("HTTP/1.1 4"), "{first} and {second}: {said}");
    }
}

#[test]
fn every_answer_is_a_line_of_the_log() {
    let site = Site::new();
    let token = site.token(&site.person);
    let file = site.root().join("log");
    let mut command = site.command(&["serve", "--json", "--log", "json", "--listen", "127.0.0.1:0"]);
    let server = Server::spawn_with(&mut command, std::fs::File::create(&file).unwrap().into());
    server.add(&token, "logged");
    server.get("nonsense", "/v1/ready").refused(401, "unauthenticated");
    server.signal("TERM");
    assert!(server.wait());
    let log = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |operation: &str, message: &str| {
        let found = lines.iter().find(|line| line["operation"] == operation && line["message"] == message);
        found.unwrap_or_else(|| panic!("{operation} {message}: {log}"))
    };
    let added = line("add", "answered");
    assert_eq!((&added["status"], &added["worker"]), (&json!(201), &json!(site.person)));
    assert!(added["ms"].is_number() && added["request_id"].is_string(), "{added}");
    assert_eq!(line("ready", "answered")["code"], "unauthenticated");
    assert_eq!(line("ready", "denied")["level"], "WARN");
    assert!(!log.contains(&token), "no token is logged");
}

/// The next request that comes, answered with nothing but success: its first line and its body.
fn received(collector: &TcpListener) -> (String, Value) {
    let (stream, _) = collector.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_ascii_lowercase()),
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    reader
        .get_mut()
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        .unwrap();
    (head.swap_remove(0), serde_json::from_slice(&body).unwrap())
}

#[test]
fn traces_go_to_a_collector_where_one_is_named() {
    let site = Site::new();
    let token = site.token(&site.person);
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let server = Server::start_with(&site, &["--listen", "127.0.0.1:0", "--traces", &url]);
    let caller = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{caller}-b7ad6b7169203331-01");
    let key = "a-traced-ask";
    let headers = [("traceparent", parent.as_str()), ("idempotency-key", key)];
    server.post_with(&token, "/v1/tasks", &headers, json!({ "title": "one" })).ok();
    // Its end sends what is left.
    let (first, told) = std::thread::scope(|scope| {
        let heard = scope.spawn(|| received(&collector));
        server.signal("TERM");
        assert!(server.wait());
        heard.join().unwrap()
    });
    assert!(first.starts_with("post /v1/traces "), "{first}");
    let spans = told["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let span =
        |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{told:#}"));
    assert!(spans.iter().all(|span| span["traceId"] == caller), "{told:#}");
    let (add, write) = (span("add"), span("write"));
    assert_eq!((&add["parentSpanId"], &write["parentSpanId"]), (&json!("b7ad6b7169203331"), &add["spanId"]));
    let attributes = add["attributes"].to_string();
    for told in [key, site.person.as_str(), "201"] {
        assert!(attributes.contains(told), "{attributes}");
    }
}
