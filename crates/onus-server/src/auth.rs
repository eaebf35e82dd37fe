//! Who asks: the bearer of a token. Every request asks the store anew, so that what was revoked is refused at once.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use onus_core::code::Code;
use onus_core::refusal::Refusal;

/// The token that a request shows.
pub(crate) fn presented(headers: &HeaderMap) -> Result<String, Refusal> {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let words = value.and_then(|value| value.split_once(' '));
    let token = words.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token.map(|(_, token)| token.trim().to_owned()).ok_or_else(|| {
        Refusal::new(Code::Unauthenticated, "the request shows no token")
            .hint("Authorization: Bearer TOKEN; a person issues one: onus worker token add @you")
    })
}
