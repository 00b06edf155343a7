//! Admitting ranked chunks into a budget.
//!
//! This stage sees the chunks in rank order and answers with indices and
//! numbers. Whatever it does, the law holds at its end: the counter answers at
//! most the budget for exactly the text that is assembled.

use std::collections::HashMap;

use crate::assemble;
use crate::chunk::Batch;
use crate::count::Estimate;
use crate::duplicate::Seen;
use crate::pipeline::{Counting, Host, Plan, Reading, Subject};
use crate::text::{Cursor, Text};
use crate::truncate::{Cut, Keep, Piece};

mod exact;

/// What happens to a chunk that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// It is dropped, and packing goes on: a smaller one may still fit.
    #[default]
    Skip,
    /// It is dropped, and so is everything behind it.
    Stop,
    /// The first such chunk loses its end, and ` [...]` stands there.
    TruncateEnd,
    /// The first such chunk loses its middle, and `[...truncated...]` stands
    /// there on a line of its own.
    TruncateMiddle,
}

impl Overflow {
    /// Returns what a cut keeps and its marker, or None where nothing is cut.
    pub(crate) fn cut(self) -> Option<(Keep, &'static str)> {
        match self {
            Self::Skip | Self::Stop => None,
            Self::TruncateEnd => Some((Keep::Start, " [...]")),
            Self::TruncateMiddle => Some((Keep::Both, "\n[...truncated...]\n")),
        }
    }
}

/// Why a chunk is not in the packed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It scores below the minimum.
    OutOfScope,
    /// Its text is empty.
    Empty,
    /// As many chunks as allowed were kept.
    Cap,
    /// A kept chunk has the same text.
    Duplicate,
    /// It did not fit.
    Budget,
}

/// A chunk that is in, by rank.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Its place in the input.
    pub index: u32,
    /// Tokens of its text alone, cut where it was cut.
    pub tokens: u64,
}

/// A chunk that is not in, in the order in which that was decided.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Its place in the input.
    pub index: u32,
    /// Why it is not in.
    pub reason: Reason,
    /// Under [`Reason::Budget`], what it would have added, or a lower bound.
    pub needed: u64,
    /// Under [`Reason::Budget`], what was left.
    pub available: u64,
}

/// All chunks that are not in, in the order in which that was decided, as
/// columns: a million of them take no more than their figures.
#[derive(Debug, Default)]
pub struct DroppedColumns {
    /// [`Dropped::index`] of each.
    pub index: Vec<u32>,
    /// [`Dropped::reason`] of each.
    pub reason: Vec<Reason>,
    /// [`Dropped::needed`] of each.
    pub needed: Vec<u64>,
    /// [`Dropped::available`] of each.
    pub available: Vec<u64>,
}

impl DroppedColumns {
    pub(crate) fn push(&mut self, dropped: Dropped) {
        let Dropped { index, reason, needed, available } = dropped;
        self.index.push(index);
        self.reason.push(reason);
        self.needed.push(needed);
        self.available.push(available);
    }

    /// Returns the rows.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dropped> {
        (0..self.index.len()).map(|place| Dropped {
            index: self.index[place],
            reason: self.reason[place],
            needed: self.needed[place],
            available: self.available[place],
        })
    }
}

/// So many chunks leave an over-full text one by one; after that, half of the
/// rest at a time.
const SINGLE_TRIES: usize = 8;

/// So many times a cut is made shorter where the assembled text is still over.
const CUT_TRIES: usize = 8;

/// What became of the chunks so far.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) kept: Vec<Kept>,
    /// What stands in front of each kept chunk; empty where nothing does.
    pub(crate) labels: Vec<Vec<u8>>,
    pub(crate) dropped: DroppedColumns,
    /// Dropped duplicates, and the kept chunk that each one repeats.
    pub(crate) duplicates: Vec<(u32, u32)>,
    /// The index of the chunk that was cut, and what is left of it.
    pub(crate) cut: Option<(u32, Vec<u8>)>,
}

impl Admitted {
    /// Lets what repeated a chunk that left go for the same reason. `left` has
    /// the figures of each that left.
    fn drop_repeated(&mut self, left: &HashMap<u32, (u64, u64)>) {
        let Self { dropped, duplicates, .. } = self;
        // Both lists are in the order of the decisions.
        let mut repeated = std::mem::take(duplicates).into_iter();
        for place in 0..dropped.index.len() {
            if dropped.reason[place] != Reason::Duplicate {
                continue;
            }
            let Some((index, original)) = repeated.next() else { break };
            if let Some(&(needed, available)) = left.get(&original) {
                dropped.reason[place] = Reason::Budget;
                dropped.needed[place] = needed;
                dropped.available[place] = available;
            } else {
                duplicates.push((index, original));
            }
        }
    }
}

