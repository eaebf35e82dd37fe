//! The LocalStack probe against LocalStack itself.

use onus_core::probe::{Probe, ProbeResult, Verdict};
use onus_core::time::Timestamp;
use onus_host::probe::{Surroundings, run};
use onus_testkit::LocalStack;

fn probe(port: u16, options: &str) -> ProbeResult {
    let probe: Probe = format!("localstack:http://127.0.0.1:{port}{options}").parse().unwrap();
    run(&[probe], &Surroundings::default(), || Timestamp(0)).pop().unwrap()
}

#[test]
fn services_that_work_pass_and_a_dead_server_fails() {
    let Some(mut localstack) = LocalStack::start() else { return };
    let working = probe(localstack.port, "#services=s3+sqs");
    assert_eq!(working.verdict, Verdict::Passed, "{working:?}");
    assert!(working.detail.contains("s3 ") && working.detail.contains("sqs "), "{working:?}");

    let unknown = probe(localstack.port, "#services=s3+no-such-service");
    assert_eq!(unknown.verdict, Verdict::Failed, "{unknown:?}");
    assert!(unknown.detail.starts_with("no-such-service is unknown here"), "{unknown:?}");

    localstack.stop();
    let dead = probe(localstack.port, "#services=s3+sqs");
    assert_eq!(dead.verdict, Verdict::Failed, "{dead:?}");
    assert!(dead.detail.contains("refused"), "{dead:?}");
}
