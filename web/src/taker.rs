//! Who could take a task and where, told by the rules: what the form of a claim is filled with.

use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::allowed_actions::Taking;
use onus_app::route::Subject;
use onus_core::id::TaskId;
use onus_core::identity_map::Verdict;
use onus_core::refusal::Refusal;

/// So many places that will not do are told with their reason.
const TOLD: usize = 3;

pub(crate) fn page() -> Page {
    Page { path: "/tasks/{id}/takers", name: "Takers", key: None, ask }
}

#[derive(Debug, Template)]
#[template(path = "taker.html")]
struct TakerPage {
    task: String,
    viewer: String,
    /// Where the viewer could begin now.
    own: Option<String>,
    /// Where not, and why.
    not_own: Vec<(String, String)>,
    takers: Vec<Taker>,
    /// Why the map sends it to nobody.
    nobody: Option<String>,
}

/// Somebody whom the map names.
#[derive(Debug)]
struct Taker {
    who: String,
    place: String,
    /// Could begin now.
    free: bool,
    why: String,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let id: TaskId = seen.param("id")?;
    let taking = if seen.word("verb") == Some("takeover") { Taking::Takeover } else { Taking::Claim };
    let places = onus.places_for(&seen.viewer.principal, &id, taking)?;
    let (takers, nobody) = match onus.explain(&Subject::Task(id.clone()), None, None) {
        Ok(view) if taking == Taking::Claim => {
            let nobody = view.explanation.findings.first().map(|finding| finding.detail.clone());
            let taker = |one: onus_core::identity_map::CandidateView| Taker {
                who: one.agent_name.to_string(),
                place: one.workstation.to_string(),
                free: one.verdict == Verdict::Won,
                why: one.reasons.join("; "),
            };
            (view.explanation.candidates.into_iter().map(taker).collect(), nobody)
        }
        Ok(_) => (Vec::new(), None),
        // A map that cannot be read sends nothing anywhere; whoever claims is told the same.
        Err(refusal) => (Vec::new(), Some(refusal.detail)),
    };
    let own = places.iter().find(|place| place.refusal.is_none()).map(|place| place.workstation.to_string());
    let refused = places.iter().filter_map(|place| Some((place, place.refusal.as_ref()?)));
    let not_own = match own {
        Some(_) => Vec::new(),
        None => {
            refused.take(TOLD).map(|(place, no)| (place.workstation.to_string(), no.detail.clone())).collect()
        }
    };
    let page = TakerPage { task: id.to_string(), viewer: seen.viewer.name(), own, not_own, takers, nobody };
    Ok(Drawn { title: format!("Who could take {id}"), main: rendered(&page)? })
}
