//! The main of record as this clone sees it: which branch counts, and where its last fetch left it (mission D11).

use crate::Onus;
use crate::idempotent_admin::Asker;
use crate::registry::record;
use crate::remote::calls;
use crate::submit::unexpected;
use onus_core::code::Code;
use onus_core::id::BranchName;
use onus_core::main_of_record::{self, MainOfRecord, Named, RepositoryClone};
use onus_core::refusal::Refusal;
use onus_host::refs::{self, History};
use onus_host::repository::Repo;
use onus_host::{clone_id, identity_map, ref_file};
use onus_store::port::Outcome;
use onus_store::{landed, load};

/// What was named, and who uses the store.
pub type ClonesAndMain = (Option<Named>, Vec<RepositoryClone>);

/// The main branch that counts, seen from one clone.
#[derive(Debug, Clone)]
pub struct Trunk {
    pub repo: Repo,
    /// The full name of the local main branch.
    pub local: String,
    /// Where work is rebased to: the local branch, or what was last fetched of the shared one.
    pub refname: String,
    pub shared: Option<Shared>,
    /// The clones among which nobody has named it.
    pub rivals: Vec<RepositoryClone>,
}

#[derive(Debug, Clone)]
pub struct Shared {
    pub remote: String,
    pub branch: String,
    pub guarded: bool,
}

impl Trunk {
    /// As people call it: `main`, `origin/main`.
    pub fn name(&self) -> String {
        match &self.shared {
            Some(shared) => format!("{}/{}", shared.remote, shared.branch),
            None => self.branch().to_owned(),
        }
    }

    pub fn branch(&self) -> &str {
        match &self.shared {
            Some(shared) => &shared.branch,
            None => self.local.trim_start_matches("refs/heads/"),
        }
    }

    /// Where it is now, after a look at the shared repository. A shared repository that has no such branch yet begins
    /// with the local one.
    pub fn fetched(&self) -> Result<String, Refusal> {
        match &self.shared {
            None => self.local_tip(),
            Some(shared) => match refs::fetch(&self.repo, &shared.remote, &shared.branch)? {
                Some(tip) => Ok(tip),
                None => self.local_tip(),
            },
        }
    }

    pub(crate) fn local_tip(&self) -> Result<String, Refusal> {
        match ref_file::commit(&self.repo, &self.local)? {
            Some(tip) => Ok(tip),
            None => History::at(&self.repo.common_dir).commit(&self.local),
        }
    }

    /// Where it was when somebody last looked.
    pub fn seen(&self) -> Result<String, Refusal> {
        match ref_file::commit(&self.repo, &self.refname)? {
            Some(tip) => Ok(tip),
            None => self.local_tip(),
        }
    }
}

impl Onus {
    /// What was named as the main of record, and which clones use the store.
    pub fn known_clones(&mut self) -> Result<ClonesAndMain, Refusal> {
        if let Some(answer) = self.remote(|| calls::KnownClones {})? {
            return Ok(answer);
        }
        self.ask(|tx| Ok((load::workspace(tx)?.main, landed::clones(tx)?)))
    }

    /// The main branch that counts. Nothing is fetched.
    pub fn trunk(&mut self) -> Result<Trunk, Refusal> {
        let (repo, local) = self.main_of_repository()?;
        let (named, mut clones) = self.known_clones()?;
        // A clone that asks is one that uses the store, though nobody has said so yet: a server's, for one.
        if named.is_none()
            && let Ok(here) = clone_id::here(&repo)
            && !clones.iter().any(|clone| clone.id == here.id)
        {
            clones.push(here);
        }
        let wanted = self.settings.git.remote.as_deref();
        let (shared, rivals) = match main_of_record::of(named.as_ref(), wanted, &clones, clone_id::is_gone) {
            MainOfRecord::Local => (None, Vec::new()),
            MainOfRecord::Unset { clones } => (None, clones),
            MainOfRecord::Shared(named) => (Some(resolved(&repo, &named)?), Vec::new()),
        };
        let refname = match &shared {
            Some(shared) => refs::tracking_ref(&shared.remote, &shared.branch),
            None => local.clone(),
        };
        Ok(Trunk { repo, local, refname, shared, rivals })
    }

    /// What the settings of this clone name.
    fn named_here(&self, local: &str) -> Option<Named> {
        let remote = self.settings.git.remote.clone()?;
        let branch = local.trim_start_matches("refs/heads/").parse().ok()?;
        Some(Named { remote, branch, url: None, guarded: false })
    }

