//! The result of packing: the text, the kept chunks and the dropped ones.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::chunk::Document;
use crate::corpus::Index;
use crate::count::TokenCounter;
use crate::dropped::DroppedChunks;
use crate::error::Error;
use crate::outcome::Reason;
use crate::pipeline::Outcome;
use crate::plan::Call;
use crate::template::escape;

mod explain;
#[cfg(feature = "json")]
mod json;

const PROMPT: &str = "previous must be a packing with a template, not one of a prompt, which has no \
                      order to keep: use pack";

/// A kept chunk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeptChunk {
    /// Its place in the input.
    pub index: usize,
    /// Its relevance; None under [`Ranking::Score`](crate::Ranking::Score) for a
    /// chunk without a score.
    pub score: Option<f64>,
    /// The tokens of its text alone, without its frame.
    pub token_count: usize,
    /// The tokens set aside for citing it: see
    /// [`presets::agentic_rag`](crate::presets::agentic_rag).
    pub citation_tokens: usize,
    /// Where its text stands in [`Packing::text`], as it is escaped there, in
    /// bytes. None under [`Packer::prompt`](crate::Packer::prompt), unless its
    /// text stands there once.
    pub span: Option<std::ops::Range<usize>>,
    /// Whether some of its text was left out.
    pub was_cut: bool,
    text: Slice,
}

impl KeptChunk {
    /// Returns its text as packed: cut where it was cut, before any escaping,
    /// and as [`Template::by`](crate::Template::by) writes it.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::{Packer, Template};
    ///
    /// let packing = Packer::new(30).template(Template::xml()).pack("tea", &["Tea & rye."])?;
    /// assert_eq!(packing.kept[0].text(), "Tea & rye.");
    /// assert_eq!(&packing.text[packing.kept[0].span.clone().unwrap()], "Tea &amp; rye.");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.get()
    }
}

/// A part of a text that all kept chunks share: one allocation for all.
#[derive(Clone)]
struct Slice {
    whole: Arc<String>,
    range: std::ops::Range<usize>,
}

impl Slice {
    fn get(&self) -> &str {
        &self.whole[self.range.clone()]
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The best context that fits, and what became of every chunk.
///
/// With the feature `json` it implements `serde::Serialize`, in the layout of
/// Python's `Packing.to_dict()`, except that spans are in bytes.
#[derive(Clone)]
#[non_exhaustive]
pub struct Packing {
    /// The context, ready to send.
    pub text: String,
    /// The tokens of exactly `text`; at most `budget_tokens`, and 0 without text.
    pub total_tokens: usize,
    /// The budget: `max_tokens` without `reserve_tokens`.
    pub budget_tokens: usize,
    /// Whether the counter counts what a tokenizer makes of a text: false for
    /// every estimate. The caller's own counter is exact only if it says so.
    pub is_exact: bool,
    /// The chunks in the text, in its order.
    pub kept: Vec<KeptChunk>,
    /// The dropped chunks, in the order in which that was decided.
    pub dropped: DroppedChunks,
    maker: Maker,
    /// The chunks of which only some sentences were chosen: the number of
    /// these, and of all.
    extracts: HashMap<usize, (usize, usize)>,
    /// The score from which on chunks are in scope, if that was found.
    least: Option<f64>,
}

/// The properties that a packing keeps of its packer.
#[derive(Clone)]
pub(crate) struct Maker {
    pub(crate) counter: Arc<dyn TokenCounter + Send + Sync>,
    pub(crate) max_chunks: Option<usize>,
    /// How many documents a gate considers, if there is a gate.
    pub(crate) max_docs: Option<usize>,
    /// Whether tokens are set aside for citations.
    pub(crate) is_citing: bool,
    /// Whether counting stops where a chunk does not fit.
    pub(crate) is_lazy: bool,
    /// Whether near duplicates are dropped.
    pub(crate) is_near: bool,
    /// What makes the text.
    pub(crate) made_by: MadeBy,
}

/// What makes the text of a packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MadeBy {
    Template,
    /// The caller's function, each chunk by itself.
    Writer,
    /// The caller's function, all of it.
    Prompt,
}

impl Maker {
    /// Returns whether `needed_tokens` may be less than the chunk needs.
    fn is_needed_a_bound(&self) -> bool {
        self.is_citing || self.is_lazy || self.made_by != MadeBy::Template
    }
}

impl Packing {
    /// Returns whether any chunk was dropped or cut.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::Packer;
    ///
    /// assert!(!Packer::new(9).pack("tea", &["Green tea."])?.was_truncated());
    /// assert!(Packer::new(0).pack("tea", &["Green tea."])?.was_truncated());
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn was_truncated(&self) -> bool {
        self.dropped_count() > 0 || self.kept.iter().any(|kept| kept.was_cut)
    }

    /// Returns how many chunks were dropped, for any reason.
    #[must_use]
    pub fn dropped_count(&self) -> usize {
        self.dropped.len()
    }

