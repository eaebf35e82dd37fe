//! What coding clients print about the tokens that they used (Claude Code `--output-format stream-json`, Codex `exec --json`,
//! Gemini CLI `-o stream-json`, opencode `run --format json`), line by line while they run. What is no such line, or is torn, is
//! none of our business: anybody may print anything.

use super::transcript;
use onus_core::agents::Transcript;
use onus_core::session::{Counts, Usage};
use serde_json::Value;
use std::collections::BTreeMap;

pub const CODEX: &str = "codex-events";
pub const GEMINI: &str = "gemini-events";
pub const OPENCODE: &str = "opencode-events";
/// A longer line holds no usage.
const LINE_MAX: usize = 1_048_576;

/// Adds up what a client says of itself.
#[derive(Debug, Default)]
pub struct StreamUsage {
    /// Whose lines are believed; anybody's where nobody said who is called.
    only: Option<Transcript>,
    line: String,
    is_too_long: bool,
    /// The client's own name of its session.
    session: Option<String>,
    /// Claude Code's messages, by id: model and tokens. One message comes in several lines.
    messages: BTreeMap<String, (String, Counts)>,
    /// What its last line says of each model; that counts instead.
    result: BTreeMap<String, Counts>,
    codex: Option<Counts>,
    /// What Gemini CLI says of each model at its end.
    gemini: BTreeMap<String, Counts>,
    /// The steps of opencode, added up.
    opencode: Option<Counts>,
    /// What a resumed thread of Codex had counted before.
    counted: Counts,
}

impl StreamUsage {
    /// Of a client that is known, which told so much in its earlier runs and counts that once more.
    pub fn of(only: Option<Transcript>, counted: Counts) -> StreamUsage {
        StreamUsage { only, counted, ..StreamUsage::default() }
    }

