//! Packing a corpus without looking at every chunk.
//!
//! Few of a million chunks can be kept. The best come first, in batches of as
//! many as the room may take. Once little room is left, only some chunks are
//! looked at: those that could still fit, and those that are dropped for another
//! reason than the budget. What became of the others follows from the room at
//! their turn. It is written down when somebody asks for it.

mod filter;
mod ranks;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use filter::{Filter, Prints};
pub(crate) use ranks::{Order, Ranks};

use super::Packer;
use super::meter::Meter;
use crate::chunk::Batch;
use crate::corpus::bounds::Bounds;
use crate::count::{Estimate, Exact, Factor};
use crate::outcome::{Dropped, DroppedColumns, Kept, Reason};
use crate::plan::{Call, Counting, Host, Overflow, Policy, Selection};
use crate::rank::{sort_descending, unsortable};
use crate::reading::Measures;

/// From so many parts of the corpus a chunk tells how many the room takes, before
/// one was looked at.
const ASKED: usize = 64;

/// How many chunks are expected to be kept at least and at most, before one was
/// looked at. A batch of few would leave room, for which the corpus is searched
/// again.
const EXPECTED: [usize; 2] = [64, ranks::MANY / 2];

/// The smallest number of chunks in a batch; 64 times as many after one of which
/// none was kept, as to search the corpus once more takes longer than to look at
/// them.
const FEWEST: usize = 16;

/// How many chunks are counted before the host may stop the work.
const COUNTED: usize = 1 << 12;

/// Counting a code point takes as long as reading this many.
const COUNTING: usize = 8;

/// What becomes of a chunk that is not looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unseen {
    /// It is dropped by the cap.
    Capped,
    /// Packing had stopped with that many tokens left.
    Stopped(u64),
    /// Under an estimate: the measure of the text in front, and the tokens of
    /// the kept chunks.
    Estimated { estimate: Estimate, start: u64, tokens: u64, budget: u64 },
    /// Under an exact counter: the tokens that are left.
    Counted(u64),
}

impl Unseen {
    /// Returns the largest measure that may still fit.
    fn limit(self) -> u32 {
        match self {
            Self::Capped | Self::Stopped(_) => 0,
            Self::Counted(available) => u32::try_from(available).unwrap_or(u32::MAX),
            Self::Estimated { estimate, start, budget, .. } => {
                let (mut fits, mut over) = (0, u32::MAX);
                while over - fits > 1 {
                    let middle = fits.midpoint(over);
                    if estimate.tokens(start + u64::from(middle)) <= budget {
                        fits = middle;
                    } else {
                        over = middle;
                    }
                }
                fits
            }
        }
    }

    fn dropped(self, index: u32, measures: &[u32], factor: Factor) -> Dropped {
        let reason = Reason::Budget;
        match self {
            Self::Capped => Dropped { index, reason: Reason::Cap, needed: 0, available: 0 },
            Self::Stopped(available) => {
                Dropped { index, reason, needed: 0, available: factor.left(available) }
            }
            Self::Estimated { estimate, start, tokens, budget } => {
                let size = u64::from(measures[index as usize]);
                let needed = estimate.tokens(start + size) - tokens;
                Dropped { index, reason, needed, available: budget - tokens }
            }
            Self::Counted(available) => {
                let needed = factor.of(available.saturating_add(1));
                Dropped { index, reason, needed, available: factor.left(available) }
            }
        }
    }
}

/// What happened, by rank of the chunks where it did.
#[derive(Debug)]
pub(crate) struct Trail {
    first: Unseen,
    events: Vec<Event>,
    /// How many of the dropped chunks were decided by rank. The others left the
    /// text later.
    ranked: usize,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    index: u32,
    is_kept: bool,
    /// What becomes of the unseen chunks behind it.
    behind: Unseen,
}

impl Trail {
    /// Returns all dropped chunks in the order in which that was decided.
    /// `seen` are those that were looked at, with the factor of the counts.
    pub(crate) fn columns(
        &self,
        ranks: &Ranks<'_>,
        measures: &[u32],
        seen: &DroppedColumns,
        factor: Factor,
    ) -> DroppedColumns {
        let mut all = DroppedColumns::default();
        all.reserve(ranks.count as usize);
        let mut order = Vec::with_capacity(ranks.count as usize);
        let is_all = ranks.scope.is_all();
        let (keys, scores) = ranks.all();
        for index in 0..ranks.count {
            if is_all || ranks.scope.has(index, scores[index as usize]) {
                order.push(index);
            } else {
                all.push(Dropped { index, reason: Reason::OutOfScope, needed: 0, available: 0 });
            }
        }
        if let Some(keys) = keys {
            sort_descending(&mut order, keys);
        }
        let mut events = self.events.iter().peekable();
        let mut decided = seen.iter().take(self.ranked).peekable();
        let mut unseen = self.first;
        for index in order {
            if let Some(event) = events.next_if(|event| event.index == index) {
                unseen = event.behind;
                if event.is_kept {
                    continue;
                }
            }
            let known = decided.next_if(|dropped| dropped.index == index);
            all.push(known.unwrap_or_else(|| unseen.dropped(index, measures, factor)));
        }
        seen.iter().skip(self.ranked).for_each(|dropped| all.push(dropped));
        all
    }
}

