//! Saved views as rows.

use crate::codec;
use crate::error::{Result, StoreError};
use crate::port::Tx;
use crate::sql;
use onus_core::id::Handle;
use onus_core::saved_view::SavedView;
use onus_core::time::Timestamp;

sql! {
    INSERT_VIEW(name, query, saved) = "INSERT INTO saved_view (workspace, name, query, saved) VALUES (:workspace, :name, \
        :query, :saved)";
    UPDATE_VIEW(name, query, saved) = "UPDATE saved_view SET query = :query, saved = :saved WHERE workspace = :workspace \
        AND name = :name";
    DELETE_VIEW(name) = "DELETE FROM saved_view WHERE workspace = :workspace AND name = :name";
    VIEWS = "SELECT v.name, v.query, v.saved, l.actor, l.at FROM saved_view v \
        JOIN ledger l ON l.workspace = v.workspace AND l.seq = v.saved \
        WHERE v.workspace = :workspace ORDER BY v.name";
}

/// A view with who saved it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredView {
    pub view: SavedView,
    pub by: Handle,
    pub at: Timestamp,
}

/// Every view, by its name: they are few.
pub fn every(tx: &mut dyn Tx) -> Result<Vec<StoredView>> {
    let read = |mut row: crate::port::Row| {
        let (name, query): (String, String) = (row.text()?, row.text()?);
        let query = serde_json::from_str(&query)
            .map_err(|error| StoreError::Corrupt(format!("the view {name}: {error}")))?;
        let view = SavedView { name, query, saved: row.int()? };
        Ok(StoredView { view, by: row.parsed()?, at: Timestamp(row.int()?) })
    };
    tx.rows(&VIEWS {})?.into_iter().map(read).collect()
}

/// Writes a view, which is there already or not.
pub fn put(tx: &mut dyn Tx, view: &SavedView, is_new: bool) -> Result<()> {
    let SavedView { name, query, saved } = view;
    let query = codec::json_text(query)?;
    if is_new {
        tx.run_one(&INSERT_VIEW { name, query, saved: *saved })
    } else {
        tx.run_one(&UPDATE_VIEW { name, query, saved: *saved })
    }
}

pub fn remove(tx: &mut dyn Tx, name: &str) -> Result<()> {
    tx.run_one(&DELETE_VIEW { name })
}
