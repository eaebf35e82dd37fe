//! Mirrors: how they stand, what was tried, what differs.

use super::table::Table;
use super::{BOLD, DIM, GREEN, YELLOW, paint, when};
use onus_app::mirror::{CheckedView, DiffView, MirrorsView};
use onus_core::time::Millis;
use std::fmt::Write as _;

pub(crate) fn mirrors(view: &MirrorsView) -> String {
    if view.mirrors.is_empty() {
        return "no mirrors are set up in onus.yaml\n".into();
    }
    let mut table = Table::new(["NAME", "KIND", "PENDING", "STUCK", "LAG", "SENDER", "LAST ERROR"]);
    for mirror in &view.mirrors {
        table.row([
            paint(BOLD, &mirror.name),
            mirror.kind.clone(),
            mirror.pending.to_string(),
            mirror.stuck.to_string(),
            if mirror.lag_ms > 0 { Millis(mirror.lag_ms).in_words() } else { String::new() },
            if mirror.is_sending { "at work".to_owned() } else { "none".to_owned() },
            mirror.last_error.clone().unwrap_or_default(),
        ]);
    }
    let mut text = table.to_string();
    for mirror in &view.mirrors {
        for stuck in &mirror.stuck_tasks {
            let task = stuck.task.as_ref().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "{}: {} {}: {}", paint(YELLOW, "stuck"), mirror.name, task, stuck.error);
            let _ = writeln!(text, "  {}", paint(DIM, &stuck.hint));
        }
        for drift in &mirror.drift {
            let _ = writeln!(text, "{}: {}", paint(YELLOW, "changed there"), differs(drift));
        }
        if let Some(at) = mirror.next_attempt_at {
            let _ = writeln!(text, "{}", paint(DIM, format!("{} is tried again {}", mirror.name, when(at))));
        }
    }
    text
}

fn differs(drift: &onus_core::mirror::drift::Drift) -> String {
    let onus_core::mirror::drift::Drift { task, far_id, field, here, there } = drift;
    format!("{task} ({far_id}): {field} is `{there}` there, `{here}` here")
}

pub(crate) fn mirror_check(view: &CheckedView) -> String {
    let mut text = String::new();
    for one in &view.tried {
        let word = if one.ok { paint(GREEN, "ok") } else { paint(YELLOW, "failed") };
        let _ = writeln!(text, "{word:<8} {}: {}", one.what, one.detail);
    }
    text
}

pub(crate) fn mirror_diff(view: &DiffView) -> String {
    let mut text = String::new();
    for drift in &view.drift {
        let _ = writeln!(text, "{}", differs(drift));
    }
    for task in &view.gone {
        let _ = writeln!(text, "{task}: its counterpart is gone");
    }
    let _ =
        writeln!(text, "{} looked at, {} differ, {} gone", view.looked_at, view.drift.len(), view.gone.len());
    text
}
