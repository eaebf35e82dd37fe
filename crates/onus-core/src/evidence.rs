//! Evidence: what a run of a check showed, and whether a task's evidence suffices (mission D7, D8, D9, D12).

use crate::code::Code;
use crate::event::Landed;
use crate::id::{CheckId, CommitId, Handle, Seq, WorkstationName};
use crate::identity_map::{FILE, Policy, required_checks};
use crate::main_of_record::{self, RepositoryClone};
use crate::refusal::Finding;
use crate::scope::{Glob, Scope};
use crate::settings::{EvidencePolicy, ReviewPolicy};
use crate::task::{Check, CheckKind, CheckState, Criterion, Risk, Spec};
use crate::text::Text;
use crate::time::Timestamp;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words!(
    /// How a run of a check ended. Only `passed` is a pass: what could not run has shown nothing.
    CheckVerdict { Passed = "passed", Failed = "failed", TimedOut = "timed_out", CouldNotRun = "could_not_run" }
);
words!(
    /// What a reviewer found (mission D8): work that runs, or words about it.
    Classification { Implemented = "implemented", DesignOnly = "design-only" }
);
words!(
    /// What a reviewer says.
    ReviewVerdict { Approved = "approved", Rejected = "rejected" }
);

words!(
    /// Where a run of a check was made: by Onus itself on a machine that it sees, or elsewhere, as a caller states it. What
    /// a caller says about its own sandbox is not kept: nobody could have seen it.
    RunPlace { Open = "none", Bubblewrap = "bubblewrap", BubblewrapNetwork = "bubblewrap-network", Stated = "stated" }
);

impl CheckVerdict {
    /// A shell says 126 and 127 when it could not run the command at all.
    pub const fn of(exit: Option<i32>, timed_out: bool) -> CheckVerdict {
        match (exit, timed_out) {
            (_, true) => CheckVerdict::TimedOut,
            (Some(0), _) => CheckVerdict::Passed,
            (Some(126 | 127), _) => CheckVerdict::CouldNotRun,
            _ => CheckVerdict::Failed,
        }
    }
}

/// On what something was shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ground {
    /// The commit of the working tree; none outside git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The tree had changes that no commit has.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dirty: bool,
}

fn is_false(b: &bool) -> bool {
    !b
}

/// One run of a check, as the record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub seq: Seq,
    pub check: CheckId,
    pub verdict: CheckVerdict,
    pub ground: Ground,
    pub at: Timestamp,
    /// Onus did not make the run itself: a caller says that it was made.
    #[serde(default)]
    pub stated: bool,
}

/// Another identity's word about the work (mission D12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    pub seq: Seq,
    pub by: Handle,
    pub workstation: Option<WorkstationName>,
    pub verdict: ReviewVerdict,
    pub classification: Classification,
    pub commit: Option<CommitId>,
}

/// Why a defect happened (mission D9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RootCause {
    /// One sentence.
    pub statement: String,
    /// The layer or file in which it was.
    pub owner: String,
}

/// The state of the work when its holder says that it is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Proof {
    pub ground: Ground,
    /// Commits of the workstation's branch that are not in the main branch, by ancestry or patch identity.
    pub unmerged: usize,
    /// The main branch, for the hint.
    pub main: Option<String>,
    /// The first paths of high risk among those that the work really changed.
    #[serde(default)]
    pub risky: Vec<String>,
    /// The commands that the map asks for where such paths change.
    #[serde(default)]
    pub required: Vec<String>,
    /// What reviewers saw that is this very work, patch by patch: a rebase gives it another name.
    #[serde(default)]
    pub same_work: Vec<CommitId>,
    /// The clones of a store for which nobody has named the main of record.
    #[serde(default)]
    pub rivals: Vec<RepositoryClone>,
    /// What of the task is in the main of record and not yet recorded as landed.
    #[serde(default)]
    pub landed: Option<Landed>,
    /// The handoff that goes with the end.
    #[serde(default)]
    pub handoff: Option<Text>,
    /// Where the work is not: whoever is asked has no working tree and no git to look at.
    #[serde(default)]
    pub elsewhere: bool,
}

impl Proof {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Proof::default()
    }
}

/// What a completion is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    pub spec: &'a Spec,
    pub policy: &'a Policy,
    pub review: ReviewPolicy,
    pub trust: EvidencePolicy,
    pub proof: &'a Proof,
    pub evidence: &'a [Evidence],
    pub reviews: &'a [Review],
    pub root_cause: Option<&'a RootCause>,
}

