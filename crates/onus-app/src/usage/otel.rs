//! OpenTelemetry as JSON (OTLP), as a collector's file exporter writes it: one document, or one per line.
//!
//! Claude Code tells the same tokens twice: as events (`claude_code.api_request`, with the cost of each request) and as
//! metrics (`claude_code.token.usage`, `claude_code.cost.usage`). Where a session has events, its metrics are left out.

use super::Sample;
use onus_core::session::Counts;
use onus_core::time::Timestamp;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io::Read;

pub const SOURCE: &str = "otel";

const REQUEST: &str = "claude_code.api_request";
const TOKENS: &str = "claude_code.token.usage";
const COST: &str = "claude_code.cost.usage";

/// What OTLP calls a sum that starts anew with each report.
const DELTA: i64 = 1;

pub fn read(input: impl Read) -> Result<Vec<Sample>, String> {
    let mut reader = Reader::default();
    let documents = serde_json::Deserializer::from_reader(input).into_iter::<Value>();
    for document in documents {
        let document = document.map_err(|error| format!("this is no OTLP JSON: {error}"))?;
        reader.logs(&document);
        reader.metrics(&document);
    }
    Ok(reader.finish())
}

#[derive(Debug, Default)]
struct Reader {
    events: Vec<Sample>,
    seen: HashSet<String>,
    points: Vec<Sample>,
    /// The last value of each running sum.
    running: HashMap<String, Sample>,
}

impl Reader {
    fn logs(&mut self, document: &Value) {
        for resource in items(document, "resourceLogs") {
            for record in items(resource, "scopeLogs").iter().flat_map(|scope| items(scope, "logRecords")) {
                let sources = [&record["attributes"], &resource["resource"]["attributes"]];
                let name = text(&sources, "event.name");
                let is_request = record["body"]["stringValue"] == REQUEST
                    || record["eventName"] == REQUEST
                    || name.as_deref().is_some_and(|name| name == REQUEST || name == "api_request");
                if is_request {
                    self.request(record, &sources);
                }
            }
        }
    }

    fn request(&mut self, record: &Value, sources: &[&Value]) {
        let session = text(sources, "session.id").unwrap_or_else(|| "unnamed".into());
        let at = nanos(&record["timeUnixNano"]).or_else(|| nanos(&record["observedTimeUnixNano"]));
        // The same request may have been exported twice.
        let name = text(sources, "request_id")
            .or_else(|| text(sources, "event.sequence"))
            .unwrap_or_else(|| record["timeUnixNano"].to_string());
        if !self.seen.insert(format!("{session} {name}")) {
            return;
        }
        let count = |key: &str| number(sources, key).unwrap_or(0.0) as i64;
        let counts = Counts {
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            cache_read_tokens: count("cache_read_tokens"),
            cache_creation_tokens: count("cache_creation_tokens"),
            cost_micros: number(sources, "cost_usd").map(micros),
            turns: 1,
        };
        self.events.push(Sample { at, record: session, model: text(sources, "model"), counts });
    }

    fn metrics(&mut self, document: &Value) {
        for resource in items(document, "resourceMetrics") {
            for metric in items(resource, "scopeMetrics").iter().flat_map(|scope| items(scope, "metrics")) {
                let name = metric["name"].as_str().unwrap_or_default();
                if name != TOKENS && name != COST {
                    continue;
                }
                let sum = if metric["sum"].is_object() { &metric["sum"] } else { &metric["gauge"] };
                let temporality = match &sum["aggregationTemporality"] {
                    Value::String(word) if word.ends_with("CUMULATIVE") => 2,
                    value => value.as_i64().unwrap_or(DELTA),
                };
                for point in items(sum, "dataPoints") {
                    let sources = [&point["attributes"], &resource["resource"]["attributes"]];
                    self.point(name, temporality, point, &sources);
                }
            }
        }
    }

    fn point(&mut self, name: &str, temporality: i64, point: &Value, sources: &[&Value]) {
        let value = plain(&point["asInt"]).or_else(|| plain(&point["asDouble"])).unwrap_or(0.0);
        let mut counts = Counts::default();
        let kind = text(sources, "type").unwrap_or_default();
        match (name, kind.as_str()) {
            (COST, _) => counts.cost_micros = Some(micros(value)),
            (_, "input") => counts.input_tokens = value as i64,
            (_, "output") => counts.output_tokens = value as i64,
            (_, "cacheRead") => counts.cache_read_tokens = value as i64,
            (_, "cacheCreation") => counts.cache_creation_tokens = value as i64,
            _ => return,
        }
        let record = text(sources, "session.id").unwrap_or_else(|| "unnamed".into());
        let series = format!("{name} {} {}", point["attributes"], point["startTimeUnixNano"]);
        let sample =
            Sample { at: nanos(&point["timeUnixNano"]), record, model: text(sources, "model"), counts };
        if temporality == DELTA {
            if self.seen.insert(format!("{series} {}", point["timeUnixNano"])) {
                self.points.push(sample);
            }
        } else {
            let known = self.running.entry(series).or_insert_with(|| sample.clone());
            if sample.at >= known.at {
                *known = sample;
            }
        }
    }

