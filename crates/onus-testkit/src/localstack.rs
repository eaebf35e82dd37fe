//! LocalStack: a port of a test's own that can go down. `ONUS_TEST_LOCALSTACK=0` leaves it out.

use crate::relay::Relay;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Its installation takes minutes, its start seconds.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// What the script says when LocalStack cannot be had here.
const UNAVAILABLE: i32 = 77;

/// Where the run's LocalStack tells what came of it: the directory of [`LocalStack::offer`]; or `0`.
const VARIABLE: &str = "ONUS_TEST_LOCALSTACK";

#[derive(Debug)]
pub struct LocalStack {
    pub port: u16,
    server: Server,
}

#[derive(Debug)]
enum Server {
    Own {
        child: Child,
        _state: tempfile::TempDir,
    },
    /// The run's, seen through a port that only this test has.
    Shared(Relay),
}

impl LocalStack {
    /// One that answers; none where it cannot be had, which standard error explains.
    pub fn start() -> Option<LocalStack> {
        match std::env::var(VARIABLE) {
            Ok(value) if value == "0" => {
                say("skipped: ONUS_TEST_LOCALSTACK is 0");
                None
            }
            Ok(place) => LocalStack::shared(Path::new(&place)),
            Err(_) => LocalStack::own(),
        }
    }

    /// Starts one for all programs of a run, and says in `place` where it is, or that there is none.
    pub fn offer(place: &Path) -> Option<LocalStack> {
        let own = LocalStack::own();
        let told = own.as_ref().map_or(String::new(), |own| own.port.to_string());
        let new = place.join("new");
        std::fs::write(&new, told).unwrap();
        std::fs::rename(new, place.join("port")).unwrap();
        own
    }

    fn shared(place: &Path) -> Option<LocalStack> {
        let until = Instant::now() + PATIENCE;
        let told = loop {
            if let Ok(told) = std::fs::read_to_string(place.join("port")) {
                break told;
            }
            assert!(Instant::now() < until, "LocalStack did not come up");
            std::thread::sleep(Duration::from_millis(100));
        };
        let Ok(port) = told.parse() else {
            say("skipped: there is no LocalStack here");
            return None;
        };
        if !answers(port) {
            say("the LocalStack of this run has ended: starting another");
            return LocalStack::own();
        }
        let relay = Relay::to(port);
        // It serves a whole run: one that is busy with others may break a connection off.
        while !answers(relay.port) {
            assert!(Instant::now() < until, "LocalStack does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(LocalStack { port: relay.port, server: Server::Shared(relay) })
    }

    fn own() -> Option<LocalStack> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/localstack-up");
        let state = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // It ends with whoever started it, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", script]);
        command.arg(state.path()).arg(port.to_string()).process_group(0);
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        while !answers(port) {
            if let Some(status) = child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(UNAVAILABLE), "LocalStack ended by itself");
                say("skipped: there is no LocalStack here (see above)");
                return None;
            }
            assert!(Instant::now() < until, "LocalStack did not come up");
            std::thread::sleep(Duration::from_millis(200));
        }
        Some(LocalStack { port, server: Server::Own { child, _state: state } })
    }

    /// From here on nobody answers at its port.
    pub fn stop(&mut self) {
        match &mut self.server {
            Server::Shared(relay) => relay.stop(),
            Server::Own { child, .. } => {
                if let Ok(None) = child.try_wait() {
                    let group = format!("-{}", child.id());
                    drop(Command::new("kill").args(["-KILL", "--", &group]).status());
                    drop(child.wait());
                }
            }
        }
    }
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let request = "GET /_localstack/health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
    let mut answer = [0; 15];
    let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_exact(&mut answer));
    read.is_ok() && answer.ends_with(b"200 OK")
}

impl Drop for LocalStack {
    fn drop(&mut self) {
        self.stop();
    }
}

#[allow(clippy::print_stderr, reason = "nobody may think that this was tested")]
fn say(words: &str) {
    eprintln!("{words}");
}
