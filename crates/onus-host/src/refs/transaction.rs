//! A reference transaction that stays open while something else is decided under its lock.

use crate::file::printable;
use crate::git::Git;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};

/// How long git itself waits for a reference that another process has locked.
const WAIT: &str = "core.filesRefLockTimeout=10000";
const WAIT_PACKED: &str = "core.packedRefsTimeout=10000";

/// `git update-ref --stdin`. Dropped before [`Transaction::commit`], it is aborted.
#[derive(Debug)]
pub(super) struct Transaction {
    git: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Transaction {
    /// Takes the locks that `change` needs: one line such as `verify REF OLD`.
    pub(super) fn prepare(dir: &Path, change: &str) -> Result<Transaction, Refusal> {
        let mut git = Git::ours_with(dir, &[WAIT, WAIT_PACKED], "update-ref")
            .args(&["--no-deref", "-m", "onus", "--stdin"])
            .start()?;
        let (Some(input), Some(output)) = (git.stdin.take(), git.stdout.take()) else {
            return Err(Refusal::new(Code::Internal, "git was started without pipes"));
        };
        let mut transaction = Transaction { git, input: Some(input), output: BufReader::new(output) };
        transaction.say("start", "start: ok")?;
        transaction.say(&format!("{change}\nprepare"), "prepare: ok")?;
        Ok(transaction)
    }

    pub(super) fn commit(mut self) -> Result<(), Refusal> {
        self.say("commit", "commit: ok")
    }

    fn say(&mut self, words: &str, expected: &str) -> Result<(), Refusal> {
        let mut line = String::new();
        let spoken = self
            .input
            .as_mut()
            .ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))
            .and_then(|input| writeln!(input, "{words}"))
            .and_then(|()| self.output.read_line(&mut line));
        if spoken.is_ok() && line.trim_end() == expected {
            return Ok(());
        }
        Err(self.why())
    }

    /// git has said no and is about to leave: its last words.
    fn why(&mut self) -> Refusal {
        self.input = None;
        let mut said = String::new();
        if let Some(stderr) = &mut self.git.stderr {
            let _ = stderr.take(64 * 1024).read_to_string(&mut said);
        }
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let detail = format!("the reference could not be locked: {}", printable(first));
        if said.contains("cannot lock ref") {
            Refusal::new(Code::StoreBusy, detail)
                .hint("try again; if no git is running, remove the .lock file it names")
        } else {
            Refusal::new(Code::StoreUnavailable, detail)
        }
    }
}

impl Drop for Transaction {
    /// The end of its input tells git to abort what was not committed.
    fn drop(&mut self) {
        self.input = None;
        let _ = self.git.wait();
    }
}
