//! Counts how often a folded text contains each of a few ASCII terms, and how
//! many words it has.
//!
//! The scan is that for keywords, but every place counts and it never ends
//! early. Where words start follows from the set of bytes that are part of a
//! word, with a bit for each byte of a vector register. The population count of
//! the starts is the number of words that start there.
#![allow(unsafe_code)] // vector instructions and unaligned loads

use super::Method;
use super::kernel::{BUCKETS, ByteTable, Lanes, MAX_WIDTH, bytes};
use super::marks::Marks;
use super::words::Words;
use crate::keywords::{Class, class, end_of_keyword, starts_word};
use crate::terms::end_of;
use crate::text::letters::is_word;

/// How many first bytes of a term are looked at before it is compared: the last
/// of them only where there are many terms.
const FIRST: usize = 4;

/// The counts of a text.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The number of words, with repetitions.
    pub(crate) words: u64,
    /// How often each term occurs, by its number.
    counts: Vec<u32>,
    /// A bit for each term that occurs.
    found: Vec<u64>,
    /// A bit for each number in `found` that has bits.
    blocks: Vec<u64>,
    /// How many terms occur.
    len: usize,
    /// Where words start that have a wanted beginning, if those are looked for,
    /// and where each ends.
    pub(crate) places: Vec<(usize, usize)>,
}

impl Tally {
    /// Prepares to count `terms` terms.
    pub(crate) fn new(terms: usize) -> Self {
        let mut tally = Self::default();
        tally.grow(terms);
        tally
    }

    /// Makes room for at least `terms` terms.
    pub(crate) fn grow(&mut self, terms: usize) {
        if self.counts.len() < terms {
            self.counts.resize(terms, 0);
            self.found.resize(terms.div_ceil(64), 0);
            self.blocks.resize(terms.div_ceil(64 * 64), 0);
        }
    }

    /// Counts `term` once more.
    #[inline]
    pub(crate) fn add(&mut self, term: u32) {
        let count = &mut self.counts[term as usize];
        self.len += usize::from(*count == 0);
        *count = count.saturating_add(1);
        self.mark(term);
    }

    /// Counts each of `terms` once more, and overwrites them.
    #[inline]
    pub(crate) fn add_all(&mut self, terms: &mut [u32]) {
        // Those that occur for the first time come to the front, without a branch.
        let (counts, mut new) = (&mut self.counts[..], 0);
        for place in 0..terms.len() {
            let term = terms[place];
            let count = &mut counts[term as usize];
            terms[new] = term;
            new += usize::from(*count == 0);
            *count = count.saturating_add(1);
        }
        self.len += new;
        terms[..new].iter().for_each(|&term| self.mark(term));
    }

    /// Notes that `term` occurs.
    #[inline]
    fn mark(&mut self, term: u32) {
        let term = term as usize;
        self.found[term / 64] |= 1 << (term % 64);
        self.blocks[term / 64 / 64] |= 1 << (term / 64 % 64);
    }

    /// Calls `visit` with each term that occurs and its count, in their order.
    /// Then forgets them, and returns the number of words.
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(u32, u32)) -> u64 {
        if self.len > 0 {
            self.len = 0;
            for (at, blocks) in (0..).step_by(64).zip(&mut self.blocks) {
                for block in Places(std::mem::take(blocks)).map(|block| at + block) {
                    for place in Places(std::mem::take(&mut self.found[block])) {
                        let term = 64 * block + place;
                        let count = std::mem::take(&mut self.counts[term]);
                        visit(u32::try_from(term).expect("terms were numbered"), count);
                    }
                }
            }
        }
        std::mem::take(&mut self.words)
    }

    /// Returns how many terms occur.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// What a [`TermScanner`] looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Runs of letters and digits.
    Terms,
    /// Those that begin with a term.
    Beginnings,
    /// Keywords: what is between whitespace, without punctuation at its ends.
    Keywords,
}

impl Kind {
    /// Returns whether a byte below 0x80 may be the first of a word, behind one
    /// that may not.
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Terms | Self::Beginnings => is_word(byte),
            Self::Keywords => class(byte) == Class::Word,
        }
    }
}

