//! Finds the words of a text that may be one of a few words outside ASCII, by
//! their first characters.
//!
//! Most words are ruled out without being lowered or copied. Where words start
//! follows from the folded text, 64 places at once.

use memchr::memchr;

use super::Method;
use super::kernel::{ByteTable, MAX_WIDTH, alphanumeric, boundary};
use super::tally::{Places, Tally};
use super::wanted::{
    Found, Fronts, NONE, Pairs, Wanted, beginning, bits, codes_of, hash, write_hashes,
};
use crate::keywords::{end_of_keyword, starts_word};
use crate::text::letters::{UNSPACED, is_of_unspaced};
use crate::text::{OTHER, Text, Unit, with_units};

/// From so many letters among 64 on, all places are looked up.
const DENSE: u32 = 24;

/// A word of a text that is wanted.
pub(crate) enum Sight {
    /// The word of that number.
    Word(u32),
    /// Perhaps one: where it begins and ends.
    Maybe(usize, usize),
}

/// Finds terms outside ASCII, as BM25 has them.
#[derive(Debug)]
pub(crate) struct WideTerms {
    method: Method,
    letters: ByteTable,
    /// The terms of scripts without spaces, of one character or two.
    wanted_unspaced: Option<Pairs>,
    wanted_words: Option<Wanted>,
    /// Where the letters of scripts without spaces are: a bit for each place.
    unspaced: Vec<u64>,
    /// Where words are.
    words: Vec<u64>,
    /// Where their characters outside ASCII are.
    others: Vec<u64>,
    fronts: Fronts,
    hashes: Vec<u32>,
}

