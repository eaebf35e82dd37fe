//! The OpenAPI 3.1 document: the table of routes, told to machines.

use crate::events::EventView;
use crate::intake;
use crate::problem::ProblemView;
use crate::route::{Route, RouteKind};
use crate::routes;
use onus_app::intake::IntakeView;
use onus_core::id::{ChannelName, Handle, MilestoneName, RequestId, WorkstationName};
use onus_core::intake::channel::{Headers, Preset};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// What every operation may answer beside its success.
const ANY: &[(u16, &str)] = &[
    (400, "The input is not valid"),
    (401, "There is no token, or it is not good"),
    (403, "The caller may not do this, or the rules do not allow it"),
    (404, "There is no such task or name, or nothing is ready"),
    (408, "The body did not come in time"),
    (429, "The caller asks too often; Retry-After says when to come back"),
    (500, "A defect of Onus"),
    (503, "The store is busy or cannot be used; Retry-After says when to come back"),
];

/// What a command may answer, too.
const COMMANDS: &[(u16, &str)] = &[
    (409, "Somebody else holds the task, the lease is no longer yours, or something stands in the way"),
    (412, "The task is at another version than If-Match says"),
    (413, "The body is too long"),
    (415, "The body is not JSON"),
    (422, "A rule about the content refuses it"),
];

/// A task's version as `ETag` writes it.
const VERSION: &str = "^(\\*|\"[0-9]{1,18}\")$";

pub fn document() -> String {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<ProblemView>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::table() {
        let operation = operation(&mut generator, &route, &problem);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    paths.insert("/v1/events".into(), json!({ "get": events(&mut generator, &problem) }));
    paths.insert(intake::PATH.into(), json!({ "post": delivered(&mut generator, &problem) }));
    for (path, name, about, kind) in [
        ("/openapi.json", "openapi", "This document", "application/json"),
        ("/healthz", "healthz", "Whether the process runs", "text/plain; charset=utf-8"),
        ("/readyz", "readyz", "Whether the store answers", "text/plain; charset=utf-8"),
        (
            "/metrics",
            "metrics",
            "Prometheus metrics",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
    ] {
        paths.insert(path.into(), json!({ "get": plain(name, about, kind, &problem) }));
    }
    let schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Onus",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Answers are the documents that `onus --json` prints. Every document also has `format`: \"onus/1\". \
                            Fields may be added, never renamed. A POST may be repeated with the same Idempotency-Key: it \
                            has one effect and the same answer. (What changes the workspace itself has one effect, too; a \
                            repeat of it is told that it is done already.)",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    });
    format!("{document:#}\n")
}

