//! Coding clients as npm has them, installed once by `tests/coding-client`. `ONUS_TEST_CLIENTS=0` leaves them out.

use super::{ONUS, Site};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a client is; none where it cannot be had, which standard error explains.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    if std::env::var_os("ONUS_TEST_CLIENTS").is_some_and(|value| value == "0") {
        eprintln!("skipped: ONUS_TEST_CLIENTS is 0");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/coding-client");
    let found = Command::new(script).arg(name).output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&found.stderr));
    match found.status.code() {
        Some(0) => Some(PathBuf::from(String::from_utf8(found.stdout).unwrap().trim_end())),
        Some(77) => {
            eprintln!("skipped: there is no {name} here (see above)");
            None
        }
        other => panic!("coding-client {name} ended with {other:?}"),
    }
}

/// A client that works for `@bot` in a directory, and finds `onus` by its name.
pub(crate) fn command(site: &Site, program: &Path, dir: &Path) -> Command {
    let mut client = Command::new(program);
    site.surroundings(&mut client);
    let path = format!("{}:{}", Path::new(ONUS).parent().unwrap().display(), std::env::var("PATH").unwrap());
    client.current_dir(dir).env("PATH", path).env("ONUS_AS", "@bot");
    client
}
