//! What a tokenizer does to a text before it splits it.

use std::borrow::Cow;

use memchr::memmem;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// How a text is normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Normal {
    /// Not at all.
    As,
    /// To the composed form of Unicode, NFC.
    Nfc,
    /// Each U+2581 is a space: SentencePiece writes spaces so.
    Spaces,
}

/// The character that SentencePiece writes for a space.
pub(crate) const SPACE: &str = "\u{2581}";

impl Normal {
    /// Returns the normalized text, which is UTF-8.
    pub(crate) fn of(self, text: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::As || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let whole = std::str::from_utf8(text).expect("a text is UTF-8");
        match self {
            Self::Nfc if is_nfc_quick(whole.chars()) != IsNormalized::Yes => {
                Cow::Owned(whole.nfc().collect::<String>().into_bytes())
            }
            Self::Spaces if memmem::find(text, SPACE.as_bytes()).is_some() => {
                Cow::Owned(whole.replace(SPACE, " ").into_bytes())
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Returns where, in `text`, the part ends that has at most `length` bytes
    /// once it is normalized.
    pub(crate) fn end_of(self, text: &[u8], length: usize) -> usize {
        let whole = std::str::from_utf8(text).expect("a text is UTF-8");
        // Each part starts with a character that composes with none in front.
        let starts_anew = |char: char| {
            self == Self::Spaces
                || canonical_combining_class(char) == 0
                    && is_nfc_quick(std::iter::once(char)) == IsNormalized::Yes
        };
        let (mut from, mut left) = (0, length);
        let ends = whole.char_indices().skip(1).filter(|&(_, char)| starts_anew(char));
        for end in ends.map(|(end, _)| end).chain([text.len()]) {
            let size = self.of(&text[from..end]).len();
            if size > left {
                break;
            }
            (from, left) = (end, left - size);
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_normalized_only_where_they_must_be() {
        for (normal, text, expected) in [
            (Normal::As, "e\u{301}\u{2581}", "e\u{301}\u{2581}"),
            (Normal::Nfc, "e\u{301}\u{2581}", "\u{e9}\u{2581}"),
            (Normal::Spaces, "e\u{301}\u{2581}", "e\u{301} "),
        ] {
            assert_eq!(expected.as_bytes(), &*normal.of(text.as_bytes()));
        }
        assert!(matches!(Normal::Nfc.of("\u{e9}".as_bytes()), Cow::Borrowed(_)));
    }

    #[test]
    fn ends_are_found_in_the_text_as_it_was() {
        let text = "ae\u{301}b\u{1100}\u{1161}c";
        let normal: String = text.nfc().collect();
        for (end, _) in normal.char_indices().chain([(normal.len(), ' ')]) {
            let found = Normal::Nfc.end_of(text.as_bytes(), end);
            assert_eq!(&normal.as_bytes()[..end], &*Normal::Nfc.of(&text.as_bytes()[..found]));
        }
        assert_eq!(4, Normal::Spaces.end_of("a\u{2581}b".as_bytes(), 2));
    }
}
