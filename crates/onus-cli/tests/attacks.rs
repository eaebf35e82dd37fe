//! What somebody tries who has a backup or a file: none of it gives them more than they have.

use crate::support::map::{ROUTES, SEED};
use crate::support::server::Server;
use crate::support::{Site, finish, start};
use serde_json::{Value, json};
use std::fs;

/// Every door with an example of its request.
const DOORS: &str = include_str!("../../../contract/doors.txt");

fn mcp(server: &Server, token: &str, tool: &str, arguments: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments } });
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
    server.post_with(token, "/mcp", &headers, body).body["result"].clone()
}

/// A backup that was put back grants nothing, whoever asks by which way, until a person has said so.
#[test]
fn a_restored_backup_grants_nothing_through_any_door() {
    let site = Site::new();
    if std::env::var_os("ONUS_TEST_STORE").is_some() {
        return;
    }
    let bearers = site.token_bearers(3);
    for n in 0..4 {
        site.add(&format!("task {n}"));
    }
    let settle = || {
        let file = rusqlite::Connection::open(site.store()).unwrap();
        file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    };
    settle();
    let backup = fs::read(site.store()).unwrap();
    let (first, token) = &bearers[0];
    site.ok(&["claim", "T-1", "--as", &first.handle, "--workstation", &first.workstation]);
    site.by_person(&["ledger", "checkpoint"]);
    settle();
    fs::write(site.store(), backup).unwrap();

    let server = Server::start(&site);
    let behind = "store_behind_anchor";
    let claim = json!({ "workstation": first.workstation });
    assert_eq!(server.post(token, "/v1/tasks/T-1/claim", claim.clone()).code(), behind);
    assert_eq!(server.post(token, "/v1/claims", claim).code(), behind);
    let told = mcp(&server, token, "claim", json!({ "task": "T-2", "workstation": first.workstation }));
    assert_eq!(told["structuredContent"]["error"]["code"], behind, "{told}");
    let mut far = site.command(&["claim", "T-3", "--workstation", &first.workstation, "--json"]);
    let far = finish(start(far.env("ONUS_STORE", &server.url).env("ONUS_TOKEN", token)));
    assert_eq!(far.code(), behind);
    let near =
        site.run(&["claim", "T-4", "--as", &first.handle, "--workstation", &first.workstation, "--json"]);
    assert_eq!(near.code(), behind);
    for task in site.tasks() {
        assert_eq!(task["assignment"], Value::Null, "{task}");
    }
}

/// Documents that are small and mean much: each is refused at once, whatever reads it.
#[test]
fn bombs_of_yaml_are_refused_by_whatever_reads_them() {
    let site = Site::new();
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let last = format!("*a{}", n - 1);
        laughs.push_str(&format!("a{n}: &a{n} [{}]\n", [last.as_str(); 9].join(", ")));
    }
    let deep = "[".repeat(100_000);
    let merged = "x: &x {<<: *x, a: 1}\n".to_owned();
    for bomb in [&laughs, &deep, &merged] {
        let map = site.repo().join("executor-identity-map.yaml");
        fs::write(&map, bomb).unwrap();
        site.git(&["add", "."]);
        site.git(&["commit", "--quiet", "--message=map"]);
        let checked = site.run(&["route", "check", "--json"]);
        assert_eq!((checked.exit, checked.code().as_str()), (Some(2), "map_invalid"), "{checked:?}");
        let queue = site.root().join("queue.yaml");
        fs::write(&queue, bomb).unwrap();
        let path = queue.to_str().unwrap();
        let imported = site.run(&["import", "--format", "queue", path, "--as", &site.person, "--json"]);
        assert_eq!(imported.exit, Some(2), "{imported:?}");
        fs::write(site.repo().join("onus.yaml"), bomb).unwrap();
        let listed = site.run(&["list", "--json"]);
        assert_eq!(listed.exit, Some(2), "{listed:?}");
        fs::remove_file(site.repo().join("onus.yaml")).unwrap();
    }
}

/// Another key in the place of the one that signs: it signs nothing, and a ledger that names it instead is found out.
#[test]
fn a_swapped_key_signs_nothing_and_is_noticed() {
    let [site, other] = [(), ()].map(|()| Site::new());
    if std::env::var_os("ONUS_TEST_STORE").is_some() {
        return;
    }
    let key = |site: &Site| {
        let files = fs::read_dir(site.root().join("keys")).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|path| path.is_file()).unwrap()
    };
    site.add("signed");
    site.by_person(&["ledger", "checkpoint"]);
    let swapped = fs::read(key(&other)).unwrap();
    fs::write(key(&site), &swapped).unwrap();
    site.add("not signed");
    let sign = ["ledger", "checkpoint", "--as", &site.person, "--json"];
    assert_eq!(site.run(&sign).code(), "store_unavailable");
    assert!(!site.run(&["doctor", "--json"]).is_ok(), "doctor says that it is another one's key");
    assert!(site.run(&["ledger", "verify", "--json"]).is_ok(), "what was signed before still holds");
    // The row may be changed to fit: who founded the workspace said which key it is.
    let public = |site: &Site| {
        let db = rusqlite::Connection::open(site.store()).unwrap();
        db.query_row("SELECT public_key FROM workspace", [], |row| row.get::<_, String>(0)).unwrap()
    };
    site.tamper(&format!("UPDATE workspace SET public_key = '{}'", public(&other)));
    assert_eq!(site.run(&["ledger", "verify", "--json"]).code(), "ledger_broken");
}

