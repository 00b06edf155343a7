//! Byte pair encoding: how many tokens a pretoken has.
//!
//! A pretoken that is a token counts one. Any other is merged. If it is short,
//! that is done as the encoding is defined: of all pairs of neighbours the one
//! whose merge has the lowest rank merges, again and again.
//!
//! Of a longer one the tokens are found from left to right: the longest token that starts at a place is taken if it
//! may stand behind the one before, else the next shorter one, else the one
//! before is taken back. Whether two tokens may stand side by side follows from
//! undoing their merges: at no point may there have been an earlier merge
//! across the seam. No place is given up twice, so the work is linear in the
//! length. (The method is that of the crate `bpe`, van Antwerpen and Neubeck
//! 2024; here the longest token comes from hash tables, which are made in a few
//! milliseconds, instead of an automaton.)
#![allow(clippy::cast_possible_truncation)] // of hashes, and of lengths and counts that fit

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use budgeteer_vocab::{Encoding, Vocabulary};

use crate::huge::Table;

/// Pretokens and tokens up to so many bytes are keys by themselves.
pub(crate) const SHORT: usize = 15;

/// Pretokens up to so many bytes are merged pair by pair.
const PAIRWISE: usize = 32;

/// So many tokens are found between two looks at whether to stop.
const STOP_INTERVAL: usize = 1 << 16;

/// So many bits tell which pairs may merge, as a power of two: an eighth of a
/// megabyte.
const MAY_MERGE_BITS: u32 = 20;

const NO_TOKEN: u32 = u32::MAX;

