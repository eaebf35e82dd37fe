//! The line to a server, with TLS by rustls where it is asked for. A certificate is judged as the machine judges them, or by
//! the roots that the address names.
//!
//! The driver lets us stand between it and its socket in one place only, where it would make the connection secret. So a line
//! in clear goes the same way.

use super::address::Security;
use super::burst::Burst;
use crate::error::{Result, StoreError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

/// How connections are wrapped; in clear without a configuration.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    pub(super) fn new(security: &Security) -> Result<Tls> {
        let Security::Verified { roots } = security else {
            return Ok(Tls(None));
        };
        let unusable = |error: String| StoreError::Unavailable {
            detail: format!("the connection cannot be made secret: {error}"),
            hint: Some("check sslrootcert and the machine's certificates".into()),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| unusable(error.to_string()))?;
        let config = match roots {
            Some(file) => {
                builder.with_root_certificates(roots_in(file).map_err(unusable)?).with_no_client_auth()
            }
            None => {
                let judged = builder.with_platform_verifier().map_err(|error| unusable(error.to_string()))?;
                judged.with_no_client_auth()
            }
        };
        Ok(Tls(Some(Arc::new(config))))
    }
}

fn roots_in(file: &Path) -> std::result::Result<RootCertStore, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() { Err(unreadable(&"no certificate in it")) } else { Ok(roots) }
}

impl<S: Stream> MakeTlsConnect<S> for Tls {
    type Stream = Burst<Line>;
    type TlsConnect = To;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> std::result::Result<To, Self::Error> {
        Ok(match &self.0 {
            Some(config) => {
                To::Verified { config: Arc::clone(config), host: ServerName::try_from(host.to_owned())? }
            }
            None => To::Clear,
        })
    }
}

/// A handshake with one host.
pub(super) enum To {
    Clear,
    Verified { config: Arc<ClientConfig>, host: ServerName<'static> },
}

impl<S: Stream> TlsConnect<S> for To {
    type Stream = Burst<Line>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Burst<Line>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let line: Line = match self {
                To::Clear => Box::new(stream),
                To::Verified { config, host } => {
                    Box::new(TlsConnector::from(config).connect(host, stream).await?)
                }
            };
            Ok(Burst::new(line))
        })
    }
}

/// What can be spoken through.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// A stream that everybody in between can read, or nobody.
pub(super) type Line = Box<dyn Stream>;

impl tokio_postgres::tls::TlsStream for Burst<Line> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
