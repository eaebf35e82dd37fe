//! Files of other tools: every field arrives, what goes back comes in as the same, and what is wrong is told.

use super::desk::Desk;
use super::sources::{SAMPLES, import, sample, text};
use onus_app::export::format::convert as back;
use onus_app::import::format::{Format, SourceFile, convert};
use onus_store::read::queue::Which;
use serde_json::{Value, json};

/// Everything that `show --json` tells about every task.
fn shown(desk: &mut Desk) -> Vec<Value> {
    let tasks = desk.onus.list(Which::All, &Default::default(), None, 1_000).unwrap();
    let ids: Vec<_> = tasks.tasks.iter().map(|task| task.id.clone()).collect();
    ids.iter().map(|id| serde_json::to_value(desk.onus.show(id).unwrap()).unwrap()).collect()
}

fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => found.push(text.trim().to_owned()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(list) => list.iter().for_each(|one| leaves(one, found)),
        Value::Object(fields) => fields.values().for_each(|one| leaves(one, found)),
        _ => {}
    }
}

/// Every value of the sample is told by `show`; a field's name, where nothing else has its meaning.
fn census(sample: &Value, stories: &[Value]) {
    let (mut wanted, mut told) = (Vec::new(), Vec::new());
    leaves(sample, &mut wanted);
    stories.iter().for_each(|story| leaves(story, &mut told));
    wanted.iter_mut().for_each(|text| *text = text.trim_start_matches("agent=").to_owned());
    let missing: Vec<&String> =
        wanted.iter().filter(|text| !told.iter().any(|one| one.contains(text.as_str()))).collect();
    assert!(missing.is_empty(), "not found again: {missing:#?}");
}

/// A line without what its tool puts before the words.
fn unlisted(line: &str) -> &str {
    let line = ["- [x] ", "- [ ] ", "author: ", "created: "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .unwrap_or(line);
    let numbered = line.strip_prefix('#').and_then(|rest| rest.split_once(' '));
    numbered.map_or(line, |(_, words)| words)
}

/// A sample as the values that stand in it.
fn values(format: Format, files: &[SourceFile]) -> Value {
    let words = |file: &SourceFile| match format {
        Format::Beads => file.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect(),
        Format::Queue => onus_host::yaml::foreign(&file.text).unwrap(),
        Format::Redmine if file.name.ends_with(".csv") => {
            file.text.lines().skip(1).flat_map(|line| line.split([',', '"'])).map(Value::from).collect()
        }
        Format::Backlog | Format::Kano => match file.text.strip_prefix("---\n") {
            Some(rest) => {
                let (head, body) = rest.split_once("\n---\n").unwrap();
                let is_words = |line: &&str| !line.starts_with(['#', '<']) && !line.starts_with("---");
                let lines: Vec<&str> = body
                    .lines()
                    .filter(is_words)
                    .map(unlisted)
                    .flat_map(|line| line.split(['[', ']']))
                    .collect();
                json!([onus_host::yaml::foreign(head).unwrap(), lines])
            }
            None => Value::Null,
        },
        _ => serde_json::from_str(&file.text).unwrap(),
    };
    files.iter().map(words).collect()
}

#[test]
fn every_field_of_every_sample_is_found_again() {
    for (name, format, tasks) in SAMPLES {
        let files = sample(name);
        assert_eq!(Format::detect(&files), Some(format), "{name}");
        let mut desk = Desk::new();
        let view = import(&mut desk, format, &files).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        assert_eq!((view.read, view.created), (tasks, tasks), "{name}");
        let stories = shown(&mut desk);
        assert_eq!(stories.len() as i64, tasks, "{name}");
        let mut wanted = values(format, &files);
        // About the list as such, and no task's.
        if let Some(Value::Object(list)) = wanted.get_mut(0) {
            list.remove("total_count");
            list.remove("offset");
            list.remove("limit");
        }
        // A pull request is no issue.
        if let Some(issues) =
            wanted.pointer_mut("/0").and_then(Value::as_array_mut).filter(|_| format == Format::Github)
        {
            issues.retain(|issue| issue.get("pull_request").is_none());
        }
        census(&wanted, &stories);
        let again = import(&mut desk, format, &files).unwrap();
        assert_eq!((again.created, again.existing, again.changed), (0, tasks, 0), "{name}");
        assert!(desk.onus.verify(&mut onus_app::progress::Silent).unwrap().findings.is_empty(), "{name}");
    }
}

fn story<'a>(stories: &'a [Value], origin: &str) -> &'a Value {
    stories
        .iter()
        .find(|story| story["task"]["origin_ask_ref"] == origin)
        .unwrap_or_else(|| panic!("{origin}"))
}

