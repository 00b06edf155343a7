//! What a tokenizer does to a text before it splits it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memmem;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use crate::once::Once;
use crate::text::{LOOK, decode};

/// How a text is normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Normal {
    /// Not at all.
    As,
    /// To the composed form of Unicode 9, NFC: the package `tokenizers` knows
    /// that version.
    Nfc,
    /// Each U+2581 is a space: SentencePiece writes spaces so.
    Spaces,
}

/// The character that SentencePiece writes for a space.
pub(crate) const SPACE: &str = "\u{2581}";

/// Whether a text begins with a space of its own. An empty one never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    No,
    /// It does, whatever it begins with.
    #[cfg_attr(not(feature = "files"), allow(dead_code))]
    Always,
    /// It does unless it begins with one.
    #[cfg_attr(not(feature = "files"), allow(dead_code))]
    Missing,
}

impl Prefix {
    /// Returns whether `text` gets one.
    pub(crate) fn is_put(self, text: &[u8]) -> bool {
        match self {
            Self::No => false,
            Self::Always => !text.is_empty(),
            Self::Missing => {
                !text.is_empty() && !text.starts_with(b" ") && !text.starts_with(SPACE.as_bytes())
            }
        }
    }
}

impl Normal {
    /// Returns the normalized text, which is UTF-8. It means nothing once `stop`
    /// is set.
    pub(crate) fn of<'a>(self, text: &'a [u8], stop: &AtomicBool) -> Cow<'a, [u8]> {
        if self == Self::As || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let whole = std::str::from_utf8(text).expect("a text is UTF-8");
        match self {
            Self::Nfc => compose(whole, stop),
            Self::Spaces if memmem::find(text, SPACE.as_bytes()).is_some() => {
                Cow::Owned(whole.replace(SPACE, " ").into_bytes())
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Returns whether two parts of a text, of which one ends with `before` and
    /// the next begins with `behind`, are normalized as the whole is, and end and
    /// begin as before.
    pub(crate) fn may_part(self, before: u32, behind: u32) -> bool {
        self != Self::Nfc
            // Nothing composes with ASCII behind it, but some letters become two.
            || behind < 0x80 && (before < 0x80 || Weights::get().of(before) == STABLE)
    }

    /// Returns where, in `text`, the part ends that has at most `length` bytes
    /// once it is normalized. It means nothing once `stop` is set.
    pub(crate) fn end_of(self, text: &[u8], length: usize, stop: &AtomicBool) -> usize {
        let whole = std::str::from_utf8(text).expect("a text is UTF-8");
        // Each part starts with a character that composes with none in front.
        let starts_anew = |char: char| self == Self::Spaces || weight(char) == STABLE;
        let (mut from, mut left) = (0, length);
        let ends = whole.char_indices().skip(1).filter(|&(_, char)| starts_anew(char));
        for end in ends.map(|(end, _)| end).chain([text.len()]) {
            let size = self.of(&text[from..end], stop).len();
            if size > left || stop.load(Ordering::Relaxed) {
                break;
            }
            (from, left) = (end, left - size);
        }
        from
    }
}

/// The weight of a character that stays as it is, whatever is around it.
const STABLE: u8 = 0;

/// The weight of a character that may change, or compose with others.
const UNSURE: u8 = u8::MAX;

/// Returns [`STABLE`], [`UNSURE`], or the combining class of a character: one
/// of lower class may not be behind one of higher class.
fn weight(char: char) -> u8 {
    if is_nfc_quick(std::iter::once(char)) == IsNormalized::Yes {
        canonical_combining_class(char)
    } else {
        UNSURE
    }
}

/// The weights of characters, made once.
struct Weights {
    /// Those of all characters of up to three bytes.
    basic: Box<[u8]>,
    /// By first byte: whether all such characters are stable.
    are_stable: [bool; 256],
}

impl Weights {
    fn get() -> &'static Self {
        static WEIGHTS: Once<Weights> = Once::new();
        WEIGHTS.get(|| {
            let basic: Box<[u8]> =
                (0..1 << 16).map(|code| char::from_u32(code).map_or(STABLE, weight)).collect();
            let are_stable = std::array::from_fn(|lead| {
                let (first, count) = match lead {
                    0..=0x7F => (lead, 1),
                    0xC2..=0xDF => ((lead & 0x1F) << 6, 1 << 6),
                    0xE1..=0xEF => ((lead & 0xF) << 12, 1 << 12),
                    _ => return false,
                };
                basic[first..first + count].iter().all(|&weight| weight == STABLE)
            });
            Self { basic, are_stable }
        })
    }

    /// Returns the weight of the character at `at`, and its size in bytes.
    #[inline]
    fn at(&self, text: &[u8], at: usize) -> (u8, usize) {
        let lead = text[at];
        if self.are_stable[usize::from(lead)] {
            return (STABLE, 1 + usize::from(lead >= 0xC0) + usize::from(lead >= 0xE0));
        }
        let (code, size) = decode(text, at);
        (self.of(code), size)
    }

    /// Returns the weight of a character.
    fn of(&self, code: u32) -> u8 {
        let known = self.basic.get(code as usize).copied();
        known.unwrap_or_else(|| char::from_u32(code).map_or(STABLE, weight))
    }
}

