//! `diff`: what a task's work changes against the main of record, with what was said about its lines.

use crate::Onus;
use crate::remote::calls;
use crate::{Sight, submit::unexpected};
use onus_core::code::Code;
use onus_core::event::Event;
use onus_core::id::{CommitId, Handle, Seq, TaskId};
use onus_core::line_comment::LineComment;
use onus_core::output::redacted;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::Task;
use onus_core::time::Timestamp;
use onus_host::git;
use onus_host::refs::{self, Detail, DiffFile, DiffLine, History, Hunk, Side};
use onus_store::read::ledger;
use onus_store::read::show;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// Where the work is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffSource {
    /// On the branch of the workstation that holds it.
    Branch,
    /// In the main of record.
    Landed,
    /// Kept of a former holder.
    Salvage,
}

/// The answer to `diff`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiffView {
    pub task: TaskId,
    pub source: DiffSource,
    pub base: CommitId,
    pub head: CommitId,
    pub files: Vec<DiffFileView>,
    /// Of all files, also of those that are not told.
    pub added: i64,
    pub deleted: i64,
    /// How many more files there are.
    pub left_out: usize,
    pub comments: Vec<LineCommentView>,
    /// How many earlier comments there are.
    #[serde(default)]
    pub comments_left_out: usize,
    pub untrusted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiffFileView {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    pub added: i64,
    pub deleted: i64,
    pub binary: bool,
    /// Too much has changed to tell it here: ask for the file by its path.
    pub folded: bool,
    pub hunks: Vec<HunkView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HunkView {
    pub heading: String,
    pub lines: Vec<DiffLineView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiffLineView {
    /// `+` is new, `-` is gone, a blank is in both.
    pub sign: char,
    pub old: Option<i64>,
    pub new: Option<i64>,
    /// Without what looks like somebody's key.
    pub text: String,
}

/// What somebody said about a line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LineCommentView {
    pub seq: Seq,
    pub by: Handle,
    pub at: Timestamp,
    pub commit: Option<CommitId>,
    pub path: String,
    pub line: i64,
    pub text: String,
    /// The file is another one now, or the commit is gone.
    pub outdated: bool,
    pub untrusted: bool,
}

/// The last comments on lines of a task's work.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LineCommentsView {
    pub comments: Vec<LineCommentView>,
    pub left_out: usize,
}

/// So many comments are told, and so many bytes of them.
const COMMENTS: usize = 1_000;
const COMMENT_BYTES: usize = 1024 * 1024;

/// How much of a diff is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DiffPart {
    /// Names and numbers.
    Stat,
    #[default]
    Lines,
    /// One file, however much has changed in it.
    File(String),
}

impl Onus {
    /// What the work of a task changes. Asked where the repository is.
    pub fn diff(&mut self, id: &TaskId, part: &DiffPart) -> Result<DiffView, Refusal> {
        let task = self.task(id)?;
        let Some(repo) = self.place.repo.clone() else {
            return Err(Refusal::new(
                Code::UnknownName,
                "there is no repository here that could have the work",
            )
            .task(id)
            .hint(format!("onus diff {id} in a clone of the repository")));
        };
        let history = History::at(&repo.common_dir);
        let (source, base, head) = self.work_of(&task, &history)?;
        let detail = match part {
            DiffPart::Stat => Detail::Files,
            DiffPart::Lines => Detail::Lines,
            DiffPart::File(path) => Detail::File(path),
        };
        let found = history.changes(&base, &head, detail)?;
        if let (DiffPart::File(path), true) = (part, found.files.is_empty()) {
            let detail = format!("{id} changes no file {}", onus_core::id::shown(path));
            return Err(Refusal::new(Code::UnknownName, detail)
                .task(id)
                .hint(format!("onus diff {id} --stat")));
        }
        let LineCommentsView { mut comments, left_out: comments_left_out } = self.line_comments(id)?;
        outdate(&history, &head, &mut comments)?;
        let sum = |of: fn((i64, i64)) -> i64| found.files.iter().filter_map(|file| file.lines).map(of).sum();
        Ok(DiffView {
            task: id.clone(),
            source,
            added: sum(|lines| lines.0),
            deleted: sum(|lines| lines.1),
            base: base.parse().map_err(unexpected)?,
            head: head.parse().map_err(unexpected)?,
            files: found.files.into_iter().map(DiffFileView::from).collect(),
            left_out: found.left_out,
            comments,
            comments_left_out,
            untrusted: true,
        })
    }

