//! What the counts for Claude are reconstructed from.

use std::fmt;

use miniz_oxide::inflate::decompress_to_vec_zlib;

/// A set of pieces, each of which Claude counts as one token.
///
/// Claude's vocabulary is not public. These pieces were measured, one by one,
/// by Sander Land's project `ctok`.
///
/// # Examples
///
/// ```
/// use budgeteer_vocab::Claude;
///
/// let pieces = Claude::Three.load();
/// assert_eq!(pieces.len(), 48_332);
/// assert!(pieces.iter().any(|piece| piece == b"\xF8the\xF9"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claude {
    /// The pieces of Claude 3 to Claude Opus 4.6.
    Three,
    /// The pieces of Claude Opus 4.7 and of models after it.
    FourSeven,
}

impl Claude {
    /// Returns the pieces. Each call unpacks them anew, which takes about a
    /// millisecond: keep the result.
    #[must_use]
    pub fn load(self) -> ClaudePieces {
        let packed: &[u8] = match self {
            Self::Three => include_bytes!("../data/claude3.bin"),
            Self::FourSeven => include_bytes!("../data/claude47.bin"),
        };
        shipped(ClaudePieces::read(packed))
    }
}

/// Strings of bytes in ascending order.
#[derive(Clone, Default, PartialEq, Eq)]
struct Strings {
    /// All strings, end to end.
    bytes: Vec<u8>,
    /// Where each string ends.
    ends: Vec<u32>,
}

impl Strings {
    /// Reads strings of which each says how many bytes it shares with the last.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.word()? as usize;
        let shared = reader.take(count)?;
        let lengths = reader.take(count)?;
        let mut strings = Self::default();
        let mut last = 0;
        for (&shared, &length) in shared.iter().zip(lengths) {
            let start = strings.bytes.len();
            let same = last..last + usize::from(shared);
            if same.end > start {
                return None;
            }
            strings.bytes.extend_from_within(same);
            strings.bytes.extend_from_slice(reader.take(usize::from(length))?);
            strings.ends.push(u32::try_from(strings.bytes.len()).ok()?);
            last = start;
        }
        Some(strings)
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let string = &self.bytes[start..end as usize];
            start = end as usize;
            string
        })
    }
}

/// The pieces of a family of models.
///
/// A piece is UTF-8, but for the four bytes of [`ClaudePieces::WORD_BEGIN`] and
/// the constants after it, which stand for markers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClaudePieces {
    pieces: Strings,
    heads: Strings,
}

impl ClaudePieces {
    /// The marker before a word, or for a space before punctuation.
    pub const WORD_BEGIN: u8 = 0xF8;
    /// The marker behind a word, or for a space behind punctuation.
    pub const WORD_END: u8 = 0xF9;
    /// The marker of a word whose first letter is a capital.
    pub const SHIFT: u8 = 0xFA;
    /// The marker of a word in capitals.
    pub const CAPS: u8 = 0xFB;

    fn read(packed: &[u8]) -> Option<Self> {
        let bytes = decompress_to_vec_zlib(packed).ok()?;
        let mut reader = Reader { bytes: &bytes };
        Some(Self { pieces: Strings::read(&mut reader)?, heads: Strings::read(&mut reader)? })
    }

    /// Returns the number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.ends.len()
    }

    /// Returns whether there are no pieces. There always are some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pieces in ascending order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.pieces.iter()
    }

    /// Returns the first two or three bytes of characters that are one token
    /// together, in ascending order. They count where a character is no piece.
    #[must_use]
    pub fn heads(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.heads.iter()
    }
}

impl fmt::Debug for ClaudePieces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClaudePieces").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// How Claude takes single characters, in Unicode 15.0.
///
/// # Examples
///
/// ```
/// use budgeteer_vocab::ClaudeCharacters;
///
/// let characters = ClaudeCharacters::load();
/// assert!(characters.lowers().any(|pair| pair == ('É', 'é')));
/// let (first, last, value) = characters.ranges().last().expect("there are some");
/// assert_eq!(last, u32::from(char::MAX));
/// assert_eq!(value & ClaudeCharacters::KIND, ClaudeCharacters::LETTER);
/// # assert!(first < last);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaudeCharacters {
    ranges: Vec<(u32, u32, u32)>,
    lowers: Vec<(char, char)>,
}

impl ClaudeCharacters {
    /// The bits of a value that say what kind a character is.
    pub const KIND: u32 = 0xF;
    /// Stands for itself without markers: ideographs, Hangul, emoji.
    pub const LETTER: u32 = 0;
    /// Punctuation and symbols that join with their like only.
    pub const SYMBOL: u32 = 1;
    /// A decimal digit that is neither ASCII nor Arabic.
    pub const DECIMAL: u32 = 2;
    /// Another number.
    pub const NUMBER: u32 = 3;
    /// A variation selector.
    pub const SELECTOR: u32 = 4;
    /// A part of words.
    pub const WORDY: u32 = 5;
    /// A digit of ASCII or an Arabic one.
    pub const DIGIT: u32 = 6;
    /// Punctuation that forms runs, as that of ASCII does.
    pub const PUNCTUATION: u32 = 7;
    /// White space.
    pub const SPACE: u32 = 8;

