//! Reading a list from chunk to chunk, passing over blocks.

use super::postings::{BLOCK, List, Posting, take, take_posting};

/// A block that reaches over this many times as many chunks as are looked at has
/// few postings among them.
const SPARSE: u32 = 16;

/// What bounds the scores of some chunks for a term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// No count is larger.
    pub(super) most: u32,
    /// No chunk is shorter.
    pub(super) least: u32,
}

/// A block of a list.
#[derive(Clone, Copy, Debug)]
struct Block<'a> {
    /// The chunk behind its last one.
    end: u32,
    /// What is left of it.
    rest: &'a [u8],
    bound: Bound,
}

/// A place in a list. It only goes forward.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    /// The rest of the table, behind the block.
    table: &'a [u8],
    /// The bytes of the blocks behind this one.
    behind: &'a [u8],
    block: Block<'a>,
    /// The chunk from which on the next posting is counted.
    next: u32,
}

impl<'a> Cursor<'a> {
    /// Returns the beginning of a list. `lengths` has those of all chunks.
    pub(super) fn new(list: &List<'a>, lengths: &[u32]) -> Self {
        let (table, entries) = list.parts();
        let next = list.first;
        if list.frequency > BLOCK {
            let block = Block { end: next, rest: &[], bound: Bound { most: 0, least: u32::MAX } };
            let mut cursor = Self { table, behind: entries, block, next };
            cursor.pass();
            return cursor;
        }
        let (mut end, mut bound) = (next, Bound { most: 0, least: u32::MAX });
        list.for_each(|Posting { chunk, count, .. }| {
            let length = lengths.get(chunk as usize).copied().unwrap_or_default();
            bound = Bound { most: bound.most.max(count), least: bound.least.min(length) };
            end = end.max(chunk.saturating_add(1));
        });
        Self { table: &[], behind: &[], block: Block { end, rest: entries, bound }, next }
    }

    /// Returns the block that the table names next, and what is behind it in the
    /// table; None where there is none.
    fn following(table: &'a [u8], behind: &'a [u8], from: u32) -> Option<(Block<'a>, &'a [u8])> {
        let mut table = table;
        let passed = take(&mut table)?;
        let size = usize::try_from(take(&mut table)?).ok()?;
        let mut number = || take(&mut table).and_then(|number| u32::try_from(number).ok());
        let bound = Bound { most: number()?, least: number()? };
        let end = from.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
        let rest = behind.get(..size)?;
        Some((Block { end, rest, bound }, table))
    }

    /// Goes to the next block; at the end there is an empty one for all chunks.
    fn pass(&mut self) {
        self.next = self.block.end;
        if let Some((block, table)) = Self::following(self.table, self.behind, self.block.end) {
            self.behind = &self.behind[block.rest.len()..];
            (self.block, self.table) = (block, table);
        } else {
            self.block =
                Block { end: u32::MAX, rest: &[], bound: Bound { most: 0, least: u32::MAX } };
            (self.table, self.behind) = (&[], &[]);
        }
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
        self.block.rest.is_empty() && self.table.is_empty()
    }

    /// Returns a bound of the postings from here to `end`; None where there are
    /// none.
    pub(super) fn bound(&self, end: u32) -> Option<Bound> {
        let mut peeked = self.block.rest;
        let mut found = None;
        if let Some(posting) = take_posting(&mut peeked, self.next) {
            if posting.chunk >= end {
                return None;
            }
            found = Some(self.block.bound);
        }
        let (mut table, mut behind, mut from) = (self.table, self.behind, self.block.end);
        while from < end
            && let Some((block, rest)) = Self::following(table, behind, from)
        {
            let bound = found.get_or_insert(block.bound);
            bound.most = bound.most.max(block.bound.most);
            bound.least = bound.least.min(block.bound.least);
            (table, behind, from) = (rest, &behind[block.rest.len()..], block.end);
        }
        found
    }

    /// Calls `visit` with each posting in front of chunk `end`, and passes it.
    #[inline]
    pub(super) fn read_until(&mut self, end: u32, mut visit: impl FnMut(Posting)) {
        loop {
            let (mut rest, mut next) = (self.block.rest, self.next);
            let mut behind = rest;
            while let Some(posting) = take_posting(&mut behind, next) {
                if posting.chunk >= end {
                    (self.block.rest, self.next) = (rest, next);
                    return;
                }
                visit(posting);
                (rest, next) = (behind, posting.chunk.wrapping_add(1));
            }
            (self.block.rest, self.next) = (&[], next);
            if self.block.end >= end || self.table.is_empty() {
                return;
            }
            self.pass();
        }
    }

    /// Returns the posting of `chunk`, if the list has it.
    #[inline]
    pub(super) fn seek(&mut self, chunk: u32) -> Option<Posting> {
        while self.block.end <= chunk && !self.is_done() {
            self.pass();
        }
        let (mut rest, mut next) = (self.block.rest, self.next);
        let mut behind = rest;
        let mut found = None;
        while let Some(posting) = take_posting(&mut behind, next) {
            if posting.chunk > chunk {
                break;
            }
            (rest, next) = (behind, posting.chunk.wrapping_add(1));
            if posting.chunk == chunk {
                found = Some(posting);
                break;
            }
        }
        (self.block.rest, self.next) = (rest, next);
        found
    }
}
