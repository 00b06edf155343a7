//! `tokenizer.json`, the file of the package `tokenizers`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::builder::{Builder, NONE, Read, check_bytes};
use super::characters;
use super::places::Places;
use super::read_json::{Str, object, read_json};
use super::steps::{Normalizer, PreTokenizer, split_as_oniguruma};
use super::{damaged, unknown};
use crate::count::normal::{Prefix, SPACE};
use crate::error::Error;

pub(super) fn read(content: &[u8]) -> Result<Read, Error> {
    let file: File<'_> = read_json(content, "tokenizer.json")?;
    let model = file.model.ok_or_else(|| damaged("it has no model"))?;
    model.check()?;
    let normalizer = Normalizer::read(&file.normalizer)?;
    let steps = PreTokenizer::read(&file.pre_tokenizer)?;
    // Where a normalizer replaces the spaces, none is left to split at.
    if steps.is_split_at_spaces && !normalizer.has_spaces {
        return Err(unknown("a pre-tokenizer that splits behind spaces"));
    }
    if steps.is_byte_level {
        if normalizer.has_spaces || normalizer.has_prefix || steps.metaspace.is_some() {
            return Err(unknown("bytes as tokens behind other characters for spaces"));
        }
        let split = split_as_oniguruma(&steps.patterns)?;
        let vocabulary = merge_bytes(&model)?;
        return Ok(Read { vocabulary, split, normal: normalizer.normal()?, prefix: Prefix::No });
    }
    if !model.byte_fallback {
        return Err(unknown("a vocabulary of characters without a byte fallback"));
    }
    if model.ignore_merges {
        return Err(unknown("merges of characters that whole tokens do not need"));
    }
    if normalizer.is_nfc {
        return Err(unknown("a normalizer that composes characters in front of their merges"));
    }
    if !steps.patterns.is_empty() {
        return Err(unknown("a pre-tokenizer in front of merges of characters"));
    }
    let prefix = match steps.metaspace {
        _ if normalizer.has_prefix => Prefix::Always,
        Some(true) => Prefix::Missing,
        _ => Prefix::No,
    };
    if !normalizer.has_spaces && steps.metaspace.is_none() {
        return Err(unknown("merges of characters across spaces"));
    }
    let tokens: Vec<&str> = model.vocab.iter().map(|token| &**token).collect();
    if !tokens.contains(&SPACE) {
        return Err(unknown("a vocabulary of characters without a space, which counts its bytes"));
    }
    check_bytes(&tokens.iter().filter_map(|token| byte_of(token)).collect::<Vec<_>>())?;
    let merges = Some(model.numbered(&tokens)?);
    characters::read(&characters::Pieces { tokens, merges, runs: Vec::new() }, prefix)
}

/// Returns the byte that a token of a vocabulary of characters stands for, if any.
fn byte_of(token: &str) -> Option<u32> {
    let byte = u8::from_str_radix(token.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()?;
    (token == format!("<0x{byte:02X}>")).then(|| byte.into())
}

/// Returns the vocabulary of merges of bytes.
fn merge_bytes(model: &ModelFile<'_>) -> Result<budgeteer_vocab::Vocabulary, Error> {
    let bytes = byte_alphabet();
    let tokens: Vec<&str> = model.vocab.iter().map(|token| &**token).collect();
    let mut ranks = vec![NONE; tokens.len()];
    for (token, rank) in tokens.iter().zip(&mut ranks) {
        let mut chars = token.chars();
        if let (Some(char), None) = (chars.next(), chars.next())
            && let Some(&byte) = bytes.get(&char)
        {
            *rank = byte.into();
        }
    }
    check_bytes(&ranks)?;
    let mut builder = Builder::new(tokens.len());
    builder.merge(&model.numbered(&tokens)?, &mut ranks)?;
    let mut wholes = Vec::new();
    if model.ignore_merges {
        for (token, _) in tokens.iter().zip(&ranks).filter(|(_, rank)| **rank == NONE) {
            let whole: Option<Box<[u8]>> =
                token.chars().map(|char| bytes.get(&char).copied()).collect();
            wholes.extend(whole.filter(|whole| whole.len() > 1 && whole.len() < 1 << 16));
        }
    }
    builder.finish(wholes)
}

/// Returns the byte that each character of a byte-level vocabulary stands for.
fn byte_alphabet() -> HashMap<char, u8> {
    let mut beyond = 0x100;
    (0..=255_u8)
        .map(|byte| {
            if matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..) {
                return (char::from(byte), byte);
            }
            beyond += 1;
            (char::from_u32(beyond - 1).expect("these are letters"), byte)
        })
        .collect()
}

