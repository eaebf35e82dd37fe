//! Every table, column by column: what an archive copies out of one store and into another.
//!
//! The workspace's own number and name are no part of a row: an archive may arrive where they are others.

use crate::args;
use crate::error::{Result, StoreError};
use crate::port::{Sql, Tx, Value};

/// The schema whose columns these are.
pub const SCHEMA: i64 = 10;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Int,
    Text,
    Blob,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    select: Sql,
    insert: Sql,
}

macro_rules! tables {
    ($($table:literal of $workspace:literal by $order:literal {
        $first:literal $first_kind:ident $first_slot:literal $(, $column:literal $kind:ident $slot:literal)* $(,)?
    })+) => {
        /// In the order in which they can be restored: what a row refers to comes before it.
        pub const TABLES: &[Table] = &[$(Table {
            name: $table,
            columns: &[
                Column { name: $first, kind: Kind::$first_kind }
                $(, Column { name: $column, kind: Kind::$kind })*
            ],
            select: Sql {
                name: concat!("EVERY ", $table),
                text: concat!("SELECT ", $first $(, ", ", $column)*, " FROM ", $table,
                    " WHERE ", $workspace, " = ?1 ORDER BY ", $order),
            },
            insert: Sql {
                name: concat!("RESTORE ", $table),
                text: concat!("INSERT INTO ", $table, " (", $workspace, ", ", $first $(, ", ", $column)*,
                    ") VALUES (?1, ", $first_slot $(, ", ", $slot)*, ")"),
            },
        }),+];
    };
}

