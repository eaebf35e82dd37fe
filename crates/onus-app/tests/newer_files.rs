//! A newer file of the same tool: what changed there changes here, and nothing else does.

use super::desk::Desk;
use onus_app::import::ImportView;
use onus_app::import::format::{Format, SourceFile, convert};
use onus_app::submit::Receipt;
use onus_core::command::{Changes, Command, Warrant};
use onus_core::refusal::Refusal;
use onus_core::task::StateName;
use serde_json::{Value, json};

fn files(named: &[(&str, &str)]) -> Vec<SourceFile> {
    named.iter().map(|(name, text)| SourceFile { name: (*name).into(), text: (*text).into() }).collect()
}

fn import_as(
    desk: &mut Desk,
    actor: &str,
    format: Format,
    named: &[(&str, &str)],
) -> Result<ImportView, Refusal> {
    let mut converted = convert(format, &files(named), &Default::default());
    match converted.refusal() {
        Some(refusal) => Err(refusal),
        None => desk.try_import(actor, &converted.lines),
    }
}

fn beads(desk: &mut Desk, lines: &[Value]) -> Result<ImportView, Refusal> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    import_as(desk, "@ada", Format::Beads, &[("issues.jsonl", &text)])
}

fn issue(id: &str) -> Value {
    json!({
        "id": id, "title": format!("Issue {id}"), "description": "words", "status": "open", "priority": 2,
        "issue_type": "task", "labels": ["a"], "acceptance_criteria": "- one\n- two", "updated_at": "2026-01-01T00:00:00Z",
    })
}

fn with(mut value: Value, more: Value) -> Value {
    let more = more.as_object().unwrap().clone();
    value.as_object_mut().unwrap().extend(more);
    value
}

fn blocks(on: &str) -> Value {
    json!([{"issue_id": "x", "depends_on_id": on, "type": "blocks"}])
}

fn counts(view: &ImportView) -> (i64, i64, i64, i64) {
    (view.read, view.created, view.existing, view.changed)
}

fn told(desk: &mut Desk, id: &str) -> Value {
    serde_json::to_value(desk.onus.show(&super::desk::id(id)).unwrap()).unwrap()
}

