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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::block::{BLOCK, put_posting};
    use crate::corpus::list::put_list;

    /// The chunk from which on the chunks of these lists are counted.
    const FIRST: u32 = 10;

    /// Returns the bytes of the list of some chunks with their counts.
    fn written(chunks: &[(u32, u32)], lengths: &[u32]) -> Vec<u8> {
        let (mut few, mut next, mut bytes) = (Vec::new(), FIRST, Vec::new());
        for &(chunk, count) in chunks {
            put_posting(Posting { chunk, count, is_keyword: false }, next, &mut few);
            next = chunk + 1;
        }
        let frequency = u32::try_from(chunks.len()).expect("there are few");
        put_list(&few, frequency, FIRST, lengths, &mut bytes);
        bytes
    }

    fn list<'a>(chunks: &[(u32, u32)], bytes: &'a [u8]) -> List<'a> {
        let frequency = u32::try_from(chunks.len()).expect("there are few");
        List { frequency, first: FIRST, row: 0, bytes }
    }

    fn figures(bound: Option<Bound>) -> Option<(u32, u32)> {
        bound.map(|Bound { most, least }| (most, least))
    }

    #[test]
    fn what_is_far_in_front_bounds_nothing() {
        // A block from 10 to 111, with a posting at either end.
        let (chunks, lengths) = ([(10, 7), (110, 3)], [5; 200]);
        let bytes = written(&chunks, &lengths);
        let bound = |start, end| {
            let mut cursor = Cursor::new(&list(&chunks, &bytes), &lengths);
            cursor.pass_to(start, end);
            figures(cursor.bound(end))
        };
        // A sixteenth of the block is 6 chunks.
        for (start, end) in [(50, 56), (50, 90), (11, 17), (10, 11), (11, 111)] {
            assert_eq!(Some((7, 5)), bound(start, end), "{start} {end}");
        }
        for (start, end) in [(50, 55), (50, 51), (11, 16), (105, 110), (10, 10)] {
            assert_eq!(None, bound(start, end), "{start} {end}");
        }
        assert_eq!(Some((7, 5)), bound(107, 111));
        // It has ended.
        for (start, end) in [(111, 112), (150, 190)] {
            assert_eq!(None, bound(start, end), "{start} {end}");
        }
    }

    /// Three blocks: the chunks with even numbers, of counts that tell the block.
    fn long() -> Vec<(u32, u32)> {
        (0..2 * BLOCK + 9).map(|nth| (FIRST + 2 * nth, 1 + nth / BLOCK)).collect()
    }

    #[test]
    fn blocks_are_bounded_as_far_as_they_reach() {
        let (chunks, lengths) = (long(), (1_000..2_000).rev().collect::<Vec<u32>>());
        let bytes = written(&chunks, &lengths);
        let length_of = |chunk: u32| lengths[chunk as usize];
        // The chunks behind each block.
        let [first, second] = [0, 1].map(|nth| FIRST + 2 * BLOCK * (nth + 1) - 1);
        let last = chunks[chunks.len() - 1].0;
        let of_blocks = [first, second, last + 1].map(|end| length_of(end - 1));
        let cursor = Cursor::new(&list(&chunks, &bytes), &lengths);
        for (end, blocks) in [
            (FIRST, 0),
            (FIRST + 1, 1),
            (first, 1),
            (first + 1, 2),
            (second, 2),
            (second + 1, 3),
            (last + 100, 3),
        ] {
            let bound = (1..=3).zip(of_blocks).take(blocks).last();
            assert_eq!(bound, figures(cursor.bound(end)), "{end}");
        }
        for (start, most) in [(first - 1, 1), (first + 1, 2), (second - 1, 2), (second + 1, 3)] {
            let mut cursor = cursor.clone();
            cursor.pass_to(start, start + 1);
            let bound = (most, of_blocks[most as usize - 1]);
            assert_eq!(Some(bound), figures(cursor.bound(start + 1)), "{start}");
        }
        let mut done = cursor.clone();
        done.pass_to(last + 1, last + 2);
        assert_eq!(None, figures(done.bound(u32::MAX)));
        done.pass_to(u32::MAX, u32::MAX);
        assert_eq!(None, done.seek(u32::MAX));
    }

    #[test]
    fn all_postings_are_read_in_whatever_steps() {
        let (chunks, lengths) = (long(), vec![5; 1_000]);
        let bytes = written(&chunks, &lengths);
        for step in [1, 2, 3, 100, 255, 256, 257, 700] {
            let mut cursor = Cursor::new(&list(&chunks, &bytes), &lengths);
            let mut found = Vec::new();
            for end in (0..700_u32).step_by(step).skip(1).chain([700]) {
                cursor.read_until(end, |posting| {
                    assert!(posting.chunk < end);
                    found.push((posting.chunk, posting.count));
                });
                let passed = chunks.iter().take_while(|&&(chunk, _)| chunk < end);
                assert_eq!(passed.count(), found.len(), "{end}");
            }
            assert_eq!(chunks, found);
        }
    }
}
