//! What is known about the statements that many commands of one transaction run: which answers a change leaves as they
//! were, and which changes can be made in one go.
//!
//! Whatever is not listed here changes every answer, is changed by everything, and is carried out alone, in its turn.

use super::answer_cache::{Answer, Asked};
use crate::port::{Sql, Value};
use crate::{apply, evidence, load, load::grant, load::session, token};

/// Rows that belong together. Positions are those of the values that a statement is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// The rows of a task: its own, its assignments, its dependencies.
    OfTask(usize),
    /// The tasks that an answer names in this column.
    OfTasksFound(usize),
    /// The assignments in a workstation.
    InWorkstation(usize),
    /// The sessions of a worker.
    OfWorker(usize),
    OfRequest(usize),
    OfToken(usize),
}

/// When a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Together with those of the same text; these values tell the rows apart.
    Together(&'static [usize]),
    /// After all others, together: it computes something from what they leave, however often it is asked to.
    Last,
}

/// Questions, and the rows that an answer hangs on. Of what no listed change touches nothing is said.
const QUESTIONS: &[(Sql, &[Rows])] = &[
    (load::REQUEST, &[Rows::OfRequest(1)]),
    (load::WORKER, &[]),
    (load::HOLDER, &[Rows::OfTask(1)]),
    (load::TASK, &[Rows::OfTask(1)]),
    (load::DEPENDENCIES, &[Rows::OfTask(1), Rows::OfTasksFound(0)]),
    (grant::WORKSTATION, &[Rows::InWorkstation(1)]),
    (session::LAST, &[Rows::OfWorker(1)]),
    (evidence::EVIDENCE, &[]),
    (evidence::REVIEWS, &[]),
    (load::PARTS, &[Rows::OfTasksFound(0)]),
    (apply::SOME_DEPENDENT, &[]),
    (token::ADMITTED, &[Rows::OfToken(1)]),
];

/// Changes, when they are made, and the rows that they touch, as far as a listed question reads them.
const CHANGES: &[(Sql, Turn, &[Rows])] = &[
    (apply::UPDATE_TASK, Turn::Together(&[1]), &[Rows::OfTask(1)]),
    (apply::INSERT_ENTRY, Turn::Together(&[1]), &[]),
    (apply::INSERT_ASSIGNMENT, Turn::Together(&[1, 2]), &[Rows::OfTask(1), Rows::InWorkstation(5)]),
    (apply::RENEW_ASSIGNMENT, Turn::Together(&[1, 2]), &[Rows::OfTask(1)]),
    (apply::END_ASSIGNMENT, Turn::Together(&[1, 2]), &[Rows::OfTask(1), Rows::InWorkstation(5)]),
    (apply::START_SESSION, Turn::Together(&[1]), &[Rows::OfWorker(4)]),
    (apply::STOP_SESSION, Turn::Together(&[1, 2]), &[Rows::OfWorker(5)]),
    (apply::INSERT_NOTE, Turn::Together(&[1]), &[]),
    (apply::INSERT_REQUEST, Turn::Together(&[1]), &[Rows::OfRequest(1)]),
    (token::USE_TOKEN, Turn::Together(&[1]), &[Rows::OfToken(1)]),
    // It writes `waits`, which no listed question reads.
    (apply::REFRESH_DEPENDENTS, Turn::Last, &[]),
];

/// Rows of the first table refer to rows of the second: they are written after them.
const REFERS: &[(&str, &str)] = &[("session", "assignment")];

/// A change that somebody asked for.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) sql: Sql,
    pub(super) args: Vec<Value<'static>>,
    /// How many rows it must touch.
    pub(super) wanted: Option<u64>,
}

fn listed(sql: &Sql) -> Option<&'static (Sql, Turn, &'static [Rows])> {
    CHANGES.iter().find(|(known, ..)| known.name == sql.name && known.text == sql.text)
}

