//! Scoring a corpus by its postings: the same scores as by reading the texts,
//! to the bit.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::Index;
use super::part::Part;
use super::postings::{List, Postings};
use crate::chunk::Batch;
use crate::ranking::{Bm25, Lexical};
use crate::score::bm25::idf;
use crate::score::feedback::{EXPANSION, FEEDBACK, Feedback, LEAST_FREQUENCY, candidates};
use crate::score::lexical::{QueryTerms, Scored, Signal, SignalKind};
use crate::score::link::{LINK, MAX_RUN, Source, best, is_behind, may_link};
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

/// The lists of a term, each with its postings.
pub(super) type Lists<'a> = Vec<(&'a Postings, List<'a>)>;

/// Returns how many chunks have the term.
pub(super) fn frequency(lists: &Lists<'_>) -> u64 {
    lists.iter().map(|(_, list)| u64::from(list.frequency)).sum()
}

/// Selects the postings of words or those of headings.
type Select = fn(&Part) -> &Postings;

const WORDS: Select = |part| &part.words;
const HEADINGS: Select = |part| &part.headings;

/// The lists of a query's terms.
pub(crate) struct Query<'a> {
    index: &'a Index,
    lexical: &'a Lexical,
    wanted: QueryTerms,
    terms: Vec<Lists<'a>>,
    /// The lists of the headings with each term.
    headings: Vec<Lists<'a>>,
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
        let lists = |select| {
            let terms = query.wanted.iter();
            terms.map(|term| self.lists_of(select, term, &lexical.bm25)).collect()
        };
        let (terms, headings) =
            (lists(WORDS), if lexical.headings { lists(HEADINGS) } else { Vec::new() });
        if lexical.headings {
            self.parts.iter().for_each(|part| drop(part.sizes(&lexical.bm25)));
        }
        Some(Query { index: self, lexical, wanted: query, terms, headings })
    }

    /// Returns the lists of a stem or, without stemming, of a term.
    fn lists_of<'a>(&'a self, select: Select, term: &[u8], bm25: &Bm25) -> Lists<'a> {
        self.lists(select, |postings| match bm25.stemming {
            Some(stemming) => postings.find_stem(term, stemming, &bm25.stopwords),
            None => postings.find(term),
        })
    }

    /// Returns a number that the chunks with a stem are not below.
    fn least_frequency(&self, term: &[u8], bm25: &Bm25) -> u64 {
        let postings = self.parts.iter().map(|part| &part.words);
        let least = postings.map(|words| match bm25.stemming {
            Some(stemming) => words.least_frequency(term, stemming, &bm25.stopwords),
            None => words.find(term).map_or(0, |list| list.frequency),
        });
        least.map(u64::from).sum()
    }

    /// Returns the lists that `find` finds, each with its postings.
    pub(super) fn lists<'a>(
        &'a self,
        select: Select,
        find: impl Fn(&'a Postings) -> Option<List<'a>>,
    ) -> Lists<'a> {
        let postings = self.parts.iter().map(|part| select(part));
        postings.filter_map(|postings| Some((postings, find(postings)?))).collect()
    }
}

/// Returns whether a word that has no list has one of the stems.
fn has_unlisted(bm25: &Bm25, has: impl Fn(&[u8]) -> bool) -> bool {
    bm25.stopwords.english_besides().any(|word| bm25.stem_of(word).is_some_and(|stem| has(&stem)))
}

