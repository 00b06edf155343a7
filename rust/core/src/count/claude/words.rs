//! Words and what they count, with a cache of those seen before.

use std::sync::atomic::AtomicBool;

use budgeteer_vocab::ClaudeCharacters as Of;

use super::tables::{CAPS, SHIFT, Tables, WORD_BEGIN, WORD_END};
use super::tile::decode;
use crate::huge::Table;

/// The greatest length of a word in the table of short ones, in bytes.
const SHORT: usize = 15;

/// The number of places for short words, as a power of two: two megabytes.
const SHORT_BITS: u32 = 17;

/// The number of places for longer words, as a power of two, and their greatest
/// length in bytes: four tenths of a megabyte.
const LONG_BITS: u32 = 13;
const LONG: usize = 46;

/// The memory that is kept for the next text, in bytes.
const KEPT: usize = 1 << 18;

/// The bits of an entry that hold the count.
const COUNT: u128 = 0xF << 124;

/// Two letters that the rules of case treat on their own.
const SHARP_S: char = 'ẞ';
const DOTTED_I: char = 'İ';

/// How many letters a word in capitals needs for a marker.
const LEAST_CAPS: usize = 4;

/// A longer word with its length and its count.
#[derive(Clone, Copy)]
struct Long {
    bytes: [u8; LONG],
    length: u8,
    count: u8,
}

/// The counts of words seen before. A new one replaces an old one, so the
/// tables never grow.
pub(super) struct Words {
    /// The bytes of a word, its length above them and its count above that.
    /// Punctuation has no length, and its markers instead of the last byte.
    short: Table<u128>,
    long: Vec<Long>,
    /// Symbols of a word.
    symbols: Vec<u8>,
    /// Memory for other symbols, and for a text as it is counted.
    pub(super) chain: Vec<u8>,
    pub(super) buffer: Vec<u8>,
}

/// Mixes the bits of a key, the highest best.
#[inline]
fn mix(key: u128) -> u64 {
    let bytes = key.to_le_bytes();
    let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let (low, high) = (half(&bytes[..8]), half(&bytes[8..]));
    let product =
        u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD6E8_FEB8_6659_FD93);
    let folded = product ^ product >> 64;
    let bytes = folded.to_le_bytes();
    half(&bytes[..8])
}

