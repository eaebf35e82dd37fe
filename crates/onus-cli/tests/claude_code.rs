//! A real Claude Code in a worktree, with a model that says what a script says: it is stopped before its first write, told which
//! claim to make, claims, commits and completes (mission E2). Gemini CLI and Codex: `coding_clients.rs`.

use crate::support::client::{command, program};
use crate::support::model::{Model, Turn};
use crate::support::{Site, finish, start, text};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Runs the client to its end, and gives what it printed.
fn talk(site: &Site, program: &Path, dir: &Path, model: &Model) -> String {
    let mut claude = command(site, program, dir);
    claude
        .args([
            "-p",
            "Do the next task.",
            "--output-format",
            "stream-json",
            "--verbose",
            "--allowedTools",
            "Bash Write",
        ])
        .env("ANTHROPIC_BASE_URL", &model.address)
        .env("ANTHROPIC_API_KEY", "none")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1");
    let said = finish(start(&mut claude));
    assert_eq!(said.exit, Some(0), "{said:?}");
    said.stdout
}

fn bash(line: &str) -> Turn {
    Turn::Tool("Bash", json!({ "command": line, "description": "work" }))
}

#[test]
fn claude_code_is_stopped_told_its_claim_and_lands_its_work() {
    let Some(program) = program("claude") else { return };
    let site = Site::guarded();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    site.ok(&["setup", "claude"]);
    let made = site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let tree = PathBuf::from(text(&made["workstation"]["path"]));
    let task = site.add("say hello");
    let file = tree.join("hello.txt");
    let write = || Turn::Tool("Write", json!({ "file_path": file, "content": "hello\n" }));
    let model = Model::saying(vec![
        write(),
        bash("echo sly >hello.txt"),
        bash(&format!("onus claim {task} --workstation ws-1")),
        write(),
        bash("git add hello.txt && git commit --quiet --message 'Say hello'"),
        bash(&format!("onus complete {task} --resolution 'hello is said'")),
        Turn::Text("done"),
    ]);
    let printed = talk(&site, &program, &tree, &model);
    let told: Vec<String> = (0..6).map(|turn| model.result_of(turn)).collect();
    let claim = format!("onus claim {task} --workstation ws-1");
    for stopped in &told[..2] {
        assert!(stopped.contains("lease_required") && stopped.contains(&claim), "{stopped}");
        assert!(!stopped.contains("\\u001b"), "no colours: {stopped}");
    }
    assert!(told[2].contains(&task), "{told:#?}");
    let shown = site.ok(&["show", &task]);
    assert_eq!(shown["task"]["state"], "complete", "{told:#?}\n{printed}");
    assert_eq!(site.git_in(&site.repo(), &["show", "main:hello.txt"]), "hello");
    let message = site.git_in(&site.repo(), &["log", "-1", "--format=%B", "main"]);
    assert!(
        message.contains(&format!("Onus-Task: {task}")) && message.contains("Onus-Agent: @bot"),
        "{message}"
    );
    assert_eq!(
        site.git_in(&tree, &["status", "--porcelain"]),
        "",
        "nothing of its settings is left for git to see"
    );
    assert!(printed.contains("You are @bot"), "it began with what it needs to know: {printed}");
    assert_eq!(model.turns(), 7, "it was asked once for each turn");
    site.assert_sound();
}
