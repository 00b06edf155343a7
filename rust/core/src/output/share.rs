//! Who gets how much of the room, and the lines that say what was left out.

use std::borrow::Cow;

use crate::chunk::Batch;
use crate::ranking::Bm25;
use crate::score::bm25::batch_bm25_scores;
use crate::text::Text;

/// Up to a quarter of the room, a row that stays stays whole.
pub(super) const MOST_ROWS: usize = 4;

/// The lines that say what was left out. The first that is written has the
/// pointer to the whole.
#[derive(Debug)]
pub(super) struct Markers<'a> {
    pointer: Option<&'a [u8]>,
}

impl<'a> Markers<'a> {
    pub(super) fn new(pointer: Option<&'a [u8]>) -> Self {
        Self { pointer }
    }

    /// Returns the marker that would be written next.
    pub(super) fn show(&self, what: &[u8]) -> Vec<u8> {
        match self.pointer {
            None => [b"[... ", what, b" ...]"].concat(),
            Some(pointer) => [b"[... ", what, b"; the whole: ", pointer, b" ...]"].concat(),
        }
    }

    /// Returns the length of [`show`](Self::show) for a text of `what` code points.
    pub(super) fn size(&self, what: usize) -> usize {
        what + chars(&self.show(b""))
    }

    /// Returns the pointer, if none of the markers has it yet.
    pub(super) fn pointer(&self) -> Option<&'a [u8]> {
        self.pointer
    }

    /// Says that a marker has the pointer.
    pub(super) fn point(&mut self) {
        self.pointer = None;
    }

    /// Returns the marker to write.
    pub(super) fn write(&mut self, what: &[u8]) -> Vec<u8> {
        let marker = self.show(what);
        self.point();
        marker
    }
}

/// Returns the number of code points of bytes encoded as in [`Text::Utf8`].
pub(super) fn chars(utf8: &[u8]) -> usize {
    Text::Utf8(utf8).chars()
}

/// Returns the count with its name, singular or plural.
pub(super) fn number(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// Returns what a marker says of characters.
pub(super) fn characters(count: usize) -> Vec<u8> {
    format!("{} left out", number(count, "character")).into_bytes()
}

/// Returns the length of [`characters`].
pub(super) fn size_of_characters(count: usize) -> usize {
    let plural = usize::from(count != 1);
    digits(count) + " character".len() + plural + " left out".len()
}

/// Returns how many digits a number has.
pub(super) fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |last| last as usize + 1)
}

/// Returns the first place, then the last, then the second, and so on.
pub(super) fn from_ends(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |rank| if rank % 2 == 0 { rank / 2 } else { count - 1 - rank / 2 })
}

/// Texts to score.
struct Pieces<'a>(&'a [Cow<'a, [u8]>]);

impl Batch for Pieces<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        Text::from_utf8(&self.0[index])
    }

    fn title(&self, _: usize) -> Text<'_> {
        Text::EMPTY
    }

    fn total_chars(&self) -> usize {
        self.0.iter().map(|piece| piece.len()).sum()
    }
}

/// Returns how well each text answers the query; zeros without one.
pub(super) fn scores_of(query: Option<Text<'_>>, texts: &[Cow<'_, [u8]>]) -> Vec<f64> {
    match query {
        Some(query) if texts.len() > 1 => {
            batch_bm25_scores(query, &Pieces(texts), &Bm25::default())
        }
        _ => vec![0.0; texts.len()],
    }
}

/// Sorts places by tier, then by falling score; what is alike stays in order.
pub(super) fn rank(places: &mut [usize], scores: &[f64], tiers: Option<&[u8]>) {
    let tier = |i: usize| tiers.map_or(0, |tiers| tiers[i]);
    places.sort_by(|&a, &b| tier(a).cmp(&tier(b)).then(scores[b].total_cmp(&scores[a])));
}

/// Returns the places by falling score, then from both ends inwards.
pub(super) fn ranked(scores: &[f64]) -> Vec<usize> {
    let mut places: Vec<_> = from_ends(scores.len()).collect();
    rank(&mut places, scores, None);
    places
}

/// What may be written: its whole size, and the least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) size: usize,
    pub(super) least: usize,
}

/// Returns how much of `room` each part gets; 0 for one that is left out.
///
/// In `order`, each part is taken for which there still is room, at its own
/// size or at `cap`, whichever is smaller, but at no less than its least. With
/// `stops`, none is taken after the first that has no room once another has.
/// What is left then goes to all of them by max-min fairness: the smaller are
/// whole before a larger one gets more.
pub(super) fn share(
    parts: &[Span],
    order: &[usize],
    room: usize,
    cap: usize,
    stops: bool,
) -> Vec<usize> {
    let (mut taken, mut left) = (Vec::new(), room);
    for &i in order {
        let cost = parts[i].size.min(cap.max(parts[i].least));
        if cost <= left {
            left -= cost;
            taken.push(i);
        } else if stops && !taken.is_empty() {
            break;
        }
    }
    let spans: Vec<_> = taken.iter().map(|&i| parts[i]).collect();
    let level = water_level(&spans, room);
    let mut got = vec![0; parts.len()];
    for i in taken {
        got[i] = parts[i].at(level);
    }
    got
}

impl Span {
    /// Returns the size where each part may get `level`.
    pub(super) fn at(self, level: usize) -> usize {
        self.size.min(level.max(self.least))
    }
}

/// Returns the most that each part may get, so that all together stay within
/// `room`.
pub(super) fn water_level(parts: &[Span], room: usize) -> usize {
    let (mut low, mut high) = (0, parts.iter().map(|part| part.size).max().unwrap_or(0));
    while low < high {
        let level = (low + high).div_ceil(2);
        if parts.iter().map(|part| part.at(level)).sum::<usize>() <= room {
            low = level;
        } else {
            high = level - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_what_is_written() {
        for count in [0, 1, 2, 9, 10, 11, 99, 100, 1_234_567, usize::MAX] {
            assert_eq!(characters(count).len(), size_of_characters(count));
        }
        let markers = Markers::new(Some("茶".as_bytes()));
        let said = characters(12);
        assert_eq!(chars(&markers.show(&said)), markers.size(said.len()));
    }
}
