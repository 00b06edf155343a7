//! Links: texts that the best texts name by their headings.

use std::collections::HashSet;

use memchr::memmem;

use super::heading::heading;
use super::lexical::{QueryTerms, Scored, Signal, SignalKind, index};
use crate::chunk::Batch;
use crate::ranking::Bm25;
use crate::terms::{end_of, for_each_term_of, run_of};
use crate::text::Text;
use crate::text::letters::is_word;

/// The number of best texts: those that may name others.
pub(crate) const BEST: usize = 3;

/// The share of its source's score that a linked text gets.
pub(crate) const LINK: f64 = 0.2;

/// The most terms of a heading that is looked for.
pub(crate) const MAX_RUN: usize = 32;

/// Returns the places of the best scores above 0, best first; the first of
/// equal ones comes first.
pub(crate) fn best(scores: &[f64]) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(BEST + 1);
    let mut least = 0.0;
    for (place, &score) in scores.iter().enumerate() {
        if score > least {
            let at = best.partition_point(|&better| scores[better] >= score);
            best.insert(at, place);
            best.truncate(BEST);
            least = best.get(BEST - 1).map_or(0.0, |&last| scores[last]);
        }
    }
    best
}

/// Returns whether a text ranks behind another, each by its score and place.
#[allow(clippy::float_cmp)] // equal scores are the same to the bit
pub(crate) fn is_behind(one: (f64, usize), other: (f64, usize)) -> bool {
    one.0 < other.0 || (one.0 == other.0 && one.1 > other.1)
}

/// A text that may name others.
#[derive(Debug)]
pub(crate) struct Source {
    /// The terms of its heading, with a space between two.
    pub(crate) heading: Vec<u8>,
    /// The terms of the text, and those of the title, with a space around each.
    parts: [Vec<u8>; 2],
}

impl Source {
    pub(crate) fn new(batch: &impl Batch, place: usize) -> Self {
        let (text, title) = (batch.text(place), batch.title(place));
        let parts = [text, title].map(|part| spaced(&run_of(part)));
        Self { heading: run_of(heading(text, title)), parts }
    }

    /// Returns the terms of the text, and those of the title.
    pub(crate) fn terms(&self) -> [Vec<&[u8]>; 2] {
        self.parts
            .each_ref()
            .map(|part| part.split(|&byte| byte == b' ').filter(|term| !term.is_empty()).collect())
    }

    /// Returns whether the text or the title has that run of terms.
    fn contains(&self, run: &[u8]) -> bool {
        let run = spaced(run);
        self.parts.iter().any(|part| memmem::find(part, &run).is_some())
    }
}

/// How many headings are looked for in a source one by one. Each takes the time
/// of reading it.
const FEW: usize = 64;

/// Tells which of a few or many runs a source contains.
enum Named<'a> {
    Searched(&'a Source),
    Known(HashSet<&'a [u8]>),
}

impl<'a> Named<'a> {
    fn new(source: &'a Source, runs: &[&'a [u8]]) -> Self {
        if runs.len() <= FEW {
            return Self::Searched(source);
        }
        let mut wanted = HashSet::with_capacity(runs.len());
        // By what a run begins with, a bit for each length that runs have.
        let mut lengths = vec![0_u32; 1 << Key::BITS];
        for run in runs {
            let terms = 1 + memchr::memchr_iter(b' ', run).count();
            if terms <= MAX_RUN {
                lengths[Key::of(run.split(|&byte| byte == b' ')).place()] |= 1 << (terms - 1);
                wanted.insert(*run);
            }
        }
        let mut known = HashSet::new();
        for part in &source.parts {
            let spaces: Vec<usize> = memchr::memchr_iter(b' ', part).collect();
            let terms: Vec<_> = spaces.windows(2).map(|ends| &part[ends[0] + 1..ends[1]]).collect();
            for (at, start) in spaces.iter().take(terms.len()).enumerate() {
                let [one, two] = Key::both(&terms[at..]).map(|key| lengths[key.place()]);
                let mut rest = one & 1 | two & !1;
                while rest != 0 {
                    let behind = at + rest.trailing_zeros() as usize + 1;
                    rest &= rest - 1;
                    let window = spaces.get(behind).map(|&end| &part[start + 1..end]);
                    known.extend(window.and_then(|window| wanted.get(window)));
                }
            }
        }
        Self::Known(known)
    }

    fn has(&self, run: &[u8]) -> bool {
        match self {
            Self::Searched(source) => source.contains(run),
            Self::Known(runs) => runs.contains(run),
        }
    }
}