/// The rows that a question's answer hangs on; unknown is none.
pub(super) fn read_by(name: &str, text: &str) -> Option<&'static [Rows]> {
    QUESTIONS.iter().find(|(known, _)| known.name == name && known.text == text).map(|(_, rows)| *rows)
}

/// The rows that a change touches; unknown is none.
pub(super) fn touched_by(sql: &Sql) -> Option<&'static [Rows]> {
    listed(sql).map(|(_, _, rows)| *rows)
}

/// Whether an answer may be another one after a change of these rows.
pub(super) fn meet(
    changed: &[Rows],
    args: &[Value<'_>],
    read: &[Rows],
    asked: &Asked,
    answer: &Answer,
) -> bool {
    let meets = |changed: &Rows, read: &Rows| match (*changed, *read) {
        (Rows::OfTask(own), Rows::OfTasksFound(column)) => {
            answer.iter().any(|row| row.get(column) == args.get(own))
        }
        (Rows::OfTask(own), Rows::OfTask(other))
        | (Rows::InWorkstation(own), Rows::InWorkstation(other))
        | (Rows::OfWorker(own), Rows::OfWorker(other))
        | (Rows::OfRequest(own), Rows::OfRequest(other))
        | (Rows::OfToken(own), Rows::OfToken(other)) => args.get(own) == asked.args.get(other),
        _ => false,
    };
    changed.iter().any(|changed| read.iter().any(|read| meets(changed, read)))
}

/// Changes as they can be made: those of a group in one go, the groups one after the other.
pub(super) fn groups(changes: Vec<Change>) -> Vec<Vec<Change>> {
    let is_last = |change: &Change| matches!(listed(&change.sql), Some((_, Turn::Last, _)));
    let (last, rest): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(is_last);
    let mut groups: Vec<Vec<Change>> = Vec::new();
    for change in rest {
        match place(&groups, &change) {
            Some(place) => groups[place].push(change),
            None => groups.push(vec![change]),
        }
    }
    for change in last {
        match groups.last_mut() {
            Some(group) if group.iter().all(|other| other.sql.text == change.sql.text) => group.push(change),
            _ => groups.push(vec![change]),
        }
    }
    groups
}

/// The group that a change can join: of the same text, with nothing behind it that the change must come after.
fn place(groups: &[Vec<Change>], change: &Change) -> Option<usize> {
    let Some((_, Turn::Together(row), _)) = listed(&change.sql) else {
        return None;
    };
    for (place, group) in groups.iter().enumerate().rev() {
        let other = &group.first()?.sql;
        if other.text == change.sql.text {
            let same = |other: &Change| row.iter().all(|at| other.args.get(*at) == change.args.get(*at));
            return (!group.iter().any(same)).then_some(place);
        }
        let (own, earlier) = (table(change.sql.text), table(other.text));
        if listed(other).is_none() || own == earlier || REFERS.contains(&(own, earlier)) {
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
    use super::super::answer_cache::Memory;
    use super::*;
    use crate::args;

    fn change(sql: Sql, args: &[Value<'static>]) -> Change {
        Change { sql, args: args.to_vec(), wanted: Some(1) }
    }

    fn shown(groups: &[Vec<Change>]) -> Vec<String> {
        groups.iter().map(|group| format!("{} {}", group[0].sql.name, group.len())).collect()
    }

    #[test]
    fn the_changes_of_many_commands_are_made_together() {
        let claim = |task: &'static str, seq: i64| {
            [
                change(apply::UPDATE_TASK, &args![1, task]),
                change(apply::INSERT_ENTRY, &args![1, seq]),
                change(apply::INSERT_ASSIGNMENT, &args![1, task, 1]),
                change(apply::START_SESSION, &args![1, seq]),
            ]
        };
        let both = claim("T-1", 1).into_iter().chain(claim("T-2", 2)).collect();
        let wanted = ["UPDATE_TASK 2", "INSERT_ENTRY 2", "INSERT_ASSIGNMENT 2", "START_SESSION 2"];
        assert_eq!(shown(&groups(both)), wanted);
    }

    #[test]
    fn what_depends_on_an_earlier_change_stays_behind_it() {
        // The same row twice, an assignment that takes another one's place, a session of an assignment that is new.
        let twice = vec![
            change(apply::UPDATE_TASK, &args![1, "T-1"]),
            change(apply::START_SESSION, &args![1, 1]),
            change(apply::END_ASSIGNMENT, &args![1, "T-1", 1]),
            change(apply::UPDATE_TASK, &args![1, "T-1"]),
            change(apply::INSERT_ASSIGNMENT, &args![1, "T-1", 2]),
            change(apply::END_ASSIGNMENT, &args![1, "T-2", 1]),
            change(apply::START_SESSION, &args![1, 2]),
        ];
        let wanted = [
            "UPDATE_TASK 1",
            "START_SESSION 1",
            "END_ASSIGNMENT 1",
            "UPDATE_TASK 1",
            "INSERT_ASSIGNMENT 1",
            "END_ASSIGNMENT 1",
            "START_SESSION 1",
        ];
        assert_eq!(shown(&groups(twice)), wanted);
        // Nothing passes a statement that nothing is known about; what is computed from the rest comes last.
        let unlisted = vec![
            change(apply::REFRESH_DEPENDENTS, &args![1, "T-1"]),
            change(apply::REFRESH_DEPENDENTS, &args![1, "T-2"]),
            change(apply::INSERT_NOTE, &args![1, 1]),
            change(apply::MOVE_HEAD, &args![1]),
            change(apply::INSERT_NOTE, &args![1, 2]),
        ];
        assert_eq!(
            shown(&groups(unlisted)),
            ["INSERT_NOTE 1", "MOVE_HEAD 1", "INSERT_NOTE 1", "REFRESH_DEPENDENTS 2"]
        );
    }

    #[test]
    fn an_answer_outlives_what_does_not_concern_it() {
        let depends: Answer = vec![vec![Value::from("T-3"), Value::from("open")]];
        let claimed = |task: &'static str| (apply::UPDATE_TASK, args![1, task].to_vec());
        let ended = (apply::END_ASSIGNMENT, args![1, "T-1", 1, 2, "done", "ws-1"].to_vec());
        let stopped = (apply::STOP_SESSION, args![1, "T-1", 1, 2, "done", "@a"].to_vec());
        for ((change, args), question, asked, is_kept) in [
            (claimed("T-1"), load::TASK, args![1, "T-1"].to_vec(), false),
            (claimed("T-2"), load::TASK, args![1, "T-1"].to_vec(), true),
            (claimed("T-3"), load::DEPENDENCIES, args![1, "T-1"].to_vec(), false),
            (claimed("T-4"), load::DEPENDENCIES, args![1, "T-1"].to_vec(), true),
            (claimed("T-1"), load::WORKSPACE, args![1].to_vec(), false),
            ((apply::MOVE_HEAD, args![1].to_vec()), load::WORKER, args![1, "@a"].to_vec(), false),
            (ended.clone(), grant::WORKSTATION, args![1, "ws-1"].to_vec(), false),
            (ended, grant::WORKSTATION, args![1, "ws-2"].to_vec(), true),
            (stopped.clone(), session::LAST, args![1, "@a", "ws-1"].to_vec(), false),
            (stopped, session::LAST, args![1, "@b", "ws-1"].to_vec(), true),
            ((token::USE_TOKEN, args![1, "t1", 9].to_vec()), token::ADMITTED, args![1, "t1"].to_vec(), false),
            ((token::USE_TOKEN, args![1, "t1", 9].to_vec()), token::ADMITTED, args![1, "t2"].to_vec(), true),
        ] {
            let mut memory = Memory::default();
            memory.keep(Asked::new(&question, &asked), depends.clone());
            memory.changed(&change, &args);
            assert_eq!(!memory.is_empty(), is_kept, "{} {}", change.name, question.name);
        }
    }
}
