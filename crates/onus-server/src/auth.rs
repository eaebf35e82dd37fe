//! Which token a request shows: its bearer's, or the one that a browser keeps in its cookie. Whose it is, and whether it is
//! good, is asked in `admission.rs`.

use crate::serve::only;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method};
use onus_core::code::Code;
use onus_core::refusal::Refusal;

/// Sent by our own scripts with everything that changes something: no other site can make a browser send it.
const BOARD: HeaderName = HeaderName::from_static("onus-board");

/// Where the browser itself says the request comes from.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The token that a request shows as its bearer.
pub(crate) fn presented(headers: &HeaderMap) -> Result<String, Refusal> {
    let value = only(headers, &AUTHORIZATION)?.and_then(|value| value.to_str().ok());
    let words = value.and_then(|value| value.split_once(' '));
    let token = words.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token.map(|(_, token)| token.trim().to_owned()).ok_or_else(|| {
        Refusal::new(Code::Unauthenticated, "the request shows no token")
            .hint("Authorization: Bearer TOKEN; a person issues one: onus worker token add @you")
    })
}

/// The token of a bearer, or of a browser on one of our own pages. A cookie goes along with whatever a browser sends, so
/// it counts only where the request cannot come from another site.
pub(crate) fn presented_or_kept(method: &Method, headers: &HeaderMap) -> Result<String, Refusal> {
    match kept(headers) {
        Some(token) if !headers.contains_key(AUTHORIZATION) => is_own_page(method, headers).map(|()| token),
        _ => presented(headers),
    }
}

/// The token in the browser's cookie.
pub(crate) fn kept(headers: &HeaderMap) -> Option<String> {
    let name = cookie_name(headers);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, token)| token.to_owned())
}

/// Browsers keep cookies by host and share them between ports: two servers on one machine need two names.
pub(crate) fn cookie_name(headers: &HeaderMap) -> String {
    let port = text(headers, &HOST).and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    let port = port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    port.map_or_else(|| "onus".to_owned(), |port| format!("onus-{port}"))
}

/// Whether a page of ours sent this.
pub(crate) fn is_own_page(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let is_same = is_same_origin(headers);
    let is_marked = *method == Method::GET || text(headers, &BOARD) == Some("1");
    if is_same && is_marked {
        return Ok(());
    }
    let missing = if is_same { "Onus-Board: 1" } else { "an origin that is this server's own" };
    Err(Refusal::new(Code::NotPermitted, format!("a browser's cookie counts only with {missing}"))
        .hint("programs send Authorization: Bearer TOKEN"))
}

pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    match (text(headers, &SITE), text(headers, &ORIGIN), text(headers, &HOST)) {
        (Some(site), _, _) => site == "same-origin",
        (None, Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, own)| own == host),
        _ => false,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let parse =
            |&(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        pairs.iter().map(parse).collect()
    }

    #[test]
    fn a_cookie_counts_only_on_our_own_pages() {
        let (host, cookie) = (("host", "localhost:7420"), ("cookie", "a=b; onus-7420=secret"));
        let check = |method: Method, more: &[(&'static str, &str)]| {
            let all: Vec<_> = [host, cookie].iter().chain(more).copied().collect();
            presented_or_kept(&method, &headers(&all)).ok()
        };
        let kept = Some("secret".to_owned());
        let (own, marked) = (("sec-fetch-site", "same-origin"), ("onus-board", "1"));
        assert_eq!(check(Method::GET, &[own]), kept);
        assert_eq!(check(Method::POST, &[own, marked]), kept);
        assert_eq!(check(Method::POST, &[("origin", "http://localhost:7420"), marked]), kept);
        assert_eq!(check(Method::POST, &[own, ("authorization", "Bearer other")]), Some("other".to_owned()));
        for refused in [
            &[][..],
            &[own],
            &[marked],
            &[("sec-fetch-site", "cross-site"), marked],
            &[("sec-fetch-site", "same-site"), ("origin", "http://localhost:7420"), marked],
            &[("origin", "http://localhost:9999"), marked],
        ] {
            assert_eq!(check(Method::POST, refused), None, "{refused:?}");
        }
        assert_eq!(check(Method::GET, &[("sec-fetch-site", "none")]), None);
    }

    #[test]
    fn servers_on_one_machine_do_not_share_a_cookie() {
        let name = |host| cookie_name(&headers(&[("host", host)]));
        assert_eq!(name("localhost:7420"), "onus-7420");
        assert_eq!(name("[::1]:8080"), "onus-8080");
        assert_eq!(name("[::1]"), "onus");
        assert_eq!(name("onus.example"), "onus");
        assert_eq!(kept(&headers(&[("host", "localhost:1"), ("cookie", "onus-7420=secret")])), None);
    }
}
