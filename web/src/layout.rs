//! What surrounds every page: navigation, forms, the place in the record from which it goes on live.

use crate::form::{FORMS, Forms};
use crate::html::Html;
use crate::{Drawn, Page, PageRequest, asset, pages};
use askama::Template;
use onus_app::Onus;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_core::workstation::WorkstationState;
use onus_store::load;
use onus_store::port::{Driver, Store};
use onus_store::registry;

/// How much of a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagePart {
    Whole,
    /// The inside of `<main>`: what a page that is open already shows anew.
    Main,
}

#[derive(Debug, Template)]
#[template(path = "layout.html")]
struct Layout<'a> {
    title: &'a str,
    page: &'a str,
    nav: Vec<Link>,
    viewer: String,
    person: bool,
    /// The record up to here is in the page.
    seq: i64,
    now: i64,
    main: Html,
    forms: Html,
    workers: Vec<String>,
    workstations: Vec<String>,
    projects: Vec<String>,
    scripts: Vec<String>,
}

#[derive(Debug)]
struct Link {
    path: &'static str,
    name: &'static str,
    key: char,
    here: bool,
    icon: &'static str,
}

/// What stands before a page's name in the navigation.
fn icon_of(page: &str) -> &'static str {
    match page {
        "Board" => "square-kanban",
        "Now" => "activity",
        "Inbox" => "inbox",
        "Fleet" => "server",
        "Milestones" => "flag",
        "Effort" => "timer",
        "Audit" => "scroll-text",
        _ => "file-text",
    }
}

#[derive(Debug, Template)]
#[template(path = "refused.html")]
struct Refused<'a> {
    refusal: &'a Refusal,
}

/// The page, and the status that goes with it. A refusal is a page, too.
pub fn draw(onus: &mut Onus, page: &Page, seen: &PageRequest, part: PagePart) -> (u16, String) {
    // Read before the page is: what happens in between is shown twice rather than never.
    let surroundings = FormChoices::load(onus.store.as_mut());
    let asked = surroundings.and_then(|around| Ok((around, (page.ask)(onus, seen)?)));
    let (status, around, drawn) = match asked {
        Ok((around, drawn)) => (200, around, drawn),
        Err(refusal) => (refusal.code.http_status(), FormChoices::default(), refused(&refusal)),
    };
    let whole = match part {
        PagePart::Main => Ok(drawn.main),
        PagePart::Whole => around.wrap(page, seen, &drawn),
    };
    whole.map_or_else(|refusal| (500, refusal.to_string()), |html| (status, html))
}

/// A template that was compiled can still fail where memory is short.
pub(crate) fn rendered(template: &impl Template) -> Result<String, Refusal> {
    template.render().map_err(|error| Refusal::new(Code::Internal, error.to_string()))
}

fn refused(refusal: &Refusal) -> Drawn {
    let main = rendered(&Refused { refusal }).unwrap_or_else(|_| refusal.code.name().to_owned());
    Drawn { title: refusal.code.title().to_owned(), main }
}

/// What the forms of a page choose from.
#[derive(Debug, Default)]
struct FormChoices {
    seq: i64,
    workers: Vec<String>,
    workstations: Vec<String>,
    projects: Vec<String>,
}

impl FormChoices {
    fn load(store: &mut dyn Driver) -> Result<FormChoices, Refusal> {
        Ok(store.read(|tx| {
            let places = registry::workstations(tx)?;
            // What is held, in quarantine or retired is no place to begin.
            let is_free = |row: &&registry::WorkstationHolding| {
                row.holds.is_none() && row.workstation.state == WorkstationState::Ready
            };
            let free = places.iter().filter(is_free);
            Ok(FormChoices {
                seq: load::workspace(tx)?.last_seq,
                workers: registry::workers(tx, None)?
                    .iter()
                    .map(|row| row.worker.handle.to_string())
                    .collect(),
                workstations: free.map(|row| row.workstation.name.to_string()).collect(),
                projects: registry::projects(tx)?.iter().map(ToString::to_string).collect(),
            })
        })?)
    }

    fn wrap(self, page: &Page, seen: &PageRequest, drawn: &Drawn) -> Result<String, Refusal> {
        let person = seen.viewer.is_person();
        let nav = pages().into_iter().filter_map(|other| {
            let here = other.path == page.path;
            let icon = icon_of(other.name);
            other.key.map(|key| Link { path: other.path, name: other.name, key, here, icon })
        });
        let scripts = asset::all().iter().filter(|asset| asset.is_module());
        rendered(&Layout {
            title: &drawn.title,
            page: page.name,
            nav: nav.collect(),
            viewer: seen.viewer.name(),
            person,
            seq: self.seq,
            now: seen.now.0,
            main: Html(drawn.main.clone()),
            forms: Html(rendered(&Forms { forms: FORMS, person })?),
            workers: self.workers,
            workstations: self.workstations,
            projects: self.projects,
            scripts: scripts.map(|asset| asset::address(asset.name)).collect(),
        })
    }
}
