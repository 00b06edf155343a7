//! Shared by the tests of the service: a retriever that counts its calls, and
//! settings.
#![allow(dead_code)] // not every test uses all of it

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use budgeteer::service::{BoxError, LlmSettings, RetrievalService, Retriever};
use budgeteer::{Chunk, Encoding, TokenCounter};

/// Returns the chunks that it was given, and counts how often it was asked.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) calls: Arc<AtomicUsize>,
}

impl Fake {
    pub(crate) fn new(chunks: impl IntoIterator<Item = Chunk>) -> Self {
        Self { chunks: chunks.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Retriever for Fake {
    fn retrieve(&self, _: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(self.chunks.iter().take(limit).cloned().collect())
    }

    fn name(&self) -> &'static str {
        "fake"
    }
}

pub(crate) fn chunks(texts: &[&str]) -> Vec<Chunk> {
    texts.iter().copied().map(Chunk::new).collect()
}

/// The document's window.
pub(crate) fn settings() -> LlmSettings {
    LlmSettings::new("gpt-4").context_window(4_096).max_output_tokens(500)
}

pub(crate) fn service_of(chunks: Vec<Chunk>) -> RetrievalService {
    RetrievalService::new(Fake::new(chunks), settings()).expect("gpt-4 is known")
}

/// Returns a text of exactly that many tokens.
pub(crate) fn text_of(tokens: usize) -> String {
    let text = "tea".to_owned() + &" tea".repeat(tokens - 1);
    assert_eq!(tokens, Encoding::Cl100k.count(&text));
    text
}

#[allow(clippy::unnecessary_wraps)] // it is a reranker
pub(crate) fn reversed(_: &str, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError> {
    Ok(chunks.into_iter().rev().collect())
}
