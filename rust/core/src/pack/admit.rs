//! The loop that admits chunks, under every counter.
//!
//! It asks the same questions about each chunk, in this order: is it empty,
//! above a cap, a duplicate of a kept chunk, and does it fit? A chunk that does
//! not fit may be cut, or may end the packing.

use super::Packer;
use super::meter::Meter;
use crate::chunk::Batch;
use crate::outcome::{Frame, Reason};
use crate::plan::{Host, Overflow};

/// The chunks after which a host may end the packing, however short they are.
const LOOK_EVERY: usize = 1024;

/// A chunk for the caller's function to write.
enum Offered {
    /// What it wrote.
    Frame(Frame),
    /// It was dropped.
    Dropped,
    /// Nothing was written, as no token is left.
    NoRoom,
}

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Admits the chunks that fit, in rank order. Ends early where more than
    /// `most` tokens are left, and returns the number of chunks that it went
    /// through.
    pub(super) fn admit<M: Meter<B, H>>(
        &mut self,
        meter: &mut M,
        order: &[u32],
        most: u64,
    ) -> Result<usize, H::Error> {
        meter.begin();
        let is_written = self.template.writer().is_some();
        for (place, &index) in order.iter().enumerate() {
            if meter.available(self) > most {
                return Ok(place);
            }
            if place % LOOK_EVERY == LOOK_EVERY - 1 {
                self.host.work(0, |_| ())?;
            }
            if self.is_refused(index) {
                continue;
            }
            if !self.admitted.kept.is_empty() && self.wants_notice(0) {
                self.set_notice(meter)?;
            }
            let chunk = if is_written {
                match self.write(meter, index)? {
                    Offered::Frame(frame) => meter.measure_written(self, index, frame)?,
                    Offered::NoRoom if self.drop_over(meter, order, place, (1, 0)) => break,
                    Offered::NoRoom | Offered::Dropped => continue,
                }
            } else {
                meter.measure(self, order, place)?
            };
            let mut need = meter.need(self, &chunk);
            if self.repeats.near.is_some() && !is_written && self.is_near(index, need.fits())? {
                continue;
            }
            if !need.fits() && self.may_cut.is_some() && self.wants_notice(order.len() - place - 1)
            {
                self.set_notice(meter)?;
                need = meter.need(self, &chunk);
            }
            let mut short = if need.fits() {
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
            if let Some(cut) = self.may_cut.take() {
                let mut is_kept = meter.cut(self, index, &chunk, cut)?;
                if !is_kept && self.has_notice && self.admitted.kept.is_empty() {
                    self.has_notice = false;
                    meter.give_back(self);
                    need = meter.need(self, &chunk);
                    short = (need.needed, need.available);
                    is_kept = meter.cut(self, index, &chunk, cut)?;
                    self.admitted.notice_yields = is_kept;
                }
                if is_kept {
                    self.note(meter, index, true);
                    continue;
                }
            }
            if !M::MEASURES_ALL {
                // Nobody has counted how many more tokens it needs.
                short = (need.available.saturating_add(1), need.available);
            }
            if self.drop_over(meter, order, place, short) {
                break;
            }
        }
        Ok(order.len())
    }

    /// Drops the chunk at `place` in `order`, which does not fit: it needs more
    /// tokens than are available. Returns whether that ends the packing.
    #[inline]
    fn drop_over<M: Meter<B, H>>(
        &mut self,
        meter: &M,
        order: &[u32],
        place: usize,
        (needed, available): (u64, u64),
    ) -> bool {
        let index = order[place];
        self.drop(index, Reason::Budget, needed, available);
        let stops = self.plan.overflow == Overflow::Stop;
        if stops {
            self.stop(meter, index, &order[place + 1..], available);
        }
        stops
    }

    /// Has the caller's function write chunk `index`, if a token is left and it
    /// does not nearly repeat a kept chunk. Drops it if nothing is written.
    #[inline(never)] // so that going through every chunk stays small
    fn write<M: Meter<B, H>>(&mut self, meter: &mut M, index: u32) -> Result<Offered, H::Error> {
        meter.prepare(self)?;
        if meter.available(self) == 0 {
            return Ok(Offered::NoRoom);
        }
        if self.is_near(index, true)? {
            return Ok(Offered::Dropped);
        }
        let frame = self.written(index)?;
        if frame.written().is_empty() {
            self.drop(index, Reason::Empty, 0, 0);
            return Ok(Offered::Dropped);
        }
        Ok(Offered::Frame(frame))
    }

    /// Drops chunk `index` if it is empty, above a cap, or a duplicate, whatever
    /// its size. Returns whether it did.
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

    /// Returns whether chunk `index` is a document beyond those that a gate
    /// considers. A considered document counts, whatever becomes of it.
    fn is_beyond_gate(&mut self, index: u32) -> bool {
        let Some((gate, left)) = &mut self.gate else { return false };
        if !gate.is_document(index) {
            return false;
        }
        let is_beyond = *left == 0;
        *left = left.saturating_sub(1);
        is_beyond
    }

    fn is_empty(&self, index: u32) -> bool {
        // Most chunks are only dropped: to look at each text again would cost a
        // cache miss each.
        let may_be = self.measures.get(index).is_none_or(|measured| measured == 0);
        may_be && self.batch.text(index as usize).is_empty()
    }

    /// Returns the kept chunk with the same text as `index`.
    pub(super) fn original_of(&self, index: u32) -> Option<u32> {
        self.repeats.original_of(self.batch, index)
    }

    /// Drops chunk `index` if it nearly repeats a kept chunk, and returns
    /// whether it did. A chunk that does not fit is not compared, unless it
    /// would be cut or end the packing.
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

    /// Returns the tokens of citing chunk `index`, which fits, after setting
    /// room aside for them and for its `tokens`; or else the tokens needed and
    /// available.
    fn cite(&mut self, index: u32, tokens: u64) -> Result<Result<u64, (u64, u64)>, H::Error> {
        if !self.plan.is_cited() {
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

    /// Drops all chunks behind chunk `index`, which did not fit, without
    /// measuring them.
    fn stop<M: Meter<B, H>>(&mut self, meter: &M, index: u32, rest: &[u32], available: u64) {
        self.stopped = Some(available);
        self.note(meter, index, false);
        self.drop_unmeasured(rest, available);
    }

    /// Drops the chunks that packing did not reach before it stopped.
    pub(super) fn drop_unmeasured(&mut self, rest: &[u32], available: u64) {
        for &index in rest {
            if !self.is_refused(index) {
                self.drop(index, Reason::Budget, 0, available);
            }
        }
    }

    /// Keeps the rest of chunk `index` after a cut, if the assembled text then
    /// fits, and returns its tokens; else returns the excess.
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
        if total <= self.call.budget {
            return Ok(Ok(total));
        }
        self.take_out(meter);
        Ok(Err(total - self.call.budget))
    }
}