/// Admits chunks in rank order.
pub(crate) struct Packer<'p, B, H> {
    plan: &'p Plan<'p>,
    batch: &'p B,
    /// The measure of each text, where the counter is an estimate; `u32::MAX`
    /// stands for a larger one.
    measures: Vec<u32>,
    /// The fingerprint of each text, where duplicates are dropped.
    prints: Vec<u32>,
    host: &'p mut H,
    admitted: Admitted,
    may_cut: Option<(Keep, &'static str)>,
    seen: Seen,
    /// What each kept chunk costs, under an exact counter.
    costs: Vec<exact::Cost>,
    scratch: Vec<u8>,
}

impl<'p, B: Batch, H: Host> Packer<'p, B, H> {
    pub(crate) fn new(
        plan: &'p Plan<'p>,
        batch: &'p B,
        Reading { measures, prints }: Reading,
        host: &'p mut H,
        dropped: DroppedColumns,
    ) -> Self {
        Self {
            plan,
            batch,
            measures,
            prints,
            host,
            admitted: Admitted { dropped, ..Admitted::default() },
            may_cut: plan.overflow.cut(),
            seen: Seen::default(),
            costs: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Packs, and returns the number of tokens of the assembled text.
    pub(crate) fn pack(mut self, order: &[u32]) -> Result<(Admitted, u64), H::Error> {
        let total = match self.plan.counting {
            Counting::Estimate(estimate) if self.plan.sum_of_parts => {
                self.pack_sum_of_parts(estimate, order)
            }
            Counting::Estimate(estimate) => self.pack_estimated(estimate, order)?,
            Counting::Exact(exact) => self.pack_exact(exact, order)?,
            Counting::Host => self.pack_counted(order)?,
        };
        Ok((self.admitted, total))
    }

    /// Admits what fits beside everything before it. Measures of texts that
    /// whitespace joins add up, so that the total is that of the whole text.
    fn pack_estimated(&mut self, estimate: Estimate, order: &[u32]) -> Result<u64, H::Error> {
        let budget = self.plan.budget;
        let gap = estimate.measure(self.plan.separator.into(), &mut self.scratch);
        let mut used = 0;
        let mut before = 0;
        for (place, &index) in order.iter().enumerate() {
            if self.is_refused(index) {
                continue;
            }
            let size = self.measure(estimate, index);
            let mut start = if self.admitted.kept.is_empty() { 0 } else { used + gap };
            let mut needed = estimate.tokens(start + size) - before;
            let available = budget - before;
            let mut label = Vec::new();
            if self.plan.is_labelled && (needed <= available || self.may_cut.is_some()) {
                label = self.host.label(index as usize)?;
                start += estimate.measure(Text::from_utf8(&label), &mut self.scratch);
                needed = estimate.tokens(start + size) - before;
            }
            if needed <= available {
                used = start + size;
                self.keep(index, estimate.tokens(size), label);
            } else if let Some(size) = self.cut_estimated(estimate, index, start, label) {
                used = start + size;
            } else {
                self.drop(index, Reason::Budget, needed, available);
                if self.plan.overflow == Overflow::Stop {
                    self.stop(&order[place + 1..], available);
                    break;
                }
                continue;
            }
            before = estimate.tokens(used);
        }
        Ok(before)
    }

    /// Cuts chunk `index` so that it fits behind `start`, and returns the
    /// measure of what is left; None if it can't or mayn't be cut.
    fn cut_estimated(
        &mut self,
        estimate: Estimate,
        index: u32,
        start: u64,
        label: Vec<u8>,
    ) -> Option<u64> {
        let (keep, marker) = self.may_cut.take()?;
        let cut = Cut::new(self.batch.text(index as usize), keep, marker.into());
        let scratch = &mut self.scratch;
        let best = cut.longest(self.plan.budget, |head, tail| {
            Ok::<_, std::convert::Infallible>(
                estimate.tokens(start + cut.measure(estimate, head, tail, scratch)),
            )
        });
        let Ok(best) = best;
        let Piece { head, tail, .. } = best?;
        let size = cut.measure(estimate, head, tail, &mut self.scratch);
        self.keep_cut(index, estimate.tokens(size), label, cut.utf8(head, tail));
        Some(size)
    }

    /// Admits by the sum of the counts; then counts the assembled text, and
    /// takes out the lowest-ranked while it is over.
    fn pack_counted(&mut self, order: &[u32]) -> Result<u64, H::Error> {
        let mut used: u64 = 0;
        for (place, &index) in order.iter().enumerate() {
            if self.is_refused(index) {
                continue;
            }
            let needed = self.host.count(Subject::Chunk(index as usize))?;
            let available = self.plan.budget.saturating_sub(used);
            if needed <= available {
                used += needed;
                let label = self.label(index)?;
                self.keep(index, needed, label);
            } else if let Some(total) = self.cut_counted(index)? {
                used = total;
            } else {
                self.drop(index, Reason::Budget, needed, available);
                if self.plan.overflow == Overflow::Stop {
                    self.stop(&order[place + 1..], available);
                    break;
                }
            }
        }
        self.settle(Self::count_assembled)
    }

    /// Cuts chunk `index` so that the assembled text fits, and returns its
    /// count; None if the chunk can't or mayn't be cut.
    fn cut_counted(&mut self, index: u32) -> Result<Option<u64>, H::Error> {
        let Some((keep, marker)) = self.may_cut.take() else { return Ok(None) };
        let label = self.label(index)?;
        let mut front = self.assembled();
        if !self.admitted.kept.is_empty() {
            front.extend(self.plan.separator.as_bytes());
        }
        front.extend(&label);
        let taken =
            if front.is_empty() { 0 } else { self.host.count(Subject::Assembled(&front))? };
        let Some(mut room) = self.plan.budget.checked_sub(taken) else { return Ok(None) };

        let cut = Cut::new(self.batch.text(index as usize), keep, marker.into());
        for _ in 0..CUT_TRIES {
            if room == 0 {
                break;
            }
            let best = cut.longest(room, |head, tail| {
                let piece = cut.utf8(head, tail);
                self.host.count(Subject::Piece { index: index as usize, text: &piece })
            })?;
            let Some(Piece { head, tail, tokens }) = best else { break };
            self.keep_cut(index, tokens, label.clone(), cut.utf8(head, tail));
            let total = self.count_assembled()?;
            if total <= self.plan.budget {
                return Ok(Some(total));
            }
            self.take_out();
            room = room.saturating_sub(total - self.plan.budget);
        }
        Ok(None)
    }

    /// Counts the assembled text; while it is over the budget, the kept chunks
    /// of lowest rank leave.
    fn settle(
        &mut self,
        mut count_assembled: impl FnMut(&mut Self) -> Result<u64, H::Error>,
    ) -> Result<u64, H::Error> {
        let mut tries = 0;
        while !self.admitted.kept.is_empty() {
            let total = count_assembled(self)?;
            if total <= self.plan.budget {
                return Ok(total);
            }
            let leaving =
                if tries < SINGLE_TRIES { 1 } else { (self.admitted.kept.len() / 2).max(1) };
            let mut left = HashMap::new();
            for _ in 0..leaving {
                let Kept { index, tokens } = self.take_out();
                let others = total.saturating_sub(tokens);
                let (needed, available) = (tokens.max(1), self.plan.budget.saturating_sub(others));
                left.insert(index, (needed, available));
                self.drop(index, Reason::Budget, needed, available);
            }
            self.admitted.drop_repeated(&left);
            tries += 1;
        }
        Ok(0)
    }

    /// Admits as theaios-context-router 0.2.2 does: neither separators nor the
    /// marker count, and empty texts are kept.
    fn pack_sum_of_parts(&mut self, estimate: Estimate, order: &[u32]) -> u64 {
        let mut used = 0;
        for (place, &index) in order.iter().enumerate() {
            let available = self.plan.budget.saturating_sub(used);
            if available == 0 {
                self.drop_rest(&order[place..]);
                break;
            }
            let text = self.batch.text(index as usize);
            let needed = estimate.count_text(text, &mut self.scratch);
            if needed <= available {
                used += needed;
                self.admitted.kept.push(Kept { index, tokens: needed });
            } else if let Some((keep, marker)) = self.may_cut {
                let piece = cut_by_units(estimate, text, keep, marker, available);
                let tokens = estimate.count_text(Text::from_utf8(&piece), &mut self.scratch);
                used += tokens;
                self.admitted.kept.push(Kept { index, tokens });
                self.admitted.cut = Some((index, piece));
            } else {
                self.drop(index, Reason::Budget, needed, available);
            }
        }
        used
    }

    /// Returns whether chunk `index` goes out before its size matters, after
    /// dropping it.
    fn is_refused(&mut self, index: u32) -> bool {
        let cap = self.plan.max_chunks;
        if self.is_empty(index) {
            self.drop(index, Reason::Empty, 0, 0);
        } else if cap.is_some_and(|cap| self.admitted.kept.len() as u64 >= cap) {
            self.drop(index, Reason::Cap, 0, 0);
        } else if let Some(original) = self.original_of(index) {
            self.admitted.duplicates.push((index, original));
            self.drop(index, Reason::Duplicate, 0, 0);
        } else {
            return false;
        }
        true
    }

    fn is_empty(&self, index: u32) -> bool {
        // Most chunks are only dropped: to look at each text again would cost
        // a cache miss each.
        let may_be = self.measures.get(index as usize).is_none_or(|&measured| measured == 0);
        may_be && self.batch.text(index as usize).is_empty()
    }

    /// Returns the kept chunk with the same text as `index`.
    fn original_of(&self, index: u32) -> Option<u32> {
        let print = self.prints.get(index as usize)?;
        self.seen.find(*print, index, |index| self.batch.text(index as usize))
    }

    /// Drops everything behind the chunk that did not fit, uncounted.
    fn stop(&mut self, rest: &[u32], available: u64) {
        for &index in rest {
            if !self.is_refused(index) {
                self.drop(index, Reason::Budget, 0, available);
            }
        }
    }

    /// Drops everything that is left, whatever it is.
    fn drop_rest(&mut self, rest: &[u32]) {
        for &index in rest {
            self.drop(index, Reason::Budget, 0, 0);
        }
    }

    fn measure(&mut self, estimate: Estimate, index: u32) -> u64 {
        match self.measures[index as usize] {
            u32::MAX => estimate.measure(self.batch.text(index as usize), &mut self.scratch),
            measured => u64::from(measured),
        }
    }

    fn label(&mut self, index: u32) -> Result<Vec<u8>, H::Error> {
        if self.plan.is_labelled { self.host.label(index as usize) } else { Ok(Vec::new()) }
    }

    fn keep(&mut self, index: u32, tokens: u64, label: Vec<u8>) {
        if let Some(print) = self.prints.get(index as usize) {
            self.seen.insert(*print, index, |index| self.batch.text(index as usize));
        }
        if self.plan.is_labelled {
            self.admitted.labels.push(label);
        }
        self.admitted.kept.push(Kept { index, tokens });
    }

    /// Keeps a cut chunk, the only one. A repetition of its whole text is a
    /// duplicate.
    fn keep_cut(&mut self, index: u32, tokens: u64, label: Vec<u8>, piece: Vec<u8>) {
        self.keep(index, tokens, label);
        self.admitted.cut = Some((index, piece));
    }

    /// Removes the kept chunk of lowest rank.
    fn take_out(&mut self) -> Kept {
        let kept = self.admitted.kept.pop().expect("the caller saw that something is kept");
        self.admitted.labels.pop();
        self.costs.pop();
        self.admitted.cut.take_if(|(index, _)| *index == kept.index);
        if let Some(print) = self.prints.get(kept.index as usize) {
            self.seen.remove(*print, kept.index, |index| self.batch.text(index as usize));
        }
        kept
    }

    fn drop(&mut self, index: u32, reason: Reason, needed: u64, available: u64) {
        self.admitted.dropped.push(Dropped { index, reason, needed, available });
    }

    fn assembled(&self) -> Vec<u8> {
        let places = self.admitted.arranged(self.plan.input_order);
        let parts = places.iter().map(|&place| self.admitted.part(place as usize));
        assemble::text(self.batch, self.plan.separator, parts)
    }

    fn count_assembled(&mut self) -> Result<u64, H::Error> {
        let text = self.assembled();
        self.host.count(Subject::Assembled(&text))
    }
}

/// Cuts `text` to so many units of the estimate, the marker on top: words
/// joined by single spaces, or four code points a token.
fn cut_by_units(
    estimate: Estimate,
    text: Text<'_>,
    keep: Keep,
    marker: &str,
    max_tokens: u64,
) -> Vec<u8> {
    let max_tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
    let mut piece = Vec::new();
    if estimate == Estimate::Words {
        let mut scratch = Vec::new();
        let words: Vec<_> = crate::keywords::words(text.fold(&mut scratch)).collect();
        let (head, tail) = halves(keep, words.len(), max_tokens);
        write_words(text, &words[..head], &mut piece);
        piece.extend(marker.as_bytes());
        write_words(text, &words[tail..], &mut piece);
    } else {
        let chars = text.chars();
        let (head, tail) = halves(keep, chars, max_tokens.saturating_mul(4));
        text.slice(0, head).write_utf8(&mut piece);
        piece.extend(marker.as_bytes());
        text.slice(tail, chars).write_utf8(&mut piece);
    }
    piece
}

/// Returns where the head ends and the tail begins when at most `units` of
/// `length` stay.
fn halves(keep: Keep, length: usize, units: usize) -> (usize, usize) {
    let units = units.min(length);
    match keep {
        Keep::Both => (units / 2, length - (units - units / 2)),
        _ => (units, length),
    }
}

fn write_words(text: Text<'_>, words: &[(usize, usize)], out: &mut Vec<u8>) {
    let mut cursor = Cursor::new(text);
    for (place, &(start, end)) in words.iter().enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        cursor.slice(start, end).write_utf8(out);
    }
}
