//! `check`: runs a task's approved commands where the work is, and keeps what they showed (mission D7).

use crate::Onus;
use crate::main_of_record::Trunk;
use crate::remote::calls;
use crate::submit::Target;
use crate::view::{CheckRunView, ChecksView};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Run, Stage};
use onus_core::constraint::has_network;
use onus_core::evidence::CheckVerdict;
use onus_core::evidence::{Ground, Proof, RunPlace};
use onus_core::hash::{Digest, encode_hex};
use onus_core::id::{CheckId, CommitId, Handle, RequestId, TaskId};
use onus_core::identity_map::required_checks;
use onus_core::lease::Token;
use onus_core::output::Redactor;
use onus_core::refusal::Finding;
use onus_core::refusal::Refusal;
use onus_core::task::{Check, CheckState, Task};
use onus_core::text::Text;
use onus_core::text::is_unprintable;
use onus_core::time::Millis;
use onus_core::workstation::WorkstationKind;
use onus_host::env::{self, Env};
use onus_host::process::{CommandLine, Environment, Ran};
use onus_host::refs::{History, branch_ref};
use onus_host::{lease_file, ref_file, repository, worktree};
use onus_store::{evidence, load};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one check may take, and what is kept of its output.
const LIMIT: Duration = Duration::from_secs(30 * 60);
const GRACE: Duration = Duration::from_secs(5);
const KEPT: usize = 32 * 1024;

/// How many runs are looked through for the last one of each check.
const RUNS: i64 = 200;

/// What separates a check from the rest of the machine; recorded with what it showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sandbox {
    #[default]
    None,
    /// bubblewrap: the file system is read-only but for the working tree and a private /tmp; the store, leases and keys
    /// are hidden, git's directory cannot be written, and there is no network.
    Bubblewrap,
    /// The same with the network.
    BubblewrapNetwork,
}

impl Sandbox {
    pub const fn name(self) -> &'static str {
        match self {
            Sandbox::None => "none",
            Sandbox::Bubblewrap => "bubblewrap",
            Sandbox::BubblewrapNetwork => "bubblewrap-network",
        }
    }

    /// What is left of it where an assignment has no network.
    fn within(self, network: bool) -> Sandbox {
        if network { self } else { Sandbox::Bubblewrap }
    }

    pub fn parse(text: &str) -> Option<Sandbox> {
        match text {
            "none" => Some(Sandbox::None),
            "bubblewrap" => Some(Sandbox::Bubblewrap),
            "bubblewrap-network" => Some(Sandbox::BubblewrapNetwork),
            _ => None,
        }
    }

    fn line(self, command: &str, bench: &Bench) -> String {
        let network = match self {
            Sandbox::None => return command.to_owned(),
            // A socket with a name is no network to the kernel: the database's and the agents' own lie here.
            Sandbox::Bubblewrap => "--unshare-net --tmpfs /run",
            Sandbox::BubblewrapNetwork => "",
        };
        let word = |path: &Path| quoted(&path.to_string_lossy());
        let repo = repository::find_with(&bench.directory, &Env::default()).ok().and_then(|place| place.repo);
        // Later ones lie over earlier ones: the working tree, git's own directories in it, what is in those.
        let git: Vec<PathBuf> =
            repo.iter().flat_map(|repo| [&repo.common_dir, &repo.git_dir]).cloned().collect();
        let kept = git.iter().map(|dir| format!("--ro-bind {0} {0}", word(dir)));
        let leases = repo.iter().flat_map(|repo| worktrees_of(&repo.common_dir)).chain(git.iter().cloned());
        let private: Vec<PathBuf> = leases.map(|dir| dir.join("onus")).collect();
        // What lies in a directory that is left out whole would be put back there.
        let others = bench.hidden.iter().filter(|path| !private.iter().any(|dir| path.starts_with(dir)));
        let hidden = private.iter().chain(others);
        let hidden = hidden.filter_map(|path| match path.metadata() {
            Ok(found) if found.is_dir() => Some(format!("--tmpfs {}", word(path))),
            Ok(_) => Some(format!("--ro-bind /dev/null {}", word(path))),
            Err(_) => None,
        });
        format!(
            "exec bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp {network} --bind {dir} {dir} {kept} {hidden} \
             --chdir {dir} --unshare-pid --unshare-ipc --new-session --die-with-parent /bin/sh -c {command}",
            dir = word(&bench.directory),
            kept = kept.collect::<Vec<_>>().join(" "),
            hidden = hidden.collect::<Vec<_>>().join(" "),
            command = quoted(command),
        )
    }
}

