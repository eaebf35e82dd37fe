//! A server that hears what it is sent, and fails as often as a test wants.

use super::Site;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request that arrived whole.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> &str {
        let is_it =
            |line: &&str| line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name));
        self.head.lines().find(is_it).and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value)
    }
}

/// What becomes of a request, by its number.
pub(crate) type Fate = fn(usize) -> &'static str;

pub(crate) const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
pub(crate) const BROKEN: &str = "HTTP/1.1 500 Broken\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
pub(crate) const REFUSED: &str = "HTTP/1.1 422 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// It is taken, and nobody hears of that.
pub(crate) const LOST: &str = "";

#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) port: u16,
    /// Those that it took, in their order.
    taken: Arc<Mutex<Vec<Heard>>>,
}

impl Receiver {
    pub(crate) fn start(fate: Fate) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&taken);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                // How a connection ends is for whoever asked to see.
                drop(hear(stream, fate(number), &kept));
            }
        });
        Receiver { port, taken }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(crate) fn taken(&self) -> Vec<Heard> {
        self.taken.lock().unwrap().clone()
    }
}

fn hear(mut stream: TcpStream, answer: &str, kept: &Mutex<Vec<Heard>>) -> std::io::Result<()> {
    let heard = read_request(&mut stream)?;
    if answer != BROKEN && answer != REFUSED {
        kept.lock().unwrap().push(heard);
    }
    stream.write_all(answer.as_bytes())
}

/// A whole request.
pub(crate) fn read_request(stream: &mut TcpStream) -> std::io::Result<Heard> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let head = end.map(|end| String::from_utf8_lossy(&bytes[..end]).into_owned());
        let length = head.as_ref().and_then(|head| {
            head.lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok())
        });
        if let (Some(end), Some(head)) = (end, head)
            && bytes.len() >= end + 4 + length.unwrap_or(0)
        {
            return Ok(Heard { head, body: String::from_utf8_lossy(&bytes[end + 4..]).into_owned() });
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

/// What a desktop has in place of a server: where it lies, and what it was told.
pub(crate) fn desktop(site: &Site) -> (PathBuf, PathBuf) {
    let (bin, said) = (site.root().join("bin"), site.root().join("said"));
    std::fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >>'{}'\n", said.display());
    std::fs::write(bin.join("notify-send"), script).unwrap();
    std::fs::set_permissions(bin.join("notify-send"), std::fs::Permissions::from_mode(0o755)).unwrap();
    (bin, said)
}
