//! Admitting under an estimate.
//!
//! Measures of texts that whitespace joins add up, so that the total is that of
//! the whole text. Where something else joins them, words may count less
//! together: then the sum only bounds the total, which is made at the end.

use std::collections::HashMap;

use super::Packer;
use crate::assemble;
use crate::chunk::Batch;
use crate::count::{Estimate, Size};
use crate::outcome::{Frame, Kept, Reason};
use crate::plan::{Host, Overflow};
use crate::text::{Cursor, Text};
use crate::truncate::{Cut, Keep, Piece};

/// What the text measures so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// Header and footer, and the notice as soon as there must be room for it.
    around: u64,
    /// A separator.
    gap: u64,
    /// The kept chunks with separators between them.
    joined: u64,
}

impl Used {
    /// Returns what the text measures in front of the next chunk, and around
    /// all.
    fn start(self, is_first: bool) -> u64 {
        self.around + if is_first { 0 } else { self.joined + self.gap }
    }
}

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Measures header, footer and separator.
    pub(super) fn begin_estimated(&mut self, estimate: Estimate) {
        let template = self.template;
        let mut measure = |text: &str| estimate.measure(text.into(), &mut self.scratch);
        self.progress.measured = Used {
            around: measure(&template.header) + measure(&template.footer),
            gap: measure(&template.separator),
            joined: 0,
        };
    }

    /// Admits what fits beside everything before it.
    pub(super) fn admit_estimated(
        &mut self,
        estimate: Estimate,
        order: &[u32],
    ) -> Result<(), H::Error> {
        let budget = self.call.budget;
        let is_bare = self.call.is_bare();
        for (place, &index) in order.iter().enumerate() {
            if self.is_refused(index) {
                continue;
            }
            if self.wants_notice(0) {
                self.make_room(estimate);
            }
            let size = self.measure(estimate, index);
            let mut start = self.start();
            let mut before = self.progress.tokens;
            let mut needed = estimate.tokens(start + size) - before;
            let mut available = budget - before;
            let mut frame = Frame::default();
            let mut whole = Size::additive(size);
            if !is_bare && (needed <= available || self.may_cut.is_some()) {
                frame = self.frame(index)?;
                whole = self.whole(estimate, index, size, &frame);
                needed = estimate.tokens(start + whole.measured) - before;
            }
            if self.near.is_some() && self.is_near(index, needed <= available)? {
                continue;
            }
            if needed > available
                && self.may_cut.is_some()
                && self.wants_notice(order.len() - place - 1)
            {
                self.make_room(estimate);
                start = self.start();
                before = self.progress.tokens;
                needed = estimate.tokens(start + whole.measured) - before;
                available = budget - before;
            }
            let tokens = estimate.tokens(size);
            match self.cite(index, tokens, needed, available)? {
                Ok(citation) => self.keep(index, tokens, citation, frame),
                Err((needed, available)) => {
                    if let Some(size) = self.cut_estimated(estimate, index, start, frame) {
                        whole = size;
                    } else {
                        self.drop(index, Reason::Budget, needed, available);
                        if self.plan.overflow == Overflow::Stop {
                            self.stop(index, &order[place + 1..], available);
                            break;
                        }
                        continue;
                    }
                }
            }
            if !is_bare {
                self.sizes.push(whole);
            }
            let measured = start + whole.measured;
            self.progress.measured.joined = measured - self.progress.measured.around;
            self.progress.tokens = estimate.tokens(measured);
            self.note(index, true);
        }
        Ok(())
    }

    /// Makes room for the notice if there is to be one, and returns the tokens
    /// of the assembled text.
    pub(super) fn finish_estimated(&mut self, estimate: Estimate) -> u64 {
        if self.wants_notice(0) {
            self.make_room(estimate);
        }
        if self.call.is_bare() { self.progress.tokens } else { self.total(estimate) }
    }

    /// Returns what the text measures in front of the next chunk, and around
    /// all.
    pub(super) fn start(&self) -> u64 {
        self.progress.measured.start(self.admitted.kept.is_empty())
    }

    /// Returns what chunk `index` measures in the text, which alone measures
    /// `size`.
    pub(super) fn whole(
        &mut self,
        estimate: Estimate,
        index: u32,
        size: u64,
        frame: &Frame,
    ) -> Size {
        let body = match &frame.escaped {
            Some(escaped) => estimate.size(Text::from_utf8(escaped), &mut self.scratch),
            None => estimate.size_of(self.batch.text(index as usize), size),
        };
        self.framed(estimate, frame, body)
    }

    fn framed(&mut self, estimate: Estimate, frame: &Frame, body: Size) -> Size {
        let front = estimate.size(Text::from_utf8(&frame.front), &mut self.scratch);
        let back = estimate.size(Text::from_utf8(&frame.back), &mut self.scratch);
        front.then(body).then(back)
    }

    /// Sets room aside for the notice, for which the chunks of lowest rank may
    /// have to leave.
    fn make_room(&mut self, estimate: Estimate) {
        let notice = self.set_notice();
        let mut used = self.progress.measured;
        used.around += estimate.measure(Text::from_utf8(&notice), &mut self.scratch);
        let mut left = HashMap::new();
        let mut total = self.tokens_so_far(estimate, used);
        while total > self.call.budget {
            let size = self.sizes.last().map_or(0, |size| size.measured);
            let kept = self.take_out();
            used.joined -= size + if self.admitted.kept.is_empty() { 0 } else { used.gap };
            let others = self.tokens_so_far(estimate, used);
            self.drop_kept(kept, total - others, total, &mut left);
            total = others;
        }
        self.admitted.drop_repeated(&left);
        self.progress.measured = used;
        self.progress.tokens = total;
    }

    fn tokens_so_far(&self, estimate: Estimate, used: Used) -> u64 {
        if self.admitted.kept.is_empty() { 0 } else { estimate.tokens(used.around + used.joined) }
    }

    /// Returns the tokens of the assembled text.
    fn total(&mut self, estimate: Estimate) -> u64 {
        if self.admitted.kept.is_empty() {
            return 0;
        }
        let tail = self.tail();
        let mut size = |text: &[u8]| estimate.size(Text::from_utf8(text), &mut self.scratch);
        let separator = size(self.template.separator.as_bytes());
        let mut whole = size(self.template.header.as_bytes());
        let tail = size(&tail);
        for (i, place) in
            assemble::arrange(&self.admitted, self.call, self.batch).into_iter().enumerate()
        {
            if i > 0 {
                whole = whole.then(separator);
            }
            whole = whole.then(self.sizes[place as usize]);
        }
        estimate.tokens(whole.then(tail).measured)
    }

    /// Cuts chunk `index` so that it fits behind `start`, and returns what it
    /// then measures in the text; None if it can't or mayn't be cut.
    fn cut_estimated(
        &mut self,
        estimate: Estimate,
        index: u32,
        start: u64,
        frame: Frame,
    ) -> Option<Size> {
        let (keep, marker) = self.may_cut.take()?;
        let cut = Cut::new(self.batch.text(index as usize), keep, marker.into());
        let is_bare = self.call.is_bare();
        let size = |packer: &mut Self, head, tail| {
            if is_bare {
                let measured = cut.measure(estimate, head, tail, &mut packer.scratch);
                return Size::additive(measured);
            }
            let piece = packer.escaped(cut.utf8(head, tail));
            let body = estimate.size(Text::from_utf8(&piece), &mut packer.scratch);
            packer.framed(estimate, &frame, body)
        };
        let best = cut.longest(self.call.budget, |head, tail| {
            let size = size(self, head, tail);
            Ok::<_, std::convert::Infallible>(estimate.tokens(start + size.measured))
        });
        let Ok(best) = best;
        let Piece { head, tail, .. } = best?;
        let whole = size(self, head, tail);
        let measured = cut.measure(estimate, head, tail, &mut self.scratch);
        let piece = self.escaped(cut.utf8(head, tail));
        self.keep_cut(index, estimate.tokens(measured), frame, piece);
        Some(whole)
    }

    /// Admits as theaios-context-router 0.2.2 does: neither what stands around
    /// the chunks nor the marker counts, and empty texts are kept.
    pub(super) fn pack_sum_of_parts(
        &mut self,
        estimate: Estimate,
        order: &[u32],
    ) -> Result<u64, H::Error> {
        let mut used = 0;
        for (place, &index) in order.iter().enumerate() {
            let available = self.call.budget.saturating_sub(used);
            if available == 0 {
                self.drop_rest(&order[place..], 0);
                break;
            }
            let text = self.batch.text(index as usize);
            let mut tokens = estimate.count_text(text, &mut self.scratch);
            if tokens > available && self.may_cut.is_none() {
                self.drop(index, Reason::Budget, tokens, available);
                if self.plan.overflow == Overflow::Stop {
                    self.drop_rest(&order[place + 1..], available);
                    break;
                }
                continue;
            }
            let mut frame = self.frame(index)?;
            if let Some((keep, marker)) = self.may_cut.filter(|_| tokens > available) {
                let piece = cut_by_units(estimate, text, keep, marker, available);
                tokens = estimate.count_text(Text::from_utf8(&piece), &mut self.scratch);
                frame.escaped = None;
                self.admitted.cut = Some((index, self.escaped(piece)));
            }
            used += tokens;
            self.admitted.kept.push(Kept { index, tokens, citation: 0 });
            if self.call.is_framed() {
                self.admitted.frames.push(frame);
            }
        }
        Ok(used)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // asked of each chunk
    pub(super) fn measure(&mut self, estimate: Estimate, index: u32) -> u64 {
        match self.measures.get(index).unwrap_or(u32::MAX) {
            u32::MAX => estimate.measure(self.batch.text(index as usize), &mut self.scratch),
            measured => u64::from(measured),
        }
    }
}

