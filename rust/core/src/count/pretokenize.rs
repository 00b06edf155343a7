//! Splitting a text into pretokens: the pieces that an encoding counts one by
//! one.
//!
//! No pattern is compiled: the functions here are the published patterns,
//! written out. The patterns (tiktoken 0.14, `tiktoken_ext/openai_public.py`):
//!
//! ```text
//! cl100k_base  '(?i:[sdmt]|ll|ve|re) | [^\r\n\p{L}\p{N}]?+\p{L}++ | \p{N}{1,3}+
//!              | _?[^\s\p{L}\p{N}]++[\r\n]*+ | \s++$ | \s*[\r\n] | \s+(?!\S) | \s
//! o200k_base   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+C?
//!              | [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*C?
//!              | \p{N}{1,3} | _?[^\s\p{L}\p{N}]+[\r\n/]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//! ```
//!
//! where `_` is a space and `C` is `(?i:'s|'t|'re|'ve|'m|'ll|'d)`.

use crate::text::classes::{Class, Classes};

const LETTER: u8 = Class::UPPER | Class::LOWER | Class::OTHER_LETTER;
/// What may stand in front of the lowercase part of a word of o200k.
const UPPER_PART: u8 = Class::UPPER | Class::OTHER_LETTER | Class::MARK;
const LOWER_PART: u8 = Class::LOWER | Class::OTHER_LETTER | Class::MARK;
/// The classes that are in both parts of a word.
const EITHER_PART: u8 = UPPER_PART & LOWER_PART;
const SPACE: u8 = Class::SPACE | Class::NEWLINE;

/// The pattern that splits a text.
pub(crate) trait Pattern {
    /// Whether it is the pattern of `o200k_base` rather than `cl100k_base`.
    const IS_O200K: bool;
}

/// The pattern of `cl100k_base`.
#[derive(Debug)]
pub(crate) struct Cl100k;

/// The pattern of `o200k_base`.
#[derive(Debug)]
pub(crate) struct O200k;

impl Pattern for Cl100k {
    const IS_O200K: bool = false;
}

impl Pattern for O200k {
    const IS_O200K: bool = true;
}

/// Returns where the pretoken that starts at `at` ends. `text` must be UTF-8.
pub(crate) fn end<P: Pattern>(classes: &Classes, text: &[u8], at: usize) -> usize {
    let (class, size) = classes.at(text, at);
    let behind = at + size;
    if P::IS_O200K {
        if let Some(end) = word(classes, text, at, class, behind) {
            return end + contraction(text, end);
        }
    } else {
        if class & LETTER != 0 {
            return run(classes, text, behind, LETTER);
        }
        let contraction = contraction(text, at);
        if contraction > 0 {
            return at + contraction;
        }
        let starts_word = |at| at < text.len() && classes.at(text, at).0 & LETTER != 0;
        if class & (Class::NUMBER | Class::NEWLINE) == 0 && starts_word(behind) {
            return run(classes, text, behind, LETTER);
        }
    }
    if class & Class::NUMBER != 0 {
        return digits(classes, text, behind);
    }
    if class & SPACE == 0 {
        return punctuation::<P>(classes, text, behind);
    }
    if text[at] == b' ' && behind < text.len() {
        let (class, size) = classes.at(text, behind);
        if class & (SPACE | LETTER | Class::NUMBER) == 0 {
            return punctuation::<P>(classes, text, behind + size);
        }
    }
    space::<P>(classes, text, at)
}

/// Returns where a run of characters of `wanted` classes ends.
fn run(classes: &Classes, text: &[u8], mut at: usize, wanted: u8) -> usize {
    while at < text.len() {
        let (class, size) = classes.at(text, at);
        if class & wanted == 0 {
            break;
        }
        at += size;
    }
    at
}

/// Returns where the word of o200k that starts at `at` ends, without its
/// contraction. The word may begin with one character that is not a letter.
/// `behind` is where the character at `at`, which is of that `class`, ends.
fn word(classes: &Classes, text: &[u8], at: usize, class: u8, behind: usize) -> Option<usize> {
    if class & LETTER != 0 {
        let (end, _) = parts(classes, text, at)?;
        return Some(end);
    }
    if class & (Class::NUMBER | Class::NEWLINE) != 0 {
        return None;
    }
    // The first alternative is tried with the character in front, then without;
    // then the second one.
    match parts(classes, text, behind) {
        Some((end, true)) => Some(end),
        _ if class & Class::MARK != 0 => parts(classes, text, at).map(|(end, _)| end),
        behind => behind.map(|(end, _)| end),
    }
}

