//! Which kept chunk a text repeats.

use std::borrow::Cow;

use crate::chunk::Batch;
use crate::duplicate::Seen;
use crate::near::Near;
use crate::plan::Dedupe;

/// The kept chunks, in which repeated texts are looked up.
pub(super) struct Repeats<'p> {
    /// The fingerprint of each text, if duplicates are dropped; else empty.
    pub(super) prints: Cow<'p, [u32]>,
    seen: Seen,
    /// The kept texts, if near duplicates are dropped too.
    pub(super) near: Option<Box<Near>>,
}

impl<'p> Repeats<'p> {
    pub(super) fn new(prints: Cow<'p, [u32]>, dedupe: Dedupe) -> Self {
        let near = (dedupe == Dedupe::Near).then(Box::default);
        Self { prints, seen: Seen::default(), near }
    }

    /// Returns the kept chunk with the same text as `index`.
    pub(super) fn original_of<B: Batch>(&self, batch: &B, index: u32) -> Option<u32> {
        let print = self.prints.get(index as usize)?;
        self.seen.find(*print, index, |index| batch.text(index as usize))
    }

    /// Adds chunk `index`.
    pub(super) fn insert<B: Batch>(&mut self, batch: &B, index: u32) {
        if let Some(print) = self.prints.get(index as usize) {
            self.seen.insert(*print, index, |index| batch.text(index as usize));
        }
        if let Some(near) = &mut self.near {
            near.push();
        }
    }

    /// Removes chunk `index`, the last one that was added.
    pub(super) fn remove<B: Batch>(&mut self, batch: &B, index: u32) {
        if let Some(print) = self.prints.get(index as usize) {
            self.seen.remove(*print, index, |index| batch.text(index as usize));
        }
        if let Some(near) = &mut self.near {
            near.pop();
        }
    }
}
