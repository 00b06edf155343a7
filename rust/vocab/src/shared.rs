//! A vocabulary that says of the merges that another one, its base, has too only
//! where they are there.
//!
//! Qwen's and GLM's have nearly all merges of `cl100k_base`, and most in its order.
//! The form is four bytes, the length of the runs, then these, compressed, and then
//! the vocabulary of all other merges, packed. Each run is three numbers of four
//! bytes: how many merges of its own come first, how far behind the end of the last
//! run the next one of the base is, and how many of the base follow.

use std::collections::HashMap;
use std::mem;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec;

use crate::pack::pack;
use crate::unpack::{LENGTH, Merges, SINGLES, Unpacked, unpack};

/// The number of bytes of a run.
const RUN: usize = 3 * LENGTH;

/// Returns a vocabulary as `unpack_shared` reads it with the same base.
///
/// # Panics
///
/// As for `pack`.
pub(crate) fn pack_shared(unpacked: Unpacked, base: &Unpacked) -> Vec<u8> {
    let mut merged: HashMap<(u32, u32), u32> =
        base.merges.iter().copied().zip((0..).skip(SINGLES)).collect();
    // The rank in the base of each token; None of one that is not there.
    let mut ranks: Vec<Option<u32>> =
        unpacked.singles.iter().map(|single| rank_of(&base.singles, *single)).collect();
    let mut own = Merges::new();
    let mut runs: Vec<[u32; 3]> = Vec::new();
    let (mut before, mut next) = (0, 0);
    for &(left, right) in &unpacked.merges {
        let parts = ranks[left as usize].zip(ranks[right as usize]);
        // Removed, as each merge of the base is named once.
        let rank = parts.and_then(|parts| merged.remove(&parts));
        ranks.push(rank);
        let Some(rank) = rank else {
            own.push((left, right));
            before += 1;
            continue;
        };
        match runs.last_mut() {
            Some([_, _, shared]) if before == 0 && rank == next => *shared += 1,
            _ => runs.push([mem::take(&mut before), u32::wrapping_sub(rank, next), 1]),
        }
        next = rank + 1;
    }
    let runs: Vec<u8> = runs.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    let runs = compress_to_vec(&runs, 9);
    let length = u32::try_from(runs.len()).expect("there are fewer runs than tokens");
    [length.to_le_bytes().as_slice(), &runs, &pack(&Unpacked { merges: own, ..unpacked })].concat()
}

/// Returns what `packed` holds; None if it is damaged, or has another base.
pub(crate) fn unpack_shared(packed: &[u8], base: &Unpacked) -> Option<Unpacked> {
    let (length, rest) = packed.split_first_chunk::<LENGTH>()?;
    let (runs, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let unpacked = unpack(rest)?;
    let mut own = unpacked.merges.into_iter();
    // The rank here of each token of the base; None of one that is not here yet.
    let mut ranks: Vec<Option<u32>> =
        base.singles.iter().map(|single| rank_of(&unpacked.singles, *single)).collect();
    ranks.resize(SINGLES + base.merges.len(), None);
    let mut merges = Merges::with_capacity(own.len() + base.merges.len());
    let mut next = 0;
    for run in decompress_to_vec(runs).ok()?.chunks_exact(RUN) {
        let number = |at| run[at..].first_chunk().map(|number| u32::from_le_bytes(*number));
        let (before, skipped, shared) = (number(0)?, number(LENGTH)?, number(2 * LENGTH)?);
        merges.extend(own.by_ref().take(before as usize));
        let start = u32::wrapping_add(next, skipped);
        next = start.checked_add(shared)?;
        for rank in start as usize..next as usize {
            let &(left, right) = base.merges.get(rank.checked_sub(SINGLES)?)?;
            let merge = (ranks[left as usize]?, ranks[right as usize]?);
            let here = u32::try_from(SINGLES + merges.len()).ok()?;
            // Each is here once, so that damage cannot make it endless.
            if ranks[rank].replace(here).is_some() {
                return None;
            }
            merges.push(merge);
        }
    }
    merges.extend(own);
    Some(Unpacked { merges, ..unpacked })
}

/// Returns the rank of a single byte.
fn rank_of(singles: &[u8], single: u8) -> Option<u32> {
    singles.iter().zip(0..).find_map(|(&other, rank)| (other == single).then_some(rank))
}
