//! The ranking of the chunks of a corpus, of which the best come first.

use super::filter::Filter;
use crate::corpus::found::Later;
use crate::corpus::sums::Rank;
use crate::rank::{sortable, unsortable};
use crate::scope::Scope;

/// The chunks that are worth a look are listed if they are at most one in so
/// many, besides those that were seen.
const LISTED: usize = 256;

/// If more chunks than these are asked for, all scores are added up.
pub(super) const MANY: usize = 1024;

/// The ranking of the chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranks<'a> {
    pub(crate) count: u32,
    pub(crate) order: Order<'a>,
    pub(crate) scope: &'a Scope,
}

/// By what chunks are ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order<'a> {
    /// By these keys, descending, or by their places, with their scores, if the
    /// scope asks for these.
    Keys(Option<&'a [f64]>, &'a [f64]),
    /// By the scores that are added up where they are asked for.
    Scores(&'a Later),
}

impl<'a> Ranks<'a> {
    /// Returns the best candidates behind `after`, best first and about `most`,
    /// and whether there are no others. The scores of those that were `seen` are
    /// known, by ascending index.
    pub(super) fn next(
        &self,
        after: Option<Rank>,
        most: usize,
        filter: &Filter<'_>,
        seen: &[(u32, f64)],
    ) -> (Vec<Rank>, bool) {
        let is_behind = |rank: Rank| after.is_none_or(|after| rank > after);
        let mut best = Best { most, found: Vec::new(), limit: None };
        let later = match self.order {
            Order::Scores(later) => later,
            Order::Keys(keys, scores) => {
                filter.for_each(self.count, |index| {
                    let rank = (keys.map_or(0, |keys| !sortable(keys[index as usize])), index);
                    let score = || scores[index as usize];
                    if is_behind(rank) && (self.scope.is_all() || self.scope.has(index, score())) {
                        best.push(rank);
                    }
                    true
                });
                return best.finish();
            }
        };
        let rank_of = |index: u32, score: f64| {
            let rank = (!sortable(score), index);
            (is_behind(rank) && self.scope.has(index, score)).then_some(rank)
        };
        if let Some(scores) = later.known() {
            best.offer_all(filter, self.count, scores, rank_of);
            return best.finish();
        }
        if let Some(few) = later.few() {
            let candidates = few.iter().filter(|(index, _)| filter.is_candidate(*index));
            candidates.for_each(|&(index, score)| best.offer(rank_of(index, score)));
            if self.scope.is_without_zeros() {
                return best.finish();
            }
            if best.found.len() >= most {
                return (best.finish().0, false);
            }
            // Those that score 0 follow in their order.
            let mut few = few.iter().peekable();
            filter.for_each(self.count, |index| {
                while few.next_if(|(other, _)| *other < index).is_some() {}
                if few.peek().is_none_or(|(other, _)| *other != index) {
                    best.offer(rank_of(index, 0.0));
                }
                best.limit.is_none()
            });
            return best.finish();
        }
        let few = self.count as usize / LISTED + seen.len();
        if let Some(few) = filter.listed(self.count, few) {
            best.most = few.len(); // all of them are worth no other search
            let known = |index: &u32| {
                let place = seen.binary_search_by_key(index, |(index, _)| *index);
                place.ok().map(|place| seen[place])
            };
            let new = few.iter().copied().filter(|index| known(index).is_none());
            let new: Vec<u32> = new.collect();
            let scores = new.iter().copied().zip(later.of(&new));
            let scores = scores.chain(few.iter().filter_map(known));
            scores.for_each(|(index, score)| best.offer(rank_of(index, score)));
            return best.finish();
        }
        if most <= MANY {
            // At first nearly all are worth a look: to ask about each takes more.
            let is_wanted = |index| after.is_none() || filter.is_candidate(index);
            let (found, is_all) = later.best(most, is_wanted, |rank, score| {
                is_behind(rank) && self.scope.has(rank.1, score) && filter.is_candidate(rank.1)
            });
            let is_without_zeros = self.scope.is_without_zeros();
            if !is_all || found.len() == most || is_without_zeros {
                let found = found.into_iter().map(|(rank, _)| rank).collect();
                return (found, is_all && is_without_zeros);
            }
        }
        // Many are asked for, or chunks that score 0.
        best.offer_all(filter, self.count, later.all(), rank_of);
        best.finish()
    }

    /// Returns the scores and keys of all chunks.
    pub(super) fn all(&self) -> (Option<&'a [f64]>, &'a [f64]) {
        match self.order {
            Order::Keys(keys, scores) => (keys, scores),
            Order::Scores(later) => (Some(later.all()), later.all()),
        }
    }
}

/// The best candidates so far.
struct Best {
    most: usize,
    found: Vec<Rank>,
    /// What comes from here on is not among them. Indices ascend: a chunk with
    /// the key of the last of the best is behind it.
    limit: Option<u64>,
}

