//! A temporary repository, the real `onus` binary, and what a test may ask of both.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part of this module")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail loudly"
)]

pub(crate) mod answer;
pub(crate) mod at_work;
pub(crate) mod attempt;
pub(crate) mod case;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod crowd;
pub(crate) mod events;
pub(crate) mod far;
pub(crate) mod fleet;
pub(crate) mod forge;
pub(crate) mod judge;
pub(crate) mod load;
pub(crate) mod map;
pub(crate) mod model;
pub(crate) mod network;
pub(crate) mod pair;
pub(crate) mod receiver;
pub(crate) mod rng;
pub(crate) mod server;
pub(crate) mod team;
pub(crate) mod tracker;
pub(crate) mod tree;
pub(crate) mod wrapper;

pub(crate) use answer::Answer;
pub(crate) use rng::Rng;
pub(crate) use tree::Bench;

use onus_testkit::Cluster;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than a writer's patience in the queue, and than anything takes where many programs share few processors: a call
/// that takes this long hangs.
pub(crate) const HANG: Duration = Duration::from_secs(240);

pub(crate) const ONUS: &str = env!("CARGO_BIN_EXE_onus");

/// One worker and the workstation it works at.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) handle: String,
    pub(crate) workstation: String,
}

/// A git repository in a temporary directory, with its own home and keys.
#[derive(Debug)]
pub(crate) struct Site {
    /// The server that its calls go through, where the tests run through one.
    far: OnceLock<Box<far::Far>>,
    root: TempDir,
    /// The address of its database, where the tests run on PostgreSQL.
    pub(crate) database: Option<String>,
    /// The handle that `onus init` gave the person; empty before it ran.
    pub(crate) person: String,
}

impl Site {
    /// A repository without a store.
    pub(crate) fn empty() -> Site {
        Site::at(server().map(Cluster::database))
    }

    /// The same, with its store in a database, whatever the tests run on.
    pub(crate) fn at(database: Option<String>) -> Site {
        let root = tempfile::Builder::new().prefix("onus-test-").tempdir().unwrap();
        let site = Site { far: OnceLock::new(), root, database, person: String::new() };
        for dir in ["home", "keys", "repo"] {
            std::fs::create_dir(site.root().join(dir)).unwrap();
        }
        for (path, content) in first_commit() {
            let path = site.repo().join(path);
            match content {
                None => std::fs::create_dir(path).unwrap(),
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
            }
        }
        site
    }

    /// A repository with a store, project `T` and one person.
    pub(crate) fn new() -> Site {
        Site::empty().founded()
    }

    /// The same for tests that are about git: its hooks are in place, as `init` leaves them. They cost every commit a
    /// process, which tests about other things are spared.
    pub(crate) fn guarded() -> Site {
        Site::empty().founded_with(&[])
    }

    pub(crate) fn founded(self) -> Site {
        self.founded_with(&["--no-hooks"])
    }

    fn founded_with(self, options: &[&str]) -> Site {
        let mut site = self;
        let made = site.ok(&[&["init", "--project", "T"], options].concat());
        site.person = text(&made["worker"]).to_owned();
        site
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.root().join("repo")
    }

    /// The store's address.
    pub(crate) fn store_url(&self) -> String {
        self.database.clone().unwrap_or_else(|| format!("sqlite:{}", self.store().display()))
    }

    /// The store's file, where the contract says it lies.
    pub(crate) fn store(&self) -> PathBuf {
        self.repo().join(".git/onus/onus.db")
    }

