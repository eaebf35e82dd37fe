//! Sockets: accept, TLS, limits, and an end that loses nothing.

use crate::allowance::Seat;
use crate::config::{Config, Tls};
use crate::drain_body::Unread;
use crate::http2_idle::Counting;
use crate::serve::{Server, router};
use crate::store::Open;
use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// How long requests in flight may take after the end was asked for.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// So many connections may wait to be accepted; the kernel may allow fewer.
const WAITING: u32 = 4_096;

/// More than this is no header that we read.
const HEADERS_MAX: u32 = 32 * 1024;

/// So many requests of one connection are answered side by side.
const STREAMS: u32 = 128;

/// The names of what is spoken, as TLS agrees on them.
const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// Serves until the process is asked to end. `ready` is told the address once connections are accepted.
pub fn run(config: Config, open: &Open, ready: impl FnOnce(SocketAddr)) -> Result<(), Refusal> {
    config.check()?;
    raise_file_limit();
    let acceptor = config.tls.as_ref().map(acceptor).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(runtime_threads())
        .enable_all()
        .build()
        .map_err(|e| unusable(&e))?;
    let (end, ending) = watch::channel(false);
    let server = Arc::new(Server::start(config, open, ending)?);
    let served = runtime.block_on(accept(&server, acceptor, ready, &end));
    // What still holds on to the server ends with the runtime; then the threads end with what they have accepted.
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Some(server) = Arc::into_inner(server) {
        server.finish();
    }
    served
}

/// How many threads speak to callers: half of the processors. The others have the store's threads to carry, and often the
/// database; threads that take work from each other cost more than they bring.
fn runtime_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| (count.get() / 2).max(1))
}

async fn accept(
    server: &Arc<Server>,
    acceptor: Option<TlsAcceptor>,
    ready: impl FnOnce(SocketAddr),
    end: &watch::Sender<bool>,
) -> Result<(), Refusal> {
    let listener = listen(server.config.listen).map_err(|error| {
        Refusal::invalid(format!("cannot listen on {}: {error}", server.config.listen))
            .hint("choose another --listen ADDRESS:PORT")
    })?;
    let mut terminated = signal(SignalKind::terminate()).map_err(|e| unusable(&e))?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|e| unusable(&e))?;
    ready(listener.local_addr().map_err(|e| unusable(&e))?);
    let room = Arc::new(Semaphore::new(server.config.connections));
    let graceful = GracefulShutdown::new();
    let connection = Connection { server: Arc::clone(server), router: router(server), acceptor };
    loop {
        // Whoever finds no room waits in the kernel's queue.
        let permit = tokio::select! {
            permit = Arc::clone(&room).acquire_owned() => permit.map_err(|e| unusable(&e))?,
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (connection, watcher) = (connection.clone(), graceful.watcher());
                tokio::spawn(async move {
                    connection.serve(stream, watcher).await;
                    drop(permit);
                });
            }
            // Too many open files: it passes when others leave.
            Err(error) => {
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    tracing::info!("ending: answering what is in flight");
    end.send_replace(true);
    drop(connection);
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("some callers did not take their answers");
    }
    Ok(())
}

/// A thousand listeners that come back at once after a restart find room in the kernel's queue.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again need not wait for the connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

#[derive(Clone)]
struct Connection {
    server: Arc<Server>,
    router: Router,
    acceptor: Option<TlsAcceptor>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, watcher: Watcher) {
        let connections = self.server.metrics.connections.clone();
        connections.inc();
        // Answers are small and somebody waits for each of them.
        drop(stream.set_nodelay(true));
        match &self.acceptor {
            None => {
                if let Some(version) = self.in_time(begins_with(&stream)).await {
                    self.speak(version, stream, watcher).await;
                }
            }
            Some(acceptor) => {
                if let Some(stream) = self.in_time(acceptor.accept(stream)).await {
                    let version = agreed(stream.get_ref().1.alpn_protocol());
                    self.speak(version, stream, watcher).await;
                }
            }
        }
        connections.dec();
    }

    /// What a caller does in time; none where it does not, or where the server ends first.
    async fn in_time<T>(&self, step: impl Future<Output = std::io::Result<T>>) -> Option<T> {
        let mut ending = self.server.ending.clone();
        tokio::select! {
            biased;
            done = tokio::time::timeout(self.server.config.patience, step) => done.ok()?.ok(),
            _ = ending.wait_for(|has_ended| *has_ended) => None,
        }
    }

    /// How a connection ends is the caller's affair: it may leave at any time.
    async fn speak(
        &self,
        version: Version,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        watcher: Watcher,
    ) {
        let patience = self.server.config.patience;
        let (io, router) = (TokioIo::new(stream), self.router.clone());
        let seat = Arc::new(Seat::default());
        match version {
            Version::One => {
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new())
                    .header_read_timeout(patience)
                    .max_buf_size(HEADERS_MAX as usize)
                    .half_close(false);
                let routes = TowerToHyperService::new(router);
                let service = service_fn(move |mut request: Request<Incoming>| {
                    request.extensions_mut().insert(Arc::clone(&seat));
                    routes.call(request.map(Unread::new))
                });
                drop(watcher.watch(http.serve_connection(io, service)).await);
            }
            Version::Two => {
                let mut http = http2::Builder::new(TokioExecutor::new());
                http.timer(TokioTimer::new())
                    .max_concurrent_streams(STREAMS)
                    .max_header_list_size(HEADERS_MAX);
                let service = Counting::new(router, seat);
                let connection = http.serve_connection(io, service.clone());
                service.serve(connection, patience, self.server.ending.clone()).await;
                // The end of the server waits for whoever is watched.
                drop(watcher);
            }
        }
    }
}

/// The versions of HTTP that are spoken here.
#[derive(Debug, Clone, Copy)]
enum Version {
    One,
    Two,
}

/// What was agreed on when the connection was made. Who says nothing speaks as everybody can.
fn agreed(protocol: Option<&[u8]>) -> Version {
    if protocol == Some(HTTP_2) { Version::Two } else { Version::One }
}

/// What a caller speaks that did not ask first. No method of HTTP/1.1 begins as HTTP/2 does.
async fn begins_with(stream: &TcpStream) -> std::io::Result<Version> {
    const HTTP_2: &[u8] = b"PRI";
    let mut seen = [0; HTTP_2.len()];
    loop {
        let length = stream.peek(&mut seen).await?;
        if length == 0 || !HTTP_2.starts_with(&seen[..length]) {
            return Ok(Version::One);
        }
        if length == HTTP_2.len() {
            return Ok(Version::Two);
        }
        // Nobody says when more has come than the first letters.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Every connection is an open file, and the usual limit is made for programs with a few.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where it may not be raised, the limit is what it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Refusal> {
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(&tls.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| unreadable(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| unreadable(&tls.certificate, &error))?;
    config.alpn_protocols = [HTTP_2, HTTP_1].map(<[u8]>::to_vec).into();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Refusal {
    Refusal::invalid(format!("{}: {error}", path.display())).hint("--tls-cert and --tls-key name PEM files")
}

fn unusable(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}