/// Git's own directories of all the working trees of a repository.
fn worktrees_of(common_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(common_dir.join("worktrees")).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// One word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A check that was run, not yet on record.
#[derive(Debug)]
pub struct Tried {
    pub check: Check,
    pub run: Run,
}

/// Where a task's checks run.
#[derive(Debug, Clone)]
pub struct Bench {
    pub directory: PathBuf,
    pub ground: Ground,
    /// What a sandbox leaves out: the store, keys and files with secrets.
    pub hidden: Vec<PathBuf>,
    /// Whether the assignment that the checks are run for leaves them the network.
    pub network: bool,
}

impl Onus {
    /// Where the checks of a task run: in the workstation that holds it; where that has no directory, in this one.
    pub fn bench(&mut self, task: &Task) -> Result<Bench, Refusal> {
        let directory = self.bench_directory(task)?;
        let bench = self.bench_in(directory)?;
        let network = task.assignment().is_none_or(|held| has_network(&held.constraints));
        Ok(Bench { network, ..bench })
    }

    fn bench_directory(&mut self, task: &Task) -> Result<PathBuf, Refusal> {
        let held = task.assignment().map(|held| self.directory_of(&held.workstation)).transpose()?;
        Ok(held.flatten().unwrap_or_else(|| self.directory_here()))
    }

    fn directory_here(&self) -> PathBuf {
        let root = self.place.repo.as_ref().and_then(|repo| repo.root.clone());
        root.unwrap_or_else(|| self.place.cwd.clone())
    }

    /// Where the caller stands.
    pub(crate) fn bench_here(&self) -> Result<Bench, Refusal> {
        self.bench_in(self.directory_here())
    }

    fn bench_in(&self, directory: PathBuf) -> Result<Bench, Refusal> {
        let ground = self.ground(&directory)?;
        Ok(Bench { directory, ground, hidden: self.hidden(), network: true })
    }

    /// Where the store and the secrets of its callers are.
    pub(crate) fn hidden(&self) -> Vec<PathBuf> {
        let env = Env::of_process();
        let file = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let store = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let beside = self.path.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten();
        let beside = beside.filter_map(|entry| Some(entry.ok()?.path()));
        let is_of_store = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&store)) && path.is_file()
        };
        let passwords = env.home.iter().map(|home| home.join(".pgpass")).chain(file("PGPASSFILE"));
        let tokens = file("ONUS_TOKEN_FILE").or_else(|| self.place.configured_token_file().ok().flatten());
        let secrets = env.keys().ok().into_iter().chain(passwords).chain(tokens);
        secrets.map(|path| self.place.cwd.join(path)).chain(beside.filter(is_of_store)).collect()
    }

    /// What a directory stands on.
    fn ground(&self, directory: &Path) -> Result<Ground, Refusal> {
        let head = ref_file::head_of(directory);
        let commit = head.commit.as_deref().map(str::parse).transpose().map_err(Refusal::invalid)?;
        let dirty = commit.is_some() && worktree::is_dirty(directory)?;
        Ok(Ground { commit, dirty })
    }

    /// The state of the work, when its holder says that it is done.
    pub fn proof(&mut self, task: &TaskId) -> Result<Proof, Refusal> {
        self.proof_seen_from(task, None, None)
    }

    /// The same by whoever knows already which main branch counts, and perhaps what the workstation stood on a moment ago.
    pub(crate) fn proof_seen_from(
        &mut self,
        task: &TaskId,
        trunk: Option<Trunk>,
        ground: Option<Ground>,
    ) -> Result<Proof, Refusal> {
        let Some(task) = self.find_task(task)? else {
            return Ok(Proof::default());
        };
        let Some(held) = task.assignment() else {
            return Ok(Proof::default());
        };
        let workstation = self.workstation(&held.workstation)?.workstation;
        if workstation.path.as_deref().is_some_and(|path| !Path::new(path).is_dir()) {
            return Ok(Proof::default());
        }
        let directory = self.bench_directory(&task)?;
        let head = ref_file::head_of(&directory).commit;
        let still = ground.filter(|ground| ground.commit.as_ref().map(CommitId::as_str) == head.as_deref());
        let ground = still.map_or_else(|| self.ground(&directory), Ok)?;
        let own = repository::find_with(&directory, &Env::default()).ok().and_then(|place| place.repo);
        let is_ours =
            self.place.repo.as_ref().zip(own).is_some_and(|(repo, own)| repo.common_dir == own.common_dir);
        let has_work = workstation.branch.is_some() || workstation.kind == WorkstationKind::Checkout;
        let (Some(head), true) = (ground.commit.clone(), is_ours && has_work) else {
            return Ok(Proof { ground, ..Proof::default() });
        };
        let Ok(trunk) = trunk.map_or_else(|| self.trunk(), Ok) else {
            return Ok(Proof { ground, ..Proof::default() });
        };
        // A checkout stands on the local main branch: where that is the main of record, its work is there.
        if workstation.branch.is_none() && trunk.shared.is_none() && trunk.rivals.is_empty() {
            return Ok(Proof { ground, ..Proof::default() });
        }
        self.branch_proof(&task, &trunk, &head, ground)
    }

    /// What a branch at `head` has that the main of record has not, and what of the task is there already.
    fn branch_proof(
        &mut self,
        task: &Task,
        trunk: &Trunk,
        head: &CommitId,
        ground: Ground,
    ) -> Result<Proof, Refusal> {
        let history = History::of(&trunk.repo);
        let mut tip = trunk.seen()?;
        let mut unmerged = history.unmerged(head.as_str(), &tip)?;
        // Who is behind looks again before it says no.
        if !unmerged.is_empty() && trunk.shared.is_some() {
            tip = trunk.fetched()?;
            unmerged = history.unmerged(head.as_str(), &tip)?;
        }
        let arrived = self.landing_of(&task.id)?;
        let epoch = task.assignment().map_or(0, |held| held.epoch);
        let onto =
            arrived.merges.iter().find(|(by, _)| *by == epoch).map(|(_, merged)| merged.onto.to_string());
        let onto = onto.filter(|onto| history.resolve(onto).is_ok_and(|found| found.is_some()));
        let mut proof = self.landing_proof(task, trunk, head.as_str(), onto.as_ref().unwrap_or(&tip))?;
        proof.landed = self.found_in_main(trunk, &tip, task, &arrived)?;
        Ok(Proof { ground, unmerged: unmerged.len(), ..proof })
    }

    /// The state of the work as its holder states it, for whoever cannot look at the workstation. What is in the main
    /// branch is asked of the repository that is here, if there is one.
    pub fn stated_proof(&mut self, task: &TaskId, commit: Option<CommitId>) -> Result<Proof, Refusal> {
        let mut proof = Proof { ground: Ground { commit, dirty: false }, ..Proof::default() };
        let stored = self.ask(|tx| load::task(tx, task))?.map(|stored| stored.task);
        let Some((stored, held)) = stored.as_ref().and_then(|task| Some((task, task.assignment()?))) else {
            return Ok(proof);
        };
        let branch =
            self.ask(|tx| load::workstation(tx, &held.workstation))?.and_then(|(found, _)| found.branch);
        let Some(branch) = branch else {
            return Ok(proof);
        };
        let arrived = self.landing_of(&stored.id)?;
        let Ok(trunk) = self.trunk() else {
            // Without git nobody's word counts but the record's.
            proof.elsewhere = true;
            proof.unmerged = usize::from(arrived.last_merge(held.epoch).is_none());
            return Ok(proof);
        };
        let history = History::of(&trunk.repo);
        let tip = history.resolve(&branch_ref(branch.as_str()))?;
        // As its holder states it, else as its branch shows it here, else as the record has it from another clone.
        let recorded = arrived.last_merge(held.epoch).map(|merged| merged.commit.to_string());
        let stated = proof.ground.commit.as_ref().map(ToString::to_string);
        let work = |history: &History<'_>| match stated.as_ref().or(tip.as_ref()).or(recorded.as_ref()) {
            Some(commit) => history.resolve(commit),
            None => Ok(None),
        };
        let unmerged = |main: &str, work: Option<&String>| -> Result<usize, Refusal> {
            // Work that is not here is not in the main branch either, as far as can be seen.
            let mut most = usize::from(work.is_none());
            // Whoever states an older commit than the branch's has not told of all the work.
            for commit in work.into_iter().chain(&tip) {
                most = most.max(history.unmerged(commit, main)?.len());
            }
            Ok(most)
        };
        let mut known = work(&history)?;
        let mut main = trunk.seen()?;
        proof.unmerged = unmerged(&main, known.as_ref())?;
        // Who is behind looks again before it says no.
        if proof.unmerged > 0 && trunk.shared.is_some() {
            main = trunk.fetched()?;
            known = work(&history)?;
            proof.unmerged = unmerged(&main, known.as_ref())?;
        }
        if let Some(work) = &known {
            let merged = arrived.merges.iter().find(|(by, _)| *by == held.epoch);
            let onto = merged.map_or(main.clone(), |(_, merged)| merged.onto.to_string());
            if history.resolve(&onto)?.is_some() {
                let brought = self.brought(stored, &history, work, &onto)?;
                (proof.risky, proof.same_work) = (brought.risky, brought.same_work);
                proof.required = brought.required;
            }
        }
        proof.rivals = trunk.rivals.clone();
        proof.landed = self.found_in_main(&trunk, &main, stored, &arrived)?;
        proof.ground.commit = known.and_then(|work| work.parse().ok()).or(proof.ground.commit);
        proof.main = Some(trunk.name());
        Ok(proof)
    }

    /// A command that arrived from another machine. The state of the working tree is taken from the caller, who alone can
    /// see it. Whether the commits are in the main branch is looked up here and not believed. A check's run counts as
    /// `stated`.
    pub fn witnessed(&mut self, mut envelope: Envelope) -> Result<Envelope, Refusal> {
        if let (Some(task), Command::Complete { proof, .. }) = (&envelope.task, &mut envelope.command) {
            let here = self.stated_proof(task, proof.ground.commit.clone())?;
            proof.ground.commit = here.ground.commit;
            proof.main = here.main.or_else(|| proof.main.take());
            proof.rivals = here.rivals;
            if here.elsewhere {
                // The caller's git answers for it, by the commit that it saw there; `consistency` looks later.
                let is_vouched = proof.landed.as_ref().is_some_and(|landed| landed.tip.is_some());
                proof.unmerged = if is_vouched { proof.unmerged } else { here.unmerged.max(proof.unmerged) };
                proof.elsewhere = true;
                if let Some(landed) = &mut proof.landed {
                    landed.vouched = true;
                }
            } else {
                proof.unmerged = proof.unmerged.max(here.unmerged);
                proof.landed = here.landed;
                proof.same_work = here.same_work;
                proof.risky.extend(here.risky);
                proof.required.extend(here.required);
            }
        }
        if let Command::Merge { proof, stage, .. } = &mut envelope.command {
            // Only a question may leave something out.
            *stage = Stage::Land;
            if let Some(landed) = &mut proof.landed {
                // What was pushed by the caller's git is seen here at the next look.
                landed.vouched = self.place.repo.is_none();
            }
        }
        let said = match &envelope.command {
            Command::Comment { commit, comments } => Some((commit, comments)),
            Command::Review { opinion } => Some((&opinion.commit, &opinion.comments)),
            _ => None,
        };
        if let Some((commit, comments)) = said {
            self.refuse_missing_lines(envelope.task.as_ref(), commit.as_ref(), comments)?;
        }
        if let Command::RecordCheck { run } = &mut envelope.command {
            RunPlace::Stated.name().clone_into(&mut run.sandbox);
        }
        Ok(envelope)
    }

    /// The task as it is now.
    pub fn task(&mut self, id: &TaskId) -> Result<Task, Refusal> {
        self.find_task(id)?.ok_or_else(|| {
            Refusal::new(Code::UnknownTask, format!("there is no task {id}")).hint("onus list --state all")
        })
    }

    /// The task as it is now, if there is such a one.
    pub fn find_task(&mut self, id: &TaskId) -> Result<Option<Task>, Refusal> {
        if let Some(answer) = self.remote(|| calls::FindTask { task: id.clone() })? {
            return Ok(answer.map(Task::from));
        }
        Ok(self.ask(|tx| load::task(tx, id))?.map(|stored| stored.task))
    }

    /// Puts what a check showed on record.
    pub fn record_check(
        &mut self,
        actor: Option<&Handle>,
        token: Option<&Token>,
        request: RequestId,
        task: &TaskId,
        run: Run,
    ) -> Result<(), Refusal> {
        let envelope = Envelope {
            request,
            actor: actor.cloned(),
            token: token.cloned(),
            task: Some(task.clone()),
            project: None,
            base: None,
            command: Command::RecordCheck { run: Box::new(run) },
        };
        self.submit(&envelope, &Target::Named).map(drop)
    }

    /// The checks that the map asks for, by the task's role and by what its work changes, and that it does not have yet.
    pub fn demanded_checks(&mut self, task: &Task, proof: &Proof) -> Result<Vec<Check>, Refusal> {
        let policy = self.policy()?;
        let by_role = required_checks(&policy, &task.spec, Some(&[]));
        let mut all = required_checks(&policy, &task.spec, None);
        let is_due = |check: &Check| by_role.contains(check) || proof.required.contains(&check.command);
        all.retain(|check| is_due(check) && !task.spec.checks.iter().any(|own| own.id() == check.id()));
        Ok(all)
    }

    /// A task's checks, each with its last run.
    pub fn checks(&mut self, id: &TaskId) -> Result<ChecksView, Refusal> {
        let task = self.task(id)?;
        let runs = self.check_runs(id, RUNS)?;
        let checks = task.spec.checks.iter().map(|check| {
            let last = runs.iter().find(|run| run.evidence.check == check.id());
            CheckRunView::new(check, last)
        });
        Ok(ChecksView { task: id.clone(), checks: checks.collect() })
    }

    /// The last runs of a task's checks, the newest first.
    pub fn check_runs(&mut self, task: &TaskId, limit: i64) -> Result<Vec<evidence::KeptRun>, Refusal> {
        if let Some(answer) = self.remote(|| calls::CheckRuns { task: task.clone(), limit })? {
            return Ok(answer);
        }
        self.ask(|tx| evidence::runs(tx, task, limit))
    }
}

