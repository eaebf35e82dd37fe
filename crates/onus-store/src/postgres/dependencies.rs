//! Which answers a change leaves as they were, and which changes can be made in one statement. Both follow from what each
//! statement declares beside its text ([`Effect`]); one that declares nothing alters every answer, and is carried out alone,
//! in its turn.

use super::answer_cache::Rows;
use super::bound::Bound;
use crate::statement::StatementEffect;

/// Rows of the first table refer to rows of the second: they are written after them.
const REFERS: &[(&str, &str)] = &[("session", "assignment")];

/// A change that waits to be sent.
#[derive(Debug)]
pub(super) struct PendingChange {
    pub(super) bound: Bound,
    /// How many rows it must touch.
    pub(super) wanted: Option<u64>,
}

/// Whether the answer to a question may be another one after a change.
pub(super) fn may_alter(change: &Bound, question: &Bound, answer: &Rows) -> bool {
    match (change.sql.effect, question.sql.effect) {
        (StatementEffect::Touches { rows: touched, .. }, StatementEffect::Reads { rows, found }) => {
            touched.iter().any(|touched| {
                let value = change.values.get(touched.at);
                rows.iter().any(|read| read.name == touched.name && question.values.get(read.at) == value)
                    || found.contains(&touched.name)
                        && answer.iter().flatten().any(|cell| Some(cell) == value)
            })
        }
        (StatementEffect::Last, StatementEffect::Reads { .. }) => false,
        _ => true,
    }
}

/// Changes as they can be made: those of a group in one statement, the groups one after the other.
pub(super) fn groups(changes: Vec<PendingChange>) -> Vec<Vec<PendingChange>> {
    let is_last = |change: &PendingChange| matches!(change.bound.sql.effect, StatementEffect::Last);
    let (last, rest): (Vec<PendingChange>, Vec<PendingChange>) = changes.into_iter().partition(is_last);
    let mut groups: Vec<Vec<PendingChange>> = Vec::new();
    for change in rest {
        match group_for(&groups, &change.bound) {
            Some(group) => groups[group].push(change),
            None => groups.push(vec![change]),
        }
    }
    for change in last {
        match groups.last_mut() {
            Some(group) if group.iter().all(|other| std::ptr::eq(other.bound.sql, change.bound.sql)) => {
                group.push(change);
            }
            _ => groups.push(vec![change]),
        }
    }
    groups
}

/// The group that a change can join: of the same text, with nothing behind it that the change must come after.
fn group_for(groups: &[Vec<PendingChange>], change: &Bound) -> Option<usize> {
    let StatementEffect::Touches { row, .. } = change.sql.effect else {
        return None;
    };
    for (place, group) in groups.iter().enumerate().rev() {
        let other = group.first()?.bound.sql;
        if std::ptr::eq(other, change.sql) {
            let is_same_row = |other: &PendingChange| {
                row.iter().all(|key| other.bound.values.get(key.at) == change.values.get(key.at))
            };
            return (!group.iter().any(is_same_row)).then_some(place);
        }
        let (own, earlier) = (table(change.sql.text), table(other.text));
        let is_known = matches!(other.effect, StatementEffect::Touches { .. });
        if !is_known || own == earlier || REFERS.contains(&(own, earlier)) {
            return None;
        }
    }
    None
}

