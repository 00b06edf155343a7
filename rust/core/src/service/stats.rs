//! Figures of the requests of a service: how often the budget cut, and which
//! budget would have been enough.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::chunk::Chunk;
use crate::count::TokenCounter;
use crate::outcome::Reason;
use crate::packing::Packing;

/// How many of a request's dropped chunks are counted, and how many of the cut
/// ones.
const SAMPLE: usize = 32;

/// How many tokens of each of these are counted.
const LONGEST: usize = 1 << 12;

/// The figures of the requests since the service began, or since they were last
/// taken.
///
/// A request under way at that time is in `requests` of the figures taken, and
/// in the outcomes of the next ones. All its other figures are added together,
/// when it ends.
///
/// # Examples
///
/// ```
/// use budgeteer::service::{ChunkRetriever, LlmSettings, RetrievalService};
/// use budgeteer::{Chunk, Estimate};
///
/// let settings = LlmSettings::default()
///     .context_window(60)
///     .max_output_tokens(20)
///     .counter(Estimate::CharsDiv4);
/// let chunks = [Chunk::new("Green tea. ".repeat(4)), Chunk::new("Rye bread. ".repeat(9))];
/// let service = RetrievalService::new(ChunkRetriever::new(chunks), settings)?;
/// service.retrieve("Which tea?")?;
///
/// let stats = service.stats();
/// assert_eq!((stats.answered, stats.cut, stats.dropped_tokens), (1, 1, 25));
/// assert_eq!(stats.budget_for(1.0), Some(40)); // would have kept everything
/// # Ok::<(), budgeteer::service::ServiceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceStats {
    /// The number of requests. Each is one of the next five, or still under
    /// way.
    pub requests: u64,
    /// How many were answered.
    pub answered: u64,
    /// How many left nothing for retrieval.
    pub rejected: u64,
    /// How many ended with another error, or a panic.
    pub failed: u64,
    /// How many passed their deadline.
    pub timed_out: u64,
    /// How many were planned and then given up.
    pub cancelled: u64,
    /// How many answers the budget cut: chunks, or parts of chunks, were left
    /// out for it.
    pub cut: u64,
    /// How many chunks were kept.
    pub kept_chunks: u64,
    /// How many of these were cut.
    pub cut_chunks: u64,
    /// The tokens of the packed texts.
    pub retrieved_tokens: u64,
    /// How many chunks were left out for the budget.
    pub dropped_chunks: u64,
    /// The tokens of the dropped chunks, and those left out of the cut ones.
    pub dropped_tokens: u64,
    /// Whether all of these were counted. Of a request that drops more than 32
    /// chunks, 32 are counted, evenly spaced, and stand for the others. The
    /// same holds for cut chunks. At most 4,096 tokens of each are counted.
    pub is_dropped_exact: bool,
    /// For each answer that was cut, about the smallest budget under which one
    /// more chunk would have been whole: the chunk that was cut, or else the
    /// first that was left out. The key is an upper bound, the value the number
    /// of answers. The budget is that of the texts alone, joined by the plain
    /// template, without the other costs of the messages and without the
    /// reserve.
    pub next_budgets: BTreeMap<usize, u64>,
    /// For each answer, also those not cut, about the smallest budget under
    /// which every chunk would have been kept whole; of the texts alone, as
    /// above.
    pub full_budgets: BTreeMap<usize, u64>,
}

impl Default for ServiceStats {
    fn default() -> Self {
        Self {
            requests: 0,
            answered: 0,
            rejected: 0,
            failed: 0,
            timed_out: 0,
            cancelled: 0,
            cut: 0,
            kept_chunks: 0,
            cut_chunks: 0,
            retrieved_tokens: 0,
            dropped_chunks: 0,
            dropped_tokens: 0,
            is_dropped_exact: true,
            next_budgets: BTreeMap::new(),
            full_budgets: BTreeMap::new(),
        }
    }
}

impl ServiceStats {
    /// Returns the share of answers that the budget cut, from 0 to 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a share
    pub fn cut_rate(&self) -> f64 {
        self.cut as f64 / self.answered.max(1) as f64
    }

