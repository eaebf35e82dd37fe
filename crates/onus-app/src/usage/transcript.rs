//! Claude Code's transcripts: one JSON object per line. Assistant messages carry `message.usage`, and one message is
//! repeated on a line for each of its parts: it counts once, by its id.

use super::Sample;
use onus_core::session::Counts;
use onus_core::time::Timestamp;
use serde::Deserialize;
use std::collections::HashMap;
use std::io::BufRead;

pub const SOURCE: &str = "claude-transcript";

#[derive(Debug, Deserialize)]
struct TranscriptLine {
    #[serde(default, rename = "sessionId")]
    session: Option<String>,
    #[serde(default)]
    timestamp: Option<Timestamp>,
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: i64,
    #[serde(default)]
    output_tokens: i64,
    #[serde(default)]
    cache_creation_input_tokens: i64,
    #[serde(default)]
    cache_read_input_tokens: i64,
}

/// Reads a transcript. Lines without usage are none of our business; one that is not JSON is an error, unless it is the
/// last: somebody may still be writing it.
pub fn read(input: impl BufRead) -> Result<Vec<Sample>, String> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut torn = None;
    for (number, line) in (1..).zip(input.lines()) {
        let line = line.map_err(|error| format!("line {number}: {error}"))?;
        if let Some(error) = torn.take() {
            return Err(error);
        }
        // Most lines are long and have no usage: they need not be understood.
        if !line.contains("\"usage\"") {
            continue;
        }
        let parsed: TranscriptLine = match serde_json::from_str(&line) {
            Ok(parsed) => parsed,
            Err(error) => {
                torn = Some(format!("line {number} is no line of a transcript: {error}"));
                continue;
            }
        };
        let Some(message) = parsed.message else { continue };
        let Some(tokens) = message.usage else { continue };
        let counts = Counts {
            input_tokens: tokens.input_tokens,
            output_tokens: tokens.output_tokens,
            cache_read_tokens: tokens.cache_read_input_tokens,
            cache_creation_tokens: tokens.cache_creation_input_tokens,
            cost_micros: None,
            turns: 1,
        };
        // A message that the client made up itself, e.g. about an error.
        if counts.tokens() <= 0 {
            continue;
        }
        let known = message.id.as_ref().and_then(|id| by_id.get(id)).copied();
        if let Some(known) = known {
            // Later parts know more about the same message.
            samples[known].counts = larger(&samples[known].counts, &counts);
            continue;
        }
        if let Some(id) = message.id {
            by_id.insert(id, samples.len());
        }
        samples.push(Sample {
            at: parsed.timestamp,
            record: parsed.session.unwrap_or_else(|| "unnamed".into()),
            model: message.model,
            counts,
        });
    }
    Ok(samples)
}

fn larger(one: &Counts, other: &Counts) -> Counts {
    Counts {
        input_tokens: one.input_tokens.max(other.input_tokens),
        output_tokens: one.output_tokens.max(other.output_tokens),
        cache_read_tokens: one.cache_read_tokens.max(other.cache_read_tokens),
        cache_creation_tokens: one.cache_creation_tokens.max(other.cache_creation_tokens),
        cost_micros: one.cost_micros.max(other.cost_micros),
        turns: one.turns.max(other.turns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"hi"}}
{"type":"assistant","sessionId":"s","timestamp":"2026-11-16T09:00:01.500Z","requestId":"r1","message":{"id":"m1","model":"claude-x","usage":{"input_tokens":4,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":1,"service_tier":"standard"}}}
{"type":"assistant","sessionId":"s","timestamp":"2026-11-16T09:00:02.500Z","requestId":"r1","message":{"id":"m1","model":"claude-x","usage":{"input_tokens":4,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":50}}}
{"type":"assistant","sessionId":"s","timestamp":"2026-11-16T09:01:00Z","message":{"id":"m2","model":"claude-x","usage":{"input_tokens":1,"output_tokens":2}}}
{"type":"assistant","sessionId":"s","timestamp":"2026-11-16T09:01:01Z","message":{"id":"m3","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0}}}
"#;

    #[test]
    fn a_message_counts_once_however_many_lines_it_has() {
        let samples = read(ONE.as_bytes()).unwrap();
        let tokens: Vec<i64> = samples.iter().map(|sample| sample.counts.tokens()).collect();
        assert_eq!(tokens, [4 + 100 + 2000 + 50, 3]);
        assert_eq!(samples[0].at.unwrap().to_string(), "2026-11-16T09:00:01.500Z");
        assert_eq!(samples[0].model.as_deref(), Some("claude-x"));
    }

    #[test]
    fn only_the_last_line_may_be_torn() {
        let torn = format!("{ONE}{{\"message\":{{\"usage\":");
        assert_eq!(read(torn.as_bytes()).unwrap().len(), 2);
        let broken = format!("{torn}\n{ONE}");
        assert!(read(broken.as_bytes()).unwrap_err().starts_with("line 6 "));
    }
}
