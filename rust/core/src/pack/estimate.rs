//! Measuring with an estimate.
//!
//! Where whitespace joins texts, their measures add up to the measure of the
//! whole. Where something else joins them, there may be fewer words: then the
//! sum is only an upper bound, and the total is measured at the end.

use std::collections::HashMap;
use std::convert::Infallible;

use super::Packer;
use super::indexed::Unseen;
use super::meter::{Meter, Need};
use crate::assemble;
use crate::chunk::Batch;
use crate::count::{Estimate, Size};
use crate::outcome::Frame;
use crate::plan::{Call, Host};
use crate::text::Text;
use crate::truncate::{Cut, Keep, Piece};

/// Finding where a text may be cut takes as long as reading this many times as
/// much.
const CUTTING: usize = 8;

/// The sum of the measures of the kept chunks.
#[derive(Debug)]
pub(super) struct EstimateMeter {
    estimate: Estimate,
    /// Whether the text has nothing but chunks and separators.
    is_bare: bool,
    /// The measure of header and footer, and of the notice once room is set
    /// aside for it.
    around: u64,
    /// What the first kept chunk measures in the text.
    best: u64,
    /// What a separator measures.
    gap: u64,
    /// The measure of the kept chunks with separators between them.
    joined: u64,
    /// The tokens of all these.
    tokens: u64,
    /// The measure of each kept chunk with its frame; empty if the text is
    /// bare.
    sizes: Vec<Size>,
    scratch: Vec<u8>,
}

/// A chunk that was measured.
#[derive(Debug)]
pub(super) struct EstimateChunk {
    /// The measure of its text.
    size: u64,
    /// Its measure with its frame, once that is known.
    whole: Size,
    frame: Frame,
}

impl EstimateMeter {
    /// Measures header, footer and separator.
    pub(super) fn new(estimate: Estimate, call: &Call<'_>) -> Self {
        let template = call.template();
        let mut scratch = Vec::new();
        let mut measure = |text: &str| estimate.measure(text.into(), &mut scratch);
        Self {
            estimate,
            is_bare: call.is_bare(),
            around: measure(&template.header) + measure(&template.footer),
            best: 0,
            gap: measure(&template.separator),
            joined: 0,
            tokens: 0,
            sizes: Vec::new(),
            scratch,
        }
    }

    /// Returns the measure of the text in front of the next chunk, with header,
    /// footer and notice.
    #[inline]
    fn start<B: Batch, H: Host>(&self, packer: &Packer<'_, B, H>) -> u64 {
        let is_first = packer.admitted.kept.is_empty();
        self.around + if is_first { 0 } else { self.joined + self.gap }
    }

    /// Returns the tokens of the chunks that `packer` keeps.
    fn tokens_so_far<B: Batch, H: Host>(&self, packer: &Packer<'_, B, H>) -> u64 {
        let is_empty = packer.admitted.kept.is_empty();
        if is_empty { 0 } else { self.estimate.tokens(self.around + self.joined) }
    }

    /// Returns the measure of a chunk with its frame.
    fn framed(&mut self, frame: &Frame, body: Size) -> Size {
        let front = self.estimate.size(Text::from_utf8(&frame.front), &mut self.scratch);
        let back = self.estimate.size(Text::from_utf8(&frame.back), &mut self.scratch);
        front.then(body).then(back)
    }

    /// Adds a chunk of that size in the text. The packer keeps it next.
    fn push<B: Batch, H: Host>(&mut self, packer: &Packer<'_, B, H>, whole: Size) {
        if !self.is_bare {
            self.sizes.push(whole);
        }
        if packer.admitted.kept.is_empty() {
            self.best = whole.measured;
        }
        let measured = self.start(packer) + whole.measured;
        self.joined = measured - self.around;
        self.tokens = self.estimate.tokens(measured);
    }

    /// Sets room aside for the notice, for which the chunks of lowest rank may
    /// have to leave, but not the best; returns false where it would.
    fn set_notice<B: Batch, H: Host>(&mut self, packer: &mut Packer<'_, B, H>) -> bool {
        let around = self.around + self.notice(packer);
        let is_first = packer.admitted.kept.is_empty();
        if !is_first && self.estimate.tokens(around + self.best) > packer.call.budget {
            return false;
        }
        self.around = around;
        let mut left = HashMap::new();
        let mut total = self.tokens_so_far(packer);
        while total > packer.call.budget {
            let size = self.sizes.last().map_or(0, |size| size.measured);
            let kept = packer.take_out(self);
            self.joined -= size + if packer.admitted.kept.is_empty() { 0 } else { self.gap };
            let others = self.tokens_so_far(packer);
            packer.drop_kept(kept, total - others, total, &mut left);
            total = others;
        }
        packer.admitted.drop_repeated(&left);
        self.tokens = total;
        true
    }

    /// Returns what the longest notice measures.
    fn notice<B: Batch, H: Host>(&mut self, packer: &Packer<'_, B, H>) -> u64 {
        self.estimate.measure(Text::from_utf8(&packer.longest_notice()), &mut self.scratch)
    }
}

impl<B: Batch, H: Host> Meter<B, H> for EstimateMeter {
    type Chunk = EstimateChunk;

