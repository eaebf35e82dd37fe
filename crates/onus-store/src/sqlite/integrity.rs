//! What SQLite itself can say about the file: its pages, its foreign keys, its modes.

use super::{Sqlite, before_commit, migrate};
use crate::error::Result;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// At most so many complaints are worth reading.
const COMPLAINTS: i64 = 100;

/// Beyond this size the quick check has to do: the full one also compares every index with its table.
const THOROUGH_PAGES: i64 = 65_536;

/// How the file is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    pub schema: i64,
    pub latest_schema: i64,
    pub journal: String,
    /// 2 is FULL.
    pub synchronous: i64,
    pub sqlite: &'static str,
}

/// How closely the pages were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Quick,
    Thorough,
}

impl Sqlite {
    pub fn modes(&self) -> Result<Modes> {
        let number = |pragma| self.connection.query_row(pragma, [], |row| row.get(0)).map_err(before_commit);
        let word = |pragma| self.connection.query_row(pragma, [], |row| row.get(0)).map_err(before_commit);
        Ok(Modes {
            schema: migrate::version(&self.connection)?,
            latest_schema: migrate::LATEST,
            journal: word("PRAGMA journal_mode")?,
            synchronous: number("PRAGMA synchronous")?,
            sqlite: rusqlite::version(),
        })
    }

    /// Complaints about the file's pages; none when it is sound.
    pub fn integrity(&self) -> Result<(Depth, Vec<String>)> {
        let pages: i64 =
            self.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(before_commit)?;
        let depth = if pages > THOROUGH_PAGES { Depth::Quick } else { Depth::Thorough };
        let pragma = match depth {
            Depth::Quick => format!("PRAGMA quick_check({COMPLAINTS})"),
            Depth::Thorough => format!("PRAGMA integrity_check({COMPLAINTS})"),
        };
        let mut statement = self.connection.prepare(&pragma).map_err(before_commit)?;
        let complaints = statement.query_map([], |row| row.get::<_, String>(0)).map_err(before_commit)?;
        let complaints: Vec<String> = complaints.collect::<rusqlite::Result<_>>().map_err(before_commit)?;
        Ok((depth, complaints.into_iter().filter(|complaint| complaint != "ok").collect()))
    }

    /// What the schema has, lacks or says otherwise than this program wrote it: a trigger or an index more, one less.
    pub fn strange_schema(&self) -> Result<Vec<String>> {
        let expected = Connection::open_in_memory().map_err(before_commit)?;
        migrate::fill(&expected)?;
        let (expected, found) = (objects(&expected)?, objects(&self.connection)?);
        let missing = expected.keys().filter(|name| !found.contains_key(*name));
        let missing = missing.map(|(kind, name)| format!("the {kind} {name} is gone"));
        let odd = found.iter().filter_map(|((kind, name), text)| {
            match expected.get(&(kind.clone(), name.clone())) {
                None => Some(format!("the {kind} {name} was added")),
                Some(own) if own != text => Some(format!("the {kind} {name} was changed")),
                Some(_) => None,
            }
        });
        Ok(missing.chain(odd).collect())
    }

    /// Rows that refer to a row that is not there.
    pub fn dangling(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check").map_err(before_commit)?;
        let rows = statement
            .query_map([], |row| {
                let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
                Ok(match row.get::<_, Option<i64>>(1)? {
                    Some(rowid) => format!("row {rowid} of {table} refers to no {parent}"),
                    None => format!("a row of {table} refers to no {parent}"),
                })
            })
            .map_err(before_commit)?;
        let limit = usize::try_from(COMPLAINTS).unwrap_or(usize::MAX);
        rows.take(limit).collect::<rusqlite::Result<_>>().map_err(before_commit)
    }
}

/// Everything that somebody made, by kind and name, with its text.
fn objects(connection: &Connection) -> Result<BTreeMap<(String, String), Option<String>>> {
    // What SQLite makes for itself has names of its own.
    let sql = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = connection.prepare(sql).map_err(before_commit)?;
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)));
    rows.map_err(before_commit)?.collect::<rusqlite::Result<_>>().map_err(before_commit)
}
