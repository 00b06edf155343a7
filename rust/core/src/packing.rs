//! What became of chunks, for Rust programs.

use std::sync::Arc;

use crate::chunk::Document;
use crate::corpus::Index;
use crate::dropped::DroppedChunks;
use crate::outcome::Reason;
use crate::pipeline::Outcome;
use crate::plan::Call;

/// A kept chunk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeptChunk {
    /// Its place in the input.
    pub index: usize,
    /// Its relevance; None under [`Ranking::Score`](crate::Ranking::Score) where it has none.
    pub score: Option<f64>,
    /// Tokens of its text alone, cut where it was cut.
    pub token_count: usize,
    /// Tokens set aside for citing it: see
    /// [`presets::agentic_rag`](crate::presets::agentic_rag).
    pub citation_tokens: usize,
    /// Where its text stands in [`Packing::text`], as it is escaped there, in
    /// bytes.
    pub span: std::ops::Range<usize>,
    /// Whether something of its text was left out.
    pub was_cut: bool,
}

/// A dropped chunk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DroppedChunk {
    /// Its place in the input.
    pub index: usize,
    /// Its relevance; None under [`Ranking::Score`](crate::Ranking::Score) where it has none.
    pub score: Option<f64>,
    /// Why it is not in.
    pub reason: Reason,
    /// Under [`Reason::Budget`], what it would have added, or a lower bound.
    pub needed_tokens: usize,
    /// Under [`Reason::Budget`], what was left.
    pub available_tokens: usize,
    /// Under [`Reason::Duplicate`], the kept chunk with the same text, or nearly.
    pub duplicate_of: Option<usize>,
}

/// The best context that fits, and what became of every chunk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Packing {
    /// The context, ready to send.
    pub text: String,
    /// What the counter answers for exactly `text`; at most `budget_tokens`.
    pub total_tokens: usize,
    /// What could have been used.
    pub budget_tokens: usize,
    /// What is in the text, in its order.
    pub kept: Vec<KeptChunk>,
    /// What is not, in the order in which that was decided.
    pub dropped: DroppedChunks,
}

impl Packing {
    /// Returns the text, split behind the text of each kept chunk, without what
    /// follows.
    pub(crate) fn links(&self) -> Vec<Vec<u8>> {
        let mut from = 0;
        let links = self.kept.iter().map(|kept| {
            let start = std::mem::replace(&mut from, kept.span.end);
            self.text.as_bytes()[start..kept.span.end].to_vec()
        });
        links.collect()
    }
}

/// Returns what a program gets; the budget is still to be told. `index` is that
/// of the corpus which the chunks are.
pub(crate) fn packing<D: Document>(
    outcome: Outcome,
    call: &Call<'_>,
    chunks: &[D],
    text: Vec<u8>,
    index: Option<Arc<Index>>,
) -> Packing {
    let tokens = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let score = |index: u32| Some(outcome.scores[index as usize]).filter(|score| !score.is_nan());
    let text = String::from_utf8(text).expect("whole strings make a string");
    let template = call.template();
    let mut at = template.header.len();
    let kept = outcome.kept().zip(outcome.parts()).map(|(kept, part)| {
        let start = at + part.front.len();
        let end = start + part.changed.map_or_else(|| chunks[part.index].text().len(), <[u8]>::len);
        at = end + part.back.len() + template.separator.len();
        KeptChunk {
            index: part.index,
            score: score(kept.index),
            token_count: tokens(kept.tokens),
            citation_tokens: tokens(kept.citation),
            span: start..end,
            was_cut: part.was_cut,
        }
    });
    Packing {
        total_tokens: tokens(outcome.total_tokens),
        budget_tokens: 0,
        kept: kept.collect(),
        dropped: DroppedChunks::new(outcome, call.plan.counting, index, chunks.len()),
        text,
    }
}
