//! What every client pays for in every session: the list of tools, small and reviewed.

use onus_mcp::Tools;
use serde_json::{Value, json};

/// 2,000 tokens of four bytes.
const BUDGET: usize = 8_000;

fn listed(tools: Tools) -> Value {
    json!({ "tools": tools.list() })
}

#[test]
fn the_tools_are_small_and_as_reviewed() {
    let list = listed(Tools::Few);
    let bytes = list.to_string().len();
    assert!(bytes < BUDGET, "tools/list has {bytes} bytes");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract/mcp-tools.json");
    let text = format!("{:#}\n", listed(Tools::All));
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == text, "contract/mcp-tools.json differs: run UPDATE_CONTRACT=1 cargo test -p onus-mcp");
}

#[test]
fn the_few_are_those_that_agents_rely_on() {
    let names =
        |tools: Tools| -> Vec<String> { tools.list().iter().map(|tool| tool.name.to_string()).collect() };
    let few = "ready claim show note check handoff block complete release ask say review";
    assert_eq!(names(Tools::Few).join(" "), few);
    assert_eq!(names(Tools::All)[..12], names(Tools::Few)[..]);
    assert!(names(Tools::All).len() > 12);
}

#[test]
fn every_tool_says_what_it_does_to_the_world() {
    for tool in Tools::All.list() {
        let tool = serde_json::to_value(tool).unwrap();
        let (name, hints) = (tool["name"].as_str().unwrap(), &tool["annotations"]);
        let reads = ["ready", "show", "list", "stale", "inbox"].contains(&name);
        assert_eq!(hints["readOnlyHint"], reads, "{name}");
        assert_eq!(hints["openWorldHint"], false, "{name}");
        assert_eq!(hints["destructiveHint"].is_boolean(), !reads, "{name}");
        let schema = &tool["inputSchema"];
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{name}"
        );
        // Force, approval and other people's names are no arguments of any tool.
        // A verdict about another worker's work is a word of `review`; the rules say whose counts.
        let arguments = schema["properties"].to_string().replace("\"approved\"", "");
        for never in ["force", "approve", "warrant", "\"as\"", "actor"] {
            assert!(!arguments.contains(never), "{name} takes {never}");
        }
    }
}
