//! Measuring with an encoding.
//!
//! A chunk is admitted by the tokens that it and those before it cost, each
//! with its frame and the separator behind it. Where each chunk starts anew
//! behind the line end of a separator, these costs add up. A chunk that does
//! not start anew is counted together with the chunk in front.

use std::sync::atomic::AtomicBool;

use super::indexed::Unseen;
use super::meter::{Meter, Need};
use super::{CUT_TRIES, Packer};
use crate::assemble;
use crate::chunk::Batch;
use crate::count::exact::{GO_ON, count_text};
use crate::count::{Exact, joint};
use crate::outcome::Frame;
use crate::plan::{Host, Order};
use crate::template::{Template, escape};
use crate::text::Text;
use crate::truncate::Keep;

/// About this many code points make a token.
const CHARS_PER_TOKEN: u64 = 4;

/// Counting a code point takes as long as reading this many.
const COUNTING: usize = 8;

/// How many code points are counted without asking the host whether to go on: a
/// tenth of a millisecond's work.
const INLINE_CHARS: usize = 1 << 15;

/// How many code points are counted in one go.
const MOST_CHARS: usize = 1 << 22;

/// The sum of the costs of the kept chunks.
#[derive(Debug)]
pub(super) struct ExactMeter<'p> {
    exact: &'p Exact,
    used: Used,
    /// The tokens of header and footer, and of the notice once room is set
    /// aside for it.
    around: u64,
    /// The tokens of the notice.
    notice: u64,
    /// What each kept chunk costs.
    costs: Vec<Cost>,
    ahead: Ahead,
}

/// The cost of a kept chunk in the text.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// The tokens of its text, as it is cut and escaped.
    body: u64,
    /// The tokens of its text with its frame.
    tokens: u64,
    /// The tokens that a separator behind it adds.
    separator: i64,
    /// Whether it may be counted by itself behind a separator.
    starts_anew: bool,
}

/// A chunk that fits.
#[derive(Debug)]
pub(super) struct Fitting {
    /// Its tokens alone.
    tokens: u64,
    /// The tokens that it needs.
    needed: u64,
    cost: Cost,
    frame: Frame,
}

/// The counts of chunks that are considered next.
#[derive(Debug, Default)]
struct Ahead {
    /// The place of the first of them in the order, and the counts; 0 for a
    /// chunk that was not counted.
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

/// The cost of the kept chunks together, as long as each starts anew.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Their tokens, with a separator behind each but the last.
    total: i64,
    /// The last chunk in the order of the text, and the tokens that a separator
    /// behind it adds.
    last: Option<(u32, i64)>,
}

impl Used {
    /// Returns the tokens that separators add if chunk `index` is kept too. A
    /// separator behind that chunk costs `own`.
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

impl<'p> ExactMeter<'p> {
    /// Counts header and footer.
    pub(super) fn new(exact: &'p Exact, template: &Template) -> Self {
        let header = count(exact, template.header.as_bytes());
        Self {
            exact,
            used: Used::default(),
            around: header.saturating_add(count(exact, template.footer.as_bytes())),
            notice: 0,
            costs: Vec::new(),
            ahead: Ahead::default(),
        }
    }

    /// Returns the count of the chunk at `place` in `order` if it was counted
    /// ahead. Counts the chunks ahead that are likely to be admitted, where
    /// that is more than a little work.
    #[inline]
    fn counted_ahead<B: Batch, H: Host>(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        order: &[u32],
        place: usize,
    ) -> Result<Option<u64>, H::Error> {
        if place >= self.ahead.end() {
            let available = self.available(packer);
            let expected = available.saturating_mul(CHARS_PER_TOKEN);
            let most = usize::try_from(expected).unwrap_or(MOST_CHARS).min(MOST_CHARS);
            if most <= INLINE_CHARS {
                return Ok(None);
            }
            self.ahead = count_ahead(self.exact, packer, order, place, available, most)?;
        }
        Ok(self.ahead.get(place))
    }

