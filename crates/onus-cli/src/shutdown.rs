//! The end of a loop: an interruption lets the round at work finish, a second one does not.

use onus_core::code::Code;
use onus_core::refusal::Refusal;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Told by SIGINT and SIGTERM.
#[derive(Debug)]
pub(crate) struct Ending {
    told: UnixStream,
}

impl Ending {
    pub(crate) fn watch() -> Result<Ending, Refusal> {
        Ending::register().map_err(|error| Refusal::new(Code::Internal, error.to_string()))
    }

    fn register() -> io::Result<Ending> {
        let (told, teller) = UnixStream::pair()?;
        let is_ending = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag down, raises it and is told; the second finds it up.
            flag::register_conditional_default(signal, Arc::clone(&is_ending))?;
            flag::register(signal, Arc::clone(&is_ending))?;
            pipe::register(signal, teller.try_clone()?)?;
        }
        Ok(Ending { told })
    }

    /// Waits so long, or until the end is asked for; whether it was.
    pub(crate) fn within(&mut self, wait: Duration) -> bool {
        // A timeout of nothing would mean to wait for ever.
        let wait = wait.max(Duration::from_millis(1));
        if self.told.set_read_timeout(Some(wait)).is_err() {
            return true;
        }
        match self.told.read(&mut [0]) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.within(wait),
            Err(_) => false,
        }
    }
}
