//! The cache of pretokens that a thread counts with.
#![allow(unsafe_code)] // reads of 16 bytes, of which only some may belong to the pretoken
#![allow(clippy::cast_possible_truncation)] // of hashes, and of lengths and counts that fit

use std::sync::atomic::AtomicBool;

use super::bpe::{Bpe, Encoded, SHORT, key, mix};
use crate::huge::Table;

/// The number of places in the near table, as a power of two: two megabytes. It
/// holds the short pretokens that were seen last.
const NEAR_BITS: u32 = 17;

/// The number of places in the far table, as a power of two: half a megabyte.
/// It holds short pretokens of more than one token; those of one token are in
/// the vocabulary.
const FAR_BITS: u32 = 15;

/// The number of places that a pretoken may have in the far table. They share a
/// cache line.
const WAYS: usize = 4;

/// The number of longer pretokens that are cached, as a power of two, and their
/// greatest length in bytes: a fifth of a megabyte.
const LONG_BITS: u32 = 12;
const LONG: usize = 46;

/// A longer pretoken with its length and its count.
#[derive(Clone, Copy)]
struct Long {
    bytes: [u8; LONG],
    length: u8,
    count: u8,
}

/// The counts of pretokens seen before. A new one replaces the old one in its
/// place, so the tables never grow.
pub(crate) struct Lookup {
    /// Keys with their counts in the highest four bits; 0 for an empty place.
    near: Table<u128>,
    far: Table<u128>,
    long: Vec<Long>,
    pub(crate) scratch: Encoded,
}

/// The bits of an entry that hold the count.
const COUNT: u128 = 0xF << 124;

/// By length, the mask that keeps that many of the lowest bytes of a number.
const KEEP: [u128; SHORT + 1] = {
    let mut keep = [0; SHORT + 1];
    let mut length = 1;
    while length <= SHORT {
        keep[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    keep
};

impl Lookup {
    pub(crate) fn new() -> Self {
        Self {
            near: Table::new(1 << NEAR_BITS),
            far: Table::new(1 << FAR_BITS),
            long: vec![Long { bytes: [0; LONG], length: 0, count: 0 }; 1 << LONG_BITS],
            scratch: Encoded::default(),
        }
    }

    /// Returns the number of tokens of the pretoken of `length` bytes that
    /// starts at `at`.
    ///
    /// # Safety
    ///
    /// Sixteen bytes from `at` on must be readable, and at least `length` of
    /// them; `length` is at least 1.
    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled anew for each set of instructions
    pub(crate) unsafe fn count_at(
        &mut self,
        bpe: &Bpe,
        at: *const u8,
        length: usize,
        stop: &AtomicBool,
    ) -> usize {
        if length > SHORT {
            // SAFETY: by this function's contract.
            return self.count_long(bpe, unsafe { std::slice::from_raw_parts(at, length) }, stop);
        }
        // SAFETY: by this function's contract, sixteen bytes are readable.
        let bytes = u128::from_le(unsafe { at.cast::<u128>().read_unaligned() });
        let key = bytes & KEEP[length] | (length as u128) << 120;
        let mixed = mix(key);
        let known = self.near[(mixed >> (64 - NEAR_BITS)) as usize];
        if known & !COUNT == key {
            return (known >> 124) as usize;
        }
        // SAFETY: by this function's contract, `length` bytes are readable.
        let piece = unsafe { std::slice::from_raw_parts(at, length) };
        self.count_far(bpe, piece, key, mixed, stop)
    }

    /// Returns the number of tokens of a pretoken, which is not empty.
    pub(crate) fn count(&mut self, bpe: &Bpe, piece: &[u8], stop: &AtomicBool) -> usize {
        if piece.len() > SHORT {
            return self.count_long(bpe, piece, stop);
        }
        let key = key(piece);
        let mixed = mix(key);
        let known = self.near[(mixed >> (64 - NEAR_BITS)) as usize];
        if known & !COUNT == key {
            return (known >> 124) as usize;
        }
        self.count_far(bpe, piece, key, mixed, stop)
    }

    /// Returns the number of tokens of a short pretoken that is not in the near
    /// table.
    #[inline(never)]
    fn count_far(
        &mut self,
        bpe: &Bpe,
        piece: &[u8],
        key: u128,
        mixed: u64,
        stop: &AtomicBool,
    ) -> usize {
        // A pretoken that is not cached is looked up next: its memory may come
        // meanwhile.
        bpe.prefetch(mixed);
        // The pretoken seen before the last one has the place beside.
        let place = (mixed >> (64 - NEAR_BITS)) as usize;
        self.near.swap(place, place ^ 1);
        let known = self.near[place];
        if known & !COUNT == key {
            return (known >> 124) as usize;
        }
        let first = (mixed >> (64 - FAR_BITS)) as usize / WAYS * WAYS;
        let far = &mut self.far[first..first + WAYS];
        if let Some(&known) = far.iter().find(|&&known| known & !COUNT == key) {
            self.near[place] = known;
            return (known >> 124) as usize;
        }
        if bpe.is_short_token(key, mixed) {
            self.near[place] = key | 1 << 124;
            return 1;
        }
        let count = bpe.count_merged(piece, &mut self.scratch, stop);
        let known = key | (count as u128) << 124;
        self.near[place] = known;
        far.rotate_right(1);
        far[0] = known;
        count
    }

    #[cold]
    #[inline(never)]
    fn count_long(&mut self, bpe: &Bpe, piece: &[u8], stop: &AtomicBool) -> usize {
        if piece.len() > LONG {
            return bpe.count(piece, &mut self.scratch, stop);
        }
        let mixed = piece.chunks(SHORT).fold(0, |mixed, chunk| mix(key(chunk) ^ u128::from(mixed)));
        let place = (mixed >> (64 - LONG_BITS)) as usize;
        // The pretoken seen before the last one has the place beside.
        for place in [place, place ^ 1] {
            let known = &self.long[place];
            if usize::from(known.length) == piece.len() && known.bytes.starts_with(piece) {
                return usize::from(known.count);
            }
        }
        let count = bpe.count(piece, &mut self.scratch, stop);
        self.long.swap(place, place ^ 1);
        let known = &mut self.long[place];
        known.bytes[..piece.len()].copy_from_slice(piece);
        known.length = piece.len() as u8;
        known.count = count as u8;
        count
    }
}

impl std::fmt::Debug for Lookup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lookup").finish_non_exhaustive()
    }
}
