//! Who asks: the bearer of a token.

use crate::store::Store;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use onus_core::code::Code;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;

#[derive(Debug, Clone)]
pub(crate) struct Principal {
    pub(crate) token_id: String,
    pub(crate) worker: Option<Handle>,
}

/// The token that a request shows.
pub(crate) fn presented(headers: &HeaderMap) -> Result<String, Refusal> {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token
        .map(|(_, token)| token.trim().to_owned())
        .ok_or_else(|| Refusal::new(Code::IdentityRequired, "no token").hint("Authorization: Bearer TOKEN"))
}

pub(crate) fn authenticate(_: &mut Store, presented: &str) -> Result<Principal, Refusal> {
    let worker: Handle =
        presented.parse().map_err(|_| Refusal::new(Code::IdentityRequired, "this is no token"))?;
    Ok(Principal { token_id: presented.to_owned(), worker: Some(worker) })
}
