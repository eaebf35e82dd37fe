//! Tokens: what is kept of them is a hash, which opens nothing.

use crate::codec::{self, word};
use crate::error::Result;
use crate::port::{Row, Tx};
use crate::{args, sql};
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
    INSERT_TOKEN = "INSERT INTO token (workspace, ", columns!(), ") \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL)";
    pub(crate) TOKEN = "SELECT ", columns!(), " FROM token WHERE workspace = ?1 AND id = ?2";
    /// A token with the worker that it speaks for.
    pub(crate) ADMITTED = "SELECT t.id, t.hash, t.kind, t.worker, t.workstation, t.label, t.created_by, t.created_at, \
        t.expires_at, t.revoked_at, t.used_at, CASE WHEN k.handle IS NULL THEN 0 ELSE 1 END, k.handle, k.kind, k.tier, \
        k.role, k.state, k.tz FROM token t LEFT JOIN worker k ON k.workspace = t.workspace AND k.handle = t.worker \
        WHERE t.workspace = ?1 AND t.id = ?2";
    TOKENS = "SELECT ", columns!(), " FROM token WHERE workspace = ?1 ORDER BY created_at, id";
    REVOKE_TOKEN = "UPDATE token SET revoked_at = ?3 WHERE workspace = ?1 AND id = ?2 AND revoked_at IS NULL";
    pub(crate) USE_TOKEN = "UPDATE token SET used_at = ?3 WHERE workspace = ?1 AND id = ?2 AND (used_at IS NULL OR used_at < ?3)";
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
    let workspace = tx.workspace();
    tx.run_one(
        &INSERT_TOKEN,
        &args![
            workspace.0,
            token.id.as_str(),
            hash,
            token.kind.name(),
            token.worker.as_ref().map(|worker| worker.as_str()),
            token.workstation.as_ref().map(|workstation| workstation.as_str()),
            token.label.as_deref(),
            token.created_by.as_str(),
            token.created_at.0,
            token.expires_at.map(|at| at.0),
            token.revoked_at.map(|at| at.0),
        ],
    )
}

pub fn find(tx: &mut dyn Tx, id: &TokenId) -> Result<Option<StoredToken>> {
    let workspace = tx.workspace();
    tx.row(&TOKEN, &args![workspace.0, id.as_str()])?.map(|mut row| stored(&mut row)).transpose()
}

/// A token and the worker that it speaks for.
#[derive(Debug, Clone)]
pub struct Bearer {
    pub token: StoredToken,
    pub worker: Option<Worker>,
}

/// All that whoever shows a token is judged by, and the present moment.
pub fn presented(tx: &mut dyn Tx, id: &TokenId) -> Result<(Option<Bearer>, Timestamp)> {
    let args = args![tx.workspace().0, id.as_str()];
    tx.prefetch(&[(&ADMITTED, args.to_vec())])?;
    let now = tx.now()?.wall;
    let Some(mut row) = tx.row(&ADMITTED, &args)? else {
        return Ok((None, now));
    };
    let token = stored(&mut row)?;
    let worker = if row.flag()? { Some(codec::worker(&mut row)?) } else { None };
    Ok((Some(Bearer { token, worker }), now))
}

/// Every token, the oldest first.
pub fn every(tx: &mut dyn Tx) -> Result<Vec<StoredToken>> {
    let workspace = tx.workspace();
    tx.rows(&TOKENS, &args![workspace.0])?.into_iter().map(|mut row| stored(&mut row)).collect()
}

pub fn revoke(tx: &mut dyn Tx, id: &TokenId, at: Timestamp) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(&REVOKE_TOKEN, &args![workspace.0, id.as_str(), at.0])
}

/// Notes a use; that somebody else noted a later one is fine.
pub fn used(tx: &mut dyn Tx, id: &TokenId, at: Timestamp) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_any(&USE_TOKEN, &args![workspace.0, id.as_str(), at.0])
}
