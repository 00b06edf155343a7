//! Which chunk comes first.

/// By what chunks are ranked. Ties keep the input order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ranking {
    /// Share of the query's keywords that a chunk or its title contains.
    #[default]
    Keyword,
    /// Time of the last change, newest first.
    Recency,
    /// As they came.
    Input,
    /// The chunk's own score; those without one come last.
    Score,
}

/// Returns the indices in `order` sorted by descending `key`. NaN, which
/// stands for no key at all, counts as the lowest.
pub(crate) fn sort_descending(order: &mut [u32], keys: &[f64]) {
    let key = |index: &u32| {
        let key = keys[*index as usize];
        if key.is_nan() { f64::NEG_INFINITY } else { key }
    };
    // Stable, so that ties keep the input order; quick where many are equal.
    order.sort_by(|a, b| key(b).partial_cmp(&key(a)).expect("no NaN is left"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_keep_the_input_order() {
        let keys = [0.5, -0.0, f64::NAN, 0.0, f64::INFINITY, f64::NEG_INFINITY, 0.5];
        let mut order: Vec<u32> = (0..7).collect();
        sort_descending(&mut order, &keys);
        assert_eq!([4, 0, 6, 1, 3, 2, 5], *order);
    }
}
