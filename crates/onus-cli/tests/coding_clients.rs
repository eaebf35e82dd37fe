//! A real Gemini CLI and a real Codex in a worktree, each with a model that says what a script says: stopped before the first
//! write, told which claim to make, and then the work lands (mission E2). Both run our hooks only where the folder is trusted.

use crate::support::client::{command, program};
use crate::support::model::{Model, Turn};
use crate::support::{ONUS, Site, finish, start, text};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Plays the road with a client that only knows a shell; `begins` are the turns before it, each of which is stopped.
fn lands(
    client: &str,
    begins: impl Fn(&Path) -> Vec<Turn>,
    shell: impl Fn(&str) -> Turn,
    talk: impl Fn(&Site, Command, &Path, &Model) -> Command,
) {
    let Some(program) = program(client) else { return };
    let site = Site::guarded();
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    site.ok(&["setup", client]);
    let made = site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let tree = PathBuf::from(text(&made["workstation"]["path"]));
    let task = site.add("say hello");
    let claim = format!("onus claim {task} --workstation ws-1");
    let mut script = begins(&tree);
    script.push(shell("echo sly >sly.txt"));
    let stopped = script.len();
    script.extend([
        // By its path: a login shell, such as Codex has, forgets where the test has put it.
        shell(&claim.replacen("onus", ONUS, 1)),
        shell("echo hello >hello.txt"),
        shell("git add hello.txt && git commit --quiet --message hello"),
        shell(&format!("{ONUS} complete {task} --resolution 'hello is said'")),
        Turn::Text("done"),
    ]);
    let model = Model::saying(script);
    let said = finish(start(&mut talk(&site, command(&site, &program, &tree), &tree, &model)));
    assert_eq!(said.exit, Some(0), "{said:?}");
    for turn in 0..stopped {
        let told = model.heard_after(turn);
        assert!(told.contains("lease_required") && told.contains(&claim), "turn {turn}: {told}");
        assert!(!told.contains("\\u001b"), "no colours: {told}");
    }
    assert_eq!(site.task(&task)["state"], "complete", "{said:?}");
    assert_eq!(site.git_in(&site.repo(), &["ls-tree", "--name-only", "main"]), "hello.txt");
    // Gemini CLI runs git with all hooks off; whoever commits there is asked before the tool, and by the merge.
    let message = site.git_in(&site.repo(), &["log", "-1", "--format=%B", "main"]);
    assert_eq!(message.contains("Onus-Agent: @bot"), client != "gemini", "{message}");
    assert_eq!(site.git_in(&tree, &["status", "--porcelain"]), "", "git sees nothing of its settings");
    site.assert_sound();
}

#[test]
fn gemini_cli_is_stopped_told_its_claim_and_lands_its_work() {
    lands(
        "gemini",
        |tree| vec![Turn::Tool("write_file", json!({ "file_path": tree.join("sly.txt"), "content": "x" }))],
        |line| Turn::Tool("run_shell_command", json!({ "command": line })),
        |site, mut gemini, tree, model| {
            let home = site.root().join("home/.gemini");
            std::fs::create_dir_all(&home).unwrap();
            let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
            std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
            let trusted = json!({ tree.to_str().unwrap(): "TRUST_FOLDER" });
            std::fs::write(home.join("trustedFolders.json"), trusted.to_string()).unwrap();
            gemini.args([
                "-p",
                "Do the next task.",
                "-o",
                "stream-json",
                "--yolo",
                "--skip-trust",
                "-m",
                "scripted",
            ]);
            gemini.env("GEMINI_API_KEY", "none").env("GOOGLE_GEMINI_BASE_URL", &model.address);
            gemini
        },
    );
}

#[test]
fn codex_is_stopped_told_its_claim_and_lands_its_work() {
    lands(
        "codex",
        |_| Vec::new(),
        |line| Turn::Tool("exec_command", json!({ "cmd": line })),
        |site, mut codex, tree, model| {
            let home = site.root().join("codex");
            std::fs::create_dir(&home).unwrap();
            let trusted = [tree.to_owned(), site.repo()]
                .map(|folder| format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", folder.display()));
            let config = format!(
                "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
                 sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
                 [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\n\
                 wire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n[analytics]\nenabled = false\n{}",
                model.address,
                trusted.concat()
            );
            std::fs::write(home.join("config.toml"), config).unwrap();
            codex.args(["exec", "--json", "--dangerously-bypass-hook-trust", "-C", tree.to_str().unwrap()]);
            codex.arg("Do the next task.").env("CODEX_HOME", home).env("SCRIPTED_KEY", "none");
            codex
        },
    );
}
