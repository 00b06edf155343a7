//! Byte pair encoding: how many tokens a pretoken has.
//!
//! A pretoken that is a token counts 1. Any other is merged. A short one is
//! merged as the encoding is defined: the pair of neighbours whose merge has
//! the lowest rank is merged, again and again.
//!
//! A longer one is encoded from left to right. It takes the longest token that
//! starts at the place and may stand behind the token before; else the next
//! shorter one; else it takes the token before back. Undoing the merges of two
//! tokens tells whether they may stand side by side: at no point may there have
//! been an earlier merge across the seam. No place is given up twice, so the
//! work is linear in the length.
//!
//! The method is that of the crate `bpe` (van Antwerpen and Neubeck, 2024).
//! Here the longest token comes from hash tables, which are made in a few
//! milliseconds, instead of an automaton.
#![allow(clippy::cast_possible_truncation)] // of hashes, and of lengths and counts that fit

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use budgeteer_vocab::Vocabulary;

use super::early::Early;
use super::joins::Joins;
use super::merges::{Merges, Ranks};
use crate::huge::Table;

/// Pretokens and tokens of at most this many bytes are their own keys.
pub(crate) const SHORT: usize = 15;

/// Pretokens of at most this many bytes are merged pair by pair.
const PAIRWISE: usize = 32;

/// The number of bits of a place in such a pretoken.
const PLACE_BITS: u32 = PAIRWISE.ilog2();

/// How many tokens are found between two looks at `stop`.
const STOP_INTERVAL: usize = 1 << 16;

/// Stands for no token. A place beside it still fits a signed number.
pub(super) const NO_TOKEN: u32 = i32::MAX as u32 >> PLACE_BITS;