    /// Measures chunk `index`, and returns it if it fits; `count` is its count
    /// if that is known.
    #[inline(never)] // so that going through every chunk stays small
    fn fit<B: Batch, H: Host>(
        &self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        count: Option<u64>,
        available: u64,
    ) -> Result<Option<Fitting>, H::Error> {
        let text = packer.batch.text(index as usize);
        let tokens = match count {
            Some(count) => Some(count).filter(|&count| count <= available),
            None => self.exact.count_text(text, available, &GO_ON),
        };
        let Some(tokens) = tokens else { return Ok(None) };
        let frame = packer.frame(index)?;
        let cost = match &frame.escaped {
            None => self.cost(packer.template, &frame, text, tokens),
            Some(escaped) => {
                let (escaped, model) = (Text::from_utf8(escaped), self.exact.model());
                let count = |stop: &AtomicBool| count_text(model, escaped, available, stop);
                let Some(counted) = count_written(packer, escaped, count)? else { return Ok(None) };
                self.cost(packer.template, &frame, escaped, counted)
            }
        };
        let needed = self.needed(packer, index, cost);
        Ok((needed <= available).then_some(Fitting { tokens, needed, cost, frame }))
    }

    /// Returns the tokens that chunk `index` of that cost adds.
    fn needed<B: Batch, H: Host>(&self, packer: &Packer<'_, B, H>, index: u32, cost: Cost) -> u64 {
        let is_by_input = packer.plan.order == Order::Input;
        let separator = self.used.separator(index, cost.separator, is_by_input);
        cost.tokens.saturating_add_signed(separator)
    }

    /// Returns the cost of a text in its frame. On its own the text counts
    /// `body`.
    fn cost(&self, template: &Template, frame: &Frame, text: Text<'_>, body: u64) -> Cost {
        let (exact, Frame { front, back, .. }) = (self.exact, frame);
        let separator = &template.separator;
        let last = separator.chars().next_back();
        let tokens = rendered(exact, front, text, body, back);
        let behind = [back, separator.as_bytes()].concat();
        let first = if front.is_empty() { text } else { Text::from_utf8(front) };
        Cost {
            body,
            tokens,
            separator: joint::behind(exact.model(), front, text, &behind)
                - joint_behind(exact, front, text, back),
            starts_anew: joint::starts_anew(exact.model(), last, first),
        }
    }
}

/// Does `count` for a text that a template wrote. The host may end it where the
/// text is long.
fn count_written<B: Batch, H: Host>(
    packer: &mut Packer<'_, B, H>,
    text: Text<'_>,
    count: impl FnOnce(&AtomicBool) -> Option<u64> + Send,
) -> Result<Option<u64>, H::Error> {
    let chars = text.chars();
    if chars <= INLINE_CHARS {
        return Ok(count(&GO_ON));
    }
    packer.host.work(chars.saturating_mul(COUNTING), count)
}

impl<B: Batch, H: Host> Meter<B, H> for ExactMeter<'_> {
    /// None for a chunk that does not fit. Most do not, and nothing is moved
    /// for these.
    type Chunk = Option<Fitting>;

    /// Counting stops at the limit.
    const MEASURES_ALL: bool = false;

    fn begin(&mut self) {
        self.ahead = Ahead::default();
    }

    #[inline]
    fn available(&self, packer: &Packer<'_, B, H>) -> u64 {
        let left = packer.call.budget.saturating_add_signed(-self.used.total);
        left.saturating_sub(self.around).min(packer.room)
    }

    fn make_room(&mut self, packer: &mut Packer<'_, B, H>) -> Result<bool, H::Error> {
        self.notice = count(self.exact, &packer.longest_notice());
        let around = self.around.saturating_add(self.notice);
        if let Some(best) = self.costs.first()
            && around.saturating_add(best.tokens) > packer.call.budget
        {
            return Ok(false);
        }
        self.around = around;
        Ok(true)
    }

    fn give_back(&mut self, _: &Packer<'_, B, H>) {
        self.around -= self.notice;
    }

    #[inline]
    fn measure(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        order: &[u32],
        place: usize,
    ) -> Result<Option<Fitting>, H::Error> {
        let index = order[place];
        let known = self.counted_ahead(packer, order, place)?;
        let available = self.available(packer);
        if least(packer, index) > available {
            return Ok(None);
        }
        self.fit(packer, index, known, available)
    }

