//! A LocalStack of a test's own, and everything it starts. `ONUS_TEST_LOCALSTACK=0` leaves it out.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Its installation takes minutes, its start seconds.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// What the script says when LocalStack cannot be had here.
const UNAVAILABLE: i32 = 77;

#[derive(Debug)]
pub struct LocalStack {
    child: Child,
    pub port: u16,
    _state: tempfile::TempDir,
}

impl LocalStack {
    /// One that answers; none where it cannot be had, which standard error explains.
    pub fn start() -> Option<LocalStack> {
        if std::env::var_os("ONUS_TEST_LOCALSTACK").is_some_and(|value| value == "0") {
            say("skipped: ONUS_TEST_LOCALSTACK is 0");
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/localstack-up");
        let state = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(script);
        command.arg(state.path()).arg(port.to_string()).process_group(0);
        let mut started = LocalStack { child: command.spawn().unwrap(), port, _state: state };
        let until = Instant::now() + PATIENCE;
        while !started.answers() {
            if let Some(status) = started.child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(UNAVAILABLE), "LocalStack ended by itself");
                say("skipped: there is no LocalStack here (see above)");
                return None;
            }
            assert!(Instant::now() < until, "LocalStack did not come up");
            std::thread::sleep(Duration::from_millis(500));
        }
        Some(started)
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let request = "GET /_localstack/health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
        let mut answer = [0; 15];
        let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_exact(&mut answer));
        read.is_ok() && answer.ends_with(b"200 OK")
    }

    pub fn stop(&mut self) {
        let group = format!("-{}", self.child.id());
        drop(Command::new("kill").args(["-KILL", "--", &group]).status());
        drop(self.child.wait());
    }
}

impl Drop for LocalStack {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.stop();
        }
    }
}

#[allow(clippy::print_stderr, reason = "nobody may think that this was tested")]
fn say(words: &str) {
    eprintln!("{words}");
}
