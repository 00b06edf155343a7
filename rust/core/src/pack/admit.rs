//! The loop that admits chunks, whatever counts them.

use super::indexed::Unseen;
use super::{Overflow, Packer, Reason};
use crate::assemble::Frame;
use crate::chunk::Batch;
use crate::pipeline::Host;
use crate::truncate::Keep;

/// What a chunk needs, and what is left for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// The tokens of its text alone; 0 where nobody knows as it does not fit.
    pub(super) tokens: u64,
    /// The tokens that it adds to the text, or a number above `available`.
    pub(super) needed: u64,
    /// What is left of the budget.
    pub(super) available: u64,
}

impl Need {
    #[inline]
    pub(super) fn fits(self) -> bool {
        self.needed <= self.available
    }
}

/// Measures chunks and the text that they make, and knows what the kept ones
/// use of the budget. There is one for each [`Counting`](crate::pipeline::Counting).
pub(super) trait Meter<B: Batch, H: Host>: Sized {
    /// A measured chunk.
    type Chunk;

    /// Whether a chunk that does not fit is measured to its end, so that a
    /// packing can say what it needs.
    const MEASURES_ALL: bool;

    /// Starts on the next chunks in rank order.
    fn begin(&mut self) {}

    /// Returns how many tokens are left.
    fn available(&self, packer: &Packer<'_, B, H>) -> u64;

    /// Sets room aside for the notice. What was measured stays as it is, but what
    /// it needs, and what is left, may change.
    fn make_room(&mut self, packer: &mut Packer<'_, B, H>) -> Result<(), H::Error>;

    /// Measures the chunk at `place` in `order`.
    fn measure(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        order: &[u32],
        place: usize,
    ) -> Result<Self::Chunk, H::Error>;

    /// Returns what a measured chunk needs behind those that are kept.
    fn need(&self, packer: &Packer<'_, B, H>, chunk: &Self::Chunk) -> Need;

    /// Adds a chunk that fits, and returns what stands around it. The packer keeps
    /// it next.
    fn add(&mut self, packer: &Packer<'_, B, H>, index: u32, chunk: Self::Chunk) -> Frame;

    /// Forgets the chunk that was added last.
    fn remove_last(&mut self);

    /// Cuts chunk `index`, which does not fit, so that the text does. Adds and
    /// keeps what is left of it, and returns true; false if nothing would be left.
    fn cut(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        chunk: Self::Chunk,
        cut: (Keep, &'static str),
    ) -> Result<bool, H::Error>;

    /// Returns the tokens of the assembled text, in which there is a chunk, with
    /// `tail` behind the last one.
    fn total(&mut self, packer: &mut Packer<'_, B, H>, tail: &[u8]) -> Result<u64, H::Error>;

    /// Returns the tokens of the assembled text once it is within the budget.
    fn finish(&mut self, packer: &mut Packer<'_, B, H>) -> Result<u64, H::Error> {
        packer.settle(self)
    }

    /// Returns what becomes of a chunk that does not fit and is not looked at.
    fn unseen(&self, packer: &Packer<'_, B, H>) -> Unseen;
}

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Admits what fits of the next chunks in rank order. Ends early where more
    /// than `most` tokens are left, and returns how many chunks it went through.
    pub(super) fn admit<M: Meter<B, H>>(
        &mut self,
        meter: &mut M,
        order: &[u32],
        most: u64,
    ) -> Result<usize, H::Error> {
        meter.begin();
        for (place, &index) in order.iter().enumerate() {
            if meter.available(self) > most {
                return Ok(place);
            }
            if self.is_refused(index) {
                continue;
            }
            if self.wants_notice(0) {
                meter.make_room(self)?;
            }
            let chunk = meter.measure(self, order, place)?;
            let mut need = meter.need(self, &chunk);
            if self.repeats.near.is_some() && self.is_near(index, need.fits())? {
                continue;
            }
            if !need.fits() && self.may_cut.is_some() && self.wants_notice(order.len() - place - 1)
            {
                meter.make_room(self)?;
                need = meter.need(self, &chunk);
            }
            let short = if need.fits() {
                match self.cite(index, need.tokens)? {
                    Ok(citation) => {
                        let frame = meter.add(self, index, chunk);
                        self.keep(index, need.tokens, citation, frame);
                        self.note(meter, index, true);
                        continue;
                    }
                    Err(short) => short,
                }
            } else {
                (need.needed, need.available)
            };
            if let Some(cut) = self.may_cut.take()
                && meter.cut(self, index, chunk, cut)?
            {
                self.note(meter, index, true);
                continue;
            }
            let (needed, available) = if M::MEASURES_ALL {
                short
            } else {
                (need.available.saturating_add(1), need.available)
            };
            self.drop(index, Reason::Budget, needed, available);
            if self.plan.overflow == Overflow::Stop {
                self.stop(meter, index, &order[place + 1..], available);
                break;
            }
        }
        Ok(order.len())
    }

    /// Drops everything behind chunk `index`, which did not fit, unmeasured.
    fn stop<M: Meter<B, H>>(&mut self, meter: &M, index: u32, rest: &[u32], available: u64) {
        self.stopped = Some(available);
        self.note(meter, index, false);
        self.drop_unmeasured(rest, available);
    }

    /// Drops what packing did not come to before it stopped.
    pub(super) fn drop_unmeasured(&mut self, rest: &[u32], available: u64) {
        for &index in rest {
            if !self.is_refused(index) {
                self.drop(index, Reason::Budget, 0, available);
            }
        }
    }

    /// Keeps what a cut left of chunk `index` if the assembled text then fits, and
    /// returns its tokens; else by how many it is over.
    pub(super) fn try_cut<M: Meter<B, H>>(
        &mut self,
        meter: &mut M,
        index: u32,
        tokens: u64,
        frame: Frame,
        piece: Vec<u8>,
    ) -> Result<Result<u64, u64>, H::Error> {
        self.keep_cut(index, tokens, frame, piece);
        let tail = self.longest_tail();
        let total = meter.total(self, &tail)?;
        if total <= self.plan.budget {
            return Ok(Ok(total));
        }
        self.take_out(meter);
        Ok(Err(total - self.plan.budget))
    }

    /// Removes the kept chunk of lowest rank.
    pub(super) fn take_out<M: Meter<B, H>>(&mut self, meter: &mut M) -> super::Kept {
        meter.remove_last();
        let kept = self.admitted.kept.pop().expect("the caller saw that something is kept");
        self.admitted.frames.pop();
        self.room = self.room.saturating_add(kept.tokens).saturating_add(kept.citation);
        self.admitted.cut.take_if(|(index, _)| *index == kept.index);
        self.repeats.remove(self.batch, kept.index);
        kept
    }
}
