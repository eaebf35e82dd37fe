//! Lease and fence (mission B1, B3, B5; rules.md "Lease and fence").
//!
//! A lease says until when its holder is believed to be alive; the fence (epoch and lease id) says whether a caller
//! is that holder. Expiry alone takes nothing away: it only permits somebody else to take over.

use crate::event::Renewal;
use crate::hash::{Digest, decode_hex, encode_hex};
use crate::id::{Epoch, Generation};
use crate::process::{Death, Process, Vital};
use crate::time::{Millis, Now, Tick, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// 128 random bits that only the holder knows. The ledger, which is exported, sees only its seal.
#[derive(Clone, Eq)]
pub struct LeaseId {
    seal: [u8; 16],
    secret: Option<[u8; 16]>,
}

impl LeaseId {
    pub fn new(secret: [u8; 16]) -> LeaseId {
        LeaseId { seal: seal(&secret), secret: Some(secret) }
    }

    /// Present where the id was drawn or read from the row; absent where it was read from the ledger.
    pub fn secret(&self) -> Option<&[u8; 16]> {
        self.secret.as_ref()
    }
}

fn seal(secret: &[u8; 16]) -> [u8; 16] {
    let digest = Digest::of(secret);
    std::array::from_fn(|i| digest.0[i])
}

impl PartialEq for LeaseId {
    fn eq(&self, other: &LeaseId) -> bool {
        self.seal == other.seal
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lease:{}", encode_hex(&self.seal))
    }
}

impl Serialize for LeaseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode_hex(&self.seal))
    }
}

impl<'de> Deserialize<'de> for LeaseId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        let mut seal = [0; 16];
        if decode_hex(&text, &mut seal) {
            Ok(LeaseId { seal, secret: None })
        } else {
            Err(serde::de::Error::custom("not a lease's seal"))
        }
    }
}

/// What a holder shows with every write: `generation.epoch.lease_id`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub generation: Generation,
    pub epoch: Epoch,
    pub lease: [u8; 16],
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.generation, self.epoch, encode_hex(&self.lease))
    }
}

impl fmt::Debug for Token {
    /// A token in a log is a token lost: only its public half is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.…", self.generation, self.epoch)
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "the lease token has not the form GENERATION.EPOCH.ID".to_owned();
        let mut parts = text.splitn(3, '.');
        let mut number = || -> Option<i64> {
            let part = parts.next()?;
            part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?
        };
        let (generation, epoch) = (number().ok_or_else(bad)?, number().ok_or_else(bad)?);
        let mut lease = [0; 16];
        if !decode_hex(parts.next().ok_or_else(bad)?, &mut lease) {
            return Err(bad());
        }
        Ok(Token { generation, epoch, lease })
    }
}

/// How long the holder of an assignment is believed to be alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub id: LeaseId,
    pub ttl: Millis,
    /// What people see.
    pub renewed_at: Timestamp,
    /// What decides expiry.
    pub tick: Tick,
    pub renewals: i64,
    /// What works under it, where that is supervised.
    pub process: Option<Process>,
}

/// Whether a lease still stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Live {
        left: Millis,
    },
    Expired {
        by: Millis,
    },
    /// The holder's host has booted since: whatever held it is gone.
    HolderRebooted,
}

impl Lease {
    pub fn expires_at(&self) -> Timestamp {
        self.renewed_at.plus(self.ttl)
    }

    pub fn standing(&self, now: &Now) -> Standing {
        let same_host = self.tick.host == now.tick.host;
        let age = match (same_host, self.tick.boot == now.tick.boot) {
            (true, true) => now.tick.millis.saturating_sub(self.tick.millis),
            (true, false) => return Standing::HolderRebooted,
            // Two hosts share no monotonic clock; the grace period absorbs the difference of their wall clocks.
            (false, _) => now.wall.0.saturating_sub(self.renewed_at.0),
        };
        let left = self.ttl.0.saturating_sub(age);
        if left > 0 { Standing::Live { left: Millis(left) } } else { Standing::Expired { by: Millis(-left) } }
    }

    /// Renewed when a third of it is over, a lease survives two renewals that fail.
    pub fn is_renewal_due(&self, now: &Now) -> bool {
        match self.standing(now) {
            Standing::Live { left } => left.0 <= self.ttl.0 / 3 * 2,
            Standing::Expired { .. } | Standing::HolderRebooted => true,
        }
    }

    /// How late an act of the holder is; `None` while the lease is live.
    pub fn late_by(&self, now: &Now) -> Option<Millis> {
        match self.standing(now) {
            Standing::Live { .. } => None,
            Standing::Expired { by } => Some(by),
            Standing::HolderRebooted => Some(now.wall.since(self.expires_at())),
        }
    }