impl<'p, B: Batch, H: Host> Packer<'p, B, H> {
    /// Admits chunks of a corpus by rank, and notes in the trail what became of
    /// those that were not looked at.
    pub(super) fn admit_ranked<M: Meter<B, H>>(
        &mut self,
        meter: &mut M,
        ranks: &Ranks<'_>,
    ) -> Result<(), H::Error> {
        self.trail = Some(Trail { first: self.unseen(meter), events: Vec::new(), ranked: 0 });
        let whole = meter.available(self);
        let (mut expected, mut fewest) = (self.expected(meter, ranks.count), FEWEST);
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let filter = self.filter(meter);
            let before = self.admitted.kept.len();
            let most = self.batch_size(expected, fewest);
            let (mut batch, is_all) = self
                .host
                .work(ranks.count as usize * 4, |_| ranks.next(after, most, &filter, &seen))?;
            let last = batch.last().copied();
            let mut ceiling = u64::MAX;
            if let Filter::Worthy { measures, .. } = &filter
                && let Counting::Exact(exact, _) = &self.plan.counting
            {
                ceiling = meter.available(self);
                if let Measures::Bounds(bounds) = *measures {
                    let unknown = unknown(bounds, batch.iter().map(|(_, index)| *index), ceiling);
                    let chunks = self.batch;
                    let chars = |&index: &u32| chunks.text(index as usize).chars();
                    let chars: usize = unknown.iter().map(chars).sum();
                    self.host.work(chars.saturating_mul(COUNTING), |stop| {
                        count_once(exact, bounds, chunks, &unknown, stop);
                    })?;
                    batch.retain(|&(_, index)| filter.is_candidate(index));
                }
            }
            seen.extend(batch.iter().map(|&(key, index)| (index, unsortable(!key))));
            seen.sort_unstable_by_key(|(index, _)| *index);
            let places: Vec<u32> = batch.iter().map(|(_, index)| *index).collect();
            let through = if let Some(available) = self.stopped {
                self.drop_unmeasured(&places, available);
                batch.len()
            } else {
                self.admit(meter, &places, ceiling)?
            };
            if through < batch.len() {
                after = batch[..through].last().copied().or(after);
            } else if is_all {
                break;
            } else {
                after = last.or(after);
            }
            // As many as the room takes if they are as long as those that were kept.
            let left = meter.available(self);
            let kept = self.admitted.kept.len();
            let more = left.saturating_mul(kept as u64).checked_div(whole.saturating_sub(left));
            expected = usize::try_from(more.unwrap_or_default()).unwrap_or(usize::MAX);
            if kept == before {
                fewest = fewest.saturating_mul(64);
            }
        }
        if let Order::Scores(later) = ranks.order {
            later.remember(seen);
        }
        if let Some(trail) = &mut self.trail {
            trail.ranked = self.admitted.dropped.index.len();
        }
        Ok(())
    }

    /// Returns how many chunks the room takes if they are as long as some of all
    /// parts of the corpus.
    fn expected<M: Meter<B, H>>(&self, meter: &M, count: u32) -> usize {
        let measures = self.measures.lent();
        let places = (0..count).step_by((count as usize / ASKED).max(1));
        let known = places.filter_map(|at| measures.get(at)).filter(|&size| size < u32::MAX);
        let (sum, asked) =
            known.fold((0, 0), |(sum, asked), size| (sum + u64::from(size), asked + 1));
        let room = u64::from(self.unseen(meter).limit());
        let expected = (room * asked).checked_div(sum).unwrap_or(u64::MAX);
        let [least, most] = EXPECTED;
        usize::try_from(expected).unwrap_or(most).clamp(least, most)
    }

    /// Returns how many chunks to ask for where so many are expected to be kept:
    /// twice as many.
    fn batch_size(&self, expected: usize, fewest: usize) -> usize {
        let left = |cap: u64| cap.saturating_sub(self.admitted.kept.len() as u64);
        let most = self.plan.max_chunks.and_then(|cap| usize::try_from(left(cap)).ok());
        expected.min(most.unwrap_or(usize::MAX)).saturating_mul(2).max(fewest)
    }

    /// Notes what chunk `index` changed for those behind it, in a packing where
    /// not every chunk is looked at.
    pub(super) fn note<M: Meter<B, H>>(&mut self, meter: &M, index: u32, is_kept: bool) {
        if self.trail.is_none() {
            return;
        }
        let behind = self.unseen(meter);
        if let Some(trail) = &mut self.trail {
            trail.events.push(Event { index, is_kept, behind });
        }
    }

    /// Returns what becomes of a chunk that does not fit and is not looked at.
    fn unseen<M: Meter<B, H>>(&self, meter: &M) -> Unseen {
        match self.stopped {
            _ if self.is_full() => Unseen::Capped,
            Some(available) => Unseen::Stopped(available),
            None => meter.unseen(self),
        }
    }

    fn is_full(&self) -> bool {
        self.plan.max_chunks.is_some_and(|cap| self.admitted.kept.len() as u64 >= cap)
    }

    fn filter<M: Meter<B, H>>(&self, meter: &M) -> Filter<'p> {
        let mut stops = self.plan.overflow == Overflow::Stop;
        stops &= self.stopped.is_none();
        if !self.is_full() && (stops || self.may_cut.is_some()) {
            return Filter::All; // the next chunk that does not fit must be seen
        }
        let kept = if self.is_full() { &[][..] } else { &self.admitted.kept };
        let prints = if kept.is_empty() { &[][..] } else { self.prints() };
        let print = |chunk: &Kept| prints.get(chunk.index as usize).copied();
        let kept = Prints::new(kept.iter().filter_map(print).collect());
        let measures = self.measures.lent();
        Filter::Worthy { measures, limit: self.unseen(meter).limit(), prints, kept }
    }

    fn prints(&self) -> &'p [u32] {
        match self.repeats.prints {
            Cow::Borrowed(prints) => prints,
            Cow::Owned(_) => unreachable!("a corpus lends its numbers"),
        }
    }
}

