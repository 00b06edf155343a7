//! What finds chunks for a query, what reorders them, and a retriever over
//! chunks in memory.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use crate::Corpus;
use crate::chunk::{Chunk, Document};
use crate::rank::{sort_descending, sortable};
use crate::score::keyword_scores;
use crate::template::DEFAULT_KIND;

/// Whatever a retriever or a reranker fails with; every error becomes one by
/// `?`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Batches of chunks, best first, none of them twice: see
/// [`Retriever::pages`].
pub type Pages<'a> = Box<dyn Iterator<Item = Result<Vec<Chunk>, BoxError>> + 'a>;

/// Finds chunks for a query.
///
/// Every `Fn(&str, usize) -> Result<Vec<Chunk>, E>` is one, and so are a
/// [`Corpus`], `Arc<R>` of a retriever and `Box<dyn Retriever>`;
/// [`Named`](super::Named) gives it a name. It is asked by several threads at
/// once.
///
/// # Examples
///
/// ```
/// use budgeteer::Chunk;
/// use budgeteer::service::{BoxError, Retriever};
///
/// struct Search;
///
/// impl Retriever for Search {
///     fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
///         // Ask the server for `limit` chunks; `?` on whatever that fails with.
///         Ok(vec![Chunk::new("Green tea is mild.").score(0.9)])
///     }
///
///     fn name(&self) -> &str {
///         "search"
///     }
/// }
///
/// let search: Box<dyn Retriever> = Box::new(Search);
/// assert_eq!(search.retrieve("tea", 5)?[0].text, "Green tea is mild.");
/// # Ok::<(), BoxError>(())
/// ```
pub trait Retriever: Send + Sync {
    /// Returns the best chunks for `query`, at most `limit`, best first.
    ///
    /// # Errors
    ///
    /// Whatever it fails with. That becomes the source of the request's error.
    fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError>;

    /// Returns batches of chunks for `query`, best first, none of them twice;
    /// or None, as unless told otherwise, where `retrieve` is to be called.
    ///
    /// They are read until the budget is full, one brings nothing that goes into
    /// it, or there are no more; where chunks compete, by a reranker or a packer
    /// that ranks anew, until there are as many as
    /// [`limit`](super::RetrievalService::limit) besides. What ranks or reranks
    /// sees these chunks alone, and what it leaves out is not read anew. A vector
    /// store brings as many as the window of today's model takes, instead of a
    /// fixed number.
    fn pages<'a>(&'a self, query: &'a str) -> Option<Pages<'a>> {
        let _ = query;
        None
    }

    /// Returns what errors and spans call it, in 80 characters at most; the name
    /// of its type unless told otherwise.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}

impl<F, E> Retriever for F
where
    F: Fn(&str, usize) -> Result<Vec<Chunk>, E> + Send + Sync,
    E: Into<BoxError>,
{
    fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        self(query, limit).map_err(Into::into)
    }
}

macro_rules! forward_retriever {
    ($($kind:tt)*) => {
        $($kind)* {
            fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
                (**self).retrieve(query, limit)
            }

            fn pages<'a>(&'a self, query: &'a str) -> Option<Pages<'a>> {
                (**self).pages(query)
            }

            fn name(&self) -> &str {
                (**self).name()
            }
        }
    };
}

forward_retriever!(impl<R: Retriever + ?Sized> Retriever for Arc<R>);
forward_retriever!(impl Retriever for Box<dyn Retriever>);
forward_retriever!(impl Retriever for Box<dyn Retriever + Send + Sync>);

