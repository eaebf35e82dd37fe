//! Markdown with a YAML head, and the lists in it.

use super::item::{Item, take_name};
use super::{Reading, SourceFile};
use serde_json::{Map, Value as Json};

/// One page per entry: reads what stands in each, and names those that are none.
pub(super) fn pages(
    files: &[SourceFile],
    reading: &mut Reading,
    mut read: impl FnMut(
        String,
        Map<String, Json>,
        &str,
        &SourceFile,
        &mut Reading,
    ) -> Result<Option<Item>, String>,
) {
    for file in reading.chosen(files, |file| file.name.ends_with(".md")) {
        let skip =
            |why: &str, reading: &mut Reading| reading.skipped.push((file.name.clone(), why.to_owned()));
        let Some((mut fields, text)) = split(file, reading) else {
            skip("it has no head of fields", reading);
            continue;
        };
        let Some(key) = take_name(&mut fields, "id") else {
            match fields.get("id").is_none_or(Json::is_null) {
                true => skip("it has no id", reading),
                false => reading.wrong(1, &file.name, "its id is no word"),
            }
            continue;
        };
        match read(key, fields, &text, file, reading) {
            Ok(Some(item)) => reading.items.push(Item { line: 1, place: file.name.clone(), ..item }),
            Ok(None) => skip("its head tells no state", reading),
            Err(detail) => reading.wrong(1, &file.name, detail),
        }
    }
}

/// Criteria as they are listed in a section; those that were checked off there are kept as such.
pub(super) fn checklist(item: &mut Item, text: &str) {
    let (mut checked, mut all) = (Vec::new(), std::mem::take(&mut item.criteria));
    for entry in entries(text) {
        if entry.is_checked {
            checked.push(Json::from(entry.text.clone()));
        }
        all.push(entry.text);
    }
    item.criteria = all;
    if checked.is_empty() {
        return;
    }
    match item.extra.get_mut("checked_criteria") {
        Some(Json::Array(earlier)) => earlier.extend(checked),
        _ => item.keep("checked_criteria", Json::Array(checked)),
    }
}

/// Handles begin with a sign that YAML keeps for itself; older files have them without quotes.
fn quoted_handles(head: &str) -> String {
    let quote = |line: &str| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        if !matches!(name.trim(), "assignee" | "reporter" | "owner") && !name.trim_start().starts_with("- @")
        {
            return line.to_owned();
        }
        let handle = |text: &str| match text.starts_with('@') {
            true => format!("\"{}\"", text.replace(['"', '\\'], "")),
            false => text.to_owned(),
        };
        if let Some(item) = line.trim_start().strip_prefix("- @") {
            let indent = &line[..line.len() - line.trim_start().len()];
            return format!("{indent}- \"@{}\"", item.trim().replace(['"', '\\'], ""));
        }
        match value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(list) => {
                let handles: Vec<String> = list.split(',').map(|one| handle(one.trim())).collect();
                format!("{name}: [{}]", handles.join(", "))
            }
            None => format!("{name}: {}", handle(value)),
        }
    };
    head.lines().map(quote).collect::<Vec<_>>().join("\n")
}

/// The head's fields and the text behind it; none where the file has no head.
fn split(file: &SourceFile, reading: &mut Reading) -> Option<(Map<String, Json>, String)> {
    let text = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text).replace("\r\n", "\n");
    let rest = text.strip_prefix("---\n")?;
    let (head, body) = rest
        .split_once("\n---\n")
        .or_else(|| rest.strip_suffix("\n---").map(|head| (head, "")))
        .or_else(|| {
            reading.wrong(1, &file.name, "the head that begins with --- has no end");
            None
        })?;
    let read = onus_host::yaml::foreign(head)
        .or_else(|wrong| onus_host::yaml::foreign(&quoted_handles(head)).map_err(|_| wrong));
    match read {
        Ok(Json::Object(fields)) => Some((fields, body.to_owned())),
        Ok(_) => {
            reading.wrong(1, &file.name, "its head is no list of fields");
            None
        }
        Err((line, detail)) => {
            reading.wrong(line + 1, &file.name, detail);
            None
        }
    }
}

