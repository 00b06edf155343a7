//! Packers that reproduce known designs, and functions for them.

use std::collections::HashMap;

use crate::chunk::Document;
pub use crate::citation::{Citation, citations, estimate_citation_tokens, sources_footer};
use crate::count::Estimate;
use crate::error::Error;
use crate::packer::Packer;
use crate::packing::Packing;
use crate::plan::{Overflow, Policy, Units};
use crate::ranking::Ranking;
use crate::{Order, Selection, Template};

/// The budget of an agentic RAG skill, in tokens.
pub const DEFAULT_TOKEN_BUDGET: usize = 8_000;

/// Code points in a token, as [`agentic_rag`] counts by default.
pub const APPROX_CHARS_PER_TOKEN: usize = 4;

/// Tokens that [`agentic_rag`] reserves for the footer of sources.
pub const DEFAULT_CITATION_SAFETY_BUFFER_TOKENS: usize = 64;

/// Returns a packer that sets aside, for every chunk that it keeps, the tokens
/// to cite it.
///
/// Chunks come by score, the highest first; those without a score come last, in
/// input order. A chunk enters with its citation (see
/// [`estimate_citation_tokens`]) or not at all; it is skipped if it does not
/// fit, and never cut: packing with an [`Overflow`] that cuts is an error. The
/// `token_count` and `citation_tokens` of all kept chunks and the reserve are at
/// most `max_tokens` together. The reserve is
/// [`DEFAULT_CITATION_SAFETY_BUFFER_TOKENS`]; [`Packer::reserve_tokens`] sets
/// another. If chunks are left out, a notice after the chunks tells the model
/// how many.
///
/// # Examples
///
/// ```
/// use budgeteer::Chunk;
/// use budgeteer::presets::agentic_rag;
///
/// let packing = agentic_rag(80).pack("", &[Chunk::new("Green tea.").id("7").source("tea.md")])?;
/// assert_eq!((packing.kept[0].token_count, packing.kept[0].citation_tokens), (3, 3));
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[must_use]
pub fn agentic_rag(max_tokens: usize) -> Packer {
    preset(max_tokens)
        .reserve_tokens(DEFAULT_CITATION_SAFETY_BUFFER_TOKENS)
        .estimate(Estimate::CharsDiv4)
        .ranking(Ranking::Score)
        .notice("Chunks left out: {count}.")
        .policy(Policy::Cite)
}

/// Returns a packer that keeps the top chunks, up to the first that does not fit.
///
/// Chunks come by score, the highest first; those without a score come last, in
/// input order.
///
/// # Examples
///
/// ```
/// use budgeteer::presets::retrieval_service;
///
/// let packing = retrieval_service(9).pack("", &["Green tea.", "Tea is a drink.", "Coffee."])?;
/// assert_eq!(packing.kept.len(), 2);
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[must_use]
#[cfg(feature = "o200k")]
pub fn retrieval_service(max_tokens: usize) -> Packer {
    top(max_tokens).counter(budgeteer_vocab::Encoding::O200k)
}

/// Returns the packer of [`retrieval_service`], for a counter that is set later.
pub(crate) fn top(max_tokens: usize) -> Packer {
    preset(max_tokens).ranking(Ranking::Score).overflow(Overflow::Stop)
}

/// Returns a packer that puts authority first, and keeps only related documents.
///
/// The chunk with the highest weight comes first, and chunks of equal weight in
/// input order. The weight is
///
/// - for authority: `system` 1000, `developer` 800, `user` 600, `tool` 400, `other`
///   200, any other and none 0,
/// - plus for kind: `system` 120, `task` 100, `message` 60, `document` 50,
///   `tool_output` 40, `other` 10, any other 0,
/// - plus the priority.
///
/// A document whose text shares no keyword with the question is out of scope.
/// The question is the text of the first `message`, or the query if there is
/// none. Of the other documents the first `max_docs` are considered, including
/// those that then do not fit. A token is three characters. A chunk costs the
/// tokens that it adds to the text, with its label and line end.
///
/// Packing with another [`Packer::ranking`] is an error.
///
/// # Examples
///
/// ```
/// use budgeteer::presets::context_gate;
/// use budgeteer::Chunk;
///
/// let chunks = [
///     Chunk::new("Rye bread is dark.").id("bread"),
///     Chunk::new("Green tea is mild.").id("tea"),
///     Chunk::new("Be brief.").id("sys").kind("system").authority("system"),
/// ];
/// let packing = context_gate(120, 3).pack("Is green tea mild?", &chunks)?;
/// assert_eq!(packing.text, "[system:sys] Be brief.\n[document:tea] Green tea is mild.");
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[must_use]
pub fn context_gate(max_tokens: usize, max_docs: usize) -> Packer {
    preset(max_tokens)
        .estimate(Estimate::CharsPerToken(3.0))
        .ranking(Ranking::Input)
        .template(Template::tagged())
        .policy(Policy::Gate { max_docs: max_docs as u64 })
}

