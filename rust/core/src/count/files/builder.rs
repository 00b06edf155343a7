//! Making a vocabulary from what a file says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::iter::successors;

use budgeteer_vocab::Vocabulary;

use super::places::{Places, too_many};
use super::{damaged, unknown};
use crate::count::bpe::{SHORT, key, mix};
use crate::count::merges::{Merges, Ranks};
use crate::count::normal::{Normal, Prefix};
use crate::count::tokenizer::Split;
use crate::error::Error;

/// The most tokens, those included that stand for beginnings of characters.
pub(super) const MOST_TOKENS: usize = (1 << 19) - 1;

/// Stands for the rank of a token that is not made yet.
pub(super) const NONE: u32 = u32::MAX;

/// The most tokens that merge early. Each piece of a text is searched for all of
/// them; Qwen 3.5 has one.
const MOST_EARLY: usize = 64;

/// The most bytes of a token. All places in it are tried.
const LONGEST: usize = 1024;

/// What a file says, in the form in which texts are counted.
pub(crate) struct Read {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) split: Split,
    pub(crate) normal: Normal,
    pub(crate) prefix: Prefix,
}

/// Collects merges in the order in which they are done.
///
/// The single bytes are the tokens 0 to 255. A tokenizer that merges
/// characters has tokens for the beginnings of characters of several bytes
/// besides, whose merges come first. Thus each character is whole before
/// another merge is done, and merging bytes is merging characters.
pub(super) struct Builder {
    merges: Merges,
    parts: Vec<(u32, u32)>,
    /// Tokens that merge as soon as their left part is made.
    early: Vec<u32>,
    /// Their left parts.
    early_lefts: HashSet<u32>,
    /// Early tokens, and those that have one in them.
    of_early: HashSet<u32>,
}

impl Builder {
    /// Returns a builder for at most `count` merges.
    pub(super) fn new(count: usize) -> Self {
        let count = count.clamp(1, MOST_TOKENS);
        Self {
            merges: Merges::new(count),
            parts: Vec::with_capacity(count),
            early: Vec::new(),
            early_lefts: HashSet::new(),
            of_early: HashSet::new(),
        }
    }

    /// Adds the characters of several bytes that are tokens. Returns the rank
    /// of each.
    pub(super) fn add_characters(&mut self, chars: &[char]) -> Result<Vec<u32>, Error> {
        let mut ranks: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut buffer = [0; 4];
        for length in 2..=4 {
            for char in chars {
                let bytes = char.encode_utf8(&mut buffer).as_bytes();
                if bytes.len() < length || ranks.contains_key(&bytes[..length]) {
                    continue;
                }
                let left = match &bytes[..length - 1] {
                    &[byte] => byte.into(),
                    start => ranks[start],
                };
                let rank = self.push(left, bytes[length - 1].into())?;
                ranks.insert(bytes[..length].to_vec(), rank);
            }
        }
        Ok(chars.iter().map(|char| ranks[char.encode_utf8(&mut buffer).as_bytes()]).collect())
    }

    /// Returns whether two tokens are side by side once all merges so far are
    /// done to their bytes: only then can they merge.
    pub(super) fn may_merge(&self, left: u32, right: u32) -> bool {
        self.merges.may_be_beside(&self.parts, left, right)
    }

    /// Adds a merge, and returns its rank.
    pub(super) fn push(&mut self, left: u32, right: u32) -> Result<u32, Error> {
        let rank = self.parts.len() + 256;
        if rank >= MOST_TOKENS {
            return Err(too_many());
        }
        let rank = u32::try_from(rank).expect("it was just compared");
        self.parts.push((left, right));
        if self.merges.add((left, right), rank) { Ok(rank) } else { Err(crowded()) }
    }

    /// Adds merges of tokens, in their order: each two places in `ranks` for
    /// the parts, and one for the result. `ranks` has the rank of each token
    /// that is made, or [`NONE`].
    ///
    /// A token may have several merges; only one of them is ever done. A merge
    /// may stand in front of that of a part: it is done as soon as the part is
    /// made.
    pub(super) fn merge(&mut self, merges: &[[u32; 3]], ranks: &mut [u32]) -> Result<(), Error> {
        let mut waiting: HashMap<u32, Vec<usize>> = HashMap::new();
        let mut ready = BinaryHeap::new();
        for first in 0..merges.len() {
            ready.push(Reverse(first));
            let made = self.parts.len();
            while let Some(Reverse(nth)) = ready.pop() {
                let [left, right, whole] = merges[nth];
                let part = |token: u32| ranks[token as usize];
                if part(whole) != NONE {
                    continue;
                }
                if let Some(missing) = [left, right].into_iter().find(|&token| part(token) == NONE)
                {
                    waiting.entry(missing).or_default().push(nth);
                    continue;
                }
                let (left, right) = (part(left), part(right));
                let is_known = !self.has_early(left) && !self.has_early(right);
                let is_beside = self.may_merge(left, right);
                if (!is_known && !is_beside) || self.has_early_between(left, right) {
                    return Err(competing());
                }
                if !is_beside {
                    continue;
                }
                let rank = self.push(left, right)?;
                let is_early = nth < first && self.may_overlap(left, right);
                if is_early {
                    if self.early.len() == MOST_EARLY {
                        return Err(unknown("so many merges in front of those of their parts"));
                    }
                    self.early.push(rank);
                    self.early_lefts.insert(left);
                }
                if is_early || self.has_early(left) || self.has_early(right) {
                    self.of_early.insert(rank);
                }
                ranks[whole as usize] = rank;
                if !waiting.is_empty() {
                    let waited = waiting.remove(&whole).unwrap_or_default();
                    ready.extend(waited.into_iter().map(Reverse));
                }
            }
            if self.may_compete(made) {
                return Err(competing());
            }
        }
        Ok(())
    }

