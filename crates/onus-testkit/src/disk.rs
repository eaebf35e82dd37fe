//! A disk that loses power: what a program wrote since the last sync is there, half there, or not there at all.
//!
//! A run is recorded with strace. Played step by step, the disk knows at every moment what must have survived and what
//! may have.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a disk writes at once, or not at all.
const SECTOR: usize = 512;

/// One system call that changes files of the directory, or tells somebody something.
#[derive(Debug, Clone)]
pub enum Step {
    /// Over a socket: what was promised here must be kept from here on.
    Say(Vec<u8>),
    Create(PathBuf),
    Write {
        file: PathBuf,
        at: usize,
        bytes: Vec<u8>,
    },
    Cut {
        file: PathBuf,
        length: usize,
    },
    Remove(PathBuf),
    Sync(PathBuf),
}

/// The same command under strace, which writes what happens to `trace`.
pub fn recorded(command: &Command, trace: &Path) -> Command {
    let calls = "openat,open,creat,pwrite64,write,writev,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,unlink,\
        unlinkat,rename,renameat,renameat2,link,linkat,sendto,sendmsg";
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-xx", "-s", "1000000", "-e", &format!("trace={calls}"), "-o"]).arg(trace);
    strace.arg(command.get_program()).args(command.get_args());
    strace.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    if let Some(directory) = command.get_current_dir() {
        strace.current_dir(directory);
    }
    strace
}

/// What the trace says about the file `store`, those beside it whose names begin with its name, and their directory; and
/// what was said over sockets. One thread alone may write to the store.
pub fn steps(trace: &Path, store: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(trace).unwrap();
    whole(&text).iter().filter_map(|call| step(call, store)).collect()
}

/// Each call in one piece, where it ended: strace tells the beginning and the end of one apart when another came between.
fn whole(trace: &str) -> Vec<String> {
    let mut begun = BTreeMap::new();
    let mut calls = Vec::new();
    for (thread, call) in trace.lines().filter_map(|line| line.split_once(' ')) {
        let call = call.trim_start();
        if let Some(beginning) = call.strip_suffix("<unfinished ...>") {
            begun.insert(thread, beginning.trim_end());
        } else if let Some((_, end)) =
            call.split_once(" resumed>").filter(|(name, _)| name.starts_with("<..."))
        {
            calls.push(begun.remove(thread).unwrap_or_default().to_owned() + end);
        } else {
            calls.push(call.to_owned());
        }
    }
    calls
}

fn step(call: &str, store: &Path) -> Option<Step> {
    let (asked, result) = call.rsplit_once(" = ")?;
    // The result stands in a column of its own.
    let (name, rest) = asked.trim_end().split_once('(')?;
    let words = Words::of(rest.strip_suffix(')')?, result);
    let begins = |path: &Path| path.as_os_str().as_bytes().starts_with(store.as_os_str().as_bytes());
    let concerns = |path: &&PathBuf| begins(path) || Some(path.as_path()) == store.parent();
    if words.paths.first().is_some_and(|path| path.as_os_str().as_bytes().starts_with(b"socket:")) {
        return Some(Step::Say(words.texts.concat()));
    }
    // What is written may look like a path: only where it goes counts.
    let is_write = name.starts_with("write") || name.starts_with("pwrite");
    let named = if is_write { words.paths.get(..1)? } else { &words.paths[..] };
    let file = named.iter().rev().find(concerns)?.clone();
    if result.starts_with("-1 ") {
        return None;
    }
    let number = |n: usize| words.numbers[n];
    match name {
        "openat" | "open" if rest.contains("O_CREAT") => Some(Step::Create(file)),
        "openat" | "open" => None,
        "pwrite64" => Some(Step::Write { file, at: number(1), bytes: words.texts[0].clone() }),
        "ftruncate" => Some(Step::Cut { file, length: number(0) }),
        "fsync" | "fdatasync" => Some(Step::Sync(file)),
        "unlink" | "unlinkat" => Some(Step::Remove(file)),
        other => panic!("a disk that does not know {other}: {call}"),
    }
}

