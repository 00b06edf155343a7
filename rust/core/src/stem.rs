//! Stems: the common part of the forms of a word.
//!
//! The algorithms are Snowball's. The crate and Python's `snowballstemmer` have
//! different releases of them, so only those languages are here for which both
//! make the same stems.

use std::borrow::Cow;
use std::cell::RefCell;

#[cfg(feature = "stemming")]
use snowball_stemmers_rs::{Algorithm, Stemmer};

use crate::text::{Text, Unit};

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

    /// Returns the word of a folded text from `at` to `end` in lowercase, and
    /// whether it is in ASCII; None of a long word, and too near the end of the
    /// text.
    #[inline]
    pub(crate) fn at(folded: &[u8], at: usize, end: usize) -> Option<(Self, bool)> {
        let bytes: &[u8; 16] = folded.get(at..)?.first_chunk()?;
        // The bit is set in digits and small letters, and makes capitals small.
        let lowered = u128::from_le_bytes(*bytes) | u128::from_le_bytes([0x20; 16]);
        let kept = lowered & first_bytes(end - at)?;
        let is_ascii = kept & u128::from_le_bytes([0x80; 16]) == 0;
        Some((Self((kept | ((end - at) as u128) << 120).to_le_bytes()), is_ascii))
    }

    /// Returns a key of the word of a text from `at` to `end`, of letters and
    /// digits of Latin-1, in lowercase, with a length that no word has; None of
    /// any other word, of a long one, and too near the end of the text. The text
    /// has a unit for each character.
    #[inline]
    pub(crate) fn of_latin(text: Text<'_>, at: usize, end: usize) -> Option<Self> {
        let (bytes, above) = match text {
            Text::Ascii(units) | Text::Latin1(units) => {
                (u128::from_le_bytes(*units.get(at..)?.first_chunk()?), 0)
            }
            Text::Ucs2(units) => narrow(units.get(at..)?.first_chunk()?),
            Text::Ucs4(units) => narrow(units.get(at..)?.first_chunk()?),
            Text::Utf8(_) => return None,
        };
        let kept = first_bytes(end - at)?;
        if above & kept != 0 {
            return None;
        }
        let all = |byte: u8| u128::from_le_bytes([byte; 16]);
        // As above, but for the sharp s, which would become another letter.
        let differ = bytes ^ all(0xDF);
        let is_other = (((differ & all(0x7F)) + all(0x7F)) | differ) & all(0x80);
        let lowered = (bytes | is_other >> 2) & kept;
        Some(Self((lowered | (0x80 | (end - at) as u128) << 120).to_le_bytes()))
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

/// Returns the lowest byte of each unit, and which units have more than that.
fn narrow<U: Unit>(units: &[U; 16]) -> (u128, u128) {
    let mut out = [[0; 16]; 2];
    narrow_to(units, &mut out);
    let [bytes, above] = out.map(u128::from_le_bytes);
    (bytes, above)
}

#[inline(never)] // so that it is a few vector instructions
fn narrow_to<U: Unit>(units: &[U; 16], [bytes, above]: &mut [[u8; 16]; 2]) {
    for (byte, &unit) in bytes.iter_mut().zip(units) {
        let code: u32 = unit.into();
        #[allow(clippy::cast_possible_truncation)] // that is what is asked for
        (*byte = code as u8);
    }
    for (above, &unit) in above.iter_mut().zip(units) {
        *above = u8::from(unit.into() > 0xFF);
    }
}

/// Returns the bits of the first `length` bytes, if they are those of a short
/// word.
#[inline]
fn first_bytes(length: usize) -> Option<u128> {
    (length <= 15).then(|| !(u128::MAX << (8 * length)))
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
    /// those of its stem, but for a `y` that is an `i` there; the third, too,
    /// where one of both is outside ASCII; and such a stem is not in ASCII either.
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
mod short {
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
            let wide = ucs2(&[one.into()]);
            assert!(wide.is_some());
            assert_eq!(latin(&[one]), wide);
            for &two in &letters {
                let is_same = latin(&[b'x', one]) == latin(&[b'X', two]);
                assert_eq!(lowered(one) == lowered(two), is_same, "{one:X} {two:X}");
            }
        }
        assert_ne!(latin(b"ab"), Short::of(b"ab"));
        assert_eq!(None, latin(&[0xE9; 16]));
        assert_eq!(None, ucs2(&[0xE9, 0x153]));
    }

    /// Returns the key of a word with something behind it.
    fn latin(word: &[u8]) -> Option<Short> {
        let units = [word, &[b' '; 16]].concat();
        Short::of_latin(Text::Latin1(&units), 0, word.len())
    }

    fn ucs2(word: &[u16]) -> Option<Short> {
        let units = [word, &[0x4E00; 16]].concat();
        Short::of_latin(Text::Ucs2(&units), 0, word.len())
    }

    /// A word has the same key wherever it stands.
    #[test]
    fn keys_of_words_within_a_text() {
        let text = b"  Th\xE9s de la colline  et des jardins";
        for (at, end) in (0..20).flat_map(|at| (at + 1..=at + 15).map(move |end| (at, end))) {
            let expected = latin(&text[at..end]);
            assert_eq!(expected, Short::of_latin(Text::Latin1(text), at, end), "{at} {end}");
            let units: Vec<u16> = text.iter().map(|&unit| unit.into()).collect();
            assert_eq!(expected, Short::of_latin(Text::Ucs2(&units), at, end), "{at} {end}");
        }
    }

    /// Words have places of their own, of so many bits.
    #[test]
    fn words_spread() {
        let word = |at: u32| Short::of(format!("word{at}").as_bytes()).expect("it is short");
        let mut places: Vec<usize> = (0..1_000).map(|at| word(at).hash(13)).collect();
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 900 && places.last() < Some(&(1 << 13)), "{}", places.len());
    }

    /// A word of a folded text has the key of its lowercase, at each length.
    #[test]
    fn words_of_a_folded_text() {
        let text = b" Abcdefghijklmno1 ";
        for (at, end) in (1..=15).flat_map(|end| (1..end).map(move |at| (at, end))) {
            let key = Short::of(&text[at..end].to_ascii_lowercase());
            let expected = (at + 16 <= text.len()).then_some(key).flatten();
            assert_eq!(expected.map(|key| (key, true)), Short::at(text, at, end));
        }
        let (wide, long) = (b"ab\x80d            ", b"abcdefghijklmnop");
        assert_eq!([Some(true), Some(false)], [2, 3].map(|end| Some(Short::at(wide, 0, end)?.1)));
        assert_eq!([true, false], [15, 16].map(|end| Short::at(long, 0, end).is_some()));
    }
}

