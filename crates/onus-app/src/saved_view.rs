//! Saved views: filters that the whole team keeps under a name.

use crate::Onus;
use crate::idempotent_admin::Asker;
use crate::registry::record;
use crate::remote::calls;
use onus_core::code::Code;
use onus_core::event::ViewSaved;
use onus_core::id::{Handle, shown};
use onus_core::refusal::Refusal;
use onus_core::registry::person;
use onus_core::saved_view::{self as rules, SavedView, ViewQuery};
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use onus_store::port::{Outcome, Tx};
use onus_store::read::queue::{Filter, Which};
use onus_store::saved_view::{self, StoredView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ViewsView {
    /// By their names.
    pub views: Vec<SavedViewLine>,
}

/// One saved view.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SavedViewLine {
    pub name: String,
    /// The words of the board's address: which tasks, and how they are shown.
    pub query: ViewQuery,
    pub saved_by: Handle,
    pub saved_at: Timestamp,
}

impl From<StoredView> for SavedViewLine {
    fn from(StoredView { view, by, at }: StoredView) -> SavedViewLine {
        SavedViewLine { name: view.name, query: view.query, saved_by: by, saved_at: at }
    }
}

/// What a view asks of `list`: how tasks are shown on the board has no meaning there.
#[derive(Debug, Clone, Default)]
pub struct ViewFilter {
    pub which: Option<Which>,
    pub filter: Filter,
    pub words: Option<String>,
}

impl Onus {
    pub fn views(&mut self) -> Result<ViewsView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Views {})? {
            return Ok(answer);
        }
        Ok(told(self.ask(saved_view::every)?))
    }

    /// Keeps a view under its name, in place of the one before; without a query there is no such view any more.
    pub fn save_view<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        wanted: &ViewSaved,
    ) -> Result<ViewsView, Refusal> {
        self.administer(asker, &calls::SaveView { wanted: wanted.clone() }, |tx, caller| {
            let by = person(caller)?;
            if let Some(query) = &wanted.query {
                view_filter(query)?;
            }
            let every = saved_view::every(tx)?;
            let found = every.iter().map(|row| &row.view).find(|view| view.name == wanted.name.trim());
            let Some(event) = rules::save(found, every.len(), wanted)? else {
                return Ok(Outcome::Rollback(told(every)));
            };
            let is_new = found.is_none();
            write(tx, by, event, is_new)?;
            Ok(Outcome::Commit(told(saved_view::every(tx)?)))
        })
    }

    /// What the view of this name asks for.
    pub fn view_named(&mut self, name: &str) -> Result<ViewFilter, Refusal> {
        let found = self.views()?.views.into_iter().find(|view| view.name == name.trim());
        let found = found.ok_or_else(|| {
            Refusal::new(Code::UnknownName, format!("there is no view {}", shown(name)))
                .hint("onus view list")
        })?;
        view_filter(&found.query)
    }
}

fn write(tx: &mut dyn Tx, by: &Handle, event: ViewSaved, is_new: bool) -> Result<(), Refusal> {
    let entry = record(tx, by, event.clone())?;
    match event {
        ViewSaved { name, query: Some(query) } => {
            Ok(saved_view::put(tx, &SavedView { name, query, saved: entry.seq }, is_new)?)
        }
        ViewSaved { name, query: None } => Ok(saved_view::remove(tx, &name)?),
    }
}

fn told(rows: Vec<StoredView>) -> ViewsView {
    ViewsView { views: rows.into_iter().map(SavedViewLine::from).collect() }
}

/// The number of a lane, in words of an address.
pub fn lane(text: Option<&str>) -> Result<Option<i64>, Refusal> {
    let number = |text: &str| {
        text.parse().map_err(|_| Refusal::invalid(format!("lane: {} is no number", shown(text))))
    };
    text.map(number).transpose()
}

fn view_filter(query: &ViewQuery) -> Result<ViewFilter, Refusal> {
    fn read<T: FromStr<Err = String>>(query: &ViewQuery, name: &str) -> Result<Option<T>, Refusal> {
        let read = query.word(name).map(str::parse).transpose();
        read.map_err(|why| Refusal::invalid(format!("{name}: {why}")))
    }
    let state = |name: &str| match name {
        "all" => Ok(Which::All),
        name => StateName::parse(name)
            .map(Which::Only)
            .ok_or_else(|| Refusal::invalid(format!("{} is no state", shown(name)))),
    };
    Ok(ViewFilter {
        which: query.word("state").map(state).transpose()?,
        filter: Filter {
            project: read(query, "project")?,
            task_type: read(query, "type")?,
            role: read(query, "role")?,
            lane: lane(query.word("lane"))?,
            sprint: query.word("sprint").map(str::to_owned),
            parent: read(query, "parent")?,
            assignee: read(query, "assignee")?,
            priority: read(query, "priority")?,
            tag: query.word("tag").map(str::to_owned),
        },
        words: query.word("q").map(str::to_owned),
    })
}
