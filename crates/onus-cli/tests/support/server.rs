//! The real `onus serve` on a real socket, and a small client.

use super::{Agent, HANG, Site, text};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// Kept open: a server that cannot say that it is there is not one.
    _said: BufReader<ChildStdout>,
    pub(crate) url: String,
    agent: ureq::Agent,
}

/// What a request was answered with.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn code(&self) -> &str {
        text(&self.body["code"])
    }

    pub(crate) fn ok(self) -> Value {
        assert!(matches!(self.status, 200 | 201), "{self:#?}");
        self.body
    }

    /// A refusal with the shape that every front end shows, and its status twice.
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code()), (status, code), "{self:#?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["type"], format!("/errors/{code}"));
        for field in ["title", "detail"] {
            assert!(!text(&self.body[field]).is_empty(), "{self:#?}");
        }
    }
}

impl Server {
    pub(crate) fn start(site: &Site) -> Server {
        Server::start_with(site, &["--listen", "127.0.0.1:0"])
    }

    pub(crate) fn start_with(site: &Site, args: &[&str]) -> Server {
        let usual = ["serve", "--json", "--log", "quiet", "--rate", "1000000"];
        let mut command = site.command(&[&usual[..], args].concat());
        Server::spawn(&mut command)
    }

    /// A client that trusts this certificate and no other.
    pub(crate) fn trusting(mut self, pem: &[u8]) -> Server {
        let tls = ureq::tls::TlsConfig::builder()
            .root_certs(ureq::tls::RootCerts::new_with_certs(&[
                ureq::tls::Certificate::from_pem(pem).unwrap()
            ]))
            .unversioned_rustls_crypto_provider(rustls::crypto::ring::default_provider().into());
        let agent = ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls.build());
        self.agent = agent.build().into();
        self
    }

    pub(crate) fn spawn(command: &mut Command) -> Server {
        Server::spawn_with(command, Stdio::inherit())
    }

    pub(crate) fn spawn_with(command: &mut Command, log: Stdio) -> Server {
        Server::try_spawn(command, log).expect("the server says that it is there")
    }

    /// None where it ended before it could say that it is there.
    pub(crate) fn try_spawn(command: &mut Command, log: Stdio) -> Option<Server> {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let Ok(told) = serde_json::from_str::<Value>(&line) else {
            child.wait().unwrap();
            return None;
        };
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_idle_connections_per_host(256)
            .max_idle_connections(256)
            .timeout_global(Some(HANG))
            .build();
        Some(Server { child, _said: said, url: text(&told["url"]).to_owned(), agent: agent.into() })
    }

    pub(crate) fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks; an error means that there is no answer.
    pub(crate) fn try_call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Reply, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string()).unwrap())
            }
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut answer = sent?;
        let headers = answer.headers().iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        let words = answer.body_mut().read_to_string()?;
        let body = serde_json::from_str(&words).unwrap_or(Value::String(words));
        Ok(Reply { status: answer.status().as_u16(), headers, body })
    }

    /// The most that the server ever had in memory, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }

    pub(crate) fn get(&self, token: &str, path: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        self.try_call("GET", path, &[("authorization", &bearer)], None).unwrap()
    }

    pub(crate) fn post(&self, token: &str, path: &str, body: Value) -> Reply {
        self.post_with(token, path, &[], body)
    }

    pub(crate) fn post_with(&self, token: &str, path: &str, headers: &[(&str, &str)], body: Value) -> Reply {
        self.try_post(token, path, headers, body).unwrap()
    }

    pub(crate) fn try_post(
        &self,
        token: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Result<Reply, ureq::Error> {
        let bearer = format!("Bearer {token}");
        let headers = [&[("authorization", bearer.as_str())], headers].concat();
        self.try_call("POST", path, &headers, Some(&body))
    }

    /// A new task's id.
    pub(crate) fn add(&self, token: &str, title: &str) -> String {
        let (key, body) = (key(), json!({ "title": title }));
        // A kernel whose queue is full resets connections: the key makes asking again safe.
        let ask = || self.try_post(token, "/v1/tasks", &[("idempotency-key", &key)], body.clone());
        let reply = ask().or_else(|_| ask()).or_else(|_| ask()).unwrap();
        text(&reply.ok()["task"]["id"]).to_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end; says whether it was a good one.
    pub(crate) fn wait(mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Site {
    /// A certificate for this machine and its key, as files; none where there is no openssl.
    pub(crate) fn certificate(&self) -> Option<(String, String)> {
        let file = |name: &str| self.root().join(name).to_str().unwrap().to_owned();
        let (certificate, key) = (file("cert.pem"), file("key.pem"));
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=onus \
                     -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
        let words = words.split_whitespace();
        let made = Command::new("openssl").args(words).args(["-keyout", &key, "-out", &certificate]).output();
        let made = made.ok()?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some((certificate, key))
    }

    /// A token of a worker.
    pub(crate) fn token(&self, handle: &str) -> String {
        text(&self.by_person(&["worker", "token", "add", handle])["secret"]).to_owned()
    }

    /// Agents, each with its token.
    pub(crate) fn token_bearers(&self, count: usize) -> Vec<(Agent, String)> {
        let agents = self.agents(count).into_iter();
        agents
            .map(|agent| {
                let token = self.token(&agent.handle);
                (agent, token)
            })
            .collect()
    }
}

/// A key that no other request has.
pub(crate) fn key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
