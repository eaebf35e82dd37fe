//! A listener at a server's events.

use super::server::Server;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

/// The numbers of the entries that are told, beginning behind `after`. A silence of a minute ends them.
pub(crate) fn listen(server: &Server, token: &str, after: i64) -> impl Iterator<Item = i64> + use<> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(super::HANG)).unwrap();
    let head = format!(
        "GET /v1/events?after={after} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    BufReader::new(stream)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("id: ")?.trim().parse::<i64>().ok())
}
