//! Admitting first what is worth most together.

use super::{Packer, exact};
use crate::chunk::Batch;
use crate::duplicate::Seen;
use crate::plan::{Counting, Host, Subject};
use crate::selection::{knapsack, knapsack_candidates};
use crate::text::Text;

/// Deciding about one chunk and one size takes as long as reading so many code
/// points.
const DECIDING: usize = 4;

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Returns `order`, which is by rank, with those first that fit and have the
    /// highest sum of scores.
    pub(super) fn by_knapsack(
        &mut self,
        order: &[u32],
        scores: &[f64],
    ) -> Result<Vec<u32>, H::Error> {
        let template = self.template;
        let around = [template.header.as_bytes(), template.footer.as_bytes()].concat();
        let around = self.count_part(&around)?;
        self.known_around = Some(around);
        let room = self.call.budget.saturating_sub(around);
        let separator = self.count_part(template.separator.as_bytes())?;
        let capacity = room.saturating_add(separator);
        let (mut places, mut items) = (Vec::new(), Vec::new());
        let mut seen = Seen::default();
        for (place, &index) in order.iter().enumerate().take(knapsack_candidates(capacity)) {
            let value = scores[index as usize];
            if value.is_nan() || value <= 0.0 || self.is_empty(index) {
                continue;
            }
            if let Some(&print) = self.prints.get(index as usize) {
                let text = |index| self.batch.text(index as usize);
                if seen.find(print, index, text).is_some() {
                    continue;
                }
                seen.insert(print, index, text);
            }
            if let Some(tokens) = self.part(index, room)? {
                places.push(place);
                items.push((value, tokens.saturating_add(separator)));
            }
        }
        let capacity =
            capacity.min(items.iter().fold(0, |sum, (_, cost)| sum.saturating_add(*cost)));
        let cells = usize::try_from(capacity).unwrap_or(usize::MAX).saturating_mul(items.len());
        let taken =
            self.host.work(cells.saturating_mul(DECIDING), |_| knapsack(&items, capacity))?;
        let mut is_first = vec![false; order.len()];
        places.into_iter().zip(taken).for_each(|(place, taken)| is_first[place] = taken);
        let of = |first: bool| {
            let chosen =
                order.iter().zip(&is_first).filter(move |&(_, &is_first)| is_first == first);
            chosen.map(|(&index, _)| index)
        };
        Ok(of(true).chain(of(false)).collect())
    }

    /// Returns the tokens of chunk `index` as it would stand in the text, alone;
    /// None where that is more than `room`.
    fn part(&mut self, index: u32, room: u64) -> Result<Option<u64>, H::Error> {
        let tokens = match self.plan.counting {
            Counting::Estimate(estimate) => {
                let size = self.measure(estimate, index);
                if self.call.is_bare() {
                    estimate.tokens(size)
                } else {
                    let frame = self.frame(index)?;
                    estimate.tokens(self.whole(estimate, index, size, &frame).measured)
                }
            }
            Counting::Exact(exact) => {
                let used = exact::Used::default();
                let Some(fitting) = self.fit_exact(exact, index, None, used, room)? else {
                    return Ok(None);
                };
                fitting.needed
            }
            Counting::Host => {
                let tokens = self.host.count(Subject::Chunk(index as usize))?;
                self.known.insert(index, tokens);
                if tokens > room {
                    return Ok(None);
                }
                let frame = self.frame(index)?;
                self.with_frame(tokens, index, &frame)
            }
        };
        Ok(Some(tokens).filter(|&tokens| tokens <= room))
    }

    /// Returns the tokens of a text beside the chunks.
    fn count_part(&mut self, text: &[u8]) -> Result<u64, H::Error> {
        match self.plan.counting {
            Counting::Estimate(estimate) => {
                // What has no word adds none.
                let measured = estimate.measure(Text::from_utf8(text), &mut self.scratch);
                Ok(if measured == 0 { 0 } else { estimate.tokens(measured) })
            }
            Counting::Exact(exact) => Ok(exact::count(exact, text)),
            Counting::Host => self.count_around(&[text]),
        }
    }
}
