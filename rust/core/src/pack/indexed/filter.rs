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
