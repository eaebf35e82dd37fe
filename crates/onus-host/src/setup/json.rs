//! One key of a settings file in JSON, with everything else as it was: order, indentation, the end of the file.

use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};

/// The file with a change made to it; none where nothing would be left in it.
pub(super) fn edited(
    text: Option<&str>,
    change: impl FnOnce(&mut Value) -> Result<(), String>,
) -> Result<Option<String>, String> {
    let before = match text.map(str::trim) {
        None | Some("") => Value::Object(Map::new()),
        Some(text) => serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?,
    };
    let mut after = before.clone();
    change(&mut after)?;
    if after == before {
        return Ok(text.map(str::to_owned));
    }
    if after.as_object().is_some_and(Map::is_empty) {
        return Ok(None);
    }
    let text = text.unwrap_or("\n");
    let mut bytes = Vec::new();
    let indent = indentation(text);
    let mut writer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(indent.as_bytes()));
    serde::Serialize::serialize(&after, &mut writer).map_err(|error| error.to_string())?;
    let mut written = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    if text.ends_with('\n') {
        written.push('\n');
    }
    Ok(Some(written))
}

fn indentation(text: &str) -> &str {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    indented.map_or("  ", |line| &line[..line.len() - line.trim_start().len()])
}

/// Sets a key, or takes it out, and with it whatever is empty without it.
pub(super) fn set(file: &mut Value, path: &[&str], value: Option<Value>) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else {
        return Ok(());
    };
    let object = file.as_object_mut().ok_or("it is JSON, but not as expected here")?;
    if rest.is_empty() {
        match value {
            Some(value) => drop(object.insert((*first).to_owned(), value)),
            None => drop(object.shift_remove(*first)),
        }
        return Ok(());
    }
    if value.is_none() && !object.contains_key(*first) {
        return Ok(());
    }
    let inner = object.entry(*first).or_insert_with(|| Value::Object(Map::new()));
    set(inner, rest, value)?;
    if inner.as_object().is_some_and(Map::is_empty) {
        object.shift_remove(*first);
    }
    Ok(())
}

/// Changes a list, and takes it out where nothing is left in it.
pub(super) fn list(
    file: &mut Value,
    path: &[&str],
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<(), String> {
    let pointer: String = path.iter().map(|word| format!("/{word}")).collect();
    let found = file.pointer(&pointer).cloned();
    let mut items = match found {
        None => Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(format!("{} is no list", path.join("."))),
    };
    change(&mut items);
    set(file, path, (!items.is_empty()).then_some(Value::Array(items)))
}
