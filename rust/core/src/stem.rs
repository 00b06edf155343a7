//! Stems: the common part of the forms of a word.
//!
//! The algorithms are Snowball's. The crate and Python's `snowballstemmer` have
//! different releases of them, so only those languages are here for which both
//! make the same stems.

use std::borrow::Cow;
use std::cell::RefCell;

#[cfg(feature = "stemming")]
use snowball_stemmers_rs::{Algorithm, Stemmer};

use crate::text::Unit;

/// A word of more code points is its own stem. No language has such words, and
/// the time would grow faster than the length.
const MAX_CHARS: usize = 64;

#[cfg(feature = "stemming")]
static ALGORITHMS: [(&str, Algorithm); 28] = [
    ("arabic", Algorithm::Arabic),
    ("armenian", Algorithm::Armenian),
    ("basque", Algorithm::Basque),
    ("catalan", Algorithm::Catalan),
    ("dutch", Algorithm::Dutch),
    ("english", Algorithm::English),
    ("esperanto", Algorithm::Esperanto),
    ("estonian", Algorithm::Estonian),
    ("french", Algorithm::French),
    ("german", Algorithm::German),
    ("greek", Algorithm::Greek),
    ("hindi", Algorithm::Hindi),
    ("hungarian", Algorithm::Hungarian),
    ("indonesian", Algorithm::Indonesian),
    ("irish", Algorithm::Irish),
    ("italian", Algorithm::Italian),
    ("lithuanian", Algorithm::Lithuanian),
    ("nepali", Algorithm::Nepali),
    ("norwegian", Algorithm::Norwegian),
    ("polish", Algorithm::Polish),
    ("portuguese", Algorithm::Portuguese),
    ("romanian", Algorithm::Romanian),
    ("russian", Algorithm::Russian),
    ("serbian", Algorithm::Serbian),
    ("spanish", Algorithm::Spanish),
    ("swedish", Algorithm::Swedish),
    ("tamil", Algorithm::Tamil),
    ("turkish", Algorithm::Turkish),
];

/// Languages whose stems begin with the first letter of the word, where that is
/// ASCII: their algorithms only change what is behind it.
const KEEPING_ONE: [&str; 8] =
    ["english", "french", "german", "italian", "norwegian", "portuguese", "spanish", "swedish"];

/// A word of at most fifteen bytes, and its length in the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short([u8; 16]);

impl Short {
    /// No word.
    pub(crate) const NONE: Self = Self([0; 16]);

    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        let mut bytes = [0; 16];
        bytes[..15].get_mut(..word.len())?.copy_from_slice(word);
        bytes[15] = u8::try_from(word.len()).expect("at most 15");
        Some(Self(bytes))
    }

    /// Returns the word of a folded text from `at` to `end` in lowercase, if it
    /// is short and in ASCII; None too near the end of the text.
    #[inline]
    pub(crate) fn at(folded: &[u8], at: usize, end: usize) -> Option<Self> {
        let bytes: &[u8; 16] = folded.get(at..)?.first_chunk()?;
        let length = end - at;
        if length > 15 {
            return None;
        }
        // The bit is set in digits and small letters, and makes capitals small.
        let lowered = u128::from_le_bytes(*bytes) | u128::from_le_bytes([0x20; 16]);
        let kept = lowered & !(u128::MAX << (8 * length));
        if kept & u128::from_le_bytes([0x80; 16]) != 0 {
            return None;
        }
        Some(Self((kept | (length as u128) << 120).to_le_bytes()))
    }

    /// Returns a key of a short word of letters and digits of Latin-1, in
    /// lowercase, with a length that no word has; None of any other word.
    #[inline]
    pub(crate) fn of_latin<U: Unit>(word: &[U]) -> Option<Self> {
        let mut bytes = [0; 16];
        for (byte, &unit) in bytes[..15].get_mut(..word.len())?.iter_mut().zip(word) {
            *byte = u8::try_from(unit.into()).ok()?;
            // As above, but for the sharp s, which has no such capital.
            *byte |= u8::from(*byte != 0xDF) << 5;
        }
        bytes[15] = 0x80 | u8::try_from(word.len()).expect("at most 15");
        Some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..usize::from(self.0[15])]
    }

    /// Returns a number that no other word has.
    pub(crate) fn key(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// Returns a number of `bits` bits.
    pub(crate) fn hash(self, bits: u32) -> usize {
        let key = self.key();
        #[allow(clippy::cast_possible_truncation)] // both halves are mixed
        let hash = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        usize::try_from(hash >> (u64::BITS - bits)).expect("a few bits")
    }
}

/// The number of bits of the place of a word seen lately: 8,192 of them, in
/// 264 KB for each thread that stems.
const RECENT_BITS: u32 = 13;

/// The place of no language.
const NO_LANGUAGE: u8 = u8::MAX;