/// Returns up to fifteen bytes as the low ones of a number.
#[inline]
fn key(text: &[u8], start: usize, end: usize) -> u128 {
    let keep = !0 >> (8 * (16 - (end - start)));
    if let Some(bytes) = text[start..].first_chunk() {
        return u128::from_le_bytes(*bytes) & keep;
    }
    let mut bytes = [0; 16];
    bytes[..end - start].copy_from_slice(&text[start..end]);
    u128::from_le_bytes(bytes)
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            short: Table::new(1 << SHORT_BITS),
            long: vec![Long { bytes: [0; LONG], length: 0, count: 0 }; 1 << LONG_BITS],
            symbols: Vec::new(),
            chain: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Gives the memory back that only an unusual text needs.
    pub(super) fn shrink(&mut self) {
        for memory in [&mut self.symbols, &mut self.chain, &mut self.buffer] {
            memory.clear();
            memory.shrink_to(KEPT);
        }
    }

    /// Returns the count of the entry with this key, which `make` finds if it
    /// is not there.
    #[inline]
    fn get(&mut self, key: u128, make: impl FnOnce(&mut Vec<u8>) -> u64) -> u64 {
        let place = usize::try_from(mix(key) >> (64 - SHORT_BITS)).unwrap_or(0);
        let known = self.short[place];
        if known & !COUNT == key {
            return count_of(known);
        }
        self.get_beside(place, key, make)
    }

    /// Like [`Words::get`] for a key that is not in the first place.
    #[inline(never)]
    fn get_beside(
        &mut self,
        place: usize,
        key: u128,
        make: impl FnOnce(&mut Vec<u8>) -> u64,
    ) -> u64 {
        // The word seen before the last one has the place beside.
        self.short.swap(place, place ^ 1);
        let known = self.short[place];
        if known & !COUNT == key {
            return count_of(known);
        }
        let count = make(&mut self.symbols);
        if count < 16 {
            self.short[place] = key | u128::from(count) << 124;
        }
        count
    }

    /// Returns the tokens of the word from `start` to `end`.
    #[inline]
    pub(super) fn count_word(
        &mut self,
        tables: &Tables,
        text: &[u8],
        start: usize,
        end: usize,
        stop: &AtomicBool,
    ) -> u64 {
        let length = end - start;
        if length > SHORT {
            return self.count_long(tables, &text[start..end], stop);
        }
        let key = key(text, start, end) | (length as u128) << 120;
        self.get(key, |symbols| {
            mark(tables, &text[start..end], symbols);
            tables.tile_till(symbols, stop)
        })
    }

    #[inline(never)]
    fn count_long(&mut self, tables: &Tables, word: &[u8], stop: &AtomicBool) -> u64 {
        let mut count = || {
            mark(tables, word, &mut self.symbols);
            tables.tile_till(&self.symbols, stop)
        };
        if word.len() > LONG {
            return count();
        }
        let chunks = word.chunks(SHORT);
        let mixed =
            chunks.fold(0, |mixed, chunk| mix(key(chunk, 0, chunk.len()) ^ u128::from(mixed)));
        let place = usize::try_from(mixed >> (64 - LONG_BITS)).unwrap_or(0);
        for place in [place, place ^ 1] {
            let known = &self.long[place];
            if usize::from(known.length) == word.len() && known.bytes.starts_with(word) {
                return known.count.into();
            }
        }
        let count = count();
        self.long.swap(place, place ^ 1);
        let known = &mut self.long[place];
        known.bytes[..word.len()].copy_from_slice(word);
        // A word of 46 bytes has at most as many tokens and its markers.
        known.length = u8::try_from(word.len()).unwrap_or(0);
        known.count = u8::try_from(count).unwrap_or(u8::MAX);
        count
    }

    /// Returns the tokens of a run of punctuation with the markers around it,
    /// if it is short enough to be kept.
    #[inline]
    pub(super) fn count_punctuation(
        &mut self,
        tables: &Tables,
        text: &[u8],
        start: usize,
        end: usize,
        markers: Markers,
    ) -> Option<u64> {
        if end - start >= SHORT {
            return None;
        }
        let flags = 0x80 | u8::from(markers.begin) | u8::from(markers.end) << 1;
        let key = key(text, start, end) | u128::from(flags) << 112;
        Some(self.get(key, |symbols| {
            symbols.clear();
            symbols.extend(markers.begin.then_some(WORD_BEGIN));
            symbols.extend_from_slice(&text[start..end]);
            symbols.extend(markers.end.then_some(WORD_END));
            tables.tile(symbols)
        }))
    }
}

/// Which markers punctuation has around it.
#[derive(Clone, Copy)]
pub(super) struct Markers {
    pub(super) begin: bool,
    pub(super) end: bool,
}

fn count_of(entry: u128) -> u64 {
    u64::try_from(entry >> 124).unwrap_or(0)
}

/// The case of a word as a whole.
enum Case {
    /// It stays as it is.
    Literal,
    /// Its first letter is the only capital.
    Shift,
    Caps,
}

/// Writes a word with its markers.
fn mark(tables: &Tables, word: &[u8], symbols: &mut Vec<u8>) {
    symbols.clear();
    symbols.reserve(word.len() + 3);
    match case(tables, word) {
        Case::Literal => {
            symbols.push(WORD_BEGIN);
            symbols.extend_from_slice(word);
        }
        marked => {
            symbols.push(if matches!(marked, Case::Shift) { SHIFT } else { CAPS });
            symbols.push(WORD_BEGIN);
            let mut at = 0;
            while at < word.len() {
                let (code, width) = decode(word, at);
                let char = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                symbols.extend_from_slice(tables.lower(char).encode_utf8(&mut [0; 4]).as_bytes());
                at += width;
            }
        }
    }
    symbols.push(WORD_END);
}

