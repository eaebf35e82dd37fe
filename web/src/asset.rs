//! Styles and scripts, compiled in and compressed once. Their address carries a digest of all of them, so that a browser
//! may keep them for ever and never mixes those of two versions.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::sync::LazyLock;

/// One file as it is sent.
#[derive(Debug)]
pub struct Asset {
    pub name: &'static str,
    pub kind: &'static str,
    pub plain: &'static [u8],
    pub gzip: Vec<u8>,
}

impl Asset {
    /// Loaded by every page; the others are loaded by those who need them.
    pub(crate) fn is_module(&self) -> bool {
        self.name.ends_with(".js") && !matches!(self.name, "theme.js" | "signin.js")
    }
}

macro_rules! files {
    ($($name:literal)+) => {
        [$(($name, include_bytes!(concat!("../assets/", $name)).as_slice())),+]
    };
}

static ASSETS: LazyLock<(Vec<Asset>, String)> = LazyLock::new(|| {
    let files = files![
        "tokens.css" "base.css" "board.css" "fleet.css" "report.css" "task.css" "diff.css"
        "theme.js" "app.js" "act.js" "assign.js" "bell.js" "board.js" "diff.js" "edit.js" "key.js" "live.js" "morph.js" "output.js" "palette.js" "pick.js" "report.js" "time.js"
        "signin.js"
        "icon.svg" "icons.svg"
    ];
    let mut digest = Sha256::new();
    for (name, plain) in files {
        digest.update(name);
        digest.update(plain);
    }
    let version = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let assets = files.map(|(name, plain)| Asset {
        name,
        kind: kind(name),
        plain,
        gzip: gzip(plain, Compression::best()),
    });
    (assets.into(), version)
});

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// All that pages load.
pub fn all() -> &'static [Asset] {
    &ASSETS.0
}

/// The part of the address that changes whenever one of them does.
pub fn version() -> &'static str {
    &ASSETS.1
}

pub fn find(version: &str, name: &str) -> Option<&'static Asset> {
    ASSETS.0.iter().find(|asset| version == ASSETS.1 && asset.name == name)
}

/// Where a page finds a file.
pub fn address(name: &str) -> String {
    format!("/assets/{}/{name}", ASSETS.1)
}

/// For what is sent once: quickly.
pub fn gzip_fast(bytes: &[u8]) -> Vec<u8> {
    gzip(bytes, Compression::fast())
}

fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), level);
    // Writing into memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
