//! A small store with people, agents and workstations, under a clock that the test sets.

use onus_app::Onus;
use onus_app::registry::Founding;
use onus_app::submit::{Receipt, Target};
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::event::{WorkerAdded, WorkstationAdded};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::task::Spec;
use onus_core::text::Text;
use onus_core::time::{Now, Tick, Timestamp};
use onus_core::worker::Kind;
use onus_store::sqlite::{Options, Sqlite};
use std::cell::Cell;
use tempfile::TempDir;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
    /// How far the wall clock was moved against the monotonic one.
    static MOVED: Cell<i64> = const { Cell::new(0) };
}

fn clock() -> Now {
    let wall = NOW.get();
    let tick = Tick { host: "h".into(), boot: "b".into(), millis: wall - MOVED.get() };
    Now { wall: Timestamp(wall), tick }
}

/// A moment in UTC.
pub(crate) fn at(text: &str) -> Timestamp {
    onus_host::zone::moment("UTC", text).unwrap()
}

/// Time goes on until this moment.
pub(crate) fn set(text: &str) {
    NOW.set(at(text).0);
}

/// From now on the wall clock is this far from where the monotonic one is.
#[allow(dead_code, reason = "not every test moves its clock")]
pub(crate) fn moved(millis: i64) {
    MOVED.set(millis);
}

pub(crate) struct Shop {
    pub(crate) onus: Onus,
    requests: u32,
    directory: TempDir,
}

impl Shop {
    /// Opens at a moment: @ada, who is in `zone`, and the workstations, under a map if there is one.
    pub(crate) fn open(moment: &str, zone: &str, workstations: &[&str], map: Option<&str>) -> Shop {
        set(moment);
        MOVED.set(0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onus.db");
        let store = Sqlite::create(&path, &Options::one_shot(clock)).unwrap();
        let place = onus_host::repository::find(directory.path()).unwrap();
        let sight = onus_app::Sight::Workstations;
        let onus =
            Onus { store: Box::new(store), settings: Settings::default(), path, place, sight, bearer: None };
        let founding = Founding {
            project: None,
            default_project: "T".parse().unwrap(),
            person: worker("@ada", Kind::Human, zone),
            checkout: None,
        };
        let mut shop = Shop { onus, requests: 0, directory };
        shop.onus.init(&founding, |_| Ok("00".repeat(32))).unwrap();
        if let Some(map) = map {
            shop.put_up(map);
        }
        for name in workstations {
            let wanted = WorkstationAdded::logical(name.parse().unwrap());
            shop.onus.add_workstation(Some(&"@ada".parse().unwrap()), &wanted).unwrap();
        }
        shop
    }

    /// From now on this is the identity map.
    pub(crate) fn put_up(&self, map: &str) {
        std::fs::write(self.directory.path().join("executor-identity-map.yaml"), map).unwrap();
    }

    pub(crate) fn hire(&mut self, agent: &str, zone: &str) {
        self.onus.add_worker(Some(&"@ada".parse().unwrap()), &worker(agent, Kind::Agent, zone)).unwrap();
    }

    pub(crate) fn add(&mut self, title: &str, task_type: Option<&str>, sprint: Option<&str>) {
        let spec = Spec {
            task_type: task_type.map(|name| name.parse().unwrap()),
            kind: "feature".into(),
            sprint: sprint.map(str::to_owned),
            ..Spec::titled(title)
        };
        let command = Command::Add {
            spec: Box::new(spec),
            depends_on: Default::default(),
            archived: None,
            arrival: None,
        };
        self.submit("@ada", None, None, command).unwrap();
    }

    pub(crate) fn submit(
        &mut self,
        actor: &str,
        task: Option<&str>,
        token: Option<Token>,
        command: Command,
    ) -> Result<Receipt, Refusal> {
        self.requests += 1;
        let envelope = Envelope {
            request: format!("r{}", self.requests).parse().unwrap(),
            actor: Some(actor.parse().unwrap()),
            token,
            task: task.map(|task| task.parse().unwrap()),
            project: None,
            base: None,
            command,
        };
        self.onus.submit(&envelope, &Target::Named)
    }

    pub(crate) fn claim(&mut self, who: &str, task: &str, place: &str) -> Result<Token, Refusal> {
        let claim = Command::Claim {
            workstation: Some(place.parse().unwrap()),
            here: None,
            assignee: None,
            ttl: None,
            warrant: Warrant::Ordinary,
            constraints: Vec::new(),
        };
        Ok(self.submit(who, Some(task), None, claim)?.token.unwrap())
    }

    pub(crate) fn release(&mut self, who: &str, task: &str, token: Token) {
        let note = Some(Text::new("see above".into()));
        let release = Command::Release { note, handoff: None, warrant: Warrant::Ordinary };
        self.submit(who, Some(task), Some(token), release).unwrap();
    }
}

pub(crate) fn worker(handle: &str, kind: Kind, tz: &str) -> WorkerAdded {
    WorkerAdded { handle: handle.parse().unwrap(), kind, tier: None, role: None, tz: tz.into() }
}
