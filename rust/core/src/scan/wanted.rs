//! Words that are wanted, and filters of their first characters.

use std::collections::{BTreeMap, BTreeSet};

use super::Method;
use super::kernel::{ByteTable, MAX_WIDTH};
use crate::text::letters::{DOT, DOTTED_I, SIGMA, Smalls, cases, small};
use crate::text::{OTHER, Text, Unit};
use crate::wide::with_widest;

/// Stands for no character.
pub(super) const NONE: u32 = 0;

/// Where a stem has an I, a word of it may have a Y.
const I: u32 = 0x69;
const Y: u32 = 0x79;

/// The most beginnings of which the lowest bits let few others pass; and the
/// most words that are compared one by one.
const FEW: usize = 8;

/// The same of pairs of scripts without spaces, which have more letters.
const SOME: usize = 128;

/// Numbers of keys that are one or two characters.
#[derive(Debug)]
pub(super) struct Pairs {
    filter: Filter,
    /// The entries by their hash, or behind it: a key and its number. Most are
    /// empty, with a key of 0.
    entries: Vec<(u64, u32)>,
    shift: u32,
    /// What vectors compare, where the pairs are few.
    pub(super) fronts: Option<Beginnings>,
}

impl Pairs {
    /// Takes pairs, each with its number.
    pub(super) fn new(pairs: &[([u32; 2], u32)]) -> Self {
        let size = (8 * pairs.len()).next_power_of_two().max(2);
        let mut found = Self {
            filter: Filter::default(),
            entries: vec![(0, 0); size],
            shift: u32::BITS - size.trailing_zeros(),
            fronts: (pairs.len() <= SOME).then(|| {
                let pairs = pairs.iter().filter(|(pair, _)| pair[1] != NONE);
                Beginnings::of(pairs.map(|&([first, second], _)| [first, second, NONE]))
            }),
        };
        for &(pair, number) in pairs {
            let hash = hash(pair);
            found.filter.let_pass(hash);
            let mut place = (hash >> found.shift) as usize;
            while ![0, key(pair)].contains(&found.entries[place].0) {
                place = (place + 1) & (size - 1);
            }
            found.entries[place] = (key(pair), number);
        }
        found
    }

    /// Returns 1 if a pair of this [`hash`] may have a number, else 0.
    #[inline]
    pub(super) fn may_have(&self, hash: u32) -> u64 {
        self.filter.passes(hash)
    }

    /// Returns the number of a pair.
    #[inline]
    pub(super) fn get(&self, pair: [u32; 2]) -> Option<u32> {
        let mut place = (hash(pair) >> self.shift) as usize;
        loop {
            match self.entries[place] {
                (known, number) if known == key(pair) => return Some(number),
                (0, _) => return None,
                _ => place = (place + 1) & (self.entries.len() - 1),
            }
        }
    }
}

/// A bit for a part of the hash of each pair that passes: most others have
/// none.
#[derive(Debug)]
struct Filter(Box<[u64; 1 << 9]>);

impl Default for Filter {
    fn default() -> Self {
        Self(Box::new([0; 1 << 9]))
    }
}

impl Filter {
    fn let_pass(&mut self, hash: u32) {
        self.0[(hash >> 23) as usize] |= 1 << (hash >> 17 & 63);
    }

    /// Lets small letters pass, each in all its cases.
    fn let_all_pass(&mut self, [first, second, third]: [u32; 3]) {
        for first in cases(first) {
            for second in cases(second) {
                for third in cases(third) {
                    self.let_pass(hash_of_three([first, second, third]));
                }
            }
        }
    }

    #[inline]
    fn passes(&self, hash: u32) -> u64 {
        self.0[(hash >> 23) as usize] >> (hash >> 17 & 63) & 1
    }
}

#[inline]
fn key([first, second]: [u32; 2]) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

/// Its high bits depend on all of both characters. A vector of it takes a few
/// instructions.
#[inline]
pub(super) fn hash([first, second]: [u32; 2]) -> u32 {
    first.wrapping_mul(0x9E37_79B1).wrapping_add(second.wrapping_mul(0x85EB_CA77))
}

