//! Admitting under an exact counter.
//!
//! A chunk is admitted by what it and those before it cost, each with its label
//! and the separator behind it. What they cost together follows from that where
//! each starts anew behind the line end of a separator; where one does not, it
//! is counted together with the one in front.

use std::sync::atomic::AtomicBool;

use super::{CUT_TRIES, Packer};
use crate::assemble;
use crate::chunk::Batch;
use crate::count::exact::{GO_ON, count_text};
use crate::count::{Exact, joint};
use crate::outcome::{Frame, Reason};
use crate::plan::{Host, Order, Overflow};
use crate::template::escape;
use crate::text::Text;

/// What a kept chunk costs in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The tokens of what stands for its text.
    body: u64,
    /// Its tokens with what stands around it.
    tokens: u64,
    /// What a separator behind it adds.
    separator: i64,
    /// Whether it may be counted by itself behind a separator.
    starts_anew: bool,
}

/// A chunk that fits.
#[derive(Debug)]
pub(super) struct Fitting {
    /// Its tokens alone.
    tokens: u64,
    /// What it needs of what is left.
    pub(super) needed: u64,
    cost: Cost,
    frame: Frame,
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
pub(super) struct Used {
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
    /// Counts header and footer.
    pub(super) fn begin_exact(&mut self, exact: Exact) {
        let template = self.template;
        self.progress.around = count(exact, template.header.as_bytes())
            .saturating_add(count(exact, template.footer.as_bytes()));
    }

    /// Admits by what each costs with a separator; see `admit` for the rest.
    /// What they cost together is counted in the end.
    pub(super) fn admit_exact(
        &mut self,
        exact: Exact,
        order: &[u32],
        most: u64,
    ) -> Result<usize, H::Error> {
        let mut ahead = Ahead::default();
        for (place, &index) in order.iter().enumerate() {
            if self.available() > most {
                return Ok(place);
            }
            if self.is_refused(index) {
                continue;
            }
            if self.wants_notice(0) {
                self.add_notice(exact);
            }
            let used = self.progress.cost;
            let mut available = self.available();
            if place >= ahead.end() {
                ahead = self.count_ahead(exact, order, place, available)?;
            }
            let known = ahead.get(place);
            // Most do not: nothing is moved about for these.
            let fitting = match self.least(index) {
                least if least > available => None,
                _ => self.fit_exact(exact, index, known, used, available)?,
            };
            if self.near.is_some() && self.is_near(index, fitting.is_some())? {
                continue;
            }
            let mut kept = match fitting {
                Some(fitting) => self.keep_exact(index, fitting, available)?,
                None => None,
            };
            if kept.is_none() && self.may_cut.is_some() {
                if self.wants_notice(order.len() - place - 1) {
                    self.add_notice(exact);
                    available = self.available();
                }
                kept = self.cut_exact(exact, index, used, available)?;
            }
            if let Some(cost) = kept {
                self.progress.cost.add(index, cost, self.plan.order == Order::Input);
                self.note(index, true);
            } else {
                self.drop(index, Reason::Budget, available.saturating_add(1), available);
                if self.plan.overflow == Overflow::Stop {
                    self.stop(index, &order[place + 1..], available);
                    break;
                }
            }
        }
        Ok(order.len())
    }

    /// Sets room aside for the notice.
    fn add_notice(&mut self, exact: Exact) {
        let notice = count(exact, &self.set_notice());
        self.progress.around = self.progress.around.saturating_add(notice);
    }

    /// Returns how many tokens are left.
    pub(super) fn available(&self) -> u64 {
        let used = self.progress.cost.total;
        let left = self.call.budget.saturating_add_signed(-used);
        left.saturating_sub(self.progress.around).min(self.room)
    }

