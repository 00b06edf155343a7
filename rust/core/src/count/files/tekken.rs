//! Mistral's `tekken.json`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::builder::Read;
use super::{damaged, steps, tiktoken};
use crate::count::normal::{Normal, Prefix};
use crate::error::Error;

/// Returns whether the JSON is one: no other file has these keys.
pub(super) fn is_one(content: &[u8]) -> bool {
    memchr::memmem::find(content, b"\"token_bytes\"").is_some()
        && memchr::memmem::find(content, b"\"default_vocab_size\"").is_some()
}

pub(super) fn read(content: &[u8]) -> Result<Read, Error> {
    let file: Value = serde_json::from_slice(content).map_err(|_| damaged("it is not JSON"))?;
    let config = &file["config"];
    let number = |key: &str| {
        let number = config[key].as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| damaged(&format!("config has no {key}")))
    };
    // The first ranks are those of special tokens, which are not in the file.
    let count = number("default_vocab_size")?.checked_sub(number("default_num_special_tokens")?);
    let count = count.ok_or_else(|| damaged("it has more special tokens than tokens"))?;
    let pattern = config["pattern"].as_str().ok_or_else(|| damaged("config has no pattern"))?;
    let vocab = file["vocab"].as_array().ok_or_else(|| damaged("it has no vocab"))?;
    let mut tokens = Vec::with_capacity(count.min(vocab.len()));
    for entry in vocab.iter().take(count) {
        let rank = entry["rank"].as_u64().and_then(|rank| u32::try_from(rank).ok());
        let token = entry["token_bytes"].as_str().and_then(|token| STANDARD.decode(token).ok());
        let token = rank.zip(token).filter(|(_, token)| !token.is_empty());
        tokens.push(token.ok_or_else(|| damaged("an entry is no token with its rank"))?);
    }
    let split = steps::split_of(&[Cow::Borrowed(pattern)])?;
    let vocabulary = tiktoken::vocabulary(tokens)?;
    Ok(Read { vocabulary, split, normal: Normal::As, prefix: Prefix::No })
}
