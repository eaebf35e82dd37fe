//! Connections of HTTP/2 on which nothing is asked: they end as those of HTTP/1 do, which knows by itself when a caller has
//! had long enough to ask.

use crate::allowance::Seat;
use crate::answer_body::keep_until_sent;
use crate::drain_body::Unread;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How long a caller has to hear that its connection ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// What is asked on one connection.
#[derive(Debug, Default)]
struct Requests {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Requests {
    /// Whether no request is open and none has begun since the last call, which left the count in `seen`.
    fn were_none(&self, seen: &mut usize) -> bool {
        let begun = self.begun.load(Ordering::Relaxed);
        let is_quiet = begun == *seen && begun == self.ended.load(Ordering::Relaxed);
        *seen = begun;
        is_quiet
    }
}

/// A request on its way; it ends with the last of its answer.
#[derive(Debug)]
struct OnItsWay(Arc<Requests>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The routes, with every request counted.
#[derive(Debug, Clone)]
pub(crate) struct Counting {
    routes: TowerToHyperService<Router>,
    requests: Arc<Requests>,
    seat: Arc<Seat>,
}

impl Counting {
    pub(crate) fn new(routes: Router, seat: Arc<Seat>) -> Counting {
        Counting { routes: TowerToHyperService::new(routes), requests: Arc::default(), seat }
    }

    /// Serves the connection that this service is for, until its caller leaves, or has asked nothing for `patience`, or
    /// has more connections than its share, or the server ends; what is on its way is answered first.
    pub(crate) async fn serve<C: GracefulConnection>(
        &self,
        connection: C,
        patience: Duration,
        mut ending: watch::Receiver<bool>,
    ) {
        let mut connection = std::pin::pin!(connection);
        let (mut seen, mut rest, mut is_told) = (0, patience, false);
        loop {
            let is_over = tokio::select! {
                _ = connection.as_mut() => return,
                _ = ending.wait_for(|has_ended| *has_ended), if !is_told => true,
                () = self.seat.leave.notified(), if !is_told => true,
                () = sleep(rest) => self.requests.were_none(&mut seen),
            };
            match (is_over, is_told) {
                (false, _) => rest = patience,
                (true, false) => {
                    connection.as_mut().graceful_shutdown();
                    (is_told, rest) = (true, SHUTDOWN_TIMEOUT);
                }
                // It does not listen, or has not even said that it speaks HTTP/2.
                (true, true) => return,
            }
        }
    }
}

impl Service<Request<Incoming>> for Counting {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(Arc::clone(&self.seat));
        self.requests.begun.fetch_add(1, Ordering::Relaxed);
        let one = OnItsWay(Arc::clone(&self.requests));
        let answer = self.routes.call(request.map(Unread::new));
        Box::pin(async move { Ok(answer.await?.map(|body| keep_until_sent(body, one))) })
    }
}
