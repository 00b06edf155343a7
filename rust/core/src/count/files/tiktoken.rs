//! The ranks of tiktoken: a line for each token, with its bytes in base64 and
//! its rank.
//!
//! The pattern is not in the file. It is known for the files that are known.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use highway::{HighwayHash, HighwayHasher};

use super::builder::{Builder, NONE, Read, add_in_order};
use super::{damaged, unknown};
use crate::count::normal::{Normal, Prefix};
use crate::count::pretokenize::regex::Patterns;
use crate::count::tokenizer::Split;
use crate::error::Error;

/// Returns whether the first line is a token and its rank.
pub(super) fn is_one(content: &[u8]) -> bool {
    let line = content.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.len() < 1 << 12 && parse(line).is_some()
}

fn parse(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let line = line.trim_ascii_end();
    let space = line.iter().position(|&byte| byte == b' ')?;
    let rank = std::str::from_utf8(&line[space + 1..]).ok()?.parse().ok()?;
    let token = STANDARD.decode(&line[..space]).ok()?;
    (!token.is_empty()).then_some((token, rank))
}

pub(super) fn read(content: &[u8]) -> Result<Read, Error> {
    let mut tokens = Vec::new();
    for line in content.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        tokens.push(parse(line).ok_or_else(|| damaged("a line is no token with its rank"))?);
    }
    let mut hasher = HighwayHasher::default();
    for (token, rank) in &tokens {
        hasher.append(&rank.to_le_bytes());
        hasher.append(token);
    }
    let (split, normal) = split_of(hasher.finalize64(), tokens.len())?;
    let tokens = tokens.into_iter().map(|(token, rank)| (rank, token)).collect();
    Ok(Read { vocabulary: vocabulary(tokens)?, split, normal, prefix: Prefix::No })
}

/// Returns the vocabulary of tokens with their ranks.
pub(super) fn vocabulary(
    mut tokens: Vec<(u32, Vec<u8>)>,
) -> Result<budgeteer_vocab::Vocabulary, Error> {
    tokens.sort_unstable();
    if tokens.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(damaged("it has a rank twice"));
    }
    let tokens: Vec<&[u8]> = tokens.iter().map(|(_, token)| token.as_slice()).collect();
    let mut ranks = vec![NONE; tokens.len()];
    let mut found = [false; 256];
    for (token, rank) in tokens.iter().zip(&mut ranks) {
        if let [byte] = **token {
            *rank = byte.into();
            found[usize::from(byte)] = true;
        }
    }
    // Every byte that is in UTF-8.
    if let Some(byte) =
        (0..=0xF4_u8).find(|byte| !matches!(byte, 0xC0 | 0xC1) && !found[usize::from(*byte)])
    {
        return Err(unknown(&format!("the byte {byte:#04x} is no token")));
    }
    let mut builder = Builder::new(tokens.len());
    add_in_order(&mut builder, &tokens, &mut ranks)?;
    let wholes = tokens.iter().zip(&ranks).filter(|(_, rank)| **rank == NONE);
    builder.finish(wholes.map(|(token, _)| (*token).into()).collect())
}

/// The hashes of the ranks that are known: of Llama 3, Qwen 2, GLM 4 and Kimi
/// K2.
const LLAMA3: u64 = 0xF68E_4624_0169_AB08;
const QWEN2: u64 = 0x245D_CB41_924E_F2D3;
const GLM4: u64 = 0x19EC_916A_0839_8ECD;
const KIMI: u64 = 0x567D_A536_AEE4_3B3D;

fn split_of(hash: u64, count: usize) -> Result<(Split, Normal), Error> {
    Ok(match hash {
        LLAMA3 | GLM4 => (Split::Llama3, Normal::As),
        QWEN2 => (Split::Qwen2, Normal::Nfc),
        KIMI => {
            let patterns = Patterns::new(&[KIMI_PATTERN]).expect("the tests have compiled it");
            (Split::Patterns(patterns), Normal::As)
        }
        _ => {
            return Err(unknown(&format!(
                "a pattern that is not in the file, which has {count} ranks; open the \
                 tokenizer.json of the same model"
            )));
        }
    })
}

/// The pattern of Kimi K2, from its own code.
const KIMI_PATTERN: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