impl WideTerms {
    /// Prepares to look for those of `terms` that are not in ASCII, each with
    /// its number. They are in lowercase.
    pub(crate) fn new<'t>(terms: impl Iterator<Item = (&'t [u8], u32)>) -> Self {
        let (unspaced, words): (Vec<_>, Vec<_>) = terms
            .filter(|(term, _)| !term.is_ascii())
            .partition(|(term, _)| is_of_unspaced(codes_of(term)[0]));
        let pairs = unspaced.iter().map(|&(term, number)| (beginning(&codes_of(term)), number));
        let pairs: Vec<_> = pairs.collect();
        Self {
            method: Method::best(),
            letters: alphanumeric(),
            wanted_unspaced: (!pairs.is_empty()).then(|| Pairs::new(&pairs)),
            wanted_words: Wanted::new(words.into_iter()),
            unspaced: Vec::new(),
            words: Vec::new(),
            others: Vec::new(),
            fronts: Fronts::default(),
            hashes: Vec::new(),
        }
    }

    /// Returns whether no term is looked for.
    pub(crate) fn is_idle(&self) -> bool {
        self.wanted_unspaced.is_none() && self.wanted_words.is_none()
    }

    /// Replaces each [`UNSPACED`] of a folded text with a space, and returns the
    /// number of terms that they make. The text is looked at next.
    pub(crate) fn fold_unspaced(&mut self, folded: &mut [u8]) -> u64 {
        self.unspaced.clear();
        let has_unspaced = memchr(UNSPACED, folded).is_some();
        if has_unspaced {
            bits(self.method, &ByteTable::EMPTY, folded, true, &mut self.unspaced);
            for byte in folded.iter_mut() {
                *byte = if *byte == UNSPACED { b' ' } else { *byte };
            }
        }
        if has_unspaced || self.wanted_words.is_some() {
            bits(self.method, &self.letters, folded, true, &mut self.words);
        }
        for (unspaced, words) in self.unspaced.iter_mut().zip(&self.words) {
            *unspaced &= !words;
        }
        let count = |terms: u64, (_, seconds, alone): (usize, u64, u64)| {
            terms + u64::from(seconds.count_ones() + alone.count_ones())
        };
        self.unspaced_terms().fold(0, count)
    }

    /// Yields, for each 64 places, the first of them, where the second
    /// character of a term is, and where one stands alone.
    fn unspaced_terms(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let mut before = 0;
        self.unspaced.iter().enumerate().map(move |(block, &here)| {
            let behind = self.unspaced.get(block + 1).copied().unwrap_or(0);
            let seconds = here & (here << 1 | before >> 63);
            before = here;
            let alone = here & !seconds & !(here >> 1 | behind << 63);
            (MAX_WIDTH * block, seconds, alone)
        })
    }

    /// Counts each wanted term of a script without spaces. The text has a unit
    /// for each character.
    pub(crate) fn count_unspaced(&mut self, text: Text<'_>, tally: &mut Tally) {
        if let (Some(wanted), false) = (&self.wanted_unspaced, self.unspaced.is_empty()) {
            if let Some(fronts) = &wanted.fronts {
                with_units!(text, units => self.fronts.find(self.method, fronts, units, None));
            } else {
                with_units!(text, units => write_hashes(units, &mut self.hashes));
            }
            with_units!(text, units => self.unspaced_in(units, wanted, tally));
        }
    }

    fn unspaced_in<U: Unit>(&self, units: &[U], wanted: &Pairs, tally: &mut Tally) {
        let mut before = 0;
        for (at, mut seconds, alone) in self.unspaced_terms() {
            let from = at.saturating_sub(1);
            let pair = |place: usize| [units[place].into(), units[place + 1].into()];
            // Without a branch, as which pairs pass is hard to guess.
            if wanted.fronts.is_some() {
                let here = self.fronts.places[at / MAX_WIDTH];
                let places = Places(seconds & (here << 1 | before >> 63));
                before = here;
                let pass = |offset| wanted.may_have(hash(pair(at + offset - 1))) << offset;
                seconds = places.map(pass).fold(0, |passed, bit| passed | bit);
            } else if seconds.count_ones() >= DENSE {
                let hashes = &self.hashes[from..self.hashes.len().min(at + MAX_WIDTH - 1)];
                let pass = |(place, &hash): (usize, _)| wanted.may_have(hash) << place;
                let passed = hashes.iter().enumerate().map(pass);
                seconds &= passed.fold(0, |passed, bit| passed | bit) << (from + 1 - at);
            }
            let (mut terms, mut count) = ([0; MAX_WIDTH], 0);
            let mut note = |term: Option<u32>| {
                if let (Some(term), Some(place)) = (term, terms.get_mut(count)) {
                    (*place, count) = (term, count + 1);
                }
            };
            for offset in Places(seconds) {
                note(wanted.get(pair(at + offset - 1)));
            }
            for offset in Places(alone) {
                note(wanted.get([units[at + offset].into(), NONE]));
            }
            tally.add_all(&mut terms[..count]);
        }
    }

    /// Calls `visit` with each wanted word of a text, which has a unit for each
    /// character, and with each that may be one. All have a character outside
    /// ASCII. Where the wanted words are stems, those that also have ASCII may be
    /// one: `is_stemmed` then.
    pub(crate) fn find_words(
        &mut self,
        text: Text<'_>,
        folded: &[u8],
        is_stemmed: bool,
        visit: impl FnMut(Sight),
    ) {
        if let Some(wanted) = &self.wanted_words {
            if let Some(fronts) = &wanted.fronts {
                with_units!(text, units => {
                    self.fronts.find(self.method, fronts, units, Some(folded));
                });
            }
            if is_stemmed {
                bits(self.method, &ByteTable::EMPTY, folded, true, &mut self.others);
            }
            with_units!(text, units => self.words_in(units, wanted, folded, is_stemmed, visit));
        }
    }

    fn words_in<U: Unit>(
        &self,
        units: &[U],
        wanted: &Wanted,
        folded: &[u8],
        is_stemmed: bool,
        mut visit: impl FnMut(Sight),
    ) {
        let mut before = 0;
        for (block, &here) in self.words.iter().enumerate() {
            let mut starts = here & !(here << 1 | before >> 63);
            before = here;
            if wanted.fronts.is_some() {
                starts &= self.fronts.places[block];
            }
            if is_stemmed {
                starts = with_other(starts, here, self.others[block]);
            }
            let behind = self.words.get(block + 1).copied().unwrap_or(0);
            let seconds = here >> 1 | behind << 63;
            let begin = |offset: usize| {
                let at = MAX_WIDTH * block + offset;
                let has_second = seconds >> offset & 1 == 1;
                let second = if has_second { units[at + 1].into() } else { NONE };
                let third = if has_second { third_of(units, folded, at) } else { NONE };
                wanted.may_begin([units[at].into(), second, third]) << offset
            };
            // Without a branch, as above.
            let passed = Places(starts).map(begin).fold(0, |passed, bit| passed | bit);
            for at in Places(passed).map(|offset| MAX_WIDTH * block + offset) {
                let end = self.end_of_word(at);
                if is_stemmed && has_ascii(folded, at, end) {
                    let may_go_on = end >= MAX_WIDTH * (block + 1);
                    if !may_go_on || !folded[at..end].is_ascii() {
                        visit(Sight::Maybe(at, end));
                    }
                    continue;
                }
                match wanted.find(units, at, end) {
                    Found::Nothing => {}
                    Found::Word(number) => visit(Sight::Word(number)),
                    Found::Unsure => visit(Sight::Maybe(at, end)),
                }
            }
        }
    }

    fn end_of_word(&self, mut at: usize) -> usize {
        while let Some(bits) = self.words.get(at / MAX_WIDTH) {
            let size = (!(bits >> (at % MAX_WIDTH))).trailing_zeros() as usize;
            let rest = MAX_WIDTH - at % MAX_WIDTH;
            at += size.min(rest);
            if size < rest {
                break;
            }
        }
        at
    }
}

