//! swiftide: a step of a query pipeline that packs what was retrieved.

use anyhow::{Result, ensure};
use async_trait::async_trait;
use budgeteer::{Chunk, Packer};
use swiftide_core::TransformResponse;
use swiftide_core::document::Document;
use swiftide_core::querying::{Query, states::Retrieved};

/// Packs the retrieved documents into a budget, for the step that answers.
///
/// [`Query::current`] is then the text of the packing, which `answers::Simple`
/// puts into its prompt as it is, and [`Query::documents`] are those that were
/// kept, whole where the text has a part. Fields of the metadata that a
/// [`Template`](budgeteer::Template) may show are `title`, `source` and `id`,
/// where they are strings.
///
/// It is an error where an earlier step has made a text of the documents, as
/// `response_transformers::Summary` does: that text would be lost.
#[derive(Clone, Debug)]
pub struct BudgetedContext {
    packer: Packer,
}

impl BudgetedContext {
    /// Returns a step that packs with `packer`.
    #[must_use]
    pub fn new(packer: Packer) -> Self {
        Self { packer }
    }
}

#[async_trait]
impl TransformResponse for BudgetedContext {
    async fn transform_response(&self, mut query: Query<Retrieved>) -> Result<Query<Retrieved>> {
        ensure!(
            query.current().is_empty(),
            "the documents are a text already, which BudgetedContext would replace: put it first"
        );
        let chunks: Vec<_> = query.documents().iter().map(chunk).collect();
        let packing = self.packer.pack(query.original(), &chunks)?;
        // The answering step falls back to them where the text is empty.
        let kept = packing.kept.iter().map(|kept| query.documents()[kept.index].clone()).collect();
        *query.documents_mut() = kept;
        query.transformed_response(packing.text);
        Ok(query)
    }
}

fn chunk(document: &Document) -> Chunk {
    let field = |name| document.metadata().get(name).and_then(|value| value.as_str());
    Chunk {
        title: field("title").unwrap_or_default().to_owned(),
        source: field("source").unwrap_or_default().to_owned(),
        id: field("id").map(str::to_owned),
        ..Chunk::new(document.content())
    }
}
