//! The guides are played: every line of their `sh` blocks, in order, in one shell, in a repository of their own.
//!
//! - A line that ends with `# refused: CODE` must be refused with that code; every other line must succeed.
//! - What a reader brings along (a program, a name in the network) is set up in a comment `<!-- play … -->`, which is
//!   played as well and shown to nobody.

use onus_testkit::{Cluster, Durability};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the guides lie, and README.
fn page(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The lines that are played, with their numbers in the page.
fn script(page: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut until = None;
    for (number, line) in (1..).zip(page.lines()) {
        match until {
            Some(end) if line.trim() == end => until = None,
            Some(_) => lines.push((number, line)),
            None if line.trim() == "```sh" => until = Some("```"),
            None if line.trim() == "<!-- play" => until = Some("-->"),
            None => {}
        }
    }
    lines
}

/// The same as a program for bash. A here-document or a line that goes on is one piece.
fn program(lines: &[(usize, &str)]) -> String {
    let mut text = String::from(
        "set -eu\n\
         trap 'echo \"line $LINE of the guide: $SAID\" >&2' ERR\n\
         refused() { code=$1; shift; if out=$(eval \"$SAID\" 2>&1); then echo \"not refused: $SAID\" >&2; exit 1; fi; \
         case \"$out\" in *\"$code\"*) ;; *) echo \"line $LINE: not $code but: $out\" >&2; exit 1;; esac; }\n",
    );
    let mut lines = lines.iter();
    while let Some((number, line)) = lines.next() {
        let mut piece = (*line).to_owned();
        let ends = line.split_once("<<'").and_then(|(_, rest)| rest.split_once('\'')).map(|(word, _)| word);
        let is_function = line.trim_end().ends_with("() {");
        while piece.ends_with('\\')
            || ends.is_some_and(|word| !piece.ends_with(&format!("\n{word}")))
            || (is_function && !piece.ends_with("\n}"))
        {
            let Some((_, next)) = lines.next() else { break };
            piece = format!("{piece}\n{next}");
        }
        if piece.trim().is_empty() {
            continue;
        }
        let quoted = piece.replace('\'', r"'\''");
        text.push_str(&format!("LINE={number} SAID='{quoted}'\n"));
        match piece.split_once("# refused: ") {
            Some((_, code)) => text.push_str(&format!("refused {}\n", first_word(code))),
            None => text.push_str(&format!("{piece}\n")),
        }
    }
    text
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).next().unwrap_or_default()
}

struct Guide {
    name: &'static str,
    text: String,
    root: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Guide {
    fn new(name: &'static str) -> Guide {
        let root = tempfile::Builder::new().prefix("onus-guide-").tempdir().unwrap();
        for directory in ["home", "keys", "repo"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        Guide { name, text: page(name), root, variables: Vec::new() }
    }

    /// What is an example in the guide is something real here.
    fn with(mut self, example: &str, real: &str) -> Guide {
        assert!(self.text.contains(example), "{} does not say {example}", self.name);
        self.text = self.text.replace(example, real);
        self
    }

    fn knows(mut self, name: &'static str, value: &str) -> Guide {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// What was printed, on both streams.
    fn play(&self) -> String {
        let lines = script(&self.text);
        assert!(!lines.is_empty(), "{} has nothing to play", self.name);
        let file = self.root.path().join("guide.sh");
        let start = "git init -q --initial-branch=main .\ngit config user.name 'Ada Lovelace'\n\
             git config user.email ada@example.org\ngit commit -q --allow-empty -m start\n";
        std::fs::write(&file, format!("{start}{}", program(&lines))).unwrap();
        let programs = PathBuf::from(env!("CARGO_BIN_EXE_onus")).parent().unwrap().to_owned();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let ran = Command::new("bash")
            .arg(&file)
            .current_dir(self.root.path().join("repo"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.root.path().join("home"))
            .env("ONUS_KEY_DIR", self.root.path().join("keys"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(ran.status.success(), "{}: {said}", self.name);
        said
    }
}

#[test]
fn the_tour_of_the_readme() {
    let said = Guide::new("README.md").play();
    assert!(said.contains("API-1 existing"), "{said}");
    assert!(said.contains("API-1 is yours"), "{said}");
}

#[test]
fn for_people() {
    Guide::new("docs/guide/person.md").play();
}

#[test]
fn moving_in() {
    let said = Guide::new("docs/guide/import.md").play();
    assert!(said.contains("2 tasks created"), "{said}");
    assert!(said.contains("0 tasks created, 2 existing"), "{said}");
}

#[test]
fn dispatch() {
    Guide::new("docs/guide/dispatch.md").play();
}

#[test]
fn git() {
    Guide::new("docs/guide/git.md")
        .with("/srv/git/api.git", "$SHARED")
        .with("sqlite:/srv/onus/api.db", "sqlite:$STORE")
        .play();
}

#[test]
fn merge() {
    Guide::new("docs/guide/merge.md").play();
}

#[test]
fn reviewing() {
    let said = Guide::new("docs/guide/review.md").play();
    assert!(said.contains("which world?") && said.contains("\ngreet everybody\n"), "{said}");
}

#[test]
fn run() {
    Guide::new("docs/guide/run.md").play();
}

#[test]
fn the_guide_to_a_fleet() {
    Guide::new("docs/guide/fleet.md").play();
}

#[test]
fn mcp() {
    Guide::new("docs/guide/mcp.md").play();
}

#[test]
fn remote() {
    Guide::new("docs/guide/remote.md")
        .with("https://onus.example.org", "$URL")
        .with("onus_a…", "$TOKEN")
        .play();
}

#[test]
fn postgresql() {
    let Some(cluster) = Cluster::start(Durability::Durable) else { return };
    let url = cluster.database();
    let (rest, _) = url.rsplit_once('/').unwrap();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host).to_owned();
    let (name, port) = host.rsplit_once(':').unwrap();
    Guide::new("docs/guide/postgresql.md")
        .with("db1.example.org,db2.example.org", &host)
        .with("db.example.org", &host)
        .knows("PGHOST", name)
        .knows("PGPORT", port)
        .knows("PGUSER", "onus")
        .play();
}

/// A player that cannot fail plays nothing.
#[test]
fn a_line_that_fails_is_found() {
    let lines = |text: &str| program(&script(&format!("```sh\n{text}\n```\n")));
    let ends = |text: &str| {
        let ran = Command::new("bash").args(["-c", &lines(text)]).output().unwrap();
        ran.status.success()
    };
    assert!(ends("true"));
    assert!(!ends("false"));
    assert!(!ends("true # refused: lease_held"));
    assert!(!ends("sh -c 'echo fenced; exit 4' # refused: lease_held"));
    assert!(ends("sh -c 'echo lease_held; exit 4' # refused: lease_held"));
    assert!(script("```text\nfalse\n```\n").is_empty());
}
