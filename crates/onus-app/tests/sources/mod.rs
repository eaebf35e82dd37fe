//! Files of other tools: the samples, as they are read, and as the values that stand in them, which a test can change and write
//! again.

use super::desk::Desk;
use onus_app::import::ImportView;
use onus_app::import::format::{Format, SourceFile, convert};
use onus_core::refusal::Refusal;
use serde_json::{Map, Value};
use std::path::Path;

/// Every sample, the format it is in, and how many tasks it has.
pub(crate) const SAMPLES: [(&str, Format, i64); 12] = [
    ("beads.jsonl", Format::Beads, 4),
    ("beads-newer.jsonl", Format::Beads, 24),
    ("beads-rust.jsonl", Format::Beads, 2),
    ("backlog", Format::Backlog, 8),
    ("kano", Format::Kano, 3),
    ("taskmaster.json", Format::Taskmaster, 5),
    ("taskmaster-flat.json", Format::Taskmaster, 3),
    ("queue.yaml", Format::Queue, 2),
    ("gh.json", Format::Github, 1),
    ("github.json", Format::Github, 1),
    ("redmine.json", Format::Redmine, 2),
    ("redmine.csv", Format::Redmine, 2),
];

/// A sample: one file, or all of a directory.
pub(crate) fn sample(name: &str) -> Vec<SourceFile> {
    read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name))
}

pub(crate) fn read_all(path: &Path) -> Vec<SourceFile> {
    if path.is_file() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        return vec![SourceFile { name, text: std::fs::read_to_string(path).unwrap() }];
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let found = entry.unwrap().path();
            if found.is_dir() {
                folders.push(found);
            } else {
                let name = found.strip_prefix(path).unwrap().to_string_lossy().into_owned();
                files.push(SourceFile { name, text: std::fs::read_to_string(&found).unwrap() });
            }
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

pub(crate) fn text(text: &str) -> Vec<SourceFile> {
    vec![SourceFile { name: "-".into(), text: text.to_owned() }]
}

pub(crate) fn import(desk: &mut Desk, format: Format, files: &[SourceFile]) -> Result<ImportView, Refusal> {
    let mut converted = convert(format, files, &Default::default());
    match converted.refusal() {
        Some(refusal) => Err(refusal),
        None => desk.try_import("@ada", &converted.lines),
    }
}

/// One document of a file: a line, a page's head, a table, or all of it.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    file: usize,
    pub(crate) value: Value,
    /// What stands behind the head of a page.
    body: Option<String>,
}

/// The files as documents. A page without a head is none.
pub(crate) fn documents(format: Format, files: &[SourceFile]) -> Vec<Document> {
    let mut found = Vec::new();
    for (file, SourceFile { name, text }) in files.iter().enumerate() {
        let mut add = |value: Value, body: Option<String>| found.push(Document { file, value, body });
        match format {
            Format::Beads => text.lines().for_each(|line| add(serde_json::from_str(line).unwrap(), None)),
            Format::Backlog | Format::Kano => {
                if let Some((head, body)) =
                    text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"))
                    && let Ok(head) = onus_host::yaml::foreign(head)
                {
                    add(head, Some(body.to_owned()));
                }
            }
            Format::Queue => add(onus_host::yaml::foreign(text).unwrap(), None),
            Format::Redmine if name.ends_with(".csv") => {
                let mut reader = csv::Reader::from_reader(text.as_bytes());
                let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
                let row = |row: csv::StringRecord| -> Map<String, Value> {
                    names.iter().cloned().zip(row.iter().map(Value::from)).collect()
                };
                add(reader.records().map(|record| row(record.unwrap())).collect(), None);
            }
            _ => add(serde_json::from_str(text).unwrap(), None),
        }
    }
    found
}

/// The files again, with what the documents say now.
pub(crate) fn written(format: Format, files: &[SourceFile], documents: &[Document]) -> Vec<SourceFile> {
    let mut files = files.to_vec();
    for (at, file) in files.iter_mut().enumerate() {
        let mut of_file = documents.iter().filter(|document| document.file == at).peekable();
        if of_file.peek().is_none() {
            continue;
        }
        file.text = match format {
            Format::Beads => of_file.map(|document| format!("{}\n", document.value)).collect(),
            Format::Backlog | Format::Kano => of_file
                .map(|document| {
                    let body = document.body.as_deref().unwrap_or_default();
                    format!("---\n{}---\n{body}", yaml(&document.value))
                })
                .collect(),
            Format::Queue => of_file.map(|document| yaml(&document.value)).collect(),
            Format::Redmine if file.name.ends_with(".csv") => table(&of_file.next().unwrap().value),
            _ => of_file.map(|document| document.value.to_string()).collect(),
        };
    }
    files
}

/// Every field on a line of its own: what JSON writes YAML reads.
fn yaml(document: &Value) -> String {
    match document {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{}: {value}\n", Value::from(name.as_str()))).collect()
        }
        other => format!("{other}\n"),
    }
}

fn table(rows: &Value) -> String {
    let Some(rows) = rows.as_array() else { return rows.to_string() };
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&names).unwrap();
    for row in rows {
        let cell = |name: &&String| match row.get(name.as_str()) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        writer.write_record(names.iter().map(cell)).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

/// Every place of the documents, by the document and its pointer; of many that are alike, e.g. in a list, the first.
pub(crate) fn distinct_places(documents: &[Document]) -> Vec<(usize, String)> {
    let mut seen = std::collections::BTreeSet::new();
    let shape = |place: &str| -> String {
        let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        place.split('/').filter(|part| !is_number(part)).collect::<Vec<_>>().join("/")
    };
    let all = documents
        .iter()
        .enumerate()
        .flat_map(|(at, document)| places(&document.value).into_iter().map(move |place| (at, place)));
    all.filter(|(at, place)| {
        let kind = documents[*at].value.pointer(place).map(std::mem::discriminant);
        seen.insert((shape(place), format!("{kind:?}")))
    })
    .collect()
}

/// Every place of a document, by its pointer.
pub(crate) fn places(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
        let name = |name: &str| name.replace('~', "~0").replace('/', "~1");
        let below: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, value)| (name(key), value)).collect(),
            Value::Array(list) => {
                list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        for (key, value) in below {
            let place = format!("{at}/{key}");
            found.push(place.clone());
            walk(value, &place, found);
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}
