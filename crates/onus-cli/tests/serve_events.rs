//! Everybody who listens sees every change, in order, none twice: over a reconnect and over another server.

use crate::support::Site;
use crate::support::server::Server;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// What all listeners know: where the server is now, and how far they have to listen.
struct Hall {
    /// The port; it changes when the server does.
    port: AtomicU64,
    token: String,
    /// The last event that there will be; none yet while zero.
    last: AtomicU64,
    /// Listeners leave and come back while this holds.
    restless: AtomicBool,
}

/// Listens from the beginning until the last event, leaving now and then. Gives the ids in the order they came.
async fn listen(hall: Arc<Hall>, who: u64) -> Vec<u64> {
    let (mut seen, mut line): (Vec<u64>, String) = (vec![], String::new());
    'connect: loop {
        let port = hall.port.load(Ordering::SeqCst);
        let Ok(stream) = TcpStream::connect(("127.0.0.1", port as u16)).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (read, mut write) = stream.into_split();
        let after = seen.last().copied().unwrap_or(0);
        let head = format!(
            "GET /v1/events?after=0 HTTP/1.1\r\nhost: localhost\r\nlast-event-id: {after}\r\nauthorization: Bearer {}\r\n\r\n",
            hall.token
        );
        if write.write_all(head.as_bytes()).await.is_err() {
            continue;
        }
        let mut lines = BufReader::new(read);
        let mut heard = 0;
        loop {
            line.clear();
            let end = hall.last.load(Ordering::SeqCst);
            if end > 0 && seen.last() == Some(&end) {
                return seen;
            }
            let next = tokio::time::timeout(Duration::from_millis(500), lines.read_line(&mut line)).await;
            match next {
                Err(_) => continue,
                Ok(Ok(0) | Err(_)) => continue 'connect,
                Ok(Ok(_)) => {}
            }
            if let Some(id) = line.strip_prefix("id: ") {
                seen.push(id.trim().parse().unwrap());
                heard += 1;
                if hall.restless.load(Ordering::SeqCst) && heard == 5 + who % 17 {
                    continue 'connect;
                }
            }
        }
    }
}

#[test]
fn five_hundred_listeners_see_every_change_once_and_in_order() {
    const LISTENERS: u64 = 500;
    let site = Site::new();
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let port = |server: &Server| server.address().rsplit(':').next().unwrap().parse::<u64>().unwrap();
    let hall = Arc::new(Hall {
        port: AtomicU64::new(port(&server)),
        token: person.clone(),
        last: AtomicU64::new(0),
        restless: AtomicBool::new(true),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listeners: Vec<_> = (0..LISTENERS).map(|who| runtime.spawn(listen(Arc::clone(&hall), who))).collect();

    for n in 0..30 {
        server.add(&person, &format!("first {n}"));
    }
    hall.restless.store(false, Ordering::SeqCst);
    for n in 0..30 {
        server.add(&person, &format!("second {n}"));
    }
    // Another process writes beside the server: its changes are told as well.
    site.add("by the command line");
    server.signal("TERM");
    assert!(server.wait());
    site.add("while there is no server");
    let server = Server::start(&site);
    hall.port.store(port(&server), Ordering::SeqCst);
    for n in 0..30 {
        server.add(&person, &format!("third {n}"));
    }
    let newest = server.get(&person, "/v1/ledger?limit=1").ok()["entries"][0]["seq"].as_u64().unwrap();
    hall.last.store(newest, Ordering::SeqCst);

    let expected: Vec<u64> = (1..=newest).collect();
    runtime.block_on(async {
        for (who, listener) in listeners.into_iter().enumerate() {
            let heard = tokio::time::timeout(Duration::from_secs(120), listener).await;
            let heard = heard.unwrap_or_else(|_| panic!("listener {who} did not hear the end")).unwrap();
            assert!(heard == expected, "listener {who}: {heard:?}");
        }
    });
}

#[test]
fn an_event_tells_what_happened() {
    let site = Site::new();
    let agents = site.token_bearers(1);
    let person = site.token(&site.person);
    let server = Server::start(&site);
    let task = server.add(&person, "watched");
    let body = json!({ "workstation": "ws-1" });
    server.post(&agents[0].1, &format!("/v1/tasks/{task}/claim"), body).ok();
    let ledger = server.get(&person, "/v1/ledger?limit=1").ok()["entries"][0].clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let data = runtime.block_on(async {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let (read, mut write) = stream.into_split();
        let after = ledger["seq"].as_i64().unwrap() - 1;
        let head = format!("GET /v1/events?after={after} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {person}\r\n\r\n");
        write.write_all(head.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(read).lines();
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str::<serde_json::Value>(data).unwrap();
            }
        }
    });
    assert_eq!(
        (&data["state"], &data["verb"], &data["task"]),
        (&json!("in_progress"), &json!("claimed"), &json!(task))
    );
    assert_eq!((&data["seq"], &data["hash"]), (&ledger["seq"], &ledger["hash"]));
    for bad in ["/v1/events?after=-1", "/v1/events?after=x", "/v1/events?nonsense=1"] {
        server.get(&person, bad).refused(400, "invalid_input");
    }
    server.get("nobody", "/v1/events").refused(401, "unauthenticated");
}
