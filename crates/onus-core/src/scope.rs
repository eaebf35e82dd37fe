//! Scopes: the paths that a task's work may touch. Two live assignments never overlap in them (mission C7).

mod braces;
mod class;
mod glob;

pub use glob::Glob;

use crate::code::Code;
use crate::id::{Handle, TaskId, shown};
use crate::refusal::Finding;
use crate::text::{GLOB_MAX, line};

/// All globs of a scope together: comparing two scopes takes time in proportion to the product of their sizes.
const SIZE_MAX: usize = 4_096;

/// What a task's globs say together.
#[derive(Debug, Clone)]
pub struct Scope {
    globs: Vec<Glob>,
}

impl Scope {
    /// Refuses with every reason at once.
    pub fn parse(texts: &[String]) -> Result<Scope, Vec<String>> {
        let (mut globs, mut reasons) = (Vec::new(), Vec::new());
        for text in texts {
            match glob(text) {
                Ok(glob) => globs.push(glob),
                Err(reason) => reasons.push(reason),
            }
        }
        let size: usize = globs.iter().map(Glob::size).sum();
        if size > SIZE_MAX {
            reasons.push(format!("the scope has {size} letters; the limit is {SIZE_MAX}: name directories"));
        }
        if reasons.is_empty() { Ok(Scope { globs }) } else { Err(reasons) }
    }

    /// A path that lies in both.
    pub fn overlap(&self, other: &Scope) -> Option<String> {
        self.globs.iter().find_map(|own| other.globs.iter().find_map(|theirs| own.intersects(theirs)))
    }
}

fn glob(text: &str) -> Result<Glob, String> {
    let line = line("the scope", text, GLOB_MAX)?;
    Glob::parse(&line).map_err(|reason| format!("the scope `{line}` {reason}"))
}

/// The scope of a live assignment, read once.
#[derive(Debug)]
pub struct Taken {
    task: TaskId,
    holder: Handle,
    scope: Result<Scope, Vec<String>>,
}

impl Taken {
    pub fn of((task, holder, scope): &(TaskId, Handle, Vec<String>)) -> Taken {
        Taken { task: task.clone(), holder: holder.clone(), scope: Scope::parse(scope) }
    }
}

/// One finding per live assignment whose scope meets this one. A task without a scope overlaps nothing.
pub fn findings(scope: &[String], live: &[(TaskId, Handle, Vec<String>)]) -> Vec<Finding> {
    if scope.is_empty() {
        return Vec::new();
    }
    findings_against(scope, &live.iter().map(Taken::of).collect::<Vec<Taken>>())
}

/// The same, for many tasks that are compared with the same live assignments.
pub fn findings_against(scope: &[String], live: &[Taken]) -> Vec<Finding> {
    if scope.is_empty() {
        return Vec::new();
    }
    let own = match Scope::parse(scope) {
        Ok(own) => own,
        Err(reasons) => {
            return reasons.into_iter().map(|reason| Finding::new(Code::InvalidInput, reason)).collect();
        }
    };
    let met = live.iter().filter_map(|Taken { task, holder, scope }| {
        let detail = match scope.as_ref().map(|theirs| own.overlap(theirs)) {
            Ok(None) => return None,
            Ok(Some(path)) => format!("{} is also in the scope of {task}, held by {holder}", shown(&path)),
            // What cannot be read cannot be told apart, either.
            Err(reasons) => format!("{task}, held by {holder}, may overlap: {}", reasons.join("; ")),
        };
        let hint = format!("take other work: onus ready, or wait for {task}: onus show {task}");
        Some(Finding::new(Code::ScopeOverlap, detail).hint(hint))
    });
    met.collect()
}
