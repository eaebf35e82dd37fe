//! Bugs that the simulation must find: a run that finds nothing proves something only if these are found.

use onus_core::time::Now;
use onus_store::error::Result;
use onus_store::port::{Row, Value};
use onus_store::statement::Sql;

/// A bug in the store, or in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeededBug {
    #[default]
    None,
    /// Every ninth commit is acknowledged and does not happen.
    ForgetsCommits,
    /// A request id means nothing: a repeated call is a new one.
    ForgetsRequests,
    /// What a failed transaction had written stays.
    KeepsHalf,
    /// A session that starts is not written down.
    LosesSessions,
    /// Nobody seems to be at work in a role.
    IgnoresLanes,
    /// Nobody seems to hold a path.
    IgnoresScopes,
    /// Every caller passes for a person.
    TakesAllForPeople,
    /// The clock that decides expiry runs twice as fast.
    HurriesTime,
    /// Whatever token is shown, the present holder's is taken.
    TrustsAnyToken,
}

/// In which statement of the store each bug is.
mod name {
    pub(super) const REQUEST: &str = "REQUEST";
    pub(super) const INSERT_REQUEST: &str = "INSERT_REQUEST";
    pub(super) const START_SESSION: &str = "INSERT session";
    pub(super) const OCCUPIED: &str = "OCCUPIED";
    pub(super) const LIVE_SCOPES: &str = "LIVE_SCOPES";
    pub(super) const WORKER: &str = "WORKER";
}

impl SeededBug {
    pub const ALL: [SeededBug; 9] = [
        SeededBug::ForgetsCommits,
        SeededBug::ForgetsRequests,
        SeededBug::KeepsHalf,
        SeededBug::LosesSessions,
        SeededBug::IgnoresLanes,
        SeededBug::IgnoresScopes,
        SeededBug::TakesAllForPeople,
        SeededBug::HurriesTime,
        SeededBug::TrustsAnyToken,
    ];

    pub(super) const fn forgets_commit(self, commits: u32) -> bool {
        matches!(self, SeededBug::ForgetsCommits) && commits.is_multiple_of(9)
    }

    /// A change that is said to be made and is not.
    pub(super) fn swallows(self, sql: &Sql) -> bool {
        match self {
            SeededBug::ForgetsRequests => sql.name == name::INSERT_REQUEST,
            SeededBug::LosesSessions => sql.name == name::START_SESSION,
            _ => false,
        }
    }

    /// An answer that is not what the database said.
    pub(super) fn edited(self, sql: &Sql, rows: Vec<Row>) -> Result<Vec<Row>> {
        match (self, sql.name) {
            (SeededBug::ForgetsRequests, name::REQUEST)
            | (SeededBug::IgnoresLanes, name::OCCUPIED)
            | (SeededBug::IgnoresScopes, name::LIVE_SCOPES) => Ok(Vec::new()),
            (SeededBug::TakesAllForPeople, name::WORKER) => rows.into_iter().map(as_person).collect(),
            _ => Ok(rows),
        }
    }

    pub(super) fn shifted(self, mut now: Now) -> Now {
        if self == SeededBug::HurriesTime {
            now.tick.millis *= 2;
        }
        now
    }
}

/// A worker's row with another kind.
fn as_person(mut row: Row) -> Result<Row> {
    let handle = row.text()?;
    row.text()?;
    let (tier, role, state, tz) = (row.opt_text()?, row.opt_text()?, row.text()?, row.text()?);
    Ok(Row::new(vec![
        Value::from(handle),
        Value::from("human".to_owned()),
        Value::from(tier),
        Value::from(role),
        Value::from(state),
        Value::from(tz),
    ]))
}
