//! `onus worker token`

use crate::cli::handle;
use crate::commands::word;
use crate::context::{Store, World};
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::token::{TokenView, TokensView};
use onus_core::id::{Handle, TokenId, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder;
use onus_core::time::Millis;
use onus_core::token::TokenKind;
use onus_store::location::Location;
use serde::Serialize;
use std::process::ExitCode;

/// Tokens: who may call a server, in whose name and for how long
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
enum TokenVerb {
    Add(TokenAdd),
    /// The tokens that were issued, and when each was used last
    List {
        /// This worker's only
        #[arg(value_name = "@HANDLE", value_parser = handle)]
        handle: Option<Handle>,
    },
    /// A link that signs you in to a server's board, once, within ten minutes
    Link {
        /// You: people issue their own links
        #[arg(value_name = "@HANDLE", value_parser = handle)]
        handle: Handle,

        /// The server's address; default: the store's, where it is a server, else http://127.0.0.1:7420
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
    /// End a token at once: people only
    Revoke {
        /// Which one, as `onus worker token list` names it
        #[arg(value_name = "ID", value_parser = |t: &str| t.parse::<TokenId>())]
        id: TokenId,

        /// Why; goes into the ledger
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// Issue a token and print it, once: people only
///
/// An agent's or a service's token can never carry force, approval or administration. People issue their own, and those
/// of agents and services.
#[derive(Debug, Args)]
struct TokenAdd {
    /// Whose token; a service that only reads needs none
    #[arg(value_name = "@HANDLE", value_parser = handle)]
    handle: Option<Handle>,

    /// person, agent or service (asks and reads only); default: what the worker is
    #[arg(long, value_parser = |t: &str| word("a kind of token", t, TokenKind::parse, "person, agent, service"))]
    kind: Option<TokenKind>,

    /// Where alone it may be given work
    #[arg(long, value_name = "WORKSTATION", value_parser = |t: &str| t.parse::<WorkstationName>())]
    workstation: Option<WorkstationName>,

    /// How long it is good, e.g. 90d or 8h; `never` for a token without an end
    #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = end)]
    expires: End,

    /// What it is for
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Never,
    After(Millis),
}

fn end(text: &str) -> Result<End, String> {
    if text == "never" { Ok(End::Never) } else { Millis::parse(text).map(End::After) }
}

/// Where a browser redeems a one-time link. Behind the `#` it is sent to no server until it is redeemed.
pub(crate) fn link(server: &str, secret: &str) -> String {
    format!("{}/signin#{secret}", server.trim_end_matches('/'))
}

#[derive(Debug, Serialize)]
struct LinkView {
    token: TokenView,
    url: String,
}

#[derive(Debug, Serialize)]
struct RevokedView {
    token: TokenView,
}

impl Token {
    pub(super) fn run(&self, world: &World, store: &mut Store, out: &Output) -> Result<ExitCode, Refusal> {
        let request = world.request()?;
        let asker = world.asker(&request);
        match &self.verb {
            TokenVerb::Add(add) => {
                let issued = store.issue_token(asker, &add.order())?;
                // On a line of its own, so that a script takes it as it is.
                let shown = out.show(&issued, |view| format!("{}\n", view.secret))?;
                out.hint(&render::issued(&issued.token));
                Ok(shown)
            }
            TokenVerb::Link { handle, server } => {
                let issued = store.issue_token(asker, &TokenOrder::link(handle.clone()))?;
                let server = server.clone().unwrap_or_else(|| match &world.location {
                    Location::Server(url) => url.clone(),
                    Location::File(_) | Location::Database(_) => "http://127.0.0.1:7420".to_owned(),
                });
                let view = LinkView { url: link(&server, &issued.secret), token: issued.token };
                out.show(&view, |view| format!("{}\n", view.url))
            }
            TokenVerb::List { handle } => {
                let human = |view: &TokensView| render::tokens(view);
                out.show_list(&store.tokens(handle.as_ref())?, |view| &view.tokens, human)
            }
            TokenVerb::Revoke { id, reason } => {
                let token = store.revoke_token(asker, id, reason.as_deref())?;
                out.show(&RevokedView { token }, |view| format!("{} is revoked\n", view.token.id))
            }
        }
    }
}

impl TokenAdd {
    fn order(&self) -> TokenOrder {
        TokenOrder {
            kind: self.kind,
            worker: self.handle.clone(),
            workstation: self.workstation.clone(),
            label: self.label.clone(),
            expires_in: match self.expires {
                End::Never => None,
                End::After(span) => Some(span),
            },
        }
    }
}
