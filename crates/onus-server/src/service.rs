//! The server without its sockets: what a request is answered with, for whoever has one. Tests and fuzzers ask here.

use crate::config::Config;
use crate::serve::{Server, router};
use crate::store::Open;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response, header};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

#[derive(Debug)]
pub struct Service {
    /// What ends in this order: what answers, what it is answered with, and what the answers run on.
    running: Option<Running>,
    end: watch::Sender<bool>,
}

#[derive(Debug)]
struct Running {
    router: TowerToHyperService<Router>,
    server: Arc<Server>,
    runtime: Runtime,
}

impl Service {
    pub fn start(config: Config, open: &Open) -> Result<Service, Refusal> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
        let (end, ending) = watch::channel(false);
        let server = Arc::new(Server::start(config, open, ending)?);
        let router = TowerToHyperService::new(router(&server));
        Ok(Service { running: Some(Running { router, server, runtime }), end })
    }

    /// The answer to one request; of one that never ends, such as events, its head alone.
    pub fn answer(&self, request: Request<impl Into<Body>>) -> Result<Response<Bytes>, Refusal> {
        let running = self.running.as_ref().ok_or_else(|| failed(&"the server has ended"))?;
        running.runtime.block_on(async {
            let answered = running.router.call(request.map(Into::into)).await;
            let (parts, body) = answered.map_err(|error| failed(&error))?.into_parts();
            let kind = parts.headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
            let bytes = match kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
                true => Bytes::new(),
                false => axum::body::to_bytes(body, usize::MAX).await.map_err(|error| failed(&error))?,
            };
            Ok(Response::from_parts(parts, bytes))
        })
    }
}

impl Drop for Service {
    /// Carries out what was accepted; then the store is closed.
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(Running { router, server, runtime }) = self.running.take() {
            drop((router, runtime));
            if let Some(server) = Arc::into_inner(server) {
                server.finish();
            }
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}
