//! A real Redmine of a test's own, that can be killed, started again and set back. `ONUS_TEST_REDMINE=0` leaves it out.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Its first start makes a database, and may install a package.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// What the script says when Redmine cannot be had here.
const UNAVAILABLE: i32 = 77;

#[derive(Debug)]
pub struct Redmine {
    pub port: u16,
    state: tempfile::TempDir,
    child: Option<Child>,
}

impl Redmine {
    /// One that answers; none where it cannot be had, which standard error explains.
    pub fn start() -> Option<Redmine> {
        if std::env::var("ONUS_TEST_REDMINE").is_ok_and(|value| value == "0") {
            say("skipped: ONUS_TEST_REDMINE is 0");
            return None;
        }
        let state = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut redmine = Redmine { port, state, child: None };
        redmine.up().then_some(redmine)
    }

    /// One for all tests of a program: its address and its directory.
    pub fn shared() -> Option<&'static (u16, PathBuf)> {
        static SHARED: OnceLock<Option<(u16, PathBuf)>> = OnceLock::new();
        SHARED
            .get_or_init(|| {
                let (told, place) = mpsc::channel();
                // It ends with the thread that started it: this one stays.
                std::thread::spawn(move || {
                    let redmine = Redmine::start();
                    told.send(redmine.as_ref().map(|redmine| (redmine.port, redmine.directory().to_owned())))
                        .unwrap();
                    loop {
                        std::thread::park();
                    }
                });
                place.recv().unwrap()
            })
            .as_ref()
    }

    pub fn directory(&self) -> &Path {
        self.state.path()
    }

    /// Starts it, with the database that it has. Whether it can be had at all.
    pub fn up(&mut self) -> bool {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/redmine-up");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", script]).arg(self.state.path()).arg(self.port.to_string());
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        while !answers(self.port) {
            if let Some(status) = child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(UNAVAILABLE), "Redmine ended by itself");
                say("skipped: there is no Redmine here (see above)");
                return false;
            }
            assert!(Instant::now() < until, "Redmine did not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        self.child = Some(child);
        true
    }

    /// From here on nobody answers at its port; what it was at work on is lost.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }

    fn database(&self) -> PathBuf {
        self.state.path().join("db.sqlite3")
    }

    /// A copy of its database, taken while it is down.
    pub fn backup(&self) -> Vec<u8> {
        assert!(self.child.is_none(), "a copy of a database at work is no backup");
        std::fs::read(self.database()).unwrap()
    }

    /// Its database is what it was.
    pub fn restore(&self, backup: &[u8]) {
        assert!(self.child.is_none(), "a database at work cannot be set back");
        for ending in ["-wal", "-shm", "-journal"] {
            drop(std::fs::remove_file(self.state.path().join(format!("db.sqlite3{ending}"))));
        }
        std::fs::write(self.database(), backup).unwrap();
    }
}

/// Statements that put a project into its database, where it is not there yet, with so many issues: by its own interface that takes
/// a quarter of an hour. Seven issues share each second, and the last hundred and fifty one.
pub fn redmine_issues(project: &str, count: usize) -> String {
    let of = format!("(SELECT id FROM projects WHERE identifier = '{project}')");
    let bot = "(SELECT id FROM users WHERE login = 'onus-bot')";
    let at = format!("datetime('2026-01-01', '+' || (min(n, {count} - 150) / 7) || ' seconds')");
    format!(
        "BEGIN IMMEDIATE;
        INSERT INTO projects (name, identifier, is_public, status, created_on, updated_on, lft, rgt)
            SELECT '{project}', '{project}', 1, 1, '2026-01-01', '2026-01-01', at + 1, at + 2
            FROM (SELECT coalesce(max(rgt), 0) AS at FROM projects) WHERE {of} IS NULL;
        INSERT INTO enabled_modules (project_id, name) SELECT {of}, name FROM
            (SELECT 'issue_tracking' AS name UNION SELECT 'time_tracking') WHERE NOT EXISTS
            (SELECT 1 FROM enabled_modules WHERE project_id = {of});
        INSERT INTO projects_trackers (project_id, tracker_id) SELECT {of}, id FROM trackers WHERE NOT EXISTS
            (SELECT 1 FROM projects_trackers WHERE project_id = {of});
        INSERT INTO members (user_id, project_id, created_on) SELECT {bot}, {of}, '2026-01-01' WHERE NOT EXISTS
            (SELECT 1 FROM members WHERE project_id = {of} AND user_id = {bot});
        INSERT INTO member_roles (member_id, role_id) SELECT m.id, r.id FROM members m JOIN roles r ON r.name = 'Manager'
            WHERE m.project_id = {of} AND NOT EXISTS (SELECT 1 FROM member_roles x WHERE x.member_id = m.id);
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
            INSERT INTO issues (tracker_id, project_id, subject, description, status_id, priority_id, author_id, created_on,
                updated_on, lft, rgt)
            SELECT 2, {of}, 'Ask ' || n, 'What is asked for: ' || n, 1, 2, {bot}, {at}, {at}, 1, 2 FROM numbers;
        UPDATE issues SET root_id = id WHERE root_id IS NULL;
        COMMIT;"
    )
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = "GET /issue_statuses.json HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
    let mut answer = [0; 9];
    let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_exact(&mut answer));
    read.is_ok() && answer.starts_with(b"HTTP/1.")
}

impl Drop for Redmine {
    fn drop(&mut self) {
        self.kill();
    }
}

#[allow(clippy::print_stderr, reason = "nobody may think that this was tested")]
fn say(words: &str) {
    eprintln!("{words}");
}
