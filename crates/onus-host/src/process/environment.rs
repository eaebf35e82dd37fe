//! The environment of a command: what is listed, and nothing else.

use onus_core::hash::{Fields, encode_hex};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What a command needs to find programs, its user's files and the user's language.
const ALLOWED: &[&str] = &["PATH", "HOME", "LANG", "TZ", "TERM", "TMPDIR", "USER"];
/// Beside `LANG`, one variable for each category.
const ALLOWED_PREFIX: &[u8] = b"LC_";
/// Whoever has these may write in our name; a command that a task brought along must not have them.
const SECRET: &[&str] = &["ONUS_LEASE", "ONUS_TOKEN"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    pairs: Vec<(OsString, OsString)>,
}

impl Environment {
    pub fn of_process() -> Environment {
        Environment::allowed(std::env::vars_os())
    }

    /// The listed ones of these variables.
    pub fn allowed(variables: impl Iterator<Item = (OsString, OsString)>) -> Environment {
        let is_allowed = |name: &OsStr| {
            ALLOWED.iter().any(|allowed| name == *allowed) || name.as_bytes().starts_with(ALLOWED_PREFIX)
        };
        Environment { pairs: variables.filter(|(name, _)| is_allowed(name)).collect() }
    }

    /// One more, in place of one of the same name. A secret is left out whoever gives it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Environment {
        self.pairs.retain(|(other, _)| other != name);
        if !SECRET.contains(&name) {
            self.pairs.push((name.into(), value.into()));
        }
        self
    }

    /// What a command saw of its surroundings, without telling it.
    pub fn digest(&self) -> String {
        let mut pairs: Vec<_> = self.pairs().collect();
        pairs.sort_unstable();
        let mut fields = Fields::new("onus-environment-1");
        for (name, value) in pairs {
            fields.text(&name.to_string_lossy()).text(&value.to_string_lossy());
        }
        encode_hex(&fields.digest().0)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.pairs.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_passed_on() {
        let given = ["PATH", "LC_ALL", "LC_TIME", "ONUS_LEASE", "GITHUB_TOKEN", "GIT_DIR", "LCX", "PATHX"];
        let environment = Environment::allowed(given.iter().map(|name| (name.into(), "v".into())));
        let names: Vec<_> = environment.pairs().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["PATH", "LC_ALL", "LC_TIME"]);
    }

    #[test]
    fn what_is_added_replaces_and_is_never_a_secret() {
        let environment = Environment::default()
            .with("ONUS_TASK", "API-1")
            .with("ONUS_TASK", "API-2")
            .with("ONUS_LEASE", "1.2.3")
            .with("ONUS_TOKEN", "x");
        let pairs: Vec<_> = environment.pairs().collect();
        assert_eq!(pairs, [(OsStr::new("ONUS_TASK"), OsStr::new("API-2"))]);
    }
}
