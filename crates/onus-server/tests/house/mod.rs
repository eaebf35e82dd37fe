//! A server without its sockets, over a store with a person, agents, services, and a task that one of them holds.

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use onus_app::idempotent_admin::Asker;
use onus_app::registry::Founding;
use onus_app::submit::Target;
use onus_app::{Onus, Sight};
use onus_core::command::{Command, Envelope, Warrant, WhileBlocked};
use onus_core::event::{MilestoneAdded, WorkerAdded, WorkstationAdded};
use onus_core::evidence::Proof;
use onus_core::handoff::{Standing, Words};
use onus_core::id::Handle;
use onus_core::registry::token::TokenOrder;
use onus_core::settings::Settings;
use onus_core::task::{Blocker, Spec};
use onus_core::text::Text;
use onus_core::time::Millis;
use onus_core::token::TokenKind;
use onus_core::worker::Kind;
use onus_server::store::{Open, Store};
use onus_server::{Config, Service};
use onus_store::location::Location;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) const HOST: &str = "127.0.0.1:7420";

/// A store to begin with; every server works on a copy of it.
pub(crate) struct Founded {
    directory: TempDir,
    /// Secrets by the name of the kind of token.
    pub(crate) tokens: BTreeMap<&'static str, String>,
    /// Words that stand for something that only this store has, such as `$LEASE`.
    pub(crate) words: Vec<(&'static str, String)>,
}

pub(crate) struct House {
    pub(crate) service: Service,
    pub(crate) path: PathBuf,
    _directory: TempDir,
}

pub(crate) fn open(path: &Path) -> Store {
    let store = Location::File(path.to_owned()).open(onus_host::clock::now).unwrap();
    let place = onus_host::repository::find(path.parent().unwrap()).unwrap();
    Onus {
        store,
        settings: Settings::default(),
        path: path.to_owned(),
        place,
        sight: Sight::Store,
        bearer: None,
    }
}

fn handle(text: &str) -> Handle {
    text.parse().unwrap()
}

fn worker(text: &str, kind: Kind) -> WorkerAdded {
    WorkerAdded { handle: handle(text), kind, tier: None, role: None, tz: "UTC".into() }
}

/// A store with one person in it.
fn found(path: &Path) -> Store {
    drop(Location::File(path.to_owned()).create(onus_host::clock::now).unwrap());
    let mut store = open(path);
    let person = worker("@ada", Kind::Human);
    let founding = Founding { project: None, default_project: "T".parse().unwrap(), person, checkout: None };
    store.init(&founding, |_| Ok("00".repeat(32))).unwrap();
    store
}

fn order(worker: &str, kind: TokenKind) -> TokenOrder {
    let worker = (!worker.is_empty()).then(|| handle(worker));
    TokenOrder { kind: Some(kind), worker, ..TokenOrder::default() }
}

pub(crate) fn submit(
    store: &mut Store,
    by: &str,
    task: Option<&str>,
    request: &str,
    command: Command,
) -> String {
    submit_with(store, by, task, request, None, command)
}

fn submit_with(
    store: &mut Store,
    by: &str,
    task: Option<&str>,
    request: &str,
    lease: Option<&str>,
    command: Command,
) -> String {
    let envelope = Envelope {
        request: request.parse().unwrap(),
        actor: Some(handle(by)),
        token: lease.map(|lease| lease.parse().unwrap()),
        task: task.map(|task| task.parse().unwrap()),
        project: None,
        base: None,
        command,
    };
    let receipt = store.submit(&envelope, &Target::Named).unwrap();
    receipt.token.map(|token| token.to_string()).unwrap_or_default()
}

fn claim(place: &str) -> Command {
    let workstation = Some(place.parse().unwrap());
    Command::Claim {
        workstation,
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    }
}

impl Founded {
    pub(crate) fn new() -> Founded {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (mut store, mut another) = (found(&root.join("onus.db")), found(&root.join("another.db")));
        let ada = handle("@ada");
        let by = Asker::from(Some(&ada));
        for agent in ["@bot", "@other", "@form", "@idle"] {
            store.add_worker(by, &worker(agent, Kind::Agent)).unwrap();
        }
        store.pause_worker(by, &handle("@idle"), Some("rests")).unwrap();
        for place in ["ws-1", "ws-2", "ws-3", "ws-4", "ws-5"] {
            store.add_workstation(by, &WorkstationAdded::logical(place.parse().unwrap())).unwrap();
        }
        store.quarantine(by, &"ws-3".parse().unwrap(), Some("smoke")).unwrap();
        for (n, title) in
            ["free", "held", "finished", "waits for the first", "waits for rain"].into_iter().enumerate()
        {
            let spec = Box::new(Spec { kind: "chore".into(), ..Spec::titled(title) });
            let depends_on = if n == 3 { ["T-1".parse().unwrap()].into() } else { Default::default() };
            let add = Command::Add { spec, depends_on, archived: None, arrival: None };
            submit(&mut store, "@ada", None, &format!("add-{n}"), add);
        }
        let lease = submit(&mut store, "@bot", Some("T-2"), "claim", claim("ws-1"));
        submit(&mut store, "@ada", Some("T-3"), "claim-3", claim("ws-4"));
        let resolution = Some(Text::new("done".into()));
        let warrant = Warrant::Forced { reason: Some("as an example".into()) };
        let complete = Command::Complete { resolution, root_cause: None, warrant, proof: Proof::default() };
        submit(&mut store, "@ada", Some("T-3"), "complete-3", complete);
        for milestone in [milestone("m1", "T-1"), milestone("m2", "T-3")] {
            store.add_milestone(by, &milestone).unwrap();
        }
        let waits = waiting(&mut store);

        let mut issue = |order: &TokenOrder| store.issue_token(by, order).unwrap();
        let (old, spare) = (issue(&order("@bot", TokenKind::Agent)), issue(&order("@bot", TokenKind::Agent)));
        let soon = TokenOrder { expires_in: Some(Millis(1)), ..order("@ada", TokenKind::Person) };
        let tokens = [
            ("read", issue(&order("", TokenKind::Service)).secret),
            ("service", issue(&order("@form", TokenKind::Service)).secret),
            ("agent", issue(&order("@bot", TokenKind::Agent)).secret),
            ("other", issue(&order("@other", TokenKind::Agent)).secret),
            ("person", issue(&order("@ada", TokenKind::Person)).secret),
            ("revoked", old.secret.clone()),
            ("expired", issue(&soon).secret),
            ("link", issue(&TokenOrder::link(ada.clone())).secret),
            ("push", issue(&TokenOrder::push(ada.clone())).secret),
            ("another", another.issue_token(by, &order("@ada", TokenKind::Person)).unwrap().secret),
        ];
        store.revoke_token(by, &old.token.id, None).unwrap();
        let tokens = BTreeMap::from(tokens);
        let session = store.sessions(None, Some(&handle("@bot")), 1).unwrap().sessions[0].id;
        let words = vec![
            ("$LEASE", lease),
            ("$PUSH", tokens["push"].clone()),
            ("$WAITS", waits),
            ("$SPARE", spare.token.id.to_string()),
            ("\"$SESSION\"", session.to_string()),
            ("$SESSION", session.to_string()),
        ];
        drop((store, another));
        std::thread::sleep(std::time::Duration::from_millis(5));
        Founded { directory, tokens, words }
    }