impl Query<'_> {
    /// Returns how many code points are read in the time that scoring takes.
    pub(crate) fn cost(&self) -> usize {
        let lists = self.terms.iter().chain(&self.headings).flatten();
        let found = lists.map(|(_, list)| list.frequency as usize);
        let scoring = SCORING * found.sum::<usize>() + SCORING / 2 * self.index.len();
        let follows = self.lexical.links || self.lexical.feedback;
        scoring + if follows { FOLLOWING * self.index.longest as usize } else { 0 }
    }

    /// Returns the scores of all chunks. Where feedback needs words that have
    /// no list, it remains to be added: then also what reads the texts for it.
    ///
    /// It works term by term, but for each chunk in the order of
    /// [`LexicalScorer`](crate::score::lexical::LexicalScorer).
    pub(crate) fn scored(&self, batch: &impl Batch) -> (Scored, Option<Feedback>) {
        let mut scored = Scored::from(vec![0.0; self.index.len()]);
        let idf: Vec<f64> = self.terms.iter().map(|lists| self.idf(frequency(lists))).collect();
        for ((lists, idf), repeated) in self.terms.iter().zip(&idf).zip(&self.wanted.repeated) {
            self.add(lists, idf * repeated, &mut scored.scores);
        }
        self.add_headings(&idf, &mut scored);
        let Lexical { links, feedback, .. } = *self.lexical;
        let mut best = if links || feedback { best(&scored.scores) } else { Vec::new() };
        if links {
            best.extend(self.link(batch, &best, &mut scored));
        }
        // Links raise some scores, and the first of equal ones is the best.
        let key = |place: usize| (scored.scores[place], Reverse(place));
        let best = best.into_iter().max_by(|&one, &other| {
            let ((one, place), (other, at)) = (key(one), key(other));
            one.total_cmp(&other).then(place.cmp(&at))
        });
        let best = best.filter(|_| feedback);
        let feedback = best.and_then(|best| self.feed_back(batch, best, &mut scored));
        (scored, feedback)
    }

    #[allow(clippy::cast_precision_loss)] // no corpus has 2^53 chunks
    fn idf(&self, frequency: u64) -> f64 {
        idf(self.index.len() as f64, frequency as f64)
    }

    /// Adds the scores for a term of that weight.
    fn add(&self, lists: &Lists<'_>, weight: f64, scores: &mut [f64]) {
        let (norms, more) = (self.norms(), self.lexical.bm25.k1 + 1.0);
        for (postings, list) in lists {
            postings.read(list, |chunk, count| {
                // A damaged file's list may name any chunk.
                if let Some(score) = scores.get_mut(chunk as usize) {
                    let count = f64::from(count);
                    *score += weight * ((count * more) / (count + norms.of(chunk)));
                }
            });
        }
    }

    #[allow(clippy::cast_precision_loss)] // no corpus has 2^53 words
    fn norms(&self) -> Norms<'_> {
        let Index { columns, total_length, .. } = self.index;
        let Bm25 { k1, b, .. } = self.lexical.bm25;
        let average = *total_length as f64 / self.index.len() as f64;
        Norms { lengths: &columns.lengths, average, k1, b, rest: 1.0 - b }
    }

    fn add_headings(&self, idf: &[f64], Scored { scores, signals }: &mut Scored) {
        let mut found: Vec<(u32, u32)> = Vec::new();
        for (term, lists) in (0..).zip(&self.headings) {
            for (postings, list) in lists {
                postings.read(list, |chunk, _| found.push((chunk, term)));
            }
        }
        found.sort_unstable();
        let mut found = found.chunk_by(|(one, _), (other, _)| one == other).peekable();
        for part in &self.index.parts {
            if found.peek().is_none() {
                break;
            }
            let (sizes, first) = (part.sizes(&self.lexical.bm25), part.range().start);
            while let Some(terms) = found.next_if(|terms| (terms[0].0 as usize) < part.range().end)
            {
                let chunk = terms[0].0;
                let size = (chunk as usize).checked_sub(first).and_then(|at| sizes.get(at));
                let (Some(size @ 1..), Some(score)) = (size, scores.get_mut(chunk as usize)) else {
                    continue; // as above
                };
                let sum = terms.iter().fold(0.0, |sum, &(_, term)| sum + idf[term as usize]);
                let count = u32::try_from(terms.len()).expect("a query's terms were numbered");
                let added = sum * (f64::from(count) / f64::from(size));
                *score += added;
                let kind = SignalKind::Heading { is_whole: count == size };
                signals.push(Signal { chunk, kind, added });
            }
        }
    }

    /// Lets `sources` raise the chunks whose headings they name, and returns
    /// these.
    fn link(&self, batch: &impl Batch, sources: &[usize], scored: &mut Scored) -> Vec<usize> {
        let before: Vec<f64> = sources.iter().map(|&source| scored.scores[source]).collect();
        let mut linked: HashMap<u32, Signal> = HashMap::new();
        for (&place, &score) in sources.iter().zip(&before) {
            let source = Source::new(batch, place);
            self.for_each_named(&source, |chunk| {
                let Some(&own) = scored.scores.get(chunk as usize) else { return };
                if is_behind((own, chunk as usize), (score, place)) {
                    let kind = SignalKind::Link(super::capped(place));
                    linked.entry(chunk).or_insert(Signal { chunk, kind, added: LINK * score });
                }
            });
        }
        let mut linked: Vec<Signal> = linked.into_values().collect();
        linked.sort_unstable_by_key(|signal| signal.chunk);
        for signal in &linked {
            scored.scores[signal.chunk as usize] += signal.added;
        }
        let places = linked.iter().map(|signal| signal.chunk as usize).collect();
        scored.signals.extend(linked);
        places
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
                    part.runs.read(&list, |chunk, _| visit(chunk));
                }
            }
        }
    }

    /// Adds what the strongest words of the best chunk score.
    fn feed_back(&self, batch: &impl Batch, best: usize, scored: &mut Scored) -> Option<Feedback> {
        let Self { index, lexical: Lexical { bm25, .. }, .. } = self;
        let words = candidates(batch, best, &self.wanted, bm25);
        if has_unlisted(bm25, |stem| words.contains_key(stem)) {
            return Some(Feedback::new(best, words, bm25));
        }
        let chunk = super::capped(best);
        let norm = self.norms().of(chunk);
        let strength = |count: u32, idf: f64| {
            let count = f64::from(count);
            idf * ((count * (bm25.k1 + 1.0)) / (count + norm))
        };
        // Finding all chunks with a common word takes time, so first comes what
        // may be strongest.
        let bounds = words.iter().map(|(word, &count)| {
            let least = index.least_frequency(word, bm25).max(LEAST_FREQUENCY);
            (strength(count, self.idf(least)), word, count)
        });
        let mut bounds: Vec<_> = bounds.collect();
        bounds.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        let mut strong: Vec<Strong<'_>> = Vec::with_capacity(EXPANSION + 1);
        for (bound, word, count) in bounds {
            if strong.get(EXPANSION - 1).is_some_and(|last| last.strength > bound) {
                break;
            }
            let lists = index.lists_of(WORDS, word, bm25);
            let frequency = frequency(&lists);
            if frequency >= LEAST_FREQUENCY {
                let idf = self.idf(frequency);
                let found = Strong { strength: strength(count, idf), word, idf, lists };
                let at = strong.partition_point(|other| other.is_before(&found));
                strong.insert(at, found);
                strong.truncate(EXPANSION);
            }
        }
        let largest = strong.first()?.strength;
        let mut fed = Vec::new();
        for (postings, list) in strong.iter().flat_map(|strong| &strong.lists) {
            postings.read(list, |chunk, _| fed.push(chunk));
        }
        fed.sort_unstable();
        fed.dedup();
        let kind = SignalKind::Feedback(chunk);
        let before = fed.into_iter().filter_map(|chunk| {
            Some(Signal { chunk, kind, added: *scored.scores.get(chunk as usize)? })
        });
        let mut fed: Vec<Signal> = before.collect();
        for Strong { strength, idf, lists, .. } in &strong {
            self.add(lists, (FEEDBACK * (strength / largest)) * idf, &mut scored.scores);
        }
        for signal in &mut fed {
            signal.added = scored.scores[signal.chunk as usize] - signal.added;
        }
        scored.signals.extend(fed);
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
    lists: Lists<'a>,
}

impl Strong<'_> {
    fn is_before(&self, other: &Self) -> bool {
        other.strength.total_cmp(&self.strength).then(self.word.cmp(other.word)).is_lt()
    }
}

/// The norms of the lengths of chunks.
struct Norms<'a> {
    lengths: &'a [u32],
    average: f64,
    k1: f64,
    b: f64,
    rest: f64,
}

impl Norms<'_> {
    #[inline]
    fn of(&self, chunk: u32) -> f64 {
        let length = f64::from(self.lengths[chunk as usize]);
        self.k1 * (self.rest + self.b * (length / self.average))
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
}
