//! The fields of a JSON object as they are written: in their order, and numbers with
//! all their digits, which `serde_json::Value` keeps only where a program asks for
//! it.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object. Of those of one name the last counts.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Returns the fields of an object that was read before; none of something else.
    pub(crate) fn of(json: &'a str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.get()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields: Vec<(String, &RawValue)> = Vec::new();
                let mut places = HashMap::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if let Some(&place) = places.get(&name) {
                        fields[place] = (name, value);
                        continue;
                    }
                    places.insert(name.clone(), fields.len());
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_digits_stay() {
        let json = r#"{"z": 12345678901234567890123, "a": {"y": -0, "b": 1}, "z": 1e400}"#;
        let fields = Fields::of(json);
        let all: Vec<_> = fields.iter().collect();
        assert_eq!([("z", "1e400"), ("a", r#"{"y": -0, "b": 1}"#)], *all);
        let inner = Fields::of(fields.get("a").unwrap());
        assert_eq!(["y", "b"], *inner.iter().map(|(name, _)| name).collect::<Vec<_>>());
        assert_eq!((None, 0), (fields.get("b"), Fields::of("[1]").iter().count()));
    }

    #[test]
    fn errors_say_what_is_read() {
        let error = serde_json::from_str::<Fields<'_>>("3").expect_err("it is a number");
        assert!(error.to_string().contains("expected an object"), "{error}");
    }
}
