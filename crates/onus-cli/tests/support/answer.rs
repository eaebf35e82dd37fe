//! What a call answered, checked against the contract's manners as it is read.

use serde_json::Value;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// `None` when a signal ended the process.
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Answer {
    /// No call may panic, abort or crash, whatever it was given.
    pub(crate) fn new(output: Output, took: Duration) -> Answer {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let signal = output.status.signal();
        let answer = Answer {
            exit: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            took,
        };
        let crashed = matches!(answer.exit, Some(101 | 134)) || matches!(signal, Some(4 | 6 | 7 | 8 | 11));
        let said = ["panicked at", "stack backtrace", "RUST_BACKTRACE", "a defect of onus"];
        assert!(!crashed && !said.iter().any(|words| answer.stderr.contains(words)), "a crash: {answer:#?}");
        answer
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.exit == Some(0)
    }

    /// The one document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("not one JSON document ({e}): {self:#?}"))
    }

    /// The error object of a refused call with `--json`: one document on stderr, nothing on stdout, an exit code
    /// that belongs to the code.
    pub(crate) fn error(&self) -> Value {
        assert_eq!(self.stdout, "", "a refusal writes no data: {self:#?}");
        let document: Value = serde_json::from_str(&self.stderr)
            .unwrap_or_else(|e| panic!("stderr is not one JSON document ({e}): {self:#?}"));
        let error = document["error"].clone();
        for field in ["code", "title", "detail"] {
            assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "no `{field}`: {self:#?}");
        }
        let code = error["code"].as_str().unwrap_or_default();
        assert_eq!(self.exit, Some(documented_exit(code)), "the exit of `{code}`: {self:#?}");
        error
    }

    pub(crate) fn code(&self) -> String {
        self.error()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// The contract's table, written out a second time: a test may not ask the code what the code should do.
fn documented_exit(code: &str) -> i32 {
    match code {
        "internal" => 1,
        "invalid_input"
        | "map_invalid"
        | "dependency_cycle"
        | "reason_required"
        | "resolution_required"
        | "identity_required"
        | "unknown_worker"
        | "request_conflict" => 2,
        "unknown_task" | "unknown_name" => 3,
        "lease_held" | "fenced" | "lease_required" | "not_expired" | "not_claimable" => 4,
        "nothing_ready" => 6,
        "checks_failed" => 7,
        "store_busy" | "store_unavailable" => 69,
        _ => 5,
    }
}