/// Everything that is missing. `TASK` in a hint stands for the task's id.
pub fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = case.spec.checks.iter().filter_map(|check| case.unproven(check)).collect();
    found.extend(case.demanded());
    if case.is_high_risk() {
        let kinds = [CheckKind::CodeAnchor, CheckKind::Runtime];
        found.extend(kinds.into_iter().filter_map(|kind| case.lacks(kind)));
    }
    if case.spec.kind == "defect" {
        found.extend(case.rootless());
    }
    found.extend(case.spec.criteria.iter().enumerate().filter_map(open_criterion));
    found.extend(case.unreviewed());
    if !case.proof.rivals.is_empty() {
        found.push(main_of_record::unset(&case.proof.rivals));
    }
    found.extend(case.unmerged());
    found
}

/// What no command proves, another worker must have seen.
fn open_criterion((place, criterion): (usize, &Criterion)) -> Option<Finding> {
    let number = place + 1;
    criterion.ticked.is_none().then(|| {
        let words = crate::text::shortened(&criterion.text, CRITERION_SHOWN);
        let detail = format!("criterion {number} is not ticked: {words}");
        let hint = format!("another worker runs, elsewhere: onus review TASK --tick {number}");
        Finding::new(Code::CriteriaOpen, detail).hint(hint)
    })
}

/// So much of a criterion is told in a finding.
const CRITERION_SHOWN: usize = 200;

/// Those of the changed paths that the map calls high risk.
pub fn risky_paths(policy: &Policy, paths: &[String]) -> Vec<String> {
    let Some(map) = policy.in_force().map(|in_force| &in_force.map) else {
        return Vec::new();
    };
    let globs: Vec<Glob> = map.high_risk.paths.iter().filter_map(|text| Glob::parse(text).ok()).collect();
    let risky = paths.iter().filter(|path| globs.iter().any(|glob| glob.matches(path)));
    risky.take(RISKY_MAX).cloned().collect()
}

/// Kinds of tasks that nothing runs for.
pub const DOCUMENT_KINDS: [&str; 3] = ["design", "docs", "document"];

/// How many paths of high risk are told of.
const RISKY_MAX: usize = 20;

/// Terminal, authentication, provisioning, security, runtime: where words are not enough (mission D8).
pub fn is_high_risk(policy: &Policy, spec: &Spec) -> bool {
    if spec.risk == Risk::High {
        return true;
    }
    let Some(map) = policy.in_force().map(|in_force| &in_force.map) else {
        return false;
    };
    let by_type = spec.task_type.as_ref().is_some_and(|own| map.high_risk.types.contains(own));
    let overlaps = || match (Scope::parse(&map.high_risk.paths), Scope::parse(&spec.scope)) {
        (Ok(risky), Ok(own)) => risky.overlap(&own).is_some(),
        // What cannot be read cannot be told apart, either.
        _ => true,
    };
    by_type || (!map.high_risk.paths.is_empty() && !spec.scope.is_empty() && overlaps())
}

