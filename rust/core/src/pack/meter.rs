//! Measures of chunks: the only part of admission that depends on the counter.

use super::Packer;
use super::indexed::Unseen;
use crate::chunk::Batch;
use crate::outcome::Frame;
use crate::plan::Host;
use crate::truncate::Keep;

/// The tokens that a chunk needs, and the tokens that are available.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// The tokens of its text alone; 0 where it does not fit and was not
    /// counted.
    pub(super) tokens: u64,
    /// The tokens that it adds to the text, or a number above `available`.
    pub(super) needed: u64,
    /// The tokens that are left of the budget.
    pub(super) available: u64,
}

impl Need {
    #[inline]
    pub(super) fn fits(self) -> bool {
        self.needed <= self.available
    }
}

/// Measures chunks and the assembled text, and adds up the tokens of the kept
/// ones. There is one meter for each [`Counting`](crate::plan::Counting).
pub(super) trait Meter<B: Batch, H: Host>: Sized {
    /// A measured chunk.
    type Chunk;

    /// Whether a chunk that does not fit is measured to its end, so that the
    /// packing can say how many tokens it needs.
    const MEASURES_ALL: bool;

    /// Begins with the next chunks in rank order.
    fn begin(&mut self) {}

    /// Returns how many tokens are left.
    fn available(&self, packer: &Packer<'_, B, H>) -> u64;

    /// Sets room aside for the notice; returns false where there is none beside
    /// the best chunk. What was measured stays as it is, but what it needs, and
    /// what is left, may change.
    fn make_room(&mut self, packer: &mut Packer<'_, B, H>) -> Result<bool, H::Error>;

    /// Takes back the room that was set aside for the notice.
    fn give_back(&mut self, packer: &Packer<'_, B, H>);

    /// Measures the chunk at `place` in `order`.
    fn measure(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        order: &[u32],
        place: usize,
    ) -> Result<Self::Chunk, H::Error>;

    /// Does what [`available`](Self::available) needs before the first chunk.
    fn prepare(&mut self, _: &mut Packer<'_, B, H>) -> Result<(), H::Error> {
        Ok(())
    }

    /// Measures chunk `index` as the caller's function has written it: `frame`
    /// has that text.
    fn measure_written(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        frame: Frame,
    ) -> Result<Self::Chunk, H::Error>;

    /// Returns the need of a measured chunk behind the kept ones.
    fn need(&self, packer: &Packer<'_, B, H>, chunk: &Self::Chunk) -> Need;

    /// Adds a chunk that fits, and returns its frame. The packer keeps it next.
    fn add(&mut self, packer: &Packer<'_, B, H>, index: u32, chunk: Self::Chunk) -> Frame;

    /// Takes off the chunk that was added last.
    fn remove_last(&mut self);

    /// Cuts chunk `index`, which does not fit, so that the text does. Adds and
    /// keeps the rest and returns true; returns false if nothing would be left.
    fn cut(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        chunk: &Self::Chunk,
        cut: (Keep, &'static str),
    ) -> Result<bool, H::Error>;

    /// Returns the tokens of the assembled text, with `tail` behind the last
    /// chunk. There must be a chunk.
    fn total(&mut self, packer: &mut Packer<'_, B, H>, tail: &[u8]) -> Result<u64, H::Error>;

    /// Returns the tokens of the assembled text once it is within the budget.
    fn finish(&mut self, packer: &mut Packer<'_, B, H>) -> Result<u64, H::Error> {
        packer.settle(self)
    }

    /// Returns how to tell the fate of a chunk that does not fit and is not
    /// looked at.
    fn unseen(&self, packer: &Packer<'_, B, H>) -> Unseen;
}