/// Writes the hash of each unit and the one behind it, for all but the last,
/// with the widest instructions that the processor has.
pub(super) fn write_hashes<U: Unit>(units: &[U], out: &mut Vec<u32>) {
    with_widest!(hashes_of::<U>(units: &[U], out: &mut Vec<u32>));
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn hashes_of<U: Unit>(units: &[U], out: &mut Vec<u32>) {
    out.clear();
    let seconds = units.get(1..).unwrap_or_default();
    out.extend(units.iter().zip(seconds).map(|(&one, &two)| hash([one.into(), two.into()])));
}

#[inline]
fn hash_of_three([first, second, third]: [u32; 3]) -> u32 {
    hash([first, second]).wrapping_add(third.wrapping_mul(0xC2B2_AE3D))
}

/// Words outside ASCII. All are in lowercase, with ordinary sigmas alone.
#[derive(Debug)]
pub(super) struct Wanted {
    smalls: &'static Smalls,
    /// Lets their first characters pass, in all their cases: two, and the third
    /// where that is outside ASCII.
    beginnings: Filter,
    /// 1 if a word has the dot of a lowercased U+0130, else 0.
    has_dot: u64,
    /// Whether a word has a sigma.
    has_sigma: bool,
    /// For each length, or the largest here, the lowest bits of the last characters.
    ends: [u64; LENGTHS],
    /// For each hash, the words, in order.
    words: Vec<Vec<Word>>,
    /// By a hash, or behind it, that hash and 1 more than the place of its words;
    /// in most that is 0.
    slots: Vec<(u32, u32)>,
    shift: u32,
    /// The same, for vectors, where these are few.
    pub(super) fronts: Option<Beginnings>,
}

/// The first characters of words, by bits that vectors compare: the lowest of
/// the first, and a mix of those of all three.
#[derive(Debug)]
pub(super) struct Beginnings {
    firsts: ByteTable,
    mixed: ByteTable,
}

impl Beginnings {
    /// Takes small characters, and lets all their cases pass.
    fn of(beginnings: impl Iterator<Item = [u32; 3]>) -> Self {
        let [mut firsts, mut mixed] = [ByteTable::EMPTY; 2];
        for [first, second, third] in beginnings {
            let others = match second {
                NONE => (0..0x80).collect(), // anything may follow
                _ if second == I => [cases(I), cases(Y)].concat(),
                _ => cases(second),
            };
            for first in cases(first) {
                firsts.mark(first.low());
                for other in &others {
                    for third in cases(third) {
                        mixed.mark(mix(mix(first.low(), 3, other.low()), 5, third.low()));
                    }
                }
            }
        }
        Self { firsts, mixed }
    }
}

/// Adds the bits of a character, times a factor, to those in front of it.
#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn mix(before: u8, factor: u8, low: u8) -> u8 {
    before.wrapping_add(low.wrapping_mul(factor)) & 0x7F
}

/// Where words may begin like one that is wanted: a bit for each place.
#[derive(Debug, Default)]
pub(super) struct Fronts {
    lows: Vec<u8>,
    mixed: Vec<u8>,
    pub(super) places: Vec<u64>,
    passed: Vec<u64>,
}

impl Fronts {
    /// Makes the bits for a text. The folded text is for words; pairs have no
    /// third character.
    pub(super) fn find<U: Unit>(
        &mut self,
        method: Method,
        Beginnings { firsts, mixed }: &Beginnings,
        units: &[U],
        folded: Option<&[u8]>,
    ) {
        self.lows.clear();
        write_lows(units, &mut self.lows);
        self.lows.push(0); // behind the last
        write_mixed(&self.lows, folded.unwrap_or_default(), &mut self.mixed);
        bits(method, firsts, &self.lows[..units.len()], false, &mut self.places);
        bits(method, mixed, &self.mixed, false, &mut self.passed);
        for (places, passed) in self.places.iter_mut().zip(&self.passed) {
            *places &= passed;
        }
    }
}

