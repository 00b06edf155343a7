//! Lower bounds of exact counts. Each becomes the count once that is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::count::Tokenizer;
use crate::count::tokenizer::Model;
use crate::fork::Shared;

/// Marks a bound that is the count.
const EXACT: u32 = 1 << 31;

/// A lower bound for each chunk. Threads may raise bounds at any time: they
/// decide which chunks go unseen, and no result depends on that.
#[derive(Debug, Default)]
pub(crate) struct Bounds(Vec<AtomicU32>);

impl Clone for Bounds {
    fn clone(&self) -> Self {
        Self(self.stored().map(AtomicU32::new).collect())
    }
}

impl Bounds {
    /// Returns bounds from the numbers of [`Bounds::stored`].
    pub(super) fn of_stored(stored: impl Iterator<Item = u32>) -> Self {
        Self(stored.map(AtomicU32::new).collect())
    }

    pub(super) fn stored(&self) -> impl ExactSizeIterator<Item = u32> {
        self.0.iter().map(|bound| bound.load(Ordering::Relaxed))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|bound| bound.load(Ordering::Relaxed) & !EXACT)
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> u32 {
        self.0[index].load(Ordering::Relaxed) & !EXACT
    }

    pub(crate) fn is_exact(&self, index: usize) -> bool {
        self.0[index].load(Ordering::Relaxed) & EXACT != 0
    }

    /// Notes the count of a chunk.
    pub(crate) fn set(&self, index: usize, count: u64) {
        self.0[index].store(capped(count) | EXACT, Ordering::Relaxed);
    }
}

/// For how many tokenizers bounds are kept: those that came last.
const MOST: usize = 8;

/// The bounds under each tokenizer that has counted.
#[derive(Debug)]
pub(crate) struct AllBounds(Shared<Vec<(Tokenizer, Arc<Bounds>)>>);

impl Default for AllBounds {
    fn default() -> Self {
        Self(Shared::new())
    }
}

impl Clone for AllBounds {
    fn clone(&self) -> Self {
        self.map(Bounds::clone)
    }
}

impl AllBounds {
    /// Returns each tokenizer and its bounds.
    fn each(&self) -> Arc<Vec<(Tokenizer, Arc<Bounds>)>> {
        self.0.get().unwrap_or_default()
    }

    /// Returns what `change` makes of the bounds of each tokenizer.
    pub(super) fn map(&self, change: impl Fn(&Bounds) -> Bounds) -> Self {
        let all = Self::default();
        for (tokenizer, bounds) in self.each().iter().rev() {
            all.put(tokenizer, Arc::new(change(bounds)));
        }
        all
    }

    pub(super) fn put(&self, tokenizer: &Tokenizer, bounds: Arc<Bounds>) {
        self.0.update(|all| {
            let others = all.into_iter().flatten().filter(|(known, _)| known != tokenizer);
            let others = others.take(MOST - 1).cloned();
            [(tokenizer.clone(), bounds)].into_iter().chain(others).collect()
        });
    }

    /// Returns the bounds of the chunks whose numbers of starts and of code
    /// points these are: those that are known, and new ones for chunks behind
    /// them.
    pub(super) fn of(&self, tokenizer: &Tokenizer, starts: &[u32], chars: &[u32]) -> Arc<Bounds> {
        let all = self.each();
        let known = all.iter().find(|(known, _)| known == tokenizer);
        let known = known.map(|(_, bounds)| bounds);
        if let Some(bounds) = known.filter(|bounds| bounds.len() == starts.len()) {
            return Arc::clone(bounds);
        }
        let from = known.map_or(0, |bounds| bounds.len());
        let model = tokenizer.model();
        let new = starts.iter().zip(chars).skip(from);
        let new = new.map(|(&starts, &chars)| least(model, starts, chars));
        let known = known.iter().flat_map(|bounds| bounds.stored());
        let bounds = Arc::new(Bounds::of_stored(known.chain(new)));
        self.put(tokenizer, Arc::clone(&bounds));
        bounds
    }

    /// Forgets the count of the chunk at `index`, whose text is another now.
    pub(super) fn forget(&self, index: usize, starts: u32, chars: u32) {
        for (tokenizer, bounds) in self.each().iter() {
            if let Some(bound) = bounds.0.get(index) {
                bound.store(least(tokenizer.model(), starts, chars), Ordering::Relaxed);
            }
        }
    }

    /// Returns the bounds that are kept in a file: of each encoding, for all of
    /// `count` chunks. The last used are the last: so are they where each is put
    /// before the others as it is read.
    pub(super) fn stored(&self, count: usize) -> Vec<(&'static str, Arc<Bounds>)> {
        let all = self.each();
        let all = all.iter().rev().filter(|(_, all)| all.len() == count);
        all.filter_map(|(tokenizer, all)| Some((tokenizer.encoding()?.name(), Arc::clone(all))))
            .collect()
    }
}

