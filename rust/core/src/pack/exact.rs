//! Admitting under an exact counter.
//!
//! A chunk is admitted by what it and those before it cost, each with its label
//! and the separator behind it. What they cost together follows from that where
//! each starts anew behind the line end of a separator; where one does not, it
//! is counted together with the one in front.

use std::sync::atomic::AtomicBool;

use super::{CUT_TRIES, Overflow, Packer, Reason};
use crate::chunk::Batch;
use crate::count::exact::{GO_ON, count_text};
use crate::count::{Exact, joint};
use crate::pipeline::Host;
use crate::text::Text;

/// What a kept chunk costs in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Its tokens, with its label.
    tokens: u64,
    /// What a separator behind it adds.
    separator: i64,
    /// Whether it may be counted by itself behind a separator.
    starts_anew: bool,
}

/// So many code points have about a token.
const CHARS_PER_TOKEN: u64 = 4;

/// Counting a code point takes as long as reading so many.
const COUNTING: usize = 8;

/// So many code points are counted without a look at what the host wants: a
/// tenth of a millisecond's work.
const INLINE_CHARS: usize = 1 << 15;

/// So many in one go at most.
const MOST_CHARS: usize = 1 << 22;

/// Counts of chunks that are about to be considered.
#[derive(Debug, Default)]
struct Ahead {
    /// The place in the order of the first of them, and the counts; 0 for those
    /// that were left out.
    from: usize,
    counts: Vec<u64>,
}

impl Ahead {
    fn get(&self, place: usize) -> Option<u64> {
        self.counts.get(place.checked_sub(self.from)?).copied().filter(|&count| count > 0)
    }

    fn end(&self) -> usize {
        self.from + self.counts.len()
    }
}

/// What the kept chunks cost together, as long as each starts anew.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Their tokens, with a separator behind each but the last.
    total: i64,
    /// The last one in the order of the text, and what a separator behind it
    /// adds.
    last: Option<(u32, i64)>,
}

impl Used {
    /// Returns what a separator adds if chunk `index`, which one behind it costs
    /// `own`, is kept too.
    fn separator(self, index: u32, own: i64, input_order: bool) -> i64 {
        match self.last {
            Some((last, _)) if input_order && index < last => own,
            Some((_, separator)) => separator,
            None => 0,
        }
    }

