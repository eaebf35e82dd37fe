//! What a task's specification alone says against a claim of it: a long queue is gone through without reading everything
//! about every task in it (mission D6).
//!
//! Whatever is refused here, `claim` refuses too; what passes here is still decided by `claim`.

use crate::boundary;
use crate::facts::Caller;
use crate::id::{Handle, Role, TaskId};
use crate::identity_map::{self, Policy};
use crate::lane::{self, Occupied};
use crate::refusal::Finding;
use crate::scope::{self, Taken};
use crate::task::Spec;
use std::collections::BTreeMap;

/// Who is at work, as every task of the queue finds it.
#[derive(Debug)]
pub struct Screen<'a> {
    policy: &'a Policy,
    grantee: &'a Caller,
    taken: Vec<Taken>,
    occupied: BTreeMap<Role, Vec<Occupied>>,
}

impl<'a> Screen<'a> {
    pub fn new(
        policy: &'a Policy,
        grantee: &'a Caller,
        live_scopes: &[(TaskId, Handle, Vec<String>)],
        occupied: BTreeMap<Role, Vec<Occupied>>,
    ) -> Screen<'a> {
        Screen { policy, grantee, taken: live_scopes.iter().map(Taken::of).collect(), occupied }
    }

    /// Everything that already stands against an ordinary claim of an open task with this specification.
    pub fn against(&self, spec: &Spec) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Caller::Registered(worker) = self.grantee {
            findings.extend(identity_map::unlisted(self.policy, spec, worker));
        }
        let occupied = spec.role.as_ref().and_then(|role| self.occupied.get(role));
        if let Err(full) = lane::lane(self.policy, spec, occupied.map_or(&[], Vec::as_slice), None) {
            findings.extend(full);
        }
        findings.extend(boundary::scope_findings(self.policy, spec));
        findings.extend(scope::findings_against(&spec.scope, &self.taken));
        findings
    }
}
