//! The pattern of GPT-2, with which the byte-level step of a `tokenizer.json`
//! splits by itself:
//!
//! ```text
//! '(?:[sdmt]|ll|ve|re) | _?\p{L}+ | _?\p{N}+ | _?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
//! ```
//!
//! where `_` is a space.

use super::{LETTER, Pattern, SPACE, ends_word, run};
use crate::text::classes::{Class, Classes};

/// The pattern of GPT-2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gpt2;

impl Pattern for Gpt2 {
    fn end(self, classes: &Classes, text: &[u8], at: usize) -> usize {
        let contraction = contraction(&text[at..]);
        if contraction > 0 {
            return at + contraction;
        }
        let (class, size) = classes.at(text, at);
        let behind = at + size;
        if class & SPACE == 0 {
            return run_of(classes, text, behind, class);
        }
        if text[at] == b' ' && behind < text.len() {
            let (class, size) = classes.at(text, behind);
            if class & SPACE == 0 {
                return run_of(classes, text, behind + size, class);
            }
        }
        let end = run(classes, text, behind, SPACE);
        if end == text.len() || end == behind {
            return end;
        }
        // The last character is left for what follows.
        (at..end).rev().find(|&at| text[at].cast_signed() >= -64).unwrap_or(at)
    }
}

/// Returns where letters, digits or other characters that are not whitespace
/// end, as the first of them is of that `class`.
fn run_of(classes: &Classes, text: &[u8], mut at: usize, class: u8) -> usize {
    if class & LETTER != 0 {
        return run(classes, text, at, LETTER);
    }
    if class & Class::NUMBER != 0 {
        return run(classes, text, at, Class::NUMBER);
    }
    while at < text.len() {
        let (class, size) = classes.at(text, at);
        if class & (SPACE | LETTER | Class::NUMBER) != 0 {
            break;
        }
        at += size;
    }
    at
}

/// Returns the length of the contraction at the start of `text`, 0 where there
/// is none. Its letters are lowercase.
fn contraction(text: &[u8]) -> usize {
    match text {
        [b'\'', b's' | b't' | b'm' | b'd', ..] => 2,
        [b'\'', b'l', b'l', ..] | [b'\'', b'v' | b'r', b'e', ..] => 3,
        _ => 0,
    }
}

/// Returns whether the place between two code points is a safe split, as
/// [`is_safe_split`](super::is_safe_split) does.
pub(crate) fn is_safe_split(classes: &Classes, before: u32, behind: u32) -> bool {
    ends_word(classes, before, behind)
}
