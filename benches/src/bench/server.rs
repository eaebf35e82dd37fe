//! `onus serve` as a process of its own, and callers who speak HTTP to it.

use crate::measure::Outcome;
use crate::place::{Place, agent, workstation};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// `onus serve`, ended when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    /// Serves the place's own store, or another one; nobody is told to ask less often.
    pub(crate) fn start(place: &Place, store: Option<&str>) -> Outcome<Server> {
        Server::start_at(place, store, "1000000")
    }

    /// At the rate that each caller may ask at; the usual one where none is named.
    pub(crate) fn start_at(place: &Place, store: Option<&str>, rate: &str) -> Outcome<Server> {
        let mut serve = place.onus(&["serve", "--listen", "127.0.0.1:0", "--log", "quiet", "--json"]);
        if !rate.is_empty() {
            serve.args(["--rate", rate]);
        }
        if let Some(store) = store {
            serve.args(["--store", store]);
        }
        let mut child = serve.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line)?;
        let address = told["url"].as_str().unwrap_or_default().trim_start_matches("http://").to_owned();
        Ok(Server { child, address })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the process has in memory, in megabytes.
    pub(crate) fn resident(&self) -> Outcome<f64> {
        self.memory("VmRSS:")
    }

    /// The most that it ever had.
    pub(crate) fn peak(&self) -> Outcome<f64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> Outcome<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let kilobytes: f64 = line.split_whitespace().next().unwrap_or_default().parse()?;
        Ok(kilobytes / 1_024.0)
    }
}

/// A token's text, for a worker of the place; `store` is where the server looks for it.
pub(crate) fn token(place: &Place, worker: &str, store: Option<&str>) -> Outcome<String> {
    let mut words = vec!["worker", "token", "add", worker, "--json"];
    words.extend(store.map(|store| ["--store", store]).into_iter().flatten());
    let issued: Value = serde_json::from_str(&place.by_person(&words)?)?;
    Ok(issued["secret"].as_str().ok_or("no token was issued")?.to_owned())
}

/// One caller with a connection that stays open.
pub(crate) struct Caller {
    number: usize,
    token: String,
    stream: tokio::io::BufReader<TcpStream>,
}

impl Caller {
    pub(crate) async fn connect(number: usize, address: &str, token: &str) -> Outcome<Caller> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Caller { number, token: token.to_owned(), stream: tokio::io::BufReader::new(stream) })
    }

    /// The answer's status and body.
    async fn post(&mut self, path: &str, body: &Value) -> Outcome<(u16, Value)> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let (mut line, mut status, mut length) = (String::new(), 0, 0);
        loop {
            line.clear();
            self.stream.read_line(&mut line).await?;
            match line.trim_end().split_once(' ') {
                None if line.trim_end().is_empty() => break,
                Some(("HTTP/1.1", rest)) => status = rest.get(..3).unwrap_or_default().parse()?,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length:") => {
                    length = value.trim().parse()?;
                }
                _ => {}
            }
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await?;
        Ok((status, serde_json::from_slice(&bytes)?))
    }

    /// Claims the next task: what the server said, unless nothing is ready.
    async fn claim(&mut self) -> Outcome<Option<Value>> {
        let place = json!({ "workstation": workstation(self.number) });
        match self.post("/v1/claims", &place).await? {
            (200, claimed) => Ok(Some(claimed)),
            (404, _) => Ok(None),
            (_, said) => Err(format!("{}: {said}", agent(self.number)).into()),
        }
    }

    async fn complete(&mut self, claimed: &Value) -> Outcome<()> {
        let task = claimed["task"]["id"].as_str().unwrap_or_default();
        let done = json!({ "lease": claimed["lease"]["token"], "resolution": "done" });
        match self.post(&format!("/v1/tasks/{task}/complete"), &done).await? {
            (200, _) => Ok(()),
            (_, said) => Err(format!("{task}: {said}").into()),
        }
    }

    /// Claims the next task and completes it, until so many are done or nothing is ready. How long each claim took.
    pub(crate) async fn drain(&mut self, limit: usize) -> Outcome<Vec<Duration>> {
        let mut waits = Vec::new();
        while waits.len() < limit {
            let asked = Instant::now();
            let Some(claimed) = self.claim().await? else { break };
            waits.push(asked.elapsed());
            self.complete(&claimed).await?;
        }
        Ok(waits)
    }
}

/// Tasks that callers claimed and completed, and how long each claim took.
pub(crate) struct Drained {
    took: Duration,
    waits: Vec<Duration>,
}

impl Drained {
    pub(crate) fn tasks(&self) -> usize {
        self.waits.len()
    }

    pub(crate) fn tasks_per_second(&self) -> f64 {
        self.waits.len() as f64 / self.took.as_secs_f64()
    }

    /// The wait for a claim that so many of a hundred stay below, in milliseconds.
    pub(crate) fn wait(&self, percent: usize) -> f64 {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let at = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
        waits.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3
    }
}

/// As many callers as there are tokens, spread over the servers.
async fn connected(servers: &[&Server], tokens: &[String]) -> Outcome<Vec<Caller>> {
    let mut callers = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        callers.push(Caller::connect(n + 1, &servers[n % servers.len()].address, token).await?);
    }
    Ok(callers)
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Callers who are busy until each of them has done its share.
pub(crate) fn drain(servers: &[&Server], tokens: &[String], share: usize) -> Outcome<Drained> {
    runtime()?.block_on(async {
        let mut callers = connected(servers, tokens).await?;
        let began = Instant::now();
        let draining = callers.iter_mut().map(|caller| caller.drain(share));
        let waits = try_join_all(draining).await?;
        Ok(Drained { took: began.elapsed(), waits: waits.into_iter().flatten().collect() })
    })
}

/// Claims per second of callers who all claim at once, so many times; what they claimed is completed, without being
/// measured.
pub(crate) fn claims(server: &Server, tokens: &[String], rounds: usize) -> Outcome<f64> {
    runtime()?.block_on(async {
        let mut callers = connected(&[server], tokens).await?;
        let (mut took, mut count) = (Duration::ZERO, 0);
        for _ in 0..rounds {
            let began = Instant::now();
            let claimed = try_join_all(callers.iter_mut().map(Caller::claim)).await?;
            took += began.elapsed();
            let held = callers.iter_mut().zip(&claimed);
            let held = held.filter_map(|(caller, claimed)| Some(caller.complete(claimed.as_ref()?)));
            count += try_join_all(held).await?.len();
        }
        Ok(count as f64 / took.as_secs_f64())
    })
}