/// Packs the artifacts of a bundle with a [`context_gate`].
///
/// # Errors
///
/// As for [`Packer::pack`], and if two artifacts have the same identifier.
///
/// # Examples
///
/// ```
/// use budgeteer::presets::gate_bundle;
/// use budgeteer::Chunk;
///
/// let artifacts = [
///     Chunk::new("Tea is mild.").id("tea").authority("tool"),
///     Chunk::new("Why tea?").id("user").kind("message").authority("user"),
/// ];
/// let packing = gate_bundle(&artifacts, 120, 3)?;
/// assert_eq!(packing.text, "[message:user] Why tea?\n[document:tea] Tea is mild.");
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn gate_bundle<D: Document>(
    artifacts: &[D],
    budget_tokens: usize,
    max_docs: usize,
) -> Result<Packing, Error> {
    let mut places = HashMap::new();
    for (index, id) in artifacts.iter().enumerate().filter_map(|(i, a)| Some((i, a.tag().1?))) {
        if let Some(first) = places.insert(id, index) {
            return Err(Error::repeated_id(index, first));
        }
    }
    context_gate(budget_tokens, max_docs).pack("", artifacts)
}

/// Returns a packer that reproduces theaios-context-router 0.2.2, to the bit.
///
/// It is for programs that used that one. It reproduces its overruns too:
/// markers and the blank lines between chunks are not counted, a cut may split
/// a grapheme cluster, a cut by words collapses whitespace, and
/// [`total_tokens`](Packing::total_tokens) is the sum of the parts. To keep the
/// budget, use [`Packer::new`]. With a counter that is not an [`Estimate`] this
/// packer keeps its budget too.
///
/// That program's options are options of the packer:
///
/// - `reserve_tokens`: [`Packer::reserve_tokens`], 0 by default;
/// - `estimator`: [`Packer::estimate`], with [`Estimate::CharsDiv4`] (`chars_div4`,
///   the default) or [`Estimate::Words`] (`words` and `whitespace`);
/// - `ranking`: [`Packer::ranking`], with [`Ranking::Keyword`] (`relevance`, the
///   default), [`Ranking::Recency`] or [`Ranking::Input`] (`manual`);
/// - `truncation`: [`Packer::overflow`], with [`Overflow::Skip`] (`drop`, the
///   default), [`Overflow::TruncateEnd`] or [`Overflow::TruncateMiddle`].
///
/// That program has no others of a packer's: under an estimate, packing with
/// [`Packer::max_chunks`], [`Packer::dedupe`] or [`Packer::selection`] is an
/// error.
///
/// # Examples
///
/// ```
/// use budgeteer::Overflow;
/// use budgeteer::presets::context_router;
///
/// let packer = context_router(2).overflow(Overflow::TruncateEnd);
/// assert_eq!(packer.pack("", &["Some long text"])?.text, "Some lon [...]");
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[must_use]
pub fn context_router(max_tokens: usize) -> Packer {
    preset(max_tokens)
        .estimate(Estimate::CharsDiv4)
        .ranking(Ranking::Keyword)
        .policy(Policy::SumOfParts)
}

/// Returns a packer with the options that all presets share. Each is set, so a
/// preset does not change when a default does.
fn preset(max_tokens: usize) -> Packer {
    Packer::new(max_tokens)
        .reserve_tokens(0)
        .overflow(Overflow::Skip)
        .dedupe(false)
        .selection(Selection::Rank)
        .units(Units::Chunk)
        .order(Order::Rank)
        .template(Template::plain())
}
