//! Secrets that a setting names and never holds: an environment variable, or a file.

use crate::file::{read_capped, shown};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::path::Path;

/// Shorter ones are guessed.
const LENGTH_MIN: usize = 16;
const LENGTH_MAX: usize = 4_096;

/// Bytes that no log and no message shows.
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Reads a secret anew, so that one that was changed counts at once. A relative file lies below `root`; the line end
/// that editors leave is no part of it.
pub fn read(what: &str, variable: Option<&str>, file: Option<&str>, root: &Path) -> Result<Secret, Refusal> {
    let secret = read_any(what, variable, file, root)?;
    if secret.0.len() < LENGTH_MIN {
        let detail = format!("the secret of {what} has fewer than {LENGTH_MIN} bytes");
        return Err(Refusal::new(Code::NotPermitted, detail).hint("make one: openssl rand -hex 32"));
    }
    Ok(secret)
}

/// One that somebody else made, however long it is.
pub fn read_any(
    what: &str,
    variable: Option<&str>,
    file: Option<&str>,
    root: &Path,
) -> Result<Secret, Refusal> {
    let unusable = |detail: String| Refusal::new(Code::NotPermitted, detail);
    let bytes = match (variable, file) {
        (Some(name), None) => {
            std::env::var_os(name).map(|value| value.into_encoded_bytes()).ok_or_else(|| {
                unusable(format!("{what} has no secret: {name} is not set where the server runs"))
            })
        }
        (None, Some(file)) => {
            let path = root.join(file);
            read_capped(&path, LENGTH_MAX)
                .map_err(|error| unusable(format!("{what} has no secret: {}: {error}", shown(&path))))
        }
        (None, None) => Err(unusable(format!("{what} has no secret: it takes nothing in"))
            .hint("set secret_env or secret_file in onus.yaml")),
        (Some(_), Some(_)) => Err(Refusal::invalid(format!("{what} has two secrets"))
            .hint("keep secret_env or secret_file in onus.yaml, not both")),
    }?;
    let text = bytes.strip_suffix(b"\n").map_or(&bytes[..], |text| text.strip_suffix(b"\r").unwrap_or(text));
    Ok(Secret(text.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_one_place_and_some_length() {
        let dir = tempfile::tempdir().unwrap();
        let put = |text: &str| std::fs::write(dir.path().join("secret"), text).unwrap();
        let read = |variable, file| read("the channel x", variable, file, dir.path());
        put("0123456789abcdef\n");
        assert_eq!(read(None, Some("secret")).unwrap().reveal(), b"0123456789abcdef");
        assert!(!format!("{:?}", read(None, Some("secret")).unwrap()).contains("0123"));
        put("short\n");
        assert_eq!(read(None, Some("secret")).unwrap_err().code, Code::NotPermitted);
        assert_eq!(read(None, Some("gone")).unwrap_err().code, Code::NotPermitted);
        assert_eq!(read(Some("ONUS_NO_SUCH_SECRET"), None).unwrap_err().code, Code::NotPermitted);
        assert_eq!(read(None, None).unwrap_err().code, Code::NotPermitted);
        assert_eq!(read(Some("A"), Some("b")).unwrap_err().code, Code::InvalidInput);
    }
}
