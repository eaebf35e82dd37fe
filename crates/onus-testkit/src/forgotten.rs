//! A file of tests that no `mod` line names is compiled by nobody, and all its tests are silently gone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Every source file of a crate is part of one of its programs.
pub fn no_file_is_forgotten(manifest_dir: &str) {
    let root = Path::new(manifest_dir);
    let mut named = BTreeSet::new();
    for entry in ["src/lib.rs", "src/main.rs", "tests/runner.rs", "tests/heavy.rs"] {
        follow(&root.join(entry), true, &mut named);
    }
    let mut there = BTreeSet::new();
    for directory in ["src", "tests"] {
        walk(&root.join(directory), &mut there);
    }
    let forgotten: Vec<_> = there.difference(&named).collect();
    assert!(forgotten.is_empty(), "no `mod` line names these files: {forgotten:#?}");
}

/// A file and those that its `mod` lines name. A file that owns its directory has its modules beside it.
fn follow(file: &Path, owns_directory: bool, named: &mut BTreeSet<PathBuf>) {
    let Ok(text) = std::fs::read_to_string(file) else { return };
    named.insert(file.to_owned());
    let beside = file.parent().unwrap();
    let below = if owns_directory { beside.to_owned() } else { file.with_extension("") };
    let mut paths = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            paths.extend(line.split_once("path = \"").and_then(|(_, rest)| rest.split('"').next()));
            continue;
        }
        // Another file under some features, or this one.
        let also = std::mem::take(&mut paths);
        let Some(name) =
            line.strip_suffix(';').and_then(|line| line.rsplit_once("mod ")).map(|(_, name)| name)
        else {
            continue;
        };
        for path in also.into_iter().filter(|path| !path.starts_with("../")) {
            follow(&beside.join(path), true, named);
        }
        follow(&below.join(name).with_extension("rs"), false, named);
        follow(&below.join(name).join("mod.rs"), true, named);
    }
}

fn walk(directory: &Path, there: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            walk(&path, there);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            there.insert(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_its_line_shows() {
        let crate_dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = crate_dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "src/lib.rs",
            "pub mod a;\n#[cfg_attr(not(x), path = \"other.rs\")]\nmod d;\n#[cfg(test)]\n#[path = \"../tests/runner.rs\"]\nmod tests;\n",
        );
        write("src/a.rs", "mod b;\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() {}\n}\n");
        write("src/a/b.rs", "");
        write("src/d.rs", "");
        write("src/other.rs", "");
        write("tests/runner.rs", "mod one;\nmod support;\n");
        write("tests/heavy.rs", "mod two;\nmod support;\n");
        write("tests/one.rs", "mod inner;\n");
        write("tests/one/inner.rs", "");
        write("tests/two.rs", "");
        write("tests/support/mod.rs", "pub(crate) mod far;\n");
        write("tests/support/far.rs", "");
        let check = || std::panic::catch_unwind(|| no_file_is_forgotten(crate_dir.path().to_str().unwrap()));
        assert!(check().is_ok());
        for stray in ["tests/three.rs", "tests/one/two.rs", "tests/inner.rs", "src/a/c.rs", "src/b.rs"] {
            write(stray, "");
            assert!(check().is_err(), "{stray} is not missed");
            std::fs::remove_file(crate_dir.path().join(stray)).unwrap();
        }
    }
}