    /// This clone uses the store from now on, and what its settings name as the main of record counts for all where a person
    /// asks, unless something is named already. Asked by whatever begins or lands work; the second time it changes nothing.
    pub fn join_clone<'a>(&mut self, asker: impl Into<Asker<'a>>) -> Result<(), Refusal> {
        let Some(repo) = self.place.repo.clone() else {
            return Ok(());
        };
        let (named, clones) = self.known_clones()?;
        let asker = asker.into();
        let mut here = clone_id::here(&repo)?;
        let known = clones.iter().find(|clone| clone.id == here.id);
        if known.is_some_and(|known| known.path != here.path && !clone_id::is_gone(known)) {
            // A copy has the name of what it was copied from.
            here.id = clone_id::replace(&repo)?;
        }
        if !clones.contains(&here) {
            self.add_clone(asker, &here)?;
        }
        if named.is_none()
            && let Some(local) = identity_map::main_branch(&repo, &self.settings)?
            && let Some(wanted) = self.named_here(&local)
        {
            match self.name_main_of_record(asker, &wanted) {
                // A person's next call does it; until then `merge` says so.
                Err(refusal) if refusal.code == Code::HumanRequired => {}
                named => named?,
            }
        }
        Ok(())
    }

    pub(crate) fn add_clone<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        here: &RepositoryClone,
    ) -> Result<(), Refusal> {
        let asker = Asker { request: None, ..asker.into() };
        self.administer(asker, &calls::AddClone { here: here.clone() }, |tx, caller| {
            let clones = landed::clones(tx)?;
            let is_elsewhere = clones.iter().any(|clone| clone.id == here.id && clone != here);
            let joined_by = if is_elsewhere { landed::joined_by(tx, &here.id)? } else { None };
            match main_of_record::join(caller, &clones, joined_by.as_ref(), here)? {
                None => Ok(Outcome::Rollback(())),
                Some((by, event)) => {
                    landed::put_clone(tx, here)?;
                    record(tx, &by, event)?;
                    Ok(Outcome::Commit(()))
                }
            }
        })
    }

    /// Says which shared branch counts for every clone and server of the store.
    pub fn name_main_of_record<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        wanted: &Named,
    ) -> Result<(), Refusal> {
        let asker = Asker { request: None, ..asker.into() };
        self.administer(asker, &calls::NameMainOfRecord { wanted: wanted.clone() }, |tx, caller| {
            let found = load::workspace(tx)?.main;
            match main_of_record::name(caller, found.as_ref(), wanted)? {
                None => Ok(Outcome::Rollback(())),
                Some((by, event)) => {
                    landed::put_main(tx, wanted)?;
                    record(tx, &by, event)?;
                    Ok(Outcome::Commit(()))
                }
            }
        })
    }

    /// The shared branch of the bare repository that this is, guarded by its hooks. Clones know it by its address, else
    /// by the name that git gives to where a clone came from.
    pub fn shared_here(&self) -> Result<Option<Named>, Refusal> {
        let Some(repo) = self.place.repo.as_ref().filter(|repo| repo.root.is_none()) else {
            return Ok(None);
        };
        let main = match identity_map::main_branch(repo, &self.settings)? {
            Some(main) => Some(main),
            None => refs::head_branch(repo),
        };
        let branch = main.and_then(|main| main.trim_start_matches("refs/heads/").parse().ok());
        let url = repo.common_dir.to_str().map(str::to_owned);
        Ok(branch.map(|branch| Named { remote: "origin".to_owned(), branch, url, guarded: true }))
    }

    /// The shared branch that a person names by one of this clone's remotes.
    pub fn remote_to_name(&self, remote: &str) -> Result<Named, Refusal> {
        let (repo, local) = self.main_of_repository()?;
        let url = refs::remote_url(&repo, remote)?.ok_or_else(|| no_remote(remote))?;
        let branch: BranchName = local.trim_start_matches("refs/heads/").parse().map_err(unexpected)?;
        Ok(Named { remote: remote.to_owned(), branch, url: Some(without_secret(&url)), guarded: false })
    }
}

/// The remote under which this clone knows the shared repository: by the same address, else by the same name, else the
/// only one there is.
fn resolved(repo: &Repo, named: &Named) -> Result<Shared, Refusal> {
    let branch = named.branch.to_string();
    let is_named = |url: &str| named.url.as_deref().is_none_or(|wanted| without_secret(url) == wanted);
    if refs::is_remote_at(repo, &named.remote, is_named)? {
        return Ok(Shared { remote: named.remote.clone(), branch, guarded: named.guarded });
    }
    let remotes = refs::remotes(repo)?;
    let by_address =
        |(_, url): &&(String, String)| named.url.as_deref() == Some(without_secret(url).as_str());
    let found = remotes
        .iter()
        .find(by_address)
        .or_else(|| remotes.iter().find(|(remote, _)| *remote == named.remote))
        .or_else(|| remotes.first().filter(|_| remotes.len() == 1));
    let (remote, _) = found.ok_or_else(|| {
        let url = named.url.as_deref().unwrap_or("URL");
        no_remote(&named.remote).hint(format!("git remote add {} {url}", named.remote))
    })?;
    Ok(Shared { remote: remote.clone(), branch, guarded: named.guarded })
}

fn no_remote(remote: &str) -> Refusal {
    Refusal::new(
        Code::MainOfRecordUnset,
        format!("this clone has no remote {}", onus_core::id::shown(remote)),
    )
    .hint("git remote lists what there is")
}

/// An address without a password in it: the store keeps no secret of git's.
fn without_secret(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_without_its_secret() {
        for (given, kept) in [
            ("https://ada:secret@host/a.git", "https://host/a.git"),
            ("https://host/a.git", "https://host/a.git"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(without_secret(given), kept);
        }
    }
}
