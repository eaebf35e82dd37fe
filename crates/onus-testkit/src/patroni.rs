//! Two PostgreSQL servers under Patroni and one etcd: the set-up of the deployment guide, on one machine.

use crate::cluster::{USER, as_server_user, free_port, programs, server_user};
use crate::guardian::Guardian;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than a lost leader stays leader in etcd.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Patroni {
    nodes: [Node; 2],
    etcd: Child,
    directory: PathBuf,
    _guardian: Guardian,
}

#[derive(Debug)]
struct Node {
    name: &'static str,
    port: u16,
    /// Where it says what it is.
    rest: u16,
    agent: Option<Child>,
}

/// What Debian's packages are asked for; `synchronous_mode` is what makes a failover lose nothing.
fn settings(directory: &Path, node: &Node, etcd: u16) -> String {
    let (at, Node { name, port, rest, .. }) = (directory.display(), node);
    let bin = programs().unwrap();
    let mut text = format!("scope: onus\nname: {name}\netcd3: {{host: '127.0.0.1:{etcd}'}}\n");
    let _ = writeln!(text, "restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}}");
    text.push_str(
        "bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 200, wal_log_hints: 'on'}
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}]
",
    );
    let _ = write!(
        text,
        "postgresql:
  listen: '127.0.0.1:{port}'
  connect_address: '127.0.0.1:{port}'
  data_dir: {at}/{name}
  bin_dir: {}
  pgpass: {at}/{name}.pgpass
  parameters: {{unix_socket_directories: '{at}'}}
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
  authentication: {{superuser: {{username: {USER}}}, replication: {{username: {USER}}}}}
",
        bin.display()
    );
    text
}

impl Patroni {
    /// Two servers, the second in step with the first; none where Patroni, etcd or PostgreSQL is not installed.
    pub fn start() -> Option<Patroni> {
        let is_here = |program: &str| Command::new(program).arg("--version").output().is_ok();
        if programs().is_none() || !is_here("patroni") || !is_here("etcd") {
            #[allow(clippy::print_stderr, reason = "nobody may think that this was tested")]
            {
                eprintln!("skipped: needs Debian's postgresql, patroni and etcd-server");
            }
            return None;
        }
        let directory = tempfile::Builder::new().prefix("onus-ha-").tempdir().unwrap().keep();
        if let Some((uid, gid)) = server_user() {
            chown(&directory, Some(uid), Some(gid)).unwrap();
        }
        let guardian = Guardian::of(&directory);
        let [etcd_port, peers] =
            [free_port(), free_port()].map(|port| (port, format!("http://127.0.0.1:{port}")));
        let mut etcd = as_server_user(Path::new("etcd"));
        etcd.arg("--data-dir").arg(directory.join("etcd"));
        etcd.args(["--listen-client-urls", &etcd_port.1, "--advertise-client-urls", &etcd_port.1]);
        etcd.args(["--listen-peer-urls", &peers.1, "--initial-advertise-peer-urls", &peers.1]);
        etcd.args(["--initial-cluster", &format!("default={}", peers.1)]);
        let etcd = spawn(&directory, "etcd", &mut etcd);
        let node = |name| Node { name, port: free_port(), rest: free_port(), agent: None };
        let mut patroni = Patroni { nodes: [node("n1"), node("n2")], etcd, directory, _guardian: guardian };
        for node in &patroni.nodes {
            let file = patroni.directory.join(node.name).with_extension("yml");
            std::fs::write(file, settings(&patroni.directory, node, etcd_port.0)).unwrap();
        }
        patroni.join(0);
        patroni.until("a leader", |one| one.leader() == Some(0));
        patroni.join(1);
        patroni.until_in_step();
        Some(patroni)
    }

    /// Starts a node, or starts it again after [`Patroni::lose`].
    pub fn join(&mut self, n: usize) {
        let name = self.nodes[n].name;
        let mut agent = as_server_user(Path::new("patroni"));
        agent.arg(self.directory.join(name).with_extension("yml"));
        self.nodes[n].agent = Some(spawn(&self.directory, name, &mut agent));
    }

    /// A node is gone at once, as when its host loses power: Patroni, and PostgreSQL with it.
    pub fn lose(&mut self, n: usize) {
        let mut agent = self.nodes[n].agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
        let file = self.directory.join(self.nodes[n].name).join("postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        let pid = text.lines().next().unwrap().to_owned();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    }

    /// Which node says that it is the leader.
    pub fn leader(&self) -> Option<usize> {
        (0..2).find(|n| self.nodes[*n].agent.is_some() && self.answers(*n, "/primary"))
    }

    /// Waits until the one that does not lead has everything that is acknowledged from here on.
    pub fn until_in_step(&mut self) {
        self.until("a synchronous standby", |one| (0..2).any(|n| one.answers(n, "/synchronous")));
    }

    fn answers(&self, n: usize, path: &str) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.nodes[n].rest))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
    }

    pub fn until(&mut self, what: &str, is_so: impl Fn(&Patroni) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            if Instant::now() > deadline {
                let logs = ["etcd", "n1", "n2"].map(|name| {
                    std::fs::read_to_string(self.directory.join(name).with_extension("log"))
                        .unwrap_or_default()
                });
                panic!("there is never {what}:\n{}", logs.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The address of a database: whichever node takes writes.
    pub fn url(&self, database: &str) -> String {
        let [one, two] = [self.nodes[0].port, self.nodes[1].port];
        format!(
            "postgres://{USER}@127.0.0.1:{one},127.0.0.1:{two}/{database}?target_session_attrs=read-write"
        )
    }

    /// Makes a database at the leader.
    pub fn create(&self, database: &str) {
        let port = self.nodes[self.leader().unwrap()].port.to_string();
        let mut psql = Command::new(programs().unwrap().join("psql"));
        psql.args(["-XqAt", "-U", USER, "-h", "127.0.0.1", "-p", &port, "-d", "postgres", "-c"]);
        let made = psql.arg(format!("CREATE DATABASE {database}")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

/// What it says goes into a file, and its number into another, for the guardian.
fn spawn(directory: &Path, name: &str, command: &mut Command) -> Child {
    let log = directory.join(name).with_extension("log");
    let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    let child = command.stdout(Stdio::from(log.try_clone().unwrap())).stderr(log).spawn().unwrap();
    std::fs::write(directory.join(name).with_extension("pid"), child.id().to_string()).unwrap();
    child
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for agent in self.nodes.iter_mut().filter_map(|node| node.agent.as_mut()).chain([&mut self.etcd]) {
            drop(agent.kill());
            drop(agent.wait());
        }
    }
}
