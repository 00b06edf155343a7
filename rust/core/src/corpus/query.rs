//! Scoring a corpus by its postings: the same scores as by reading the texts,
//! to the bit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Index;
use super::found::Found;
use super::list::List;
use super::norms::Norms;
use super::part::Part;
use super::postings::Postings;
use super::sums::{Adder, Row};
use crate::chunk::Batch;
use crate::ranking::{Bm25, Lexical};
use crate::score::bm25::idf;
use crate::score::feedback::{EXPANSION, FEEDBACK, Feedback, LEAST_FREQUENCY, candidates};
use crate::score::lexical::{QueryTerms, Signal, SignalKind};
use crate::score::link::{BEST, LINK, MAX_RUN, Source, is_behind, may_link};
use crate::terms;
use crate::text::Text;

/// Scoring a posting takes as long as reading this many code points, and a
/// chunk that has none of the terms takes half of that.
const SCORING: usize = 8;

/// Stemming a term takes as long as reading this many code points.
const STEMMING: usize = 1_000;

/// Counting the words of a heading takes as long as reading this many.
const COUNTING: usize = 100;

/// Taking links and feedback from the best chunks takes, for each of their
/// terms, as long as reading this many; where headings repeat, still longer.
const FOLLOWING: usize = 300;

/// Selects the postings of words or those of headings.
pub(super) type Select = fn(&Part) -> &Postings;

pub(super) const WORDS: Select = |part| &part.words;
const HEADINGS: Select = |part| &part.headings;

/// The lists of a query's terms.
pub(crate) struct Query<'a> {
    index: &'a Index,
    lexical: &'a Lexical,
    wanted: QueryTerms,
    /// For each term its lists and how many chunks have it.
    terms: Vec<(Vec<Row>, u64)>,
    headings: Vec<Vec<Row>>,
}

impl Index {
    /// Returns how many code points are read in the time that finding the lists
    /// of a query takes.
    pub(crate) fn query_cost(&self, lexical: &Lexical) -> usize {
        let costs = self.parts.iter().map(|part| {
            let (unstemmed, uncounted) = part.unknown(&lexical.bm25, lexical.headings);
            STEMMING * unstemmed + COUNTING * uncounted
        });
        costs.sum()
    }

