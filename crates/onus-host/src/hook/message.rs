//! The trailers that say under which assignment a commit was made.

use crate::file::shown;
use crate::git::Git;
use onus_core::refusal::Refusal;
use std::path::Path;

/// Writes `trailers` (name, value) into the message in `file`, each in place of an older one of its name.
pub fn sign(dir: &Path, file: &Path, trailers: &[(&str, &str)]) -> Result<(), Refusal> {
    let args = ["--in-place", "--where=end", "--if-exists=replace", "--if-missing=add"];
    let mut git = Git::ours(dir, "interpret-trailers").args(&args);
    for (name, value) in trailers {
        git = git.args(&["--trailer", &format!("{name}: {value}")]);
    }
    let file = file.to_str().ok_or_else(|| Refusal::invalid(format!("{} is not text", shown(file))))?;
    git.values(&[file]).run()?;
    Ok(())
}