/// Counts a fixed set of terms or of keywords in many texts.
#[derive(Debug)]
pub(crate) struct TermScanner {
    method: Method,
    kind: Kind,
    /// The terms and their numbers in the tally.
    terms: Words,
    /// Not 0 for what [`Kind::has`].
    word: ByteTable,
    /// For each of the first bytes, the buckets of the terms that have it
    /// there.
    first: [ByteTable; FIRST],
    /// What lets words pass if there are many terms: the tables of first bytes
    /// let too many pass.
    marks: Option<Box<Marks>>,
}

impl TermScanner {
    /// Prepares to count `terms`, each with its number in the tally: lowercase
    /// ASCII letters and digits.
    pub(crate) fn new(terms: Vec<(Vec<u8>, u32)>) -> Self {
        Self::with_method(terms, Kind::Terms, Method::best())
    }

    /// Prepares to count keywords, each with its number in the tally, as a
    /// [`Scanner`](super::Scanner) takes them.
    pub(crate) fn of_keywords(keywords: Vec<(Vec<u8>, u32)>) -> Self {
        Self::with_method(keywords, Kind::Keywords, Method::best())
    }

    /// Prepares to find words that have one of `beginnings`, which look like
    /// terms. Some others may be found too.
    pub(crate) fn of_beginnings(beginnings: Vec<Vec<u8>>) -> Self {
        let beginnings = beginnings.into_iter().map(|beginning| (beginning, 0));
        Self::with_method(beginnings.collect(), Kind::Beginnings, Method::best())
    }

    fn with_method(mut terms: Vec<(Vec<u8>, u32)>, kind: Kind, method: Method) -> Self {
        // Terms that begin alike share a bucket, so that few places pass.
        terms.sort_unstable();
        let (count, buckets) = (terms.len(), BUCKETS.min(terms.len()));
        let mut first = [ByteTable::EMPTY; FIRST];
        for (place, (term, _)) in terms.iter().enumerate() {
            let bucket = place * buckets / count;
            for (offset, table) in first.iter_mut().enumerate() {
                match term.get(offset) {
                    Some(byte) => {
                        table.add(byte.to_ascii_lowercase(), 1 << bucket);
                        table.add(byte.to_ascii_uppercase(), 1 << bucket);
                    }
                    // The word ends with the term.
                    None if offset == term.len() && kind != Kind::Beginnings => (0..0x80)
                        .filter(|&byte| !kind.has(byte))
                        .for_each(|byte| table.add(byte, 1 << bucket)),
                    // Anything may follow.
                    None => {
                        (0..0x80).for_each(|byte| table.add(byte, 1 << bucket));
                        table.add_other(1 << bucket);
                    }
                }
            }
        }
        let marks =
            (count > FEW).then(|| Marks::new(terms.iter().map(|(term, _)| term.as_slice())));
        Self {
            method,
            kind,
            word: bytes(|byte| kind.has(byte)),
            first,
            marks,
            terms: Words::new(terms),
        }
    }

    /// Adds the words of `folded` to the tally, and how often each term occurs.
    pub(crate) fn scan(&self, folded: &[u8], tally: &mut Tally) {
        match self.method {
            Method::Portable => self.scan_portable(folded, tally),
            #[cfg(target_arch = "x86_64")]
            Method::Avx2 => super::avx2::scan_terms(self, folded, tally),
            #[cfg(target_arch = "x86_64")]
            Method::Avx512 => super::avx512::scan_terms(self, folded, tally),
            #[cfg(target_arch = "x86_64")]
            Method::Avx512Vbmi => super::avx512::scan_terms_vbmi(self, folded, tally),
            #[cfg(target_arch = "aarch64")]
            Method::Neon => super::neon::scan_terms(self, folded, tally),
        }
    }

    fn scan_portable(&self, folded: &[u8], tally: &mut Tally) {
        let look_up = |offset: usize, at: usize| {
            let byte = folded.get(at + offset).copied().unwrap_or(b' ');
            // A byte outside ASCII is part of a word, and of no term.
            self.first[offset].all.get(usize::from(byte)).copied().unwrap_or(0)
        };
        let mut was_word = false;
        for (at, &byte) in folded.iter().enumerate() {
            let is_word = !byte.is_ascii() || self.kind.has(byte);
            if is_word && !was_word {
                tally.words += 1;
                let buckets = look_up(0, at) & look_up(1, at);
                if buckets != 0 {
                    self.confirm(folded, at, at, tally);
                }
            }
            was_word = is_word;
        }
    }

