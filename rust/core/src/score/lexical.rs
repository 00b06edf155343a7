//! BM25 with headings, links and feedback.
//!
//! Three stages follow BM25. A heading with words of the query adds to the
//! score of its text. The best texts raise those whose headings they name. And
//! the words that stand out in the best text count a little, as if the query
//! had them.

use std::collections::HashSet;

use super::bm25::Bm25Scorer;
use super::heading::heading;
use crate::chunk::Batch;
use crate::error::Error;
use crate::ranking::Lexical;
use crate::terms::{first_term, for_each_term_of};
use crate::text::Text;

/// The number of best texts that may name others.
const SOURCES: usize = 3;

/// The share of its source's score that a linked text gets.
const LINK: f64 = 0.2;

/// The number of words taken from the best text.
const EXPANSION: usize = 10;

/// The weight of the strongest of these words.
const FEEDBACK: f64 = 0.2;

/// The number of texts that must have such a word.
const LEAST_FREQUENCY: u64 = 2;

/// The scores of all texts, and what they are made of.
#[derive(Debug, Default)]
pub(crate) struct Scored {
    pub(crate) scores: Vec<f64>,
    /// The texts that another names by their heading, each with that other.
    pub(crate) links: Vec<(u32, u32)>,
}

/// Counts what the ranking needs, text by text, and scores the texts in the
/// end.
#[derive(Debug)]
pub(crate) struct LexicalScorer<'a> {
    lexical: &'a Lexical,
    bm25: Bm25Scorer,
    /// The terms of the query, and what each weighs for its repetitions.
    wanted: Vec<Vec<u8>>,
    repeated: Vec<f64>,
    /// For each text with a term of the query in its heading: its place, the
    /// number of terms of the heading, how many of these the query has, and
    /// which.
    headings: Vec<u32>,
}

impl<'a> LexicalScorer<'a> {
    pub(crate) fn new(query: Text<'_>, lexical: &'a Lexical) -> Self {
        let counted = lexical.bm25.counted_terms_of(query);
        let k3 = lexical.k3;
        let repeated = counted.iter().map(|&(_, count)| {
            let count = f64::from(count);
            ((k3 + 1.0) * count) / (k3 + count)
        });
        let repeated = repeated.collect();
        let wanted: Vec<_> = counted.into_iter().map(|(term, _)| term).collect();
        let bm25 = Bm25Scorer::of_terms(wanted.clone(), &lexical.bm25);
        Self { lexical, bm25, wanted, repeated, headings: Vec::new() }
    }

    /// Counts the terms and words of the next text and its title.
    pub(crate) fn read(&mut self, text: Text<'_>, title: Text<'_>) {
        if !self.lexical.headings || self.wanted.is_empty() {
            self.bm25.read(text, title);
            return;
        }
        let heading = heading(text, title);
        // The heading begins the title or, without one, the text.
        let end = heading.units();
        let (whole, other) = if title.is_empty() { (text, title) } else { (title, text) };
        let rest = whole.slice_units(end, whole.units());
        if end > 0 {
            self.bm25.count(heading);
            let place = index(self.bm25.texts());
            let found = self.bm25.found();
            if !found.is_empty() {
                let count = u32::try_from(found.len()).expect("a query's terms were numbered");
                self.headings.extend([place, self.lexical.bm25.stems_of(heading), count]);
                self.headings.extend(found);
            }
        }
        self.bm25.count(rest);
        self.bm25.count(other);
        self.bm25.close();
    }

    /// Returns the scores without feedback. The texts of `batch` must be those
    /// that were read.
    pub(crate) fn scored(&self, batch: &impl Batch) -> Scored {
        let idf = self.bm25.weights();
        let weights = idf.iter().zip(&self.repeated).map(|(idf, repeated)| idf * repeated);
        let mut scores = self.bm25.weighted(&weights.collect::<Vec<_>>());
        let mut rest = self.headings.as_slice();
        while let [place, size, count, others @ ..] = rest {
            let (found, others) = others.split_at(*count as usize);
            let sum = found.iter().fold(0.0, |sum, &term| sum + idf[term as usize]);
            scores[*place as usize] += sum * (f64::from(*count) / f64::from(*size));
            rest = others;
        }
        let links = if self.lexical.links { self.link(batch, &mut scores) } else { Vec::new() };
        Scored { scores, links }
    }

