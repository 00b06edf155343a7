//! The ranks of tiktoken: a line for each token, with its bytes in base64 and
//! its rank.
//!
//! The pattern is not in the file. It is known for the files that are known.

use std::mem::replace;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use highway::{HighwayHash, HighwayHasher};

use super::builder::{Builder, NONE, Read, add_in_order, check_bytes};
use super::{damaged, unknown};
use crate::count::normal::{Normal, Prefix};
use crate::count::pretokenize::regex::Patterns;
use crate::count::tokenizer::Split;
use crate::error::Error;

/// Tokens with their ranks.
#[derive(Default)]
pub(super) struct Ranked {
    /// The tokens, end to end.
    bytes: Vec<u8>,
    /// The rank of each, and where it ends in `bytes`.
    ends: Vec<(u32, usize)>,
}

impl Ranked {
    /// Adds a token, of which this is the base64. Returns whether it is one.
    pub(super) fn add(&mut self, token: &[u8], rank: u32) -> bool {
        let start = self.bytes.len();
        let is_read = STANDARD.decode_vec(token, &mut self.bytes).is_ok();
        self.ends.push((rank, self.bytes.len()));
        is_read && self.bytes.len() > start
    }

    /// Adds the token of a line of a file. Returns whether there is one.
    fn add_line(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        let parts = memchr::memchr(b' ', line).map(|space| line.split_at(space));
        let rank = parts.and_then(|(_, rank)| std::str::from_utf8(&rank[1..]).ok()?.parse().ok());
        parts.zip(rank).is_some_and(|((token, _), rank)| self.add(token, rank))
    }

    /// Returns the tokens with their ranks.
    fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(rank, end)| (rank, &self.bytes[replace(&mut start, end)..end]))
    }

    /// Returns the vocabulary.
    pub(super) fn vocabulary(&self) -> Result<budgeteer_vocab::Vocabulary, Error> {
        let mut tokens: Vec<(u32, &[u8])> = self.iter().collect();
        tokens.sort_unstable();
        if tokens.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(damaged("it has a rank twice"));
        }
        let tokens: Vec<&[u8]> = tokens.into_iter().map(|(_, token)| token).collect();
        let mut ranks = vec![NONE; tokens.len()];
        for (token, rank) in tokens.iter().zip(&mut ranks) {
            if let [byte] = **token {
                *rank = byte.into();
            }
        }
        check_bytes(&ranks)?;
        let mut builder = Builder::new(tokens.len());
        add_in_order(&mut builder, &tokens, &mut ranks)?;
        let wholes = tokens.iter().zip(&ranks).filter(|(_, rank)| **rank == NONE);
        builder.finish(wholes.map(|(token, _)| (*token).into()).collect())
    }
}

/// Returns whether the first line is a token and its rank.
pub(super) fn is_one(content: &[u8]) -> bool {
    let line = content.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.len() < 1 << 12 && Ranked::default().add_line(line)
}

pub(super) fn read(content: &[u8]) -> Result<Read, Error> {
    let mut tokens = Ranked::default();
    for line in content.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        if !tokens.add_line(line) {
            return Err(damaged("a line is no token with its rank"));
        }
    }
    let mut hasher = HighwayHasher::default();
    for (rank, token) in tokens.iter() {
        hasher.append(&rank.to_le_bytes());
        hasher.append(token);
    }
    let (split, normal) = split_of(hasher.finalize64(), tokens.ends.len())?;
    Ok(Read { vocabulary: tokens.vocabulary()?, split, normal, prefix: Prefix::No })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_has_a_token_and_its_rank() {
        for content in ["dGVh 0", "dGVh 15\r\nIA== 7", "IA== 7\n\n"] {
            assert!(is_one(content.as_bytes()), "{content:?}");
        }
        for content in ["", "\n", "dGVh", "dGVh ", " 0", "dGVh 0 1", "dGVh -1", "tea? 0", "dGV 0"] {
            assert!(!is_one(content.as_bytes()), "{content:?}");
        }
        // With a space and a digit, one byte below four kilobytes; and with two digits at them.
        let token = "dGVh".repeat(1_023);
        assert!(is_one([&*token, " 10"].concat().as_bytes()));
        assert!(!is_one([&*token, " 100"].concat().as_bytes()));
    }

    #[test]
    fn a_pattern_is_known_by_the_hash() {
        let of = |hash| split_of(hash, 3);
        for hash in [LLAMA3, GLM4] {
            assert!(matches!(of(hash), Ok((Split::Llama3, Normal::As))));
        }
        assert!(matches!(of(QWEN2), Ok((Split::Qwen2, Normal::Nfc))));
        assert!(matches!(of(KIMI), Ok((Split::Patterns(_), Normal::As))));
        let error = of(0).expect_err("it is unknown").to_string();
        assert!(error.contains("which has 3 ranks"), "{error}");
    }

    #[test]
    fn a_rank_is_of_one_token() {
        let mut ranked = Ranked::default();
        for byte in 0..=u8::MAX {
            assert!(ranked.add(STANDARD.encode([byte]).as_bytes(), byte.into()));
        }
        assert!(ranked.add(b"dGU=", 256));
        assert!(ranked.add(b"dGVh", 300));
        assert_eq!(258, ranked.vocabulary().expect("its ranks differ").len());
        assert!(ranked.add(b"bWlsaw==", 300));
        let error = ranked.vocabulary().expect_err("300 is twice there").to_string();
        assert!(error.ends_with("it has a rank twice"), "{error}");
        assert!(!ranked.add(b"", 301));
        assert!(!ranked.add(b"dGV", 301));
    }

    #[test]
    fn what_nothing_merges_into_is_whole() {
        let mut ranked = Ranked::default();
        for byte in 0..=u8::MAX {
            assert!(ranked.add(STANDARD.encode([byte]).as_bytes(), byte.into()));
        }
        for (token, rank) in [("te", 256), ("tea", 257), ("rye", 258)] {
            assert!(ranked.add(STANDARD.encode(token).as_bytes(), rank));
        }
        let vocabulary = ranked.vocabulary().expect("it has all bytes");
        let wholes: Vec<&[u8]> = vocabulary.wholes().iter().map(|whole| &**whole).collect();
        assert_eq!(vec![b"rye"], wholes);
    }
}
