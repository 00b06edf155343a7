//! Words that are wanted, by their first two characters.

use std::collections::BTreeMap;

use super::Method;
use super::kernel::{ByteTable, MAX_WIDTH, clear_behind};
use crate::text::letters::{DOT, DOTTED_I, Smalls, cases, small};
use crate::text::{Text, Unit};
use crate::wide::with_avx2;

/// Stands for no character.
pub(super) const NONE: u32 = 0;

/// Where a stem has an I, a word of it may have a Y.
const I: u32 = 0x69;
const Y: u32 = 0x79;

/// So many words that begin alike are compared one by one.
const FEW: usize = 8;

/// Numbers of keys that are one or two characters.
#[derive(Debug)]
pub(super) struct Pairs {
    /// A bit for a part of the hash of each key: most others have none.
    filter: Box<[u64; 1 << 9]>,
    /// The entries by their hash, or behind it: a key and its number. Most are
    /// empty, with a key of 0.
    entries: Vec<(u64, u32)>,
    shift: u32,
}

impl Pairs {
    /// Takes pairs, each with its number.
    pub(super) fn new(pairs: &[([u32; 2], u32)]) -> Self {
        let size = (8 * pairs.len()).next_power_of_two().max(2);
        let mut found = Self {
            filter: Box::new([0; 1 << 9]),
            entries: vec![(0, 0); size],
            shift: u64::BITS - size.trailing_zeros(),
        };
        for &(pair, number) in pairs {
            found.let_pass(pair);
            let place = found.place(pair);
            found.entries[place] = (key(pair), number);
        }
        found
    }

    fn let_pass(&mut self, pair: [u32; 2]) {
        let hash = hash(pair);
        self.filter[(hash >> 55) as usize] |= 1 << (hash >> 49 & 63);
    }

    /// Lets a pair of small letters pass, each in all its cases.
    fn let_all_pass(&mut self, [first, second]: [u32; 2]) {
        for first in cases(first) {
            for second in cases(second) {
                self.let_pass([first, second]);
            }
        }
    }

    /// Returns 1 if there may be a number of a pair, else 0.
    #[inline]
    pub(super) fn may_have(&self, pair: [u32; 2]) -> u64 {
        let hash = hash(pair);
        self.filter[(hash >> 55) as usize] >> (hash >> 49 & 63) & 1
    }

    /// Returns where the entry of a pair is, or would be.
    #[allow(clippy::cast_possible_truncation)] // a table has fewer entries
    fn place(&self, pair: [u32; 2]) -> usize {
        let key = key(pair);
        let mut place = (hash(pair) >> self.shift) as usize;
        while self.entries[place].0 != key && self.entries[place].0 != 0 {
            place = (place + 1) & (self.entries.len() - 1);
        }
        place
    }

    pub(super) fn get(&self, pair: [u32; 2]) -> Option<u32> {
        let (key, number) = self.entries[self.place(pair)];
        (key != 0).then_some(number)
    }
}

/// Its products have high bits that depend on all of the factor.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
fn key([first, second]: [u32; 2]) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

#[inline]
fn hash(pair: [u32; 2]) -> u64 {
    key(pair).wrapping_mul(MIX)
}

/// Words by their first two characters. All are in lowercase, with ordinary
/// sigmas alone.
#[derive(Debug)]
pub(super) struct Wanted {
    smalls: &'static Smalls,
    beginnings: Pairs,
    /// 1 if a word has the dot of a lowercased U+0130, else 0.
    has_dot: u64,
    /// For each beginning, the words and their numbers, in order.
    words: Vec<Vec<(Box<[u32]>, u32)>>,
    /// The lowest bits of the first and of the second characters, where these
    /// are few.
    pub(super) fronts: Option<[ByteTable; 2]>,
}

/// Returns the lowest bits of the first and of the second characters of words
/// that begin so.
fn fronts_of(beginnings: impl Iterator<Item = [u32; 2]>) -> [ByteTable; 2] {
    let [mut firsts, mut seconds] = [ByteTable::EMPTY; 2];
    for [first, second] in beginnings {
        for code in cases(first) {
            firsts.mark(code.low());
        }
        let others = match second {
            NONE => (0..0x80).collect(), // anything may follow
            _ if second == I => [cases(I), cases(Y)].concat(),
            _ => cases(second),
        };
        for code in others {
            seconds.mark(code.low());
        }
    }
    [firsts, seconds]
}

