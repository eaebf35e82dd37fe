//! `import`: all or nothing, once, with ids, references and states as the file means them.

use super::desk::{self, Desk, id, request};
use onus_app::import::Run;
use onus_core::code::Code;
use onus_core::command::{Command, Warrant};
use onus_core::task::CheckState;

fn check(desk: &mut Desk, expected: &[&str]) {
    assert_eq!(desk.summary(), expected);
    desk.assert_sound();
}

#[test]
fn a_title_is_enough() {
    let mut desk = Desk::new();
    let view = desk.import("{\"title\":\"one\"}\n\n  \r\n{\"title\":\" two \"}");
    assert_eq!((view.created, view.existing, view.dry_run, view.renamed.len()), (2, 0, false, 0));
    check(&mut desk, &["T-1 open one [] - -", "T-2 open two [] - -"]);
}

#[test]
fn every_field_arrives() {
    let mut desk = Desk::new();
    desk.import(
        r#"{"id":"API-7","uid":"01900000-0000-7000-8000-000000000001","title":"t","body":"b\nc","type":"backend","kind":"defect",
        "state":"todo","priority":"P0","risk":"high","role":"A-backend","lane":2,"sprint":"s1","tags":["x"],"scope":["src/**"],
        "merge_order":3,"origin_ask_ref":"github:a/b#1","checks":["make test",{"command":"cargo test","state":"approved"}],
        "assignment":{"task":"API-7"},"version":9,"created_by":"@x","created_at":"2020-01-01T00:00:00Z","updated_at":null,
        "untrusted":true,"blocked_on":"external:x","forced":true,"archived":true,"closed_by":"@x","closed_at":"x"}"#
            .replace('\n', "")
            .as_str(),
    );
    let task = desk.task("API-7");
    let spec = &task.spec;
    assert_eq!(task.uid.to_string(), "01900000-0000-7000-8000-000000000001");
    assert_eq!(spec.body.as_ref().and_then(|body| body.content()), Some("b\nc"));
    assert_eq!((spec.kind.as_str(), spec.lane, spec.merge_order), ("defect", Some(2), Some(3)));
    assert_eq!((spec.tags.len(), spec.scope.len()), (1, 1));
    assert_eq!(spec.priority.to_string(), "P0");
    // Whoever approved it elsewhere has no say here.
    assert!(spec.checks.iter().all(|check| check.state == CheckState::Proposed));
    assert_eq!(spec.checks[1].command, "cargo test");
    assert!(!task.archived);
    assert_eq!(task.created_by.as_str(), "@ada");
    desk.assert_sound();
}

#[test]
fn references_point_in_any_direction() {
    let mut desk = Desk::new();
    desk.import(
        "{\"title\":\"epic\",\"id\":\"API-1\",\"depends_on\":[\"gh:2\",\"API-3\"],\"parent\":\"gh:9\"}\n\
         {\"title\":\"slice\",\"origin_ask_ref\":\"gh:2\",\"parent\":\"API-1\"}\n\
         {\"title\":\"other\",\"id\":\"API-3\",\"depends_on\":[\"gh:2\"],\"parent\":\"api-1\"}\n\
         {\"title\":\"root\",\"origin_ask_ref\":\"gh:9\"}\n",
    );
    check(
        &mut desk,
        &[
            "T-2 open root [] - gh:9",
            "API-1 open epic [API-3 T-1] T-2 import:API-1",
            "T-1 open slice [] API-1 gh:2",
            "API-3 open other [T-1] API-1 import:API-3",
        ],
    );
    desk.import("{\"title\":\"later\",\"depends_on\":[\"API-3\",\"gh:2\"],\"parent\":\"gh:9\"}");
    assert_eq!(desk.summary()[4], "T-3 open later [API-3 T-1] T-2 -");
}

