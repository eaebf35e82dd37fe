//! What the server can say about itself and about our tables.

use super::{Postgres, migrate};
use crate::error::{Result, StoreError};

/// How the database is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    pub schema: i64,
    pub latest_schema: i64,
    pub server: String,
    pub fsync: String,
    pub full_page_writes: String,
    pub synchronous_commit: String,
}

impl Postgres {
    pub fn modes(&mut self) -> Result<Modes> {
        let said = self.script(
            "SELECT version FROM public.onus_schema; SHOW server_version; SHOW fsync; SHOW full_page_writes; \
             SHOW synchronous_commit",
        )?;
        let [schema, server, fsync, full_page_writes, synchronous_commit] = said.as_slice() else {
            return Err(StoreError::Corrupt("the schema has no version".into()));
        };
        Ok(Modes {
            schema: schema
                .parse()
                .map_err(|_| StoreError::Corrupt("the schema's version is no number".into()))?,
            latest_schema: migrate::LATEST,
            server: server.clone(),
            fsync: fsync.clone(),
            full_page_writes: full_page_writes.clone(),
            synchronous_commit: synchronous_commit.clone(),
        })
    }

    /// Indexes and references that the server does not enforce: somebody switched them off, or built them halfway.
    pub fn unenforced(&mut self) -> Result<Vec<String>> {
        self.script(
            "SELECT 'the index ' || c.relname || ' is not valid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                 WHERE c.relnamespace = 'public'::regnamespace AND NOT (i.indisvalid AND i.indisready); \
             SELECT 'the reference ' || conname || ' is not checked' FROM pg_constraint \
                 WHERE connamespace = 'public'::regnamespace AND NOT convalidated; \
             SELECT DISTINCT 'references of ' || c.relname || ' are switched off' FROM pg_trigger t \
                 JOIN pg_class c ON c.oid = t.tgrelid \
                 WHERE c.relnamespace = 'public'::regnamespace AND t.tgisinternal AND t.tgenabled = 'D'",
        )
    }

    fn script(&mut self, text: &str) -> Result<Vec<String>> {
        let mut pipeline = match self.pipeline.take().filter(|pipeline| !pipeline.is_lost()) {
            Some(pipeline) => pipeline,
            None => super::session::open(&self.address)?,
        };
        let said = pipeline.script(text);
        self.end(pipeline);
        said
    }
}