    fn finish(self) -> Vec<Sample> {
        let told: HashSet<String> = self.events.iter().map(|sample| sample.record.clone()).collect();
        let mut samples = self.events;
        let metrics = self.points.into_iter().chain(self.running.into_values());
        samples.extend(metrics.filter(|sample| !told.contains(&sample.record)));
        samples.sort_by(|one, other| (one.at, &one.record).cmp(&(other.at, &other.record)));
        samples
    }
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// The value of an attribute: of the record itself, else of what it came from.
fn attribute<'a>(sources: &[&'a Value], key: &str) -> Option<&'a Value> {
    let of = |source: &&'a Value| source.as_array()?.iter().find(|one| one["key"] == key);
    sources.iter().find_map(of).map(|found| &found["value"])
}

fn text(sources: &[&Value], key: &str) -> Option<String> {
    let value = attribute(sources, key)?;
    let word = value["stringValue"].as_str().map(str::to_owned);
    word.or_else(|| plain(&value["intValue"]).map(|number| number.to_string()))
}

/// Numbers come as numbers, or as the texts of numbers.
fn number(sources: &[&Value], key: &str) -> Option<f64> {
    let value = attribute(sources, key)?;
    ["intValue", "doubleValue", "stringValue"].iter().find_map(|kind| plain(&value[*kind]))
}

fn plain(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn nanos(value: &Value) -> Option<Timestamp> {
    let nanos: i128 = match value {
        Value::String(text) => text.parse().ok()?,
        Value::Number(number) => i128::from(number.as_u64()?),
        _ => return None,
    };
    i64::try_from(nanos / 1_000_000).ok().filter(|millis| *millis > 0).map(Timestamp)
}

fn micros(units: f64) -> i64 {
    (units * 1_000_000.0).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(pairs: &[(&str, Value)]) -> Value {
        pairs.iter().map(|(key, value)| serde_json::json!({"key": key, "value": value})).collect()
    }

    fn word(text: &str) -> Value {
        serde_json::json!({"stringValue": text})
    }

    fn request(session: &str, sequence: i64) -> Value {
        let int = |n: i64| serde_json::json!({"intValue": n.to_string()});
        let own = attributes(&[
            ("event.name", word("api_request")),
            ("session.id", word(session)),
            ("event.sequence", int(sequence)),
            ("model", word("claude-x")),
            ("cost_usd", serde_json::json!({"doubleValue": 0.0125})),
            ("input_tokens", int(10)),
            ("output_tokens", word("20")),
            ("cache_read_tokens", int(300)),
            ("cache_creation_tokens", int(4)),
        ]);
        serde_json::json!({"timeUnixNano": "1794819600500000000", "body": word(REQUEST), "attributes": own})
    }

    fn logs(records: &[Value]) -> String {
        serde_json::json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string()
    }

    fn metric(session: &str, kind: &str, temporality: i64, values: &[i64]) -> Value {
        let points: Vec<Value> = (1..).zip(values).map(|(n, value)| serde_json::json!({
            "startTimeUnixNano": if temporality == DELTA { n.to_string() } else { "1".into() },
            "timeUnixNano": format!("17948196{n:02}500000000"),
            "asInt": value.to_string(),
            "attributes": attributes(&[("session.id", word(session)), ("type", word(kind)), ("model", word("claude-x"))]),
        })).collect();
        serde_json::json!({"name": TOKENS, "sum": {"aggregationTemporality": temporality, "dataPoints": points}})
    }

    fn metrics(list: &[Value]) -> String {
        serde_json::json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": list}]}]}).to_string()
    }

    fn sum(text: &str) -> Counts {
        let mut sum = Counts::default();
        read(text.as_bytes()).unwrap().iter().for_each(|sample| sum.add(&sample.counts));
        sum
    }

    #[test]
    fn requests_tell_tokens_and_cost_once() {
        let text = format!("{}\n{}", logs(&[request("s", 1), request("s", 2)]), logs(&[request("s", 2)]));
        let found = sum(&text);
        assert_eq!((found.tokens(), found.cost_micros), (2 * 334, Some(25_000)));
        let samples = read(text.as_bytes()).unwrap();
        assert_eq!(samples[0].at.unwrap().to_string(), "2026-11-16T09:00:00.500Z");
        assert_eq!((samples[0].record.as_str(), samples[0].model.as_deref()), ("s", Some("claude-x")));
    }

    #[test]
    fn metrics_add_up_by_their_temporality_and_not_beside_events() {
        let delta = metric("s", "input", DELTA, &[5, 7]);
        let running = metric("s", "cacheRead", 2, &[5, 7]);
        let found = sum(&metrics(&[delta.clone(), running]));
        assert_eq!((found.input_tokens, found.cache_read_tokens), (12, 7));
        let both = format!("{}\n{}", metrics(&[delta]), logs(&[request("s", 1)]));
        assert_eq!(sum(&both).tokens(), 334);
    }

    #[test]
    fn what_is_no_json_is_refused_and_other_signals_are_nothing() {
        assert!(read("no json".as_bytes()).is_err());
        assert_eq!(read("{\"resourceSpans\":[]}".as_bytes()).unwrap(), []);
    }
}
