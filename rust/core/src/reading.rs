//! Reading all texts of a batch, and the figures that packing needs of each.

use std::borrow::Cow;

use crate::corpus::bounds::Bounds;

/// The figures that packing needs of each text, made while the text is read.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    /// Measures under an estimate; lower bounds of the count under an exact
    /// counter; else empty. `u32::MAX` stands for a larger one.
    pub(crate) measures: Measures<'a>,
    /// Fingerprints if duplicates are dropped, else empty.
    pub(crate) prints: Cow<'a, [u32]>,
}

/// A number of each text, or none.
#[derive(Debug)]
pub(crate) enum Measures<'a> {
    Read(Vec<u32>),
    Lent(&'a [u32]),
    Bounds(&'a Bounds),
}

impl<'a> Measures<'a> {
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<u32> {
        match self {
            Self::Read(measures) => measures.get(index as usize).copied(),
            Self::Lent(measures) => measures.get(index as usize).copied(),
            Self::Bounds(bounds) => Some(bounds.get(index as usize)),
        }
    }

    /// Returns the numbers that a corpus lends.
    pub(crate) fn lent(&self) -> Measures<'a> {
        match self {
            Self::Read(_) => unreachable!("a corpus lends its numbers"),
            Self::Lent(measures) => Measures::Lent(measures),
            Self::Bounds(bounds) => Measures::Bounds(bounds),
        }
    }
}
