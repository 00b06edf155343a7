//! Several scores as one.

use crate::error::Error;
use crate::rank::sort_descending;

/// How [`Ranking::Hybrid`](crate::Ranking::Hybrid) makes one score of several.
///
/// # Examples
///
/// ```
/// use budgeteer::{Chunk, Hybrid, Packer, Ranking};
///
/// let chunks = [Chunk::new("Green tea.").score(0.2), Chunk::new("Coffee.").score(0.9)];
/// let hybrid = Hybrid { bm25: 0.7, embedding: 0.0, score: 0.3, ..Hybrid::default() };
/// let packer = Packer::new(100).ranking(Ranking::Hybrid).hybrid(hybrid);
/// let packing = packer.pack("tea", &chunks)?;
/// assert_eq!(packing.kept[0].score, Some(0.7));
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hybrid {
    /// What the score by [BM25](crate::bm25_scores) weighs, from 0 to 1000000.
    pub bm25: f64,
    /// What the [cosine](crate::cosine_scores) weighs; above 0, vectors are
    /// needed.
    pub embedding: f64,
    /// What the chunk's own score weighs.
    pub score: f64,
    /// How scores of different scales are made to compare.
    pub fusion: Fusion,
}

impl Hybrid {
    /// Returns what Cormack, Clarke and Büttcher published as reciprocal rank
    /// fusion, of BM25 and the cosine: k is 60, and both weigh 1.
    #[must_use]
    pub fn reciprocal_rank() -> Self {
        let fusion = Fusion::ReciprocalRank { k: 60.0 };
        Self { bm25: 1.0, embedding: 1.0, score: 0.0, fusion }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut numbers =
            vec![("bm25", self.bm25), ("embedding", self.embedding), ("score", self.score)];
        if let Fusion::ReciprocalRank { k } = self.fusion {
            numbers.push(("k", k));
        }
        for (name, value) in numbers {
            if !(0.0..=1_000_000.0).contains(&value) {
                return Err(Error::limit(name, "from 0 to 1000000", value.to_string()));
            }
        }
        if self.bm25 == 0.0 && self.embedding == 0.0 && self.score == 0.0 {
            return Err(Error::shape("a hybrid ranking must weigh something".to_owned()));
        }
        Ok(())
    }
}

impl Default for Hybrid {
    fn default() -> Self {
        Self { bm25: 0.5, embedding: 0.5, score: 0.0, fusion: Fusion::MinMax }
    }
}

/// How scores of different scales are made to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Fusion {
    /// From 0 for the lowest of the batch to 1 for the highest; 0 for all where
    /// they are equal, and for a chunk without that score.
    #[default]
    MinMax,
    /// `1 / (k + r)` for the chunk in place r from 1 on, by descending score
    /// and then by the order of the input; 0 for a chunk without that score.
    ReciprocalRank {
        /// How little the first places stand out, from 0 to 1000000.
        k: f64,
    },
}

/// Returns the weighted sum of `columns`, each a weight and a score for every
/// chunk, NaN where it has none.
///
/// The order of the operations is part of the result.
pub(crate) fn fuse(count: usize, columns: &[(f64, &[f64])], fusion: Fusion) -> Vec<f64> {
    let mut fused = vec![0.0; count];
    for (weight, column) in columns {
        match fusion {
            Fusion::MinMax => add_scaled(&mut fused, *weight, column),
            Fusion::ReciprocalRank { k } => add_places(&mut fused, *weight, column, k),
        }
    }
    fused
}

fn add_scaled(fused: &mut [f64], weight: f64, column: &[f64]) {
    // Halves, so that no difference of two numbers is infinite.
    let halves = || column.iter().map(|score| score * 0.5);
    let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
    for half in halves().filter(|half| !half.is_nan()) {
        lowest = if half < lowest { half } else { lowest };
        highest = if half > highest { half } else { highest };
    }
    if highest > lowest {
        let range = highest - lowest;
        for (sum, half) in fused.iter_mut().zip(halves()).filter(|(_, half)| !half.is_nan()) {
            *sum += weight * ((half - lowest) / range);
        }
    }
}

fn add_places(fused: &mut [f64], weight: f64, column: &[f64], k: f64) {
    let count = u32::try_from(column.len()).expect("no batch has 2^32 chunks");
    let mut order: Vec<u32> = (0..count).filter(|&i| !column[i as usize].is_nan()).collect();
    sort_descending(&mut order, column);
    for (index, place) in order.into_iter().zip(1_u32..) {
        fused[index as usize] += weight / (k + f64::from(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled() {
        let columns: [(f64, &[f64]); 3] =
            [(0.5, &[4.0, 2.0, 0.0]), (2.0, &[f64::NAN, -1.0, 1.0]), (9.0, &[3.0; 3])];
        assert_eq!(vec![0.5, 0.25, 2.0], fuse(3, &columns, Fusion::MinMax));
        let widest: [(f64, &[f64]); 1] = [(1.0, &[f64::MAX, f64::MIN, 0.0])];
        assert_eq!(vec![1.0, 0.0, 0.5], fuse(3, &widest, Fusion::MinMax));
    }

    #[test]
    fn places() {
        let columns: [(f64, &[f64]); 2] = [(1.0, &[1.0, 5.0, 1.0]), (2.0, &[f64::NAN, 0.0, -0.0])];
        let fused = fuse(3, &columns, Fusion::ReciprocalRank { k: 1.0 });
        assert_eq!(vec![1.0 / 3.0, 0.5 + 2.0 / 2.0, 0.25 + 2.0 / 3.0], fused);
    }
}
