//! A model that says what a script says: the one address that a coding client needs, on loopback, in the dialects of Anthropic,
//! OpenAI (Responses, and chat) and Google. Only what a client asks for is answered; a request that offers no tools (a title, a summary) uses
//! up no turn.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One answer: a tool to call, or a last word.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    Tool(&'static str, Value),
    Text(&'static str),
}

/// How the turns are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Requests,
    /// Each conversation for itself: several clients ask at once.
    Conversation,
}

pub(crate) struct Model {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub(crate) fn saying(script: Vec<Turn>) -> Model {
        Model::new(script, Count::Requests)
    }

    /// The same script for every client that asks.
    pub(crate) fn saying_to_each(script: Vec<Turn>) -> Model {
        Model::new(script, Count::Conversation)
    }

    fn new(script: Vec<Turn>, count: Count) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, seen) = (script.clone(), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream, &script, &seen, count));
            }
        });
        Model { address, asked }
    }

    /// The result that the client gave to the tool of a turn, as the model read it.
    pub(crate) fn result_of(&self, turn: usize) -> String {
        let asked = self.asked.lock().unwrap();
        let next =
            asked.get(turn + 1).unwrap_or_else(|| panic!("nobody asked after turn {turn}: {asked:#?}"));
        let messages = next["messages"].as_array().unwrap();
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let id = format!("toolu_{turn}");
        let result = blocks.clone().find(|block| block["tool_use_id"] == id.as_str());
        result.unwrap_or_else(|| panic!("no result of turn {turn} in {next:#}"))["content"].to_string()
    }

    /// All that the client said after a turn, as the model read it.
    pub(crate) fn heard_after(&self, turn: usize) -> String {
        let asked = self.asked.lock().unwrap();
        let next = asked.get(turn + 1);
        next.unwrap_or_else(|| panic!("nobody asked after turn {turn}: {asked:#?}")).to_string()
    }

    pub(crate) fn turns(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn serve(stream: TcpStream, script: &[Turn], seen: &Mutex<Vec<Value>>, count: Count) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    let (mut first, mut length) = (String::new(), 0);
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = first.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
    let is_asked = |end: &str| first.starts_with("POST") && path.ends_with(end);
    let turn = || {
        let is_turn = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let number = is_turn.then(|| {
            let mut seen = seen.lock().unwrap();
            seen.push(body.clone());
            match count {
                Count::Requests => seen.len() - 1,
                Count::Conversation => answered(&body),
            }
        });
        let turn = number.map_or(&Turn::Text("ok"), |n| script.get(n).unwrap_or(&Turn::Text("done")));
        (turn.clone(), number.unwrap_or(0))
    };
    let (kind, text) = if is_asked("/messages") {
        let (turn, number) = turn();
        message(&turn, number, body["stream"] == true)
    } else if is_asked("/responses") {
        let (turn, number) = turn();
        response(&turn, number)
    } else if is_asked("/chat/completions") {
        let (turn, number) = turn();
        chat(&turn, number)
    } else if is_asked("enerateContent") {
        let (turn, _) = turn();
        content(&turn, path.contains("stream"))
    } else {
        let nothing =
            json!({ "input_tokens": 10, "totalTokens": 10, "object": "list", "data": [], "models": [] });
        ("application/json", nothing.to_string())
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    drop(writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(text.as_bytes())));
}

/// How many tools the conversation has called so far.
fn answered(body: &Value) -> usize {
    let parts = |name: &str| body[name].as_array().into_iter().flatten();
    let blocks = parts("messages").filter_map(|message| message["content"].as_array()).flatten();
    let calls = parts("messages").filter_map(|message| message["tool_calls"].as_array()).flatten();
    let said = parts("contents").filter_map(|content| content["parts"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_use").count()
        + parts("input").filter(|item| item["type"] == "function_call").count()
        + calls.count()
        + said.filter(|part| part["functionCall"].is_object()).count()
}

fn chat(turn: &Turn, number: usize) -> (&'static str, String) {
    let (delta, end) = match turn {
        Turn::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Turn::Tool(name, input) => {
            let function = json!({ "name": name, "arguments": input.to_string() });
            let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
    };
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20 });
    let chunk = |choices: Value, usage: &Value| {
        let whole = json!({ "id": format!("chat_{number}"), "object": "chat.completion.chunk", "created": 1,
            "model": "scripted", "choices": choices, "usage": usage });
        format!("data: {whole}\n\n")
    };
    let choice = |delta: Value, end: Value| json!([{ "index": 0, "delta": delta, "finish_reason": end }]);
    let text = chunk(choice(delta, Value::Null), &Value::Null)
        + &chunk(choice(json!({}), end.into()), &Value::Null)
        + &chunk(json!([]), &usage)
        + "data: [DONE]\n\n";
    ("text/event-stream", text)
}

fn response(turn: &Turn, number: usize) -> (&'static str, String) {
    let item = match turn {
        Turn::Text(text) => json!({ "type": "message", "id": format!("msg_{number}"), "role": "assistant",
            "status": "completed", "content": [{ "type": "output_text", "text": text, "annotations": [] }] }),
        Turn::Tool(name, input) => json!({ "type": "function_call", "id": format!("fc_{number}"),
            "call_id": format!("call_{number}"), "name": name, "arguments": input.to_string(), "status": "completed" }),
    };
    let usage = json!({ "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 10,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 20 });
    let whole = json!({ "id": format!("resp_{number}"), "object": "response", "created_at": 1, "model": "scripted",
        "output": [], "status": "in_progress" });
    let mut done = whole.clone();
    (done["status"], done["output"], done["usage"]) = (json!("completed"), json!([item]), usage);
    let events = [
        json!({ "type": "response.created", "response": whole }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": done }),
    ];
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    ("text/event-stream", events.iter().map(line).collect())
}

fn content(turn: &Turn, streams: bool) -> (&'static str, String) {
    let part = match turn {
        Turn::Text(text) => json!({ "text": text }),
        Turn::Tool(name, input) => json!({ "functionCall": { "name": name, "args": input } }),
    };
    let whole = json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [part] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20 },
        "modelVersion": "scripted",
    });
    match streams {
        true => ("text/event-stream", format!("data: {whole}\n\n")),
        false => ("application/json", whole.to_string()),
    }
}

fn message(turn: &Turn, number: usize, streams: bool) -> (&'static str, String) {
    let (block, delta, stop) = match turn {
        Turn::Text(text) => (
            json!({ "type": "text", "text": text }),
            json!({ "type": "text_delta", "text": text }),
            "end_turn",
        ),
        Turn::Tool(name, input) => (
            json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
    };
    let usage = json!({ "input_tokens": 10, "output_tokens": 10 });
    let mut whole = json!({ "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "scripted",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage });
    if !streams {
        whole["content"] = json!([block]);
        whole["stop_reason"] = json!(stop);
        return ("application/json", whole.to_string());
    }
    let mut empty = block;
    match turn {
        Turn::Text(_) => empty["text"] = json!(""),
        Turn::Tool(..) => empty["input"] = json!({}),
    }
    let events = [
        json!({ "type": "message_start", "message": whole }),
        json!({ "type": "content_block_start", "index": 0, "content_block": empty }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    ("text/event-stream", events.iter().map(line).collect())
}
