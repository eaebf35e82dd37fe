use super::*;
use crate::probe::Endpoint;
use proptest::prelude::*;

fn probe(spec: &str) -> Probe {
    spec.parse().unwrap_or_else(|why| panic!("{spec}: {why}"))
}

#[test]
fn the_written_form_reads_back() {
    for spec in [
        "command:make doctor",
        "command:test -e a; echo b:c#d,e",
        "command:sleep 1;timeout=30s",
        "command:run;timeout=3s;timeout=5s",
        "tcp:localhost:5432",
        "tcp:[::1]:80;timeout=250ms",
        "http:http://localhost:8080/health",
        "http:https://example.org/#status=204",
        "http:http://h/a#pointer=/status/db",
        "http:http://h/a#status=200,pointer=/a,b/c~1d,equals=up, and running",
        "http:http://h/a#pointer=/a,equals=",
        "localstack:http://localhost:4566",
        "localstack:http://localhost:4566#services=s3+sqs",
        "git",
        "git:clean",
        "git:clean,branch=agent/A-backend-1,behind=20,at=0123abc",
        "git:behind=0",
        "disk:500MB",
        "disk:3GiB;timeout=1s",
        "disk:1500MB",
        "disk:7B",
    ] {
        assert_eq!(probe(spec).to_string(), spec);
        let json = serde_json::to_string(&probe(spec)).unwrap();
        assert_eq!(serde_json::from_str::<Probe>(&json).unwrap(), probe(spec));
    }
}

#[test]
fn other_ways_to_write_it_have_one_meaning() {
    for (spec, written) in [
        ("  git  ", "git"),
        ("git,clean", "git:clean"),
        ("git:at=0123abc,clean", "git:clean,at=0123abc"),
        ("http://h/a#status=200", "http:http://h/a#status=200"),
        ("https://h/", "http:https://h/"),
        ("https:https://h/", "http:https://h/"),
        ("localstack:http://h:4566/", "localstack:http://h:4566"),
        ("tcp:h:1;timeout=5s", "tcp:h:1"),
        ("tcp:h:1;timeout=1m", "tcp:h:1;timeout=60s"),
        ("command: true ;timeout=1500ms", "command:true;timeout=1500ms"),
        ("disk:1000KB", "disk:1MB"),
    ] {
        assert_eq!(probe(spec).to_string(), written, "{spec}");
    }
}

#[test]
fn the_variant_carries_what_was_written() {
    let ProbeKind::Http { url, expect } = probe("http://h:81/x#status=200,pointer=/a,equals=b,c").kind else {
        panic!("not http");
    };
    assert_eq!((url.as_str(), url.endpoint().port()), ("http://h:81/x", 81));
    let body = Expected { pointer: "/a".into(), equals: Some("b,c".into()) };
    assert_eq!(expect, Answer { status: Some(200), body: Some(body) });
    assert_eq!(probe("tcp:h:1").timeout, Millis::secs(5));
    assert_eq!(probe("disk:2GB").kind, ProbeKind::Disk { bytes: 2_000_000_000 });
}