/// Returns the composed form of Unicode 9.
fn compose<'a>(text: &'a str, stop: &AtomicBool) -> Cow<'a, [u8]> {
    let (bytes, weights) = (text.as_bytes(), Weights::get());
    let mut composed = Vec::new();
    // What is written; and the last character that is stable, and the weight of
    // the last one.
    let (mut written, mut stable, mut before) = (0, 0, STABLE);
    let (mut at, mut next_look) = (0, LOOK);
    while at < bytes.len() {
        if at >= next_look {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            next_look = at + LOOK;
        }
        if bytes[at..].first_chunk::<16>().is_some_and(|next| next.is_ascii()) {
            at += 16;
            (stable, before) = (at - 1, STABLE);
            continue;
        }
        let (weight, size) = weights.at(bytes, at);
        if weight == STABLE {
            stable = at;
        } else if weight == UNSURE || weight < before {
            let mut end = at + size;
            while end < bytes.len() {
                let (weight, size) = weights.at(bytes, end);
                if weight == STABLE {
                    break;
                }
                end += size;
            }
            composed.extend_from_slice(&bytes[written..stable]);
            composed.extend_from_slice(compose_part(&text[stable..end]).as_bytes());
            (written, stable, before, at) = (end, end, STABLE, end);
            continue;
        }
        (before, at) = (weight, at + size);
    }
    if written == 0 {
        return Cow::Borrowed(bytes);
    }
    composed.extend_from_slice(&bytes[written..]);
    Cow::Owned(composed)
}

/// Returns the composed form of a text.
///
/// In Unicode 9 a newer character neither composes nor changes places: what is in front
/// of it and what is behind are composed by themselves.
fn compose_part(text: &str) -> String {
    let mut composed = String::with_capacity(text.len());
    let mut from = 0;
    for (at, char) in text.char_indices().filter(|&(_, char)| is_newer(char)) {
        composed.extend(text[from..at].nfc());
        composed.push(char);
        from = at + char.len_utf8();
    }
    composed.extend(text[from..].nfc());
    composed
}

/// Returns whether a character is newer than Unicode 9, and composes or changes
/// places by now.
fn is_newer(char: char) -> bool {
    let code = u32::from(char);
    let place = NEWER.partition_point(|&(_, last)| last < code);
    NEWER.get(place).is_some_and(|&(first, _)| first <= code)
}