/// Returns those of `starts`, where some of `words` begin, whose words have one
/// of `others`, or go on to the last place and perhaps behind it.
#[inline]
fn with_other(starts: u64, words: u64, others: u64) -> u64 {
    let ascii = words & !others;
    // Each start moves on through ASCII, to what stands behind it.
    let (behind, goes_on) = ascii.overflowing_add(starts & ascii);
    let last = |starts: u64| if starts == 0 { 0 } else { 1 << starts.ilog2() };
    let found = starts & others | if goes_on { last(starts) } else { 0 };
    let arrived = Places(behind & others);
    arrived.fold(found, |found, place| found | last(starts & !(u64::MAX << place)))
}

/// Returns the third character of what begins at `at`, unless it is ASCII.
#[inline]
fn third_of<U: Unit>(units: &[U], folded: &[u8], at: usize) -> u32 {
    match (units.get(at + 2), folded.get(at + 2)) {
        (Some(&unit), Some(&OTHER)) => unit.into(),
        _ => NONE,
    }
}

/// Returns whether a word of a folded text has ASCII in it.
#[inline]
fn has_ascii(folded: &[u8], at: usize, end: usize) -> bool {
    match folded[at..].first_chunk() {
        Some(eight) if end - at < eight.len() => {
            let low = !u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
            low & !(u64::MAX << (8 * (end - at))) != 0
        }
        _ => folded[at..end].iter().any(u8::is_ascii),
    }
}

/// Buffers of [`WideKeywords`].
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    boundaries: Vec<u64>,
    fronts: Fronts,
}

/// Finds keywords outside ASCII.
#[derive(Debug)]
pub(crate) struct WideKeywords {
    method: Method,
    boundary: ByteTable,
    wanted: Wanted,
}

