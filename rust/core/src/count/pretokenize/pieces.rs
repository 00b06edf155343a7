//! Splitting for tokenizers that merge across a whole text, as those of
//! `SentencePiece` do.
//!
//! They have no pattern. But no merge goes across two characters that are side
//! by side in no token. So the text is split there, wherever that is, and counts
//! of these pieces add up to the count of the whole.

use budgeteer_vocab::Vocabulary;

use super::Pattern;
use crate::huge::Table;
use crate::text::classes::Classes;
use crate::text::decode;

/// The number of bits of the filter of pairs, as a power of two.
const BITS: u32 = 20;

/// What splits a text: which characters are tokens, and which pairs of them are
/// in one.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// A bit for each code point that is a token.
    covered: Box<[u64]>,
    /// A bit for each pair of characters outside ASCII, by a hash.
    pairs: Table<u64>,
    /// For each character of ASCII, the ones that may be behind it in a token.
    ascii: Box<[u128; 128]>,
    /// The longest runs that are tokens, of [`RUNS`].
    runs: [usize; RUNS.len()],
}

/// The characters whose runs merge before anything else, from the left: a run
/// of two or more is in no token with another character.
const RUNS: [u8; 4] = *b" \n\t\r";

impl Pieces {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Self {
        let mut pieces = Self {
            covered: vec![0; 0x11_0000 / 64].into(),
            pairs: Table::new(1 << (BITS - 6)),
            ascii: Box::new([0; 128]),
            runs: [1; RUNS.len()],
        };
        for token in vocabulary.iter().skip(256) {
            for (longest, char) in pieces.runs.iter_mut().zip(RUNS) {
                if token.iter().all(|&byte| byte == char) {
                    *longest = token.len().max(*longest);
                }
            }
            // The other tokens are beginnings of characters.
            let Ok(token) = std::str::from_utf8(token) else { continue };
            let mut codes = token.chars().map(u32::from);
            let Some(mut before) = codes.next() else { continue };
            pieces.cover(before);
            for code in codes {
                pieces.add(before, code);
                pieces.cover(code);
                before = code;
            }
        }
        pieces
    }

    fn cover(&mut self, code: u32) {
        self.covered[code as usize / 64] |= 1 << (code % 64);
    }

    fn covers(&self, code: u32) -> bool {
        code < 0x80 || self.covered[code as usize / 64] >> (code % 64) & 1 == 1
    }

    fn place(before: u32, behind: u32) -> usize {
        let pair = u64::from(before) << 32 | u64::from(behind);
        (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
    }

    fn add(&mut self, before: u32, behind: u32) {
        if before < 0x80 && behind < 0x80 {
            self.ascii[before as usize] |= 1 << behind;
        } else {
            let place = Self::place(before, behind);
            self.pairs[place / 64] |= 1 << (place % 64);
        }
    }

    /// Returns the length of the run at `at` that is a token, at most; 1 where
    /// there is none.
    #[inline]
    fn run(&self, text: &[u8], at: usize) -> usize {
        let byte = text[at];
        if byte > b' ' || text.get(at + 1) != Some(&byte) {
            return 1;
        }
        let Some(nth) = RUNS.iter().position(|&char| char == byte) else { return 1 };
        text[at..].iter().take(self.runs[nth]).take_while(|&&other| other == byte).count()
    }

    /// Returns whether two characters may be side by side in a token.
    #[inline]
    pub(crate) fn joins(&self, before: u32, behind: u32) -> bool {
        if before < 0x80 && behind < 0x80 {
            return self.ascii[before as usize] >> behind & 1 == 1;
        }
        let place = Self::place(before, behind);
        self.pairs[place / 64] >> (place % 64) & 1 == 1
    }
}

impl Pattern for &Pieces {
    fn end(self, _: &Classes, text: &[u8], at: usize) -> usize {
        if text[at] & 0xC0 == 0x80 {
            return at + 1; // a byte of a character that is no token
        }
        let (mut before, size) = decode(text, at);
        if !self.covers(before) {
            return at + 1;
        }
        let run = self.run(text, at);
        if run > 1 {
            return at + run;
        }
        let mut end = at + size;
        while end < text.len() {
            let (code, size) = decode(text, end);
            if !self.joins(before, code) || !self.covers(code) || self.run(text, end) > 1 {
                break;
            }
            end += size;
            before = code;
        }
        end
    }
}