/// The checks of a task that may run.
pub fn approved(task: &Task, only: Option<&CheckId>) -> Vec<Check> {
    let checks = task.spec.checks.iter().filter(|check| check.state == CheckState::Approved);
    checks.filter(|check| only.is_none_or(|id| check.id() == *id)).cloned().collect()
}

/// Runs one check. What could not even be started counts as not run.
pub fn run(check: &Check, task: &TaskId, bench: &Bench, sandbox: Sandbox) -> Tried {
    let sandbox = sandbox.within(bench.network);
    let environment = Environment::of_process().with("ONUS_TASK", task.to_string());
    let line = sandbox.line(&check.command, bench);
    let command = CommandLine {
        line: &line,
        directory: &bench.directory,
        environment: &environment,
        limit: LIMIT,
        grace: GRACE,
        keep: KEPT,
    };
    let ran = if sandbox == Sandbox::None { command.run() } else { command.run_sandbox() };
    let run = match ran {
        Ok(ran) => shown(check, bench, sandbox, &environment, &ran),
        Err(error) => Run {
            check: check.id(),
            exit: Some(127),
            signal: None,
            timed_out: false,
            took_ms: 0,
            ground: bench.ground.clone(),
            output: Text::new(error.to_string()),
            output_length: 0,
            output_sha256: encode_hex(&Digest::of(b"").0),
            environment: environment.digest(),
            sandbox: sandbox.name().to_owned(),
        },
    };
    Tried { check: check.clone(), run }
}