fn spaced(run: &[u8]) -> Vec<u8> {
    [b" ", run, b" "].concat()
}

/// Returns whether a heading may be linked: whether it has few terms, of which
/// the query has not all.
pub(crate) fn may_link(run: &[u8], query: &QueryTerms, bm25: &Bm25) -> bool {
    let terms = || run.split(|&byte| byte == b' ');
    let is_new = |term| bm25.stem_of(term).is_some_and(|stem| !query.has(&stem));
    terms().nth(MAX_RUN).is_none() && terms().any(is_new)
}

/// Links texts after reading them once.
#[derive(Debug, Default)]
pub(crate) struct Linker {
    /// For each text the [`Key`] of its heading.
    keys: Vec<u16>,
}

impl Linker {
    /// Notes the heading of the next text.
    pub(crate) fn read(&mut self, heading: Text<'_>) {
        let mut key = Key::default();
        match heading {
            Text::Ascii(bytes) => {
                let mut at = 0;
                while let Some(start) = bytes[at..].iter().position(|&byte| is_word(byte)) {
                    let end = end_of(bytes, at + start, is_word);
                    key.push(&bytes[at + start..end]);
                    if key.is_full() {
                        break;
                    }
                    at = end;
                }
            }
            _ => for_each_term_of(heading, |term| key.push(term)),
        }
        self.keys.push(key.number());
    }

    /// Adds what was noted of the texts behind these.
    pub(crate) fn extend(&mut self, behind: Self) {
        if self.keys.is_empty() {
            *self = behind;
        } else {
            self.keys.extend(behind.keys);
        }
    }

    /// Lets the best texts raise those whose headings they name.
    pub(crate) fn link(
        &self,
        batch: &impl Batch,
        query: &QueryTerms,
        bm25: &Bm25,
        scored: &mut Scored,
    ) {
        let places = best(&scored.scores);
        let sources: Vec<_> = places
            .iter()
            .map(|&place| (place, scored.scores[place], Source::new(batch, place)))
            .collect();
        let mut keys = vec![0_u64; 1 << 10];
        for terms in sources.iter().flat_map(|(_, _, source)| source.terms()) {
            for at in 0..terms.len() {
                for key in Key::both(&terms[at..]).map(Key::number) {
                    keys[usize::from(key >> 6)] |= 1 << (key & 63);
                }
            }
        }
        let mut candidates = Vec::new();
        for (at, &key) in self.keys.iter().enumerate() {
            if key != 0 && keys[usize::from(key >> 6)] & 1 << (key & 63) != 0 {
                candidates.push((at, run_of(heading(batch.text(at), batch.title(at)))));
            }
        }
        let runs: Vec<&[u8]> = candidates.iter().map(|(_, run)| run.as_slice()).collect();
        let named: Vec<_> =
            sources.iter().map(|(_, _, source)| Named::new(source, &runs)).collect();
        for (at, run) in &candidates {
            let own = (scored.scores[*at], *at);
            let source = sources.iter().zip(&named).find(|((place, score, source), named)| {
                is_behind(own, (*score, *place)) && *run != source.heading && named.has(run)
            });
            if let Some((&(place, score, _), _)) = source.filter(|_| may_link(run, query, bm25)) {
                let kind = SignalKind::Link(index(place));
                scored.signals.push(Signal { chunk: index(*at), kind, added: LINK * score });
            }
        }
        let links = scored.signals.iter().filter(|link| matches!(link.kind, SignalKind::Link(_)));
        links.for_each(|link| scored.scores[link.chunk as usize] += link.added);
    }
}

/// A number of the first two terms of a run, in any case. Few runs share it.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    hash: u32,
    terms: u32,
}

impl Key {
    /// The number of bits of a [`place`](Self::place).
    const BITS: u32 = 12;

