//! Nothing is lost: whatever stands in a file of another tool is found again in what it becomes, or the report names it. Every
//! value of every sample is changed in turn, and every object gets a field that nobody knows.

use super::sources::{SAMPLES, distinct_places, documents, places, sample, written};
use onus_app::import::format::{Converted, Format, SourceFile, convert};
use serde_json::{Value, json};

/// What is left of the files: the lines of the import, and what its report names.
fn told(converted: &Converted) -> String {
    let mut told = String::new();
    for line in converted.lines.lines() {
        texts(&serde_json::from_str(line).unwrap(), &mut told);
    }
    for word in converted.skipped.iter().flat_map(|(name, why)| [name, why]).chain(&converted.unmapped) {
        told.push_str(word);
        told.push('\n');
    }
    told
}

fn texts(value: &Value, found: &mut String) {
    match value {
        Value::String(text) => found.push_str(text),
        Value::Array(list) => list.iter().for_each(|one| texts(one, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            found.push_str(name);
            found.push('\n');
            texts(value, found);
        }),
        other => found.push_str(&other.to_string()),
    }
    found.push('\n');
}

/// What a value can be that a file has by mistake, or that a later version of its tool has; each with the words by which it is
/// found again.
fn others() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (json!("zq-word"), vec!["zq-word"]),
        (json!("zq two words"), vec!["zq two words"]),
        (json!(77_001_001), vec!["77001001"]),
        (json!(-77_001_002), vec!["-77001002"]),
        (json!(77_001.5), vec!["77001.5"]),
        (json!(["zq-first", "zq-second"]), vec!["zq-first", "zq-second"]),
        (json!([{"zq-name": "zq-value"}]), vec!["zq-name", "zq-value"]),
        (json!({"zq-name": "zq-value", "name": "zq-called"}), vec!["zq-name", "zq-value", "zq-called"]),
        (json!([["zq-deep"]]), vec!["zq-deep"]),
        (json!("9999-99-99T25:61:61Z"), vec!["9999-99-99T25:61:61Z"]),
        (
            json!("  zq\nlines \u{1b}[31m\u{202e}\u{0} of it"),
            vec!["zq", "lines \u{1b}[31m\u{202e}\u{0} of it"],
        ),
    ]
}

/// The words at a place that are neither kept nor told. What the report names is not taken over as a whole.
fn lost(format: Format, files: &[SourceFile], place: &str, words: &[&str]) -> Vec<String> {
    let converted = convert(format, files, &Default::default());
    let is_named = |(name, _): &(String, String)| place.split('/').any(|part| part == name);
    if !converted.is_sound() || converted.skipped.iter().any(is_named) {
        return Vec::new();
    }
    let told = told(&converted);
    words.iter().filter(|word| !told.contains(**word)).map(|word| (*word).to_owned()).collect()
}

#[test]
fn whatever_a_value_is_it_is_kept_or_refused() {
    let mut found = Vec::new();
    for (name, format, _) in SAMPLES {
        let files = sample(name);
        let whole = documents(format, &files);
        // All of a pull request is left out, and told by its number.
        let all = distinct_places(&whole).into_iter().filter(|(_, place)| !place.contains("pull_request"));
        for (at, place) in all {
            for (other, words) in others() {
                let mut changed = whole.clone();
                *changed[at].value.pointer_mut(&place).unwrap() = other.clone();
                let files = written(format, &files, &changed);
                let lost = lost(format, &files, &place, &words);
                if !lost.is_empty() {
                    found.push(format!("{name} {at}{place} = {other}: {lost:?}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} are lost: {:#?}", found.len(), &found[..found.len().min(400)]);
}

#[test]
fn a_field_that_nobody_knows_is_kept_wherever_it_stands() {
    let mut found = Vec::new();
    for (name, format, _) in SAMPLES {
        let files = sample(name);
        let whole = documents(format, &files);
        for (at, document) in whole.iter().enumerate() {
            for place in std::iter::once(String::new()).chain(places(&document.value)) {
                let mut changed = whole.clone();
                let Some(fields) = changed[at].value.pointer_mut(&place).and_then(Value::as_object_mut)
                else {
                    continue;
                };
                // All of a pull request is left out, and told by its number.
                if fields.contains_key("pull_request") || place.ends_with("/pull_request") {
                    continue;
                }
                fields.insert("zq-name".into(), json!("zq-value"));
                let files = written(format, &files, &changed);
                let lost = lost(format, &files, &place, &["zq-name"]);
                if !lost.is_empty() {
                    found.push(format!("{name} {at}{place}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "fields of these objects are lost: {found:#?}");
}

#[test]
fn a_line_is_kept_wherever_it_stands_in_a_page() {
    let mut found = Vec::new();
    for (name, format, _) in
        SAMPLES.into_iter().filter(|(_, format, _)| matches!(format, Format::Backlog | Format::Kano))
    {
        let files = sample(name);
        for (at, file) in files.iter().enumerate().filter(|(_, file)| file.text.starts_with("---\n")) {
            let head = 3 + file.text[3..].find("\n---\n").unwrap() + 5;
            let ends = file.text[head..].match_indices('\n').map(|(end, _)| head + end + 1);
            for end in ends.chain([head]) {
                for line in [
                    "zq-word, and more",
                    "- [ ] #9 zq-word",
                    "## zq-word",
                    "author: zq-word",
                    "<!-- zq-word -->",
                    "---\nzq-word\n---",
                ] {
                    let mut changed = files.clone();
                    changed[at].text = format!("{}{line}\n{}", &file.text[..end], &file.text[end..]);
                    if !lost(format, &changed, "", &["zq-word"]).is_empty() {
                        found.push(format!("{} at {end}: {line:?}", file.name));
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "{} are lost: {found:#?}", found.len());
}