fn shown(check: &Check, bench: &Bench, sandbox: Sandbox, environment: &Environment, ran: &Ran) -> Run {
    Run {
        check: check.id(),
        exit: ran.exit,
        signal: ran.signal,
        timed_out: ran.timed_out,
        took_ms: i64::try_from(ran.took.as_millis()).unwrap_or(i64::MAX),
        ground: bench.ground.clone(),
        output: Text::new(without_secrets(bench, &ran.output.text())),
        output_length: i64::try_from(ran.output.length).unwrap_or(i64::MAX),
        output_sha256: encode_hex(&ran.output.sha256.0),
        environment: environment.digest(),
        sandbox: sandbox.name().to_owned(),
    }
}

/// What a check printed, without what the environment keeps under telling names, the lease that lies where it ran, and whatever
/// looks like a key.
fn without_secrets(bench: &Bench, printed: &str) -> String {
    let leases = repository::lease_dir_of(&bench.directory).ok().flatten();
    let lease = leases.and_then(|dir| lease_file::any(&dir));
    let lease = lease.and_then(|token| token.rsplit('.').next().map(str::to_owned));
    let mut redactor = Redactor::new(env::secret_values().into_iter().chain(lease));
    redactor.push(printed) + &redactor.finish()
}

/// How much of the end of an output is told with a failure.
const TAIL_LINES: usize = 12;
const TAIL_CHARS: usize = 1_200;