    /// Returns whether the merges behind the one at `made`, which are done as soon
    /// as it is, may take tokens from each other or from another such one. Then the
    /// order in a text matters, and not that of the merges alone.
    fn may_compete(&self, made: usize) -> bool {
        let Some([(first, second), waited @ ..]) = self.parts.get(made..) else { return false };
        if waited.len() < 2 {
            return false;
        }
        let is_made = |token: u32| token as usize >= made + 256;
        let (mut lefts, mut rights) = (HashSet::new(), HashSet::new());
        for &(left, right) in waited {
            let beside = if is_made(left) { right } else { left };
            if is_made(beside) || beside == *first || beside == *second {
                return true;
            }
            let _ = if is_made(left) { rights.insert(beside) } else { lefts.insert(beside) };
        }
        !lefts.is_disjoint(&rights)
    }

    /// Returns whether the right token may be a part of another left one. Then
    /// it matters that a merge is done as soon as its left token is made, not
    /// once all such tokens are.
    fn may_overlap(&self, left: u32, right: u32) -> bool {
        self.parts_of(left).is_some_and(|(first, _)| first == right)
    }

    fn has_early(&self, token: u32) -> bool {
        self.of_early.contains(&token)
    }

    /// Returns whether an early merge takes the end of one token and the start of
    /// the other, so that these may never be side by side.
    fn has_early_between(&self, left: u32, right: u32) -> bool {
        if self.early_lefts.is_empty() {
            return false; // as in nearly every file
        }
        let ends = successors(Some(left), |&token| Some(self.parts_of(token)?.1));
        ends.filter(|end| self.early_lefts.contains(end)).any(|first| {
            // The merge is early as its right part begins the left one.
            let second = self.parts_of(first).map(|(start, _)| start);
            let mut starts = successors(Some(right), |&token| Some(self.parts_of(token)?.0));
            (first, second) != (left, Some(right)) && starts.any(|start| Some(start) == second)
        })
    }

    /// Returns what a token is made of, None for a byte.
    fn parts_of(&self, token: u32) -> Option<(u32, u32)> {
        (token as usize).checked_sub(256).map(|place| self.parts[place])
    }

    /// Returns the vocabulary. `wholes` are tokens that no merge makes.
    pub(super) fn finish(self, wholes: Vec<Box<[u8]>>) -> Result<Vocabulary, Error> {
        let singles = std::array::from_fn(|byte| u8::try_from(byte).expect("it is below 256"));
        let vocabulary = Vocabulary::from_merges(&singles, self.parts, wholes, self.early)
            .ok_or_else(|| damaged("its tokens are too long"))?;
        check_places(&vocabulary)?;
        Ok(vocabulary)
    }
}

/// Checks that short tokens will be found soon where texts are counted.
fn check_places(vocabulary: &Vocabulary) -> Result<(), Error> {
    let mut ranks = Ranks::new(vocabulary.len());
    let mut short = vocabulary.iter().filter(|token| token.len() <= SHORT);
    if short.all(|token| ranks.add(mix(key(token)), 0)) { Ok(()) } else { Err(crowded()) }
}

/// Returns the error for merges whose order depends on the text.
#[cold]
fn competing() -> Error {
    unknown("merges in front of those of their parts, which take tokens from each other")
}

/// Returns the error for a file that was made to take long.
#[cold]
pub(super) fn crowded() -> Error {
    damaged("its tokens take too long to tell apart")
}

/// Checks that every byte that is in UTF-8 is a token, of those that have these
/// ranks.
pub(super) fn check_bytes(ranks: &[u32]) -> Result<(), Error> {
    let mut found = [false; 256];
    for &rank in ranks {
        if let Some(found) = found.get_mut(rank as usize) {
            *found = true;
        }
    }
    let is_in_utf8 = |byte: &usize| !matches!(byte, 0xC0 | 0xC1 | 0xF5..);
    match (0..256).filter(is_in_utf8).find(|&byte| !found[byte]) {
        Some(byte) => Err(unknown(&format!("the byte {byte:#04x} is no token"))),
        None => Ok(()),
    }
}

