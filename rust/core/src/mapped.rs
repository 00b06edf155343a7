//! A file that is mapped into memory and checked as far as it is read.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use highway::{HighwayHash, HighwayHasher};

use crate::error::Error;

/// The size of the blocks of a file, each of which has a hash. Smaller ones are
/// sooner checked, but have more hashes, all of which are read at opening.
pub(crate) const BLOCK: usize = 1 << 14;

/// The size of a hash.
pub(crate) const HASH: usize = 8;

/// Returns the hash of some bytes, which tells damage, not forgery.
pub(crate) fn hash(bytes: &[u8]) -> [u8; HASH] {
    HighwayHasher::default().hash64(bytes).to_le_bytes()
}

/// What is wrong with a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    /// A block has another hash.
    Block = 1,
    /// The hashes are right, but the parts do not fit together.
    Contradiction,
    /// A record is not one that a corpus writes.
    Record,
    /// A text has a lone surrogate where none may be.
    Surrogate,
}

/// A file that is mapped into memory.
pub struct Mapped {
    bytes: Box<dyn AsRef<[u8]> + Send + Sync>,
    /// What the hashes are of. Blocks are counted from the start of the file, so
    /// the first block that it touches has less of it than others.
    body: Range<usize>,
    /// Where the hashes are.
    hashes: Range<usize>,
    /// What is known of each block of the body.
    blocks: Box<[AtomicU8]>,
    /// What was found to be wrong first; 0 for nothing.
    damage: AtomicU8,
}

/// What is known of a block. It never changes again, so that whoever reads a
/// part twice reads the same.
const UNKNOWN: u8 = 0;
const GOOD: u8 = 1;
const BAD: u8 = 2;

impl Mapped {
    /// Returns a file whose body is that range, and whose hashes follow it; None
    /// where these are not within the file.
    pub(crate) fn new(
        bytes: Box<dyn AsRef<[u8]> + Send + Sync>,
        body: Range<usize>,
    ) -> Option<Self> {
        let count = blocks(&body).len();
        let hashes = body.end..body.end.checked_add(count.checked_mul(HASH)?)?;
        (*bytes).as_ref().get(hashes.clone())?;
        let blocks = (0..count).map(|_| AtomicU8::new(UNKNOWN)).collect();
        Some(Self { bytes, body, hashes, blocks, damage: AtomicU8::new(0) })
    }

    fn bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// Returns the hashes of all blocks.
    pub(crate) fn hashes(&self) -> &[u8] {
        &self.bytes()[self.hashes.clone()]
    }

    /// Returns a part of the body. It is empty, and damage is noted, where the
    /// part is not within the body or a block of it has another hash.
    #[inline]
    pub(crate) fn read(&self, range: Range<usize>) -> &[u8] {
        if range.start < self.body.start || self.body.end < range.end || range.end < range.start {
            self.note(Damage::Contradiction);
            return &[];
        }
        let first = self.body.start / BLOCK;
        for block in blocks(&range) {
            if self.blocks[block - first].load(Ordering::Relaxed) != GOOD && !self.is_good(block) {
                self.note(Damage::Block);
                return &[];
            }
        }
        &self.bytes()[range]
    }

    /// Returns whether a block has its hash. Several threads may find that at
    /// once, and find the same.
    #[cold]
    fn is_good(&self, block: usize) -> bool {
        let place = block - self.body.start / BLOCK;
        if self.blocks[place].load(Ordering::Relaxed) == BAD {
            return false;
        }
        let start = (block * BLOCK).max(self.body.start);
        let end = (block * BLOCK).saturating_add(BLOCK).min(self.body.end);
        let is_good = hash(&self.bytes()[start..end]) == self.hashes()[place * HASH..][..HASH];
        self.blocks[place].store(if is_good { GOOD } else { BAD }, Ordering::Relaxed);
        is_good
    }