    /// Counts the term that is the word at `at`, if there is one. The word goes
    /// on to `within` at least.
    #[inline(never)] // so that going through every block stays small
    fn confirm(&self, folded: &[u8], at: usize, within: usize, tally: &mut Tally) {
        let end = match self.kind {
            Kind::Terms => end_of(folded, within, is_word),
            Kind::Keywords if starts_word(folded, at) => end_of_keyword(folded, within),
            Kind::Keywords => return,
            Kind::Beginnings => {
                // Few others pass, and whoever asks looks at the words anyway.
                tally.places.push((at, end_of(folded, within, is_word)));
                return;
            }
        };
        self.terms.get(folded, at, end).into_iter().for_each(|number| tally.add(number));
    }
}

/// The most terms of which the tables of first bytes let few other words pass.
pub(super) const FEW: usize = 16;

/// The places of the bits that are set, ascending.
pub(super) struct Places(pub(super) u64);

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let place = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(place)
    }
}

/// A scan of one text, for few terms or for many.
struct Scan<'s, L: Lanes, const MANY: bool> {
    scanner: &'s TermScanner,
    folded: &'s [u8],
    word: L::Table,
    first: [L::Table; FIRST],
    words: u64,
    /// 1 if the byte in front of the next block is part of a word.
    carry: u64,
}

#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
impl<'s, L: Lanes, const MANY: bool> Scan<'s, L, MANY> {
    /// # Safety
    ///
    /// The processor must have the instructions of `L`.
    #[inline(always)]
    unsafe fn new(scanner: &'s TermScanner, folded: &'s [u8]) -> Self {
        let [one, two, three, four] = &scanner.first;
        // SAFETY: the caller guarantees the instructions.
        unsafe {
            Self {
                scanner,
                folded,
                word: L::table(&scanner.word),
                first: [L::table(one), L::table(two), L::table(three), L::table(four)],
                words: 0,
                carry: 0,
            }
        }
    }

    /// Looks at the WIDTH places from `at` on, or at those of them in `wanted`.
    /// `start` points to the first place.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of `L`, and WIDTH + FIRST - 1 bytes
    /// from `start` on must be readable.
    #[inline(always)]
    unsafe fn block(&mut self, start: *const u8, at: usize, wanted: u64, tally: &mut Tally) {
        // SAFETY: as this function's contract says.
        let (word, starts, mut candidates) = unsafe {
            let here = L::load(start);
            let word = L::nonzero_or_high(L::look_up(self.word, here), here);
            let starts = word & !(word << 1 | self.carry) & wanted;
            self.carry = word >> (L::WIDTH - 1) & 1;
            let look_up = |offset: usize, table| L::look_up(table, L::load(start.add(offset)));
            let [one, two, three, four] = self.first;
            let first = L::and(L::and(L::look_up(one, here), look_up(1, two)), look_up(2, three));
            let first = if MANY { L::and(first, look_up(3, four)) } else { first };
            (word, starts, L::both_nonzero(first, first) & starts)
        };
        self.words += u64::from(starts.count_ones());
        // The last word may go on here.
        let front = wanted.trailing_zeros() as usize;
        if let Some((_, end)) = tally.places.last_mut()
            && *end == at + front
        {
            *end += ((!(word >> front)).trailing_zeros() as usize).min(L::WIDTH - front);
        }
        if candidates == 0 {
            return;
        }
        if let (true, Some(marks)) = (MANY, &self.scanner.marks) {
            // SAFETY: as this function's contract says.
            candidates = unsafe { Self::marked(marks, start, candidates) };
        }
        let words = Places(candidates).map(|offset| {
            let size = (!(word >> offset)).trailing_zeros() as usize;
            (at + offset, at + (offset + size).min(L::WIDTH))
        });
        if self.scanner.kind == Kind::Beginnings {
            tally.places.extend(words);
            return;
        }
        for (start, within) in words {
            self.scanner.confirm(self.folded, start, within, tally);
        }
    }
}

#[allow(clippy::inline_always)] // as above
impl<L: Lanes, const MANY: bool> Scan<'_, L, MANY> {
    /// Returns those of `starts`, the places of words behind `start`, that
    /// have a mark.
    ///
    /// # Safety
    ///
    /// Four bytes from each of the places on must be readable.
    #[inline(always)]
    unsafe fn marked(marks: &Marks, start: *const u8, starts: u64) -> u64 {
        // Without a branch, as which words pass is hard to guess.
        let mut marked = 0;
        for offset in Places(starts) {
            // SAFETY: as this function's contract says.
            let letters = unsafe { start.add(offset).cast::<u32>().read_unaligned() };
            marked |= marks.pass(u32::from_le(letters)) << offset;
        }
        marked
    }
}

