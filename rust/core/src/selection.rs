//! The order of admission by coverage.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::chunk::Batch;
use crate::ranking::Bm25;
use crate::score::Scorer;
use crate::score::bm25::{Bm25Scorer, Parts};
use crate::text::Text;

/// How many of the chunks of best rank are looked at.
pub(crate) const CANDIDATES: usize = 512;

/// How much more the rank of a chunk counts than one word of the query.
const RELEVANCE: f64 = 2.0;

/// Returns `order`, which is by rank, with the chunks that cover `query` best
/// first.
pub(crate) fn by_coverage<B: Batch>(
    query: Text<'_>,
    bm25: &Bm25,
    batch: &B,
    with_titles: bool,
    order: &[u32],
) -> Vec<u32> {
    let mut scorer = Bm25Scorer::new(query, bm25);
    let (candidates, rest) = order.split_at(order.len().min(CANDIDATES));
    for &index in candidates {
        let index = index as usize;
        let title = if with_titles { batch.title(index) } else { Text::EMPTY };
        scorer.read(batch.text(index), title);
    }
    let chosen = cover(&scorer.parts(), candidates.len());
    chosen.into_iter().map(|place| candidates[place as usize]).chain(rest.iter().copied()).collect()
}

/// The gain of choosing a text, which may be less by now.
#[derive(Debug)]
struct Offer {
    gain: f64,
    place: u32,
    /// How many texts had been chosen when it was computed.
    chosen: usize,
}

impl Ord for Offer {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |offer: &Self| Reverse(offer.place);
        self.gain.total_cmp(&other.gain).then_with(|| key(self).cmp(&key(other)))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Offer {}

/// Returns the places of the first `texts` texts in the order of the greedy
/// method. The method is lazy: a gain is computed again only where it is the
/// largest.
///
/// The order of the operations is part of the result: the reference has the
/// same.
fn cover(parts: &Parts, texts: usize) -> Vec<u32> {
    let whole = |place: usize| parts.of(place).iter().fold(0.0, |sum, (_, part)| sum + part);
    let most = (0..texts).map(whole).fold(0.0, f64::max);
    let mut covered = vec![0.0; parts.weights.len()];
    let gain = |covered: &[f64], place: u32| {
        let mut gain = 0.0;
        for &(term, part) in parts.of(place as usize) {
            let (weight, before) = (parts.weights[term as usize], covered[term as usize]);
            gain += (weight * (before + part)).sqrt() - (weight * before).sqrt();
        }
        RELEVANCE * (most / f64::from(place + 1).sqrt()) + gain
    };
    let mut chosen = Vec::with_capacity(texts);
    let mut offers: BinaryHeap<Offer> = (0..)
        .take(texts)
        .map(|place| Offer { gain: gain(&covered, place), place, chosen: 0 })
        .collect();
    while let Some(offer) = offers.pop() {
        if offer.chosen < chosen.len() {
            let gain = gain(&covered, offer.place);
            offers.push(Offer { gain, chosen: chosen.len(), ..offer });
            continue;
        }
        for &(term, part) in parts.of(offer.place as usize) {
            covered[term as usize] += part;
        }
        chosen.push(offer.place);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// At each step no other text would add more, except for rounding.
        #[test]
        #[allow(clippy::cast_possible_truncation)] // few
        fn each_time_the_best_is_taken(
            weights in prop::collection::vec(0.01..5.0, 1..5),
            texts in prop::collection::vec(prop::collection::vec((0..5_usize, 0.01..5.0), 0..4), 0..12),
        ) {
            let mut parts = Parts { weights, ..Parts::default() };
            for text in &texts {
                let terms: std::collections::BTreeMap<u32, f64> = text
                    .iter()
                    .map(|&(term, part)| ((term % parts.weights.len()) as u32, part))
                    .collect();
                parts.found.extend(terms);
                parts.ends.push(parts.found.len());
            }
            let sum = |places: &[u32]| {
                let mut whole = 0.0;
                for (term, weight) in parts.weights.iter().enumerate() {
                    let of = |&place: &u32| parts.of(place as usize).iter();
                    let found = places.iter().flat_map(of).filter(|found| found.0 as usize == term);
                    whole += (weight * found.map(|found| found.1).sum::<f64>()).sqrt();
                }
                let all = |place: usize| parts.of(place).iter().map(|found| found.1).sum::<f64>();
                let most = (0..texts.len()).map(all).fold(0.0, f64::max);
                let rank = |&place: &u32| most / f64::from(place + 1).sqrt();
                2.0 * places.iter().map(rank).sum::<f64>() + whole
            };
            let order = cover(&parts, texts.len());
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!((0..texts.len() as u32).collect::<Vec<_>>(), sorted);
            for chosen in 0..order.len() {
                let with = |other: u32| sum(&[&order[..chosen], &[other]].concat());
                let taken = with(order[chosen]);
                prop_assert!(order[chosen..].iter().all(|&other| with(other) <= taken + 1e-9));
            }
        }
    }
}
