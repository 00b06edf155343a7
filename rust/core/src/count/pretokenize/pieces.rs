//! Splitting for tokenizers that merge across a whole text, as those of
//! `SentencePiece` do.
//!
//! They have no pattern. But no merge goes across two characters that are side
//! by side in no token. So the text is split there, wherever that is, and counts
//! of these pieces add up to the count of the whole.

use budgeteer_vocab::Vocabulary;

use super::Pattern;
use crate::count::joins::Joins;
use crate::text::classes::Classes;
use crate::text::decode;

/// What splits a text, besides the pairs of characters in tokens: which
/// characters are tokens, and which of their runs.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// A bit for each code point that is a token.
    covered: Box<[u64]>,
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
            token.chars().for_each(|char| pieces.cover(char.into()));
            for pair in token.as_bytes().windows(2).filter(|pair| pair.is_ascii()) {
                pieces.ascii[usize::from(pair[0])] |= 1 << pair[1];
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
    pub(crate) fn may_join(&self, joins: &Joins, before: u32, behind: u32) -> bool {
        if before < 0x80 && behind < 0x80 {
            return self.ascii[before as usize] >> behind & 1 == 1;
        }
        joins.may_join(before, behind)
    }
}

impl Pattern for (&Pieces, &Joins) {
    fn end(self, _: &Classes, text: &[u8], at: usize) -> usize {
        let (pieces, joins) = self;
        if text[at] & 0xC0 == 0x80 {
            return at + 1; // a byte of a character that is no token
        }
        let (mut before, size) = decode(text, at);
        if !pieces.covers(before) {
            return at + 1;
        }
        let run = pieces.run(text, at);
        if run > 1 {
            return at + run;
        }
        let mut end = at + size;
        while end < text.len() {
            let (code, size) = decode(text, end);
            if !pieces.may_join(joins, before, code)
                || !pieces.covers(code)
                || pieces.run(text, end) > 1
            {
                break;
            }
            end += size;
            before = code;
        }
        end
    }
}
