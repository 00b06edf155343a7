//! Terms: the words that BM25 counts.
//!
//! A word is a run of letters, digits and the marks behind them, of any script,
//! in lowercase. Everything else separates words, also an apostrophe. Korean
//! and scripts that put no spaces between words (Chinese, Japanese, Thai and
//! the like) give each two neighbouring letters as a term; a letter that stands
//! alone is a term.
//!
//! Letters, digits and marks are the general categories L, N and M. Lowercase
//! is that of Python's `str.lower()`, except that a final sigma becomes the
//! ordinary one. So a term does not depend on what stands around it.

use std::collections::HashSet;

use memchr::{memchr, memchr2};

use crate::stopwords::Stopwords;
use crate::text::classes::Classes;
use crate::text::letters::{DOT, DOTTED_I, Smalls, UNSPACED, is_word};
use crate::text::{Cursor, OTHER, Text, decode, push_code};

impl Stopwords {
    /// Returns the caller's own stopwords. A word with an apostrophe or a
    /// hyphen gives each of its parts.
    #[must_use]
    pub fn words<'a>(words: impl IntoIterator<Item = Text<'a>>) -> Self {
        let mut own = HashSet::new();
        for word in words {
            for_each_term_of(word, |term| {
                own.insert(term.to_vec());
            });
        }
        Self::of_terms(own)
    }
}

/// Calls `visit` with each term of `text`, which was not folded yet.
pub(crate) fn for_each_term_of(text: Text<'_>, visit: impl FnMut(&[u8])) {
    let mut folded = Vec::new();
    fold(text, &mut folded);
    for_each_term(text, &folded, &mut Vec::new(), visit);
}

/// Returns the terms of `text`, with a space between two: no term has one.
pub(crate) fn run_of(text: Text<'_>) -> Vec<u8> {
    let mut run = Vec::new();
    for_each_term_of(text, |term| push(&mut run, term));
    run
}

/// Adds a term to a run.
pub(crate) fn push(run: &mut Vec<u8>, term: &[u8]) {
    if !run.is_empty() {
        run.push(b' ');
    }
    run.extend_from_slice(term);
}

/// Folds `text` into `out`, one byte for each code point: ASCII as it is, the
/// Kelvin sign as `k`, any other part of a word as [`OTHER`], a letter of a
/// script without spaces as [`UNSPACED`], and all else as a space.
pub(crate) fn fold(text: Text<'_>, out: &mut Vec<u8>) {
    out.clear();
    text.fold_by(Some(Classes::get()), out);
}

/// Replaces each [`UNSPACED`] of a folded text with a space, and returns the
/// number of terms that they make.
pub(crate) fn take_unspaced(folded: &mut [u8]) -> u64 {
    let (mut from, mut terms) = (0, 0);
    while let Some(offset) = memchr(UNSPACED, &folded[from..]) {
        let start = from + offset;
        let end = end_of(folded, start, |byte| byte == UNSPACED);
        terms += (end - start - 1).max(1) as u64;
        folded[start..end].fill(b' ');
        from = end;
    }
    terms
}

/// Where a term stands in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The term as the text has it, if it is a word that is not ASCII.
    pub(crate) wide: Option<Text<'a>>,
}

/// Calls `visit` with each term of `text`.
pub(crate) fn for_each_term(
    text: Text<'_>,
    folded: &[u8],
    lowered: &mut Vec<u8>,
    mut visit: impl FnMut(&[u8]),
) {
    for_each_place(text, folded, lowered, |term, _| visit(term));
}

/// Calls `visit` with each term of `text` and its place.
pub(crate) fn for_each_place<'a>(
    text: Text<'a>,
    folded: &[u8],
    lowered: &mut Vec<u8>,
    mut visit: impl FnMut(&[u8], Place<'a>),
) {
    let mut cursor = Cursor::new(text);
    let mut at = 0;
    while at < folded.len() {
        let start = at;
        if is_word(folded[at]) {
            at = end_of(folded, at, is_word);
            visit_word(&mut cursor, folded, (start, at), lowered, &mut visit);
        } else if folded[at] == UNSPACED {
            at = end_of(folded, at, |byte| byte == UNSPACED);
            let mut start = start;
            visit_pairs(cursor.slice(start, at), lowered, &mut |term: &[u8]| {
                visit(term, Place { start, end: at.min(start + 2), wide: None });
                start += 1;
            });
        } else {
            at += 1;
        }
    }
}

/// Calls `visit` with each term of `text` that has a character outside ASCII.
pub(crate) fn for_each_wide(
    text: Text<'_>,
    folded: &[u8],
    lowered: &mut Vec<u8>,
    mut visit: impl FnMut(&[u8]),
) {
    let mut cursor = Cursor::new(text);
    let mut from = 0;
    while let Some(offset) = memchr2(OTHER, UNSPACED, &folded[from..]) {
        let at = from + offset;
        if folded[at] == UNSPACED {
            from = end_of(folded, at, |byte| byte == UNSPACED);
            visit_pairs(cursor.slice(at, from), lowered, &mut visit);
        } else {
            let before = folded[from..at].iter().rposition(|&byte| !is_word(byte));
            let start = before.map_or(from, |place| from + place + 1);
            from = end_of(folded, at, is_word);
            visit_word(&mut cursor, folded, (start, from), lowered, &mut |term, _| visit(term));
        }
    }
}