/// `INSERT INTO task …` and `UPDATE task …` are about tasks.
fn table(text: &str) -> &str {
    let mut words = text.split_whitespace().filter(|word| !matches!(*word, "INSERT" | "INTO" | "UPDATE"));
    words.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::answer_cache::AnswerCache;
    use super::*;
    use crate::port::Value;
    use crate::statement::{Sql, StatementEffect};
    use crate::tables::{ASSIGNMENT, LEDGER, NOTE, SESSION};
    use crate::{apply, load, load::grant, load::session, token};

    /// A statement about these rows; what else it writes does not matter here.
    fn bound(sql: &'static Sql, named: &[(&str, &str)]) -> Bound {
        let keys: Vec<_> = match sql.effect {
            StatementEffect::Reads { rows, .. } => rows.to_vec(),
            StatementEffect::Touches { rows, row } => [rows, row].concat(),
            StatementEffect::Unknown | StatementEffect::Last => Vec::new(),
        };
        let value = |at| {
            let name = keys.iter().find(|key| key.at == at).map(|key| key.name)?;
            named.iter().find(|(other, _)| *other == name).map(|(_, value)| Value::from(value.to_string()))
        };
        Bound { sql, values: (0..20).map(|at| value(at).unwrap_or(Value::Null)).collect() }
    }

    fn change(sql: &'static Sql, named: &[(&str, &str)]) -> PendingChange {
        PendingChange { bound: bound(sql, named), wanted: Some(1) }
    }

    fn shown(groups: &[Vec<PendingChange>]) -> Vec<String> {
        groups.iter().map(|group| format!("{} {}", group[0].bound.sql.name, group.len())).collect()
    }

    #[test]
    fn the_changes_of_many_commands_are_made_together() {
        let claim = |task: &'static str, seq: &'static str| {
            [
                change(&apply::UPDATE_TASK, &[("task", task)]),
                change(&LEDGER.insert, &[("seq", seq)]),
                change(&ASSIGNMENT.insert, &[("task", task), ("epoch", "1")]),
                change(&SESSION.insert, &[("id", seq)]),
            ]
        };
        let both = claim("T-1", "1").into_iter().chain(claim("T-2", "2")).collect();
        let wanted = ["UPDATE_TASK 2", "INSERT ledger 2", "INSERT assignment 2", "INSERT session 2"];
        assert_eq!(shown(&groups(both)), wanted);
    }

    #[test]
    fn what_depends_on_an_earlier_change_stays_behind_it() {
        // The same row twice, an assignment that takes another one's place, a session of an assignment that is new.
        let twice = vec![
            change(&apply::UPDATE_TASK, &[("task", "T-1")]),
            change(&SESSION.insert, &[("id", "1")]),
            change(&apply::END_ASSIGNMENT, &[("task", "T-1"), ("epoch", "1")]),
            change(&apply::UPDATE_TASK, &[("task", "T-1")]),
            change(&ASSIGNMENT.insert, &[("task", "T-1"), ("epoch", "2")]),
            change(&apply::END_ASSIGNMENT, &[("task", "T-2"), ("epoch", "1")]),
            change(&SESSION.insert, &[("id", "2")]),
        ];
        let wanted = [
            "UPDATE_TASK 1",
            "INSERT session 1",
            "END_ASSIGNMENT 1",
            "UPDATE_TASK 1",
            "INSERT assignment 1",
            "END_ASSIGNMENT 1",
            "INSERT session 1",
        ];
        assert_eq!(shown(&groups(twice)), wanted);
        // No statement is moved across one without a declaration; those of effect `Last` come last.
        let undeclared = vec![
            change(&apply::REFRESH_DEPENDENTS, &[]),
            change(&apply::REFRESH_DEPENDENTS, &[]),
            change(&NOTE.insert, &[("seq", "1")]),
            change(&apply::MOVE_HEAD, &[]),
            change(&NOTE.insert, &[("seq", "2")]),
        ];
        assert_eq!(
            shown(&groups(undeclared)),
            ["INSERT note 1", "MOVE_HEAD 1", "INSERT note 1", "REFRESH_DEPENDENTS 2"]
        );
    }

    #[test]
    fn an_answer_outlives_what_does_not_concern_it() {
        let depends: Rows = vec![vec![Value::from("T-3"), Value::from("open")]];
        let claimed = |task: &'static str| bound(&apply::UPDATE_TASK, &[("task", task)]);
        let ended = || bound(&apply::END_ASSIGNMENT, &[("task", "T-1"), ("workstation", "ws-1")]);
        let stopped = || bound(&apply::STOP_SESSION, &[("worker", "@a")]);
        let used = || bound(&token::USE_TOKEN, &[("token", "t1")]);
        for (change, question, about, is_kept) in [
            (claimed("T-1"), &load::TASK, ("task", "T-1"), false),
            (claimed("T-2"), &load::TASK, ("task", "T-1"), true),
            (claimed("T-3"), &load::DEPENDENCIES, ("task", "T-1"), false),
            (claimed("T-4"), &load::DEPENDENCIES, ("task", "T-1"), true),
            (claimed("T-1"), &load::WORKSPACE, ("task", ""), false),
            (bound(&apply::MOVE_HEAD, &[]), &load::WORKER, ("worker", "@a"), false),
            (bound(&apply::REFRESH_DEPENDENTS, &[]), &load::TASK, ("task", "T-1"), true),
            (ended(), &grant::WORKSTATION, ("workstation", "ws-1"), false),
            (ended(), &grant::WORKSTATION, ("workstation", "ws-2"), true),
            (stopped(), &session::LAST, ("worker", "@a"), false),
            (stopped(), &session::LAST, ("worker", "@b"), true),
            (used(), &token::ADMITTED, ("token", "t1"), false),
            (used(), &token::ADMITTED, ("token", "t2"), true),
        ] {
            let question = bound(question, &[about]);
            let mut cache = AnswerCache::default();
            cache.insert(question.clone(), depends.clone());
            cache.invalidate(&change);
            assert_eq!(cache.get(&question).is_some(), is_kept, "{} {}", change.sql.name, question.sql.name);
        }
    }
}
