//! Reads `onus.yaml`.

use crate::file::{if_exists, read_capped, refused, shown};
use crate::yaml::{self, SIZE_MAX, Words};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
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

/// A settings file's text. `name` is the file's, for messages.
pub fn parse(bytes: &[u8], name: &str) -> Result<Settings, Refusal> {
    yaml::parse(bytes, name, &WORDS)
}

/// The JSON Schema of `onus.yaml`, for editors.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Settings);
    schema.insert("title".into(), "onus.yaml".into());
    schema.to_value()
}
