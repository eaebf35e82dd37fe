//! The anchor as numbered directories, for a store outside git. Each entry names the one before it and its id covers
//! its content, so that the chain shows what was changed.

use crate::anchor::{broken, lost_race};
use crate::file::{
    create_new, create_private_dir, if_exists, printable, read_capped, refused, shown, sync_dir,
    temporary_beside,
};
use onus_core::hash::Fields;
use onus_core::refusal::Refusal;
use std::fs;
use std::io;
use std::path::Path;

/// Names the entry before and the message. Hidden, so that no file of a caller can have its name.
const ABOUT: &str = ".about";
const FILE_MAX: usize = 64 * 1024 * 1024;
const LAST: u32 = 99_999_999;

pub(crate) fn tip(dir: &Path) -> Result<Option<String>, Refusal> {
    let newest = numbers(dir).map_err(|e| refused("read", dir, &e))?.into_iter().max();
    newest.map(|number| Entry::read(dir, number).map(|entry| entry.id())).transpose()
}

pub(crate) fn append(
    dir: &Path,
    expected: Option<&str>,
    files: &[(&str, &[u8])],
    message: &str,
) -> Result<String, Refusal> {
    let tip = tip(dir)?;
    if tip.as_deref() != expected {
        return Err(lost_race(format!("another process appended to {} first", shown(dir))));
    }
    let number = match tip {
        Some(tip) => number_in(&tip).map_or(1, |number| number + 1),
        None => 1,
    };
    if number > LAST {
        return Err(broken(format!("{} is full", shown(dir))));
    }
    let about = format!("after {}\n{message}\n", expected.unwrap_or("nothing"));
    let mut files: Vec<_> = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    files.push((ABOUT.to_owned(), about.into_bytes()));
    files.sort();
    let entry = Entry { number, files };
    write(dir, &entry).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
            lost_race(format!("another process appended to {} first", shown(dir)))
        }
        _ => refused("write the anchor", dir, &e),
    })?;
    Ok(entry.id())
}

pub(crate) fn read(dir: &Path, id: &str, file: &str) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(number) = number_in(id) else { return Ok(None) };
    if !dir.join(name_of(number)).is_dir() {
        return Ok(None);
    }
    let entry = Entry::read(dir, number)?;
    if entry.id() != id {
        return Err(broken(format!(
            "the anchor {} is not {id}: it was changed",
            shown(&dir.join(name_of(number)))
        )));
    }
    Ok(entry.files.into_iter().find(|(name, _)| name == file).map(|(_, bytes)| bytes))
}

pub(crate) fn history(dir: &Path) -> Result<Vec<String>, Refusal> {
    let mut ids = Vec::new();
    let mut next = tip(dir)?;
    // An id covers what its entry follows, so that this cannot go round in a circle.
    while let Some(id) = next {
        let about = read(dir, &id, ABOUT)?
            .ok_or_else(|| broken(format!("the anchor {} has no {}", shown(dir), printable(&id))))?;
        let about = String::from_utf8_lossy(&about);
        let after = about
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("after "))
            .ok_or_else(|| broken(format!("the anchor {} does not say what {id} follows", shown(dir))))?;
        next = (after != "nothing").then(|| after.to_owned());
        ids.push(id);
    }
    Ok(ids)
}

struct Entry {
    number: u32,
    /// Sorted by name.
    files: Vec<(String, Vec<u8>)>,
}

impl Entry {
    fn read(dir: &Path, number: u32) -> Result<Entry, Refusal> {
        let path = dir.join(name_of(number));
        let files = read_files(&path).map_err(|e| refused("read the anchor", &path, &e))?;
        Ok(Entry { number, files })
    }

    fn id(&self) -> String {
        let mut fields = Fields::new("onus-anchor-1");
        for (name, bytes) in &self.files {
            fields.text(name).bytes(bytes);
        }
        format!("{}-{}", name_of(self.number), &fields.digest().to_string()[..16])
    }
}

fn read_files(path: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), read_capped(&entry.path(), FILE_MAX)?));
    }
    files.sort();
    Ok(files)
}

/// The entry appears under its number with everything in it, or not at all; the number is what two writers race for.
fn write(dir: &Path, entry: &Entry) -> io::Result<()> {
    let path = dir.join(name_of(entry.number));
    let temporary = temporary_beside(&path)?;
    create_private_dir(&temporary)?;
    let written = entry
        .files
        .iter()
        .try_for_each(|(name, bytes)| create_new(&temporary.join(name), bytes)?.sync_all())
        .and_then(|()| sync_dir(&temporary))
        .and_then(|()| fs::rename(&temporary, &path));
    if let Err(e) = written {
        let _ = fs::remove_dir_all(&temporary);
        return Err(e);
    }
    sync_dir(dir)
}

fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let Some(entries) = if_exists(fs::read_dir(dir))? else { return Ok(Vec::new()) };
    let mut numbers = Vec::new();
    for entry in entries {
        numbers.extend(parse_name(&entry?.file_name().to_string_lossy()));
    }
    Ok(numbers)
}

fn name_of(number: u32) -> String {
    format!("{number:08}")
}

fn parse_name(name: &str) -> Option<u32> {
    (name.len() == 8 && name.bytes().all(|b| b.is_ascii_digit())).then(|| name.parse().ok()).flatten()
}

fn number_in(id: &str) -> Option<u32> {
    let (number, digest) = id.split_once('-')?;
    let is_digest = digest.len() == 16 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    parse_name(number).filter(|_| is_digest)
}
