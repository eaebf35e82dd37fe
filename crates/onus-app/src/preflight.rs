//! `preflight`: can work in a role begin here, now? (mission D6)

use crate::Onus;
use crate::route::{Subject, no_task};
use onus_core::code::Code;
use onus_core::facts::Place;
use onus_core::gate;
use onus_core::id::{Handle, Role, TaskId, WorkstationName};
use onus_core::identity_map::{FILE, Policy};
use onus_core::probe::ProbeResult;
use onus_core::refusal::{Finding, Refusal};
use onus_core::registry::known;
use onus_core::task::StateName;
use onus_core::worker::{Worker, WorkerState};
use onus_core::workstation::{Workstation, WorkstationKind};
use onus_host::hook::{self, HookState, Site};
use onus_host::{identity_map, worktree};
use onus_store::read::queue::Filter;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// Ready tasks that are named.
const NAMED: i64 = 5;

/// The answer to `preflight`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PreflightView {
    pub role: Role,
    pub worker: Handle,
    pub workstation: Option<WorkstationName>,
    pub checks: Vec<PreflightCheckView>,
    /// The first ready tasks of the role.
    pub ready: Vec<TaskId>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PreflightCheckView {
    pub name: &'static str,
    pub verdict: PreflightVerdict,
    pub detail: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The code of what failed.
    pub code: Option<Code>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreflightVerdict {
    Ok,
    Warning,
    /// Work cannot begin before that is mended.
    Failed,
}

impl PreflightView {
    /// The refusal that a front end gives; none when work can begin.
    pub fn refusal(&self) -> Option<Refusal> {
        let failed = self.checks.iter().filter(|check| check.verdict == PreflightVerdict::Failed);
        let finding = |check: &PreflightCheckView| {
            Some(Finding::new(check.code?, check.detail.clone()).hinted(check.hint.clone()))
        };
        Refusal::from_findings(failed.filter_map(finding).collect())
    }
}

/// Who wants to begin what, and where.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub actor: Option<&'a Handle>,
    pub role: &'a Role,
    pub workstation: Option<&'a WorkstationName>,
    /// The workstation whose directory contains the current one.
    pub here: Option<&'a WorkstationName>,
    /// The program that the hooks should run.
    pub program: Option<&'a Path>,
}

impl Onus {
    /// Looks at everything that a claim in this role would meet. The probes run now, and what they say is kept.
    pub fn preflight(&mut self, start: &Start<'_>) -> Result<PreflightView, Refusal> {
        let caller = self.caller(start.actor)?;
        let worker = known(&caller)?.clone();
        let policy = self.policy()?;
        let mut checks = Checks::default();
        checks.map(&policy, start.role, self.place.repo.is_some());
        checks.worker(&worker, &policy, start.role);
        let name = self.claimed_place(start, &policy, &worker)?;
        let place = self.probed(&worker.handle, name.as_ref(), &mut checks)?;
        checks.workstation(&place, &worker, &no_task()?);
        if let Some(workstation) = &place.found {
            self.branch(workstation, &mut checks)?;
        }
        self.hooks(start.program, &mut checks)?;
        self.leases(&worker, &mut checks)?;
        let ready = self.next(start.role, &mut checks)?;
        Ok(PreflightView {
            role: start.role.clone(),
            worker: worker.handle,
            workstation: name,
            checks: checks.0,
            ready,
        })
    }

    /// Where a claim of the role's next task would go: the named one, else where the map sends this worker with that very
    /// task, else where it stands.
    fn claimed_place(
        &mut self,
        start: &Start<'_>,
        policy: &Policy,
        worker: &Worker,
    ) -> Result<Option<WorkstationName>, Refusal> {
        if let Some(named) = start.workstation {
            return Ok(Some(named.clone()));
        }
        let filter = Filter { role: Some(start.role.clone()), ..Filter::default() };
        let next = self.ready(&filter, 1)?.tasks.into_iter().next();
        let told = next.map(|task| self.explain(&Subject::Task(task.id), Some(&worker.handle), start.here));
        let place = told.transpose()?.and_then(|view| view.caller).and_then(|caller| caller.workstation);
        Ok(place.or_else(|| mapped(policy, worker).or(start.here).cloned()))
    }