/// What to say about a check that did not pass.
pub fn failure(task: &TaskId, tried: &Tried) -> Option<Finding> {
    let Tried { check, run } = tried;
    let took = Millis(run.took_ms);
    let end = match (CheckVerdict::of(run.exit, run.timed_out), run.exit, run.signal) {
        (CheckVerdict::Passed, ..) => return None,
        (CheckVerdict::TimedOut, ..) => format!("was stopped after {took}"),
        (CheckVerdict::CouldNotRun, ..) => "could not be run".to_owned(),
        (_, Some(code), _) => format!("ended with {code} after {took}"),
        (_, None, Some(signal)) => format!("was ended by signal {signal} after {took}"),
        (_, None, None) => "did not end".to_owned(),
    };
    let said = tail(run.output.content().unwrap_or_default());
    let said = if said.is_empty() { "; it printed nothing".to_owned() } else { format!(":\n{said}") };
    let hint = format!("mend the cause, commit it, then: onus check {task}");
    Some(Finding::new(Code::ChecksFailed, format!("`{}` {end}{said}", check.command)).hint(hint))
}

/// The last lines, harmless for a terminal.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    let surplus = last.chars().count().saturating_sub(TAIL_CHARS);
    let visible = |c: char| if c != '\n' && is_unprintable(c) { '\u{fffd}' } else { c };
    last.chars().skip(surplus).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_shown_and_steers_no_terminal() {
        let long: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        let shown = tail(&long);
        assert!(shown.starts_with("line 89\n") && shown.ends_with("line 100"), "{shown}");
        assert_eq!(tail("a\u{1b}[2J\n\n"), "a\u{fffd}[2J");
        assert_eq!(tail(&"x".repeat(5_000)).chars().count(), TAIL_CHARS);
        assert_eq!(tail(""), "");
    }

    #[test]
    fn a_command_is_one_word_of_the_shell() {
        assert_eq!(quoted("echo 'a'"), r"'echo '\''a'\'''");
    }
}
