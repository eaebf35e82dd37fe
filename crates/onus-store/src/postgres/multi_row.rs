//! One statement for many lists of values: what was said one by one is done in one go.
//!
//! The text is made from the shared one: each parameter becomes an array, and each row of the arrays stands for one list.

use crate::port::Value;
use tokio_postgres::types::{ToSql, Type};

/// One parameter's values, one for each list.
pub(super) type ParameterColumn = Box<dyn ToSql + Sync + Send>;

/// Any number of lists. A range of their numbers is a condition that always holds; the planner takes what it leaves for one
/// row, and so begins with the lists and finds each row by its key. Else it would begin with a table that it thinks small.
const ANY_NUMBER: &str = "v.n BETWEEN 1 AND 1000000";

/// A question that is asked once for each list of values. The first column of the answer is the list's number, from 1. The
/// offset skips nothing: it keeps the planner from taking question and lists apart, for the same reason.
pub(super) fn question(text: &str, types: &[Type]) -> Option<String> {
    let (lists, names) = (lists(types)?, names(types.len()));
    let asked = each(text);
    Some(format!(
        "SELECT v.n, q.* FROM {lists} WITH ORDINALITY AS v({names}, n) CROSS JOIN LATERAL ({asked} OFFSET 0) q"
    ))
}

/// A change that is made once for each list of values, of which no two name the same row.
pub(super) fn change(text: &str, types: &[Type]) -> Option<String> {
    let source = format!("{} WITH ORDINALITY AS v({}, n)", lists(types)?, names(types.len()));
    if let Some((head, row)) = text.split_once(" VALUES (").filter(|_| text.starts_with("INSERT ")) {
        let row = row.strip_suffix(')')?;
        return Some(format!("{head} SELECT {} FROM {source}", each(row)));
    }
    let (set, rows) = split_outside(text, " WHERE ").filter(|_| text.starts_with("UPDATE "))?;
    let joined = if split_outside(set, " FROM ").is_some() { "," } else { " FROM" };
    Some(format!("{}{joined} {source} WHERE {ANY_NUMBER} AND {}", each(set), each(rows)))
}

/// Splits a text at a word that stands in no parentheses: what is within them belongs to another statement.
fn split_outside<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b' ' if depth == 0 && text[at..].starts_with(word) => {
                return Some((&text[..at], &text[at + word.len()..]));
            }
            _ => {}
        }
    }
    None
}

/// Lists of values, turned: all first values, all second ones, ….
pub(super) fn columns(types: &[Type], lists: &[&[Value<'static>]]) -> Vec<ParameterColumn> {
    let column = |(n, ty): (usize, &Type)| {
        let values = lists.iter().map(move |list| list.get(n));
        match *ty {
            Type::INT8 => Box::new(values.map(int).collect::<Vec<_>>()) as ParameterColumn,
            Type::BYTEA => Box::new(values.map(bytes).collect::<Vec<_>>()),
            _ => Box::new(values.map(text).collect::<Vec<_>>()),
        }
    };
    types.iter().enumerate().map(column).collect()
}

fn int(value: Option<&Value<'static>>) -> Option<i64> {
    match value {
        Some(Value::Int(n)) => Some(*n),
        _ => None,
    }
}

fn text(value: Option<&Value<'static>>) -> Option<String> {
    match value {
        Some(Value::Text(text)) => Some(text.clone().into_owned()),
        _ => None,
    }
}

fn bytes(value: Option<&Value<'static>>) -> Option<Vec<u8>> {
    match value {
        Some(Value::Blob(bytes)) => Some(bytes.clone().into_owned()),
        _ => None,
    }
}

/// Whether each value is of the type that its parameter has: a value of another one must be refused, not left out.
pub(super) fn fits(types: &[Type], list: &[Value<'_>]) -> bool {
    let fits = |(ty, value): (&Type, &Value<'_>)| match value {
        Value::Null => true,
        Value::Int(_) => *ty == Type::INT8,
        Value::Text(_) => *ty == Type::TEXT,
        Value::Blob(_) => *ty == Type::BYTEA,
    };
    types.len() == list.len() && types.iter().zip(list).all(fits)
}

fn lists(types: &[Type]) -> Option<String> {
    let name = |ty: &Type| match *ty {
        Type::INT8 => Some("int8"),
        Type::TEXT => Some("text"),
        Type::BYTEA => Some("bytea"),
        _ => None,
    };
    let array = |(n, ty): (usize, &Type)| Some(format!("${}::{}[]", n + 1, name(ty)?));
    let arrays: Option<Vec<String>> = types.iter().enumerate().map(array).collect();
    arrays.filter(|arrays| !arrays.is_empty()).map(|arrays| format!("unnest({})", arrays.join(", ")))
}

fn names(count: usize) -> String {
    (1..=count).map(|n| format!("a{n}")).collect::<Vec<_>>().join(", ")
}

/// `v.a1` for `$1`.
fn each(text: &str) -> String {
    text.replace('$', "v.a")
}

#[cfg(test)]
mod tests {
    use super::{ANY_NUMBER, Type, change, question};

    #[test]
    fn a_text_for_one_becomes_one_for_many() {
        let types = [Type::INT8, Type::TEXT];
        let many = "unnest($1::int8[], $2::text[]) WITH ORDINALITY AS v(a1, a2, n)";
        assert_eq!(
            question("SELECT a FROM t WHERE w = $1 AND id = $2", &types).unwrap(),
            format!(
                "SELECT v.n, q.* FROM {many} CROSS JOIN LATERAL (SELECT a FROM t WHERE w = v.a1 AND id = v.a2 OFFSET 0) q"
            )
        );
        assert_eq!(
            change("INSERT INTO t (w, id, n) VALUES ($1, $2, 0)", &types).unwrap(),
            format!("INSERT INTO t (w, id, n) SELECT v.a1, v.a2, 0 FROM {many}")
        );
        assert_eq!(
            change("UPDATE t SET id = $2 WHERE w = $1", &types).unwrap(),
            format!("UPDATE t SET id = v.a2 FROM {many} WHERE {ANY_NUMBER} AND w = v.a1")
        );
        assert_eq!(
            change(
                "UPDATE t SET n = (SELECT 1 FROM u WHERE u.w = t.w) FROM d WHERE d.w = $1 AND d.id = t.id",
                &types
            )
            .unwrap(),
            format!(
                "UPDATE t SET n = (SELECT 1 FROM u WHERE u.w = t.w) FROM d, {many} WHERE {ANY_NUMBER} AND d.w = v.a1 \
                 AND d.id = t.id"
            )
        );
        assert_eq!(change("INSERT INTO t (w) VALUES ($1) ON CONFLICT DO NOTHING", &types), None);
        assert_eq!(change("SELECT pg_notify($1, $2)", &types), None);
        assert_eq!(change("UPDATE t SET n = $1", &[Type::JSON]), None);
    }
}
