//! BM25 with headings, links and feedback.
//!
//! Three stages follow BM25. A heading with words of the query adds to the
//! score of its text. The best texts raise those whose headings they name. And
//! the words that stand out in the best text count a little, as if the query
//! had them.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::bm25::{Bm25Scorer, Counted};
use super::feedback::{Feedback, candidates};
use super::heading::heading;
use super::link::{Linker, best};
use super::{Scorer, read_all};
use crate::chunk::Batch;
use crate::count::exact::GO_ON;
use crate::error::Error;
use crate::ranking::Lexical;
use crate::text::Text;

/// Scores of all texts.
#[derive(Debug, Default)]
pub(crate) struct Scored {
    pub(crate) scores: Vec<f64>,
    pub(crate) signals: Vec<Signal>,
}

impl From<Vec<f64>> for Scored {
    fn from(scores: Vec<f64>) -> Self {
        Self { scores, signals: Vec::new() }
    }
}

/// What a score has besides that of the query's words in the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// The chunk.
    pub chunk: u32,
    /// Where it comes from.
    pub kind: SignalKind,
    /// What it adds to the score.
    pub added: f64,
}

/// Where a [`Signal`] comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// Words of the query in the heading.
    Heading {
        /// Whether all words of the heading are there.
        is_whole: bool,
    },
    /// The heading stands in the text of that chunk.
    Link(u32),
    /// Words of that chunk, the best one.
    Feedback(u32),
}

/// The terms of a query.
#[derive(Debug)]
pub(crate) struct QueryTerms {
    /// Each once, in order of first occurrence.
    pub(crate) wanted: Vec<Vec<u8>>,
    /// The same.
    set: HashSet<Vec<u8>>,
    /// What each weighs for its repetitions.
    pub(crate) repeated: Vec<f64>,
}

impl QueryTerms {
    pub(crate) fn of(query: Text<'_>, lexical: &Lexical) -> Self {
        let counted = lexical.bm25.counted_terms_of(query);
        let k3 = lexical.k3;
        let repeated = counted.iter().map(|&(_, count)| {
            let count = f64::from(count);
            ((k3 + 1.0) * count) / (k3 + count)
        });
        let repeated = repeated.collect();
        let wanted: Vec<_> = counted.into_iter().map(|(term, _)| term).collect();
        Self { repeated, set: wanted.iter().cloned().collect(), wanted }
    }

    pub(crate) fn has(&self, stem: &[u8]) -> bool {
        self.set.contains(stem)
    }
}

/// Counts what the ranking needs, text by text, and scores the texts in the
/// end.
#[derive(Debug)]
pub(crate) struct LexicalScorer<'a> {
    lexical: &'a Lexical,
    query: Arc<QueryTerms>,
    bm25: Bm25Scorer,
    /// For each text with a term of the query in its heading: its place, the
    /// number of terms of the heading, how many of these the query has, and
    /// which.
    headings: Vec<u32>,
    linker: Linker,
}

impl<'a> LexicalScorer<'a> {
    pub(crate) fn new(query: Text<'_>, lexical: &'a Lexical) -> Self {
        let query = Arc::new(QueryTerms::of(query, lexical));
        let Lexical { bm25, statistics, .. } = lexical;
        let bm25 = Bm25Scorer::of_collection(query.wanted.clone(), bm25, statistics.as_deref());
        Self { lexical, query, bm25, headings: Vec::new(), linker: Linker::default() }
    }

    /// Counts the terms and words of the next text and its title.
    fn count(&mut self, text: Text<'_>, title: Text<'_>) {
        let Lexical { bm25, headings, links, .. } = self.lexical;
        if !(*headings || *links) || self.bm25.is_idle() {
            self.bm25.read(text, title);
            return;
        }
        self.bm25.count(text);
        self.bm25.count(title);
        let heading = heading(text, title);
        if *headings && self.bm25.has_found() && !heading.is_empty() {
            let place = index(self.bm25.texts());
            let found = self.bm25.found_in(heading);
            if !found.is_empty() {
                let count = u32::try_from(found.len()).expect("a query's terms were numbered");
                let size = u32::try_from(bm25.terms_of(heading).len()).unwrap_or(u32::MAX);
                self.headings.extend([place, size, count]);
                self.headings.extend(found);
            }
        }
        if *links {
            self.linker.read(heading);
        }
        self.bm25.close();
    }

