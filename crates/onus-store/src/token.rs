//! Tokens: what is kept of them is a hash, which opens nothing.

use crate::codec::{self, word};
use crate::error::Result;
use crate::port::{Row, Tx};
use crate::sql;
use onus_core::hash::Digest;
use onus_core::id::TokenId;
use onus_core::time::Timestamp;
use onus_core::token::{AccessToken, TokenKind, seal};
use onus_core::worker::Worker;

macro_rules! columns {
    () => {
        "id, hash, kind, worker, workstation, label, created_by, created_at, expires_at, revoked_at, used_at"
    };
}

sql! {
    INSERT_TOKEN(id, hash, kind, worker, workstation, label, created_by, created_at, expires_at, revoked_at) = "INSERT \
        INTO token (workspace, ", columns!(), ") \
        VALUES (:workspace, :id, :hash, :kind, :worker, :workstation, :label, :created_by, :created_at, :expires_at, \
        :revoked_at, NULL)";
    pub(crate) TOKEN(token) = "SELECT ", columns!(), " FROM token WHERE workspace = :workspace AND id = :token";
    /// A token with the worker that it speaks for.
    pub(crate) ADMITTED(token) reads [token] = "SELECT t.id, t.hash, t.kind, t.worker, t.workstation, t.label, \
        t.created_by, t.created_at, \
        t.expires_at, t.revoked_at, t.used_at, CASE WHEN k.handle IS NULL THEN 0 ELSE 1 END, k.handle, k.kind, k.tier, \
        k.role, k.state, k.tz FROM token t LEFT JOIN worker k ON k.workspace = t.workspace AND k.handle = t.worker \
        WHERE t.workspace = :workspace AND t.id = :token";
    TOKENS = "SELECT ", columns!(), " FROM token WHERE workspace = :workspace ORDER BY created_at, id";
    REVOKE_TOKEN(token, at) = "UPDATE token SET revoked_at = :at WHERE workspace = :workspace AND id = :token AND \
        revoked_at IS NULL";
    pub(crate) USE_TOKEN(token, at) touches [token] row [token] = "UPDATE token SET used_at = :at WHERE workspace = \
        :workspace AND id = :token AND (used_at IS NULL OR used_at < :at)";
}

/// A token's row.
#[derive(Debug, Clone)]
pub struct StoredToken {
    pub token: AccessToken,
    pub hash: Digest,
    /// When it was used last, to the minute.
    pub used_at: Option<Timestamp>,
}

fn stored(row: &mut Row) -> Result<StoredToken> {
    let id = row.parsed()?;
    let hash = row.digest()?;
    let token = AccessToken {
        id,
        seal: seal(&hash),
        kind: word(row.text()?.as_str(), TokenKind::parse)?,
        worker: row.opt_parsed()?,
        workstation: row.opt_parsed()?,
        label: row.opt_text()?,
        created_by: row.parsed()?,
        created_at: Timestamp(row.int()?),
        expires_at: row.opt_int()?.map(Timestamp),
        revoked_at: row.opt_int()?.map(Timestamp),
    };
    Ok(StoredToken { token, hash, used_at: row.opt_int()?.map(Timestamp) })
}

pub fn insert(tx: &mut dyn Tx, token: &AccessToken, hash: &Digest) -> Result<()> {
    tx.run_one(&INSERT_TOKEN {
        id: &token.id,
        hash,
        kind: token.kind.name(),
        worker: &token.worker,
        workstation: &token.workstation,
        label: &token.label,
        created_by: &token.created_by,
        created_at: token.created_at,
        expires_at: token.expires_at.map(|at| at.0),
        revoked_at: token.revoked_at.map(|at| at.0),
    })
}

pub fn find(tx: &mut dyn Tx, id: &TokenId) -> Result<Option<StoredToken>> {
    tx.row(&TOKEN { token: id })?.map(|mut row| stored(&mut row)).transpose()
}

/// A token and the worker that it speaks for.
#[derive(Debug, Clone)]
pub struct Bearer {
    pub token: StoredToken,
    pub worker: Option<Worker>,
}

/// All that whoever shows a token is judged by, and the present moment.
pub fn presented(tx: &mut dyn Tx, id: &TokenId) -> Result<(Option<Bearer>, Timestamp)> {
    tx.prefetch(&[Box::new(ADMITTED { token: id })])?;
    let now = tx.now()?.wall;
    let Some(mut row) = tx.row(&ADMITTED { token: id })? else {
        return Ok((None, now));
    };
    let token = stored(&mut row)?;
    let worker = if row.flag()? { Some(codec::worker(&mut row)?) } else { None };
    Ok((Some(Bearer { token, worker }), now))
}

/// Every token, the oldest first.
pub fn every(tx: &mut dyn Tx) -> Result<Vec<StoredToken>> {
    tx.rows(&TOKENS {})?.into_iter().map(|mut row| stored(&mut row)).collect()
}

pub fn revoke(tx: &mut dyn Tx, id: &TokenId, at: Timestamp) -> Result<()> {
    tx.run_one(&REVOKE_TOKEN { token: id, at })
}

/// Notes a use; that somebody else noted a later one is fine.
pub fn used(tx: &mut dyn Tx, id: &TokenId, at: Timestamp) -> Result<()> {
    tx.run_any(&USE_TOKEN { token: id, at })
}
