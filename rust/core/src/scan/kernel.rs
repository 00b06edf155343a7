//! The scan, written once for every vector width.
#![allow(unsafe_code)] // vector instructions and unaligned loads

use super::Scanner;
use super::tally::Places;
use crate::keywords::{Class, class};
use crate::text::OTHER;

/// The number of buckets of keywords: one bit of a byte each.
pub(super) const BUCKETS: usize = 8;

/// How many first bytes of a keyword are looked at before it is compared.
pub(super) const FIRST: usize = 3;

/// A set of bits for each byte below 0x80. Other bytes have none unless added.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteTable {
    /// The bits by byte.
    pub(super) all: [u8; 128],
    /// The bits by low nibble, and by high nibble. A byte has those in common.
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

impl ByteTable {
    pub(super) const EMPTY: Self = Self { all: [0; 128], low: [0; 16], high: [0; 16] };

    /// Adds `bits` to `byte`. In the look-up by nibbles, a byte also has the
    /// bits of its low nibble in one added byte and of its high nibble in
    /// another.
    pub(super) fn add(&mut self, byte: u8, bits: u8) {
        self.all[usize::from(byte)] |= bits;
        self.low[usize::from(byte & 15)] |= bits;
        self.high[usize::from(byte >> 4)] |= bits;
    }

    /// Adds a bit to `byte`, and to no other.
    pub(super) fn mark(&mut self, byte: u8) {
        self.add(byte, 1 << (byte >> 4)); // a bit for each high nibble
    }

    /// Adds `bits` to [`OTHER`], and to NUL, as [`OTHER`] may be looked up as
    /// that.
    pub(super) fn add_other(&mut self, bits: u8) {
        self.add(0, bits);
        self.high[usize::from(OTHER >> 4)] |= bits;
    }
}

/// The tables in which the kernel looks bytes up.
#[derive(Debug)]
pub(super) struct Tables {
    /// Not 0 for a byte that may stand in front of a word: whitespace or
    /// stripped punctuation.
    boundary: ByteTable,
    /// For each of the first bytes, the buckets of the keywords that have it
    /// there.
    first: [ByteTable; FIRST],
    /// The keywords of each bucket: a bit for each.
    buckets: [u64; BUCKETS],
}

/// Returns the bytes that may stand in front of a keyword.
pub(super) fn boundary() -> ByteTable {
    bytes(|byte| class(byte) != Class::Word)
}

/// Returns the bytes below 0x80 that have a property.
pub(super) fn bytes(has: impl Fn(u8) -> bool) -> ByteTable {
    let mut table = ByteTable::EMPTY;
    (0..0x80).filter(|&byte| has(byte)).for_each(|byte| table.mark(byte));
    table
}

/// Returns the ASCII letters and digits.
pub(super) fn alphanumeric() -> ByteTable {
    bytes(|byte| byte.is_ascii_alphanumeric())
}

impl Tables {
    pub(super) fn new(keywords: &[Vec<u8>]) -> Self {
        let mut tables =
            Self { boundary: boundary(), first: [ByteTable::EMPTY; FIRST], buckets: [0; BUCKETS] };
        for (number, keyword) in keywords.iter().enumerate() {
            let bucket = number % BUCKETS;
            tables.buckets[bucket] |= 1 << number;
            for (place, table) in tables.first.iter_mut().enumerate() {
                match keyword.get(place) {
                    Some(byte) => {
                        table.add(byte.to_ascii_lowercase(), 1 << bucket);
                        table.add(byte.to_ascii_uppercase(), 1 << bucket);
                    }
                    // Too short to rule any byte out.
                    None => (0..0x80).for_each(|byte| table.add(byte, 1 << bucket)),
                }
            }
        }
        tables
    }

    /// Returns a bit for each bucket that has a keyword not yet in `found`.
    fn live(&self, found: u64) -> u8 {
        let is_live = |keywords: u64| u8::from(keywords & !found != 0);
        (0..).zip(self.buckets).fold(0, |live, (i, keywords)| live | is_live(keywords) << i)
    }
}

/// Vector instructions on [`Lanes::WIDTH`] bytes at once.
///
/// # Safety
///
/// Every method must be called only where the processor has the instructions
/// that the implementation is named after.
pub(super) trait Lanes {
    /// A register of bytes.
    type Bytes: Copy;

    /// The number of bytes in a register, at most [`MAX_WIDTH`].
    const WIDTH: usize;

