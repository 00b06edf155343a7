//! The packed form of the merges. The build script writes it, includes this
//! file, and reads back all that it wrote.
//!
//! `heads` is compressed, and holds the 256 single bytes by rank, then a byte
//! for the left part of each merge, then a byte for each right part. A rank is
//! split like a floating-point number: its head holds the exponent and four
//! bits of the mantissa, which are skewed and compress; the rest of the
//! mantissa, which is nearly random, is a run of bits in `tails`. That is 6 %
//! smaller than to compress the bytes of the ranks.

use miniz_oxide::inflate::decompress_to_vec;

/// The number of tokens that are single bytes. They have the lowest ranks.
pub(crate) const SINGLES: usize = 256;

/// How many bits of a mantissa are in the head.
pub(crate) const HEAD_BITS: u32 = 4;

/// A vocabulary as it is in the binary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    pub(crate) heads: &'a [u8],
    pub(crate) tails: &'a [u8],
}

/// The two parts of each token that is not a single byte, by rank.
pub(crate) type Merges = Vec<(u32, u32)>;

/// Returns the single bytes by rank, and the merges.
pub(crate) fn unpack(packed: Packed<'_>) -> Option<(Vec<u8>, Merges)> {
    let mut singles = decompress_to_vec(packed.heads).ok()?;
    let heads = singles.split_off(SINGLES);
    let (lefts, rights) = heads.split_at(heads.len() / 2);
    let mut tails = Bits { bytes: packed.tails, position: 0 };
    let merges = lefts
        .iter()
        .zip(rights)
        .map(|(&left, &right)| (tails.complete(left), tails.complete(right)))
        .collect();
    Some((singles, merges))
}

/// Reads runs of bits, lowest first.
struct Bits<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Bits<'_> {
    /// Returns the rank whose head is given, and whose tail comes next.
    fn complete(&mut self, head: u8) -> u32 {
        let head = u32::from(head);
        let bits = (head >> HEAD_BITS).saturating_sub(1);
        let high = head - (bits << HEAD_BITS);
        (high << bits) | self.take(bits)
    }

    /// Returns the next `bits` bits, at most 25.
    fn take(&mut self, bits: u32) -> u32 {
        let word = self.bytes[self.position / 8..].first_chunk().copied();
        let word = u32::from_le_bytes(word.unwrap_or_default()) >> (self.position % 8);
        self.position += bits as usize;
        word & ((1 << bits) - 1)
    }
}
