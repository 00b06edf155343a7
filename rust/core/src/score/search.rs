//! How the terms of a query are found in texts.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ranking::Bm25;
use crate::scan::{Sight, Tally, TermScanner, WideTerms};
use crate::stem::{Short, Stemming};
use crate::stopwords::Stopwords;
use crate::terms::{fold, for_each_term, for_each_wide, lower, take_unspaced};
use crate::text::Text;

/// Counts the terms of a query in texts.
#[derive(Debug)]
pub(super) struct Search {
    terms: Terms,
    folded: Vec<u8>,
    scratch: Scratch,
}

/// How they are found.
#[derive(Debug)]
enum Terms {
    /// The scanners look for the terms, in ASCII and outside of it.
    Plain { scanner: Arc<TermScanner>, wide: Box<WideTerms>, words: Arc<HashMap<Vec<u8>, u32>> },
    /// Terms are stemmed before they are looked up.
    Stems(Box<Stems>),
}

impl Search {
    /// Prepares to look for terms that differ, stemmed if `bm25` says so. Each
    /// has its place as its number.
    pub(super) fn new(wanted: Vec<Vec<u8>>, bm25: &Bm25) -> Self {
        let numbered = wanted.into_iter().zip(0_u32..);
        Self::of(if let Some(stemming) = bm25.stemming {
            Terms::Stems(Box::new(Stems::new(stemming, &bm25.stopwords, numbered.collect())))
        } else {
            let (ascii, wide): (Vec<_>, Vec<_>) = numbered.partition(|(term, _)| term.is_ascii());
            let scanner = Arc::new(TermScanner::new(ascii));
            let words = Arc::new(wide.into_iter().collect());
            Terms::Plain { scanner, wide: wide_terms(&words), words }
        })
    }

    fn of(terms: Terms) -> Self {
        Self { terms, folded: Vec::new(), scratch: Scratch::default() }
    }

    /// Returns the same, with buffers of its own.
    pub(super) fn another(&self) -> Self {
        Self::of(match &self.terms {
            Terms::Plain { scanner, words, .. } => Terms::Plain {
                scanner: Arc::clone(scanner),
                wide: wide_terms(words),
                words: Arc::clone(words),
            },
            Terms::Stems(stems) => Terms::Stems(Box::new(stems.another())),
        })
    }

    /// Counts the terms and the words of a text.
    pub(super) fn count(&mut self, text: Text<'_>, tally: &mut Tally) {
        let Self { terms, folded, scratch } = self;
        match (terms, text) {
            (Terms::Plain { scanner, .. }, Text::Ascii(bytes)) => scanner.scan(bytes, tally),
            (Terms::Plain { scanner, wide, words }, _) => {
                fold(text, folded);
                let number = |text: Text<'_>, start, end, lowered: &mut Vec<u8>| {
                    lower_into(text.slice(start, end), lowered);
                    words.get(&**lowered).copied()
                };
                tally.words += find_wide(wide, (text, folded), false, scratch, tally, number);
                scanner.scan(folded, tally);
            }
            (Terms::Stems(stems), Text::Ascii(bytes)) if stems.scanner.is_some() => {
                stems.scan(bytes, &mut scratch.lowered, tally);
            }
            (Terms::Stems(stems), _) if stems.scanner.is_some() => {
                fold(text, folded);
                tally.words += stems.find_wide(text, folded, scratch, tally);
                stems.scan(folded, &mut scratch.lowered, tally);
            }
            (Terms::Stems(stems), _) => {
                fold(text, folded);
                for_each_term(text, folded, &mut scratch.lowered, |term| {
                    tally.words += 1;
                    stems.number(term).into_iter().for_each(|number| tally.add(number));
                });
            }
        }
    }
}

/// Buffers for the terms outside ASCII of a text.
#[derive(Debug, Default)]
struct Scratch {
    codes: Vec<u32>,
    lowered: Vec<u8>,
}

