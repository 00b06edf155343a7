//! A packing as plain data, in the layout of Python's `Packing.to_dict()`.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{KeptChunk, Packing, name_of};
use crate::dropped::DroppedChunk;

impl Serialize for Packing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut packing = serializer.serialize_struct("Packing", 8)?;
        packing.serialize_field("text", &self.text)?;
        packing.serialize_field("total_tokens", &self.total_tokens)?;
        packing.serialize_field("budget_tokens", &self.budget_tokens)?;
        packing.serialize_field("is_exact", &self.is_exact)?;
        packing.serialize_field("was_truncated", &self.was_truncated())?;
        // Rust has no fallback ranking.
        packing.serialize_field("fallback", &None::<&str>)?;
        packing.serialize_field("kept", &self.kept)?;
        packing.serialize_field("dropped", &*self.dropped)?;
        packing.end()
    }
}

/// The span is a pair of byte offsets, or null.
impl Serialize for KeptChunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kept = serializer.serialize_struct("KeptChunk", 7)?;
        kept.serialize_field("index", &self.index)?;
        kept.serialize_field("score", &self.score)?;
        kept.serialize_field("token_count", &self.token_count)?;
        kept.serialize_field("citation_tokens", &self.citation_tokens)?;
        let span = self.span.as_ref().map(|span| [span.start, span.end]);
        kept.serialize_field("span", &span)?;
        kept.serialize_field("was_cut", &self.was_cut)?;
        kept.serialize_field("text", self.text())?;
        kept.end()
    }
}

impl Serialize for DroppedChunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut dropped = serializer.serialize_struct("DroppedChunk", 6)?;
        dropped.serialize_field("index", &self.index)?;
        dropped.serialize_field("score", &self.score)?;
        dropped.serialize_field("reason", name_of(self.reason))?;
        dropped.serialize_field("needed_tokens", &self.needed_tokens)?;
        dropped.serialize_field("available_tokens", &self.available_tokens)?;
        dropped.serialize_field("duplicate_of", &self.duplicate_of)?;
        dropped.end()
    }
}
