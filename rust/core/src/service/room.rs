//! What pages of chunks may fill.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::chunk::Chunk;
use crate::count::TokenCounter;
use crate::packer::Packer;

/// So many chunks are read in pages at most, whatever fits: texts may count
/// nothing.
const PAGED_MAX: usize = 100_000;

/// What a retriever with pages may fill: so many tokens.
///
/// It is full when a chunk does not fit; where such chunks are skipped, when
/// not even one as small as the smallest so far would fit. It takes no further
/// page either behind one of which nothing goes in: all of it is too large, or,
/// where a text is packed once, repeats what came before.
///
/// That is so where chunks are packed as they come. Where they compete, so many
/// are read in any case, and what does not fit is not passed over.
pub(super) struct Room<'a> {
    counter: &'a dyn TokenCounter,
    left: usize,
    chunks: usize,
    /// So many chunks are read in any case.
    at_least: usize,
    fitting: usize,
    /// So many that fit are enough.
    at_most: usize,
    is_skipping: bool,
    /// One did not fit.
    is_tight: bool,
    /// Of the chunks so far, empty ones aside.
    smallest: Option<usize>,
    /// The texts so far, by their hash, where each counts once.
    seen: Option<HashSet<u64>>,
    hasher: RandomState,
}

impl<'a> Room<'a> {
    /// Returns the room that `packer` has in `tokens` for the chunks of a
    /// retriever, `limit` of which are read where they compete: where a reranker
    /// reorders them, or the packer does not take them as they come.
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

    /// Takes a page in, and returns whether the next may bring more.
    pub(super) fn gains(&mut self, page: &[Chunk]) -> bool {
        self.chunks += page.len();
        if page.is_empty() || self.chunks >= PAGED_MAX {
            return false;
        }
        let has_gained = !self.is_full() && self.takes(page);
        self.chunks < self.at_least || (has_gained && !self.is_full())
    }

    /// Takes the texts of a page in, and returns whether any went in.
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
