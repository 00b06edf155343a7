//! Sorting chunks by their keys.

use std::cmp::Reverse;

/// Up to this number of different keys, chunks are sorted by counting keys.
const FEW: usize = 16;

/// Sorts the indices in `order` by descending key. NaN stands for no key and
/// comes last. Ties keep their order.
pub(crate) fn sort_descending(order: &mut Vec<u32>, keys: &[f64]) {
    let key = |index: u32| sortable(keys[index as usize]);
    // The keyword ranking has few values, so two passes sort it.
    if let Some(sorted) = sort_few(order, key) {
        *order = sorted;
    } else {
        // The keys stand beside the places: looking them up while sorting costs
        // more.
        let places = order.iter().zip(0_u32..).map(|(&index, place)| (Reverse(key(index)), place));
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        *order = places.into_iter().map(|(_, place)| order[place as usize]).collect();
    }
}

/// Returns an integer that sorts as `key` does; 0 for NaN.
pub(crate) fn sortable(key: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    match (key + 0.0).to_bits() {
        _ if key.is_nan() => 0,
        bits if bits & SIGN == 0 => bits | SIGN,
        bits => !bits,
    }
}

/// Returns the key of an integer of [`sortable`].
pub(crate) fn unsortable(sorted: u64) -> f64 {
    const SIGN: u64 = 1 << 63;
    f64::from_bits(if sorted & SIGN == 0 { !sorted } else { sorted ^ SIGN })
}

/// Returns `order` sorted by descending key, or None where there are more than
/// [`FEW`] different keys.
fn sort_few(order: &[u32], key: impl Fn(u32) -> u64) -> Option<Vec<u32>> {
    // Each key with its number, in order of first occurrence.
    let mut counts: Vec<(u64, u32)> = Vec::with_capacity(FEW);
    for &index in order {
        let key = key(index);
        if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == key) {
            *count += 1;
        } else if counts.len() < FEW {
            counts.push((key, 1));
        } else {
            return None;
        }
    }
    let mut places = counts.clone();
    for (key, place) in &mut places {
        *place = counts.iter().filter(|(other, _)| other > key).map(|(_, count)| count).sum();
    }
    let mut sorted = vec![0; order.len()];
    for &index in order {
        let key = key(index);
        let place = places.iter_mut().find(|(known, _)| *known == key);
        let (_, place) = place.expect("every key was counted");
        sorted[*place as usize] = index;
        *place += 1;
    }
    Some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_keep_the_input_order() {
        let keys = [0.5, -0.0, f64::NAN, 0.0, f64::INFINITY, f64::NEG_INFINITY, 0.5];
        let mut order: Vec<u32> = (0..7).collect();
        sort_descending(&mut order, &keys);
        assert_eq!([4, 0, 6, 1, 3, 5, 2], *order);
    }

    #[test]
    fn keys_come_back() {
        let keys =
            [-f64::INFINITY, -f64::MAX, -1.5, -0.25, 0.0, f64::MIN_POSITIVE, 1.5, f64::INFINITY];
        let sorted = keys.map(sortable);
        assert!(sorted.is_sorted());
        assert_eq!(keys.map(f64::to_bits), sorted.map(|key| unsortable(key).to_bits()));
    }

    /// Few and many different keys are sorted alike.
    #[test]
    fn few_and_many_keys() {
        for different in [1, 2, 16, 17, 90] {
            let keys: Vec<f64> = (0..200).map(|i| f64::from(i * 37 % different)).collect();
            let mut order: Vec<u32> = (0..200).filter(|i| i % 7 != 3).collect();
            let mut expected = order.clone();
            expected.sort_by(|&a, &b| keys[b as usize].total_cmp(&keys[a as usize]));
            let few = sort_few(&order, |index| sortable(keys[index as usize]));
            assert_eq!((different <= 16).then_some(&expected), few.as_ref());
            sort_descending(&mut order, &keys);
            assert_eq!(expected, order);
        }
    }
}