fn operation(generator: &mut SchemaGenerator, route: &Route, problem: &Value) -> Value {
    let is_command = route.sort != RouteKind::Question;
    let answer = (route.answer)(generator).to_value();
    let mut parameters = Vec::new();
    if route.path.contains("{id}") {
        let id = generator.subschema_for::<onus_core::id::TaskId>().to_value();
        parameters.push(json!({ "name": "id", "in": "path", "required": true, "schema": id }));
    }
    if route.path.contains("{name}") {
        let name = match route.path.split('/').nth(2) {
            Some("workers") => generator.subschema_for::<Handle>().to_value(),
            Some("milestones") => generator.subschema_for::<MilestoneName>().to_value(),
            _ => generator.subschema_for::<WorkstationName>().to_value(),
        };
        parameters.push(json!({ "name": "name", "in": "path", "required": true, "schema": name }));
    }
    if let Some(query) = route.query {
        parameters.extend(query_parameters(&query(generator).to_value()));
    }
    let mut responses = responses(problem, if is_command { &[ANY, COMMANDS] } else { &[ANY] });
    let success =
        json!({ "description": route.about, "content": { "application/json": { "schema": answer } } });
    if route.name == "add" {
        responses.insert("201".into(), success.clone());
    }
    responses.insert("200".into(), success);
    if is_command {
        let key = RequestId::json_schema(generator).to_value()["pattern"].clone();
        let about = "Names this call: a repeat of it has no second effect";
        parameters.push(header("Idempotency-Key", about, key.as_str().unwrap_or_default()));
    }
    if route.sort == RouteKind::Command {
        parameters.push(header("If-Match", "The version that the task must have, as ETag told it", VERSION));
    } else if route.path == "/v1/tasks/{id}" {
        parameters.push(header("If-None-Match", "The version that you have already", VERSION));
        responses.insert("304".into(), json!({ "description": "You have this version already" }));
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.about,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = route.body {
        let schema = body(generator).to_value();
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn header(name: &str, about: &str, pattern: &str) -> Value {
    let schema = json!({ "type": "string", "pattern": pattern });
    json!({ "name": name, "in": "header", "description": about, "schema": schema })
}

/// The properties of a query's schema, one parameter each.
fn query_parameters(schema: &Value) -> Vec<Value> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let described = |(name, mut schema): (String, Value)| {
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let mut parameter = json!({ "name": name, "in": "query", "schema": present(schema) });
        if let Some(about) = about {
            parameter["description"] = about;
        }
        parameter
    };
    properties.into_iter().map(described).collect()
}

/// A parameter that is left out is absent, never null.
fn present(schema: Value) -> Value {
    let mut schema = schema;
    if let Some(kinds) = schema["type"].as_array() {
        let kept: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
        schema["type"] = kept.first().cloned().unwrap_or_default();
    }
    match schema["anyOf"].as_array() {
        Some(some) => some.iter().find(|one| one["type"] != "null").cloned().unwrap_or_default(),
        None => {
            if let Some(object) = schema.as_object_mut() {
                object.retain(|_, value| !value.is_null());
            }
            schema
        }
    }
}

fn responses(problem: &Value, statuses: &[&[(u16, &str)]]) -> Map<String, Value> {
    let problem = |about: &str| json!({ "description": about, "content": { "application/problem+json": { "schema": problem } } });
    statuses
        .iter()
        .flat_map(|some| some.iter())
        .map(|(status, about)| (status.to_string(), problem(about)))
        .collect()
}

fn events(generator: &mut SchemaGenerator, problem: &Value) -> Value {
    let event = generator.subschema_for::<EventView>().to_value();
    let mut responses = responses(problem, &[ANY]);
    responses.insert(
        "200".into(),
        json!({
            "description": "Server-sent events: `id` is the entry's number, `event` its verb, `data` this document",
            "content": { "text/event-stream": { "schema": { "type": "string" }, "x-data-schema": event } },
        }),
    );
    let after = json!({ "name": "after", "in": "query", "description": "Begin behind this entry; default: with what happens next",
        "schema": { "type": "integer", "minimum": 0 } });
    json!({
        "operationId": "events",
        "summary": "Every change as it happens; resumable by the id of the last event",
        "parameters": [after, header("Last-Event-ID", "The id of the last event that was seen", "^[0-9]{1,18}$")],
        "responses": responses,
    })
}

/// Deliveries of other systems: signed, and laid out as their channel says.
fn delivered(generator: &mut SchemaGenerator, problem: &Value) -> Value {
    let channel = generator.subschema_for::<ChannelName>().to_value();
    let answer = generator.subschema_for::<IntakeView>().to_value();
    let about = "An ask of another system: one ask, one task";
    let success = json!({ "description": about, "content": { "application/json": { "schema": answer } } });
    let mut responses = responses(problem, &[ANY, COMMANDS]);
    responses.insert("201".into(), success.clone());
    responses.insert("200".into(), success);
    let Headers { signature, delivery, .. } = Preset::Generic.headers();
    json!({
        "operationId": intake::NAME,
        "summary": about,
        "security": [],
        "parameters": [
            { "name": "channel", "in": "path", "required": true, "schema": channel },
            header(signature, "HMAC-SHA256 of the body with the channel's secret", "^sha256=[0-9a-f]{64}$"),
            header(delivery, "Names this delivery: the same one again has no second effect", "^[!-~]{1,200}$"),
        ],
        "requestBody": { "content": { "application/json": { "schema": { "type": "object" } } } },
        "responses": responses,
    })
}

fn plain(name: &str, about: &str, kind: &str, problem: &Value) -> Value {
    let mut responses = responses(problem, &[]);
    responses.insert("200".into(), json!({ "description": about, "content": { kind: {} } }));
    let failed = json!({ "description": "Not now, or not under this name",
        "content": { "application/problem+json": { "schema": problem } } });
    responses.insert("403".into(), failed.clone());
    responses.insert("503".into(), failed);
    json!({ "operationId": name, "summary": about, "security": [], "responses": responses })
}