    /// The two commits between which the work is: its branch if it has one that is ahead, else what has landed, else what is
    /// kept of a former holder.
    fn work_of(
        &mut self,
        task: &Task,
        history: &History<'_>,
    ) -> Result<(DiffSource, String, String), Refusal> {
        let main = self.trunk()?.seen()?;
        let head = self.head_of_work(task, history)?;
        let fork = |head: &str| -> Result<Option<String>, Refusal> { history.fork_point(&main, head) };
        if let Some(head) = &head
            && let Some(base) = fork(head)?
            && base != *head
        {
            return Ok((DiffSource::Branch, base, head.clone()));
        }
        let arrived = self.landing_of(&task.id)?;
        let landed = arrived.merges.last().map(|(_, merged)| {
            let own = merged.landed.as_ref().map(|landed| landed.commits.clone()).unwrap_or_default();
            if own.is_empty() { vec![merged.commit.clone()] } else { own }
        });
        let landed = landed.unwrap_or_else(|| arrived.landed.iter().map(|one| one.commit.clone()).collect());
        if let (Some(first), Some(last)) = (landed.first(), landed.last()) {
            // It landed from another clone: what a former holder left here is not what landed.
            if history.resolve(first.as_str())?.is_none() || history.resolve(last.as_str())?.is_none() {
                let detail = format!("what landed of {} is not in this repository yet", task.id);
                return Err(Refusal::new(Code::UnknownName, detail).task(&task.id).hint("git fetch"));
            }
            if let Some(base) = history.parent(first.as_str())? {
                return Ok((DiffSource::Landed, base, last.to_string()));
            }
        }
        for epoch in (1..=task.epoch).rev() {
            if let Some(kept) = history.resolve(&onus_core::salvage_reference(&task.id, epoch))?
                && let Some(base) = fork(&kept)?
            {
                return Ok((DiffSource::Salvage, base, kept));
            }
        }
        match head.map(|head| Ok::<_, Refusal>((fork(&head)?, head))).transpose()? {
            // A branch that has nothing of its own yet.
            Some((Some(base), head)) => Ok((DiffSource::Branch, base, head)),
            _ => {
                Err(Refusal::new(Code::UnknownName, format!("nothing of {} is in this repository", task.id))
                    .task(&task.id)
                    .hint(format!("onus show {} tells where it is worked on", task.id)))
            }
        }
    }

    /// Where the holder's work stands, as far as this repository has it.
    fn head_of_work(&mut self, task: &Task, history: &History<'_>) -> Result<Option<String>, Refusal> {
        let Some(held) = task.assignment() else { return Ok(None) };
        let Some(found) = self.find_workstation(&held.workstation)? else { return Ok(None) };
        match (&found.branch, &found.path) {
            (Some(branch), _) => history.resolve(&refs::branch_ref(branch.as_str())),
            (None, Some(path)) if self.sight == Sight::Workstations && self.is_in_this_clone(&found) => {
                Ok(git::head(Path::new(path)))
            }
            _ => Ok(None),
        }
    }

