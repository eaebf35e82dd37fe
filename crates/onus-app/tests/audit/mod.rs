//! A store with a history worth protecting, its key in a directory of its own, anchored for real.

use onus_app::Onus;
use onus_app::ledger::VerifyView;
use onus_app::progress::Silent;
use onus_app::registry::Founding;
use onus_app::submit::{Receipt, Target};
use onus_core::command::{Command, Envelope, Warrant, WhileBlocked};
use onus_core::event::{WorkerAdded, WorkstationAdded};
use onus_core::hash::encode_hex;
use onus_core::id::Handle;
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder;
use onus_core::session::{Counts, Usage};
use onus_core::settings::Settings;
use onus_core::task::{Priority, Risk, Spec};
use onus_core::text::Text;
use onus_core::time::Timestamp;
use onus_core::worker::Kind;
use onus_store::error::StoreError;
use onus_store::postgres::{Address, Postgres};
use onus_store::sqlite::{Options, Sqlite};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use tempfile::TempDir;

/// Runs the test in a process of its own, with a key directory of its own. True in that process.
///
/// The key directory comes from the environment, and a process cannot safely change its own.
pub(crate) fn in_own_process(test: &str) -> bool {
    const MARK: &str = "ONUS_TEST_IN_OWN_PROCESS";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let keys = tempfile::tempdir().unwrap();
    let ran = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(MARK, "1")
        .env("ONUS_KEY_DIR", keys.path().join("keys"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    // A name that nobody has is no failure for the harness: it plays nothing, and all is well.
    assert!(
        ran.status.success() && said.contains(" 1 passed;"),
        "{test}: {said}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    false
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Process::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub(crate) fn handle(name: &str) -> Handle {
    name.parse().unwrap()
}

pub(crate) fn text(content: &str) -> Text {
    Text::new(content.to_owned())
}

pub(crate) fn open(path: &Path) -> Onus {
    let store = Sqlite::create(path, &Options::one_shot(onus_host::clock::now)).unwrap();
    Onus {
        store: Box::new(store),
        settings: Settings::default(),
        path: path.to_owned(),
        place: onus_host::repository::find(path.parent().unwrap()).unwrap(),
        sight: onus_app::Sight::Workstations,
        bearer: None,
    }
}

/// The same in a database; `path` is where it would be anchored.
pub(crate) fn open_database(url: &str, path: &Path) -> Result<Onus, StoreError> {
    let store = Postgres::create(&Address::parse(url).unwrap())?;
    Ok(Onus {
        store: Box::new(store),
        settings: Settings::default(),
        path: path.to_owned(),
        place: onus_host::repository::find(path.parent().unwrap()).unwrap(),
        sight: onus_app::Sight::Workstations,
        bearer: None,
    })
}

/// Moves everything from the write-ahead log into the main file.
pub(crate) fn settle(path: &Path) {
    let store = rusqlite::Connection::open(path).unwrap();
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

/// A store and where it lives.
pub(crate) struct Case {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) onus: Onus,
    requests: u32,
}

impl Case {
    /// A store in a repository: anchored in git.
    pub(crate) fn in_git() -> Case {
        let directory = tempfile::tempdir().unwrap();
        git(directory.path(), &["init", "-q", "-b", "main"]);
        let path = directory.path().canonicalize().unwrap().join(".git/onus/onus.db");
        Case::founded(directory, path)
    }

    /// A store outside git: anchored in a directory beside the keys.
    pub(crate) fn outside_git() -> Case {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join(".onus/onus.db");
        Case::founded(directory, path)
    }

    /// A store in a database.
    pub(crate) fn in_database(url: &str) -> Case {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join(".onus/onus.db");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let onus = open_database(url, &path).unwrap();
        Case::begun(directory, path, onus)
    }

    fn founded(directory: TempDir, path: PathBuf) -> Case {
        let onus = open(&path);
        Case::begun(directory, path, onus)
    }

    fn begun(directory: TempDir, path: PathBuf, mut onus: Onus) -> Case {
        let founding = Founding {
            project: Some("T".parse().unwrap()),
            default_project: "T".parse().unwrap(),
            person: worker("@ada", Kind::Human),
            checkout: None,
        };
        let key = |uid: &str| Ok(encode_hex(&onus_host::key::create_or_load(uid)?.public()));
        onus.init(&founding, key).unwrap();
        for agent in ["@bot", "@bee"] {
            onus.add_worker(Some(&handle("@ada")), &worker(agent, Kind::Agent)).unwrap();
        }
        for name in ["ws-1", "ws-2", "ws-3", "ws-4"] {
            onus.add_workstation(Some(&handle("@ada")), &WorkstationAdded::logical(name.parse().unwrap()))
                .unwrap();
        }
        Case { directory, path, onus, requests: 0 }
    }

    pub(crate) fn try_submit(
        &mut self,
        actor: &str,
        task: Option<&str>,
        token: Option<&Token>,
        command: Command,
    ) -> Result<Receipt, Refusal> {
        self.requests += 1;
        let envelope = Envelope {
            request: format!("r{}-{}", self.requests, std::process::id()).parse().unwrap(),
            actor: Some(handle(actor)),
            token: token.cloned(),
            task: task.map(|task| task.parse().unwrap()),
            project: None,
            base: None,
            command,
        };
        self.onus.submit(&envelope, &Target::Named)
    }

    pub(crate) fn submit(
        &mut self,
        actor: &str,
        task: &str,
        token: Option<&Token>,
        command: Command,
    ) -> Receipt {
        self.try_submit(actor, Some(task), token, command).unwrap()
    }

    pub(crate) fn add(&mut self, title: &str, depends_on: &[&str]) {
        let spec = Spec {
            title: title.to_owned(),
            body: Some(text(&format!("The words of {title}"))),
            task_type: Some("backend".parse().unwrap()),
            kind: "feature".into(),
            priority: Priority::P1,
            risk: Risk::Low,
            role: Some("A-backend".parse().unwrap()),
            lane: Some(1),
            sprint: Some("s1".into()),
            tags: vec!["one".into(), "two".into()],
            scope: vec![format!("src/{}/**", title.replace(' ', "-"))],
            parent: None,
            merge_order: Some(1),
            origin: Some(format!("test:{}", title.replace(' ', "-")).parse().unwrap()),
            checks: Vec::new(),
            criteria: Vec::new(),
            extra: Some(text(r#"{"design":"a plan"}"#)),
        };
        let depends_on = depends_on.iter().map(|id| id.parse().unwrap()).collect();
        let command = Command::Add { spec: Box::new(spec), depends_on, archived: None, arrival: None };
        self.try_submit("@ada", None, None, command).unwrap();
    }

    pub(crate) fn claim(&mut self, actor: &str, task: &str, workstation: &str) -> Token {
        self.try_claim(actor, task, workstation).unwrap().token.unwrap()
    }

    pub(crate) fn try_claim(
        &mut self,
        actor: &str,
        task: &str,
        workstation: &str,
    ) -> Result<Receipt, Refusal> {
        let workstation = Some(workstation.parse().unwrap());
        let command = Command::Claim {
            workstation,
            here: None,
            assignee: None,
            ttl: None,
            warrant: Warrant::Ordinary,
            constraints: Vec::new(),
        };
        self.try_submit(actor, Some(task), None, command)
    }

    pub(crate) fn note(&mut self, actor: &str, task: &str, token: Option<&Token>, content: &str) {
        self.submit(actor, task, token, Command::Note { text: text(content) });
    }

    pub(crate) fn complete(&mut self, actor: &str, task: &str, token: &Token) {
        let resolution = Some(text("It works; the suite is green."));
        self.submit(
            actor,
            task,
            Some(token),
            Command::Complete {
                resolution,
                root_cause: None,
                warrant: Warrant::Ordinary,
                proof: onus_core::evidence::Proof::default(),
            },
        );
    }

    pub(crate) fn checkpoint(&mut self) -> onus_app::ledger::CheckpointView {
        self.onus.checkpoint(Some(&handle("@bot"))).unwrap()
    }

    pub(crate) fn verify(&mut self) -> VerifyView {
        self.onus.verify(&mut Silent).unwrap()
    }

    /// A correction, a usage, and an approval of a month in which nobody worked.
    fn say_about_the_session(&mut self, task: &str) {
        let found = self.onus.sessions(Some(&task.parse().unwrap()), None, 1).unwrap().sessions.remove(0);
        let corrected = Command::CorrectSession {
            session: found.id,
            started_at: Timestamp(found.started_at.0 - 60_000),
            ended_at: found.started_at,
            reason: Some("it began earlier".into()),
        };
        // Before the assignment began: one says so, and another agrees.
        let second = handle("@second");
        self.onus.add_worker(Some(&handle("@ada")), &worker("@second", Kind::Human)).unwrap();
        self.submit("@ada", task, None, corrected.clone());
        self.submit(second.as_str(), task, None, corrected);
        let counts = Counts { output_tokens: 5, ..Counts::default() };
        let usage = Usage { key: "k".into(), source: "reported".into(), model: None, counts };
        self.submit("@bot", task, None, Command::RecordUsage { session: found.id, usage });
        self.onus.keep_output(Some(&handle("@bot")), found.id, 0, "one\n").unwrap();
        self.onus.keep_output(Some(&handle("@bot")), found.id, 4, "two\n").unwrap();
        self.submit("@bot", task, None, Command::CloseOutput { session: found.id });
        let january = ("2026-01-01".parse().unwrap(), "2026-01-31".parse().unwrap());
        self.onus.approve_timesheet(Some(&handle("@ada")), &handle("@bot"), january).unwrap();
    }

    /// Tasks in every state, two checkpoints; the second covers everything.
    pub(crate) fn live_a_little(&mut self) {
        for n in 1..=6 {
            self.add(&format!("task {n}"), &[]);
        }
        self.add("task 7", &["T-1", "T-2"]);
        let token = self.claim("@bot", "T-1", "ws-1");
        self.note("@bot", "T-1", Some(&token), "half of it is done");
        self.submit("@bot", "T-1", Some(&token), Command::Renew { ttl: None, process: None });
        self.complete("@bot", "T-1", &token);
        self.say_about_the_session("T-1");
        let token = self.claim("@bee", "T-2", "ws-2");
        let handed = Command::Release {
            note: Some(text("see the branch")),
            handoff: None,
            warrant: Warrant::Ordinary,
        };
        self.submit("@bee", "T-2", Some(&token), handed);
        self.checkpoint();
        let token = self.claim("@bot", "T-2", "ws-1");
        self.complete("@bot", "T-2", &token);
        self.submit("@ada", "T-2", None, Command::Reopen { reason: Some("it does not".into()) });
        let token = self.claim("@bot", "T-3", "ws-1");
        let blocked = Command::Block {
            on: "person:@ada".parse().unwrap(),
            lease: WhileBlocked::KeepLease,
            note: Some(text("she knows")),
            handoff: None,
        };
        self.submit("@bot", "T-3", Some(&token), blocked);
        self.claim("@bee", "T-4", "ws-2");
        let forced = Command::Takeover {
            workstation: Some("ws-2".parse().unwrap()),
            here: None,
            ttl: None,
            reason: None,
            warrant: Warrant::Forced { reason: Some("she is ill".into()) },
        };
        self.submit("@ada", "T-4", None, forced);
        self.note("@ada", "T-5", None, "who takes this?");
        self.submit("@ada", "T-6", None, Command::Drop { reason: Some("not any more".into()) });
        self.try_claim("@bee", "T-7", "ws-2").unwrap_err();
        let order =
            TokenOrder { worker: Some(handle("@bot")), label: Some("night".into()), ..TokenOrder::default() };
        for _ in 0..2 {
            self.onus.issue_token(Some(&handle("@ada")), &order).unwrap();
        }
        let first = self.onus.tokens(None).unwrap().tokens.remove(0).id;
        self.onus.revoke_token(Some(&handle("@ada")), &first, Some("it leaked")).unwrap();
        self.checkpoint();
    }
}

pub(crate) fn worker(name: &str, kind: Kind) -> WorkerAdded {
    WorkerAdded { handle: handle(name), kind, tier: None, role: None, tz: "UTC".into() }
}

/// Small numbers that look random and come again with the same seed.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn seeded(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % n
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}
