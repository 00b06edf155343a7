//! Where the grapheme clusters of a text end.

use std::sync::atomic::AtomicBool;

use unicode_segmentation::UnicodeSegmentation;

use crate::count::exact::GO_ON;
use crate::text::Text;

/// Returns the places where grapheme clusters end, in code points, with 0 and
/// the length.
#[must_use]
pub fn grapheme_boundaries(text: Text<'_>) -> Vec<usize> {
    let boundaries = Boundaries::of(text, &GO_ON);
    (0..=text.chars()).filter(|&at| boundaries.has(at)).collect()
}

/// The same places: a bit for each place of the text.
#[derive(Debug)]
pub(crate) struct Boundaries {
    bits: Vec<u64>,
}

impl Boundaries {
    /// Finds them. Those but 0 and the length mean nothing once `stop` is set.
    pub(crate) fn of(text: Text<'_>, stop: &AtomicBool) -> Self {
        let chars = text.chars();
        let mut found = Self { bits: vec![0; chars / 64 + 1] };
        // What was read of the text, but clusters that have ended.
        let mut open = String::new();
        // Where that starts, and how long it must be to be worth a look: a long
        // cluster is not gone through again for each part of it.
        let (mut start, mut least) = (0, 0);
        for part in text.parts(stop) {
            // A surrogate stands alone, like the line separator that replaces it.
            part.for_each(|code| open.push(char::from_u32(code).unwrap_or('\u{2028}')));
            if open.len() < least {
                continue;
            }
            start = found.read(&open, start, &mut least);
            open.drain(..open.len() - least / 2);
        }
        found.read(&open, start, &mut least);
        // These are there when it stops, too.
        found.set(0);
        found.set(chars);
        found
    }

    /// Notes where the clusters of `open` start. Returns where the last one
    /// does, and sets `least` to twice its length in bytes.
    fn read(&mut self, open: &str, start: usize, least: &mut usize) -> usize {
        let (mut at, mut next) = (start, start);
        for cluster in open.graphemes(true) {
            at = next;
            self.set(at);
            next += cluster.chars().count();
            *least = 2 * cluster.len();
        }
        at
    }

    fn set(&mut self, at: usize) {
        self.bits[at / 64] |= 1 << (at % 64);
    }

    /// Returns whether a cluster ends at a place.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.bits[at / 64] >> (at % 64) & 1 == 1
    }

    /// Returns the last place up to `at`.
    pub(super) fn last(&self, at: usize) -> usize {
        let mut word = at / 64;
        let mut bits = self.bits[word] & u64::MAX >> (63 - at % 64);
        while bits == 0 {
            word -= 1;
            bits = self.bits[word];
        }
        64 * word + bits.ilog2() as usize
    }

    /// Returns the first place from `at` on.
    pub(super) fn next(&self, at: usize) -> usize {
        let mut word = at / 64;
        let mut bits = self.bits[word] & u64::MAX << (at % 64);
        while bits == 0 {
            word += 1;
            bits = self.bits[word];
        }
        64 * word + bits.trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places, found in the text as a whole.
    fn at_once(text: &str) -> Vec<usize> {
        let ends = text.graphemes(true).scan(0, |at, cluster| {
            *at += cluster.chars().count();
            Some(*at)
        });
        std::iter::once(0).chain(ends).collect()
    }

    #[test]
    fn clusters_end_where_they_do_in_the_whole() {
        for unit in
            ["a", "\r\n", "e\u{301}", "🇷🇸🇮🇴🇮", "👩\u{200D}👩\u{200D}👧 ", "क\u{94D}\u{200D}ष"]
        {
            // Parts end at each place of the unit.
            for shift in 0..8 {
                let text = "x".repeat(shift) + &unit.repeat(150_000 / unit.len());
                assert_eq!(at_once(&text), grapheme_boundaries(text.as_str().into()), "{unit}");
            }
        }
    }

    #[test]
    fn one_cluster_is_longer_than_many_parts() {
        let text = format!("ab{}c", "\u{301}".repeat(400_000));
        assert_eq!(vec![0, 1, 400_002, 400_003], grapheme_boundaries(text.as_str().into()));
        let boundaries = Boundaries::of(text.as_str().into(), &GO_ON);
        assert_eq!((1, 400_002), (boundaries.last(400_001), boundaries.next(2)));
        assert_eq!((400_003, 400_003), (boundaries.last(400_003), boundaries.next(400_003)));
    }

    #[test]
    fn there_is_a_place_when_it_stops() {
        let boundaries = Boundaries::of("thé".repeat(100).as_str().into(), &AtomicBool::new(true));
        assert_eq!((0, 300), (boundaries.last(150), boundaries.next(150)));
    }

    #[test]
    fn nothing_is_empty() {
        assert_eq!(vec![0], grapheme_boundaries("".into()));
    }
}