/// Where words may begin like one that is wanted: a bit for each place.
#[derive(Debug, Default)]
pub(super) struct Fronts {
    lows: Vec<u8>,
    pub(super) firsts: Vec<u64>,
    seconds: Vec<u64>,
}

impl Fronts {
    /// Makes the bits for a text.
    pub(super) fn find<U: Unit>(
        &mut self,
        method: Method,
        [first, second]: &[ByteTable; 2],
        units: &[U],
    ) {
        self.lows.clear();
        write_lows(units, &mut self.lows);
        self.lows.push(0); // behind the last
        bits(method, first, &self.lows[..units.len()], false, &mut self.firsts);
        bits(method, second, &self.lows[1..], false, &mut self.seconds);
        for (firsts, seconds) in self.firsts.iter_mut().zip(&self.seconds) {
            *firsts &= seconds;
        }
    }
}

/// Appends the lowest bits of each unit, with the widest instructions that the
/// processor has.
fn write_lows<U: Unit>(units: &[U], out: &mut Vec<u8>) {
    with_avx2!(extend_by_lows::<U>(units: &[U], out: &mut Vec<u8>));
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn extend_by_lows<U: Unit>(units: &[U], out: &mut Vec<u8>) {
    out.extend(units.iter().map(|unit| unit.low()));
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
        let mut found: BTreeMap<[u32; 2], Vec<_>> = BTreeMap::new();
        for (word, number) in wanted {
            let codes = codes_of(word);
            found.entry(beginning(&codes)).or_default().push((codes, number));
        }
        let mut beginnings = Pairs::new(&found.keys().copied().zip(0..).collect::<Vec<_>>());
        for &[first, second] in found.keys() {
            beginnings.let_all_pass([first, second]);
            if second == I {
                beginnings.let_all_pass([first, Y]);
            }
        }
        for words in found.values_mut() {
            words.sort_unstable();
        }
        let words: Vec<_> = found.into_values().collect();
        let mut codes = words.iter().flatten().flat_map(|(codes, _)| codes);
        let has_dot = codes.any(|&code| code == DOT).into();
        let beginnings_of = || words.iter().map(|words| beginning(&words[0].0));
        let fronts = (has_dot == 0 && words.len() <= FEW).then(|| fronts_of(beginnings_of()));
        let smalls = Smalls::get();
        (!words.is_empty()).then_some(Self { smalls, beginnings, has_dot, words, fronts })
    }

    /// Returns 1 if a word with these first characters may be wanted, else 0.
    #[inline]
    pub(super) fn may_begin(&self, first: u32, second: u32) -> u64 {
        let is_unsure = u64::from(first == DOTTED_I) | u64::from(second == DOTTED_I);
        is_unsure & self.has_dot | self.beginnings.may_have([first, second])
    }

    /// Returns what the word is that has these characters.
    pub(super) fn find<U: Unit>(&self, word: &[U]) -> Found {
        let small = |unit: &U| self.smalls.of((*unit).into());
        let code = |place: usize| word.get(place).map_or(NONE, small);
        if self.has_dot == 1 && word.iter().any(|&unit| unit.into() == DOTTED_I) {
            return Found::Unsure;
        }
        let Some(place) = self.beginnings.get([code(0), code(1)]) else { return Found::Nothing };
        let words = &self.words[place as usize];
        let is_same = |wanted: &[u32]| {
            wanted.len() == word.len()
                && wanted.iter().zip(word).all(|(&one, unit)| one == small(unit))
        };
        let found = if words.len() <= FEW {
            words.iter().find(|(wanted, _)| is_same(wanted))
        } else {
            let compare = |(wanted, _): &(Box<[u32]>, u32)| {
                wanted.iter().copied().cmp(word.iter().map(small))
            };
            words.binary_search_by(compare).ok().map(|place| &words[place])
        };
        found.map_or(Found::Nothing, |&(_, number)| Found::Word(number))
    }
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

/// Appends a bit for each byte of `folded`, 64 of them in each number: whether
/// it has bits in `table`, or also whether it is 0x80 or more if `high`.
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
            clear_behind(folded.len(), out);
        }
        #[cfg(target_arch = "x86_64")]
        Method::Avx2 => super::avx2::bits(table, folded, high, out),
        #[cfg(target_arch = "x86_64")]
        Method::Avx512 | Method::Avx512Vbmi => super::avx512::bits(table, folded, high, out),
        #[cfg(target_arch = "aarch64")]
        Method::Neon => super::neon::bits(table, folded, high, out),
    }
}
