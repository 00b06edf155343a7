//! Chunks: what a retriever returns.

use std::sync::Arc;

use crate::mapped::Mapped;
use crate::text::Text;

/// The kind of a chunk that has none.
pub(crate) const DEFAULT_KIND: &str = "document";

/// A piece of text that may go into the context. What its methods return must
/// not change while it is packed.
///
/// Implemented for strings, for [`Chunk`], and for references to any of them.
pub trait Document {
    /// Returns the text that is packed.
    fn text(&self) -> &str;

    /// Returns the title. Its words count for ranking, not for the budget.
    #[allow(clippy::unnecessary_literal_bound)] // other types return a borrowed field
    fn title(&self) -> &str {
        ""
    }

    /// Returns the relevance from a retriever; higher is better.
    fn score(&self) -> Option<f64> {
        None
    }

    /// Returns when the document was last changed, in seconds; 0 if unknown.
    fn mtime(&self) -> f64 {
        0.0
    }

    /// Returns kind and identifier, which a [`Template`](crate::Template) may
    /// show. Without an identifier it shows the index.
    fn tag(&self) -> (&str, Option<&str>) {
        (DEFAULT_KIND, None)
    }

    /// Returns the source of the document, which citations and a
    /// [`Template`](crate::Template) may show.
    #[allow(clippy::unnecessary_literal_bound)] // other types return a borrowed field
    fn source(&self) -> &str {
        ""
    }

    /// Returns the position of the document in its source, for
    /// [`Order::Document`](crate::Order::Document).
    fn position(&self) -> Option<f64> {
        None
    }

    /// Returns the metadata as compact JSON, which counts for citing the
    /// document; empty if there is none.
    #[allow(clippy::unnecessary_literal_bound)] // other types return a borrowed field
    fn metadata(&self) -> &str {
        ""
    }

    /// Returns the authority and the priority of the document, for
    /// [`presets::context_gate`](crate::presets::context_gate).
    fn standing(&self) -> (Option<&str>, f64) {
        (None, 0.0)
    }

    /// Returns the fields of the document in the file that it was read from,
    /// other than text and title. They are written as they were read.
    #[doc(hidden)]
    fn record(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the file that the document is read from, if it is from one.
    #[doc(hidden)]
    fn file(&self) -> Option<&Arc<Mapped>> {
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

    fn file(&self) -> Option<&Arc<Mapped>> {
        (**self).file()
    }
}

/// One retrieved piece of text, for programs without a type of their own.
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
    /// The heading of the chunk.
    pub title: String,
    /// The identifier within its source.
    pub id: Option<String>,
    /// The kind of chunk; `document` if None.
    pub kind: Option<String>,
    /// Where the text comes from.
    pub source: String,
    /// The position in the source.
    pub position: Option<f64>,
    /// The metadata as compact JSON; empty if there is none.
    pub metadata: String,
    /// The authority that speaks in it.
    pub authority: Option<String>,
    /// Its importance among chunks of the same kind and authority.
    pub priority: f64,
    /// The relevance from a retriever; higher is better.
    pub score: Option<f64>,
    /// When it was last changed, in seconds; 0 if unknown.
    pub mtime: f64,
}

impl Chunk {
    /// Returns a chunk with that text and nothing else.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns a chunk with the fields of `document`.
    pub(crate) fn of(document: &impl Document) -> Self {
        let (kind, id) = document.tag();
        let (authority, priority) = document.standing();
        Self {
            text: document.text().to_owned(),
            title: document.title().to_owned(),
            id: id.map(str::to_owned),
            kind: Some(kind).filter(|kind| *kind != DEFAULT_KIND).map(str::to_owned),
            source: document.source().to_owned(),
            position: document.position(),
            metadata: document.metadata().to_owned(),
            authority: authority.map(str::to_owned),
            priority,
            score: document.score(),
            mtime: document.mtime(),
        }
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

    /// Sets the source.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the metadata, which is compact JSON.
    #[must_use]
    pub fn metadata(mut self, json: impl Into<String>) -> Self {
        self.metadata = json.into();
        self
    }

    /// Sets the authority.
    #[must_use]
    pub fn authority(mut self, authority: impl Into<String>) -> Self {
        self.authority = Some(authority.into());
        self
    }

    /// Sets the priority.
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
/// The pipeline reads a batch and returns indices into it.
#[allow(clippy::len_without_is_empty)] // no code needs it
pub trait Batch: Sync {
    /// Returns the number of chunks.
    fn len(&self) -> usize;

    /// Returns the text of chunk `index`.
    fn text(&self, index: usize) -> Text<'_>;

    /// Returns the title of chunk `index`.
    fn title(&self, index: usize) -> Text<'_>;

    /// Tells the processor that chunk `index` is read soon. Does nothing where
    /// that is not possible. `index` may be beyond the last chunk.
    fn prefetch(&self, _index: usize) {}

    /// Returns the number of code points of all texts together, about.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_says_what_its_document_says() {
        let chunk = Chunk::new("Green tea").title("Tea").id("7").kind("note").source("tea.md");
        let chunk = chunk.metadata("{}").authority("host").priority(2.5).score(0.5);
        let chunk = Chunk { position: Some(3.5), mtime: 4.5, ..chunk };
        assert_eq!(chunk, Chunk::of(&&chunk));
    }

    /// It may be read from a file, which only a document of a corpus is.
    #[test]
    fn a_reference_has_the_record_and_the_file_of_its_document() {
        struct Read(Arc<Mapped>);

        impl Document for Read {
            #[allow(clippy::unnecessary_literal_bound)] // as the trait has it
            fn text(&self) -> &str {
                "Green tea"
            }

            fn record(&self) -> Option<&[u8]> {
                Some(b"{}")
            }

            fn file(&self) -> Option<&Arc<Mapped>> {
                Some(&self.0)
            }
        }

        let read = Read(Arc::new(Mapped::new(Box::new([0_u8; 0]), 0..0).expect("it is whole")));
        assert_eq!(Some(&b"{}"[..]), (&&read).record());
        assert!((&&read).file().is_some_and(|file| Arc::ptr_eq(file, &read.0)));
    }

    #[test]
    fn a_text_says_nothing_of_itself() {
        let text = "Green tea";
        assert_eq!(DEFAULT_KIND, text.tag().0);
        assert_eq!(Chunk::new(text), Chunk::of(&text));
        assert_eq!(Chunk::new(text), Chunk::of(&text.to_owned()));
        assert!(text.record().is_none() && text.file().is_none());
    }

    #[test]
    fn a_batch_knows_how_long_its_texts_are() {
        struct Given<'a>(Documents<'a>);

        impl Batch for Given<'_> {
            fn len(&self) -> usize {
                self.0.len()
            }

            fn text(&self, index: usize) -> Text<'_> {
                self.0.text(index)
            }

            fn title(&self, index: usize) -> Text<'_> {
                self.0.title(index)
            }
        }

        let texts = ["Green tea", "", "t\u{e9}"];
        let documents = Documents::new(&texts);
        assert_eq!(12, documents.total_chars()); // bytes, which are at hand
        assert_eq!(11, Given(documents).total_chars());
    }
}
