//! The way in: a token that is pasted, or a link that is followed once.

use crate::layout::rendered;
use askama::Template;
use onus_core::refusal::Refusal;

#[derive(Debug, Template)]
#[template(path = "signin.html")]
struct SignIn<'a> {
    then: &'a str,
    refusal: Option<&'a Refusal>,
}

/// The form; `refusal` is why the last attempt did not succeed.
pub fn page(then: &str, refusal: Option<&Refusal>) -> Result<String, Refusal> {
    rendered(&SignIn { then: local(then), refusal })
}

/// A path on this server. Whoever could name another site would have people sent there by us.
pub fn local(then: &str) -> &str {
    let is_path = then.starts_with('/') && !then.starts_with("//") && !then.starts_with("/\\");
    if is_path && then.bytes().all(|byte| byte.is_ascii_graphic()) { then } else { "/" }
}

/// What a sign-in form says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Said {
    pub token: String,
    /// The token is a link's, to be exchanged.
    pub link: bool,
    pub then: String,
}

pub fn read(body: &[u8]) -> Said {
    let mut said = Said::default();
    for (name, value) in form_urlencoded::parse(body) {
        match &*name {
            "token" => said.token = value.trim().to_owned(),
            "link" => said.link = value == "1",
            "then" => said.then = value.into_owned(),
            _ => {}
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        for path in ["/board", "/tasks/API-1?x=1", "/"] {
            assert_eq!(local(path), path);
        }
        for other in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "board", "/a\r\nb", "/a b"]
        {
            assert_eq!(local(other), "/", "{other}");
        }
    }

    #[test]
    fn what_was_typed_is_shown_as_text() {
        let refusal = Refusal::invalid("<script>");
        let html = page("/board?q=\"><script>", Some(&refusal)).unwrap();
        assert!(!html.contains("<script>"), "{html}");
    }
}