/// The first and the last code point of each range of such characters: those to
/// which `unicode-normalization` gives a combining class, or which compose with
/// the next or the previous one, and which Unicode 9 has not.
#[rustfmt::skip]
const NEWER: [(u32, u32); 68] = [
    (0x5C8, 0x5C9), (0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C,
    0xC3C), (0xD3B, 0xD3C), (0xEBA, 0xEBA), (0x1715, 0x1715), (0x1ABF, 0x1AF0), (0x1DF6,
    0x1DFA), (0xA82C, 0xA82C), (0x105D2, 0x105D2), (0x105DA, 0x105DA), (0x10D24, 0x10D27),
    (0x10D69, 0x10D6D), (0x10EAB, 0x10EAC), (0x10ECB, 0x10ECF), (0x10EF0, 0x10EFB), (0x10EFD,
    0x10EFF), (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070), (0x1133B, 0x1133B),
    (0x11382, 0x11382), (0x11384, 0x11384), (0x1138B, 0x1138B), (0x11390, 0x11390), (0x113B8,
    0x113B8), (0x113BB, 0x113BB), (0x113C2, 0x113C2), (0x113C5, 0x113C5), (0x113C7, 0x113C9),
    (0x113CE, 0x113D0), (0x1145E, 0x1145E), (0x11839, 0x1183A), (0x11930, 0x11930), (0x11935,
    0x11935), (0x1193D, 0x1193E), (0x11943, 0x11943), (0x119E0, 0x119E0), (0x11A34, 0x11A34),
    (0x11A47, 0x11A47), (0x11A99, 0x11A99), (0x11D42, 0x11D42), (0x11D44, 0x11D45), (0x11D97,
    0x11D97), (0x11F41, 0x11F42), (0x1611E, 0x16129), (0x1612F, 0x1612F), (0x16D63, 0x16D63),
    (0x16D67, 0x16D69), (0x16FF0, 0x16FF1), (0x1D127, 0x1D128), (0x1D250, 0x1D252), (0x1D25B,
    0x1D25C), (0x1D25F, 0x1D25F), (0x1D280, 0x1D281), (0x1E08F, 0x1E08F), (0x1E130, 0x1E136),
    (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF), (0x1E4EC, 0x1E4EF), (0x1E5EE, 0x1E5EF), (0x1E6E3,
    0x1E6E3), (0x1E6E6, 0x1E6E6), (0x1E6EE, 0x1E6EF), (0x1E6F5, 0x1E6F5),
];

#[cfg(test)]
mod tests {
    use highway::{HighwayHash as _, HighwayHasher};
    use proptest::prelude::*;

    use super::*;
    use crate::count::exact::GO_ON;

    #[test]
    fn texts_are_normalized_only_where_they_must_be() {
        for (normal, text, expected) in [
            (Normal::As, "e\u{301}\u{2581}", "e\u{301}\u{2581}"),
            (Normal::Nfc, "e\u{301}\u{2581}", "\u{e9}\u{2581}"),
            (Normal::Spaces, "e\u{301}\u{2581}", "e\u{301} "),
        ] {
            assert_eq!(expected.as_bytes(), &*normal.of(text.as_bytes(), &GO_ON));
        }
        assert!(matches!(Normal::Nfc.of("\u{e9}".as_bytes(), &GO_ON), Cow::Borrowed(_)));
    }

    proptest! {
        /// Composing between stable characters is composing the whole.
        #[test]
        fn parts_compose_as_the_whole_does(
            text in "[a e\u{301}\u{323}\u{93c}\u{928}\u{94d}\u{3099}\u{304b}\u{1100}\u{1161}\u{11a8}\
                     \u{ac00}\u{105d2}\u{307}\u{11935}\u{11930}\u{1ac1}\u{2126}\u{f900}\u{1d15e}\u{1d16d}\u{65e5}\u{1f600}]{0,24}"
        ) {
            let expected = compose_part(&text);
            prop_assert_eq!(expected.as_bytes(), &*Normal::Nfc.of(text.as_bytes(), &GO_ON));
        }
    }

    #[test]
    fn long_stretches_of_ascii_are_kept() {
        let text = format!("{}e\u{301}{}a\u{323}\u{301}", "x".repeat(40), "y".repeat(33));
        assert_eq!(compose_part(&text).as_bytes(), &*Normal::Nfc.of(text.as_bytes(), &GO_ON));
    }