/// Puts chunks into a better order.
///
/// Every `Fn(&str, Vec<Chunk>) -> Result<Vec<Chunk>, E>` is one, and so are
/// `Arc<R>` of a reranker and `Box<dyn Reranker>`. What it answers is packed in
/// its order, whatever the scores, and what it leaves out is out. A packer of
/// the caller's own ranks anew instead;
/// [`Ranking::Input`](crate::Ranking::Input) keeps this order.
///
/// # Examples
///
/// ```
/// use budgeteer::Chunk;
/// use budgeteer::service::{BoxError, Reranker};
///
/// let shortest_first = |_: &str, mut chunks: Vec<Chunk>| {
///     chunks.sort_by_key(|chunk| chunk.text.len());
///     Ok::<_, BoxError>(chunks)
/// };
/// let chunks = vec![Chunk::new("Green tea."), Chunk::new("Tea.")];
/// assert_eq!(shortest_first.rerank("tea", chunks)?[0].text, "Tea.");
/// # Ok::<(), BoxError>(())
/// ```
pub trait Reranker: Send + Sync {
    /// Returns `chunks`, best first.
    ///
    /// # Errors
    ///
    /// Whatever it fails with. That becomes the source of the request's error.
    fn rerank(&self, query: &str, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError>;

    /// Returns whether it says in which order chunks are packed. If not, as
    /// with [`NoOpReranker`], it is not asked, and the scores of the chunks
    /// decide.
    fn reorders(&self) -> bool {
        true
    }

    /// Returns what errors and spans call it, in 80 characters at most; the name
    /// of its type unless told otherwise.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}

impl<F, E> Reranker for F
where
    F: Fn(&str, Vec<Chunk>) -> Result<Vec<Chunk>, E> + Send + Sync,
    E: Into<BoxError>,
{
    fn rerank(&self, query: &str, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError> {
        self(query, chunks).map_err(Into::into)
    }
}

macro_rules! forward_reranker {
    ($($kind:tt)*) => {
        $($kind)* {
            fn rerank(&self, query: &str, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError> {
                (**self).rerank(query, chunks)
            }

            fn reorders(&self) -> bool {
                (**self).reorders()
            }

            fn name(&self) -> &str {
                (**self).name()
            }
        }
    };
}

forward_reranker!(impl<R: Reranker + ?Sized> Reranker for Arc<R>);
forward_reranker!(impl Reranker for Box<dyn Reranker>);
forward_reranker!(impl Reranker for Box<dyn Reranker + Send + Sync>);

/// Leaves the order of the retrievers as it is. The default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoOpReranker;

impl Reranker for NoOpReranker {
    fn rerank(&self, _: &str, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError> {
        Ok(chunks)
    }

    fn reorders(&self) -> bool {
        false
    }
}

/// Finds chunks among those given, by the share of the query's keywords that
/// they have.
///
/// # Examples
///
/// ```
/// use budgeteer::Chunk;
/// use budgeteer::service::{ChunkRetriever, Retriever};
///
/// let retriever = ChunkRetriever::new([Chunk::new("Rye bread."), Chunk::new("Green tea.")]);
/// let found = retriever.retrieve("green tea", 1)?;
/// assert_eq!((found[0].text.as_str(), found[0].score), ("Green tea.", Some(1.0)));
/// assert_eq!(retriever.with_name("drinks").name(), "drinks");
/// # Ok::<(), budgeteer::service::BoxError>(())
/// ```
#[derive(Clone)]
pub struct ChunkRetriever {
    name: String,
    chunks: Arc<[Chunk]>,
}

impl ChunkRetriever {
    /// Returns a retriever over `chunks`.
    #[must_use]
    pub fn new(chunks: impl IntoIterator<Item = Chunk>) -> Self {
        Self { name: "ChunkRetriever".into(), chunks: chunks.into_iter().collect() }
    }

    /// Sets what errors and spans call it.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl Retriever for ChunkRetriever {
    fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        Ok(best(query, &self.chunks, limit))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for ChunkRetriever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, chunks } = self;
        f.debug_struct("ChunkRetriever").field("name", name).field("chunks", &chunks.len()).finish()
    }
}

/// Finds the best chunks of a corpus by BM25, read from its index, with their
/// scores, which replace those that they had; ties stay in their order. It is
/// the order of [`Packer::pack_corpus`](crate::Packer::pack_corpus) with
/// [`Ranking::Bm25`](crate::Ranking::Bm25).
///
/// To add chunks while others ask, give a closure that clones an `Arc` of the
/// corpus of the hour.
///
/// # Examples
///
/// ```
/// use budgeteer::service::{LlmSettings, RetrievalService, Retriever};
/// use budgeteer::{Corpus, Estimate};
///
/// let corpus = Corpus::new(["Rye bread.", "Green tea is mild.", "Green tea, black tea."]);
/// let found = corpus.retrieve("tea", 1)?;
/// assert_eq!(found[0].text, "Green tea, black tea.");
///
/// let settings = LlmSettings::new("gpt-4o").counter(Estimate::CharsDiv4);
/// let result = RetrievalService::new(corpus, settings)?.limit(2).retrieve("green tea")?;
/// assert_eq!(result.packing.text, "Green tea, black tea.\n\nGreen tea is mild.");
/// # Ok::<(), budgeteer::service::BoxError>(())
/// ```
impl<D: Document + Send + Sync> Retriever for Corpus<D> {
    fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        let scores = self.bm25(query);
        let ranks = scores.iter().zip(0_usize..).map(|(&score, at)| (Reverse(sortable(score)), at));
        let mut order: Vec<_> = ranks.collect();
        if limit < order.len() {
            order.select_nth_unstable(limit);
            order.truncate(limit);
        }
        order.sort_unstable();
        let chunk = |(_, at): (_, usize)| chunk_of(&self.chunks()[at]).score(scores[at]);
        Ok(order.into_iter().map(chunk).collect())
    }

    fn name(&self) -> &'static str {
        "Corpus"
    }
}

/// Returns a chunk that says what `document` says.
fn chunk_of(document: &impl Document) -> Chunk {
    let (kind, id) = document.tag();
    let (authority, priority) = document.standing();
    Chunk {
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

/// Returns the `limit` chunks of the highest keyword score, ties in their
/// order.
pub(super) fn best(query: &str, chunks: &[Chunk], limit: usize) -> Vec<Chunk> {
    let scores = keyword_scores(query, chunks);
    let mut order: Vec<u32> = (0..chunks.len()).map_while(|i| u32::try_from(i).ok()).collect();
    sort_descending(&mut order, &scores);
    let found = order.into_iter().take(limit).map(|i| i as usize);
    found.map(|i| chunks[i].clone().score(scores[i])).collect()
}
