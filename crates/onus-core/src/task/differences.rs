//! What an edit changed, in a few words: `priority: P2 -> P0`.

use super::Spec;
use serde_json::Value;
use std::collections::BTreeSet;

/// A value longer than this is told by its beginning.
const WORDS_MAX: usize = 120;

impl Spec {
    /// Each field that differs, with what it was and what it is. A body is a text of its own and only named.
    pub fn differences(&self, after: &Spec) -> Vec<String> {
        let (Ok(Value::Object(before)), Ok(Value::Object(after))) =
            (serde_json::to_value(self), serde_json::to_value(after))
        else {
            return Vec::new();
        };
        let fields: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let told =
            fields.into_iter().filter(|field| before.get(*field) != after.get(*field)).map(
                |field| match field.as_str() {
                    "body" | "extra" => field.clone(),
                    _ => format!("{field}: {} -> {}", words(before.get(field)), words(after.get(field))),
                },
            );
        told.collect()
    }
}

fn words(value: Option<&Value>) -> String {
    let words = match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => {
            let each = list.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            each.collect::<Vec<_>>().join(" ")
        }
        Some(other) => other.to_string(),
    };
    crate::text::shortened(&words, WORDS_MAX)
}