    /// No answer tells a caller what opens the doors of another one.
    pub(crate) fn assert_keeps_secrets(&self, caller: &str, door: &str, answer: &[u8]) {
        let said = String::from_utf8_lossy(answer);
        for lease in self.leases() {
            assert!(
                caller == "agent" || !said.contains(&lease),
                "{door} tells {caller} another one's lease: {said}"
            );
        }
        let secrets = self.tokens.iter().filter(|(name, _)| **name != caller);
        for (name, secret) in secrets {
            assert!(!said.contains(secret.as_str()), "{door} tells {caller} the token of {name}: {said}");
        }
    }

    /// What is secret of the leases that @bot holds.
    pub(crate) fn leases(&self) -> Vec<String> {
        ["$LEASE", "$WAITS"].iter().map(|word| self.filled(word).rsplit('.').next().unwrap().into()).collect()
    }

    /// A server of its own, over a copy of the store.
    pub(crate) fn serve(&self) -> House {
        self.serve_changed("")
    }

    /// The same after somebody changed the copy behind everybody's back.
    pub(crate) fn serve_changed(&self, sql: &str) -> House {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let path = root.join("onus.db");
        for name in ["onus.db", "onus.db-wal"] {
            let from = self.directory.path().join(name);
            if from.exists() {
                std::fs::copy(from, root.join(name)).unwrap();
            }
        }
        if !sql.is_empty() {
            let db = rusqlite::Connection::open(&path).unwrap();
            let free =
                "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF;";
            db.execute_batch(&format!("{free} {sql}")).unwrap();
        }
        let at = path.clone();
        let config = Config { rate: u32::MAX, readers: 1, ..Config::new(HOST.parse().unwrap()) };
        let service = Service::start(config, &(Arc::new(move || Ok(open(&at))) as Open)).unwrap();
        House { service, path, _directory: directory }
    }

    /// The text with what stands for something of this store.
    pub(crate) fn filled(&self, text: &str) -> String {
        self.words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }
}

fn milestone(name: &str, task: &str) -> MilestoneAdded {
    serde_json::from_value(
        serde_json::json!({ "name": name, "title": "Some", "selection": { "tasks": [task] } }),
    )
    .unwrap()
}

/// @bot holds T-5 too, asked for a review of it, and waits: there is something to review, to unblock, and a handoff to read.
fn waiting(store: &mut Store) -> String {
    let text = |words: &str| Text::new(words.to_owned());
    let lease = submit(store, "@bot", Some("T-5"), "claim-5", claim("ws-5"));
    let words = Words { summary: Some("half of it".into()), ..Words::default() };
    let document = store.compose_handoff(&"T-5".parse().unwrap(), Standing::InProgress, None, &words);
    let steps = [
        Command::Handoff { note: Some(text("half of it")), document: document.unwrap().unwrap() },
        Command::RequestReview { commit: None },
        Command::Block {
            on: Blocker::External("rain".into()),
            lease: WhileBlocked::KeepLease,
            note: None,
            handoff: None,
        },
    ];
    for (n, command) in steps.into_iter().enumerate() {
        submit_with(store, "@bot", Some("T-5"), &format!("wait-{n}"), Some(&lease), command);
    }
    lease
}

impl House {
    /// A page of the board, for a browser that is signed in.
    pub(crate) fn page(&self, target: &str, token: &str) -> Response<Bytes> {
        let request = Request::builder()
            .uri(target)
            .header("host", HOST)
            .header("sec-fetch-site", "same-origin")
            .header("cookie", format!("onus-7420={token}"));
        self.service.answer(request.body(Body::empty()).unwrap()).unwrap()
    }

    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        token: Option<&str>,
        body: Body,
    ) -> Response<Bytes> {
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header("host", HOST)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.service.answer(request.body(body).unwrap()).unwrap()
    }
}