    /// The workstation as its probes leave it.
    fn probed(
        &mut self,
        by: &Handle,
        asked: Option<&WorkstationName>,
        checks: &mut Checks,
    ) -> Result<Place, Refusal> {
        let mut place = Place { asked: asked.cloned(), ..Place::default() };
        let rows = self.workstation_rows()?;
        let Some(row) = rows.into_iter().find(|row| Some(&row.workstation.name) == asked) else {
            return Ok(place);
        };
        let mut workstation = row.workstation;
        for probed in self.run_all_probes(std::slice::from_ref(&workstation)) {
            let kept = self.record_if_own(Some(by), &probed.name, &probed.results)?;
            workstation = kept.unwrap_or(workstation);
            let all = probed.results.len();
            if probed.results.iter().all(ProbeResult::passed) {
                checks.ok("probes", format!("{all} of {all} passed in {}", probed.name));
            }
            place.probes = probed.results;
        }
        Ok(Place { found: Some(workstation), holds: row.holds, ..place })
    }

    fn branch(&self, workstation: &Workstation, checks: &mut Checks) -> Result<(), Refusal> {
        let (Some(directory), Some(repo)) = (&workstation.path, &self.place.repo) else { return Ok(()) };
        let Some(main) = identity_map::main_branch(repo, &self.settings)? else { return Ok(()) };
        let short = main.trim_start_matches("refs/heads/");
        let survey = match worktree::survey(repo, Path::new(directory), &main) {
            Ok(survey) => survey,
            Err(refusal) => {
                let hint = refusal.hint.unwrap_or_else(|| format!("look at {directory}"));
                checks.warning("branch", refusal.detail, hint);
                return Ok(());
            }
        };
        let name = &workstation.name;
        let on = survey.branch.as_deref().map_or("no branch", |it| it.trim_start_matches("refs/heads/"));
        match &workstation.branch {
            Some(wanted) if wanted.as_str() != on => {
                let detail = format!("{name} is registered for {wanted} and stands on {on}");
                let hint = format!("git -C {directory} switch {wanted}");
                checks.failed("branch", Finding::new(Code::WorkstationNotReady, detail).hint(hint));
            }
            _ if survey.behind > 0 => {
                let detail = format!("{on} lacks {} commits of {short}", survey.behind);
                let hint = match workstation.kind {
                    WorkstationKind::Worktree => format!("onus workstation sync {name}"),
                    _ => format!("git -C {directory} rebase {short}"),
                };
                checks.warning("branch", detail, hint);
            }
            _ => checks.ok("branch", format!("{on} has everything of {short}")),
        }
        if survey.dirty.count > 0 {
            let detail = format!("{} changed or new files in {directory}", survey.dirty.count);
            checks.warning("tree", detail, "commit them, or put them aside: git stash".to_owned());
        } else {
            checks.ok("tree", "clean".to_owned());
        }
        Ok(())
    }

    fn hooks(&self, program: Option<&Path>, checks: &mut Checks) -> Result<(), Refusal> {
        let (Some(repo), Some(program)) = (&self.place.repo, program) else { return Ok(()) };
        let hooks = hook::status(repo, Site::Work, program)?;
        let odd: Vec<String> = hooks
            .iter()
            .filter(|hook| hook.state != HookState::Current)
            .map(|hook| format!("{} {}", hook.name, hook.state.name()))
            .collect();
        if odd.is_empty() {
            checks.ok("hooks", "installed".to_owned());
        } else {
            checks.warning("hooks", odd.join(", "), "onus hook install".to_owned());
        }
        Ok(())
    }

    fn leases(&mut self, worker: &Worker, checks: &mut Checks) -> Result<(), Refusal> {
        let rows = self.workers(Some(&worker.handle))?.workers;
        let held: Vec<String> = rows.iter().flat_map(|row| &row.holds).map(ToString::to_string).collect();
        match held.first() {
            None => checks.ok("leases", format!("{} holds nothing", worker.handle)),
            Some(first) => {
                let detail = format!("{} holds {}", worker.handle, held.join(" "));
                checks.warning("leases", detail, format!("go on with it: onus show {first}"));
            }
        }
        Ok(())
    }

