//! The result of a retrieval: the packing, the messages, and what of the
//! window went where.

use std::fmt;

use crate::chunk::Chunk;
use crate::messages::Message;
use crate::packing::{KeptChunk, Packing};

/// What of a window went where, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetrievalTokens {
    /// The system prompt.
    pub system: usize,
    /// The query.
    pub query: usize,
    /// The packed text.
    pub retrieved: usize,
    /// What the system prompt, the query and the answer's reserve left for
    /// retrieval.
    pub budget: usize,
    /// What the messages cost beside their texts: roles, what primes the
    /// reply, and the blank line between context and query. Below 0 where
    /// texts that meet count less than on their own.
    pub overhead: isize,
    /// What is still free: `budget` - `overhead` - `retrieved`, at least 0.
    pub remaining: usize,
    /// The whole prompt: `system` + `query` + `retrieved` + `overhead`. It is
    /// what [`count_messages`](crate::window::count_messages) answers for the
    /// messages.
    pub input: usize,
    /// What is reserved for the answer.
    pub output: usize,
    /// The window; `input` + `output` is at most that.
    pub context_window: usize,
    /// Whether the counter counts what the model's tokenizer does.
    pub is_exact: bool,
}

/// The answer to one request.
///
/// Its `Debug` has the figures and no text.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RetrievalResult {
    /// What was retrieved, as it was packed: the indices of `packing` are
    /// places in it.
    pub chunks: Vec<Chunk>,
    /// Which chunks were kept, which were not, and why.
    pub packing: Packing,
    /// The messages, ready to send.
    pub messages: Vec<Message>,
    /// What of the window went where.
    pub tokens: RetrievalTokens,
    /// The model's name; empty where none was named.
    pub model: String,
}

impl RetrievalResult {
    /// Yields each kept chunk and what became of it, in the order of the text.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::service::{ChunkRetriever, LlmSettings, RetrievalService};
    /// use budgeteer::{Chunk, Estimate};
    ///
    /// let settings = LlmSettings::new("gpt-4o").counter(Estimate::CharsDiv4);
    /// let tea = ChunkRetriever::new([Chunk::new("Green tea.").source("tea.md")]);
    /// let result = RetrievalService::new(tea, settings)?.retrieve("Which tea?")?;
    /// let (chunk, kept) = result.kept().next().expect("it fits");
    /// assert_eq!((chunk.source.as_str(), kept.token_count), ("tea.md", 3));
    /// # Ok::<(), budgeteer::service::ServiceError>(())
    /// ```
    #[must_use]
    pub fn kept(&self) -> impl ExactSizeIterator<Item = (&Chunk, &KeptChunk)> {
        self.packing.kept.iter().map(|kept| (&self.chunks[kept.index], kept))
    }
}

impl fmt::Debug for RetrievalResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetrievalResult")
            .field("model", &self.model)
            .field("tokens", &self.tokens)
            .field("kept", &self.packing.kept.len())
            .field("dropped", &self.packing.dropped.len())
            .finish_non_exhaustive()
    }
}
