//! Which kept texts have which shingles.

use crate::huge::{Table, prefetch};

/// A filter of shingles: two bits for each, in one word.
#[derive(Debug)]
pub(super) struct Filter {
    words: Table<u64>,
    used: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self { words: Table::new(SLOTS / 4), used: 0 }
    }
}

impl Filter {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked
    fn place(&self, shingle: u64) -> usize {
        shingle as usize & (self.words.len() - 1)
    }

    #[inline]
    fn bits(shingle: u64) -> u64 {
        1 << (shingle >> 58) | 1 << (shingle >> 52 & 63)
    }

    pub(super) fn prefetch(&self, shingles: &[u64]) {
        for &shingle in shingles {
            prefetch(&raw const self.words[self.place(shingle)]);
        }
    }

    #[inline]
    pub(super) fn may_have(&self, shingle: u64) -> bool {
        let bits = Self::bits(shingle);
        self.words[self.place(shingle)] & bits == bits
    }

    /// Adds the shingles of `kept`.
    pub(super) fn push(&mut self, kept: &Sets, shingles: &[u64]) {
        self.used += shingles.len();
        if self.used > self.words.len() * 4 {
            self.used = kept.shingles.len() + shingles.len();
            let words = (self.used / 2).next_power_of_two().max(SLOTS / 4);
            self.words = Table::new(words);
            self.add(&kept.shingles);
        }
        self.add(shingles);
    }

    fn add(&mut self, shingles: &[u64]) {
        self.prefetch(&shingles[..shingles.len().min(PREFETCHED)]);
        for (at, &shingle) in shingles.iter().enumerate() {
            if let Some(&next) = shingles.get(at + PREFETCHED) {
                prefetch(&raw const self.words[self.place(next)]);
            }
            let place = self.place(shingle);
            self.words[place] |= Self::bits(shingle);
        }
    }
}

/// The shingles of each kept text.
#[derive(Debug, Default)]
pub(super) struct Sets {
    pub(super) shingles: Vec<u64>,
    /// Where the shingles of the next text start.
    ends: Vec<usize>,
}

impl Sets {
    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    pub(super) fn get(&self, place: usize) -> &[u64] {
        &self.shingles[self.start(place)..self.ends[place]]
    }

    /// Returns the number of texts.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.ends.len()).expect("no batch has 2^32 chunks")
    }

    pub(super) fn push(&mut self, shingles: impl Iterator<Item = u64>) {
        self.shingles.extend(shingles);
        self.ends.push(self.shingles.len());
    }

    /// Removes the last text.
    pub(super) fn pop(&mut self) {
        self.ends.pop();
        self.shingles.truncate(self.start(self.ends.len()));
    }
}

/// The kept texts that have a shingle, as a chain of links from the last to the
/// first.
///
/// Much more is written than read: most texts have nothing in common, which a
/// few looks tell. A slot has 32 bits of the shingle, and 32 bits for the place
/// of the first link, from 1 on. The other bits of the shingle choose the slot.
/// Two shingles with the same 32 bits share a chain, which is fine: it only
/// names candidates.
#[derive(Debug)]
pub(super) struct Lists {
    /// 0 for an empty slot. The number of slots is a power of two.
    slots: Table<u64>,
    used: usize,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    place: u32,
    /// The next link, from 1 on; 0 at the end.
    next: u32,
    /// The length of the chain from here on.
    pub(super) length: u32,
}

const SLOTS: usize = 1 << 12;
pub(super) const MOST_LINKS: usize = 1 << 31;
const PREFETCHED: usize = 32;
const FIRST_LINK: u64 = 0xFFFF_FFFF;

impl Default for Lists {
    fn default() -> Self {
        Self { slots: Table::new(SLOTS), used: 0, links: Vec::new() }
    }
}

impl Lists {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked
    fn home(&self, shingle: u64) -> usize {
        shingle as usize & (self.slots.len() - 1)
    }

    /// Tells the processor that these are looked up soon. The table is large,
    /// and each is somewhere else.
    #[inline]
    pub(super) fn prefetch(&self, shingles: &[u64]) {
        for &shingle in shingles {
            prefetch(&raw const self.slots[self.home(shingle)]);
        }
    }

    /// Returns the slot of `shingle`, or the free one for it, and its bits
    /// there.
    #[inline]
    fn find(&self, shingle: u64) -> (usize, u64) {
        let mask = self.slots.len() - 1;
        let bits = shingle | 1 << 32;
        let mut slot = self.home(shingle);
        while self.slots[slot] != 0 && (self.slots[slot] ^ bits) > FIRST_LINK {
            slot = (slot + 1) & mask;
        }
        (slot, bits & !FIRST_LINK)
    }

    /// Returns the first link of the texts that have `shingle`.
    #[inline]
    pub(super) fn get(&self, shingle: u64) -> Option<Link> {
        let first = self.slots[self.find(shingle).0] & FIRST_LINK;
        (first != 0).then(|| self.link(first))
    }

    #[allow(clippy::cast_possible_truncation)] // 32 bits
    fn link(&self, from_one: u64) -> Link {
        self.links[from_one as usize - 1]
    }

