//! Settings and imports that are wrong: refused as a whole, with the file and the line, and without an effect (rules:
//! threat 14).

use crate::support::case::{Case, case, furnished, is_plain, refuse, with};
use crate::support::{Site, text};
use serde_json::json;
use std::fs;
use std::path::Path;

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

/// The samples of every tool, in encodings that are not UTF-8, by themselves and within a directory.
#[test]
fn files_of_other_tools_are_text_in_utf_8() {
    let site = furnished();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../onus-app/tests/samples");
    let folder = site.repo().join("backlog");
    let page = folder.join("tasks/one.md");
    fs::create_dir_all(page.parent().unwrap()).unwrap();
    fs::write(folder.join("good.md"), "---\nid: T-9\ntitle: good\nstatus: To Do\n---\n").unwrap();
    let (before, mut wrong) = (site.tasks(), Vec::new());
    for name in [
        "beads.jsonl",
        "taskmaster.json",
        "queue.yaml",
        "github.json",
        "redmine.json",
        "redmine.csv",
        "backlog/tasks/task-1 - First.md",
        "kano/KB-TSK-0001.md",
    ] {
        let text = fs::read_to_string(samples.join(name)).unwrap();
        let wide: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = wide.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = wide.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let broken = |bytes: &[u8]| [&text.as_bytes()[..40], bytes, &text.as_bytes()[40..]].concat();
        for (how, bytes, words) in [
            ("UTF-16 with its mark", [&b"\xff\xfe"[..], &little].concat(), "UTF-16"),
            ("UTF-16 the other way", [&b"\xfe\xff"[..], &big].concat(), "UTF-16"),
            ("UTF-16 without a mark", little.clone(), "UTF-16"),
            ("a zero in it", broken(b"\0"), "is no text"),
            ("Latin-1", broken(b"caf\xe9"), "is not UTF-8"),
            ("a letter that was cut", broken(b"\xf0\x9f"), "is not UTF-8"),
        ] {
            fs::write(&page, &bytes).unwrap();
            let calls =
                [(vec!["import", "-", "--json"], bytes), (vec!["import", "backlog", "--json"], Vec::new())];
            for (mut args, input) in calls {
                args.extend(["--as", "@ada-lovelace"]);
                let answer = site.feed(&args, input);
                let is_clear =
                    answer.exit == Some(2) && answer.code() == "invalid_input" && is_plain(&answer);
                if !is_clear || !answer.stderr.contains(words) || !answer.stderr.contains("line ") {
                    wrong.push(format!("{name}, {how}, {args:?}: {answer:#?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(site.tasks(), before, "something came in");
}

/// One finding each, whatever is wrong: also where a part of the file could not be read at all.
#[test]
fn circles_and_names_that_stand_twice_are_told_beside_what_cannot_be_read() {
    let site = furnished();
    let before = site.tasks();
    let issue = |id: &str, on: &str| {
        let links = json!([{ "depends_on_id": on, "type": "blocks" }]);
        json!({ "id": id, "title": id, "status": "open", "issue_type": "task", "dependencies": links })
    };
    let parent = |id: &str, of: &str| {
        let links = json!([{ "depends_on_id": of, "type": "parent-child" }]);
        json!({ "id": id, "title": id, "status": "open", "issue_type": "task", "dependencies": links })
    };
    let lines = [
        issue("a", "b").to_string(),
        issue("b", "a").to_string(),
        "{\"id\":\"c\",\"ti".to_owned(),
        issue("d", "a").to_string().replace("open", "floating"),
        parent("e", "f").to_string(),
        parent("f", "e").to_string(),
        issue("g", "a").to_string(),
        issue("g", "b").to_string(),
    ];
    fs::write(site.repo().join("issues.jsonl"), lines.join("\n")).unwrap();
    let args = ["import", "issues.jsonl", "--as", "@ada-lovelace", "--json"];
    let refused = site.run(&args);
    let error = refused.error();
    let told: Vec<&str> =
        error["findings"].as_array().unwrap().iter().map(|one| text(&one["detail"])).collect();
    let wanted = [
        "line 1: these lines wait for each other: 1, 2",
        "line 3: ",
        "line 4: `issues.jsonl`: `floating`",
        "line 5: these lines are each other's parents: 5, 6",
        "line 8: beads:g stands on line 7, too",
    ];
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    assert!(wanted.iter().zip(&told).all(|(wanted, told)| told.starts_with(wanted)), "{told:#?}");
    // A dry run tells the same as a document.
    let dry = site.run(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(
        (dry.exit, dry.json()["refused"].as_array().unwrap().len()),
        (Some(2), wanted.len()),
        "{dry:#?}"
    );
    assert_eq!(site.tasks(), before, "something came in");
    let unknown = site.run(&["import", "issues.jsonl", "--json"]);
    assert_eq!(unknown.code(), "identity_required", "who asks is settled first: {unknown:#?}");
}

/// What a directory has beside tasks is named: whoever misses something sees why.
#[test]
fn what_is_not_read_of_a_directory_is_named() {
    let site = Site::new();
    let folder = site.repo().join("backlog");
    let deep = folder.join("a/b/c/d/e/f/g/h/i");
    fs::create_dir_all(&deep).unwrap();
    let page = "---\nid: T-9\ntitle: good\nstatus: To Do\n---\n";
    for (name, text) in
        [("good.md", page), ("config.yml", "a: b\n"), ("picture.png", "x"), ("README.md", "words\n")]
    {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::write(deep.join("deep.md"), page).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.join("linked.md")).unwrap();
    let view = site.ok(&["import", "backlog", "--as", &site.person]);
    let named: Vec<&str> = view["skipped"].as_array().unwrap().iter().map(|one| text(&one["name"])).collect();
    assert_eq!(view["created"], 1, "{view:#}");
    for name in ["config.yml", "picture.png", "README.md", "linked.md", "a/b/c/d/e/f/g/h/i"] {
        assert!(named.contains(&name), "{name}: {view:#}");
    }
}
