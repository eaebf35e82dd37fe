//! Opening and creating the file.

use super::migrate::StoreFile;
use super::queue::WriterQueue;
use super::{Sqlite, before_commit, migrate};
use crate::error::{Result, StoreError};
use onus_core::time::Now;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// How long a connection is meant to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// One call: it leaves the log as it is when it closes, which would cost several times the call itself.
    OneCall,
    /// A server's: it keeps what it has read, lets the log grow and writes it back when it closes.
    Long,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub clock: fn() -> Now,
    pub stay: Stay,
    /// How long a writer stands in line.
    pub patience: Duration,
}

impl Options {
    pub fn one_shot(clock: fn() -> Now) -> Options {
        Options { clock, stay: Stay::OneCall, patience: Duration::from_secs(30) }
    }

    pub fn staying(clock: fn() -> Now) -> Options {
        Options { stay: Stay::Long, ..Options::one_shot(clock) }
    }
}

impl Sqlite {
    /// Opens a store that exists; migrates it, after a backup, when it is older than this program.
    pub fn open(path: &Path, options: &Options) -> Result<Sqlite> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(StoreError::unavailable(format!("{} is not a file", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::Missing(format!("there is no store at {}", path.display())));
            }
            Err(error) => return Err(unusable(path, &error)),
        }
        let store = connect(path, options)?;
        let version = migrate::version(&store.connection)?;
        if version == migrate::LATEST {
            migrate::ensure_log(&store)?;
            return Ok(store);
        }
        match version {
            // Between the creation of the file and its first commit a crash leaves an empty file: no store yet.
            0 => {
                Err(StoreError::Missing(format!("{} is empty: no store was made there yet", path.display())))
            }
            _ => {
                migrate::upgrade(&store, version)?;
                Ok(store)
            }
        }
    }

    /// Opens the store, creating file and tables when they are not there. Harmless when done twice or at once.
    pub fn create(path: &Path, options: &Options) -> Result<Sqlite> {
        if let Some(directory) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(|e| unusable(directory, &e))?;
        }
        let file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(_) => StoreFile::Made,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => StoreFile::Found,
            Err(error) => return Err(unusable(path, &error)),
        };
        let store = connect(path, options)?;
        migrate::create(&store, file)?;
        Ok(store)
    }
}

/// For a connection that stays. The log's memory lives as long as somebody has the store open, so nobody reads the log
/// anew: it may grow until writing it back is worth it, and is written over from its beginning after that, which is
/// quicker to sync than a file that grows. Marks within a transaction are kept in memory, and so are more pages.
const STAYING: &str = "PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 16777216; \
    PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;";

fn connect(path: &Path, options: &Options) -> Result<Sqlite> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(before_commit)?;
    connection.busy_timeout(options.patience).map_err(before_commit)?;
    if options.stay == Stay::OneCall {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(before_commit)?;
    }
    // A database file comes from outside: its schema may not call functions, its pages are not trusted.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(before_commit)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(before_commit)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true).map_err(before_commit)?;
    // One plan per statement, whatever its values: otherwise most statements are planned twice in a one-shot call.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(before_commit)?;
    connection.set_prepared_statement_cache_capacity(64);
    // FULL: with NORMAL a power loss takes commits back that were acknowledged.
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")
        .map_err(before_commit)?;
    if options.stay == Stay::Long {
        connection.execute_batch(STAYING).map_err(before_commit)?;
    }
    let queue = WriterQueue::new(path, options.patience);
    let (clock, stay) = (options.clock, options.stay);
    Ok(Sqlite { connection, queue, path: path.to_owned(), clock, stay, seen: None })
}

fn unusable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable {
        detail: format!("{}: {error}", path.display()),
        hint: Some("check the path, its permissions and the space on its disk".into()),
    }
}
