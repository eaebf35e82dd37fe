//! One line of a client's own events.

use super::Step;
use crate::output::Plain;
use crate::session::Counts;
use crate::text::shortened;
use serde_json::Value;

const SAID_MAX: usize = 4_000;
const SHOWN_MAX: usize = 600;
const NAME_MAX: usize = 200;

/// What a tool's input says first of all, by the names that clients use.
const TELLING: &[&str] =
    &["command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "prompt", "description"];
/// Tools that write a file which they name.
const EDITORS: &[&str] =
    &["Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace", "write", "edit", "patch"];
const PATHS: &[&str] = &["file_path", "filePath", "notebook_path", "path"];

/// The steps of a line; none where no known client says such a thing.
pub(super) fn read(line: &str) -> Option<Vec<Step>> {
    let event: Value = serde_json::from_str(line).ok()?;
    let kind = event["type"].as_str()?;
    if event["sessionID"].is_string() {
        return Some(opencode(kind, &event));
    }
    if event["session_id"].is_string() && kind != "init" {
        return Some(claude(kind, &event));
    }
    if ["thread.", "turn.", "item."].iter().any(|begin| kind.starts_with(begin)) {
        return Some(codex(kind, &event));
    }
    if event["timestamp"].is_string() {
        return gemini(kind, &event);
    }
    None
}

fn claude(kind: &str, event: &Value) -> Vec<Step> {
    let blocks = || event["message"]["content"].as_array().into_iter().flatten();
    match kind {
        "system" if event["subtype"] == "init" => began(&event["session_id"]),
        "assistant" => blocks().filter_map(claude_block).collect(),
        "user" => blocks()
            .filter(|block| block["type"] == "tool_result")
            .filter_map(|block| answered(&worded(&block["content"]), block["is_error"] == true))
            .collect(),
        "result" => claude_result(event),
        _ => Vec::new(),
    }
}

fn claude_block(block: &Value) -> Option<Step> {
    match block["type"].as_str()? {
        "text" => said(&block["text"]),
        "tool_use" => Some(called(text_of(&block["name"]), &block["input"])),
        _ => None,
    }
}

fn claude_result(event: &Value) -> Vec<Step> {
    let mut counts = Counts::default();
    for used in event["modelUsage"].as_object().into_iter().flatten().map(|(_, used)| used) {
        counts.add(&Counts {
            input_tokens: count(used, "inputTokens"),
            output_tokens: count(used, "outputTokens"),
            cache_read_tokens: count(used, "cacheReadInputTokens"),
            cache_creation_tokens: count(used, "cacheCreationInputTokens"),
            cost_micros: micros(&used["costUSD"]),
            turns: 0,
        });
    }
    let mut steps: Vec<Step> = used(counts).into_iter().collect();
    if event["is_error"] == true {
        let words = event["errors"].as_array().map(|all| worded(&Value::Array(all.clone())));
        let words = words.filter(|words| !words.is_empty()).unwrap_or_else(|| worded(&event["result"]));
        steps.push(failed(&words, text_of(&event["subtype"])));
    }
    steps
}

fn codex(kind: &str, event: &Value) -> Vec<Step> {
    let item = &event["item"];
    let is_begun = kind == "item.started";
    match (kind, item["type"].as_str()) {
        ("thread.started", _) => began(&event["thread_id"]),
        ("turn.completed", _) => {
            let told = &event["usage"];
            let cached = count(told, "cached_input_tokens").min(count(told, "input_tokens"));
            let counts = Counts {
                input_tokens: count(told, "input_tokens") - cached,
                output_tokens: count(told, "output_tokens"),
                cache_read_tokens: cached,
                ..Counts::default()
            };
            used(counts).into_iter().collect()
        }
        ("turn.failed", _) => vec![failed(&worded(&event["error"]["message"]), "turn failed")],
        ("item.completed", Some("agent_message")) => said(&item["text"]).into_iter().collect(),
        ("item.completed", Some("error")) => vec![Step::Warned { text: short(&worded(&item["message"])) }],
        ("item.completed", Some("file_change")) => {
            let paths = item["changes"].as_array().into_iter().flatten();
            paths.map(|change| edited("patch", text_of(&change["path"]))).collect()
        }
        (_, Some("command_execution")) if is_begun => vec![called("shell", item)],
        ("item.completed", Some("command_execution")) => {
            let exit = item["exit_code"].as_i64().unwrap_or(0);
            answered(&worded(&item["aggregated_output"]), exit != 0).into_iter().collect()
        }
        (_, Some("mcp_tool_call")) if is_begun => {
            vec![called(
                &format!("{}.{}", text_of(&item["server"]), text_of(&item["tool"])),
                &item["arguments"],
            )]
        }
        ("item.completed", Some("mcp_tool_call")) => {
            let is_error = item["status"] == "failed";
            let words = if is_error { &item["error"]["message"] } else { &item["result"]["content"] };
            answered(&worded(words), is_error).into_iter().collect()
        }
        ("item.completed", Some("web_search")) => vec![called("web_search", item)],
        _ => Vec::new(),
    }
}

fn gemini(kind: &str, event: &Value) -> Option<Vec<Step>> {
    let steps = match kind {
        "init" => began(&event["session_id"]),
        "message" if event["role"] == "assistant" => said(&event["content"]).into_iter().collect(),
        "message" => Vec::new(),
        "tool_use" => vec![called(text_of(&event["tool_name"]), &event["parameters"])],
        "tool_result" => {
            let is_error = event["status"] == "error";
            let words = if is_error { worded(&event["error"]["message"]) } else { worded(&event["output"]) };
            answered(&words, is_error).into_iter().collect()
        }
        "error" => vec![Step::Warned { text: short(&worded(&event["message"])) }],
        "result" => {
            let told = &event["stats"];
            let cached = count(told, "cached").min(count(told, "input_tokens"));
            let counts = Counts {
                input_tokens: count(told, "input_tokens") - cached,
                output_tokens: count(told, "output_tokens"),
                cache_read_tokens: cached,
                ..Counts::default()
            };
            let mut steps: Vec<Step> = used(counts).into_iter().collect();
            if event["status"] == "error" {
                steps.push(failed(&worded(&event["error"]["message"]), "failed"));
            }
            steps
        }
        _ => return None,
    };
    Some(steps)
}

fn opencode(kind: &str, event: &Value) -> Vec<Step> {
    let part = &event["part"];
    match kind {
        "step_start" => began(&event["sessionID"]),
        "text" => said(&part["text"]).into_iter().collect(),
        "tool_use" => {
            let state = &part["state"];
            let is_error = state["status"] == "error";
            let words = if is_error { &state["error"] } else { &state["output"] };
            let answer = answered(&worded(words), is_error);
            [Some(called(text_of(&part["tool"]), &state["input"])), answer].into_iter().flatten().collect()
        }
        "step_finish" => {
            let told = &part["tokens"];
            let counts = Counts {
                input_tokens: count(told, "input"),
                output_tokens: count(told, "output") + count(told, "reasoning"),
                cache_read_tokens: count(&told["cache"], "read"),
                cache_creation_tokens: count(&told["cache"], "write"),
                cost_micros: micros(&part["cost"]),
                turns: 0,
            };
            used(counts).into_iter().collect()
        }
        "error" => {
            vec![failed(&worded(&event["error"]["data"]["message"]), text_of(&event["error"]["name"]))]
        }
        _ => Vec::new(),
    }
}

/// Whoever resumes it puts the name on a command line: a name that could be an option is none.
fn began(session: &Value) -> Vec<Step> {
    let is_plain = |name: &&str| {
        name.len() <= NAME_MAX
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let session = session.as_str().filter(is_plain);
    session.map(|session| Step::Began { session: session.to_owned() }).into_iter().collect()
}

fn said(text: &Value) -> Option<Step> {
    let text = text.as_str().filter(|text| !text.is_empty())?;
    Some(Step::Said { text: cleaned(text, SAID_MAX) })
}

fn called(tool: &str, input: &Value) -> Step {
    let named = |names: &[&str]| names.iter().find_map(|name| input[*name].as_str()).map(str::to_owned);
    if EDITORS.contains(&tool)
        && let Some(path) = named(PATHS)
    {
        return edited(tool, &path);
    }
    let text = named(TELLING).unwrap_or_else(|| match input {
        Value::Null => String::new(),
        other => other.to_string(),
    });
    Step::Called { tool: cleaned(tool, NAME_MAX), text: short(&text) }
}

fn edited(tool: &str, path: &str) -> Step {
    Step::Edited { tool: cleaned(tool, NAME_MAX), path: short(path) }
}

/// Nothing to tell where a tool did what it should, without a word.
fn answered(text: &str, failed: bool) -> Option<Step> {
    (failed || !text.trim().is_empty()).then(|| Step::Answered { text: short(text), failed })
}

fn failed(text: &str, otherwise: &str) -> Step {
    Step::Failed { text: short(if text.trim().is_empty() { otherwise } else { text }) }
}

fn used(counts: Counts) -> Option<Step> {
    (counts.tokens() > 0).then_some(Step::Used { counts })
}

fn short(text: &str) -> String {
    cleaned(text.trim_end(), SHOWN_MAX)
}

/// What JSON writes as an escape is what a terminal obeys once it is read.
fn cleaned(text: &str, max: usize) -> String {
    let mut plain = Plain::default();
    let text = plain.push(text.as_bytes()) + &plain.finish();
    shortened(&text, max)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A text, or the texts of a list of blocks.
fn worded(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let texts = all.iter().filter_map(|one| one.as_str().or(one["text"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn count(of: &Value, name: &str) -> i64 {
    of[name].as_i64().unwrap_or(0).clamp(0, 1_000_000_000_000)
}

/// Of a cost that can be one.
fn micros(cost: &Value) -> Option<i64> {
    let micros = (cost.as_f64()? * 1_000_000.0).round();
    #[expect(clippy::cast_possible_truncation, reason = "its bounds are looked at")]
    (0.0..1e15).contains(&micros).then_some(micros as i64)
}
