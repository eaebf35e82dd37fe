//! The examples as files, for the fuzzers of `fuzz/` to begin with.

use super::{Doors, TARGETS};
use std::fs;
use std::io::Result;
use std::path::Path;

/// One directory for each target of `fuzz/`, as `cargo fuzz run` looks for them below `fuzz/corpus`.
pub fn write(into: &Path) -> Result<()> {
    let parsers = TARGETS.iter().zip(0..).flat_map(|(target, which): (_, u8)| {
        target.examples.iter().map(move |example| [&[which], example.as_bytes()].concat())
    });
    fill(&into.join("parsers"), parsers)?;
    fill(&into.join("requests"), Doors::examples().into_iter().map(String::into_bytes))?;
    fill(&into.join("imports"), Doors::files().iter().map(|file| file.as_bytes().to_vec()))
}

fn fill(directory: &Path, files: impl Iterator<Item = Vec<u8>>) -> Result<()> {
    fs::create_dir_all(directory)?;
    for (number, file) in files.enumerate() {
        fs::write(directory.join(format!("example-{number}")), file)?;
    }
    Ok(())
}
