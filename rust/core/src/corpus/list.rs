//! The list of a term: the chunks that have it.
//!
//! A list of more than [`BLOCK`] chunks begins with a table. It has for each block
//! of as many chunks, little-endian, how many chunks were passed from the block
//! before to the last of this one (4 bytes), how many bytes the block has, the
//! largest count in it, and the length of its shortest chunk (2 bytes each, the
//! largest of which stands for all that are larger). The blocks follow.

use super::block::{BLOCK, Entries, PADDING, Posting, put_block};

/// The size of the row of a block.
const ROW: usize = 10;

/// The chunks that have a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'a> {
    pub(super) frequency: u32,
    /// The chunk from which on they are counted.
    pub(super) first: u32,
    /// The row of the term.
    pub(super) row: u32,
    pub(super) bytes: &'a [u8],
}

/// What bounds the scores of some chunks for a term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// No count is larger.
    pub(super) most: u32,
    /// No chunk is shorter.
    pub(super) least: u32,
}

impl Bound {
    /// Of no chunks.
    pub(super) const NONE: Self = Self { most: 0, least: u32::MAX };

    pub(super) fn and(self, other: Self) -> Self {
        Self { most: self.most.max(other.most), least: self.least.min(other.least) }
    }
}

/// A block of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    /// The chunk behind its last one.
    pub(super) end: u32,
    /// What is left of it.
    pub(super) entries: Entries<'a>,
    pub(super) bound: Bound,
}

/// The blocks of a list that are left.
#[derive(Clone, Debug)]
pub(super) struct Blocks<'a> {
    table: &'a [u8],
    bytes: &'a [u8],
    /// The chunk behind the last block.
    end: u32,
}

impl<'a> List<'a> {
    /// Returns whether it has a table.
    pub(super) fn is_long(&self) -> bool {
        self.frequency > BLOCK
    }

    /// Returns the blocks of a list that has a table.
    pub(super) fn blocks(&self) -> Blocks<'a> {
        let size = self.frequency.div_ceil(BLOCK) as usize * ROW;
        let (table, bytes) = self.bytes.split_at_checked(size).unwrap_or_default();
        Blocks { table, bytes, end: self.first }
    }

    /// Calls `visit` with each posting.
    pub(super) fn for_each(&self, mut visit: impl FnMut(Posting)) {
        let mut next = self.first;
        if !self.is_long() {
            return Entries::Few(self.bytes).read_until(&mut next, u32::MAX, visit);
        }
        for mut block in self.blocks() {
            block.entries.read_until(&mut next, u32::MAX, &mut visit);
            next = block.end;
        }
    }
}

impl Blocks<'_> {
    pub(super) const NONE: Self = Self { table: &[], bytes: &[], end: u32::MAX };

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    /// Returns the next block; None where there is none.
    fn next(&mut self) -> Option<Block<'a>> {
        let Self { table, bytes, end } = self;
        let (row, rest) = table.split_first_chunk::<ROW>()?;
        *table = rest;
        let [passed @ .., size, size_high, most, most_high, least, least_high] = *row;
        let size = u16::from_le_bytes([size, size_high]).into();
        let most = u16::from_le_bytes([most, most_high]);
        let most = if most == u16::MAX { u32::MAX } else { most.into() };
        let least = u16::from_le_bytes([least, least_high]).into();
        let bound = Bound { most, least };
        *end = end.saturating_add(u32::from_le_bytes(passed));
        let entries = Entries::of_block(bytes, size);
        *bytes = bytes.get(size..)?;
        Some(Block { end: *end, entries, bound })
    }
}

/// A list with a table that is being appended.
struct Long<'b> {
    bytes: &'b mut Vec<u8>,
    /// Where the row of the next block is.
    row: usize,
    /// The chunk behind the last block.
    end: u32,
}

