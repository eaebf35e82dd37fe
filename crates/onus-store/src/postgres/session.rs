//! Connecting: who we are, what the server must be, and how long we wait for it.

use super::address::Address;
use super::failure;
use super::pipeline::Pipeline;
use super::tls::Tls;
use crate::error::{Result, StoreError};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Socket};

/// The oldest server whose statements and plans are tested.
const OLDEST: i64 = 150_000;

/// How long a server may take to start, or to find a place for one more connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// After so long without an answer somebody looks whether the server answers anybody.
const SILENCE: Duration = Duration::from_secs(10);

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
    let reach = Reach::new(address)?;
    let (client, driver) = match reach.connect(&runtime, address)? {
        MaybeConnection::Plain(client, connection) => (client, runtime.spawn(connection).abort_handle()),
        MaybeConnection::Secret(client, connection) => (client, runtime.spawn(connection).abort_handle()),
    };
    let mut pipeline = Pipeline::new(runtime, client, DatabaseLine { reach, driver });
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

/// How to get to the server.
pub(super) struct Reach {
    config: Config,
    tls: Option<Tls>,
}

impl Reach {
    pub(super) fn new(address: &Address) -> Result<Reach> {
        Ok(Reach { config: super::password::completed(address)?, tls: Tls::new(&address.security)? })
    }

    /// A server that starts, or is full, gets a little time.
    pub(super) fn connect(&self, runtime: &Runtime, address: &Address) -> Result<MaybeConnection> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            match runtime.block_on(self.once()) {
                Some(Ok(made)) => return Ok(made),
                Some(Err(error)) if failure::is_passing(&error) && began.elapsed() < PATIENCE => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(500));
                }
                Some(Err(error)) => return Err(failure::connecting(&error, address)),
                None => return Err(failure::silent(address)),
            }
        }
    }

    /// Nothing where the time is over: a server that stands still takes connections, and says nothing on them.
    async fn once(&self) -> Option<std::result::Result<MaybeConnection, Error>> {
        let each = self.config.get_connect_timeout().copied().unwrap_or(PATIENCE);
        let limit = each * u32::try_from(self.config.get_hosts().len().max(1)).unwrap_or(1);
        tokio::time::timeout(limit, once(&self.config, self.tls.clone())).await.ok()
    }
}

/// A connection's own way to the server, and what moves it.
pub(super) struct DatabaseLine {
    reach: Reach,
    driver: AbortHandle,
}

impl DatabaseLine {
    /// Waits for an answer, however long it takes as long as there is a server that could give it. The operating system of
    /// one that stands still (stopped, swapped out, a virtual machine that is paused) keeps its connections alive for ever.
    pub(super) async fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            if let Ok(answer) = tokio::time::timeout(SILENCE, &mut answer).await {
                return answer;
            }
            if !matches!(self.reach.once().await, Some(Ok(_))) {
                // Everybody who waits on it is told that it was lost.
                self.driver.abort();
                return answer.await;
            }
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
