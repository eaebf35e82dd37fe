//! The archive: every row of every table as a line of JSON, between a header and a digest.
//!
//! It holds what the store holds, the fences of live leases included: it is as secret as the store itself. The
//! signing key is no part of it.

use super::{ExportError, LineWriter, STRIDE};
use crate::Onus;
use crate::progress::Progress;
use onus_core::hash::{Digest, Running, encode_hex};

use onus_store::port::{Store, Tx, Value};
use onus_store::read::ledger;
use onus_store::tables::{SCHEMA, TABLES, Table};
use onus_store::{bulk, load};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::io::{self, Write};

pub(crate) const FORMAT: &str = "onus-archive/1";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) schema: i64,
    pub(crate) workspace: String,
    pub(crate) entries: i64,
    pub(crate) tasks: i64,
}

/// The last line: how many rows there were, and the SHA-256 of every byte before it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trailer {
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) sha256: Digest,
}

/// One row, its binary columns in hexadecimal.
struct RowLine<'a> {
    table: &'static Table,
    values: &'a [Value<'static>],
}

impl Serialize for RowLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(Some(2))?;
        line.serialize_entry("table", self.table.name)?;
        line.serialize_entry("row", &Columns(self))?;
        line.end()
    }
}

struct Columns<'a>(&'a RowLine<'a>);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RowLine { table, values } = self.0;
        let mut row = serializer.serialize_map(Some(values.len()))?;
        for (column, value) in table.columns.iter().zip(*values) {
            match value {
                Value::Null => row.serialize_entry(column.name, &None::<()>)?,
                Value::Int(n) => row.serialize_entry(column.name, n)?,
                Value::Text(text) => row.serialize_entry(column.name, text)?,
                Value::Blob(bytes) => row.serialize_entry(column.name, &encode_hex(bytes))?,
            }
        }
        row.end()
    }
}

/// Passes bytes on and remembers their digest.
struct Hashing<'w> {
    writer: &'w mut dyn Write,
    hash: Running,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Onus {
    /// Writes the whole store, on one consistent view, and says how many rows it has.
    pub fn export_archive(
        &mut self,
        writer: &mut dyn Write,
        progress: &mut dyn Progress,
    ) -> Result<u64, ExportError> {
        let mut hashing = Hashing { writer, hash: Running::default() };
        let mut counts = BTreeMap::new();
        let mut sheet = LineWriter::new(&mut hashing);
        let read = self.store.read(|tx| rows(tx, &mut sheet, &mut counts, progress));
        progress.end();
        sheet.finish(read)?;
        let Hashing { writer, hash } = hashing;
        let rows = counts.values().sum();
        let mut last = LineWriter::new(writer);
        let written = last.line(&Trailer { counts, sha256: hash.digest() });
        last.finish(written)?;
        Ok(rows)
    }
}

fn rows(
    tx: &mut dyn Tx,
    sheet: &mut LineWriter<'_>,
    counts: &mut BTreeMap<String, u64>,
    progress: &mut dyn Progress,
) -> onus_store::error::Result<()> {
    let header = Header {
        format: FORMAT.to_owned(),
        schema: SCHEMA,
        workspace: load::workspace(tx)?.uid,
        entries: ledger::count(tx)?,
        tasks: bulk::count_tasks(tx)?,
    };
    progress.begin("archiving", None);
    sheet.line(&header)?;
    let mut total = 0;
    for table in TABLES {
        let mut count = 0;
        table.each(tx, &mut |values| {
            count += 1;
            total += 1;
            if total % STRIDE == 0 {
                progress.at(total);
            }
            sheet.line(&RowLine { table, values })
        })?;
        counts.insert(table.name.to_owned(), count);
    }
    Ok(())
}
