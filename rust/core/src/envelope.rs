//! The envelope of a chunk: the text that is counted for citing it.

use crate::chunk::Document;

/// Separates the citations of a footer. The tokens of a citation include it.
pub(crate) const SEPARATOR: &str = "; ";

/// Returns the envelope of `chunk`: source, identifier, metadata and a
/// separator.
pub(crate) fn envelope<D: Document + ?Sized>(chunk: &D) -> String {
    let id = chunk.tag().1.unwrap_or_default();
    format!("{} {id}{}{SEPARATOR}", chunk.source(), chunk.metadata())
}