    /// Lets the best texts raise those whose headings they name.
    fn link(&self, batch: &impl Batch, scores: &mut [f64]) -> Vec<(u32, u32)> {
        let before = scores.to_vec();
        let mut links = Vec::new();
        let sources = best(&before);
        let named: Vec<_> = sources.iter().map(|&source| Source::new(batch, source)).collect();
        if named.is_empty() {
            return links;
        }
        let words = Words::of(&named);
        let mut first = Vec::new();
        for at in 0..batch.len() {
            batch.prefetch(at + 1);
            let heading = heading(batch.text(at), batch.title(at));
            if !first_term(heading, &mut first) || !words.may_have(&first) {
                continue;
            }
            let run = terms_of(heading);
            for (source, &place) in named.iter().zip(&sources) {
                let is_behind =
                    before[at] < before[place] || (before[at] == before[place] && at > place);
                if !is_behind {
                    continue;
                }
                if run != source.heading && source.contains(&run) && self.adds(&run) {
                    scores[at] = before[at] + LINK * before[place];
                    links.push((index(at), index(place)));
                    break;
                }
            }
        }
        links
    }

    /// Returns whether a heading has a term that the query has not.
    fn adds(&self, run: &[Vec<u8>]) -> bool {
        let bm25 = &self.lexical.bm25;
        let mut terms = run.iter().filter_map(|term| bm25.stem_of(term));
        terms.any(|stem| !self.wanted.iter().any(|wanted| **wanted == *stem))
    }

    /// Returns what scores the texts once more, for the words of the best one;
    /// None where nothing is to be added.
    pub(crate) fn feedback(&self, batch: &impl Batch, scored: &Scored) -> Option<Feedback> {
        if !self.lexical.feedback {
            return None;
        }
        let best = *best(&scored.scores).first()?;
        let bm25 = &self.lexical.bm25;
        let (mut seen, mut terms) = (HashSet::new(), Vec::new());
        for part in [batch.text(best), batch.title(best)] {
            for_each_term_of(part, |term| {
                let Some(stem) = bm25.stem_of(term) else { return };
                let is_wanted = self.wanted.iter().any(|wanted| **wanted == *stem);
                let is_number = stem.first().is_some_and(u8::is_ascii_digit);
                if !is_wanted && !is_number && !seen.contains(&*stem) {
                    seen.insert(stem.to_vec());
                    terms.push(stem.into_owned());
                }
            });
        }
        terms.sort_unstable();
        let scorer = Bm25Scorer::of_terms(terms, bm25);
        (!scorer.is_idle()).then_some(Feedback { best, scorer })
    }
}

/// Counts the words of the best text in all texts.
#[derive(Debug)]
pub(crate) struct Feedback {
    best: usize,
    scorer: Bm25Scorer,
}

impl Feedback {
    /// Counts the words in the next text and its title.
    pub(crate) fn read(&mut self, text: Text<'_>, title: Text<'_>) {
        self.scorer.read(text, title);
    }

    /// Adds what the strongest of the words score to the scores of all texts.
    pub(crate) fn add_to(&self, scores: &mut [f64]) {
        let idf = self.scorer.weights();
        let mut strong = Vec::new();
        let mut place = 0;
        self.scorer.for_each(|found, norm| {
            if place == self.best {
                let frequent = found
                    .iter()
                    .filter(|[term, _]| self.scorer.frequency(*term) >= LEAST_FREQUENCY);
                strong.extend(frequent.map(|&pair| (self.scorer.part(&idf, pair, norm), pair[0])));
            }
            place += 1;
        });
        // The terms are numbered in their order.
        strong.sort_by(|(a, at), (b, bt)| b.total_cmp(a).then(at.cmp(bt)));
        strong.truncate(EXPANSION);
        let Some(&(largest, _)) = strong.first() else { return };
        let mut ranks = vec![u8::MAX; idf.len()];
        let mut weights = [0.0; EXPANSION];
        for (rank, &(strength, term)) in (0_u8..).zip(&strong) {
            ranks[term as usize] = rank;
            weights[usize::from(rank)] = (FEEDBACK * (strength / largest)) * idf[term as usize];
        }
        let mut scores = scores.iter_mut();
        self.scorer.for_each(|found, norm| {
            let score = scores.next().expect("there is one for each text");
            let mut counts = [0; EXPANSION];
            let mut any = false;
            for &[term, count] in found {
                if let Some(slot) = counts.get_mut(usize::from(ranks[term as usize])) {
                    (*slot, any) = (count, true);
                }
            }
            if any {
                for (rank, count) in (0..).zip(counts).filter(|&(_, count)| count > 0) {
                    *score += self.scorer.part(&weights, [rank, count], norm);
                }
            }
        });
    }
}

