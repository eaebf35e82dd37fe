//! Where a benchmark runs: a temporary repository with a store of some size, and the same tasks in a bare database.

use crate::measure::{Outcome, output};
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The two programs, built together and found side by side.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) onus: PathBuf,
    pub(crate) raw: PathBuf,
}

impl Programs {
    pub(crate) fn find() -> Outcome<Programs> {
        let own = std::env::current_exe()?;
        let beside = |name: &str| own.with_file_name(name);
        let programs = Programs { onus: beside("onus"), raw: beside("raw") };
        for program in [&programs.onus, &programs.raw] {
            if !program.exists() {
                return Err(
                    format!("{} is missing; start the benchmarks with ./bench", program.display()).into()
                );
            }
        }
        Ok(programs)
    }
}

/// How the tasks of a data set hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Every tenth task waits for the one before it.
    SomeWait,
    /// The most important nine tenths wait for the first task: whoever looks for work must get past them.
    HeadWaits,
}

impl Shape {
    /// The priority of task `n` of `size`, and the task it waits for.
    fn of(self, n: usize, size: usize) -> (usize, Option<usize>) {
        match self {
            Shape::SomeWait => (n % 5, n.is_multiple_of(10).then(|| n - 1)),
            Shape::HeadWaits if n == 1 => (4, None),
            Shape::HeadWaits if n <= size / 10 * 9 => (0, Some(1)),
            Shape::HeadWaits => (3, None),
        }
    }
}

/// A store with `size` tasks, and the same tasks in the bare database.
#[derive(Debug)]
pub(crate) struct Place {
    dir: TempDir,
    programs: Programs,
    person: String,
    size: usize,
    shape: Shape,
}

/// The project's key: tasks are `B-1`, `B-2`, ….
const PROJECT: &str = "B";

pub(crate) fn id(number: usize) -> String {
    format!("{PROJECT}-{number}")
}

impl Place {
    /// A store with one person, `agents` agents and nothing to do.
    pub(crate) fn empty(programs: &Programs, agents: usize) -> Outcome<Place> {
        let dir = tempfile::Builder::new().prefix("onus-bench-").tempdir()?;
        let mut place =
            Place { dir, programs: programs.clone(), person: String::new(), size: 0, shape: Shape::SomeWait };
        for name in ["home", "keys", "repo"] {
            std::fs::create_dir(place.path().join(name))?;
        }
        for args in
            [&["init", "--quiet"][..], &["config", "user.name", "Ada"], &["config", "user.email", "a@b.c"]]
        {
            output(place.surroundings(&mut Command::new("git")).args(args))?;
        }
        let made: Value = serde_json::from_str(&place.say(&["init", "--project", PROJECT, "--json"])?)?;
        place.person = made["worker"].as_str().ok_or("init named no worker")?.to_owned();
        for n in 1..=agents {
            place.by_person(&["worker", "add", &agent(n), "--kind", "agent"])?;
            place.by_person(&["workstation", "add", &workstation(n), "--kind", "logical"])?;
        }
        Ok(place)
    }

    pub(crate) fn with_tasks(programs: &Programs, agents: usize, size: usize) -> Outcome<Place> {
        let mut place = Place::empty(programs, agents)?;
        place.write_tasks(size, Shape::SomeWait)?;
        output(&mut place.import())?;
        output(&mut place.raw(&["bulk", &size.to_string()]))?;
        Ok(place)
    }

    /// Without the bare database: only Onus is compared with itself.
    pub(crate) fn shaped(programs: &Programs, size: usize, shape: Shape) -> Outcome<Place> {
        Place::of(programs, 1, size, shape)
    }

    /// The same, for several agents.
    pub(crate) fn sized(programs: &Programs, agents: usize, size: usize) -> Outcome<Place> {
        Place::of(programs, agents, size, Shape::SomeWait)
    }

    fn of(programs: &Programs, agents: usize, size: usize, shape: Shape) -> Outcome<Place> {
        let mut place = Place::empty(programs, agents)?;
        place.write_tasks(size, shape)?;
        output(&mut place.import())?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("repo/.git/onus/onus.db")
    }

