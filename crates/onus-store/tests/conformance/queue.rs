//! Order, pages, readiness, filters; and no hot statement reads a whole table.

use super::harness::{Harness, add, ask, claimed, commit, furnished, id, spec, write};
use onus_core::event::{Completed, DependencyAdded, DependencyRemoved, Dropped, Edited, Event, Reopened};
use onus_core::task::{Priority, Spec, StateName, Task};
use onus_core::text::Text;
use onus_store::port::{Store, Tx};
use onus_store::read::queue::{After, Filter, SEARCH, Which, list, ready, ready_after, search, window};
use onus_store::{load, statements, word_index};

fn with_priority(title: &str, priority: Priority) -> Spec {
    Spec { priority, ..spec(title) }
}

fn names(tasks: &[Task]) -> String {
    tasks.iter().map(|task| task.spec.title.as_str()).collect::<Vec<_>>().join(" ")
}

fn complete(tx: &mut dyn Tx, task: Task) -> onus_store::error::Result<Task> {
    let id = task.id.clone();
    let held = write(tx, Some(task), &id, "@bot", Some("ws-1"), claimed(9))?;
    let resolution = Text::new("done".into());
    write(
        tx,
        Some(held),
        &id,
        "@bot",
        Some("ws-1"),
        Completed {
            resolution,
            reason: None,
            forced: false,
            late_by_ms: None,
            commit: None,
            root_cause: None,
            landed: None,
        },
    )
}

fn change(tx: &mut dyn Tx, task: Task, event: impl Into<Event>) -> onus_store::error::Result<Task> {
    let id = task.id.clone();
    write(tx, Some(task), &id, "@ada", None, event)
}

pub(crate) fn the_list_is_in_order_and_pages_join<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        for (title, priority) in [
            ("a", Priority::P3),
            ("b", Priority::P0),
            ("c", Priority::P3),
            ("d", Priority::P2),
            ("e", Priority::P0),
        ] {
            add(tx, with_priority(title, priority), &[])?;
        }
        Ok(())
    })
    .unwrap();
    let page = |store: &mut H::Store, after, limit| {
        ask(store, |tx| list(tx, Which::Active, &Filter::default(), after, limit))
    };
    let all = page(&mut store, After::START, 100);
    assert_eq!(names(&all), "b e d a c");
    let (mut seen, mut after) = (Vec::new(), After::START);
    loop {
        let tasks = page(&mut store, after, 2);
        let Some(last) = tasks.last() else { break };
        after = After { priority: last.spec.priority.rank(), born: last.born };
        seen.extend(tasks);
    }
    assert_eq!(names(&seen), "b e d a c");
    let by_age = ask(&mut store, |tx| list(tx, Which::All, &Filter::default(), After::START, 100));
    assert_eq!(names(&by_age), "a b c d e");
}

pub(crate) fn ready_means_open_with_complete_dependencies<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let first = commit(&mut store, |tx| {
        let first = add(tx, spec("first"), &[])?;
        add(tx, with_priority("second", Priority::P0), &["T-1"])?;
        add(tx, spec("third"), &["T-1", "T-2"])?;
        Ok(first)
    })
    .unwrap();
    let now_ready = |store: &mut H::Store| ask(store, |tx| ready(tx, &Filter::default(), After::START, 10));
    assert_eq!(names(&now_ready(&mut store)), "first");
    let waiting = ask(&mut store, |tx| {
        let mut waiting = Vec::new();
        window(tx, &Filter::default(), 10, &mut |passing| {
            waiting.push(passing.waiting);
            Ok(())
        })?;
        Ok(waiting)
    });
    assert_eq!(waiting, [true, false, true]);
    commit(&mut store, |tx| complete(tx, first)).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "second");
    // A dependency that is reopened, added or removed counts at once.
    let first = ask(&mut store, |tx| load::task(tx, &id("T-1"))).unwrap().task;
    commit(&mut store, |tx| change(tx, first, Reopened { reason: "no".into() })).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "first");
    let first = ask(&mut store, |tx| load::task(tx, &id("T-1"))).unwrap().task;
    commit(&mut store, |tx| complete(tx, first)).unwrap();
    let second = ask(&mut store, |tx| load::task(tx, &id("T-2"))).unwrap().task;
    let second = commit(&mut store, |tx| change(tx, second, DependencyAdded { on: id("T-3") })).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "");
    commit(&mut store, |tx| change(tx, second, DependencyRemoved { on: id("T-3") })).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "second");
    let done = ask(&mut store, |tx| {
        list(tx, Which::Only(StateName::Complete), &Filter::default(), After::START, 10)
    });
    assert_eq!(names(&done), "first");
}

