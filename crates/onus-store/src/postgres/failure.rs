//! What an error of the server or of the connection means to a caller.

use super::address::{Address, cause};
use crate::error::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

/// Before the commit began nothing was written.
pub(super) fn before_commit(error: &Error) -> StoreError {
    match error.as_db_error() {
        Some(said) => server_said(said),
        None if is_lost(error) => {
            StoreError::Busy("the connection to the database was lost; nothing was written".into())
        }
        // Not from the server: a value of another type than the schema's.
        None => StoreError::Corrupt(cause(error)),
    }
}

/// Only an answer that says so proves that nothing was committed. Without one, or when the server was being shut down,
/// it may have been.
pub(super) fn during_commit(error: &Error) -> StoreError {
    let refused = error.as_db_error().filter(|said| matches!(&said.code().code()[..2], "23" | "40"));
    match refused {
        Some(said) => server_said(said),
        None => StoreError::Unknown(format!("the database did not confirm the commit ({})", cause(error))),
    }
}

/// The connection is of no more use.
pub(super) fn is_lost(error: &Error) -> bool {
    let ended = |said: &DbError| said.code().code().starts_with("57P");
    error.as_db_error().map_or_else(|| error.is_closed() || is_io(error), ended)
}

/// Whether it is worth trying again in a moment: the server starts, stops, or serves as many as it can.
pub(super) fn is_passing(error: &Error) -> bool {
    error
        .code()
        .is_some_and(|code| matches!(*code, SqlState::CANNOT_CONNECT_NOW | SqlState::TOO_MANY_CONNECTIONS))
}

fn is_io(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

fn server_said(said: &DbError) -> StoreError {
    let detail = said.message().to_owned();
    let unavailable =
        |hint: &str| StoreError::Unavailable { detail: detail.clone(), hint: Some(hint.into()) };
    let code = said.code();
    match *code {
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED
        | SqlState::TOO_MANY_CONNECTIONS
        // A statement was prepared before the schema changed.
        | SqlState::FEATURE_NOT_SUPPORTED => return StoreError::Busy(detail),
        SqlState::DISK_FULL => return unavailable("the server's disk is full: free some space and try again"),
        SqlState::INSUFFICIENT_PRIVILEGE => {
            return unavailable("the database's owner grants the rights: see docs/guide/postgresql.md");
        }
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            return unavailable("the server takes no writes: name the primary in --store");
        }
        SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN => return StoreError::Corrupt(detail),
        _ => {}
    }
    match &code.code()[..2] {
        "23" => StoreError::Constraint(detail),
        "25" => StoreError::Guard(detail),
        "57" => StoreError::Busy(format!("{detail}; nothing was written")),
        "XX" => StoreError::Corrupt(detail),
        _ => StoreError::Unavailable { detail: format!("{detail} ({})", code.code()), hint: None },
    }
}

/// It takes connections and says nothing.
pub(super) fn silent(address: &Address) -> StoreError {
    StoreError::Unavailable {
        detail: format!("the database at {} does not answer", address.hosts()),
        hint: Some("check that the server is not stopped or overloaded, then try again".into()),
    }
}

/// Why there is no connection, and what to do about it.
pub(super) fn connecting(error: &Error, address: &Address) -> StoreError {
    let unavailable = |detail: String, hint: String| StoreError::Unavailable { detail, hint: Some(hint) };
    let at = address.hosts();
    let Some(said) = error.as_db_error() else {
        let hint = "check that the server runs, its address, and sslmode where it is another machine";
        return unavailable(format!("no connection to the database at {at}: {}", cause(error)), hint.into());
    };
    let database = address.database();
    match *said.code() {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => unavailable(
            format!("the database at {at} does not let us in: {}", said.message()),
            "check the user's name; the password comes from PGPASSWORD or ~/.pgpass".into(),
        ),
        SqlState::INVALID_CATALOG_NAME => unavailable(
            format!("there is no database {database} at {at}"),
            format!("createdb {database}; then: onus init"),
        ),
        SqlState::TOO_MANY_CONNECTIONS | SqlState::CANNOT_CONNECT_NOW => {
            StoreError::Busy(format!("the database at {at} is busy: {}", said.message()))
        }
        _ => server_said(said),
    }
}