impl WideKeywords {
    /// Prepares to look for keywords, each with its number; None where there are
    /// none.
    pub(crate) fn new<'w>(keywords: impl Iterator<Item = (&'w [u8], u32)>) -> Option<Self> {
        let wanted = Wanted::new(keywords)?;
        Some(Self { method: Method::best(), boundary: boundary(), wanted })
    }

    /// Calls `visit` with each keyword of a text, which has a unit for each
    /// character, and with each word that may be one, until it returns false.
    pub(crate) fn scan(
        &self,
        text: Text<'_>,
        folded: &[u8],
        scratch: &mut Scratch,
        visit: impl FnMut(Sight) -> bool,
    ) {
        bits(self.method, &self.boundary, folded, false, &mut scratch.boundaries);
        if let Some(fronts) = &self.wanted.fronts {
            with_units!(text, units => {
                scratch.fronts.find(self.method, fronts, units, Some(folded));
            });
        }
        with_units!(text, units => self.scan_units(units, folded, scratch, visit));
    }

    fn scan_units<U: Unit>(
        &self,
        units: &[U],
        folded: &[u8],
        Scratch { boundaries, fronts }: &Scratch,
        mut visit: impl FnMut(Sight) -> bool,
    ) {
        let mut before = 1 << 63;
        for (block, &here) in boundaries.iter().enumerate() {
            let mut starts = !here & (here << 1 | before >> 63);
            before = here;
            if self.wanted.fronts.is_some() {
                starts &= fronts.places[block];
            }
            let begin = |offset: usize| {
                // The last place may be behind the text.
                let letter = |at: usize| units.get(at).map_or(NONE, |&unit| unit.into());
                let at = MAX_WIDTH * block + offset;
                let first = [letter(at), letter(at + 1), third_of(units, folded, at)];
                self.wanted.may_begin(first) << offset
            };
            // Without a branch, as above.
            let passed = Places(starts).map(begin).fold(0, |passed, bit| passed | bit);
            for offset in Places(passed) {
                let at = MAX_WIDTH * block + offset;
                let size = ((here >> offset).trailing_zeros() as usize).min(MAX_WIDTH - offset);
                let end = end_of_keyword(folded, (at + size).min(folded.len()));
                if at == end || !starts_word(folded, at) {
                    continue;
                }
                let sight = match self.wanted.find(units, at, end) {
                    Found::Nothing => continue,
                    // Only a sigma is lowered in two ways.
                    Found::Word(number) if !self.wanted.has_sigma(&units[at..end]) => {
                        Sight::Word(number)
                    }
                    Found::Word(_) | Found::Unsure => Sight::Maybe(at, end),
                };
                if !visit(sight) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keywords::{self, is_keyword};
    use crate::terms::{fold, for_each_wide, take_unspaced};

    /// Texts of letters with and without case, in several scripts, of marks and
    /// of signs; a fourth of them have hardly any spaces.
    fn noise() -> impl Iterator<Item = String> {
        const LETTERS: &str =
            "aéÉ яЯσΣ-ςİi\u{307}\u{212A}k茶绿か\u{3099}ก서7.(\n，\u{3000}\u{301}🍵";
        const RUNS: &str = "茶绿か\u{3099}ก서日本語なカナ文字é 🍵";
        let [spaced, unspaced] = [LETTERS, RUNS].map(|letters| letters.chars().collect::<Vec<_>>());
        let mut state = 7_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize
        };
        (0..4_000).map(move |round| {
            let letters = if round % 4 == 3 { &unspaced } else { &spaced };
            let few = 2 + round % letters.len();
            (0..next() % 200).map(|_| letters[next() % few.min(letters.len())]).collect()
        })
    }

    fn methods() -> Vec<Method> {
        Method::available()
    }

    /// Returns whether a word has the dot that a lowercased U+0130 has.
    fn has_dot(word: &[u8]) -> bool {
        word.windows(2).any(|two| two == "\u{307}".as_bytes())
    }

    /// Every method finds the terms that looking at each word finds, of many
    /// and of few.
    #[test]
    fn terms_are_found_as_by_looking_at_each() {
        const TERMS: [&str; 10] =
            ["é", "aя", "яя", "σσ", "i\u{307}a", "茶", "茶绿", "か\u{3099}", "ก서", "éσя"];
        check_terms(&TERMS);
        check_terms(&["яя", "σσ", "é"]);
        check_terms(&["ééя", "éaя", "aéa", "яσé", "茶"]);
        check_terms(&["ééi\u{307}", "éaé", "aéa", "茶"]);
        // Pairs that vectors compare, and more than those.
        for letters in ["茶绿か\u{3099}ก서", "茶绿か\u{3099}ก서日本語なカナ"] {
            let letters: Vec<String> = letters.chars().map(String::from).collect();
            let pairs =
                letters.iter().flat_map(|one| letters.iter().map(move |two| one.clone() + two));
            let all: Vec<String> = letters.iter().cloned().chain(pairs).collect();
            check_terms(&all.iter().map(String::as_str).collect::<Vec<_>>());
        }
        // More than are compared one by one have one hash.
        let middles =
            ["a", "é", "я"].map(|one| ["a", "é", "я"].map(|two| format!("éa{one}{two}é")));
        let alike: Vec<&str> = middles.iter().flatten().map(String::as_str).collect();
        check_terms(&[&["é", "a"][..], &alike].concat());
    }

    fn check_terms(wanted: &[&str]) {
        let wanted: Vec<(&[u8], u32)> =
            wanted.iter().zip(0..).map(|(term, number)| (term.as_bytes(), number)).collect();
        let mut all = 0;
        for text in noise() {
            let text = Text::from(text.as_str());
            let (mut folded, mut expected) = (Vec::new(), Vec::new());
            fold(text, &mut folded);
            for_each_wide(text, &folded, &mut Vec::new(), |term| {
                expected.extend(wanted.iter().find(|(one, _)| *one == term).map(|one| one.1));
            });
            expected.sort_unstable();
            all += expected.len();
            let mut plain = folded.clone();
            let unspaced = take_unspaced(&mut plain);
            for method in methods() {
                let mut wide = WideTerms { method, ..WideTerms::new(wanted.iter().copied()) };
                let (mut codes, mut spaced, mut found) = (Vec::new(), folded.clone(), Vec::new());
                let mut tally = Tally::new(wanted.len());
                let units = text.decoded(&mut codes);
                assert_eq!(unspaced, wide.fold_unspaced(&mut spaced), "{method:?}");
                assert_eq!(plain, spaced);
                wide.count_unspaced(units, &mut tally);
                tally.drain(|number, count| {
                    found.extend(std::iter::repeat_n(number, count as usize));
                });
                let of_unspaced = found.len();
                for is_stemmed in [false, true] {
                    found.truncate(of_unspaced);
                    wide.find_words(units, &spaced, is_stemmed, |sight| match sight {
                        Sight::Word(number) => found.push(number),
                        Sight::Maybe(start, end) => {
                            let mut lowered = Vec::new();
                            crate::terms::lower(units.slice(start, end), &mut lowered);
                            assert!(!lowered.is_ascii() || !is_stemmed);
                            // Others are known for sure.
                            let has_ascii = lowered.iter().any(u8::is_ascii);
                            assert!(has_dot(&lowered) || is_stemmed && has_ascii);
                            let is_it = |(one, _): &&(&[u8], u32)| *one == lowered;
                            found.extend(wanted.iter().find(is_it).map(|one| one.1));
                        }
                    });
                    let mut sorted = found.clone();
                    sorted.sort_unstable();
                    assert_eq!(expected, sorted, "{method:?} {text:?}");
                }
            }
        }
        assert!(all > 1_000);
    }

    /// ASCII is found anywhere in a word, and none around it.
    #[test]
    fn ascii_is_found_in_words_of_any_size() {
        for (at, size) in (0..3).flat_map(|at| (0..12).map(move |size| (at, size))) {
            let end = at + size;
            let mut folded = [b'a'; 20];
            folded[at..end].fill(0xd1);
            assert!(!has_ascii(&folded, at, end), "{at} {end}");
            for place in at..end {
                folded[place] = b'a';
                assert!(has_ascii(&folded, at, end), "{at} {end} {place}");
                folded[place] = 0xd1;
            }
        }
    }

    /// Every method finds the keywords that looking at each word finds, of many
    /// and of few.
    #[test]
    fn keywords_are_found_as_by_looking_at_each() {
        const KEYWORDS: [&str; 7] = ["éя", "σς", "σσ", "aя-σ", "i\u{307}", "茶绿", "é\u{301}"];
        check_keywords(&KEYWORDS);
        check_keywords(&["éя", "σς", "aя-σ"]);
        check_keywords(&["ééя", "éaя", "aéa", "é-σ"]);
        check_keywords(&["ééi\u{307}", "éaé", "aéa"]);
    }

    fn check_keywords(wanted: &[&str]) {
        let wanted: Vec<(&[u8], u32)> =
            wanted.iter().zip(0..).map(|(word, number)| (word.as_bytes(), number)).collect();
        let number = |word: &[u8]| wanted.iter().find(|(one, _)| *one == word).map(|one| one.1);
        let mut all = 0;
        for text in noise() {
            let text = Text::from(text.as_str());
            let (mut scratch, mut expected, mut lowered) = (Vec::new(), Vec::new(), Vec::new());
            let folded = text.fold(&mut scratch);
            keywords::for_each_word(text, folded, &mut lowered, |word| {
                expected.extend(number(word).filter(|_| is_keyword(word)));
            });
            all += expected.len();
            for method in methods() {
                let wide = WideKeywords::new(wanted.iter().copied()).expect("there are some");
                let wide = WideKeywords { method, ..wide };
                let (mut codes, mut found) = (Vec::new(), Vec::new());
                let units = text.decoded(&mut codes);
                wide.scan(units, folded, &mut Scratch::default(), |sight| {
                    found.extend(match sight {
                        Sight::Word(number) => Some(number),
                        Sight::Maybe(start, end) => {
                            lowered.clear();
                            keywords::lower(units.slice(start, end), &mut lowered);
                            let word = String::from_utf8_lossy(&lowered);
                            assert!(has_dot(&lowered) || word.contains(['σ', 'ς']));
                            number(&lowered)
                        }
                    });
                    true
                });
                assert_eq!(expected, found, "{method:?} {text:?}");
            }
        }
        assert!(all > 20 * wanted.len());
    }
}
