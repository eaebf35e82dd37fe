//! A whole server, given whatever bytes as requests: bodies, queries, headers, cookies, ids of events, calls, tools.

use super::example;
use crate::sim::team;
use http::{HeaderName, HeaderValue, Request};
use onus_app::import::{Import, Run};
use onus_app::progress::Silent;
use onus_app::submit::Target;
use onus_app::{Onus, Sight};
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::id::{Handle, RequestId};
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder;
use onus_core::settings::Settings;
use onus_core::task::Spec;
use onus_server::store::{Open, Store};
use onus_server::{Config, Service};
use onus_store::location::Location;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// After so many requests the store begins anew: those that are taken fill it.
const REQUESTS: u32 = 50_000;

/// A server with a store of its own, and what callers need to be let in.
#[derive(Debug)]
struct House {
    service: Service,
    store: Store,
    person: Handle,
    bearer: String,
    lease: String,
    _directory: TempDir,
}

/// Where requests come in.
#[derive(Debug)]
pub struct Doors {
    house: House,
    requests: u32,
}

impl Doors {
    pub fn open() -> Result<Doors, Refusal> {
        Ok(Doors { house: House::new()?, requests: 0 })
    }

    /// Requests to begin with.
    pub fn examples() -> Vec<String> {
        example::requests()
    }

    /// Files to import, to begin with.
    pub const fn files() -> &'static [&'static str] {
        example::FILES
    }

    /// Whatever comes is answered, and never by a defect of the server. The answer's status; none where it is no request.
    #[allow(clippy::panic, reason = "a fuzz target fails by panicking")]
    pub fn ask(&mut self, bytes: &[u8]) -> Option<u16> {
        let request = self.house.request(bytes)?;
        let answer = match self.house.service.answer(request) {
            Ok(answer) => answer,
            Err(refusal) => panic!("no answer: {refusal:?}"),
        };
        if answer.status().is_server_error() {
            panic!("{}: {}", answer.status(), String::from_utf8_lossy(answer.body()));
        }
        self.requests += 1;
        if self.requests.is_multiple_of(REQUESTS) || (answer.status() == 401 && !self.house.is_open()) {
            match House::new() {
                Ok(house) => self.house = house,
                Err(refusal) => panic!("no new server: {refusal:?}"),
            }
        }
        Some(answer.status().as_u16())
    }

    /// A file of tasks, held against the store.
    pub fn import(&mut self, bytes: &[u8]) {
        let (Ok(input), Ok(request)) = (std::str::from_utf8(bytes), "r-file".parse()) else { return };
        let House { store, person, .. } = &mut self.house;
        let import = Import { request: &request, actor: Some(person), project: None, input, run: Run::Dry };
        drop(store.import_jsonl(&import, &mut Silent));
    }
}

impl House {
    fn new() -> Result<House, Refusal> {
        let unusable = |error: std::io::Error| Refusal::invalid(error.to_string());
        let directory = tempfile::Builder::new().prefix("onus-doors-").tempdir_in(crate::sim::room());
        let directory = directory.map_err(unusable)?;
        let here = directory.path().canonicalize().map_err(unusable)?;
        let path = here.join("onus.db");
        drop(Location::File(path.clone()).create(onus_host::clock::now)?);
        let open: Open = Arc::new(move || opened(&path));
        let mut store = open()?;
        team::found(&mut store)?;
        let person = team::worker(0)?;
        for title in ["open", "held", "third"] {
            let spec = Box::new(Spec { kind: "chore".into(), ..Spec::titled(title) });
            let add = Command::Add { spec, depends_on: BTreeSet::new(), archived: None, arrival: None };
            submit(&mut store, title, &person, None, add)?;
        }
        let workstation = Some(team::workstation(0)?);
        let warrant = Warrant::Ordinary;
        let claim = Command::Claim {
            workstation,
            here: None,
            assignee: None,
            ttl: None,
            warrant,
            constraints: Vec::new(),
        };
        let lease = submit(&mut store, "claim", &person, Some("T-2"), claim)?;
        let order = TokenOrder {
            kind: None,
            worker: Some(person.clone()),
            workstation: None,
            label: None,
            expires_in: None,
        };
        let bearer = store.issue_token(Some(&person), &order)?.secret;
        // What one caller may ask in a second is far more than one thread can.
        let config = Config { rate: u32::MAX, readers: 1, ..Config::new(([127, 0, 0, 1], 7420).into()) };
        let service = Service::start(config, &open)?;
        Ok(House { service, store, person, bearer, lease, _directory: directory })
    }

    /// Whether the person's token is still good: a request may have revoked it.
    fn is_open(&self) -> bool {
        let request = self.request(b"GET /v1/stale\nauthorization: Bearer $BEARER\n\n");
        request
            .and_then(|request| self.service.answer(request).ok())
            .is_some_and(|answer| answer.status() == 200)
    }

    /// The request that the bytes are; none where HTTP itself would refuse them.
    fn request(&self, bytes: &[u8]) -> Option<Request<Vec<u8>>> {
        let bytes = replaced(&replaced(bytes, b"$BEARER", &self.bearer), b"$LEASE", &self.lease);
        let at = find(&bytes, b"\n\n").unwrap_or(bytes.len());
        let (head, body) = (&bytes[..at], bytes.get(at + 2..).unwrap_or_default());
        let mut lines = head.split(|byte| *byte == b'\n');
        let (method, target) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
        let mut request = Request::builder().method(method).uri(target).body(body.to_vec()).ok()?;
        request.headers_mut().insert(http::header::HOST, HeaderValue::from_static("127.0.0.1:7420"));
        for line in lines {
            let at = find(line, b": ")?;
            let name = HeaderName::from_bytes(&line[..at]).ok()?;
            request.headers_mut().append(name, HeaderValue::from_bytes(&line[at + 2..]).ok()?);
        }
        Some(request)
    }
}

fn opened(path: &Path) -> Result<Store, Refusal> {
    let place = onus_host::repository::find(path.parent().unwrap_or(path))?;
    let store = Location::File(path.to_owned()).open(onus_host::clock::now)?;
    Ok(Onus {
        store,
        settings: Settings::default(),
        path: path.to_owned(),
        place,
        sight: Sight::Store,
        bearer: None,
    })
}

/// Carries a command out; the lease token where it is a grant.
fn submit(
    store: &mut Store,
    name: &str,
    by: &Handle,
    task: Option<&str>,
    command: Command,
) -> Result<String, Refusal> {
    let request: RequestId = name.parse().map_err(Refusal::invalid)?;
    let task = task.map(str::parse).transpose().map_err(Refusal::invalid)?;
    let (actor, token, project, base) = (Some(by.clone()), None, None, None);
    let envelope = Envelope { request, actor, token, task, project, base, command };
    let receipt = store.submit(&envelope, &Target::Named)?;
    Ok(receipt.token.map(|token| token.to_string()).unwrap_or_default())
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn replaced(bytes: &[u8], name: &[u8], value: &str) -> Vec<u8> {
    match find(bytes, name) {
        Some(at) => [&bytes[..at], value.as_bytes(), &bytes[at + name.len()..]].concat(),
        None => bytes.to_vec(),
    }
}
