//! Mail by SMTP. A mail's id is made of the news's, so that mail programs know a repeat.

use super::Notifier;
use crate::mirror::rest::is_near;
use crate::probe;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::{Error, SmtpTransport};
use lettre::{Message as Mail, Transport};
use onus_core::hash::Digest;
use onus_core::mirror::Undelivered;
use onus_core::notify::message::Message;
use onus_core::probe::Url;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// How a mail server is spoken to.
struct MailServer {
    url: Url,
    /// TLS from the first byte on; else by STARTTLS.
    is_wrapped: bool,
}

impl Notifier {
    pub(super) fn mail(&self, message: &Message) -> Result<(), Undelivered> {
        let mail = self.written(message)?;
        let transport = self.transport()?;
        transport.send(&mail).map(drop).map_err(|error| unsent(&error))
    }

    fn written(&self, message: &Message) -> Result<Mail, Undelivered> {
        let refused = |what: &str| Undelivered::Refused(format!("{what} is no address of mail"));
        let from = self.channel.from.as_deref().unwrap_or_default();
        let from = from.parse().map_err(|_| refused(&format!("channels.{}.from", self.name)))?;
        let to = self.address()?.parse().map_err(|_| refused(&format!("what {} is told by", self.to)))?;
        let id = Digest::of(format!("{} {}", message.id, self.to).as_bytes());
        let mut mail = Mail::builder()
            .from(from)
            .to(to)
            .subject(&message.title)
            .message_id(Some(format!("<{id}@onus>")))
            .header(ContentType::TEXT_PLAIN)
            .body(format!("{}\n\n-- \n{}\n", message.text, message.id))
            .map_err(|error| Undelivered::Refused(format!("the mail cannot be written: {error}")))?;
        // No automatic answer comes back to it.
        let header = HeaderName::new_from_ascii_str("Auto-Submitted");
        mail.headers_mut().insert_raw(HeaderValue::new(header, "auto-generated".into()));
        Ok(mail)
    }

    fn server(&self) -> Result<MailServer, Undelivered> {
        let text = self.url()?;
        let (is_wrapped, rest, port) = match (text.strip_prefix("smtps://"), text.strip_prefix("smtp://")) {
            (Some(rest), _) => (true, rest, 465),
            (_, Some(rest)) => (false, rest, 587),
            _ => return Err(Undelivered::Away("its address must begin with smtps:// or smtp://".into())),
        };
        let rest = rest.trim_end_matches('/');
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let url = if has_port { format!("http://{rest}") } else { format!("http://{rest}:{port}") };
        let url = url
            .parse()
            .map_err(|_: String| Undelivered::Away("its address is no smtp://HOST:PORT".into()))?;
        Ok(MailServer { url, is_wrapped })
    }

    fn transport(&self) -> Result<SmtpTransport, Undelivered> {
        let away = |error: String| Undelivered::Away(error);
        let MailServer { url, is_wrapped } = self.server()?;
        let (host, port) = (url.endpoint().host().to_owned(), url.endpoint().port());
        // The name is resolved once, and what was checked is what is connected to.
        let addresses = probe::addresses(url.endpoint()).map_err(away)?;
        let address = addresses.first().ok_or_else(|| away(format!("{host} has no address")))?;
        let parameters = || TlsParameters::new(host.clone()).map_err(|error| away(error.to_string()));
        let may_be_plain = self.channel.insecure || is_near(&host);
        let tls = match (is_wrapped, may_be_plain) {
            (true, _) => Tls::Wrapper(parameters()?),
            (false, false) => Tls::Required(parameters()?),
            (false, true) => Tls::Opportunistic(parameters()?),
        };
        let mut builder = SmtpTransport::builder_dangerous(address.ip().to_string())
            .port(port)
            .tls(tls)
            .timeout(Some(PATIENCE));
        if let Some(user) = &self.channel.user {
            let password = String::from_utf8_lossy(self.secret()?.reveal()).into_owned();
            builder = builder.credentials(Credentials::new(user.clone(), password));
        }
        Ok(builder.build())
    }
}

fn unsent(error: &Error) -> Undelivered {
    let why = error.to_string();
    let code = error.status().map(|code| code.to_string()).unwrap_or_default();
    match () {
        () if error.is_timeout() => Undelivered::Silent(why),
        // Who may send at all is everybody's affair, not this mail's.
        () if error.is_permanent() && !code.starts_with("53") => Undelivered::Refused(why),
        () => Undelivered::Away(why),
    }
}