    /// Returns the scores without feedback. The texts of `batch` must be those
    /// that were read.
    pub(crate) fn scored(&self, batch: &impl Batch) -> Scored {
        let idf = self.bm25.weights();
        let weights = idf.iter().zip(&self.query.repeated).map(|(idf, repeated)| idf * repeated);
        let mut scores = self.bm25.weighted(&weights.collect::<Vec<_>>());
        let mut signals = Vec::new();
        let mut rest = self.headings.as_slice();
        while let [place, size, count, others @ ..] = rest {
            let (found, others) = others.split_at(*count as usize);
            let sum = found.iter().fold(0.0, |sum, &term| sum + idf[term as usize]);
            let added = sum * (f64::from(*count) / f64::from(*size));
            scores[*place as usize] += added;
            let kind = SignalKind::Heading { is_whole: count == size };
            signals.push(Signal { chunk: *place, kind, added });
            rest = others;
        }
        let mut found = Scored { scores, signals };
        if self.lexical.links {
            self.linker.link(batch, &self.query, &self.lexical.bm25, &mut found);
        }
        found
    }

    /// Returns what scores the texts once more, for the words of the best one;
    /// None where nothing is to be added. The result means nothing once `stop`
    /// is set.
    pub(crate) fn feedback(
        &self,
        batch: &impl Batch,
        scored: &Scored,
        stop: &AtomicBool,
    ) -> Option<Feedback> {
        if !self.lexical.feedback {
            return None;
        }
        let best = *best(&scored.scores).first()?;
        let words = candidates(batch, best, &self.query, &self.lexical.bm25, stop);
        (!words.is_empty()).then(|| Feedback::new(best, words, self.lexical))
    }
}

/// What a [`LexicalScorer`] counted in some texts.
#[derive(Debug)]
pub(crate) struct Read {
    counted: Counted,
    headings: Vec<u32>,
    linker: Linker,
}

impl Scorer for LexicalScorer<'_> {
    type Read = Read;

    fn another(&self) -> Self {
        Self {
            lexical: self.lexical,
            query: Arc::clone(&self.query),
            bm25: self.bm25.another(),
            headings: Vec::new(),
            linker: Linker::default(),
        }
    }

    fn read(&mut self, text: Text<'_>, title: Text<'_>) {
        self.count(text, title);
    }

    fn take(&mut self) -> Read {
        Read {
            counted: self.bm25.take(),
            headings: take(&mut self.headings),
            linker: take(&mut self.linker),
        }
    }

    fn extend(&mut self, Read { counted, mut headings, linker }: Read) {
        let before = index(self.bm25.texts());
        let mut rest = headings.as_mut_slice();
        while let [place, _, count, others @ ..] = rest {
            *place += before;
            rest = &mut others[*count as usize..];
        }
        self.bm25.extend(counted);
        self.headings.extend(headings);
        self.linker.extend(linker);
    }
}

pub(crate) fn index(place: usize) -> u32 {
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
    let scorer = read_all(LexicalScorer::new(query, lexical), batch);
    let mut found = scorer.scored(batch);
    if let Some(feedback) = scorer.feedback(batch, &found, &GO_ON) {
        read_all(feedback, batch).add_to(&mut found);
    }
    found.scores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Documents;
    use crate::score::{joined, read_block};

    /// What two have read of the texts counts as what one has read of all.
    #[test]
    fn two_read_as_one() {
        let texts = ["Rye\nbread", "Tea pot\ngreen", "Tea\nmild", "tea\npot", "Pot\ntea"];
        let (batch, lexical) = (Documents::new(&texts), Lexical::default());
        let scored = |of_first: usize| {
            let mut first = LexicalScorer::new("tea pot".into(), &lexical);
            let mut second = first.another();
            let read = vec![
                read_block(&mut first, &batch, 0..of_first),
                read_block(&mut second, &batch, of_first..texts.len()),
            ];
            joined(vec![first, second], read).scored(&batch).scores
        };
        let all = scored(texts.len());
        for of_first in 0..texts.len() {
            assert_eq!(all, scored(of_first));
        }
    }
}
