//! The decision record of a dependency exception: a short file that people read and review with the code (mission D1).

use crate::file::{if_exists, open, read_open, refused, shown, sync_dir, temporary_beside};
use onus_core::id::{Handle, TaskId};
use onus_core::refusal::Refusal;
use rustix::fs::OFlags;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

const RECORD_MAX: usize = 256 * 1024;
const DATE: &str = "- Date: ";
const STATUS: &str = "- Status: ";
const PROPOSED: &str = "- Status: proposed";

/// What a new record says.
#[derive(Debug)]
pub struct DecisionRecord<'a> {
    pub task: &'a TaskId,
    pub on: &'a TaskId,
    /// The day, as YYYY-MM-DD.
    pub date: &'a str,
    pub requested_by: &'a Handle,
    pub reason: &'a str,
    pub rollback: &'a str,
}

impl DecisionRecord<'_> {
    pub fn text(&self) -> String {
        let DecisionRecord { task, on, date, requested_by, reason, rollback } = self;
        format!(
            "# Exception: {task} does not wait for {on}\n\n{DATE}{date}\n{PROPOSED}\n- Requested by: {requested_by}\n\n\
             ## Reason\n\n{reason}\n\n## Rollback plan\n\n{rollback}\n"
        )
    }
}

/// Whether the file was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Created,
    /// With the same words: an earlier call wrote it.
    Existing,
    /// With other words; it is left as it is.
    Other,
}

/// The path below `root` that `given` names, in one form. What leads out of it is refused, and what leads through a
/// symbolic link, because nobody can say where that will lead tomorrow.
pub fn locate(root: &Path, given: &str) -> Result<String, Refusal> {
    let hint = "name a file below the repository's root, e.g. docs/adr/exception.md";
    let relative = Path::new(given);
    let relative = relative.strip_prefix(root).unwrap_or(relative);
    let mut parts = Vec::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => parts.push(
                name.to_str()
                    .ok_or_else(|| Refusal::invalid("the decision record's path is not UTF-8").hint(hint))?,
            ),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                let given = onus_core::id::shown(given);
                return Err(Refusal::invalid(format!("{given} lies outside the repository")).hint(hint));
            }
        }
    }
    if parts.is_empty() || parts.iter().any(|name| name.eq_ignore_ascii_case(".git")) {
        return Err(Refusal::invalid(format!(
            "{} is no file of the repository",
            onus_core::id::shown(given)
        ))
        .hint(hint));
    }
    let mut path = root.to_owned();
    for name in &parts {
        path.push(name);
        if path.is_symlink() {
            return Err(Refusal::invalid(format!("{} is a symbolic link", shown(&path))).hint(hint));
        }
    }
    Ok(parts.join("/"))
}

/// Writes a record that is not there yet; `relative` comes from [`locate`].
pub fn write(root: &Path, relative: &str, text: &str) -> Result<Written, Refusal> {
    let path = root.join(relative);
    let failed = |e: io::Error| refused("write the decision record", &path, &e);
    if let Some(there) = read(&path)? {
        return Ok(if words(&there) == words(text) { Written::Existing } else { Written::Other });
    }
    let above: PathBuf = path.parent().unwrap_or(root).to_owned();
    fs::create_dir_all(&above).map_err(failed)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    sync_dir(&above).map_err(failed)?;
    Ok(Written::Created)
}

/// Takes a record away that this call has written.
pub fn withdraw(root: &Path, relative: &str) {
    drop(fs::remove_file(root.join(relative)));
}

/// Says in the record who approved it. False when there is no such file, or none with a status that waits.
pub fn approve(root: &Path, relative: &str, by: &Handle, date: &str) -> Result<bool, Refusal> {
    let path = root.join(locate(root, relative)?);
    let Some(text) = read(&path)? else { return Ok(false) };
    let Some(at) = text.lines().position(|line| line.trim_end() == PROPOSED) else { return Ok(false) };
    let approved = format!("{STATUS}approved by {by} on {date}");
    let lines = text.lines().enumerate().map(|(n, line)| if n == at { approved.as_str() } else { line });
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    replace(&path, &text).map_err(|e| refused("write the decision record", &path, &e))?;
    Ok(true)
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let temporary = temporary_beside(path)?;
    let permissions = fs::metadata(path)?.permissions();
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::set_permissions(&temporary, permissions))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        drop(fs::remove_file(&temporary));
    }
    written
}

fn read(path: &Path) -> Result<Option<String>, Refusal> {
    let failed = |e: io::Error| refused("read the decision record", path, &e);
    let Some(file) = if_exists(open(path, OFlags::NOFOLLOW)).map_err(failed)? else { return Ok(None) };
    let bytes = read_open(file, RECORD_MAX).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| Refusal::invalid(format!("{} is not text", shown(path))))
}

/// A record without what changes after it was written.
fn words(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with(DATE) && !line.starts_with(STATUS)).collect()
}