    /// Expired and past the grace period, or its holder is proven dead.
    pub fn may_be_taken_over(&self, now: &Now, grace: Millis, vital: Vital) -> bool {
        self.death(now, vital).is_some()
            || matches!(self.standing(now), Standing::Expired { by } if by >= grace)
    }

    /// The proof that whatever held it is gone.
    pub fn death(&self, now: &Now, vital: Vital) -> Option<Death> {
        Death::proven(&self.tick, now, vital)
    }

    #[must_use]
    pub fn renewed(&self, at: Timestamp, renewal: &Renewal) -> Lease {
        let kept = self.process.clone().filter(|_| !renewal.alone);
        Lease {
            id: self.id.clone(),
            ttl: renewal.ttl().unwrap_or(self.ttl),
            renewed_at: at,
            tick: renewal.tick.clone(),
            renewals: self.renewals + 1,
            process: renewal.process.clone().or(kept),
        }
    }

    pub fn is_opened_by(&self, token: &Token) -> bool {
        self.id == LeaseId::new(token.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(host: &str, boot: &str, tick: i64, wall: i64) -> Now {
        Now { wall: Timestamp(wall), tick: Tick { host: host.into(), boot: boot.into(), millis: tick } }
    }

    fn lease() -> Lease {
        let granted = now("a", "1", 1_000, 50_000);
        Lease {
            id: LeaseId::new([7; 16]),
            ttl: Millis(100),
            renewed_at: granted.wall,
            tick: granted.tick,
            renewals: 0,
            process: None,
        }
    }

    #[test]
    fn wall_clock_jumps_change_nothing_on_one_host() {
        for jump in [-86_400_000, -3_600_000, 0, 3_600_000, 86_400_000] {
            assert_eq!(
                lease().standing(&now("a", "1", 1_099, 50_000 + jump)),
                Standing::Live { left: Millis(1) }
            );
            assert_eq!(
                lease().standing(&now("a", "1", 1_100, 50_000 + jump)),
                Standing::Expired { by: Millis(0) }
            );
        }
    }

    #[test]
    fn a_reboot_of_the_holders_host_proves_it_dead() {
        assert_eq!(lease().standing(&now("a", "2", 5, 50_001)), Standing::HolderRebooted);
        assert!(lease().may_be_taken_over(&now("a", "2", 5, 50_001), Millis::hours(1), Vital::Unknown));
    }

    #[test]
    fn a_process_that_is_gone_proves_it_too_and_one_that_lives_proves_nothing() {
        let now = now("a", "1", 1_001, 50_001);
        for (vital, death) in
            [(Vital::Unknown, None), (Vital::Lives, None), (Vital::Gone, Some(Death::ProcessGone))]
        {
            assert_eq!(lease().death(&now, vital), death);
            assert_eq!(lease().may_be_taken_over(&now, Millis::hours(1), vital), death.is_some());
        }
    }

    #[test]
    fn another_host_goes_by_the_wall_clock() {
        assert_eq!(lease().standing(&now("b", "9", 1, 50_099)), Standing::Live { left: Millis(1) });
        assert_eq!(lease().standing(&now("b", "9", 1, 50_130)), Standing::Expired { by: Millis(30) });
    }

    #[test]
    fn a_lease_is_renewed_when_a_third_is_over() {
        for (tick, due) in [(1_000, false), (1_033, false), (1_034, true), (1_200, true)] {
            assert_eq!(lease().is_renewal_due(&now("a", "1", tick, 0)), due, "{tick}");
        }
        assert!(lease().is_renewal_due(&now("a", "2", 1_000, 0)));
    }

    #[test]
    fn grace_comes_after_expiry() {
        assert!(!lease().may_be_taken_over(&now("a", "1", 1_149, 0), Millis(50), Vital::Lives));
        assert!(lease().may_be_taken_over(&now("a", "1", 1_150, 0), Millis(50), Vital::Lives));
    }

    #[test]
    fn tokens_read_back_and_nothing_else_parses() {
        let token = Token { generation: 1, epoch: 12, lease: [0xab; 16] };
        assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        for bad in [
            "",
            "1.2",
            "1.2.",
            "1.2.zz",
            "-1.2.abababababababababababababababab",
            "1.2.ABABABABABABABABABABABABABABABAB",
            "+1.2.abababababababababababababababab",
        ] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
        assert_eq!(format!("{token:?}"), "1.12.…");
        let sealed = format!("{:?}", LeaseId::new(token.lease));
        assert!(sealed.starts_with("lease:") && sealed.len() == 38 && !sealed.contains("abab"), "{sealed}");
    }
}
