//! One statement for many lists of values: what was said one by one is done in one go.
//!
//! The text is made from the shared one: each parameter becomes an array, and each row of the arrays stands for one list.

use crate::port::Value;
use tokio_postgres::types::{ToSql, Type};

/// One parameter's values, one for each list.
pub(super) type Column = Box<dyn ToSql + Sync + Send>;

/// A question that is asked once for each list of values. The first column of the answer is the list's number, from 1.
pub(super) fn question(text: &str, types: &[Type]) -> Option<String> {
    let (lists, names) = (lists(types)?, names(types.len()));
    let asked = each(text);
    Some(format!(
        "SELECT v.n, q.* FROM {lists} WITH ORDINALITY AS v({names}, n) CROSS JOIN LATERAL ({asked}) q"
    ))
}

/// A change that is made once for each list of values, of which no two name the same row.
pub(super) fn change(text: &str, types: &[Type]) -> Option<String> {
    let source = format!("{} AS v({})", lists(types)?, names(types.len()));
    if let Some((head, row)) = text.split_once(" VALUES (").filter(|_| text.starts_with("INSERT ")) {
        let row = row.strip_suffix(')')?;
        return Some(format!("{head} SELECT {} FROM {source}", each(row)));
    }
    let (set, rows) = text.split_once(" WHERE ").filter(|_| text.starts_with("UPDATE "))?;
    Some(format!("{} FROM {source} WHERE {}", each(set), each(rows)))
}

/// Lists of values, turned: all first values, all second ones, ….
pub(super) fn columns(types: &[Type], lists: &[Vec<Value<'static>>]) -> Vec<Column> {
    let column = |(n, ty): (usize, &Type)| {
        let values = lists.iter().map(move |list| list.get(n));
        match *ty {
            Type::INT8 => Box::new(values.map(int).collect::<Vec<_>>()) as Column,
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
    use super::{Type, change, question};

    #[test]
    fn a_text_for_one_becomes_one_for_many() {
        let types = [Type::INT8, Type::TEXT];
        let many = "unnest($1::int8[], $2::text[])";
        assert_eq!(
            question("SELECT a FROM t WHERE w = $1 AND id = $2", &types).unwrap(),
            format!(
                "SELECT v.n, q.* FROM {many} WITH ORDINALITY AS v(a1, a2, n) CROSS JOIN LATERAL \
                 (SELECT a FROM t WHERE w = v.a1 AND id = v.a2) q"
            )
        );
        assert_eq!(
            change("INSERT INTO t (w, id, n) VALUES ($1, $2, 0)", &types).unwrap(),
            format!("INSERT INTO t (w, id, n) SELECT v.a1, v.a2, 0 FROM {many} AS v(a1, a2)")
        );
        assert_eq!(
            change("UPDATE t SET id = $2 WHERE w = $1", &types).unwrap(),
            format!("UPDATE t SET id = v.a2 FROM {many} AS v(a1, a2) WHERE w = v.a1")
        );
        assert_eq!(change("INSERT INTO t (w) VALUES ($1) ON CONFLICT DO NOTHING", &types), None);
        assert_eq!(change("SELECT pg_notify($1, $2)", &types), None);
        assert_eq!(change("UPDATE t SET n = $1", &[Type::JSON]), None);
    }
}
