//! Two servers on one store, either of which may be gone at any moment.

use super::Site;
use super::server::{Reply, Server, key};
use serde_json::Value;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than any fault that a test makes: a caller that has no answer by then never gets one.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Pair<'s> {
    site: &'s Site,
    slots: [Mutex<Arc<Server>>; 2],
    repeated: AtomicUsize,
}

impl<'s> Pair<'s> {
    pub(crate) fn start(site: &'s Site) -> Pair<'s> {
        Pair::of(site, [Pair::server(site), Pair::server(site)])
    }

    pub(crate) fn of(site: &'s Site, servers: [Server; 2]) -> Pair<'s> {
        let slots = servers.map(|server| Mutex::new(Arc::new(server)));
        Pair { site, slots, repeated: AtomicUsize::new(0) }
    }

    /// What a server says while its database is gone fills screens and tells nothing.
    fn server(site: &Site) -> Server {
        let words = ["serve", "--json", "--log", "quiet", "--rate", "1000000", "--listen", "127.0.0.1:0"];
        Server::spawn_with(&mut site.command(&words), Stdio::null())
    }

    pub(crate) fn any(&self, n: usize) -> Arc<Server> {
        Arc::clone(&self.slots[n % 2].lock().unwrap())
    }

    /// Ends one by a signal, and starts another in its place.
    pub(crate) fn replace(&self, n: usize, signal: &str) {
        self.any(n).signal(signal);
        let next = Arc::new(Pair::server(self.site));
        *self.slots[n % 2].lock().unwrap() = next;
    }

    /// Asks until there is an answer, one server after the other: the key makes the repetition safe.
    pub(crate) fn ask(
        &self,
        mut n: usize,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        let (bearer, key) = (format!("Bearer {token}"), key());
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", key.as_str())];
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "{method} {path}: nobody answers");
            match self.any(n).try_call(method, path, &headers, body) {
                Ok(reply) if reply.status != 503 => return reply,
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
            self.repeated.fetch_add(1, Ordering::Relaxed);
            n += 1;
        }
    }

    /// How often nobody knew, or nobody could serve, and the question was asked again.
    pub(crate) fn repeated(&self) -> usize {
        self.repeated.load(Ordering::Relaxed)
    }
}