fn case(tables: &Tables, word: &[u8]) -> Case {
    // Of all letters, of those behind the first, and of the dotted I apart.
    let (mut all, mut behind, mut dotted) = (0, 0, false);
    let (mut letters, mut at) = (0, 0);
    let mut first = '\0';
    while at < word.len() {
        let (code, width) = decode(word, at);
        let bits = tables.bits(code);
        let char = char::from_u32(code).unwrap_or_default();
        if char == SHARP_S {
            return Case::Literal;
        }
        all |= bits;
        dotted |= char == DOTTED_I;
        if letters == 0 {
            first = char;
        } else if char != DOTTED_I {
            behind |= bits;
        }
        letters += 1;
        at += width;
    }
    let starts_upper = tables.bits(first.into()) & Of::UPPER != 0;
    if dotted {
        // It has no small form of one letter and stays as it is. It may follow
        // a capital, but not be one.
        let shifts = starts_upper && first != DOTTED_I && behind & Of::UPPER == 0;
        return if shifts { Case::Shift } else { Case::Literal };
    }
    let is_upper = all & (Of::UPPER | Of::LOWER | Of::CASELESS) == Of::UPPER;
    if tables.marks_caps && letters >= LEAST_CAPS && is_upper {
        return Case::Caps;
    }
    if starts_upper && behind & Of::UPPER == 0 { Case::Shift } else { Case::Literal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::claude::Claude;
    use crate::count::spread::check_spread;

    /// Returns how often the entries of keys are made. Each counts 3.
    fn made(words: &mut Words, keys: &[u128]) -> usize {
        let mut calls = 0;
        for &key in keys {
            let count = words.get(key, |_| {
                calls += 1;
                3
            });
            assert_eq!(3, count);
        }
        calls
    }

    fn place(key: u128) -> usize {
        usize::try_from(mix(key) >> (64 - SHORT_BITS)).expect("it is small")
    }

    #[test]
    fn a_short_word_is_counted_once() {
        let mut words = Words::new();
        let keys: Vec<u128> = (1..1_000).map(|number| number | 9 << 120).collect();
        assert_eq!(keys.len(), made(&mut words, &keys));
        // Only few share a place.
        assert!(made(&mut words, &keys) < 20);
        // What does not fit into an entry is not kept.
        for _ in 0..2 {
            assert_eq!(16, words.get(1 << 120, |_| 16));
            assert_eq!(15, words.get(2 << 120, |_| 15));
        }
        assert_eq!(0, words.get(1 << 120, |_| 0));
        assert_eq!(15, words.get(2 << 120, |_| 0));
    }

    #[test]
    fn two_words_of_one_place_are_kept() {
        for parity in [0, 1] {
            let all = || (1..).map(|number: u128| number | 9 << 120);
            let first = all().map(place).find(|place| place % 2 == parity);
            let first = first.expect("half of them have");
            let those: Vec<_> = all().filter(|&key| place(key) == first).take(3).collect();
            let mut words = Words::new();
            assert_eq!(2, made(&mut words, &those[..2]));
            assert_eq!(0, made(&mut words, &those[..2]));
            assert_eq!(1, made(&mut words, &those[2..]));
            // The last two are left.
            assert_eq!(0, made(&mut words, &those[1..]));
            assert_eq!(1, made(&mut words, &those[..1]));
        }
    }

    #[test]
    fn a_key_has_the_bytes_of_the_word() {
        let text: Vec<u8> = (1..=40).collect();
        for length in 1..=SHORT {
            for start in 0..=text.len() - length {
                let mut bytes = [0; 16];
                bytes[..length].copy_from_slice(&text[start..start + length]);
                assert_eq!(u128::from_le_bytes(bytes), key(&text, start, start + length));
            }
        }
    }

    /// Every bit of a key changes about half of the bits of its mix.
    #[test]
    fn mixes_depend_on_every_bit() {
        check_spread(128, |number, bit| {
            let odd = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
            mix(u128::from(number + 1).wrapping_mul(odd) ^ bit.map_or(0, |bit| 1 << bit))
        });
    }

    fn count(words: &mut Words, word: &str) -> u64 {
        let stop = AtomicBool::new(false);
        words.count_word(Claude::V3.tables(), word.as_bytes(), 0, word.len(), &stop)
    }

    #[test]
    fn words_of_up_to_fifteen_bytes_are_short() {
        let mut words = Words::new();
        count(&mut words, &"a".repeat(SHORT));
        let entry = words.short.iter().find(|&&entry| entry != 0).expect("it is kept");
        assert_eq!(15, entry >> 120 & 0xF);
        assert!(words.long.iter().all(|long| long.length == 0));
        count(&mut words, &"a".repeat(SHORT + 1));
        assert_eq!(1, words.long.iter().filter(|long| long.length == 16).count());
    }

    #[test]
    fn words_and_punctuation_count_alike_wherever_they_stand() {
        let (mut words, tables) = (Words::new(), Claude::V3.tables());
        let stop = AtomicBool::new(false);
        let text = b"green tea?!, and more of it";
        assert_eq!(count(&mut words, "tea"), words.count_word(tables, text, 6, 9, &stop));
        let none = Markers { begin: false, end: false };
        let found = [(&b"?!,"[..], 0, 3), (text, 9, 12)]
            .map(|(text, start, end)| words.count_punctuation(tables, text, start, end, none));
        assert!(found[0].is_some() && found[0] == found[1]);
    }

    #[test]
    fn longer_words_are_remembered() {
        for word in
            ["internationalization", "\u{43f}\u{440}\u{435}\u{434}\u{43b}\u{43e}\u{433}\u{430}"]
        {
            let mut words = Words::new();
            let right = count(&mut words, word);
            let place = words.long.iter().position(|long| long.length > 0).expect("it is kept");
            assert_eq!(right, u64::from(words.long[place].count));
            // A count that it does not have shows what is remembered.
            words.long[place].count = 99;
            assert_eq!(99, count(&mut words, word));
            words.long.swap(place, place ^ 1);
            assert_eq!(99, count(&mut words, word));
            words.long.swap(place, place ^ 1);
            // Another word of the same length, and one that goes on.
            words.long[place].bytes[0] ^= 1;
            assert_eq!(right, count(&mut words, word));
            let kept = words.long[place];
            words.long[place] = Long { length: kept.length + 1, count: 99, ..kept };
            words.long[place ^ 1].length = 0;
            assert_eq!(right, count(&mut words, word));
        }
        let mut words = Words::new();
        count(&mut words, &"a".repeat(LONG + 1));
        assert!(words.long.iter().all(|long| long.length == 0));
        count(&mut words, &"a".repeat(LONG));
        assert!(words.long.iter().any(|long| usize::from(long.length) == LONG));
    }

    #[test]
    fn longer_words_go_to_many_places() {
        let mut words = Words::new();
        for number in 0..1_000 {
            count(&mut words, &format!("a long word with {number}"));
        }
        assert!(words.long.iter().filter(|long| long.length > 0).count() > 900);
    }

    #[test]
    fn short_runs_of_punctuation_are_kept_with_their_markers() {
        let mut words = Words::new();
        let tables = Claude::V3.tables();
        let mut of = |run: &str, begin, end| {
            words.count_punctuation(tables, run.as_bytes(), 0, run.len(), Markers { begin, end })
        };
        for run in ["!", "...", "?!,;", &"-".repeat(SHORT - 1)] {
            for (begin, end) in [(false, false), (false, true), (true, false), (true, true)] {
                let symbols = [
                    if begin { &[WORD_BEGIN][..] } else { &[] },
                    run.as_bytes(),
                    if end { &[WORD_END] } else { &[] },
                ];
                let expected = Some(tables.tile(&symbols.concat()));
                assert_eq!([expected; 2], [0, 1].map(|_| of(run, begin, end)), "{run}");
            }
        }
        assert_eq!(None, of(&"-".repeat(SHORT), false, false));
    }

    #[test]
    fn memory_of_an_unusual_text_is_given_back() {
        let mut words = Words::new();
        for memory in [&mut words.symbols, &mut words.chain, &mut words.buffer] {
            memory.resize(2 * KEPT, 1);
        }
        words.shrink();
        for memory in [&words.symbols, &words.chain, &words.buffer] {
            assert!(memory.is_empty() && memory.capacity() == KEPT);
        }
    }
}
