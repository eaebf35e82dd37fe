//! A server seen through a line that can fail in the ways lines do: one request, one connection.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What becomes of the next requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Nobody answers at all.
    Refused,
    /// The server is out of order.
    Error500,
    /// The request arrives and is carried out; its answer is lost.
    LostAnswer,
    /// It takes no change: one field of it is wrong.
    Unprocessable,
    /// The answer takes its time.
    Slow(Duration),
}

#[derive(Debug)]
pub struct FaultProxy {
    pub port: u16,
    /// What is wrong with it, and how many requests have met that.
    fault: Arc<Mutex<(Fault, usize)>>,
}

impl FaultProxy {
    pub fn to(server: u16) -> FaultProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let fault = Arc::new(Mutex::new((Fault::None, 0)));
        let present = Arc::clone(&fault);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let present = Arc::clone(&present);
                // How a connection ends is the test's affair: whoever asks sees it.
                std::thread::spawn(move || drop(pass(client, server, &present)));
            }
        });
        FaultProxy { port, fault }
    }

    pub fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = (fault, 0);
    }

    /// How many requests have met the present fault.
    pub fn met(&self) -> usize {
        self.fault.lock().unwrap().1
    }
}

fn pass(mut client: TcpStream, server: u16, present: &Mutex<(Fault, usize)>) -> std::io::Result<()> {
    let request = read_request(&mut client)?;
    let is_change = !request.starts_with(b"GET ");
    let fault = {
        let mut present = present.lock().unwrap();
        let is_met = present.0 != Fault::Unprocessable || is_change;
        present.1 += usize::from(is_met);
        if is_met { present.0 } else { Fault::None }
    };
    match fault {
        Fault::Refused => return Ok(()),
        Fault::Error500 => {
            return client
                .write_all(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        Fault::Unprocessable => {
            let body = r#"{"errors":["Agent Name is invalid"]}"#;
            return write!(
                client,
                "HTTP/1.1 422 No\r\ncontent-type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
        Fault::Slow(pause) => std::thread::sleep(pause),
        Fault::None | Fault::LostAnswer => {}
    }
    let mut upstream = TcpStream::connect(("127.0.0.1", server))?;
    upstream.write_all(&request)?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    if fault == Fault::LostAnswer {
        return Ok(());
    }
    client.write_all(&answer)
}

/// A whole request, which asks for the end of the connection after its answer.
fn read_request(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        match client.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    while bytes.len() < head + length.unwrap_or(0_usize) {
        match client.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
    let kept: String = String::from_utf8_lossy(&bytes[..head - 2])
        .lines()
        .filter(|line| !line.to_lowercase().starts_with("connection:"))
        .map(|line| format!("{line}\r\n"))
        .collect();
    let mut request = format!("{kept}Connection: close\r\n\r\n").into_bytes();
    request.extend_from_slice(&bytes[head..]);
    Ok(request)
}