/// What the arguments of a call say. Every text is in hexadecimal.
#[derive(Default)]
struct Words {
    paths: Vec<PathBuf>,
    texts: Vec<Vec<u8>>,
    numbers: Vec<usize>,
}

impl Words {
    fn of(arguments: &str, result: &str) -> Words {
        let mut words = Words::default();
        for word in arguments.split(", ").chain([result]) {
            if let Some((_, path)) = word.split_once('<') {
                words.paths.push(path_of(unescaped(path)));
            } else if let Some((_, text)) = word.split_once('"') {
                let text = unescaped(text);
                words.paths.push(path_of(text.clone()));
                words.texts.push(text);
            } else if let Ok(number) = word.parse() {
                words.numbers.push(number);
            }
        }
        words
    }
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

fn unescaped(text: &str) -> Vec<u8> {
    let escaped = text.split(['"', '>']).next().unwrap_or_default();
    escaped.split("\\x").skip(1).map(|byte| u8::from_str_radix(&byte[..2], 16).unwrap()).collect()
}

#[derive(Debug, Clone, Default)]
struct File {
    /// What a program sees.
    seen: Vec<u8>,
    /// What survives whatever happens.
    synced: Vec<u8>,
    /// What came since; each may be lost.
    pending: Vec<Step>,
    /// Whether its name survives too.
    named: bool,
}

/// The directory as the programs see it, and as the disk may have it.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    files: BTreeMap<PathBuf, File>,
    /// Removed, and not yet for good.
    removed: BTreeMap<PathBuf, File>,
    directory: PathBuf,
}

impl Disk {
    pub fn new(directory: &Path) -> Disk {
        Disk { directory: directory.to_owned(), ..Disk::default() }
    }

    /// The files that are there already, and safe.
    pub fn holding(directory: &Path) -> Disk {
        let mut disk = Disk::new(directory);
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                let content = std::fs::read(entry.path()).unwrap();
                let file = File { seen: content.clone(), synced: content, named: true, ..File::default() };
                disk.files.insert(entry.path(), file);
            }
        }
        disk
    }

    pub fn play(&mut self, step: &Step) {
        match step {
            Step::Say(_) => {}
            Step::Create(file) => drop(self.files.entry(file.clone()).or_default()),
            Step::Write { file, .. } | Step::Cut { file, .. } => {
                let file = self.files.entry(file.clone()).or_default();
                apply(&mut file.seen, step, usize::MAX);
                file.pending.push(step.clone());
            }
            Step::Remove(file) => {
                if let Some(gone) = self.files.remove(file) {
                    self.removed.insert(file.clone(), gone);
                }
            }
            Step::Sync(directory) if *directory == self.directory => {
                self.removed.clear();
                self.files.values_mut().for_each(|file| file.named = true);
            }
            // Journalling file systems write a new file's name with its content.
            Step::Sync(file) => {
                let file = self.files.entry(file.clone()).or_default();
                file.synced.clone_from(&file.seen);
                file.pending.clear();
                file.named = true;
            }
        }
    }

    /// What is found when power is back. `chance(n)` is a number below `n`.
    pub fn after_power_loss(&self, chance: &mut dyn FnMut(u64) -> u64) -> BTreeMap<PathBuf, Vec<u8>> {
        // All of it, none of it, and everything between are different accidents.
        let kept = [0, 30, 70, 100][usize::try_from(chance(4)).unwrap()];
        let mut found = BTreeMap::new();
        let survivors =
            self.files.iter().chain(self.removed.iter().filter(|(path, _)| !self.files.contains_key(*path)));
        for (path, file) in survivors {
            let is_certain = file.named && self.files.contains_key(path);
            if !is_certain && chance(100) >= kept {
                continue;
            }
            let mut bytes = file.synced.clone();
            for step in &file.pending {
                match chance(100) {
                    lot if lot >= kept => {}
                    // A write that was under way is there in part.
                    lot if lot % 10 == 0 => {
                        apply(&mut bytes, step, SECTOR * usize::try_from(chance(8)).unwrap());
                    }
                    _ => apply(&mut bytes, step, usize::MAX),
                }
            }
            found.insert(path.clone(), bytes);
        }
        found
    }
}