    /// Returns a number that the count of chunk `index` is not below.
    fn least(&self, index: u32) -> u64 {
        self.measures.get(index).map_or(0, u64::from)
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
            let is_wanted = self.least(index) <= available && self.original_of(index).is_none();
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

    /// Returns what chunk `index` is in the text if it fits into `available`
    /// tokens; `count` is its count if that is known.
    #[inline]
    pub(super) fn fit_exact(
        &mut self,
        exact: Exact,
        index: u32,
        count: Option<u64>,
        used: Used,
        available: u64,
    ) -> Result<Option<Fitting>, H::Error> {
        if self.least(index) > available {
            return Ok(None);
        }
        let text = self.batch.text(index as usize);
        let tokens = match count {
            Some(count) => Some(count).filter(|&count| count <= available),
            None => exact.count_text(text, available, &GO_ON),
        };
        let Some(tokens) = tokens else { return Ok(None) };
        let frame = self.frame(index)?;
        let cost = match &frame.escaped {
            None => self.cost(exact, &frame, text, tokens),
            Some(escaped) => {
                let escaped = Text::from_utf8(escaped);
                let counted = count_text(exact.encoding(), escaped, available, &GO_ON);
                let Some(counted) = counted else { return Ok(None) };
                self.cost(exact, &frame, escaped, counted)
            }
        };
        let separator = used.separator(index, cost.separator, self.plan.order == Order::Input);
        let needed = cost.tokens.saturating_add_signed(separator);
        Ok((needed <= available).then_some(Fitting { tokens, needed, cost, frame }))
    }

    /// Keeps chunk `index`, which fits, unless its citation does not, and returns
    /// what it costs.
    fn keep_exact(
        &mut self,
        index: u32,
        Fitting { tokens, needed, cost, frame }: Fitting,
        available: u64,
    ) -> Result<Option<Cost>, H::Error> {
        let Ok(citation) = self.cite(index, tokens, needed, available)? else { return Ok(None) };
        self.costs.push(cost);
        self.keep(index, tokens, citation, frame);
        Ok(Some(cost))
    }

    /// Returns what a text of so many tokens costs in its frame.
    fn cost(&self, exact: Exact, frame: &Frame, text: Text<'_>, body: u64) -> Cost {
        let Frame { front, back, .. } = frame;
        let separator = &self.template.separator;
        let last = separator.chars().next_back();
        let tokens = rendered(exact, front, text, body, back);
        let behind = [back, separator.as_bytes()].concat();
        let first = if front.is_empty() { text } else { Text::from_utf8(front) };
        Cost {
            body,
            tokens,
            separator: joint::behind(exact.encoding(), front, text, &behind)
                - joint_behind(exact, front, text, back),
            starts_anew: joint::starts_anew(last, first),
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
        let frame = self.frame(index)?;
        let tail = self.longest_tail();
        // A separator may make the text in front count less.
        let separator = used.last.map_or(0, |(_, separator)| separator);
        let taken = count(exact, &frame.front).saturating_add(count(exact, &frame.back));
        let taken = taken.cast_signed().saturating_add(separator);
        let mut room = available.saturating_add_signed(-taken);
        let text = self.batch.text(index as usize);
        let cost = text.chars().saturating_mul(COUNTING);
        for _ in 0..CUT_TRIES {
            if room == 0 {
                break;
            }
            let work = |stop: &AtomicBool| exact.cut(text, room, keep, marker.into(), stop);
            let Some((tokens, piece)) = self.host.work(cost, work)? else { break };
            let escaped = escape::body(&self.template.style, Text::from_utf8(&piece));
            let is_escaped = escaped.is_some();
            let body = escaped.as_deref().map_or(tokens, |escaped| count(exact, escaped));
            let piece = escaped.unwrap_or(piece);
            let frame = Frame { escaped: None, ..frame.clone() };
            let cost = self.cost(exact, &frame, Text::from_utf8(&piece), body);
            self.costs.push(cost);
            self.keep_cut(index, tokens, frame, piece);
            let total = self.count_joined(exact, &tail);
            if total <= self.call.budget {
                return Ok(Some(cost));
            }
            self.take_out();
            let over = total - self.call.budget;
            room = if is_escaped { shrunk(room, over) } else { room.saturating_sub(over) };
        }
        Ok(None)
    }

    /// Returns the count of the assembled text, of which there must be some,
    /// with `tail` behind the last chunk.
    pub(super) fn count_joined(&mut self, exact: Exact, tail: &[u8]) -> u64 {
        let places = assemble::arrange(&self.admitted, self.call, self.batch);
        let template = self.template;
        let separator = template.separator.as_bytes();
        let mut total: i64 = 0;
        let mut from = 0;
        while from < places.len() {
            let header = if from == 0 { template.header.as_bytes() } else { &[] };
            let alone = &places[from + 1..];
            let size = 1 + alone
                .iter()
                .take_while(|&&place| !self.costs[place as usize].starts_anew)
                .count();
            let group = &places[from..from + size];
            from += size;
            let is_last = from == places.len();
            let behind = if is_last { tail } else { separator };
            if let [place] = group {
                let cost = self.costs[*place as usize];
                total += if header.is_empty() && (!is_last || tail.is_empty()) {
                    cost.tokens.cast_signed() + if is_last { 0 } else { cost.separator }
                } else {
                    let part = self.admitted.part(*place as usize);
                    let front = [header, part.front].concat();
                    let back = [part.back, behind].concat();
                    rendered(exact, &front, part.body(self.batch), cost.body, &back).cast_signed()
                };
                continue;
            }
            let mut text = header.to_vec();
            for (i, &place) in group.iter().enumerate() {
                let part = self.admitted.part(place as usize);
                text.extend_from_slice(part.front);
                part.body(self.batch).write_utf8(&mut text);
                text.extend_from_slice(part.back);
                text.extend_from_slice(if i + 1 < size { separator } else { behind });
            }
            total = total.saturating_add(count(exact, &text).cast_signed());
        }
        total.cast_unsigned()
    }
}

/// Returns the count of a text.
pub(super) fn count(exact: Exact, text: &[u8]) -> u64 {
    count_text(exact.encoding(), Text::from_utf8(text), u64::MAX, &GO_ON).unwrap_or(u64::MAX)
}

/// Returns the count of `text`, which alone counts `body`, with what stands
/// around it.
fn rendered(exact: Exact, front: &[u8], text: Text<'_>, body: u64, back: &[u8]) -> u64 {
    let fronting = match front {
        [] => 0,
        front => joint::before(exact.encoding(), front, text),
    };
    body.saturating_add_signed(fronting + joint_behind(exact, front, text, back))
}

fn joint_behind(exact: Exact, front: &[u8], text: Text<'_>, back: &[u8]) -> i64 {
    if back.is_empty() { 0 } else { joint::behind(exact.encoding(), front, text, back) }
}

/// Returns the room to try next where a text that was given `room` is escaped
/// and so much over.
fn shrunk(room: u64, over: u64) -> u64 {
    let (room, over) = (u128::from(room), u128::from(over));
    u64::try_from(room * room / (room + over)).unwrap_or(u64::MAX)
}
