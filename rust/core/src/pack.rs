//! Admitting ranked chunks into a budget.
//!
//! This stage sees the chunks in rank order and answers with indices and
//! numbers. Whatever it does, the law holds at its end: the counter answers at
//! most the budget for exactly the text that is assembled.

use std::collections::HashMap;

use crate::assemble::{self, Frame, escape};
use crate::chunk::Batch;
use crate::pipeline::read::{Measures, Reading};
use crate::pipeline::{Counting, Host, Plan, Tag};
use crate::text::Text;
use crate::truncate::Keep;

use admit::Meter;
use estimate::EstimateMeter;
use exact::ExactMeter;
use host::HostMeter;
use indexed::{Ranks, Trail};
use repeats::Repeats;

mod admit;
mod estimate;
mod exact;
mod host;
pub(crate) mod indexed;
mod repeats;
mod settle;
mod sum_of_parts;

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

/// Which chunks are dropped as duplicates of kept ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dedupe {
    /// None.
    Off,
    /// Those with the same text.
    #[default]
    Exact,
    /// Those with the same text, and those that nearly repeat one.
    ///
    /// Texts are compared by their shingles: all runs of five words (of all words
    /// where there are fewer), as BM25 knows words. A chunk that fits is a
    /// duplicate where four fifths of the shingles that either has are in both,
    /// or all of its own are in the kept text.
    Near,
}

