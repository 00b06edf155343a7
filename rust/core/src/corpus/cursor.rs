//! Reading a list from chunk to chunk, passing over blocks.

use super::block::{Entries, Posting};
use super::list::{Block, Blocks, Bound, List};

/// A block that reaches over this many times as many chunks as are looked at has
/// few postings among them.
const SPARSE: u32 = 16;

/// A place in a list. It only goes forward.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    block: Block<'a>,
    behind: Blocks<'a>,
    /// The chunk from which on the next posting is counted.
    next: u32,
}

impl<'a> Cursor<'a> {
    /// Returns the beginning of a list. `lengths` has those of all chunks.
    pub(super) fn new(list: &List<'a>, lengths: &[u32]) -> Self {
        let next = list.first;
        if list.is_long() {
            let block = Block { end: next, entries: Entries::NONE, bound: Bound::NONE };
            let mut cursor = Self { block, behind: list.blocks(), next };
            cursor.pass();
            return cursor;
        }
        let (mut end, mut bound) = (next, Bound::NONE);
        list.for_each(|Posting { chunk, count, .. }| {
            let length = lengths.get(chunk as usize).copied().unwrap_or_default();
            bound = bound.and(Bound { most: count, least: length });
            end = end.max(chunk.saturating_add(1));
        });
        let block = Block { end, entries: Entries::Few(list.bytes), bound };
        Self { block, behind: Blocks::NONE, next }
    }

    /// Goes to the next block; at the end there is an empty one for all chunks.
    fn pass(&mut self) {
        self.next = self.block.end;
        self.block = self.behind.next().unwrap_or_else(|| {
            self.behind = Blocks::NONE;
            Block { end: u32::MAX, entries: Entries::NONE, bound: Bound::NONE }
        });
    }

    /// Passes the blocks that end before `start`. In a block that reaches over
    /// many more chunks than those up to `end` the postings before it are
    /// passed too, so that they bound nothing.
    pub(super) fn pass_to(&mut self, start: u32, end: u32) {
        while self.block.end <= start && !self.is_done() {
            self.pass();
        }
        if self.next < start && (self.block.end - self.next) / SPARSE > end - start {
            self.read_until(start, |_| ());
        }
    }

    fn is_done(&self) -> bool {
        self.block.entries.is_empty() && self.behind.is_empty()
    }

    /// Returns a bound of the postings from here to `end`; None where there are
    /// none.
    pub(super) fn bound(&self, end: u32) -> Option<Bound> {
        let first = self.block.entries.first(self.next);
        if first.is_some_and(|posting| posting.chunk >= end) {
            return None;
        }
        let mut found = first.map(|_| self.block.bound);
        let (mut from, mut behind) = (self.block.end, self.behind.clone());
        while from < end
            && let Some(block) = behind.next()
        {
            found = Some(found.unwrap_or(Bound::NONE).and(block.bound));
            from = block.end;
        }
        found
    }

    /// Calls `visit` with each posting in front of chunk `end`, and passes it.
    #[inline]
    pub(super) fn read_until(&mut self, end: u32, mut visit: impl FnMut(Posting)) {
        loop {
            self.block.entries.read_until(&mut self.next, end, &mut visit);
            let is_passed = self.block.entries.is_empty();
            if !is_passed || self.block.end >= end || self.behind.is_empty() {
                return;
            }
            self.pass();
        }
    }

    /// Returns the posting of `chunk`, if the list has it. Those in front of it
    /// are passed.
    #[inline]
    pub(super) fn seek(&mut self, chunk: u32) -> Option<Posting> {
        while self.block.end <= chunk && !self.is_done() {
            self.pass();
        }
        self.block.entries.read_until(&mut self.next, chunk, |_| ());
        self.block.entries.first(self.next).filter(|posting| posting.chunk == chunk)
    }
}