    /// Returns a budget under which `share` of the answers would have kept
    /// every chunk whole; None if nothing was answered yet. `share` is from 0
    /// to 1; what lies outside is taken as 0 or 1.
    ///
    /// It is the upper bound of a bucket, at most an eighth above the smallest
    /// budget that is enough. It is the budget of the texts alone, joined by
    /// the plain template: add the other costs of the messages, and the
    /// reserve.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::manual_clamp)] // a share, and NaN is not clamped
    pub fn budget_for(&self, share: f64) -> Option<usize> {
        let total: u64 = self.full_budgets.values().sum();
        let share = share.max(0.0).min(1.0); // NaN becomes 0
        let mut seen = 0;
        let found = self.full_budgets.iter().find(|&(_, answers)| {
            seen += answers;
            seen as f64 / total as f64 >= share // a product may be rounded up, above the share
        });
        found.map(|(&budget, _)| budget)
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    Rejected,
    Failed,
    TimedOut,
    Cancelled,
}

impl Outcome {
    /// Returns its name, as in [`ServiceStats`].
    #[cfg(feature = "tracing")]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The sum of the figures. Its memory is bounded: there are at most some 500
/// buckets.
#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<ServiceStats>);

impl Recorder {
    pub(super) fn begin(&self) {
        self.lock().requests += 1;
    }

    /// Adds the outcome of a request, with all its figures at once, so that
    /// none is ahead of another.
    pub(super) fn end(&self, outcome: Outcome, packed: Option<&Packed>) {
        let mut stats = self.lock();
        match outcome {
            Outcome::Answered => stats.answered += 1,
            Outcome::Rejected => stats.rejected += 1,
            Outcome::Failed => stats.failed += 1,
            Outcome::TimedOut => stats.timed_out += 1,
            Outcome::Cancelled => stats.cancelled += 1,
        }
        if let Some(packed) = packed {
            stats.add(packed);
        }
    }

    pub(super) fn stats(&self) -> ServiceStats {
        self.lock().clone()
    }

    /// Takes the figures and begins anew. No request is lost in between.
    pub(super) fn take(&self) -> ServiceStats {
        std::mem::take(&mut *self.lock())
    }

