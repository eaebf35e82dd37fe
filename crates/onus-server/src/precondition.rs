//! The versions that a caller knows a task by: `If-Match` and `If-None-Match` (RFC 9110, 13.1).

use crate::serve::only;
use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use onus_core::code::Code;
use onus_core::id::shown;
use onus_core::refusal::Refusal;

/// The versions of a document that a reader has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownVersions(Vec<i64>);

impl KnownVersions {
    pub(crate) fn has(&self, version: Option<i64>) -> bool {
        version.is_some_and(|version| self.0.contains(&version))
    }
}

/// What a reader has already. A tag that is none of ours is not a version that it has.
pub(crate) fn seen(headers: &HeaderMap) -> KnownVersions {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // A weak tag names the same version: ours are weak or strong only by who passed them on.
    let tags = values.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    KnownVersions(tags.filter_map(|tag| quoted(tag)?.parse().ok()).collect())
}

/// The version that the task must have; `*` is any.
pub(crate) fn required(headers: &HeaderMap) -> Result<Option<i64>, Refusal> {
    let Some(value) = only(headers, &IF_MATCH)? else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    match quoted(text.trim_start_matches("W/")) {
        None => Err(Refusal::invalid(format!("if-match: {} is not a version as ETag tells it", shown(text)))),
        Some(tag) => match tag.parse() {
            Ok(version) if tag.len() + 2 == text.len() => Ok(Some(version)),
            // A tag that no version of a task has can never match, and neither can a weak one.
            _ => Err(Refusal::new(
                Code::PreconditionFailed,
                format!("no task has the version {}", shown(text)),
            )
            .hint("read the task again and decide anew")),
        },
    }
}

fn quoted(tag: &str) -> Option<&str> {
    tag.strip_prefix('"')?.strip_suffix('"').filter(|inside| !inside.contains('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: axum::http::HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_reader_knows_what_its_tags_name() {
        let check = |values: &[&str], known: &[i64]| {
            assert_eq!(seen(&headers(IF_NONE_MATCH, values)), KnownVersions(known.to_vec()), "{values:?}");
        };
        check(&["\"3\""], &[3]);
        check(&["W/\"3\""], &[3]);
        check(&["\"x\", \"3\",W/\"4\""], &[3, 4]);
        check(&["\"3\"", "\"4\""], &[3, 4]);
        check(&["3"], &[]);
        check(&["*"], &[]);
    }

    #[test]
    fn a_change_asks_for_one_version() {
        let check = |values: &[&str]| required(&headers(IF_MATCH, values)).map_err(|refusal| refusal.code);
        assert_eq!(check(&[]), Ok(None));
        assert_eq!(check(&["*"]), Ok(None));
        assert_eq!(check(&["\"3\""]), Ok(Some(3)));
        assert_eq!(check(&["W/\"3\""]), Err(Code::PreconditionFailed));
        assert_eq!(check(&["\"x\""]), Err(Code::PreconditionFailed));
        for bad in [&["3"][..], &["\"3"], &[""], &["\"3\", \"4\""], &["\"3\"", "\"4\""]] {
            assert_eq!(check(bad), Err(Code::InvalidInput), "{bad:?}");
        }
    }
}
