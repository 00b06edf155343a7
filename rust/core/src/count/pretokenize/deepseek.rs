//! The pattern of `DeepSeek` V3 and after. It splits thrice, the pieces of one
//! pattern by the next:
//!
//! ```text
//! \p{N}{1,3}
//! [一-龥぀-ゟ゠-ヿ]+
//! A[A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ | _?[\p{P}\p{S}]+[\r\n]*
//!   | \s*[\r\n]+ | \s+(?!\S) | \s+
//! ```
//!
//! where `_` is a space and `A` is the punctuation of ASCII. What no pattern
//! matches is a piece, too.

use super::{Contractions, LETTER, Pattern, Rules, SPACE, Words, digits};
use crate::text::classes::{Class, Classes};

/// The pattern of `DeepSeek` V3.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeepSeek;

/// The characters of a word.
const WORD: u8 = LETTER | Class::MARK;

/// The classes of the characters of ASCII, and none for other bytes.
const ASCII: [u8; 256] = {
    let mut ascii = [0; 256];
    let mut nth = 0;
    while nth < budgeteer_vocab::CLASSES.len() {
        let (mut code, last, class) = budgeteer_vocab::CLASSES[nth];
        while code <= last && code < 0x80 {
            ascii[code as usize] = class;
            code += 1;
        }
        nth += 1;
    }
    ascii
};

impl Pattern for DeepSeek {
    /// What the pattern is for ASCII.
    const RULES: Option<Rules> = Some(Rules {
        words: Words::Letters,
        contractions: Contractions::None,
        digits: 3,
        takes_slashes: false,
        ends_whole: false,
        parts_digits: true,
    });

    fn end(self, classes: &Classes, text: &[u8], at: usize) -> usize {
        let (class, size) = classes.at(text, at);
        let behind = at + size;
        if class & Class::NUMBER != 0 {
            return digits(3, classes, text, behind);
        }
        Part { classes, text, is_east_asian: is_east_asian(text, at) }.end(at, class, behind)
    }
}

/// A part of a text without digits: all of its characters are in the range of
/// the second pattern, or none is.
#[derive(Clone, Copy)]
struct Part<'a> {
    classes: &'a Classes,
    text: &'a [u8],
    is_east_asian: bool,
}

impl Part<'_> {
    /// Returns class and size of the character at `at`, if it is in the part.
    fn at(self, at: usize) -> Option<(u8, usize)> {
        if at == self.text.len() {
            return None;
        }
        let (class, size) = self.classes.at(self.text, at);
        let is_in =
            class & Class::NUMBER == 0 && is_east_asian(self.text, at) == self.is_east_asian;
        is_in.then_some((class, size))
    }

    /// Returns whether a character of `wanted` classes is at `at`, which are
    /// not those of numbers.
    #[inline]
    fn is(self, at: usize, wanted: u8) -> bool {
        match self.text.get(at) {
            Some(&byte) if byte.is_ascii() => {
                !self.is_east_asian && ASCII[usize::from(byte)] & wanted != 0
            }
            _ => self.at(at).is_some_and(|(class, _)| class & wanted != 0),
        }
    }

    /// Returns where a run of characters of `wanted` classes ends, which are
    /// not those of numbers.
    #[inline]
    fn run(self, mut at: usize, wanted: u8) -> usize {
        loop {
            if !self.is_east_asian {
                while self.text.get(at).is_some_and(|&byte| ASCII[usize::from(byte)] & wanted != 0)
                {
                    at += 1;
                }
            }
            if self.text.get(at).is_none_or(u8::is_ascii) {
                return at;
            }
            match self.at(at) {
                Some((class, size)) if class & wanted != 0 => at += size,
                _ => return at,
            }
        }
    }

    fn end(self, at: usize, class: u8, behind: usize) -> usize {
        if class & WORD != 0 {
            return self.run(behind, WORD);
        }
        let first = self.text[at];
        if first.is_ascii_punctuation() {
            let letters = self.text[behind..].iter().take_while(|byte| byte.is_ascii_alphabetic());
            let letters = letters.count();
            if letters > 0 {
                return behind + letters;
            }
        }
        if class & Class::SIGN != 0 {
            return self.signs(behind);
        }
        if class & Class::NEWLINE == 0 && self.is(behind, WORD) {
            return self.run(behind, WORD);
        }
        if first == b' ' && self.is(behind, Class::SIGN) {
            return self.signs(behind);
        }
        if class & SPACE != 0 { self.space(at) } else { self.unmatched(behind) }
    }

    /// Returns where punctuation and symbols end, with the line ends behind that
    /// are in the part.
    #[inline]
    fn signs(self, at: usize) -> usize {
        let end = self.run(at, Class::SIGN);
        if self.is_east_asian {
            return end;
        }
        end + self.text[end..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
    }

    /// Returns where the whitespace at `at` ends.
    fn space(self, at: usize) -> usize {
        let end = self.run(at, SPACE);
        let blanks = &self.text[at..end];
        if let Some(newline) = blanks.iter().rposition(|byte| matches!(byte, b'\r' | b'\n')) {
            return at + newline + 1;
        }
        let is_start = |byte: &u8| byte & 0xC0 != 0x80;
        match blanks.iter().rposition(is_start) {
            // The end of the part is for the pattern the end of the text.
            Some(last) if last > 0 && self.at(end).is_some() => at + last,
            _ => end,
        }
    }

    /// Returns where characters end that no pattern matches. One of them is in
    /// front of `at`.
    fn unmatched(self, mut at: usize) -> usize {
        while let Some((class, size)) = self.at(at) {
            if class != 0 || self.is(at + size, WORD) {
                break;
            }
            at += size;
        }
        at
    }
}

/// Returns whether the character at `at` is in the range of the second pattern.
#[inline]
fn is_east_asian(text: &[u8], at: usize) -> bool {
    match text[at..] {
        // U+3040 to U+30FF, and U+4E00 to U+9FA5.
        [0xE3, 0x81..=0x83, ..]
        | [0xE4, 0xB8..=0xBF, ..]
        | [0xE5..=0xE8, ..]
        | [0xE9, 0x80..=0xBD, ..] => true,
        [0xE9, 0xBE, last, ..] => last <= 0xA5,
        _ => false,
    }
}
