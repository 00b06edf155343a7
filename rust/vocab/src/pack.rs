//! Packing a vocabulary, for the build and for who adds one.

use miniz_oxide::deflate::compress_to_vec;

use crate::unpack::{HEAD_BITS, Unpacked};

/// `unpack` reads this many bytes at once, so it may read past the last bit.
const PADDING: usize = 4;

/// Returns the packed form of a vocabulary.
///
/// # Panics
///
/// If it has 2^19 tokens, or one that no merge makes of 2^16 bytes.
pub(crate) fn pack(unpacked: &Unpacked) -> Vec<u8> {
    let heads = pack_heads(&unpacked.singles, &unpacked.merges);
    let wholes = pack_wholes(&unpacked.wholes);
    let early = unpacked.early.iter().flat_map(|rank| rank.to_le_bytes()).collect::<Vec<_>>();
    let length = |part: &[u8]| u32::try_from(part.len()).expect("it is some megabytes");
    let mut packed = Vec::new();
    packed.extend(length(&heads).to_le_bytes());
    packed.extend(length(&wholes).to_le_bytes());
    packed.extend(length(&early).to_le_bytes());
    packed.extend(heads);
    packed.extend(wholes);
    packed.extend(early);
    packed.extend(pack_tails(&unpacked.merges));
    packed
}

/// Returns the single bytes, then the heads of all left parts, then those of
/// all right parts, compressed.
fn pack_heads(singles: &[u8], merges: &[(u32, u32)]) -> Vec<u8> {
    let head = |rank: u32| u8::try_from(split(rank).0).expect("a rank is below 2^19");
    let mut heads = singles.to_vec();
    heads.extend(merges.iter().map(|&(left, _)| head(left)));
    heads.extend(merges.iter().map(|&(_, right)| head(right)));
    // There are hardly any repeats to find, so a higher level makes it no
    // smaller.
    compress_to_vec(&heads, 6)
}

fn pack_wholes(wholes: &[Box<[u8]>]) -> Vec<u8> {
    if wholes.is_empty() {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    for whole in wholes {
        let length = u16::try_from(whole.len()).expect("no token has 2^16 bytes");
        bytes.extend(length.to_le_bytes());
        bytes.extend_from_slice(whole);
    }
    compress_to_vec(&bytes, 9)
}

/// Returns the tails of all parts, as bits without a gap.
fn pack_tails(merges: &[(u32, u32)]) -> Vec<u8> {
    let mut tails = Vec::new();
    let (mut held, mut count) = (0_u64, 0);
    for rank in merges.iter().flat_map(|&(left, right)| [left, right]) {
        let (_, bits) = split(rank);
        held |= u64::from(rank & ((1 << bits) - 1)) << count;
        count += bits;
        while count >= 8 {
            tails.push(held.to_le_bytes()[0]);
            held >>= 8;
            count -= 8;
        }
    }
    tails.push(held.to_le_bytes()[0]);
    tails.extend([0; PADDING]);
    tails
}

/// Returns the head of a rank, and how many of its lowest bits are the tail.
fn split(rank: u32) -> (u32, u32) {
    let bits = (u32::BITS - rank.leading_zeros()).saturating_sub(HEAD_BITS + 1);
    // The highest bit, which is always set, adds the last one to the exponent.
    ((bits << HEAD_BITS) + (rank >> bits), bits)
}
