//! Files that are generated from the code and reviewed like code.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

/// Fails when the file at `path` (from the repository's root) is not what the code says.
/// `UPDATE_CONTRACT=1` writes it instead; the difference is then reviewed in the commit.
#[allow(
    clippy::disallowed_methods,
    reason = "the test reads the environment and the documentation; the rules do not"
)]
pub(crate) fn assert_file(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE_CONTRACT").is_some_and(|value| value == "1") {
        std::fs::write(&file, expected).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    let line = differs.unwrap_or(found.lines().count().min(expected.lines().count()));
    assert!(
        found == expected,
        "{path} differs from the code at line {}: it says `{}`, the code says `{}`.\n\
         If the change is meant, run the test again with UPDATE_CONTRACT=1 and review the difference.",
        line + 1,
        found.lines().nth(line).unwrap_or("nothing"),
        expected.lines().nth(line).unwrap_or("nothing"),
    );
}

#[allow(clippy::disallowed_methods, reason = "the test reads the documentation; the rules do not")]
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The names of the pages in a folder, without the index.
pub(crate) fn pages(folder: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(root().join(folder)).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "README.md").map(|name| name.trim_end_matches(".md").to_owned()).collect()
}
