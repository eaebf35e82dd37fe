//! Identity maps in a real repository, and something real to probe.

use super::{Site, text};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub(crate) const FILE: &str = "executor-identity-map.yaml";

/// The mission's own map, word for word.
pub(crate) const SEED: &str = include_str!("../../../onus-core/tests/identity_map/seed.yaml");

/// Type, agent and workstation of each of its rules.
pub(crate) const ROUTES: [(&str, &str, &str); 4] = [
    ("backend_feature", "@agent-builder-01", "ws-backend-01"),
    ("infrastructure_change", "@agent-infra-01", "ws-infra-prod"),
    ("frontend_component", "@agent-builder-02", "ws-frontend-staging"),
    ("verification", "@agent-verifier-01", "ws-verification-01"),
];

impl Site {
    /// The seed's map, committed, with everybody it names registered.
    pub(crate) fn seeded() -> Site {
        let site = Site::new();
        site.commit_map(SEED);
        for (_, agent, workstation) in ROUTES {
            site.by_person(&["worker", "add", agent, "--kind", "agent"]);
            site.by_person(&["workstation", "add", workstation]);
        }
        site
    }

    pub(crate) fn write_map(&self, map: &str) {
        std::fs::write(self.repo().join(FILE), map).unwrap();
    }

    pub(crate) fn commit_map(&self, map: &str) {
        self.write_map(map);
        self.git(&["add", FILE]);
        self.git(&["commit", "--quiet", "--message=routing"]);
    }

    pub(crate) fn add_of_type(&self, task_type: &str) -> String {
        let added = self.by_person(&["add", &format!("a {task_type}"), "--type", task_type]);
        text(&added["task"]["id"]).to_owned()
    }
}

/// The texts of one field of a list of objects.
pub(crate) fn field<'v>(list: &'v Value, name: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().map(|one| text(&one[name])).collect()
}

/// Answers every HTTP request: 200 while it is well, 503 while it is not.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) is_well: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_well, is_over) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let (well, over) = (Arc::clone(&is_well), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let state = if well.load(Ordering::SeqCst) { "200 OK" } else { "503 Unwell" };
                // A probe that only connects asks for nothing.
                let _ = stream.read(&mut [0; 1024]);
                let _ = write!(stream, "HTTP/1.1 {state}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        Server { port, is_well, is_over, thread: Some(thread) }
    }

    pub(crate) fn http(&self) -> String {
        format!("http:http://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(std::net::TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
