//! Finding the kept chunk that a text repeats.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::text::Text;

/// Where this many kept texts share a fingerprint, whole texts are hashed:
/// comparing with each would take too long.
const CROWD: usize = 8;

/// The kept chunks by their fingerprint.
#[derive(Debug)]
pub(crate) struct Seen {
    kept: HashMap<u32, Bucket, Keyed>,
    random: RandomState,
}

impl Default for Seen {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

#[derive(Debug)]
enum Bucket {
    One(u32),
    Few(Vec<u32>),
    Crowd(HashMap<u64, Vec<u32>>),
}

impl Seen {
    /// Returns one with room for `count` texts.
    pub(crate) fn with_capacity(count: usize) -> Self {
        // Keys differ from call to call, so nobody can write texts whose
        // fingerprints collide. No result depends on the keys.
        let random = RandomState::new();
        let keyed = Keyed(random.hash_one(0_u8));
        Self { kept: HashMap::with_capacity_and_hasher(count, keyed), random }
    }

    /// Returns the kept chunk whose text equals that of chunk `index`, which
    /// has the fingerprint `print`.
    pub(crate) fn find<'t>(
        &self,
        print: u32,
        index: u32,
        text: impl Fn(u32) -> Text<'t>,
    ) -> Option<u32> {
        let among = |kept: &[u32]| kept.iter().copied().find(|&kept| text(kept) == text(index));
        match self.kept.get(&print)? {
            Bucket::One(kept) => among(&[*kept]),
            Bucket::Few(kept) => among(kept),
            Bucket::Crowd(kept) => among(kept.get(&hash(&self.random, text(index)))?),
        }
    }

    /// Adds chunk `index`, which has the fingerprint `print`.
    pub(crate) fn insert<'t>(&mut self, print: u32, index: u32, text: impl Fn(u32) -> Text<'t>) {
        let random = &self.random;
        let Some(bucket) = self.kept.get_mut(&print) else {
            self.kept.insert(print, Bucket::One(index));
            return;
        };
        match bucket {
            Bucket::One(kept) => *bucket = Bucket::Few(vec![*kept, index]),
            Bucket::Few(kept) => {
                kept.push(index);
                if kept.len() > CROWD {
                    let mut crowd: HashMap<u64, Vec<u32>> = HashMap::new();
                    for &mut kept in kept {
                        crowd.entry(hash(random, text(kept))).or_default().push(kept);
                    }
                    *bucket = Bucket::Crowd(crowd);
                }
            }
            Bucket::Crowd(kept) => kept.entry(hash(random, text(index))).or_default().push(index),
        }
    }

    /// Removes chunk `index`, which has the fingerprint `print`.
    pub(crate) fn remove<'t>(&mut self, print: u32, index: u32, text: impl Fn(u32) -> Text<'t>) {
        match self.kept.get_mut(&print) {
            Some(Bucket::Few(kept)) => kept.retain(|&kept| kept != index),
            Some(Bucket::Crowd(crowd)) => {
                if let Some(kept) = crowd.get_mut(&hash(&self.random, text(index))) {
                    kept.retain(|&kept| kept != index);
                }
            }
            Some(Bucket::One(_)) => {
                self.kept.remove(&print);
            }
            None => {}
        }
    }
}

fn hash(random: &RandomState, text: Text<'_>) -> u64 {
    let mut hasher = random.build_hasher();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Hashes fingerprints with a key, by a folded multiplication.
#[derive(Debug)]
struct Keyed(u64);

impl BuildHasher for Keyed {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

#[derive(Debug)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed");
    }

    #[allow(clippy::cast_possible_truncation)] // both halves are used
    fn write_u32(&mut self, print: u32) {
        let product = u128::from(u64::from(print) ^ self.0) * u128::from(self.0 | 1);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Many texts that share a fingerprint are told apart, found, and removed.
    #[test]
    fn a_crowd_is_told_apart() {
        let texts: Vec<String> = (0..40).map(|i| format!("text {}", i % 20)).collect();
        let text = |index: u32| Text::from(texts[index as usize].as_str());
        let mut seen = Seen::default();
        for index in 0..20 {
            assert_eq!(None, seen.find(7, index, text));
            seen.insert(7, index, text);
            // Only where they are many, whole texts are hashed.
            let is_crowd = matches!(seen.kept[&7], Bucket::Crowd(_));
            assert_eq!(index as usize >= CROWD, is_crowd);
            for repeated in 0..=index {
                assert_eq!(Some(repeated), seen.find(7, repeated + 20, text));
            }
        }
        for index in (0..20).rev() {
            seen.remove(7, index, text);
            assert_eq!(None, seen.find(7, index + 20, text));
        }
    }

    /// A text that is removed is not found any more, and the others are.
    #[test]
    fn what_is_removed_is_not_found() {
        let texts = ["tea", "rye", "oat", "tea", "rye", "oat"];
        let text = |index: u32| Text::from(texts[index as usize]);
        let mut seen = Seen::default();
        (0..3).for_each(|index| seen.insert(7, index, text));
        for left in (0..3).rev() {
            seen.remove(7, left, text);
            for index in 0..3 {
                assert_eq!((index < left).then_some(index), seen.find(7, index + 3, text));
            }
        }
    }

    /// Fingerprints that differ in a few bits only are spread over a table, under keys as they are
    /// drawn; under any key they differ.
    #[test]
    fn fingerprints_are_spread() {
        let distinct = |numbers: Vec<u64>| numbers.into_iter().collect::<HashSet<_>>().len();
        for shift in [0, 20] {
            let hashes = |key| (0..4_096_u32).map(move |print| Keyed(key).hash_one(print << shift));
            assert_eq!(4_096, distinct(hashes(1).collect()));
            for key in [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED02] {
                assert_eq!(4_096, distinct(hashes(key).collect()));
                assert_eq!(128, distinct(hashes(key).map(|hash| hash >> 57).collect()));
                assert!(1_500 < distinct(hashes(key).map(|hash| hash % 4_096).collect()));
                let ones: u32 = hashes(key).map(u64::count_ones).sum();
                assert!((30..=34).contains(&(ones / 4_096)), "{ones} bits of 64 in 4,096 numbers");
            }
        }
        let random = RandomState::new();
        assert_ne!(hash(&random, "tea".into()), hash(&random, "rye".into()));
    }
}
