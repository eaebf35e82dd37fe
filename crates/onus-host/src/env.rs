//! The environment variables that decide where things are.

use onus_core::code::Code;
use onus_core::output::is_secret_name;
use onus_core::refusal::Refusal;
use std::path::{Path, PathBuf};

/// A reading of the environment. An empty variable counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// `GIT_DIR`, which git sets for its hooks.
    pub git_dir: Option<PathBuf>,
    /// `GIT_COMMON_DIR`
    pub git_common_dir: Option<PathBuf>,
    /// `GIT_WORK_TREE`
    pub git_work_tree: Option<PathBuf>,
    /// `ONUS_KEY_DIR`
    pub key_dir: Option<PathBuf>,
    /// `XDG_DATA_HOME`
    pub data_home: Option<PathBuf>,
    /// `HOME`
    pub home: Option<PathBuf>,
}

/// What the environment keeps under telling names: nobody who reads an output may see it.
pub fn secret_values() -> Vec<String> {
    let all = std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value));
    all.filter(|(name, _)| is_secret_name(name))
        .map(|(_, value)| value.to_string_lossy().into_owned())
        .collect()
}

impl Env {
    pub fn of_process() -> Env {
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Env {
            git_dir: path("GIT_DIR"),
            git_common_dir: path("GIT_COMMON_DIR"),
            git_work_tree: path("GIT_WORK_TREE"),
            key_dir: path("ONUS_KEY_DIR"),
            data_home: path("XDG_DATA_HOME"),
            home: path("HOME"),
        }
    }

    /// Where the ledger's keys are: outside every repository, so that no clone or backup of one carries them.
    pub fn keys(&self) -> Result<PathBuf, Refusal> {
        match &self.key_dir {
            Some(dir) => absolute_key_dir(dir),
            None => Ok(self.data()?.join("keys")),
        }
    }

    /// Where anchors of stores outside git are: beside the keys.
    pub fn anchors(&self) -> Result<PathBuf, Refusal> {
        self.beside_keys("anchors")
    }

    /// Where the supervisors of this host keep their locks, one directory for each workspace.
    pub fn fleets(&self) -> Result<PathBuf, Refusal> {
        self.beside_keys("fleets")
    }

    fn beside_keys(&self, name: &str) -> Result<PathBuf, Refusal> {
        match &self.key_dir {
            Some(dir) => Ok(absolute_key_dir(dir)?.with_file_name(name)),
            None => Ok(self.data()?.join(name)),
        }
    }

    fn data(&self) -> Result<PathBuf, Refusal> {
        // The XDG specification has a relative path ignored.
        if let Some(data) = self.data_home.as_deref().filter(|path| path.is_absolute()) {
            return Ok(data.join("onus"));
        }
        match self.home.as_deref().filter(|path| path.is_absolute()) {
            Some(home) => Ok(home.join(".local/share/onus")),
            None => Err(Refusal::new(
                Code::StoreUnavailable,
                "there is no directory for the ledger's keys: HOME is not set",
            )
            .hint("set HOME, or ONUS_KEY_DIR to a private directory")),
        }
    }
}

/// A relative directory would be another one after every `cd`, and so would the key in it.
fn absolute_key_dir(dir: &Path) -> Result<PathBuf, Refusal> {
    if dir.is_absolute() && dir.file_name().is_some() {
        return Ok(dir.to_owned());
    }
    Err(Refusal::invalid(format!("ONUS_KEY_DIR is `{}`, not an absolute path of a directory", dir.display()))
        .hint("set ONUS_KEY_DIR to an absolute path such as /home/you/onus/keys"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(key_dir: &str, data_home: &str, home: &str) -> Env {
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        Env { key_dir: path(key_dir), data_home: path(data_home), home: path(home), ..Env::default() }
    }

    #[test]
    fn the_most_specific_variable_decides() {
        for (key_dir, data_home, home, keys, anchors) in [
            ("", "", "/h", "/h/.local/share/onus/keys", "/h/.local/share/onus/anchors"),
            ("", "/x", "/h", "/x/onus/keys", "/x/onus/anchors"),
            ("", "relative", "/h", "/h/.local/share/onus/keys", "/h/.local/share/onus/anchors"),
            ("/k/mine", "/x", "/h", "/k/mine", "/k/anchors"),
        ] {
            let env = env(key_dir, data_home, home);
            assert_eq!(env.keys(), Ok(keys.into()), "{env:?}");
            assert_eq!(env.anchors(), Ok(anchors.into()), "{env:?}");
        }
    }

    #[test]
    fn no_key_directory_is_guessed() {
        for (key_dir, data_home, home, code) in [
            ("", "", "", Code::StoreUnavailable),
            ("", "", "relative", Code::StoreUnavailable),
            ("relative", "/x", "/h", Code::InvalidInput),
            ("/", "/x", "/h", Code::InvalidInput),
        ] {
            let env = env(key_dir, data_home, home);
            assert_eq!(env.keys().unwrap_err().code, code, "{env:?}");
            assert_eq!(env.anchors().unwrap_err().code, code, "{env:?}");
        }
    }
}
