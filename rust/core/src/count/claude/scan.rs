//! Goes over a normalized text run by run.
//!
//! Words, punctuation, digits and white space form runs. A word is written with
//! a marker on both sides, punctuation with one where a space is. A single
//! space between two markers is not written at all.

use std::sync::atomic::{AtomicBool, Ordering};

use budgeteer_vocab::ClaudeCharacters as Of;

use super::tables::{ALONE, Tables, WORD_BEGIN, WORD_END, cost};
use super::tile::{decode, decode_before};
use super::words::{Markers, Words};

/// What an apostrophe joins to the word before it.
const CONTRACTIONS: [&[u8]; 7] = [b"s", b"t", b"d", b"m", b"ll", b"re", b"ve"];

/// By byte, the kind of a character of ASCII; [`OTHER`] for all others.
const KINDS: [u8; 256] = {
    let mut kinds = [OTHER; 256];
    let mut byte = b'!';
    while byte < 0x7F {
        kinds[byte as usize] = if byte.is_ascii_alphabetic() {
            WORD
        } else if byte.is_ascii_digit() {
            DIGIT
        } else {
            PUNCTUATION
        };
        byte += 1;
    }
    kinds[b' ' as usize] = SPACE;
    kinds[b'\t' as usize] = SPACE;
    kinds[b'\n' as usize] = SPACE;
    kinds
};
const WORD: u8 = 0;
const DIGIT: u8 = 1;
const PUNCTUATION: u8 = 2;
const SPACE: u8 = 3;
const OTHER: u8 = 4;

/// More than the square of the longest piece and what pieces at both ends of a
/// run may cover: of so many pieces, some are the longest, or could be, as
/// there are some whose lengths add up to a multiple of the longest.
const LONG_RUN: usize = 1 << 15;

/// A text on the way.
#[allow(clippy::struct_excessive_bools)] // facts about the last run
pub(super) struct Scan<'a> {
    tables: &'a Tables,
    words: &'a mut Words,
    text: &'a [u8],
    stop: &'a AtomicBool,
    at: usize,
    total: u64,
    /// The frame's marker of a word's begin waits for the first run.
    head: bool,
    /// A space is before the next run.
    behind_space: bool,
    /// The last run ends with a marker.
    marked: bool,
    /// The last run is a single space behind a marker, not yet counted.
    seam: bool,
    /// The last run lets no contraction follow.
    border: bool,
    /// Symbols of neighbours that a piece may join.
    chain: Vec<u8>,
}

