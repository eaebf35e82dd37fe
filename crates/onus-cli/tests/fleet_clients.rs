//! Fleets of real coding clients, with a model that says what a script says.

use crate::fleet::{SECRET, by_person, mark, merged, printed};
use crate::support::client::program;
use crate::support::model::{Model, Turn};
use crate::support::wrapper::{signal, until};
use crate::support::{ONUS, Site, finish, start, text};
use serde_json::json;
use std::path::Path;

/// What a client needs to find its model, and `onus`.
fn with_client(site: &Site, program: &Path, variables: &str) {
    let path = format!(
        "{}:{}:{}",
        Path::new(ONUS).parent().unwrap().display(),
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let file = site.repo().join("onus.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let env = format!("\"env\":{{\"PATH\":\"{path}\",{variables}}},\"preset\"");
    std::fs::write(&file, text.replace("\"preset\"", &env)).unwrap();
}

/// A client that is killed in the middle goes on with its own session: it still knows what it was told. Whether it also hears
/// what a person says to it meanwhile.
fn goes_on(
    preset: &str,
    hears: bool,
    turn: impl Fn(&str) -> Turn,
    variables: impl Fn(&Site, &Model) -> String,
) {
    let Some(program) = program(preset) else { return };
    let site = Site::guarded();
    site.by_person(&["fleet", "init", "--preset", preset, "--count", "1"]);
    let task = site.add("say hello");
    let path = |name: &str| site.root().join(name).display().to_string();
    let waits = |gate: &str, go: &str| {
        format!(
            "echo $SECRET_KEY; echo begun >{}; while [ ! -e {} ]; do sleep 0.1; done",
            path(gate),
            path(go)
        )
    };
    let (first, second) = (waits("gate-1", "go-1"), waits("gate-2", "go-2"));
    let work = "echo hello > $ONUS_TASK.txt && git add . && git commit --quiet --message hello";
    let model =
        Model::saying_to_each(vec![turn(&first), turn(&second), turn(work), Turn::Text("hello is said")]);
    with_client(&site, &program, &variables(&site, &model));
    let supervisor = start(&mut by_person(&site, &["fleet", "up"]));
    until("it works", || site.root().join("gate-1").exists());
    let begun = model.turns();
    signal(&supervisor, "-KILL");
    finish(supervisor);
    until("it is given back", || site.task(&task)["state"] == "open");
    mark(&site, "go-1");
    let supervisor = start(&mut by_person(&site, &["fleet", "up", "--until-idle"]));
    until("it works again", || site.root().join("gate-2").exists());
    site.by_person(&["say", &format!("@{preset}-1"), "make it blue"]);
    mark(&site, "go-2");
    let ended = finish(supervisor);
    let row = site.task(&task);
    assert_eq!(row["state"], "complete", "{row}\n{}\n{ended:?}", printed(&site, &task));
    assert_eq!(merged(&site, &task), "hello");
    let heard = model.heard_after(begun - 1);
    assert!(heard.matches("you hold the task").count() > 1, "it knows what it was told before: {heard}");
    let said = model.heard_after(model.turns() - 2);
    assert_eq!(said.contains("make it blue"), hears, "{said}");
    let sessions = site.ok(&["session", "list", "--task", &task])["sessions"].clone();
    let all = sessions.as_array().unwrap();
    let told = |session: &serde_json::Value| {
        let number = session["id"].to_string();
        let view = site.ok(&["logs", &task, "--session", &number]);
        assert!(!view.to_string().contains(SECRET), "{view}");
        let began = view["steps"].as_array().unwrap().iter().find(|step| step["kind"] == "began").unwrap();
        text(&began["text"]).to_owned()
    };
    assert_eq!(all.len(), 2, "{sessions}");
    assert_eq!(told(&all[0]), told(&all[1]), "one session of the client's own");
    site.assert_sound();
}

/// Agents of a preset and tasks, from an empty repository.
fn lands(
    preset: &str,
    (agents, tasks): (usize, usize),
    turn: impl Fn(&str) -> Turn,
    variables: impl Fn(&Site, &Model) -> String,
) {
    let Some(program) = program(preset) else { return };
    let site = Site::guarded();
    site.by_person(&["fleet", "init", "--preset", preset, "--count", &agents.to_string()]);
    let tasks: Vec<String> = (0..tasks).map(|number| site.add(&format!("say hello {number}"))).collect();
    let line = "echo hello > $ONUS_TASK.txt && git add . && git commit --quiet --message hello";
    let model = Model::saying_to_each(vec![turn(line), Turn::Text("hello is said")]);
    with_client(&site, &program, &variables(&site, &model));
    let ended = finish(start(&mut by_person(&site, &["fleet", "up", "--until-idle"])));
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    for task in &tasks {
        let row = site.task(task);
        assert_eq!(row["state"], "complete", "{row}\n{}\n{ended:?}", printed(&site, task));
        assert_eq!(merged(&site, task), "hello");
        assert!(printed(&site, task).contains("hello is said"), "{}", printed(&site, task));
        let used = &site.ok(&["session", "list", "--task", task])["sessions"][0]["tokens"];
        assert!(used.as_i64().unwrap() >= 40, "two turns of twenty tokens each: {used}");
    }
    site.assert_sound();
}

fn claude_turn(line: &str) -> Turn {
    Turn::Tool("Bash", json!({ "command": line, "description": "work" }))
}

fn claude_variables(_: &Site, model: &Model) -> String {
    let address = &model.address;
    format!(
        "\"ANTHROPIC_BASE_URL\":\"{address}\",\"ANTHROPIC_API_KEY\":\"none\",\
         \"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC\":\"1\",\"DISABLE_AUTOUPDATER\":\"1\""
    )
}

#[test]
fn three_of_claude_code_land_five_tasks() {
    lands("claude", (3, 5), claude_turn, claude_variables);
}

#[test]
fn claude_code_goes_on_with_its_session() {
    goes_on("claude", true, claude_turn, claude_variables);
}

fn codex_turn(line: &str) -> Turn {
    Turn::Tool("exec_command", json!({ "cmd": line }))
}

fn codex_variables(site: &Site, model: &Model) -> String {
    let home = site.root().join("codex");
    std::fs::create_dir(&home).unwrap();
    let config = format!(
        "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
                 check_for_update_on_startup = false\n\
                 [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\n\
                 wire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n[analytics]\nenabled = false\n",
        model.address
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
    format!("\"CODEX_HOME\":\"{}\",\"SCRIPTED_KEY\":\"none\"", home.display())
}

#[test]
fn three_of_codex_land_five_tasks() {
    lands("codex", (3, 5), codex_turn, codex_variables);
}

#[test]
fn codex_goes_on_with_its_session() {
    goes_on("codex", false, codex_turn, codex_variables);
}

fn gemini_turn(line: &str) -> Turn {
    Turn::Tool("run_shell_command", json!({ "command": line }))
}

fn gemini_variables(site: &Site, model: &Model) -> String {
    let home = site.root().join("home/.gemini");
    std::fs::create_dir_all(&home).unwrap();
    let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
    std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    format!(
        "\"GEMINI_API_KEY\":\"none\",\"GEMINI_MODEL\":\"scripted\",\"GOOGLE_GEMINI_BASE_URL\":\"{}\"",
        model.address
    )
}

#[test]
fn gemini_cli_lands_a_task() {
    lands("gemini", (1, 1), gemini_turn, gemini_variables);
}

fn opencode_turn(line: &str) -> Turn {
    Turn::Tool("bash", json!({ "command": line, "description": "work" }))
}

fn opencode_variables(site: &Site, model: &Model) -> String {
    let file = site.root().join("opencode.json");
    let settings = json!({ "autoupdate": false, "share": "disabled", "model": "scripted/m", "small_model": "scripted/m",
        "provider": { "scripted": { "npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": { "baseURL": format!("{}/v1", model.address), "apiKey": "none" },
            "models": { "m": { "name": "m", "limit": { "context": 100_000, "output": 4_000 } } } } },
        "permission": { "*": "allow" } });
    std::fs::write(&file, settings.to_string()).unwrap();
    format!("\"OPENCODE_CONFIG\":\"{}\",\"OPENCODE_DISABLE_AUTOUPDATE\":\"1\"", file.display())
}

#[test]
fn opencode_lands_a_task() {
    lands("opencode", (1, 1), opencode_turn, opencode_variables);
}

/// They are slow to start: the others show every day what these share with them.
fn is_soak() -> bool {
    let is_asked = std::env::var_os("ONUS_SOAK").is_some();
    if !is_asked {
        eprintln!("skipped: ONUS_SOAK is not set");
    }
    is_asked
}

#[test]
fn gemini_cli_goes_on_with_its_session() {
    if is_soak() {
        goes_on("gemini", false, gemini_turn, gemini_variables);
    }
}

#[test]
fn opencode_goes_on_with_its_session() {
    if is_soak() {
        goes_on("opencode", false, opencode_turn, opencode_variables);
    }
}