impl From<bool> for Dedupe {
    /// Returns [`Dedupe::Exact`] or [`Dedupe::Off`].
    fn from(dedupe: bool) -> Self {
        if dedupe { Self::Exact } else { Self::Off }
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
    /// A kept chunk has the same text, or nearly: see [`Dedupe`].
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
    /// Tokens set aside for citing it.
    pub citation: u64,
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
#[derive(Clone, Debug, Default)]
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
    pub(crate) fn reserve(&mut self, count: usize) {
        self.index.reserve_exact(count);
        self.reason.reserve_exact(count);
        self.needed.reserve_exact(count);
        self.available.reserve_exact(count);
    }

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

/// How often a cut is made shorter where the assembled text is still over.
const CUT_TRIES: usize = 8;

/// What became of the chunks so far.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) kept: Vec<Kept>,
    /// What stands around each kept chunk; empty where nothing does.
    pub(crate) frames: Vec<Frame>,
    pub(crate) dropped: DroppedColumns,
    /// Dropped duplicates, and the kept chunk that each one repeats.
    pub(crate) duplicates: Vec<(u32, u32)>,
    /// The index of the chunk that was cut, and what stands for what is left of
    /// it.
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

/// The chunks to admit.
pub(crate) enum Chunks<'a> {
    /// These, in this order.
    Listed(&'a [u32]),
    /// All of a corpus by rank; those that matter to nobody are not looked at.
    Ranked(&'a Ranks<'a>),
}

/// Admits chunks in rank order.
pub(crate) struct Packer<'p, B, H> {
    plan: &'p Plan<'p>,
    batch: &'p B,
    /// The measure of each text, where the counter is an estimate; `u32::MAX`
    /// stands for a larger one.
    measures: Measures<'p>,
    host: &'p mut H,
    admitted: Admitted,
    repeats: Repeats<'p>,
    /// What a cut keeps and its marker, as long as a chunk may be cut.
    may_cut: Option<(Keep, &'static str)>,
    /// Whether there is room for the notice.
    has_notice: bool,
    /// What is left of the budget once the kept texts and their citations, each
    /// counted by itself, are taken off; no limit where nothing is cited.
    room: u64,
    /// How many documents a gate has considered.
    considered: u64,
    /// What was left where [`Overflow::Stop`] stopped.
    stopped: Option<u64>,
    /// What happened at which chunk, where not every chunk is looked at.
    trail: Option<Trail>,
}

impl<'p, B: Batch, H: Host> Packer<'p, B, H> {
    pub(crate) fn new(
        plan: &'p Plan<'p>,
        batch: &'p B,
        Reading { measures, prints }: Reading<'p>,
        host: &'p mut H,
        dropped: DroppedColumns,
    ) -> Self {
        Self {
            plan,
            batch,
            measures,
            host,
            admitted: Admitted { dropped, ..Admitted::default() },
            repeats: Repeats::new(prints, plan.dedupe),
            // What is cited enters whole or not at all.
            may_cut: plan.overflow.cut().filter(|_| !plan.is_cited),
            has_notice: false,
            room: if plan.is_cited { plan.budget } else { u64::MAX },
            considered: 0,
            stopped: None,
            trail: None,
        }
    }

    /// Packs. Returns the number of tokens of the assembled text too, and what is
    /// needed to tell of the chunks that were not looked at.
    pub(crate) fn pack(
        mut self,
        chunks: &Chunks<'_>,
    ) -> Result<(Admitted, u64, Option<Trail>), H::Error> {
        let plan = self.plan;
        let total = match (plan.counting, chunks) {
            (Counting::Estimate(estimate), Chunks::Listed(order)) if plan.sum_of_parts => {
                self.pack_sum_of_parts(estimate, order)?
            }
            (Counting::Estimate(estimate), _) => {
                self.fill(EstimateMeter::new(estimate, plan), chunks)?
            }
            (Counting::Exact(exact), _) => self.fill(ExactMeter::new(exact, plan), chunks)?,
            (Counting::Host, _) => self.fill(HostMeter::default(), chunks)?,
        };
        Ok((self.admitted, total, self.trail))
    }

    /// Admits what fits, and returns the number of tokens of the assembled text.
    fn fill<M: Meter<B, H>>(&mut self, mut meter: M, chunks: &Chunks<'_>) -> Result<u64, H::Error> {
        match chunks {
            Chunks::Listed(order) => {
                self.admit(&mut meter, order, u64::MAX)?;
            }
            Chunks::Ranked(ranks) => self.admit_ranked(&mut meter, ranks)?,
        }
        meter.finish(self)
    }

    /// Drops what was kept and added `tokens` to a text of `total`.
    fn drop_kept(
        &mut self,
        kept: Kept,
        tokens: u64,
        total: u64,
        left: &mut HashMap<u32, (u64, u64)>,
    ) {
        let others = total.saturating_sub(tokens);
        let (needed, available) = (tokens.max(1), self.plan.budget.saturating_sub(others));
        left.insert(kept.index, (needed, available));
        self.drop(kept.index, Reason::Budget, needed, available);
    }

    /// Returns whether chunk `index` goes out before its size matters, after
    /// dropping it.
    fn is_refused(&mut self, index: u32) -> bool {
        let cap = self.plan.max_chunks;
        if self.is_empty(index) {
            self.drop(index, Reason::Empty, 0, 0);
        } else if self.is_beyond_gate(index)
            || cap.is_some_and(|cap| self.admitted.kept.len() as u64 >= cap)
        {
            self.drop(index, Reason::Cap, 0, 0);
        } else if let Some(original) = self.original_of(index) {
            self.drop_duplicate(index, original);
        } else {
            return false;
        }
        true
    }

    /// Returns whether chunk `index` is a document that a gate considers no
    /// more. One that it considers counts, whatever becomes of it.
    fn is_beyond_gate(&mut self, index: u32) -> bool {
        let Some(gate) = self.plan.gate.filter(|gate| gate.is_document(index)) else {
            return false;
        };
        self.considered += 1;
        !gate.admits(self.considered - 1)
    }

    /// Returns the tokens of citing chunk `index`, which fits, with room set aside
    /// for its `tokens` and for these; else what would be needed, and what is left.
    fn cite(&mut self, index: u32, tokens: u64) -> Result<Result<u64, (u64, u64)>, H::Error> {
        if !self.plan.is_cited {
            return Ok(Ok(0));
        }
        let mut needed = tokens;
        if tokens <= self.room {
            let citation = self.host.cite(index as usize)?;
            needed = tokens.saturating_add(citation);
            if needed <= self.room {
                self.room -= needed;
                return Ok(Ok(citation));
            }
        }
        Ok(Err((needed, self.room)))
    }

    fn is_empty(&self, index: u32) -> bool {
        // Most chunks are only dropped: to look at each text again would cost
        // a cache miss each.
        let may_be = self.measures.get(index).is_none_or(|measured| measured == 0);
        may_be && self.batch.text(index as usize).is_empty()
    }

    /// Returns the kept chunk with the same text as `index`.
    fn original_of(&self, index: u32) -> Option<u32> {
        self.repeats.original_of(self.batch, index)
    }

    /// Returns whether chunk `index` nearly repeats a kept one, after dropping it.
    /// That is not asked where it does not fit, unless it would be cut or be the
    /// end.
    fn is_near(&mut self, index: u32, fits: bool) -> Result<bool, H::Error> {
        let Some(near) = &mut self.repeats.near else { return Ok(false) };
        if !fits && self.may_cut.is_none() && self.plan.overflow != Overflow::Stop {
            return Ok(false);
        }
        let text = self.batch.text(index as usize);
        let cost = near.cost(text);
        let place = self.host.work(cost, |stop| near.find(text, stop))?;
        if let Some(place) = place {
            self.drop_duplicate(index, self.admitted.kept[place as usize].index);
        }
        Ok(place.is_some())
    }

    fn drop_duplicate(&mut self, index: u32, original: u32) {
        self.admitted.duplicates.push((index, original));
        self.drop(index, Reason::Duplicate, 0, 0);
    }

    /// Returns what stands around chunk `index` in the text.
    fn frame(&mut self, index: u32) -> Result<Frame, H::Error> {
        if !self.plan.is_framed() {
            return Ok(Frame::default());
        }
        let index = index as usize;
        let tag = self.host.tag(index)?;
        let (front, back) = self.plan.template.around(&tag, index);
        let escaped = escape::body(&self.plan.template.style, self.batch.text(index));
        let Tag { source, position, .. } = tag;
        Ok(Frame { front, back, escaped, source, position })
    }

    /// Returns what stands in the text for `piece`, which a cut has left.
    fn escaped(&self, piece: Vec<u8>) -> Vec<u8> {
        escape::body(&self.plan.template.style, Text::from_utf8(&piece)).unwrap_or(piece)
    }

    fn keep(&mut self, index: u32, tokens: u64, citation: u64, frame: Frame) {
        self.repeats.insert(self.batch, index);
        if self.plan.is_framed() {
            self.admitted.frames.push(frame);
        }
        self.admitted.kept.push(Kept { index, tokens, citation });
    }

    /// Keeps a cut chunk, the only one, for which `piece` stands. A repetition
    /// of its whole text is a duplicate.
    fn keep_cut(&mut self, index: u32, tokens: u64, frame: Frame, piece: Vec<u8>) {
        self.keep(index, tokens, 0, frame);
        self.admitted.cut = Some((index, piece));
    }

    /// Returns whether it is time to set room aside for the notice: something
    /// was dropped, or is about to be cut with `rest` chunks behind it.
    fn wants_notice(&self, rest: usize) -> bool {
        self.plan.notice.is_some()
            && !self.has_notice
            && (rest > 0 || !self.admitted.dropped.index.is_empty())
    }

    /// Returns the separator and the longest notice there may be, from now on
    /// with room for it.
    fn set_notice(&mut self) -> Vec<u8> {
        self.has_notice = true;
        self.plan.notice(self.batch.len())
    }

    /// Returns the most that may stand behind the last chunk.
    fn longest_tail(&self) -> Vec<u8> {
        self.plan.tail(if self.has_notice { self.batch.len() } else { 0 })
    }

    fn drop(&mut self, index: u32, reason: Reason, needed: u64, available: u64) {
        self.admitted.dropped.push(Dropped { index, reason, needed, available });
    }

    /// Returns the assembled text, with `tail` behind the last chunk.
    fn assembled(&self, tail: &[u8]) -> Vec<u8> {
        let places = self.admitted.arranged(self.plan, self.batch);
        let parts = places.iter().map(|&place| self.admitted.part(place as usize));
        assemble::text(self.batch, self.plan, parts, tail)
    }

    /// Returns what stands behind the last chunk when no more are dropped.
    fn tail(&self) -> Vec<u8> {
        self.plan.tail(self.admitted.dropped.index.len())
    }
}
