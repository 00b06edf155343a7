//! What was found of a query in a corpus: scores that are added up where they
//! are asked for.

use std::sync::{Arc, OnceLock};

use super::Index;
use super::norms::Norms;
use super::sums::{Adder, Rank, Sums};
use crate::ranking::Bm25;
use crate::score::lexical::{Scored, Signal, SignalKind};
use crate::score::link::BEST;

/// Up to this number of postings all scores above 0 are added up at once.
const FEW: u64 = 1 << 15;

/// What the scores for a query are sums of.
#[derive(Debug)]
pub(crate) struct Found {
    pub(super) adders: Vec<Adder>,
    /// What each sum is divided by.
    pub(super) divisor: f64,
    /// Those of headings and links.
    pub(crate) signals: Vec<Signal>,
    /// The chunk whose words are fed back, and where their adders begin.
    pub(super) fed: Option<(u32, usize)>,
    k1: f64,
    b: f64,
    /// The mean length of a chunk, if it is not that of the corpus.
    average: Option<f64>,
}

impl Found {
    pub(super) fn new(bm25: &Bm25, average: Option<f64>) -> Self {
        let &Bm25 { k1, b, .. } = bm25;
        Self { adders: Vec::new(), divisor: 1.0, signals: Vec::new(), fed: None, k1, b, average }
    }

    pub(super) fn norms<'a>(&self, index: &'a Index) -> Norms<'a> {
        index.norms(self.k1, self.b, self.average)
    }

    pub(super) fn with<R>(&self, index: &Index, use_sums: impl FnOnce(&Sums<'_>) -> R) -> R {
        let norms = self.norms(index);
        use_sums(&self.sums(index, &norms))
    }

    pub(super) fn sums<'a>(&'a self, index: &'a Index, norms: &'a Norms<'a>) -> Sums<'a> {
        Sums { index, adders: &self.adders, norms, divisor: self.divisor }
    }

    /// Adds numbers to the sums of some chunks, which ascend.
    pub(crate) fn add_numbers(&mut self, numbers: Vec<(u32, f64)>) {
        self.adders.push(Adder::Numbers(numbers));
    }

    pub(super) fn all(&self, index: &Index) -> Vec<f64> {
        self.sums(index, &self.norms(index)).all()
    }

    /// Returns the scores of all chunks, and all signals.
    pub(crate) fn scored(self, index: &Index) -> Scored {
        let scores = self.all(index);
        Scored { scores, signals: self.all_signals(index) }
    }

    fn all_signals(&self, index: &Index) -> Vec<Signal> {
        let mut signals = self.signals.clone();
        if let Some((best, first)) = self.fed {
            let kind = SignalKind::Feedback(best);
            let fed = self.with(index, |sums| sums.added(first));
            signals.extend(fed.into_iter().map(|(chunk, added)| Signal { chunk, kind, added }));
        }
        signals
    }
}

/// The scores of the chunks of a corpus.
#[derive(Debug)]
pub(crate) struct Later {
    index: Arc<Index>,
    found: Found,
    /// The chunks that score above 0, if they are few.
    few: Option<Vec<(u32, f64)>>,
    /// Chunks whose scores were found already, ascending.
    seen: OnceLock<Vec<(u32, f64)>>,
    all: OnceLock<Vec<f64>>,
    signals: OnceLock<Vec<Signal>>,
}

impl Later {
    pub(crate) fn new(index: &Arc<Index>, found: Found) -> Self {
        let few = found.with(index, |sums| (sums.postings() <= FEW).then(|| sums.positive()));
        let index = Arc::clone(index);
        let (seen, all, signals) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { index, found, few, seen, all, signals }
    }

    /// Returns the chunks that score above 0, ascending, if they are few.
    pub(crate) fn few(&self) -> Option<&[(u32, f64)]> {
        self.few.as_deref()
    }

    /// Returns the scores of all chunks, if they are known.
    pub(crate) fn known(&self) -> Option<&[f64]> {
        self.all.get().map(Vec::as_slice)
    }

    pub(crate) fn all(&self) -> &[f64] {
        self.all.get_or_init(|| self.found.all(&self.index))
    }

    /// Remembers the scores of these chunks, which ascend, if none are
    /// remembered yet.
    pub(crate) fn remember(&self, seen: Vec<(u32, f64)>) {
        self.seen.get_or_init(|| seen);
    }

    /// Returns the scores of these chunks, which ascend.
    pub(crate) fn of(&self, chunks: &[u32]) -> Vec<f64> {
        if let Some(scores) = self.known() {
            return chunks.iter().map(|&at| scores[at as usize]).collect();
        }
        let find = |known: &[(u32, f64)], chunk: &u32| {
            let place = known.binary_search_by_key(chunk, |(chunk, _)| *chunk);
            place.ok().map(|place| known[place].1)
        };
        if let Some(few) = &self.few {
            return chunks.iter().map(|chunk| find(few, chunk).unwrap_or_default()).collect();
        }
        let seen =
            self.seen.get().and_then(|seen| chunks.iter().map(|at| find(seen, at)).collect());
        seen.unwrap_or_else(|| self.found.with(&self.index, |sums| sums.of(chunks)))
    }

    /// Does what [`Sums::best`] does.
    pub(crate) fn best(
        &self,
        most: usize,
        is_wanted: impl Fn(u32) -> bool,
        accept: impl Fn(Rank, f64) -> bool,
    ) -> (Vec<(Rank, f64)>, bool) {
        self.found.with(&self.index, |sums| sums.best(most, is_wanted, accept))
    }

    /// Returns the best scores, best first.
    pub(crate) fn highest(&self) -> Vec<f64> {
        self.best(BEST, |_| true, |_, _| true).0.into_iter().map(|(_, score)| score).collect()
    }

    /// Returns the signals of headings and links.
    pub(crate) fn sure_signals(&self) -> &[Signal] {
        &self.found.signals
    }

    pub(crate) fn signals(&self) -> &[Signal] {
        self.signals.get_or_init(|| self.found.all_signals(&self.index))
    }

    pub(crate) fn scored(self) -> Scored {
        self.found.scored(&self.index)
    }
}
