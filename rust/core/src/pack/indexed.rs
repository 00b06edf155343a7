//! Packing a corpus without looking at every chunk.
//!
//! Few of a million chunks can be kept. The best come first, in batches of as
//! many as the room may take. Once little room is left, only some chunks are
//! looked at: those that could still fit, and those that are dropped for another
//! reason than the budget. What became of the others follows from the room at
//! their turn. It is written down when somebody asks for it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Packer;
use super::meter::Meter;
use crate::chunk::Batch;
use crate::corpus::bounds::Bounds;
use crate::corpus::found::Later;
use crate::corpus::sums::Rank;
use crate::count::{Estimate, Exact, Factor};
use crate::outcome::{Dropped, DroppedColumns, Kept, Reason};
use crate::plan::{Call, Counting, Host, Overflow, Policy, Selection};
use crate::rank::{sort_descending, sortable, unsortable};
use crate::reading::Measures;
use crate::scope::Scope;

/// How many chunks are expected to be kept before one was looked at.
const EXPECTED: usize = 64;

/// The least number of chunks in a batch, and eight times as many where none of
/// the last one was kept.
const LEAST: usize = 16;

/// How many chunks are counted before the host may stop the work.
const COUNTED: usize = 1 << 12;

/// Counting a code point takes as long as reading this many.
const COUNTING: usize = 8;

/// The chunks that are worth a look are listed if they are at most one in so
/// many.
const LISTED: usize = 256;

/// If more chunks than these are asked for, all scores are added up.
const MANY: usize = 1024;

/// The ranking of the chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranks<'a> {
    pub(crate) count: u32,
    pub(crate) order: Order<'a>,
    pub(crate) scope: &'a Scope,
}

/// By what chunks are ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order<'a> {
    /// By these keys, descending, or by their places, with their scores, if the
    /// scope asks for these.
    Keys(Option<&'a [f64]>, &'a [f64]),
    /// By the scores that are added up where they are asked for.
    Scores(&'a Later),
}

impl<'a> Ranks<'a> {
    /// Returns the best candidates behind `after`, best first and about `most`,
    /// and whether there are no others. The scores of those that were `seen` are
    /// known, by ascending index.
    fn next(
        &self,
        after: Option<Rank>,
        most: usize,
        filter: &Filter<'_>,
        seen: &[(u32, f64)],
    ) -> (Vec<Rank>, bool) {
        let is_behind = |rank: Rank| after.is_none_or(|after| rank > after);
        let mut best = Best { most, found: Vec::new(), limit: None };
        match self.order {
            Order::Keys(keys, scores) => {
                filter.for_each(self.count, |index| {
                    let rank = (keys.map_or(0, |keys| !sortable(keys[index as usize])), index);
                    let score = || scores[index as usize];
                    if is_behind(rank) && (self.scope.is_all() || self.scope.has(index, score())) {
                        best.push(rank);
                    }
                    true
                });
            }
            Order::Scores(later) => {
                let rank_of = |index: u32, score: f64| {
                    let rank = (!sortable(score), index);
                    (is_behind(rank) && self.scope.has(index, score)).then_some(rank)
                };
                if let Some(scores) = later.known() {
                    best.offer_all(filter, self.count, scores, rank_of);
                } else if let Some(few) = later.few() {
                    let candidates = few.iter().filter(|(index, _)| filter.is_candidate(*index));
                    candidates.for_each(|&(index, score)| best.offer(rank_of(index, score)));
                    if self.scope.is_without_zeros() {
                        return best.finish();
                    }
                    if best.found.len() >= most {
                        return (best.finish().0, false);
                    }
                    // Those that score 0 follow in their order.
                    let mut few = few.iter().peekable();
                    filter.for_each(self.count, |index| {
                        while few.next_if(|(other, _)| *other < index).is_some() {}
                        if few.peek().is_none_or(|(other, _)| *other != index) {
                            best.offer(rank_of(index, 0.0));
                        }
                        best.limit.is_none()
                    });
                } else {
                    if let Some(few) = filter.listed(self.count) {
                        best.most = few.len(); // all of them are worth no other search
                        let known = |index: &u32| {
                            let place = seen.binary_search_by_key(index, |(index, _)| *index);
                            place.ok().map(|place| seen[place])
                        };
                        let new: Vec<u32> =
                            few.iter().copied().filter(|index| known(index).is_none()).collect();
                        let scores = new.iter().copied().zip(later.of(&new));
                        let scores = scores.chain(few.iter().filter_map(known));
                        scores.for_each(|(index, score)| best.offer(rank_of(index, score)));
                        return best.finish();
                    }
                    if most <= MANY {
                        let is_candidate = |index| filter.is_candidate(index);
                        let (found, is_all) = later.best(most, is_candidate, |rank, score| {
                            is_behind(rank) && self.scope.has(rank.1, score)
                        });
                        if !is_all || found.len() == most || self.scope.is_without_zeros() {
                            let is_all = is_all && self.scope.is_without_zeros();
                            return (found.into_iter().map(|(rank, _)| rank).collect(), is_all);
                        }
                    }
                    let scores = later.all(); // for many, or chunks that score 0
                    best.offer_all(filter, self.count, scores, rank_of);
                }
            }
        }
        best.finish()
    }