    /// Returns the key of a run of these terms.
    fn of<'t>(terms: impl Iterator<Item = &'t [u8]>) -> Self {
        terms.take(2).fold(Self::default(), |mut key, term| {
            key.push(term);
            key
        })
    }

    /// Returns the keys of the first of these terms and of the first two.
    fn both(terms: &[&[u8]]) -> [Self; 2] {
        [1, 2].map(|size| Self::of(terms.iter().take(size).copied()))
    }

    /// Returns where a table has what belongs to the key.
    fn place(self) -> usize {
        usize::from(self.number() >> (u16::BITS - Self::BITS))
    }

    fn push(&mut self, term: &[u8]) {
        if !self.is_full() {
            self.hash = term.iter().fold(self.hash ^ self.terms, |hash, &byte| {
                (hash.rotate_left(5) ^ u32::from(byte | 0x20)).wrapping_mul(0x9E37_79B9)
            });
            self.terms += 1;
        }
    }

    fn is_full(self) -> bool {
        self.terms == 2
    }

    /// Returns the number; 0 without any term.
    #[allow(clippy::cast_possible_truncation)] // the high bits are mixed best
    fn number(self) -> u16 {
        if self.terms == 0 { 0 } else { ((self.hash >> 16) as u16).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first() {
        assert_eq!(best(&[0.0, 2.0, 1.0, 2.0, 3.0, 0.5, 2.0]), [4, 1, 3]);
        assert_eq!(best(&[0.0, 0.0, 0.1]), [2]);
        assert!(best(&[]).is_empty());
    }

    #[test]
    fn a_run_stands_between_words() {
        let source = Source {
            heading: Vec::new(),
            parts: [spaced(b"in the new york times ba a a"), spaced(b"york")],
        };
        for run in ["in", "new york", "times", "york", "in the new york times", "a a"] {
            assert!(source.contains(run.as_bytes()), "{run}");
        }
        for run in ["n", "ew york", "new yor", "york the", "times york", "a a a"] {
            assert!(!source.contains(run.as_bytes()), "{run}");
        }
    }

    #[test]
    fn many_runs_are_found_as_few_are() {
        let source = Source {
            heading: Vec::new(),
            parts: [spaced(b"in the new york times ba a a"), spaced(b"")],
        };
        let filler: Vec<String> = (0..FEW).map(|i| format!("in the {i}")).collect();
        let runs =
            ["in", "new york", "a a", "in the new york times ba a a", "n", "ew york", "a a a"];
        let runs: Vec<&[u8]> =
            runs.into_iter().chain(filler.iter().map(String::as_str)).map(str::as_bytes).collect();
        let named = Named::new(&source, &runs);
        assert!(matches!(named, Named::Known(_)));
        for run in runs {
            assert_eq!(source.contains(run), named.has(run));
        }
    }

    #[test]
    fn runs_have_keys_of_their_own() {
        let words: Vec<String> = (0..300).map(|number| format!("word{number}")).collect();
        let key = |terms: &[&str]| Key::of(terms.iter().map(|term| term.as_bytes()));
        let places: std::collections::HashSet<usize> =
            words.iter().map(|word| key(&["tea", word]).place()).collect();
        // Of 4,096.
        assert!(places.len() > 270 && places.iter().max() > Some(&3_500), "{}", places.len());
        let numbers: std::collections::HashSet<u16> =
            words.iter().map(|word| key(&[word]).number()).collect();
        assert!(numbers.len() > 290, "{}", numbers.len());
        assert_eq!(key(&["TEA", "rye"]).number(), key(&["tea", "RYE", "bread"]).number());
        assert_ne!(key(&["tea"]).number(), key(&["tea", "tea"]).number());
        assert_ne!(key(&["tea", "rye"]).number(), key(&["rye", "tea"]).number());
        assert_ne!(key(&["a", "ab"]).number(), key(&["aa", "b"]).number());
        assert_eq!((0, 0), (Key::default().number(), Key::default().place()));
    }

    #[test]
    fn of_equal_scores_the_later_is_behind() {
        assert!(is_behind((1.0, 0), (2.0, 1)) && is_behind((1.0, 2), (1.0, 1)));
        assert!(!is_behind((1.0, 1), (1.0, 1)) && !is_behind((1.0, 0), (1.0, 1)));
        assert!(!is_behind((2.0, 9), (1.0, 1)));
    }
}
