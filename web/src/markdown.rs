//! Words of tasks as people write them. They come from anybody: no markup of theirs survives, and no address that does
//! more than lead somewhere.

use crate::html::Html;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Bodies, notes and handoffs.
pub(crate) fn markdown(text: &str) -> Html {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    // Whether each link that is open was one that we let through.
    let mut open: Vec<bool> = Vec::new();
    let events = Parser::new_ext(text, options).filter_map(|event| tame(event, &mut open));
    let mut out = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut out, events);
    Html(out)
}

fn tame<'a>(event: Event<'a>, open: &mut Vec<bool>) -> Option<Event<'a>> {
    match event {
        // Shown as it was written.
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        // A picture elsewhere would tell its owner who looks: it becomes a link.
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let leads = is_harmless(&dest_url);
            open.push(leads);
            leads.then(|| Event::InlineHtml(anchor(&dest_url)))
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            open.pop().unwrap_or_default().then(|| Event::InlineHtml("</a>".into()))
        }
        // The page has headings of its own above these.
        Event::Start(Tag::Heading { level, classes, .. }) => {
            Some(Event::Start(Tag::Heading { level: below(level), id: None, classes, attrs: Vec::new() }))
        }
        Event::End(TagEnd::Heading(level)) => Some(Event::End(TagEnd::Heading(below(level)))),
        other => Some(other),
    }
}

/// `http`, `https` and `mailto`, spelled out: everything else may be a program.
pub(crate) fn is_harmless(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme))
}

fn anchor(address: &str) -> CowStr<'static> {
    let mut escaped = String::with_capacity(address.len());
    for character in address.chars() {
        match character {
            '"' => escaped.push_str("&quot;"),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\'' => escaped.push_str("&#39;"),
            character if character.is_control() => {}
            character => escaped.push(character),
        }
    }
    format!("<a href=\"{escaped}\" rel=\"noopener nofollow noreferrer\">").into()
}

const fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(markdown(text).0.trim(), expected, "{text}");
    }

    #[test]
    fn nobodys_markup_survives() {
        check("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>");
        check("a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>");
        check("**bold** `<b>`", "<p><strong>bold</strong> <code>&lt;b&gt;</code></p>");
        check("# One", "<h3>One</h3>");
    }

    #[test]
    fn links_lead_somewhere_and_do_nothing_else() {
        check(
            "[x](https://example.org/?a=1&b=2)",
            "<p><a href=\"https://example.org/?a=1&amp;b=2\" rel=\"noopener nofollow noreferrer\">x</a></p>",
        );
        for address in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "//evil.example",
            "/v1/x",
        ] {
            check(&format!("[x]({address})"), "<p>x</p>");
        }
        check(
            "[x](<https://e.org/\"onclick=alert(1)>)",
            "<p><a href=\"https://e.org/&quot;onclick=alert(1)\" rel=\"noopener nofollow noreferrer\">x</a></p>",
        );
        check(
            "![pic](https://e.org/p.png)",
            "<p><a href=\"https://e.org/p.png\" rel=\"noopener nofollow noreferrer\">pic</a></p>",
        );
        check("![pic](x.png)", "<p>pic</p>");
    }
}