/// The short pretoken `bytes` as a number: its bytes, and its length in the
/// lower half of the last byte. The upper half is for a count.
pub(crate) fn key(bytes: &[u8]) -> u128 {
    let mut padded = [0; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded[SHORT] = bytes.len() as u8;
    u128::from_le_bytes(padded)
}

/// Mixes a key: the high bits of the answer choose a slot.
#[inline]
pub(crate) fn mix(key: u128) -> u64 {
    let (low, high) = (key as u64, (key >> 64) as u64);
    let mixed = (low ^ high.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ high).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// What counting with one encoding needs.
pub(crate) struct Bpe {
    vocabulary: Vocabulary,
    tables: Tables,
    /// What [`Self::shorter`] found for each token, and one more; 0 where it
    /// was not asked yet.
    shorter: Box<[AtomicU32]>,
}

/// Where tokens and merges are found.
struct Tables {
    /// The keys of the short tokens where [`mix`] puts them or behind, and 0
    /// where none is; and their ranks.
    keys: Table<u128>,
    ranks: Table<u32>,
    /// The longer tokens by their first 16 bytes, the longest first.
    long: HashMap<[u8; 16], Vec<u32>>,
    /// The rank of each single byte.
    ones: [u32; 256],
    /// The rank of each token of two bytes.
    twos: Box<[u32]>,
    /// A bit for each token of two bytes.
    are_twos: Box<[u64; 1024]>,
    /// The lengths of tokens that start with four bytes, by a hash of these:
    /// 4 to 7 as bits 0 to 3, and whether there are any of 8 or more.
    fours: Filter<4>,
    /// Likewise for eight bytes: 8 to 15 as bits 0 to 7.
    eights: Filter<8>,
    /// Pairs that merge, with what they merge to: see [`Self::add_merge`].
    merges: Table<u64>,
    /// A bit for each pair that merges, by its hash: most pairs do not, and
    /// that is soon seen here.
    may_merge: Table<u64>,
}

/// Tells by the first `N` bytes which lengths are worth a look.
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
        // Three quarters full at most.
        let size = (vocabulary.len() * 4 / 3).next_power_of_two();
        let mut tables = Self {
            keys: Table::new(size),
            ranks: Table::new(size),
            long: HashMap::new(),
            ones: [NO_TOKEN; 256],
            twos: vec![NO_TOKEN; 1 << 16].into(),
            are_twos: Box::new([0; 1024]),
            fours: Filter::new(),
            eights: Filter::new(),
            merges: Table::new((vocabulary.len() * 5 / 4).next_power_of_two()),
            may_merge: Table::new(1 << (MAY_MERGE_BITS - 6)),
        };
        for (rank, token) in (0..).zip(vocabulary.iter()) {
            tables.add(rank, token);
            if let Some((left, right)) = vocabulary.parts(rank) {
                tables.add_merge(left, right, rank);
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
            [first, second] => {
                let pair = usize::from(*first) << 8 | usize::from(*second);
                self.twos[pair] = rank;
                self.are_twos[pair / 64] |= 1 << (pair % 64);
            }
            _ => {}
        }
        match token.len() {
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
                let key = key(token);
                let mut slot = self.slot(mix(key));
                while self.keys[slot] != 0 {
                    slot = (slot + 1) & (self.keys.len() - 1);
                }
                self.keys[slot] = key;
                self.ranks[slot] = rank;
            }
        }
    }

    /// Returns where in a table of this encoding a mixed key belongs.
    fn slot(&self, mixed: u64) -> usize {
        (mixed >> (64 - self.keys.len().trailing_zeros())) as usize
    }

    /// Returns the rank of a token of at most [`SHORT`] bytes by its key.
    fn short(&self, key: u128, mixed: u64) -> Option<u32> {
        let mut slot = self.slot(mixed);
        while self.keys[slot] != 0 {
            if self.keys[slot] == key {
                return Some(self.ranks[slot]);
            }
            slot = (slot + 1) & (self.keys.len() - 1);
        }
        None
    }

    /// A pair and its merge in one number, which is never 0: ranks have 18 bits,
    /// and what merges ranks higher than its parts.
    fn add_merge(&mut self, left: u32, right: u32, merged: u32) {
        let pair = u64::from(left) << 18 | u64::from(right);
        let mixed = mix(u128::from(pair));
        let bit = (mixed >> (64 - MAY_MERGE_BITS)) as usize;
        self.may_merge[bit / 64] |= 1 << (bit % 64);
        let mut slot = self.merge_slot(mixed);
        while self.merges[slot] != 0 {
            slot = (slot + 1) & (self.merges.len() - 1);
        }
        self.merges[slot] = pair << 18 | u64::from(merged);
    }

    fn merge_slot(&self, mixed: u64) -> usize {
        (mixed >> (64 - self.merges.len().trailing_zeros())) as usize
    }

    /// Returns what a pair merges to.
    fn merge(&self, left: u32, right: u32) -> Option<u32> {
        let pair = u64::from(left) << 18 | u64::from(right);
        let mixed = mix(u128::from(pair));
        let bit = (mixed >> (64 - MAY_MERGE_BITS)) as usize;
        if self.may_merge[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let mut slot = self.merge_slot(mixed);
        loop {
            let merge = self.merges[slot];
            if merge == 0 {
                return None;
            }
            if merge >> 18 == pair {
                return Some((merge & 0x3_FFFF) as u32);
            }
            slot = (slot + 1) & (self.merges.len() - 1);
        }
    }
}

impl Bpe {
    pub(crate) fn new(encoding: Encoding) -> Self {
        let vocabulary = encoding.load();
        let tables = Tables::new(&vocabulary);
        let shorter = (0..vocabulary.len()).map(|_| AtomicU32::new(0)).collect();
        Self { vocabulary, tables, shorter }
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

    /// Returns the tokens of 16 bytes or more that start as `bytes`, of which
    /// there must be as many, do; the longest first.
    fn long_starting(&self, bytes: &[u8]) -> &[u32] {
        let start = bytes.first_chunk::<16>();
        start.and_then(|start| self.tables.long.get(start)).map_or(&[], Vec::as_slice)
    }

    fn token(&self, rank: u32) -> &[u8] {
        self.vocabulary.token(rank)
    }

    /// Returns the longest token that `bytes`, of which there is at least one,
    /// start with.
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
            self.tables.short(key, mix(key))
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

    /// Returns the longest token that is shorter than `rank`, whose start it
    /// is.
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

    /// Returns whether two tokens may stand side by side.
    fn may_follow(&self, mut left: u32, mut right: u32) -> bool {
        // Merges are undone from the last to the first, that of the left token
        // before that of the right one where they are the same: merging goes
        // from left to right. A merge across the seam must not come before the
        // one that was undone last.
        let mut undone = u32::MAX;
        loop {
            if self.tables.merge(left, right).is_some_and(|merged| merged < undone) {
                return false;
            }
            let left_parts = self.vocabulary.parts(left);
            let right_parts = self.vocabulary.parts(right);
            match (left_parts, right_parts) {
                (Some((_, inner)), None) => (undone, left) = (left, inner),
                (Some((_, inner)), _) if left > right => (undone, left) = (left, inner),
                (_, Some((inner, _))) => (undone, right) = (right + 1, inner),
                (None, None) => return true,
            }
        }
    }

    /// Returns the number of tokens of a pretoken, of which there is at least
    /// one byte. Once `stop` is set the answer means nothing.
    pub(crate) fn count(&self, piece: &[u8], scratch: &mut Encoded, stop: &AtomicBool) -> usize {
        if self.is_token(piece) { 1 } else { self.count_merged(piece, scratch, stop) }
    }

    /// Returns the number of tokens of a pretoken of two bytes.
    #[inline]
    pub(crate) fn count_two(&self, [first, second]: [u8; 2]) -> usize {
        let pair = usize::from(first) << 8 | usize::from(second);
        2 - (self.tables.are_twos[pair / 64] >> (pair % 64) & 1) as usize
    }

    /// Returns the number of tokens of a pretoken that is none.
    pub(crate) fn count_merged(
        &self,
        piece: &[u8],
        scratch: &mut Encoded,
        stop: &AtomicBool,
    ) -> usize {
        self.merge(piece, scratch, stop).len()
    }

    /// Tells the processor that the token of a mixed key is looked for soon.
    pub(crate) fn prefetch(&self, mixed: u64) {
        crate::huge::prefetch(&raw const self.tables.keys[self.tables.slot(mixed)]);
    }

    /// Returns whether the key, mixed, is that of a token.
    pub(crate) fn is_short_token(&self, key: u128, mixed: u64) -> bool {
        self.tables.short(key, mixed).is_some()
    }

    /// Calls `visit` with the length of each token of a pretoken.
    pub(crate) fn lengths(
        &self,
        piece: &[u8],
        scratch: &mut Encoded,
        stop: &AtomicBool,
        mut visit: impl FnMut(usize),
    ) {
        if self.is_token(piece) {
            return visit(piece.len());
        }
        for &token in self.merge(piece, scratch, stop) {
            visit(self.token(token).len());
        }
    }

    /// Returns the tokens of a pretoken that is none.
    fn merge<'s>(&self, piece: &[u8], scratch: &'s mut Encoded, stop: &AtomicBool) -> &'s [u32] {
        if piece.len() <= PAIRWISE {
            scratch.tokens.clear();
            self.merge_pairwise(piece, &mut scratch.tokens);
        } else {
            self.merge_from_left(piece, scratch, stop);
        }
        &scratch.tokens
    }

    /// Merges the neighbours of lowest rank, the leftmost of them, until none
    /// merge.
    fn merge_pairwise(&self, piece: &[u8], tokens: &mut Vec<u32>) {
        let mut ranks = [NO_TOKEN; PAIRWISE];
        let mut parts = [0; PAIRWISE];
        let mut count = piece.len();
        for (part, &byte) in parts.iter_mut().zip(piece) {
            *part = self.tables.ones[usize::from(byte)];
        }
        for (rank, pair) in ranks.iter_mut().zip(piece.windows(2)) {
            *rank = self.tables.twos[usize::from(pair[0]) << 8 | usize::from(pair[1])];
        }
        let merge = |left: u32, right: u32| self.tables.merge(left, right).unwrap_or(NO_TOKEN);
        loop {
            let lowest = ranks.iter().fold(NO_TOKEN, |lowest, &rank| lowest.min(rank));
            if lowest == NO_TOKEN {
                break;
            }
            let at = ranks.iter().position(|&rank| rank == lowest).expect("it is one of them");
            parts[at] = lowest;
            parts.copy_within(at + 2..count, at + 1);
            ranks.copy_within(at + 1..count, at);
            count -= 1;
            ranks[count - 1] = NO_TOKEN;
            if at + 1 < count {
                ranks[at] = merge(lowest, parts[at + 1]);
            }
            if at > 0 {
                ranks[at - 1] = merge(parts[at - 1], lowest);
            }
        }
        tokens.extend_from_slice(&parts[..count]);
    }

    /// Finds the tokens from left to right.
    fn merge_from_left(&self, piece: &[u8], scratch: &mut Encoded, stop: &AtomicBool) {
        let Encoded { tokens, given_up } = scratch;
        tokens.clear();
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
