//! Keys of a terminal, one by one and without an echo, for a page that changes before one's eyes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, stdin};
use std::time::Duration;

/// A terminal that gives each key at once. It is put back as it was at the end.
#[derive(Debug)]
pub struct Keys {
    before: Termios,
}

impl Keys {
    /// None where standard input is no terminal.
    pub fn listen() -> io::Result<Option<Keys>> {
        if !stdin().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let mut now = before.clone();
        // Without signals: whoever is stopped in the middle would leave the terminal as it is now.
        now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(stdin(), OptionalActions::Now, &now)?;
        Ok(Some(Keys { before }))
    }

    /// What was typed within this time; nothing where it passed, or a signal came.
    pub fn within(&self, wait: Duration) -> io::Result<Vec<u8>> {
        let mut typed = vec![0; 64];
        let keyboard = stdin();
        let mut look = [PollFd::new(&keyboard, PollFlags::IN)];
        let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
        match poll(&mut look, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let count = rustix::io::read(&keyboard, &mut typed)?;
        // The terminal is gone.
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        typed.truncate(count);
        Ok(typed)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
