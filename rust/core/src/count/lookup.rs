//! The cache of pretokens that a thread counts with.
#![allow(unsafe_code)] // reads of 16 bytes, of which only some may belong to the pretoken
#![allow(clippy::cast_possible_truncation)] // of hashes, and of lengths and counts that fit

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicBool;

use super::bpe::{Bpe, Encoded, SHORT, key, mix};
use crate::huge::Table;
use crate::once::Once;

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

/// The number of longer pretokens that are cached, as a power of two: a
/// megabyte; and their greatest length in bytes.
const LONG_BITS: u32 = 16;
const LONG: usize = 255;

/// The bits of an entry of a longer pretoken that hold the count. The others
/// are its hash.
const LONG_COUNT: u128 = 0xFF;

/// The counts of pretokens seen before. A new one replaces the old one in its
/// place, so the tables never grow.
pub(crate) struct Lookup {
    /// Keys with their counts in the highest four bits; 0 for an empty place.
    near: Table<u128>,
    far: Table<u128>,
    /// Hashes with their counts; 0 for an empty place.
    long: Table<u128>,
    hash: &'static LongHash,
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
            long: Table::new(1 << LONG_BITS),
            hash: LongHash::get(),
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

    /// Returns the number of tokens of the pretoken from `start` to before
    /// `end`, which is not empty.
    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled anew for each set of instructions
    pub(crate) fn count_in(
        &mut self,
        bpe: &Bpe,
        text: &[u8],
        start: usize,
        end: usize,
        stop: &AtomicBool,
    ) -> usize {
        if end - start > SHORT {
            return self.count_long(bpe, &text[start..end], stop);
        }
        match text.get(start..start + 16) {
            // SAFETY: there are sixteen bytes, and the pretoken has at most 15.
            Some(bytes) => unsafe { self.count_at(bpe, bytes.as_ptr(), end - start, stop) },
            None => self.count(bpe, &text[start..end], stop),
        }
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

    #[inline(never)]
    fn count_long(&mut self, bpe: &Bpe, piece: &[u8], stop: &AtomicBool) -> usize {
        self.remember(piece, |lookup| {
            if piece.is_ascii() {
                return bpe.count(piece, &mut lookup.scratch, stop);
            }
            let mut count = 0;
            bpe.joins().parts(piece, |start, end| {
                let part = &piece[start..end];
                count += if part.len() == piece.len() {
                    bpe.count(part, &mut lookup.scratch, stop)
                } else if bpe.is_whole(part) {
                    bpe.count_part(part, &mut lookup.scratch, stop)
                } else if part.len() > SHORT {
                    lookup.remember(part, |lookup| bpe.count(part, &mut lookup.scratch, stop))
                } else {
                    lookup.count_in(bpe, piece, start, end, stop)
                };
            });
            count
        })
    }

    /// Returns the number of tokens of a pretoken of more than [`SHORT`] bytes,
    /// or of such a part of one, which `count` counts if it is not remembered.
    #[inline]
    fn remember(&mut self, piece: &[u8], count: impl FnOnce(&mut Self) -> usize) -> usize {
        if piece.len() > LONG {
            return count(self);
        }
        let hash = self.hash.of(piece);
        let place = (hash >> (128 - LONG_BITS)) as usize;
        let hash = hash & !LONG_COUNT;
        // The pretoken seen before the last one has the place beside.
        for place in [place, place ^ 1] {
            let known = self.long[place];
            if known & !LONG_COUNT == hash && known != 0 {
                return (known & LONG_COUNT) as usize;
            }
        }
        let count = count(self);
        self.long.swap(place, place ^ 1);
        self.long[place] = hash | count as u128;
        count
    }
}

/// A hash of longer pretokens, of 128 bits. Its key is drawn at random, once
/// for the process: nobody can make two pretokens that have the same hash, and
/// by chance that does not happen.
struct LongHash([u64; 4]);

impl LongHash {
    fn get() -> &'static Self {
        static HASH: Once<LongHash> = Once::new();
        HASH.get(|| {
            let random = RandomState::new();
            Self([0_u64, 1, 2, 3].map(|number| random.hash_one(number)))
        })
    }

    /// Returns the hash of at least 16 bytes.
    #[inline]
    fn of(&self, piece: &[u8]) -> u128 {
        let Self(key) = self;
        let mut halves = [piece.len() as u64, key[0]];
        let mut add = |part: &[u8; 16]| {
            let [low, high] = [0, 8].map(|at| {
                u64::from_le_bytes(*part[at..].first_chunk().expect("there are eight more"))
            });
            halves = [
                fold(low ^ halves[0] ^ key[0], high ^ key[1]),
                fold(low ^ key[2], high ^ halves[1] ^ key[3]),
            ];
        };
        let (parts, _) = piece.as_chunks::<16>();
        parts.iter().for_each(&mut add);
        add(piece.last_chunk().expect("there are at least 16 bytes"));
        u128::from(halves[0]) << 64 | u128::from(halves[1])
    }
}

