//! The cut-off by score: which chunks are in scope.

use crate::plan::MinScore;
use crate::score::lexical::{Signal, SignalKind};
use crate::score::link::{BEST, best};

/// The share of the mean of the best scores that [`MinScore::Auto`] asks for.
const SHARE: f64 = 0.35;

/// The chunks in scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The score from which on chunks are in scope; None where all are.
    least: Option<f64>,
    /// Whether that was found from the scores.
    is_found: bool,
    /// The chunks that are in scope with any score, sorted.
    exempt: Vec<u32>,
}

impl Scope {
    /// Returns the scope of chunks with these scores.
    pub(crate) fn new(min_score: Option<MinScore>, scores: &[f64], signals: &[Signal]) -> Self {
        let highest = || best(scores).into_iter().map(|place| scores[place]).collect();
        Self::of(min_score, scores.len(), highest, signals)
    }

    /// Returns the scope of `count` chunks whose best scores above 0 are those
    /// that `highest` returns, best first.
    ///
    /// The order of the operations is part of the result.
    #[allow(clippy::cast_precision_loss)] // up to three
    pub(crate) fn of(
        min_score: Option<MinScore>,
        count: usize,
        highest: impl FnOnce() -> Vec<f64>,
        signals: &[Signal],
    ) -> Self {
        match min_score {
            None => Self::default(),
            Some(MinScore::At(least)) => Self { least: Some(least), ..Self::default() },
            Some(MinScore::Auto) => {
                // A score of 0 adds nothing to the sum.
                let sum = highest().into_iter().fold(0.0, |sum, score| sum + score);
                let mean = sum / count.clamp(1, BEST) as f64;
                if mean <= 0.0 {
                    return Self::default();
                }
                let is_exempt = |signal: &&Signal| match signal.kind {
                    SignalKind::Heading { is_whole } => is_whole,
                    SignalKind::Link(_) => true,
                    SignalKind::Feedback(_) => false,
                };
                let exempt = signals.iter().filter(is_exempt).map(|signal| signal.chunk);
                let mut exempt: Vec<u32> = exempt.collect();
                exempt.sort_unstable();
                Self { least: Some(SHARE * mean), is_found: true, exempt }
            }
        }
    }

    /// Returns whether all chunks are in scope.
    pub(crate) fn is_all(&self) -> bool {
        self.least.is_none()
    }

    /// Returns whether a chunk with that score is in scope.
    #[inline]
    pub(crate) fn has(&self, index: u32, score: f64) -> bool {
        self.least.is_none_or(|least| {
            // A chunk without a score of its own (NaN) ranks last.
            let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
            score >= least || self.exempt.binary_search(&index).is_ok()
        })
    }

    /// Returns whether no chunk that scores 0 is in scope.
    pub(crate) fn is_without_zeros(&self) -> bool {
        self.least.is_some_and(|least| least > 0.0) && self.exempt.is_empty()
    }

    /// Returns the least score in scope, if it was found from the scores.
    pub(crate) fn found(&self) -> Option<f64> {
        self.least.filter(|_| self.is_found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(scores: &[f64]) -> Scope {
        Scope::new(Some(MinScore::Auto), scores, &[])
    }

    /// The mean is over as many of the best scores as there are, zeros
    /// included.
    #[test]
    fn the_mean_of_the_best() {
        assert_eq!(Some(0.35 * ((4.0 + 3.0 + 2.0) / 3.0)), auto(&[2.0, 3.0, 1.0, 4.0]).found());
        assert_eq!(Some(0.35 * (3.0 / 3.0)), auto(&[0.0, 3.0, 0.0, 0.0]).found());
        assert_eq!(Some(0.35 * (3.0 / 2.0)), auto(&[3.0, 0.0]).found());
        assert_eq!(Some(0.35 * 3.0), auto(&[3.0]).found());
    }

    /// Where nothing scores, everything is in scope.
    #[test]
    fn nothing_scores() {
        for scores in [&[][..], &[0.0], &[0.0; 5]] {
            assert!(auto(scores).is_all() && auto(scores).found().is_none());
        }
        assert!(Scope::new(None, &[1.0], &[]).is_all());
    }

    /// A chunk with exactly the least score is in scope.
    #[test]
    fn ties_are_in_scope() {
        let scope = auto(&[1.0, 1.0, 1.0, 0.35, 0.349]);
        assert!(scope.has(3, 0.35) && !scope.has(4, 0.349) && !scope.has(5, f64::NAN));
    }

    /// Linked chunks and those whose whole heading the query has are in scope
    /// with any score, but not under a number.
    #[test]
    fn exempt_chunks() {
        let kinds = [
            SignalKind::Link(0),
            SignalKind::Heading { is_whole: true },
            SignalKind::Heading { is_whole: false },
            SignalKind::Feedback(0),
        ];
        let signals: Vec<_> = [4, 3, 2, 1].into_iter().zip(kinds).collect();
        let signals: Vec<_> =
            signals.iter().map(|&(chunk, kind)| Signal { chunk, kind, added: 0.1 }).collect();
        let scores = [9.0, 0.1, 0.1, 0.1, 0.1];
        let in_scope = |min_score| {
            let scope = Scope::new(Some(min_score), &scores, &signals);
            let kept = (0..5).zip(scores).filter(|&(index, score)| scope.has(index, score));
            kept.map(|(index, _)| index).collect::<Vec<_>>()
        };
        assert_eq!([0, 3, 4], *in_scope(MinScore::Auto));
        assert_eq!([0], *in_scope(MinScore::At(1.0)));
    }
}