/// Returns where the run of bytes that starts at `start` ends.
pub(crate) fn end_of(folded: &[u8], start: usize, is_part: impl Fn(u8) -> bool) -> usize {
    folded[start..].iter().position(|&byte| !is_part(byte)).map_or(folded.len(), |i| start + i)
}

fn visit_word<'a>(
    cursor: &mut Cursor<'a>,
    folded: &[u8],
    (start, end): (usize, usize),
    lowered: &mut Vec<u8>,
    visit: &mut impl FnMut(&[u8], Place<'a>),
) {
    lowered.clear();
    let mut wide = None;
    if folded[start..end].is_ascii() {
        lowered.extend(folded[start..end].iter().map(u8::to_ascii_lowercase));
    } else {
        let word = cursor.slice(start, end);
        lower(word, lowered);
        wide = Some(word);
    }
    visit(lowered, Place { start, end, wide });
}

/// Calls `visit` with each two neighbouring characters of `run`, or with its
/// only one.
pub(crate) fn visit_pairs(run: Text<'_>, lowered: &mut Vec<u8>, visit: &mut impl FnMut(&[u8])) {
    lowered.clear();
    lower(run, lowered);
    let (mut start, mut middle) = (0, decode(lowered, 0).1);
    if middle == lowered.len() {
        visit(lowered);
    }
    while middle < lowered.len() {
        let end = middle + decode(lowered, middle).1;
        visit(&lowered[start..end]);
        (start, middle) = (middle, end);
    }
}

/// Appends `text` in lowercase to `out`, each character by itself.
pub(crate) fn lower(text: Text<'_>, out: &mut Vec<u8>) {
    let smalls = Smalls::get();
    text.for_each(|code| match smalls.of(code) {
        0xD800..0xE000 => push_code(char::REPLACEMENT_CHARACTER.into(), out),
        DOTTED_I => [b'i'.into(), DOT].into_iter().for_each(|code| push_code(code, out)),
        small => push_code(small, out),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let (mut folded, mut found) = (Vec::new(), Vec::new());
        fold(text.into(), &mut folded);
        for_each_term(text.into(), &folded, &mut Vec::new(), |term| {
            found.push(String::from_utf8(term.to_vec()).unwrap());
        });
        found
    }

    #[test]
    fn words_are_runs_of_letters_digits_and_marks() {
        assert_eq!(
            ["e", "mail", "don", "t", "o", "brien", "x2", "snake", "case"],
            *of("E-mail don't O’Brien x2 snake_case ❤\u{FE0F} …")
        );
        assert_eq!(
            ["cafe\u{301}", "i̇x", "kelvin", "οδοσ"],
            *of("Cafe\u{301} İx \u{212A}elvin ΟΔΟΣ")
        );
        assert_eq!(["x"], *of("\u{301}x"));
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(["iphone", "手机", "a"], *of("iPhone手机a"));
        assert_eq!(["绿茶", "茶很", "很好", "茶"], *of("绿茶很好。茶"));
        assert_eq!(["か\u{3099}", "12"], *of("か\u{3099}12"));
        assert_eq!(["서울", "울에", "에서"], *of("서울에서"));
    }

    #[test]
    fn pairs_have_their_places() {
        let (text, mut folded, mut found) = ("a 绿茶很 b", Vec::new(), Vec::new());
        fold(text.into(), &mut folded);
        for_each_place(text.into(), &folded, &mut Vec::new(), |_, place| {
            found.push((place.start, place.end));
        });
        assert_eq!([(0, 1), (2, 4), (3, 5), (6, 7)], *found);
    }

    /// Every term outside ASCII is visited wherever it stands, and counted.
    #[test]
    fn wide_terms_are_those_not_ascii() {
        for text in ["a 绿茶很b é c", "茶", "xé茶é茶茶y z", "é", "\u{301}茶\u{301}é\u{301} k"]
        {
            let (mut folded, mut found) = (Vec::new(), Vec::new());
            fold(text.into(), &mut folded);
            for_each_wide(text.into(), &folded, &mut Vec::new(), |term| {
                found.push(String::from_utf8(term.to_vec()).unwrap());
            });
            let mut expected = of(text);
            let all = expected.len();
            expected.retain(|term| !term.is_ascii());
            assert_eq!(expected, found);
            let pairs = take_unspaced(&mut folded);
            let mut words = 0;
            for_each_term(text.into(), &folded, &mut Vec::new(), |_| words += 1);
            assert_eq!(all as u64, words + pairs);
        }
    }
}