/// Appends the lowest bits of each unit, with the widest instructions that the
/// processor has.
fn write_lows<U: Unit>(units: &[U], out: &mut Vec<u8>) {
    with_widest!(extend_by_lows::<U>(units: &[U], out: &mut Vec<u8>));
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn extend_by_lows<U: Unit>(units: &[U], out: &mut Vec<u8>) {
    out.extend(units.iter().map(|unit| unit.low()));
}

/// Writes the mix of each byte but the last, the one behind it, and the next
/// where `folded` has a character outside ASCII. That has a place less, or none.
fn write_mixed(lows: &[u8], folded: &[u8], out: &mut Vec<u8>) {
    with_widest!(extend_by_mixed(lows: &[u8], folded: &[u8], out: &mut Vec<u8>));
}

#[inline(always)]
#[allow(clippy::inline_always)] // as above
fn extend_by_mixed(lows: &[u8], folded: &[u8], out: &mut Vec<u8>) {
    let pair = |(&one, &two): (&u8, &u8)| mix(one, 3, two);
    let third = |(&low, &folded): (&u8, &u8)| if folded == OTHER { low } else { 0 };
    let [seconds, thirds, marks] =
        [(lows, 1), (lows, 2), (folded, 2)].map(|(all, from)| all.get(from..).unwrap_or_default());
    let mixed = lows.iter().zip(seconds).map(pair).zip(thirds.iter().zip(marks).map(third));
    out.clear();
    out.extend(mixed.map(|(pair, third)| mix(pair, 5, third)));
    let done = out.len();
    out.extend(lows[done..].iter().zip(&seconds[done..]).map(pair));
}

/// The number of lengths of words that are told apart.
const LENGTHS: usize = 32;

fn length_of<T>(word: &[T]) -> usize {
    word.len().min(LENGTHS - 1)
}

fn end_bit(last: u32) -> u64 {
    1 << (last % 64)
}

/// A word that is wanted.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    codes: Box<[u32]>,
    number: u32,
    /// The first of the codes, and how many bits of each of a text's are compared
    /// with them.
    first: [u32; FIRST],
    kept: [u32; FIRST],
}

/// How many characters of words are compared at once.
const FIRST: usize = 8;

impl Word {
    fn new(codes: Box<[u32]>, number: u32) -> Self {
        let (mut first, mut kept) = ([0; FIRST], [0; FIRST]);
        for ((first, kept), &code) in first.iter_mut().zip(&mut kept).zip(&codes) {
            (*first, *kept) = (code, u32::MAX);
        }
        Self { codes, number, first, kept }
    }

    /// Returns whether this is the word of a text from `at` to `end`.
    #[inline]
    fn is<U: Unit>(&self, units: &[U], at: usize, end: usize, small: impl Fn(&U) -> u32) -> bool {
        let word = &units[at..end];
        if self.codes.len() != word.len() {
            return false;
        }
        // Most are short and in lowercase: that takes no branch for a character.
        if let Some(units) = units[at..].first_chunk::<FIRST>()
            && word.len() <= FIRST
        {
            let pairs = self.first.iter().zip(&self.kept).zip(units);
            let differ = pairs.fold(0, |differ, ((&first, &kept), &unit)| {
                let code: u32 = unit.into();
                differ | (first ^ code) & kept
            });
            if differ == 0 {
                return true;
            }
        }
        let pairs = || self.codes.iter().zip(word);
        let differ = pairs().fold(0, |differ, (&code, &unit)| differ | code ^ unit.into());
        differ == 0 || pairs().all(|(&code, unit)| code == small(unit))
    }
}

/// What a word of a text is.
pub(super) enum Found {
    /// None that is wanted.
    Nothing,
    /// That one.
    Word(u32),
    /// It may be one: its lowercase is not that of its characters.
    Unsure,
}

