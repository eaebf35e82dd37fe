//! Files of other tools that are cut off, of a wrong shape, or contradict themselves: refused as a whole, with every finding, or
//! taken in as a whole. Nothing panics.

use super::desk::{Desk, request};
use super::sources::{SAMPLES, distinct_places, documents, import, sample, text, written};
use onus_app::import::Run;
use onus_app::import::format::{Format, SourceFile, convert};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use serde_json::{Value, json};

/// A refusal that people and scripts can use: a code of their input, and findings that say where.
fn assert_clear(what: &str, refusal: &Refusal) {
    let codes = [Code::InvalidInput, Code::DependencyCycle, Code::UnknownTask, Code::HumanRequired];
    assert!(codes.contains(&refusal.code), "{what}: {refusal:?}");
    assert!(!refusal.findings.is_empty() && refusal.hint.is_some(), "{what}: {refusal:?}");
    for finding in &refusal.findings {
        let words = &finding.detail;
        assert!(
            words.starts_with("line ") || words.contains(": ") || words.contains("not shown"),
            "{what}: {words}"
        );
        assert!(!words.contains(|c: char| c.is_control()) && words.len() < 2_000, "{what}: {words:?}");
    }
}

/// Whether a beginning of a file is one by itself: cut there, nobody can see it.
fn is_whole(format: Format, beginning: &str) -> bool {
    match format {
        Format::Beads => beginning.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
        // Where a word of YAML or Markdown ends nothing says; a page's marks and its head do.
        Format::Queue => true,
        _ => serde_json::from_str::<Value>(beginning).is_ok(),
    }
}

#[test]
fn a_file_that_was_cut_off_is_refused_wherever_it_was() {
    let mut passed = Vec::new();
    for (name, format, _) in SAMPLES {
        let [file] = &sample(name)[..] else { continue };
        let table = file.name.ends_with(".csv");
        // Everywhere; of a long file at every seventh place.
        let step = if file.text.len() < 2_000 { 1 } else { 7 };
        let ends = (1..file.text.trim_end().len()).step_by(step);
        for end in ends.filter(|end| file.text.is_char_boundary(*end)) {
            let beginning = &file.text[..end];
            let mut converted = convert(format, &text(beginning), &Default::default());
            match converted.refusal() {
                Some(refusal) => assert_clear(&format!("{name} cut at {end}"), &refusal),
                None if table && beginning.ends_with('\n') => {}
                None if is_whole(format, beginning) && !table => {}
                None => {
                    passed.push(format!("{name} cut at {end}: …{:?}", &beginning[end.saturating_sub(30)..]));
                }
            }
        }
    }
    // The last cell of a row may have been longer.
    passed.retain(|what| !what.starts_with("redmine.csv") || what.contains("cut at 1 "));
    assert!(passed.is_empty(), "taken for whole: {passed:#?}");
}

#[test]
fn a_page_that_was_cut_off_within_what_its_tool_marks_is_refused() {
    for (folder, format) in [("backlog", Format::Backlog), ("kano", Format::Kano)] {
        let files = sample(folder);
        for (at, file) in files.iter().enumerate().filter(|(_, file)| file.name.ends_with(".md")) {
            for end in 1..file.text.trim_end().len() {
                let beginning = &file.text[..end];
                let cut = [SourceFile { text: beginning.to_owned(), ..files[at].clone() }];
                let cut = [&cut, &files[..1]].concat();
                let mut converted = convert(format, &cut, &Default::default());
                let has_head = beginning.starts_with("---\n");
                let is_open = has_head && !beginning[4..].contains("\n---")
                    || beginning.matches(":BEGIN -->").count() > beginning.matches(":END -->").count();
                match converted.refusal() {
                    Some(refusal) => assert_clear(&format!("{} cut at {end}", file.name), &refusal),
                    None => assert!(!is_open || !has_head, "{} cut at {end}: {beginning}", file.name),
                }
            }
        }
    }
}