    /// Returns `byte` in each place.
    unsafe fn splat(byte: u8) -> Self::Bytes;

    /// A [`ByteTable`] in registers.
    type Table: Copy;

    /// Returns `table` in registers.
    unsafe fn table(table: &ByteTable) -> Self::Table;

    /// Returns the [`Lanes::WIDTH`] bytes from `start` on, which must be
    /// readable.
    unsafe fn load(start: *const u8) -> Self::Bytes;

    /// Writes `bytes` to the start of `to`.
    unsafe fn store(bytes: Self::Bytes, to: &mut [u8; MAX_WIDTH]);

    /// Returns the bits of each byte. A byte from 0x80 on is always [`OTHER`];
    /// it gets its own bits or those of NUL.
    unsafe fn look_up(table: Self::Table, bytes: Self::Bytes) -> Self::Bytes;

    /// Returns the bits that `a` and `b` have in common.
    unsafe fn and(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;

    /// Returns a bit for each place where both `a` and `b` are not 0.
    unsafe fn both_nonzero(a: Self::Bytes, b: Self::Bytes) -> u64;

    /// Returns a bit for each place where `a` is not 0 or `bytes` is 0x80 or
    /// more.
    unsafe fn nonzero_or_high(a: Self::Bytes, bytes: Self::Bytes) -> u64;
}

/// The width of the widest register.
pub(super) const MAX_WIDTH: usize = 64;

/// A scan of one text.
struct Scan<'s, L: Lanes> {
    scanner: &'s Scanner,
    folded: &'s [u8],
    found: u64,
    boundary: L::Table,
    first: [L::Table; FIRST],
    /// The buckets with keywords not yet found, in each place.
    live: L::Bytes,
}

#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
impl<'s, L: Lanes> Scan<'s, L> {
    /// # Safety
    ///
    /// The processor must have the instructions of `L`.
    #[inline(always)]
    unsafe fn new(scanner: &'s Scanner, folded: &'s [u8], found: u64) -> Self {
        let Tables { boundary, first: [one, two, three], .. } = &scanner.tables;
        // SAFETY: the caller guarantees the instructions.
        unsafe {
            Self {
                scanner,
                folded,
                found,
                boundary: L::table(boundary),
                first: [L::table(one), L::table(two), L::table(three)],
                live: L::splat(scanner.tables.live(found)),
            }
        }
    }

    /// Returns the buckets of the keywords that may begin at each of WIDTH places,
    /// and a bit for each place that is worth a look. `start` points to the byte in
    /// front of the first place.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of `L`, and WIDTH + FIRST bytes
    /// from `start` on must be readable.
    #[inline(always)]
    unsafe fn look(&self, start: *const u8) -> (L::Bytes, u64) {
        // SAFETY: as this function's contract says.
        unsafe {
            let look_up = |offset: usize, table| L::look_up(table, L::load(start.add(offset)));
            let [one, two, three] = self.first;
            let starts = L::and(
                L::and(look_up(1, one), look_up(2, two)),
                L::and(look_up(3, three), self.live),
            );
            (starts, L::both_nonzero(starts, look_up(0, self.boundary)))
        }
    }

    /// Compares the keywords of these buckets at the candidates of the WIDTH places
    /// from `at` on, and returns whether all keywords are found now.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of `L`.
    #[inline(always)]
    unsafe fn compare(&mut self, starts: L::Bytes, candidates: u64, at: usize) -> bool {
        let mut buckets = [0; MAX_WIDTH];
        // SAFETY: the caller guarantees the instructions.
        unsafe { L::store(starts, &mut buckets) };
        let found = confirm(self.scanner, self.folded, at, candidates, &buckets, self.found);
        if found != self.found {
            self.found = found;
            // SAFETY: the caller guarantees the instructions.
            self.live = unsafe { L::splat(self.scanner.tables.live(found)) };
        }
        found == self.scanner.all
    }

    /// Looks at the WIDTH places from `at` on, at those of them in `wanted`, and
    /// returns whether all keywords are found now.
    ///
    /// # Safety
    ///
    /// As of [`look`](Self::look).
    #[inline(always)]
    unsafe fn block(&mut self, start: *const u8, at: usize, wanted: u64) -> bool {
        // SAFETY: as this function's contract says.
        unsafe {
            let (starts, candidates) = self.look(start);
            candidates & wanted != 0 && self.compare(starts, candidates & wanted, at)
        }
    }
}