impl Case<'_> {
    /// By what the task says of itself, or by what its work really touched.
    fn is_high_risk(&self) -> bool {
        !self.proof.risky.is_empty() || is_high_risk(self.policy, self.spec)
    }

    /// What the map asks for, by the task's role and by what its work touched, and nobody has run.
    fn demanded(&self) -> Vec<Finding> {
        let by_role =
            required_checks(self.policy, self.spec, Some(&[])).into_iter().map(|check| check.command);
        let mut commands: Vec<String> = by_role.chain(self.proof.required.iter().cloned()).collect();
        commands.sort();
        commands.dedup();
        let is_own = |command: &String| self.spec.checks.iter().any(|check| check.command == *command);
        let finding = |command: String| {
            let detail = format!("{FILE} asks for the check `{command}`, which has not been run");
            Finding::new(Code::ChecksMissing, detail).hint("onus check TASK")
        };
        commands.into_iter().filter(|command| !is_own(command)).map(finding).collect()
    }

    fn unmerged(&self) -> Option<Finding> {
        let main = self.proof.main.as_deref().unwrap_or("the main branch");
        let detail = match self.proof.unmerged {
            0 => return None,
            _ if self.proof.elsewhere => {
                let detail = format!("this server has no working tree: it cannot tell what is in {main}");
                let hint = "run it where the work is: onus complete TASK --resolution TEXT";
                return Some(Finding::new(Code::NotMerged, detail).hint(hint));
            }
            1 => format!("one commit is not in {main}"),
            n => format!("{n} commits are not in {main}"),
        };
        let hint = "where the work is: onus complete TASK --resolution TEXT merges it, too";
        Some(Finding::new(Code::NotMerged, detail).hint(hint))
    }

    fn last(&self, check: &Check) -> Option<&Evidence> {
        let id = check.id();
        self.evidence.iter().filter(|evidence| evidence.check == id).max_by_key(|evidence| evidence.seq)
    }

    /// Passed, on exactly what is to be completed.
    fn has_passed(&self, check: &Check) -> bool {
        self.unproven(check).is_none()
    }

    fn unproven(&self, check: &Check) -> Option<Finding> {
        let Check { command, state, .. } = check;
        if *state == CheckState::Proposed {
            let detail = format!("the check `{command}` awaits a person's approval");
            let hint = "a person runs: onus check TASK --approve";
            return Some(Finding::new(Code::CheckUnapproved, detail).hint(hint));
        }
        let (code, detail, hint) = match self.last(check) {
            None => {
                (Code::ChecksMissing, format!("the check `{command}` has not been run"), "onus check TASK")
            }
            Some(last) if last.verdict != CheckVerdict::Passed => {
                let verdict = last.verdict.name().replace('_', " ");
                let detail = format!("the check `{command}` {verdict} at {}", last.at);
                (Code::ChecksFailed, detail, "onus check TASK")
            }
            Some(last) if last.ground.dirty => (
                Code::ChecksMissing,
                format!("the check `{command}` passed on a tree with uncommitted changes"),
                "commit, then: onus check TASK",
            ),
            Some(last) if last.ground.commit != self.proof.ground.commit => {
                let (then, now) = (short(&last.ground.commit), short(&self.proof.ground.commit));
                let detail = format!("the check `{command}` passed at {then}; the work is at {now}");
                (Code::ChecksMissing, detail, "onus check TASK")
            }
            Some(last) if last.stated && self.trust == EvidencePolicy::Witnessed => (
                Code::ChecksMissing,
                format!("that the check `{command}` passed is only stated: Onus did not run it"),
                "whoever works where the store is runs: onus check TASK",
            ),
            Some(_) => return None,
        };
        Some(Finding::new(code, detail).hint(hint))
    }

    /// High risk asks for a kind of evidence that no passed check gives.
    fn lacks(&self, kind: CheckKind) -> Option<Finding> {
        let given = self.spec.checks.iter().any(|check| check.kind == kind && self.has_passed(check));
        let name = kind.name();
        (!given).then(|| {
            let detail = match self.proof.risky.first() {
                Some(path) => {
                    let path = crate::id::shown(path);
                    format!("a change of {path}, which is of high risk, needs {name} evidence")
                }
                None => format!("the task is marked as high risk, which asks for {name} evidence"),
            };
            Finding::new(Code::EvidenceMissing, detail).hint(format!(
                "onus check TASK --add COMMAND --kind {name}; if that path comes later, block the task on it"
            ))
        })
    }

    fn rootless(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.root_cause.is_none() {
            let detail = "a defect needs its root cause and the file that owned it";
            let hint = "--root-cause SENTENCE --owner FILE";
            found.push(Finding::new(Code::RootCauseMissing, detail).hint(hint));
        }
        let proven = |check: &Check| check.kind == CheckKind::RootCause && self.has_passed(check);
        if !self.spec.checks.iter().any(proven) {
            let detail = "a defect needs a check that proves that its cause is gone";
            let hint = "onus check TASK --add COMMAND --kind root-cause";
            found.push(Finding::new(Code::RootCauseMissing, detail).hint(hint));
        }
        found
    }

    fn unreviewed(&self) -> Option<Finding> {
        let asked = match self.review {
            ReviewPolicy::Never => false,
            ReviewPolicy::HighRisk => self.is_high_risk(),
            ReviewPolicy::Always => true,
        };
        let ask = "another worker runs, elsewhere: onus review TASK --approve --as-implemented";
        let (detail, hint) = match self.reviews.iter().max_by_key(|review| review.seq) {
            Some(review) if review.verdict == ReviewVerdict::Rejected => {
                (format!("{} rejected the work", review.by), "mend it, and ask for another review")
            }
            Some(review) if review.classification == Classification::DesignOnly && !self.is_document() => (
                format!("{} found a design and no running path", review.by),
                "implement it, or block the task on what does; a task for a text is of the kind design or docs",
            ),
            _ if !asked => return None,
            None => ("nobody has reviewed the work".to_owned(), ask),
            Some(review) if !self.has_seen(review) => {
                (format!("{} reviewed {}, and the work has gone on", review.by, short(&review.commit)), ask)
            }
            Some(_) => return None,
        };
        Some(Finding::new(Code::ReviewMissing, detail).hint(hint))
    }

    /// Whether what the task asks for is a text: then a design is the work itself.
    fn is_document(&self) -> bool {
        DOCUMENT_KINDS.contains(&self.spec.kind.as_str())
    }

    /// Whether a reviewer saw this very work, under this or another name.
    fn has_seen(&self, review: &Review) -> bool {
        review.commit == self.proof.ground.commit
            || review.commit.as_ref().is_some_and(|commit| self.proof.same_work.contains(commit))
    }
}

fn short(commit: &Option<CommitId>) -> &str {
    commit.as_ref().map_or("no commit", |commit| &commit.as_str()[..12])
}
