//! Ends what a test started and removes its directory as soon as the test is gone, however that happened.

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Its standard input ends when whoever started it is gone. Who would start a server again (`*.pid`) is ended before the
/// servers are.
const SCRIPT: &str = r#"read -r _
for file in "$0"/*.pid; do [ -e "$file" ] && kill -KILL "$(cat "$file")" 2>/dev/null; done
for file in "$0"/*/postmaster.pid; do
  pid=$(head -n 1 "$file" 2>/dev/null) && [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
done
rm -rf "$0""#;

#[derive(Debug)]
pub(crate) struct Guardian {
    process: Child,
    leash: Option<ChildStdin>,
}

impl Guardian {
    pub(crate) fn of(directory: &Path) -> Guardian {
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let leash = process.stdin.take();
        Guardian { process, leash }
    }

    /// Everything is to end now.
    pub(crate) fn call(&mut self) {
        self.leash = None;
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.call();
        drop(self.process.wait());
    }
}