impl Long<'_> {
    fn put(&mut self, block: &[Posting], lengths: &[u32]) {
        let Some(end) = block.last() else { return };
        let before = self.bytes.len();
        put_block(block, self.end, self.bytes);
        let bound = block.iter().fold(Bound::NONE, |bound, &Posting { chunk, count, .. }| {
            let length = lengths.get(chunk as usize).copied().unwrap_or_default();
            bound.and(Bound { most: count, least: length })
        });
        let end = end.chunk.wrapping_add(1);
        let size = u32::try_from(self.bytes.len() - before).unwrap_or(u32::MAX);
        let [size, most, least] = [size, bound.most, bound.least]
            .map(|number| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
        let row = [&end.wrapping_sub(self.end).to_le_bytes()[..], &size, &most, &least].concat();
        self.bytes[self.row..self.row + ROW].copy_from_slice(&row);
        self.row += ROW;
        self.end = end;
    }
}

/// Appends the list of these postings, whose number is `frequency`: with a table,
/// if they are more than [`BLOCK`]. `lengths` has those of all chunks of the
/// corpus.
pub(super) fn put_list(
    few: &[u8],
    frequency: u32,
    first: u32,
    lengths: &[u32],
    bytes: &mut Vec<u8>,
) {
    if frequency <= BLOCK {
        bytes.extend_from_slice(few);
        return;
    }
    let row = bytes.len();
    bytes.resize(row + frequency.div_ceil(BLOCK) as usize * ROW, 0);
    let mut long = Long { bytes, row, end: first };
    let (mut next, mut block) = (first, Vec::with_capacity(BLOCK as usize));
    Entries::Few(few).read_until(&mut next, u32::MAX, |posting| {
        block.push(posting);
        if block.len() == BLOCK as usize {
            long.put(&block, lengths);
            block.clear();
        }
    });
    long.put(&block, lengths);
    bytes.extend(PADDING);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::block::put_posting;
    use crate::corpus::cursor::Cursor;

    /// The blocks of a list have all its chunks, and bound them, whatever their
    /// counts and lengths.
    #[test]
    fn blocks_have_all_postings_and_bound_them() {
        let counts = [1, 3, 65_534, 65_535, 65_536, u32::MAX];
        let written: Vec<Posting> = (0..1_000)
            .map(|at| Posting {
                chunk: 9 + at * at / 50 + at,
                count: if at % 7 == 0 { counts[at as usize / 7 % 6] } else { 1 },
                is_keyword: at % 3 == 0,
            })
            .collect();
        let end = written.last().expect("there are some").chunk + 1;
        let lengths: Vec<u32> =
            (0..end).map(|at| if at < 500 { 90_000 + at } else { 5 + at % 70 }).collect();
        let (mut few, mut next) = (Vec::new(), 3);
        for posting in &written {
            put_posting(*posting, next, &mut few);
            next = posting.chunk + 1;
        }
        let mut bytes = Vec::new();
        put_list(&few, 1_000, 3, &lengths, &mut bytes);
        let list = List { frequency: 1_000, first: 3, row: 0, bytes: &bytes };
        let mut found = Vec::new();
        list.for_each(|posting| found.push(posting));
        assert_eq!(written, found);
        let blocks: Vec<_> = list.blocks().collect();
        assert_eq!(8, blocks.len());
        for (block, chunks) in blocks.iter().zip(written.chunks(128)) {
            assert_eq!(chunks.last().map(|last| last.chunk + 1), Some(block.end));
            for &Posting { chunk, count, .. } in chunks {
                assert!(count <= block.bound.most);
                assert!(block.bound.least <= lengths[chunk as usize]);
            }
        }
        assert_eq!(65_535, blocks[0].bound.least);
        assert_eq!(u32::MAX, blocks[0].bound.most);
        let mut cursor = Cursor::new(&list, &lengths);
        for chunk in 0..end {
            let place = written.binary_search_by_key(&chunk, |posting| posting.chunk);
            assert_eq!(place.ok().map(|at| written[at]), cursor.seek(chunk));
        }
        // Cut off anywhere, it has less.
        for length in 0..bytes.len() {
            let list = List { bytes: &bytes[..length], ..list };
            let mut count = 0;
            list.for_each(|_| count += 1);
            assert!(count <= 1_000);
            assert!(list.blocks().count() <= 8);
        }
    }
}