    /// The task that repeat `turn` works on: spread over the store, never one that waits for another.
    pub(crate) fn target(&self, turn: usize) -> String {
        let spread = self.size / 10;
        id(turn % spread.max(1) * 10 + 3)
    }

    /// The task that `claim --next` takes: the most important one that waits for nothing.
    pub(crate) fn next(&self) -> String {
        match self.shape {
            Shape::SomeWait => id(5),
            Shape::HeadWaits => id(self.size / 10 * 9 + 1),
        }
    }

    fn surroundings<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path().join("home"))
            .env("ONUS_KEY_DIR", self.path().join("keys"))
            .current_dir(self.path().join("repo"))
    }

    pub(crate) fn onus(&self, args: &[&str]) -> Command {
        let mut onus = Command::new(&self.programs.onus);
        self.surroundings(&mut onus).args(args);
        onus
    }

    /// The bare program on its own database.
    pub(crate) fn raw(&self, args: &[&str]) -> Command {
        let mut raw = Command::new(&self.programs.raw);
        raw.arg(self.path().join("raw.db")).args(args);
        raw
    }

    /// The bare program on the store's own file: for reading only.
    pub(crate) fn raw_on_store(&self, args: &[&str]) -> Command {
        let mut raw = Command::new(&self.programs.raw);
        raw.arg(self.store()).args(args);
        raw
    }

    /// The bare program without a database.
    pub(crate) fn raw_version(&self) -> Command {
        let mut raw = Command::new(&self.programs.raw);
        raw.arg("version");
        raw
    }

    /// Queue and git agree only where git asks before a branch moves, and where there is one.
    pub(crate) fn install_hooks(&self) -> Outcome<()> {
        let commit = ["commit", "--quiet", "--allow-empty", "--message=start"];
        output(self.surroundings(&mut Command::new("git")).args(commit))?;
        self.by_person(&["hook", "install"]).map(drop)
    }

    pub(crate) fn say(&self, args: &[&str]) -> Outcome<String> {
        output(&mut self.onus(args))
    }

    pub(crate) fn by_person(&self, args: &[&str]) -> Outcome<String> {
        self.say(&[args, &["--as", &self.person]].concat())
    }

    pub(crate) fn person(&self) -> &str {
        &self.person
    }

    fn tasks(&self) -> PathBuf {
        self.path().join("tasks.jsonl")
    }

    /// Written as a stream: a child's peak memory starts at ours.
    pub(crate) fn write_tasks(&mut self, size: usize, shape: Shape) -> Outcome<()> {
        (self.size, self.shape) = (size, shape);
        let mut file = BufWriter::new(File::create(self.tasks())?);
        for n in 1..=size {
            let (priority, waits_for) = shape.of(n, size);
            write!(file, "{{\"title\":\"task number {n}\",\"priority\":\"P{priority}\",")?;
            if let Some(other) = waits_for {
                write!(file, "\"depends_on\":[\"bench:{other}\"],")?;
            }
            writeln!(file, "\"origin_ask_ref\":\"bench:{n}\"}}")?;
        }
        Ok(file.flush()?)
    }

    pub(crate) fn import(&self) -> Command {
        let mut import = self.onus(&["import", "--format", "jsonl"]);
        import.arg(self.tasks()).args(["--as", &self.person]);
        import
    }

    /// The bytes of the store once its WAL is folded in.
    pub(crate) fn settled_bytes(&self) -> Outcome<u64> {
        let store = rusqlite::Connection::open(self.store())?;
        store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        drop(store);
        Ok(std::fs::metadata(self.store())?.len())
    }

    pub(crate) fn ledger_entries(&self) -> Outcome<u64> {
        let store = rusqlite::Connection::open(self.store())?;
        let count: i64 = store.query_row("SELECT count(*) FROM ledger", [], |row| row.get(0))?;
        Ok(u64::try_from(count)?)
    }
}

pub(crate) fn agent(number: usize) -> String {
    format!("@a{number}")
}

pub(crate) fn workstation(number: usize) -> String {
    format!("ws-{number}")
}
