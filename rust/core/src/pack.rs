//! Admitting ranked chunks into a budget.
//!
//! This stage gets the chunks in rank order and returns indices and numbers.
//! Whatever it does, the law holds at its end: for exactly the assembled text,
//! the counter returns at most the budget.

use crate::assemble;
use crate::chunk::Batch;
use crate::gate::Gate;
use crate::outcome::{Admitted, Dropped, DroppedColumns, Frame, Kept, Reason};
use crate::plan::{Call, Counting, Host, Order, Plan, Policy};
use crate::reading::{Measures, Reading};
use crate::template::{Tag, Template, escape};
use crate::text::Text;
use crate::truncate::Keep;

use estimate::EstimateMeter;
use exact::ExactMeter;
use host::HostMeter;
use indexed::{Ranks, Trail};
use meter::Meter;
use repeats::Repeats;

mod admit;
mod estimate;
mod exact;
mod host;
pub(crate) mod indexed;
mod meter;
mod repeats;
mod settle;
mod sum_of_parts;

/// How often a cut is made shorter where the assembled text is still over.
const CUT_TRIES: usize = 8;

/// The chunks to admit.
pub(crate) enum Chunks<'a> {
    /// These, in this order.
    Listed(&'a [u32]),
    /// All chunks of a corpus by rank. Most of them need not be looked at.
    Ranked(&'a Ranks<'a>),
}