/// Scans as [`TermScanner::scan`] does.
///
/// # Safety
///
/// The processor must have the instructions of `L`.
#[inline(always)]
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
pub(super) unsafe fn scan<L: Lanes>(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
    // SAFETY: as this function's contract says.
    unsafe {
        if scanner.marks.is_some() {
            scan_terms::<L, true>(scanner, folded, tally);
        } else {
            scan_terms::<L, false>(scanner, folded, tally);
        }
    }
}

/// Does the same for few terms or for many.
///
/// # Safety
///
/// The processor must have the instructions of `L`.
#[inline(always)]
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
unsafe fn scan_terms<L: Lanes, const MANY: bool>(
    scanner: &TermScanner,
    folded: &[u8],
    tally: &mut Tally,
) {
    let length = folded.len();
    let mut padded = [b' '; MAX_WIDTH + FIRST];
    // SAFETY: the caller guarantees the instructions. The bytes that are read
    // are either of the padded copy, which has MAX_WIDTH + FIRST bytes, or of
    // `folded` from `at` on, which the loop's condition makes sure of.
    unsafe {
        let mut scan = Scan::<L, MANY>::new(scanner, folded);
        let mut at = 0;
        while at + L::WIDTH + FIRST - 1 <= length {
            scan.block(folded.as_ptr().add(at), at, u64::MAX, tally);
            at += L::WIDTH;
        }
        // The rest ends in spaces. The last block overlaps the one before. Two
        // blocks are needed where the rest is a little more than a block.
        while at < length {
            if length < L::WIDTH {
                padded[..length].copy_from_slice(folded);
                scan.block(padded.as_ptr(), 0, u64::MAX, tally);
                break;
            }
            let from = at.min(length - L::WIDTH);
            padded[..L::WIDTH].copy_from_slice(&folded[from..from + L::WIDTH]);
            for (offset, byte) in padded[L::WIDTH..].iter_mut().enumerate() {
                *byte = folded.get(from + L::WIDTH + offset).copied().unwrap_or(b' ');
            }
            scan.block(padded.as_ptr(), from, u64::MAX << (at - from), tally);
            at = from + L::WIDTH;
        }
        tally.words += scan.words;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanners(terms: &[&str]) -> Vec<TermScanner> {
        let terms: Vec<_> =
            terms.iter().zip(0..).map(|(term, i)| (term.as_bytes().to_vec(), i)).collect();
        let methods = Method::available().into_iter();
        methods.map(|method| TermScanner::with_method(terms.clone(), Kind::Terms, method)).collect()
    }

    fn scan(scanner: &TermScanner, text: &[u8]) -> (u64, Vec<(u32, u32)>) {
        let mut tally = Tally::new(64);
        scanner.scan(text, &mut tally);
        let mut counts = Vec::new();
        let words = tally.drain(|term, count| counts.push((term, count)));
        (words, counts)
    }

    /// A tally has room for so many terms, and no more.
    #[test]
    fn rooms_of_a_tally() {
        for (terms, rooms) in [(0, [0; 3]), (64, [64, 1, 1]), (65, [65, 2, 1])] {
            let Tally { counts, found, blocks, .. } = Tally::new(terms);
            assert_eq!(rooms, [counts.len(), found.len(), blocks.len()]);
        }
        let mut tally = Tally::new(9_000);
        assert_eq!([9_000, 141, 3], [tally.counts.len(), tally.found.len(), tally.blocks.len()]);
        let terms = [0, 63, 64, 4_095, 4_096, 8_191, 8_192, 8_999];
        terms.into_iter().rev().for_each(|term| tally.add(term));
        assert_eq!(vec![1 << 63 | 0b11, 1 << 63 | 1, 1 << 12 | 1], tally.blocks);
        let mut found = Vec::new();
        tally.drain(|term, count| found.push((term, count)));
        assert_eq!(terms.map(|term| (term, 1)).to_vec(), found);
    }

    /// Many terms are sought by marks.
    #[test]
    fn marks_are_for_many_terms() {
        for count in [1, FEW - 1, FEW, FEW + 1, 40] {
            let terms = (0..).take(count).map(|at| (format!("tea{at}").into(), at)).collect();
            assert_eq!(count > FEW, TermScanner::new(terms).marks.is_some(), "{count}");
        }
    }

    /// Every method counts a term just where it is a word: at every offset and
    /// beside every kind of byte.
    #[test]
    fn every_offset_and_neighbour() {
        for scanner in scanners(&["x", "ab", "a1c", "zebrafish"]) {
            for before in 0..150 {
                for (left, right, is_word) in [
                    ("", "", true),
                    ("-", "'s", true),
                    ("q", "", false),
                    ("", "7", false),
                    ("_", "_ q", true),
                    ("\0", "\u{1f}", true),
                ] {
                    for (i, term) in (0..).zip(["X", "Ab", "a1C", "ZEBRAFISH"]) {
                        let mut text = "fi-l ".repeat(before).into_bytes();
                        text.truncate(before);
                        let glued = left != "-" && left != "_" && before % 5 % 3 != 0;
                        text.extend([left, term, right].concat().as_bytes());
                        let (_, counts) = scan(&scanner, &text);
                        if !is_word {
                            assert!(counts.is_empty(), "{:?} {text:?}", scanner.method);
                        } else if !glued || left == "\0" {
                            assert_eq!([(i, 1)], *counts, "{:?} {text:?}", scanner.method);
                        }
                    }
                }
            }
        }
    }

    /// Every method counts a keyword where it is all between whitespace but for
    /// punctuation around it.
    #[test]
    fn keywords_are_whole_words() {
        let keywords = vec![(b"tea".to_vec(), 0), (b"x-ray".to_vec(), 1)];
        for method in Method::available() {
            let scanner = TermScanner::with_method(keywords.clone(), Kind::Keywords, method);
            let (_, counts) = scan(&scanner, b"tea x-tea (TEA), tea-x tea_ teas X-Ray. a-x-ray");
            assert_eq!([(0, 2), (1, 1)], *counts, "{method:?}");
        }
    }

    /// Every method finds each word with a wanted beginning, wherever it
    /// stands.
    #[test]
    fn words_by_their_beginnings() {
        let text = b"tea\x80 Teapot t x eat-te\x80 te q TEx 2te te";
        for method in Method::available() {
            let beginnings = vec![(b"te".to_vec(), 0), (b"x".to_vec(), 0)];
            let scanner = TermScanner::with_method(beginnings, Kind::Beginnings, method);
            for before in 0..150 {
                let text = [&b" -".repeat(before)[..before], text].concat();
                let mut tally = Tally::new(0);
                scanner.scan(&text, &mut tally);
                let places = tally.places.iter().map(|(start, end)| (start - before, end - before));
                let places: Vec<_> = places.collect();
                let expected = [(0, 4), (5, 11), (14, 15), (20, 23), (24, 26), (29, 32), (37, 39)];
                assert_eq!(expected, *places, "{method:?}");
                assert_eq!(11, tally.words);
            }
        }
    }

    /// A scanner counts the same as looking at each word.
    #[test]
    fn methods_agree_on_noise() {
        let terms: Vec<String> = (0..64)
            .map(|i: u8| {
                let letter = |i: u8| char::from(b'a' + i);
                match i {
                    0..8 => letter(i).to_string(),
                    8..32 => format!("{}{}", letter(i % 8), letter(i / 8)),
                    _ => format!("{}{}{}", letter(i % 8), i / 8, letter(i % 5)),
                }
            })
            .collect();
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        let mut state = 7_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize
        };
        for _ in 0..2_000 {
            let text: Vec<u8> =
                (0..next() % 300).map(|_| b"abcdeABCD45 .-\0\x80\t\x7f_"[next() % 19]).collect();
            let words: Vec<_> = text
                .split(|&byte| !is_word(byte))
                .filter(|word| !word.is_empty())
                .map(<[u8]>::to_ascii_lowercase)
                .collect();
            let mut expected = vec![0; terms.len()];
            for word in &words {
                if let Some(i) = terms.iter().position(|term| term.as_bytes() == word) {
                    expected[i] += 1;
                }
            }
            let expected: Vec<_> = (0..).zip(expected).filter(|(_, count)| *count > 0).collect();
            for scanner in scanners(&terms) {
                let (found, counts) = scan(&scanner, &text);
                assert_eq!(words.len() as u64, found, "{:?} {text:?}", scanner.method);
                assert_eq!(expected, counts, "{:?} {text:?}", scanner.method);
            }
        }
    }
}
