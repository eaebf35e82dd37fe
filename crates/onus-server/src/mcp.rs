//! `/mcp`: the tools of agents' clients, for the bearer of a token. No check is run here and no path is touched, but for a
//! landing of work that lies in the server's own clone.

use crate::allowance::{Portion, Share};
use crate::auth;
use crate::body::read;
use crate::problem::Problem;
use crate::readers::busy;
use crate::serve::Server;
use crate::store::Store;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{MethodRouter, any};
use onus_app::landing::{LandedAnswer, LandingOrder};
use onus_app::submit::{Receipt, Target};
use onus_app::weight::Weight;
use onus_core::code::Code;
use onus_core::command::Envelope;
use onus_core::refusal::Refusal;
use onus_core::unique_json::UniqueJson;
use onus_mcp::{Backend, Tools, Who};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Handle;

/// The server's own threads, asked from where waiting is allowed.
struct Counter {
    server: Arc<Server>,
}

impl Backend for Counter {
    fn ask<T: Send + 'static>(
        &self,
        who: &Who,
        question: impl FnOnce(&mut Store) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let share = who.shown.as_ref().map_or(Share::Strangers, |shown| Share::Bearer(shown.text.hash()));
        Handle::current().block_on(self.server.readers.ask(&share, Weight::Light, question))
    }

    fn submit(&self, who: &Who, envelope: Envelope, target: Target) -> Result<Receipt, Refusal> {
        let submitted = self.server.submitted(vec![(envelope, target)], who.shown.clone());
        let answers = Handle::current().block_on(submitted)?;
        answers.into_iter().next().unwrap_or_else(|| Err(busy("the server is shutting down")))
    }

    fn land(&self, who: &Who, order: LandingOrder) -> Result<LandedAnswer, Refusal> {
        let shown =
            who.shown.clone().ok_or_else(|| Refusal::new(Code::Unauthenticated, "no token was shown"))?;
        Handle::current().block_on(self.server.landed(Box::new(order), shown))
    }
}

pub(crate) fn route(server: &Arc<Server>) -> MethodRouter {
    let service = onus_mcp::http(Arc::new(Counter { server: Arc::clone(server) }), Tools::Few);
    let server = Arc::clone(server);
    any(move |request: Request| {
        let (server, service) = (Arc::clone(&server), service.clone());
        async move {
            let began = Instant::now();
            let is_json = request.headers().get(CONTENT_TYPE).is_some_and(is_json);
            let response = match admitted(&server, request).await {
                Ok((request, _portion)) => match service.handle(request).await.map(Body::new) {
                    // The library blames the content type for what is no message, too.
                    response if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json => {
                        unparsed()
                    }
                    response => response,
                },
                Err(problem) => server.refused("mcp", None, problem),
            };
            server.metrics.answered("mcp", response.status().as_u16(), began.elapsed());
            response
        }
    })
}

fn is_json(kind: &HeaderValue) -> bool {
    kind.to_str().is_ok_and(|kind| kind.trim_start().starts_with("application/json"))
}

