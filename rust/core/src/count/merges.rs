//! Which pairs of tokens merge, and to what.
#![allow(clippy::cast_possible_truncation)] // of hashes

use crate::huge::Table;

/// The number of bits in the filter of pairs that merge, as a power of two: an
/// eighth of a megabyte.
const MAY_MERGE_BITS: u32 = 20;

/// The number of tokens that are single bytes.
const SINGLES: usize = 256;

/// How far from its slot an entry may be. By chance none comes near that; a file
/// can be written so that all do.
const FARTHEST: usize = 1 << 11;

/// Ranks have at most this many bits, also after adding one.
const RANK_BITS: u32 = 19;

/// Mixes a pair of ranks.
#[inline]
fn mix_pair((left, right): (u32, u32)) -> u64 {
    let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Finds ranks by a hash. The keys themselves lie elsewhere, by rank, so that
/// frequent ones lie close together. An entry has 4 bytes, and not 16 like a
/// key, so the table is small. That counts: a memory access that misses the
/// caches costs more than all else.
pub(crate) struct Ranks {
    /// The rank plus one in the low bits, and above it as many bits of the hash
    /// as fit; 0 for an empty slot. An entry is in the slot that its hash says,
    /// or in the next free one.
    slots: Table<u32>,
}

impl Ranks {
    /// Returns a table for `count` ranks, at most four fifths full.
    pub(crate) fn new(count: usize) -> Self {
        Self { slots: Table::new((count * 5 / 4 + 2).next_power_of_two()) }
    }

    /// Tells the processor that the entry of a hash is needed soon.
    pub(crate) fn prefetch(&self, mixed: u64) {
        crate::huge::prefetch(&raw const self.slots[self.slot(mixed)]);
    }

    fn slot(&self, mixed: u64) -> usize {
        (mixed >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    /// Adds a rank by its hash. Returns whether there was a slot near its own.
    pub(crate) fn add(&mut self, mixed: u64, rank: u32) -> bool {
        let first = self.slot(mixed);
        let mut slots = (first..=first + FARTHEST).map(|slot| slot & (self.slots.len() - 1));
        let Some(slot) = slots.find(|&slot| self.slots[slot] == 0) else { return false };
        self.slots[slot] = mixed as u32 >> RANK_BITS << RANK_BITS | (rank + 1);
        true
    }

    /// Returns the rank that has this hash and satisfies `is_it`.
    #[inline]
    pub(crate) fn find(&self, mixed: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = mixed as u32 >> RANK_BITS;
        let mut slot = self.slot(mixed);
        loop {
            let found = self.slots[slot];
            if found == 0 {
                return None;
            }
            let rank = (found & ((1 << RANK_BITS) - 1)).wrapping_sub(1);
            if found >> RANK_BITS == tag && is_it(rank) {
                return Some(rank);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

/// The merges of a vocabulary. The parts of each token lie elsewhere, those of
/// the token 256 first, as those before it are single bytes.
pub(crate) struct Merges {
    /// The rank that a pair merges to.
    ranks: Ranks,
    /// A filter: a bit for each pair that merges, by its hash. Most pairs do
    /// not merge, and this soon tells.
    may_merge: Table<u64>,
}

impl Merges {
    /// Returns an empty table for `count` merges.
    pub(crate) fn new(count: usize) -> Self {
        Self { ranks: Ranks::new(count), may_merge: Table::new(1 << (MAY_MERGE_BITS - 6)) }
    }

    /// Adds a merge. Returns whether it can be found soon.
    pub(crate) fn add(&mut self, parts: (u32, u32), merged: u32) -> bool {
        let mixed = mix_pair(parts);
        let bit = (mixed >> (64 - MAY_MERGE_BITS)) as usize;
        self.may_merge[bit / 64] |= 1 << (bit % 64);
        self.ranks.add(mixed, merged)
    }

    /// Returns the rank that a pair merges to.
    #[inline]
    pub(crate) fn find(&self, parts: &[(u32, u32)], pair: (u32, u32)) -> Option<u32> {
        let mixed = mix_pair(pair);
        let bit = (mixed >> (64 - MAY_MERGE_BITS)) as usize;
        if self.may_merge[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        self.ranks.find(mixed, |rank| parts[rank as usize - SINGLES] == pair)
    }

    /// Returns whether two tokens may stand side by side.
    pub(crate) fn may_be_beside(
        &self,
        parts: &[(u32, u32)],
        mut left: u32,
        mut right: u32,
    ) -> bool {
        let parts_of = |rank: u32| Some(parts[(rank as usize).checked_sub(SINGLES)?]);
        // Merges are undone from the last to the first. Where both tokens have
        // the same merge, the left token's is undone first, as merging goes
        // from left to right. A merge across the seam must not come before the
        // one that was undone last.
        let mut undone = u32::MAX;
        loop {
            if self.find(parts, (left, right)).is_some_and(|merged| merged < undone) {
                return false;
            }
            match (parts_of(left), parts_of(right)) {
                (Some((_, inner)), None) => (undone, left) = (left, inner),
                (Some((_, inner)), _) if left > right => (undone, left) = (left, inner),
                (_, Some((inner, _))) => (undone, right) = (right + 1, inner),
                (None, None) => return true,
            }
        }
    }
}
