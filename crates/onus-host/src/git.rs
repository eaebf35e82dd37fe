//! Runs git itself: argument lists, never a shell; our surroundings kept out; no prompt, no network.

use crate::file::printable;
use crate::repository::Repo;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What would make git look at another repository, index or object store than the one we name, or date a commit as
/// another one. (`git rev-parse --local-env-vars`, and what git sets while it receives a push or rewrites commits.)
const FOREIGN: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// How long another git that writes the configuration is waited for.
const CONFIG_PATIENCE: Duration = Duration::from_secs(5);
const CONFIG_PAUSE: Duration = Duration::from_millis(20);

/// Why a run of git gave no answer.
#[derive(Debug)]
pub enum Failure {
    /// There is no git to run.
    Missing,
    /// It could not be started, or its output not be read.
    NotRun(io::Error),
    /// It ran and said no.
    Failed { verb: String, exit: Option<i32>, stderr: String },
    /// A value that git could take for an option.
    OptionLike(String),
}

impl Failure {
    /// git ran and left with this code.
    pub fn is_exit(&self, code: i32) -> bool {
        matches!(self, Failure::Failed { exit: Some(exit), .. } if *exit == code)
    }

    /// What git said, if it ran.
    pub fn said(&self) -> &str {
        if let Failure::Failed { stderr, .. } = self { stderr } else { "" }
    }
}

/// Objects that a push brought and that are not yet the repository's own: git shows them to `pre-receive` only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    pub objects: OsString,
    pub alternates: OsString,
}

impl Incoming {
    /// What git told this process, if it is a hook inside a push.
    pub fn of_process() -> Option<Incoming> {
        std::env::var_os("GIT_QUARANTINE_PATH")?;
        Some(Incoming {
            objects: std::env::var_os("GIT_OBJECT_DIRECTORY")?,
            alternates: std::env::var_os("GIT_ALTERNATE_OBJECT_DIRECTORIES")?,
        })
    }
}

/// The refusal where git is needed to reach what belongs to the store. Others choose their own code.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        let unavailable = |detail: String| Refusal::new(Code::StoreUnavailable, detail);
        match failure {
            Failure::Missing => unavailable("the git command was not found".into())
                .hint("install git, or put the directory it is in on PATH"),
            Failure::NotRun(e) => unavailable(format!("git could not be run: {e}")),
            Failure::Failed { verb, stderr, .. } => {
                let first = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
                unavailable(format!("git {verb} failed: {}", printable(first)))
                    .hint("run `git fsck` if the repository looks damaged")
            }
            Failure::OptionLike(value) => {
                Refusal::invalid(format!("{} begins with a dash", onus_core::id::shown(&value)))
            }
        }
    }
}

/// One run of git.
#[derive(Debug)]
pub struct Git {
    command: Command,
    verb: String,
    input: Option<Vec<u8>>,
    refused_value: Option<String>,
}

impl Git {
    /// git as if started in `dir`.
    pub fn in_dir(dir: &Path, verb: &str) -> Git {
        let mut git = Git::new(verb);
        git.command.arg("-C").arg(dir);
        git.verb(verb)
    }

    /// git on what all working trees of the repository share. Hooks are off: what is written here is ours.
    pub fn on_common(repo: &Repo, verb: &str) -> Git {
        let mut git = Git::new(verb);
        git.command.arg("--git-dir").arg(&repo.common_dir);
        git.without_hooks().verb(verb)
    }

    /// git as if started in `dir`, for what is ours to do there: hooks are off.
    pub fn ours(dir: &Path, verb: &str) -> Git {
        Git::ours_with(dir, &[], verb)
    }

    /// The same with settings (`name=value`) of this run only.
    pub fn ours_with(dir: &Path, settings: &[&str], verb: &str) -> Git {
        let mut git = Git::new(verb);
        git.command.arg("-C").arg(dir);
        git = git.without_hooks();
        for setting in settings {
            git.command.args(["-c", setting]);
        }
        git.verb(verb)
    }

    fn without_hooks(mut self) -> Git {
        self.command.args(["-c", "core.hooksPath=/dev/null"]);
        // git does not sync loose objects unless told; a reference to a lost one would be worse than none.
        self.command.args(["-c", "core.fsync=committed,reference", "-c", "core.commitGraph=false"]);
        self.command.args(["-c", "advice.graftFileDeprecated=false"]);
        self
    }

    fn new(verb: &str) -> Git {
        let mut command = Command::new("git");
        for name in FOREIGN {
            command.env_remove(name);
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_ADVICE", "0")
            // A replacement or a graft would show another history than the one that was recorded.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null");
        Git { command, verb: verb.to_owned(), input: None, refused_value: None }
    }

    fn verb(mut self, verb: &str) -> Git {
        self.command.arg(verb);
        self
    }

    /// Arguments that this program wrote.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Git {
        self.command.args(args);
        self
    }

