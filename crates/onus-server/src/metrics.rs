//! What a server tells about itself, in Prometheus' format.

use onus_app::mirror::MirrorsView;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    operation: String,
    status: u16,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Refused {
    code: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfMirror {
    mirror: String,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    refusals: Family<Refused, Counter>,
    seconds: Histogram,
    commands: Counter,
    batch: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) listeners: Gauge,
    mirror_pending: Family<OfMirror, Gauge>,
    mirror_stuck: Family<OfMirror, Gauge>,
    mirror_lag: Family<OfMirror, Gauge>,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("onus");
        let requests = Family::default();
        registry.register("http_requests", "Requests by operation and status", requests.clone());
        let refusals = Family::default();
        registry.register("refusals", "Refused requests by code", refusals.clone());
        let seconds = Histogram::new(exponential_buckets(0.000_5, 2.0, 14));
        registry.register(
            "http_request_seconds",
            "Time from a request's headers to its answer",
            seconds.clone(),
        );
        let commands = Counter::default();
        registry.register(
            "commands",
            "Commands that were carried out or refused by the rules",
            commands.clone(),
        );
        let batch = Histogram::new(exponential_buckets(1.0, 2.0, 7));
        registry.register("commands_per_commit", "Commands that went into one commit", batch.clone());
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let listeners = Gauge::default();
        registry.register("event_listeners", "Callers that listen to events", listeners.clone());
        let mut of_mirror = |name: &str, help: &str| {
            let family = Family::<OfMirror, Gauge>::default();
            registry.register(name, help, family.clone());
            family
        };
        let mirror_pending =
            of_mirror("mirror_pending_tasks", "Tasks of which a mirror has not been told everything");
        let mirror_stuck = of_mirror("mirror_stuck_tasks", "Those of them that wait for a person");
        let mirror_lag = of_mirror("mirror_lag_milliseconds", "For how long the oldest of it has waited");
        Metrics {
            registry,
            requests,
            refusals,
            seconds,
            commands,
            batch,
            connections,
            listeners,
            mirror_pending,
            mirror_stuck,
            mirror_lag,
        }
    }

    pub(crate) fn answered(&self, operation: &str, status: u16, took: Duration) {
        self.requests.get_or_create(&Answered { operation: operation.to_owned(), status }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn refused(&self, code: &str) {
        self.refusals.get_or_create(&Refused { code: code.to_owned() }).inc();
    }

    pub(crate) fn committed(&self, commands: usize) {
        self.commands.inc_by(commands as u64);
        self.batch.observe(commands as f64);
    }

    pub(crate) fn mirrors(&self, view: &MirrorsView) {
        for mirror in &view.mirrors {
            let of = OfMirror { mirror: mirror.name.to_string() };
            self.mirror_pending.get_or_create(&of).set(mirror.pending);
            self.mirror_stuck.get_or_create(&of).set(mirror.stuck);
            self.mirror_lag.get_or_create(&of).set(mirror.lag_ms);
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
