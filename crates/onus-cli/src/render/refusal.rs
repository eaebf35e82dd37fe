//! What was refused, for people: what happened, what to do, and the code.

use super::{DIM, GREEN, RED, paint, when};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_core::report::plain_words::by_type;
use onus_core::time::Timestamp;
use std::fmt::Write as _;

/// What happened first, in the words of whoever refused; the code, for programs and for `docs/errors/`, at the end.
pub(crate) fn error_text(refusal: &Refusal) -> String {
    let count = refusal.findings.len();
    // The first of several is not told twice.
    let detail = match refusal.detail.ends_with(&format!("(and {} more)", count.saturating_sub(1))) {
        true if count > 1 => format!("{count} things are wrong"),
        _ => refusal.detail.clone(),
    };
    let mut text = format!("{}: {}\n", paint(RED, "error"), coded(&detail, refusal.code));
    if count > 1 {
        for finding in &refusal.findings {
            let _ = writeln!(text, "  - {}", coded(&finding.detail, finding.code));
            if let Some(hint) = &finding.hint {
                let _ = writeln!(text, "    {}", paint(DIM, hint));
            }
        }
    } else if let Some(hint) = &refusal.hint {
        // A flag alone is no command.
        let same = if hint.starts_with("--") { "the same again, with " } else { "" };
        let _ = writeln!(text, "{}: {same}{hint}", paint(GREEN, "hint"));
    }
    if refusal.code == Code::StoreUnavailable
        && let Some(request) = &refusal.request_id
    {
        let _ = writeln!(text, "request id: {request}");
    }
    text
}

/// `API-1 is held by @ada [lease_held]`: behind the first line of what may be several.
pub(super) fn coded(detail: &str, code: Code) -> String {
    let code = paint(DIM, format!("[{code}]"));
    let detail = by_type(&with_local_times(detail));
    match detail.split_once('\n') {
        Some((first, rest)) => format!("{first} {code}\n{rest}"),
        None => format!("{detail} {code}"),
    }
}

/// Rules tell moments in UTC; whoever sits here reads them as the clock on the wall shows them.
fn with_local_times(text: &str) -> String {
    let told = |word: &str| {
        let bare = word.trim_end_matches([',', ';', ':', ')', '.']);
        let at = bare.ends_with('Z').then(|| serde_json::from_value::<Timestamp>(bare.into()).ok())??;
        Some(format!("{}{}", when(at), &word[bare.len()..]))
    };
    let words: Vec<String> =
        text.split(' ').map(|word| told(word).unwrap_or_else(|| word.to_owned())).collect();
    words.join(" ")
}