/// Admits chunks in rank order.
pub(crate) struct Packer<'p, B, H> {
    plan: &'p Plan,
    call: &'p Call<'p>,
    template: &'p Template,
    /// The gate, and how many more documents it considers.
    gate: Option<(&'p Gate, u64)>,
    batch: &'p B,
    /// The measure of each text, under an estimate; `u32::MAX` stands for a
    /// larger one.
    measures: Measures<'p>,
    host: &'p mut H,
    admitted: Admitted,
    repeats: Repeats<'p>,
    /// What a cut keeps, and its marker; None once no chunk may be cut any
    /// more.
    may_cut: Option<(Keep, &'static str)>,
    /// Whether room is set aside for the notice.
    has_notice: bool,
    /// The budget less the kept texts and their citations, each counted on its
    /// own; no limit where nothing is cited.
    room: u64,
    /// The tokens that were left where
    /// [`Overflow::Stop`](crate::Overflow::Stop) stopped.
    stopped: Option<u64>,
    /// The events of a packing in which not every chunk is looked at.
    trail: Option<Trail>,
}

impl<'p, B: Batch, H: Host> Packer<'p, B, H> {
    pub(crate) fn new(
        call: &'p Call<'p>,
        batch: &'p B,
        Reading { measures, prints }: Reading<'p>,
        host: &'p mut H,
        dropped: DroppedColumns,
    ) -> Self {
        let plan = call.plan;
        Self {
            plan,
            call,
            template: call.template(),
            gate: call.gate(),
            batch,
            measures,
            host,
            admitted: Admitted { dropped, ..Admitted::default() },
            repeats: Repeats::new(prints, plan.dedupe),
            may_cut: plan.overflow.cut(),
            has_notice: false,
            room: if plan.is_cited() { call.budget } else { u64::MAX },
            stopped: None,
            trail: None,
        }
    }

    /// Packs. Returns the tokens of the assembled text, and the record that
    /// tells what became of the chunks that were not looked at.
    pub(crate) fn pack(
        mut self,
        chunks: &Chunks<'_>,
    ) -> Result<(Admitted, u64, Option<Trail>), H::Error> {
        let plan = self.plan;
        let total = match (&plan.counting, chunks) {
            (Counting::Estimate(estimate), Chunks::Listed(order))
                if plan.policy == Policy::SumOfParts =>
            {
                self.pack_sum_of_parts(*estimate, order)?
            }
            (Counting::Estimate(estimate), _) => {
                self.fill(EstimateMeter::new(*estimate, self.call), chunks)?
            }
            (Counting::Exact(exact, _), _) => {
                self.fill(ExactMeter::new(exact, self.template), chunks)?
            }
            (Counting::Host, _) => self.fill(HostMeter::default(), chunks)?,
        };
        Ok((self.admitted, total, self.trail))
    }

    /// Admits the chunks that fit, and returns the tokens of the assembled
    /// text.
    fn fill<M: Meter<B, H>>(&mut self, mut meter: M, chunks: &Chunks<'_>) -> Result<u64, H::Error> {
        match chunks {
            Chunks::Listed(order) => {
                self.admit(&mut meter, order, u64::MAX)?;
            }
            Chunks::Ranked(ranks) => self.admit_ranked(&mut meter, ranks)?,
        }
        meter.finish(self)
    }

    /// Returns the frame of chunk `index`.
    fn frame(&mut self, index: u32) -> Result<Frame, H::Error> {
        if !self.call.is_framed() {
            return Ok(Frame::default());
        }
        let index = index as usize;
        let tag = self.host.tag(index)?;
        let (front, back) = self.template.around(&tag, index);
        let escaped = escape::body(&self.template.style, self.batch.text(index));
        let Tag { source, position, .. } = tag;
        Ok(Frame { front, back, escaped, source, position })
    }

    /// Returns the frame of chunk `index` with what the caller's function
    /// writes for it.
    fn written(&mut self, index: u32) -> Result<Frame, H::Error> {
        let index = index as usize;
        let escaped = Some(self.host.write(index)?);
        let Tag { source, position, .. } = match self.plan.order {
            Order::Document => self.host.tag(index)?,
            _ => Tag::default(),
        };
        Ok(Frame { escaped, source, position, ..Frame::default() })
    }

    /// Returns `piece`, which a cut has left, as it stands in the text.
    fn escaped(&self, piece: Vec<u8>) -> Vec<u8> {
        escape::body(&self.template.style, Text::from_utf8(&piece)).unwrap_or(piece)
    }

    fn keep(&mut self, index: u32, tokens: u64, citation: u64, frame: Frame) {
        self.repeats.insert(self.batch, index);
        if self.call.is_framed() {
            self.admitted.frames.push(frame);
        }
        self.admitted.kept.push(Kept { index, tokens, citation });
    }

    /// Keeps a cut chunk, of which `piece` is left. Only one chunk is cut. A
    /// repetition of its whole text is a duplicate.
    fn keep_cut(&mut self, index: u32, tokens: u64, frame: Frame, piece: Vec<u8>) {
        self.keep(index, tokens, 0, frame);
        self.admitted.cuts.push((index, piece));
    }

    /// Returns whether to set room aside for the notice: a chunk was dropped,
    /// or is about to be cut with `rest` chunks behind it.
    fn wants_notice(&self, rest: usize) -> bool {
        self.plan.notice.is_some()
            && !self.has_notice
            && !self.admitted.notice_yields
            && (rest > 0 || !self.admitted.dropped.index.is_empty())
    }

    /// Returns the separator and the longest notice there may be.
    fn longest_notice(&self) -> Vec<u8> {
        self.call.notice(self.batch.len())
    }

    /// Sets room aside for the notice, unless the best chunk needs it.
    fn set_notice<M: Meter<B, H>>(&mut self, meter: &mut M) -> Result<(), H::Error> {
        self.has_notice = meter.make_room(self)?;
        self.admitted.notice_yields = !self.has_notice;
        Ok(())
    }

    /// Returns whether the text has a notice when no more chunks are dropped.
    fn shows_notice(&self) -> bool {
        self.plan.notice.is_some() && self.admitted.noticed() > 0
    }

    /// Returns the most that may stand behind the last chunk.
    fn longest_tail(&self) -> Vec<u8> {
        self.call.tail(if self.has_notice { self.batch.len() } else { 0 })
    }

    fn drop(&mut self, index: u32, reason: Reason, needed: u64, available: u64) {
        self.admitted.dropped.push(Dropped { index, reason, needed, available });
    }

    /// Returns the assembled text, with `tail` behind the last chunk.
    fn assembled(&self, tail: &[u8]) -> Vec<u8> {
        let places = assemble::arrange(&self.admitted, self.call, self.batch);
        let parts = places.iter().map(|&place| self.admitted.part(place as usize));
        assemble::text(self.batch, self.call, parts, tail)
    }

    /// Returns the text behind the last chunk if no more chunks are dropped.
    fn tail(&self) -> Vec<u8> {
        self.call.tail(self.admitted.noticed())
    }
}
