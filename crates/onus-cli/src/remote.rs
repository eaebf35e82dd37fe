//! A store behind a server: `--store https://…` with a token.

use onus_core::code::Code;
use onus_core::id::{Handle, RequestId};
use onus_core::refusal::Refusal;
use onus_host::http_client::{Repeat, ServerConnection};
use onus_host::repository::Place;
use onus_store::port::{CallEffect, Driver, RemoteCall, RemoteStore};
use onus_store::remote::Elsewhere;
use std::path::PathBuf;

#[derive(Debug)]
struct Remote(ServerConnection);

impl RemoteStore for Remote {
    fn call(&mut self, call: RemoteCall<'_>) -> Result<String, Refusal> {
        // What has a request id is carried out once, however often it arrives.
        let repeat = match (call.effect, call.request) {
            (CallEffect::Changes, None) => Repeat::Unheard,
            (CallEffect::Changes, Some(_)) | (CallEffect::Reads, _) => Repeat::Safe,
        };
        self.0.call(call.name, &call.arguments, call.request.map(RequestId::as_str), repeat)
    }
}

/// The store behind the server at `url`, for the bearer of the token in the environment.
pub(crate) fn open(url: &str, actor: Option<&Handle>, place: &Place) -> Result<Box<dyn Driver>, Refusal> {
    let line = ServerConnection::new(url, &token(place)?, actor.map(Handle::as_str))?;
    Ok(Box::new(Elsewhere(Box::new(Remote(line)))))
}

/// `ONUS_TOKEN`, or what is in the file that `ONUS_TOKEN_FILE` names, or in the one that `onus init` found named so.
fn token(place: &Place) -> Result<String, Refusal> {
    let said = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    if let Some(token) = said("ONUS_TOKEN") {
        return Ok(token);
    }
    let named = said("ONUS_TOKEN_FILE").map(PathBuf::from);
    let Some(path) = named.map_or_else(|| place.configured_token_file(), |path| Ok(Some(path)))? else {
        return Err(Refusal::new(Code::IdentityRequired, "a server asks for a token")
            .hint("set ONUS_TOKEN, or ONUS_TOKEN_FILE; a person issues one: onus worker token add @you"));
    };
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Refusal::invalid(format!("{}: {error}", path.display()))
            .hint("check ONUS_TOKEN_FILE, or git config onus.tokenFile")
    })?;
    Ok(text.trim().to_owned())
}