    /// A mark that needs a letter before it to be part of a word.
    pub const STRAY: u32 = 1 << 4;
    /// A capital letter that has a small one.
    pub const UPPER: u32 = 1 << 5;
    /// A small letter.
    pub const LOWER: u32 = 1 << 6;
    /// A letter or mark that is neither.
    pub const CASELESS: u32 = 1 << 7;
    /// The bits of the canonical combining class.
    pub const COMBINING: u32 = 0xFF << 8;
    /// Normalization may change it or join it to what is before it.
    pub const COMPOSES: u32 = 1 << 16;
    /// It is removed.
    pub const STRIPPED: u32 = 1 << 17;
    /// It counts as a space of ASCII.
    pub const BLANK: u32 = 1 << 18;
    /// Claude 3 takes it for an apostrophe of ASCII.
    pub const SINGLE_QUOTE: u32 = 1 << 19;
    /// Claude 3 takes it for a quotation mark of ASCII.
    pub const DOUBLE_QUOTE: u32 = 1 << 20;
    /// Unicode 15.0 does not know it.
    pub const UNASSIGNED: u32 = 1 << 21;
    /// A word that ends with it has no contraction behind it.
    pub const BORDER: u32 = 1 << 22;

    /// Returns the properties of all characters. Each call unpacks them anew:
    /// keep the result.
    #[must_use]
    pub fn load() -> Self {
        shipped(Self::read(include_bytes!("../data/claude_characters.bin")))
    }

    fn read(packed: &[u8]) -> Option<Self> {
        let bytes = decompress_to_vec_zlib(packed).ok()?;
        let mut reader = Reader { bytes: &bytes };
        let (values, count) = (reader.word()?, reader.word()? as usize);
        let values: Vec<u32> = (0..values).map(|_| reader.word()).collect::<Option<_>>()?;
        let mut characters = Self::default();
        let mut next = 0;
        for &place in reader.take(count)? {
            let length = reader.number()?;
            let last = next + length.checked_sub(1)?;
            characters.ranges.push((next, last, *values.get(usize::from(place))?));
            // No character has one of the surrogates' numbers.
            next = if last == 0xD7FF { 0xE000 } else { last + 1 };
        }
        let mut upper = 0;
        for _ in 0..reader.word()? {
            upper += reader.number()?;
            let step = reader.number()?;
            let lower = if step & 1 == 0 { upper + (step >> 1) } else { upper - (step >> 1) };
            characters.lowers.push((char::from_u32(upper)?, char::from_u32(lower)?));
        }
        Some(characters)
    }

    /// Returns the first and the last code point of each range of characters
    /// with the same properties, and these as bits, in order.
    #[must_use]
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = (u32, u32, u32)> {
        self.ranges.iter().copied()
    }

    /// Returns all characters that have a small form of one character, with
    /// that form, in order.
    #[must_use]
    pub fn lowers(&self) -> impl ExactSizeIterator<Item = (char, char)> {
        self.lowers.iter().copied()
    }
}

/// Returns what was unpacked from the binary itself.
fn shipped<T>(unpacked: Option<T>) -> T {
    unpacked.expect("a test unpacks the same bytes")
}

/// Reads what was packed.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Reads four bytes, lowest first.
    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Reads a number in groups of seven bits, lowest first.
    fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in [0, 7, 14, 21] {
            let &[byte] = self.take(1)? else { return None };
            number |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Claude, ClaudeCharacters, ClaudePieces};

    #[test]
    fn pieces_are_those_measured() {
        for (family, count, heads) in
            [(Claude::Three, 48_332, 467), (Claude::FourSeven, 14_819, 468)]
        {
            let pieces = family.load();
            assert_eq!(count, pieces.len());
            assert!(!pieces.is_empty());
            assert!(pieces.iter().is_sorted());
            assert_eq!(heads, pieces.heads().len());
            assert!(pieces.heads().all(|head| head.len() == 2 || head.len() == 3));
            assert!(pieces.iter().all(|piece| (1..=128).contains(&piece.len())));
        }
    }

    /// Words are counted one by one, which is only right if no piece goes on
    /// behind the end of a word or starts before its markers.
    #[test]
    fn no_piece_goes_beyond_a_word() {
        for family in [Claude::Three, Claude::FourSeven] {
            for piece in family.load().iter() {
                let end = piece.iter().position(|&byte| byte == ClaudePieces::WORD_END);
                assert!(end.is_none_or(|end| end + 1 == piece.len()), "{piece:?}");
                let markers = |byte: &&u8| **byte >= ClaudePieces::WORD_BEGIN;
                let begin = piece.iter().take_while(markers).count();
                let inside =
                    &piece[begin..piece.len() - usize::from(end.is_some_and(|end| end > 0))];
                assert!(inside.iter().all(|&byte| byte < 0xF8), "{piece:?}");
            }
        }
    }

    /// White space is counted by the lengths of its runs.
    #[test]
    fn white_space_joins_with_its_like_only() {
        for family in [Claude::Three, Claude::FourSeven] {
            for piece in family.load().iter() {
                if piece.iter().any(|byte| b" \t\n".contains(byte)) {
                    assert!(piece.iter().all(|byte| byte == &piece[0]), "{piece:?}");
                }
            }
        }
    }

    #[test]
    fn every_character_has_one_value() {
        let characters = ClaudeCharacters::load();
        let mut next = 0;
        for (first, last, _) in characters.ranges() {
            assert!(first <= last);
            assert!(first == next || (next, first) == (0xD800, 0xE000));
            next = last + 1;
        }
        assert_eq!(0x11_0000, next);
        assert_eq!(1173, characters.lowers().len());
    }

    #[test]
    fn what_is_damaged_is_refused() {
        assert_eq!(None, ClaudePieces::read(b"no zlib"));
        assert_eq!(None, ClaudeCharacters::read(b""));
    }
}
