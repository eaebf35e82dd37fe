//! HTTP/2: agreed on by TLS, or spoken without asking; with the limits that hold for everybody.

use crate::support::server::Server;
use crate::support::{HANG, Site};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Whether there is a curl that speaks HTTP/2.
fn has_curl() -> bool {
    let said = Command::new("curl").arg("--version").output().map(|out| out.stdout).unwrap_or_default();
    let has = String::from_utf8_lossy(&said).contains("HTTP2");
    if !has {
        eprintln!("skipped: there is no curl with HTTP/2 here");
    }
    has
}

/// The version that was spoken and the status, then the headers.
fn curl(args: &[&str]) -> String {
    let told = Command::new("curl")
        .args(["--silent", "--max-time", "20", "--output", "/dev/null", "--dump-header", "-"])
        .args(["--write-out", "%{http_version} %{http_code}\n"])
        .args(args)
        .output()
        .unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let (headers, line) = told.trim_end().rsplit_once('\n').unwrap_or(("", told.trim_end()));
    format!("{line}\n{headers}")
}

fn spoken(args: &[&str]) -> String {
    curl(args).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn tls_agrees_on_a_version() {
    let site = Site::new();
    let Some((certificate, key)) = site.certificate().filter(|_| has_curl()) else { return };
    let bearer = format!("authorization: Bearer {}", site.token(&site.person));
    let args = ["--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
    let server = Server::start_with(&site, &args);
    let (ready, signin) = (format!("{}/v1/ready", server.url), format!("{}/signin", server.url));
    let ask = |more: &[&str]| spoken(&[&["--cacert", &certificate, "-H", &bearer, &ready], more].concat());
    assert_eq!(ask(&["--http2"]), "2 200");
    assert_eq!(ask(&["--http1.1"]), "1.1 200");
    assert_eq!(ask(&["--no-alpn"]), "1.1 200");
    // A browser signs in: the name of the server is a part of the address here, and has to be found all the same.
    let origin = format!("origin: {}", server.url);
    let form = format!("token={}", bearer.rsplit(' ').next().unwrap());
    let told = curl(&["--cacert", &certificate, "--http2", "-H", &origin, "--data", &form, &signin]);
    assert!(told.starts_with("2 303\n"), "{told}");
    let port = server.url.rsplit(':').next().unwrap();
    assert!(told.contains(&format!("set-cookie: onus-{port}=")), "{told}");
}

#[test]
fn who_knows_need_not_ask() {
    let site = Site::new();
    if !has_curl() {
        return;
    }
    let bearer = format!("authorization: Bearer {}", site.token(&site.person));
    let server = Server::start(&site);
    let ready = format!("{}/v1/ready", server.url);
    let ask = |more: &[&str]| spoken(&[&["--http2-prior-knowledge", "-H", &bearer, &ready], more].concat());
    assert_eq!(ask(&[]), "2 200");
    assert_eq!(ask(&["-H", "host: evil.example"]), "2 403", "only names of the server are answered");
    assert_eq!(ask(&["-H", "content-type: application/json", "--data", "{}"]), "2 405");
    let long = format!("x-long: {}", "y".repeat(60_000));
    assert_eq!(ask(&["-H", &long]), "2 431");
    let short = format!("x-short: {}", "y".repeat(20_000));
    assert_eq!(ask(&["-H", &short]), "2 200");
}

/// A refusal is known before the body has come; the caller sends it all the same, and has to hear the answer.
#[test]
fn no_answer_is_lost_with_an_unread_body() {
    let site = Site::new();
    let server = Server::start(&site);
    let body = vec![b'x'; 1_500_000];
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    let head =
        format!("POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"HTTP/1.1 401");
    if !has_curl() {
        return;
    }
    let (file, tasks) = (site.root().join("body"), format!("{}/v1/tasks", server.url));
    std::fs::write(&file, &body).unwrap();
    let data = format!("@{}", file.display());
    for _ in 0..10 {
        assert_eq!(spoken(&["--http2-prior-knowledge", "--data-binary", &data, &tasks]), "2 401");
    }
}

/// The first frame of the server says what it allows.
#[test]
fn limits_are_told_and_kept() {
    let site = Site::new();
    let server = Server::start_with(&site, &["--listen", "127.0.0.1:0", "--patience", "1s"]);
    let connect = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let mut stream = connect(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4, "SETTINGS: {head:?}");
    let mut settings = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    stream.read_exact(&mut settings).unwrap();
    let value = |id: u8| {
        let found = settings.chunks(6).find(|one| one[1] == id).unwrap();
        u32::from_be_bytes(found[2..].try_into().unwrap())
    };
    assert_eq!((value(3), value(6)), (128, 32 * 1024), "streams, and the size of headers");
    // Somebody listens meanwhile, and asks nothing else.
    let bearer = format!("authorization: Bearer {}", site.token(&site.person));
    let listening = has_curl().then(|| listener(&server, &bearer));
    // Who asks nothing is let go; so is who begins and does not go on.
    for mut silent in [stream, connect(b"P"), connect(b"PR"), connect(b"PRI * HT"), connect(b"")] {
        // Closed or reset: what was sent and never read is the system's to complain about.
        let ended = silent.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(_) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
    }
    if let Some((mut curl, heard)) = listening {
        site.add("heard all the same");
        assert!(heard.lines().any(|line| line.unwrap().contains("heard all the same")));
        curl.kill().unwrap();
        curl.wait().unwrap();
    }
}

/// Somebody who listens to events, and has heard the first.
fn listener(server: &Server, bearer: &str) -> (Child, BufReader<ChildStdout>) {
    let mut curl = Command::new("curl")
        .args(["--silent", "--no-buffer", "--http2-prior-knowledge", "-H", bearer, "-H", "last-event-id: 0"])
        .arg(format!("{}/v1/events", server.url))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = BufReader::new(curl.stdout.take().unwrap());
    let mut line = String::new();
    heard.read_line(&mut line).unwrap();
    assert!(!line.is_empty());
    (curl, heard)
}

/// What lasts for ever ends with the server, and nobody is cut off.
#[test]
fn the_end_of_the_server_is_told() {
    let site = Site::new();
    if !has_curl() {
        return;
    }
    let bearer = format!("authorization: Bearer {}", site.token(&site.person));
    let server = Server::start(&site);
    let (mut curl, mut heard) = listener(&server, &bearer);
    server.signal("TERM");
    assert!(server.wait());
    let mut rest = String::new();
    heard.read_to_string(&mut rest).unwrap();
    assert!(curl.wait().unwrap().success(), "the stream was ended, not broken");
}
