//! Reads `onus.yaml`.

use crate::file::{if_exists, read_capped, refused, shown};
use crate::git::Git;
use crate::repository::Repo;
use crate::yaml::{self, SIZE_MAX, Words};
use onus_core::code::Code;
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::Settings;
use std::io;
use std::path::Path;

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
