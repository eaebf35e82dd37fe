//! A reader who meets a type's name knows which one is meant, since at most two modules of the product define the same; and
//! whoever adds a verb knows where: CONTRIBUTING names twelve files of source.

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

/// The product's modules, by their paths.
fn modules() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = Vec::new();
    PRODUCT.iter().for_each(|place| sources(&root.join(place), &mut files));
    assert!(files.len() > 300, "{} files", files.len());
    let module = |path: &PathBuf| {
        (path.strip_prefix(&root).unwrap().display().to_string(), std::fs::read_to_string(path).unwrap())
    };
    files.iter().map(module).collect()
}

#[test]
fn a_type_name_is_in_at_most_two_modules() {
    let found = repeated(modules());
    assert!(found.is_empty(), "say in the name what it is:\n{}", found.join("\n"));
}

/// How many files of source name one verb or its input, beside the list of commands at the command line and the verb's own rule.
const VERB_MAX: usize = 10;

/// What other parts of the product do by themselves as well, and are named by: they give leases, end them, or wait.
const DONE_BY_OTHERS: &[&str] = &[
    "Add", "Block", "Claim", "Complete", "Note", "Release", "Renew", "Review", "Say", "Takeover", "Unblock",
    "Merge",
];

/// The verbs of `Command`, in its order.
fn verbs(command: &str) -> Vec<&str> {
    let body = command.split_once("pub enum Command {").unwrap().1.split_once("\n}\n").unwrap().0;
    body.lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.trim_end_matches([' ', '{', ',']))
        .collect()
}

/// Whether the text names `word`, and not only something that begins or ends so.
fn names(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[test]
fn a_verb_is_named_in_at_most_twelve_files() {
    let modules = modules();
    let command = modules.iter().find(|(path, _)| path.ends_with("onus-core/src/command.rs")).unwrap();
    let verbs = verbs(&command.1);
    assert!(verbs.len() > 25 && verbs.contains(&"Edit") && verbs.contains(&"Unblock"), "{verbs:?}");
    let mut too_many = Vec::new();
    for verb in verbs.iter().filter(|verb| !DONE_BY_OTHERS.contains(verb)) {
        let (as_command, as_input) = (format!("Command::{verb}"), format!("{verb}Input"));
        let said = |text: &str| text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        let named = modules.iter().filter(|(_, text)| {
            let text = said(text);
            names(&text, &as_command) || names(&text, &as_input)
        });
        let named: Vec<&str> = named.map(|(path, _)| path.as_str()).collect();
        if named.len() > VERB_MAX {
            too_many.push(format!("{verb}: {}", named.join(" ")));
        }
    }
    assert!(too_many.is_empty(), "shorten the way of a verb:\n{}", too_many.join("\n"));
}

#[test]
fn a_name_in_three_modules_is_found() {
    let module = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let two = [module("a", "pub struct Line {"), module("b", "pub(crate) enum Line<'a> {\n    type Other;")];
    assert_eq!(repeated(two.clone()), Vec::<String>::new());
    let three = two.into_iter().chain([module("c", "type Line = u8;\nstruct Other;")]);
    assert_eq!(repeated(three), ["Line: a b c"]);
}
