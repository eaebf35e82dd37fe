//! An amount of money, exact: in millionths of the currency that `effort.currency` names.

use schemars::JsonSchema;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(pub i64);

impl Amount {
    /// Of digits: no fraction of the machine's comes in between.
    pub fn parse(text: &str) -> Result<Amount, String> {
        let bad = || format!("{} is not an amount such as 0.0125", crate::id::shown(text));
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 6 || part.len() > 6 || !digits(whole) || !digits(part) {
            return Err(bad());
        }
        format!("{whole}{part:0<6}").parse().map(Amount).map_err(|_| bad())
    }
}

impl fmt::Display for Amount {
    /// At least cents; millionths where they count.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        match part % 10_000 {
            0 => write!(f, "{whole}.{:02}", part / 10_000),
            _ => write!(f, "{whole}.{}", format!("{part:06}").trim_end_matches('0')),
        }
    }
}

/// As a number: settings and answers have it so.
impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "no amount has more digits than that")]
        serializer.serialize_f64(self.0 as f64 / 1_000_000.0)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount such as 5 or 0.25")
    }

    fn visit_u64<E: Error>(self, whole: u64) -> Result<Amount, E> {
        self.visit_str(&whole.to_string())
    }

    fn visit_i64<E: Error>(self, whole: i64) -> Result<Amount, E> {
        self.visit_str(&whole.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        Amount::parse(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number",
            "description": "An amount of the currency, such as 5 or 0.25",
            "minimum": 0,
            "maximum": 999_999.999_999
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (text, micros, shown) in
            [("0.0125", 12_500, "0.0125"), ("12", 12_000_000, "12.00"), ("0.1", 100_000, "0.10")]
        {
            assert_eq!(Amount::parse(text), Ok(Amount(micros)));
            assert_eq!(Amount(micros).to_string(), shown);
            assert_eq!(serde_json::from_str::<Amount>(text).unwrap(), Amount(micros));
        }
        for bad in ["", ".5", "-1", "1e3", "1,5", "0.0000001", "12345678"] {
            assert!(Amount::parse(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Amount>("-1").is_err());
        assert_eq!(serde_json::to_string(&Amount(4_800_000)).unwrap(), "4.8");
    }
}