/// Counts the wanted terms outside ASCII, replaces the letters of scripts
/// without spaces with spaces, and returns the number of terms that they make.
/// `number` returns that of the word of a text from one place to another, if it
/// is wanted; where that is by its stem, `is_stemmed`.
fn find_wide(
    wide: &mut WideTerms,
    (text, folded): (Text<'_>, &mut [u8]),
    is_stemmed: bool,
    Scratch { codes, lowered }: &mut Scratch,
    tally: &mut Tally,
    mut number: impl FnMut(Text<'_>, usize, usize, &mut Vec<u8>) -> Option<u32>,
) -> u64 {
    let unspaced = wide.fold_unspaced(folded);
    if wide.is_idle() {
        return unspaced;
    }
    let text = text.decoded(codes);
    wide.count_unspaced(text, tally);
    wide.find_words(text, folded, is_stemmed, |sight| match sight {
        Sight::Word(number) => tally.add(number),
        Sight::Maybe(start, end) => {
            if let Some(number) = number(text, start, end, lowered) {
                tally.add(number);
            }
        }
    });
    unspaced
}

fn lower_into(word: Text<'_>, lowered: &mut Vec<u8>) {
    lowered.clear();
    lower(word, lowered);
}

/// Prepares to look for those of `wanted` that are not in ASCII.
fn wide_terms(wanted: &HashMap<Vec<u8>, u32>) -> Box<WideTerms> {
    let terms = wanted.iter().map(|(term, &number)| (term.as_slice(), number));
    Box::new(WideTerms::new(terms))
}

/// Finds the number of a word's stem. Stems each word once.
#[derive(Debug)]
struct Stems {
    stemming: Stemming,
    stopwords: Stopwords,
    wanted: Arc<HashMap<Vec<u8>, u32>>,
    /// The short ones of the wanted stems, by their keys.
    short: Vec<(u128, u32)>,
    /// Finds ASCII words that may have a wanted stem, where that is possible.
    scanner: Option<Arc<TermScanner>>,
    /// Finds other words that may have one, where that is possible.
    wide: Option<Box<WideTerms>>,
    /// Short words seen lately, by a part of their hash, each with the number
    /// of its stem if that is wanted.
    recent: Box<[(Short, Option<u32>)]>,
}

/// The number of bits of the place of a recent word.
const RECENT_BITS: u32 = 11;

fn nothing_recent() -> Box<[(Short, Option<u32>)]> {
    vec![(Short::NONE, None); 1 << RECENT_BITS].into_boxed_slice()
}

impl Stems {
    fn new(stemming: Stemming, stopwords: &Stopwords, wanted: HashMap<Vec<u8>, u32>) -> Self {
        let beginnings = wanted.keys().map(|stem| stemming.beginnings(stem));
        let beginnings = beginnings.collect::<Option<Vec<_>>>().map(|beginnings| {
            let mut beginnings = beginnings.concat();
            beginnings.sort_unstable();
            beginnings.dedup();
            beginnings
        });
        let scanner = beginnings.map(|some| Arc::new(TermScanner::of_beginnings(some)));
        let wide = stemming.keeps_two().then(|| wide_terms(&wanted));
        let key = |(stem, &number): (&Vec<u8>, _)| Some((Short::of(stem)?.key(), number));
        let mut short: Vec<_> = wanted.iter().filter_map(key).collect();
        short.sort_unstable();
        let (stopwords, wanted) = (stopwords.clone(), Arc::new(wanted));
        Self { stemming, stopwords, wanted, short, scanner, wide, recent: nothing_recent() }
    }

    /// Returns the same, with buffers of its own.
    fn another(&self) -> Self {
        Self {
            stemming: self.stemming,
            stopwords: self.stopwords.clone(),
            wanted: Arc::clone(&self.wanted),
            short: self.short.clone(),
            scanner: self.scanner.clone(),
            wide: self.wide.as_ref().map(|_| wide_terms(&self.wanted)),
            recent: nothing_recent(),
        }
    }

    /// Counts the ASCII words of `folded` that have a wanted stem, and all of
    /// its words.
    fn scan(&mut self, folded: &[u8], lowered: &mut Vec<u8>, tally: &mut Tally) {
        self.scanner.iter().for_each(|scanner| scanner.scan(folded, tally));
        let mut places = std::mem::take(&mut tally.places);
        for (at, end) in places.drain(..) {
            let number = match Short::at(folded, at, end) {
                Some((word, true)) => self.short_number(word),
                None if folded[at..end].is_ascii() => {
                    lowered.clear();
                    lowered.extend(folded[at..end].iter().map(u8::to_ascii_lowercase));
                    self.number(lowered)
                }
                Some((_, false)) | None => None,
            };
            if let Some(number) = number {
                tally.add(number);
            }
        }
        tally.places = places;
    }

    /// Counts the words outside ASCII that have a wanted stem, as [`find_wide`]
    /// does.
    fn find_wide(
        &mut self,
        text: Text<'_>,
        folded: &mut [u8],
        scratch: &mut Scratch,
        tally: &mut Tally,
    ) -> u64 {
        let Some(mut wide) = self.wide.take() else {
            for_each_wide(text, folded, &mut scratch.lowered, |term| {
                self.number(term).into_iter().for_each(|number| tally.add(number));
            });
            return take_unspaced(folded);
        };
        let number = |text: Text<'_>, start, end, lowered: &mut Vec<u8>| {
            self.wide_number(text, start, end, lowered)
        };
        let unspaced = find_wide(&mut wide, (text, folded), true, scratch, tally, number);
        self.wide = Some(wide);
        unspaced
    }

    /// Returns the number of the word from `start` to `end`, which is not in
    /// lowercase yet. The text has a unit for each character.
    fn wide_number(
        &mut self,
        text: Text<'_>,
        start: usize,
        end: usize,
        lowered: &mut Vec<u8>,
    ) -> Option<u32> {
        let latin = Short::of_latin(text, start, end);
        let place = latin.map(|latin| (latin, latin.hash(RECENT_BITS)));
        if let Some((latin, place)) = place
            && self.recent[place].0 == latin
        {
            return self.recent[place].1;
        }
        lower_into(text.slice(start, end), lowered);
        let number = self.number(lowered);
        if let Some((latin, place)) = place {
            self.recent[place] = (latin, number);
        }
        number
    }

    fn number(&mut self, word: &[u8]) -> Option<u32> {
        match Short::of(word) {
            Some(word) => self.short_number(word),
            None => self.long_number(word),
        }
    }

    fn short_number(&mut self, word: Short) -> Option<u32> {
        let place = word.hash(RECENT_BITS);
        if self.recent[place].0 != word {
            let number = match self.stemming.of_short(word) {
                Some(stem) => {
                    let at = self.short.binary_search_by_key(&stem.key(), |(key, _)| *key);
                    at.ok().and_then(|at| self.unless_stopword(word.bytes(), self.short[at].1))
                }
                None => self.long_number(word.bytes()),
            };
            self.recent[place] = (word, number);
        }
        self.recent[place].1
    }

    fn long_number(&self, word: &[u8]) -> Option<u32> {
        let number = *self.wanted.get(&*self.stemming.of_term(word))?;
        self.unless_stopword(word, number)
    }

    fn unless_stopword(&self, word: &[u8], number: u32) -> Option<u32> {
        (!self.stopwords.contains(word)).then_some(number)
    }
}

#[cfg(all(test, feature = "stemming"))]
mod tests {
    use super::*;

    /// Words are found by their stems, whether or not it is known how the words of a
    /// stem begin.
    #[test]
    fn stems_are_found_in_every_language() {
        for (language, texts) in [
            ("english", ["teas, pots", "teas, caf\u{e9} pots"]),
            ("dutch", ["theeen, potten", "theeen, caf\u{e9} potten"]),
        ] {
            let bm25 = Bm25 { stemming: Stemming::of(language), ..Bm25::default() };
            for text in texts {
                let wanted = bm25.terms_of(text.into());
                let count = u32::try_from(wanted.len()).expect("there are few");
                let mut search = Search::new(wanted, &bm25);
                let mut tally = Tally::new(count as usize);
                search.count(text.into(), &mut tally);
                let mut found = Vec::new();
                let words = tally.drain(|term, count| found.push((term, count)));
                assert_eq!(u64::from(count), words, "{text}");
                assert_eq!((0..count).map(|term| (term, 1)).collect::<Vec<_>>(), found, "{text}");
            }
        }
    }
}
