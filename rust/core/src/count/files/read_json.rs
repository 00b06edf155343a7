//! Reading JSON in place: strings are borrowed from the file, and what is not
//! asked for is passed over.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

use super::damaged;
use crate::error::Error;

/// Reads a file. `name` is what it must be.
pub(super) fn read_json<'a, T: Deserialize<'a>>(content: &'a [u8], name: &str) -> Result<T, Error> {
    // Texts are checked at once, not one by one, unless one is damaged.
    let read = match std::str::from_utf8(content) {
        Ok(content) => serde_json::from_str(content),
        Err(_) => serde_json::from_slice(content),
    };
    read.map_err(|error| {
        // Its own message may quote the file.
        let (line, column) = (error.line(), error.column());
        damaged(&format!("it is no {name} at line {line}, column {column}"))
    })
}

/// A text that may be borrowed from the file.
pub(super) struct Str<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Str<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = Str<'de>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(text.to_string())))
            }
        }

        deserializer.deserialize_str(Texts)
    }
}

/// Reads an object, key by key. What is unknown is passed over.
macro_rules! object {
    ($kind:ident, |$object:ident, $map:ident, $key:ident| $read:expr) => {
        impl<'de> Deserialize<'de> for $kind<'de> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Object;

                impl<'de> Visitor<'de> for Object {
                    type Value = $kind<'de>;

                    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        to.write_str("an object")
                    }

                    fn visit_map<M: MapAccess<'de>>(
                        self,
                        mut $map: M,
                    ) -> Result<Self::Value, M::Error> {
                        let mut $object = $kind::default();
                        while let Some($key) = $map.next_key::<Str<'de>>()? {
                            $read;
                        }
                        Ok($object)
                    }
                }

                deserializer.deserialize_map(Object)
            }
        }
    };
}

pub(super) use object;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_read() {
        let error = serde_json::from_str::<Str<'_>>("3").map(|Str(text)| text);
        let error = error.expect_err("it is a number").to_string();
        assert!(error.contains("expected a string"), "{error}");
        let error = read_json::<Str<'_>>(b"\n 3", "name").map(|Str(text)| text);
        let error = error.expect_err("it is a number").to_string();
        assert!(error.ends_with("it is no name at line 2, column 2"), "{error}");
    }
}
