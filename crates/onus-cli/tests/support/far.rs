//! The same calls through a server: `ONUS_TEST_STORE=server` runs a test's commands as remote ones, each with the token
//! of whoever it is made as.

use super::server::Server;
use super::{Site, finish, start, text};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// What is done where the store is, or has no store at all.
const NEAR: &[&str] = &[
    "completions",
    "demo",
    "doctor",
    "hook",
    "init",
    "man",
    "mcp",
    "route",
    "serve",
    "setup",
    "validate",
    "--version",
    "--help",
];

/// What anybody may ask. Other calls without a name are refused as nobody's, which a token's bearer is not.
const ANONYMOUS: &[&str] =
    &["ledger", "list", "ready", "session", "show", "stale", "status", "worker", "workstation"];

#[derive(Debug)]
pub(crate) struct Far {
    server: Server,
    /// By handle; none where nobody of that name can have one.
    tokens: Mutex<BTreeMap<String, Option<String>>>,
}

fn is_asked_for() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| std::env::var("ONUS_TEST_STORE").is_ok_and(|store| store == "server"))
}

impl Site {
    /// Points a command at the server, where the tests run through one and the command can.
    pub(super) fn through_server<S: AsRef<OsStr>>(&self, onus: &mut Command, args: &[S]) {
        let words: Vec<&str> = args.iter().filter_map(|arg| arg.as_ref().to_str()).collect();
        let near = words.first().is_none_or(|verb| {
            NEAR.contains(verb) || (!words.contains(&"--as") && !ANONYMOUS.contains(verb))
        });
        if near || !is_asked_for() || self.person.is_empty() || words.contains(&"--store") {
            return;
        }
        let who = words.iter().position(|word| *word == "--as").and_then(|at| words.get(at + 1));
        let who = who.copied().unwrap_or(&self.person);
        let far =
            self.far.get_or_init(|| Box::new(Far { server: Server::start(self), tokens: Mutex::default() }));
        let token =
            far.tokens.lock().unwrap().entry(who.to_owned()).or_insert_with(|| self.issue(who)).clone();
        if let Some(token) = token {
            onus.env("ONUS_STORE", &far.server.url).env("ONUS_TOKEN", token);
        }
    }

    fn issue(&self, who: &str) -> Option<String> {
        let mut onus = Command::new(super::ONUS);
        let args = ["worker", "token", "add", who, "--as", &self.person, "--json"];
        let answer = finish(start(self.surroundings(&mut onus).args(args)));
        (answer.exit == Some(0)).then(|| text(&answer.json()["secret"]).to_owned())
    }
}
