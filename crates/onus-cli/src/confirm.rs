//! A question to whoever sits at the terminal.

use std::io::{BufRead, IsTerminal, Write};

/// Yes or no; nothing where nobody could answer: a script is never asked. Only Enter means yes.
pub(crate) fn asked(question: &str) -> Option<bool> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return None;
    }
    let mut stderr = anstream::stderr().lock();
    write!(stderr, "{question} [Y/n] ").and_then(|()| stderr.flush()).ok()?;
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        // The terminal was closed: nobody has said yes.
        Ok(0) | Err(_) => Some(false),
        Ok(_) => Some(matches!(line.trim().to_lowercase().as_str(), "" | "y" | "yes")),
    }
}
