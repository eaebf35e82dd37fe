//! Time as the rules see it. Nothing here reads a clock: `Now` is an argument.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Wall-clock milliseconds since the Unix epoch; RFC 3339 UTC in every JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    #[must_use]
    pub fn plus(self, span: Millis) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }

    /// A moment as other systems write it: RFC 3339, or a day with or without a time, which is then taken as UTC. Zero
    /// times, which some tools write for none, are none.
    pub fn from_elsewhere(text: &str) -> Option<Timestamp> {
        let text = text.trim();
        let at = text.parse::<jiff::Timestamp>().ok().or_else(|| {
            let utc = |at: jiff::civil::DateTime| at.to_zoned(jiff::tz::TimeZone::UTC).ok();
            let at = text.trim_end_matches(" UTC").parse::<jiff::civil::DateTime>().ok().and_then(utc);
            at.map(|at| at.timestamp())
        })?;
        (at.as_millisecond() > 0).then(|| Timestamp(at.as_millisecond()))
    }

    /// The second in which this is.
    #[must_use]
    pub fn whole_second(self) -> Timestamp {
        Timestamp(self.0.div_euclid(1_000).saturating_mul(1_000))
    }

    /// How long after `earlier` this is; nothing when the clock went backwards.
    pub fn since(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).max(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(ts) => write!(f, "{ts:.3}"),
            Err(_) => write!(f, "invalid-time({})", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let ts: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Timestamp(ts.as_millisecond()))
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// A day of the calendar, without a zone: `2026-11-16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub jiff::civil::Date);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Date, String> {
        let bad = || format!("{} is not a day such as 2026-11-16", crate::id::shown(text));
        let date: jiff::civil::Date = text.parse().map_err(|_| bad())?;
        // One spelling for one day; and no year that the store's clock could not reach.
        if date.to_string() == text && (1970..=9999).contains(&date.year()) {
            Ok(Date(date))
        } else {
            Err(bad())
        }
    }
}

crate::serde_by_display!(Date);

impl schemars::JsonSchema for Date {
    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date"})
    }
}

/// A span of time in whole milliseconds. Written `15m`, `1h30m`, `90s`, `250ms`, `2d` by people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

impl Millis {
    pub const fn secs(n: i64) -> Millis {
        Millis(n * 1_000)
    }

    pub const fn minutes(n: i64) -> Millis {
        Millis(n * 60_000)
    }

    pub const fn hours(n: i64) -> Millis {
        Millis(n * 3_600_000)
    }

    /// The longest lease a person may ask for: a year. Anything longer is a typing error.
    pub const MAX: Millis = Millis::hours(24 * 366);

    pub fn parse(text: &str) -> Result<Millis, String> {
        let bad = || format!("`{text}` is not a duration; write for example 15m, 1h30m, 90s or 2d");
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(bad());
        }
        let mut total: i64 = 0;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number: i64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let unit = match &rest[..letters] {
                "ms" => 1,
                "s" => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(bad()),
            };
            rest = &rest[letters..];
            total = number.checked_mul(unit).and_then(|ms| total.checked_add(ms)).ok_or_else(bad)?;
        }
        if total > Millis::MAX.0 {
            return Err(format!("`{text}` is longer than a year"));
        }
        Ok(Millis(total))
    }

    /// Its largest unit alone, in words: `14 min`. What people are told, who look and do not calculate.
    pub fn in_words(self) -> String {
        let seconds = self.0 / 1_000;
        match seconds {
            ..60 => format!("{seconds} s"),
            60..3_600 => format!("{} min", seconds / 60),
            3_600..172_800 => format!("{} h", seconds / 3_600),
            _ => format!("{} d", seconds / 86_400),
        }
    }
}

impl fmt::Display for Millis {
    /// Two units at most: people compare leases, they do not time them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, ms) = (self.0 / 1_000, self.0 % 1_000);
        match s {
            0 => write!(f, "{ms}ms"),
            1..60 => write!(f, "{s}s"),
            60..3_600 if s % 60 == 0 => write!(f, "{}m", s / 60),
            60..3_600 => write!(f, "{}m{}s", s / 60, s % 60),
            3_600..172_800 if s % 3_600 < 60 => write!(f, "{}h", s / 3_600),
            3_600..172_800 => write!(f, "{}h{}m", s / 3_600, s % 3_600 / 60),
            _ if s % 86_400 < 3_600 => write!(f, "{}d", s / 86_400),
            _ => write!(f, "{}d{}h", s / 86_400, s % 86_400 / 3_600),
        }
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Millis::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Millis {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A span such as 15m, 1h30m, 90s, 250ms or 2d",
            "pattern": "^([0-9]+(ms|s|m|min|h|d))+$",
            "examples": ["15m", "1h30m", "2d"]
        })
    }
}

/// A reading of a clock that no one can set: milliseconds since some host's boot.
///
/// Leases expire by this, because a wall clock jumps and a suspended laptop has not worked. PostgreSQL's server clock
/// is a `Tick` too: one host that never reboots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    pub host: String,
    pub boot: String,
    pub millis: i64,
}

impl Tick {
    /// `host.boot.millis`; host and boot never contain a dot.
    pub fn parse(text: &str) -> Option<Tick> {
        let mut parts = text.splitn(3, '.');
        let (host, boot, millis) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Tick { host: host.to_owned(), boot: boot.to_owned(), millis: millis.parse().ok()? })
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.host, self.boot, self.millis)
    }
}

impl Serialize for Tick {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tick {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Tick::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a clock reading")))
    }
}

/// Both clocks, read once per command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    pub wall: Timestamp,
    pub tick: Tick,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_people_write() {
        for (text, ms) in
            [("15m", 900_000), ("1h30m", 5_400_000), ("90s", 90_000), ("250ms", 250), ("2d", 172_800_000)]
        {
            assert_eq!(Millis::parse(text), Ok(Millis(ms)), "{text}");
        }
        for text in ["", "15", "m", "-5m", "1.5h", "5 m", "9999999999999999999d", "400d", "5x"] {
            assert!(Millis::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_told_in_their_largest_unit() {
        for (ms, words) in [
            (0, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3_600_000, "1 h"),
            (172_799_000, "47 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(Millis(ms).in_words(), words);
        }
    }

    #[test]
    fn durations_read_back() {
        for text in ["15m", "1h30m", "24h", "1m30s", "250ms", "3d", "3d4h"] {
            assert_eq!(Millis::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn times_are_rfc_3339_utc() {
        let json = serde_json::to_string(&Timestamp(1_792_000_000_123)).unwrap();
        assert_eq!(json, "\"2026-10-14T17:46:40.123Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), Timestamp(1_792_000_000_123));
    }
}