#[test]
fn beads_arrive_as_they_stood() {
    let mut desk = Desk::new();
    let view = import(&mut desk, Format::Beads, &sample("beads.jsonl")).unwrap();
    assert_eq!(view.unresolved.len(), 1, "{view:?}");
    let stories = shown(&mut desk);
    let epic = &story(&stories, "beads:bd-a1")["task"];
    assert_eq!(
        (&epic["state"], &epic["priority"], &epic["kind"]),
        (&json!("open"), &json!("P1"), &json!("epic"))
    );
    assert_eq!(epic["tags"], json!(["api", "v2"]));
    assert_eq!(
        (&epic["extra"]["design"], &epic["extra"]["metadata"]["points"]),
        (&json!("Two layers"), &json!(3))
    );
    assert_eq!(epic["created_at"], "2025-12-16T18:06:59.000Z");
    assert_eq!(epic["criteria"], json!([{"text": "it is fast"}, {"text": "it is told"}]));
    let note = &story(&stories, "beads:bd-a1")["notes"][0];
    assert_eq!((&note["text"], &note["said"]["by"]), (&json!("Is it \"done\"?"), &json!("grace")));
    assert_eq!((&note["said"]["at"], &note["by"]), (&json!("2025-12-18T10:00:00.000Z"), &json!("@ada")));
    let bug = &story(&stories, "beads:bd-a1.1")["task"];
    assert_eq!(
        (&bug["state"], &bug["archived"], &bug["kind"]),
        (&json!("complete"), &json!(true), &json!("defect"))
    );
    assert_eq!((&bug["closed_at"], &bug["parent"]), (&json!("2025-12-19T00:00:00.000Z"), &epic["id"]));
    let waits = &story(&stories, "beads:bd-a2")["task"];
    assert_eq!(
        (&waits["state"], &waits["blocked_on"]),
        (&json!("blocked"), &json!("external:deferred in beads"))
    );
    assert_eq!(waits["depends_on"], json!([bug["id"]]));
    assert_eq!(story(&stories, "beads:memory/auth-jwt")["task"]["archived"], json!(true));
}