fn least(model: &Model, starts: u32, chars: u32) -> u32 {
    capped(model.least(|| starts as usize, || chars as usize) as u64)
}

fn capped(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(EXACT).min(EXACT - 1)
}

#[cfg(all(test, feature = "cl100k", feature = "o200k"))]
mod tests {
    use budgeteer_vocab::Encoding;

    use super::*;

    const STARTS: [u32; 3] = [4, 0, 9];
    const CHARS: [u32; 3] = [10, 0, 30];

    fn o200k() -> Tokenizer {
        Encoding::O200k.into()
    }

    fn told(bounds: &Bounds) -> Vec<(u32, bool)> {
        let told: Vec<_> =
            (0..bounds.len()).map(|index| (bounds.get(index), bounds.is_exact(index))).collect();
        assert!(bounds.iter().eq(told.iter().map(|(bound, _)| *bound)));
        told
    }

    #[test]
    fn a_bound_becomes_the_count() {
        let all = AllBounds::default();
        let bounds = all.of(&o200k(), &STARTS, &CHARS);
        let at_first = told(&bounds);
        let least = |at: usize| {
            let least = o200k().model().least(|| STARTS[at] as usize, || CHARS[at] as usize);
            (u32::try_from(least).expect("a small number"), false)
        };
        assert_eq!([0, 1, 2].map(least), *at_first);
        assert!(at_first[0].0 > 0);

        let copy = Bounds::clone(&bounds);
        bounds.set(1, 7);
        bounds.set(2, u64::MAX);
        assert_eq!([at_first[0], (7, true), (EXACT - 1, true)], *told(&bounds));
        assert_eq!(at_first, told(&copy));
        let stored = Bounds::of_stored(bounds.stored());
        assert_eq!(told(&bounds), told(&stored));

        all.forget(1, STARTS[1], CHARS[1]);
        assert_eq!([at_first[0], at_first[1], (EXACT - 1, true)], *told(&bounds));
    }

    #[test]
    fn what_is_known_stays_as_a_corpus_grows() {
        let all = AllBounds::default();
        let bounds = all.of(&o200k(), &STARTS[..2], &CHARS[..2]);
        bounds.set(0, 5);
        assert!(Arc::ptr_eq(&bounds, &all.of(&o200k(), &STARTS[..2], &CHARS[..2])));
        let other = all.of(&Encoding::Cl100k.into(), &STARTS, &CHARS);
        assert!(!other.is_exact(0));

        let names = |count| all.stored(count).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!((vec!["o200k_base"], vec!["cl100k_base"]), (names(2), names(3)));
        let longer = all.of(&o200k(), &STARTS, &CHARS);
        assert_eq!([(5, true), told(&bounds)[1], told(&other)[2]], *told(&longer));
        assert_eq!(vec!["cl100k_base", "o200k_base"], names(3));

        let copy = all.clone();
        longer.set(1, 3);
        assert!(!copy.of(&o200k(), &STARTS, &CHARS).is_exact(1));
        assert!(all.of(&o200k(), &STARTS, &CHARS).is_exact(1));
    }

    #[test]
    fn the_tokenizers_that_came_last_are_kept() {
        let all = AllBounds::default();
        for _ in 0..2 {
            for &encoding in Encoding::ALL {
                all.of(&encoding.into(), &STARTS, &CHARS);
            }
        }
        let mut names: Vec<_> = Encoding::ALL.iter().rev().map(|one| one.name()).collect();
        names.truncate(MOST);
        let all = all.each();
        assert!(names.into_iter().eq(all.iter().map(|(tokenizer, _)| tokenizer.name())));
    }

    #[test]
    #[cfg(feature = "vocabularies")]
    fn clones_know_as_much_and_the_last_are_kept() {
        let all = AllBounds::default();
        let known: Vec<Tokenizer> = Encoding::ALL.iter().map(|&encoding| encoding.into()).collect();
        assert_eq!(MOST, known.len());
        for tokenizer in &known {
            all.of(tokenizer, &STARTS, &CHARS);
        }
        let names = |all: &AllBounds| -> Vec<String> {
            all.each().iter().map(|(tokenizer, _)| tokenizer.name().to_string()).collect()
        };
        let expected: Vec<&str> = known.iter().rev().map(Tokenizer::name).collect();
        assert_eq!(expected, names(&all));
        assert_eq!(expected, names(&all.clone()));
        let other = crate::Claude::V3.into();
        all.put(&other, Arc::new(Bounds::of_stored([].into_iter())));
        assert_eq!([&[other.name()], &expected[..MOST - 1]].concat(), names(&all));
    }
}
