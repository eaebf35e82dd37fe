//! Settings and imports that are wrong: refused as a whole, with the file and the line, and without an effect (rules:
//! threat 14).

use crate::support::case::{Case, case, furnished, is_plain, refuse, with};
use crate::support::text;
use std::fs;

/// A settings file, the line a message must name, and what is wrong with it.
fn bad_settings() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let bomb = {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let previous = format!("*a{}", level - 1);
            let many = vec![previous; 9].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{many}]\n"));
        }
        bomb
    };
    vec![
        ("an unknown key", b"project: T\n\nprojekt: T\n".to_vec(), "3"),
        ("an unknown key inside", b"lease:\n  agent_ttl: 15m\n  agent_tll: 15m\n".to_vec(), "3"),
        ("a duplicate key", b"project: T\nproject: U\n".to_vec(), "2"),
        ("a wrong type", b"lease: soon\n".to_vec(), "1"),
        ("a list", b"- project\n".to_vec(), "1"),
        ("a bad duration", b"lease:\n  grace: soon\n".to_vec(), "2"),
        ("a negative number", b"queue:\n  limit: -1\n".to_vec(), "2"),
        ("a bad name", b"project: ../T\n".to_vec(), "1"),
        ("broken syntax", b"lease: [1, 2\nqueue: {\n".to_vec(), ""),
        ("no text", b"\xff\xfe\x00\x01".to_vec(), ""),
        ("control characters", b"project: \"T\x1b[31m\"\n".to_vec(), ""),
        ("a bomb", bomb.into_bytes(), ""),
        ("two megabytes", b"# x\n".repeat(500_000), ""),
        ("a deep nest", b"[".repeat(100_000), ""),
    ]
}

#[test]
fn settings_are_read_strictly() {
    let site = furnished();
    let settings = site.repo().join("onus.yaml");
    for (name, bytes, line) in bad_settings() {
        fs::write(&settings, &bytes).unwrap();
        for args in
            [&["claim", "T-1", "--as", "@a2", "--workstation", "ws-2", "--json"][..], &["validate", "--json"]]
        {
            let answer = site.run(args);
            let error = answer.error();
            assert_eq!(error["code"], "invalid_input", "{name}: {answer:#?}");
            let detail = text(&error["detail"]);
            assert!(detail.contains("onus.yaml") && detail.contains(line), "{name}: line {line:?}: {detail}");
            assert!(is_plain(&answer), "{name}: {answer:#?}");
        }
    }
    fs::remove_file(&settings).unwrap();
    fs::create_dir(&settings).unwrap();
    let answer = site.run(&["claim", "T-1", "--as", "@a2", "--workstation", "ws-2", "--json"]);
    assert_eq!(answer.code(), "invalid_input", "{answer:#?}");
    fs::remove_dir(&settings).unwrap();
    fs::write(&settings, "").unwrap();
    site.ok(&["claim", "T-1", "--as", "@a2", "--workstation", "ws-2"]);
}

#[test]
fn imports_are_whole_or_nothing() {
    let good = "{\"title\":\"good\",\"origin_ask_ref\":\"bad:1\"}\n";
    let deep = format!("{{\"title\":{}1{}}}\n", "[".repeat(50_000), "]".repeat(50_000));
    let lines: Vec<(String, &'static str)> = vec![
        ("nonsense\n".into(), "invalid_input"),
        ("{\"title\":\"x\"\n".into(), "invalid_input"),
        ("[]\n".into(), "invalid_input"),
        ("{}\n".into(), "invalid_input"),
        ("{\"title\":5}\n".into(), "invalid_input"),
        ("{\"title\":\"\"}\n".into(), "invalid_input"),
        ("{\"title\":\"a\\u001b[31m\"}\n".into(), "invalid_input"),
        ("{\"title\":\"a\\u0000\"}\n".into(), "invalid_input"),
        (format!("{{\"title\":\"{}\"}}\n", "x".repeat(200_000)), "invalid_input"),
        ("{\"title\":\"x\",\"no_such_field\":1}\n".into(), "invalid_input"),
        ("{\"title\":\"x\",\"title\":\"y\"}\n".into(), "invalid_input"),
        ("{\"title\":\"x\",\"priority\":\"P9\"}\n".into(), "invalid_input"),
        ("{\"title\":\"x\",\"depends_on\":[\"T-999\"]}\n".into(), "invalid_input|unknown_task"),
        ("{\"title\":\"x\",\"depends_on\":[\"bad:none\"]}\n".into(), "invalid_input|unknown_task"),
        (
            "{\"title\":\"x\",\"origin_ask_ref\":\"bad:2\",\"depends_on\":[\"bad:3\"]}\n\
             {\"title\":\"y\",\"origin_ask_ref\":\"bad:3\",\"depends_on\":[\"bad:2\"]}\n"
                .into(),
            "dependency_cycle",
        ),
        (deep, "invalid_input"),
    ];
    let line = "import --format jsonl - --as @ada-lovelace";
    let mut cases: Vec<Case> =
        lines.into_iter().map(|(bad, codes)| case(line, codes).input(format!("{good}{bad}"))).collect();
    cases.push(case(line, "invalid_input").input(b"{\"title\":\"\xff\"}\n".to_vec()));
    cases.push(with(
        "import --format jsonl {} --as @ada-lovelace",
        "/nonexistent.jsonl",
        "invalid_input|unknown_name",
    ));
    cases.push(with("import --format jsonl {} --as @ada-lovelace", "/", "invalid_input|unknown_name"));
    refuse(&furnished(), &cases);
}
