//! Landing by pull request (`git.land: pr`): what `complete` offers, and how the task waits for it (mission E8).

use super::{Attempt, Merge, MergeCheckView, Site, step_envelope};
use crate::Onus;
use crate::finish::{Finish, Landing};
use crate::landing::forget_lease;
use crate::main_of_record::Trunk;
use crate::progress::Silent;
use crate::submit::Target;
use onus_core::code::Code;
use onus_core::command::{Command, WhileBlocked};
use onus_core::id::Handle;
use onus_core::lease::Token;
use onus_core::mirror::Undelivered;
use onus_core::refusal::Refusal;
use onus_core::task::{Blocker, State, Task};
use onus_core::text::{Text, shortened};
use onus_host::mirror::{PullOffer, PullRequest, PullRequests, PullState};
use onus_host::{lease_file, ref_file, repository};
use std::fmt::Write as _;
use std::path::Path;

/// What a task that waits for its pull request is blocked on, before the address.
const WAITS: &str = "pull request ";
/// What is said of work whose holder said nothing.
const MERGED: &str = "its pull request is merged";
/// So much of an address is kept.
const URL_MAX: usize = 400;

/// Whether a task waits for its pull request, under a lease that its holder keeps.
pub fn is_offered(task: &Task) -> bool {
    let State::Blocked { on: Blocker::External(on), held: Some(_) } = &task.state else { return false };
    on.starts_with(WAITS)
}

impl Onus {
    /// Completes what waits for a pull request that is merged by now, in its holder's name: the lease lies in the workstation,
    /// and that belongs to this clone. What stands against any of them, beside that it still waits, is told.
    pub fn look_after_offers(&mut self) -> Result<Vec<Refusal>, Refusal> {
        let mut failed = Vec::new();
        if self.settings.git.pull_requests.is_none() {
            return Ok(failed);
        }
        for held in self.held()?.into_iter().filter(|held| held.state == "blocked") {
            let task = self.task(&held.task)?;
            let found = self.find_workstation(&held.workstation)?;
            let found = found.filter(|found| is_offered(&task) && self.is_in_this_clone(found));
            let Some(path) = found.and_then(|found| found.path) else { continue };
            let leases = repository::lease_dir_of(Path::new(&path))?;
            let Some(leases) = leases else { continue };
            if let Some(token) = lease_file::load(&leases, &task.id, &held.assignee)? {
                match self.complete_offered(&task, &held.assignee, &token) {
                    Ok(()) => forget_lease(Path::new(&path), &task.id, &held.assignee)?,
                    Err(refusal) if refusal.code == Code::NotMerged => {}
                    Err(refusal) => failed.push(refusal.task(&task.id)),
                }
            }
        }
        Ok(failed)
    }

    fn complete_offered(&mut self, task: &Task, holder: &Handle, token: &str) -> Result<(), Refusal> {
        let token: Token = token.parse().map_err(Refusal::invalid)?;
        let request = format!("offered-{}-{}", task.id, task.version).parse().map_err(Refusal::invalid)?;
        let said = self.last_handoff(&task.id)?.and_then(|last| last.handoff).and_then(|last| last.summary);
        let resolution = Text::new(said.unwrap_or_else(|| MERGED.to_owned()));
        let merge = Merge {
            request: &request,
            actor: Some(holder),
            token: Some(&token),
            task: &task.id,
            adopt: &[],
            root_cause: None,
        };
        let call = Finish { merge, resolution: Some(&resolution), landing: Landing::Merge };
        self.finish(&call, &mut Silent).map(drop)
    }

    fn pull_requests(&self) -> Result<Option<PullRequests>, Refusal> {
        let settings = self.settings.git.pull_requests.as_ref();
        settings.map(|settings| PullRequests::new(settings, &self.settings_root())).transpose()
    }

    /// The branch is pushed: opens its pull request or makes it say what is offered now, and lets the task wait for it. Told as
    /// a refusal: nothing has landed yet.
    pub(super) fn offer(
        &mut self,
        attempt: &Attempt<'_>,
        task: &Task,
        site: &Site,
        base: &str,
        (commit, checks): (&str, &[MergeCheckView]),
    ) -> Result<Refusal, Refusal> {
        let (id, main) = (&task.id, attempt.trunk.name());
        let Some(mut there) = self.pull_requests()? else {
            let detail = format!("{} is pushed and not yet in {main}", site.branch);
            return Ok(Refusal::new(Code::NotMerged, detail)
                .task(id)
                .hint(format!("merge its pull request, then: onus complete {id} --resolution TEXT")));
        };
        let (title, body) = (format!("{id}: {}", task.spec.title), self.offer_text(task, commit, checks)?);
        let offer = PullOffer { branch: &site.branch, base, title: &title, body: &body };
        let made = there.offer(&offer).map_err(|why| not_offered(&why, task, &site.branch))?;
        self.wait_for(attempt.call, task, &made)?;
        Ok(waiting(task, &made.url))
    }

