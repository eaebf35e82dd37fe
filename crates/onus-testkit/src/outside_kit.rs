//! What mirrors and notifications are held against: servers made of GitHub's and GitLab's published descriptions, a mail server, and
//! the reference library of Standard Webhooks. `ONUS_TEST_OUTSIDE=0` leaves them out.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What the script says when it cannot be had here.
const UNAVAILABLE: i32 = 77;
const PATIENCE: Duration = Duration::from_secs(240);

/// Programs that tests talk to, in a directory of their own.
#[derive(Debug, Clone)]
pub struct OutsideKit {
    directory: PathBuf,
}

/// A server that ends with whoever started it.
#[derive(Debug)]
pub struct KitServer {
    pub port: u16,
    child: Child,
}

impl Drop for KitServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl OutsideKit {
    /// None where it cannot be had, which standard error explains.
    pub fn get() -> Option<OutsideKit> {
        static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
        let directory = DIRECTORY.get_or_init(|| {
            if std::env::var("ONUS_TEST_OUTSIDE").is_ok_and(|value| value == "0") {
                return None;
            }
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/outside-kit");
            let ran = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
            if !ran.status.success() {
                assert_eq!(ran.status.code(), Some(UNAVAILABLE), "tests/outside-kit failed");
                return None;
            }
            Some(PathBuf::from(String::from_utf8(ran.stdout).unwrap().trim()))
        });
        if directory.is_none() {
            say("skipped: there is nothing here to hold mirrors and notifications against");
        }
        directory.clone().map(|directory| OutsideKit { directory })
    }

    /// A server that holds every request against GitHub's description: 422, and the reason in `sl-violations`.
    pub fn github(&self) -> KitServer {
        self.described("github.json")
    }

    /// The same of GitLab's.
    pub fn gitlab(&self) -> KitServer {
        self.described("gitlab.json")
    }

    fn described(&self, description: &str) -> KitServer {
        let [node, prism, description] =
            ["bin/node", "node_modules/.bin/prism", description].map(|name| self.directory.join(name));
        serve(|command, port| {
            command
                .arg(node)
                .arg(prism)
                .args(["mock", "--errors", "-h", "127.0.0.1", "-p", port])
                .arg(description);
        })
    }

    /// A mail server that is spoken to under TLS only: by STARTTLS (`starttls`), or from the first byte on (`tls`).
    pub fn mail(&self, maildir: &Path, certificate: &str, key: &str, mode: &str) -> KitServer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/mail-server.py");
        serve(|command, port| {
            command.arg(self.directory.join("venv/bin/python")).args([script, port]).arg(maildir);
            command.args([certificate, key, mode]);
        })
    }

    /// Whether the reference library takes a delivery for one that the secret's owner sent.
    pub fn webhook_verifies(&self, secret: &str, headers: &str, body: &str) -> bool {
        let script = "const { Webhook } = require('standardwebhooks'); const [secret, headers, body] = process.argv.slice(1); \
                      new Webhook(secret).verify(body, JSON.parse(headers));";
        let mut command = Command::new(self.directory.join("bin/node"));
        command.args(["-e", script, secret, headers, body]).current_dir(&self.directory);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }
}

fn serve(named: impl FnOnce(&mut Command, &str)) -> KitServer {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // It ends with whoever started it, however that ends.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    named(&mut command, &port.to_string());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
    let mut server = KitServer { port, child: child.unwrap() };
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(server.child.try_wait().unwrap().is_none(), "the server ended by itself");
        assert!(Instant::now() < until, "the server did not come up");
        std::thread::sleep(Duration::from_millis(50));
    }
    server
}

#[allow(clippy::print_stderr, reason = "nobody may think that this was tested")]
fn say(words: &str) {
    eprintln!("{words}");
}
