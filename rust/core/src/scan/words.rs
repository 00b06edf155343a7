//! ASCII words by their hash.

/// Finds the numbers of words, whose letters may have either case. However many
/// they are, most others take a look at one slot.
#[derive(Debug)]
pub(super) struct Words {
    known: Vec<(Vec<u8>, u32)>,
    /// By the hash of a word, or behind it, 1 more than its place; most are 0.
    slots: Vec<u32>,
    shift: u32,
}

impl Words {
    /// Takes words in lowercase, each with its number.
    pub(super) fn new(words: Vec<(Vec<u8>, u32)>) -> Self {
        let size = (4 * words.len()).next_power_of_two().max(2);
        let mut found = Self {
            slots: vec![0; size],
            shift: u64::BITS - size.trailing_zeros(),
            known: Vec::new(),
        };
        for (place, (word, _)) in (1..).zip(&words) {
            let mut slot = found.first_slot(word, 0, word.len());
            while found.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            found.slots[slot] = place;
        }
        Self { known: words, ..found }
    }

    /// Returns the number of the word from `start` to `end`.
    #[inline]
    pub(super) fn get(&self, folded: &[u8], start: usize, end: usize) -> Option<u32> {
        let mut slot = self.first_slot(folded, start, end);
        loop {
            let place = self.slots[slot].checked_sub(1)?;
            let (known, number) = &self.known[place as usize];
            if known.eq_ignore_ascii_case(&folded[start..end]) {
                return Some(*number);
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
        let letters = match folded[start..].first_chunk() {
            Some(letters) => u64::from_le_bytes(*letters),
            None => folded[start..].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)),
        };
        let letters = (letters | CASES) & FRONTS[size];
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
}
