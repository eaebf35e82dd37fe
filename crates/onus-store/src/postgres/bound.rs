//! A statement with all its values, as it waits to be sent or to be answered.

use crate::port::Value;
use crate::statement::{Sql, Statement};
use onus_core::id::WorkspaceId;
use std::hash::{Hash, Hasher};

#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) sql: &'static Sql,
    /// In the order of the parameters' numbers, the workspace included where the statement names it.
    pub(super) values: Vec<Value<'static>>,
}

impl Bound {
    pub(super) fn new(statement: &dyn Statement, workspace: WorkspaceId) -> Bound {
        let sql = statement.sql();
        let workspace = sql.names_workspace.then_some(Value::Int(workspace.0));
        let values = workspace.into_iter().chain(statement.values().into_iter().map(Value::into_owned));
        Bound { sql, values: values.collect() }
    }
}

impl PartialEq for Bound {
    /// A statement's text is a `static`: there is one of each.
    fn eq(&self, other: &Bound) -> bool {
        std::ptr::eq(self.sql, other.sql) && self.values == other.values
    }
}

impl Eq for Bound {}

impl Hash for Bound {
    /// The name is as good as the text, and shorter.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sql.name.hash(state);
        self.values.hash(state);
    }
}
