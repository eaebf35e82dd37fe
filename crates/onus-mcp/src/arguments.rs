//! The arguments of a call: what its verb takes, with the task that a path names elsewhere and the request id that a header
//! names elsewhere.

use onus_app::input::{ClaimInput, ClaimNextInput, VerbInput};
use onus_core::id::{RequestId, TaskId};
use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A verb about one task.
#[derive(Debug)]
pub(crate) struct AboutTask<I> {
    pub(crate) task: TaskId,
    pub(crate) request: Option<RequestId>,
    pub(crate) input: I,
}

/// A verb that makes a task.
#[derive(Debug)]
pub(crate) struct Asking<I> {
    pub(crate) request: Option<RequestId>,
    pub(crate) input: I,
}

/// A claim of a task, or of the next one.
#[derive(Debug)]
pub(crate) enum Claiming {
    Named(AboutTask<ClaimInput>),
    Next(Asking<ClaimNextInput>),
}

const REQUEST: &str = "Choose one before the first try: a repeat with the same id gives the same answer";

impl<'de, I: VerbInput> Deserialize<'de> for AboutTask<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut arguments = Map::deserialize(deserializer)?;
        let task = taken(&mut arguments, "task")?.ok_or_else(|| D::Error::missing_field("task"))?;
        Ok(AboutTask { task, request: taken(&mut arguments, "request_id")?, input: rest(arguments)? })
    }
}

impl<'de, I: DeserializeOwned> Deserialize<'de> for Asking<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut arguments = Map::deserialize(deserializer)?;
        Ok(Asking { request: taken(&mut arguments, "request_id")?, input: rest(arguments)? })
    }
}

impl<'de> Deserialize<'de> for Claiming {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let arguments = Map::deserialize(deserializer)?;
        if arguments.get("task").is_some_and(|task| !task.is_null()) {
            return rest(arguments).map(Claiming::Named);
        }
        let kept = arguments.into_iter().filter(|(name, _)| name != "task");
        rest(kept.collect()).map(Claiming::Next)
    }
}

/// One argument, taken out of the others.
fn taken<T: DeserializeOwned, E: Error>(arguments: &mut JsonObject, name: &str) -> Result<Option<T>, E> {
    let value = arguments.remove(name).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| E::custom(format_args!("{name}: {error}")))
}

fn rest<T: DeserializeOwned, E: Error>(arguments: JsonObject) -> Result<T, E> {
    serde_json::from_value(Value::Object(arguments)).map_err(E::custom)
}

impl<I: VerbInput> JsonSchema for AboutTask<I> {
    fn schema_name() -> Cow<'static, str> {
        I::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of_verb = I::json_schema(generator);
        arguments(&[json!({ "task": { "type": "string" } })], &[&of_verb], &["task"])
    }
}

impl<I: JsonSchema> JsonSchema for Asking<I> {
    fn schema_name() -> Cow<'static, str> {
        I::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        arguments(&[], &[&I::json_schema(generator)], &[])
    }
}

impl JsonSchema for Claiming {
    fn schema_name() -> Cow<'static, str> {
        "Claim".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let first = json!({
            "task": { "type": "string", "description": "e.g. API-12" },
            "request_id": { "type": "string", "description": REQUEST },
        });
        let (named, next) = (ClaimInput::json_schema(generator), ClaimNextInput::json_schema(generator));
        arguments(&[first], &[&next, &named], &[])
    }
}

/// The properties of all of them; the request id is described once, where a session begins.
fn arguments(own: &[Value], inputs: &[&Schema], required: &[&str]) -> Schema {
    let mut properties = Map::new();
    let mut required: Vec<Value> = required.iter().map(|name| json!(name)).collect();
    let of_inputs = inputs.iter().filter_map(|input| input.get("properties"));
    for some in own.iter().chain(of_inputs).filter_map(Value::as_object) {
        for (name, property) in some {
            properties.entry(name.clone()).or_insert_with(|| property.clone());
        }
    }
    properties.entry("request_id").or_insert_with(|| json!({ "type": "string" }));
    if let [input] = inputs {
        required.extend(input.get("required").and_then(Value::as_array).into_iter().flatten().cloned());
    }
    let mut schema = json_schema!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema
}

/// The schema of a tool's arguments, in as few words as it takes: every client pays for them in every session.
pub(crate) fn schema<T: JsonSchema>(without: &[&str]) -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("description");
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !without.contains(&name.as_str()));
        for (name, property) in properties.iter_mut() {
            let described = property.as_object_mut().and_then(|property| property.remove("description"));
            bare(property);
            let Some(words) = described.filter(|_| !SELF_EVIDENT.contains(&name.as_str())) else { continue };
            property["description"] = words;
        }
    }
    shorten(&mut schema);
    match schema.to_value() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Arguments whose names say it, or whose meaning the tool's own words tell.
const SELF_EVIDENT: &[&str] = &["commit", "lease", "next", "to", "verdict"];

/// Parts of an argument go by their names.
fn bare(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("description").is_some_and(Value::is_string) {
                object.remove("description");
            }
            object.values_mut().for_each(bare);
        }
        Value::Array(list) => list.iter_mut().for_each(bare),
        _ => {}
    }
}

fn shorten(schema: &mut Schema) {
    // What is not required may be left out; that it may be null as well goes without saying.
    if let Some(Value::Array(some)) = schema.remove("anyOf")
        && let Some(Value::Object(one)) = some.into_iter().find(|one| one["type"] != "null")
    {
        for (word, value) in one.into_iter().filter(|(word, _)| word != "description") {
            schema.insert(word, value);
        }
    }
    let only = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| **kind != "null").cloned(),
        _ => None,
    };
    if let Some(kind) = only {
        schema.insert("type".to_owned(), kind);
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    // The refusal of a wrong word says what a right one is.
    for word in
        ["title", "format", "minimum", "maximum", "minLength", "maxLength", "pattern", "examples", "default"]
    {
        schema.remove(word);
    }
    transform_subschemas(&mut shorten, schema);
}
