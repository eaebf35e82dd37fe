//! Who was outrun again and again on the way to the main branch gets a turn of its own: nobody else of this clone begins another
//! attempt until it is over. The lock ends with its process.

use crate::file::refused;
use onus_core::refusal::Refusal;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions, create_dir_all};
use std::io;
use std::path::Path;

/// Held until the landing is over.
#[derive(Debug)]
pub struct LandingTurn {
    _file: File,
}

impl LandingTurn {
    /// Waits for whoever has it.
    pub fn take(common_dir: &Path) -> Result<LandingTurn, Refusal> {
        let dir = common_dir.join("onus");
        let path = dir.join("landing");
        let opened = create_dir_all(&dir)
            .and_then(|()| OpenOptions::new().write(true).create(true).truncate(false).open(&path));
        let file = opened.map_err(|error| refused("open", &path, &error))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| refused("lock", &path, &io::Error::from(error)))?;
        Ok(LandingTurn { _file: file })
    }
}
