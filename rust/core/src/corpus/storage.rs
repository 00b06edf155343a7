//! Bytes in memory or in a file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mapped::{Damage, Mapped};

/// Bytes with several owners.
#[derive(Clone)]
pub(crate) struct Bytes {
    owner: Owner,
    range: Range<usize>,
}

#[derive(Clone)]
enum Owner {
    Memory(Arc<Vec<u8>>),
    File(Arc<Mapped>),
}

impl Bytes {
    /// Returns a part of a file.
    pub(super) fn of_file(file: &Arc<Mapped>, range: Range<usize>) -> Self {
        Self { owner: Owner::File(Arc::clone(file)), range }
    }

    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns a part of the bytes; empty where that is not within them or, in a
    /// file, has damage, which is noted there.
    #[inline]
    pub(crate) fn read(&self, range: Range<usize>) -> &[u8] {
        match &self.owner {
            Owner::Memory(bytes) => bytes.get(range).unwrap_or_default(),
            Owner::File(file) => {
                if range.start > range.end || range.end > self.len() {
                    file.note(Damage::Contradiction);
                    return &[];
                }
                file.read(self.range.start + range.start..self.range.start + range.end)
            }
        }
    }

    /// Returns all of them, as [`Bytes::read`] does.
    pub(crate) fn all(&self) -> &[u8] {
        self.read(0..self.len())
    }

    /// Notes that these bytes contradict themselves or others. Those in memory
    /// never do.
    #[cold]
    pub(crate) fn contradict(&self) {
        if let Owner::File(file) = &self.owner {
            file.note(Damage::Contradiction);
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { owner: Owner::Memory(Arc::new(bytes)), range }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.range.len())
    }
}

/// Numbers of 32 bits, in memory or in a file.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    Memory(Arc<[u32]>),
    File(Bytes),
}

impl Numbers {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(numbers) => numbers.len(),
            Self::File(bytes) => bytes.len() / 4,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map_while(|at| self.get(at))
    }

    /// Returns the number at `at`, if there is one without damage.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<u32> {
        match self {
            Self::Memory(numbers) => numbers.get(at).copied(),
            Self::File(_) if at >= self.len() => None,
            Self::File(bytes) => {
                Some(u32::from_le_bytes(bytes.read(4 * at..4 * at + 4).try_into().ok()?))
            }
        }
    }
}

/// Which of some things are known to be right.
#[derive(Debug)]
pub(super) struct Known(Box<[AtomicU64]>);

impl Known {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns whether the thing at `at` is right, which `find` finds when it is
    /// first asked.
    #[inline]
    pub(super) fn is(&self, at: usize, find: impl FnOnce() -> bool) -> bool {
        let (word, bit) = (&self.0[at / 64], 1 << (at % 64));
        word.load(Ordering::Relaxed) & bit != 0
            || find() && {
                word.fetch_or(bit, Ordering::Relaxed);
                true
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_found_once() {
        let known = Known::new(130);
        for at in [0, 1, 63, 64, 65, 129] {
            let mut calls = 0;
            let mut is = |answer| {
                known.is(at, || {
                    calls += 1;
                    answer
                })
            };
            assert_eq!(
                [false, false, true, true],
                [false, false, true, false].map(&mut is),
                "{at}"
            );
            assert_eq!(3, calls, "{at}");
        }
        assert!(!known.is(2, || false) && !known.is(128, || false));
    }
}