impl Wanted {
    /// Returns the words with their numbers; None where there are none.
    pub(super) fn new<'w>(wanted: impl Iterator<Item = (&'w [u8], u32)>) -> Option<Self> {
        let mut found: BTreeMap<u32, Vec<Word>> = BTreeMap::new();
        for (word, number) in wanted {
            let codes = codes_of(word);
            let words = found.entry(hash_of(&codes, |&code| code)).or_default();
            words.push(Word::new(codes, number));
        }
        if found.is_empty() {
            return None;
        }
        let all = || found.values().flatten().map(|word| &word.codes);
        let starts: BTreeSet<_> = all().map(|codes| beginning_of_word(codes)).collect();
        let has_dot = all().any(|codes| codes.contains(&DOT)).into();
        let mut ends = [0; LENGTHS];
        all().for_each(|codes| ends[length_of(codes)] |= end_bit(codes[codes.len() - 1]));
        let has_sigma = all().any(|codes| codes.contains(&SIGMA));
        let mut beginnings = Filter::default();
        for &[first, second, third] in &starts {
            beginnings.let_all_pass([first, second, third]);
            if second == I {
                beginnings.let_all_pass([first, Y, third]);
            }
        }
        let fronts =
            (has_dot == 0 && starts.len() <= FEW).then(|| Beginnings::of(starts.into_iter()));
        let size = (4 * found.len()).next_power_of_two().max(2);
        let shift = u32::BITS - size.trailing_zeros();
        let mut slots = vec![(0, 0); size];
        for (place, &hash) in (1..).zip(found.keys()) {
            let mut slot = (hash >> shift) as usize;
            while slots[slot].1 != 0 {
                slot = (slot + 1) & (size - 1);
            }
            slots[slot] = (hash, place);
        }
        let mut words: Vec<_> = found.into_values().collect();
        for words in &mut words {
            words.sort_unstable();
        }
        let smalls = Smalls::get();
        Some(Self { smalls, beginnings, has_dot, has_sigma, ends, words, slots, shift, fronts })
    }

    /// Returns 1 if a word with these first characters may be wanted, else 0. The
    /// third must be [`NONE`] if it is ASCII.
    #[inline]
    pub(super) fn may_begin(&self, first: [u32; 3]) -> u64 {
        let is_unsure = first.iter().fold(0, |any, &code| any | u64::from(code == DOTTED_I));
        is_unsure & self.has_dot | self.beginnings.passes(hash_of_three(first))
    }

    /// Returns whether a word of a text that is wanted has a sigma, of any kind.
    #[inline]
    pub(super) fn has_sigma<U: Unit>(&self, word: &[U]) -> bool {
        self.has_sigma && word.iter().any(|&unit| self.smalls.of(unit.into()) == SIGMA)
    }

    /// Returns what the word of a text from `at` to `end` is.
    pub(super) fn find<U: Unit>(&self, units: &[U], at: usize, end: usize) -> Found {
        let word = &units[at..end];
        if self.has_dot == 1 && word.iter().any(|&unit| unit.into() == DOTTED_I) {
            return Found::Unsure;
        }
        let small = |unit: &U| self.smalls.of((*unit).into());
        let may_end = |last| self.ends[length_of(word)] & end_bit(small(last)) != 0;
        if !word.last().is_some_and(may_end) {
            return Found::Nothing;
        }
        let hash = hash_of(word, small);
        let mut slot = (hash >> self.shift) as usize;
        let words = loop {
            match self.slots[slot] {
                (_, 0) => return Found::Nothing,
                (known, place) if known == hash => break &self.words[place as usize - 1],
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        };
        let found = if words.len() <= FEW {
            words.iter().find(|wanted| wanted.is(units, at, end, small))
        } else {
            let compare = |wanted: &Word| wanted.codes.iter().copied().cmp(word.iter().map(small));
            words.binary_search_by(compare).ok().map(|place| &words[place])
        };
        found.map_or(Found::Nothing, |wanted| Found::Word(wanted.number))
    }
}

/// Returns a hash of a word: of its length, its first two characters and its
/// last, in lowercase.
#[inline]
fn hash_of<U>(word: &[U], small: impl Fn(&U) -> u32) -> u32 {
    let at = |place: usize| word.get(place).map_or(NONE, &small);
    #[allow(clippy::cast_possible_truncation)] // few words are as long
    let length = word.len() as u32;
    let end = hash([at(word.len().wrapping_sub(1)), length]);
    (hash([at(0), at(1)]).rotate_left(11) ^ end).wrapping_mul(0x9E37_79B1)
}