    const MEASURES_ALL: bool = true;

    #[inline]
    fn available(&self, packer: &Packer<'_, B, H>) -> u64 {
        packer.call.budget - self.tokens
    }

    fn make_room(&mut self, packer: &mut Packer<'_, B, H>) -> Result<bool, H::Error> {
        Ok(self.set_notice(packer))
    }

    fn give_back(&mut self, packer: &Packer<'_, B, H>) {
        self.around -= self.notice(packer);
    }

    #[inline]
    fn measure(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        order: &[u32],
        place: usize,
    ) -> Result<EstimateChunk, H::Error> {
        let index = order[place];
        let batch = packer.batch;
        let size = match packer.measures.get(index).unwrap_or(u32::MAX) {
            u32::MAX => self.estimate.measure(batch.text(index as usize), &mut self.scratch),
            measured => u64::from(measured),
        };
        let whole = Size::additive(size);
        let mut chunk = EstimateChunk { size, whole, frame: Frame::default() };
        if !self.is_bare && (self.need(packer, &chunk).fits() || packer.may_cut.is_some()) {
            chunk.frame = packer.frame(index)?;
            let body = match &chunk.frame.escaped {
                Some(escaped) => self.estimate.size(Text::from_utf8(escaped), &mut self.scratch),
                None => self.estimate.size_of(batch.text(index as usize), size),
            };
            chunk.whole = self.framed(&chunk.frame, body);
        }
        Ok(chunk)
    }

    fn measure_written(
        &mut self,
        _: &mut Packer<'_, B, H>,
        _: u32,
        frame: Frame,
    ) -> Result<EstimateChunk, H::Error> {
        let whole = self.estimate.size(frame.written(), &mut self.scratch);
        Ok(EstimateChunk { size: whole.measured, whole, frame })
    }

    #[inline]
    fn need(&self, packer: &Packer<'_, B, H>, chunk: &EstimateChunk) -> Need {
        let total = self.estimate.tokens(self.start(packer) + chunk.whole.measured);
        Need {
            tokens: self.estimate.tokens(chunk.size),
            needed: total - self.tokens,
            available: self.available(packer),
        }
    }

    fn add(&mut self, packer: &Packer<'_, B, H>, _: u32, chunk: EstimateChunk) -> Frame {
        self.push(packer, chunk.whole);
        chunk.frame
    }

    fn remove_last(&mut self) {
        self.sizes.pop();
    }

    fn cut(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        chunk: &EstimateChunk,
        (keep, marker): (Keep, &'static str),
    ) -> Result<bool, H::Error> {
        let (estimate, start, frame) = (self.estimate, self.start(packer), chunk.frame.clone());
        let text = packer.batch.text(index as usize);
        let cost = text.chars().saturating_mul(CUTTING);
        let cut = |stop: &_| Cut::for_estimate(estimate, text, keep, marker.into(), stop);
        let cut = packer.host.work(cost, cut)?;
        let size = |meter: &mut Self, head, tail| {
            if meter.is_bare {
                return Size::additive(cut.measure(estimate, head, tail, &mut meter.scratch));
            }
            let piece = packer.escaped(cut.utf8(head, tail));
            let body = estimate.size(Text::from_utf8(&piece), &mut meter.scratch);
            meter.framed(&frame, body)
        };
        let best = cut.longest(packer.call.budget, |head, tail| {
            let size = size(self, head, tail);
            Ok::<_, Infallible>(estimate.tokens(start + size.measured))
        });
        let Ok(best) = best;
        let Some(Piece { head, tail, .. }) = best else { return Ok(false) };
        let whole = size(self, head, tail);
        let measured = cut.measure(estimate, head, tail, &mut self.scratch);
        let piece = packer.escaped(cut.utf8(head, tail));
        self.push(packer, whole);
        packer.keep_cut(index, estimate.tokens(measured), frame, piece);
        Ok(true)
    }

    fn total(&mut self, packer: &mut Packer<'_, B, H>, tail: &[u8]) -> Result<u64, H::Error> {
        if self.is_bare {
            return Ok(self.tokens);
        }
        let (estimate, template) = (self.estimate, packer.template);
        let mut size = |text: &[u8]| estimate.size(Text::from_utf8(text), &mut self.scratch);
        let separator = size(template.separator.as_bytes());
        let mut whole = size(template.header.as_bytes());
        let tail = size(tail);
        let places = assemble::arrange(&packer.admitted, packer.call, packer.batch);
        for (i, place) in places.into_iter().enumerate() {
            if i > 0 {
                whole = whole.then(separator);
            }
            whole = whole.then(self.sizes[place as usize]);
        }
        Ok(estimate.tokens(whole.then(tail).measured))
    }

    fn finish(&mut self, packer: &mut Packer<'_, B, H>) -> Result<u64, H::Error> {
        if !packer.admitted.kept.is_empty() && packer.wants_notice(0) {
            packer.set_notice(self)?;
        }
        packer.settle(self)
    }

    fn unseen(&self, packer: &Packer<'_, B, H>) -> Unseen {
        Unseen::Estimated {
            estimate: self.estimate,
            start: self.start(packer),
            tokens: self.tokens,
            budget: packer.call.budget,
        }
    }
}
