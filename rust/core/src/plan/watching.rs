//! For tests: a host that notes what it is asked.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use super::{Host, Subject};
use crate::count::exact::GO_ON;
use crate::template::Tag;

/// Counts bytes, 9 for a whole chunk.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    /// What it was asked but for work.
    pub(crate) asked: Vec<String>,
    /// The cost of each work.
    pub(crate) work: Vec<usize>,
}

impl Watching {
    fn note(&mut self, what: &str, index: usize) {
        self.asked.push(format!("{what} {index}"));
    }
}

impl Host for Watching {
    type Error = Infallible;

    fn count(&mut self, subject: Subject<'_>) -> Result<u64, Infallible> {
        let (index, count) = match subject {
            Subject::Chunk(index) => (index, 9),
            Subject::Piece { index, text } => (index, text.len()),
            Subject::Assembled(text) => (0, text.len()),
        };
        self.note("count", index);
        Ok(count as u64)
    }

    fn tag(&mut self, index: usize) -> Result<Tag, Infallible> {
        self.note("tag", index);
        Ok(Tag { id: index.to_string().into(), ..Tag::default() })
    }

    fn write(&mut self, index: usize) -> Result<Vec<u8>, Infallible> {
        self.note("write", index);
        Ok(format!("chunk {index}").into())
    }

    fn cite(&mut self, index: usize) -> Result<u64, Infallible> {
        self.note("cite", index);
        Ok(10 + index as u64)
    }

    fn work<R: Send>(
        &mut self,
        cost: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, Infallible> {
        self.work.push(cost);
        Ok(work(&GO_ON))
    }
}
