//! Reads `onus.yaml`.

use crate::file::{if_exists, read_capped, refused, shown};
use crate::git::Git;
use crate::repository::Repo;
use crate::yaml::{self, SIZE_MAX, Words};
use onus_core::code::Code;
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::Settings;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const WORDS: Words = Words {
    code: Code::InvalidInput,
    entry: "setting",
    entries: "settings",
    remedy: "correct it, or remove the line to have the default",
};

/// The settings in `path`; the defaults when there is no such file.
pub fn load(path: &Path) -> Result<Settings, Refusal> {
    let bytes = if_exists(read_capped(path, SIZE_MAX)).map_err(|e| match e.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidData => {
            Refusal::invalid(format!("{} is {e}", shown(path))).hint("settings are a small YAML file")
        }
        _ => refused("read", path, &e),
    })?;
    match bytes {
        Some(bytes) => parse(&bytes, &shown(path)),
        None => Ok(Settings::default()),
    }
}

/// Which text a file had: one that was written or replaced since has other marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    file: u64,
    length: u64,
    written: (i64, i64),
}

impl Marks {
    fn of(path: &Path) -> Option<Marks> {
        let found = std::fs::metadata(path).ok()?;
        Some(Marks { file: found.ino(), length: found.len(), written: (found.mtime(), found.mtime_nsec()) })
    }
}

/// A settings file that somebody may edit while a program runs for long.
#[derive(Debug)]
pub struct SettingsWatch {
    path: PathBuf,
    seen: Option<Marks>,
}

impl SettingsWatch {
    /// What there is is read once more the first time: it may be newer than what the program has.
    pub fn new(path: PathBuf) -> SettingsWatch {
        SettingsWatch { path, seen: None }
    }

    /// The settings, once, where the file is another than before. A file that was taken away means the defaults.
    pub fn changed(&mut self) -> Option<Result<Settings, Refusal>> {
        let now = Marks::of(&self.path);
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(load(&self.path))
    }
}

/// The settings that the main branch of a repository without a working tree has committed.
pub fn committed(repo: &Repo) -> Result<Settings, Refusal> {
    // Nothing is committed yet, or no such file is.
    match Git::on_common(repo, "cat-file").args(&["blob", "HEAD:onus.yaml"]).run() {
        Ok(bytes) if bytes.len() > SIZE_MAX => {
            Err(Refusal::invalid("onus.yaml is too large").hint("settings are a small YAML file"))
        }
        Ok(bytes) => parse(&bytes, "onus.yaml"),
        Err(_) => Ok(Settings::default()),
    }
}

/// A settings file's text. `name` is the file's, for messages.
pub fn parse(bytes: &[u8], name: &str) -> Result<Settings, Refusal> {
    let settings: Settings = yaml::parse_all(bytes, name, &WORDS).map_err(|mistakes| {
        match <[Refusal; 1]>::try_from(mistakes.refusals) {
            Ok([only]) => only,
            Err(several) => {
                let findings =
                    several.into_iter().map(|one| Finding::new(one.code, one.detail).hinted(one.hint));
                Refusal::from_findings(findings.collect())
                    .unwrap_or_else(|| Refusal::invalid(format!("{name} cannot be read")))
            }
        }
    })?;
    match Refusal::from_findings(settings.mistakes()) {
        Some(refusal) => Err(refusal),
        None => Ok(settings),
    }
}

/// The JSON Schema of `onus.yaml`, for editors.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Settings);
    schema.insert("title".into(), "onus.yaml".into());
    schema.to_value()
}