    fn measure_written(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        frame: Frame,
    ) -> Result<Option<Fitting>, H::Error> {
        let available = self.available(packer);
        let (text, exact) = (frame.written(), self.exact);
        let count = |stop: &AtomicBool| exact.count_text(text, available, stop);
        let Some(tokens) = count_written(packer, text, count)? else { return Ok(None) };
        let cost = self.cost(packer.template, &frame, text, tokens);
        let needed = self.needed(packer, index, cost);
        Ok((needed <= available).then_some(Fitting { tokens, needed, cost, frame }))
    }

    #[inline]
    fn need(&self, packer: &Packer<'_, B, H>, chunk: &Option<Fitting>) -> Need {
        let available = self.available(packer);
        match chunk {
            Some(Fitting { tokens, needed, .. }) => {
                Need { tokens: *tokens, needed: *needed, available }
            }
            None => Need { tokens: 0, needed: available.saturating_add(1), available },
        }
    }

    fn add(&mut self, packer: &Packer<'_, B, H>, index: u32, chunk: Option<Fitting>) -> Frame {
        let Fitting { cost, frame, .. } = chunk.expect("only what fits is added");
        self.costs.push(cost);
        self.used.add(index, cost, packer.plan.order == Order::Input);
        frame
    }

    fn remove_last(&mut self) {
        self.costs.pop();
    }

