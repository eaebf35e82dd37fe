//! A store in a directory of its own, with one person, one agent and two projects.

use onus_app::Onus;
use onus_app::import::{Import, ImportView, Run};
use onus_app::progress::Silent;
use onus_app::registry::Founding;
use onus_app::submit::{Receipt, Target};
use onus_core::command::{Command, Envelope};
use onus_core::event::{WorkerAdded, WorkstationAdded};
use onus_core::id::{Handle, ProjectKey, RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::task::Task;
use onus_core::time::{Now, Tick, Timestamp};
use onus_core::worker::Kind;
use onus_store::port::Store as _;
use onus_store::read::queue::Which;
use onus_store::sqlite::{Options, Sqlite};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

static DRAWN: AtomicU64 = AtomicU64::new(0);

pub(crate) fn clock() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    Now { wall: Timestamp(since), tick: Tick { host: "h".into(), boot: "b".into(), millis: since } }
}

pub(crate) fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

pub(crate) fn request() -> RequestId {
    format!("r{}", DRAWN.fetch_add(1, Ordering::Relaxed)).parse().unwrap()
}

pub(crate) struct Desk {
    pub(crate) onus: Onus,
    pub(crate) directory: TempDir,
}

pub(crate) fn open(path: &Path) -> Onus {
    let store = Sqlite::create(path, &Options::one_shot(clock)).unwrap();
    Onus {
        store: Box::new(store),
        settings: Settings::default(),
        path: path.to_owned(),
        place: onus_host::repository::find(path.parent().unwrap()).unwrap(),
        sight: onus_app::Sight::Workstations,
        bearer: None,
    }
}

pub(crate) fn worker(handle: &str, kind: Kind) -> WorkerAdded {
    WorkerAdded { handle: handle.parse().unwrap(), kind, tier: None, role: None, tz: "UTC".into() }
}

impl Desk {
    /// A store without a workspace.
    pub(crate) fn bare() -> Desk {
        let directory = tempfile::tempdir().unwrap();
        Desk { onus: open(&directory.path().join("onus.db")), directory }
    }

    /// A store with the projects T (the default one) and API.
    pub(crate) fn new() -> Desk {
        let mut desk = Desk::bare();
        for project in ["T", "API"] {
            let project: ProjectKey = project.parse().unwrap();
            let founding = Founding {
                project: Some(project.clone()),
                default_project: project,
                person: worker("@ada", Kind::Human),
                checkout: None,
            };
            desk.onus.init(&founding, |_| Ok("00".repeat(32))).unwrap();
        }
        let ada: Handle = "@ada".parse().unwrap();
        desk.onus.add_worker(Some(&ada), &worker("@bot", Kind::Agent)).unwrap();
        let workstation = WorkstationAdded::logical("ws-1".parse().unwrap());
        desk.onus.add_workstation(Some(&ada), &workstation).unwrap();
        desk
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.onus.path.clone()
    }

    pub(crate) fn try_import(&mut self, actor: &str, input: &str) -> Result<ImportView, Refusal> {
        self.import_as(&request(), actor, None, input, Run::Real)
    }

    pub(crate) fn import_as(
        &mut self,
        request: &RequestId,
        actor: &str,
        project: Option<&str>,
        input: &str,
        run: Run,
    ) -> Result<ImportView, Refusal> {
        let actor: Option<Handle> = (!actor.is_empty()).then(|| actor.parse().unwrap());
        let project: Option<ProjectKey> = project.map(|project| project.parse().unwrap());
        let import = Import { request, actor: actor.as_ref(), project: project.as_ref(), input, run };
        self.onus.import_jsonl(&import, &mut Silent)
    }

    pub(crate) fn import(&mut self, input: &str) -> ImportView {
        self.try_import("@ada", input).unwrap()
    }

    pub(crate) fn submit(
        &mut self,
        actor: &str,
        task: &str,
        token: Option<&Token>,
        command: Command,
    ) -> Receipt {
        let envelope = Envelope {
            request: request(),
            actor: Some(actor.parse().unwrap()),
            token: token.cloned(),
            task: Some(id(task)),
            project: None,
            base: None,
            command,
        };
        self.onus.submit(&envelope, &Target::Named).unwrap()
    }

    pub(crate) fn export(&mut self, which: Which) -> String {
        let mut bytes = Vec::new();
        self.onus.export_tasks(which, &mut bytes, &mut Silent).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The tasks as their export tells them.
    pub(crate) fn tasks(&mut self) -> Vec<Value> {
        self.export(Which::All).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn task(&mut self, task: &str) -> Task {
        let task = id(task);
        self.onus.store.read(|tx| Ok(onus_store::load::task(tx, &task)?.unwrap().task)).unwrap()
    }

    /// One line per task: id, state, title, what it waits for, its parent and its origin.
    pub(crate) fn summary(&mut self) -> Vec<String> {
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        self.tasks()
            .iter()
            .map(|task| {
                let waits: Vec<String> = task["depends_on"].as_array().unwrap().iter().map(word).collect();
                let (id, state, title) = (word(&task["id"]), word(&task["state"]), word(&task["title"]));
                let (parent, origin) = (word(&task["parent"]), word(&task["origin_ask_ref"]));
                format!("{id} {state} {title} [{}] {parent} {origin}", waits.join(" "))
            })
            .collect()
    }

    /// Every chain of the ledger holds together, and folding it gives the row.
    pub(crate) fn assert_sound(&mut self) {
        let (uid, entries) = self
            .onus
            .store
            .read(|tx| {
                let uid = onus_store::load::workspace(tx)?.uid;
                let all = onus_store::read::ledger::LedgerPart::After(0);
                Ok((uid, onus_store::read::ledger::log(tx, &all, i64::MAX)?))
            })
            .unwrap();
        let mut heads = std::collections::BTreeMap::new();
        let mut rows: std::collections::BTreeMap<String, Task> = std::collections::BTreeMap::new();
        for entry in entries {
            assert_eq!(entry.expected_hash(&uid), entry.hash, "entry {}", entry.seq);
            let head = heads.insert(entry.task.clone(), entry.hash).unwrap_or(onus_core::hash::Digest::ZERO);
            assert_eq!(head, entry.prev, "entry {}", entry.seq);
            let stamped = entry.open().unwrap();
            if let Some(task) = entry.task {
                let row = onus_core::task::evolve(rows.remove(&task), &stamped).unwrap();
                rows.insert(task, row);
            }
        }
        for (task, row) in rows {
            assert_eq!(self.task(&task), row, "{task}");
        }
        let validated = self.onus.validate(&mut Silent).unwrap();
        assert_eq!(validated.findings, [], "{validated:#?}");
    }
}
