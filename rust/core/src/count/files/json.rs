//! `tokenizer.json`, the file of the package `tokenizers`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::builder::{Builder, NONE, Read};
use super::characters;
use super::steps::{Normalizer, PreTokenizer, split_of};
use super::{damaged, unknown};
use crate::count::normal::Prefix;
use crate::error::Error;

pub(super) fn read(content: &[u8]) -> Result<Read, Error> {
    let file: File<'_> = serde_json::from_slice(content).map_err(|error| {
        // Its own message may quote the file.
        let (line, column) = (error.line(), error.column());
        damaged(&format!("it is no tokenizer.json at line {line}, column {column}"))
    })?;
    let model = file.model.ok_or_else(|| damaged("it has no model"))?;
    model.check()?;
    let normalizer = Normalizer::read(&file.normalizer)?;
    let steps = PreTokenizer::read(&file.pre_tokenizer)?;
    if steps.is_byte_level {
        if normalizer.has_spaces || normalizer.has_prefix || steps.metaspace.is_some() {
            return Err(unknown("bytes as tokens behind other characters for spaces"));
        }
        let split = split_of(&steps.patterns)?;
        let vocabulary = merge_bytes(&model)?;
        return Ok(Read { vocabulary, split, normal: normalizer.normal()?, prefix: Prefix::No });
    }
    if !model.byte_fallback {
        return Err(unknown("a vocabulary of characters without a byte fallback"));
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
    characters::read(&model.characters()?, prefix)
}

/// Returns the vocabulary of merges of bytes.
fn merge_bytes(model: &ModelFile<'_>) -> Result<budgeteer_vocab::Vocabulary, Error> {
    let bytes = byte_alphabet();
    let mut ranks = vec![NONE; model.vocab.len()];
    let mut found = [false; 256];
    for (nth, (token, _)) in model.vocab.iter().enumerate() {
        let mut chars = token.chars();
        if let (Some(char), None) = (chars.next(), chars.next())
            && let Some(&byte) = bytes.get(&char)
        {
            ranks[nth] = byte.into();
            found[usize::from(byte)] = true;
        }
    }
    // Every byte that is in UTF-8.
    let is_in_utf8 = |byte: &usize| !matches!(byte, 0xC0 | 0xC1 | 0xF5..);
    if let Some(byte) = (0..256).filter(is_in_utf8).find(|&byte| !found[byte]) {
        return Err(unknown(&format!("the byte {byte:#04x} is no token")));
    }
    let mut builder = Builder::new(model.vocab.len());
    builder.merge(&model.numbered()?, &mut ranks)?;
    let mut wholes = Vec::new();
    if model.ignore_merges {
        for (nth, (token, _)) in model.vocab.iter().enumerate() {
            if ranks[nth] == NONE {
                let whole: Option<Box<[u8]>> =
                    token.chars().map(|char| bytes.get(&char).copied()).collect();
                wholes.extend(whole.filter(|whole| whole.len() > 1 && whole.len() < 1 << 16));
            }
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
    vocab: Vec<(Cow<'a, str>, u32)>,
    merges: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl ModelFile<'_> {
    fn check(&self) -> Result<(), Error> {
        match self.kind.as_deref() {
            Some("BPE") => {}
            None if !self.merges.is_empty() => {}
            kind => {
                return Err(unknown(&format!("the model {}", kind.unwrap_or("without a type"))));
            }
        }
        self.refused.map_or(Ok(()), |refused| Err(unknown(&format!("a model with {refused}"))))
    }

    /// Returns the place of each token in `vocab`.
    fn places(&self) -> Result<HashMap<&str, u32>, Error> {
        let tokens = (0..).zip(&self.vocab).map(|(nth, (token, _))| (&**token, nth));
        let places: HashMap<&str, u32> = tokens.collect();
        if places.len() == self.vocab.len() {
            Ok(places)
        } else {
            Err(damaged("it has a token twice"))
        }
    }

    /// Returns the merges as places in `vocab`: the parts, and the result.
    fn numbered(&self) -> Result<Vec<[u32; 3]>, Error> {
        let places = self.places()?;
        let mut whole = String::new();
        let merges = self.merges.iter().map(|(left, right)| {
            whole.clear();
            whole.push_str(left);
            whole.push_str(right);
            let place = |part: &str| places.get(part).copied();
            Some([place(left)?, place(right)?, place(&whole)?])
        });
        let merges: Option<Vec<_>> = merges.collect();
        merges.ok_or_else(|| damaged("it merges what is no token"))
    }

    /// Returns the vocabulary as one of characters.
    fn characters(&self) -> Result<characters::Pieces<'_>, Error> {
        let tokens = self.vocab.iter().map(|(token, _)| &**token).collect();
        Ok(characters::Pieces { tokens, merges: Some(self.numbered()?), runs: Vec::new() })
    }
}

/// A text that may be borrowed from the file.
struct Str<'a>(Cow<'a, str>);

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

                    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    "merges" => model.merges = map.next_value::<MergeList<'de>>()?.0,
    _ => drop(map.next_value::<IgnoredAny>()?),
});

/// The tokens with their numbers. Other models than BPE have an array, which is
/// passed over.
struct Vocab<'a>(Vec<(Cow<'a, str>, u32)>);

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
                while let Some((Str(token), number)) = map.next_entry()? {
                    tokens.push((token, number));
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

/// The merges: pairs, or in older files a text with a space in between.
struct MergeList<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// One of them.
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

impl<'de> Deserialize<'de> for MergeList<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let merges = Vec::<Merge<'de>>::deserialize(deserializer)?;
        Ok(Self(merges.into_iter().map(|Merge(left, right)| (left, right)).collect()))
    }
}