/// What JSON-RPC says to what is no message of it.
fn unparsed() -> Response<Body> {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the body is not a JSON-RPC message"}}"#;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The request with who sent it. The token itself goes no further than to the store that judges it: it is for us and for
/// nobody else.
async fn admitted(server: &Arc<Server>, request: Request) -> Result<(Request, Option<Portion>), Problem> {
    let (mut parts, body) = request.into_parts();
    let presented = auth::presented(&parts.headers)?;
    let guard = Arc::clone(server);
    let share = Share::of(&parts.extensions);
    let admitted = move |store: &mut Store| guard.admit(store, &presented, Weight::Light);
    let shown = server.readers.ask(&share, Weight::Light, admitted).await?;
    let (body, portion) = match parts.method {
        Method::POST => {
            let (bytes, portion) =
                read(server, &share, &parts.headers, body, server.config.body_limit).await?;
            // What is no JSON at all the library answers; what two readers could understand differently nobody does.
            if let Err(error) = serde_json::from_slice::<UniqueJson>(&bytes)
                && error.is_data()
            {
                return Err(Refusal::invalid(format!("the message: {error}")).into());
            }
            (Body::from(bytes), Some(portion))
        }
        _ => (Body::empty(), None),
    };
    parts.headers.remove(AUTHORIZATION);
    parts.extensions.insert(Who::from(shown));
    Ok((Request::from_parts(parts, body), portion))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use onus_app::idempotent_admin::Asker;
    use onus_app::registry::Founding;
    use onus_app::token::{Shown, parse};
    use onus_app::{Onus, Sight};
    use onus_core::command::Command;
    use onus_core::event::WorkerAdded;
    use onus_core::registry::token::TokenOrder;
    use onus_core::settings::Settings;
    use onus_core::task::Spec;
    use onus_core::worker::Kind;
    use onus_store::location::Location;
    use std::path::Path;
    use tokio::sync::watch;

    fn open(path: &Path) -> Result<Store, Refusal> {
        let store = Location::File(path.to_owned()).open(onus_host::clock::now)?;
        let place = onus_host::repository::find(path.parent().unwrap())?;
        Ok(Onus {
            store,
            settings: Settings::default(),
            path: path.to_owned(),
            place,
            sight: Sight::Store,
            bearer: None,
        })
    }

    fn ask(actor: &str, request: &str) -> Envelope {
        let spec = Box::new(Spec { kind: "chore".into(), ..Spec::titled(request) });
        Envelope {
            request: request.parse().unwrap(),
            actor: Some(actor.parse().unwrap()),
            token: None,
            task: None,
            project: None,
            base: None,
            command: Command::Add { spec, depends_on: Default::default(), archived: None, arrival: None },
        }
    }

    /// What was good when its bearer was admitted, and is revoked before the command's turn, writes nothing.
    #[test]
    fn a_token_is_judged_when_its_command_is_carried_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("onus.db");
        drop(Location::File(path.clone()).create(onus_host::clock::now).unwrap());
        let mut store = open(&path).unwrap();
        let (ada, tz) = ("@ada".parse().unwrap(), "UTC".to_owned());
        let person =
            WorkerAdded { handle: "@ada".parse().unwrap(), kind: Kind::Human, tier: None, role: None, tz };
        let default_project = "T".parse().unwrap();
        let founding = Founding { project: None, default_project, person, checkout: None };
        store.init(&founding, |_| Ok("00".repeat(32))).unwrap();
        let asker = Asker::from(Some(&ada));
        let order = TokenOrder { worker: Some(ada.clone()), ..TokenOrder::default() };
        let secret = store.issue_token(asker, &order).unwrap().secret;

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_end, ending) = watch::channel(false);
        let config = Config { readers: 1, ..Config::new(([127, 0, 0, 1], 0).into()) };
        let server = Arc::new(Server::start(config, &(Arc::new(move || open(&path)) as _), ending).unwrap());
        let counter = Counter { server: Arc::clone(&server) };
        let principal = server.admit(&mut store, &secret, Weight::Light).unwrap().principal;
        let who =
            Who::from(Shown { text: parse(&secret).unwrap(), principal: principal.clone(), sender: None });
        let submit = |request: &'static str| {
            let (counter, who) = (Counter { server: Arc::clone(&counter.server) }, who.clone());
            let submitted = move || counter.submit(&who, ask("@ada", request), Target::Named);
            runtime.block_on(async { tokio::task::spawn_blocking(submitted).await.unwrap() })
        };
        submit("before").unwrap();
        store.revoke_token(asker, &principal.token_id, None).unwrap();
        assert_eq!(submit("after").unwrap_err().code, Code::Unauthenticated);
        assert_eq!(
            store.log(None, None, 100).unwrap().entries.iter().filter(|one| one.verb == "added").count(),
            1
        );
    }
}