#[test]
fn the_same_file_twice_creates_nothing() {
    let mut desk = Desk::new();
    let file = "{\"title\":\"a\",\"origin_ask_ref\":\"gh:1\"}\n\
                {\"title\":\"b\",\"id\":\"API-5\"}\n\
                {\"title\":\"c\",\"id\":\"API-6\",\"uid\":\"01900000-0000-7000-8000-000000000001\"}\n\
                {\"title\":\"d\",\"id\":\"WEB-1\"}\n\
                {\"title\":\"e\",\"id\":\"WEB-2\",\"uid\":\"01900000-0000-7000-8000-000000000002\"}\n\
                {\"title\":\"f\",\"uid\":\"01900000-0000-7000-8000-000000000003\",\"depends_on\":[\"WEB-1\"]}\n";
    assert_eq!(desk.import(file).created, 6);
    let before = desk.summary();
    let again = desk.import(&file.replace("\"a\"", "\"edited words\""));
    assert_eq!((again.created, again.existing), (0, 6));
    check(&mut desk, &before.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(before[3], "T-2 open d [] - import:WEB-1");
}

#[test]
fn one_ask_on_two_lines_is_one_task() {
    let mut desk = Desk::new();
    let view = desk.import(
        "{\"title\":\"a\",\"origin_ask_ref\":\"gh:1\"}\n{\"title\":\"a again\",\"origin_ask_ref\":\"gh:1\"}\n\
         {\"title\":\"b\",\"depends_on\":[\"gh:1\"]}\n",
    );
    assert_eq!((view.created, view.existing), (2, 1));
    check(&mut desk, &["T-1 open a [] - gh:1", "T-2 open b [T-1] - -"]);
}

#[test]
fn ids_are_kept_where_they_can_be_and_references_follow_where_not() {
    let mut desk = Desk::new();
    desk.import("{\"title\":\"mine\",\"id\":\"API-1\",\"origin_ask_ref\":\"gh:mine\"}");
    let view = desk.import(
        "{\"title\":\"theirs\",\"id\":\"API-1\"}\n{\"title\":\"kept\",\"id\":\"T-2\",\"depends_on\":[\"API-1\"]}\n\
         {\"title\":\"foreign\",\"id\":\"WEB-7\",\"parent\":\"API-1\"}\n{\"title\":\"huge\",\"id\":\"API-999999999999999\"}\n",
    );
    let renamed: Vec<String> =
        view.renamed.iter().map(|r| format!("{}: {} {}", r.line, r.from, r.to)).collect();
    assert_eq!(renamed, ["1: API-1 T-3", "3: WEB-7 T-4", "4: API-999999999999999 T-5"]);
    check(
        &mut desk,
        &[
            "API-1 open mine [] - gh:mine",
            "T-3 open theirs [] - import:API-1",
            "T-2 open kept [T-3] - import:T-2",
            "T-4 open foreign [] T-3 import:WEB-7",
            "T-5 open huge [] - import:API-999999999999999",
        ],
    );
    // Numbers that were kept are used up.
    desk.import("{\"title\":\"next\"}");
    assert_eq!(desk.summary()[5], "T-6 open next [] - -");
}

#[test]
fn two_stores_may_both_have_an_api_12() {
    let mut desk = Desk::new();
    let line = |uid: u8| {
        format!(
            "{{\"title\":\"t{uid}\",\"id\":\"WEB-1\",\"uid\":\"01900000-0000-7000-8000-00000000000{uid}\"}}"
        )
    };
    desk.import(&line(1));
    assert_eq!(desk.import(&line(2)).created, 1);
    assert_eq!(desk.import(&line(2)).created, 0);
    assert_eq!(desk.summary().len(), 2);
}

#[test]
fn what_ended_elsewhere_can_never_be_claimed() {
    let mut desk = Desk::new();
    desk.import(
        "{\"title\":\"a\",\"state\":\"done\",\"resolution\":\"shipped\"}\n{\"title\":\"b\",\"state\":\"dropped\"}\n\
         {\"title\":\"c\",\"state\":\"in_progress\"}\n{\"title\":\"d\",\"state\":\"blocked\",\"depends_on\":[]}\n",
    );
    check(
        &mut desk,
        &["T-1 complete a [] - -", "T-2 dropped b [] - -", "T-3 open c [] - -", "T-4 open d [] - -"],
    );
    assert_eq!(desk.tasks()[0]["resolution"], "shipped");
    assert!(desk.task("T-1").archived && desk.task("T-2").archived);
    let envelope = onus_core::command::Envelope {
        request: request(),
        actor: Some("@ada".parse().unwrap()),
        token: None,
        task: Some(id("T-1")),
        project: None,
        base: None,
        command: Command::Claim {
            workstation: Some("ws-1".parse().unwrap()),
            here: None,
            assignee: None,
            ttl: None,
            warrant: Warrant::Forced { reason: Some("I want it".into()) },
            constraints: Vec::new(),
        },
    };
    let refused = desk.onus.submit(&envelope, &onus_app::submit::Target::Named).unwrap_err();
    assert_eq!(refused.code, Code::NotClaimable);
}

/// A file with one good line and these bad ones; what is refused, on which line.
fn refused(bad: &str, expected: &[(&str, &str)]) {
    let mut desk = Desk::new();
    let file = format!("{{\"title\":\"good\",\"origin_ask_ref\":\"ok:1\"}}\n{bad}");
    let refusal = desk.try_import("@ada", &file).unwrap_err();
    let found: Vec<String> =
        refusal.findings.iter().map(|finding| format!("{} {}", finding.code, finding.detail)).collect();
    assert_eq!(found.len(), expected.len(), "{bad}: {found:#?}");
    for (found, (code, words)) in found.iter().zip(expected) {
        assert!(found.starts_with(code) && found.contains(words), "{bad}: {found} is not {code} {words}");
        assert!(!found.contains(|c: char| c.is_control()), "{found:?}");
    }
    assert_eq!(refusal.code.name(), expected[0].0);
    assert!(refusal.hint.is_some() && refusal.request_id.is_some());
    assert_eq!(desk.summary().len(), 0, "{bad}: something was written");
}

#[test]
fn bad_lines_of_every_kind() {
    let bad = "invalid_input";
    refused("nonsense", &[(bad, "line 2: ")]);
    refused("{\"title\":\"x\"", &[(bad, "line 2: ")]);
    refused("[]", &[(bad, "line 2: ")]);
    refused("null", &[(bad, "line 2: ")]);
    refused("{}", &[(bad, "line 2: a line needs at least a title")]);
    refused("{\"title\":null}", &[(bad, "needs at least a title")]);
    refused("{\"title\":5}", &[(bad, "line 2: ")]);
    refused("{\"title\":\" \"}", &[(bad, "line 2: the title is empty")]);
    refused("{\"title\":\"a\\u001b[31m\"}", &[(bad, "control characters")]);
    refused(&format!("{{\"title\":\"{}\"}}", "x".repeat(501)), &[(bad, "the limit is 500")]);
    refused("{\"title\":\"x\",\"colour\":1}", &[(bad, "unknown field `colour`")]);
    refused("{\"title\":\"x\",\"\\u001b[31m\":1}", &[(bad, "unknown field")]);
    refused("{\"title\":\"x\",\"title\":\"y\"}", &[(bad, "duplicate field `title`")]);
    refused("{\"title\":\"x\",\"version\":1,\"version\":2}", &[(bad, "duplicate field `version`")]);
    refused("{\"title\":\"x\",\"priority\":\"P9\"}", &[(bad, "priority")]);
    refused("{\"title\":\"x\",\"state\":\"later\"}", &[(bad, "`later` is not a state")]);
    refused("{\"title\":\"x\",\"risk\":\"none\"}", &[(bad, "is not a risk")]);
    refused("{\"title\":\"x\",\"id\":\"12\"}", &[(bad, "is not a task id")]);
    refused("{\"title\":\"x\",\"uid\":\"12\"}", &[(bad, "is not a uid")]);
    refused("{\"title\":\"x\",\"origin_ask_ref\":\"nowhere\"}", &[(bad, "is not an origin")]);
    refused("{\"title\":\"x\",\"type\":\"No Type\"}", &[(bad, "is not a task type")]);
    refused("{\"title\":\"x\",\"lane\":0}", &[(bad, "a lane is a number")]);
    refused("{\"title\":\"x\",\"lane\":1.5}", &[(bad, "line 2: ")]);
    refused("{\"title\":\"x\",\"scope\":[\"/etc\"]}", &[(bad, "inside the repository")]);
    refused("{\"title\":\"x\",\"checks\":[{\"run\":\"y\"}]}", &[(bad, "unknown field `run`")]);
    refused("{\"title\":\"x\",\"checks\":[5]}", &[(bad, "a command, or an object with one")]);
    refused("{\"title\":\"x\",\"resolution\":\"done\"}", &[(bad, "open has no resolution")]);
    refused(
        "{\"title\":\"x\",\"depends_on\":[\"T-999\"]}",
        &[("unknown_task", "line 2: there is no task T-999")],
    );
    refused("{\"title\":\"x\",\"depends_on\":[\"gh:none\"]}", &[("unknown_task", "gh:none")]);
    refused("{\"title\":\"x\",\"parent\":\"T-999\"}", &[("unknown_task", "T-999")]);
    refused("{\"title\":\"x\",\"depends_on\":[\"x y\"]}", &[(bad, "is not a task id")]);
    let deep = format!("{{\"title\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    refused(&deep, &[(bad, "invalid type: sequence")]);
}

#[test]
fn files_that_contradict_themselves() {
    refused(
        "{\"title\":\"x\",\"id\":\"API-1\"}\n{\"title\":\"y\",\"id\":\"api-1\"}",
        &[("invalid_input", "line 3: API-1 stands on line 2, too")],
    );
    let uid = "\"uid\":\"01900000-0000-7000-8000-000000000001\"";
    refused(
        &format!("{{\"title\":\"x\",{uid}}}\n{{\"title\":\"y\",{uid}}}"),
        &[("invalid_input", "line 3: the uid")],
    );
    refused(
        "{\"title\":\"x\",\"id\":\"API-1\",\"depends_on\":[\"API-2\"]}\n\
         {\"title\":\"y\",\"id\":\"API-2\",\"depends_on\":[\"o:3\"]}\n\
         {\"title\":\"z\",\"origin_ask_ref\":\"o:3\",\"depends_on\":[\"API-1\"]}",
        &[("dependency_cycle", "line 2: these lines wait for each other: 2, 3, 4")],
    );
    refused(
        "{\"title\":\"x\",\"id\":\"API-1\",\"depends_on\":[\"API-1\"]}",
        &[("dependency_cycle", "line 2: these lines wait for each other: 2")],
    );
    refused(
        "{\"title\":\"x\",\"id\":\"API-1\",\"parent\":\"API-2\"}\n{\"title\":\"y\",\"id\":\"API-2\",\"parent\":\"API-1\"}",
        &[("invalid_input", "line 2: these lines are each other's parents: 2, 3")],
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    refused(
        "{\"title\":\"\",\"priority\":\"P7\",\"lane\":0}\n{\"title\":\"\",\"lane\":0}\n\n{\"title\":\"x\",\"depends_on\":[\"T-9\"]}",
        &[
            ("invalid_input", "line 2: "),
            ("invalid_input", "line 3: the title is empty"),
            ("invalid_input", "line 3: a lane"),
            ("unknown_task", "line 5: "),
        ],
    );
    // A line that could not be read is no reason to blame those that refer to it.
    refused(
        "{\"title\":\"x\",\"id\":\"API-1\",\"lane\":\"x\"}\n{\"title\":\"y\",\"depends_on\":[\"API-1\"]}",
        &[("invalid_input", "line 2: ")],
    );
    refused(
        "{\"id\":\"API-1\n{\"title\":\"y\",\"depends_on\":[\"API-1\"]}",
        &[("invalid_input", "line 2: ")],
    );
}

#[test]
fn a_long_list_of_findings_is_cut_and_says_so() {
    let mut desk = Desk::new();
    let refusal = desk.try_import("@ada", &"{}\n".repeat(1_000)).unwrap_err();
    assert_eq!(refusal.findings.len(), 51);
    assert_eq!(refusal.findings[50].detail, "950 more findings are not shown");
    assert!(refusal.detail.contains("(and 999 more)"), "{}", refusal.detail);
}

#[test]
fn nobody_imports_anonymously_and_history_takes_a_person() {
    let mut desk = Desk::new();
    let line = "{\"title\":\"x\"}";
    assert_eq!(desk.try_import("", line).unwrap_err().code, Code::IdentityRequired);
    assert_eq!(desk.try_import("@nobody", line).unwrap_err().code, Code::UnknownWorker);
    // Who asks is settled before what they ask for.
    assert_eq!(desk.try_import("", "nonsense").unwrap_err().code, Code::IdentityRequired);
    let history = "{\"title\":\"x\",\"state\":\"done\"}";
    assert_eq!(desk.try_import("@bot", history).unwrap_err().code, Code::HumanRequired);
    assert_eq!(desk.try_import("@bot", line).unwrap().created, 1);
}

#[test]
fn a_project_can_be_named_and_must_exist() {
    let mut desk = Desk::new();
    let mut to = |project| desk.import_as(&request(), "@ada", Some(project), "{\"title\":\"x\"}", Run::Real);
    assert_eq!(to("API").unwrap().created, 1);
    assert_eq!(to("WEB").unwrap_err().code, Code::UnknownName);
    assert_eq!(desk.summary(), ["API-1 open x [] - -"]);
}

#[test]
fn a_dry_run_tells_everything_and_writes_nothing() {
    let mut desk = Desk::new();
    let file = "{\"title\":\"x\",\"id\":\"WEB-1\"}\n{\"title\":\"y\",\"depends_on\":[\"WEB-1\"]}";
    let dry = desk.import_as(&request(), "@ada", None, file, Run::Dry).unwrap();
    assert!(dry.dry_run && desk.summary().is_empty());
    let real = desk.import(file);
    assert_eq!((dry.created, dry.existing, dry.renamed), (real.created, real.existing, real.renamed));
    let wrong = desk.import_as(&request(), "@ada", None, "{}", Run::Dry).unwrap();
    assert_eq!((wrong.created, wrong.refused[0].line, wrong.refused[0].code), (0, 1, Code::InvalidInput));
    assert_eq!(
        desk.import_as(&request(), "", None, file, Run::Dry).unwrap_err().code,
        Code::IdentityRequired
    );
}

#[test]
fn the_same_request_gives_the_same_answer() {
    let mut desk = Desk::new();
    let file = "{\"title\":\"no key at all\"}\n{\"title\":\"x\",\"id\":\"WEB-1\"}";
    let request = request();
    let first = desk.import_as(&request, "@ada", None, file, Run::Real).unwrap();
    let again = desk.import_as(&request, "@ada", None, file, Run::Real).unwrap();
    assert_eq!(first, again);
    assert_eq!(desk.summary().len(), 2);
    let other = desk.import_as(&request, "@ada", None, "{\"title\":\"other\"}", Run::Real).unwrap_err();
    assert_eq!(other.code, Code::RequestConflict);
    let log = desk.onus.log(None, None, 1).unwrap();
    assert_eq!((log.entries[0].verb.as_str(), log.entries[0].task.as_deref()), ("imported", None));
    assert_eq!(log.entries[0].data["created"], 2);
    desk.assert_sound();
}

#[test]
fn two_imports_at_once_create_each_task_once() {
    let desk = Desk::new();
    let lines = |from: usize, to: usize| -> String {
        (from..to).map(|n| format!("{{\"title\":\"t{n}\",\"origin_ask_ref\":\"gh:{n}\"}}\n")).collect()
    };
    let path = desk.path();
    let import = |file: String| {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut onus = desk::open(&path);
            let (request, ada) = (request(), "@ada".parse().unwrap());
            let import = onus_app::import::Import {
                request: &request,
                actor: Some(&ada),
                project: None,
                input: &file,
                run: Run::Real,
            };
            onus.import_jsonl(&import, &mut onus_app::progress::Silent).unwrap()
        })
    };
    let threads: Vec<_> = (0..4).map(|n| import(lines(n * 100, n * 100 + 300))).collect();
    let views: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(views.iter().map(|view| view.created).sum::<i64>(), 600);
    assert_eq!(views.iter().map(|view| view.existing).sum::<i64>(), 600);
    let mut desk = desk;
    assert_eq!(desk.summary().len(), 600);
    desk.assert_sound();
}
