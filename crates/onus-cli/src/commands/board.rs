//! `onus board`

use super::worker::link;
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder;
use onus_server::{Config, Log};
use onus_store::location::Location;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

/// Open the board in your browser
///
/// Serves the store on this machine alone, signs you in, and ends with Ctrl-C. Where the store is behind a server, that
/// server's board is opened.
#[derive(Debug, Args)]
pub(crate) struct Board {
    /// Print the link instead of opening it. It is good once, within ten minutes
    #[arg(long)]
    no_open: bool,

    /// Where to listen; default: any port that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
}

/// Told once the board can be opened.
#[derive(Debug, Serialize)]
struct BoardView {
    url: String,
    store: String,
}

impl Board {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let viewer = world.actor.clone().ok_or_else(|| {
            Refusal::new(Code::IdentityRequired, "whose board is it? a person signs in")
                .hint("pass --as @handle or set ONUS_AS")
        })?;
        let secret = world.open()?.issue_token(Some(&viewer), &TokenOrder::link(viewer.clone()))?.secret;
        let store = world.location.shown();
        if let Location::Server(url) = &world.location {
            return self.tell(out, &BoardView { url: link(url, &secret), store });
        }
        onus_server::start_log(Log::Quiet);
        let config = Config {
            database: world.database().cloned(),
            ..Config::new((Ipv4Addr::LOCALHOST, self.port).into())
        };
        let world = world.clone();
        let open = Arc::new(move || world.open_for_others()) as onus_server::store::Open;
        onus_server::run(config, &open, |address| {
            let view = BoardView { url: link(&format!("http://{address}"), &secret), store };
            // A closed pipe ends nothing.
            drop(self.tell(out, &view));
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn tell(&self, out: &Output, view: &BoardView) -> Result<ExitCode, Refusal> {
        if !self.no_open && opened(&view.url) {
            out.hint("the board is open in your browser; Ctrl-C ends it");
            return Ok(ExitCode::SUCCESS);
        }
        out.show(view, |view| format!("{}\n", view.url))
    }
}

/// Whether a browser was found.
fn opened(url: &str) -> bool {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = || Stdio::null();
    let started = Command::new(opener).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).status();
    started.is_ok_and(|status| status.success())
}
