//! Restores a whole store from an archive, into a store that has no workspace yet.

use crate::Onus;
use crate::export::{FORMAT, Header, Trailer};
use crate::progress::Progress;
use onus_core::hash::{Running, decode_hex};
use onus_core::refusal::Refusal;
use onus_store::error::StoreError;
use onus_store::load;
use onus_store::port::{Outcome, Store, Tx, Value};
use onus_store::tables::{Column, ColumnKind, SCHEMA, TABLES, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

/// No row is longer: a body of the largest size, all of it escaped, fits many times.
const LINE_MAX: u64 = 8 * 1024 * 1024;

/// How many rows pass between two words about progress.
const STRIDE: u64 = 1_000;

/// The answer to the import of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RestoreView {
    pub workspace: String,
    pub tasks: i64,
    pub ledger_entries: i64,
    pub rows: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowLine {
    table: String,
    row: serde_json::Map<String, Json>,
}

impl Onus {
    /// Restores an archive, whole or not at all. The workspace keeps its identity, its ledger and its leases.
    pub fn import_archive(
        &mut self,
        reader: &mut dyn BufRead,
        progress: &mut dyn Progress,
    ) -> Result<RestoreView, Refusal> {
        let view = self.store.write(|tx| {
            match load::workspace(tx) {
                Err(StoreError::Missing(_)) => {}
                Ok(workspace) => {
                    let detail = format!("the store already holds the workspace {}", workspace.uid);
                    return Err(
                        Refusal::invalid(detail).hint("restore into a new place: --store sqlite:PATH")
                    );
                }
                Err(error) => return Err(error.into()),
            }
            progress.begin("restoring", None);
            let restored = Restoring { lines: Lines::new(reader), counts: BTreeMap::new() }.run(tx, progress);
            progress.end();
            restored.map(Outcome::Commit)
        })?;
        // The store is whole either way; `ledger verify` says where its anchor cannot be reached.
        drop(self.anchor_restored());
        Ok(view)
    }
}

struct Restoring<'r> {
    lines: Lines<'r>,
    counts: BTreeMap<String, u64>,
}

impl Restoring<'_> {
    fn run(mut self, tx: &mut dyn Tx, progress: &mut dyn Progress) -> Result<RestoreView, Refusal> {
        let header = self.header()?;
        self.counts = TABLES.iter().map(|table| (table.name.to_owned(), 0)).collect();
        let mut rows = 0;
        loop {
            let Some(text) = self.lines.next()? else {
                return Err(damaged("the archive is cut short: its last line is missing"));
            };
            match serde_json::from_str::<RowLine>(&text) {
                Ok(line) => self.restore(tx, line)?,
                Err(_) => {
                    let trailer: Trailer = serde_json::from_str(&text)
                        .map_err(|_| self.wrong("it is neither a row nor the end of an archive"))?;
                    self.check(&trailer)?;
                    break;
                }
            }
            rows += 1;
            if rows % STRIDE == 0 {
                progress.at(rows);
            }
        }
        let count = |table: &str| self.counts.get(table).copied().unwrap_or(0) as i64;
        let view = RestoreView {
            workspace: load::workspace(tx)?.uid,
            tasks: count("task"),
            ledger_entries: count("ledger"),
            rows,
        };
        let as_announced = (header.workspace == view.workspace)
            && (header.tasks, header.entries) == (view.tasks, view.ledger_entries)
            && count("workspace") == 1;
        if as_announced {
            Ok(view)
        } else {
            Err(damaged("the archive does not hold what its first line says"))
        }
    }

    fn header(&mut self) -> Result<Header, Refusal> {
        let text = self.lines.next()?.ok_or_else(|| damaged("the file is empty"))?;
        let header: Header = serde_json::from_str(&text).map_err(|_| {
            Refusal::invalid("the first line is no archive's")
                .hint("make one: onus export --format onus FILE")
        })?;
        if header.format != FORMAT {
            return Err(Refusal::invalid(format!("the format is {}", onus_core::id::shown(&header.format)))
                .hint(format!("this program reads {FORMAT}")));
        }
        if header.schema != SCHEMA {
            let detail = format!("the archive has schema {}; this program has {SCHEMA}", header.schema);
            return Err(
                Refusal::invalid(detail).hint("restore it with the program that made it, then upgrade")
            );
        }
        Ok(header)
    }

    fn restore(&mut self, tx: &mut dyn Tx, line: RowLine) -> Result<(), Refusal> {
        let table = Table::named(&line.table).ok_or_else(|| self.wrong("there is no such table"))?;
        let values = values(table, line.row).map_err(|what| self.wrong(&what))?;
        table.restore(tx, values).map_err(|error| match error {
            // Whatever does not fit the schema was not written by an export.
            StoreError::Guard(what) | StoreError::Constraint(what) => self.wrong(&what),
            other => other.into(),
        })?;
        *self.counts.entry(line.table).or_default() += 1;
        Ok(())
    }

    fn check(&mut self, trailer: &Trailer) -> Result<(), Refusal> {
        if trailer.sha256 != self.lines.before.digest() || trailer.counts != self.counts {
            return Err(damaged("the archive was changed after it was made: its digest does not fit"));
        }
        match self.lines.next()? {
            None => Ok(()),
            Some(_) => Err(self.wrong("it comes after the end of the archive")),
        }
    }

    fn wrong(&self, what: &str) -> Refusal {
        damaged(&format!("line {}: {what}", self.lines.number))
    }
}