thread_local! {
    static RECENT: RefCell<Vec<(u8, Short, Short)>> = const { RefCell::new(Vec::new()) };
}

/// Stems the words of a language, by the feature `stemming`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stemming {
    #[cfg_attr(not(feature = "stemming"), allow(dead_code))]
    place: u8,
}

impl Stemming {
    /// Returns the stemming of a language, by its English name in lowercase, or
    /// None for any other language.
    ///
    /// The languages are Arabic, Armenian, Basque, Catalan, Dutch, English,
    /// Esperanto, Estonian, French, German, Greek, Hindi, Hungarian,
    /// Indonesian, Irish, Italian, Lithuanian, Nepali, Norwegian, Polish,
    /// Portuguese, Romanian, Russian, Serbian, Spanish, Swedish, Tamil and
    /// Turkish. Without the feature `stemming` there are none.
    #[must_use]
    pub fn of(language: &str) -> Option<Self> {
        let place = languages().position(|name| name == language)?;
        Some(Self { place: u8::try_from(place).ok()? })
    }

    /// Returns the stem of `word`, which must be in lowercase.
    #[must_use]
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        if word.len() > MAX_CHARS && word.chars().count() > MAX_CHARS {
            return word.into();
        }
        self.stemmed(word)
    }

    #[cfg(feature = "stemming")]
    fn stemmed(self, word: &str) -> Cow<'_, str> {
        Stemmer::create(ALGORITHMS[usize::from(self.place)].1).stem(word)
    }

    #[cfg(not(feature = "stemming"))]
    #[allow(clippy::unused_self)] // as above
    fn stemmed(self, _: &str) -> Cow<'_, str> {
        unreachable!("there is no stemming without the feature")
    }

    /// Returns the stem of a term, encoded as in [`Text::Utf8`](crate::Text::Utf8).
    pub(crate) fn of_term(self, term: &[u8]) -> Cow<'_, [u8]> {
        match Short::of(term).and_then(|short| self.of_short(short)) {
            Some(stem) => Cow::Owned(stem.bytes().to_vec()),
            None => self.of_any(term),
        }
    }

    /// Returns the stem of a short word; None where that is not short. A thread
    /// remembers the stems of words that it saw lately, as texts have few words
    /// that differ, and stemming takes as long as looking thirty up.
    pub(crate) fn of_short(self, word: Short) -> Option<Short> {
        RECENT.with_borrow_mut(|recent| {
            recent.resize(1 << RECENT_BITS, (NO_LANGUAGE, Short::NONE, Short::NONE));
            let entry = &mut recent[word.hash(RECENT_BITS)];
            if entry.0 != self.place || entry.1 != word {
                let stem = Short::of(&self.of_any(word.bytes()))?;
                *entry = (self.place, word, stem);
            }
            Some(entry.2)
        })
    }

    fn of_any(self, term: &[u8]) -> Cow<'_, [u8]> {
        // No term has a surrogate.
        let Ok(word) = std::str::from_utf8(term) else { return Cow::Owned(term.to_vec()) };
        Cow::Owned(self.stem(word).into_owned().into_bytes())
    }

    /// Returns whether the first two characters of every word outside ASCII are
    /// those of its stem, but for a `y` that is an `i` there, and such a stem is
    /// not in ASCII either.
    pub(crate) fn keeps_two(self) -> bool {
        languages().nth(self.place.into()) == Some("english")
    }

    /// Returns the possible beginnings of ASCII words with that stem; None
    /// where they are not known.
    pub(crate) fn beginnings(self, stem: &[u8]) -> Option<Vec<Vec<u8>>> {
        let language = languages().nth(self.place.into())?;
        let first = *stem.first()?;
        if !KEEPING_ONE.contains(&language) {
            return None;
        }
        if !first.is_ascii() {
            return Some(Vec::new()); // such a language has no ASCII words
        }
        let ascii = stem.iter().take_while(|byte| byte.is_ascii()).count();
        let kept = match language {
            "german" => 3,
            // An ending may become one letter: happy is happi, hoping is hope.
            "english" => 2.max(stem.len() - 1),
            // Or two, as in chevaux, which is cheval.
            _ => 2.max(stem.len().saturating_sub(2)),
        };
        let kept = &stem[..kept.min(ascii)];
        let mut beginnings =
            if language == "german" { spellings(kept) } else { vec![kept.to_vec()] };
        let is_ascii = ascii == stem.len();
        if let (&[.., b'i', b'e'], "english", true) = (stem, language, is_ascii) {
            beginnings.push([&stem[..stem.len() - 2], b"y"].concat()); // dying is die
        }
        if let (&[first, b'i'], "french") = (stem, language) {
            beginnings.push(vec![first, b'y']); // oyissement is oi
        }
        Some(beginnings)
    }
}

