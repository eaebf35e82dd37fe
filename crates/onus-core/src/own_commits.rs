//! Whose commits these are (mission B5): a merge lands those of its own assignment, and those that its holder adopted.
//!
//! A holder that lost its task keeps its branch. Without this rule its next task would carry the old commits into the main
//! branch.

use crate::code::Code;
use crate::id::{CommitId, Epoch, TaskId, WorkstationName, shown};
use crate::refusal::Finding;

/// How many commits are named one by one.
const NAMED_MAX: usize = 10;

/// A commit, and what it says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub id: CommitId,
    pub subject: String,
    /// `Onus-Task` and `Onus-Epoch`, as written. Several values are separated by commas.
    pub task: Option<String>,
    pub epoch: Option<String>,
    /// It was there before the task was given to its present holder.
    pub before_grant: bool,
}

/// Under which assignment the work is to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding<'a> {
    pub task: &'a TaskId,
    pub epoch: Epoch,
    pub workstation: &'a WorkstationName,
    /// Earlier epochs of the same task whose work the holder went on with.
    pub adopted_epochs: &'a [Epoch],
    /// Commits that the holder adopts by name.
    pub adopted: &'a [CommitId],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    Own,
    /// Made under another assignment, and the holder answers for it.
    Adopted,
    Foreign,
}

/// Whose a commit is. One without a word about its task was made where no hook ran: by who works there.
pub fn ownership(commit: &Made, holding: &Holding<'_>) -> Ownership {
    if holding.adopted.contains(&commit.id) {
        return Ownership::Adopted;
    }
    let Some(task) = commit.task.as_deref() else {
        return if commit.before_grant { Ownership::Foreign } else { Ownership::Own };
    };
    let is_ours = last(task).parse::<TaskId>().is_ok_and(|named| named == *holding.task);
    let epoch = commit.epoch.as_deref().and_then(|text| last(text).parse::<Epoch>().ok());
    match epoch {
        _ if !is_ours => Ownership::Foreign,
        None => Ownership::Own,
        Some(epoch) if epoch == holding.epoch => Ownership::Own,
        Some(epoch) if holding.adopted_epochs.contains(&epoch) => Ownership::Adopted,
        Some(_) => Ownership::Foreign,
    }
}

/// A commit that was picked anew carries the trailers of both; the last ones are those of who made it.
fn last(values: &str) -> &str {
    values.rsplit(',').next().unwrap_or_default().trim()
}

/// What may not land, and how it could.
pub fn findings(commits: &[Made], holding: &Holding<'_>) -> Vec<Finding> {
    let foreign: Vec<&Made> =
        commits.iter().filter(|commit| ownership(commit, holding) == Ownership::Foreign).collect();
    let Holding { task, workstation, .. } = holding;
    let finding = |commit: &&Made| {
        let id = commit.id.as_str().get(..12).unwrap_or(commit.id.as_str());
        let whose = match (&commit.task, &commit.epoch) {
            (Some(task), Some(epoch)) => format!("was made for {} in epoch {}", plain(task), plain(epoch)),
            (Some(task), None) => format!("was made for {}", plain(task)),
            (None, _) => "was there before the task was given to you".to_owned(),
        };
        Finding::new(Code::NotOwnCommits, format!("{id} {} {whose}", shown(&commit.subject))).hint(format!(
            "if it belongs to this work: onus merge {task} --adopt {id}; if not: onus release {task}, then onus \
             workstation sync {workstation}"
        ))
    };
    let mut found: Vec<Finding> = foreign.iter().take(NAMED_MAX).map(finding).collect();
    if foreign.len() > NAMED_MAX {
        let more = format!("and {} more", foreign.len() - NAMED_MAX);
        found.push(Finding::new(Code::NotOwnCommits, more));
    }
    found
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() && *c != '`').take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(task: &str, epoch: &str, before_grant: bool) -> Made {
        let word = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Made {
            id: "1".repeat(40).parse().unwrap(),
            subject: "a change".into(),
            task: word(task),
            epoch: word(epoch),
            before_grant,
        }
    }

    #[test]
    fn a_commit_is_its_assignments_or_adopted() {
        let (task, workstation) = ("T-1".parse().unwrap(), "ws-a".parse().unwrap());
        let one: CommitId = "1".repeat(40).parse().unwrap();
        // Trailers, whether it was there before the grant, adopted epochs, whether it was adopted by name.
        type Case = (&'static str, &'static str, bool, &'static [Epoch], bool, Ownership);
        let cases: &[Case] = &[
            ("T-1", "3", false, &[], false, Ownership::Own),
            ("T-1", "2", false, &[], false, Ownership::Foreign),
            ("T-1", "2", false, &[2], false, Ownership::Adopted),
            ("T-2", "3", false, &[], false, Ownership::Foreign),
            ("T-2", "3", false, &[], true, Ownership::Adopted),
            ("", "", false, &[], false, Ownership::Own),
            ("", "", true, &[], false, Ownership::Foreign),
            ("", "", true, &[], true, Ownership::Adopted),
            // Picked anew under this grant, and the other way round.
            ("T-2,T-1", "1,3", false, &[], false, Ownership::Own),
            ("T-1,T-2", "3,1", false, &[], false, Ownership::Foreign),
            ("T-1", "", false, &[], false, Ownership::Own),
            ("nonsense", "3", false, &[], false, Ownership::Foreign),
        ];
        for (named, epoch, before, epochs, by_name, expected) in cases {
            let adopted: &[CommitId] = if *by_name { std::slice::from_ref(&one) } else { &[] };
            let holding =
                Holding { task: &task, epoch: 3, workstation: &workstation, adopted_epochs: epochs, adopted };
            let commit = made(named, epoch, *before);
            assert_eq!(ownership(&commit, &holding), *expected, "{named} {epoch} {before}");
            let is_refused = !findings(std::slice::from_ref(&commit), &holding).is_empty();
            assert_eq!(is_refused, *expected == Ownership::Foreign);
        }
    }

    #[test]
    fn many_are_not_named_one_by_one() {
        let (task, workstation) = ("T-1".parse().unwrap(), "ws-a".parse().unwrap());
        let holding =
            Holding { task: &task, epoch: 1, workstation: &workstation, adopted_epochs: &[], adopted: &[] };
        let commits: Vec<Made> = (0..25).map(|_| made("T-2", "1", false)).collect();
        let found = findings(&commits, &holding);
        assert_eq!(found.len(), NAMED_MAX + 1);
        assert_eq!(found.last().unwrap().detail, "and 15 more");
    }
}
