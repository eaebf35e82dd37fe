//! Together or not at all; one writer at a time; a reader's view stands still.

use super::harness::{Harness, add, ask, commit, furnished, id, spec};
use onus_core::task::Task;
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store};
use onus_store::read::queue::{After, Filter, Which, list};
use onus_store::{apply, load};

fn titles<S: Store>(store: &mut S) -> Vec<String> {
    let found = ask(store, |tx| list(tx, Which::All, &Filter::default(), After::START, 1_000));
    found.into_iter().map(|task: Task| task.spec.title).collect()
}

pub(crate) fn a_commit_is_seen_by_others<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| add(tx, spec("one"), &[])).unwrap();
    assert_eq!(titles(&mut harness.connect()), ["one"]);
}

pub(crate) fn a_rollback_leaves_nothing<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let task: Result<Task, StoreError> = store.write(|tx| add(tx, spec("one"), &[]).map(Outcome::Rollback));
    assert_eq!(task.unwrap().spec.title, "one");
    assert!(titles(&mut store).is_empty());
}

pub(crate) fn an_error_leaves_nothing<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let failed = commit(&mut store, |tx| {
        add(tx, spec("one"), &[])?;
        Err::<(), _>(StoreError::Guard("on purpose".into()))
    });
    assert_eq!(failed, Err(StoreError::Guard("on purpose".into())));
    assert!(titles(&mut store).is_empty());
    // The store is as good as before.
    commit(&mut store, |tx| add(tx, spec("two"), &[])).unwrap();
    assert_eq!(titles(&mut store), ["two"]);
}

pub(crate) fn a_view_does_not_move<H: Harness>(harness: &H) {
    let mut reader = furnished(harness);
    let mut writer = harness.connect();
    let (before, after) = ask(&mut reader, |tx| {
        let before = load::workspace(tx)?.last_seq;
        commit(&mut writer, |tx| add(tx, spec("meanwhile"), &[]))?;
        Ok((before, load::workspace(tx)?.last_seq))
    });
    assert_eq!(before, after);
    assert_eq!(titles(&mut reader), ["meanwhile"]);
}

pub(crate) fn writers_take_turns_and_lose_nothing<H: Harness>(harness: &H) {
    drop(furnished(harness));
    std::thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || {
                let mut store = harness.connect();
                for n in 0..10 {
                    commit(&mut store, |tx| add(tx, spec(&format!("{writer}-{n}")), &[])).unwrap();
                }
            });
        }
    });
    let mut all = titles(&mut harness.connect());
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 80);
}

pub(crate) fn numbers_are_used_once<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let mut take = |keep: bool| {
        let taken: Result<_, StoreError> = store.write(|tx| {
            let number = apply::allocate(tx, &id("T"))?.unwrap().number;
            Ok(if keep { Outcome::Commit(number) } else { Outcome::Rollback(number) })
        });
        taken.unwrap()
    };
    assert_eq!([take(true), take(false), take(true)], [1, 2, 2]);
    let mut store = harness.connect();
    commit(&mut store, |tx| apply::reserve(tx, &id("T-50"))).unwrap();
    commit(&mut store, |tx| apply::reserve(tx, &id("T-7"))).unwrap();
    let next = commit(&mut store, |tx| apply::allocate(tx, &id("T"))).unwrap();
    assert_eq!(next.unwrap().number, 51);
    assert_eq!(commit(&mut store, |tx| apply::allocate(tx, &id("NONE"))).unwrap(), None);
}

pub(crate) fn the_clock_is_read_inside<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let wall = ask(&mut store, |tx| tx.now()).wall;
    assert!(wall.0 > 0);
}

pub(crate) fn a_mark_divides_a_transaction<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        for (title, stays) in [("first", true), ("second", false), ("third", true)] {
            tx.savepoint()?;
            add(tx, spec(title), &[])?;
            if stays { tx.release()? } else { tx.rollback_to()? }
        }
        Ok(())
    })
    .unwrap();
    let mut titles = titles(&mut harness.connect());
    titles.sort();
    assert_eq!(titles, ["first", "third"]);
}

/// What was decided stays, or nothing of the transaction does.
pub(crate) fn what_was_decided_is_never_half_undone<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    for (title, stays) in [("first", true), ("second", false)] {
        let ended = commit(&mut store, |tx| {
            tx.savepoint()?;
            add(tx, spec(&format!("before {title}")), &[])?;
            tx.release()?;
            tx.savepoint()?;
            tx.decided();
            add(tx, spec(title), &[])?;
            if stays { tx.release() } else { tx.rollback_to() }
        });
        assert!(ended.is_ok() || (!stays && matches!(ended, Err(StoreError::Guard(_)))), "{ended:?}");
        let found = titles(&mut harness.connect());
        assert_eq!(found.contains(&title.to_owned()), stays, "{found:?}");
        assert_eq!(found.contains(&format!("before {title}")), ended.is_ok(), "{found:?}");
    }
}

pub(crate) fn a_mark_before_nothing_costs_nothing<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        tx.savepoint()?;
        tx.rollback_to()?;
        tx.savepoint()?;
        tx.release()?;
        add(tx, spec("one"), &[]).map(drop)
    })
    .unwrap();
    assert_eq!(titles(&mut store), ["one"]);
}