tables! {
    "workspace" of "id" by "id" {
        "uid" Text "?2", "generation" Int "?3", "head" Blob "?4", "public_key" Text "?5", "anchor" Text "?6",
        "created_at" Int "?7", "main_remote" Text "?8", "main_branch" Text "?9", "main_url" Text "?10",
        "main_guarded" Int "?11",
    }
    "clone" of "workspace" by "id" { "id" Text "?2", "host" Text "?3", "path" Text "?4" }
    "project" of "workspace" by "born" { "key" Text "?2", "last_number" Int "?3", "born" Int "?4" }
    "worker" of "workspace" by "handle" {
        "handle" Text "?2", "kind" Text "?3", "tier" Text "?4", "role" Text "?5", "state" Text "?6", "tz" Text "?7",
    }
    "workstation" of "workspace" by "name" {
        "name" Text "?2", "kind" Text "?3", "path" Text "?4", "state" Text "?5", "lifecycle" Text "?6",
        "version" Int "?7", "branch" Text "?8", "probes" Text "?9", "reason" Text "?10", "role" Text "?11",
        "lane" Int "?12",
    }
    "token" of "workspace" by "id" {
        "id" Text "?2", "hash" Blob "?3", "kind" Text "?4", "worker" Text "?5", "workstation" Text "?6",
        "label" Text "?7", "created_by" Text "?8", "created_at" Int "?9", "expires_at" Int "?10",
        "revoked_at" Int "?11", "used_at" Int "?12",
    }
    "probe" of "workspace" by "workstation" { "workstation" Text "?2", "at" Int "?3", "results" Text "?4" }
    "task" of "workspace" by "born" {
        "born" Int "?2", "id" Text "?3", "uid" Text "?4", "title" Text "?5", "body" Text "?6", "type" Text "?7",
        "kind" Text "?8", "state" Text "?9", "priority" Int "?10", "risk" Text "?11", "role" Text "?12",
        "lane" Int "?13", "sprint" Text "?14", "tags" Text "?15", "scope" Text "?16", "parent" Text "?17",
        "merge_order" Int "?18", "origin_ask_ref" Text "?19", "checks" Text "?20", "blocker" Text "?21",
        "archived" Int "?22", "epoch" Int "?23", "lease_id" Blob "?24", "version" Int "?25", "head" Blob "?26",
        "created_by" Text "?27", "created_at" Int "?28", "updated_at" Int "?29", "closed_by" Text "?30",
        "closed_at" Int "?31", "forced" Int "?32", "waits" Int "?33", "exceptions" Text "?34",
    }
    "dependency" of "workspace" by "task, depends_on" { "task" Text "?2", "depends_on" Text "?3", "excepted" Int "?4" }
    "milestone" of "workspace" by "name" {
        "name" Text "?2", "title" Text "?3", "sprint" Text "?4", "tag" Text "?5", "parent" Text "?6", "born" Int "?7",
        "closed" Int "?8", "fingerprint" Blob "?9",
    }
    "milestone_task" of "workspace" by "milestone, task" { "milestone" Text "?2", "task" Text "?3" }
    "assignment" of "workspace" by "task, epoch" {
        "task" Text "?2", "epoch" Int "?3", "assignee" Text "?4", "tier" Text "?5", "workstation" Text "?6",
        "lease_id" Blob "?7", "ttl_ms" Int "?8", "assigned_at" Int "?9", "renewed_at" Int "?10", "tick" Text "?11",
        "renewals" Int "?12", "handoff_reason" Text "?13", "forced" Int "?14", "route" Text "?15",
        "ended_at" Int "?16", "end_reason" Text "?17", "lane" Int "?18", "base" Text "?19",
        "resting" Int "?20",
    }
    "session" of "workspace" by "id" {
        "id" Int "?2", "task" Text "?3", "epoch" Int "?4", "worker" Text "?5", "workstation" Text "?6",
        "started_at" Int "?7", "ended_at" Int "?8", "end_reason" Text "?9",
    }
    "session_fact" of "workspace" by "seq" {
        "seq" Int "?2", "task" Text "?3", "session" Int "?4", "kind" Text "?5", "started_at" Int "?6",
        "ended_at" Int "?7", "key" Text "?8", "source" Text "?9", "model" Text "?10", "input_tokens" Int "?11",
        "output_tokens" Int "?12", "cache_read_tokens" Int "?13", "cache_creation_tokens" Int "?14",
        "cost_micros" Int "?15",
    }
    "approval" of "workspace" by "seq" {
        "seq" Int "?2", "worker" Text "?3", "first_day" Text "?4", "last_day" Text "?5", "fingerprint" Blob "?6",
    }
    "note" of "workspace" by "seq" { "seq" Int "?2", "task" Text "?3", "kind" Text "?4", "text" Text "?5" }
    "evidence" of "workspace" by "seq" {
        "seq" Int "?2", "task" Text "?3", "check_id" Text "?4", "verdict" Text "?5", "exit" Int "?6", "signal" Int "?7",
        "took_ms" Int "?8", "commit_id" Text "?9", "dirty" Int "?10", "output" Text "?11", "output_length" Int "?12",
        "output_sha256" Text "?13", "environment" Text "?14", "sandbox" Text "?15",
    }
    "review" of "workspace" by "seq" {
        "seq" Int "?2", "task" Text "?3", "verdict" Text "?4", "classification" Text "?5", "commit_id" Text "?6",
        "note" Text "?7",
    }
    "landed" of "workspace" by "commit_id, seq" {
        "commit_id" Text "?2", "seq" Int "?3", "task" Text "?4", "epoch" Int "?5",
    }
    "ledger" of "workspace" by "seq" {
        "seq" Int "?2", "task" Text "?3", "at" Int "?4", "actor" Text "?5", "workstation" Text "?6", "epoch" Int "?7",
        "verb" Text "?8", "data" Text "?9", "prev" Blob "?10", "hash" Blob "?11",
    }
    "request" of "workspace" by "id" { "id" Blob "?2", "fingerprint" Blob "?3", "seq" Int "?4", "answer" Text "?5" }
    "checkpoint" of "workspace" by "seq" { "seq" Int "?2", "document" Text "?3", "signature" Blob "?4" }
}

impl Table {
    pub fn named(name: &str) -> Option<&'static Table> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// Streams the table's rows, each in the order of its columns.
    pub fn each(&self, tx: &mut dyn Tx, row: &mut dyn FnMut(&[Value<'static>]) -> Result<()>) -> Result<()> {
        let workspace = tx.workspace();
        tx.each(&self.select, &args![workspace.0], &mut |found| row(&found.into_values()))
    }

    pub fn restore(&self, tx: &mut dyn Tx, values: Vec<Value<'_>>) -> Result<()> {
        let workspace = tx.workspace();
        if values.len() != self.columns.len() {
            return Err(StoreError::Guard(format!("a row of {} has {} values", self.name, values.len())));
        }
        let mut args = Vec::with_capacity(values.len() + 1);
        args.push(Value::Int(workspace.0));
        args.extend(values);
        tx.run_one(&self.insert, &args)
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
        let mut tables =
            words("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
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
                    Kind::Int => format!("{name} INTEGER"),
                    Kind::Text => format!("{name} TEXT"),
                    Kind::Blob => format!("{name} BLOB"),
                })
                .collect();
            copied.sort();
            assert_eq!(found, copied, "{}", table.name);
        }
    }
}