/// Editors put a mark at the beginning, and two characters at the end of a line: the same comes in.
#[test]
fn marks_and_line_ends_of_other_editors_change_nothing() {
    for (name, format, _) in SAMPLES {
        let files = sample(name);
        let other = |change: fn(&str) -> String| {
            let changed = files.iter().map(|file| SourceFile { text: change(&file.text), ..file.clone() });
            changed.collect::<Vec<_>>()
        };
        let meant = |files: &[SourceFile]| {
            let converted = convert(format, files, &Default::default());
            assert!(converted.is_sound(), "{name}");
            (converted.lines.replace("\\r\\n", "\\n"), converted.skipped, converted.unmapped)
        };
        let (marked, ended) =
            (other(|text| format!("\u{feff}{text}")), other(|text| text.replace('\n', "\r\n")));
        for changed in [&marked, &ended] {
            assert_eq!(Format::detect(changed), Some(format), "{name}");
            assert_eq!(meant(changed), meant(&files), "{name}");
        }
    }
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    for (format, input) in [
        (Format::Beads, r#"{"id":"a","title":"t","title":"u","status":"open"}"#),
        (Format::Github, r#"[{"number":1,"title":"t","state":"open","state":"closed"}]"#),
        (Format::Redmine, r#"{"issues":[{"id":1,"subject":"t","status":{"name":"New","name":"Closed"}}]}"#),
        (Format::Taskmaster, r#"{"tasks":[{"id":1,"title":"t"}],"tasks":[{"id":2,"title":"u"}]}"#),
        (Format::Queue, "tasks:\n  - id: A\n    title: t\n    title: u\n"),
        (Format::Backlog, "---\nid: T-1\ntitle: t\nstatus: To Do\nstatus: Done\n---\n"),
        (Format::Kano, "---\nid: T-1\nuid: 1\ntitle: t\nstate: New\nstate: Done\n---\n"),
    ] {
        let mut converted = convert(format, &text(input), &Default::default());
        let refusal = converted.refusal().unwrap_or_else(|| panic!("{input}: one of them is lost"));
        assert_clear(input, &refusal);
    }
}

/// A day that is still to come is a mistake: kept as the day it happened, every figure made of it would be one.
#[test]
fn a_beginning_or_an_end_in_the_future_is_refused() {
    for (name, now) in [("created_at", "9998-01-01T00:00:00.000Z"), ("closed_at", "2999-01-01T00:00:00Z")] {
        let mut issue = json!({"id": "a", "title": "t", "status": "closed"});
        issue[name] = json!(now);
        let refusal = import(&mut Desk::new(), Format::Beads, &text(&issue.to_string())).unwrap_err();
        assert_clear(name, &refusal);
        assert!(refusal.detail.contains("still to come"), "{refusal:?}");
    }
    // One that cannot be read is kept, and told.
    let issue = json!({"id": "a", "title": "t", "status": "open", "created_at": "9999-99-99"});
    let converted = convert(Format::Beads, &text(&issue.to_string()), &Default::default());
    assert!(converted.unmapped.contains("created_at"), "{converted:?}");
}

/// Everything that is wrong is told, wherever it stands; nothing of what is right comes in.
#[test]
fn every_importer_tells_all_that_is_wrong_at_once() {
    let page = |name: &str, head: &str| SourceFile { name: name.into(), text: format!("---\n{head}\n---\n") };
    let cases = [
        (
            Format::Beads,
            text("{\"id\":\"a\",\"title\":\"t\",\"status\":\"odd\"}\n{\"id\":\"b\"\n{\"title\":\"c\"}\n"),
            3,
        ),
        (
            Format::Queue,
            text(
                "tasks:\n  - id: A\n    status: 7\n  - title: t\n  - id: C\n    title: t\n    depends_on: {a: b}\n",
            ),
            3,
        ),
        (Format::Taskmaster, text(r#"{"tasks":[{"id":1,"title":"t","status":["x"]},{"title":"u"},5]}"#), 3),
        (Format::Github, text(r#"[{"number":1,"title":"t","state":"odd"},{"title":"u"},5]"#), 3),
        (Format::Redmine, text(r##"{"issues":[{"id":1,"subject":"t","status":[1]},{"subject":"u"},5]}"##), 3),
        (
            Format::Backlog,
            vec![
                page("a.md", "id: T-1\ntitle: t\nstatus: Odd"),
                page("b.md", "id: [1]"),
                page("c.md", "id: T-3\n x: ["),
            ],
            3,
        ),
        (
            Format::Kano,
            vec![
                page("a.md", "id: T-1\nuid: 1\ntitle: t\nstate: Odd"),
                page("b.md", "id: T-2\nuid: 2\nstate: []\ntitle: u"),
            ],
            2,
        ),
    ];
    for (format, files, count) in cases {
        let mut converted = convert(format, &files, &Default::default());
        let refusal = converted.refusal().unwrap_or_else(|| panic!("{} takes it in", format.name()));
        assert_clear(format.name(), &refusal);
        assert_eq!(refusal.findings.len(), count, "{}: {refusal:#?}", format.name());
    }
}

fn strange() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(18_446_744_073_709_551_615_u64),
        json!(""),
        json!(" \t\n"),
        json!("a\u{0}b\u{1b}[31m\u{202e}c"),
        json!("floating"),
        json!([]),
        json!({}),
        json!([null, 5, {"a": []}]),
        json!("0000-00-00T00:00:00Z"),
        json!("-009999-01-01"),
        json!("+262143-12-31T23:59:59Z"),
        json!((0..300).collect::<Vec<i32>>()),
    ]
}

/// Everything that any one place of a sample may be instead, or not be at all.
fn distorted(format: Format, files: &[SourceFile]) -> Vec<(String, Vec<SourceFile>)> {
    let whole = documents(format, files);
    let mut all = Vec::new();
    for (at, place) in distinct_places(&whole) {
        for other in strange() {
            let mut changed = whole.clone();
            *changed[at].value.pointer_mut(&place).unwrap() = other.clone();
            let shown: String = other.to_string().chars().take(60).collect();
            all.push((format!("{at}{place} = {shown}"), written(format, files, &changed)));
        }
        let (above, name) = place.rsplit_once('/').unwrap();
        let mut changed = whole.clone();
        match changed[at].value.pointer_mut(above) {
            Some(Value::Object(fields)) => drop(fields.remove(name)),
            Some(Value::Array(list)) => {
                let one = list[name.parse::<usize>().unwrap()].clone();
                list.push(one);
            }
            _ => continue,
        }
        all.push((format!("{at}{place} twice or gone"), written(format, files, &changed)));
    }
    all
}

#[test]
fn a_wrong_value_at_any_place_is_refused_or_taken_in_as_a_whole() {
    for (name, format, _) in SAMPLES {
        let files = sample(name);
        let mut desk = Desk::new();
        for (at, (what, files)) in distorted(format, &files).into_iter().enumerate() {
            let what = format!("{name} {what}");
            let mut converted = convert(format, &files, &Default::default());
            if let Some(refusal) = converted.refusal() {
                assert_clear(&what, &refusal);
                continue;
            }
            // What the rules say of it, too, of some; and all of it, of fewer.
            if at % 16 != 0 {
                continue;
            }
            let dry = desk.import_as(&request(), "@ada", None, &converted.lines, Run::Dry);
            let dry = dry.unwrap_or_else(|refusal| panic!("{what}: {refusal:?}"));
            if at % 256 != 0 {
                continue;
            }
            let mut other = Desk::new();
            match import(&mut other, format, &files) {
                Ok(view) => {
                    assert_eq!((view.read, view.created), (dry.read, dry.created), "{what}");
                    let again = import(&mut other, format, &files).unwrap();
                    assert_eq!((again.created, again.changed), (0, 0), "{what}");
                    let verified = other.onus.verify(&mut onus_app::progress::Silent).unwrap();
                    assert!(verified.findings.is_empty(), "{what}: {verified:?}");
                }
                Err(refusal) => {
                    assert_clear(&what, &refusal);
                    assert!(!dry.refused.is_empty(), "{what}: {refusal:?}");
                    assert!(other.summary().is_empty(), "{what}");
                }
            }
        }
        assert!(desk.summary().is_empty(), "a dry run of {name} has written");
        // Any text of a file may be far too long.
        let whole = documents(format, &files);
        for (at, place) in distinct_places(&whole) {
            let mut changed = whole.clone();
            let value = changed[at].value.pointer_mut(&place).unwrap();
            if !value.is_string() {
                continue;
            }
            *value = json!("x".repeat(300_000));
            let mut converted = convert(format, &written(format, &files, &changed), &Default::default());
            if let Some(refusal) = converted.refusal() {
                assert_clear(&format!("{name} {at}{place}, very long"), &refusal);
            } else if let Err(refusal) = desk.import_as(&request(), "@ada", None, &converted.lines, Run::Dry)
            {
                panic!("{name} {at}{place}, very long: {refusal:?}");
            }
        }
    }
}