    pub fn push(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            self.is_too_long |= self.line.len() + part.len() > LINE_MAX;
            if !self.is_too_long {
                self.line.push_str(part);
            }
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                if !std::mem::take(&mut self.is_too_long) {
                    self.read(line.trim());
                }
            }
        }
    }

    fn read(&mut self, line: &str) {
        const TELLING: &[&str] = &["\"usage\"", "\"thread_id\"", "\"tokens\"", "\"stats\"", "\"session_id\""];
        if !line.starts_with('{') || !TELLING.iter().any(|word| line.contains(word)) {
            return;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let (whose, kind) = match event["type"].as_str() {
            Some(kind @ "assistant") => (Transcript::Claude, kind),
            Some("result") if event["stats"].is_object() => (Transcript::Gemini, "result"),
            Some(kind @ "result") => (Transcript::Claude, kind),
            Some(kind @ ("thread.started" | "turn.completed")) => (Transcript::Codex, kind),
            Some(kind @ "init") => (Transcript::Gemini, kind),
            Some(kind @ "step_finish") => (Transcript::Opencode, kind),
            _ => return,
        };
        if self.only.is_some_and(|only| only != whose) {
            return;
        }
        match (whose, kind) {
            (Transcript::Claude, "assistant") => self.message(&event),
            (Transcript::Claude, _) => self.result(&event),
            (Transcript::Codex, "thread.started") => self.named(&event["thread_id"]),
            (Transcript::Codex, _) => self.turn(&event["usage"]),
            (Transcript::Gemini, "init") => self.named(&event["session_id"]),
            (Transcript::Gemini, _) => self.stats(&event["stats"]),
            (Transcript::Opencode, _) => self.step(&event),
        }
    }

    fn message(&mut self, event: &Value) {
        let message = &event["message"];
        let (Some(id), Some(model)) = (message["id"].as_str(), message["model"].as_str()) else { return };
        self.named(&event["session_id"]);
        let counts = Counts { turns: 1, ..snake(&message["usage"]) };
        if counts.tokens() > 0 {
            self.messages.insert(id.to_owned(), (model.to_owned(), counts));
        }
    }

    fn result(&mut self, event: &Value) {
        self.named(&event["session_id"]);
        for (model, used) in event["modelUsage"].as_object().into_iter().flatten() {
            let count = |name: &str| used[name].as_i64().unwrap_or(0).max(0);
            let counts = Counts {
                input_tokens: count("inputTokens"),
                output_tokens: count("outputTokens"),
                cache_read_tokens: count("cacheReadInputTokens"),
                cache_creation_tokens: count("cacheCreationInputTokens"),
                cost_micros: used["costUSD"].as_f64().and_then(micros),
                turns: 0,
            };
            self.result.insert(model.clone(), counts);
        }
    }

    fn named(&mut self, session: &Value) {
        if let Some(session) = session.as_str() {
            self.session = Some(session.to_owned());
        }
    }

    fn turn(&mut self, usage: &Value) {
        let counts = whole_input(usage, "cached_input_tokens");
        self.codex.get_or_insert_default().add(&Counts { turns: 1, ..counts });
    }

    /// Its requests are not told.
    fn stats(&mut self, stats: &Value) {
        let models = stats["models"].as_object().into_iter().flatten();
        self.gemini.extend(models.map(|(model, used)| (model.clone(), whole_input(used, "cached"))));
    }

    /// Each step is one answer of the model.
    fn step(&mut self, event: &Value) {
        self.named(&event["sessionID"]);
        let (tokens, cost) = (&event["part"]["tokens"], &event["part"]["cost"]);
        let count = |name: &str| tokens[name].as_i64().unwrap_or(0).max(0);
        let cache = |name: &str| tokens["cache"][name].as_i64().unwrap_or(0).max(0);
        let counts = Counts {
            input_tokens: count("input"),
            output_tokens: count("output") + count("reasoning"),
            cache_read_tokens: cache("read"),
            cache_creation_tokens: cache("write"),
            // A model without prices costs it nothing, which is not known to be so.
            cost_micros: cost.as_f64().and_then(micros).filter(|micros| *micros > 0),
            turns: 1,
        };
        self.opencode.get_or_insert_default().add(&counts);
    }

    /// Under the key of the client's own transcript: whoever reads that as well counts nothing twice.
    pub fn usages(&self) -> Vec<Usage> {
        let session = self.session.as_deref().unwrap_or("unnamed");
        let mut models: BTreeMap<String, Counts> = BTreeMap::new();
        for (model, counts) in self.messages.values() {
            models.entry(model.clone()).or_default().add(counts);
        }
        if !self.result.is_empty() {
            // It tells tokens and cost of each model, and no turns.
            let turns = |model: &String| models.get(model).map_or(0, |counted| counted.turns);
            let whole = self
                .result
                .iter()
                .map(|(model, counts)| (model.clone(), Counts { turns: turns(model), ..*counts }));
            models = whole.collect();
        }
        let claude = models.into_iter().map(|(model, counts)| Usage {
            key: format!("{}:{session}:{model}", transcript::SOURCE),
            source: transcript::SOURCE.to_owned(),
            model: Some(model),
            counts,
        });
        let codex = self.codex.map(|counts| (CODEX, counts.beyond(&self.counted)));
        let opencode = self.opencode.map(|counts| (OPENCODE, counts));
        let whole = codex.into_iter().chain(opencode).map(|(source, counts)| Usage {
            key: format!("{source}:{session}"),
            source: source.to_owned(),
            model: None,
            counts,
        });
        let gemini = self.gemini.iter().map(|(model, counts)| Usage {
            key: format!("{GEMINI}:{session}:{model}"),
            source: GEMINI.to_owned(),
            model: Some(model.clone()),
            counts: *counts,
        });
        claude.chain(whole).chain(gemini).filter(|usage| usage.counts.tokens() > 0).collect()
    }
}

fn snake(usage: &Value) -> Counts {
    let count = |name: &str| usage[name].as_i64().unwrap_or(0).max(0);
    Counts {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_read_tokens: count("cache_read_input_tokens"),
        cache_creation_tokens: count("cache_creation_input_tokens"),
        cost_micros: None,
        turns: 0,
    }
}

