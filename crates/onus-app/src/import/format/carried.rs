//! Tasks that are not the tool's own, in a file that Onus wrote for it: they come back as what they are here.

use super::item::{Item, Stand};
use serde_json::{Map, Value as Json, json};

/// The field of an exported entry that says so.
pub(crate) const FIELD: &str = "onus";

/// What our own export says of such a task, beside the fields that the tool has.
#[derive(Debug, Clone)]
pub(super) struct Carried {
    /// Its id here.
    pub(super) id: String,
    uid: String,
    origin: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) checks: Vec<String>,
    pub(super) criteria: Vec<String>,
    extra: Map<String, Json>,
}

/// What an export writes for a task that another system, or Onus itself, owns; nothing of one that the tool owns.
pub(crate) fn of_export(task: &Map<String, Json>) -> Map<String, Json> {
    let names = ["id", "uid", "origin_ask_ref", "kind", "extra"];
    let mut fields: Map<String, Json> = names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), task.get(name).filter(|value| !value.is_null())?.clone())))
        .collect();
    for (name, word) in [("checks", "command"), ("criteria", "text")] {
        let listed = texts(task.get(name), word);
        if !listed.is_empty() {
            fields.insert(name.to_owned(), json!(listed));
        }
    }
    fields
}

fn texts(list: Option<&Json>, word: &str) -> Vec<String> {
    let listed = list.and_then(Json::as_array).into_iter().flatten();
    let text = |one: &Json| one.get(word).unwrap_or(one).as_str().map(str::to_owned);
    listed.filter_map(text).collect()
}

/// Takes the mark of our own export out of an entry.
pub(super) fn take(fields: &mut Map<String, Json>) -> Option<Carried> {
    let own = fields.get(FIELD)?.as_object()?;
    let text = |name: &str| own.get(name).and_then(Json::as_str).map(str::to_owned);
    let carried = Carried {
        id: text("id")?,
        uid: text("uid")?,
        origin: text("origin_ask_ref"),
        kind: text("kind"),
        checks: texts(own.get("checks"), "command"),
        criteria: texts(own.get("criteria"), "text"),
        extra: own.get("extra").and_then(Json::as_object).cloned().unwrap_or_default(),
    };
    for name in ["id", "uid", "origin_ask_ref", "kind", "checks", "criteria", "extra"] {
        fields.get_mut(FIELD).and_then(Json::as_object_mut).map(|own| own.remove(name));
    }
    if fields.get(FIELD).and_then(Json::as_object).is_some_and(Map::is_empty) {
        fields.remove(FIELD);
    }
    Some(carried)
}

impl Item {
    /// Leaves in `extra` what it was before the export, and what somebody has put beside it since.
    pub(super) fn carry_on(&mut self, written: &[&str]) {
        let Some(carried) = &mut self.carried else { return };
        let mut beside = std::mem::replace(&mut self.extra, std::mem::take(&mut carried.extra));
        for name in written {
            beside.remove(*name);
        }
        for (name, value) in beside {
            self.keep(&name, value);
        }
    }

    /// The line of such a task, as `export` itself writes it: what it says is Onus's own again.
    pub(super) fn carried_line(&mut self, carried: Carried, reference: impl Fn(&str) -> String) -> Json {
        let (state, closed_at, resolution) = match self.stand.clone() {
            Stand::Open | Stand::Parked(_) => ("open", None, None),
            Stand::Ended { state, at, resolution } => (state.name(), at, resolution),
        };
        let depends_on: Vec<String> = self.depends_on.iter().map(|key| reference(key)).collect();
        let notes = self.notes();
        let mut line = json!({
            "id": carried.id,
            "uid": carried.uid,
            "origin_ask_ref": carried.origin,
            "title": self.title,
            "body": self.body,
            "kind": self.kind.clone().unwrap_or_else(|| "task".to_owned()),
            "state": state,
            "priority": self.priority.unwrap_or_default().to_string(),
            "tags": self.tags,
            "depends_on": depends_on,
            "parent": self.parent.as_deref().map(reference),
            "checks": self.commands,
            "criteria": self.criteria,
            "notes": notes,
            "created_at": self.created_at,
            "closed_at": closed_at,
            "resolution": resolution,
        });
        if let Json::Object(fields) = &mut line {
            fields.extend(self.optional());
            fields.retain(|_, value| !value.is_null());
        }
        line
    }
}
