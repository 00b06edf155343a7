//! Finding a kept text that is repeated.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};

use crate::text::Text;

/// From so many kept texts on that share a fingerprint, whole texts are
/// hashed: whoever writes texts to share it gains nothing.
const CROWD: usize = 8;

/// The kept chunks by their fingerprint.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    kept: HashMap<u32, Bucket, BuildHasherDefault<Identity>>,
}

#[derive(Debug)]
enum Bucket {
    One(u32),
    Few(Vec<u32>),
    Crowd(HashMap<u64, Vec<u32>>),
}

impl Seen {
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
            Bucket::Crowd(kept) => among(kept.get(&hash(text(index)))?),
        }
    }

    /// Adds chunk `index`, which has the fingerprint `print`.
    pub(crate) fn insert<'t>(&mut self, print: u32, index: u32, text: impl Fn(u32) -> Text<'t>) {
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
                        crowd.entry(hash(text(kept))).or_default().push(kept);
                    }
                    *bucket = Bucket::Crowd(crowd);
                }
            }
            Bucket::Crowd(kept) => kept.entry(hash(text(index))).or_default().push(index),
        }
    }

    /// Removes chunk `index`, which has the fingerprint `print`.
    pub(crate) fn remove<'t>(&mut self, print: u32, index: u32, text: impl Fn(u32) -> Text<'t>) {
        match self.kept.get_mut(&print) {
            Some(Bucket::Few(kept)) => kept.retain(|&kept| kept != index),
            Some(Bucket::Crowd(crowd)) => {
                if let Some(kept) = crowd.get_mut(&hash(text(index))) {
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

fn hash(text: Text<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Hashes a fingerprint, which is well mixed already, to itself.
#[derive(Debug, Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed");
    }

    fn write_u32(&mut self, print: u32) {
        // The table takes its place from low bits and a check from high ones.
        self.0 = u64::from(print) << 32 | u64::from(print);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
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
            for repeated in 0..=index {
                assert_eq!(Some(repeated), seen.find(7, repeated + 20, text));
            }
        }
        for index in (0..20).rev() {
            seen.remove(7, index, text);
            assert_eq!(None, seen.find(7, index + 20, text));
        }
    }
}
