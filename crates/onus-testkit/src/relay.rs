//! A port of one's own in front of a server that others use too: it can go down for one test alone.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};

#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    /// Both ends of every connection; none when it is down.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn to(server: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let connections = Arc::clone(&open);
        let accepting = spawn(move || {
            for client in listener.incoming() {
                let mut connections = connections.lock().unwrap();
                let (Some(open), Ok(client)) = (connections.as_mut(), client) else { return };
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                open.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                spawn(move || pass(client, server));
                spawn(move || pass(forth, back));
            }
        });
        Relay { port, open, accepting: Some(accepting) }
    }

    /// Nobody listens any more, and every connection is cut.
    pub(crate) fn stop(&mut self) {
        let Some(open) = self.open.lock().unwrap().take() else { return };
        for end in open {
            drop(end.shutdown(Shutdown::Both));
        }
        // Whoever waits for the next connection gets one, and sees that it is over.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}
