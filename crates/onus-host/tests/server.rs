//! A small HTTP server with good and bad manners.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    /// Answers that are being given.
    open: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let open = Arc::new(AtomicUsize::new(0));
        let server =
            Server { address, asked: Arc::clone(&asked), over: Arc::clone(&over), open: Arc::clone(&open) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let (asked, over, open) = (Arc::clone(&asked), Arc::clone(&over), Arc::clone(&open));
                open.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || {
                    // The other end may leave at any time; that is its right.
                    let _ = answer(&stream, &asked, &over);
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The paths that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Whether every client goes away in the end; an answer without end is over when nobody takes it any more.
    pub(crate) fn is_left_alone(&self) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        while self.open.load(Ordering::Relaxed) > 0 {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(mut stream: &TcpStream, asked: &Mutex<Vec<String>>, over: &AtomicBool) -> std::io::Result<()> {
    let mut request = BufReader::new(stream);
    let mut first = String::new();
    request.read_line(&mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    asked.lock().unwrap().push(path.clone());
    let json = "Content-Type: application/json\r\n";
    match path.as_str() {
        "/ok" => whole(stream, "200 OK", json, r#"{"db":{"state":"up"}}"#),
        "/text" => whole(stream, "200 OK", "", "all is well"),
        "/down" => whole(stream, "503 Service Unavailable", "", "down"),
        "/moved" => whole(stream, "302 Found", "Location: /ok\r\n", ""),
        "/_localstack/health" => {
            let services = r#"{"services":{"s3":"running","sqs":"available","sns":"disabled"}}"#;
            whole(stream, "200 OK", json, services)
        }
        "/broken" => stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        "/huge" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\"")?;
            repeat(stream, &[b'x'; 65_536], Duration::ZERO, over)
        }
        "/slow-head" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Wait: ")?;
            repeat(stream, b"x", Duration::from_millis(20), over)
        }
        "/slow-body" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\"")?;
            repeat(stream, b"x", Duration::from_millis(20), over)
        }
        "/silent" => stream.read(&mut [0]).map(|_| ()),
        _ => whole(stream, "404 Not Found", "", ""),
    }
}

fn whole(mut stream: &TcpStream, status: &str, headers: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn repeat(mut stream: &TcpStream, bytes: &[u8], pause: Duration, over: &AtomicBool) -> std::io::Result<()> {
    while !over.load(Ordering::Relaxed) {
        stream.write_all(bytes)?;
        std::thread::sleep(pause);
    }
    Ok(())
}
