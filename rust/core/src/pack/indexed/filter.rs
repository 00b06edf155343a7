//! Which chunks of a corpus are worth a look once some were kept.

use crate::reading::Measures;

/// The chunks that are worth a look.
pub(super) enum Filter<'a> {
    All,
    /// Chunks of a measure of at most `limit` or of unknown measure, as they
    /// may be empty or fit; and chunks that may repeat a kept text.
    Worthy {
        measures: Measures<'a>,
        limit: u32,
        prints: &'a [u32],
        kept: Prints,
    },
}

impl Filter<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always)] // a few instructions, for each of a million chunks
    fn is_small(measure: u32, limit: u32) -> bool {
        measure <= limit || measure == u32::MAX
    }

    pub(super) fn is_candidate(&self, index: u32) -> bool {
        let Self::Worthy { measures, limit, prints, kept } = self else { return true };
        let repeats = prints.get(index as usize).is_some_and(|&print| kept.has(print));
        repeats || measures.get(index).is_none_or(|measure| Self::is_small(measure, *limit))
    }

    /// Returns the candidates of the first `count` chunks; None where there are
    /// more than `most`.
    pub(super) fn listed(&self, count: u32, most: usize) -> Option<Vec<u32>> {
        let Self::Worthy { .. } = self else { return None };
        let (mut listed, mut too_many) = (Vec::new(), false);
        self.for_each(count, |index| {
            too_many = listed.len() == most;
            if !too_many {
                listed.push(index);
            }
            !too_many
        });
        (!too_many).then_some(listed)
    }

    /// Calls `visit` with each candidate of the first `count` chunks until it
    /// returns false.
    #[inline]
    pub(super) fn for_each(&self, count: u32, visit: impl FnMut(u32) -> bool) {
        let Self::Worthy { measures, limit, prints, kept } = self else {
            (0..count).all(visit);
            return;
        };
        let count = count as usize;
        match measures {
            Measures::Bounds(bounds) => {
                scan(bounds.iter().take(count), *limit, prints, kept, visit);
            }
            Measures::Lent(measures) => {
                scan(measures.iter().copied().take(count), *limit, prints, kept, visit);
            }
            Measures::Read(_) => unreachable!("a corpus lends its numbers"),
        }
    }
}

/// Calls `visit` with the place of each measure that is small or whose
/// fingerprint was kept, until it returns false. These are few, so the processor
/// foresees the branch.
#[inline(always)]
#[allow(clippy::inline_always)] // a few instructions, for each of a million chunks
fn scan(
    measures: impl Iterator<Item = u32>,
    limit: u32,
    prints: &[u32],
    kept: &Prints,
    mut visit: impl FnMut(u32) -> bool,
) {
    let measures = (0..).zip(measures);
    if prints.is_empty() {
        for (index, measure) in measures {
            if Filter::is_small(measure, limit) && !visit(index) {
                return;
            }
        }
    } else {
        for ((index, measure), &print) in measures.zip(prints) {
            let is_small = Filter::is_small(measure, limit);
            let may_count = is_small | kept.may_have(print);
            if may_count && (is_small || kept.has(print)) && !visit(index) {
                return;
            }
        }
    }
}

/// The fingerprints of the kept texts.
pub(super) struct Prints {
    /// Ascending.
    all: Vec<u32>,
    /// A bit for each of their low bits, so that hardly any other one is sought
    /// among them. Its length is a power of two.
    low: Vec<u64>,
}

impl Prints {
    /// How many bits there are for each fingerprint.
    const BITS: usize = 64;

    /// How many there are at least.
    const FEWEST: usize = 1 << 16;

    pub(super) fn new(mut all: Vec<u32>) -> Self {
        all.sort_unstable();
        let bits = all.len().saturating_mul(Self::BITS).max(Self::FEWEST).next_power_of_two();
        let mut low = vec![0; bits / 64];
        for &print in &all {
            let (word, bit) = Self::place(&low, print);
            low[word] |= bit;
        }
        Self { all, low }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // as above
    fn place(low: &[u64], print: u32) -> (usize, u64) {
        ((print as usize / 64) & (low.len() - 1), 1 << (print % 64))
    }

    /// Returns whether this may be one of them.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as above
    fn may_have(&self, print: u32) -> bool {
        let (word, bit) = Self::place(&self.low, print);
        self.low[word] & bit != 0
    }

    /// Returns whether this is one of them.
    fn has(&self, print: u32) -> bool {
        self.may_have(print) && self.all.binary_search(&print).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Fingerprints of which some share their low bits.
    fn prints() -> impl Strategy<Value = u32> {
        (0_u32..3, prop::sample::select(vec![0, 1, 64, 1 << 16, 1 << 22, u32::MAX - 2]))
            .prop_map(|(low, high)| low + high)
    }

    proptest! {
        /// A chunk is worth a look if it is small, of unknown size, or may repeat
        /// a kept text.
        #[test]
        fn finds_small_chunks_and_repeats(
            chunks in prop::collection::vec(
                (prop::sample::select(vec![0, 4, 5, 6, u32::MAX]), prints()),
                0..20,
            ),
            kept in prop::collection::vec(prints(), 0..4),
            has_prints: bool,
            count in 0_u32..21,
            most in 0_usize..21,
        ) {
            let count = count.min(u32::try_from(chunks.len()).unwrap());
            let (measures, prints): (Vec<u32>, Vec<u32>) = chunks.into_iter().unzip();
            let is_worth = |index: u32| {
                let (measure, print) = (measures[index as usize], prints[index as usize]);
                measure <= 5 || measure == u32::MAX || (has_prints && kept.contains(&print))
            };
            let expected: Vec<u32> = (0..count).filter(|&index| is_worth(index)).collect();
            let filter = Filter::Worthy {
                measures: Measures::Lent(&measures),
                limit: 5,
                prints: if has_prints { &prints } else { &[] },
                kept: Prints::new(kept.clone()),
            };
            let found: Vec<u32> = (0..count).filter(|&index| filter.is_candidate(index)).collect();
            prop_assert_eq!(&expected, &found);
            let mut visited = Vec::new();
            filter.for_each(count, |index| {
                visited.push(index);
                visited.len() < most
            });
            prop_assert_eq!(&expected[..expected.len().min(most.max(1))], visited);
            let listed = (expected.len() <= most).then_some(expected);
            prop_assert_eq!(listed, filter.listed(count, most));
        }

        #[test]
        fn fingerprints_are_told_apart(
            kept in prop::collection::vec(prints(), 0..9),
            other in prints(),
        ) {
            let prints = Prints::new(kept.clone());
            prop_assert_eq!(kept.contains(&other), prints.has(other));
            prop_assert!(prints.may_have(other) || !kept.contains(&other));
        }
    }

    #[test]
    fn hardly_any_other_fingerprint_is_sought() {
        let prints = Prints::new(vec![5, 7 * 64]);
        let sought: Vec<u32> = (0..1 << 16).filter(|&print| prints.may_have(print)).collect();
        assert_eq!(vec![5, 7 * 64], sought);
    }

    #[test]
    fn all_are_worth_a_look_at_first() {
        assert!(Filter::All.is_candidate(3) && Filter::All.listed(3, 9).is_none());
        let mut visited = Vec::new();
        Filter::All.for_each(3, |index| {
            visited.push(index);
            true
        });
        assert_eq!(vec![0, 1, 2], visited);
    }
}
