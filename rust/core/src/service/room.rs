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
pub(super) struct Room<'a> {
    counter: &'a dyn TokenCounter,
    left: usize,
    chunks: usize,
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
    /// Returns the room that `packer` has of `tokens` for a retriever's chunks.
    pub(super) fn new(counter: &'a dyn TokenCounter, tokens: usize, packer: &Packer) -> Self {
        let (max_tokens, reserve_tokens) = packer.limits();
        Self {
            counter,
            left: tokens.min(max_tokens).saturating_sub(reserve_tokens),
            chunks: 0,
            is_skipping: packer.skips(),
            is_tight: false,
            smallest: None,
            seen: packer.dedupes().then(HashSet::new),
            hasher: RandomState::new(),
        }
    }

    /// Takes the texts of a page in, and returns whether the next may bring
    /// more.
    pub(super) fn gains(&mut self, page: &[Chunk]) -> bool {
        self.chunks += page.len();
        if self.chunks >= PAGED_MAX {
            return false;
        }
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
                has_gained = true;
            } else if self.is_skipping {
                self.is_tight = true;
            } else {
                return false;
            }
        }
        has_gained && !(self.is_tight && self.smallest.is_some_and(|least| self.left < least))
    }
}
