//! The context gate: the weights of artifacts, and which documents are in
//! scope.

use crate::chunk::Batch;
use crate::text::Text;

/// Returns the weight of an authority; 0 for an unknown one.
pub(crate) fn authority_weight(authority: &str) -> f64 {
    match authority {
        "system" => 1000.0,
        "developer" => 800.0,
        "user" => 600.0,
        "tool" => 400.0,
        "other" => 200.0,
        _ => 0.0,
    }
}

/// Returns the weight of a kind; 0 for an unknown one.
pub(crate) fn kind_weight(kind: &str) -> f64 {
    match kind {
        "system" => 120.0,
        "task" => 100.0,
        "message" => 60.0,
        "document" => 50.0,
        "tool_output" => 40.0,
        "other" => 10.0,
        _ => 0.0,
    }
}

/// The properties of each artifact of a batch that a gate reads.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    weights: Vec<f64>,
    are_documents: Vec<bool>,
    message: Option<usize>,
}

impl Gate {
    /// Adds the properties of the next artifact.
    pub fn push(&mut self, kind: &str, authority: &str, priority: f64) {
        if kind == "message" && self.message.is_none() {
            self.message = Some(self.weights.len());
        }
        self.weights.push(authority_weight(authority) + kind_weight(kind) + priority);
        self.are_documents.push(kind == "document");
    }

    /// Returns the question: the text of the first message, else `query`.
    pub(crate) fn question<'a>(&self, batch: &'a impl Batch, query: Text<'a>) -> Text<'a> {
        self.message.map_or(query, |index| batch.text(index))
    }

    /// Returns the weight of each artifact. The heaviest comes first.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns whether artifact `index` is a document.
    pub(crate) fn is_document(&self, index: u32) -> bool {
        self.are_documents[index as usize]
    }
}
