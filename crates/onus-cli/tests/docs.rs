//! What the documents name is there: paths, verbs, flags, settings, variables and names in the code.
//!
//! Looked at are code spans and code blocks. A word in capitals (`VERB`, `NAME`, `API-12`) stands for something else, and
//! the changelog tells the past: both are left alone.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Flags of other programs that our documents speak of.
const FOREIGN_FLAGS: &[&str] = &[
    "--allow-empty",
    "--amend",
    "--check",
    "--end-of-options",
    "--lib",
    "--no-verify",
    "--pwprompt",
    "--release",
    "--stdin",
    "--test",
    "--workspace",
    "--all-targets",
    "--all",
    "--runs",
    "--write",
    "--quick",
    "--full",
    "--peers",
    "--soak",
    "--path",
    "--package",
    "--dbname",
    "--format",
    "--file",
    "--owner",
    "--cli",
    "--no-default-features",
    "--new-session",
    "--onto",
    "--follow",
    "--unshare-net",
    "--message",
    "--force-with-lease",
    "--stat",
    "--lock",
];

/// Fields of answers that begin like a setting.
const ANSWER_FIELDS: &[&str] = &["lease.token", "lease.ttl_ms"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !matches!(name.as_str(), "target" | ".git" | "node_modules") {
            found.push(path.clone());
            files(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

struct Tree {
    /// Every file and directory, from the root.
    paths: Vec<String>,
    /// All source texts, one after the other.
    sources: String,
    /// What a verb's help says, by the verb.
    verbs: BTreeMap<String, String>,
    settings: Value,
}

impl Tree {
    fn read() -> Tree {
        let root = root();
        let mut found = Vec::new();
        files(&root, &mut found);
        let is_source = |path: &&PathBuf| {
            // Its examples of what is not there must not be found here.
            !path.ends_with("onus-cli/tests/docs.rs")
                && (path.extension().is_some_and(|kind| {
                    matches!(kind.to_str(), Some("rs" | "js" | "mjs" | "sql" | "toml" | "py"))
                }) || path.ends_with("test"))
        };
        let sources = found.iter().filter(is_source).map(|path| std::fs::read_to_string(path).unwrap());
        let sources: Vec<String> = sources.collect();
        let paths = found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
        let reference = std::fs::read_to_string(root.join("contract/cli-reference.md")).unwrap();
        let verbs = reference.split("\n## onus").skip(1).filter_map(|section| section.split_once('\n'));
        let schema = std::fs::read_to_string(root.join("contract/onus.schema.json")).unwrap();
        Tree {
            paths: paths.collect(),
            sources: sources.concat(),
            verbs: verbs.map(|(verb, text)| (verb.trim().to_owned(), text.to_owned())).collect(),
            settings: serde_json::from_str(&schema).unwrap(),
        }
    }

    fn has_path(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        self.paths.iter().any(|known| known == path || known.ends_with(&format!("/{path}")))
    }

    /// The longest verb that `words` begin with, and what its help says.
    fn verb<'t>(&'t self, words: &[&str]) -> Option<(usize, &'t str)> {
        (1..=words.len().min(3))
            .rev()
            .find_map(|count| Some((count, self.verbs.get(&words[..count].join(" "))?.as_str())))
    }

    fn has_flag(&self, flag: &str) -> bool {
        let is_ours = self.verbs.values().any(|help| has_word(help, flag));
        is_ours || FOREIGN_FLAGS.contains(&flag)
    }

    fn has_setting(&self, section: &str, key: &str) -> Option<bool> {
        let property = self.settings["properties"].get(section)?;
        let named = property["$ref"].as_str()?.rsplit('/').next()?;
        Some(self.settings["$defs"][named]["properties"].get(key).is_some())
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let next = text[at + word.len()..].chars().next();
        next.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
    })
}

/// Whether a word stands for another one.
fn stands_for_something(word: &str) -> bool {
    let is_placeholder = |part: &str| {
        part.len() > 1
            && part.chars().any(|c| c.is_ascii_uppercase())
            && !part.chars().any(|c| c.is_ascii_lowercase())
    };
    word.contains(['…', '*', '<', '{', '$']) || word.split(['/', '.', '_']).any(is_placeholder)
}

/// Code spans and lines of code blocks.
fn code(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if is_block || line.starts_with("    ") {
            found.push(line.split(" #").next().unwrap_or_default().trim().to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

fn findings(tree: &Tree, page: &str) -> BTreeSet<String> {
    let mut wrong = BTreeSet::new();
    for said in code(page) {
        let words: Vec<&str> = said.split_whitespace().collect();
        wrong.extend(wrong_call(tree, &words));
        if let [word] = words[..] {
            wrong.extend(wrong_word(tree, word));
        }
        for word in words.iter().filter(|word| word.starts_with("ONUS_")) {
            let name = word.split('=').next().unwrap_or_default();
            if !has_word(&tree.sources, name) {
                wrong.insert(format!("no variable {name}"));
            }
        }
    }
    wrong
}

/// `onus VERB --flag …`: the verb and its flags exist.
fn wrong_call(tree: &Tree, words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| *word == "onus")?;
    let assigned = words[..at].iter().all(|word| word.contains('='));
    let rest = &words[at + 1..];
    let first = rest.iter().position(|word| !word.starts_with('-') && !word.contains(':'))?;
    if !assigned
        || stands_for_something(rest[first])
        || !rest[first].chars().all(|c| c.is_ascii_lowercase() || c == '-')
    {
        return None;
    }
    let Some((_, help)) = tree.verb(&rest[first..]) else {
        return Some(format!("no verb: onus {}", rest[first..].join(" ")));
    };
    let ours = rest.iter().take_while(|word| **word != "--" && **word != "|" && **word != "&&");
    let flags =
        ours.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or_default());
    let global = tree.verbs.get("").map(String::as_str).unwrap_or_default();
    let unknown = flags.filter(|flag| !has_word(help, flag) && !has_word(global, flag) && *flag != "--help");
    let unknown: Vec<&str> = unknown.collect();
    (!unknown.is_empty()).then(|| format!("onus {} has no {}", rest[first..].join(" "), unknown.join(", ")))
}

/// A path, a flag, a setting or a name in the code, by itself.
fn wrong_word(tree: &Tree, word: &str) -> Option<String> {
    let word = word.trim_end_matches([',', '.', ';', ':', ')']).split('#').next().unwrap_or_default();
    if word.is_empty()
        || stands_for_something(word)
        || word.contains(['=', '"', '\'', '(', '|', '@', '%', '\\', '!'])
    {
        return None;
    }
    if word.starts_with("--") {
        return (!tree.has_flag(word)).then(|| format!("no flag {word}"));
    }
    let is_source =
        [".rs", ".md", ".sql", ".js", ".mjs", ".yaml.example"].iter().any(|end| word.ends_with(end));
    let top = word.split('/').next().unwrap_or_default();
    let is_ours = word.contains('/')
        && (tree.has_path(&format!("crates/{top}"))
            || ["crates", "docs", "web", "benches", "contract", "tests", "fuzz", "deploy"].contains(&top));
    if is_source || is_ours {
        let is_elsewhere = word.starts_with(['~', '/']) || word.starts_with("..") || word == "CLAUDE.md";
        return (!is_elsewhere && !tree.has_path(word)).then(|| format!("no file {word}"));
    }
    if let Some((section, key)) = word.split_once('.')
        && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        && !ANSWER_FIELDS.contains(&word)
        && tree.has_setting(section, key) == Some(false)
    {
        return Some(format!("no setting {word}"));
    }
    if let Some((_, name)) = word.rsplit_once("::") {
        return (!has_word(&tree.sources, name)).then(|| format!("no name {word} in the code"));
    }
    None
}

#[test]
fn what_documents_name_is_there() {
    let tree = Tree::read();
    let root = root();
    let named =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "GLOSSARY.md", "web/README.md"];
    let mut pages: Vec<PathBuf> = named.iter().map(|name| root.join(name)).collect();
    for folder in ["docs/adr", "docs/guide", "docs/reference", "docs/errors"] {
        pages.extend(std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    pages.retain(|page| page.extension().is_some_and(|kind| kind == "md"));
    assert!(pages.len() > 60, "{pages:?}");
    let mut wrong = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        wrong.extend(findings(&tree, &text).into_iter().map(|finding| format!("{name}: {finding}")));
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each kind of mistake is found.
#[test]
fn what_is_not_there_is_found() {
    let tree = Tree::read();
    for (page, wanted) in [
        ("see `onus-core/src/no_such.rs`", "no file"),
        ("see `no_such_file.rs`", "no file"),
        ("type `onus conjure API-1`", "no verb"),
        ("```sh\nonus claim --quietly\n```", "has no --quietly"),
        ("with `--no-such-flag`", "no flag"),
        ("the setting `lease.no_such`", "no setting"),
        ("set `ONUS_NO_SUCH_THING=1`", "no variable"),
        ("`Onus::no_such_method`", "no name"),
    ] {
        let found = findings(&tree, page);
        assert!(found.iter().any(|finding| finding.contains(wanted)), "{page}: {found:?}");
    }
    for page in [
        "`onus claim --next`",
        "`onus-core/src/guard.rs`",
        "`lease.grace`",
        "`onus VERB --help`",
        "`API-12`",
        "`ONUS_AS=@ada onus ready`",
    ] {
        assert_eq!(findings(&tree, page), BTreeSet::new(), "{page}");
    }
}
