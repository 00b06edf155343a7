//! Chunks: what a retriever returns.

use crate::template::DEFAULT_KIND;
use crate::text::Text;

/// A piece of text that may go into the context.
///
/// Implemented for strings, for [`Chunk`], and for references to any of them.
pub trait Document {
    /// Returns the text that is packed.
    fn text(&self) -> &str;

    /// Returns the title; its words count for ranking, not for the budget.
    #[allow(clippy::unnecessary_literal_bound)] // others return what they hold
    fn title(&self) -> &str {
        ""
    }

    /// Returns the relevance that a retriever gave, higher is better.
    fn score(&self) -> Option<f64> {
        None
    }

    /// Returns when the document was last changed, in seconds; 0 if unknown.
    fn mtime(&self) -> f64 {
        0.0
    }

    /// Returns kind and identifier, which a
    /// [`Template`](crate::Template) may show. Without an identifier the index
    /// is shown.
    fn tag(&self) -> (&str, Option<&str>) {
        (DEFAULT_KIND, None)
    }

    /// Returns where the document comes from, which a
    /// [`Template`](crate::Template) may show, and citations do.
    #[allow(clippy::unnecessary_literal_bound)] // others return what they hold
    fn source(&self) -> &str {
        ""
    }

    /// Returns where it stands in its source, for
    /// [`Order::Document`](crate::Order::Document).
    fn position(&self) -> Option<f64> {
        None
    }

    /// Returns what else is known of the document, as compact JSON, for the
    /// cost of its citation; empty where that is nothing.
    #[allow(clippy::unnecessary_literal_bound)] // others return what they hold
    fn metadata(&self) -> &str {
        ""
    }

    /// Returns who speaks in the document and how important that is, for
    /// [`presets::context_gate`](crate::presets::context_gate).
    fn standing(&self) -> (Option<&str>, f64) {
        (None, 0.0)
    }

    /// Returns what a file has of the document beside text and title, where it
    /// came from one: it is written as it was read.
    #[doc(hidden)]
    fn record(&self) -> Option<&[u8]> {
        None
    }
}

impl Document for str {
    fn text(&self) -> &str {
        self
    }
}

impl Document for String {
    fn text(&self) -> &str {
        self
    }
}

impl<D: Document + ?Sized> Document for &D {
    fn text(&self) -> &str {
        (**self).text()
    }

    fn title(&self) -> &str {
        (**self).title()
    }

    fn score(&self) -> Option<f64> {
        (**self).score()
    }

    fn mtime(&self) -> f64 {
        (**self).mtime()
    }

    fn tag(&self) -> (&str, Option<&str>) {
        (**self).tag()
    }

    fn source(&self) -> &str {
        (**self).source()
    }

    fn position(&self) -> Option<f64> {
        (**self).position()
    }

    fn metadata(&self) -> &str {
        (**self).metadata()
    }

    fn standing(&self) -> (Option<&str>, f64) {
        (**self).standing()
    }

    fn record(&self) -> Option<&[u8]> {
        (**self).record()
    }
}

/// One retrieved piece of text, for those who have no type of their own.
///
/// # Examples
///
/// ```
/// use budgeteer::Chunk;
///
/// let chunk = Chunk::new("Paris is the capital of France.").title("France").score(0.9);
/// assert_eq!(chunk.title, "France");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// The text that is packed.
    pub text: String,
    /// Heading of the chunk.
    pub title: String,
    /// Identifier within its source.
    pub id: Option<String>,
    /// What kind of chunk it is; `document` where there is none.
    pub kind: Option<String>,
    /// Where it comes from.
    pub source: String,
    /// Where it stands in its source.
    pub position: Option<f64>,
    /// What else is known of it, as compact JSON; empty where that is nothing.
    pub metadata: String,
    /// Who speaks in it.
    pub authority: Option<String>,
    /// How important it is among those of its kind and authority.
    pub priority: f64,
    /// Relevance that a retriever gave.
    pub score: Option<f64>,
    /// When it was last changed, in seconds.
    pub mtime: f64,
}

impl Chunk {
    /// Returns a chunk of that text and nothing else.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the identifier.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the kind.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Sets where it comes from.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets what else is known of it, as compact JSON.
    #[must_use]
    pub fn metadata(mut self, json: impl Into<String>) -> Self {
        self.metadata = json.into();
        self
    }

    /// Sets who speaks in it.
    #[must_use]
    pub fn authority(mut self, authority: impl Into<String>) -> Self {
        self.authority = Some(authority.into());
        self
    }

    /// Sets how important it is.
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the score.
    #[must_use]
    pub fn score(mut self, score: f64) -> Self {
        self.score = Some(score);
        self
    }
}

impl Document for Chunk {
    fn text(&self) -> &str {
        &self.text
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn score(&self) -> Option<f64> {
        self.score
    }

    fn mtime(&self) -> f64 {
        self.mtime
    }

    fn tag(&self) -> (&str, Option<&str>) {
        (self.kind.as_deref().unwrap_or(DEFAULT_KIND), self.id.as_deref())
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn position(&self) -> Option<f64> {
        self.position
    }

    fn metadata(&self) -> &str {
        &self.metadata
    }

    fn standing(&self) -> (Option<&str>, f64) {
        (self.authority.as_deref(), self.priority)
    }
}

/// The texts of many chunks, wherever they are stored.
///
/// The pipeline reads a batch and answers with indices into it.
#[allow(clippy::len_without_is_empty)] // nothing asks
pub trait Batch: Sync {
    /// Returns the number of chunks.
    fn len(&self) -> usize;

    /// Returns the text of chunk `index`.
    fn text(&self, index: usize) -> Text<'_>;

    /// Returns the title of chunk `index`.
    fn title(&self, index: usize) -> Text<'_>;

    /// Tells the processor that chunk `index` is read soon. Does nothing where
    /// that cannot be told; `index` may be beyond the last.
    fn prefetch(&self, _index: usize) {}

    /// Returns about how many code points all texts have together.
    fn total_chars(&self) -> usize {
        (0..self.len()).map(|index| self.text(index).chars()).sum()
    }
}

/// A slice of documents as a batch.
#[derive(Debug)]
pub struct Documents<'a> {
    texts: Vec<(&'a str, &'a str)>,
}

impl<'a> Documents<'a> {
    /// Returns the documents as a batch.
    #[must_use]
    pub fn new<D: Document>(documents: &'a [D]) -> Self {
        Self { texts: documents.iter().map(|chunk| (chunk.text(), chunk.title())).collect() }
    }
}

impl Batch for Documents<'_> {
    fn len(&self) -> usize {
        self.texts.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        self.texts[index].0.into()
    }

    fn title(&self, index: usize) -> Text<'_> {
        self.texts[index].1.into()
    }

    fn total_chars(&self) -> usize {
        self.texts.iter().map(|(text, _)| text.len()).sum()
    }
}