/// Returns how many bytes from the first on are surely letters of ASCII.
#[inline]
fn ascii_letters(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = ONES << 7;
    let mut length = 0;
    while let Some(&bytes) = text[length..].first_chunk() {
        let bytes = u64::from_le_bytes(bytes);
        let small = (bytes | ONES << 5) & !HIGH;
        // The highest bit of a byte says that it is at least `a`, or above `z`.
        let least = small + ONES * u64::from(0x80 - b'a');
        let above = small + ONES * u64::from(0x7F - b'z');
        let others = !(least & !above & !bytes) & HIGH;
        if others != 0 {
            return length + others.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length
}

impl<'a> Scan<'a> {
    /// Starts at the begin of a text, behind the frame's marker if `head`; or
    /// else inside of a text, where a space may be behind a word.
    pub(super) fn new(
        tables: &'a Tables,
        words: &'a mut Words,
        text: &'a [u8],
        stop: &'a AtomicBool,
        starts: bool,
        head: bool,
    ) -> Self {
        Self {
            tables,
            text,
            stop,
            at: 0,
            total: 0,
            head,
            behind_space: head,
            marked: !starts,
            seam: false,
            border: false,
            chain: std::mem::take(&mut words.chain),
            words,
        }
    }

    /// Returns the tokens of the text if they are at most `limit`.
    pub(super) fn count(mut self, limit: u64) -> Option<u64> {
        while let Some(&byte) = self.text.get(self.at) {
            match KINDS[usize::from(byte)] {
                WORD => self.word(),
                SPACE => self.space(),
                DIGIT => self.digits(),
                PUNCTUATION => self.punctuation(),
                _ => match self.bits(self.at).0 {
                    bits if bits & Of::KIND == Of::WORDY && bits & Of::STRAY != 0 => self.stray(),
                    bits => match bits & Of::KIND {
                        Of::WORDY => self.word(),
                        Of::SPACE => self.space(),
                        Of::DIGIT => self.digits(),
                        _ => self.symbols(),
                    },
                },
            }
            if self.total > limit || self.stop.load(Ordering::Relaxed) {
                return None;
            }
        }
        self.words.chain = self.chain;
        // Nothing but the frame's marker is left of it, or a last space.
        self.total += u64::from(self.head) + u64::from(self.seam);
        (self.total <= limit).then_some(self.total)
    }

    /// Returns the bits and the width of the character at `at`; those of a
    /// space without width at the end.
    #[inline]
    fn bits(&self, at: usize) -> (u32, usize) {
        if at >= self.text.len() {
            return (Of::SPACE, 0);
        }
        let (code, width) = decode(self.text, at);
        (self.tables.bits(code), width)
    }

    /// Returns whether the text goes on with a single space.
    #[inline]
    fn is_space_behind(&self, at: usize) -> bool {
        self.text.get(at) == Some(&b' ') && self.text.get(at + 1) != Some(&b' ')
    }

    /// Counts a space before this run unless the run starts with a marker. What
    /// the frame's own marker costs is for the caller; returns whether it is
    /// left.
    #[inline]
    fn open(&mut self, is_marked: bool) -> bool {
        self.total += u64::from(self.seam && !is_marked);
        self.seam = false;
        std::mem::replace(&mut self.head, false) && !is_marked
    }

    #[inline]
    fn close(&mut self, at: usize, is_marked: bool, border: bool) {
        self.at = at;
        self.marked = is_marked;
        self.border = border;
        self.behind_space = false;
    }

    /// Returns where the part of a word ends that starts at `at`.
    #[inline]
    fn end_of_word(&self, at: usize) -> usize {
        let mut at = at + ascii_letters(&self.text[at..]);
        loop {
            match self.text.get(at).map(|&byte| KINDS[usize::from(byte)]) {
                Some(WORD) => at += 1,
                Some(OTHER) => match self.bits(at) {
                    (bits, width) if bits & Of::KIND == Of::WORDY => at += width,
                    _ => return at,
                },
                _ => return at,
            }
        }
    }

    /// Counts words with single spaces between them.
    #[inline]
    fn word(&mut self) {
        self.open(true);
        let mut end;
        loop {
            end = self.end_of_word(self.at);
            self.total += self.words.count_word(self.tables, self.text, self.at, end, self.stop);
            match self.text[end..] {
                [b' ', next, ..] if KINDS[usize::from(next)] == WORD => self.at = end + 1,
                _ => break,
            }
        }
        self.close(end, true, false);
    }

    /// Counts marks without a letter before them. With the letters behind they
    /// are a word.
    fn stray(&mut self) {
        self.open(true);
        let end = self.end_of_word(self.at);
        self.chain.push(WORD_BEGIN);
        self.chain.extend_from_slice(&self.text[self.at..end]);
        self.chain.push(WORD_END);
        self.flush();
        self.close(end, true, false);
    }

    #[inline]
    fn space(&mut self) {
        let start = self.at;
        let is_space = self.text[start] == b' ';
        if is_space && self.marked {
            // The usual space between two words.
            let next = self.text.get(start + 1).map(|&byte| KINDS[usize::from(byte)]);
            let is_single = match next {
                Some(SPACE) => false,
                Some(OTHER) => self.bits(start + 1).0 & Of::KIND != Of::SPACE,
                _ => true,
            };
            if is_single {
                self.seam = true;
                self.close(start + 1, false, false);
                self.behind_space = true;
                return;
            }
        }
        self.spaces();
    }

    /// Counts a run of white space as it is.
    fn spaces(&mut self) {
        let is_absorbed = self.text[self.at] == b' ';
        self.total += u64::from(self.open(is_absorbed));
        let mut at = self.at;
        let mut last = b' ';
        while let Some(&byte) = self.text.get(at) {
            match KINDS[usize::from(byte)] {
                SPACE => {
                    let rest = &self.text[at..];
                    let length = rest.iter().position(|&other| other != byte).unwrap_or(rest.len());
                    self.total += self.tables.count_run(byte, length);
                    at += length;
                }
                OTHER => {
                    let (bits, width) = self.bits(at);
                    if bits & Of::KIND != Of::SPACE {
                        break;
                    }
                    self.total += cost(bits);
                    at += width;
                }
                _ => break,
            }
            last = byte;
        }
        self.close(at, false, false);
        self.behind_space = last == b' ';
    }

    fn digits(&mut self) {
        let is_foreign = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii());
        let mut end = self.at;
        let mut ascii = true;
        loop {
            match self.text.get(end).map(|&byte| KINDS[usize::from(byte)]) {
                Some(DIGIT) => end += 1,
                Some(OTHER) => match self.bits(end) {
                    (bits, width) if bits & Of::KIND == Of::DIGIT => {
                        end += width;
                        ascii = false;
                    }
                    _ => break,
                },
                _ => break,
            }
        }
        if ascii {
            // All numbers of up to three digits are pieces.
            self.total += u64::from(self.open(false));
            self.total += (end - self.at).div_ceil(3) as u64;
            self.close(end, false, false);
            return;
        }
        let begins = is_foreign(self.text.get(self.at)) && self.behind_space;
        let border = is_foreign(self.text.get(end - 1));
        let ends = border && self.is_space_behind(end);
        if self.open(begins) || begins {
            self.chain.push(WORD_BEGIN);
        }
        self.chain.extend_from_slice(&self.text[self.at..end]);
        self.chain.extend(ends.then_some(WORD_END));
        self.flush();
        self.close(end, ends, border);
    }

    /// Counts a run of punctuation of ASCII.
    #[inline]
    fn punctuation(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        let is_other = |&byte: &u8| KINDS[usize::from(byte)] != PUNCTUATION;
        let length = rest.iter().position(is_other).unwrap_or(rest.len());
        let end = start + length;
        let next = self.text.get(end).map_or(SPACE, |&byte| KINDS[usize::from(byte)]);
        let is_quote = length == 1 && rest[0] == b'\'';
        if next == OTHER || is_quote && next == WORD {
            return self.symbols();
        }
        let markers = Markers { begin: self.behind_space, end: self.is_space_behind(end) };
        if length == 1 {
            let place = usize::from(markers.begin) | usize::from(markers.end) << 1;
            self.total += u64::from(self.tables.ones[usize::from(rest[0] & 0x7F)][place]);
        } else {
            match self.words.count_punctuation(self.tables, self.text, start, end, markers) {
                Some(count) => self.total += count,
                None => return self.symbols(),
            }
        }
        self.open(markers.begin);
        self.close(end, markers.end, true);
    }

    /// Counts punctuation, symbols and letters without a word, which a piece
    /// may join.
    fn symbols(&mut self) {
        loop {
            let is_contraction = match self.bits(self.at).0 & Of::KIND {
                Of::PUNCTUATION => self.signs(),
                Of::SYMBOL => self.kin(|kind| kind == Of::SYMBOL),
                Of::DECIMAL | Of::NUMBER => self.numbers(),
                Of::LETTER | Of::SELECTOR => self.kin(|kind| kind == Of::LETTER),
                _ => break,
            };
            if is_contraction || self.marked || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        self.flush();
    }

    /// Counts what the chain holds, and empties it.
    fn flush(&mut self) {
        if !self.chain.is_empty() {
            self.total += self.tables.tile_till(&self.chain, self.stop);
            self.chain.clear();
        }
    }

    /// Starts a run of the chain with its marker or the frame's.
    fn open_chain(&mut self, begins: bool) {
        if self.open(begins) || begins {
            self.chain.push(WORD_BEGIN);
        }
    }

    /// Adds a character to the chain, or counts it if nothing joins it.
    #[inline]
    fn push(&mut self, bits: u32, at: usize, width: usize) {
        if bits & ALONE != 0 {
            self.flush();
            self.total += cost(bits);
        } else {
            self.chain.extend_from_slice(&self.text[at..at + width]);
        }
    }

    /// Ends a run of the chain, with a marker if there is a space.
    fn close_chain(&mut self, end: usize, takes_marker: bool, border: bool) {
        let ends = takes_marker && self.is_space_behind(end);
        self.chain.extend(ends.then_some(WORD_END));
        self.close(end, ends, border);
    }

    /// Adds a run of punctuation. Returns whether it was an apostrophe with a
    /// contraction, which was added too.
    fn signs(&mut self) -> bool {
        let start = self.at;
        let mut end = start;
        loop {
            let (bits, width) = self.bits(end);
            if bits & Of::KIND != Of::PUNCTUATION {
                let opens = bits & Of::KIND == Of::WORDY && self.text[start..end] == *b"'";
                if opens {
                    return self.apostrophe(bits);
                }
                break;
            }
            end += width;
        }
        self.open_chain(self.behind_space);
        for same in self.text[start..end].chunk_by(|left, right| left == right) {
            // The longest piece of one character is part of each long run of
            // it, whatever is around, so it can be counted at once.
            let longest = self.tables.longest(same[0]);
            let times = same.len().saturating_sub(LONG_RUN) / longest;
            self.total += times as u64;
            self.chain.extend_from_slice(&same[..same.len() - times * longest]);
        }
        self.close_chain(end, true, true);
        false
    }

    /// Adds an apostrophe before a word, which takes no marker. Returns whether
    /// it makes a contraction of the word, which was added too.
    fn apostrophe(&mut self, next: u32) -> bool {
        let (start, end) = (self.at, self.at + 1);
        let before = decode_before(self.text, start);
        let border = self.border
            || before >= 0x80 && {
                let bits = self.tables.bits(before);
                bits & Of::KIND == Of::WORDY && bits & Of::BORDER != 0
            };
        self.total += u64::from(self.open(false));
        self.chain.push(b'\'');
        self.close(end, false, true);
        if border || next & Of::STRAY != 0 {
            return false;
        }
        let word = &self.text[end..self.end_of_word(end)];
        if !CONTRACTIONS.contains(&word) {
            return false;
        }
        self.chain.extend_from_slice(word);
        self.chain.push(WORD_END);
        self.close(end + word.len(), true, false);
        true
    }

    /// Adds a run of one kind of characters, with the selectors behind them.
    fn kin(&mut self, is_kin: impl Fn(u32) -> bool) -> bool {
        let (first, _) = self.bits(self.at);
        let takes_marker = |kind: u32| kind == Of::SYMBOL || kind == Of::SELECTOR;
        self.open_chain(self.behind_space && takes_marker(first & Of::KIND));
        let mut end = self.at;
        let mut last = first & Of::KIND;
        loop {
            let (bits, width) = self.bits(end);
            let kind = bits & Of::KIND;
            if width == 0 || !(is_kin(kind) || kind == Of::SELECTOR) {
                break;
            }
            self.push(bits, end, width);
            end += width;
            last = kind;
        }
        self.close_chain(end, takes_marker(last), takes_marker(last));
        false
    }

    /// Adds a run of numbers. It takes markers if all of them are of one kind.
    fn numbers(&mut self) -> bool {
        let start = self.at;
        let (first, _) = self.bits(start);
        let (mut end, mut alike, mut last) = (start, true, first);
        loop {
            let (bits, width) = self.bits(end);
            let kind = bits & Of::KIND;
            if !matches!(kind, Of::DECIMAL | Of::NUMBER | Of::SELECTOR) || width == 0 {
                break;
            }
            alike &= kind == first & Of::KIND;
            last = bits;
            end += width;
        }
        self.open_chain(alike && self.behind_space);
        let mut at = start;
        while at < end {
            let (bits, width) = self.bits(at);
            self.push(bits, at, width);
            at += width;
        }
        let takes_marker = alike || last & Of::KIND == Of::SELECTOR;
        self.close_chain(end, takes_marker, takes_marker);
        false
    }
}
