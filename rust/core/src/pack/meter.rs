//! What measures chunks: the only part of admitting that depends on the counter.

use super::Packer;
use super::indexed::Unseen;
use crate::chunk::Batch;
use crate::outcome::Frame;
use crate::plan::Host;
use crate::truncate::Keep;

/// What a chunk needs, and what is left for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// The tokens of its text alone; 0 where nobody knows as it does not fit.
    pub(super) tokens: u64,
    /// The tokens that it adds to the text, or a number above `available`.
    pub(super) needed: u64,
    /// What is left of the budget.
    pub(super) available: u64,
}

impl Need {
    #[inline]
    pub(super) fn fits(self) -> bool {
        self.needed <= self.available
    }
}

/// Measures chunks and the text that they make, and knows what the kept ones
/// use of the budget. There is one for each [`Counting`](crate::plan::Counting).
pub(super) trait Meter<B: Batch, H: Host>: Sized {
    /// A measured chunk.
    type Chunk;

    /// Whether a chunk that does not fit is measured to its end, so that a
    /// packing can say what it needs.
    const MEASURES_ALL: bool;

    /// Starts on the next chunks in rank order.
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

    /// Returns what a measured chunk needs behind those that are kept.
    fn need(&self, packer: &Packer<'_, B, H>, chunk: &Self::Chunk) -> Need;

    /// Adds a chunk that fits, and returns what stands around it. The packer keeps
    /// it next.
    fn add(&mut self, packer: &Packer<'_, B, H>, index: u32, chunk: Self::Chunk) -> Frame;

    /// Forgets the chunk that was added last.
    fn remove_last(&mut self);

    /// Cuts chunk `index`, which does not fit, so that the text does. Adds and
    /// keeps what is left of it, and returns true; false if nothing would be left.
    fn cut(
        &mut self,
        packer: &mut Packer<'_, B, H>,
        index: u32,
        chunk: &Self::Chunk,
        cut: (Keep, &'static str),
    ) -> Result<bool, H::Error>;

    /// Returns the tokens of the assembled text, in which there is a chunk, with
    /// `tail` behind the last one.
    fn total(&mut self, packer: &mut Packer<'_, B, H>, tail: &[u8]) -> Result<u64, H::Error>;

    /// Returns the tokens of the assembled text once it is within the budget.
    fn finish(&mut self, packer: &mut Packer<'_, B, H>) -> Result<u64, H::Error> {
        packer.settle(self)
    }

    /// Returns what becomes of a chunk that does not fit and is not looked at.
    fn unseen(&self, packer: &Packer<'_, B, H>) -> Unseen;
}
