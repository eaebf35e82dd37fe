//! `onus demo`

use super::file_error;
use crate::confirm;
use crate::output::Output;
use crate::render::{BOLD, DIM, paint};
use clap::Args;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use serde_json::Value;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// What a reader needs for a line.
const READING: Duration = Duration::from_millis(350);

/// A queue to look at on the board.
const FURNITURE: &str = include_str!("demo/furniture.jsonl");

/// Watch a day of two agents and one person in a temporary repository
///
/// Every step is a real call of this program. Nothing outside the temporary directory is touched.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Leave the repository there, to look around in it
    #[arg(long)]
    keep: bool,

    /// How quickly it goes on: 1 for reading along, 3 for a hurry, 0 for no pauses. Default: 1 at a terminal, else 0
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    speed: Option<u32>,
}

impl Demo {
    pub(super) fn run(&self, out: &Output) -> Result<ExitCode, Refusal> {
        let is_watched = std::io::stdout().is_terminal();
        let stage = DemoStage::new(out, self.speed.unwrap_or(u32::from(is_watched)))?;
        let played = play(&stage).and_then(|()| stage.offer_board());
        if self.keep {
            out.print(&format!("\nThe repository stays at {}\n", stage.root.display()));
        } else {
            drop(std::fs::remove_dir_all(&stage.root));
        }
        played.map(|()| ExitCode::SUCCESS)
    }
}

fn play(stage: &DemoStage<'_>) -> Result<(), Refusal> {
    stage.say("A repository, and Ada, who leads.");
    stage.git(&["init", "--quiet", "--initial-branch=main", "."])?;
    stage.git(&["config", "user.name", "Ada"])?;
    stage.git(&["config", "user.email", "ada@example.org"])?;
    stage.onus(&["init", "--project", "API"], 0)?;

    stage.say("Two agents, each with a workstation of its own.");
    for (agent, place) in [("@builder-01", "ws-backend-01"), ("@builder-02", "ws-backend-02")] {
        stage.onus(&["worker", "add", agent, "--kind", "agent", "--as", "@ada"], 0)?;
        stage.onus(&["workstation", "add", place, "--as", "@ada"], 0)?;
    }

    stage.say("Three asks. The same ask twice is one task; the third waits for the first.");
    stage.onus(
        &["add", "Rate limit the login", "--priority", "P1", "--origin", "github:api#7", "--as", "@ada"],
        0,
    )?;
    stage.onus(&["add", "Rate limiting, please!", "--origin", "github:api#7", "--as", "@ada"], 0)?;
    stage.onus(&["add", "Document the API", "--as", "@ada"], 0)?;
    stage.onus(&["add", "Announce the limit", "--depends-on", "API-1", "--as", "@ada"], 0)?;
    stage.onus(&["ready"], 0)?;

    stage.say("The first agent takes the most important task. The second one wants it too, and is refused.");
    stage.onus(
        &["claim", "--next", "--as", "@builder-01", "--workstation", "ws-backend-01", "--ttl", "1s"],
        0,
    )?;
    stage.onus(&["claim", "API-1", "--as", "@builder-02", "--workstation", "ws-backend-02"], 4)?;
    stage.onus(&["note", "API-1", "The limiter works; the tests are missing", "--as", "@builder-01"], 0)?;

    stage.say("The second agent writes all the same. Git asks first, and nothing moves.");
    stage.refused_by_git("@builder-02", &["commit", "--allow-empty", "--message", "Quick fix"])?;

    stage.say("The first agent dies without a word. Its lease runs out; after the grace period the second takes over.");
    stage.wait_until_stale()?;
    stage.onus(&["stale"], 0)?;
    stage.onus(
        &[
            "takeover",
            "API-1",
            "--as",
            "@builder-02",
            "--workstation",
            "ws-backend-02",
            "--reason",
            "builder-01 is silent",
        ],
        0,
    )?;

    stage.say("The first agent wakes up and goes on where it was. Too late: it changes nothing.");
    stage.onus(&["complete", "API-1", "--resolution", "done", "--as", "@builder-01"], 4)?;
    stage.onus(&["complete", "API-1", "--resolution", "Limiter with tests", "--as", "@builder-02"], 0)?;

    stage.say("What waited is ready now. Ada looks at the day, and lets the record prove itself.");
    stage.onus(&["ready"], 0)?;
    stage.onus(&["show", "API-1"], 0)?;
    stage.onus(&["ledger", "checkpoint", "--as", "@ada"], 0)?;
    stage.onus(&["ledger", "verify"], 0)
}

/// A temporary repository in which this program plays.
struct DemoStage<'a> {
    out: &'a Output,
    root: PathBuf,
    program: PathBuf,
    /// How long a reader gets for one line.
    pause: Duration,
}