    /// Returns the texts that may have `shingle`, from the last to the first.
    pub(super) fn places(&self, shingle: u64) -> impl Iterator<Item = u32> {
        let next = |link: &Link| (link.next != 0).then(|| self.link(u64::from(link.next)));
        std::iter::successors(self.get(shingle), next).map(|link| link.place)
    }

    /// Adds the text `place` with these shingles, behind those of `listed`.
    pub(super) fn push(&mut self, place: u32, listed: &Sets, shingles: &[u64]) {
        if (self.used + shingles.len()) * 8 > self.slots.len() * 5 {
            let count = self.links.len() + shingles.len();
            self.slots = Table::new((count * 3).next_power_of_two().max(SLOTS));
            self.used = 0;
            self.links.clear();
            (0..place).for_each(|before| self.add(before, listed.get(before as usize)));
        }
        self.add(place, shingles);
    }

    fn add(&mut self, place: u32, shingles: &[u64]) {
        self.prefetch(shingles);
        for &shingle in shingles {
            let (slot, bits) = self.find(shingle);
            let first = self.slots[slot] & FIRST_LINK;
            self.used += usize::from(self.slots[slot] == 0);
            let length = 1 + if first == 0 { 0 } else { self.link(first).length };
            #[allow(clippy::cast_possible_truncation)] // 32 bits
            self.links.push(Link { place, next: first as u32, length });
            self.slots[slot] = bits | self.links.len() as u64;
        }
    }

    /// Removes the text that was added last.
    pub(super) fn pop(&mut self, shingles: &[u64]) {
        for &shingle in shingles.iter().rev() {
            let Some(link) = self.links.pop() else { break };
            let (slot, bits) = self.find(shingle);
            self.slots[slot] = bits | u64::from(link.next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look drawn, each once: by splitmix64.
    fn drawn(count: u64) -> Vec<u64> {
        let mix = |at: u64| {
            let mut bits = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            bits ^ bits >> 31
        };
        (1..=count).map(mix).collect()
    }

    /// A filter tells nearly all shingles that it does not have, and has all that
    /// were added, also after it grew.
    #[test]
    fn a_filter_tells_most_apart() {
        let shingles = drawn(40_000);
        let (added, others) = shingles.split_at(20_000);
        let (mut filter, mut kept) = (Filter::default(), Sets::default());
        for text in added.chunks(100) {
            filter.push(&kept, text);
            kept.push(text.iter().copied());
        }
        assert!(added.iter().all(|&shingle| filter.may_have(shingle)));
        let taken = others.iter().filter(|&&shingle| filter.may_have(shingle)).count();
        assert!(taken < 200, "{taken}");
    }

    /// A filter has a word for two to four shingles, and no fewer than at first.
    #[test]
    fn a_filter_grows_with_its_shingles() {
        let (shingles, mut kept) = (drawn(4_097), Sets::default());
        let mut filter = Filter::default();
        filter.push(&kept, &shingles[..4_096]);
        assert_eq!(1_024, filter.words.len());
        kept.push(shingles[..4_096].iter().copied());
        filter.push(&kept, &shingles[4_096..]);
        assert_eq!(2_048, filter.words.len());
        // A text leaves the sets, but not the filter until it grows.
        let mut filter = Filter::default();
        filter.push(&Sets::default(), &shingles[..4_096]);
        filter.push(&Sets::default(), &shingles[4_096..]);
        assert_eq!(1_024, filter.words.len());
    }

    /// At most five of eight slots are in use; new lists have three for each
    /// shingle.
    #[test]
    fn lists_grow_with_their_shingles() {
        let shingles = drawn(2_561);
        let (mut lists, mut sets) = (Lists::default(), Sets::default());
        lists.push(0, &sets, &shingles[..2_000]);
        sets.push(shingles[..2_000].iter().copied());
        lists.push(1, &sets, &shingles[2_000..2_560]);
        sets.push(shingles[2_000..2_560].iter().copied());
        assert_eq!(4_096, lists.slots.len());
        lists.push(2, &sets, &shingles[2_560..]);
        assert_eq!(8_192, lists.slots.len());
    }

    /// A shingle is in the texts that have it, from the last to the first, also
    /// where many want the same slot, and also when some texts have left.
    #[test]
    fn shingles_name_their_texts() {
        let (mut lists, mut sets) = (Lists::default(), Sets::default());
        let shingles: Vec<u64> = (1..=60).map(|high| (high << 33) + high % 3).collect();
        let mut expected: Vec<Vec<u32>> = vec![Vec::new(); shingles.len()];
        for place in 0..6 {
            let text: Vec<u64> =
                shingles.iter().copied().skip(place as usize).step_by(place as usize + 1).collect();
            lists.push(place, &sets, &text);
            sets.push(text.iter().copied());
            if place == 3 {
                lists.pop(sets.get(3));
                sets.pop();
                lists.push(place, &sets, &text);
                sets.push(text.iter().copied());
            }
            for (shingle, places) in shingles.iter().zip(&mut expected) {
                if text.contains(shingle) {
                    places.insert(0, place);
                }
            }
        }
        for (&shingle, places) in shingles.iter().zip(&expected) {
            assert_eq!(*places, lists.places(shingle).collect::<Vec<_>>());
            let length = lists.get(shingle).map_or(0, |link| link.length as usize);
            assert_eq!(places.len(), length);
        }
        assert!(lists.get(61 << 33).is_none());
    }
}