/// Returns both halves of the product, one over the other.
#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

impl std::fmt::Debug for Lookup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lookup").finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "cl100k", feature = "o200k"))]
mod tests {
    use budgeteer_vocab::{Encoding, Vocabulary};
    use proptest::prelude::*;

    use super::*;
    use crate::count::exact::GO_ON;
    use crate::count::spread::check_spread;
    use crate::once::Once;

    fn all() -> &'static [Bpe] {
        static ALL: Once<Vec<Bpe>> = Once::new();
        ALL.get(|| Encoding::ALL.iter().map(|encoding| Bpe::new(encoding.load())).collect())
    }

    proptest! {
        /// A pretoken counts the same by its parts, remembered, and merged.
        #[test]
        fn counts_are_those_of_merging(
            texts in prop::collection::vec(
                "[的一是不了在人有我他这中大来上国\u{3042}-\u{3093}\u{30a2}-\u{30f3}]{1,120}\
                 |[\u{e01}-\u{e3a}\u{915}-\u{94d}\u{430}-\u{44f}\u{5d0}-\u{5ea}\u{627}-\u{64a}]{8,60}\
                 |[日本a語é\u{1f600}\u{1f680}\u{1f44d}\u{1f3fd}\u{fe0f}\u{200d}가나다]{6,90}", 1..4)
        ) {
            for bpe in all() {
                let mut lookup = Lookup::new();
                let mut scratch = Encoded::default();
                for text in texts.iter().chain(&texts).map(String::as_bytes) {
                    let expected = bpe.count(text, &mut scratch, &GO_ON);
                    prop_assert_eq!(expected, lookup.count_in(bpe, text, 0, text.len(), &GO_ON));
                    prop_assert_eq!(expected, lookup.count(bpe, text, &GO_ON));
                }
            }
        }
    }

    /// A token that no merge makes is one only where it is a whole pretoken.
    #[test]
    fn a_part_is_no_whole() {
        let singles = std::array::from_fn(|byte| u8::try_from(byte).expect("there are 256"));
        let whole = "日本";
        let merges = vec![(0xE6, 0x97), (0xE6, 0x9C), (256, 0xA5), (257, 0xAC), (259, 0xE6)];
        let wholes = vec![whole.as_bytes().into()];
        let vocabulary = Vocabulary::from_merges(&singles, merges.clone(), wholes, vec![]);
        let with = Bpe::new(vocabulary.expect("parts come first"));
        let vocabulary = Vocabulary::from_merges(&singles, merges, vec![], vec![]);
        let without = Bpe::new(vocabulary.expect("parts come first"));
        let mut lookups = [Lookup::new(), Lookup::new()];
        for text in ["本語日日本語本", "語語語語日本語語語", "語語語語日本"] {
            let [a, b] = &mut lookups;
            let expected = b.count(&without, text.as_bytes(), &GO_ON);
            assert_eq!(expected, a.count(&with, text.as_bytes(), &GO_ON), "{text}");
        }
        assert_eq!(1, lookups[0].count(&with, whole.as_bytes(), &GO_ON));
    }

    /// Returns a vocabulary, and cached pretokens of which none is known.
    fn fresh() -> (&'static Bpe, Lookup) {
        static ONE: Once<Bpe> = Once::new();
        (ONE.get(|| Bpe::new(Encoding::Cl100k.load())), Lookup::new())
    }

    /// Returns the key of a short pretoken, and its places in the near and in the
    /// far table.
    fn places(piece: &str) -> (u128, usize, usize) {
        let key = key(piece.as_bytes());
        let mixed = mix(key);
        let far = (mixed >> (64 - FAR_BITS)) as usize;
        (key, (mixed >> (64 - NEAR_BITS)) as usize, far - far % WAYS)
    }

    /// Short pretokens of one token and of more, at even places and at odd ones.
    const SHORT_PIECES: [&str; 8] =
        ["a", "tea", " tea", " teapots", "xqzjk", "qqqqqqqqqqqqqqq", "\u{447}\u{430}\u{439}", "\0"];

    /// A count that no short pretoken has: it was remembered.
    const REMEMBERED: u128 = 15 << 124;

    #[test]
    fn a_short_pretoken_is_remembered_in_the_near_table() {
        for piece in SHORT_PIECES {
            let (bpe, mut lookup) = fresh();
            let (key, place, far) = places(piece);
            let count = lookup.count(bpe, piece.as_bytes(), &GO_ON);
            let entry = key | (count as u128) << 124;
            assert_eq!(entry, lookup.near[place], "{piece:?}");
            assert_eq!(if count == 1 { 0 } else { entry }, lookup.far[far], "{piece:?}");
            lookup.near[place] = key | REMEMBERED;
            assert_eq!(15, lookup.count(bpe, piece.as_bytes(), &GO_ON), "{piece:?}");
            let text = [piece, " and more than sixteen bytes"].concat();
            assert_eq!(15, lookup.count_in(bpe, text.as_bytes(), 0, piece.len(), &GO_ON));
            assert_eq!(15, lookup.count_in(bpe, piece.as_bytes(), 0, piece.len(), &GO_ON));
        }
    }

    #[test]
    fn the_pretoken_before_the_last_one_is_beside() {
        for piece in SHORT_PIECES {
            let (bpe, mut lookup) = fresh();
            let (key, place, _) = places(piece);
            lookup.near[place ^ 1] = key | REMEMBERED;
            lookup.near[place] = 1;
            assert_eq!(15, lookup.count(bpe, piece.as_bytes(), &GO_ON), "{piece:?}");
            assert_eq!([key | REMEMBERED, 1], [place, place ^ 1].map(|place| lookup.near[place]));
        }
    }

    #[test]
    fn each_way_of_the_far_table_is_looked_at() {
        for piece in SHORT_PIECES {
            for way in 0..WAYS {
                let (bpe, mut lookup) = fresh();
                let (key, place, far) = places(piece);
                lookup.far[far + way] = key | REMEMBERED;
                assert_eq!(15, lookup.count(bpe, piece.as_bytes(), &GO_ON), "{piece:?}");
                assert_eq!(key | REMEMBERED, lookup.near[place]);
            }
        }
    }

    #[test]
    fn a_new_pretoken_replaces_the_oldest_in_the_far_table() {
        let (bpe, mut lookup) = fresh();
        let (key, _, far) = places("xqzjk");
        lookup.far[far..far + WAYS].copy_from_slice(&[1, 2, 3, 4]);
        let count = lookup.count(bpe, b"xqzjk", &GO_ON);
        assert!(count > 1);
        assert_eq!([key | (count as u128) << 124, 1, 2, 3], lookup.far[far..far + WAYS]);
    }

    /// Returns how often longer pretokens must be counted.
    fn counted(lookup: &mut Lookup, pieces: &[Vec<u8>]) -> usize {
        let mut calls = 0;
        for piece in pieces {
            let expected = piece.len() % 200;
            let count = lookup.remember(piece, |_| {
                calls += 1;
                expected
            });
            assert_eq!(expected, count);
        }
        calls
    }

    #[test]
    fn longer_pretokens_are_counted_once() {
        let mut lookup = Lookup::new();
        let pieces: Vec<_> = (16..=LONG).map(|length| vec![b'a'; length]).collect();
        assert_eq!(pieces.len(), counted(&mut lookup, &pieces));
        // Only few share a place.
        assert!(counted(&mut lookup, &pieces) < 40);
        let long = [vec![b'a'; LONG + 1]];
        assert_eq!([1, 1], [0, 1].map(|_| counted(&mut lookup, &long)));
    }

    #[test]
    fn two_longer_pretokens_of_one_place_are_remembered() {
        let place = |piece: &[u8]| (LongHash::get().of(piece) >> (128 - LONG_BITS)) as usize;
        let piece = |number: u32| format!("a long pretoken {number}").into_bytes();
        for parity in [0, 1] {
            let first = (0..99).map(piece).find(|piece| place(piece) % 2 == parity);
            let first = first.expect("half of them have");
            let same = (0..).map(piece).filter(|piece| place(piece) == place(&first));
            let those: Vec<_> = same.take(3).collect();
            let mut lookup = Lookup::new();
            assert_eq!(2, counted(&mut lookup, &those[..2]));
            assert_eq!(0, counted(&mut lookup, &those[..2]));
            assert_eq!(1, counted(&mut lookup, &those[2..]));
            // The last two are left.
            assert_eq!(0, counted(&mut lookup, &those[1..]));
            assert_eq!(1, counted(&mut lookup, &those[..1]));
        }
    }

    /// Every bit of a pretoken changes about half of both halves of its hash.
    #[test]
    fn hashes_depend_on_every_bit() {
        let keys = [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344, 0xA409_3822_299F_31D0];
        let hash = LongHash([keys[0], keys[1], keys[2], 0x082E_FA98_EC4E_6C89]);
        let piece = |number: u64| -> Vec<u8> {
            let mixed = |nth: u64| fold(4 * number + nth + 1, keys[0]).to_le_bytes();
            [0, 1, 2, 3].map(mixed).concat()
        };
        for shift in [0, 64] {
            check_spread(8 * 32, |number, bit| {
                let mut piece = piece(number);
                if let Some(bit) = bit {
                    piece[bit / 8] ^= 1 << (bit % 8);
                }
                (hash.of(&piece) >> shift) as u64
            });
        }
    }

    #[test]
    fn debug_shows_no_table() {
        assert_eq!("Lookup { .. }", format!("{:?}", Lookup::new()));
    }

    #[test]
    fn pretokens_of_different_lengths_have_different_hashes() {
        let hash = LongHash::get();
        let hashes: std::collections::HashSet<u128> =
            (16..=255).map(|length| hash.of(&vec![0; length])).collect();
        assert_eq!(240, hashes.len());
    }
}
