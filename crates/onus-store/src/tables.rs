//! Every table, its columns declared once: what a statement reads and writes of a row, what an archive copies out of one
//! store and into another, and what `ledger verify` compares are made from this list.
//!
//! The workspace's own number and name are no part of a row: an archive may arrive where they are others.

use crate::error::{Result, StoreError};
use crate::port::{Cell, Row, Tx, Value};
use crate::sql_of;
use crate::statement::{Params as _, Sql, Statement, ToValue, params};

/// The schema whose columns these are.
pub const SCHEMA: i64 = 18;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Int,
    Text,
    Blob,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnKind,
}

#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    select: Sql,
    pub(crate) insert: Sql,
}

/// A list of columns or parameters without the comma at its end.
const fn without_comma(list: &'static str) -> &'static str {
    list.split_at(list.len() - 2).0
}

macro_rules! column {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:literal) => {
        $column
    };
}

/// `NAME "table" of "the workspace's column" by "order" effect => Row "alias" { columns }`
///
/// With a row there is a struct for its values, which inserts it, reads it and lists its columns; without one the table is
/// only copied. A row may be made of groups of columns that are written at different times. A column is called like its
/// field unless another name is given.
macro_rules! tables {
    ($($name:ident $table:literal of $key:literal by $order:literal $($effect:ident [$($keys:tt)*])*
        $(=> $row:ident $alias:literal)? { $($column:tt)* })+) => {
        pub static TABLES: &[&Table] = &[$(&$name),+];

        $(table! { $name $table $key $order [$($effect [$($keys)*])*] [$($row $alias)?] $($column)* })+
    };
}

macro_rules! table {
    ($name:ident $table:literal $key:literal $order:literal [$($effect:tt)*] [$row:ident $alias:literal]
        $($(#[$doc:meta])* $part:ident: $group:ident {
            $($field:ident $(= $column:literal)?: $kind:ident),+ $(,)?
        })+) => {
        table! { $name $table $key $order [$($effect)*] [] $($($field $(= $column)?: $kind,)+)+ }

        $(columns! { $(#[$doc])* $group $alias $($field $(= $column)?: $kind,)+ })+

        #[derive(Debug, Clone)]
        pub struct $row<T> {
            $(pub $part: $group<T>,)+
        }

        impl $row<()> {
            /// The columns, in the order in which they are read.
            pub const LIST: &'static str =
                without_comma(concat!($($($alias, ".", column!($field $($column)?), ", "),+),+));
        }

        impl<'r> $row<&'r Value<'r>> {
            /// A row that is only looked at.
            pub fn view(values: &'r [Value<'r>]) -> Option<Self> {
                let values = &mut values.iter();
                Some($row { $($part: $group::next(values)?),+ })
            }
        }

        impl Statement for $row<Value<'_>> {
            fn sql(&self) -> &'static Sql {
                &$name.insert
            }

            fn values(&self) -> Vec<Value<'_>> {
                let mut values = Vec::with_capacity($name.columns.len());
                $(self.$part.add_to(&mut values);)+
                values
            }
        }
    };
    ($name:ident $table:literal $key:literal $order:literal [$($effect:tt)*] [$row:ident $alias:literal]
        $($field:ident $(= $column:literal)?: $kind:ident),+ $(,)?) => {
        table! { $name $table $key $order [$($effect)*] [] $($field $(= $column)?: $kind,)+ }

        columns! { $row $alias $($field $(= $column)?: $kind,)+ }

        impl<'r> $row<&'r Value<'r>> {
            /// A row that is only looked at.
            pub fn view(values: &'r [Value<'r>]) -> Option<Self> {
                $row::next(&mut values.iter())
            }
        }

        impl Statement for $row<Value<'_>> {
            fn sql(&self) -> &'static Sql {
                &$name.insert
            }

            fn values(&self) -> Vec<Value<'_>> {
                let mut values = Vec::with_capacity($name.columns.len());
                self.add_to(&mut values);
                values
            }
        }
    };
    ($name:ident $table:literal $key:literal $order:literal [$($effect:tt)*] []
        $($field:ident $(= $column:literal)?: $kind:ident),+ $(,)?) => {
        pub static $name: Table = {
            const LIST: &str = without_comma(concat!($(column!($field $($column)?), ", "),+));
            const GIVEN: &str = without_comma(concat!($(":", stringify!($field), ", "),+));
            const FIELDS: &[&[&str]] = &[&[$(stringify!($field)),+]];
            const INSERT: &[&str] =
                &["INSERT INTO ", $table, " (", $key, ", ", LIST, ") VALUES (:workspace, ", GIVEN, ")"];
            const SELECT: &[&str] =
                &["SELECT ", LIST, " FROM ", $table, " WHERE ", $key, " = :workspace ORDER BY ", $order];
            const NONE: &[&[&str]] = &[];
            Table {
                name: $table,
                columns: &[$(Column { name: column!($field $($column)?), kind: ColumnKind::$kind }),+],
                select: sql_of!(concat!("EVERY ", $table), SELECT, NONE;),
                insert: sql_of!(concat!("INSERT ", $table), INSERT, FIELDS; $($effect)*),
            }
        };
    };
}

