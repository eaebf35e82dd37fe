//! Connecting: who we are, what the server must be, and how long we wait for it.

use super::address::Address;
use super::failure;
use super::pipeline::Pipeline;
use super::tls::Tls;
use crate::error::{Result, StoreError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Socket};

/// The oldest server whose statements and plans are tested.
const OLDEST: i64 = 150_000;

/// How long a server may take to start, or to find a place for one more connection.
const PATIENCE: Duration = Duration::from_secs(15);

/// What every connection is told. A writer that is cut off must not hold the others up: its turn ends before their patience
/// does. A commit that was acknowledged must be on disk, whatever the database's default is; names mean our tables, not somebody's in between.
const SESSION_SETTINGS: &str = "SET search_path = public, pg_temp; SET lock_timeout = '30s'; SET statement_timeout = '10min'; \
    SET idle_in_transaction_session_timeout = '20s'; SET jit = off; \
    SET default_transaction_isolation = 'read committed'; \
    DO $$ BEGIN IF current_setting('synchronous_commit') = 'off' THEN SET synchronous_commit = on; END IF; END $$;";

/// A connection that has not been made yet.
pub(super) enum MaybeConnection {
    Plain(Client, Box<Connection<Socket, NoTlsStream>>),
    Secret(Client, Box<Connection<Socket, super::tls::Wrapped<Socket>>>),
}

/// Connects, and finds out whether the server is one that we can use.
pub(super) fn open(address: &Address) -> Result<Pipeline> {
    let runtime = runtime()?;
    let client = match connect(&runtime, address)? {
        MaybeConnection::Plain(client, connection) => {
            runtime.spawn(connection);
            client
        }
        MaybeConnection::Secret(client, connection) => {
            runtime.spawn(connection);
            client
        }
    };
    let mut pipeline = Pipeline::new(runtime, client);
    let workspace = &address.workspace;
    let said = pipeline.script(&format!(
        "{SESSION_SETTINGS} SET onus.workspace = '{workspace}'; SELECT pg_is_in_recovery()::int; SHOW server_version_num; SHOW \
         default_transaction_read_only;"
    ))?;
    let [standby, version, read_only] = said.as_slice() else {
        return Err(StoreError::unavailable("the database does not say what it is"));
    };
    let unusable = |detail: String, hint: &str| {
        Err(StoreError::Unavailable {
            detail: format!("{detail} at {}", address.hosts()),
            hint: Some(hint.into()),
        })
    };
    if standby == "1" || read_only == "on" {
        return unusable(
            "the database is read-only".into(),
            "name the primary in --store; several hosts may be given, with target_session_attrs=read-write",
        );
    }
    if version.parse::<i64>().unwrap_or(0) < OLDEST {
        return unusable(format!("PostgreSQL {version} is too old"), "PostgreSQL 15 or later is needed");
    }
    Ok(pipeline)
}

pub(super) fn runtime() -> Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| StoreError::unavailable(format!("no connection can be driven: {error}")))
}

/// A server that starts, or is full, gets a little time.
pub(super) fn connect(runtime: &Runtime, address: &Address) -> Result<MaybeConnection> {
    let config = super::password::completed(address)?;
    let tls = Tls::new(&address.security)?;
    let began = Instant::now();
    let mut pause = Duration::from_millis(10);
    loop {
        match runtime.block_on(once(&config, tls.clone())) {
            Ok(made) => return Ok(made),
            Err(error) if failure::is_passing(&error) && began.elapsed() < PATIENCE => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(500));
            }
            Err(error) => return Err(failure::connecting(&error, address)),
        }
    }
}

async fn once(config: &Config, tls: Option<Tls>) -> std::result::Result<MaybeConnection, Error> {
    Ok(match tls {
        None => {
            let (client, connection) = config.connect(NoTls).await?;
            MaybeConnection::Plain(client, Box::new(connection))
        }
        Some(tls) => {
            let (client, connection) = config.connect(tls).await?;
            MaybeConnection::Secret(client, Box::new(connection))
        }
    })
}