/// Adds tokens, which are given in the order of their ranks: any two that make a
/// token may merge. `ranks` has those that are made, or [`NONE`].
pub(super) fn add_in_order(
    builder: &mut Builder,
    tokens: &[&[u8]],
    ranks: &mut [u32],
) -> Result<(), Error> {
    let places = Places::new(tokens)?;
    let mut merges = Vec::with_capacity(2 * tokens.len());
    for (token, whole) in tokens.iter().zip(0..) {
        if token.len() > LONGEST {
            return Err(damaged("a token has more than a kilobyte"));
        }
        if ranks[whole as usize] != NONE {
            continue;
        }
        merges.extend((1..token.len()).filter_map(|at| {
            Some([places.find(&token[..at])?, places.find(&token[at..])?, whole])
        }));
    }
    builder.merge(&merges, ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_text_is_a_token() {
        let without = |missing: u32| {
            let ranks: Vec<u32> = (0..256).filter(|&byte| byte != missing).chain([NONE]).collect();
            check_bytes(&ranks)
        };
        for byte in [256, 0xC0, 0xC1, 0xF5, 0xFF] {
            assert_eq!(Ok(()), without(byte));
        }
        for byte in [0, 0x7F, 0x80, 0xC2, 0xF4] {
            let error = without(byte).expect_err("it is in texts").to_string();
            assert!(error.ends_with(&format!("the byte {byte:#04x} is no token")), "{error}");
        }
    }

    #[test]
    fn a_token_has_at_most_a_kilobyte() {
        let add = |length: usize| {
            let long = vec![b'a'; length];
            add_in_order(&mut Builder::new(9), &[b"a", &long], &mut [97, NONE])
        };
        assert_eq!(Ok(()), add(LONGEST));
        let error = add(LONGEST + 1).expect_err("it is too long").to_string();
        assert!(error.ends_with("a token has more than a kilobyte"), "{error}");
    }

    /// A right token that begins the left one may be a part of another left one.
    #[test]
    fn a_merge_in_front_of_that_of_a_part_is_early() {
        let early = |merges: &[[u32; 3]]| {
            // The tokens a, b, ab, aba and abab.
            let mut ranks = [97, 98, NONE, NONE, NONE];
            let mut builder = Builder::new(9);
            builder.merge(merges, &mut ranks).expect("they are few");
            (ranks, builder.early)
        };
        let in_order = [[0, 1, 2], [2, 0, 3]];
        assert_eq!(([97, 98, 256, 257, NONE], vec![]), early(&in_order));
        // It waits for its part, and is done as soon as that is made.
        let waiting = [[2, 0, 3], [0, 1, 2]];
        assert_eq!(([97, 98, 256, 257, NONE], vec![257]), early(&waiting));
        let apart = [[2, 1, 3], [0, 1, 2]];
        assert_eq!(([97, 98, 256, 257, NONE], vec![]), early(&apart));
        // The first merge of a token is the one.
        let twice = [[0, 1, 2], [1, 0, 2]];
        assert_eq!(([97, 98, 256, NONE, NONE], vec![]), early(&twice));
    }

    /// Each piece of a text would be searched for all of them.
    #[test]
    fn few_merges_are_early() {
        let early = |count: u32| {
            // The bytes, then two tokens of each of them and of the byte 255: `x` and it, and
            // that and `x` again, whose merge is in front.
            let mut ranks: Vec<u32> = (0..256).chain(vec![NONE; 512]).collect();
            let merges: Vec<_> = (0..count)
                .flat_map(|byte| {
                    let pair = 256 + 2 * byte;
                    [[pair, byte, pair + 1], [byte, 255, pair]]
                })
                .collect();
            Builder::new(999).merge(&merges, &mut ranks)
        };
        assert_eq!(Ok(()), early(64));
        let error = early(65).expect_err("they are too many").to_string();
        assert!(error.ends_with("so many merges in front of those of their parts"), "{error}");
    }

    /// What the order in a text decides is not counted; what it does not is.
    #[test]
    fn merges_in_front_of_those_of_their_parts_may_compete() {
        let is_read = |merges: &[[u32; 3]]| {
            // Three bytes, and tokens of them.
            let mut ranks = [97, 98, 99, NONE, NONE, NONE, NONE];
            Builder::new(9).merge(merges, &mut ranks).is_ok()
        };
        assert!(is_read(&[[3, 2, 4], [0, 1, 3]]), "abc, ab");
        assert!(!is_read(&[[3, 2, 4], [2, 3, 5], [0, 1, 3]]), "abc, cab, ab");
        assert!(is_read(&[[4, 2, 5], [3, 2, 4], [0, 1, 3]]), "abcc, abc, ab");
        assert!(!is_read(&[[3, 0, 4], [3, 3, 5], [0, 0, 3]]), "aaa, aaaa, aa");
        assert!(!is_read(&[[4, 0, 5], [3, 0, 4], [0, 0, 3]]), "aaaa, aaa, aa");
        assert!(!is_read(&[[1, 3, 4], [3, 1, 5], [0, 0, 3]]), "baa, aab, aa");
        // The merge to aba is early: no ab is ever in front of another one.
        assert!(is_read(&[[3, 0, 4], [0, 1, 3]]), "aba, ab");
        assert!(!is_read(&[[3, 0, 4], [0, 1, 3], [3, 3, 5]]), "aba, ab, abab");
    }
}
