//! A PostgreSQL server in a temporary directory: Debian's own is neither used nor disturbed.

use crate::guardian::Guardian;
use crate::template::Template;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The server's superuser and the tests'.
pub(crate) const USER: &str = "onus";

/// Whether what was committed must survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// As in production.
    Durable,
    /// Fast, for tests that crash nothing.
    Careless,
}

impl Durability {
    fn variable(self) -> &'static str {
        match self {
            Durability::Durable => "ONUS_TEST_POSTGRES_DURABLE",
            Durability::Careless => "ONUS_TEST_POSTGRES_CARELESS",
        }
    }
}

#[derive(Debug)]
pub struct Cluster {
    pub(crate) directory: PathBuf,
    pub(crate) port: u16,
    pub(crate) durability: Durability,
    /// Where it listens, beside its socket.
    addresses: String,
    /// What its processes find in their environment.
    environment: Vec<(&'static str, OsString)>,
    server: Option<Child>,
    /// None where another program started the server, and ends it.
    guardian: Option<Guardian>,
    databases: AtomicUsize,
}

impl Cluster {
    /// A fast server for everybody who does not stop it: the run's, else the program's own. None where PostgreSQL is not
    /// installed.
    pub fn shared() -> Option<&'static Cluster> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        SHARED.get_or_init(|| Cluster::of_the_run(Durability::Careless)).as_ref()
    }