    fn add(&mut self, index: u32, cost: Cost, input_order: bool) {
        let separator = self.separator(index, cost.separator, input_order);
        self.total += cost.tokens.cast_signed() + separator;
        if self.last.is_none_or(|(last, _)| !input_order || index > last) {
            self.last = Some((index, cost.separator));
        }
    }
}

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Admits by what each costs with a separator; then counts what they cost
    /// together, and takes out the lowest-ranked while that is over.
    pub(super) fn pack_exact(&mut self, exact: Exact, order: &[u32]) -> Result<u64, H::Error> {
        let mut used = Used::default();
        let mut ahead = Ahead::default();
        for (place, &index) in order.iter().enumerate() {
            if self.is_refused(index) {
                continue;
            }
            let available = self.plan.budget.saturating_add_signed(-used.total);
            if place >= ahead.end() {
                ahead = self.count_ahead(exact, order, place, available)?;
            }
            let count = ahead.get(place);
            let mut kept = self.keep_exact(exact, index, count, used, available)?;
            if kept.is_none() {
                kept = self.cut_exact(exact, index, used, available)?;
            }
            if let Some(cost) = kept {
                used.add(index, cost, self.plan.input_order);
            } else {
                self.drop(index, Reason::Budget, available.saturating_add(1), available);
                if self.plan.overflow == Overflow::Stop {
                    self.stop(&order[place + 1..], available);
                    break;
                }
            }
        }
        self.settle(|packer| Ok(packer.count_joined(exact)))
    }

    /// Counts what comes next in the order and may well be admitted, where that
    /// is more than a little.
    fn count_ahead(
        &mut self,
        exact: Exact,
        order: &[u32],
        from: usize,
        available: u64,
    ) -> Result<Ahead, H::Error> {
        let expected = available.saturating_mul(CHARS_PER_TOKEN);
        let most = usize::try_from(expected).unwrap_or(MOST_CHARS).min(MOST_CHARS);
        if most <= INLINE_CHARS {
            return Ok(Ahead::default());
        }
        let wanted = self
            .plan
            .max_chunks
            .map_or(u64::MAX, |most| most.saturating_sub(self.admitted.kept.len() as u64));
        let mut chars = 0;
        let mut counts = Vec::new();
        let mut indices = Vec::new();
        for &index in &order[from..] {
            let is_wanted = u64::from(self.measures[index as usize]) <= available
                && self.original_of(index).is_none();
            if is_wanted {
                chars += self.batch.text(index as usize).chars();
                indices.push(index);
            }
            counts.push(u64::from(is_wanted));
            if chars >= most || indices.len() as u64 >= wanted {
                break;
            }
        }
        let batch = self.batch;
        let mut counted = self
            .host
            .work(chars.saturating_mul(COUNTING), |stop| exact.count_batch(batch, &indices, stop))?
            .into_iter();
        for count in &mut counts {
            if *count > 0 {
                *count = counted.next().unwrap_or(0);
            }
        }
        Ok(Ahead { from, counts })
    }

    /// Keeps chunk `index` if it fits into `available` tokens, and returns what
    /// it costs; `count` is its count if that is known.
    fn keep_exact(
        &mut self,
        exact: Exact,
        index: u32,
        count: Option<u64>,
        used: Used,
        available: u64,
    ) -> Result<Option<Cost>, H::Error> {
        if u64::from(self.measures[index as usize]) > available {
            return Ok(None);
        }
        let text = self.batch.text(index as usize);
        let tokens = match count {
            Some(count) => Some(count).filter(|&count| count <= available),
            None => exact.count_text(text, available, &GO_ON),
        };
        let Some(tokens) = tokens else { return Ok(None) };
        let label = self.label(index)?;
        let cost = self.cost(exact, &label, text, tokens);
        let separator = used.separator(index, cost.separator, self.plan.input_order);
        if cost.tokens.saturating_add_signed(separator) > available {
            return Ok(None);
        }
        self.costs.push(cost);
        self.keep(index, tokens, label);
        Ok(Some(cost))
    }

    /// Returns what a text of so many tokens costs with its label.
    fn cost(&self, exact: Exact, label: &[u8], text: Text<'_>, tokens: u64) -> Cost {
        let labelling = match label {
            [] => 0,
            label => joint::before(exact.encoding(), label, text),
        };
        Cost {
            tokens: tokens.saturating_add_signed(labelling),
            separator: joint::behind(exact.encoding(), label, text, self.plan.separator),
            starts_anew: !label.is_empty() || joint::starts_anew(text),
        }
    }

    /// Cuts chunk `index` so that the assembled text fits, and returns what is
    /// left of it costs; None if it can't or mayn't be cut.
    fn cut_exact(
        &mut self,
        exact: Exact,
        index: u32,
        used: Used,
        available: u64,
    ) -> Result<Option<Cost>, H::Error> {
        let Some((keep, marker)) = self.may_cut.take() else { return Ok(None) };
        let label = self.label(index)?;
        let label_tokens = match &label[..] {
            [] => Some(0),
            label => exact.count_text(Text::from_utf8(label), u64::MAX, &GO_ON),
        };
        // A separator may make the text in front count less.
        let separator = used.last.map_or(0, |(_, separator)| separator);
        let taken = label_tokens.unwrap_or(u64::MAX).cast_signed().saturating_add(separator);
        let mut room = available.saturating_add_signed(-taken);
        let text = self.batch.text(index as usize);
        let cost = text.chars().saturating_mul(COUNTING);
        for _ in 0..CUT_TRIES {
            if room == 0 {
                break;
            }
            let work = |stop: &AtomicBool| exact.cut(text, room, keep, marker.into(), stop);
            let Some((tokens, piece)) = self.host.work(cost, work)? else { break };
            let left = Text::from_utf8(&piece);
            let cost = self.cost(exact, &label, left, tokens);
            self.costs.push(cost);
            self.keep_cut(index, tokens, label.clone(), piece);
            let total = self.count_joined(exact);
            if total <= self.plan.budget {
                return Ok(Some(cost));
            }
            self.take_out();
            room = room.saturating_sub(total - self.plan.budget);
        }
        Ok(None)
    }

    /// Returns the count of the assembled text, of which there must be some.
    fn count_joined(&mut self, exact: Exact) -> u64 {
        let places = self.admitted.arranged(self.plan.input_order);
        let mut total: i64 = 0;
        let mut from = 0;
        while from < places.len() {
            let alone = &places[from + 1..];
            let size = 1 + alone
                .iter()
                .take_while(|&&place| !self.costs[place as usize].starts_anew)
                .count();
            let group = &places[from..from + size];
            from += size;
            let is_last = from == places.len();
            if let [place] = group {
                let cost = self.costs[*place as usize];
                total += cost.tokens.cast_signed() + if is_last { 0 } else { cost.separator };
                continue;
            }
            let mut text = Vec::new();
            for (i, &place) in group.iter().enumerate() {
                let part = self.admitted.part(place as usize);
                text.extend_from_slice(part.label);
                part.body(self.batch).write_scalars(&mut text);
                if i + 1 < size || !is_last {
                    text.extend_from_slice(self.plan.separator.as_bytes());
                }
            }
            let text = Text::from_utf8(&text);
            let count = count_text(exact.encoding(), text, u64::MAX, &GO_ON);
            total += count.unwrap_or(u64::MAX).cast_signed();
        }
        total.cast_unsigned()
    }
}
