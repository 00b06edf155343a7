//! Measuring with the host's counter.
//!
//! Nothing is known of this counter, and it may be slow: it counts each chunk
//! that is considered once, and the assembled text.

use super::indexed::Unseen;
use super::meter::{Meter, Need};
use super::{CUT_TRIES, Packer};
use crate::chunk::Batch;
use crate::count::exact::GO_ON;
use crate::outcome::Frame;
use crate::plan::{Host, Subject};
use crate::text::Text;
use crate::truncate::{Cut, Keep, Piece};

/// The sum of the host's counts.
#[derive(Debug, Default)]
pub(super) struct HostMeter {
    /// The tokens of the kept chunks, of header and footer, and of the notice
    /// once room is set aside for it; None until the host is first asked.
    used: Option<u64>,
    /// The tokens of the notice, once the host was asked.
    notice: Option<u64>,
    /// What is used with the best chunk alone.
    best: u64,
}

/// A chunk that the host counted.
#[derive(Debug)]
pub(super) struct HostChunk {
    tokens: u64,
    /// Its tokens with its frame, if it fits without.
    whole: u64,
    frame: Frame,
}

impl HostMeter {
    /// Returns the tokens used so far. The first call counts header and footer.
    fn used<B: Batch, H: Host>(&mut self, packer: &mut Packer<'_, B, H>) -> Result<u64, H::Error> {
        if let Some(used) = self.used {
            return Ok(used);
        }
        let template = packer.template;
        let used =
            count(packer, &[template.header.as_bytes(), template.footer.as_bytes()].concat())?;
        self.used = Some(used);
        Ok(used)
    }
}

impl<B: Batch, H: Host> Meter<B, H> for HostMeter {
    type Chunk = HostChunk;

    const MEASURES_ALL: bool = true;

    fn available(&self, packer: &Packer<'_, B, H>) -> u64 {
        packer.call.budget.saturating_sub(self.used.unwrap_or_default())
    }

    fn make_room(&mut self, packer: &mut Packer<'_, B, H>) -> Result<bool, H::Error> {
        let used = self.used(packer)?;
        let notice = match self.notice {
            Some(notice) => notice,
            None => count(packer, &packer.longest_notice())?,
        };
        self.notice = Some(notice);
        let is_first = packer.admitted.kept.is_empty();
        if !is_first && self.best.saturating_add(notice) > packer.call.budget {
            return Ok(false);
        }
        self.used = Some(used.saturating_add(notice));
        Ok(true)
    }

    fn give_back(&mut self, _: &Packer<'_, B, H>) {
        self.used = self.used.zip(self.notice).map(|(used, notice)| used - notice);
    }

    fn measure(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        order: &[u32],
        place: usize,
    ) -> Result<HostChunk, H::Error> {
        self.used(packer)?;
        let index = order[place];
        let tokens = packer.host.count(Subject::Chunk(index as usize))?;
        let (mut whole, mut frame) = (tokens, Frame::default());
        if tokens <= self.available(packer) {
            frame = packer.frame(index)?;
            whole = with_frame(packer, tokens, index, &frame);
        }
        Ok(HostChunk { tokens, whole, frame })
    }

    fn prepare(&mut self, packer: &mut Packer<'_, B, H>) -> Result<(), H::Error> {
        self.used(packer).map(|_| ())
    }

    fn measure_written(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        frame: Frame,
    ) -> Result<HostChunk, H::Error> {
        let text = frame.escaped.as_deref().unwrap_or_default();
        let tokens = packer.host.count(Subject::Piece { index: index as usize, text })?;
        Ok(HostChunk { tokens, whole: tokens, frame })
    }

    fn need(&self, packer: &Packer<'_, B, H>, chunk: &HostChunk) -> Need {
        Need { tokens: chunk.tokens, needed: chunk.whole, available: self.available(packer) }
    }

    fn add(&mut self, packer: &Packer<'_, B, H>, _: u32, chunk: HostChunk) -> Frame {
        let used = self.used.unwrap_or_default() + chunk.whole;
        if packer.admitted.kept.is_empty() {
            self.best = used;
        }
        self.used = Some(used);
        chunk.frame
    }

    /// There is no count of one chunk to forget: the whole text is counted in
    /// the end.
    fn remove_last(&mut self) {}

    fn cut(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        _: &HostChunk,
        (keep, marker): (Keep, &'static str),
    ) -> Result<bool, H::Error> {
        let frame = packer.frame(index)?;
        let template = packer.template;
        let mut around = if packer.admitted.kept.is_empty() {
            template.header.as_bytes().to_vec()
        } else {
            let mut front = packer.assembled(&[]);
            front.extend(template.separator.as_bytes());
            front
        };
        around.extend(&frame.front);
        around.extend(&frame.back);
        around.extend(&packer.longest_tail());
        let taken = count(packer, &around)?;
        let mut room = packer.call.budget.saturating_sub(taken);

        let cut = Cut::new(packer.batch.text(index as usize), keep, marker.into(), &GO_ON);
        for _ in 0..CUT_TRIES {
            if room == 0 {
                break;
            }
            let best = cut.longest(room, |head, tail| {
                let text = &packer.escaped(cut.utf8(head, tail));
                packer.host.count(Subject::Piece { index: index as usize, text })
            })?;
            let Some(Piece { head, tail, mut tokens }) = best else { break };
            let piece = cut.utf8(head, tail);
            let escaped = packer.escaped(piece.clone());
            if escaped != piece {
                let text = &piece;
                tokens = packer.host.count(Subject::Piece { index: index as usize, text })?;
            }
            match packer.try_cut(self, index, tokens, frame.clone(), escaped)? {
                Ok(total) => {
                    self.used = Some(total);
                    return Ok(true);
                }
                Err(over) => room = room.saturating_sub(over),
            }
        }
        Ok(false)
    }

    fn total(&mut self, packer: &mut Packer<'_, B, H>, tail: &[u8]) -> Result<u64, H::Error> {
        let text = packer.assembled(tail);
        packer.host.count(Subject::Assembled(&text))
    }

    fn unseen(&self, packer: &Packer<'_, B, H>) -> Unseen {
        Unseen::Counted(self.available(packer))
    }
}

/// Returns the host's count of `text`; 0 for the empty text, without asking.
fn count<B: Batch, H: Host>(packer: &mut Packer<'_, B, H>, text: &[u8]) -> Result<u64, H::Error> {
    if text.is_empty() { Ok(0) } else { packer.host.count(Subject::Assembled(text)) }
}

/// Returns the tokens of chunk `index` in the text. Its text counts `tokens`;
/// frame and escapes are taken to count as much for each code point. Asking the
/// host would be one more question for each chunk.
fn with_frame<B: Batch, H: Host>(
    packer: &Packer<'_, B, H>,
    tokens: u64,
    index: u32,
    frame: &Frame,
) -> u64 {
    if packer.template.is_plain() {
        return tokens;
    }
    let text = packer.batch.text(index as usize);
    let chars = |text: &[u8]| Text::from_utf8(text).chars();
    let body = frame.escaped.as_deref().map_or_else(|| text.chars(), chars);
    let whole = chars(&frame.front) + body + chars(&frame.back);
    let product = u128::from(tokens) * whole as u128;
    u64::try_from(product.div_ceil(text.chars() as u128)).unwrap_or(u64::MAX)
}