fn claim(desk: &mut Desk, task: &str) -> Receipt {
    let command = Command::Claim {
        workstation: Some("ws-1".parse().unwrap()),
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    desk.submit("@ada", task, None, command)
}

#[test]
fn what_changed_there_changes_here_once() {
    let mut desk = Desk::new();
    let first = [issue("a"), issue("b"), issue("c")];
    assert_eq!(counts(&beads(&mut desk, &first).unwrap()), (3, 3, 0, 0));
    let newer = [
        with(
            issue("a"),
            json!({
                "title": "Another title", "description": "other words", "priority": 0, "labels": ["a", "b"], "issue_type": "bug",
                "acceptance_criteria": "- two\n- three", "design": "new", "updated_at": "2026-02-01T00:00:00Z",
                "dependencies": [{"depends_on_id": "c", "type": "blocks"}, {"depends_on_id": "b", "type": "parent-child"}],
                "comments": [{"id": 1, "author": "grace", "text": "hm", "created_at": "2026-02-01T00:00:00Z"}],
            }),
        ),
        issue("b"),
        issue("c"),
    ];
    let view = beads(&mut desk, &newer).unwrap();
    assert_eq!(counts(&view), (3, 0, 3, 1));
    assert!(view.drift.is_empty(), "{view:?}");
    let task = &told(&mut desk, "T-1")["task"];
    assert_eq!(
        (&task["title"], &task["body"], &task["priority"], &task["kind"], &task["tags"]),
        (&json!("Another title"), &json!("other words"), &json!("P0"), &json!("defect"), &json!(["a", "b"]))
    );
    assert_eq!(task["criteria"], json!([{"text": "two"}, {"text": "three"}]));
    assert_eq!((&task["depends_on"], &task["parent"]), (&json!(["T-3"]), &json!("T-2")));
    assert_eq!(task["extra"]["design"], "new");
    assert_eq!(counts(&beads(&mut desk, &newer).unwrap()), (3, 0, 3, 0));
    // And back again.
    assert_eq!(counts(&beads(&mut desk, &first).unwrap()), (3, 0, 3, 1));
    let task = &told(&mut desk, "T-1")["task"];
    assert_eq!(
        (&task["title"], &task["depends_on"], &task["parent"]),
        (&json!("Issue a"), &json!([]), &Value::Null)
    );
    assert_eq!(counts(&beads(&mut desk, &first).unwrap()), (3, 0, 3, 0));
    desk.assert_sound();
    assert!(desk.onus.verify(&mut onus_app::progress::Silent).unwrap().findings.is_empty());
}

#[test]
fn what_was_edited_here_stays_until_it_changes_there() {
    let mut desk = Desk::new();
    let first = [issue("a"), issue("b")];
    beads(&mut desk, &first).unwrap();
    let changes = Changes {
        tags: Some(vec!["mine".into()]),
        priority: Some("P4".parse().unwrap()),
        ..Changes::default()
    };
    desk.submit("@ada", "T-1", None, Command::Edit { changes: Box::new(changes) });
    desk.submit("@ada", "T-1", None, Command::AddDependency { on: super::desk::id("T-2") });
    desk.submit(
        "@ada",
        "T-1",
        None,
        Command::Tick { criteria: vec!["1".into()], withdrawn: false, workstation: None },
    );
    assert_eq!(counts(&beads(&mut desk, &first).unwrap()), (2, 0, 2, 0));
    let newer =
        [with(issue("a"), json!({"labels": ["there"], "acceptance_criteria": "- one\n- three"})), issue("b")];
    assert_eq!(counts(&beads(&mut desk, &newer).unwrap()), (2, 0, 2, 1));
    let task = &told(&mut desk, "T-1")["task"];
    assert_eq!((&task["tags"], &task["priority"]), (&json!(["there"]), &json!("P4")));
    assert_eq!(task["depends_on"], json!(["T-2"]));
    let ticked: Vec<bool> =
        task["criteria"].as_array().unwrap().iter().map(|one| one.get("ticked").is_some()).collect();
    assert_eq!(ticked, [true, false], "{task}");
    desk.assert_sound();
}

#[test]
fn how_far_it_is_there_counts_until_somebody_begins_here() {
    let mut desk = Desk::new();
    let open = [issue("a"), issue("b")];
    beads(&mut desk, &open).unwrap();
    let closed = with(
        issue("a"),
        json!({"status": "closed", "closed_at": "2026-02-01T00:00:00Z", "close_reason": "done there"}),
    );
    let waits = with(issue("a"), json!({"status": "deferred"}));
    let state = |desk: &mut Desk| {
        let story = told(desk, "T-1");
        (story["task"]["state"].clone(), story["task"]["archived"].clone(), story["notes"].clone())
    };
    assert_eq!(counts(&beads(&mut desk, &[closed.clone(), issue("b")]).unwrap()), (2, 0, 2, 1));
    let (now, archived, notes) = state(&mut desk);
    assert_eq!((now, archived), (json!("complete"), json!(true)));
    assert_eq!(notes[0]["text"], "done there");
    assert_eq!(counts(&beads(&mut desk, &[closed.clone(), issue("b")]).unwrap()), (2, 0, 2, 0));
    beads(&mut desk, &[waits, issue("b")]).unwrap();
    assert_eq!(state(&mut desk).0, "blocked");
    beads(&mut desk, &open).unwrap();
    assert_eq!(state(&mut desk).0, "open");
    desk.assert_sound();
    // Somebody begins: from now on Onus says how far it is, and the words still come from there.
    claim(&mut desk, "T-1");
    let renamed = with(closed, json!({"title": "A new name", "issue_type": "bug"}));
    let view = beads(&mut desk, &[renamed.clone(), issue("b")]).unwrap();
    let drift: Vec<(&str, &str)> =
        view.drift.iter().map(|one| (one.field.as_str(), one.there.as_str())).collect();
    assert_eq!(drift, [("kind", "kind: task -> defect"), ("state", "complete")]);
    let story = told(&mut desk, "T-1");
    assert_eq!(
        (&story["task"]["state"], &story["task"]["title"]),
        (&json!("in_progress"), &json!("A new name"))
    );
    assert_eq!(story["task"]["kind"], "task");
    let said = story["notes"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned();
    assert!(said.contains("while you hold it"), "{said}");
    assert_eq!(beads(&mut desk, &[renamed, issue("b")]).unwrap().changed, 0);
    desk.assert_sound();
}

#[test]
fn no_circle_comes_in_through_a_task_that_is_there() {
    let mut desk = Desk::new();
    beads(&mut desk, &[issue("a"), issue("b")]).unwrap();
    desk.submit("@ada", "T-2", None, Command::AddDependency { on: super::desk::id("T-1") });
    let before = desk.summary();
    let refusal = beads(&mut desk, &[with(issue("a"), json!({"dependencies": blocks("b")}))]).unwrap_err();
    assert_eq!(refusal.code.name(), "dependency_cycle", "{refusal:?}");
    // Through a new one, too.
    let new = with(issue("n"), json!({"dependencies": blocks("b")}));
    let refusal =
        beads(&mut desk, &[new, with(issue("a"), json!({"dependencies": blocks("n")}))]).unwrap_err();
    assert_eq!(refusal.code.name(), "dependency_cycle", "{refusal:?}");
    assert_eq!(desk.summary(), before);
}

#[test]
fn an_agent_brings_comments_and_no_other_words() {
    let mut desk = Desk::new();
    beads(&mut desk, &[issue("a")]).unwrap();
    let newer = with(
        issue("a"),
        json!({
            "title": "Mine now", "acceptance_criteria": "", "comments": [{"id": 1, "author": "x", "text": "hello"}],
        }),
    );
    let view = import_as(&mut desk, "@bot", Format::Beads, &[("issues.jsonl", &newer.to_string())]).unwrap();
    assert_eq!(view.changed, 1);
    let story = told(&mut desk, "T-1");
    assert_eq!((&story["task"]["title"], &story["notes"][0]["text"]), (&json!("Issue a"), &json!("hello")));
    assert_eq!(story["task"]["criteria"].as_array().unwrap().len(), 2);
}

#[test]
fn a_status_of_ones_own_is_told_what_it_means() {
    let mut desk = Desk::new();
    let odd = with(issue("a"), json!({"status": "in_qa"}));
    let refusal = beads(&mut desk, std::slice::from_ref(&odd)).unwrap_err();
    assert!(refusal.detail.contains("--status in_qa=open"), "{}", refusal.detail);
    let statuses = [("in_qa".to_owned(), StateName::Blocked)].into();
    let mut converted = convert(Format::Beads, &files(&[("-", &odd.to_string())]), &statuses);
    assert!(converted.refusal().is_none());
    desk.import(&converted.lines);
    assert_eq!(told(&mut desk, "T-1")["task"]["blocked_on"], "external:in_qa in beads");
}

#[test]
fn pages_of_older_and_newer_backlogs_arrive() {
    let mut desk = Desk::new();
    let old = "---\nid: task-7\ntitle: Old\nstatus: In Progress\nassignee: [@claude, @bob]\nreporter: @ada\n\
        created_date: 07-06-25\n---\n\n## Acceptance Criteria (Optional)\n\n- [x] Old one\n- [ ] Other one\n\n## Comments\n\n\
        <!-- COMMENTS:BEGIN -->\n<!-- COMMENT:BEGIN -->\nindex: 1\nauthor: bob\ncreated: 2025-06-08 10:00\n\nFirst words\n\
        <!-- COMMENT:END -->\n<!-- COMMENTS:END -->\n";
    let new = "---\nid: TASK-8\ntitle: New\nstatus: To Do\nassignee:\n  - @claude\n---\n\n## Comments\n\n<!-- COMMENTS:BEGIN -->\n\
        created: 2026-01-01 10:00\n---\nNobody's words\n---\n\nauthor: @eve\n---\nUndated\n---\n<!-- COMMENTS:END -->\n";
    let decision =
        "---\nid: decision-1\ntitle: Use it\ndate: '2026-01-01'\nstatus: accepted\n---\n## Context\n\nWhy\n";
    let document = "---\nid: doc-2\ntitle: Guide\ntype: guide\ncreated_date: '2026-01-01'\n---\nHow\n";
    let milestone = "---\nid: m-0\ntitle: \"v1\"\n---\n## Description\n\nThe first\n";
    let pages = [
        ("tasks/task-7 - Old.md", old),
        ("tasks/task-8 - New.md", new),
        ("decisions/decision-1 - Use.md", decision),
        ("docs/doc-2 - Guide.md", document),
        ("milestones/m-0 - v1.md", milestone),
    ];
    let view = import_as(&mut desk, "@ada", Format::Backlog, &pages).unwrap();
    assert_eq!(counts(&view), (5, 5, 0, 0), "{view:?}");
    let tasks = desk.tasks();
    let by = |origin: &str| tasks.iter().find(|task| task["origin_ask_ref"] == origin).unwrap().clone();
    let old = by("backlog:TASK-7");
    assert_eq!(old["criteria"], json!([{"text": "Old one"}, {"text": "Other one"}]));
    assert_eq!(
        (&old["extra"]["assignee"], &old["extra"]["reporter"]),
        (&json!(["@claude", "@bob"]), &json!("@ada"))
    );
    assert_eq!(old["notes"][0]["by"], "bob", "{old}");
    let new = by("backlog:TASK-8");
    assert_eq!(new["notes"].as_array().unwrap().len(), 2, "{new}");
    assert_eq!((&new["notes"][1]["by"], &new["notes"][1]["text"]), (&json!("@eve"), &json!("Undated")));
    for (origin, kind) in [("decision-1", "decision"), ("doc-2", "document"), ("m-0", "milestone")] {
        let record = by(&format!("backlog:{origin}"));
        assert_eq!((&record["kind"], &record["state"]), (&json!(kind), &json!("complete")));
    }
    assert_eq!(import_as(&mut desk, "@ada", Format::Backlog, &pages).unwrap().changed, 0);
}

#[test]
fn a_backlog_may_give_the_number_of_an_archived_task_away_again() {
    let mut desk = Desk::new();
    let page =
        |title: &str, more: &str| format!("---\nid: TASK-7\ntitle: {title}\nstatus: To Do\n{more}---\n");
    let (old, new) = (page("Old", ""), page("New", ""));
    let waits = page("Waits", "dependencies: [task-7]\n").replace("TASK-7", "TASK-8");
    let draft = page("Draft", "");
    let pages = [
        ("backlog/archive/drafts/task-7 - Draft.md", draft.as_str()),
        ("backlog/archive/tasks/task-7 - Old.md", old.as_str()),
        ("backlog/tasks/task-7 - New.md", &new),
        ("backlog/tasks/task-8 - Waits.md", &waits),
    ];
    assert_eq!(counts(&import_as(&mut desk, "@ada", Format::Backlog, &pages).unwrap()), (4, 4, 0, 0));
    let tasks = desk.tasks();
    let by = |origin: &str| tasks.iter().find(|task| task["origin_ask_ref"] == origin).unwrap().clone();
    let (old, new) = (by("backlog:archive/TASK-7"), by("backlog:TASK-7"));
    assert_eq!(
        (&old["title"], &old["state"], &old["extra"]["id"]),
        (&json!("Old"), &json!("dropped"), &json!("TASK-7"))
    );
    assert_eq!((&new["title"], &new["state"]), (&json!("New"), &json!("open")));
    assert_eq!(by("backlog:archive/drafts/TASK-7")["title"], "Draft");
    assert_eq!(by("backlog:TASK-8")["depends_on"], json!([new["id"]]));
    assert_eq!(import_as(&mut desk, "@ada", Format::Backlog, &pages).unwrap().changed, 0);
    // A link without a prefix, or with the one of old, means a task, and no decision of that number.
    let bare = page("Bare", "dependencies: ['8', OLD-7]\n").replace("TASK-7", "TASK-9");
    let decision = "---\nid: decision-8\ntitle: Use it\nstatus: accepted\n---\nWhy\n";
    let more = [
        &pages[..],
        &[
            ("backlog/tasks/task-9 - Bare.md", bare.as_str()),
            ("backlog/decisions/decision-8 - Use.md", decision),
        ],
    ]
    .concat();
    assert_eq!(import_as(&mut desk, "@ada", Format::Backlog, &more).unwrap().created, 2);
    let tasks = desk.tasks();
    let by = |origin: &str| tasks.iter().find(|task| task["origin_ask_ref"] == origin).unwrap().clone();
    assert_eq!(
        by("backlog:TASK-9")["depends_on"],
        json!([by("backlog:TASK-7")["id"], by("backlog:TASK-8")["id"]])
    );
    // Two of one folder contradict each other; each file is told so that it can be found.
    let deep = format!("products/{}/tasks", "x".repeat(200));
    let named = [format!("{deep}/task-7 - One.md"), format!("{deep}/task-7 - Other.md")];
    let twice = [(named[0].as_str(), page("One", "")), (named[1].as_str(), page("Other", ""))];
    let twice: Vec<(&str, &str)> = twice.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let refusal = import_as(&mut Desk::new(), "@ada", Format::Backlog, &twice).unwrap_err();
    assert!(
        refusal.detail.contains("task-7 - One.md") && refusal.detail.contains("task-7 - Other.md"),
        "{}",
        refusal.detail
    );
}

/// Its decisions come first, and have what a page of Backlog.md has.
#[test]
fn a_backlog_of_kano_is_known_by_its_items() {
    let pages = [
        ("decisions/ADR-0001_first.md", "---\nid: ADR-0001\ntitle: First\nstatus: Proposed\n---\nWhy\n"),
        (
            "items/KB-TSK-0001_x.md",
            "---\nid: KB-TSK-0001\ntype: Task\ntitle: t\nstate: Proposed\n---\n# Context\n",
        ),
    ];
    assert_eq!(Format::detect(&files(&pages)), Some(Format::Kano));
    let mut desk = Desk::new();
    import_as(&mut desk, "@ada", Format::Kano, &pages).unwrap();
    let states: Vec<Value> = desk.tasks().iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, [json!("complete"), json!("open")]);
}

#[test]
fn what_kano_has_numbered_twice_is_told_apart_by_its_uid() {
    let page = |uid: &str, title: &str| {
        format!("---\nid: KB-TSK-0001\ntype: Task\ntitle: {title}\nstate: Ready\n{uid}---\n# Context\n")
    };
    let (first, second) = (page("uid: 019a-1\n", "First"), page("uid: 019b-2\n", "Second"));
    let pages = [("products/b/items/x.md", second.as_str()), ("products/c/items/y.md", first.as_str())];
    let mut desk = Desk::new();
    assert_eq!(import_as(&mut desk, "@ada", Format::Kano, &pages).unwrap().created, 2);
    let named: Vec<(String, String)> = desk
        .tasks()
        .iter()
        .map(|task| (task["origin_ask_ref"].as_str().unwrap().into(), task["title"].as_str().unwrap().into()))
        .collect();
    let pair = |origin: &str, title: &str| (origin.to_owned(), title.to_owned());
    assert_eq!(named, [pair("kano:KB-TSK-0001@019b-2", "Second"), pair("kano:KB-TSK-0001", "First")]);
    assert_eq!(import_as(&mut desk, "@ada", Format::Kano, &pages).unwrap().changed, 0);
    // Without one, or with the same, they contradict each other.
    let twice = [pages[0], ("products/d/items/z.md", second.as_str())];
    assert!(import_as(&mut Desk::new(), "@ada", Format::Kano, &twice).is_err());
}

#[test]
fn a_circle_within_one_entry_names_its_parts() {
    let parts =
        json!([{"id": 1, "title": "a", "dependencies": [2]}, {"id": 2, "title": "b", "dependencies": [1]}]);
    let list = json!({"tasks": [{"id": 12, "title": "t", "subtasks": parts}]});
    let refusal =
        import_as(&mut Desk::new(), "@ada", Format::Taskmaster, &[("tasks.json", &list.to_string())])
            .unwrap_err();
    let words = "these wait for each other: taskmaster:master/12.1, taskmaster:master/12.2";
    assert!(refusal.detail.contains(words), "{}", refusal.detail);
}

#[test]
fn tables_of_redmine_are_read_in_other_languages() {
    let mut desk = Desk::new();
    let table = "#;Projekt;Tracker;Übergeordnetes Ticket;Status;Priorität;Thema;Geschlossen am;Zugehörige Tickets\n\
        7;Shop;Fehler;;In Prüfung;Hoch;Kasse;;\n8;Shop;Feature;7;Erledigt;Normal;Korb;12.05.2026 10:00;Blockiert durch #7\n";
    assert_eq!(Format::detect(&files(&[("-", table)])), Some(Format::Redmine));
    let view = import_as(&mut desk, "@ada", Format::Redmine, &[("-", table)]).unwrap();
    assert_eq!(counts(&view), (2, 2, 0, 0));
    let tasks = desk.tasks();
    assert_eq!((&tasks[0]["title"], &tasks[0]["state"]), (&json!("Kasse"), &json!("open")));
    assert_eq!((&tasks[1]["state"], &tasks[1]["parent"]), (&json!("complete"), &tasks[0]["id"]));
    assert_eq!(tasks[1]["depends_on"], json!([tasks[0]["id"]]));
    let strange = "#,Aihe,Tila\n1,x,y\n";
    let refusal = import_as(&mut desk, "@ada", Format::Redmine, &[("-", strange)]).unwrap_err();
    assert!(refusal.detail.contains("language in Redmine set to English"), "{}", refusal.detail);
}

#[test]
fn issues_of_github_tell_of_each_other() {
    let mut desk = Desk::new();
    let url = |number: i64| format!("https://github.com/acme/api/issues/{number}");
    let list = json!([
        {"number": 1, "title": "Epic", "url": url(1), "state": "OPEN", "subIssues": {"nodes": [{"url": url(2)}], "totalCount": 1}},
        {"number": 2, "title": "Part", "url": url(2), "closed": false, "blocking": [{"url": url(3)}]},
        {"number": 3, "title": "Last", "url": url(3), "closed": true, "closedAt": "2026-01-01T00:00:00Z"},
    ]);
    import_as(&mut desk, "@ada", Format::Github, &[("-", &list.to_string())]).unwrap();
    let tasks = desk.tasks();
    assert_eq!((&tasks[1]["parent"], &tasks[2]["depends_on"]), (&json!("T-1"), &json!(["T-2"])));
    assert_eq!((&tasks[1]["state"], &tasks[2]["state"]), (&json!("open"), &json!("complete")));
}

#[test]
fn a_task_is_found_by_what_it_was_called() {
    let mut desk = Desk::new();
    let queue = "tasks:\n  - id: PF-001\n    title: First\n";
    import_as(&mut desk, "@ada", Format::Queue, &[("-", queue)]).unwrap();
    for name in ["PF-001", "queue:PF-001", "T-1", "t-1"] {
        assert_eq!(desk.onus.named(name).unwrap().to_string(), "T-1", "{name}");
    }
    // No task of ours could have this id, and nothing came under it.
    assert_eq!(desk.onus.named("PF-002").unwrap_err().code.name(), "invalid_input");
    assert_eq!(desk.onus.named("PF-2").unwrap_err().code.name(), "unknown_task");
}
