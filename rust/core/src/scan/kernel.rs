//! The scan, written once for every vector width.
#![allow(unsafe_code)] // vector instructions and unaligned loads

use super::Scanner;
use crate::keywords::{CLASSES, Class};

/// Keywords are spread over so many buckets, one bit of a byte each.
const BUCKETS: usize = 8;

/// So many first bytes of a keyword are looked at before it is compared.
const FIRST: usize = 3;

/// For each nibble of a byte the buckets that the byte does not rule out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nibbles {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

/// What the kernel looks bytes up in.
#[derive(Debug)]
pub(super) struct Tables {
    /// Not 0 for a byte that may stand in front of a word: whitespace or
    /// stripped punctuation.
    boundary: Nibbles,
    /// For each of the first bytes of a keyword.
    first: [Nibbles; FIRST],
    /// The keywords of each bucket, by number.
    buckets: [Vec<u8>; BUCKETS],
}

impl Tables {
    pub(super) fn new(keywords: &[Vec<u8>]) -> Self {
        let mut boundary = Nibbles { low: [0; 16], high: [0; 16] };
        // All such bytes have one of six high nibbles; with a bit for each of
        // them the look-up is exact.
        for (byte, _) in (0..=u8::MAX).zip(&CLASSES).filter(|(_, class)| **class != Class::Word) {
            let row = match byte >> 4 {
                0 => 1,
                1 => 2,
                2 => 4,
                3 => 8,
                5 => 16,
                7 => 32,
                _ => unreachable!("no such whitespace or punctuation"),
            };
            boundary.low[usize::from(byte & 15)] |= row;
            boundary.high[usize::from(byte >> 4)] |= row;
        }
        let mut tables = Self {
            boundary,
            first: [Nibbles { low: [0; 16], high: [0; 16] }; FIRST],
            buckets: [const { Vec::new() }; BUCKETS],
        };
        for (number, keyword) in (0_u8..).zip(keywords) {
            let bucket = usize::from(number) % BUCKETS;
            tables.buckets[bucket].push(number);
            for (place, nibbles) in tables.first.iter_mut().enumerate() {
                let bytes = match keyword.get(place) {
                    Some(byte) => vec![*byte, byte.to_ascii_uppercase()],
                    None => (0..=u8::MAX).collect(), // too short to rule any out
                };
                for byte in bytes {
                    nibbles.low[usize::from(byte & 15)] |= 1 << bucket;
                    nibbles.high[usize::from(byte >> 4)] |= 1 << bucket;
                }
            }
        }
        tables
    }

    /// Returns a bit for each bucket that has a keyword not yet in `found`.
    fn live(&self, found: u64) -> u8 {
        let is_live = |bucket: &Vec<u8>| bucket.iter().any(|&number| found >> number & 1 == 0);
        (0..BUCKETS).fold(0, |live, i| live | u8::from(is_live(&self.buckets[i])) << i)
    }
}

/// Vector instructions on [`Lanes::WIDTH`] bytes at once.
///
/// # Safety
///
/// Every method may be called only where the processor has the instructions
/// that the implementation is named after.
pub(super) trait Lanes {
    /// A register of bytes.
    type Bytes: Copy;

    /// Bytes in a register, at most [`MAX_WIDTH`].
    const WIDTH: usize;

    /// Returns `byte` in each place.
    unsafe fn splat(byte: u8) -> Self::Bytes;

    /// Returns `table` as often as it fits the register.
    unsafe fn table(table: &[u8; 16]) -> Self::Bytes;

    /// Returns the [`Lanes::WIDTH`] bytes from `start` on, which must be
    /// readable.
    unsafe fn load(start: *const u8) -> Self::Bytes;

    /// Writes `bytes` to the start of `to`.
    unsafe fn store(bytes: Self::Bytes, to: &mut [u8; MAX_WIDTH]);

    /// Returns, for each byte of `bytes`, the entry of `low` at its low nibble
    /// and that of `high` at its high nibble, joined by "and".
    unsafe fn look_up(low: Self::Bytes, high: Self::Bytes, bytes: Self::Bytes) -> Self::Bytes;

    /// Returns the bits that `a` and `b` have in common.
    unsafe fn and(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;

    /// Returns a bit for each place where both `a` and `b` are not 0.
    unsafe fn both_nonzero(a: Self::Bytes, b: Self::Bytes) -> u64;
}

/// The widest register that [`Lanes`] may stand for.
pub(super) const MAX_WIDTH: usize = 64;

/// Finds the scanner's keywords in `folded`, as [`Scanner::scan`] does.
///
/// # Safety
///
/// The processor must have the instructions of `L`.
#[inline(always)]
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
pub(super) unsafe fn scan<L: Lanes>(scanner: &Scanner, folded: &[u8], mut found: u64) -> u64 {
    let tables = &scanner.tables;
    // SAFETY: the caller vouches for the instructions. Each load is of WIDTH
    // bytes at an offset of at most FIRST into WIDTH + FIRST bytes: either of
    // `folded`, which the loop's condition makes sure of, or of the padded
    // copy, which has MAX_WIDTH + FIRST.
    unsafe {
        let pair = |nibbles: &Nibbles| (L::table(&nibbles.low), L::table(&nibbles.high));
        let boundary = pair(&tables.boundary);
        let first = [pair(&tables.first[0]), pair(&tables.first[1]), pair(&tables.first[2])];
        let mut live = L::splat(tables.live(found));

        let mut padded = [b' '; MAX_WIDTH + FIRST];
        let mut at = 0;
        while at < folded.len() {
            // From the byte in front of `at` on. At the very start there is
            // none, and at the end there are too few: copy, with spaces around.
            let start = if at > 0 && folded.len() - at >= L::WIDTH + FIRST - 1 {
                folded.as_ptr().add(at - 1)
            } else {
                let from = at.saturating_sub(1);
                let left = &folded[from..folded.len().min(at + L::WIDTH + FIRST - 1)];
                padded.fill(b' ');
                let lead = usize::from(at == 0);
                padded[lead..lead + left.len()].copy_from_slice(left);
                padded.as_ptr()
            };
            let look_up =
                |offset: usize, (low, high)| L::look_up(low, high, L::load(start.add(offset)));
            let starts = L::and(
                L::and(look_up(1, first[0]), look_up(2, first[1])),
                L::and(look_up(3, first[2]), live),
            );
            let mut candidates = L::both_nonzero(starts, look_up(0, boundary));
            if candidates != 0 {
                let before = found;
                let mut buckets = [0; MAX_WIDTH];
                L::store(starts, &mut buckets);
                while candidates != 0 {
                    let offset = candidates.trailing_zeros() as usize;
                    candidates &= candidates - 1;
                    found |= confirm(scanner, folded, at + offset, buckets[offset], found);
                }
                if found != before {
                    if found == scanner.all {
                        return found;
                    }
                    live = L::splat(tables.live(found));
                }
            }
            at += L::WIDTH;
        }
    }
    found
}

/// Returns the keywords of `buckets` that stand at `at` as words and are not
/// yet in `found`.
#[inline]
fn confirm(scanner: &Scanner, folded: &[u8], at: usize, mut buckets: u8, found: u64) -> u64 {
    let mut confirmed = 0;
    while buckets != 0 {
        let bucket = buckets.trailing_zeros() as usize;
        buckets &= buckets - 1;
        for &number in &scanner.tables.buckets[bucket] {
            if found >> number & 1 == 0 && scanner.matches(folded, at, usize::from(number)) {
                confirmed |= 1 << number;
            }
        }
    }
    confirmed
}
