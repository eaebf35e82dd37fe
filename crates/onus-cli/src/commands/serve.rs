//! `onus serve`

use super::word;
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use onus_server::{Config, Log, Tls};
use onus_store::location::Location;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Serve the store over HTTP until told to end
///
/// Workers authenticate with tokens. SIGTERM ends it: what was accepted is answered and committed first.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; beyond this machine only with TLS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7420")]
    listen: SocketAddr,

    /// The certificate chain for TLS, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The certificate's key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Listen beyond this machine without TLS: a proxy in front has it
    #[arg(long)]
    insecure: bool,

    /// A name by which callers know the server, beside localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// How often one token may ask in a second
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,

    /// How many connections there may be at once; one token has a quarter of them at most
    #[arg(long, value_name = "N", default_value_t = 4_096, value_parser = clap::value_parser!(u16).range(8..))]
    connections: u16,

    /// How long a caller may take to send its headers, and its body
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = Millis::parse)]
    patience: Millis,

    /// text, json or quiet: one line on stderr per answer
    #[arg(long, default_value = "text", value_parser = |t: &str| word("a log", t, Log::parse, "text, json, quiet"))]
    log: Log,

    /// Send OpenTelemetry traces to this OTLP/HTTP collector
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    traces: Option<String>,
}

/// Told once connections are accepted.
#[derive(Debug, Serialize)]
struct ServingView {
    url: String,
    store: String,
}

impl Serve {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        if matches!(world.location, Location::Server(_)) {
            let detail = format!("{} is a server already", world.location.shown());
            return Err(
                Refusal::invalid(detail).hint("serve sqlite:PATH or postgres://…, and point callers to it")
            );
        }
        onus_server::start_log(self.log);
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        let config = Config {
            tls: tls.map(|(certificate, key)| Tls { certificate, key }),
            insecure: self.insecure,
            hosts: self.allow_host.clone(),
            rate: self.rate,
            connections: self.connections.into(),
            database: world.database().cloned(),
            traces: self.traces.clone(),
            patience: Duration::from_millis(u64::try_from(self.patience.0).unwrap_or_default()),
            ..Config::new(self.listen)
        };
        join(world)?;
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let store = world.location.shown();
        let world = world.clone();
        onus_server::run(
            config,
            &(Arc::new(move || world.open_for_others()) as onus_server::store::Open),
            |address| {
                let view = ServingView { url: format!("{scheme}://{address}"), store };
                // The line itself is the sign that others may come; a closed pipe ends nothing.
                drop(out.show(&view, |view| format!("serving {} on {}\n", view.store, view.url)));
            },
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The store knows the clone that the server stands in, as far as somebody can say so.
fn join(world: &World) -> Result<(), Refusal> {
    let owner = world.place.person()?;
    if let Some(by) = world.actor.as_ref().or(owner.as_ref()).filter(|_| world.place.repo.is_some()) {
        world.open()?.join_clone(Some(by))?;
    }
    Ok(())
}
