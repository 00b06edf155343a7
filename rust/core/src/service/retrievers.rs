//! Retrievers and rerankers: the traits, and a retriever over chunks in memory.

use std::fmt;
use std::sync::Arc;

use crate::Corpus;
use crate::chunk::{Chunk, Document};
use crate::rank::sort_descending;
use crate::score::keyword_scores;

/// Any error of a retriever or a reranker. `?` turns every error into one.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Batches of chunks, best first, without repetitions: see
/// [`Retriever::pages`].
pub type Pages<'a> = Box<dyn Iterator<Item = Result<Vec<Chunk>, BoxError>> + 'a>;

/// Finds chunks for a query.
///
/// Every `Fn(&str, usize) -> Result<Vec<Chunk>, E>` is a retriever, and so are
/// a [`Corpus`], `Arc<R>` of a retriever and `Box<dyn Retriever>`;
/// [`Named`](super::Named) gives it a name. Several threads ask it at once.
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
    /// Any error. It becomes the source of the request's error.
    fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError>;

    /// Returns batches of chunks for `query`, best first, without repetitions;
    /// or None, the default, to have `retrieve` called.
    ///
    /// Pages are read until the budget is full, until nothing of a page fits,
    /// or until there are no more. Where chunks compete, because a reranker or
    /// the packer ranks them again, at least
    /// [`limit`](super::RetrievalService::limit) chunks are read. Only these
    /// chunks are ranked, and nothing more is read if some are left out. So a
    /// vector store brings what the model's window takes, and not a fixed
    /// number.
    fn pages<'a>(&'a self, query: &'a str) -> Option<Pages<'a>> {
        let _ = query;
        None
    }

    /// Returns its name in errors and spans, of which 80 characters are shown;
    /// the name of its type by default.
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
/// Every `Fn(&str, Vec<Chunk>) -> Result<Vec<Chunk>, E>` is a reranker, and so
/// are `Arc<R>` of a reranker and `Box<dyn Reranker>`. Its result is packed in
/// its order, whatever the scores; chunks that it leaves out are gone. A
/// caller's own packer ranks again instead;
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
    /// Any error. It becomes the source of the request's error.
    fn rerank(&self, query: &str, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError>;

    /// Returns whether it decides the order in which chunks are packed: true by
    /// default. If not, as with [`NoOpReranker`], it is not asked, and the
    /// scores of the chunks decide.
    fn reorders(&self) -> bool {
        true
    }

    /// Returns its name in errors and spans, of which 80 characters are shown;
    /// the name of its type by default.
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

/// Finds the best of the given chunks, by their share of the query's keywords.
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

    /// Sets its name in errors and spans.
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

/// Finds the best chunks of a corpus by the default ranking, from its index.
/// Their scores replace those that the chunks had; ties keep their order. The
/// order is that of [`Packer::pack_corpus`](crate::Packer::pack_corpus) with
/// [`Ranking::Lexical`](crate::Ranking::Lexical).
///
/// To add chunks while others ask, use a closure that clones an `Arc` of the
/// current corpus.
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
        let best = self.best(query, limit).into_iter();
        let best = best.map(|(at, score)| Chunk::of(&self.chunks()[at]).score(score)).collect();
        self.check()?;
        Ok(best)
    }

    fn name(&self) -> &'static str {
        "Corpus"
    }
}

/// Returns the `limit` chunks of the highest keyword score. Ties keep their
/// order.
pub(super) fn best(query: &str, chunks: &[Chunk], limit: usize) -> Vec<Chunk> {
    let scores = keyword_scores(query, chunks);
    let mut order: Vec<u32> = (0..chunks.len()).map_while(|i| u32::try_from(i).ok()).collect();
    sort_descending(&mut order, &scores);
    let found = order.into_iter().take(limit).map(|i| i as usize);
    found.map(|i| chunks[i].clone().score(scores[i])).collect()
}