    /// Returns the scores and keys of all chunks.
    fn all(&self) -> (Option<&'a [f64]>, &'a [f64]) {
        match self.order {
            Order::Keys(keys, scores) => (keys, scores),
            Order::Scores(later) => (Some(later.all()), later.all()),
        }
    }
}

/// The best candidates so far.
struct Best {
    most: usize,
    found: Vec<Rank>,
    /// What comes from here on is not among them. Indices ascend: a chunk with
    /// the key of the last of the best is behind it.
    limit: Option<u64>,
}

impl Best {
    /// Offers the candidates of the first `count` chunks with the ranks that
    /// `rank_of` returns.
    fn offer_all(
        &mut self,
        filter: &Filter<'_>,
        count: u32,
        scores: &[f64],
        rank_of: impl Fn(u32, f64) -> Option<Rank>,
    ) {
        // Most are not good enough, which a comparison tells.
        let mut least = f64::NEG_INFINITY;
        filter.for_each(count, |index| {
            let score = scores[index as usize];
            if score > least {
                self.offer(rank_of(index, score));
                if self.found.len() == self.most {
                    least = self.limit.map_or(least, |limit| unsortable(!limit));
                }
            }
            true
        });
    }

    #[inline]
    fn offer(&mut self, rank: Option<Rank>) {
        if let Some(rank) = rank {
            self.push(rank);
        }
    }

    #[inline]
    fn push(&mut self, rank: Rank) {
        if self.limit.is_some_and(|limit| rank.0 >= limit) {
            return;
        }
        self.found.push(rank);
        if self.found.len() == self.most.saturating_mul(2) {
            self.limit = Some(self.found.select_nth_unstable(self.most - 1).1.0);
            self.found.truncate(self.most);
        }
    }

    fn finish(self) -> (Vec<Rank>, bool) {
        let Self { most, mut found, limit } = self;
        let mut is_all = limit.is_none();
        if found.len() > most {
            found.select_nth_unstable(most - 1);
            found.truncate(most);
            is_all = false;
        }
        found.sort_unstable();
        (found, is_all)
    }
}

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

/// The chunks that are worth a look.
enum Filter<'a> {
    All,
    /// Chunks of a measure of at most `limit` or of unknown measure, as they
    /// may be empty or fit; and chunks that may repeat a kept text.
    Worthy {
        measures: Measures<'a>,
        limit: u32,
        prints: &'a [u32],
        kept: Prints,
    },
}

impl Filter<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always)] // a few instructions, for each of a million chunks
    fn is_small(measure: u32, limit: u32) -> bool {
        measure <= limit || measure == u32::MAX
    }

    fn is_candidate(&self, index: u32) -> bool {
        let Self::Worthy { measures, limit, prints, kept } = self else { return true };
        let repeats = prints.get(index as usize).is_some_and(|&print| kept.has(print));
        repeats || measures.get(index).is_none_or(|measure| Self::is_small(measure, *limit))
    }

    /// Returns the candidates of the first `count` chunks; None where they are
    /// not few.
    fn listed(&self, count: u32) -> Option<Vec<u32>> {
        let Self::Worthy { .. } = self else { return None };
        let most = count as usize / LISTED;
        let (mut listed, mut too_many) = (Vec::new(), false);
        self.for_each(count, |index| {
            too_many = listed.len() == most;
            if !too_many {
                listed.push(index);
            }
            !too_many
        });
        (!too_many).then_some(listed)
    }

    /// Calls `visit` with each candidate of the first `count` chunks until it
    /// returns false.
    #[inline]
    fn for_each(&self, count: u32, visit: impl FnMut(u32) -> bool) {
        let Self::Worthy { measures, limit, prints, kept } = self else {
            (0..count).all(visit);
            return;
        };
        let count = count as usize;
        match measures {
            Measures::Bounds(bounds) => {
                scan(bounds.iter().take(count), *limit, prints, kept, visit);
            }
            Measures::Lent(measures) => {
                scan(measures.iter().copied().take(count), *limit, prints, kept, visit);
            }
            Measures::Read(_) => unreachable!("a corpus lends its numbers"),
        }
    }
}