/// Returns the places of the best scores above 0, best first; the first of
/// equal ones comes first.
fn best(scores: &[f64]) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(SOURCES + 1);
    for (place, &score) in scores.iter().enumerate() {
        if score > best.get(SOURCES - 1).map_or(0.0, |&last| scores[last]) {
            let at = best.partition_point(|&better| scores[better] >= score);
            best.insert(at, place);
            best.truncate(SOURCES);
        }
    }
    best
}

/// A text that may name others.
#[derive(Debug)]
struct Source {
    /// The terms of its heading.
    heading: Vec<Vec<u8>>,
    /// The terms of the text, and those of the title.
    parts: [Vec<Vec<u8>>; 2],
}

impl Source {
    fn new(batch: &impl Batch, place: usize) -> Self {
        let (text, title) = (batch.text(place), batch.title(place));
        let parts = [terms_of(text), terms_of(title)];
        Self { heading: terms_of(heading(text, title)), parts }
    }

    /// Returns whether the text or the title has that run of terms.
    fn contains(&self, run: &[Vec<u8>]) -> bool {
        self.parts.iter().any(|part| part.windows(run.len()).any(|window| window == run))
    }
}

/// A set of the terms of some texts, which takes few other terms for one of
/// them.
struct Words([u64; 64]);

impl Words {
    fn of(sources: &[Source]) -> Self {
        let mut words = Self([0; 64]);
        for term in sources.iter().flat_map(|source| &source.parts).flatten() {
            let (place, bit) = Self::place(term);
            words.0[place] |= bit;
        }
        words
    }

    fn may_have(&self, term: &[u8]) -> bool {
        let (place, bit) = Self::place(term);
        self.0[place] & bit != 0
    }

    fn place(term: &[u8]) -> (usize, u64) {
        let hash = term.iter().fold(0_u32, |hash, &byte| {
            (hash.rotate_left(5) ^ u32::from(byte)).wrapping_mul(0x9E37_79B9)
        });
        ((hash >> 26) as usize, 1 << (hash >> 20 & 63))
    }
}

fn terms_of(text: Text<'_>) -> Vec<Vec<u8>> {
    let mut terms = Vec::new();
    for_each_term_of(text, |term| terms.push(term.to_vec()));
    terms
}

fn index(place: usize) -> u32 {
    u32::try_from(place).expect("no batch has 2^32 chunks")
}

/// Returns the relevance of each text with its title to `query`, by [`Lexical`]
/// over the batch. It is 0 for a text with none of the words that count, and
/// has no upper bound.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an
/// option out of range.
///
/// # Examples
///
/// ```
/// use budgeteer::{Lexical, lexical_scores};
///
/// let chunks = ["Tea\nIt is green.", "Coffee\nIt is not tea."];
/// let scores = lexical_scores("tea", &chunks, &Lexical::default())?;
/// assert!(scores[0] > 2.0 * scores[1]);
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn lexical_scores<D: crate::Document>(
    query: &str,
    chunks: &[D],
    lexical: &Lexical,
) -> Result<Vec<f64>, Error> {
    lexical.check()?;
    let documents = crate::chunk::Documents::new(chunks);
    Ok(batch_lexical_scores(query.into(), &documents, lexical))
}

/// Does the same as [`lexical_scores`], for any batch and
/// options in range.
#[must_use]
pub fn batch_lexical_scores(query: Text<'_>, batch: &impl Batch, lexical: &Lexical) -> Vec<f64> {
    let mut scorer = LexicalScorer::new(query, lexical);
    for at in 0..batch.len() {
        batch.prefetch(at + 1);
        scorer.read(batch.text(at), batch.title(at));
    }
    let mut scored = scorer.scored(batch);
    if let Some(mut feedback) = scorer.feedback(batch, &scored) {
        for at in 0..batch.len() {
            batch.prefetch(at + 1);
            feedback.read(batch.text(at), batch.title(at));
        }
        feedback.add_to(&mut scored.scores);
    }
    scored.scores
}