    fn cut(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        _: &Option<Fitting>,
        (keep, marker): (Keep, &'static str),
    ) -> Result<bool, H::Error> {
        let (exact, available) = (self.exact, self.available(packer));
        let frame = packer.frame(index)?;
        // A separator may make the text in front count less.
        let separator = self.used.last.map_or(0, |(_, separator)| separator);
        let taken = count(exact, &frame.front).saturating_add(count(exact, &frame.back));
        let taken = taken.cast_signed().saturating_add(separator);
        let mut room = available.saturating_add_signed(-taken);
        let text = packer.batch.text(index as usize);
        let cost = text.chars().saturating_mul(COUNTING);
        for _ in 0..CUT_TRIES {
            if room == 0 {
                break;
            }
            let work = |stop: &AtomicBool| exact.cut(text, room, keep, marker.into(), stop);
            let Some((tokens, piece)) = packer.host.work(cost, work)? else { break };
            let escaped = escape::body(&packer.template.style, Text::from_utf8(&piece));
            let is_escaped = escaped.is_some();
            let body = escaped.as_deref().map_or(tokens, |escaped| count(exact, escaped));
            let piece = escaped.unwrap_or(piece);
            let cost = self.cost(packer.template, &frame, Text::from_utf8(&piece), body);
            self.costs.push(cost);
            match packer.try_cut(self, index, tokens, frame.clone(), piece)? {
                Ok(_) => {
                    self.used.add(index, cost, packer.plan.order == Order::Input);
                    return Ok(true);
                }
                Err(over) if is_escaped => room = shrunk(room, over),
                Err(over) => room = room.saturating_sub(over),
            }
        }
        Ok(false)
    }

    fn total(&mut self, packer: &mut Packer<'_, B, H>, tail: &[u8]) -> Result<u64, H::Error> {
        Ok(count_joined(self.exact, &self.costs, packer, tail))
    }

    fn unseen(&self, packer: &Packer<'_, B, H>) -> Unseen {
        Unseen::Counted(self.available(packer))
    }
}

/// Returns a lower bound of the count of chunk `index`.
#[inline]
fn least<B: Batch, H: Host>(packer: &Packer<'_, B, H>, index: u32) -> u64 {
    packer.measures.get(index).map_or(0, u64::from)
}

/// Counts the chunks from `from` on in `order` that are likely to be admitted,
/// about `most` code points of them.
fn count_ahead<B: Batch, H: Host>(
    exact: &Exact,
    packer: &mut Packer<'_, B, H>,
    order: &[u32],
    from: usize,
    available: u64,
    most: usize,
) -> Result<Ahead, H::Error> {
    let kept = packer.admitted.kept.len() as u64;
    let wanted = packer.plan.max_chunks.map_or(u64::MAX, |most| most.saturating_sub(kept));
    let mut chars = 0;
    let mut counts = Vec::new();
    let mut indices = Vec::new();
    for &index in &order[from..] {
        let is_wanted = least(packer, index) <= available && packer.original_of(index).is_none();
        if is_wanted {
            chars += packer.batch.text(index as usize).chars();
            indices.push(index);
        }
        counts.push(u64::from(is_wanted));
        if chars >= most || indices.len() as u64 >= wanted {
            break;
        }
    }
    let batch = packer.batch;
    let mut counted = packer
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

/// Returns the count of the assembled text, with `tail` behind the last chunk.
/// There must be a chunk. `costs` has the cost of each kept chunk.
fn count_joined<B: Batch, H: Host>(
    exact: &Exact,
    costs: &[Cost],
    packer: &Packer<'_, B, H>,
    tail: &[u8],
) -> u64 {
    let places = assemble::arrange(&packer.admitted, packer.call, packer.batch);
    let template = packer.template;
    let separator = template.separator.as_bytes();
    let mut total: i64 = 0;
    let mut from = 0;
    while from < places.len() {
        let header = if from == 0 { template.header.as_bytes() } else { &[] };
        let alone = &places[from + 1..];
        let size =
            1 + alone.iter().take_while(|&&place| !costs[place as usize].starts_anew).count();
        let group = &places[from..from + size];
        from += size;
        let is_last = from == places.len();
        let behind = if is_last { tail } else { separator };
        if let [place] = group {
            let cost = costs[*place as usize];
            total += if header.is_empty() && (!is_last || tail.is_empty()) {
                cost.tokens.cast_signed() + if is_last { 0 } else { cost.separator }
            } else {
                let part = packer.admitted.part(*place as usize);
                let front = [header, part.front].concat();
                let back = [part.back, behind].concat();
                rendered(exact, &front, part.body(packer.batch), cost.body, &back).cast_signed()
            };
            continue;
        }
        if let Some(tokens) = count_group(exact, costs, packer, group, (header, behind)) {
            total = total.saturating_add(tokens);
            continue;
        }
        let mut text = header.to_vec();
        for (i, &place) in group.iter().enumerate() {
            let part = packer.admitted.part(place as usize);
            text.extend_from_slice(part.front);
            part.body(packer.batch).write_utf8(&mut text);
            text.extend_from_slice(part.back);
            text.extend_from_slice(if i + 1 < size { separator } else { behind });
        }
        total = total.saturating_add(count(exact, &text).cast_signed());
    }
    total.cast_unsigned()
}

/// Returns the count of a group of chunks without frames, with `header` in front
/// and `behind` behind it, from those of the chunks; None where they do not
/// tell. Only the joints are counted.
fn count_group<B: Batch, H: Host>(
    exact: &Exact,
    costs: &[Cost],
    packer: &Packer<'_, B, H>,
    group: &[u32],
    (header, behind): (&[u8], &[u8]),
) -> Option<i64> {
    if packer.call.is_framed() {
        return None;
    }
    let text = |place: u32| packer.admitted.part(place as usize).body(packer.batch);
    let separator = packer.template.separator.as_bytes();
    let (&first, &last) = (group.first()?, group.last()?);
    let mut total = 0;
    for pair in group.windows(2) {
        total += joint::between(exact.model(), text(pair[0]), separator, text(pair[1]))?;
    }
    if !header.is_empty() {
        total += joint::before(exact.model(), header, text(first));
    }
    total += joint_behind(exact, &[], text(last), behind);
    let bodies = group.iter().map(|&place| costs[place as usize].body.cast_signed());
    Some(bodies.sum::<i64>() + total)
}

/// Returns the count of a text.
fn count(exact: &Exact, text: &[u8]) -> u64 {
    count_text(exact.model(), Text::from_utf8(text), u64::MAX, &GO_ON).unwrap_or(u64::MAX)
}

/// Returns the count of `text` in its frame. On its own the text counts `body`.
fn rendered(exact: &Exact, front: &[u8], text: Text<'_>, body: u64, back: &[u8]) -> u64 {
    let fronting = match front {
        [] => 0,
        front => joint::before(exact.model(), front, text),
    };
    body.saturating_add_signed(fronting + joint_behind(exact, front, text, back))
}

fn joint_behind(exact: &Exact, front: &[u8], text: Text<'_>, back: &[u8]) -> i64 {
    if back.is_empty() { 0 } else { joint::behind(exact.model(), front, text, back) }
}

/// Returns the room to try next. An escaped text was given `room`, and is
/// `over` tokens too long.
fn shrunk(room: u64, over: u64) -> u64 {
    let (room, over) = (u128::from(room), u128::from(over));
    u64::try_from(room * room / (room + over)).unwrap_or(u64::MAX)
}
