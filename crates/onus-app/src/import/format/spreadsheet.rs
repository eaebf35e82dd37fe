//! Tables: one row per task.

use super::{Converted, Reading, SourceFile};
use onus_core::code::Code;
use onus_core::refusal::Finding;
use serde_json::{Map, Value as Json};

/// Every row by its column names, with its line.
pub(super) fn rows(file: &SourceFile, reading: &mut Reading) -> Vec<(usize, Map<String, Json>)> {
    // Two characters at the end of a line would be counted as two lines, now and then.
    let text = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text).replace("\r\n", "\n");
    let head = text.lines().next().unwrap_or_default();
    let count = |mark: u8| head.bytes().filter(|byte| *byte == mark).count();
    let separator = [b',', b';', b'\t'].into_iter().rev().max_by_key(|mark| count(*mark)).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).from_reader(text.as_bytes());
    let names: Vec<String> = match reader.headers() {
        Ok(names) => distinct(names.iter().map(str::trim)),
        Err(error) => {
            reading.wrong(1, &file.name, error.to_string());
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    if text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1 {
        reading.wrong(text.lines().count(), &file.name, "a quoted cell does not end: was the file cut off?");
    }
    for row in reader.records() {
        match row {
            Ok(row) => {
                let line = row.position().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
                let cells = row.iter().map(Json::from);
                found.push((line, names.iter().cloned().zip(cells).collect()));
            }
            Err(error) => {
                let line = error.position().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
                reading.wrong(line, &file.name, error.to_string());
            }
        }
    }
    found
}

/// Two columns of one name are both kept.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        found.extend(std::iter::once(name.to_owned()).chain(numbered).find(|name| !found.contains(name)));
    }
    found
}

/// The rows of `onus export --format csv` as lines: a cell of a list or an object is JSON.
pub(super) fn lines(files: &[SourceFile]) -> Converted {
    let mut reading = Reading::default();
    let mut converted = Converted::default();
    for file in files {
        for (line, row) in rows(file, &mut reading) {
            converted.read += 1;
            let mut fields = Map::new();
            for (name, cell) in row {
                match value(&name, cell.as_str().unwrap_or_default()) {
                    Ok(Some(value)) => drop(fields.insert(name, value)),
                    Ok(None) => {}
                    Err(detail) => {
                        let finding = Finding::new(Code::InvalidInput, format!("{name}: {detail}"));
                        reading.complaints.add_at(line, "", finding);
                    }
                }
            }
            fields.insert("source_line".into(), Json::from(line));
            converted.lines.push_str(&Json::Object(fields).to_string());
            converted.lines.push('\n');
        }
    }
    converted.complaints = reading.complaints;
    converted
}

fn value(name: &str, cell: &str) -> Result<Option<Json>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    match name {
        "tags" | "scope" | "depends_on" | "checks" | "criteria" | "notes" | "extra" | "lane"
        | "merge_order" | "outside" => {
            serde_json::from_str(cell).map(Some).map_err(|error| error.to_string())
        }
        _ => Ok(Some(Json::from(unguarded(cell)))),
    }
}

/// A cell that a spreadsheet would take for a formula is written behind an apostrophe.
pub(crate) fn guarded(cell: &str) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\'', '\t']) { format!("'{cell}") } else { cell.to_owned() }
}

fn unguarded(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if rest.starts_with(['=', '+', '-', '@', '\'', '\t']) => rest,
        _ => cell,
    }
}
