//! The last handoff as its reader wants it: what was said, then how the work stands. The document itself is below.

use crate::html::{Html, when};
use crate::markdown::markdown;
use onus_app::handoff::HandoffView;
use onus_core::time::Timestamp;

#[derive(Debug)]
pub(super) struct Handed {
    pub(super) by: String,
    pub(super) at: Option<Html>,
    /// How the work stands, in words.
    pub(super) stands: String,
    /// What whoever had it said to whoever goes on.
    pub(super) said: Vec<(&'static str, String)>,
    pub(super) document: Html,
}

impl Handed {
    pub(super) fn new(view: &HandoffView, now: Timestamp) -> Handed {
        let Some(handoff) = &view.handoff else {
            let text = view.text.as_deref().unwrap_or_default();
            return Handed {
                by: String::new(),
                at: None,
                stands: String::new(),
                said: vec![("", text.to_owned())],
                document: Html::default(),
            };
        };
        Handed {
            by: handoff.by.to_string(),
            at: Some(when(handoff.at, now)),
            stands: handoff.stands(),
            said: handoff.said(),
            document: markdown(&handoff.markdown()),
        }
    }
}
