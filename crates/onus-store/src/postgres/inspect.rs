//! What the server can say about itself and about our tables.

use super::{Postgres, migrate};
use crate::error::{Result, StoreError};
use std::collections::BTreeSet;

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

    /// What the tables have, lack or say otherwise than this program wrote them: a trigger or an index more, one less. The
    /// schema is made once more among the session's own temporary tables, and compared; nothing of it stays.
    pub fn strange_schema(&mut self) -> Result<Vec<String>> {
        let mut expected = format!("BEGIN; SET LOCAL search_path = pg_temp; {};", migrate::whole());
        expected.push_str(&objects("pg_my_temp_schema()"));
        expected.push_str("; ROLLBACK");
        let made = self.script(&expected);
        if made.is_err() {
            drop(self.script("ROLLBACK"));
        }
        let expected: BTreeSet<String> = made?.into_iter().collect();
        let found: BTreeSet<String> = self.script(&objects("'public'::regnamespace"))?.into_iter().collect();
        let gone = expected.difference(&found).map(|one| format!("it lacks: {one}"));
        let more = found.difference(&expected).map(|one| format!("somebody added: {one}"));
        Ok(gone.chain(more).collect())
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

/// Everything in a namespace that decides what can be written there, one line each.
fn objects(namespace: &str) -> String {
    let plain = |text: &str| format!("regexp_replace({text}, '(public|pg_temp(_[0-9]+)?)\\.', '', 'g')");
    let index = plain("pg_get_indexdef(i.indexrelid)");
    let constraint = plain("pg_get_constraintdef(k.oid)");
    let trigger = plain("pg_get_triggerdef(t.oid)");
    let own = format!("c.relnamespace = {namespace} AND c.relname <> 'onus_schema'");
    format!(
        "SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) \
             || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END \
             || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') \
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
             LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum \
             WHERE {own} AND c.relkind IN ('r', 'p', 'v', 'm', 'f'); \
         SELECT 'index ' || {index} FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE {own}; \
         SELECT 'constraint ' || c.relname || '.' || k.conname || ' ' || {constraint} \
             FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE {own} AND k.contype <> 'n'; \
         SELECT 'trigger ' || {trigger} FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
             WHERE {own} AND NOT t.tgisinternal; \
         SELECT 'rule ' || c.relname || '.' || r.rulename FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class \
             WHERE {own}; \
         SELECT 'policy ' || c.relname || '.' || p.polname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid \
             WHERE {own}; \
         SELECT 'row security of ' || c.relname FROM pg_class c WHERE {own} AND c.relrowsecurity"
    )
}