#[test]
fn what_a_tool_keeps_among_its_issues_and_is_no_work_cannot_be_claimed() {
    let mut desk = Desk::new();
    import(&mut desk, Format::Beads, &sample("beads-newer.jsonl")).unwrap();
    import(&mut desk, Format::Beads, &sample("beads-rust.jsonl")).unwrap();
    import(&mut desk, Format::Backlog, &sample("backlog")).unwrap();
    import(&mut desk, Format::Taskmaster, &sample("taskmaster-flat.json")).unwrap();
    import(&mut desk, Format::Kano, &sample("kano")).unwrap();
    let stories = shown(&mut desk);
    let stands = |origin: &str| {
        let task = &story(&stories, origin)["task"];
        (
            task["state"].as_str().unwrap().to_owned(),
            task["blocked_on"].as_str().unwrap_or_default().to_owned(),
        )
    };
    for (origin, state, why) in [
        ("beads:bd-q1", "open", ""),
        ("beads:bd-q2", "blocked", "external:pinned in beads"),
        ("beads:bd-q3", "blocked", "external:a gate in beads"),
        ("beads:bd-q4", "blocked", "external:an event in beads"),
        ("beads:bd-q5", "open", ""),
        ("beads:br-1", "blocked", "external:draft in beads"),
        ("beads:br-2", "dropped", ""),
        ("backlog:DRAFT-3", "blocked", "external:a draft in Backlog.md"),
        ("backlog:TASK-4", "complete", ""),
        ("backlog:TASK-5", "dropped", ""),
        ("backlog:decision-1", "complete", ""),
        ("backlog:doc-2", "complete", ""),
        ("backlog:m-8", "complete", ""),
        ("taskmaster:master/7", "complete", ""),
        ("taskmaster:master/8", "blocked", "external:deferred in Task Master"),
        ("kano:KB-USR-0003", "dropped", ""),
    ] {
        assert_eq!(stands(origin), (state.to_owned(), why.to_owned()), "{origin}");
    }
    // Of nineteen kinds of links three are waited for, and one is the parent; `bd-q1` still has all of them.
    let full = &story(&stories, "beads:bd-q1")["task"];
    assert_eq!(full["depends_on"].as_array().unwrap().len(), 3);
    assert_eq!(full["extra"]["dependencies"].as_array().unwrap().len(), 19);
    assert_eq!(full["parent"], story(&stories, "beads:bd-x1")["task"]["id"]);
}

#[test]
fn commands_stay_proposed_and_prose_becomes_criteria() {
    let mut desk = Desk::new();
    import(&mut desk, Format::Queue, &sample("queue.yaml")).unwrap();
    let stories = shown(&mut desk);
    let guard = &story(&stories, "queue:PF-002")["task"];
    assert_eq!(guard["checks"], json!([{"command": "make guard", "state": "proposed"}]));
    let prose = "guard report runs in report-only mode and records findings as evidence";
    assert_eq!(guard["criteria"], json!([{"text": prose}]));
    let map = &story(&stories, "queue:PF-001")["task"];
    assert_eq!((&map["checks"], map["criteria"].as_array().unwrap().len()), (&json!([]), 1));
    assert_eq!(map["extra"]["review_domains"], json!(["architecture", "governance"]));
}

#[test]
fn links_comments_and_folders_mean_what_they_meant() {
    let mut desk = Desk::new();
    import(&mut desk, Format::Backlog, &sample("backlog")).unwrap();
    import(&mut desk, Format::Kano, &sample("kano")).unwrap();
    import(&mut desk, Format::Taskmaster, &sample("taskmaster.json")).unwrap();
    let view = import(&mut desk, Format::Github, &sample("github.json")).unwrap();
    assert_eq!((view.read, view.created), (1, 1));
    import(&mut desk, Format::Redmine, &sample("redmine.json")).unwrap();
    let stories = shown(&mut desk);
    let task = |origin: &str| story(&stories, origin)["task"].clone();
    let first = task("backlog:TASK-1");
    assert_eq!(
        (&first["state"], &first["body"]),
        (&json!("complete"), &json!("Words with\n\n## a heading of their own"))
    );
    assert_eq!(first["extra"]["implementation_plan"], "1. Look");
    // Two comments, and its end.
    assert_eq!(story(&stories, "backlog:TASK-1")["notes"].as_array().unwrap().len(), 3);
    let below = task("backlog:TASK-1.2");
    assert_eq!((&below["parent"], &below["depends_on"]), (&first["id"], &json!([first["id"]])));
    assert_eq!(task("kano:KB-BUG-0002")["depends_on"], json!([task("kano:KB-TSK-0001")["id"]]));
    let part = task("taskmaster:master/1.2");
    assert_eq!(part["depends_on"], json!([task("taskmaster:master/1.1")["id"]]));
    assert_eq!(task("taskmaster:feature/1")["state"], "dropped");
    let slow = task("github:acme/api#12");
    assert_eq!(
        (&slow["kind"], &slow["priority"], &slow["sprint"]),
        (&json!("defect"), &json!("P1"), &json!("v2"))
    );
    let cart = task("redmine:102");
    assert_eq!(
        (&cart["depends_on"], &cart["parent"]),
        (&json!([task("redmine:101")["id"]]), &task("redmine:101")["id"])
    );
}

