//! Several scores mixed into one.

use crate::rank::sort_descending;
use crate::ranking::Fusion;

/// Returns the weighted sum of `columns`. Each has a weight and a score for
/// every chunk, NaN for none.
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
    // The halves: the difference of two of them is never infinite.
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
