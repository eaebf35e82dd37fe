//! Who may say what a workstation's probes showed, and what such a report may contain.
//!
//! Whether a place is ready decides who is given work. So a place is spoken for by whoever works there or may work there, or
//! by a person; and a report is about the probes that the place has, all of them.

use super::known;
use crate::code::Code;
use crate::facts::Caller;
use crate::id::{Handle, WorkstationName};
use crate::identity_map::{Policy, places_of};
use crate::probe::{DETAIL_MAX, ProbeResult};
use crate::refusal::Refusal;
use crate::text::is_unprintable;
use crate::time::{Millis, Timestamp};
use crate::workstation::Workstation;

/// The result that every workstation with a directory has, beside those of its probes.
pub const DIRECTORY: &str = "directory";

/// A run of probes is over long before that; more is no measurement.
const TOOK_MAX: Millis = Millis::secs(3_600);

/// Who reports, as the store knows it.
#[derive(Debug, Clone, Copy)]
pub struct Reporter<'a> {
    pub caller: &'a Caller,
    /// The only place that the caller's token is good for.
    pub bound: Option<&'a WorkstationName>,
    pub policy: &'a Policy,
}

/// Whether the caller may report on a place that `holder` works in. It is told by name who does.
pub fn may_report(
    reporter: &Reporter<'_>,
    place: &WorkstationName,
    holder: Option<&Handle>,
) -> Result<Handle, Refusal> {
    let worker = known(reporter.caller)?;
    let refused =
        |why: String| Err(Refusal::new(Code::NotPermitted, why).hint("a person may: onus workstation probe"));
    if let Some(only) = reporter.bound.filter(|only| *only != place) {
        return refused(format!("the token is good for {only}, and does not speak for {place}"));
    }
    if worker.is_human() || holder == Some(&worker.handle) {
        return Ok(worker.handle.clone());
    }
    if let Some(other) = holder {
        return refused(format!("{place} is {other}'s place now; {} does not speak for it", worker.handle));
    }
    let is_own = match reporter.policy {
        Policy::Absent => true,
        Policy::InForce(_) => places_of(reporter.policy, None, &worker.handle).any(|one| one == place),
        Policy::Invalid(_) => false,
    };
    if !is_own {
        return refused(format!("the identity map gives {place} to others than {}", worker.handle));
    }
    Ok(worker.handle.clone())
}

/// A report as it is kept: of this workstation's own probes, each once and none missing, bounded and printable.
pub fn kept(
    workstation: &Workstation,
    results: &[ProbeResult],
    now: Timestamp,
) -> Result<Vec<ProbeResult>, Refusal> {
    let name = &workstation.name;
    let specs: Vec<String> = workstation.probes.iter().map(ToString::to_string).collect();
    let times = |spec: &str| results.iter().filter(|result| result.probe == spec).count();
    if let Some(strange) = results.iter().find(|one| one.probe != DIRECTORY && !specs.contains(&one.probe)) {
        let probe = crate::id::shown(&strange.probe);
        return Err(Refusal::invalid(format!("{name} has no probe {probe}")).hint("onus workstation list"));
    }
    if specs.iter().any(|spec| times(spec) != 1) || times(DIRECTORY) > 1 {
        return Err(Refusal::invalid(format!("a report on {name} tells of each of its probes once"))
            .hint(format!("onus workstation probe {name}")));
    }
    if let Some(odd) = results.iter().find(|one| !(0..=TOOK_MAX.0).contains(&one.took_ms)) {
        return Err(Refusal::invalid(format!("a probe cannot have taken {} ms", odd.took_ms)));
    }
    // A clock that is ahead must not make a result look fresh for longer.
    let tidy = |result: &ProbeResult| ProbeResult {
        at: result.at.min(now),
        detail: printable(&result.detail),
        ..result.clone()
    };
    Ok(results.iter().map(tidy).collect())
}

fn printable(detail: &str) -> String {
    let visible = |c: char| if is_unprintable(c) { '\u{fffd}' } else { c };
    detail.chars().take(DETAIL_MAX).map(visible).collect()
}