/// The file.
#[derive(Default)]
struct File<'a> {
    model: Option<ModelFile<'a>>,
    normalizer: Value,
    pre_tokenizer: Value,
}

/// What the file says of the merges.
#[derive(Default)]
struct ModelFile<'a> {
    kind: Option<Cow<'a, str>>,
    /// What gives tokens another form, or takes others at random: the name.
    refused: Option<&'static str>,
    byte_fallback: bool,
    ignore_merges: bool,
    vocab: Vec<Cow<'a, str>>,
    merges: Vec<Merge<'a>>,
}

impl ModelFile<'_> {
    fn check(&self) -> Result<(), Error> {
        match self.kind.as_deref() {
            Some("BPE") => {}
            None if !self.merges.is_empty() => {}
            kind => {
                let kind = kind.unwrap_or("without a type");
                return Err(unknown(&format!("the model {kind:.120}")));
            }
        }
        self.refused.map_or(Ok(()), |refused| Err(unknown(&format!("a model with {refused}"))))
    }

    /// Returns the merges as places in `tokens`: the parts, and the result.
    fn numbered(&self, tokens: &[&str]) -> Result<Vec<[u32; 3]>, Error> {
        let tokens: Vec<&[u8]> = tokens.iter().map(|token| token.as_bytes()).collect();
        let places = Places::new(&tokens)?;
        let mut last = 0;
        let merges = self.merges.iter().map(|Merge(left, right)| {
            let (left, right) = (left.as_bytes(), right.as_bytes());
            last = places.find_joined(left, right, last)?;
            Some([places.find(left)?, places.find(right)?, last])
        });
        let merges: Option<Vec<_>> = merges.collect();
        merges.ok_or_else(|| damaged("it merges what is no token"))
    }
}

object!(File, |file, map, key| match &*key.0 {
    "model" => file.model = Some(map.next_value()?),
    "normalizer" => file.normalizer = map.next_value()?,
    "pre_tokenizer" => file.pre_tokenizer = map.next_value()?,
    _ => drop(map.next_value::<IgnoredAny>()?),
});

object!(ModelFile, |model, map, key| match &*key.0 {
    "type" => model.kind = Some(map.next_value::<Str<'de>>()?.0),
    "byte_fallback" => model.byte_fallback = map.next_value::<Option<bool>>()? == Some(true),
    "ignore_merges" => model.ignore_merges = map.next_value::<Option<bool>>()? == Some(true),
    "continuing_subword_prefix" | "end_of_word_suffix" => {
        let affix = map.next_value::<Option<Str<'de>>>()?;
        if affix.is_some_and(|affix| !affix.0.is_empty()) {
            model.refused = Some("prefixes or suffixes of words");
        }
    }
    "vocab" => model.vocab = map.next_value::<Vocab<'de>>()?.0,
    "merges" => model.merges = map.next_value()?,
    _ => drop(map.next_value::<IgnoredAny>()?),
});

/// The tokens; their numbers are not needed. Other models than BPE have an
/// array, which is passed over.
struct Vocab<'a>(Vec<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Vocab<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tokens;

        impl<'de> Visitor<'de> for Tokens {
            type Value = Vocab<'de>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a vocabulary")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut tokens = Vec::new();
                while let Some((Str(token), _)) = map.next_entry::<_, u32>()? {
                    tokens.push(token);
                }
                Ok(Vocab(tokens))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Vocab(Vec::new()))
            }
        }

        deserializer.deserialize_any(Tokens)
    }
}

/// A merge: a pair, or in older files a text with a space in between.
struct Merge<'a>(Cow<'a, str>, Cow<'a, str>);