    /// Returns the tokens of all dropped texts together, by the packer's
    /// counter. `chunks` are those that were packed, as a packing has only the
    /// kept texts.
    ///
    /// The dropped texts are counted at each call.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::{Estimate, Packer};
    ///
    /// let chunks = ["Green tea.", "Rye bread is dark."];
    /// let packing = Packer::new(2).estimate(Estimate::Words).pack("tea", &chunks)?;
    /// assert_eq!((packing.dropped_count(), packing.dropped_total_tokens(&chunks)), (1, 4));
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `chunks` has fewer chunks than were packed.
    #[must_use]
    pub fn dropped_total_tokens<D: Document>(&self, chunks: &[D]) -> usize {
        let dropped = self.dropped.iter();
        let tokens = dropped.map(|dropped| self.maker.counter.count(chunks[dropped.index].text()));
        tokens.fold(0, usize::saturating_add)
    }

    /// Returns the text up to the last kept chunk, split behind the text of
    /// each.
    ///
    /// # Errors
    ///
    /// The text is a prompt, which has no order to keep.
    pub(crate) fn links(&self) -> Result<Vec<Vec<u8>>, Error> {
        if self.maker.made_by == MadeBy::Prompt {
            return Err(Error::shape(PROMPT.into()));
        }
        let mut from = 0;
        let links = self.kept.iter().filter_map(|kept| kept.span.as_ref()).map(|span| {
            let start = std::mem::replace(&mut from, span.end);
            self.text.as_bytes()[start..span.end].to_vec()
        });
        Ok(links.collect())
    }

    /// Puts the final text that a prompt made, of `total` tokens, in place of
    /// the plain one.
    pub(crate) fn set_prompt(&mut self, text: String, total: u64) {
        for kept in &mut self.kept {
            kept.citation_tokens = 0; // what was set aside is in the text by now
            kept.span = only_place(&text, kept.text());
        }
        self.text = text;
        self.total_tokens = usize::try_from(total).unwrap_or(usize::MAX);
    }
}

impl PartialEq for Packing {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
            && self.total_tokens == other.total_tokens
            && self.budget_tokens == other.budget_tokens
            && self.is_exact == other.is_exact
            && self.kept == other.kept
            && self.dropped == other.dropped
            && self.dropped.signals() == other.dropped.signals()
    }
}

impl fmt::Debug for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packing")
            .field("text", &self.text)
            .field("total_tokens", &self.total_tokens)
            .field("budget_tokens", &self.budget_tokens)
            .field("is_exact", &self.is_exact)
            .field("kept", &self.kept)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

/// Returns the packing of `outcome`, without its budget. `index` is that of the
/// corpus, if `chunks` are one.
pub(crate) fn packing<D: Document>(
    outcome: Outcome,
    call: &Call<'_>,
    maker: Maker,
    chunks: &[D],
    text: Vec<u8>,
    index: Option<Arc<Index>>,
) -> Packing {
    let tokens = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let text = String::from_utf8(text).expect("whole strings make a string");
    let template = call.template();
    let is_written = template.writer().is_some();
    let extracts = outcome.extracts().iter();
    let extracts: HashMap<usize, (usize, usize)> =
        extracts.map(|extract| (extract.index as usize, extract.counts)).collect();
    let mut at = template.header.len();
    let mut texts = String::with_capacity(text.len());
    let spans = outcome.parts().map(|part| {
        let whole = chunks[part.index].text();
        let start = at + part.front.len();
        let end = start + part.changed.map_or(whole.len(), <[u8]>::len);
        at = end + part.back.len() + template.separator.len();
        let from = texts.len();
        if part.was_cut || is_written || extracts.contains_key(&part.index) {
            texts += &escape::unescaped(&template.style, &text[start..end]);
        } else {
            texts += whole;
        }
        (start..end, from..texts.len())
    });
    let spans: Vec<_> = spans.collect();
    let texts = Arc::new(texts);
    let kept = outcome.kept().zip(outcome.parts()).zip(outcome.kept_scores()).zip(spans);
    let kept = kept.map(|(((kept, part), score), (span, range))| KeptChunk {
        index: part.index,
        score: Some(score).filter(|score| !score.is_nan()),
        token_count: tokens(kept.tokens),
        citation_tokens: tokens(kept.citation),
        span: Some(span),
        was_cut: part.was_cut || extracts.contains_key(&part.index),
        text: Slice { whole: Arc::clone(&texts), range },
    });
    let kept = kept.collect();
    Packing {
        total_tokens: tokens(outcome.total_tokens),
        budget_tokens: 0,
        least: outcome.scope.found(),
        is_exact: maker.counter.is_exact(),
        kept,
        dropped: DroppedChunks::new(outcome, call.plan.counting.clone(), index, chunks.len()),
        text,
        maker,
        extracts,
    }
}

/// Returns where `part` stands in `text`, if it does exactly once.
fn only_place(text: &str, part: &str) -> Option<std::ops::Range<usize>> {
    let start = text.find(part)?;
    let behind = start + text[start..].chars().next()?.len_utf8();
    (!text[behind..].contains(part)).then_some(start..start + part.len())
}

/// Returns the name of a reason in Python and JSON.
fn name_of(reason: Reason) -> &'static str {
    match reason {
        Reason::OutOfScope => "out_of_scope",
        Reason::Empty => "empty",
        Reason::Cap => "cap",
        Reason::Duplicate => "duplicate",
        Reason::Budget => "budget",
    }
}
