//! Which place a token of a file has.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

use super::builder::{MOST_TOKENS, crowded};
use super::damaged;
use crate::count::merges::Ranks;
use crate::error::Error;
use crate::huge::Table;

/// The places of tokens, by their bytes.
///
/// The hash has a random key: no file can be written whose tokens share their
/// slots.
pub(super) struct Places<'a> {
    tokens: &'a [&'a [u8]],
    /// What tells the short tokens apart without a look at their bytes.
    words: Table<u128>,
    ranks: Ranks,
    /// The key of the hash.
    key: (u64, SharedSeed),
}

/// Stands for a token that is too long to be a word.
const LONG: u128 = 0;

impl<'a> Places<'a> {
    /// Finds the places of `tokens`, which must differ.
    pub(super) fn new(tokens: &'a [&'a [u8]]) -> Result<Self, Error> {
        if tokens.len() >= MOST_TOKENS {
            return Err(too_many());
        }
        let mut words = Table::new(tokens.len().max(1));
        for (to, token) in words.iter_mut().zip(tokens) {
            *to = word(token);
        }
        let random = RandomState::new();
        let key = (random.hash_one(0), SharedSeed::from_u64(random.hash_one(1)));
        let mut places = Self { tokens, words, ranks: Ranks::new(tokens.len()), key };
        for (place, token) in (0..).zip(tokens) {
            let word = places.words[place as usize];
            let hash = places.hash(word, token);
            if places.find_hashed(hash, word, token).is_some() {
                return Err(damaged("it has a token twice"));
            }
            if !places.ranks.add(hash, place) {
                return Err(crowded());
            }
        }
        Ok(places)
    }

    /// Returns the place of a token.
    pub(super) fn find(&self, token: &[u8]) -> Option<u32> {
        let word = word(token);
        self.find_hashed(self.hash(word, token), word, token)
    }

    /// Returns the place of a token by its parts. Files list merges by their
    /// results, in order, so that it is looked for at `last` and behind it
    /// first.
    pub(super) fn find_joined(&self, left: &[u8], right: &[u8], last: u32) -> Option<u32> {
        let is_it = |place: &u32| {
            self.tokens.get(*place as usize).is_some_and(|token| {
                token.len() == left.len() + right.len()
                    && token.starts_with(left)
                    && token.ends_with(right)
            })
        };
        [last, last + 1].into_iter().find(is_it).or_else(|| self.find(&[left, right].concat()))
    }

    fn find_hashed(&self, hash: u64, word: u128, token: &[u8]) -> Option<u32> {
        self.ranks.find(hash, |place| {
            let place = place as usize;
            self.words[place] == word && (word != LONG || self.tokens[place] == token)
        })
    }

    fn hash(&self, word: u128, token: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.key.0, &self.key.1);
        if word == LONG {
            hasher.write(token);
        } else {
            hasher.write_u128(word);
        }
        hasher.finish()
    }
}

/// Returns a token of at most 15 bytes as a number: its bytes, and its length.
fn word(token: &[u8]) -> u128 {
    let length = token.len();
    let bytes = match length {
        8..16 => {
            let (first, last) = (token.first_chunk(), token.last_chunk());
            let first = first.map_or(0, |&bytes| u64::from_le_bytes(bytes));
            let last = last.map_or(0, |&bytes| u64::from_le_bytes(bytes));
            u128::from(first) | u128::from(last) << (8 * (length - 8))
        }
        4..8 => {
            let (first, last) = (token.first_chunk(), token.last_chunk());
            let first = first.map_or(0, |&bytes| u32::from_le_bytes(bytes));
            let last = last.map_or(0, |&bytes| u32::from_le_bytes(bytes));
            u128::from(u64::from(first) | u64::from(last) << (8 * (length - 4)))
        }
        0..4 => token.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)),
        _ => return LONG,
    };
    bytes | (length as u128 + 1) << 120
}

/// Returns the error for a file that no vocabulary can hold.
#[cold]
pub(super) fn too_many() -> Error {
    damaged("it has more than half a million tokens")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Returns tokens that are much alike, of up to 20 bytes.
    fn alike() -> Vec<Vec<u8>> {
        let mut tokens: HashSet<Vec<u8>> = HashSet::new();
        for length in 1..=20 {
            for byte in [0, b'a', 0x80, 0xFF] {
                let token = vec![byte; length];
                for at in 0..length {
                    let mut other = token.clone();
                    other[at] = b'b';
                    tokens.insert(other);
                }
                tokens.insert(token);
            }
        }
        tokens.into_iter().collect()
    }

    #[test]
    fn each_token_is_found_at_its_place() {
        let tokens = alike();
        let tokens: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
        let places = Places::new(&tokens).expect("they differ");
        for (place, token) in (0..).zip(&tokens) {
            assert_eq!(Some(place), places.find(token));
        }
        for token in [&b""[..], b"ac", b"aaaaaaaaaaaaaaac", b"aaaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(None, places.find(token), "{token:?}");
        }
    }

    #[test]
    fn a_short_token_is_a_number_of_its_own() {
        let tokens = alike();
        let mut seen = HashSet::new();
        for token in &tokens {
            let word = word(token);
            assert_eq!(token.len() > 15, word == LONG, "{token:?}");
            assert!(word == LONG || seen.insert(word), "{token:?}");
        }
        assert_ne!(LONG, word(b""));
    }

    #[test]
    fn a_token_twice_is_refused() {
        for token in [&b"a"[..], b"a long token, of many bytes"] {
            let error = Places::new(&[token, b"b", token]).err().expect("it is twice there");
            assert!(error.to_string().ends_with("it has a token twice"));
        }
    }

    #[test]
    fn joined_tokens_are_found_wherever_they_are() {
        let tokens: [&[u8]; 5] = [b"aaa", b"a", b"aaaa", b"ab", b"aaaaaa"];
        let places = Places::new(&tokens).expect("they differ");
        for last in 0..5 {
            assert_eq!(Some(2), places.find_joined(b"aaa", b"a", last));
            assert_eq!(Some(3), places.find_joined(b"a", b"b", last));
            assert_eq!(Some(4), places.find_joined(b"aaa", b"aaa", last));
            assert_eq!(None, places.find_joined(b"b", b"a", last));
            assert_eq!(None, places.find_joined(b"aa", b"ab", last));
        }
    }

    #[test]
    fn tokens_have_hashes_of_their_own() {
        let tokens = alike();
        let places = Places::new(&[]).expect("there are none");
        let hashes: HashSet<u64> =
            tokens.iter().map(|token| places.hash(word(token), token)).collect();
        assert_eq!(tokens.len(), hashes.len());
    }
}
