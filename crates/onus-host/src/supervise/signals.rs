//! Signals as something to be read.

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

/// What asks this process to end, kept until somebody reads it.
#[derive(Debug)]
pub struct Signals {
    pipes: Vec<(Signal, UnixStream)>,
}

impl Signals {
    pub fn watch() -> io::Result<Signals> {
        let mut pipes = Vec::new();
        for (signal, number) in [(Signal::INT, SIGINT), (Signal::TERM, SIGTERM), (Signal::HUP, SIGHUP)] {
            let (reader, writer) = UnixStream::pair()?;
            reader.set_nonblocking(true)?;
            pipe::register(number, writer)?;
            pipes.push((signal, reader));
        }
        Ok(Signals { pipes })
    }

    /// What has come since the last call.
    pub(super) fn received(&mut self) -> Vec<Signal> {
        let mut all = Vec::new();
        for (signal, pipe) in &mut self.pipes {
            let mut bytes = [0; 16];
            // An error means that nothing has come.
            let count = pipe.read(&mut bytes).unwrap_or(0);
            all.extend(std::iter::repeat_n(*signal, count));
        }
        all
    }
}
