//! Mistral's `tekken.json`.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::builder::Read;
use super::read_json::{Str, object, read_json};
use super::tiktoken::Ranked;
use super::{damaged, steps};
use crate::count::normal::{Normal, Prefix};
use crate::error::Error;

/// Returns whether the JSON is one: no other file has these keys.
pub(super) fn is_one(content: &[u8]) -> bool {
    memchr::memmem::find(content, b"\"token_bytes\"").is_some()
        && memchr::memmem::find(content, b"\"default_vocab_size\"").is_some()
}

/// The file.
#[derive(Default)]
struct File<'a> {
    config: Value,
    vocab: Option<Vec<Entry<'a>>>,
}

object!(File, |file, map, key| match &*key.0 {
    "config" => file.config = map.next_value()?,
    "vocab" => file.vocab = Some(map.next_value()?),
    _ => drop(map.next_value::<IgnoredAny>()?),
});

/// A token with its rank.
#[derive(Default)]
struct Entry<'a> {
    rank: Option<u32>,
    token: Cow<'a, str>,
}

object!(Entry, |entry, map, key| match &*key.0 {
    "rank" => entry.rank = Some(map.next_value()?),
    "token_bytes" => entry.token = map.next_value::<Str<'de>>()?.0,
    _ => drop(map.next_value::<IgnoredAny>()?),
});

pub(super) fn read(content: &[u8]) -> Result<Read, Error> {
    let file: File<'_> = read_json(content, "tekken.json")?;
    let config = &file.config;
    let number = |key: &str| {
        let number = config[key].as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| damaged(&format!("config has no {key}")))
    };
    // The first ranks are those of special tokens, which are not in the file.
    let count = number("default_vocab_size")?.checked_sub(number("default_num_special_tokens")?);
    let count = count.ok_or_else(|| damaged("it has more special tokens than tokens"))?;
    let pattern = config["pattern"].as_str().ok_or_else(|| damaged("config has no pattern"))?;
    let vocab = file.vocab.ok_or_else(|| damaged("it has no vocab"))?;
    let mut tokens = Ranked::default();
    for Entry { rank, token } in vocab.iter().take(count) {
        let is_read = rank.is_some_and(|rank| tokens.add(token.as_bytes(), rank));
        if !is_read {
            return Err(damaged("an entry is no token with its rank"));
        }
    }
    let split = steps::split_of(&[Cow::Borrowed(pattern)])?;
    let vocabulary = tokens.vocabulary()?;
    Ok(Read { vocabulary, split, normal: Normal::As, prefix: Prefix::No })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_bytes_of_tokens_and_a_size() {
        assert!(is_one(
            br#"{"config": {"default_vocab_size": 9}, "vocab": [{"token_bytes": ""}]}"#
        ));
        assert!(!is_one(br#"{"config": {"default_vocab_size": 9}}"#));
        assert!(!is_one(br#"{"vocab": [{"token_bytes": ""}]}"#));
    }
}