    /// Returns the lists for scoring `query`; None if it asks for a word that
    /// has no list.
    pub(crate) fn query<'a>(&'a self, query: Text<'_>, lexical: &'a Lexical) -> Option<Query<'a>> {
        let query = QueryTerms::of(query, lexical);
        if has_unlisted(&lexical.bm25, |stem| query.has(stem)) {
            return None;
        }
        let terms = query.wanted.iter();
        let terms = terms.map(|term| {
            let rows = self.rows_of(WORDS, term, &lexical.bm25);
            (rows, self.frequency(term, lexical))
        });
        let terms = terms.collect();
        let mut headings = Vec::new();
        if lexical.headings {
            self.parts.iter().for_each(|part| drop(part.sizes(&lexical.bm25)));
            let terms = query.wanted.iter();
            headings.extend(terms.map(|term| self.rows_of(HEADINGS, term, &lexical.bm25)));
        }
        Some(Query { index: self, lexical, wanted: query, terms, headings })
    }

    /// Returns the rows of a stem or, without stemming, of a term.
    pub(super) fn rows_of(&self, select: Select, term: &[u8], bm25: &Bm25) -> Vec<Row> {
        self.rows(select, |postings| match bm25.stemming {
            Some(stemming) => postings.find_stem(term, stemming, &bm25.stopwords),
            None => postings.find(term).into_iter().collect(),
        })
    }

    /// Returns how many chunks have a stem or, without stemming, a term; at
    /// least as many as the statistics say.
    fn frequency(&self, term: &[u8], lexical: &Lexical) -> u64 {
        let bm25 = &lexical.bm25;
        let of = |part: &Arc<Part>| match bm25.stemming {
            Some(stemming) => part.words.frequency_of_stem(term, stemming, &bm25.stopwords),
            None => part.words.find(term).map_or(0, |list| list.frequency),
        };
        let found = self.parts.iter().map(|part| u64::from(of(part))).sum();
        lexical.statistics.as_ref().map_or(found, |known| known.frequency_of(term).max(found))
    }

    /// Returns a number that the chunks with a stem are not below.
    fn least_frequency(&self, term: &[u8], lexical: &Lexical) -> u64 {
        let bm25 = &lexical.bm25;
        let postings = self.parts.iter().map(|part| &part.words);
        let least = postings.map(|words| match bm25.stemming {
            Some(stemming) => words.least_frequency(term, stemming, &bm25.stopwords),
            None => words.find(term).map_or(0, |list| list.frequency),
        });
        let least = least.map(u64::from).sum();
        lexical.statistics.as_ref().map_or(least, |known| known.frequency_of(term).max(least))
    }

    /// Returns the rows of the lists that `find` finds.
    fn rows<'a>(
        &'a self,
        select: Select,
        find: impl Fn(&'a Postings) -> Vec<List<'a>>,
    ) -> Vec<Row> {
        let parts = self.parts.iter().enumerate();
        let rows = parts.flat_map(|(part, of)| {
            let lists = find(select(of)).into_iter();
            lists.map(move |list| Row { part, row: list.row })
        });
        rows.collect()
    }

    /// Returns the list of a word.
    pub(super) fn list(&self, Row { part, row }: Row) -> List<'_> {
        self.parts[part].words.entry(row as usize).1
    }

    #[allow(clippy::cast_precision_loss)] // no corpus has 2^53 words
    pub(super) fn norms(&self, k1: f64, b: f64, average: Option<f64>) -> Norms<'_> {
        let average = average.unwrap_or_else(|| self.total_length as f64 / self.len() as f64);
        Norms::new(&self.columns.lengths, average, k1, b, self.longest)
    }
}

/// Returns whether a word that has no list has one of the stems.
fn has_unlisted(bm25: &Bm25, has: impl Fn(&[u8]) -> bool) -> bool {
    bm25.stopwords.english_besides().any(|word| bm25.stem_of(word).is_some_and(|stem| has(&stem)))
}