/// Returns the key of a short pretoken: its bytes, with its length in the lower
/// half of the last byte. The upper half is for a count.
pub(crate) fn key(bytes: &[u8]) -> u128 {
    let mut padded = [0; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded[SHORT] = bytes.len() as u8;
    u128::from_le_bytes(padded)
}

/// Mixes a key. The high bits of the result choose a slot.
#[inline]
pub(crate) fn mix(key: u128) -> u64 {
    let (low, high) = (key as u64, (key >> 64) as u64);
    let mixed = (low ^ high.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ high).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// All that counting with one encoding needs.
pub(crate) struct Bpe {
    vocabulary: Vocabulary,
    tables: Tables,
    /// The tokens that no merge makes: only a whole pretoken is one.
    wholes: HashSet<Box<[u8]>>,
    joins: Joins,
    /// What makes it matter that some tokens merge early.
    early: Early,
    /// The result of [`Self::shorter`] for each token, plus one; 0 where it was
    /// not asked for yet.
    shorter: Box<[AtomicU32]>,
}

/// Where tokens and merges are found.
struct Tables {
    /// The keys of the short tokens by rank, 0 for the longer ones; and their
    /// ranks by key.
    keys: Table<u128>,
    short: Ranks,
    /// The longer tokens by their first 16 bytes, the longest first.
    long: HashMap<[u8; 16], Vec<u32>>,
    /// The rank of each single byte.
    ones: [u32; 256],
    /// The rank of each token of two bytes.
    twos: Box<[u32]>,
    /// A bit for each token of two bytes.
    are_twos: Box<[u64; 1024]>,
    /// The lengths of tokens that start with four given bytes, by a hash of
    /// these: lengths 4 to 7 as bits 0 to 3, then a bit for any of 8 to 15, and
    /// one for more.
    fours: Filter<4>,
    /// The lengths of tokens that start with eight given bytes: 8 to 15 as bits
    /// 0 to 7.
    eights: Filter<8>,
    merges: Merges,
}

/// Tells by the first `N` bytes which lengths a token may have.
struct Filter<const N: usize> {
    lengths: Table<u8>,
}

impl<const N: usize> Filter<N> {
    const BITS: u32 = 17;

    fn new() -> Self {
        Self { lengths: Table::new(1 << Self::BITS) }
    }

    fn place(text: &[u8]) -> usize {
        let mut padded = [0; 8];
        padded[..N].copy_from_slice(&text[..N]);
        let word = u64::from_le_bytes(padded).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (word >> (64 - Self::BITS)) as usize
    }

    fn add(&mut self, token: &[u8], bit: usize) {
        self.lengths[Self::place(token)] |= 1 << bit;
    }

    fn lengths(&self, text: &[u8]) -> u8 {
        self.lengths[Self::place(text)]
    }
}

/// Scratch of a merge.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    tokens: Vec<u32>,
    /// Places that no token may end at, as bits.
    given_up: Vec<u64>,
}

impl Tables {
    fn new(vocabulary: &Vocabulary) -> Self {
        let mut tables = Self {
            keys: Table::new(vocabulary.len()),
            short: Ranks::new(vocabulary.len()),
            long: HashMap::new(),
            ones: [NO_TOKEN; 256],
            twos: vec![NO_TOKEN; 1 << 16].into(),
            are_twos: Box::new([0; 1024]),
            fours: Filter::new(),
            eights: Filter::new(),
            merges: Merges::new(vocabulary.len()),
        };
        for (rank, token) in (0..).zip(vocabulary.iter()) {
            tables.add(rank, token);
            if let Some(parts) = vocabulary.parts(rank) {
                tables.merges.add(parts, rank);
            }
        }
        for ranks in tables.long.values_mut() {
            ranks.sort_unstable_by_key(|&rank| std::cmp::Reverse(vocabulary.token(rank).len()));
        }
        tables
    }

    fn add(&mut self, rank: u32, token: &[u8]) {
        match token {
            [byte] => self.ones[usize::from(*byte)] = rank,
            &[first, second] => {
                let pair = self.set_two([first, second]);
                self.twos[pair] = rank;
            }
            _ => {}
        }
        match token.len() {
            16.. => self.fours.add(token, 5),
            8.. => self.fours.add(token, 4),
            length @ 4..8 => self.fours.add(token, length - 4),
            _ => {}
        }
        match token.len() {
            16.. => {
                let start = token[..16].try_into().expect("there are at least 16");
                self.long.entry(start).or_default().push(rank);
            }
            length => {
                if length >= 8 {
                    self.eights.add(token, length - 8);
                }
                self.keys[rank as usize] = key(token);
                self.short.add(mix(key(token)), rank);
            }
        }
    }

    /// Notes that two bytes count one token. Returns their place.
    fn set_two(&mut self, [first, second]: [u8; 2]) -> usize {
        let pair = usize::from(first) << 8 | usize::from(second);
        self.are_twos[pair / 64] |= 1 << (pair % 64);
        pair
    }
}

impl Bpe {
    pub(crate) fn new(vocabulary: Vocabulary) -> Self {
        let mut tables = Tables::new(&vocabulary);
        let wholes: HashSet<Box<[u8]>> = vocabulary.wholes().iter().cloned().collect();
        for whole in &wholes {
            if let [first, second] = **whole {
                tables.set_two([first, second]);
            }
        }
        let shorter = (0..vocabulary.len()).map(|_| AtomicU32::new(0)).collect();
        let (joins, early) = (Joins::new(&vocabulary), Early::new(&vocabulary));
        Self { vocabulary, tables, wholes, joins, early, shorter }
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Returns which characters may be side by side in a token.
    pub(crate) fn joins(&self) -> &Joins {
        &self.joins
    }

    /// Returns whether the bytes are one token.
    fn is_token(&self, bytes: &[u8]) -> bool {
        match bytes.len() {
            0..=SHORT => {
                let key = key(bytes);
                self.is_short_token(key, mix(key))
            }
            _ => self.long_starting(bytes).iter().any(|&rank| self.token(rank) == bytes),
        }
    }

    /// Returns whether the bytes are a token that no merge makes.
    pub(crate) fn is_whole(&self, bytes: &[u8]) -> bool {
        !self.wholes.is_empty() && self.wholes.contains(bytes)
    }

    /// Returns the tokens of 16 bytes or more that start with the first 16 of
    /// `bytes`, the longest first. There must be 16.
    fn long_starting(&self, bytes: &[u8]) -> &[u32] {
        let start = bytes.first_chunk::<16>();
        let start = start.filter(|start| self.tables.fours.lengths(*start) & 1 << 5 != 0);
        start.and_then(|start| self.tables.long.get(start)).map_or(&[], Vec::as_slice)
    }

    fn token(&self, rank: u32) -> &[u8] {
        self.vocabulary.token(rank)
    }

    /// Returns the longest token that `bytes` start with. They must not be
    /// empty.
    fn longest(&self, bytes: &[u8]) -> u32 {
        let longer = |&&rank: &&u32| bytes.starts_with(self.token(rank));
        if bytes.len() > SHORT
            && let Some(&rank) = self.long_starting(bytes).iter().find(longer)
        {
            return rank;
        }
        let mut lengths: u32 = 0;
        if bytes.len() >= 4 {
            let fours = self.tables.fours.lengths(bytes);
            lengths = u32::from(fours & 0xF) << 4;
            if fours & 0x10 != 0 && bytes.len() >= 8 {
                lengths |= u32::from(self.tables.eights.lengths(bytes)) << 8;
            }
        }
        lengths &= (2 << bytes.len().min(SHORT)) - 1;
        let whole = key(&bytes[..bytes.len().min(SHORT)]) & (u128::MAX >> 8);
        let short = |length: u32| {
            let part = whole & ((1 << (8 * length)) - 1);
            let key = part | u128::from(length) << 120;
            self.short(key, mix(key))
        };
        while lengths != 0 {
            let length = lengths.ilog2();
            if let Some(rank) = short(length) {
                return rank;
            }
            lengths ^= 1 << length;
        }
        if bytes.len() >= 3
            && let Some(rank) = short(3)
        {
            return rank;
        }
        if let [first, second, ..] = bytes {
            let rank = self.tables.twos[usize::from(*first) << 8 | usize::from(*second)];
            if rank != NO_TOKEN {
                return rank;
            }
        }
        self.tables.ones[usize::from(bytes[0])]
    }

    /// Returns the longest token that is a proper prefix of token `rank`.
    fn shorter(&self, rank: u32) -> Option<u32> {
        let ([start @ .., _], true) = (self.token(rank), self.token(rank).len() > 1) else {
            return None;
        };
        let known = &self.shorter[rank as usize];
        match known.load(Ordering::Relaxed) {
            0 => {
                let found = self.longest(start);
                known.store(found + 1, Ordering::Relaxed);
                Some(found)
            }
            found => Some(found - 1),
        }
    }

    /// Returns the rank that a pair merges to, or [`NO_TOKEN`].
    #[inline]
    fn merged(&self, parts: (u32, u32)) -> u32 {
        self.tables.merges.find(self.vocabulary.merges(), parts).unwrap_or(NO_TOKEN)
    }

    /// Returns the rank of a token of at most [`SHORT`] bytes by its key.
    fn short(&self, key: u128, mixed: u64) -> Option<u32> {
        self.tables.short.find(mixed, |rank| self.tables.keys[rank as usize] == key)
    }

    /// Returns whether two tokens may stand side by side.
    fn may_follow(&self, left: u32, right: u32) -> bool {
        self.tables.merges.may_be_beside(self.vocabulary.merges(), left, right)
    }

    /// Returns the number of tokens of a pretoken, which is not empty. The
    /// result means nothing once `stop` is set.
    pub(crate) fn count(&self, piece: &[u8], scratch: &mut Encoded, stop: &AtomicBool) -> usize {
        if self.is_token(piece) { 1 } else { self.count_merged(piece, scratch, stop) }
    }

    /// Returns the number of tokens of a pretoken of two bytes.
    #[inline]
    pub(crate) fn count_two(&self, [first, second]: [u8; 2]) -> usize {
        let pair = usize::from(first) << 8 | usize::from(second);
        2 - (self.tables.are_twos[pair / 64] >> (pair % 64) & 1) as usize
    }

    /// Returns the number of tokens of a pretoken that is not a token.
    pub(crate) fn count_merged(
        &self,
        piece: &[u8],
        scratch: &mut Encoded,
        stop: &AtomicBool,
    ) -> usize {
        if self.is_whole(piece) { 1 } else { self.count_part(piece, scratch, stop) }
    }

    /// Returns the number of tokens that merges make of a part of a pretoken.
    pub(crate) fn count_part(
        &self,
        piece: &[u8],
        scratch: &mut Encoded,
        stop: &AtomicBool,
    ) -> usize {
        if piece.len() <= PAIRWISE && !self.early.is_in(piece) {
            return self.merge_pairwise(piece).count_ones() as usize;
        }
        self.merge_from_left(piece, scratch, stop);
        scratch.tokens.len()
    }

    /// Tells the processor that the token of a mixed key is needed soon.
    pub(crate) fn prefetch(&self, mixed: u64) {
        let short = &self.tables.short;
        short.prefetch(mixed);
    }

    /// Returns whether a token has this key. `mixed` is the key, mixed.
    pub(crate) fn is_short_token(&self, key: u128, mixed: u64) -> bool {
        self.short(key, mixed).is_some()
    }

    /// Calls `visit` with the length of each token of a pretoken.
    pub(crate) fn lengths(
        &self,
        piece: &[u8],
        scratch: &mut Encoded,
        stop: &AtomicBool,
        mut visit: impl FnMut(usize),
    ) {
        if self.is_token(piece) || self.is_whole(piece) {
            return visit(piece.len());
        }
        if piece.len() > PAIRWISE || self.early.is_in(piece) {
            self.merge_from_left(piece, scratch, stop);
            return scratch.tokens.iter().for_each(|&token| visit(self.token(token).len()));
        }
        let mut starts = self.merge_pairwise(piece);
        while starts != 0 {
            let start = starts.trailing_zeros();
            starts &= starts - 1;
            let end = if starts == 0 { piece.len() as u32 } else { starts.trailing_zeros() };
            visit((end - start) as usize);
        }
    }

    /// Merges the pair of lowest rank, the leftmost among equals, until no pair
    /// merges. Returns where tokens start, as bits.
    fn merge_pairwise(&self, piece: &[u8]) -> u32 {
        if piece.len() <= PAIRWISE / 2 {
            self.merge_lanes::<{ PAIRWISE / 2 }>(piece)
        } else {
            self.merge_lanes::<PAIRWISE>(piece)
        }
    }

    /// Does [`Self::merge_pairwise`] for at most `N` bytes, merging in place.
    fn merge_lanes<const N: usize>(&self, piece: &[u8]) -> u32 {
        // A lane for each place where a token starts: the rank that it merges
        // to with the next token, then the place. So the least lane is the
        // leftmost pair of lowest rank. Lanes are signed because that minimum
        // is faster.
        let lane = |merged: u32, at: usize| (merged << PLACE_BITS | at as u32).cast_signed();
        let mut lanes = [i32::MAX; N];
        let mut tokens = [0; N];
        for (token, &byte) in tokens.iter_mut().zip(piece) {
            *token = self.tables.ones[usize::from(byte)];
        }
        for (at, pair) in piece.windows(2).enumerate() {
            let pair = usize::from(pair[0]) << 8 | usize::from(pair[1]);
            lanes[at] = lane(self.tables.twos[pair], at);
        }
        let mut starts = u32::MAX >> (PAIRWISE - piece.len());
        loop {
            let least = lanes.iter().fold(i32::MAX, |least, &lane| least.min(lane)).cast_unsigned();
            let (merged, at) = (least >> PLACE_BITS, least as usize % N);
            if merged == NO_TOKEN {
                return starts;
            }
            tokens[at] = merged;
            // The places behind it. The first of them is merged into it.
            let behind = starts & (u32::MAX - 1) << at;
            lanes[behind.trailing_zeros() as usize % N] = i32::MAX;
            starts &= !(behind & behind.wrapping_neg());
            let behind = behind & behind.wrapping_sub(1);
            lanes[at] = if behind == 0 {
                i32::MAX
            } else {
                lane(self.merged((merged, tokens[behind.trailing_zeros() as usize % N])), at)
            };
            let before = starts & ((1 << at) - 1);
            if before != 0 {
                let before = before.ilog2() as usize % N;
                lanes[before] = lane(self.merged((tokens[before], merged)), before);
            }
        }
    }

    /// Finds the tokens from left to right.
    fn merge_from_left(&self, piece: &[u8], scratch: &mut Encoded, stop: &AtomicBool) {
        let Encoded { tokens, given_up } = scratch;
        tokens.clear();
        if self.early.is_in(piece) {
            let start = piece.iter().map(|&byte| self.tables.ones[usize::from(byte)]).collect();
            return self.early.merge(start, |pair| self.merged(pair), tokens, stop);
        }
        given_up.clear();
        given_up.resize(piece.len() / 64 + 1, 0);
        let mut at = 0;
        let mut next = Some(self.longest(piece));
        let mut steps = 0;
        while let Some(mut token) = next {
            steps += 1;
            if steps % STOP_INTERVAL == 0 && stop.load(Ordering::Relaxed) {
                break;
            }
            let last = tokens.last().copied();
            next = loop {
                let end = at + self.token(token).len();
                let is_open = given_up[end / 64] >> (end % 64) & 1 == 0;
                if is_open && last.is_none_or(|last| self.may_follow(last, token)) {
                    tokens.push(token);
                    at = end;
                    break (at < piece.len()).then(|| self.longest(&piece[at..]));
                }
                if let Some(shorter) = self.shorter(token) {
                    token = shorter;
                } else {
                    given_up[at / 64] |= 1 << (at % 64);
                    let last = tokens.pop();
                    at -= last.map_or(0, |last| self.token(last).len());
                    break last;
                }
            };
        }
    }
}

impl std::fmt::Debug for Bpe {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Bpe").field("vocabulary", &self.vocabulary).finish_non_exhaustive()
    }
}