/// Returns where the upper and lower parts that start at `at` end, and whether
/// the first alternative matches them. That one wants a lower part.
fn parts(classes: &Classes, text: &[u8], at: usize) -> Option<(usize, bool)> {
    let mut upper = at;
    let mut last_either = None;
    while upper < text.len() {
        let (class, size) = classes.at(text, upper);
        if class & UPPER_PART == 0 {
            break;
        }
        upper += size;
        if class & EITHER_PART != 0 {
            last_either = Some(upper);
        }
    }
    let lower = run(classes, text, upper, LOWER_PART);
    if lower > upper {
        Some((lower, true))
    } else if let Some(end) = last_either {
        Some((end, true))
    } else {
        (upper > at).then_some((upper, false))
    }
}

/// Returns the length of the contraction at `at`, 0 where there is none.
#[inline]
pub(super) fn contraction(text: &[u8], at: usize) -> usize {
    let [b'\'', rest @ ..] = &text[at..] else { return 0 };
    match rest {
        // The long s is an s where case is ignored.
        [0xC5, 0xBF, ..] => 3,
        [letter, ..] if matches!(letter | 0x20, b's' | b't' | b'm' | b'd') => 2,
        [first, second, ..]
            if matches!((first | 0x20, second | 0x20), (b'l', b'l') | (b'v' | b'r', b'e')) =>
        {
            3
        }
        _ => 0,
    }
}

/// Returns where a group of at most three digits ends. The first of them ends
/// at `at`.
fn digits(classes: &Classes, text: &[u8], mut at: usize) -> usize {
    for _ in 1..3 {
        if at == text.len() {
            break;
        }
        let (class, size) = classes.at(text, at);
        if class & Class::NUMBER == 0 {
            break;
        }
        at += size;
    }
    at
}

/// Returns where punctuation and the line ends behind it end.
fn punctuation<P: Pattern>(classes: &Classes, text: &[u8], mut at: usize) -> usize {
    while at < text.len() {
        let (class, size) = classes.at(text, at);
        if class & (SPACE | LETTER | Class::NUMBER) != 0 {
            break;
        }
        at += size;
    }
    let is_tail = |byte: &&u8| matches!(byte, b'\r' | b'\n') || (P::IS_O200K && **byte == b'/');
    at + text[at..].iter().take_while(is_tail).count()
}

/// Returns where the whitespace at `at` ends.
fn space<P: Pattern>(classes: &Classes, text: &[u8], at: usize) -> usize {
    let mut end = at;
    let mut last = at;
    let mut behind_newline = None;
    while end < text.len() {
        let (class, size) = classes.at(text, end);
        if class & SPACE == 0 {
            break;
        }
        last = end;
        end += size;
        if class & Class::NEWLINE != 0 {
            behind_newline = Some(end);
        }
    }
    if !P::IS_O200K && end == text.len() {
        end
    } else if let Some(end) = behind_newline {
        end
    } else if end == text.len() || last == at {
        end
    } else {
        last
    }
}

/// Returns whether the place between two code points is a safe split: the parts
/// of the text can be counted one by one there, whatever stands around it. A
/// pretoken ends there, and no other one depends on what is behind.
///
/// That is so between a letter or digit and whitespace; between these and
/// punctuation other than an apostrophe; and behind a line end that neither
/// whitespace follows nor a character that the pattern takes to the punctuation
/// in front.
pub(crate) fn is_safe_split(classes: &Classes, before: u32, behind: u32) -> bool {
    let class = classes.of(behind);
    if classes.of(before) & (LETTER | Class::NUMBER) != 0 {
        class & SPACE != 0 || (class == 0 && behind != u32::from(b'\''))
    } else {
        matches!(before, 0xA | 0xD) && class & SPACE == 0 && behind != u32::from(b'/')
    }
}