#[cfg(all(test, feature = "stemming"))]
mod tests {
    use super::*;

    /// The laws are below; these are quick.
    #[test]
    fn beginnings_of_some_stems() {
        let keeping: Vec<_> = languages()
            .filter(|name| Stemming::of(name).is_some_and(Stemming::keeps_two))
            .collect();
        assert_eq!(["english"], *keeping);
        for (language, stem, beginnings) in [
            ("english", "hope", Some(&["hop"][..])),
            ("english", "die", Some(&["di", "dy"])),
            ("english", "untie", Some(&["unti", "unty"])),
            ("english", "a", Some(&["a"])),
            ("english", "caf\u{e9}", Some(&["caf"])),
            ("english", "\u{e9}tui", Some(&[])),
            ("french", "cheval", Some(&["chev"])),
            ("french", "oi", Some(&["oi", "oy"])),
            ("italian", "oi", Some(&["oi"])),
            ("german", "haus", Some(&["hau", "haue", "haeu", "haeue"])),
            ("dutch", "huis", None),
        ] {
            let found = Stemming::of(language).expect("it is known").beginnings(stem.as_bytes());
            let expected =
                beginnings.map(|all| all.iter().map(|one| one.as_bytes().to_vec()).collect());
            assert_eq!(expected, found, "{language}: {stem}");
        }
    }

    /// A word of more than 64 characters is its own stem.
    #[test]
    fn long_words_stay_as_they_are() {
        let english = Stemming::of("english").expect("there is one");
        for letter in ["a", "\u{e9}"] {
            let start = |count: usize| format!("{}{letter}", "a".repeat(count - 4));
            let word = |count: usize| format!("{}ing", start(count));
            assert_eq!(start(64), english.stem(&word(64)));
            assert_eq!(word(65), english.stem(&word(65)));
        }
    }

    /// What a thread remembers is the stem in that language.
    #[test]
    fn stems_of_short_words() {
        let word = Short::of(b"katzen").expect("it is short");
        for _ in 0..3 {
            for (language, stem) in [("english", "katzen"), ("german", "katz")] {
                let stemming = Stemming::of(language).expect("there is one");
                assert_eq!(Short::of(stem.as_bytes()), stemming.of_short(word));
            }
        }
    }

    /// Every word outside ASCII begins with the first two characters of its
    /// stem, and the third outside ASCII, in a language that says so.
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
                        let third = |word: &str| word.chars().nth(2).filter(|c| !c.is_ascii());
                        assert_eq!(third(&word), third(&stem), "{word}: {stem}");
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
