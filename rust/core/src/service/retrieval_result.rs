//! The result of a retrieval: the packing, the messages, and the use of the
//! window.

use std::fmt;

use crate::chunk::Chunk;
use crate::messages::Message;
use crate::packing::{KeptChunk, Packing};

/// The use of a window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetrievalTokens {
    /// The system prompt.
    pub system: usize,
    /// The query.
    pub query: usize,
    /// The packed text.
    pub retrieved: usize,
    /// The tokens that the system prompt, the query and the reserve for the
    /// answer left for retrieval.
    pub budget: usize,
    /// The tokens of the messages beside their texts: roles, priming of the
    /// reply, and the blank line between context and query. Below 0 where texts
    /// count less together than on their own.
    pub overhead: isize,
    /// The tokens still free: `budget` - `overhead` - `retrieved`, at least 0.
    pub remaining: usize,
    /// The whole prompt: `system` + `query` + `retrieved` + `overhead`. It is
    /// what [`count_messages`](crate::window::count_messages) returns for the
    /// messages.
    pub input: usize,
    /// The reserve for the answer.
    pub output: usize,
    /// The window; `input` + `output` is at most this.
    pub context_window: usize,
    /// Whether the counter counts as the model's tokenizer does.
    pub is_exact: bool,
}

/// The result of one request.
///
/// Its `Debug` output has the figures and no text.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RetrievalResult {
    /// The retrieved chunks as they were packed. The indices of `packing` refer
    /// to them.
    pub chunks: Vec<Chunk>,
    /// Which chunks were kept or dropped, and why.
    pub packing: Packing,
    /// The messages, ready to send.
    pub messages: Vec<Message>,
    /// The use of the window.
    pub tokens: RetrievalTokens,
    /// The name of the model; empty if none was named.
    pub model: String,
}

impl RetrievalResult {
    /// Returns each kept chunk with its entry in the packing, in the order of
    /// the text.
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
