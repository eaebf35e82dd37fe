//! The files of a server that was never started. Copying them takes a tenth of the time that making them takes.

use crate::cluster::{USER, as_server_user, directory, programs};
use crate::guardian::Guardian;
use std::path::PathBuf;
use std::sync::OnceLock;

const VARIABLE: &str = "ONUS_TEST_POSTGRES_TEMPLATE";

#[derive(Debug)]
pub struct Template {
    directory: PathBuf,
    /// None where another program made it, and removes it.
    _guardian: Option<Guardian>,
}

impl Template {
    /// The run's, else the program's own; none where PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Template> {
        static SHARED: OnceLock<Option<Template>> = OnceLock::new();
        SHARED.get_or_init(Template::of_the_run).as_ref()
    }

    fn of_the_run() -> Option<Template> {
        if let Some(directory) = std::env::var_os(VARIABLE) {
            return Some(Template { directory: directory.into(), _guardian: None });
        }
        let Some(programs) = programs() else {
            #[allow(clippy::print_stderr, reason = "nobody may think that this was tested")]
            {
                eprintln!("skipped: PostgreSQL is not installed (Debian package postgresql)");
            }
            return None;
        };
        let (directory, guardian) = directory();
        let mut initdb = as_server_user(&programs.join("initdb"));
        initdb.args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"]);
        let made = initdb.arg(directory.join("data")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(Template { directory, _guardian: Some(guardian) })
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// What tells the programs of a run where it is.
    pub fn variable(&self) -> (&'static str, String) {
        (VARIABLE, self.directory.display().to_string())
    }
}
