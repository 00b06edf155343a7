//! Keywords: the words of a query that carry its meaning.
//!
//! A keyword is a lowercased word between whitespace, without punctuation at
//! either end. It is longer than one code point and not a stopword. Lowercase
//! and whitespace are those of Python's `str.lower()` and `str.split()`.

use std::collections::HashSet;

use memchr::memmem::find;

use crate::stopwords;
use crate::terms::Place;
use crate::text::letters::{DOT, DOTTED_I, SIGMA, Smalls};
use crate::text::{Cursor, Text, push_code};

/// Punctuation that is stripped from both ends of a word.
const STRIPPED: &[u8; 16] = b".,;:!?\"'()[]{}/-";

/// The kind of a byte of a folded text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Part of a word.
    Word,
    /// Ends a word.
    Space,
    /// Part of a word, but stripped from its ends.
    Stripped,
}

/// The class of each byte of a folded text.
pub(crate) static CLASSES: [Class; 256] = {
    let mut classes = [Class::Word; 256];
    let spaces = [9, 10, 11, 12, 13, 28, 29, 30, 31, 32];
    let mut i = 0;
    while i < spaces.len() {
        classes[spaces[i]] = Class::Space;
        i += 1;
    }
    let mut i = 0;
    while i < STRIPPED.len() {
        classes[STRIPPED[i] as usize] = Class::Stripped;
        i += 1;
    }
    classes
};

pub(crate) fn class(byte: u8) -> Class {
    CLASSES[usize::from(byte)]
}

/// Returns whether there is only stripped punctuation between `at` and the
/// whitespace in front of it.
pub(crate) fn starts_word(folded: &[u8], at: usize) -> bool {
    let mut before = folded[..at].iter().rev().map(|&byte| class(byte));
    before.find(|&class| class != Class::Stripped).is_none_or(|class| class == Class::Space)
}

/// Returns whether there is only stripped punctuation between `end` and the
/// whitespace behind it.
pub(crate) fn ends_word(folded: &[u8], end: usize) -> bool {
    let mut behind = folded[end..].iter().map(|&byte| class(byte));
    behind.find(|&class| class != Class::Stripped).is_none_or(|class| class == Class::Space)
}

/// Returns whether a term of a text is a whole word of it. `folded` is what
/// [`Text::fold`] returns.
#[inline]
pub(crate) fn is_whole(term: &[u8], place: &Place<'_>, folded: &[u8]) -> bool {
    // Only a sigma is lowered in two ways.
    let is_lowered_so = |word: Text<'_>| {
        let mut lowered = Vec::new();
        lower(word, &mut lowered);
        lowered == term
    };
    starts_word(folded, place.start)
        && ends_word(folded, place.end)
        && place.wide.is_none_or(|word| find(term, b"\xCF\x83").is_none() || is_lowered_so(word))
}

/// Returns the keywords of `text`, each once, in order of first occurrence,
/// encoded as in [`Text::Utf8`].
///
/// # Examples
///
/// ```
/// use budgeteer::keywords;
///
/// let found = keywords("What is the (remote) work policy? Remote!".into());
/// assert_eq!(found, [&b"remote"[..], b"work", b"policy"]);
/// ```
#[must_use]
pub fn keywords(text: Text<'_>) -> Vec<Vec<u8>> {
    let mut scratch = Vec::new();
    let folded = text.fold(&mut scratch);
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for_each_word(text, folded, &mut Vec::new(), |word| {
        if is_keyword(word) && seen.insert(word.to_vec()) {
            found.push(word.to_vec());
        }
    });
    found
}

/// Returns whether `text` has any keyword.
pub(crate) fn has_keyword(text: Text<'_>, folded: &[u8], lowered: &mut Vec<u8>) -> bool {
    let mut cursor = Cursor::new(text);
    words(folded).any(|word| is_keyword(lower_and_strip(&mut cursor, folded, word, lowered)))
}

/// Calls `visit` with each word of `text`, lowercased and stripped.
pub(crate) fn for_each_word(
    text: Text<'_>,
    folded: &[u8],
    lowered: &mut Vec<u8>,
    mut visit: impl FnMut(&[u8]),
) {
    let mut cursor = Cursor::new(text);
    for word in words(folded) {
        visit(lower_and_strip(&mut cursor, folded, word, lowered));
    }
}

/// Returns where the word ends that goes on to `at` at least, without what is
/// stripped from it. In front of `at` is nothing to strip.
#[inline]
pub(crate) fn end_of_keyword(folded: &[u8], at: usize) -> usize {
    // Most words end so.
    if folded.get(at).is_none_or(|&byte| class(byte) == Class::Space) {
        return at;
    }
    let word = folded[at..].iter().take_while(|&&byte| class(byte) != Class::Space).count();
    let stripped = |&&byte: &&u8| class(byte) == Class::Stripped;
    at + word - folded[at..at + word].iter().rev().take_while(stripped).count()
}

