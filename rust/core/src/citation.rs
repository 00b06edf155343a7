//! Citations: the tokens of citing a chunk, and the sources of a packing.

use std::collections::HashSet;

use crate::chunk::Document;
use crate::count::TokenCounter;
use crate::envelope::{SEPARATOR, envelope};
use crate::packer::Packer;
use crate::packing::Packing;

const HEADING: &str = "Sources: ";

/// Separates a text and its footer.
const BLANK_LINE: &str = "\n\n";

/// A source that is in the packed text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Citation<'a> {
    /// The place of its chunk in the input.
    pub index: usize,
    /// The source of the chunk; empty if it has none.
    pub source: &'a str,
    /// The identifier of the chunk; None if it has none.
    pub id: Option<&'a str>,
    /// Where its text stands in [`Packing::text`], in bytes. None as for
    /// [`KeptChunk::span`](crate::KeptChunk::span).
    pub span: Option<std::ops::Range<usize>>,
}

impl Citation<'_> {
    /// Returns its name in a footer. It is never longer than in the
    /// [`envelope`].
    fn name(&self) -> String {
        let name = format!("{} {}", self.source, self.id.unwrap_or_default());
        name.split_whitespace().collect::<Vec<_>>().join(" ").replace(SEPARATOR, ", ")
    }
}

/// Returns the tokens of citing all of `chunks`.
///
/// A citation is the chunk's source, a space, its identifier, its metadata, and
/// `"; "`. Each citation is counted on its own.
///
/// # Examples
///
/// ```
/// use budgeteer::presets::estimate_citation_tokens;
/// use budgeteer::{Chunk, Estimate};
///
/// let chunks = [Chunk::new("Tea is green.").id("12").source("tea.md")];
/// assert_eq!(estimate_citation_tokens(&chunks, &Estimate::CharsDiv4), 3);
/// ```
#[must_use]
pub fn estimate_citation_tokens<D: Document>(
    chunks: &[D],
    counter: &(impl TokenCounter + ?Sized),
) -> usize {
    chunks
        .iter()
        .fold(0, |total: usize, chunk| total.saturating_add(counter.count(&envelope(chunk))))
}

/// Returns the sources in the text of `packing`, one for each kept chunk, in
/// its order. `chunks` are those that were packed.
///
/// # Examples
///
/// ```
/// use budgeteer::presets::{agentic_rag, citations};
/// use budgeteer::Chunk;
///
/// let chunks = [Chunk::new("Green tea.").source("tea.md")];
/// let packing = agentic_rag(100).pack("", &chunks)?;
/// let citations = citations(&packing, &chunks);
/// assert_eq!((citations[0].source, citations[0].span.clone()), ("tea.md", Some(0..10)));
/// # Ok::<(), budgeteer::Error>(())
/// ```
///
/// # Panics
///
/// If `chunks` has fewer chunks than were packed.
#[must_use]
pub fn citations<'a, D: Document>(packing: &Packing, chunks: &'a [D]) -> Vec<Citation<'a>> {
    let kept = packing.kept.iter();
    kept.map(|kept| Citation {
        index: kept.index,
        source: chunks[kept.index].source(),
        id: chunks[kept.index].tag().1,
        span: kept.span.clone(),
    })
    .collect()
}

/// Returns the line `Sources: ...` with the sources in the text of `packing`,
/// each once. `packer` is the one that packed it, and `chunks` are those that
/// were packed.
///
/// By the packer's own counter the footer has at most as many tokens as the
/// `citation_tokens` of all kept chunks and the packer's reserve together. The
/// text, a blank line and the footer stay within the packer's `max_tokens`.
///
/// If not all names fit, the footer says how many more there are. If no name
/// fits, or there is none, it is empty. Whitespace in a name becomes single
/// spaces and `"; "` becomes `", "`, so a name cannot pass for a line of its
/// own or for two names.
///
/// # Examples
///
/// ```
/// use budgeteer::presets::{agentic_rag, sources_footer};
/// use budgeteer::Chunk;
///
/// let packer = agentic_rag(100);
/// let chunks = [Chunk::new("Green tea.").source("tea.md").id("1"), Chunk::new("Rye.").source("rye.md")];
/// let packing = packer.pack("", &chunks)?;
/// assert_eq!(sources_footer(&packer, &packing, &chunks), "Sources: tea.md 1; rye.md");
/// # Ok::<(), budgeteer::Error>(())
/// ```
///
/// # Panics
///
/// If `chunks` has fewer chunks than were packed.
#[must_use]
pub fn sources_footer<D: Document>(packer: &Packer, packing: &Packing, chunks: &[D]) -> String {
    let mut seen = HashSet::new();
    let names: Vec<String> = citations(packing, chunks)
        .iter()
        .map(Citation::name)
        .filter(|name| !name.is_empty() && seen.insert(name.clone()))
        .collect();
    let (max_tokens, reserve) = packer.limits();
    let limit =
        packing.kept.iter().fold(reserve, |limit, kept| limit.saturating_add(kept.citation_tokens));
    let footer = |shown: usize| {
        let more = names.len() - shown;
        let more = (more > 0).then(|| format!("and {more} more"));
        let shown = names[..shown].iter().map(String::as_str).chain(more.as_deref());
        format!("{HEADING}{}", shown.collect::<Vec<_>>().join(SEPARATOR))
    };
    let fits = |line: &str| {
        packer.count(line) <= limit
            && packer.count(&format!("{}{BLANK_LINE}{line}", packing.text)) <= max_tokens
    };
    // All names are tried first, then fewer, by halving. A footer is returned
    // only if it was counted, as a counter may return less for a longer text.
    let (mut shown, mut most, mut tried) = (0, names.len(), names.len());
    while shown < most {
        if fits(&footer(tried)) {
            shown = tried;
        } else {
            most = tried - 1;
        }
        tried = (shown + most).div_ceil(2);
    }
    if shown > 0 { footer(shown) } else { String::new() }
}