    /// Values from elsewhere. The last arguments of a run: options end here.
    #[must_use]
    pub fn values(mut self, values: &[&str]) -> Git {
        self.command.arg("--end-of-options").args(values);
        self.refused_value =
            values.iter().find(|value| value.starts_with('-')).map(|value| (*value).to_owned());
        self
    }

    /// The same for `checkout`, `switch` and `reset`: git before 2.43 takes the mark that ends the options for a value there.
    #[must_use]
    pub fn unmarked_values(mut self, values: &[&str]) -> Git {
        self.command.args(values);
        self.refused_value =
            values.iter().find(|value| value.starts_with('-')).map(|value| (*value).to_owned());
        self
    }

    /// Paths as they are, no patterns. After the values, if there are any.
    #[must_use]
    pub fn paths(mut self, paths: &[&Path]) -> Git {
        self.command.env("GIT_LITERAL_PATHSPECS", "1").arg("--").args(paths);
        self
    }

    /// Lets git see what a push brought.
    #[must_use]
    pub fn seeing(self, incoming: Option<&Incoming>) -> Git {
        match incoming {
            None => self,
            Some(incoming) => self
                .env("GIT_OBJECT_DIRECTORY", &incoming.objects)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &incoming.alternates),
        }
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Git {
        self.command.env(name, value);
        self
    }

    #[must_use]
    pub fn input(mut self, bytes: &[u8]) -> Git {
        self.input = Some(bytes.to_owned());
        self
    }

    /// What git printed.
    pub fn run(mut self) -> Result<Vec<u8>, Failure> {
        if let Some(value) = self.refused_value.take() {
            return Err(Failure::OptionLike(value));
        }
        let began = Instant::now();
        loop {
            let output = self.output().map_err(not_run)?;
            if output.status.success() {
                return Ok(output.stdout);
            }
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            // git waits for the lock of a reference, but not for that of its configuration.
            if !stderr.contains("could not lock config file") || began.elapsed() > CONFIG_PATIENCE {
                return Err(Failure::Failed { verb: self.verb, exit: output.status.code(), stderr });
            }
            std::thread::sleep(CONFIG_PAUSE);
        }
    }

    /// The one line that git printed.
    pub fn line(self) -> Result<String, Failure> {
        let bytes = self.run()?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// An answer that git gives by its exit code: 0 is yes, 1 is no.
    pub fn yes(self) -> Result<bool, Failure> {
        match self.run() {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_exit(1) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// git as a partner to talk with: both its ends are pipes.
    pub(crate) fn start(mut self) -> Result<Child, Failure> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.spawn().map_err(not_run)
    }

    fn output(&mut self) -> io::Result<Output> {
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pipe = child.stdin.take();
        std::thread::scope(|scope| {
            if let (Some(mut pipe), Some(bytes)) = (pipe, self.input.as_deref()) {
                // Beside the reading, or both ends wait on a full pipe. If git stops reading, its exit says why.
                scope.spawn(move || pipe.write_all(bytes));
            }
            child.wait_with_output()
        })
    }
}

fn not_run(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::Missing,
        _ => Failure::NotRun(error),
    }
}

/// The name git would put on a commit made in `dir`; none where it is not set or there is no git. A git that fails is
/// an error: whoever is registered under a wrong name stays so.
pub fn user_name(dir: &Path) -> Result<Option<String>, Failure> {
    match Git::in_dir(dir, "config").args(&["--get", "user.name"]).line() {
        Ok(name) => Ok(Some(name).filter(|name| !name.is_empty())),
        Err(Failure::Missing | Failure::Failed { exit: Some(1), .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The commit checked out in `dir`; none before the first one.
pub fn head(dir: &Path) -> Option<String> {
    Git::in_dir(dir, "rev-parse")
        .args(&["--verify", "--quiet", "HEAD^{commit}"])
        .line()
        .ok()
        .filter(|id| is_object_id(id))
}

/// A whole SHA-1 or SHA-256 object id, and nothing that git could read as something else.
pub fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hook runs with `GIT_DIR` and more set; none of it may lead our git to another repository.
    #[test]
    fn everything_git_calls_local_is_removed_or_ours() {
        let local = Git::in_dir(Path::new("/"), "rev-parse").args(&["--local-env-vars"]).line().unwrap();
        let git = Git::in_dir(Path::new("/"), "version");
        let decided: Vec<_> =
            git.command.get_envs().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert!(local.lines().any(|name| name == "GIT_DIR"), "{local}");
        for name in local.lines() {
            assert!(decided.iter().any(|decided| decided == name), "{name}");
        }
        let git_dir = git.command.get_envs().find(|(name, _)| *name == "GIT_DIR");
        assert_eq!(git_dir, Some((OsStr::new("GIT_DIR"), None)));
    }
}