/// The doors that need a map, a key or a finished milestone (in contract/doors.txt nobody succeeds there): with all of it they
/// open for whom they should, and for nobody else.
#[test]
fn what_needs_a_map_a_key_or_a_finished_milestone_opens_for_a_person() {
    let site = Site::new();
    let bearers = site.token_bearers(2);
    let issue = |more: &[&str]| {
        let args = [&["worker", "token", "add"], more].concat();
        site.by_person(&args)["secret"].as_str().unwrap().to_owned()
    };
    let done = site.by_person(&["add", "done", "--sprint", "s1", "--check", "test -d ."]);
    let task = done["task"]["id"].as_str().unwrap();
    let agent = &bearers[0].0;
    site.ok(&["claim", task, "--as", &agent.handle, "--workstation", &agent.workstation]);
    site.ok(&["check", task, "--as", &agent.handle]);
    site.ok(&["complete", task, "--as", &agent.handle, "--resolution", "done"]);
    site.by_person(&["milestone", "add", "m1", "--sprint", "s1", "--title", "One"]);
    site.by_person(&["milestone", "verify", "m1"]);
    for (_, agent, workstation) in ROUTES {
        site.by_person(&["worker", "add", agent, "--kind", "agent"]);
        site.by_person(&["workstation", "add", workstation]);
    }
    site.commit_map(SEED);
    site.by_person(&["route", "check"]);
    let tokens = [
        issue(&["--kind", "service"]),
        issue(&["--kind", "service", &bearers[0].0.handle]),
        bearers[0].1.clone(),
        bearers[1].1.clone(),
        site.token(&site.person),
    ];
    let server = Server::start(&site);
    let no = "human_required";
    let person = [no, no, no, no, "ok"];
    for (call, expected) in [
        ("route", ["ok"; 5]),
        ("plan", person),
        ("close_milestone", person),
        ("checkpoint", person),
        ("raise_generation", person),
    ] {
        let line = DOORS.lines().find_map(|line| line.strip_prefix(&format!("call {call} | "))).unwrap();
        let arguments = line.split(" | ").next().unwrap().replace("\"m2\"", "\"m1\"");
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        let told: Vec<String> = tokens
            .iter()
            .map(|token| {
                let reply = server.post(token, &format!("/v1/call/{call}"), arguments.clone());
                if reply.status == 200 { "ok".to_owned() } else { reply.code().to_owned() }
            })
            .collect();
        assert_eq!(told, expected, "{call}");
    }
    drop(server);
    site.assert_sound();
}

/// A mirror speaks to the address of the settings and to no other: not to a machine's own credentials, whatever name or number
/// stands for them, and not to where an answer points.
#[test]
fn a_mirror_is_sent_nowhere_else() {
    let site = Site::new();
    fs::write(site.repo().join("key"), "0123456789abcdef0123456789abcdef\n").unwrap();
    let set = |url: &str| {
        let settings = format!(
            "mirrors:\n  redmine:\n    url: {url}\n    insecure: true\n    key_file: key\n    project: p\n    tracker: Feature\n    \
             fields: {{agent: A, workstation: W, task: T}}\n    \
             statuses: {{open: New, in_progress: New, blocked: New, complete: New, dropped: New}}\n    \
             activities: {{default: Development}}\n"
        );
        fs::write(site.repo().join("onus.yaml"), settings).unwrap();
    };
    for host in ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "2852039166"]
    {
        set(&format!("http://{host}/latest/meta-data"));
        let said = site.run(&["mirror", "check", "redmine", "--as", &site.person, "--json"]);
        assert_ne!(said.exit, Some(0), "{host}: {said:#?}");
        let words = format!("{}{}", said.stdout, said.stderr);
        assert!(words.contains("link-local") || words.contains("invalid_input"), "{host}: {words}");
        assert!(!words.contains("0123456789abcdef"), "{words}");
    }
    for scheme in ["file:///etc/passwd", "gopher://127.0.0.1/", "http://user:word@127.0.0.1/"] {
        set(scheme);
        let said = site.run(&["mirror", "check", "redmine", "--as", &site.person, "--json"]);
        assert_eq!(said.code(), "invalid_input", "{scheme}: {said:#?}");
    }
    let [near, far] = [(), ()].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let (own, to) = (near.local_addr().unwrap(), far.local_addr().unwrap());
    let pointing = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let mut asked = 0;
        for stream in near.incoming() {
            let mut stream = stream.unwrap();
            let mut begin = [0; 4];
            if stream.read_exact(&mut begin).is_err() || begin == *b"done" {
                return asked;
            }
            asked += 1;
            let answer = format!(
                "HTTP/1.1 302 Found\r\nlocation: http://{to}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            drop(stream.write_all(answer.as_bytes()));
            drop(stream.shutdown(std::net::Shutdown::Write));
            drop(stream.read_to_end(&mut Vec::new()));
        }
        asked
    });
    set(&format!("http://{own}"));
    let said = site.run(&["mirror", "check", "redmine", "--as", &site.person, "--json"]);
    assert_ne!(said.exit, Some(0), "{said:#?}");
    std::io::Write::write_all(&mut std::net::TcpStream::connect(own).unwrap(), b"done").unwrap();
    assert!(pointing.join().unwrap() > 0);
    far.set_nonblocking(true).unwrap();
    assert!(far.accept().is_err(), "nobody came to where it pointed");
}
