//! Being woken by other programs' commits.

use super::address::Address;
use super::session::{self, MaybeConnection, PATIENCE, Reach};
use super::{CHANNEL, failure};
use crate::error::{Result, StoreError};
use futures_util::{StreamExt as _, stream};
use onus_core::id::{Seq, WorkspaceId};
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Connection};

/// Why a listener was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The ledger of a workspace has grown up to this entry.
    Grown { workspace: WorkspaceId, seq: Seq },
    /// The connection was made anew: what happened meanwhile was told to nobody. Look at everything.
    Reconnected,
}

/// A connection of its own that does nothing but listen.
pub struct Listener {
    address: Address,
    ear: Option<Ear>,
}

struct Ear {
    runtime: Runtime,
    heard: UnboundedReceiver<String>,
    /// The connection lives as long as this.
    _client: Client,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Listener {
    pub fn open(address: &Address) -> Result<Listener> {
        Ok(Listener { address: address.clone(), ear: Some(listen(address)?) })
    }

    /// Waits for the next commit of anybody, in any workspace of the database; none when the time is over. An error means
    /// that there is no connection now; the next call tries to make one.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<Wake>> {
        let Some(ear) = &mut self.ear else {
            self.ear = Some(listen(&self.address)?);
            return Ok(Some(Wake::Reconnected));
        };
        let heard = &mut ear.heard;
        match ear.runtime.block_on(async { timeout(limit, heard.recv()).await }) {
            Err(_) => Ok(None),
            Ok(Some(payload)) => Ok(Some(understood(&payload))),
            Ok(None) => {
                self.ear = None;
                self.wait(limit)
            }
        }
    }
}

/// What nobody of ours said is a reason to look at everything.
fn understood(payload: &str) -> Wake {
    let parts = payload.split_once(':').and_then(|(w, s)| Some((w.parse().ok()?, s.parse().ok()?)));
    parts.map_or(Wake::Reconnected, |(workspace, seq)| Wake::Grown { workspace: WorkspaceId(workspace), seq })
}

fn listen(address: &Address) -> Result<Ear> {
    let runtime = session::runtime()?;
    let (tell, heard) = unbounded_channel();
    let client = match Reach::new(address)?.connect(&runtime, address)? {
        MaybeConnection::Plain(client, connection) => {
            runtime.spawn(follow(*connection, tell));
            client
        }
        MaybeConnection::Secret(client, connection) => {
            runtime.spawn(follow(*connection, tell));
            client
        }
    };
    let words = format!("LISTEN {CHANNEL}");
    let listening = runtime.block_on(async { timeout(PATIENCE, client.batch_execute(&words)).await });
    match listening {
        Ok(Ok(())) => Ok(Ear { runtime, heard, _client: client }),
        Ok(Err(error)) => Err(StoreError::unavailable(failure::before_commit(&error).to_string())),
        Err(_) => Err(failure::silent(address)),
    }
}

/// Drives the connection and passes on what is said on it; ends with it.
async fn follow<S, T>(mut connection: Connection<S, T>, tell: UnboundedSender<String>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut messages = stream::poll_fn(|cx| connection.poll_message(cx));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(said) = message
            && tell.send(said.payload().to_owned()).is_err()
        {
            return;
        }
    }
}