/// The first `limit` bytes of a step.
fn apply(content: &mut Vec<u8>, step: &Step, limit: usize) {
    match step {
        Step::Write { at, bytes, .. } => {
            let bytes = &bytes[..bytes.len().min(limit)];
            let end = at + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*at..end].copy_from_slice(bytes);
        }
        Step::Cut { length, .. } => content.resize(*length, 0),
        Step::Say(_) | Step::Create(_) | Step::Remove(_) | Step::Sync(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `-` where nothing is found.
    fn found(disk: &Disk, chance: u64) -> String {
        let image = disk.after_power_loss(&mut |n| chance % n);
        image.get(Path::new("/d/f")).map_or("-".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    #[test]
    fn what_was_synced_survives_and_the_rest_may() {
        let file = PathBuf::from("/d/f");
        let write = |at, text: &str| Step::Write { file: file.clone(), at, bytes: text.into() };
        let mut disk = Disk::new(Path::new("/d"));
        // With chance 0 nothing unsynced is kept, with 99 everything.
        for (step, least, most) in [
            (Step::Create(file.clone()), "-", ""),
            (write(0, "abc"), "-", "abc"),
            (Step::Sync(file.clone()), "abc", "abc"),
            (write(2, "xyz"), "abc", "abxyz"),
            (Step::Cut { file: file.clone(), length: 1 }, "abc", "a"),
            (Step::Sync(file.clone()), "a", "a"),
            (Step::Remove(file.clone()), "-", "a"),
            (Step::Sync("/d".into()), "-", "-"),
        ] {
            disk.play(&step);
            assert_eq!((found(&disk, 0).as_str(), found(&disk, 99).as_str()), (least, most), "{step:?}");
        }
    }

    #[test]
    fn a_trace_is_read() {
        let hex = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
        let (file, folder) = (hex("/d/f"), hex("/d"));
        let trace = tempfile::NamedTempFile::new().unwrap();
        let lines = [
            format!("7 openat(AT_FDCWD<{}>, \"{file}\", O_RDWR|O_CREAT, 0600) = 3<{file}>", hex("/x")),
            format!("7 pwrite64(3<{file}>, \"{}\", 2, 4096) = 2", hex("hi")),
            format!("7 ftruncate(3<{file}>, 8) = 0"),
            format!("7 fsync(4<{folder}>)         = 0"),
            format!("7 fsync(4<{file}>) = -1 EIO (Input/output error) (INJECTED)"),
            format!("7 unlink(\"{file}\") = 0"),
            format!("7 write(1<{}>, \"{}\", 2) = 2", hex("/tmp/out"), hex("hi")),
            format!("7 fsync(3<{file}> <unfinished ...>"),
            format!("8 writev(9<{}>, [{{iov_base=\"{}\", iov_len=1}}], 1) = 1", hex("socket:[1]"), hex("a")),
            "7 <... fsync resumed>)          = 0".into(),
            "7 +++ exited with 0 +++".into(),
        ];
        std::fs::write(trace.path(), lines.join("\n")).unwrap();
        let told = format!("{:?}", steps(trace.path(), Path::new("/d/f")));
        assert_eq!(
            told,
            "[Create(\"/d/f\"), Write { file: \"/d/f\", at: 4096, bytes: [104, 105] }, \
             Cut { file: \"/d/f\", length: 8 }, Sync(\"/d\"), Remove(\"/d/f\"), Say([97]), Sync(\"/d/f\")]"
        );
    }
}