/// Finds the scanner's keywords in `folded`, as [`Scanner::scan`] does.
///
/// # Safety
///
/// The processor must have the instructions of `L`.
#[inline(always)]
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
pub(super) unsafe fn scan<L: Lanes>(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
    let length = folded.len();
    let mut padded = [b' '; MAX_WIDTH + FIRST];
    // SAFETY: the caller guarantees the instructions. The bytes that are read
    // are either of the padded copy, which has MAX_WIDTH + FIRST bytes, or of
    // `folded` from `at - 1` on, which the loop's condition makes sure of.
    unsafe {
        let mut scan = Scan::<L>::new(scanner, folded, found);
        if length < L::WIDTH + FIRST {
            // The text is too short to load from: copy it, with spaces around.
            for at in (0..length).step_by(L::WIDTH) {
                let from = at.saturating_sub(1);
                let left = &folded[from..length.min(at + L::WIDTH + FIRST - 1)];
                let lead = usize::from(at == 0);
                padded.fill(b' ');
                padded[lead..lead + left.len()].copy_from_slice(left);
                // A space behind the text may pass for the start of a keyword.
                let within = u64::MAX >> MAX_WIDTH.saturating_sub(length - at);
                if scan.block(padded.as_ptr(), at, within) {
                    break;
                }
            }
            return scan.found;
        }
        // Nothing stands in front of the first block: copy it. This copy and
        // those below have a fixed size, and so take a few instructions.
        padded[1..L::WIDTH + FIRST].copy_from_slice(&folded[..L::WIDTH + FIRST - 1]);
        if scan.block(padded.as_ptr(), 0, u64::MAX) {
            return scan.found;
        }
        let mut at = L::WIDTH;
        while at + L::WIDTH + FIRST - 1 <= length {
            if scan.block(folded.as_ptr().add(at - 1), at, u64::MAX) {
                return scan.found;
            }
            at += L::WIDTH;
        }
        // The rest ends in spaces. The last block overlaps the one before. Two
        // blocks are needed where the rest is a little more than a block.
        let last = length - L::WIDTH;
        padded[L::WIDTH + 1..].fill(b' ');
        while at < length {
            let from = at.min(last);
            padded[..=L::WIDTH].copy_from_slice(&folded[from - 1..from + L::WIDTH]);
            if scan.block(padded.as_ptr(), from, u64::MAX << (at - from)) || from == last {
                break;
            }
            at = from + L::WIDTH - (FIRST - 1);
        }
        scan.found
    }
}

/// Appends a bit for each byte of `folded`, 64 of them in each number: whether
/// it has bits in `table`, or also whether it is 0x80 or more if `HIGH`.
///
/// # Safety
///
/// The processor must have the instructions of `L`.
#[inline(always)]
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
pub(super) unsafe fn bits<L: Lanes, const HIGH: bool>(
    table: &ByteTable,
    folded: &[u8],
    out: &mut Vec<u64>,
) {
    let mut padded = [0; MAX_WIDTH];
    let (blocks, rest) = folded.as_chunks::<MAX_WIDTH>();
    padded[..rest.len()].copy_from_slice(rest);
    let last = std::slice::from_ref(&padded);
    for blocks in [blocks, &last[usize::from(rest.is_empty())..]] {
        for block in blocks {
            let mut bits = 0;
            for at in (0..MAX_WIDTH).step_by(L::WIDTH) {
                // SAFETY: the caller guarantees the instructions, and a block
                // has MAX_WIDTH bytes, of which a register takes no more.
                unsafe {
                    let bytes = L::load(block.as_ptr().add(at));
                    let found = L::look_up(L::table(table), bytes);
                    let found = if HIGH {
                        L::nonzero_or_high(found, bytes)
                    } else {
                        L::both_nonzero(found, found)
                    };
                    bits |= found << at;
                }
            }
            out.push(bits);
        }
    }
}

/// Returns `found` with the keywords that stand as words at `candidates`, a bit for
/// each of the places from `at` on, and are of the buckets there.
#[inline(never)] // else the tables are loaded anew for each block
fn confirm(
    scanner: &Scanner,
    folded: &[u8],
    at: usize,
    candidates: u64,
    buckets: &[u8; MAX_WIDTH],
    mut found: u64,
) -> u64 {
    for offset in Places(candidates) {
        for bucket in Places(buckets[offset].into()) {
            for number in Places(scanner.tables.buckets[bucket] & !found) {
                found |= u64::from(scanner.matches(folded, at + offset, number)) << number;
            }
        }
    }
    found
}