    /// Notes that the file is damaged, for ever.
    #[cold]
    pub(crate) fn note(&self, damage: Damage) {
        let _ = self.damage.compare_exchange(0, damage as u8, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns an error if what was read so far has damage.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Err(Error::damaged(match self.damage.load(Ordering::Relaxed) {
            0 => return Ok(()),
            found if found == Damage::Block as u8 => "is damaged",
            found if found == Damage::Contradiction as u8 => "contradicts itself",
            found if found == Damage::Record as u8 => "has records that no corpus writes",
            _ => "has lone surrogates, which no str can hold",
        }))
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a file of {} bytes", self.bytes().len())
    }
}

/// Returns the blocks that a range touches.
#[inline]
fn blocks(range: &Range<usize>) -> Range<usize> {
    if range.is_empty() { 0..0 } else { range.start / BLOCK..range.end.div_ceil(BLOCK) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of a file whose body is that range.
    fn file(body: Range<usize>) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0_u8..251).cycle().take(body.end).collect();
        for block in blocks(&body) {
            let (start, end) = (block * BLOCK, (block + 1) * BLOCK);
            let hash = hash(&bytes[start.max(body.start)..end.min(body.end)]);
            bytes.extend(hash);
        }
        bytes
    }

    /// The first block and the last one may have less of the body than others.
    #[test]
    fn a_body_begins_and_ends_anywhere() {
        for body in [0..0, 5..9, 7..3 * BLOCK, BLOCK - 1..2 * BLOCK + 1, 2 * BLOCK + 9..5 * BLOCK] {
            let bytes = file(body.clone());
            let mapped = Mapped::new(Box::new(bytes.clone()), body.clone()).expect("it is whole");
            let middle = body.start.midpoint(body.end);
            for part in [body.clone(), body.start..middle, middle..body.end, middle..middle] {
                assert_eq!(&bytes[part.clone()], mapped.read(part));
            }
            assert!(mapped.check().is_ok());
            if !body.is_empty() {
                assert!(Mapped::new(Box::new(bytes[..bytes.len() - 1].to_vec()), body).is_none());
            }
        }
    }

    #[test]
    fn what_is_wrong_first_is_told() {
        let body = BLOCK + 5..4 * BLOCK;
        let told = |change: usize, parts: &[Range<usize>]| {
            let mut bytes = file(body.clone());
            bytes[change] ^= 1;
            let mapped = Mapped::new(Box::new(bytes), body.clone()).expect("it is whole");
            let read: Vec<usize> =
                parts.iter().map(|part| mapped.read(part.clone()).len()).collect();
            (read, mapped.check().map_err(|error| error.to_string()))
        };
        let damaged = Err("the file is damaged".to_owned());
        let good = 3 * BLOCK..3 * BLOCK + 9;
        assert_eq!((vec![9], Ok(())), told(2 * BLOCK, std::slice::from_ref(&good)));
        let bad = 2 * BLOCK + 7..2 * BLOCK + 8;
        let twice = [bad.clone(), good.clone(), bad.clone()];
        assert_eq!((vec![0, 9, 0], damaged.clone()), told(2 * BLOCK, &twice));
        let contradicts = Err("the file contradicts itself".to_owned());
        #[allow(clippy::reversed_empty_ranges)] // as a file may have it
        let backwards = good.end..good.start;
        for part in [BLOCK + 4..BLOCK + 9, 4 * BLOCK - 1..4 * BLOCK + 1, backwards] {
            assert_eq!((vec![0, 0], contradicts.clone()), told(2 * BLOCK, &[part, bad.clone()]));
        }
        assert_eq!(vec![0, 9], told(2 * BLOCK, &[BLOCK + 5..4 * BLOCK, good]).0);
    }

    #[test]
    fn each_damage_has_its_words() {
        let mapped = |damage| {
            let mapped = Mapped::new(Box::new([0_u8; 0]), 0..0).expect("it is whole");
            mapped.note(damage);
            mapped.check().expect_err("it is noted").to_string()
        };
        assert_eq!("the file has records that no corpus writes", mapped(Damage::Record));
        assert!(mapped(Damage::Surrogate).contains("lone surrogates"));
        let shown = Mapped::new(Box::new([0_u8; 3]), 0..0).expect("it is whole");
        assert_eq!("a file of 3 bytes", format!("{shown:?}"));
    }
}
