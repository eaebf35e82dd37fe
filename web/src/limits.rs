//! What agents have used of what they may, as bars (mission E10).

use onus_app::limits::LimitView;
use onus_core::limits::LimitScope;

#[derive(Debug)]
pub(crate) struct LimitRow {
    pub(crate) whose: String,
    pub(crate) measure: &'static str,
    pub(crate) text: String,
    /// Of the limit, in hundredths.
    pub(crate) share: u8,
    pub(crate) reached: bool,
}

impl LimitRow {
    pub(crate) fn new(limit: &LimitView) -> LimitRow {
        let whose = match limit.scope {
            LimitScope::Task => "this task".to_owned(),
            LimitScope::WorkerDay => format!("{} today", limit.of),
            LimitScope::Sprint => format!("sprint {}", limit.of),
            LimitScope::WorkspaceDay => "all agents today".to_owned(),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is held between 0 and 100"
        )]
        let share = (limit.used / limit.limit * 100.0).clamp(0.0, 100.0) as u8;
        let (measure, text) = (limit.measure.name(), limit.text.clone());
        LimitRow { whose, measure, text, share, reached: limit.reached }
    }
}

pub(crate) fn rows(limits: &[LimitView]) -> Vec<LimitRow> {
    limits.iter().map(LimitRow::new).collect()
}
