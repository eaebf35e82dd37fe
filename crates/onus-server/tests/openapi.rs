//! What callers of the server rely on, kept as a file and compared.

use serde_json::Value;
use std::collections::BTreeSet;

fn document() -> Value {
    serde_json::from_str(&onus_server::openapi_document()).unwrap()
}

#[test]
fn the_published_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract/openapi.json");
    let text = onus_server::openapi_document();
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == text,
        "contract/openapi.json differs: UPDATE_CONTRACT=1 cargo test -p onus-server --test openapi"
    );
}

/// The paths of interface.md, word for word, as far as there is something behind them.
#[test]
fn every_path_of_the_contract_is_there() {
    let document = document();
    let verbs =
        "claim renew release takeover block unblock notes checks handoffs reviews complete reopen drop";
    let nouns = "tasks tasks/{id} claims ready stale workers workstations routes/explain sessions timesheets ledger events \
        reports/now reports/sprint reports/incident reports/audit reports/anomalies";
    let verbs = verbs.split(' ').map(|verb| format!("/v1/tasks/{{id}}/{verb}"));
    let nouns = nouns.split(' ').map(|noun| format!("/v1/{noun}"));
    let others = ["/openapi.json", "/healthz", "/readyz", "/metrics"].map(str::to_owned);
    for path in verbs.chain(nouns).chain(others) {
        assert!(document["paths"][&path].is_object(), "{path} is missing");
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_name_is_its_own() {
    let document = document();
    let mut names = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{method} {path}: {name} twice");
        }
    }
    fn visit(value: &Value, document: &Value) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                object.values().for_each(|value| visit(value, document));
            }
            Value::Array(list) => list.iter().for_each(|value| visit(value, document)),
            _ => {}
        }
    }
    visit(&document, &document);
}
