//! What a service remembers of its requests: how often the budget cut, and
//! what more would do.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::chunk::Chunk;
use crate::count::TokenCounter;
use crate::pack::Reason;
use crate::packing::Packing;

/// So many of a request's dropped chunks are counted.
const SAMPLE: usize = 32;

/// A dropped text is not counted beyond so many tokens.
const LONGEST: usize = 1 << 16;

/// What became of the requests since the service began, or since the figures
/// were taken.
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
    /// How many requests there were. Each is one of the next five, or still
    /// under way.
    pub requests: u64,
    /// How many were answered.
    pub answered: u64,
    /// How many had nothing left for retrieval.
    pub rejected: u64,
    /// How many ended with another error, or a panic.
    pub failed: u64,
    /// How many passed their deadline.
    pub timed_out: u64,
    /// How many were planned and then given up.
    pub cancelled: u64,
    /// How many answers left chunks out for the budget.
    pub cut: u64,
    /// How many chunks were kept.
    pub kept_chunks: u64,
    /// What the packed texts took.
    pub retrieved_tokens: u64,
    /// How many chunks were left out for the budget.
    pub dropped_chunks: u64,
    /// How many tokens these had.
    pub dropped_tokens: u64,
    /// Whether each of them was counted. Of a request that drops more than 32,
    /// that many are counted, evenly spaced, and stand for the others.
    pub is_dropped_exact: bool,
    /// The smallest budget under which the first chunk that was left out would
    /// have been kept too, for each answer that was cut: upper bound to number
    /// of answers. A budget here is what the texts take, joined by the plain
    /// template; what the messages cost beside them and what is reserved is not
    /// in it.
    pub next_budgets: BTreeMap<usize, u64>,
    /// The smallest budget under which everything would have been kept, for
    /// each answer, the ones that were not cut included; of texts alone, as
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

    /// Returns a budget under which `share` of the answers, from 0 to 1, would
    /// have kept every chunk; None where nothing was answered yet. What is
    /// beyond 0 and 1 is taken as these.
    ///
    /// It is the upper bound of a bucket, at most an eighth above the smallest
    /// that would do, and the budget of the texts alone, joined by the plain
    /// template: what the messages cost beside them and what is reserved comes
    /// on top.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a number
    pub fn budget_for(&self, share: f64) -> Option<usize> {
        let total: u64 = self.full_budgets.values().sum();
        let wanted = (share.clamp(0.0, 1.0) * total as f64).ceil() as u64;
        let mut seen = 0;
        let found = self.full_budgets.iter().find(|&(_, answers)| {
            seen += answers;
            seen >= wanted
        });
        found.map(|(&budget, _)| budget)
    }
}

/// What became of a request.
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

/// Adds figures up. Its memory is bounded: there are at most some 500 buckets.
#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<ServiceStats>);

impl Recorder {
    pub(super) fn begin(&self) {
        self.lock().requests += 1;
    }

    pub(super) fn end(&self, outcome: Outcome) {
        let mut stats = self.lock();
        match outcome {
            Outcome::Answered => stats.answered += 1,
            Outcome::Rejected => stats.rejected += 1,
            Outcome::Failed => stats.failed += 1,
            Outcome::TimedOut => stats.timed_out += 1,
            Outcome::Cancelled => stats.cancelled += 1,
        }
    }

    /// Records a packing that dropped so many chunks for the budget; of these,
    /// counts a bounded sample.
    pub(super) fn packed(
        &self,
        packing: &Packing,
        dropped: usize,
        chunks: &[Chunk],
        counter: &dyn TokenCounter,
    ) {
        let total = packing.total_tokens;
        let lost = (dropped > 0).then(|| Lost::new(packing, dropped, chunks, counter));
        let mut stats = self.lock();
        stats.kept_chunks += packing.kept.len() as u64;
        stats.retrieved_tokens = stats.retrieved_tokens.saturating_add(total as u64);
        let Some(lost) = lost else {
            *stats.full_budgets.entry(bucket(total.max(1))).or_default() += 1;
            return;
        };
        stats.cut += 1;
        stats.dropped_chunks += dropped as u64;
        stats.dropped_tokens = stats.dropped_tokens.saturating_add(lost.tokens as u64);
        stats.is_dropped_exact &= lost.is_exact;
        let next = total.saturating_add(lost.separator).saturating_add(lost.first);
        *stats.next_budgets.entry(bucket(next)).or_default() += 1;
        let separators = lost.separator.saturating_mul(dropped);
        let full = total.saturating_add(separators).saturating_add(lost.tokens);
        *stats.full_budgets.entry(bucket(full)).or_default() += 1;
    }

    pub(super) fn stats(&self) -> ServiceStats {
        self.lock().clone()
    }

    /// Begins anew; no request is lost between the two.
    pub(super) fn take(&self) -> ServiceStats {
        std::mem::take(&mut *self.lock())
    }

    /// Nothing panics while this is held but for want of memory.
    fn lock(&self) -> MutexGuard<'_, ServiceStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What chunks count that were dropped for the budget.
struct Lost {
    /// The first of them.
    first: usize,
    /// All of them, separators not included.
    tokens: usize,
    separator: usize,
    is_exact: bool,
}

impl Lost {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate
    fn new(
        packing: &Packing,
        dropped: usize,
        chunks: &[Chunk],
        counter: &dyn TokenCounter,
    ) -> Self {
        let for_budget = packing.dropped.iter().filter(|item| item.reason == Reason::Budget);
        let places: Vec<usize> = for_budget.map(|item| item.index).collect();
        let size = dropped.min(SAMPLE);
        let count =
            |i: usize| counter.count_till_limit(&chunks[places[i * dropped / size]].text, LONGEST);
        let counts: Vec<Option<usize>> = (0..size).map(count).collect();
        let known = |count: &Option<usize>| count.unwrap_or(LONGEST);
        let sum = counts.iter().map(known).fold(0, usize::saturating_add);
        let is_whole = size == dropped;
        let scaled = (sum as f64 / size as f64 * dropped as f64).round_ties_even() as usize;
        Self {
            first: known(&counts[0]),
            tokens: if is_whole { sum } else { scaled },
            separator: counter.count("\n\n"),
            is_exact: is_whole && counts.iter().all(Option::is_some),
        }
    }
}

/// Returns the upper bound of the bucket of `tokens`; eight lead from a power
/// of two to the next.
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
    fn shares() {
        let stats =
            ServiceStats { full_budgets: [(1_024, 90), (4_096, 10)].into(), ..Default::default() };
        let budgets = [-1.0, 0.0, 0.9, 0.95, 1.0, 7.0, f64::NAN].map(|s| stats.budget_for(s));
        let (low, high) = (Some(1_024), Some(4_096));
        assert_eq!([low, low, low, high, high, high, low], budgets);
        assert_eq!(None, ServiceStats::default().budget_for(0.5));
    }
}
