//! A reader who meets a type's name knows which one is meant: at most two modules of the product define the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many modules may share a name: one that defines it, and one that shows it in another form.
const MODULES_MAX: usize = 2;

/// The crates that are the product; tests, benchmarks and simulations have words of their own.
const PRODUCT: &[&str] = &[
    "crates/onus-core/src",
    "crates/onus-store/src",
    "crates/onus-app/src",
    "crates/onus-host/src",
    "crates/onus-server/src",
    "crates/onus-mcp/src",
    "crates/onus-cli/src",
    "web/src",
];

fn sources(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// The name that a line of a module defines. What is indented belongs to a test or to a trait.
fn defined(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (word, rest) = line.split_once(' ')?;
    let name = rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
    matches!(word, "struct" | "enum" | "union" | "trait" | "type").then_some(name)
}

/// Names with the modules that define them, where these are too many.
fn repeated(modules: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in modules {
        for name in text.lines().filter_map(defined) {
            names.entry(name.to_owned()).or_default().insert(module.clone());
        }
    }
    names.retain(|_, modules| modules.len() > MODULES_MAX);
    let tell = |(name, modules): (String, BTreeSet<String>)| {
        format!("{name}: {}", modules.into_iter().collect::<Vec<_>>().join(" "))
    };
    names.into_iter().map(tell).collect()
}

#[test]
fn a_type_name_is_in_at_most_two_modules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = Vec::new();
    PRODUCT.iter().for_each(|place| sources(&root.join(place), &mut files));
    assert!(files.len() > 300, "{} files", files.len());
    let module = |path: &PathBuf| {
        (path.strip_prefix(&root).unwrap().display().to_string(), std::fs::read_to_string(path).unwrap())
    };
    let found = repeated(files.iter().map(module));
    assert!(found.is_empty(), "say in the name what it is:\n{}", found.join("\n"));
}

#[test]
fn a_name_in_three_modules_is_found() {
    let module = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let two = [module("a", "pub struct Line {"), module("b", "pub(crate) enum Line<'a> {\n    type Other;")];
    assert_eq!(repeated(two.clone()), Vec::<String>::new());
    let three = two.into_iter().chain([module("c", "type Line = u8;\nstruct Other;")]);
    assert_eq!(repeated(three), ["Line: a b c"]);
}
