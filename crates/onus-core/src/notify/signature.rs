//! Signatures as Standard Webhooks has them (standardwebhooks.com, version 1): HMAC-SHA256 over `ID.SECONDS.BODY`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The value of `webhook-signature`. A secret that begins with `whsec_` is base64 behind that; any other is its own bytes.
pub fn signature(secret: &[u8], id: &str, seconds: i64, body: &[u8]) -> Result<String, String> {
    let key = match secret.strip_prefix(b"whsec_") {
        Some(encoded) => {
            STANDARD.decode(encoded).map_err(|_| "the secret behind whsec_ is not base64".to_owned())?
        }
        None => secret.to_vec(),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| error.to_string())?;
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own libraries.
    #[test]
    fn the_specifications_example() {
        let made = signature(
            b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(made.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(signature(b"whsec_***", "a", 1, b"").is_err());
        assert_ne!(signature(b"secret", "a", 1, b"x"), signature(b"secret", "b", 1, b"x"));
    }
}
