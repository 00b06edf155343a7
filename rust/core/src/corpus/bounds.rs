//! Lower bounds of exact counts. Each becomes the count once that is known.

use std::sync::atomic::{AtomicU32, Ordering};

/// Marks a bound that is the count.
const EXACT: u32 = 1 << 31;

/// A lower bound for each chunk. Threads may raise bounds at any time: they
/// decide which chunks go unseen, and no result depends on that.
#[derive(Debug, Default)]
pub(crate) struct Bounds(Vec<AtomicU32>);

impl Clone for Bounds {
    fn clone(&self) -> Self {
        Self(self.stored().map(AtomicU32::new).collect())
    }
}

impl Bounds {
    /// Returns bounds from the numbers of [`Bounds::stored`].
    pub(super) fn of_stored(stored: impl Iterator<Item = u32>) -> Self {
        Self(stored.map(AtomicU32::new).collect())
    }

    pub(super) fn stored(&self) -> impl ExactSizeIterator<Item = u32> {
        self.0.iter().map(|bound| bound.load(Ordering::Relaxed))
    }

    /// Adds a bound for the next chunk.
    pub(super) fn push(&mut self, least: usize) {
        self.0.push(AtomicU32::new(capped(least as u64)));
    }

    /// Puts a bound for another text in the place of chunk `index`.
    pub(super) fn replace(&mut self, index: usize, least: usize) {
        self.0[index] = AtomicU32::new(capped(least as u64));
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|bound| bound.load(Ordering::Relaxed) & !EXACT)
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> u32 {
        self.0[index].load(Ordering::Relaxed) & !EXACT
    }

    pub(crate) fn is_exact(&self, index: usize) -> bool {
        self.0[index].load(Ordering::Relaxed) & EXACT != 0
    }

    /// Notes the count of a chunk.
    pub(crate) fn set(&self, index: usize, count: u64) {
        self.0[index].store(capped(count) | EXACT, Ordering::Relaxed);
    }
}

fn capped(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(EXACT).min(EXACT - 1)
}