/// Cuts `text` to so many units of the estimate, the marker on top: words
/// joined by single spaces, or four code points a token.
fn cut_by_units(
    estimate: Estimate,
    text: Text<'_>,
    keep: Keep,
    marker: &str,
    max_tokens: u64,
) -> Vec<u8> {
    let max_tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
    let mut piece = Vec::new();
    if estimate == Estimate::Words {
        let mut scratch = Vec::new();
        let words: Vec<_> = crate::keywords::words(text.fold(&mut scratch)).collect();
        let (head, tail) = halves(keep, words.len(), max_tokens);
        write_words(text, &words[..head], &mut piece);
        piece.extend(marker.as_bytes());
        write_words(text, &words[tail..], &mut piece);
    } else {
        let chars = text.chars();
        let (head, tail) = halves(keep, chars, max_tokens.saturating_mul(4));
        text.slice(0, head).write_utf8(&mut piece);
        piece.extend(marker.as_bytes());
        text.slice(tail, chars).write_utf8(&mut piece);
    }
    piece
}

/// Returns where the head ends and the tail begins when at most `units` of
/// `length` stay.
fn halves(keep: Keep, length: usize, units: usize) -> (usize, usize) {
    let units = units.min(length);
    match keep {
        Keep::Both => (units / 2, length - (units - units / 2)),
        _ => (units, length),
    }
}

fn write_words(text: Text<'_>, words: &[(usize, usize)], out: &mut Vec<u8>) {
    let mut cursor = Cursor::new(text);
    for (place, &(start, end)) in words.iter().enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        cursor.slice(start, end).write_utf8(out);
    }
}