    /// What the reviewer reads there: the handoff, and what Onus ran.
    fn offer_text(
        &mut self,
        task: &Task,
        commit: &str,
        checks: &[MergeCheckView],
    ) -> Result<String, Refusal> {
        let mut text = format!("Task {}", task.id);
        if let Some(held) = task.assignment() {
            let _ = write!(text, ", by {} in {}", held.assignee, held.workstation);
        }
        text.push_str(".\n");
        if let Some(handoff) = self.last_handoff(&task.id)?.and_then(|view| view.handoff) {
            let _ = write!(text, "\n{}\n", handoff.markdown());
        }
        let _ = write!(text, "\nChecks that Onus ran at {commit}:\n\n");
        for MergeCheckView { command, exit_code, took_ms } in checks {
            let took = took_ms.map(|took| format!(" in {took} ms")).unwrap_or_default();
            let exit =
                exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
            let _ = writeln!(text, "- `{}`: {exit}{took}", command.replace('`', "'"));
        }
        if checks.is_empty() {
            text.push_str("none was asked for\n");
        }
        Ok(text)
    }

    fn wait_for(&mut self, call: &Merge<'_>, task: &Task, made: &PullRequest) -> Result<(), Refusal> {
        let on = Blocker::External(format!("{WAITS}{}", shortened(&made.url, URL_MAX)));
        let block = Command::Block { on, lease: WhileBlocked::KeepLease, note: None, handoff: None };
        let version = self.task(&task.id)?.version;
        self.submit(&step_envelope(call, &format!("offered {version}"), block)?, &Target::Named).map(drop)
    }

    /// A task that waits for its pull request goes on once that is decided, or when more was committed.
    pub(crate) fn look_after_offer(&mut self, call: &Merge<'_>, task: &Task) -> Result<(), Refusal> {
        let State::Blocked { on: Blocker::External(on), held: Some(held) } = &task.state else {
            return Ok(());
        };
        let (Some(url), Some(mut there)) = (on.strip_prefix(WAITS), self.pull_requests()?) else {
            return Ok(());
        };
        let found = self.find_workstation(&held.workstation)?;
        let Some((branch, path)) = found.and_then(|found| found.branch.zip(found.path)) else {
            return Ok(());
        };
        let base = base_of(&self.trunk()?);
        let asked = there.find(branch.as_str(), &base);
        let seen = asked.map_err(|why| not_offered(&why, task, branch.as_str()))?;
        let tip = ref_file::head_of(Path::new(&path)).commit;
        let is_same = |seen: &PullRequest| seen.head.is_none() || seen.head == tip;
        if let Some(seen) = seen.as_ref().filter(|seen| seen.state == PullState::Open && is_same(seen)) {
            return Err(waiting(task, &seen.url));
        }
        let name = format!("decided {}", task.version);
        self.submit(&step_envelope(call, &name, Command::Unblock)?, &Target::Named)?;
        match seen.map(|seen| seen.state) {
            Some(PullState::Closed) => {
                let detail = format!("{url} was closed without being merged");
                Err(Refusal::new(Code::NotMerged, detail).task(&task.id).hint(format!(
                    "change the work; onus complete {} --resolution TEXT offers it anew",
                    task.id
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The branch that pull requests are merged into.
fn base_of(trunk: &Trunk) -> String {
    let shared = trunk.shared.as_ref().map(|shared| shared.branch.clone());
    shared.unwrap_or_else(|| super::short(&trunk.local).to_owned())
}

fn waiting(task: &Task, url: &str) -> Refusal {
    Refusal::new(Code::NotMerged, format!("{} waits for its pull request {url}", task.id))
        .task(&task.id)
        .hint(format!("once it is merged there: onus complete {} --resolution TEXT", task.id))
}

fn not_offered(why: &Undelivered, task: &Task, branch: &str) -> Refusal {
    let words = match why {
        Undelivered::Away(words) | Undelivered::Silent(words) | Undelivered::Refused(words) => words.as_str(),
        _ => "it knows nothing of it any more",
    };
    Refusal::new(Code::NotMerged, format!("{branch} is pushed, and its pull request is in doubt: {words}"))
        .task(&task.id)
        .hint(format!("mend git.pull_requests or its key, then: onus complete {} --resolution TEXT", task.id))
}