    /// Words about a line that there is not would be shown nowhere. Asked where the repository is; another place believes
    /// it.
    pub fn refuse_missing_lines(
        &mut self,
        task: Option<&TaskId>,
        commit: Option<&CommitId>,
        comments: &[LineComment],
    ) -> Result<(), Refusal> {
        let Some(repo) = self.place.repo.clone().filter(|_| !comments.is_empty()) else { return Ok(()) };
        let history = History::at(&repo.common_dir);
        let head = match (commit, task.map(|task| self.find_task(task)).transpose()?.flatten()) {
            (Some(commit), _) => history.resolve(commit.as_str())?,
            (None, Some(task)) => self.head_of_work(&task, &history)?,
            (None, None) => None,
        };
        let Some(head) = head else { return Ok(()) };
        let mut findings = Vec::new();
        for comment in comments.iter().filter(|comment| comment.checked().is_ok()) {
            let (path, at) = (onus_core::id::shown(&comment.path), head.get(..12).unwrap_or(&head));
            let detail = match history.lines_at(&head, &comment.path)? {
                Some(lines) if comment.line <= lines => continue,
                Some(lines) => format!("{path} has {lines} lines at {at}: there is no line {}", comment.line),
                None => format!("there is no file {path} at {at}"),
            };
            findings.push(Finding::new(Code::InvalidInput, detail));
        }
        let hint = |task: &TaskId| format!("onus diff {task} shows the lines and their numbers");
        match Refusal::from_findings(findings) {
            Some(refusal) => Err(match task {
                Some(task) => refusal.task(task).hint(hint(task)),
                None => refusal,
            }),
            None => Ok(()),
        }
    }

    /// What was said about lines of a task's work, the first one first: the last of it, where there is much.
    pub fn line_comments(&mut self, id: &TaskId) -> Result<LineCommentsView, Refusal> {
        if let Some(answer) = self.remote(|| calls::LineComments { task: id.clone() })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let (mut said, mut left_out) = (VecDeque::new(), 0);
            ledger::chain(tx, Some(&id.to_string()), &mut |_, entry| {
                if let Ok(stamped) = entry?.open()
                    && matches!(stamped.event, Event::LineCommented(_))
                {
                    said.push_back(stamped);
                }
                if said.len() > COMMENTS {
                    said.pop_front();
                    left_out += 1;
                }
                Ok(())
            })?;
            let (mut comments, mut bytes) = (VecDeque::new(), 0);
            while let Some(stamped) = said.pop_back() {
                let Event::LineCommented(line) = stamped.event else { continue };
                if bytes > COMMENT_BYTES {
                    left_out += said.len() + 1;
                    break;
                }
                let text = show::note(tx, stamped.seq)?.unwrap_or_default();
                bytes += text.len();
                comments.push_front(LineCommentView {
                    seq: stamped.seq,
                    by: stamped.actor,
                    at: stamped.at,
                    commit: line.commit,
                    path: line.path,
                    line: line.line,
                    text,
                    outdated: false,
                    untrusted: true,
                });
            }
            Ok(LineCommentsView { comments: comments.into(), left_out })
        })
    }
}

/// A comment is outdated where its file has changed since its commit, or nobody knows that any more.
fn outdate(history: &History<'_>, head: &str, comments: &mut [LineCommentView]) -> Result<(), Refusal> {
    let mut changed: BTreeMap<CommitId, Option<BTreeSet<String>>> = BTreeMap::new();
    for comment in comments {
        let Some(commit) = comment.commit.clone().filter(|commit| commit.as_str() != head) else { continue };
        let paths = match changed.get(&commit) {
            Some(paths) => paths,
            None => {
                let paths = match history.resolve(commit.as_str())?.is_some() {
                    true => Some(history.differing(commit.as_str(), head)?),
                    false => None,
                };
                changed.entry(commit).or_insert(paths)
            }
        };
        comment.outdated = paths.as_ref().is_none_or(|paths| paths.contains(&comment.path));
    }
    Ok(())
}

impl From<DiffFile> for DiffFileView {
    fn from(file: DiffFile) -> DiffFileView {
        let (added, deleted) = file.lines.unwrap_or_default();
        DiffFileView {
            binary: file.lines.is_none(),
            path: file.path,
            old_path: file.old_path,
            added,
            deleted,
            folded: file.folded,
            hunks: file.hunks.into_iter().map(HunkView::from).collect(),
        }
    }
}

impl From<Hunk> for HunkView {
    fn from(hunk: Hunk) -> HunkView {
        let line = |line: DiffLine| DiffLineView {
            sign: match line.side {
                Side::Both => ' ',
                Side::Old => '-',
                Side::New => '+',
            },
            old: line.old,
            new: line.new,
            text: redacted(&line.text),
        };
        HunkView { heading: redacted(&hunk.heading), lines: hunk.lines.into_iter().map(line).collect() }
    }
}
