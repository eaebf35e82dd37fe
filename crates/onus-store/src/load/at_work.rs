//! Who is at work where, as the commands of one transaction find it.
//!
//! A claim asks which scopes and lanes are taken. Where many claims go together each of them changes the answer, so it is
//! read once, and kept in step with what they do.

use super::grant::{LIVE_SCOPES, OCCUPIED};
use crate::codec;
use crate::error::Result;
use crate::port::Tx;
use onus_core::id::{Handle, Role, TaskId, WorkstationName};
use onus_core::lane::Occupied;
use onus_core::task::Task;
use std::collections::BTreeMap;

/// The scopes that a holder works in.
type Scoped = (TaskId, Handle, Vec<String>);

/// Who is at work, by the role of the task.
type InRoles = BTreeMap<Role, Vec<Occupied>>;

/// The live assignments, each by the workstation that has no other. What nobody asked about is not read.
#[derive(Debug, Default)]
pub struct AtWork {
    scopes: Option<BTreeMap<WorkstationName, Scoped>>,
    roles: Option<BTreeMap<WorkstationName, (Role, Occupied)>>,
}

impl AtWork {
    /// The scopes of all tasks but one.
    pub(super) fn scopes_but(&mut self, tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Scoped>> {
        let known = match &mut self.scopes {
            Some(known) => known,
            none => none.insert(scopes(tx)?),
        };
        Ok(known.values().filter(|(other, ..)| other != task).cloned().collect())
    }

    /// Who is at work in a role, on any task but one.
    pub(super) fn in_role_but(
        &mut self,
        tx: &mut dyn Tx,
        role: &Role,
        task: &TaskId,
    ) -> Result<Vec<Occupied>> {
        let known = match &mut self.roles {
            Some(known) => known,
            none => none.insert(roles(tx)?),
        };
        let others = known.values().filter(|(own, occupied)| own == role && occupied.task != *task);
        Ok(others.map(|(_, occupied)| occupied.clone()).collect())
    }

    /// Everybody who is at work: the scopes that are taken, and who works in which role.
    pub fn everybody(&mut self, tx: &mut dyn Tx) -> Result<(Vec<Scoped>, InRoles)> {
        let taken = match &mut self.scopes {
            Some(known) => known,
            none => none.insert(scopes(tx)?),
        };
        let working = match &mut self.roles {
            Some(known) => known,
            none => none.insert(roles(tx)?),
        };
        let mut by_role = InRoles::new();
        for (role, occupied) in working.values() {
            by_role.entry(role.clone()).or_default().push(occupied.clone());
        }
        Ok((taken.values().cloned().collect(), by_role))
    }

    /// A command was carried out, and left its task like this.
    pub fn changed(&mut self, task: &Task) {
        let held = task.assignment();
        if let Some(scopes) = &mut self.scopes {
            scopes.retain(|_, (other, ..)| *other != task.id);
            if let Some(held) = held.filter(|_| !task.spec.scope.is_empty()) {
                let scoped = (task.id.clone(), held.assignee.clone(), task.spec.scope.clone());
                scopes.insert(held.workstation.clone(), scoped);
            }
        }
        if let Some(roles) = &mut self.roles {
            roles.retain(|_, (_, occupied)| occupied.task != task.id);
            if let (Some(held), Some(role)) = (held, &task.spec.role) {
                let lane = held.lane.or(task.spec.lane).unwrap_or(1);
                let occupied = Occupied { task: task.id.clone(), holder: held.assignee.clone(), lane };
                roles.insert(held.workstation.clone(), (role.clone(), occupied));
            }
        }
    }
}

fn scopes(tx: &mut dyn Tx) -> Result<BTreeMap<WorkstationName, Scoped>> {
    let rows = tx.rows(&LIVE_SCOPES {})?;
    let decode = |mut row: crate::port::Row| {
        Ok((row.parsed()?, (row.parsed()?, row.parsed()?, codec::json_list(row.opt_text()?)?)))
    };
    rows.into_iter().map(decode).collect()
}

fn roles(tx: &mut dyn Tx) -> Result<BTreeMap<WorkstationName, (Role, Occupied)>> {
    let rows = tx.rows(&OCCUPIED {})?;
    let decode = |mut row: crate::port::Row| {
        let (workstation, task, holder) = (row.parsed()?, row.parsed()?, row.parsed()?);
        let role = row.parsed()?;
        Ok((workstation, (role, Occupied { task, holder, lane: row.int()? })))
    };
    rows.into_iter().map(decode).collect()
}
