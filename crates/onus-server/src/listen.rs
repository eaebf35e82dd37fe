//! Sockets: accept, TLS, limits, and an end that loses nothing.

use crate::config::{Config, Tls};
use crate::serve::{Server, router};
use crate::store::Open;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
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
const FAREWELL: Duration = Duration::from_secs(30);

/// So many connections may wait to be accepted; the kernel may allow fewer.
const WAITING: u32 = 4_096;

/// More than this is no header that we read.
const HEADERS_MAX: usize = 32 * 1024;

/// Serves until the process is asked to end. `ready` is told the address once connections are accepted.
pub fn run(config: Config, open: &Open, ready: impl FnOnce(SocketAddr)) -> Result<(), Refusal> {
    config.check()?;
    raise_file_limit();
    let acceptor = config.tls.as_ref().map(acceptor).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(speakers())
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
fn speakers() -> usize {
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
    if tokio::time::timeout(FAREWELL, graceful.shutdown()).await.is_err() {
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
            None => self.speak(stream, watcher).await,
            Some(acceptor) => {
                let patience = self.server.config.patience;
                if let Ok(Ok(stream)) = tokio::time::timeout(patience, acceptor.accept(stream)).await {
                    self.speak(stream, watcher).await;
                }
            }
        }
        connections.dec();
    }

    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, watcher: Watcher) {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.server.config.patience)
            .max_buf_size(HEADERS_MAX)
            .half_close(false);
        let service = TowerToHyperService::new(self.router.clone());
        // How a connection ends is the caller's affair: it may leave at any time.
        drop(watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await);
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
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| unreadable(&tls.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Refusal {
    Refusal::invalid(format!("{}: {error}", path.display())).hint("--tls-cert and --tls-key name PEM files")
}

fn unusable(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}
