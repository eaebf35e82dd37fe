//! Links the released program as one image at a fixed place, with the C library in it (ADR 19).
//!
//! A one-shot call lasts a few milliseconds. To find shared libraries and to correct tens of thousands of addresses took a
//! fifth of them, at every call. Other builds have a fixed place as well, where tests start the program by the thousand, and the
//! C library beside them, where tests put another clock in its place. `ONUS_LINK=dynamic` links as usual.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What rustc asks the linker for by name, and the archives that take its place.
const IN_PLACE_OF: &[(&str, &str)] = &[
    ("libgcc_s.so", "GROUP(-l:libgcc_eh.a -l:libgcc.a -l:libc.a)\n"),
    ("libc.so", "GROUP(-l:libc.a -l:libgcc_eh.a -l:libgcc.a)\n"),
    ("libm.so", "INPUT(-l:libm.a)\n"),
];

fn main() -> io::Result<()> {
    let mut cargo = io::stdout().lock();
    writeln!(cargo, "cargo:rerun-if-changed=build.rs\ncargo:rerun-if-env-changed=ONUS_LINK")?;
    if !is_for_glibc() {
        return Ok(());
    }
    writeln!(cargo, "cargo:rustc-link-arg-bins=-no-pie")?;
    if !(env::var("PROFILE").is_ok_and(|profile| profile == "release") && has_archives()) {
        return Ok(());
    }
    // The linker reads a text in place of a library as instructions: this is what rustc's own `crt-static` comes to,
    // which cannot be asked for without building every procedural macro that way as well.
    let scripts = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for (name, script) in IN_PLACE_OF {
        fs::write(scripts.join(name), script)?;
    }
    for argument in [&format!("-L{}", scripts.display()), "-static"] {
        writeln!(cargo, "cargo:rustc-link-arg-bins={argument}")?;
    }
    Ok(())
}

fn is_for_glibc() -> bool {
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var("TARGET").ok() == env::var("HOST").ok()
        && !is("ONUS_LINK", "dynamic")
}

/// Some distributions have the archives in a package of their own. Without them the program is only slower.
fn has_archives() -> bool {
    ["libc.a", "libm.a", "libgcc_eh.a"].iter().all(|archive| {
        let found = Command::new("cc").arg(format!("-print-file-name={archive}")).output();
        found.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_absolute())
    })
}
