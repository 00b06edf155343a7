//! Admitting under a counter of the host's.

use super::{CUT_TRIES, Packer};
use crate::chunk::Batch;
use crate::outcome::{Frame, Reason};
use crate::plan::{Host, Overflow, Subject};
use crate::text::Text;
use crate::truncate::{Cut, Piece};

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Admits by the sum of the counts; then counts the assembled text, and
    /// takes out the lowest-ranked while it is over.
    pub(super) fn pack_counted(&mut self, order: &[u32]) -> Result<u64, H::Error> {
        let mut used: u64 = 0;
        let mut is_first = true;
        for (place, &index) in order.iter().enumerate() {
            if self.is_refused(index) {
                continue;
            }
            if std::mem::take(&mut is_first) {
                let template = self.template;
                let around = [template.header.as_bytes(), template.footer.as_bytes()];
                used = match self.known_around {
                    Some(tokens) => tokens,
                    None => self.count_around(&around)?,
                };
            }
            if self.wants_notice(0) {
                used = used.saturating_add(self.count_notice()?);
            }
            let mut needed = match self.known.remove(&index) {
                Some(tokens) => tokens,
                None => self.host.count(Subject::Chunk(index as usize))?,
            };
            let count = needed;
            let mut available = self.call.budget.saturating_sub(used);
            let mut frame = Frame::default();
            if needed <= available {
                frame = self.frame(index)?;
                needed = self.with_frame(needed, index, &frame);
            }
            if self.near.is_some() && self.is_near(index, needed <= available)? {
                continue;
            }
            if needed > available
                && self.may_cut.is_some()
                && self.wants_notice(order.len() - place - 1)
            {
                used = used.saturating_add(self.count_notice()?);
                available = self.call.budget.saturating_sub(used);
            }
            match self.cite(index, count, needed, available)? {
                Ok(citation) => {
                    used += needed;
                    self.keep(index, count, citation, frame);
                }
                Err((needed, available)) => {
                    if let Some(total) = self.cut_counted(index)? {
                        used = total;
                        continue;
                    }
                    self.drop(index, Reason::Budget, needed, available);
                    if self.plan.overflow == Overflow::Stop {
                        self.stop(index, &order[place + 1..], available);
                        break;
                    }
                }
            }
        }
        self.settle(|packer| {
            let text = packer.assembled(&packer.tail());
            packer.host.count(Subject::Assembled(&text))
        })
    }

    /// Returns what chunk `index` counts in the text if what stands around it,
    /// and escapes, count as much for each code point as its text, which counts
    /// `tokens`. To ask would be one question more for each chunk.
    pub(super) fn with_frame(&self, tokens: u64, index: u32, frame: &Frame) -> u64 {
        if self.template.is_plain() {
            return tokens;
        }
        let text = self.batch.text(index as usize);
        let chars = |text: &[u8]| Text::from_utf8(text).chars();
        let body = frame.escaped.as_deref().map_or_else(|| text.chars(), chars);
        let whole = chars(&frame.front) + body + chars(&frame.back);
        let product = u128::from(tokens) * whole as u128;
        u64::try_from(product.div_ceil(text.chars() as u128)).unwrap_or(u64::MAX)
    }

    pub(super) fn count_around(&mut self, texts: &[&[u8]]) -> Result<u64, H::Error> {
        let text = texts.concat();
        if text.is_empty() { Ok(0) } else { self.host.count(Subject::Assembled(&text)) }
    }

    fn count_notice(&mut self) -> Result<u64, H::Error> {
        let notice = self.set_notice();
        self.count_around(&[&notice])
    }

    /// Cuts chunk `index` so that the assembled text fits, and returns its
    /// count; None if the chunk can't or mayn't be cut.
    fn cut_counted(&mut self, index: u32) -> Result<Option<u64>, H::Error> {
        let Some((keep, marker)) = self.may_cut.take() else { return Ok(None) };
        let frame = self.frame(index)?;
        let template = self.template;
        let tail = self.longest_tail();
        let mut around = if self.admitted.kept.is_empty() {
            template.header.as_bytes().to_vec()
        } else {
            let mut front = self.assembled(&[]);
            front.extend(template.separator.as_bytes());
            front
        };
        around.extend(&frame.front);
        around.extend(&frame.back);
        around.extend(&tail);
        let taken = self.count_around(&[&around])?;
        let Some(mut room) = self.call.budget.checked_sub(taken) else { return Ok(None) };

        let cut = Cut::new(self.batch.text(index as usize), keep, marker.into());
        for _ in 0..CUT_TRIES {
            if room == 0 {
                break;
            }
            let best = cut.longest(room, |head, tail| {
                let text = &self.escaped(cut.utf8(head, tail));
                self.host.count(Subject::Piece { index: index as usize, text })
            })?;
            let Some(Piece { head, tail: end, mut tokens }) = best else { break };
            let piece = cut.utf8(head, end);
            let escaped = self.escaped(piece.clone());
            if escaped != piece {
                let text = &piece;
                tokens = self.host.count(Subject::Piece { index: index as usize, text })?;
            }
            let frame = Frame { escaped: None, ..frame.clone() };
            self.keep_cut(index, tokens, frame, escaped);
            let text = self.assembled(&tail);
            let total = self.host.count(Subject::Assembled(&text))?;
            if total <= self.call.budget {
                return Ok(Some(total));
            }
            self.take_out();
            room = room.saturating_sub(total - self.call.budget);
        }
        Ok(None)
    }
}
