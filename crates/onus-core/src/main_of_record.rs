//! The main of record: the one main branch that counts for a store, whichever clone asks (mission D11).
//!
//! As long as one clone uses the store it is that clone's local branch. With a second clone a person must name a shared
//! branch; until then nothing counts as landed.

use crate::code::Code;
use crate::event::{CloneJoined, Event, MainOfRecordNamed};
use crate::facts::Caller;
use crate::id::{BranchName, CloneId, Handle};
use crate::refusal::{Finding, Refusal};
use crate::registry::{known, person};
use crate::text::{REASON_MAX, line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A clone that uses the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryClone {
    pub id: CloneId,
    /// The machine, by its own id.
    pub host: String,
    /// Its git directory.
    pub path: String,
}

/// The shared branch that a person named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// The remote as the clones call it.
    pub remote: String,
    pub branch: BranchName,
    /// Where it is, as whoever named it calls it.
    pub url: Option<String>,
    /// Onus answers for it: pushes show a lease there.
    pub guarded: bool,
}

/// What counts as the main branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MainOfRecord {
    /// The local main branch of the one clone there is.
    Local,
    Shared(Named),
    /// Several clones, or settings that speak of a shared branch, and no person has said which one counts.
    Unset {
        clones: Vec<RepositoryClone>,
    },
}

/// What counts, given what was named and who uses the store. Clones that are gone do not count: `is_gone` knows. `wanted` is
/// the remote that the asking clone's settings speak of: a file that anybody may have written, until a person confirms it.
pub fn of(
    named: Option<&Named>,
    wanted: Option<&str>,
    clones: &[RepositoryClone],
    is_gone: impl Fn(&RepositoryClone) -> bool,
) -> MainOfRecord {
    if let Some(named) = named {
        return MainOfRecord::Shared(named.clone());
    }
    let left: Vec<RepositoryClone> = clones.iter().filter(|clone| !is_gone(clone)).cloned().collect();
    if left.len() > 1 || wanted.is_some() {
        MainOfRecord::Unset { clones: left }
    } else {
        MainOfRecord::Local
    }
}

/// Why nothing lands while several clones each have a main branch of their own, or while only a file names a shared one.
pub fn unset(clones: &[RepositoryClone]) -> Finding {
    if let [only] = clones {
        let detail =
            format!("git.remote is set in onus.yaml of {}, and no person has confirmed it", only.place());
        return Finding::new(Code::MainOfRecordUnset, detail)
            .hint("a person runs once, in that clone: onus init");
    }
    let places: Vec<&str> = clones.iter().take(5).map(|clone| clone.place()).collect();
    let detail = format!("{} clones use this store: {}", clones.len(), places.join(", "));
    Finding::new(Code::MainOfRecordUnset, detail).hint("a person runs once: onus init --remote origin")
}

impl RepositoryClone {
    /// As people know it: the checkout rather than its git directory.
    pub fn place(&self) -> &str {
        self.path.strip_suffix("/.git").unwrap_or(&self.path)
    }
}

/// So many clones use one store.
pub const CLONES_MAX: usize = 250;

/// What a clone that begins to use the store says; nothing where the store knows it as it is. `clones` are those that it knows,
/// and `joined_by` is who said where this one is: nobody else but a person says that it is elsewhere, since a takeover bars
/// what is under way there.
pub fn join(
    caller: &Caller,
    clones: &[RepositoryClone],
    joined_by: Option<&Handle>,
    here: &RepositoryClone,
) -> Result<Option<(Handle, Event)>, Refusal> {
    let worker = known(caller)?;
    let by = worker.handle.clone();
    let found = clones.iter().find(|clone| clone.id == here.id);
    if found == Some(here) {
        return Ok(None);
    }
    if let Some(found) = found.filter(|_| !worker.is_human() && joined_by != Some(&by)) {
        let detail = format!("the clone {} is known at {}, and not by {by}", found.id, found.place());
        return Err(Refusal::new(Code::HumanRequired, detail)
            .hint("if it was moved, a person runs once, in that clone: onus init"));
    }
    if found.is_none() && clones.len() >= CLONES_MAX {
        return Err(Refusal::invalid(format!("{CLONES_MAX} clones use this store, and no more may")));
    }
    let path = line("the path of the clone", &here.path, REASON_MAX).map_err(Refusal::invalid)?;
    let host = line("the host of the clone", &here.host, 200).map_err(Refusal::invalid)?;
    Ok(Some((by, CloneJoined { id: here.id.clone(), host, path }.into())))
}

/// What is said when a shared branch is named: where everybody's work goes is a person's to say.
pub fn name(
    caller: &Caller,
    found: Option<&Named>,
    wanted: &Named,
) -> Result<Option<(Handle, Event)>, Refusal> {
    let by = person(caller)?.clone();
    if found == Some(wanted) {
        return Ok(None);
    }
    let remote = line("the remote", &wanted.remote, 200).map_err(Refusal::invalid)?;
    if remote.starts_with('-') || remote.contains(char::is_whitespace) {
        return Err(Refusal::invalid(format!("{} is not the name of a remote", crate::id::shown(&remote)))
            .hint("git remote lists them"));
    }
    let url = wanted.url.as_deref().map(|url| line("the address", url, REASON_MAX)).transpose();
    let event = MainOfRecordNamed {
        remote,
        branch: wanted.branch.clone(),
        url: url.map_err(Refusal::invalid)?,
        guarded: wanted.guarded,
    };
    Ok(Some((by, event.into())))
}

impl From<&CloneJoined> for RepositoryClone {
    fn from(joined: &CloneJoined) -> RepositoryClone {
        RepositoryClone { id: joined.id.clone(), host: joined.host.clone(), path: joined.path.clone() }
    }
}

impl From<&MainOfRecordNamed> for Named {
    fn from(named: &MainOfRecordNamed) -> Named {
        Named {
            remote: named.remote.clone(),
            branch: named.branch.clone(),
            url: named.url.clone(),
            guarded: named.guarded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clone(n: usize, path: &str) -> RepositoryClone {
        RepositoryClone { id: format!("{n:016}").parse().unwrap(), host: "h".into(), path: path.into() }
    }

    fn named() -> Named {
        Named { remote: "origin".into(), branch: "main".parse().unwrap(), url: None, guarded: false }
    }

    #[test]
    fn one_clone_needs_no_name_and_two_do() {
        let (one, two) = (clone(1, "/a/.git"), clone(2, "/b/.git"));
        let both = [one.clone(), two.clone()];
        assert_eq!(of(None, None, &[], |_| false), MainOfRecord::Local);
        assert_eq!(of(None, None, std::slice::from_ref(&one), |_| false), MainOfRecord::Local);
        assert_eq!(of(None, None, &both, |_| false), MainOfRecord::Unset { clones: both.to_vec() });
        assert_eq!(of(None, None, &both, |clone| clone.id == two.id), MainOfRecord::Local);
        assert_eq!(of(Some(&named()), Some("other"), &both, |_| false), MainOfRecord::Shared(named()));
        let only = vec![one];
        assert_eq!(of(None, Some("origin"), &only, |_| false), MainOfRecord::Unset { clones: only.clone() });
        assert!(unset(&only).detail.contains("no person has confirmed it"));
        assert_eq!(unset(&both).detail, "2 clones use this store: /a, /b");
    }
}
