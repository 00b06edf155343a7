//! Admitting as theaios-context-router 0.2.2 does.
//!
//! That program has neither a cap nor duplicates, keeps empty texts, and lets a
//! cut exceed the budget. It asks none of the questions of the admission loop,
//! so this is a loop of its own.

use super::Packer;
use crate::chunk::Batch;
use crate::count::Estimate;
use crate::outcome::{Kept, Reason};
use crate::plan::{Host, Overflow};
use crate::text::{Cursor, Text};
use crate::truncate::Keep;

impl<B: Batch, H: Host> Packer<'_, B, H> {
    /// Admits by the sum of the counts of the chunks, and returns that sum.
    /// Frames and separators do not count, and the marker of a cut is added to
    /// the tokens that were left.
    pub(super) fn pack_sum_of_parts(
        &mut self,
        estimate: Estimate,
        order: &[u32],
    ) -> Result<u64, H::Error> {
        let mut scratch = Vec::new();
        let mut used = 0;
        for (place, &index) in order.iter().enumerate() {
            let available = self.call.budget.saturating_sub(used);
            if available == 0 {
                self.drop_rest(&order[place..], 0);
                break;
            }
            let text = self.batch.text(index as usize);
            let mut tokens = estimate.count_text(text, &mut scratch);
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
                tokens = estimate.count_text(Text::from_utf8(&piece), &mut scratch);
                frame.escaped = None;
                let piece = self.escaped(piece);
                self.admitted.cuts.push((index, piece));
            }
            used += tokens;
            self.admitted.kept.push(Kept { index, tokens, citation: 0 });
            if self.call.is_framed() {
                self.admitted.frames.push(frame);
            }
        }
        Ok(used)
    }

    /// Drops all of `rest`, empty texts and duplicates too.
    fn drop_rest(&mut self, rest: &[u32], available: u64) {
        for &index in rest {
            self.drop(index, Reason::Budget, 0, available);
        }
    }
}

/// Cuts `text` to `max_tokens` tokens, without the marker. Words are joined by
/// single spaces; otherwise four code points are a token.
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
/// `length` units stay.
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
