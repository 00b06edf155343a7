//! Tokens that merge as soon as their left part is made.
//!
//! Merges are numbered so that a token comes behind its parts. In a few
//! vocabularies a token `aba`, of the parts `ab` and `a`, comes before its part
//! `ab`. Such a merge is done at once, before the other merges to `ab`. That
//! differs from doing it next only where two `ab` are side by side, as the
//! second one's `a` is taken. Pieces of a text with such a place are rare. They
//! are merged as the encoding is defined, pair by pair.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

use budgeteer_vocab::Vocabulary;
use memchr::memmem;

use super::bpe::NO_TOKEN;

/// How many merges are done between two looks at `stop`.
const STOP_INTERVAL: usize = 1 << 16;

/// Stands for no place.
const NOWHERE: usize = usize::MAX;

/// The tokens of a vocabulary that merge early.
#[derive(Debug)]
pub(super) struct Early {
    /// Each token, and its left part.
    tokens: Vec<(u32, u32)>,
    /// The left part of each, twice: where that is in no piece, it does not
    /// matter when the token merges.
    places: Vec<memmem::Finder<'static>>,
}

impl Early {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let left = |rank: u32| vocabulary.parts(rank).map_or(rank, |(left, _)| left);
        let tokens: Vec<_> = vocabulary.early().iter().map(|&rank| (rank, left(rank))).collect();
        let twice = |&(_, left): &(u32, u32)| vocabulary.token(left).repeat(2);
        let places =
            tokens.iter().map(|token| memmem::Finder::new(&twice(token)).into_owned()).collect();
        Self { tokens, places }
    }

    /// Returns whether it matters in `piece` that a token merges early.
    pub(super) fn is_in(&self, piece: &[u8]) -> bool {
        self.places.iter().any(|place| place.find(piece).is_some())
    }

    /// Merges `tokens` pair by pair, and appends what is left to `out`.
    /// `merged` tells what a pair merges to.
    pub(super) fn merge(
        &self,
        mut tokens: Vec<u32>,
        merged: impl Fn((u32, u32)) -> u32,
        out: &mut Vec<u32>,
        stop: &AtomicBool,
    ) {
        let count = tokens.len();
        let mut next: Vec<usize> = (1..=count).collect();
        let mut before: Vec<usize> = (0..count).map(|at| at.wrapping_sub(1)).collect();
        let mut queue = BinaryHeap::new();
        let entry = |at: usize, pair| {
            let token = merged(pair);
            (token != NO_TOKEN).then(|| Reverse((self.order(token), at, token, pair)))
        };
        for at in 1..count {
            queue.extend(entry(at - 1, (tokens[at - 1], tokens[at])));
        }
        let mut steps = 0;
        while let Some(Reverse((_, at, token, pair))) = queue.pop() {
            steps += 1;
            if steps % STOP_INTERVAL == 0 && stop.load(Ordering::Relaxed) {
                return;
            }
            let behind = next[at];
            if behind >= count || (tokens[at], tokens[behind]) != pair {
                continue; // one of them has merged meanwhile
            }
            tokens[at] = token;
            tokens[behind] = NO_TOKEN;
            next[at] = next[behind];
            if next[at] < count {
                before[next[at]] = at;
                queue.extend(entry(at, (token, tokens[next[at]])));
            }
            if before[at] != NOWHERE {
                queue.extend(entry(before[at], (tokens[before[at]], token)));
            }
        }
        out.extend(tokens.into_iter().filter(|&token| token != NO_TOKEN));
    }

    /// Returns when the merge to a token is done: in the order of the ranks, but
    /// just before those to its left part if it merges early.
    fn order(&self, token: u32) -> u32 {
        let early = self.tokens.iter().find(|(early, _)| *early == token);
        early.map_or(2 * token, |(_, left)| 2 * left - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: u32 = 0x61;
    const B: u32 = 0x62;
    const C: u32 = 0x63;

    /// The merges in the order of the encoding, and what they make. `aba` comes
    /// before its part `ab`.
    const MERGES: [((u32, u32), u32); 5] =
        [((256, A), 257), ((A, B), 256), ((C, A), 258), ((257, B), 259), ((258, 256), 260)];

    fn early() -> Early {
        let singles = std::array::from_fn(|byte| u8::try_from(byte).expect("a byte"));
        let mut merges = MERGES;
        merges.sort_by_key(|&(_, token)| token);
        let merges = merges.map(|(pair, _)| pair).to_vec();
        let vocabulary = Vocabulary::from_merges(&singles, merges, Vec::new(), vec![257]);
        Early::new(&vocabulary.expect("parts come before what is made of them"))
    }

    fn merged(early: &Early, piece: &str, is_stopped: bool) -> Vec<u32> {
        let merged = |pair| {
            let found = MERGES.iter().find(|(known, _)| *known == pair);
            found.map_or(NO_TOKEN, |&(_, token)| token)
        };
        let mut out = Vec::new();
        let tokens = piece.bytes().map(u32::from).collect();
        early.merge(tokens, merged, &mut out, &AtomicBool::new(is_stopped));
        out
    }

    /// Merges the first pair of the encoding that is there, the leftmost, until
    /// there is none.
    fn by_definition(piece: &str) -> Vec<u32> {
        let mut tokens: Vec<u32> = piece.bytes().map(u32::from).collect();
        let place = |tokens: &[u32], (left, right)| {
            tokens.windows(2).position(|pair| *pair == [left, right])
        };
        while let Some((at, token)) =
            MERGES.iter().find_map(|&(pair, token)| Some((place(&tokens, pair)?, token)))
        {
            tokens[at] = token;
            tokens.remove(at + 1);
        }
        tokens
    }

    #[test]
    fn it_matters_where_the_left_part_stands_twice() {
        let early = early();
        let found =
            ["abab", "caababc", "aba", "abba", "ab", ""].map(|piece| early.is_in(piece.as_bytes()));
        assert_eq!([true, true, false, false, false, false], found);
    }

    proptest! {
        #[test]
        fn merges_as_the_encoding_is_defined(piece in "[abc]{0,24}") {
            prop_assert_eq!(by_definition(&piece), merged(&early(), &piece, false));
        }
    }

    #[test]
    fn a_flag_stops_a_long_piece_alone() {
        let early = early();
        let short = "ab".repeat(99);
        assert_eq!(by_definition(&short), merged(&early, &short, true));
        let long = "ab".repeat(STOP_INTERVAL + 1);
        assert!(merged(&early, &long, true).is_empty());
        assert_eq!(STOP_INTERVAL / 2 + 1, merged(&early, &long, false).len()); // of abab
    }
}
