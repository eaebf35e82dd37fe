//! `/mcp`: the tools of agents' clients, for the bearer of a token. No check is run here and no path is touched.

use crate::auth;
use crate::readers::busy;
use crate::serve::Server;
use crate::store::Store;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::routing::{MethodRouter, any};
use onus_app::submit::{Receipt, Target};
use onus_core::command::Envelope;
use onus_core::refusal::Refusal;
use onus_mcp::{Desk, Tools, Who};
use onus_store::any::Any;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Handle;

/// The server's own threads, asked from where waiting is allowed.
struct Counter {
    server: Arc<Server>,
}

impl Desk for Counter {
    type Store = Any;

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Store) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        Handle::current().block_on(self.server.readers.ask(question))
    }

    fn submit(&self, envelope: Envelope, target: Target) -> Result<Receipt, Refusal> {
        let answers =
            Handle::current().block_on(self.server.writer.submit(vec![(envelope, target)], None))?;
        answers.into_iter().next().unwrap_or_else(|| Err(busy("the server is shutting down")))
    }
}

pub(crate) fn route(server: &Arc<Server>) -> MethodRouter {
    let service = onus_mcp::http(Arc::new(Counter { server: Arc::clone(server) }), Tools::Few);
    let server = Arc::clone(server);
    any(move |request: Request| {
        let (server, service) = (Arc::clone(&server), service.clone());
        async move {
            let began = Instant::now();
            let response = match admitted(&server, request).await {
                Ok(request) => service.handle(request).await.map(Body::new),
                Err(refusal) => server.refused("mcp", None, refusal.into()),
            };
            server.metrics.answered("mcp", response.status().as_u16(), began.elapsed());
            response
        }
    })
}

/// The request with who sent it. The token itself goes no further: it is for us and for nobody else.
async fn admitted(server: &Arc<Server>, mut request: Request) -> Result<Request, Refusal> {
    let presented = auth::presented(request.headers())?;
    let guard = Arc::clone(server);
    let principal = server.readers.ask(move |store| guard.admit(store, &presented)).await?;
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(Who::from(principal));
    Ok(request)
}