/// A heading and what stands below it. What a tool has put between its own marks is not looked into.
pub(super) struct Section {
    pub(super) heading: String,
    pub(super) text: String,
}

/// The parts of a text below headings of one level; what stands before the first one has no heading.
pub(super) fn sections(text: &str, level: &str) -> Vec<Section> {
    let mut found = vec![Section { heading: String::new(), text: String::new() }];
    let (mut is_marked, mut is_code) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("<!--") {
            is_marked = (is_marked || trimmed.contains(":BEGIN")) && !trimmed.contains(":END");
        }
        is_code ^= trimmed.starts_with("```");
        let heading = line.strip_prefix(level).and_then(|rest| rest.strip_prefix(' '));
        match heading.filter(|_| !is_marked && !is_code) {
            Some(heading) => {
                found.push(Section { heading: heading.trim().to_owned(), text: String::new() });
            }
            None => {
                if let Some(last) = found.last_mut() {
                    last.text.push_str(line);
                    last.text.push('\n');
                }
            }
        }
    }
    found
}

/// What a tool has marked the beginning of and not the end: the file was cut off.
pub(super) fn unclosed(text: &str) -> Option<&str> {
    fn marks<'a>(text: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
        text.lines().filter_map(move |line| line.trim().strip_prefix("<!-- ")?.strip_suffix(end))
    }
    let count = |end: &str, name: &str| marks(text, end).filter(|one| *one == name).count();
    marks(text, ":BEGIN -->").find(|name| count(":BEGIN -->", name) > count(":END -->", name))
}

/// A section without the marks that its tool has put around it.
pub(super) fn unmarked(text: &str) -> String {
    let is_mark = |line: &&str| {
        let line = line.trim();
        line.starts_with("<!--")
            && line.ends_with("-->")
            && (line.contains(":BEGIN") || line.contains(":END"))
    };
    let lines: Vec<&str> = text.lines().filter(|line| !is_mark(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// One entry of a list of criteria, and whether it was checked off there.
pub(super) struct Listed {
    pub(super) text: String,
    pub(super) is_checked: bool,
}

/// The entries of a list; a text without one is a single entry per paragraph.
pub(super) fn entries(text: &str) -> Vec<Listed> {
    let mut found: Vec<Listed> = Vec::new();
    let mut is_new = true;
    for line in text.lines() {
        let trimmed = line.trim();
        let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| trimmed.strip_prefix(mark)).or_else(|| {
            let (number, rest) = trimmed.split_once(". ")?;
            (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
        });
        match bullet {
            Some(rest) if line.len() - line.trim_start().len() < 2 || found.is_empty() => {
                let rest = rest.trim_start();
                let is_checked = rest.starts_with("[x]") || rest.starts_with("[X]");
                let rest =
                    ["[x]", "[X]", "[ ]"].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest);
                found.push(Listed { text: unnumbered(rest.trim()).to_owned(), is_checked });
                is_new = false;
            }
            _ if trimmed.is_empty() => is_new = true,
            _ => match found.last_mut().filter(|_| !is_new) {
                Some(last) => {
                    last.text.push('\n');
                    last.text.push_str(trimmed);
                }
                None => {
                    found.push(Listed { text: trimmed.to_owned(), is_checked: false });
                    is_new = false;
                }
            },
        }
    }
    found.retain(|entry| !entry.text.is_empty());
    found
}

/// `#3 the text` is the text.
fn unnumbered(text: &str) -> &str {
    let numbered = text.strip_prefix('#').and_then(|rest| rest.split_once(' '));
    match numbered {
        Some((number, rest)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            rest.trim()
        }
        _ => text,
    }
}

pub(super) fn listed(text: &str) -> Vec<String> {
    entries(text).into_iter().map(|entry| entry.text).collect()
}
