//! The packed form of a vocabulary, which `pack.rs` writes.
//!
//! It begins with the lengths of three parts that follow, of four bytes each:
//! `heads` and `wholes`, both compressed, and `early`; the rest is `tails`.
//!
//! `heads` holds the 256 single bytes by rank, then a byte for the left part of
//! each merge, then a byte for each right part. A rank is split like a
//! floating-point number: its head holds the exponent and four bits of the
//! mantissa, which are skewed and compress; the rest of the mantissa, which is
//! nearly random, is a run of bits in `tails`. That is 6 % smaller than to
//! compress the bytes of the ranks. `wholes` holds the tokens that no merge
//! makes, each behind its length, of two bytes. `early` holds the ranks of tokens
//! that merge as soon as their left part is made.

use miniz_oxide::inflate::decompress_to_vec;

/// The number of tokens that are single bytes. They have the lowest ranks.
pub(crate) const SINGLES: usize = 256;

/// How many bits of a mantissa are in the head.
pub(crate) const HEAD_BITS: u32 = 4;

/// The number of bytes of a length.
pub(crate) const LENGTH: usize = 4;

/// What a vocabulary is made of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unpacked {
    /// The single bytes by rank.
    pub(crate) singles: Vec<u8>,
    pub(crate) merges: Merges,
    /// Tokens that no merge makes.
    pub(crate) wholes: Vec<Box<[u8]>>,
    /// Tokens that merge as soon as their left part is made.
    pub(crate) early: Vec<u32>,
}

/// The two parts of each token that is not a single byte, by rank.
pub(crate) type Merges = Vec<(u32, u32)>;

/// Returns what `packed` holds; None if it is damaged.
pub(crate) fn unpack(packed: &[u8]) -> Option<Unpacked> {
    let (heads, rest) = packed.split_first_chunk::<LENGTH>()?;
    let (wholes, rest) = rest.split_first_chunk::<LENGTH>()?;
    let (early, rest) = rest.split_first_chunk::<LENGTH>()?;
    let (heads, rest) = rest.split_at_checked(u32::from_le_bytes(*heads) as usize)?;
    let (wholes, rest) = rest.split_at_checked(u32::from_le_bytes(*wholes) as usize)?;
    let (early, tails) = rest.split_at_checked(u32::from_le_bytes(*early) as usize)?;
    let early = early.as_chunks::<4>().0.iter().map(|rank| u32::from_le_bytes(*rank)).collect();
    let mut singles = decompress_to_vec(heads).ok()?;
    if singles.len() < SINGLES {
        return None;
    }
    let heads = singles.split_off(SINGLES);
    let (lefts, rights) = heads.split_at(heads.len() / 2);
    let mut tails = Bits { bytes: tails, position: 0 };
    let merges = lefts
        .iter()
        .zip(rights)
        .map(|(&left, &right)| (tails.complete(left), tails.complete(right)))
        .collect();
    Some(Unpacked { singles, merges, wholes: unpack_wholes(wholes)?, early })
}

fn unpack_wholes(packed: &[u8]) -> Option<Vec<Box<[u8]>>> {
    if packed.is_empty() {
        return Some(Vec::new());
    }
    let bytes = decompress_to_vec(packed).ok()?;
    let mut rest = bytes.as_slice();
    let mut wholes = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let (whole, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
        wholes.push(whole.into());
        rest = behind;
    }
    Some(wholes)
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
        let word = self.bytes.get(self.position / 8..).and_then(|rest| rest.first_chunk().copied());
        let word = u32::from_le_bytes(word.unwrap_or_default()) >> (self.position % 8);
        self.position += bits as usize;
        word & ((1 << bits) - 1)
    }
}
