//! rig: a vector index that returns what fits into a budget.
//!
//! rig's `dynamic_context` takes a number of documents. How many tokens they
//! are is known only once rig has written them.

use budgeteer::{Chunk, Packer};
use rig::completion::Document;
use rig::vector_store::request::{DynamicSearchFilter, VectorSearchRequest};
use rig::vector_store::{
    VectorSearchIdResult, VectorSearchResult, VectorStoreError, VectorStoreIndex,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How many documents an index is asked for at least.
const CANDIDATES: u64 = 100;

type Found = VectorSearchResult<Value>;

/// An index that returns the documents of another that fit into a budget, with
/// their ids and scores, in the order of `packer`.
///
/// As an agent's `dynamic_context`, what rig writes of them has at most the
/// tokens of the packer: each as `<file id: ..>`, with its JSON, joined by line
/// ends. The counts do not hold for providers that take documents in a form of
/// their own, as Cohere does. As a tool, see [`as_tool`](Self::as_tool).
///
/// The packer ranks by the words in the documents, or by the index's scores and
/// order, as its [`Ranking`](budgeteer::Ranking) says. rig writes the text, so a
/// packer with a template, a notice or cut chunks is an error of each search,
/// and a prompt of its own is replaced.
#[derive(Clone, Debug)]
pub struct BudgetedIndex<I> {
    index: I,
    packer: Packer,
    candidates: u64,
    is_tool: bool,
}

impl<I> BudgetedIndex<I>
where
    I: VectorStoreIndex,
    I::Filter: DynamicSearchFilter + Clone,
{
    /// Returns the documents of `index` that `packer` keeps.
    #[must_use]
    pub fn new(index: I, packer: Packer) -> Self {
        Self { index, packer, candidates: CANDIDATES, is_tool: false }
    }

    /// Sets how many documents `index` is asked for, where a search wants fewer:
    /// 100 by default. No search returns more than it wants.
    #[must_use]
    pub fn candidates(mut self, count: u64) -> Self {
        self.candidates = count;
        self
    }

    /// Counts the documents as a tool answers them: a JSON array with scores,
    /// ids and documents. Without any it is `[]`, whatever the budget.
    #[must_use]
    pub fn as_tool(mut self) -> Self {
        self.is_tool = true;
        self
    }

    async fn search(
        &self,
        request: VectorSearchRequest<I::Filter>,
    ) -> Result<Vec<Found>, VectorStoreError> {
        let wanted = request.samples();
        let mut wider = VectorSearchRequest::builder()
            .query(request.query())
            .samples(wanted.max(self.candidates));
        if let Some(threshold) = request.threshold() {
            wider = wider.threshold(threshold);
        }
        if let Some(filter) = request.filter() {
            wider = wider.filter(filter.clone());
        }
        let found = self.index.top_n(wider.build()).await?;
        let mut kept = self.fitting(request.query(), found)?;
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        if kept.len() > wanted {
            kept.truncate(wanted);
            kept = self.fitting(request.query(), kept)?;
        }
        Ok(kept)
    }

    fn fitting(&self, query: &str, found: Vec<Found>) -> Result<Vec<Found>, VectorStoreError> {
        let shown: Vec<_> = found.iter().map(|found| self.shown(&found.document)).collect();
        let chunk = |(found, shown): (&Found, &Value)| {
            let mut words = String::new();
            add_words(shown, &mut words);
            Chunk::new(words).id(&found.id).score(found.score)
        };
        let chunks: Vec<_> = found.iter().zip(&shown).map(chunk).collect();
        let written = found.iter().zip(&shown);
        let written: Vec<_> = written.map(|(found, shown)| self.written(found, shown)).collect();
        let (front, between, back) = if self.is_tool { ("[", ",", "]") } else { ("", "\n", "") };
        let packer = self.packer.clone().prompt(move |kept| {
            let texts: Vec<&str> = kept.iter().map(|&index| &*written[index]).collect();
            [front, &texts.join(between), back].concat()
        });
        let packing = packer.pack(query, &chunks).map_err(VectorStoreError::datastore)?;
        let mut found: Vec<_> = found.into_iter().map(Some).collect();
        Ok(packing.kept.iter().filter_map(|kept| found[kept.index].take()).collect())
    }

    /// Returns what rig shows of a document.
    fn shown(&self, document: &Value) -> Value {
        let document = document.clone();
        if self.is_tool { document } else { I::Filter::normalize_dynamic_document(document) }
    }

    /// Returns what rig writes of a document.
    fn written(&self, found: &Found, shown: &Value) -> String {
        if self.is_tool {
            return serde_json::json!(found).to_string();
        }
        let text = format!("{shown:#}");
        Document { id: found.id.clone(), text, additional_props: [].into() }.to_string()
    }
}

impl<I> VectorStoreIndex for BudgetedIndex<I>
where
    I: VectorStoreIndex,
    I::Filter: DynamicSearchFilter + Clone,
{
    type Filter = I::Filter;

    async fn top_n<T: DeserializeOwned + Send>(
        &self,
        request: VectorSearchRequest<I::Filter>,
    ) -> Result<Vec<VectorSearchResult<T>>, VectorStoreError> {
        let read = |VectorSearchResult { score, id, document }| {
            Ok(VectorSearchResult { score, id, document: serde_json::from_value(document)? })
        };
        self.search(request).await?.into_iter().map(read).collect()
    }

    async fn top_n_ids(
        &self,
        request: VectorSearchRequest<I::Filter>,
    ) -> Result<Vec<VectorSearchIdResult>, VectorStoreError> {
        let found = self.search(request).await?.into_iter();
        Ok(found.map(|found| VectorSearchIdResult { score: found.score, id: found.id }).collect())
    }
}

/// Adds the words of a document, without the marks and names of JSON, which
/// say nothing about it.
fn add_words(value: &Value, words: &mut String) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_words(item, words)),
        Value::Object(fields) => fields.values().for_each(|field| add_words(field, words)),
        _ => {
            if !words.is_empty() {
                words.push('\n');
            }
            match value.as_str() {
                Some(text) => words.push_str(text),
                None => words.push_str(&value.to_string()),
            }
        }
    }
}