    /// Changes rows behind the program's back.
    pub(crate) fn tamper(&self, sql: &str) {
        match (&self.database, server()) {
            (Some(url), Some(server)) => drop(server.psql(url.rsplit('/').next().unwrap(), sql)),
            _ => rusqlite::Connection::open(self.store()).unwrap().execute_batch(sql).unwrap(),
        }
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let mut git = Command::new("git");
        let made = self.surroundings(&mut git).args(args).output().unwrap();
        assert!(made.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&made.stderr));
    }

    /// Nothing of the caller's environment reaches a test but the path to git.
    pub(crate) fn surroundings<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root().join("home"))
            .env("ONUS_KEY_DIR", self.root().join("keys"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("RUST_BACKTRACE", "1")
            .envs(self.database.iter().map(|url| ("ONUS_STORE", url)))
            .current_dir(self.repo())
            .stdin(Stdio::null())
    }

    /// The binary with `args`, in the repository.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut onus = Command::new(ONUS);
        self.surroundings(&mut onus).args(args);
        self.through_server(&mut onus, args);
        onus
    }

    /// Runs to the end, whatever the answer.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Answer {
        finish(start(&mut self.command(args)))
    }

    /// Runs with `--json` and demands success.
    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        let answer = self.run(&[args, &["--json"]].concat());
        assert_eq!(answer.exit, Some(0), "onus {args:?}: {answer:#?}");
        answer.json()
    }

    /// Like `ok`, by the person.
    pub(crate) fn by_person(&self, args: &[&str]) -> Value {
        self.ok(&[args, &["--as", &self.person]].concat())
    }

    /// A new task's id.
    pub(crate) fn add(&self, title: &str) -> String {
        text(&self.by_person(&["add", title])["task"]["id"]).to_owned()
    }

    /// Registers `@a1`..`@aN` with `ws-1`..`ws-N`: one workstation holds one live assignment.
    pub(crate) fn agents(&self, count: usize) -> Vec<Agent> {
        let agent = |n: usize| {
            let agent = Agent { handle: format!("@a{n}"), workstation: format!("ws-{n}") };
            self.by_person(&["worker", "add", &agent.handle, "--kind", "agent"]);
            self.by_person(&["workstation", "add", &agent.workstation, "--kind", "logical"]);
            agent
        };
        (1..=count).map(agent).collect()
    }

    /// Imports one JSON object per line from standard input.
    pub(crate) fn import(&self, lines: String) {
        let args = ["import", "--format", "jsonl", "-", "--as", &self.person, "--json"];
        let answer = self.feed(&args, lines.into_bytes());
        assert_eq!(answer.exit, Some(0), "{answer:#?}");
    }

    /// Runs with `input` on standard input.
    pub(crate) fn feed<S: AsRef<OsStr>>(&self, args: &[S], input: Vec<u8>) -> Answer {
        let mut child = start(self.command(args).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        // A call may refuse and leave before it has read everything: a broken pipe is its right.
        let feeder = std::thread::spawn(move || drop(std::io::Write::write_all(&mut stdin, &input)));
        let answer = finish(child);
        feeder.join().unwrap();
        answer
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        let shown = self.ok(&["show", id]);
        // `show` may wrap the task beside its notes and history.
        if shown["task"].is_object() { shown["task"].clone() } else { shown }
    }

    /// Every task, whatever its state, over all pages.
    pub(crate) fn tasks(&self) -> Vec<Value> {
        self.pages(&["list", "--state", "all", "--limit", "500"], "tasks")
    }

    /// Every entry of the ledger: without a place to begin behind, a page is the latest entries.
    pub(crate) fn ledger(&self) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let last = all.last().map_or(0, |entry| entry["seq"].as_i64().unwrap()).to_string();
            let page = self.ok(&["ledger", "log", "--limit", "500", "--after", &last]);
            match page["entries"].as_array().unwrap().as_slice() {
                [] => return all,
                entries => all.extend_from_slice(entries),
            }
        }
    }

    fn pages(&self, args: &[&str], name: &str) -> Vec<Value> {
        let mut all = Vec::new();
        let mut page = self.ok(args);
        loop {
            all.extend(page[name].as_array().unwrap().iter().cloned());
            let Some(cursor) = page["next"].as_str() else { return all };
            page = self.ok(&[args, &["--cursor", cursor]].concat());
        }
    }

    /// The record verifies and every row is the fold of its entries.
    pub(crate) fn assert_sound(&self) {
        for args in [&["ledger", "verify", "--json"][..], &["doctor", "--json"]] {
            let answer = self.run(args);
            assert_eq!(answer.exit, Some(0), "onus {args:?}: {answer:#?}");
        }
    }
}

/// The directories and files of a repository with one empty commit. Git makes them once for all tests of a program.
fn first_commit() -> &'static [(PathBuf, Option<Vec<u8>>)] {
    static MADE: OnceLock<Vec<(PathBuf, Option<Vec<u8>>)>> = OnceLock::new();
    MADE.get_or_init(|| {
        let root = tempfile::Builder::new().prefix("onus-first-").tempdir().unwrap();
        let site = Site { far: OnceLock::new(), root, database: None, person: String::new() };
        std::fs::create_dir(site.repo()).unwrap();
        for args in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["config", "user.name", "Ada Lovelace"],
            &["config", "user.email", "ada@example.org"],
            &["commit", "--quiet", "--allow-empty", "--message=start"],
        ] {
            site.git(args);
        }
        let mut found = vec![PathBuf::from(".git")];
        let mut made = Vec::new();
        while let Some(path) = found.pop() {
            let here = site.repo().join(&path);
            if here.is_dir() {
                found.extend(
                    std::fs::read_dir(&here).unwrap().map(|entry| path.join(entry.unwrap().file_name())),
                );
                made.push((path, None));
            } else {
                made.push((path, Some(std::fs::read(here).unwrap())));
            }
        }
        made
    })
}

/// Whether the long versions are asked for.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("ONUS_SOAK").is_some()
}

/// A server as durable as a real one, when `ONUS_TEST_STORE=postgres` asks for it: `doctor` finds fault with others.
pub(crate) fn server() -> Option<&'static Cluster> {
    let is_asked_for = std::env::var("ONUS_TEST_STORE").is_ok_and(|store| store == "postgres");
    is_asked_for.then(|| Cluster::shared_durable().expect("PostgreSQL is not installed"))
}

/// The text of a JSON string that the contract says is there.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}

pub(crate) fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end; a call that hangs is killed and fails the test.
pub(crate) fn finish(child: Child) -> Answer {
    let began = Instant::now();
    let pid = child.id();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait_with_output()));
    match end.recv_timeout(HANG) {
        Ok(output) => Answer::new(output.unwrap(), began.elapsed()),
        Err(_) => {
            Command::new("kill").args(["-9", &pid.to_string()]).spawn().unwrap().wait().unwrap();
            panic!("process {pid} gave no answer within {HANG:?}");
        }
    }
}

/// Starts every command, holds all of them before their first instruction, then lets them go at once.
///
/// Each waits for the end of one shared pipe: closing its only writer wakes all of them together.
pub(crate) fn at_once(commands: impl Iterator<Item = Command>) -> Vec<Answer> {
    let (gate, opener) = std::io::pipe().unwrap();
    let held = |command: Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "read -r _; exec \"$@\" </dev/null", "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        shell.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        if let Some(dir) = command.get_current_dir() {
            shell.current_dir(dir);
        }
        start(shell.stdin(gate.try_clone().unwrap()))
    };
    let children: Vec<Child> = commands.map(held).collect();
    // The shells need a moment to reach their `read`; one that comes late only starts late.
    std::thread::sleep(Duration::from_millis(200));
    drop(opener);
    let waiting: Vec<_> =
        children.into_iter().map(|child| std::thread::spawn(move || finish(child))).collect();
    waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
}
