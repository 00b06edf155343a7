//! Names for components that have none.

use std::fmt;

use super::retrievers::{BoxError, Pages, Reranker, Retriever};
use crate::chunk::Chunk;

/// A retriever or a reranker with a name, for errors and spans. Without it the
/// name of a closure is its type, and each corpus is a `Corpus`.
///
/// # Examples
///
/// ```
/// use budgeteer::service::{LlmSettings, Named, RetrievalService};
///
/// let broken = |_: &str, _: usize| Err("no connection");
/// let settings = LlmSettings::new("gpt-4o").counter(budgeteer::Estimate::CharsDiv4);
/// let service = RetrievalService::new(Named::new("faq", broken), settings)?;
/// assert_eq!(service.retrieve("Why?").unwrap_err().to_string(), "faq failed");
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone)]
pub struct Named<T> {
    name: String,
    component: T,
}

impl<T> Named<T> {
    /// Returns `component` with that name.
    #[must_use]
    pub fn new(name: impl Into<String>, component: T) -> Self {
        Self { name: name.into(), component }
    }
}

impl<R: Retriever> Retriever for Named<R> {
    fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        self.component.retrieve(query, limit)
    }

    fn pages<'a>(&'a self, query: &'a str) -> Option<Pages<'a>> {
        self.component.pages(query)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl<R: Reranker> Reranker for Named<R> {
    fn rerank(&self, query: &str, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError> {
        self.component.rerank(query, chunks)
    }

    fn reorders(&self) -> bool {
        self.component.reorders()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl<T> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::retrievers::NoOpReranker;
    use super::*;

    /// What decides no order says so under another name, too, and changes none.
    #[test]
    fn a_name_changes_nothing_else() {
        let none = Named::new("none", NoOpReranker);
        assert_eq!(("none", false), (none.name(), none.reorders()));
        let given = vec![Chunk::new("rye"), Chunk::new("tea")];
        let ranked = none.rerank("tea", given.clone()).expect("it does not fail");
        assert_eq!(given, ranked);
        let reversed = |_: &str, chunks: Vec<Chunk>| -> Result<Vec<Chunk>, BoxError> {
            Ok(chunks.into_iter().rev().collect())
        };
        assert!(Reranker::name(&reversed).contains("closure"));
        let some = Named::new("some", reversed);
        assert_eq!(("some", true), (some.name(), some.reorders()));
    }
}