/// Where the input counts what was read from a cache as well.
fn whole_input(usage: &Value, cached: &str) -> Counts {
    let count = |name: &str| usage[name].as_i64().unwrap_or(0).max(0);
    let cached = count(cached).min(count("input_tokens"));
    Counts {
        input_tokens: count("input_tokens") - cached,
        output_tokens: count("output_tokens"),
        cache_read_tokens: cached,
        ..Counts::default()
    }
}

/// Of a cost that can be one.
fn micros(cost: f64) -> Option<i64> {
    let micros = (cost * 1_000_000.0).round();
    #[expect(clippy::cast_possible_truncation, reason = "its bounds are looked at")]
    (0.0..1e15).contains(&micros).then_some(micros as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(String, i64, Option<i64>)> {
        let mut stream = StreamUsage::default();
        // In pieces as a pipe has them.
        text.as_bytes().chunks(7).for_each(|piece| stream.push(std::str::from_utf8(piece).unwrap()));
        let usages = stream.usages().into_iter();
        usages.map(|usage| (usage.key, usage.counts.tokens(), usage.counts.cost_micros)).collect()
    }

    const MESSAGE: &str = r#"{"type":"assistant","session_id":"s","message":{"id":"m1","model":"x","usage":{"input_tokens":4,"output_tokens":1}}}
{"type":"assistant","session_id":"s","message":{"id":"m1","model":"x","usage":{"input_tokens":4,"output_tokens":3}}}
"#;

    #[test]
    fn a_message_counts_once_and_the_result_instead_of_all() {
        assert_eq!(told(MESSAGE), [("claude-transcript:s:x".into(), 7, None)]);
        let result = r#"{"type":"result","session_id":"s","usage":{},"modelUsage":{"x":{"inputTokens":5,"outputTokens":6,"costUSD":0.25}}}"#;
        let whole = format!("{MESSAGE}{result}\n");
        assert_eq!(told(&whole), [("claude-transcript:s:x".into(), 11, Some(250_000))]);
    }

    #[test]
    fn the_turns_of_codex_are_added_up() {
        let turn = r#"{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}}"#;
        let whole = format!("{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{turn}\n{turn}\n");
        assert_eq!(told(&whole), [("codex-events:t".into(), 24, None)]);
    }

    #[test]
    fn a_resumed_thread_counts_what_came_since() {
        let counted =
            Counts { input_tokens: 3_200, output_tokens: 200, cache_read_tokens: 800, ..Counts::default() };
        let mut stream = StreamUsage::of(Some(Transcript::Codex), counted);
        stream.push("{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":5000,\"cached_input_tokens\":1000,\"output_tokens\":250}}\n");
        assert_eq!(stream.usages()[0].counts.tokens(), 1_050);
    }

    /// As the real clients printed them.
    const OF_GEMINI: &str = include_str!("../../../onus-core/tests/transcripts/gemini.jsonl");
    const OF_OPENCODE: &str = include_str!("../../../onus-core/tests/transcripts/opencode.jsonl");

    #[test]
    fn gemini_tells_at_its_end_and_opencode_step_by_step() {
        let gemini = told(OF_GEMINI);
        assert_eq!(
            gemini,
            [("gemini-events:5de9240b-e305-45fc-9fe1-0d82e8059a5c:scripted".into(), 4_200, None)]
        );
        let opencode = told(OF_OPENCODE);
        let key = "opencode-events:ses_e118fbe0affeJnam0J5jCqf4OT".to_owned();
        assert_eq!(opencode, [(key, 3 * 1_050, Some(2_760))]);
    }

    #[test]
    fn only_the_client_that_is_called_is_believed() {
        let mut stream = StreamUsage::of(Some(Transcript::Codex), Counts::default());
        [MESSAGE, OF_GEMINI, OF_OPENCODE].into_iter().for_each(|text| stream.push(text));
        assert_eq!(stream.usages(), []);
    }

    #[test]
    fn what_is_no_such_line_is_passed_over() {
        let long = format!("{{\"usage\":\"{}\n{MESSAGE}", "x".repeat(LINE_MAX));
        assert_eq!(told(&long).len(), 1, "the line behind a long one is read");
        for other in
            ["hello\n", "{\"usage\"\n", "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":-4}}\n"]
        {
            assert!(told(other).is_empty(), "{other}");
        }
    }
}