/// A row, or a part of one.
macro_rules! columns {
    ($(#[$doc:meta])* $group:ident $alias:literal $($field:ident $(= $column:literal)?: $kind:ident,)+) => {
        params! { $(#[$doc])* pub $group { $($field),+ } }

        impl $group<()> {
            /// The columns, in the order in which they are read.
            pub const LIST: &'static str =
                without_comma(concat!($($alias, ".", column!($field $($column)?), ", "),+));
            /// Every column set to its parameter.
            pub const SET: &'static str =
                without_comma(concat!($(column!($field $($column)?), " = :", stringify!($field), ", "),+));
            pub const WIDTH: usize = [$(stringify!($field)),+].len();
        }

        impl<T> $group<T> {
            /// In the order of the columns.
            pub fn into_values(self) -> Vec<T> {
                vec![$(self.$field),+]
            }

            fn next(values: &mut impl Iterator<Item = T>) -> Option<Self> {
                Some($group { $($field: values.next()?),+ })
            }
        }

        impl $group<Cell> {
            pub fn read(row: &mut Row) -> Result<Self> {
                Ok($group { $($field: row.cell()?),+ })
            }
        }
    };
}

// In the order in which they can be restored: what a row refers to comes before it. Of what `ledger verify` compares, a row
// begins with its task, then with what the record has by a digest.
tables! {
    WORKSPACE "workspace" of "id" by "id" {
        uid: Text, generation: Int, head: Blob, public_key: Text, anchor: Text, created_at: Int, main_remote: Text,
        main_branch: Text, main_url: Text, main_guarded: Int,
    }
    CLONE "clone" of "workspace" by "id" { id: Text, host: Text, path: Text }
    PROJECT "project" of "workspace" by "born" { key: Text, last_number: Int, born: Int }
    WORKER "worker" of "workspace" by "handle" {
        handle: Text, kind: Text, tier: Text, role: Text, state: Text, tz: Text,
    }
    WORKSTATION "workstation" of "workspace" by "name" => WorkstationRow "w" {
        key: WorkstationKey { name: Text }
        rest: WorkstationRest {
            kind: Text, path: Text, state: Text, lifecycle: Text, version: Int, branch: Text, probes: Text, reason: Text,
            role: Text, lane: Int,
        }
    }
    TOKEN "token" of "workspace" by "id" {
        id: Text, hash: Blob, kind: Text, worker: Text, workstation: Text,
        label: Text, created_by: Text, created_at: Int, expires_at: Int,
        revoked_at: Int, used_at: Int,
    }
    PROBE "probe" of "workspace" by "workstation" { workstation: Text, at: Int, results: Text }
    TASK "task" of "workspace" by "born" => TaskRow "t" {
        /// What somebody asked for. The record has the first two by their digests.
        asked: TaskAsked {
            body: Text, extra: Text, title: Text, task_type = "type": Text, kind: Text, priority: Int, risk: Text, role: Text,
            lane: Int, sprint: Text, tags: Text, scope: Text, parent: Text, merge_order: Int,
            origin = "origin_ask_ref": Text,
        }
        /// Computed from its dependencies: no part of the record.
        queue: TaskQueue { waits: Int }
        /// What its life changes, written by every command. The record has the fence by its seal, and is what the head is of.
        moving: TaskMoving {
            lease_id: Blob, head: Blob, state: Text, blocker: Text, epoch: Int, version: Int, checks: Text, criteria: Text,
            updated_at: Int, closed_by: Text, closed_at: Int, forced: Int, exceptions: Text,
            archived: Int,
        }
        /// Given once and for all.
        given: TaskGiven { born: Int, id: Text, uid: Text, created_by: Text, created_at: Int }
    }
    DEPENDENCY "dependency" of "workspace" by "task, depends_on" { task: Text, depends_on: Text, excepted: Int }
    MILESTONE "milestone" of "workspace" by "name" {
        name: Text, title: Text, sprint: Text, tag: Text, parent: Text, born: Int,
        closed: Int, fingerprint: Blob, target: Text,
    }
    MILESTONE_TASK "milestone_task" of "workspace" by "milestone, task" { milestone: Text, task: Text }
    SAVED_VIEW "saved_view" of "workspace" by "name" { name: Text, query: Text, saved: Int }
    ASSIGNMENT "assignment" of "workspace" by "task, epoch" touches [task, workstation] row [task, epoch] => AssignmentRow "a" {
        of: AssignmentTask { task: Text }
        /// The record has the fence by its seal.
        held: AssignmentHeld {
            lease_id: Blob, epoch: Int, assignee: Text, tier: Text, workstation: Text, ttl_ms: Int, assigned_at: Int,
            renewed_at: Int, tick: Text, renewals: Int, handoff_reason: Text, forced: Int, route: Text, lane: Int,
            base: Text, resting: Int, constraints: Text,
        }
        end: AssignmentEnd { ended_at: Int, end_reason: Text }
    }
    SESSION "session" of "workspace" by "id" touches [worker] row [id] => SessionRow "s" {
        task: Text, id: Int, epoch: Int, worker: Text, workstation: Text, started_at: Int, ended_at: Int, end_reason: Text,
    }
    SESSION_FACT "session_fact" of "workspace" by "seq" => SessionFactRow "f" {
        task: Text, seq: Int, session: Int, kind: Text, started_at: Int, ended_at: Int, key: Text, source: Text, model: Text,
        input_tokens: Int, output_tokens: Int, cache_read_tokens: Int, cache_creation_tokens: Int, cost_micros: Int,
        turns: Int,
    }
    OUTPUT "output" of "workspace" by "session, position" => OutputRow "o" {
        session: Int, position: Int, at: Int, text: Text,
    }
    APPROVAL "approval" of "workspace" by "seq" {
        seq: Int, worker: Text, first_day: Text, last_day: Text, fingerprint: Blob,
    }
    NOTE "note" of "workspace" by "seq" touches [] row [seq] => NoteRow "n" {
        task: Text, text: Text, seq: Int, kind: Text, said_by: Text, said_at: Int, said_key: Text,
    }
    EVIDENCE "evidence" of "workspace" by "seq" => EvidenceRow "e" {
        task: Text, output: Text, seq: Int, check_id: Text, verdict: Text, exit: Int, signal: Int, took_ms: Int,
        commit_id: Text, dirty: Int, output_length: Int, output_sha256: Text, environment: Text, sandbox: Text,
    }
    REVIEW "review" of "workspace" by "seq" => ReviewRow "r" {
        task: Text, note: Text, seq: Int, verdict: Text, classification: Text, commit_id: Text,
    }
    LANDED "landed" of "workspace" by "commit_id, seq" => LandedRow "d" { task: Text, seq: Int, commit_id: Text, epoch: Int }
    LEDGER "ledger" of "workspace" by "seq" touches [] row [seq] => EntryRow "l" {
        seq: Int, task: Text, at: Int, actor: Text, workstation: Text, epoch: Int, verb: Text, data: Text, prev: Blob,
        hash: Blob,
    }
    REQUEST "request" of "workspace" by "id" { id: Blob, fingerprint: Blob, seq: Int, answer: Text }
    CHECKPOINT "checkpoint" of "workspace" by "seq" { seq: Int, document: Text, signature: Blob }
    MIRROR "mirror" of "workspace" by "name" => MirrorRow "m" {
        name: Text, heard: Int, epoch: Int, sender: Text, lent_until: Int, failures: Int, next_at: Int, error: Text,
        polled: Text, polled_at: Int,
    }
    MIRROR_TASK "mirror_task" of "workspace" by "mirror, task" => MirrorTaskRow "k" {
        mirror: Text, task: Text, heard: Int, delivered: Int, since: Int, attempts: Int, next_at: Int, stuck: Int, error: Text,
        far_id: Text, told: Text, drift: Text,
    }
}

impl Table {
    pub fn named(name: &str) -> Option<&'static Table> {
        TABLES.iter().copied().find(|table| table.name == name)
    }

    /// Streams the table's rows, each in the order of its columns.
    pub fn each(
        &'static self,
        tx: &mut dyn Tx,
        row: &mut dyn FnMut(&[Value<'static>]) -> Result<()>,
    ) -> Result<()> {
        let every = Copied { sql: &self.select, values: Vec::new() };
        tx.each(&every, &mut |found| row(&found.into_values()))
    }

    pub fn restore(&'static self, tx: &mut dyn Tx, values: Vec<Value<'_>>) -> Result<()> {
        if values.len() != self.columns.len() {
            return Err(StoreError::Guard(format!("a row of {} has {} values", self.name, values.len())));
        }
        tx.run_one(&Copied { sql: &self.insert, values })
    }
}

/// A row that is copied without being understood.
struct Copied<'v> {
    sql: &'static Sql,
    values: Vec<Value<'v>>,
}

impl Statement for Copied<'_> {
    fn sql(&self) -> &'static Sql {
        self.sql
    }

    fn values(&self) -> Vec<Value<'_>> {
        self.values.iter().map(ToValue::to_value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{Options, Sqlite};
    use onus_core::time::{Now, Tick, Timestamp};
    use rusqlite::Connection;

    fn clock() -> Now {
        Now { wall: Timestamp(0), tick: Tick { host: "a".into(), boot: "b".into(), millis: 0 } }
    }

    /// A column that an archive forgets is data lost at the next restore.
    #[test]
    fn every_column_of_every_table_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("onus.db");
        drop(Sqlite::create(&path, &Options::one_shot(clock)).unwrap());
        let file = Connection::open(&path).unwrap();
        let words = |sql: &str| -> Vec<String> {
            let mut statement = file.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(|word| word.unwrap()).collect()
        };
        assert_eq!(words("SELECT CAST(user_version AS TEXT) FROM pragma_user_version"), [SCHEMA.to_string()]);
        // The index of words is made anew from what is copied.
        let mut tables = words(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'word%'",
        );
        tables.sort();
        let mut named: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        named.sort_unstable();
        assert_eq!(tables, named);
        for table in TABLES {
            let workspace = if table.name == "workspace" { "id" } else { "workspace" };
            let mut found = words(&format!(
                "SELECT name || ' ' || type FROM pragma_table_info('{0}') WHERE name <> '{workspace}' \
                 AND NOT ('{0}' = 'workspace' AND name = 'name')",
                table.name
            ));
            found.sort();
            let mut copied: Vec<String> = table
                .columns
                .iter()
                .map(|Column { name, kind }| match kind {
                    ColumnKind::Int => format!("{name} INTEGER"),
                    ColumnKind::Text => format!("{name} TEXT"),
                    ColumnKind::Blob => format!("{name} BLOB"),
                })
                .collect();
            copied.sort();
            assert_eq!(found, copied, "{}", table.name);
        }
    }
}