    fn next(&mut self, role: &Role, checks: &mut Checks) -> Result<Vec<TaskId>, Refusal> {
        let filter = Filter { role: Some(role.clone()), ..Filter::default() };
        let tasks = self.ready(&filter, NAMED)?.tasks;
        let ids: Vec<TaskId> = tasks.into_iter().map(|task| task.id).collect();
        if ids.is_empty() {
            let state = StateName::Open.name();
            checks.warning(
                "tasks",
                format!("no task of {role} is ready"),
                format!("onus list --role {role} --state {state}"),
            );
        } else {
            let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
            checks.ok("tasks", format!("ready for {role}: {}", names.join(" ")));
        }
        Ok(ids)
    }
}

/// The first workstation that the map names for this worker.
fn mapped<'a>(policy: &'a Policy, worker: &Worker) -> Option<&'a WorkstationName> {
    let rules = policy.in_force().into_iter().flat_map(|in_force| &in_force.map.routing);
    rules
        .flat_map(|rule| rule.in_order())
        .find(|(agent, ..)| **agent == worker.handle)
        .map(|(_, place, _)| place)
}

#[derive(Default)]
struct Checks(Vec<PreflightCheckView>);

impl Checks {
    fn push(
        &mut self,
        name: &'static str,
        verdict: PreflightVerdict,
        detail: String,
        hint: Option<String>,
        code: Option<Code>,
    ) {
        self.0.push(PreflightCheckView { name, verdict, detail, hint, code });
    }

    fn ok(&mut self, name: &'static str, detail: String) {
        self.push(name, PreflightVerdict::Ok, detail, None, None);
    }

    fn warning(&mut self, name: &'static str, detail: String, hint: String) {
        self.push(name, PreflightVerdict::Warning, detail, Some(hint), None);
    }

    fn failed(&mut self, name: &'static str, finding: Finding) {
        self.push(name, PreflightVerdict::Failed, finding.detail, finding.hint, Some(finding.code));
    }

    fn map(&mut self, policy: &Policy, role: &Role, in_git: bool) {
        let in_force = match policy {
            Policy::InForce(in_force) => in_force,
            Policy::Absent => {
                let hint = format!("write {FILE} and commit it, if work should be routed");
                return self.warning("map", "there is none: anybody may take anything".to_owned(), hint);
            }
            Policy::Invalid(broken) => {
                return broken.findings.iter().for_each(|finding| self.failed("map", finding.clone()));
            }
        };
        let (commit, roles) = (&in_force.commit, &in_force.map.roles);
        if in_force.edited || (commit.is_none() && in_git) {
            let detail = format!("{FILE} in the main checkout is not what is committed");
            self.warning("map", detail, format!("commit it, or undo it: git restore {FILE}"));
        } else {
            let at = commit.as_ref().and_then(|commit| commit.get(..12)).unwrap_or("as it lies");
            self.ok("map", format!("valid, {at}"));
        }
        if !roles.is_empty() && !roles.contains_key(role) {
            let detail = format!("{role} is not among the roles of {FILE}: it has no lanes and owns nothing");
            self.warning("role", detail, format!("onus route show, or add roles.{role}"));
        }
    }

    fn worker(&mut self, worker: &Worker, policy: &Policy, role: &Role) {
        let handle = &worker.handle;
        if worker.state == WorkerState::Paused {
            let finding = Finding::new(Code::NotPermitted, format!("{handle} is paused"));
            self.failed("worker", finding.hint(format!("a person runs: onus worker resume {handle}")));
        }
        let rule = policy.in_force().and_then(|in_force| in_force.map.roles.get(role));
        let is_listed = rule.is_none_or(|rule| rule.workers.is_empty() || rule.workers.contains(handle));
        if !worker.is_human() && !is_listed {
            let detail = format!("roles.{role}.workers does not list {handle}");
            let finding = Finding::new(Code::RoutingDenied, detail);
            self.failed("worker", finding.hint(format!("add {handle} there in {FILE} and commit it")));
        }
    }

    fn workstation(&mut self, place: &Place, worker: &Worker, nothing: &TaskId) {
        if let (Some((task, by)), Some(name)) = (&place.holds, &place.asked)
            && *by == worker.handle
        {
            let hint = format!("go on with it, or: onus release {task}");
            return self.warning("workstation", format!("you hold {task} in {name}"), hint);
        }
        let found = gate::findings(place, nothing, None);
        if let (true, Some(name)) = (found.is_empty(), &place.asked) {
            self.ok("workstation", format!("{name} is ready and free"));
        }
        for finding in found {
            self.failed("workstation", finding);
        }
    }
}
