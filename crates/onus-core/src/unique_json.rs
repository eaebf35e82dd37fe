//! JSON in which every key comes once: a document that two readers could understand differently says nothing (threat 14 of
//! the rules).

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Any document, refused where a key comes twice, at whatever depth.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueJson(pub Value);

impl<'de> Deserialize<'de> for UniqueJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UniqueJson, D::Error> {
        deserializer.deserialize_any(Any).map(UniqueJson)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(UniqueJson(one)) = list.next_element()? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {} comes twice", crate::id::shown(&key))));
            }
            let UniqueJson(value) = object.next_value()?;
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_is_clear_as_everybody_does() {
        for text in
            ["null", "true", "-3", "18446744073709551615", "1.5", "\"a\\u0041\"", r#"[1,{"a":[]},"x"]"#, "{}"]
        {
            let unique: UniqueJson = serde_json::from_str(text).unwrap();
            assert_eq!(unique.0, serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"b":{"c":1,"c":2}}]"#] {
            assert!(serde_json::from_str::<UniqueJson>(text).is_err(), "{text}");
        }
        let deep = "[".repeat(10_000);
        assert!(serde_json::from_str::<UniqueJson>(&deep).is_err());
    }
}