    /// The same, as durable as a real one.
    pub fn shared_durable() -> Option<&'static Cluster> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        SHARED.get_or_init(|| Cluster::of_the_run(Durability::Durable)).as_ref()
    }

    fn of_the_run(durability: Durability) -> Option<Cluster> {
        let Ok(place) = std::env::var(durability.variable()) else { return Cluster::start(durability) };
        let (port, directory) = place.split_once(':').unwrap();
        Some(Cluster {
            directory: directory.into(),
            port: port.parse().unwrap(),
            durability,
            addresses: String::new(),
            environment: Vec::new(),
            server: None,
            guardian: None,
            databases: AtomicUsize::new(0),
        })
    }

    /// What tells the programs of a run where this server is.
    pub fn variable(&self) -> (&'static str, String) {
        (self.durability.variable(), format!("{}:{}", self.port, self.directory.display()))
    }

    /// A server of one's own; none where PostgreSQL is not installed.
    pub fn start(durability: Durability) -> Option<Cluster> {
        let template = Template::shared()?;
        let mut cluster = Cluster::planned(durability);
        cluster.fill(Path::new("cp"), |copy| {
            copy.args(["--archive", "--reflink=auto"]).arg(template.data());
        });
        cluster.restart();
        Some(cluster)
    }

    /// A directory that is removed in any case, and nothing in it.
    pub(crate) fn planned(durability: Durability) -> Cluster {
        let (directory, guardian) = directory();
        Cluster {
            directory,
            port: free_port(),
            durability,
            addresses: "127.0.0.1".into(),
            environment: Vec::new(),
            server: None,
            guardian: Some(guardian),
            databases: AtomicUsize::new(0),
        }
    }

    /// Makes the server's files by one of its programs; the directory is its last argument.
    pub(crate) fn fill(&self, program: &Path, arguments: impl FnOnce(&mut Command)) {
        let mut command = as_server_user(program);
        arguments(&mut command);
        let made = command.arg(self.directory.join("data")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Starts the server again after [`Cluster::kill`].
    pub fn restart(&mut self) {
        let programs = programs().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let mut server = self.command(&programs).spawn().unwrap();
            // A server that was killed may leave processes behind that hold its memory for a moment: then this one ends.
            while server.try_wait().unwrap().is_none() && Instant::now() < deadline {
                if self.answers(&programs) {
                    self.server = Some(server);
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            if Instant::now() >= deadline {
                drop(server.kill());
                let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                panic!("the server does not start:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn command(&self, programs: &Path) -> Command {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.directory.join("log")).unwrap();
        let mut server = as_server_user(&programs.join("postgres"));
        server.arg("-D").arg(self.directory.join("data")).arg("-k").arg(&self.directory);
        server.args([
            "-p",
            &self.port.to_string(),
            "-c",
            &format!("listen_addresses={}", self.addresses),
            "-c",
            "max_connections=400",
        ]);
        server.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.durability == Durability::Careless {
            server.args(["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]);
        }
        server.stdout(Stdio::null()).stderr(log);
        server
    }

    fn answers(&self, programs: &Path) -> bool {
        let mut ready = Command::new(programs.join("pg_isready"));
        ready.arg("-q").arg("-h").arg(&self.directory).args(["-p", &self.port.to_string()]);
        ready.status().is_ok_and(|status| status.success())
    }

    /// Ends the server as a power loss would end its processes: no warning, no clean-up.
    pub fn kill(&mut self) {
        let mut server = self.server.take().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// The server and everything that it started stand still until the answer is dropped: connections are taken, and
    /// nothing is answered.
    pub fn pause(&self) -> PausedCluster<'_> {
        self.signal_all("-STOP");
        PausedCluster(self)
    }

    fn signal_all(&self, signal: &str) {
        let server = self.server.as_ref().unwrap().id().to_string();
        let children = std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
        // The first of them before its children: it starts no other one then.
        for process in std::iter::once(server.as_str()).chain(children.split_whitespace()) {
            drop(Command::new("kill").args([signal, process]).output());
        }
    }

    /// Ends the server as its administrator would.
    pub fn stop(&mut self) {
        let mut server = self.server.take().unwrap();
        let pid = server.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        server.wait().unwrap();
    }

    /// Starts it again where the network `net` can reach it at `address` too.
    pub fn open_to(&mut self, address: &str, net: &str) {
        let rules = self.directory.join("data/pg_hba.conf");
        let rule = format!("\nhost all all {net} trust\n");
        let mut file = std::fs::OpenOptions::new().append(true).open(rules).unwrap();
        std::io::Write::write_all(&mut file, rule.as_bytes()).unwrap();
        self.stop();
        self.addresses = format!("127.0.0.1,{address}");
        self.restart();
    }

    /// Starts it again with more in its environment.
    pub fn with_environment(&mut self, environment: Vec<(&'static str, OsString)>) {
        self.stop();
        self.environment = environment;
        self.restart();
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Turns TLS on, with a certificate for 127.0.0.1 that nobody signed; none where openssl is not installed.
    pub fn secure(&self) -> Option<PathBuf> {
        let (certificate, key) =
            (self.directory.join("data/server.crt"), self.directory.join("data/server.key"));
        let made = as_server_user(Path::new("openssl"))
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", "/CN=onus", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-out"])
            .arg(&certificate)
            .arg("-keyout")
            .arg(&key)
            .output()
            .ok()?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        self.psql("postgres", "ALTER SYSTEM SET ssl = on");
        self.psql("postgres", "SELECT pg_reload_conf()");
        while self.psql("postgres", "SHOW ssl").trim() != "on" {
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(certificate)
    }

    /// A new, empty database's address.
    pub fn database(&self) -> String {
        // Programs that run at once share a server, but no name.
        let name = format!("test_{}_{}", std::process::id(), self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// One of PostgreSQL's own programs.
    pub fn program(&self, name: &str) -> PathBuf {
        programs().unwrap().join(name)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL past the program under test; one line per row, columns separated by `|`.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let said = Command::new(programs().unwrap().join("psql"))
            .args([
                "-XqAt",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                USER,
                "-d",
                database,
                "-p",
                &self.port.to_string(),
                "-h",
            ])
            .arg(&self.directory)
            .args(["-c", sql])
            .output()
            .unwrap();
        assert!(said.status.success(), "{sql}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(guardian) = &mut self.guardian {
            guardian.call();
        }
        if let Some(mut server) = self.server.take() {
            drop(server.wait());
        }
    }
}

/// A directory for servers, which is gone when whoever made it is.
pub(crate) fn directory() -> (PathBuf, Guardian) {
    let directory = tempfile::Builder::new().prefix("onus-pg-").tempdir().unwrap().keep();
    if let Some((uid, gid)) = server_user() {
        chown(&directory, Some(uid), Some(gid)).unwrap();
    }
    let guardian = Guardian::of(&directory);
    (directory, guardian)
}

/// The newest installed version's programs.
pub(crate) fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((version, entry.path().join("bin")))
    });
    versions.filter(|(_, bin)| bin.join("initdb").exists()).max().map(|(_, bin)| bin)
}

/// PostgreSQL does not run as root; there it runs as the user that its package makes.
pub(crate) fn server_user() -> Option<(u32, u32)> {
    let own = std::fs::metadata("/proc/self").map(|me| std::os::unix::fs::MetadataExt::uid(&me)).unwrap();
    if own != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("postgres:")).expect("there is no user postgres");
    let fields: Vec<&str> = line.split(':').collect();
    Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
}

/// A server that stands still; it goes on when this is dropped, also where a test fails.
#[derive(Debug)]
pub struct PausedCluster<'c>(&'c Cluster);

impl Drop for PausedCluster<'_> {
    fn drop(&mut self) {
        self.0.signal_all("-CONT");
    }
}

pub(crate) fn as_server_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::null());
    if let Some((uid, gid)) = server_user() {
        command.uid(uid).gid(gid);
    }
    command
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
