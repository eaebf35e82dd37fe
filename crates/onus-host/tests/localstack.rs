//! The LocalStack probe against LocalStack itself. `ONUS_TEST_LOCALSTACK=0` leaves it out.

#![cfg(test)]

use onus_core::probe::{Probe, ProbeResult, Verdict};
use onus_core::time::Timestamp;
use onus_host::probe::{Surroundings, run};
use rustix::process::{Pid, Signal, kill_process_group};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Its installation takes minutes, its start seconds.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// What the script says when LocalStack cannot be had here.
const UNAVAILABLE: i32 = 77;

/// A LocalStack of our own, and everything it starts.
struct LocalStack {
    child: Child,
    port: u16,
    _state: tempfile::TempDir,
}

impl LocalStack {
    fn start() -> LocalStack {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/localstack-up");
        let state = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(script);
        command.arg(state.path()).arg(port.to_string()).process_group(0);
        LocalStack { child: command.spawn().unwrap(), port, _state: state }
    }

    fn probe(&self, options: &str) -> ProbeResult {
        let spec = format!("localstack:http://127.0.0.1:{}{options}", self.port);
        let probe: Probe = spec.parse().unwrap();
        run(&[probe], &Surroundings::default(), || Timestamp(0)).pop().unwrap()
    }

    /// Whether it came up; how it ended if it did not.
    fn wait(&mut self) -> Result<(), ExitStatus> {
        let until = Instant::now() + PATIENCE;
        loop {
            if self.probe("").passed() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                return Err(status);
            }
            assert!(Instant::now() < until, "LocalStack did not come up: {:?}", self.probe(""));
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn stop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for LocalStack {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.stop();
        }
    }
}

#[test]
fn services_that_work_pass_and_a_dead_server_fails() {
    if std::env::var_os("ONUS_TEST_LOCALSTACK").is_some_and(|value| value == "0") {
        eprintln!("skipped: ONUS_TEST_LOCALSTACK is 0");
        return;
    }
    let mut localstack = LocalStack::start();
    match localstack.wait() {
        Ok(()) => {}
        Err(status) if status.code() == Some(UNAVAILABLE) => {
            eprintln!("skipped: there is no LocalStack here (see above)");
            return;
        }
        Err(status) => panic!("LocalStack ended by itself: {status}"),
    }

    let working = localstack.probe("#services=s3+sqs");
    assert_eq!(working.verdict, Verdict::Passed, "{working:?}");
    assert!(working.detail.contains("s3 ") && working.detail.contains("sqs "), "{working:?}");

    let unknown = localstack.probe("#services=s3+no-such-service");
    assert_eq!(unknown.verdict, Verdict::Failed, "{unknown:?}");
    assert!(unknown.detail.starts_with("no-such-service is unknown here"), "{unknown:?}");

    localstack.stop();
    let dead = localstack.probe("#services=s3+sqs");
    assert_eq!(dead.verdict, Verdict::Failed, "{dead:?}");
    assert!(dead.detail.contains("refused"), "{dead:?}");
}