/// Returns the chunks of `batch` that may fit and were never counted.
fn unknown(bounds: &Bounds, batch: impl Iterator<Item = u32>, available: u64) -> Vec<u32> {
    let is_unknown =
        |index: usize| !bounds.is_exact(index) && u64::from(bounds.get(index)) <= available;
    batch.filter(|&index| is_unknown(index as usize)).collect()
}

/// Counts chunks. All later queries know these counts.
fn count_once<B: Batch>(
    exact: &Exact,
    bounds: &Bounds,
    batch: &B,
    indices: &[u32],
    stop: &AtomicBool,
) {
    for part in indices.chunks(COUNTED) {
        let counts = exact.count_batch(batch, part, stop);
        if stop.load(Ordering::Relaxed) {
            break; // work stopped, so these are not counts
        }
        part.iter().zip(counts).for_each(|(&index, count)| bounds.set(index as usize, count));
    }
}

/// Returns whether the call may leave chunks unseen.
pub(crate) fn may_skip(call: &Call<'_>) -> bool {
    let plan = call.plan;
    let has_policy = match plan.policy {
        Policy::None => false,
        Policy::SumOfParts => plan.is_sum_of_parts(),
        Policy::Cite | Policy::Gate { .. } => true,
    };
    let is_by_rank = !has_policy && plan.selection == Selection::Rank;
    is_by_rank && call.is_bare() && plan.counting != Counting::Host
}

#[cfg(all(test, feature = "o200k"))]
mod tests {
    use budgeteer_vocab::Encoding;

    use super::*;
    use crate::plan::Plan;

    /// All chunks are looked at where what becomes of one hangs on others, or on
    /// more than its text.
    #[test]
    fn some_calls_look_at_every_chunk() {
        let may = |change: &dyn Fn(&mut Plan)| {
            let mut plan = Plan::new(Counting::Estimate(Estimate::CharsDiv4));
            change(&mut plan);
            may_skip(&plan.call("tea".into(), 10))
        };
        let exact = || Counting::Exact(Exact::new(Encoding::O200k), Factor::ONE);
        assert!(may(&|_| ()));
        assert!(may(&|plan| plan.counting = exact()));
        assert!(may(&|plan| (plan.policy, plan.counting) = (Policy::SumOfParts, exact())));
        assert!(!may(&|plan| plan.counting = Counting::Host));
        assert!(!may(&|plan| plan.policy = Policy::SumOfParts));
        assert!(!may(&|plan| plan.policy = Policy::Cite));
        assert!(!may(&|plan| plan.selection = Selection::Coverage));
        assert!(!may(&|plan| plan.notice = Some(vec![String::new()])));
        assert!(!may(&|plan| plan.template.header = "Read:".into()));
    }

    /// The limit is the largest measure that still fits.
    #[test]
    fn limits() {
        let limit = |start, budget| {
            let estimate = Estimate::CharsDiv4;
            Unseen::Estimated { estimate, start, tokens: 0, budget }.limit()
        };
        assert_eq!([40, 37, 30, 1], [0, 3, 10, 39].map(|start| limit(start, 10)));
        assert_eq!(4_000_000_000 - 7, limit(7, 1_000_000_000));
        assert_eq!(u32::MAX - 1, limit(0, 1 << 40));
        assert_eq!([9, u32::MAX], [9, 1 << 40].map(|left| Unseen::Counted(left).limit()));
        assert_eq!([0, 0], [Unseen::Capped, Unseen::Stopped(9)].map(Unseen::limit));
    }
}