pub(crate) fn a_parent_is_ready_behind_its_slices<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let slice = |title: &str| Spec { parent: Some(id("T-1")), ..spec(title) };
    let (one, two) = commit(&mut store, |tx| {
        add(tx, spec("parent"), &[])?;
        Ok((add(tx, slice("one"), &[])?, add(tx, slice("two"), &[])?))
    })
    .unwrap();
    let now_ready = |store: &mut H::Store| ask(store, |tx| ready(tx, &Filter::default(), After::START, 10));
    assert_eq!(names(&now_ready(&mut store)), "one two");
    commit(&mut store, |tx| complete(tx, one)).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "two");
    // What is dropped is waited for by nobody; what is reopened is.
    commit(&mut store, |tx| change(tx, two, Dropped { reason: "no".into() })).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "parent");
    let one = ask(&mut store, |tx| load::task(tx, &id("T-2"))).unwrap().task;
    let one = commit(&mut store, |tx| change(tx, one, Reopened { reason: "yes".into() })).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "one");
    // A slice that becomes another's is waited for there.
    commit(&mut store, |tx| add(tx, spec("other"), &[])).unwrap();
    let before = Box::new(one.spec.clone());
    let after = Box::new(Spec { parent: Some(id("T-4")), ..one.spec.clone() });
    commit(&mut store, |tx| change(tx, one, Edited { before, after, renewal: None, outside: None })).unwrap();
    assert_eq!(names(&now_ready(&mut store)), "parent one");
}

pub(crate) fn filters_narrow<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        add(tx, Spec { task_type: Some(id("infra")), role: Some(id("C-ops")), ..spec("ops") }, &[])?;
        add(tx, Spec { lane: Some(2), sprint: Some("s1".into()), ..spec("lane") }, &[])?;
        let held = add(tx, spec("held"), &[])?;
        let task = held.id.clone();
        write(tx, Some(held), &task, "@bot", Some("ws-1"), claimed(1)).map(drop)
    })
    .unwrap();
    let mut check = |filter: Filter, expected: &str| {
        let found = ask(&mut store, |tx| list(tx, Which::Active, &filter, After::START, 10));
        assert_eq!(names(&found), expected, "{filter:?}");
    };
    check(Filter::default(), "ops lane held");
    check(Filter { task_type: Some(id("infra")), ..Filter::default() }, "ops");
    check(Filter { role: Some(id("C-ops")), ..Filter::default() }, "ops");
    check(Filter { lane: Some(2), ..Filter::default() }, "lane");
    check(Filter { sprint: Some("s1".into()), ..Filter::default() }, "lane");
    check(Filter { assignee: Some(id("@bot")), ..Filter::default() }, "held");
    check(Filter { project: Some(id("T")), ..Filter::default() }, "ops lane held");
    check(Filter { project: Some(id("OTHER")), ..Filter::default() }, "");
    // A filter is asked by other statements; one that leaves nothing out gets the same answers.
    for filter in [Filter::default(), Filter { project: Some(id("T")), ..Filter::default() }] {
        let first = ask(&mut store, |tx| ready(tx, &filter, After::START, 10));
        assert_eq!(names(&first), "ops lane", "{filter:?}");
        let after = After::task(&first[0]);
        assert_eq!(names(&ask(&mut store, |tx| ready(tx, &filter, after, 10))), "lane", "{filter:?}");
        let behind = ask(&mut store, |tx| ready_after(tx, &filter, After::START, 10));
        let behind =
            behind.iter().map(|one| (one.id.clone(), one.at, one.spec.task_type.clone(), one.spec.lane));
        assert!(behind.eq(first.iter().map(|task| {
            (task.id.clone(), After::task(task), task.spec.task_type.clone(), task.spec.lane)
        })));
        assert_eq!(passing(&mut store, &filter), "ops open, lane open, held in_progress", "{filter:?}");
    }
    assert_eq!(passing(&mut store, &Filter { lane: Some(2), ..Filter::default() }), "lane open");
}

fn found<S: Store>(store: &mut S, text: &str, which: Which, filter: &Filter) -> String {
    while commit(store, word_index::catch_up).unwrap() > 0 {}
    let mut found = Vec::new();
    let sought = onus_core::search::sought(text);
    ask(store, |tx| {
        search(tx, &sought, which, filter, 10, &mut |passing| {
            found.push(passing.title.to_owned());
            Ok(())
        })
    });
    found.join(" | ")
}