/// Returns the characters of a word in lowercase.
pub(super) fn codes_of(word: &[u8]) -> Box<[u32]> {
    let mut codes = Vec::with_capacity(word.len());
    Text::from_utf8(word).for_each(|code| codes.push(small(code)));
    codes.into()
}

pub(super) fn beginning(codes: &[u32]) -> [u32; 2] {
    [0, 1].map(|place| codes.get(place).copied().unwrap_or(NONE))
}

/// Returns the first three characters; none for the third if that is ASCII, as
/// the end of a stem may be another one than its word's.
fn beginning_of_word(codes: &[u32]) -> [u32; 3] {
    let [first, second] = beginning(codes);
    let third = codes.get(2).copied().filter(|&code| code >= 0x80);
    [first, second, third.unwrap_or(NONE)]
}

/// Appends a bit for each byte of `folded`, 64 of them in each number: whether
/// it has bits in `table`, or also whether it is 0x80 or more if `high`. The bits
/// behind the last byte mean nothing.
pub(super) fn bits(
    method: Method,
    table: &ByteTable,
    folded: &[u8],
    high: bool,
    out: &mut Vec<u64>,
) {
    out.clear();
    match method {
        Method::Portable => {
            for block in folded.chunks(MAX_WIDTH) {
                let is_set =
                    |byte: u8| table.all.get(usize::from(byte)).map_or(high, |&bits| bits != 0);
                let set =
                    block.iter().rev().fold(0, |set, &byte| set << 1 | u64::from(is_set(byte)));
                out.push(set);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Method::Avx2 => super::avx2::bits(table, folded, high, out),
        #[cfg(target_arch = "x86_64")]
        Method::Avx512 | Method::Avx512Vbmi => super::avx512::bits(table, folded, high, out),
        #[cfg(target_arch = "aarch64")]
        Method::Neon => super::neon::bits(table, folded, high, out),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const FROM: u32 = 0x430; // small letters of Russian
    const TO: u32 = 0x450;

    fn wanted(words: &[&str]) -> Wanted {
        let words = words.iter().map(|word| word.as_bytes()).zip(0..);
        Wanted::new(words).expect("there are some")
    }

    #[test]
    fn few_others_pass_as_beginnings() {
        let wanted =
            wanted(&["\u{447}\u{430}\u{439}\u{43d}\u{438}\u{43a}", "\u{43c}\u{451}\u{434}"]);
        assert_eq!(1, wanted.may_begin([0x447, 0x430, 0x439]));
        assert_eq!(1, wanted.may_begin([0x427, 0x410, 0x419]));
        let letters =
            |number: u32| [number / 1024, number / 32 % 32, number % 32].map(|at| FROM + at);
        let all = (TO - FROM).pow(3);
        let passed: u64 = (0..all).map(|number| wanted.may_begin(letters(number))).sum();
        assert!(passed < 200, "{passed} of {all}");
    }

    /// Words that begin otherwise have hashes of their own.
    #[test]
    fn hashes_of_beginnings() {
        let letters = || FROM..TO;
        let pairs = letters().flat_map(|one| letters().map(move |two| [one, two, FROM]));
        let hashes: HashSet<u32> = pairs.map(|word| hash_of(&word, |&code| code)).collect();
        assert_eq!(32 * 32, hashes.len());
    }

    #[test]
    fn few_other_pairs_pass() {
        let pairs = [([0x8336, 0x8449], 3), ([0x7D05, 0x8336], 5), ([0x7DD1, NONE], 7)];
        let found = Pairs::new(&pairs);
        let mut passed = 0;
        for first in 0x7D00..0x7E00 {
            for second in 0x8300..0x8400 {
                passed += found.may_have(hash([first, second]));
                let number = pairs.iter().find(|(pair, _)| *pair == [first, second]);
                assert_eq!(number.map(|&(_, number)| number), found.get([first, second]));
            }
        }
        assert!((1..100).contains(&passed), "{passed} of 65536");
        for (pair, number) in pairs {
            assert_eq!((1, Some(number)), (found.may_have(hash(pair)), found.get(pair)));
        }
    }

    #[test]
    fn words_are_told_apart_by_their_ends_lengths_and_hashes() {
        let words: Vec<String> = (FROM..TO)
            .map(|code| char::from_u32(code).expect("it is a letter"))
            .flat_map(|char| (2..6).map(move |length| char.to_string().repeat(length)))
            .collect();
        let wanted = wanted(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(words.len(), wanted.words.len());
        let lengths = wanted.ends.iter().map(|ends| ends.count_ones());
        assert_eq!([0, 0, 32, 32, 32, 32, 0], *lengths.take(7).collect::<Vec<_>>());
        let hashes: HashSet<u32> =
            words.iter().map(|word| hash_of(&codes_of(word.as_bytes()), |&code| code)).collect();
        assert_eq!(words.len(), hashes.len());
    }

    #[test]
    fn a_word_is_only_itself() {
        // Codes without a common bit, in front of enough others to compare at once.
        let word = Word::new(Box::new([0x430]), 0);
        let units = |code: u16| [code, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20];
        let is = |code| word.is(&units(code), 0, 1, |&unit| unit.into());
        assert!(is(0x430));
        assert!((0..0x800).filter(|&code| code != 0x430).all(|code| !is(code)));
    }

    /// The places are those that begin like a word, by their lowest bits, and few
    /// others.
    #[test]
    fn places_are_found_by_the_first_characters() {
        let wanted = wanted(&["\u{447}\u{430}\u{439}"]);
        let beginnings = wanted.fronts.as_ref().expect("there is one");
        let units: Vec<u16> = (0..4_096_u16)
            .map(|at| 0x430 + at.wrapping_mul(40_503) / 997 % 0x21)
            .chain([0x447, 0x430, 0x439, 0x20, 0x447])
            .collect();
        let folded = vec![OTHER; units.len()];
        let mut fronts = Fronts::default();
        fronts.find(Method::Portable, beginnings, &units, Some(&folded));
        let is_found = |at: usize| fronts.places[at / 64] >> (at % 64) & 1 == 1;
        let mut count = 0;
        for (at, word) in units.windows(3).enumerate() {
            assert!(is_found(at) || word != [0x447, 0x430, 0x439], "{at}");
            count += usize::from(is_found(at));
        }
        assert!(is_found(4_096) && count < 40, "{count}");
    }

    /// A word with the dot of a lowercased U+0130 may begin with that.
    #[test]
    fn what_lowers_to_two_characters_may_begin_any_word() {
        let dotted = wanted(&["i\u{307}zmir"]);
        assert_eq!(
            [1, 1],
            [[0x130, 0x7A, NONE], [0x69, 0x307, NONE]].map(|first| dotted.may_begin(first))
        );
        assert_eq!(0, dotted.may_begin([0x430, 0x431, NONE]));
        let plain = wanted(&["\u{e9}t\u{e9}"]);
        assert_eq!(0, plain.may_begin([0x130, 0x7A, NONE]));
    }

    /// A stem may have an I where its word has a Y.
    #[test]
    fn a_second_i_may_be_a_y() {
        let wanted = wanted(&["\u{e9}i\u{e9}"]);
        let beginnings = wanted.fronts.as_ref().expect("there is one");
        let mut fronts = Fronts::default();
        for second in [I, Y, 0x49, 0x59] {
            let units =
                [0xE9, second, 0xE9, 0x20].map(|code| u16::try_from(code).expect("it is small"));
            fronts.find(Method::Portable, beginnings, &units, Some(&[OTHER, 0x69, OTHER, 0x20]));
            assert_eq!(1, fronts.places[0] & 1, "{second:x}");
            assert_eq!(1, wanted.may_begin([0xE9, second, 0xE9]));
        }
    }
}
