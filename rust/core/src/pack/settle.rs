//! Taking chunks out of a text that is over the budget once it is assembled.

use std::collections::HashMap;

use super::Packer;
use crate::chunk::Batch;
use crate::plan::Host;

/// So many chunks leave an over-full text one by one.
const SINGLE_TRIES: usize = 8;

/// So many times after that as many leave as weigh what is too much; after
/// that, half of the rest at a time.
const SHARE_TRIES: usize = 8;

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Counts the assembled text; while it is over the budget, the kept chunks
    /// of lowest rank leave.
    #[inline(never)] // so that admitting, which goes through every chunk, stays small
    pub(super) fn settle(
        &mut self,
        mut count_assembled: impl FnMut(&mut Self) -> Result<u64, H::Error>,
    ) -> Result<u64, H::Error> {
        let mut tries = 0;
        while !self.admitted.kept.is_empty() {
            let total = count_assembled(self)?;
            if total <= self.call.budget {
                return Ok(total);
            }
            let leaving = match tries {
                0..SINGLE_TRIES => 1,
                _ => self.leaving(tries, total),
            };
            let mut left = HashMap::new();
            for _ in 0..leaving {
                let kept = self.take_out();
                self.drop_kept(kept, kept.tokens, total, &mut left);
            }
            self.admitted.drop_repeated(&left);
            tries += 1;
        }
        Ok(0)
    }

    /// Returns how many of the kept chunks leave a text of `total` tokens, which
    /// is over: at most half of them, as what a counter answers for long texts may
    /// mean no more than that they are too long. Each is taken to weigh its share
    /// of the whole text, joints included; those that count nothing have none.
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
}