impl Query<'_> {
    /// Returns how many code points are read in the time that scoring all chunks
    /// takes.
    pub(crate) fn cost(&self) -> usize {
        let of_row = |&Row { part, row }: &Row, select: Select| {
            select(&self.index.parts[part]).entry(row as usize).1.frequency as usize
        };
        let words = self.terms.iter().flat_map(|(rows, _)| rows).map(|row| of_row(row, WORDS));
        let headings = self.headings.iter().flatten().map(|row| of_row(row, HEADINGS));
        let found: usize = words.chain(headings).sum();
        let scoring = SCORING * found + SCORING / 2 * self.index.len();
        let follows = self.lexical.links || self.lexical.feedback;
        scoring + if follows { FOLLOWING * self.index.longest as usize } else { 0 }
    }

    /// Returns what the scores are sums of. Where feedback needs words that have
    /// no list, it remains to be added: then also what reads the texts for it.
    ///
    /// For each chunk the order is that of
    /// [`LexicalScorer`](crate::score::lexical::LexicalScorer). The result means
    /// nothing once `stop` is set.
    pub(crate) fn found(&self, batch: &impl Batch, stop: &AtomicBool) -> (Found, Option<Feedback>) {
        let Lexical { bm25, links, feedback, .. } = self.lexical;
        let idf: Vec<f64> = self.terms.iter().map(|(_, frequency)| self.idf(*frequency)).collect();
        let average = self.lexical.statistics.as_ref().and_then(|known| known.average());
        let mut found = Found::new(bm25, average);
        let norms = found.norms(self.index);
        for (((rows, _), idf), repeated) in self.terms.iter().zip(&idf).zip(&self.wanted.repeated) {
            found.adders.push(Adder::Term { weight: idf * repeated, rows: rows.clone() });
        }
        self.add_headings(&idf, &mut found);
        if !(*links || *feedback) {
            return (found, None);
        }
        let (best, _) = found.sums(self.index, &norms).best(BEST, |_| true, |_, _| true);
        let mut best: Vec<(f64, u32)> =
            best.into_iter().map(|((_, chunk), score)| (score, chunk)).collect();
        if *links {
            self.link(batch, &mut best, &mut found, &norms);
        }
        // Links raise some scores, and the first of equal ones is the best.
        let best = best
            .into_iter()
            .max_by(|(one, place), (other, at)| one.total_cmp(other).then(at.cmp(place)));
        let best = best.filter(|_| *feedback);
        let rest = best.and_then(|(_, best)| self.feed_back(batch, best, &mut found, &norms, stop));
        (found, rest)
    }

    #[allow(clippy::cast_precision_loss)] // no corpus has 2^53 chunks
    fn idf(&self, frequency: u64) -> f64 {
        let chunks = self.index.len() as u64;
        let known = self.lexical.statistics.as_ref();
        let chunks = known.map_or(chunks, |known| known.chunks().max(chunks));
        idf(chunks as f64, frequency as f64)
    }

    fn add_headings(&self, idf: &[f64], found: &mut Found) {
        let mut all: Vec<(u32, u32)> = Vec::new();
        for (term, rows) in (0..).zip(&self.headings) {
            for row in rows {
                let list = self.index.parts[row.part].headings.entry(row.row as usize).1;
                list.for_each(|posting| all.push((posting.chunk, term)));
            }
        }
        all.sort_unstable();
        all.dedup(); // forms of one stem
        let mut numbers = Vec::new();
        let mut all = all.chunk_by(|(one, _), (other, _)| one == other).peekable();
        for part in &self.index.parts {
            if all.peek().is_none() {
                break;
            }
            let (sizes, range) = (part.sizes(&self.lexical.bm25), part.range());
            while let Some(terms) = all.next_if(|terms| (terms[0].0 as usize) < range.end) {
                let chunk = terms[0].0;
                let size = (chunk as usize).checked_sub(range.start).and_then(|at| sizes.get(at));
                let Some(size @ 1..) = size else {
                    continue; // a damaged file's list may name any chunk
                };
                let sum = terms.iter().fold(0.0, |sum, &(_, term)| sum + idf[term as usize]);
                let count = u32::try_from(terms.len()).expect("a query's terms were numbered");
                let added = sum * (f64::from(count) / f64::from(size));
                let kind = SignalKind::Heading { is_whole: count == size };
                numbers.push((chunk, added));
                found.signals.push(Signal { chunk, kind, added });
            }
        }
        found.adders.push(Adder::Numbers(numbers));
    }

    /// Lets the best chunks, with their scores, raise those whose headings they
    /// name, and adds these.
    fn link(
        &self,
        batch: &impl Batch,
        best: &mut Vec<(f64, u32)>,
        found: &mut Found,
        norms: &Norms<'_>,
    ) {
        let mut named: Vec<(u32, usize)> = Vec::new();
        for (nth, &(_, place)) in best.iter().enumerate() {
            let source = Source::new(batch, place as usize);
            self.for_each_named(&source, |chunk| named.push((chunk, nth)));
        }
        named.sort_unstable();
        named.dedup();
        let mut chunks: Vec<u32> = named.iter().map(|(chunk, _)| *chunk).collect();
        chunks.dedup();
        self.index.keep_known(&mut chunks);
        let own = found.sums(self.index, norms).of(&chunks);
        let mut linked: Vec<Signal> = Vec::new();
        let mut scores = chunks.iter().zip(own).peekable();
        for (chunk, nth) in named {
            while scores.next_if(|(other, _)| **other < chunk).is_some() {}
            let Some(&(&of, own)) = scores.peek() else { break };
            let (score, source) = best[nth];
            let is_first = linked.last().is_none_or(|last| last.chunk != chunk);
            let is_behind = is_behind((own, chunk as usize), (score, source as usize));
            if of == chunk && is_first && is_behind {
                let kind = SignalKind::Link(source);
                linked.push(Signal { chunk, kind, added: LINK * score });
            }
        }
        let numbers = linked.iter().map(|signal| (signal.chunk, signal.added)).collect();
        found.adders.push(Adder::Numbers(numbers));
        let chunks: Vec<u32> = linked.iter().map(|signal| signal.chunk).collect();
        let raised = found.sums(self.index, norms).of(&chunks);
        best.extend(raised.into_iter().zip(chunks));
        found.signals.extend(linked);
    }

    /// Calls `visit` with each chunk that may be linked and whose heading stands
    /// in the text or title of `source`.
    fn for_each_named(&self, source: &Source, mut visit: impl FnMut(u32)) {
        let parts = source.terms();
        // Most words begin no heading, and no run is looked for twice.
        let (mut begins, mut seen) = (HashMap::new(), HashSet::new());
        for terms in &parts {
            for (at, &term) in terms.iter().enumerate() {
                let window = &terms[at..terms.len().min(at + MAX_RUN)];
                let parts = &self.index.parts;
                let begins = begins
                    .entry(term)
                    .or_insert_with(|| parts.iter().any(|part| next_run(part, term).is_some()));
                if *begins && seen.insert(window) {
                    self.for_each_beginning(window, source, &mut visit);
                }
            }
        }
    }

    /// Calls `visit` with each such chunk whose heading begins `terms`.
    fn for_each_beginning(&self, terms: &[&[u8]], source: &Source, visit: &mut impl FnMut(u32)) {
        for part in &self.index.parts {
            let mut run = Vec::new();
            for term in terms {
                terms::push(&mut run, term);
                let Some((heading, list)) = next_run(part, &run) else { break };
                let is_named = heading == run && run != source.heading;
                if is_named && may_link(&run, &self.wanted, &self.lexical.bm25) {
                    list.for_each(|posting| visit(posting.chunk));
                }
            }
        }
    }

    /// Adds the strongest words of the best chunk.
    fn feed_back(
        &self,
        batch: &impl Batch,
        best: u32,
        found: &mut Found,
        norms: &Norms<'_>,
        stop: &AtomicBool,
    ) -> Option<Feedback> {
        let Self { index, lexical, .. } = self;
        let bm25 = &lexical.bm25;
        let words = candidates(batch, best as usize, &self.wanted, bm25, stop);
        if has_unlisted(bm25, |stem| words.contains_key(stem)) {
            return Some(Feedback::new(best as usize, words, lexical));
        }
        let norm = norms.of(best)?;
        let strength = |count: u32, idf: f64| idf * norms.saturated(count, norm);
        // Counting the chunks with a common word takes time, so first comes what
        // may be strongest.
        let bounds = words.iter().map(|(word, &count)| {
            let least = index.least_frequency(word, lexical).max(LEAST_FREQUENCY);
            (strength(count, self.idf(least)), word, count)
        });
        let mut bounds: Vec<_> = bounds.collect();
        bounds.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        let mut strong: Vec<Strong<'_>> = Vec::with_capacity(EXPANSION + 1);
        for (bound, word, count) in bounds {
            if strong.get(EXPANSION - 1).is_some_and(|last| last.strength > bound) {
                break;
            }
            let frequency = index.frequency(word, lexical);
            if frequency >= LEAST_FREQUENCY {
                let idf = self.idf(frequency);
                let found = Strong { strength: strength(count, idf), word, idf };
                let at = strong.partition_point(|other| other.is_before(&found));
                strong.insert(at, found);
                strong.truncate(EXPANSION);
            }
        }
        let largest = strong.first().map(|first| first.strength).filter(|&most| most > 0.0)?;
        found.fed = Some((best, found.adders.len()));
        for Strong { strength, word, idf } in strong {
            let weight = (FEEDBACK * (strength / largest)) * idf;
            found.adders.push(Adder::Term { weight, rows: index.rows_of(WORDS, word, bm25) });
        }
        None
    }
}

