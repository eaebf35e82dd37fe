//! Milestones: what is written is what is read, and which tasks they are about.

use super::harness::{Harness, add, ask, commit, furnished, id, spec};
use onus_core::hash::Digest;
use onus_core::milestone::{Closed, Milestone, Selection};
use onus_core::saved_view::{SavedView, ViewQuery};
use onus_core::task::Spec;
use onus_core::time::Timestamp;
use onus_store::{load, milestone, saved_view};

fn named(name: &str, born: i64, selection: Selection) -> Milestone {
    let target = Some("2026-11-30".parse().unwrap());
    Milestone { name: id(name), title: Some("Ünïcödé".into()), selection, target, born, closed: None }
}

/// Five tasks: of a sprint, with tags, a parent with a slice, and one of nothing.
fn with_tasks<H: Harness>(harness: &H) -> H::Store {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        add(tx, Spec { sprint: Some("12".into()), ..spec("of a sprint") }, &[])?;
        add(tx, Spec { tags: vec!["a\"b".into(), "release".into()], ..spec("tagged") }, &[])?;
        add(tx, spec("parent"), &[])?;
        add(tx, Spec { parent: Some(id("T-3")), tags: vec!["releases".into()], ..spec("slice") }, &[])?;
        add(tx, spec("alone"), &[])
    })
    .unwrap();
    store
}

pub(crate) fn a_milestone_reads_back<H: Harness>(harness: &H) {
    let mut store = with_tasks(harness);
    let all = Selection {
        tasks: [id("T-2"), id("T-1")].into(),
        sprint: Some("12".into()),
        tag: Some("release".into()),
        parent: Some(id("T-3")),
    };
    let written = [
        named("later", 2, all),
        named("first", 1, Selection { tag: Some("x".into()), ..Selection::default() }),
    ];
    for milestone in &written {
        commit(&mut store, |tx| milestone::insert(tx, milestone)).unwrap();
    }
    assert!(commit(&mut store, |tx| milestone::insert(tx, &written[0])).is_err(), "one name, one milestone");
    let mut other = harness.connect();
    let read = ask(&mut other, |tx| milestone::find(tx, &id("later"))).unwrap();
    assert_eq!((&read.milestone, &read.closed), (&written[0], &None));
    assert_eq!(read.added, (id("@ada"), Timestamp(1_000_000)), "who and when is the entry's to say");
    assert!(ask(&mut other, |tx| milestone::find(tx, &id("nothing"))).is_none());

    let closed = Closed { seq: 4, fingerprint: Digest::of(b"verified") };
    commit(&mut store, |tx| milestone::close(tx, &id("later"), &closed)).unwrap();
    assert!(commit(&mut store, |tx| milestone::close(tx, &id("later"), &closed)).is_err(), "closed once");
    let every = ask(&mut other, |tx| milestone::every(tx));
    let names: Vec<&str> = every.iter().map(|row| row.milestone.name.as_str()).collect();
    assert_eq!(names, ["first", "later"], "the oldest first");
    assert_eq!((every[1].milestone.closed, every[0].milestone.closed), (Some(closed), None));
    assert_eq!(every[1].closed, Some((id("@ada"), Timestamp(1_000_000))));
    let nowhere = named("nowhere", 1, Selection { tasks: [id("T-99")].into(), ..Selection::default() });
    assert!(commit(&mut store, |tx| milestone::insert(tx, &nowhere)).is_err());
}