/// What a store tells that is the same in another one.
fn without_here(stories: Vec<Value>) -> Vec<Value> {
    let mut tasks: Vec<Value> = stories
        .into_iter()
        .map(|story| {
            let mut task = story["task"].clone();
            for name in ["id", "uid", "updated_at", "version", "parent", "depends_on"] {
                task.as_object_mut().unwrap().remove(name);
            }
            if task["kind"] == "memory" {
                // It has no dates of its own.
                task.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_at"));
            }
            let said = |note: &Value| json!([note["said"], note["text"], note["kind"]]);
            task["notes"] = story["notes"].as_array().unwrap().iter().map(said).collect();
            task
        })
        .collect();
    tasks.sort_by_key(|task| task["origin_ask_ref"].to_string());
    tasks
}

#[test]
fn what_goes_back_comes_in_as_the_same() {
    for (name, format) in [
        ("beads.jsonl", Format::Beads),
        ("beads-newer.jsonl", Format::Beads),
        ("beads-rust.jsonl", Format::Beads),
        ("queue.yaml", Format::Queue),
    ] {
        let mut desk = Desk::new();
        import(&mut desk, format, &sample(name)).unwrap();
        let written = back(format, &desk.export(Which::All)).unwrap();
        let mut other = Desk::new();
        import(&mut other, format, &text(&written))
            .unwrap_or_else(|refusal| panic!("{refusal:?}\n{written}"));
        assert_eq!(without_here(shown(&mut other)), without_here(shown(&mut desk)), "{name}");
        let again = import(&mut desk, format, &text(&written)).unwrap();
        assert_eq!((again.created, again.changed), (0, 0), "{name}");
        let once_more = back(format, &other.export(Which::All)).unwrap();
        assert_eq!(values(format, &text(&once_more)), values(format, &text(&written)), "{name}");
    }
    let mut desk = Desk::new();
    import(&mut desk, Format::Beads, &sample("beads.jsonl")).unwrap();
    let table = back(Format::Csv, &desk.export(Which::All)).unwrap();
    assert_eq!(Format::detect(&text(&table)), Some(Format::Csv));
    let mut other = Desk::new();
    import(&mut other, Format::Csv, &text(&table)).unwrap();
    let state = |tasks: Vec<Value>| -> Vec<Value> {
        // What Onus itself exported arrives open where nobody ended it.
        let open = |mut task: Value| {
            task.as_object_mut().unwrap().remove("blocked_on");
            if task["state"] == "blocked" {
                task["state"] = json!("open");
            }
            task
        };
        tasks.into_iter().map(open).collect()
    };
    assert_eq!(state(without_here(shown(&mut other))), state(without_here(shown(&mut desk))));
}

