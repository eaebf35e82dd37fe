//! An export of tasks that came from everywhere: every format brings them back as the same, here and elsewhere.

use super::desk::Desk;
use super::sources::{import, sample, text};
use onus_app::export::format::convert as back;
use onus_app::import::format::Format;
use onus_core::command::Command;
use onus_core::text::Text;
use onus_store::read::queue::Which;
use serde_json::{Value, json};

/// Tasks of four tools and of Onus itself, which wait for each other.
fn of_everywhere() -> Desk {
    let mut desk = Desk::new();
    import(&mut desk, Format::Beads, &sample("beads.jsonl")).unwrap();
    import(&mut desk, Format::Queue, &sample("queue.yaml")).unwrap();
    import(&mut desk, Format::Backlog, &sample("backlog")).unwrap();
    import(&mut desk, Format::Github, &sample("github.json")).unwrap();
    let bug = json!({
        "title": "  Ours,  \"and\" ours ".trim(), "id": "API-7", "uid": "01900000-0000-7000-8000-000000000007", "kind": "bug",
        "body": "# Words\n\n- of it: [x]", "type": "backend", "priority": "P0", "risk": "high", "role": "A-backend", "lane": 2,
        "sprint": "s 1", "tags": ["b", "a"], "scope": ["src/**"], "merge_order": 3, "depends_on": ["beads:bd-a1", "queue:PF-001"],
        "parent": "github:acme/api#12", "checks": ["test -d src", "cargo test", "./a b"],
        "criteria": ["[x] it is\nall well", "#2 no", "make sure: yes"], "extra": {"status": "odd", "n": {"of": [1, 2.5]}},
        "notes": [{"by": "eve", "at": "2026-01-02T03:04:05Z", "text": "from elsewhere"}],
    });
    let ended = json!({
        "title": "Done here", "origin_ask_ref": "email:<a@b>", "state": "done", "closed_at": "2026-02-03T04:05:06Z",
        "created_at": "2026-02-01T00:00:00Z", "resolution": "as\nasked", "depends_on": ["API-7"],
    });
    let dropped = json!({"title": "Not wanted", "id": "T-900", "state": "dropped", "resolution": "no"});
    desk.import(&format!("{bug}\n{ended}\n{dropped}\n{{\"title\":\"bare\",\"id\":\"T-950\"}}\n"));
    for (task, words) in [("API-7", "said here"), ("T-1", "said here, too")] {
        desk.submit("@bot", task, None, Command::Note { text: Text::new(words.into()) });
    }
    desk.submit("@ada", "T-1", None, Command::AddDependency { on: super::desk::id("T-950") });
    desk
}

/// What an export has to bring over: everything but what only a store can say.
fn brought(desk: &mut Desk) -> Vec<Value> {
    let titles: std::collections::BTreeMap<String, String> = desk
        .tasks()
        .iter()
        .map(|task| (task["id"].as_str().unwrap().to_owned(), task["title"].as_str().unwrap().to_owned()))
        .collect();
    let title = |id: &Value| id.as_str().map(|id| titles[id].clone());
    let mut tasks = desk.tasks();
    for task in &mut tasks {
        let mut waits: Vec<_> = task["depends_on"].as_array().unwrap().iter().map(title).collect();
        waits.sort();
        task["depends_on"] = json!(waits);
        task["parent"] = json!(title(&task["parent"]));
        let fields = task.as_object_mut().unwrap();
        // Whoever imports asks, and nobody waits but for tasks; a memory has no dates of its own.
        for name in ["id", "uid", "version", "created_by", "updated_at", "blocked_on", "untrusted"] {
            fields.remove(name);
        }
        if ["memory", "document", "decision", "milestone"].contains(&fields["kind"].as_str().unwrap()) {
            fields.retain(|name, _| !name.ends_with("_at"));
        }
        if fields["state"] == "blocked" {
            fields["state"] = json!("open");
        }
    }
    tasks.sort_by_key(|task| task["title"].to_string());
    tasks
}

#[test]
fn an_export_of_tasks_from_everywhere_comes_back_as_the_same() {
    for format in [Format::Jsonl, Format::Csv, Format::Queue, Format::Beads] {
        let name = format.name();
        let mut desk = of_everywhere();
        let exported = |desk: &mut Desk| match format {
            Format::Jsonl => desk.export(Which::All),
            other => back(other, &desk.export(Which::All)).unwrap(),
        };
        let bring = |desk: &mut Desk, written: &str| match format {
            Format::Jsonl => desk.try_import("@ada", written).unwrap(),
            other => import(desk, other, &text(written))
                .unwrap_or_else(|refusal| panic!("{name}: {refusal:#?}\n{written}")),
        };
        let written = exported(&mut desk);
        assert_eq!(Format::detect(&text(&written)), Some(format));
        let (before, count) = (desk.tasks(), desk.tasks().len() as i64);
        let view = bring(&mut desk, &written);
        assert_eq!((view.read, view.created, view.changed), (count, 0, 0), "{name}: {view:#?}");
        assert_eq!(desk.tasks(), before, "{name}");
        let mut other = Desk::new();
        let view = bring(&mut other, &written);
        // One of beads names what is in another store of beads.
        let unresolved = usize::from(format == Format::Beads);
        assert_eq!((view.created, view.unresolved.len()), (count, unresolved), "{name}: {view:#?}");
        let (was, is) = (brought(&mut desk), brought(&mut other));
        for (was, is) in was.iter().zip(&is) {
            assert_eq!(is, was, "{name}");
        }
        // And what went over goes on as the same.
        let once_more = exported(&mut other);
        let view = bring(&mut other, &once_more);
        assert_eq!((view.created, view.changed), (0, 0), "{name}: {view:#?}");
        let view = bring(&mut desk, &once_more);
        assert_eq!(view.created, 0, "{name}: {view:#?}");
        other.assert_sound();
        desk.assert_sound();
    }
}