fn damaged(what: &str) -> Refusal {
    Refusal::invalid(what).hint("nothing was restored; use a complete copy of the archive")
}

/// The row's values in the order of the table's columns.
fn values(table: &Table, mut row: serde_json::Map<String, Json>) -> Result<Vec<Value<'static>>, String> {
    let read = |Column { name, kind }: &Column| {
        let value = row.remove(*name).ok_or_else(|| format!("{} has no {name}", table.name))?;
        value_of(*kind, value).ok_or_else(|| format!("{name} of {} has another kind of value", table.name))
    };
    let values = table.columns.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    match row.keys().next() {
        None => Ok(values),
        Some(key) => Err(format!("{} has no column {}", table.name, onus_core::id::shown(key))),
    }
}

fn value_of(kind: ColumnKind, value: Json) -> Option<Value<'static>> {
    match (kind, value) {
        (_, Json::Null) => Some(Value::Null),
        (ColumnKind::Int, Json::Number(n)) => n.as_i64().map(Value::Int),
        (ColumnKind::Text, Json::String(text)) => Some(Value::Text(text.into())),
        (ColumnKind::Blob, Json::String(hex)) => {
            let mut bytes = vec![0; hex.len() / 2];
            decode_hex(&hex, &mut bytes).then(|| Value::Blob(bytes.into()))
        }
        _ => None,
    }
}

/// The lines of the archive, with the digest of all that were read.
struct Lines<'r> {
    reader: &'r mut dyn BufRead,
    hash: Running,
    /// As it was before the last line.
    before: Running,
    number: usize,
}

impl Lines<'_> {
    fn new(reader: &mut dyn BufRead) -> Lines<'_> {
        Lines { reader, hash: Running::default(), before: Running::default(), number: 0 }
    }

    fn next(&mut self) -> Result<Option<String>, Refusal> {
        self.number += 1;
        let mut bytes = Vec::new();
        self.reader
            .take(LINE_MAX)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| Refusal::invalid(format!("the archive cannot be read: {error}")))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.last() != Some(&b'\n') {
            return Err(damaged(&format!("line {} is cut short", self.number)));
        }
        self.before = self.hash.clone();
        self.hash.update(&bytes);
        String::from_utf8(bytes).map(Some).map_err(|_| damaged(&format!("line {} is not UTF-8", self.number)))
    }
}