impl<'de> Deserialize<'de> for Merge<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair;

        impl<'de> Visitor<'de> for Pair {
            type Value = Merge<'de>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a merge")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                text: &'de str,
            ) -> Result<Self::Value, E> {
                let (left, right) = text.split_once(' ').ok_or_else(|| E::custom("no pair"))?;
                Ok(Merge(left.into(), right.into()))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let (left, right) = text.split_once(' ').ok_or_else(|| E::custom("no pair"))?;
                Ok(Merge(left.to_string().into(), right.to_string().into()))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
                let mut part =
                    || seq.next_element::<Str<'de>>()?.ok_or_else(|| S::Error::custom("no pair"));
                let (left, right) = (part()?.0, part()?.0);
                Ok(Merge(left, right))
            }
        }

        deserializer.deserialize_any(Pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns why a file is refused; nothing for one that is read.
    fn refused(content: &str) -> String {
        read(content.as_bytes()).err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// Returns a file of bytes, with more fields of the model and of the file.
    fn bytes(model: &str, file: &str) -> String {
        let mut tokens: Vec<char> = byte_alphabet().into_keys().collect();
        tokens.sort_unstable();
        let tokens = tokens.iter().zip(0..).map(|(char, number)| {
            let char = Value::from(char.to_string());
            format!("{char}: {number}")
        });
        let vocab = tokens.chain(["\"ab\": 256".to_string()]).collect::<Vec<_>>().join(", ");
        format!(r#"{{"model": {{"vocab": {{{vocab}}}{model}}}{file}}}"#)
    }

    const LEVEL: &str = r#", "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}"#;

    #[test]
    fn a_model_without_a_type_has_merges() {
        assert_eq!("", refused(&bytes(r#", "merges": ["a b"]"#, LEVEL)));
        assert_eq!("", refused(&bytes(r#", "type": "BPE", "merges": [["a", "b"]]"#, LEVEL)));
        assert_eq!("", refused(&bytes(r#", "type": "BPE""#, LEVEL)));
        assert!(refused(&bytes("", LEVEL)).ends_with("the model without a type"));
        assert!(
            refused(&bytes(r#", "type": "WordPiece""#, LEVEL)).ends_with("the model WordPiece")
        );
    }

    #[test]
    fn bytes_have_no_other_characters_for_spaces() {
        let with = |normalizer: &str| {
            refused(&bytes(
                r#", "merges": ["a b"]"#,
                &format!(r#"{LEVEL}, "normalizer": {normalizer}"#),
            ))
        };
        assert_eq!("", with(r#"{"type": "NFC"}"#));
        for normalizer in [
            r#"{"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}"#,
            r#"{"type": "Prepend", "prepend": "\u2581"}"#,
        ] {
            let error = with(normalizer);
            assert!(
                error.ends_with("bytes as tokens behind other characters for spaces"),
                "{error}"
            );
        }
    }

    #[test]
    fn errors_say_what_is_read() {
        let expected = |content: &str, what: &str| {
            let error = serde_json::from_str::<File<'_>>(content).err().map(|e| e.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains(what)), "{error:?}");
        };
        expected(r#"{"model": {"vocab": 3}}"#, "expected a vocabulary");
        expected(r#"{"model": {"merges": [3]}}"#, "expected a merge");
        expected(r#"{"model": {"merges": ["ab"]}}"#, "no pair");
        expected(r#"{"model": 3}"#, "expected an object");
    }

    /// Only tokens of several bytes are looked for as a whole.
    #[test]
    fn whole_tokens_are_those_that_no_merge_makes() {
        let wholes = |model: &str| {
            let content = bytes(model, "");
            let file: File<'_> = serde_json::from_str(&content).expect("it is one");
            let vocabulary = merge_bytes(&file.model.expect("it has a model"));
            vocabulary.expect("it has all bytes").wholes().len()
        };
        assert_eq!(0, wholes(r#", "merges": ["a b"]"#));
        assert_eq!(0, wholes(r#", "merges": ["a b"], "ignore_merges": true"#));
        assert_eq!(1, wholes(r#", "merges": [], "ignore_merges": true"#));
        assert_eq!(0, wholes(r#", "merges": [], "ignore_merges": false"#));
    }
}
