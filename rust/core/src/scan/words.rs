//! ASCII words by their hash.

/// Finds the numbers of words, whose letters may have either case. However many
/// they are, most others take a look at one slot.
#[derive(Debug)]
pub(super) struct Words {
    known: Vec<Known>,
    /// By the hash of a word, or behind it, 1 more than its place; most are 0.
    slots: Vec<u32>,
    shift: u32,
}

/// A word that is known.
#[derive(Debug)]
struct Known {
    number: u32,
    size: usize,
    /// Its letters, eight at a time, and the bits in which others may not differ.
    eights: Box<[(u64, u64)]>,
}

impl Known {
    fn new(word: &[u8], number: u32) -> Self {
        let eights = word.chunks(8).map(|eight| {
            let bits = |byte: u8| if byte.is_ascii_alphabetic() { !0x20 } else { 0xFF };
            let kept: Vec<u8> = eight.iter().map(|&byte| bits(byte)).collect();
            (eight_at(eight, 0), eight_at(&kept, 0))
        });
        Self { number, size: word.len(), eights: eights.collect() }
    }

    /// Returns whether this is the word from `start` to `end`.
    #[inline]
    fn is(&self, folded: &[u8], start: usize, end: usize) -> bool {
        let mut eights = self.eights.iter().zip((start..).step_by(8));
        self.size == end - start
            && eights.all(|(&(letters, kept), at)| (eight_at(folded, at) ^ letters) & kept == 0)
    }
}

impl Words {
    /// Takes words in lowercase, each with its number.
    pub(super) fn new(words: Vec<(Vec<u8>, u32)>) -> Self {
        let size = (4 * words.len()).next_power_of_two().max(2);
        let shift = u64::BITS - size.trailing_zeros();
        let mut found = Self { slots: vec![0; size], shift, known: Vec::new() };
        for (place, (word, number)) in (1..).zip(words) {
            let mut slot = found.first_slot(&word, 0, word.len());
            while found.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            found.slots[slot] = place;
            found.known.push(Known::new(&word, number));
        }
        found
    }

    /// Returns the number of the word from `start` to `end`.
    #[inline]
    pub(super) fn get(&self, folded: &[u8], start: usize, end: usize) -> Option<u32> {
        let mut slot = self.first_slot(folded, start, end);
        loop {
            let place = self.slots[slot].checked_sub(1)?;
            let known = &self.known[place as usize];
            if known.is(folded, start, end) {
                return Some(known.number);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a table has fewer slots
    fn first_slot(&self, folded: &[u8], start: usize, end: usize) -> usize {
        (hash(folded, start, end) >> self.shift) as usize
    }
}

/// Returns the eight letters from `at` on, those behind the text as zeros.
#[inline]
fn eight_at(folded: &[u8], at: usize) -> u64 {
    match folded[at..].first_chunk() {
        Some(letters) => u64::from_le_bytes(*letters),
        None => folded[at..].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)),
    }
}

/// The bits by which the cases of ASCII letters differ.
const CASES: u64 = 0x2020_2020_2020_2020;

/// By a number of letters, the bits of the first so many of eight.
const FRONTS: [u64; 9] = {
    let mut fronts = [0; 9];
    let mut size = 1;
    while size < fronts.len() {
        fronts[size] = fronts[size - 1] << 8 | 0xFF;
        size += 1;
    }
    fronts
};

/// Its products have high bits that depend on all of the factor.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns a hash of the word from `start` to `end`, the same in either case.
#[inline]
fn hash(folded: &[u8], mut start: usize, end: usize) -> u64 {
    let mut hash = (end - start) as u64;
    loop {
        let size = (end - start).min(8);
        let letters = (eight_at(folded, start) | CASES) & FRONTS[size];
        hash = (hash.rotate_left(26) ^ letters).wrapping_mul(MIX);
        start += size;
        if start == end {
            return hash;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_either_case_and_others_are_not() {
        let all: Vec<_> =
            (0..3_000_u32).map(|i| format!("w{i:x}-{}", "z".repeat(i as usize % 20))).collect();
        let known = |word: &&String| !word.len().is_multiple_of(3);
        let table = Words::new(
            all.iter().filter(known).map(|word| word.clone().into_bytes()).zip(7..).collect(),
        );
        let numbers = all.iter().filter(known).zip(7..);
        let get = |word: &str| table.get(word.as_bytes(), 0, word.len());
        for (word, number) in numbers {
            assert_eq!(Some(number), get(word));
            assert_eq!(Some(number), get(&word.to_uppercase()));
        }
        for word in all.iter().filter(|word| !known(word)) {
            assert_eq!(None, get(word));
        }
        assert_eq!(None, Words::new(Vec::new()).get(b"x", 0, 1));
    }

    /// Few words share a slot, and few hashes are alike in any of their high bits.
    #[test]
    fn words_have_slots_of_their_own() {
        let words: Vec<Vec<u8>> =
            (0..1_000).map(|number| format!("word{number}, of tea").into_bytes()).collect();
        let table = Words::new(words.iter().cloned().zip(0..).collect());
        let slots: std::collections::HashSet<usize> =
            words.iter().map(|word| table.first_slot(word, 0, word.len())).collect();
        assert!(slots.len() > 800, "{}", slots.len());
        let ones: u32 = words.iter().map(|word| hash(word, 0, word.len()).count_ones()).sum();
        assert!((31_000..33_000).contains(&ones), "{ones} of 64,000 bits");
        // Every letter matters but for its case.
        let hash = |word: &[u8]| hash(word, 0, word.len());
        for word in &words[..20] {
            for at in 0..word.len() {
                let mut other = word.clone();
                other[at] ^= 0x20;
                assert!(word[at] >= b'@' || other[at] >= b'@' || hash(&other) == hash(word));
                other[at] = word[at] ^ 1;
                assert_ne!(hash(&other) >> 32, hash(word) >> 32);
            }
        }
    }
}
