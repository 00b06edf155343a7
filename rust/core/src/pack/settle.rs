//! Settling: chunks leave a text that is over the budget once it is assembled.

use std::collections::HashMap;

use super::Packer;
use super::meter::Meter;
use crate::chunk::Batch;
use crate::outcome::{Kept, Reason};
use crate::plan::Host;

/// In the first tries one chunk leaves at a time.
const SINGLE_TRIES: usize = 8;

/// In the tries after that, enough chunks leave to make up for the excess. In
/// any later try half of the rest leaves.
const SHARE_TRIES: usize = 8;

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Counts the assembled text; while it is over the budget, the kept chunks
    /// of lowest rank leave, and the notice before the best chunk.
    #[inline(never)] // so that admitting, which goes through every chunk, stays small
    pub(super) fn settle<M: Meter<B, H>>(&mut self, meter: &mut M) -> Result<u64, H::Error> {
        let mut tries = 0;
        while !self.admitted.kept.is_empty() {
            let tail = self.tail();
            let total = meter.total(self, &tail)?;
            if total <= self.call.budget {
                return Ok(total);
            }
            if self.shows_notice() {
                if self.wants_notice(0) {
                    self.set_notice(meter)?;
                }
                self.admitted.notice_yields |= self.admitted.kept.len() == 1;
                if self.admitted.notice_yields {
                    continue;
                }
            }
            let leaving = match tries {
                0..SINGLE_TRIES => 1,
                _ => self.leaving(tries, total),
            };
            let mut left = HashMap::new();
            for _ in 0..leaving {
                let kept = self.take_out(meter);
                self.drop_kept(kept, kept.tokens, total, &mut left);
            }
            self.admitted.drop_repeated(&left);
            tries += 1;
        }
        Ok(0)
    }

    /// Returns how many kept chunks leave a text of `total` tokens, which is
    /// over the budget.
    /// Each chunk is taken to weigh its share of the whole text, joints
    /// included; a chunk that counts 0 weighs nothing. At most half of the
    /// chunks leave, as a counter may return any large number for a text that
    /// is too long.
    fn leaving(&self, tries: usize, total: u64) -> usize {
        let kept = &self.admitted.kept;
        let sum: u128 = kept.iter().map(|kept| u128::from(kept.tokens)).sum();
        let half = (kept.len() / 2).max(1);
        if tries >= SINGLE_TRIES + SHARE_TRIES || sum == 0 {
            return half;
        }
        let excess = u128::from(total - self.call.budget).saturating_mul(sum);
        let mut weight: u128 = 0;
        let last = kept.iter().rev().position(|kept| {
            weight += u128::from(kept.tokens);
            weight.saturating_mul(total.into()) >= excess
        });
        last.map_or(half, |place| half.min(place + 1))
    }

    /// Takes out the kept chunk of lowest rank.
    pub(super) fn take_out<M: Meter<B, H>>(&mut self, meter: &mut M) -> Kept {
        meter.remove_last();
        let kept = self.admitted.kept.pop().expect("the caller saw that something is kept");
        self.admitted.frames.pop();
        self.room = self.room.saturating_add(kept.tokens).saturating_add(kept.citation);
        self.admitted.cuts.retain(|(index, _)| *index != kept.index);
        self.repeats.remove(self.batch, kept.index);
        kept
    }

    /// Drops a chunk that was kept, with `tokens` tokens, in a text of `total`
    /// tokens.
    pub(super) fn drop_kept(
        &mut self,
        kept: Kept,
        tokens: u64,
        total: u64,
        left: &mut HashMap<u32, (u64, u64)>,
    ) {
        let others = total.saturating_sub(tokens);
        let (needed, available) = (tokens.max(1), self.call.budget.saturating_sub(others));
        left.insert(kept.index, (needed, available));
        self.drop(kept.index, Reason::Budget, needed, available);
    }
}