impl DemoStage<'_> {
    fn new(out: &Output, speed: u32) -> Result<DemoStage<'_>, Refusal> {
        let mut random = [0; 6];
        getrandom::fill(&mut random).map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
        let name = format!("onus-demo-{}", onus_core::hash::encode_hex(&random));
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir(&root).map_err(|error| file_error(&root, &error))?;
        // A day in seconds: the shortest grace period that still shows.
        let settings = root.join("onus.yaml");
        std::fs::write(&settings, "lease:\n  grace: 500ms\n")
            .map_err(|error| file_error(&settings, &error))?;
        let program = std::env::current_exe().map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
        let pause = READING.checked_div(speed).unwrap_or_default();
        Ok(DemoStage { out, root, program, pause })
    }

    /// Time to read what has been shown.
    fn pace(&self, lines: usize) {
        let lines = u32::try_from(lines.clamp(1, 12)).unwrap_or(1);
        std::thread::sleep(self.pause * lines);
    }

    fn say(&self, text: &str) {
        self.out.print(&format!("\n{}\n", paint(BOLD, format!("# {text}"))));
        self.pace(2);
    }

    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.root).env("ONUS_KEY_DIR", self.root.join(".git/demo-keys"));
        for name in [
            "ONUS_STORE",
            "ONUS_AS",
            "ONUS_LEASE",
            "ONUS_TASK",
            "ONUS_WORKSTATION",
            "GIT_DIR",
            "GIT_WORK_TREE",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn git(&self, args: &[&str]) -> Result<(), Refusal> {
        let done = self.command(Path::new("git"), args).output();
        match done {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => Err(Refusal::new(Code::Internal, String::from_utf8_lossy(&done.stderr).into_owned())),
            Err(error) => Err(Refusal::invalid(format!("the demo needs git: {error}")).hint("install git")),
        }
    }

    /// Shows a commit that its hook stops.
    fn refused_by_git(&self, who: &str, args: &[&str]) -> Result<(), Refusal> {
        self.out.print(&format!("{}\n", paint(DIM, format!("$ ONUS_AS={who} git {}", args.join(" ")))));
        let done = self.command(Path::new("git"), args).env("ONUS_AS", who).output();
        let done = done.map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
        let said = String::from_utf8_lossy(&done.stderr);
        self.out.print(&said);
        self.pace(said.lines().count());
        match done.status.success() {
            false => Ok(()),
            true => Err(Refusal::new(Code::Internal, "git let the commit through")),
        }
    }

    /// Whoever watched may look around: the same repository, with a queue as a team has one.
    fn offer_board(&self) -> Result<(), Refusal> {
        if confirm::asked("\nOpen the board on this repository, with a queue to look at?") != Some(true) {
            self.out.hint("\nYour turn: onus init in a repository of your own; onus board opens its board");
            return Ok(());
        }
        let file = self.root.join(".git/demo-queue.jsonl");
        std::fs::write(&file, FURNITURE).map_err(|error| file_error(&file, &error))?;
        self.onus(&["import", "--format", "jsonl", ".git/demo-queue.jsonl", "--as", "@ada"], 0)?;
        let board = self.command(&self.program, &["board", "--as", "@ada"]).status();
        board.map(drop).map_err(|e| Refusal::new(Code::Internal, e.to_string()))
    }

    /// Shows a call and what it answers; any other exit code than the expected one ends the play.
    fn onus(&self, args: &[&str], expected: i32) -> Result<(), Refusal> {
        let words: Vec<String> = args
            .iter()
            .map(|arg| if arg.contains(' ') { format!("\"{arg}\"") } else { (*arg).to_owned() })
            .collect();
        self.out.print(&format!("{}\n", paint(DIM, format!("$ onus {}", words.join(" ")))));
        let done = self
            .command(&self.program, args)
            .arg("--quiet")
            .output()
            .map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
        let said = [done.stdout.as_slice(), done.stderr.as_slice()].concat();
        let said = String::from_utf8_lossy(&said);
        self.out.print(&said);
        self.pace(said.lines().count());
        match done.status.code() {
            Some(code) if code == expected => Ok(()),
            code => Err(Refusal::new(Code::Internal, format!("expected exit code {expected}, not {code:?}"))),
        }
    }

    /// Asks until the lease has run out, as a dispatcher would.
    fn wait_until_stale(&self) -> Result<(), Refusal> {
        for _ in 0..200 {
            let done = self
                .command(&self.program, &["stale", "--json"])
                .output()
                .map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
            let view: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
            if view["stale"][0]["may_be_taken_over"] == Value::Bool(true) {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Err(Refusal::new(Code::Internal, "the lease did not run out"))
    }
}