    /// A text may be parted in front of ASCII, behind what stays as it is.
    #[test]
    fn texts_are_parted() {
        let may = |normal: Normal, before: char, behind: char| {
            normal.may_part(before.into(), behind.into())
        };
        assert!(may(Normal::Nfc, 'a', 'b') && may(Normal::Nfc, '\u{65e5}', 'a'));
        assert!(!may(Normal::Nfc, 'e', '\u{301}') && !may(Normal::Nfc, '\u{301}', 'a'));
        assert!(!may(Normal::Nfc, 'a', '\u{80}') && !may(Normal::Nfc, '\u{212b}', 'a'));
        assert!([Normal::As, Normal::Spaces].iter().all(|normal| may(*normal, 'e', '\u{301}')));
    }

    /// Nothing is copied where nothing changes, and a caller who wants no result is
    /// heard after some bytes.
    #[test]
    fn composing_stops_soon() {
        let spaces = Normal::Spaces.of("\u{e9}".as_bytes(), &GO_ON);
        assert!(matches!(spaces, Cow::Borrowed(_)));
        let stop = AtomicBool::new(true);
        let text = |length: usize| format!("{}e\u{301}", "x".repeat(length));
        let is_composed = |text: String| compose(&text, &stop).ends_with("\u{e9}".as_bytes());
        assert_eq!([true, false], [LOOK / 2, LOOK * 2].map(text).map(is_composed));
    }

    /// As `tokenizers` 0.23 composes.
    #[test]
    fn newer_characters_neither_compose_nor_move() {
        for (text, expected) in [
            ("\u{11935}\u{11930}", "\u{11935}\u{11930}"),
            ("\u{105d2}\u{307}", "\u{105d2}\u{307}"),
            ("\u{1e01c}\u{1ac0}", "\u{1e01c}\u{1ac0}"),
            ("\u{1df8}\u{347}", "\u{1df8}\u{347}"),
            ("e\u{1ac1}\u{301}e\u{301}", "e\u{1ac1}\u{301}\u{e9}"),
            ("a\u{301}\u{323}\u{1ac1}\u{301}\u{323}", "\u{1ea1}\u{301}\u{1ac1}\u{323}\u{301}"),
        ] {
            assert_eq!(expected.as_bytes(), &*Normal::Nfc.of(text.as_bytes(), &GO_ON));
        }
    }

    /// All that a newer release knows beyond Unicode 9 must be in the table.
    #[test]
    fn the_rest_is_as_in_unicode_9() {
        let mut hasher = HighwayHasher::default();
        for char in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let class = canonical_combining_class(char);
            let quick = is_nfc_quick(std::iter::once(char));
            if !is_newer(char) && (class != 0 || quick != IsNormalized::Yes) {
                hasher.append(&u32::from(char).to_le_bytes());
                hasher.append(&[class, u8::from(quick == IsNormalized::Maybe)]);
            }
        }
        assert_eq!(0x5852_57B6_C8B1_D109, hasher.finalize64());
    }

    /// A mark is no end: it may change places with another.
    #[test]
    fn no_part_ends_between_marks() {
        let text = "a\u{342}\u{316}b";
        let normal = Normal::Nfc.of(text.as_bytes(), &GO_ON);
        assert_eq!("a\u{316}\u{342}b".as_bytes(), &*normal);
        assert_eq!(
            [0, 0, 5, 6],
            [1, 3, 5, 6].map(|end| Normal::Nfc.end_of(text.as_bytes(), end, &GO_ON))
        );
    }

    #[test]
    fn ends_are_found_in_the_text_as_it_was() {
        let text = "ae\u{301}b\u{1100}\u{1161}c";
        let normal: String = text.nfc().collect();
        for (end, _) in normal.char_indices().chain([(normal.len(), ' ')]) {
            let found = Normal::Nfc.end_of(text.as_bytes(), end, &GO_ON);
            assert_eq!(
                &normal.as_bytes()[..end],
                &*Normal::Nfc.of(&text.as_bytes()[..found], &GO_ON)
            );
        }
        assert_eq!(4, Normal::Spaces.end_of("a\u{2581}b".as_bytes(), 2, &GO_ON));
    }
}
