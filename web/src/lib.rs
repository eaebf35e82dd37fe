//! The board (mission E3, A6, C9): what the store knows, as pages for people.
//!
//! A page is a question that is answered with HTML; it never writes. What a person does on it is an ordinary call of the
//! HTTP interface, made by the scripts in `assets/`. Who is admitted, and by what, is the server's affair.

pub mod asset;
mod audit;
mod board;
mod chart;
mod diff;
mod effort;
mod fleet;
mod form;
mod graph;
mod html;
mod inbox;
mod layout;
mod limits;
mod markdown;
mod milestone;
mod now;
mod page_request;
pub mod signin;
mod taker;
mod task;

pub use layout::{PagePart, draw};
pub use page_request::{PageRequest, Viewer};

use onus_app::Onus;
use onus_app::weight::Weight;
use onus_core::refusal::Refusal;

/// One screen.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// With parameters as `{name}`.
    pub path: &'static str,
    /// One word: in the navigation, in the log, in the class of `<main>`.
    pub name: &'static str,
    /// `g` and this key go there. A page without one is not in the navigation.
    pub key: Option<char>,
    pub ask: Question,
}

impl Page {
    /// What it takes to answer: these read more with every session or entry that there is.
    pub fn weight(&self) -> Weight {
        if HEAVY.contains(&self.path) { Weight::Heavy } else { Weight::Light }
    }
}

const HEAVY: [&str; 4] = ["/effort", "/audit", "/audit/{id}", "/tasks/{id}/diff"];

pub type Question = fn(&mut Onus, &PageRequest) -> Result<Drawn, Refusal>;

/// The inside of `<main>`, and what the window is called.
#[derive(Debug, Clone)]
pub struct Drawn {
    pub title: String,
    pub main: String,
}

/// Every page, in the order of the navigation; the first one is where `/` leads.
pub fn pages() -> Vec<Page> {
    vec![
        board::page(),
        now::page(),
        inbox::page(),
        fleet::page(),
        milestone::page(),
        effort::page(),
        audit::page(),
        task::page(),
        taker::page(),
        diff::page(),
        milestone::one(),
        audit::incident(),
        effort::day(),
    ]
}

/// A file that a page offers: a question that is answered with bytes.
#[derive(Debug, Clone, Copy)]
pub struct Download {
    /// Its last part is what the file is called.
    pub path: &'static str,
    /// The media type.
    pub kind: &'static str,
    pub ask: fn(&mut Onus, &PageRequest) -> Result<Vec<u8>, Refusal>,
}

/// Every file.
pub fn downloads() -> Vec<Download> {
    effort::downloads().into_iter().chain([audit::download()]).collect()
}

#[cfg(test)]
mod weight_tests {
    use super::*;

    #[test]
    fn what_is_heavy_is_a_page() {
        let heavy = pages().iter().filter(|page| page.weight() == Weight::Heavy).count();
        assert_eq!(heavy, HEAVY.len(), "a path that is no page's makes nothing heavy");
    }
}