/// Returns the first heading that begins with these terms, and its list.
fn next_run<'a>(part: &'a Part, terms: &[u8]) -> Option<(&'a [u8], List<'a>)> {
    let found = part.runs.entry_from(terms)?;
    let rest = found.0.strip_prefix(terms)?;
    rest.first().is_none_or(|&byte| byte == b' ').then_some(found)
}

/// A word of the best chunk.
struct Strong<'a> {
    strength: f64,
    word: &'a [u8],
    idf: f64,
}

impl Strong<'_> {
    fn is_before(&self, other: &Self) -> bool {
        other.strength.total_cmp(&self.strength).then(self.word.cmp(other.word)).is_lt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Documents;

    /// A chunk that may be read for its links and words counts, its title too.
    #[test]
    fn a_long_chunk_takes_time() {
        let chunks = [crate::Chunk::new("tea").title("rye ".repeat(10_000))];
        let index = Index::new(&Documents::new(&chunks));
        let cost = |links, feedback| {
            let lexical = Lexical { links, feedback, ..Lexical::default() };
            index.query("tea".into(), &lexical).expect("it has a list").cost()
        };
        assert!(cost(false, false) < 100);
        for (links, feedback) in [(true, false), (false, true)] {
            assert!(cost(links, feedback) > 10_000 * FOLLOWING);
        }
    }

    /// What is not known yet takes time, and each posting.
    #[test]
    #[cfg(feature = "stemming")]
    fn costs_are_those_of_what_is_done() {
        let texts = ["# Brewed teas\nbrewing tea", "tea", "rye bread", "rye tea"];
        let index = Index::new(&Documents::new(&texts));
        let plain = Lexical { links: false, feedback: false, ..Lexical::default() };
        let bare = Lexical { headings: false, ..plain.clone() };
        let [part] = &*index.parts else { panic!("it has one part") };
        let (words, headings) = (part.words.rows(), part.headings.rows());
        assert_eq!((6, 2), (words, headings));
        assert_eq!(STEMMING * words, index.query_cost(&bare));
        assert_eq!(STEMMING * (words + headings) + 4 * COUNTING, index.query_cost(&plain));
        let cost = |lexical| index.query("tea".into(), lexical).expect("it has a list").cost();
        // `tea` is in three chunks, and `teas` in one and in its heading.
        assert_eq!(SCORING * 4 + SCORING / 2 * 4, cost(&bare));
        assert_eq!(SCORING * 5 + SCORING / 2 * 4, cost(&plain));
        assert_eq!((0, 0), (index.query_cost(&bare), index.query_cost(&plain)));
        let longest = index.longest as usize;
        let follows = Lexical { feedback: true, ..bare.clone() };
        assert_eq!(SCORING * 6 + FOLLOWING * longest, cost(&follows));
    }

    #[test]
    #[cfg(feature = "stemming")]
    fn no_fewer_chunks_have_a_stem_than_one_of_its_terms() {
        let texts = ["teas", "tea", "rye bread", "rye tea", "tea and teas"];
        let index = Index::new(&Documents::new(&texts));
        let lexical = Lexical::default();
        assert_eq!(
            [4, 3],
            [index.frequency(b"tea", &lexical), index.least_frequency(b"tea", &lexical)]
        );
        assert_eq!(0, index.least_frequency(b"milk", &lexical));
        let stopwords = crate::Stopwords::of_terms([b"tea".to_vec()].into());
        let bm25 = Bm25 { stopwords, ..Lexical::default().bm25 };
        let own = Lexical { bm25, ..Lexical::default() };
        assert_eq!([2, 2], [index.frequency(b"tea", &own), index.least_frequency(b"tea", &own)]);
    }
}
