//! A message as an ask: its subject is the title, the beginning of its thread the key. Its text is not even read.

use mail_parser::{HeaderName, MessageParser};
use onus_core::id::ChannelName;
use onus_core::intake::channel::{Channel, KIND, plain_title};
use onus_core::refusal::Refusal;
use onus_core::task::Spec;

/// What a message asks for. A reply belongs to the ask that its thread began with.
pub fn email(name: &ChannelName, channel: Option<&Channel>, message: &[u8]) -> Result<Spec, Refusal> {
    let missing = |what: &str| {
        Refusal::invalid(format!("the message has no {what}"))
            .hint("pass a whole message, as a mailbox has it")
    };
    let headers = MessageParser::default().parse_headers(message).ok_or_else(|| missing("headers"))?;
    for name in [HeaderName::MessageId, HeaderName::Subject, HeaderName::References, HeaderName::InReplyTo] {
        if headers.headers().iter().filter(|header| header.name == name).count() > 1 {
            let detail = format!("the message has {} more than once", name.as_str());
            return Err(Refusal::invalid(detail).hint("pass the message as its sender made it"));
        }
    }
    let list = |value: &mail_parser::HeaderValue<'_>| {
        value.as_text_list().and_then(|ids| ids.first()).map(|id| id.to_string())
    };
    let thread = list(headers.references()).or_else(|| list(headers.in_reply_to()));
    let key =
        thread.or_else(|| headers.message_id().map(str::to_owned)).ok_or_else(|| missing("Message-ID"))?;
    let title = headers.subject().map(plain_title).filter(|title| !title.is_empty());
    let spec = Spec {
        kind: KIND.to_owned(),
        origin: Some(format!("{name}:{key}").parse().map_err(Refusal::invalid)?),
        ..Spec::titled(title.ok_or_else(|| missing("subject"))?)
    };
    Ok(match channel {
        Some(channel) => channel.usual(spec),
        None => spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Result<(String, String), Refusal> {
        let spec = email(&"mail".parse().unwrap(), None, message.as_bytes())?;
        Ok((spec.title, spec.origin.unwrap().to_string()))
    }

    #[test]
    fn a_thread_is_one_ask() {
        let first = "Message-ID: <a.1@example.org>\r\nSubject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\r\n\r\nwords";
        assert_eq!(read(first).unwrap(), ("Grüße".to_owned(), "mail:a.1@example.org".to_owned()));
        let reply = "Message-ID: <b@x>\nReferences: <a.1@example.org>\n <c@y>\nSubject: Re: Hello\n\n";
        assert_eq!(read(reply).unwrap().1, "mail:a.1@example.org");
        let short = "Message-ID: <b@x>\nIn-Reply-To: <a.1@example.org>\nSubject: Re: Hello\n\n";
        assert_eq!(read(short).unwrap().1, "mail:a.1@example.org");
    }

    #[test]
    fn what_is_no_message_is_refused_and_never_a_panic() {
        for bad in [
            "",
            "\n\n",
            "words",
            "Subject: x\n\n",
            "Message-ID: <a@b>\n\n",
            "Message-ID: <a b>\nSubject: x\n\n",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
        for twice in ["Message-ID: <c@d>", "Subject: y", "References: <e@f>", "In-Reply-To: <g@h>"] {
            let once = "Message-ID: <a@b>\nSubject: x\nReferences: <r@s>\nIn-Reply-To: <t@u>\n";
            let refusal = read(&format!("{once}{twice}\n\n")).unwrap_err();
            assert!(refusal.detail.contains("more than once"), "{refusal}");
        }
        for odd in [
            &b"\xff\xfe\x00"[..],
            b"Message-ID:",
            b"Subject: =?UTF-8?B?",
            b"References: <<<<<\nSubject: \x1b[2J",
        ] {
            let _ = email(&"mail".parse().unwrap(), None, odd);
        }
    }
}