pub(crate) fn a_milestone_is_about_what_it_names_and_what_shares_it<H: Harness>(harness: &H) {
    let mut store = with_tasks(harness);
    let mut members = |selection: Selection| {
        let name = format!("m-{}", ask(&mut store, |tx| milestone::every(tx)).len());
        let milestone = named(&name, 1, selection);
        commit(&mut store, |tx| milestone::insert(tx, &milestone)).unwrap();
        let found = ask(&mut store, |tx| milestone::members(tx, &milestone));
        let all = ["T-1", "T-2", "T-3", "T-4", "T-5"]
            .map(|task| ask(&mut store, |tx| load::task(tx, &id(task))).unwrap().task);
        // The statement finds what the rule says.
        let ruled = all.iter().filter(|task| milestone.selection.has(task)).map(|task| &task.id);
        assert_eq!(found.iter().map(|row| &row.task.id).collect::<Vec<_>>(), ruled.collect::<Vec<_>>());
        found.iter().map(|row| row.task.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    let none = Selection::default;
    assert_eq!(members(Selection { tasks: [id("T-5"), id("T-1")].into(), ..none() }), "T-1 T-5");
    assert_eq!(members(Selection { sprint: Some("12".into()), ..none() }), "T-1");
    assert_eq!(members(Selection { sprint: Some("1".into()), ..none() }), "");
    assert_eq!(members(Selection { tag: Some("release".into()), ..none() }), "T-2");
    assert_eq!(members(Selection { tag: Some("a\"b".into()), ..none() }), "T-2");
    assert_eq!(members(Selection { tag: Some("b".into()), ..none() }), "");
    assert_eq!(members(Selection { parent: Some(id("T-3")), ..none() }), "T-3 T-4");
    let several = Selection {
        tasks: [id("T-1")].into(),
        sprint: Some("12".into()),
        tag: Some("releases".into()),
        parent: None,
    };
    assert_eq!(members(several), "T-1 T-4", "each task once");
}

pub(crate) fn a_target_moves_while_it_is_open<H: Harness>(harness: &H) {
    let mut store = with_tasks(harness);
    let first = named("first", 1, Selection { tag: Some("x".into()), ..Selection::default() });
    commit(&mut store, |tx| milestone::insert(tx, &first)).unwrap();
    let moved = Milestone { title: None, target: None, ..first.clone() };
    commit(&mut store, |tx| milestone::edit(tx, &moved)).unwrap();
    assert_eq!(ask(&mut store, |tx| milestone::find(tx, &first.name)).unwrap().milestone, moved);
    let closed = Closed { seq: 4, fingerprint: Digest::of(b"verified") };
    commit(&mut store, |tx| milestone::close(tx, &first.name, &closed)).unwrap();
    assert!(commit(&mut store, |tx| milestone::edit(tx, &first)).is_err(), "what is closed stays");
}

pub(crate) fn a_view_reads_back_and_goes<H: Harness>(harness: &H) {
    let mut store = with_tasks(harness);
    let view = |name: &str, sprint: &str, saved| SavedView {
        name: name.into(),
        query: ViewQuery([("sprint".to_owned(), sprint.to_owned())].into()),
        saved,
    };
    commit(&mut store, |tx| saved_view::put(tx, &view("Zwölf", "12", 2), true)).unwrap();
    commit(&mut store, |tx| saved_view::put(tx, &view("A \"b\"", "1", 1), true)).unwrap();
    assert!(commit(&mut store, |tx| saved_view::put(tx, &view("Zwölf", "13", 3), true)).is_err());
    commit(&mut store, |tx| saved_view::put(tx, &view("Zwölf", "13", 3), false)).unwrap();
    let mut other = harness.connect();
    let read = ask(&mut other, saved_view::every);
    let views: Vec<_> = read.iter().map(|row| row.view.clone()).collect();
    assert_eq!(views, [view("A \"b\"", "1", 1), view("Zwölf", "13", 3)]);
    assert_eq!((&read[0].by, read[0].at), (&id("@ada"), Timestamp(1_000_000)));
    commit(&mut store, |tx| saved_view::remove(tx, "Zwölf")).unwrap();
    assert!(commit(&mut store, |tx| saved_view::remove(tx, "Zwölf")).is_err(), "it is gone already");
    assert_eq!(ask(&mut other, saved_view::every).len(), 1);
}
