//! Where a password comes from when the address has none: `PGPASSWORD`, else a line of `PGPASSFILE` or `~/.pgpass`.

use super::address::Address;
use crate::error::{Result, StoreError};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The address with a password, where there is one to be found.
pub(super) fn completed(address: &Address) -> Result<Config> {
    let mut config = address.config.clone();
    if config.get_password().is_some() {
        return Ok(config);
    }
    if let Some(password) = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty()) {
        config.password(password);
    } else if let Some(password) = in_file(&config)? {
        config.password(password);
    }
    Ok(config)
}

fn file() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pgpass")))
}

fn in_file(config: &Config) -> Result<Option<String>> {
    let Some(path) = file() else { return Ok(None) };
    let Ok(metadata) = std::fs::metadata(&path) else { return Ok(None) };
    // libpq ignores such a file, and says so where nobody looks.
    if metadata.mode() & 0o077 != 0 {
        return Err(StoreError::Unavailable {
            detail: format!("others can read the passwords in {}", path.display()),
            hint: Some(format!("chmod 600 {}", path.display())),
        });
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| StoreError::unavailable(format!("{}: {error}", path.display())))?;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let asked = [
        host.as_str(),
        &port,
        config.get_dbname().unwrap_or_default(),
        config.get_user().unwrap_or_default(),
    ];
    Ok(text.lines().find_map(|line| matching(line, &asked)))
}

/// `host:port:database:user:password`; `*` is any, a backslash takes the next character as it is.
fn matching(line: &str, asked: &[&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => fields.last_mut()?.extend(characters.next()),
            ':' if fields.len() < 5 => fields.push(String::new()),
            _ => fields.last_mut()?.push(c),
        }
    }
    let [known @ .., password] = fields.as_slice() else { return None };
    let fits =
        known.len() == 4 && known.iter().zip(asked).all(|(field, asked)| field == "*" || field == asked);
    fits.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::matching;

    #[test]
    fn a_line_fits_or_does_not() {
        let asked = ["db", "5432", "team", "ada"];
        for (line, password) in [
            ("db:5432:team:ada:hush", Some("hush")),
            ("*:*:*:*:a:b\\:c", Some("a:b:c")),
            ("db:5432:team:bob:hush", None),
            ("# db:5432:team:ada:hush", None),
            ("db:5432:team:ada", None),
            ("", None),
        ] {
            assert_eq!(matching(line, &asked).as_deref(), password, "{line}");
        }
    }
}