/// Calls `visit` with the place of each measure that is small or whose
/// fingerprint was kept, until it returns false. These are few, so the processor
/// foresees the branch.
#[inline(always)]
#[allow(clippy::inline_always)] // a few instructions, for each of a million chunks
fn scan(
    measures: impl Iterator<Item = u32>,
    limit: u32,
    prints: &[u32],
    kept: &Prints,
    mut visit: impl FnMut(u32) -> bool,
) {
    let measures = (0..).zip(measures);
    if prints.is_empty() {
        for (index, measure) in measures {
            if Filter::is_small(measure, limit) && !visit(index) {
                return;
            }
        }
    } else {
        for ((index, measure), &print) in measures.zip(prints) {
            let is_small = Filter::is_small(measure, limit);
            let may_count = is_small | kept.may_have(print);
            if may_count && (is_small || kept.has(print)) && !visit(index) {
                return;
            }
        }
    }
}

/// The fingerprints of the kept texts.
struct Prints {
    /// Ascending.
    all: Vec<u32>,
    /// A bit for each of their low bits, so that hardly any other one is sought
    /// among them. Its length is a power of two.
    low: Vec<u64>,
}

impl Prints {
    /// How many bits there are for each fingerprint.
    const BITS: usize = 64;

    /// How many there are at least.
    const FEWEST: usize = 1 << 16;

    fn new(mut all: Vec<u32>) -> Self {
        all.sort_unstable();
        let bits = all.len().saturating_mul(Self::BITS).max(Self::FEWEST).next_power_of_two();
        let mut low = vec![0; bits / 64];
        for &print in &all {
            let (word, bit) = Self::place(&low, print);
            low[word] |= bit;
        }
        Self { all, low }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // as above
    fn place(low: &[u64], print: u32) -> (usize, u64) {
        ((print as usize / 64) & (low.len() - 1), 1 << (print % 64))
    }

    /// Returns whether this may be one of them.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as above
    fn may_have(&self, print: u32) -> bool {
        let (word, bit) = Self::place(&self.low, print);
        self.low[word] & bit != 0
    }

    /// Returns whether this is one of them.
    fn has(&self, print: u32) -> bool {
        self.may_have(print) && self.all.binary_search(&print).is_ok()
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
        let (mut expected, mut least) = (EXPECTED, LEAST);
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let filter = self.filter(meter);
            let before = self.admitted.kept.len();
            let most = self.batch_size(expected, least);
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
                least = least.saturating_mul(8);
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

    /// Returns how many chunks to ask for where so many are expected to be kept:
    /// twice as many.
    fn batch_size(&self, expected: usize, least: usize) -> usize {
        let left = |cap: u64| cap.saturating_sub(self.admitted.kept.len() as u64);
        let most = self.plan.max_chunks.and_then(|cap| usize::try_from(left(cap)).ok());
        expected.min(most.unwrap_or(usize::MAX)).saturating_mul(2).max(least)
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
        let (measures, prints) = (self.measures.lent(), self.prints());
        let mut stops = self.plan.overflow == Overflow::Stop;
        stops &= self.stopped.is_none();
        if !self.is_full() && (stops || self.may_cut.is_some()) {
            return Filter::All; // the next chunk that does not fit must be seen
        }
        let kept = if self.is_full() { &[][..] } else { &self.admitted.kept };
        let print = |chunk: &Kept| prints.get(chunk.index as usize).copied();
        let kept = Prints::new(kept.iter().filter_map(print).collect());
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