    /// Nothing panics while this is held, unless memory runs out.
    fn lock(&self) -> MutexGuard<'_, ServiceStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The contribution of a packing to the figures.
#[derive(Debug)]
pub(super) struct Packed {
    kept: usize,
    /// How many of the kept chunks were cut.
    pub(super) cut: usize,
    /// How many chunks were dropped for the budget.
    pub(super) dropped: usize,
    tokens: usize,
    dropped_tokens: usize,
    /// None if nothing was cut.
    next_budget: Option<usize>,
    full_budget: usize,
    is_exact: bool,
}

impl Packed {
    /// Counts a bounded sample of the dropped and cut `chunks`.
    pub(super) fn new(packing: &Packing, chunks: &[Chunk], counter: &dyn TokenCounter) -> Self {
        let for_budget = packing.dropped.iter().filter(|item| item.reason == Reason::Budget);
        let dropped: Vec<_> = for_budget.map(|item| (item.index, 0)).collect();
        let in_part = packing.kept.iter().filter(|item| item.was_cut);
        let cut: Vec<_> = in_part.map(|item| (item.index, item.token_count)).collect();
        let total = packing.total_tokens;
        let whole = Lost::new(&dropped, chunks, counter);
        let rests = Lost::new(&cut, chunks, counter);
        let separator = if dropped.is_empty() { 0 } else { counter.count("\n\n") };
        let separators = separator.saturating_mul(dropped.len());
        let dropped_tokens = whole.tokens.saturating_add(rests.tokens);
        // The cut chunk ranks before every dropped one, so more budget goes to
        // it first.
        let next = if cut.is_empty() { separator.saturating_add(whole.first) } else { rests.first };
        let was_cut = !cut.is_empty() || !dropped.is_empty();
        Self {
            kept: packing.kept.len(),
            cut: cut.len(),
            dropped: dropped.len(),
            tokens: total,
            dropped_tokens,
            next_budget: was_cut.then(|| total.saturating_add(next)),
            full_budget: total.saturating_add(separators).saturating_add(dropped_tokens).max(1),
            is_exact: whole.is_exact && rests.is_exact,
        }
    }
}

impl ServiceStats {
    fn add(&mut self, packed: &Packed) {
        let add = |sum: &mut u64, count: usize| *sum = sum.saturating_add(count as u64);
        add(&mut self.kept_chunks, packed.kept);
        add(&mut self.cut_chunks, packed.cut);
        add(&mut self.retrieved_tokens, packed.tokens);
        add(&mut self.dropped_chunks, packed.dropped);
        add(&mut self.dropped_tokens, packed.dropped_tokens);
        self.is_dropped_exact &= packed.is_exact;
        if let Some(budget) = packed.next_budget {
            self.cut += 1;
            *self.next_budgets.entry(bucket(budget)).or_default() += 1;
        }
        *self.full_budgets.entry(bucket(packed.full_budget)).or_default() += 1;
    }
}

/// The tokens that dropped or cut chunks lost.
struct Lost {
    /// Those of the first chunk.
    first: usize,
    /// Those of all chunks, without separators.
    tokens: usize,
    is_exact: bool,
}

impl Lost {
    /// Each chunk that lost tokens has its place in `chunks` and the tokens
    /// that were kept.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate
    fn new(lost: &[(usize, usize)], chunks: &[Chunk], counter: &dyn TokenCounter) -> Self {
        let size = lost.len().min(SAMPLE);
        let mut is_exact = size == lost.len();
        let mut tokens_of = |i: usize| {
            let (index, kept) = lost[i * lost.len() / size];
            let count = counter.count_till_limit(&chunks[index].text, kept.saturating_add(LONGEST));
            is_exact &= count.is_some();
            count.map_or(LONGEST, |count| count.saturating_sub(kept))
        };
        let counts: Vec<usize> = (0..size).map(&mut tokens_of).collect();
        let sum = counts.iter().copied().fold(0, usize::saturating_add);
        let scaled = || (sum as f64 / size as f64 * lost.len() as f64).round_ties_even() as usize;
        Self {
            first: counts.first().copied().unwrap_or(0),
            tokens: if size == lost.len() { sum } else { scaled() },
            is_exact,
        }
    }
}

/// Returns the upper bound of the bucket of `tokens`. There are eight buckets
/// from a power of two to the next.
fn bucket(tokens: usize) -> usize {
    let bits = usize::BITS - tokens.saturating_sub(1).leading_zeros();
    let step = 1_usize << bits.saturating_sub(4);
    tokens.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets() {
        let bounds = [1, 8, 9, 17, 1_000, 1_025].map(bucket);
        assert_eq!([1, 8, 9, 18, 1_024, 1_152], bounds);
        let all: std::collections::BTreeSet<_> = (1..50_000).map(bucket).collect();
        assert!(all.len() < 130);
        for tokens in (1..50_000).chain([usize::MAX - 1, usize::MAX]) {
            assert!(bucket(tokens) >= tokens);
            assert!(bucket(tokens) - tokens <= tokens / 8);
        }
    }

    #[test]
    #[allow(clippy::cast_precision_loss)] // a share
    fn shares() {
        let stats =
            ServiceStats { full_budgets: [(1_024, 90), (4_096, 10)].into(), ..Default::default() };
        let budgets = [-1.0, 0.0, 0.9, 0.95, 1.0, 7.0, f64::NAN].map(|s| stats.budget_for(s));
        let (low, high) = (Some(1_024), Some(4_096));
        assert_eq!([low, low, low, high, high, high, low], budgets);
        assert_eq!(None, ServiceStats::default().budget_for(0.5));
        for whole in 1..100 {
            let full_budgets = [(16, whole), (1_024, 100 - whole)].into();
            let stats = ServiceStats { full_budgets, ..Default::default() };
            assert_eq!(Some(16), stats.budget_for(whole as f64 / 100.0));
        }
    }
}
