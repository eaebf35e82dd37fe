//! Part `mcp`: from the start of the server to the list of its tools, and what a client's hook costs around each tool.

use crate::Extent;
use crate::measure::{Outcome, millis};
use crate::place::{Place, Programs};
use crate::table::{Table, Verdict};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A client that shakes hands and asks for the tools: how long until it has them, and how long they are.
fn listed(command: &mut Command) -> Outcome<(Duration, usize)> {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } });
    let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
    let began = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut to = child.stdin.take().ok_or("no way in")?;
    let mut from = BufReader::new(child.stdout.take().ok_or("no way out")?).lines();
    writeln!(to, "{hello}")?;
    from.next().ok_or("no answer")??;
    writeln!(to, "{done}\n{list}")?;
    let answer: Value = serde_json::from_str(&from.next().ok_or("no answer")??)?;
    let took = began.elapsed();
    drop(to);
    child.wait()?;
    Ok((took, answer["result"].to_string().len()))
}

/// A client that asks before it edits a file.
fn hooked(command: &mut Command) -> Outcome<Duration> {
    let input = json!({ "tool_name": "Edit", "tool_input": { "file_path": "src/lib.rs" } });
    let began = Instant::now();
    let mut child = command.env("ONUS_AS", "@nobody").stdin(Stdio::piped()).spawn()?;
    write!(child.stdin.take().ok_or("no way in")?, "{input}")?;
    if !child.wait()?.success() {
        return Err("the hook stopped somebody who holds nothing".into());
    }
    Ok(began.elapsed())
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let place = Place::empty(programs, 0)?;
    let mut seen = Vec::new();
    for _ in 0..extent.pick(5, 15, 41) {
        seen.push(listed(&mut place.onus(&["mcp"]))?);
    }
    seen.sort_unstable();
    let (took, bytes) = seen[seen.len() / 2];
    let mut table = Table::new("MCP");
    let figure = format!("{:.1} ms", millis(took));
    table.row(
        "start, initialize and tools/list",
        "< 30 ms",
        figure,
        Verdict::of(took < Duration::from_millis(30)),
    );
    table.row("tools/list", "< 8,000 bytes", format!("{bytes} bytes"), Verdict::of(bytes < 8_000));
    let mut asked = Vec::new();
    for _ in 0..extent.pick(5, 15, 41) {
        asked.push(hooked(&mut place.onus(&["hook", "agent", "pre-tool-use"]))?);
    }
    asked.sort_unstable();
    let figure = format!("{:.1} ms", millis(asked[asked.len() / 2]));
    table.row("a client's hook before an edit, nothing held", "-", figure, Verdict::Shown);
    Ok(vec![table])
}