#[test]
fn what_is_no_probe_is_refused() {
    for (spec, why) in [
        ("", "empty"),
        ("ping:h", "is not a probe"),
        ("github", "is not clean"),
        ("command:", "empty"),
        ("command:a\nb", "control characters"),
        ("command:a\u{1b}[2J", "control characters"),
        ("command:a;timeout=soon", "not a duration"),
        ("tcp:h:1;timeout=0s", "is not between 100ms and 60s"),
        ("tcp:h:1;timeout=61s", "is not between 100ms and 60s"),
        ("tcp:h", "HOST:PORT"),
        ("http:ftp://h/", "http:// or https://"),
        ("http:http://me:pw@h/", "password"),
        ("http:http://h/#status=99", "status=N"),
        ("http:http://h/#status=200,state=up", "status=N"),
        ("http:http://h/#equals=up", "status=N"),
        ("http:http://h/#status=200,equals=up", "needs a pointer"),
        ("http:http://h/#pointer=a", "JSON pointer"),
        ("http:http://h/#pointer=/a~2", "JSON pointer"),
        ("localstack:http://h#services=", "list of services"),
        ("localstack:http://h#services=s3,sqs", "list of services"),
        ("localstack:http://h?a=b", "has a query"),
        ("localstack:http://h#service=s3", "services=NAME"),
        ("git:dirty", "is not clean"),
        ("git:clean,clean", "twice"),
        ("git:branch=-f", "is not clean"),
        ("git:branch=a..b", "is not clean"),
        ("git:behind=-1", "is not clean"),
        ("git:behind=+1", "is not clean"),
        ("git:at=HEAD", "is not clean"),
        ("disk:500", "is not a size"),
        ("disk:0MB", "is not a size"),
        ("disk:MB", "is not a size"),
        ("disk:99999999999TB", "is not a size"),
    ] {
        let refused = spec.parse::<Probe>().expect_err(spec);
        assert!(refused.contains(why), "{spec}: {refused}");
    }
    let long = format!("command:{}", "x".repeat(SPEC_MAX));
    assert!(long.parse::<Probe>().unwrap_err().contains("the limit is 2048"));
}

/// A line of text that reading leaves as it is: printable, nothing to trim.
fn words() -> impl Strategy<Value = String> {
    let text = "[ -~é]{0,30}(;timeout=)?[ -~]{0,20}";
    text.prop_map(|text| format!("x{}x", text.trim()))
}

fn url() -> impl Strategy<Value = Url> {
    "https?://([a-z]{1,9}|\\[::1\\])(:[1-9][0-9]{0,3})?(/[a-z%;=,]{0,9}){0,2}"
        .prop_map(|text| text.parse().unwrap())
}

fn kind() -> impl Strategy<Value = ProbeKind> {
    let pointer = "(/[a-z#;:= é]{1,6}){1,3}x";
    let body =
        (pointer, proptest::option::of(words())).prop_map(|(pointer, equals)| Expected { pointer, equals });
    let expect = (proptest::option::of(100..600_u16), proptest::option::of(body))
        .prop_map(|(status, body)| Answer { status, body });
    let tree = (
        any::<bool>(),
        proptest::option::of("[a-z]{1,5}(/[a-z0-9=;-]{1,8}){0,2}"),
        proptest::option::of(any::<u32>()),
        proptest::option::of("[0-9a-f]{7,64}"),
    );
    prop_oneof![
        words().prop_map(|line| ProbeKind::Command { line }),
        "[a-z0-9.]{1,20}:[1-9][0-9]{0,3}".prop_map(|text| ProbeKind::Tcp(text.parse::<Endpoint>().unwrap())),
        (url(), expect).prop_map(|(url, expect)| ProbeKind::Http { url, expect }),
        ("https?://[a-z]{1,9}", proptest::collection::vec("[a-z0-9-]{1,9}", 0..5))
            .prop_map(|(url, services)| ProbeKind::LocalStack { url: url.parse().unwrap(), services }),
        tree.prop_map(|(clean, branch, behind, at)| {
            let cleanness = if clean { Cleanness::Clean } else { Cleanness::Any };
            ProbeKind::Git(Tree { cleanness, branch, behind, at })
        }),
        (1..=u64::MAX).prop_map(|bytes| ProbeKind::Disk { bytes }),
    ]
}

proptest! {
    #[test]
    fn every_probe_reads_back_from_its_spec(kind in kind(), ms in 100..=60_000_i64) {
        let probe = Probe { kind, timeout: Millis(ms) };
        prop_assert_eq!(probe.to_string().parse::<Probe>(), Ok(probe));
    }

    #[test]
    fn what_is_read_is_written_the_same_ever_after(
        spec in "(command|tcp|https?|localstack|git|disk)[ -~é]{0,40}(;timeout=[0-9a-z]{1,4})?",
    ) {
        if let Ok(probe) = spec.parse::<Probe>() {
            prop_assert_eq!(probe.to_string().parse::<Probe>(), Ok(probe));
        }
    }
}
