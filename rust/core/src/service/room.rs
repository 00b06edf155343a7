//! The room that pages of chunks may fill.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::chunk::Chunk;
use crate::count::TokenCounter;
use crate::packer::Packer;

/// How many chunks are read in pages at most, whatever fits: texts may count 0.
const PAGED_MAX: usize = 100_000;

/// The room for the chunks of a retriever with pages, in tokens.
///
/// The room is full when a chunk does not fit; where such chunks are skipped,
/// when not even a chunk as small as the smallest so far would fit. Reading
/// also ends behind a page of which nothing goes in: all of it is too large,
/// or, where a text is packed only once, repeats earlier texts.
///
/// This is so where chunks are packed as they come. Where they compete, a
/// number of chunks is read in any case, and no chunk is skipped.
pub(super) struct Room<'a> {
    counter: &'a dyn TokenCounter,
    left: usize,
    chunks: usize,
    /// How many chunks are read in any case.
    at_least: usize,
    fitting: usize,
    /// How many fitting chunks are enough.
    at_most: usize,
    is_skipping: bool,
    /// Whether a chunk did not fit.
    is_tight: bool,
    /// The tokens of the smallest non-empty chunk so far.
    smallest: Option<usize>,
    /// The hashes of the texts so far, where each text is packed only once.
    seen: Option<HashSet<u64>>,
    hasher: RandomState,
}

impl<'a> Room<'a> {
    /// Returns the room that `packer` has in `tokens` for the chunks of a
    /// retriever. At least `limit` chunks are read where they compete: where a
    /// reranker reorders them, or the packer does not take them as they come.
    pub(super) fn new(
        counter: &'a dyn TokenCounter,
        tokens: usize,
        packer: &Packer,
        is_reordering: bool,
        limit: usize,
    ) -> Self {
        let is_competing = is_reordering || !packer.takes_as_they_come();
        let at_most = match packer.most_chunks() {
            Some(_) if is_competing => 0,
            None if is_competing && packer.chooses() => 0,
            most => most.unwrap_or(usize::MAX),
        };
        Self {
            counter,
            left: packer.considered(tokens),
            chunks: 0,
            at_least: if is_competing { limit } else { 0 },
            fitting: 0,
            at_most,
            is_skipping: packer.skips() && !is_competing,
            is_tight: false,
            smallest: None,
            seen: packer.dedupes().then(HashSet::new),
            hasher: RandomState::new(),
        }
    }

    /// Adds a page, and returns whether the next one may bring more.
    pub(super) fn gains(&mut self, page: &[Chunk]) -> bool {
        self.chunks += page.len();
        if page.is_empty() || self.chunks >= PAGED_MAX {
            return false;
        }
        let has_gained = !self.is_full() && self.takes(page);
        self.chunks < self.at_least || (has_gained && !self.is_full())
    }

    /// Adds the texts of a page, and returns whether any went in.
    fn takes(&mut self, page: &[Chunk]) -> bool {
        let mut has_gained = false;
        for Chunk { text, .. } in page {
            if self.seen.as_mut().is_some_and(|seen| !seen.insert(self.hasher.hash_one(text))) {
                continue;
            }
            let tokens = self.counter.count(text);
            if tokens > 0 {
                self.smallest = Some(self.smallest.map_or(tokens, |least| least.min(tokens)));
            }
            if tokens <= self.left {
                self.left -= tokens;
                self.fitting += usize::from(!text.is_empty());
                has_gained = true;
            } else {
                self.is_tight = true;
            }
            if self.fitting >= self.at_most || (self.is_tight && !self.is_skipping) {
                break;
            }
        }
        has_gained
    }

    fn is_full(&self) -> bool {
        let is_below = || self.smallest.is_some_and(|least| self.left < least);
        self.fitting >= self.at_most || (self.is_tight && (!self.is_skipping || is_below()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Estimate;
    use crate::ranking::Ranking;

    fn page(texts: &[&str]) -> Vec<Chunk> {
        texts.iter().map(|&text| Chunk::new(text)).collect()
    }

    /// The room of these words, where chunks are taken as they come.
    fn room(words: usize) -> Room<'static> {
        let packer = Packer::new(words).ranking(Ranking::Input);
        Room::new(&Estimate::Words, words, &packer, false, 9)
    }

    #[test]
    fn a_room_is_full_where_not_even_the_smallest_fits() {
        let three_of = |words: &str| room(6).gains(&page(&["a b c", words]));
        assert!(three_of("d e f g"), "three are left");
        let mut room = room(5);
        assert!(!room.gains(&page(&["", "a b c", "d e f"])), "two are left");
        assert_eq!((Some(3), 2), (room.smallest, room.left));
    }

    #[test]
    fn where_chunks_compete_a_number_of_them_is_read() {
        let packer = Packer::new(9);
        let mut room = Room::new(&Estimate::Words, 9, &packer, false, 5);
        let gains = [2, 2, 1].map(|count| room.gains(&page(&["tea", "rye"][..count])));
        assert_eq!([true, true, false], gains, "all but the first two are repeats");
    }
}
