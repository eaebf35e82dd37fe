//! The schema's versions. However many servers start at once, one of them changes the schema, in one transaction.

use super::address::Address;
use super::pipeline::Pipeline;
use crate::error::{Result, StoreError};

/// Each with the number it leads to; the numbers are SQLite's.
const MIGRATIONS: &[(i64, &str)] = &[
    (5, include_str!("../../schema/postgres/005_team.sql")),
    (6, include_str!("../../schema/postgres/006_report.sql")),
    (7, include_str!("../../schema/postgres/007_milestone.sql")),
    (8, include_str!("../../schema/postgres/008_queue.sql")),
    (9, include_str!("../../schema/postgres/009_answer.sql")),
    (10, include_str!("../../schema/postgres/010_road.sql")),
    (11, include_str!("../../schema/postgres/011_outside.sql")),
    (12, include_str!("../../schema/postgres/012_mirror.sql")),
    (13, include_str!("../../schema/postgres/013_output.sql")),
    (14, include_str!("../../schema/postgres/014_constraint.sql")),
    (15, include_str!("../../schema/postgres/015_search.sql")),
    (16, include_str!("../../schema/postgres/016_limits.sql")),
    (17, include_str!("../../schema/postgres/017_views.sql")),
    (18, include_str!("../../schema/postgres/018_parts.sql")),
];

/// The text that makes all tables.
pub(super) fn whole() -> String {
    MIGRATIONS.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(";\n")
}

pub(super) const LATEST: i64 = crate::tables::SCHEMA;

/// Any number that no other program uses: whoever changes the schema holds the lock of this name.
const LOCK: i64 = 0x6f6e_7573;

/// The schema's number; none where there is no store yet.
pub(super) fn version(pipeline: &mut Pipeline) -> Result<Option<i64>> {
    if pipeline.script("SELECT 1 WHERE to_regclass('public.onus_schema') IS NOT NULL")?.is_empty() {
        return Ok(None);
    }
    match pipeline.script("SELECT version FROM public.onus_schema")?.first() {
        None => Err(StoreError::Corrupt("the schema has no version".into())),
        Some(text) => match text.parse() {
            Ok(version) => Ok(Some(version)),
            Err(_) => Err(StoreError::Corrupt(format!("the schema's version is {text}"))),
        },
    }
}

pub(super) fn newer(version: i64) -> StoreError {
    StoreError::Unavailable {
        detail: format!("the database has schema {version}; this program knows up to {LATEST}"),
        hint: Some("install a newer onus".into()),
    }
}

/// Brings the schema up to date. Harmless when done twice or at once.
pub(super) fn run(pipeline: &mut Pipeline, address: &Address) -> Result<()> {
    run_all(pipeline, address, MIGRATIONS)
}

fn run_all(pipeline: &mut Pipeline, address: &Address, migrations: &[(i64, &str)]) -> Result<()> {
    pipeline.script(&format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})"))?;
    let done = steps(pipeline, address, migrations);
    match done {
        Ok(()) => pipeline.commit(),
        Err(error) => {
            pipeline.roll_back("ROLLBACK")?;
            Err(error)
        }
    }
}

fn steps(pipeline: &mut Pipeline, address: &Address, migrations: &[(i64, &str)]) -> Result<()> {
    // Read again, behind the lock: another may have been first.
    let seen = version(pipeline)?;
    let latest = migrations.last().map_or(0, |(number, _)| *number);
    match seen {
        Some(version) if version > latest => return Err(newer(version)),
        None if !pipeline.script("SELECT 1 WHERE to_regclass('public.task') IS NOT NULL")?.is_empty() => {
            return Err(StoreError::Unavailable {
                detail: format!("the database {} has tables of another program", address.database()),
                hint: Some("choose an empty database".into()),
            });
        }
        None => {
            pipeline.script("CREATE TABLE public.onus_schema (version BIGINT NOT NULL); INSERT INTO public.onus_schema VALUES (0)")?;
        }
        Some(_) => {}
    }
    for (number, text) in migrations.iter().filter(|(number, _)| *number > seen.unwrap_or(0)) {
        pipeline.script(text)?;
        pipeline.script(&format!("UPDATE public.onus_schema SET version = {number}"))?;
    }
    Ok(())
}