pub(crate) fn a_search_finds_words_wherever_they_stand<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let (held, title) = commit(&mut store, |tx| {
        let body = Some(Text::new("The **zeppelin** clause of the tariff".into()));
        let quiet = add(tx, Spec { body, tags: vec!["50%_off".into()], ..spec("Quiet coaches") }, &[])?;
        add(tx, with_priority("Zeppelins land", Priority::P0), &[])?;
        let done = add(tx, spec("Paper tickets"), &[])?;
        complete(tx, done)?;
        Ok((quiet.id, quiet.spec.title))
    })
    .unwrap();
    let everything = Filter::default();
    let mut check = |text: &str, which: Which, filter: &Filter, expected: &str| {
        assert_eq!(found(&mut store, text, which, filter), expected, "{text} {which:?} {filter:?}");
    };
    // By their beginnings, whatever their letters, the most important first; all of them must be there.
    check("zepp", Which::All, &everything, "Zeppelins land | Quiet coaches");
    check("ZEPPELIN coach", Which::All, &everything, "Quiet coaches");
    check("zeppelin coach tariff", Which::All, &everything, "Quiet coaches");
    check("zeppelin coach paper", Which::All, &everything, "");
    check("eppelin", Which::All, &everything, "");
    check(&held.to_string(), Which::All, &everything, &title);
    check("50%", Which::All, &everything, "Quiet coaches");
    check("%", Which::All, &everything, "");
    // What was noted: the resolution of a task that ended.
    check("done", Which::All, &everything, "Paper tickets");
    check("paper", Which::Active, &everything, "");
    check("paper", Which::Only(StateName::Complete), &everything, "Paper tickets");
    check(
        "zeppelin",
        Which::All,
        &Filter { priority: Some(Priority::P0), ..Filter::default() },
        "Zeppelins land",
    );
    check(
        "zeppelin",
        Which::All,
        &Filter { tag: Some("50%_off".into()), ..Filter::default() },
        "Quiet coaches",
    );
    check("zeppelin", Which::All, &Filter { tag: Some("50%".into()), ..Filter::default() }, "");
    // What came later, and what a task says after an edit.
    commit(&mut store, |tx| {
        add(tx, spec("Late zeppelin"), &[])?;
        let task = load::task(tx, &held)?.unwrap().task;
        let before = Box::new(task.spec.clone());
        let after = Box::new(Spec { title: "Calm coaches".into(), ..task.spec.clone() });
        change(tx, task, Edited { before, after, renewal: None, outside: None }).map(drop)
    })
    .unwrap();
    let mut check = |text: &str, expected: &str| {
        assert_eq!(found(&mut store, text, Which::All, &Filter::default()), expected, "{text}");
    };
    check("late", "Late zeppelin");
    check("calm", "Calm coaches");
    check("quiet", "Calm coaches");
}

/// Everybody who writes waits for whoever makes the index: one transaction is short, however long the texts are.
pub(crate) fn words_are_indexed_a_little_at_a_time<H: Harness>(harness: &H) {
    const LONG: usize = 6;
    const SHORT: usize = 150;
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        for n in 0..LONG {
            let words: Vec<String> = (0..1_500).map(|word| format!("w{n}x{word}")).collect();
            add(tx, Spec { body: Some(Text::new(words.join(" "))), ..spec(&format!("long{n}")) }, &[])?;
        }
        for n in 0..SHORT {
            add(tx, spec(&format!("short{n}")), &[])?;
        }
        Ok(())
    })
    .unwrap();
    let mut left = vec![commit(&mut store, word_index::catch_up).unwrap()];
    while left.last() != Some(&0) {
        left.push(commit(&mut store, word_index::catch_up).unwrap());
    }
    // Two long texts are enough for one transaction.
    let at_least = SHORT as i64 + 1;
    assert!(left.iter().filter(|left| **left >= at_least).count() >= LONG / 2 - 1, "{left:?}");
    assert!(left.len() <= LONG / 2 + SHORT / 64 + 2, "{left:?}");
    for (text, title) in
        [("w0x7", "long0"), ("w5x1499", "long5"), ("short0", "short0"), ("short149", "short149")]
    {
        assert_eq!(found(&mut store, text, Which::All, &Filter::default()), title);
    }
}

/// What passes by at the head of the queue.
fn passing<S: Store>(store: &mut S, filter: &Filter) -> String {
    let passed = ask(store, |tx| {
        let mut passed = Vec::new();
        window(tx, filter, 10, &mut |passing| {
            passed.push(format!("{} {}", passing.title, passing.state.name()));
            Ok(())
        })?;
        Ok(passed)
    });
    passed.join(", ")
}

/// A search goes by the words, however many tasks there are; only what it finds is sorted.
pub(crate) fn a_search_reads_no_whole_table<H: Harness>(harness: &H) {
    drop(furnished(harness));
    let scans = harness.scans(SEARCH.text).into_iter().filter(|scan| !scan.contains("FOR ORDER BY"));
    assert_eq!(scans.collect::<Vec<_>>(), [""; 0]);
}

/// A statement that every claim runs must not grow with the number of tasks.
pub(crate) fn no_hot_statement_scans_a_table<H: Harness>(harness: &H) {
    drop(furnished(harness));
    let found = statements::HOT.iter().flat_map(|statement| {
        let scans = harness.scans(statement.text).into_iter();
        scans.map(|scan| format!("{} reads everything: {scan}", statement.name))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