/// Returns where the words of a folded text start and end.
pub(crate) fn words(folded: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_space = |byte: u8| class(byte) == Class::Space;
        at += folded[at..].iter().take_while(|&&byte| is_space(byte)).count();
        let start = at;
        at += folded[at..].iter().take_while(|&&byte| !is_space(byte)).count();
        (start < at).then_some((start, at))
    })
}

/// Returns the word from `start` to `end`, lowercased and stripped, in
/// `lowered`.
fn lower_and_strip<'l>(
    cursor: &mut Cursor<'_>,
    folded: &[u8],
    (start, end): (usize, usize),
    lowered: &'l mut Vec<u8>,
) -> &'l [u8] {
    lowered.clear();
    if folded[start..end].is_ascii() {
        // A `k` may have been the Kelvin sign, which lowercases to `k`.
        lowered.extend(folded[start..end].iter().map(u8::to_ascii_lowercase));
    } else {
        lower(cursor.slice(start, end), lowered);
    }
    strip(lowered)
}

/// Appends `text` in lowercase to `out`.
///
/// Lowercase depends on its context only for a capital sigma: what has none is
/// lowered character by character.
pub(crate) fn lower(text: Text<'_>, out: &mut Vec<u8>) {
    const CAPITAL: u32 = 0x3A3;
    const FINAL: u32 = 0x3C2;
    let smalls = Smalls::get();
    let (start, mut has_sigma) = (out.len(), false);
    text.for_each(|code| match smalls.of(code) {
        SIGMA if code == FINAL => push_code(FINAL, out),
        DOTTED_I => [b'i'.into(), DOT].into_iter().for_each(|code| push_code(code, out)),
        small => {
            has_sigma |= code == CAPITAL;
            push_code(small, out);
        }
    });
    if has_sigma {
        out.truncate(start);
        lower_sigmas(text, out);
    }
}

/// Does the same for a text with a capital sigma, whose context never reaches
/// across whitespace nor across a surrogate. So lowercasing words, and runs
/// between surrogates, gives the same as lowercasing the whole.
fn lower_sigmas(text: Text<'_>, out: &mut Vec<u8>) {
    let mut run = String::new();
    text.for_each(|code| {
        if let Some(character) = char::from_u32(code) {
            run.push(character);
        } else {
            out.extend(run.to_lowercase().as_bytes());
            run.clear();
            push_code(code, out);
        }
    });
    out.extend(run.to_lowercase().as_bytes());
}

fn strip(word: &[u8]) -> &[u8] {
    let inner = |&byte: &u8| class(byte) != Class::Stripped;
    let start = word.iter().position(inner).unwrap_or(word.len());
    let end = word.iter().rposition(inner).map_or(start, |last| last + 1);
    &word[start..end]
}

/// Returns whether `word`, lowercased and stripped, is a keyword.
pub(crate) fn is_keyword(word: &[u8]) -> bool {
    // The first byte of a code point says how many bytes it has.
    let is_single =
        matches!(word, [] | [_] | [0xC0..=0xDF, _] | [0xE0..=0xEF, _, _] | [0xF0..=0xFF, _, _, _]);
    !is_single && !stopwords::is_no_keyword(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        keywords(text.into()).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn only_ends_are_stripped() {
        assert_eq!(
            ["e-mail", "don't", "u.s.a", "a/b/c", "**bold**"],
            *of("e-mail don't (U.S.A.) a/b/c **bold** -- x ' 7")
        );
    }

    #[test]
    fn lowercase_is_that_of_unicode() {
        assert_eq!(["kelvin", "ας", "ασβ", "i̇x"], *of("\u{212A}elvin ΑΣ. ΑΣΒ İx"));
    }

    /// Every character, alone and where it may be a final sigma.
    #[test]
    fn lowercase_is_that_of_a_string() {
        let mut lowered = Vec::new();
        for character in '\0'..=char::MAX {
            for text in [format!("{character}"), format!("a{character}"), format!("Σ{character}Σ")]
            {
                lowered.clear();
                lower(text.as_str().into(), &mut lowered);
                assert_eq!(text.to_lowercase().as_bytes(), lowered, "{text:?}");
            }
        }
    }

    /// One code point is not a keyword, however many bytes it has. A code point
    /// whose lowercase has two is one.
    #[test]
    fn length_is_in_code_points_after_lowercasing() {
        assert_eq!(["i̇"], *of("é 日 🦀 İ"));
    }
}