/// Returns how German words may spell the beginning of a stem: ae is a there.
fn spellings(beginning: &[u8]) -> Vec<Vec<u8>> {
    let mut spellings = vec![Vec::new()];
    for letter in beginning {
        let both = [&[*letter][..], &[*letter, b'e'][..]];
        let ways = if b"aou".contains(letter) { &both[..] } else { &both[..1] };
        let longer =
            spellings.iter().flat_map(|before| ways.iter().map(|way| [before, *way].concat()));
        spellings = longer.collect();
    }
    spellings
}

#[cfg(feature = "stemming")]
fn languages() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|(name, _)| *name)
}

#[cfg(not(feature = "stemming"))]
fn languages() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}

#[cfg(test)]
mod latin {
    use super::Short;
    use crate::terms::{fold, lower};
    use crate::text::Text;
    use crate::text::letters::is_word;

    /// Words of Latin-1 have one key exactly if they are the same in lowercase.
    #[test]
    fn keys_of_words_are_those_of_their_lowercase() {
        let (mut folded, all) = (Vec::new(), (0..=0xFF).collect::<Vec<u8>>());
        fold(Text::Latin1(&all), &mut folded);
        let letters: Vec<u8> =
            all.into_iter().filter(|&unit| is_word(folded[usize::from(unit)])).collect();
        assert!(letters.len() > 120);
        let lowered = |unit: u8| {
            let mut out = Vec::new();
            lower(Text::Latin1(&[unit]), &mut out);
            out
        };
        for &one in &letters {
            assert_eq!(Short::of_latin(&[one]), Short::of_latin(&[u16::from(one)]));
            for &two in &letters {
                let is_same = Short::of_latin(&[b'x', one]) == Short::of_latin(&[b'X', two]);
                assert_eq!(lowered(one) == lowered(two), is_same, "{one:X} {two:X}");
            }
        }
        assert_ne!(Short::of_latin(b"ab"), Short::of(b"ab"));
        assert_eq!(None, Short::of_latin(&[0xE9_u8; 16]));
        assert_eq!(None, Short::of_latin(&[0x153_u16]));
    }
}

#[cfg(all(test, feature = "stemming"))]
mod tests {
    use super::*;

    /// Every word outside ASCII begins with the first two characters of its
    /// stem, in a language that says so.
    #[test]
    fn words_keep_two_characters() {
        let english = Stemming::of("english").expect("there is one");
        assert!(english.keeps_two());
        let letters: Vec<char> = "éяñaeiysdngl1".chars().collect();
        let ends = ["", "s", "es", "ies", "ied", "ed", "ing", "ly", "al", "ation", "ful", "yed"];
        let count = letters.len();
        for place in 0..count.pow(4) {
            let pick = |by: usize| letters[place / by % count];
            let four: String = [1, count, count * count, count.pow(3)].map(pick).iter().collect();
            for length in 1..=4 {
                let start: String = four.chars().take(length).collect();
                for word in ends.map(|end| format!("{start}{end}")) {
                    let stem = english.stem(&word);
                    if !word.is_ascii() {
                        let spelled = word.replacen('y', "i", 1);
                        let is_kept = [&word, &spelled]
                            .iter()
                            .any(|word| word.chars().take(2).eq(stem.chars().take(2)));
                        assert!(is_kept && !stem.is_ascii(), "{word}: {stem}");
                    }
                }
            }
        }
    }

    /// Every ASCII word has one of the beginnings of its stem.
    #[test]
    fn words_begin_as_their_stems() {
        let ends = [
            "", "s", "es", "ed", "eed", "edly", "ies", "ied", "ying", "yings", "ing", "ly",
            "ation", "ational", "ement", "euse", "ais", "era", "are", "ando", "zione", "mente",
            "idad", "er", "en", "et", "hets", "lig", "fullt", "heit", "ung", "isch", "ss", "e",
            "y", "amos", "asse", "issement",
        ];
        let letters = b"aeiouybdlnqrstz2";
        for language in KEEPING_ONE {
            let stemming = Stemming::of(language).expect("there is one");
            let check = |word: &str| {
                let stem = stemming.of_term(word.as_bytes());
                let beginnings = stemming.beginnings(&stem).expect("they are known");
                let is_one = |beginning: &Vec<u8>| word.as_bytes().starts_with(beginning);
                assert!(beginnings.iter().any(is_one), "{language}: {word}");
            };
            for at in 0..letters.len().pow(4) {
                let mut rest = at;
                let head = (0..4).map(|_| {
                    let letter = letters[rest % letters.len()];
                    rest /= letters.len();
                    char::from(letter)
                });
                let head: String = head.collect();
                let end = ends[at % ends.len()];
                for length in 1..=4 {
                    check(&head[..length]);
                    check(&format!("{}{end}", &head[..length]));
                }
            }
        }
        assert_eq!(None, Stemming::of("dutch").and_then(|dutch| dutch.beginnings(b"accept")));
    }
}