impl Best {
    /// Offers the candidates of the first `count` chunks with the ranks that
    /// `rank_of` returns.
    fn offer_all(
        &mut self,
        filter: &Filter<'_>,
        count: u32,
        scores: &[f64],
        rank_of: impl Fn(u32, f64) -> Option<Rank>,
    ) {
        // Most are not good enough, which a comparison tells.
        let mut least = f64::NEG_INFINITY;
        filter.for_each(count, |index| {
            let score = scores[index as usize];
            if score > least {
                self.offer(rank_of(index, score));
                if self.found.len() == self.most {
                    least = self.limit.map_or(least, |limit| unsortable(!limit));
                }
            }
            true
        });
    }

    #[inline]
    fn offer(&mut self, rank: Option<Rank>) {
        if let Some(rank) = rank {
            self.push(rank);
        }
    }

    #[inline]
    fn push(&mut self, rank: Rank) {
        if self.limit.is_some_and(|limit| rank.0 >= limit) {
            return;
        }
        self.found.push(rank);
        if self.found.len() == self.most.saturating_mul(2) {
            self.limit = Some(self.found.select_nth_unstable(self.most - 1).1.0);
            self.found.truncate(self.most);
        }
    }

    fn finish(self) -> (Vec<Rank>, bool) {
        let Self { most, mut found, limit } = self;
        let mut is_all = limit.is_none();
        if found.len() > most {
            found.select_nth_unstable(most - 1);
            found.truncate(most);
            is_all = false;
        }
        found.sort_unstable();
        (found, is_all)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::chunk::Documents;
    use crate::corpus::Index;
    use crate::count::exact::GO_ON;
    use crate::plan::MinScore;
    use crate::ranking::Bm25;

    fn ranked(index: u32, score: f64) -> Rank {
        (!sortable(score), index)
    }

    proptest! {
        /// The best come first, those of equal scores in their order.
        #[test]
        fn the_best_are_found(
            scores in prop::collection::vec((-3_i8..4).prop_map(f64::from), 0..40),
            most in 1_usize..12,
        ) {
            let mut expected: Vec<Rank> =
                (0..).zip(&scores).map(|(index, &score)| ranked(index, score)).collect();
            expected.sort_unstable();
            let is_all = expected.len() <= most;
            expected.truncate(most);

            let best = || Best { most, found: Vec::new(), limit: None };
            let mut one_by_one = best();
            for (index, &score) in (0..).zip(&scores) {
                one_by_one.offer(Some(ranked(index, score)));
                one_by_one.offer(None);
            }
            prop_assert_eq!((expected.clone(), is_all), one_by_one.finish());
            let mut at_once = best();
            let count = u32::try_from(scores.len()).unwrap();
            at_once.offer_all(&Filter::All, count, &scores, |index, score| {
                Some(ranked(index, score))
            });
            prop_assert_eq!((expected, is_all), at_once.finish());
        }
    }

    /// Page after page is the ranking, whether zeros are in scope or not.
    #[test]
    fn pages_follow_each_other() {
        let text = |at: usize| ["tea ".repeat(at * 7 % 5), "rye ".repeat(at % 11)].concat();
        let texts: Vec<String> = (0..45_000).map(text).collect();
        let batch = Documents::new(&texts);
        let index = Arc::new(Index::new(&batch));
        let lexical = Bm25::default().into();
        for least in [None, Some(0.25)] {
            let scope = Scope::new(least.map(MinScore::At), &[], &[]);
            let found = index.query("tea".into(), &lexical).expect("it has lists");
            let later = Later::new(&index, found.found(&batch, &GO_ON).0);
            assert!(later.few().is_none());
            let ranks = Ranks { count: 45_000, order: Order::Scores(&later), scope: &scope };
            let (mut pages, mut is_all) = (Vec::<Rank>::new(), false);
            while !is_all {
                let next = ranks.next(pages.last().copied(), 1_000, &Filter::All, &[]);
                pages.extend(next.0);
                is_all = next.1;
            }
            let in_scope = (0..).zip(later.all()).filter(|&(at, score)| scope.has(at, *score));
            let mut expected: Vec<Rank> = in_scope.map(|(at, score)| ranked(at, *score)).collect();
            expected.sort_unstable();
            assert!((2_500..=45_000).contains(&expected.len()));
            assert!(expected == pages, "{} of {}", pages.len(), expected.len());
        }
    }

    /// A score that is no better than the best so far is not looked at again.
    #[test]
    fn few_are_looked_at() {
        let scores: Vec<f64> = (0..1_000).map(|index| f64::from(1_000 - index)).collect();
        let mut best = Best { most: 5, found: Vec::new(), limit: None };
        let looked = std::cell::Cell::new(0);
        best.offer_all(&Filter::All, 1_000, &scores, |index, score| {
            looked.set(looked.get() + 1);
            Some(ranked(index, score))
        });
        assert_eq!(10, looked.get());
        assert_eq!([0, 1, 2, 3, 4], *best.finish().0.iter().map(|rank| rank.1).collect::<Vec<_>>());
    }
}
