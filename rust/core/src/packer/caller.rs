//! The host of a Rust program.

use std::sync::atomic::AtomicBool;

use super::Packer;
use crate::chunk::Document;
use crate::count::exact::GO_ON;
use crate::envelope::envelope;
use crate::plan::{Host, Subject};
use crate::template::Tag;

/// The host of a Rust program: its counter and its chunks.
pub(crate) struct Caller<'a, D> {
    pub(super) packer: &'a Packer,
    pub(super) chunks: &'a [D],
    /// What citing each chunk costs; None to count its citation.
    pub(super) citation: Option<u64>,
}

impl<D: Document> Host for Caller<'_, D> {
    type Error = std::convert::Infallible;

    fn count(&mut self, subject: Subject<'_>) -> Result<u64, Self::Error> {
        let counter = &self.packer.counter;
        Ok(match subject {
            Subject::Chunk(index) => counter.count(self.chunks[index].text()),
            Subject::Piece { text, .. } | Subject::Assembled(text) => counter.count(utf8(text)),
        } as u64)
    }

    fn tag(&mut self, index: usize) -> Result<Tag, Self::Error> {
        let chunk = &self.chunks[index];
        let (kind, id) = chunk.tag();
        Ok(Tag {
            kind: kind.into(),
            id: id.map_or_else(|| index.to_string(), str::to_owned).into(),
            source: chunk.source().into(),
            title: chunk.title().into(),
            position: chunk.position().unwrap_or(f64::NAN),
        })
    }

    fn write(&mut self, index: usize) -> Result<Vec<u8>, Self::Error> {
        let writer = self.packer.plan.template.writer().expect("its plan has a function");
        Ok(writer.write(index, &self.chunks[index]).into_bytes())
    }

    fn cite(&mut self, index: usize) -> Result<u64, Self::Error> {
        let counted = || self.packer.count(&envelope(&self.chunks[index])) as u64;
        Ok(self.citation.unwrap_or_else(counted))
    }

    fn work<R: Send>(
        &mut self,
        _: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, Self::Error> {
        Ok(work(&GO_ON))
    }
}

fn utf8(text: &[u8]) -> &str {
    std::str::from_utf8(text).expect("whole characters of strings make a string")
}