#[test]
fn what_is_wrong_is_told_and_nothing_comes_in() {
    let long = "x".repeat(5 << 20);
    let issue = |id: &str, more: &str| {
        format!(r#"{{"id":"{id}","title":"t","status":"open","issue_type":"task"{more}}}"#)
    };
    let link = |on: &str| format!(r#","dependencies":[{{"depends_on_id":"{on}","type":"blocks"}}]"#);
    for (input, said) in [
        (issue("a", &format!(r#","description":"{long}""#)), "the description has 5242880 bytes"),
        (format!("{}\n{}", issue("a", &link("b")), issue("b", &link("a"))), "wait for each other: 1, 2"),
        (issue("a", &link("a")), "wait for each other"),
        (format!("{}\n{}", issue("a", ""), issue("a", "")), "beads:a stands on line 1, too"),
        (format!("{}\n{{\"id\":\"b\",\"ti", issue("a", "")), "line 2"),
        (issue("a", "").replace("open", "floating"), "`floating` is not a status of beads"),
        (issue("a", r#","priority":9"#), "is not a priority"),
        (issue("a", "").replace(r#""id":"a","#, ""), "the issue has no id"),
    ] {
        let mut desk = Desk::new();
        let refusal = import(&mut desk, Format::Beads, &text(&input)).unwrap_err();
        assert!(refusal.detail.contains(said), "{said}: {}", refusal.detail);
        assert!(desk.summary().is_empty(), "{said}");
    }
    // Where each file is one task, files are named, not their first lines.
    let page = |name: &str, id: &str, on: &str| SourceFile {
        name: name.to_owned(),
        text: format!("---\nid: {id}\ntitle: t\nstatus: To Do\ndependencies: [{on}]\n---\n"),
    };
    for (files, said) in [
        (
            [page("tasks/a.md", "T-1", ""), page("tasks/b.md", "T-1", "")],
            "backlog:T-1 stands in `tasks/a.md`, too",
        ),
        (
            [page("tasks/a.md", "T-1", "T-2"), page("tasks/b.md", "T-2", "T-1")],
            "these files wait for each other: `tasks/a.md`, `tasks/b.md`",
        ),
    ] {
        let mut desk = Desk::new();
        let refusal = import(&mut desk, Format::Backlog, &files).unwrap_err();
        assert!(refusal.detail.contains(said), "{said}: {}", refusal.detail);
        assert!(desk.summary().is_empty(), "{said}");
    }
    for (format, input) in [
        (Format::Queue, "tasks:\n  - id: A\n    title: t\n    status: odd\n"),
        (Format::Queue, "tasks:\n  - id: A\n   title: [\n"),
        (Format::Backlog, "---\nid: T-1\ntitle: t\nstatus: Odd\n---\n"),
        (Format::Backlog, "---\nid: T-1\ntitle: t\n"),
        (Format::Kano, "---\nid: T-1\nuid: 1\ntitle: t\nstate: Odd\n---\n"),
        (Format::Taskmaster, r#"{"tasks":[{"id":1,"title":"t","status":"odd"}]}"#),
        (Format::Taskmaster, r#"{"tasks":[{"id":1,"#),
        (Format::Github, r#"[{"number":1,"title":"t","state":"odd"}]"#),
        (Format::Redmine, r#"{"issues":[{"id":1,"subject":"t","status":{"name":"Odd"}}]}"#),
    ] {
        let mut desk = Desk::new();
        assert!(import(&mut desk, format, &text(input)).is_err(), "{input}");
        assert!(desk.summary().is_empty(), "{input}");
    }
}

/// `.beads` has more in it than issues: settings, older copies, and backups of the tables.
#[test]
fn of_a_directory_of_beads_the_issues_are_read_once_and_everything_else_is_named() {
    let file = |name: &str, text: &str| SourceFile { name: name.to_owned(), text: text.to_owned() };
    let issues = &sample("beads.jsonl")[0].text;
    let table = r#"{"id":"bd-9","title":"Of a table","status":"open","issue_type":"task","pinned":1}"#;
    let link = r#"{"issue_id":"bd-9","depends_on_id":"bd-8","type":"blocks","created_by":"dog"}"#;
    let other = r#"{"id":"bd-8","title":"Before it","status":"closed","issue_type":"task","pinned":0}"#;
    let backup = [
        file("backup/comments.jsonl", r#"{"author":"eve","id":1,"issue_id":"bd-9","text":"said"}"#),
        file("backup/dependencies.jsonl", link),
        file("backup/events.jsonl", r#"{"id":1,"issue_id":"bd-9","event_type":"created"}"#),
        file("backup/issues.jsonl", &format!("{table}\n{other}\n")),
        file("backup/labels.jsonl", r#"{"issue_id":"bd-9","label":"x"}"#),
        file("metadata.json", r#"{"database":"beads.db"}"#),
    ];
    let whole = [
        &backup[..],
        &[
            file("issues.jsonl", issues),
            file(".br_history/issues.20260117.jsonl", issues),
            file("interactions.jsonl", ""),
        ],
    ]
    .concat();
    assert_eq!(Format::detect(&whole), Some(Format::Beads));
    let mut desk = Desk::new();
    assert_eq!(import(&mut desk, Format::Beads, &whole).unwrap().created, 4);
    let skipped = convert(Format::Beads, &whole, &Default::default()).skipped;
    let names: Vec<&str> = skipped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), whole.len() - 1, "all but the issues: {skipped:?}");
    assert!(
        skipped.contains(&("backup/issues.jsonl".into(), "issues.jsonl is what is read".into())),
        "{skipped:?}"
    );
    // A backup alone is read with its tables.
    let mut desk = Desk::new();
    assert_eq!(import(&mut desk, Format::Beads, &backup).unwrap().created, 2);
    let stories = shown(&mut desk);
    let task = &story(&stories, "beads:bd-9")["task"];
    assert_eq!((&task["tags"], &task["state"]), (&json!(["x"]), &json!("blocked")), "{task:#}");
    assert_eq!(task["depends_on"], json!([story(&stories, "beads:bd-8")["task"]["id"]]));
    assert_eq!(task["extra"]["dependencies"][0]["created_by"], "dog");
    assert_eq!(story(&stories, "beads:bd-9")["notes"][0]["said"]["by"], "eve");
    assert_eq!(story(&stories, "beads:bd-8")["task"]["state"], "complete");
}

/// A copy has another name than the tool gives.
#[test]
fn a_file_that_is_named_alone_is_read_whatever_it_is_called() {
    for (name, format, tasks) in SAMPLES {
        let [file] = &sample(name)[..] else { continue };
        let renamed = [SourceFile { name: "copy.of-yesterday".to_owned(), ..file.clone() }];
        assert_eq!(Format::detect(&renamed), Some(format), "{name}");
        // What Redmine's tables are is told by their words alone.
        let view = import(&mut Desk::new(), format, &renamed)
            .unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        assert_eq!(view.created, tasks, "{name}");
    }
}

#[test]
fn words_that_do_not_fit_stay_whole() {
    let mut desk = Desk::new();
    let title = format!("{} \u{202e}end", "long ".repeat(120));
    let line = json!({"id": "a b", "title": title, "description": "red \u{1b}[31m", "status": "open",
        "labels": ["x".repeat(80), "ok"]});
    import(&mut desk, Format::Beads, &text(&line.to_string())).unwrap();
    let stories = shown(&mut desk);
    let task = &story(&stories, "beads:a_b")["task"];
    assert_eq!((&task["body"], &task["tags"]), (&json!("red [31m"), &json!(["ok"])));
    assert_eq!((&task["extra"]["title"], &task["extra"]["id"]), (&json!(title), &json!("a b")));
    assert_eq!(task["extra"]["description"], json!("red \u{1b}[31m"));
    assert_eq!(task["extra"]["labels"], line["labels"]);
}

#[test]
fn a_newer_file_brings_its_new_comments() {
    let mut desk = Desk::new();
    let files = sample("beads.jsonl");
    import(&mut desk, Format::Beads, &files).unwrap();
    let newer = files[0].text.replace(
        "\"comments\":[",
        "\"comments\":[{\"id\":8,\"author\":\"ada\",\"text\":\"Now it is\",\"created_at\":\"2025-12-19T10:00:00Z\"},",
    );
    let view = import(&mut desk, Format::Beads, &text(&newer)).unwrap();
    assert_eq!((view.created, view.existing, view.changed), (0, 4, 1));
    let stories = shown(&mut desk);
    assert_eq!(story(&stories, "beads:bd-a1")["notes"].as_array().unwrap().len(), 2);
}
