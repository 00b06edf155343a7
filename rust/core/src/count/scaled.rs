//! Counts times a factor.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Basis, Exact, Native, TokenCounter, check, joint};
use crate::error::Error;
use crate::text::Text;

/// A larger limit is as good as none: no text has that many tokens, and floats
/// are still exact.
const MOST: u64 = 1 << 52;

/// The largest count that a tiny factor makes of a limit.
const MOST_COUNTED: u64 = 1 << 62;

/// What counts are multiplied by; products are rounded up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(f64);

impl Factor {
    /// Leaves counts as they are.
    pub const ONE: Self = Self(1.0);

    /// Returns the factor of that number, which is positive.
    #[must_use]
    pub fn new(factor: f64) -> Self {
        Self(factor)
    }

    /// Returns whether it leaves counts as they are.
    #[must_use]
    #[allow(clippy::float_cmp)] // it is written as 1.0
    pub fn is_one(self) -> bool {
        self.0 == 1.0
    }

    /// Returns `count` times the factor, rounded up.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // no text has 2^53 tokens, and the factor is positive
    pub fn of(self, count: u64) -> u64 {
        if self.is_one() { count } else { (count as f64 * self.0).ceil() as u64 }
    }

    /// Returns the largest count that is at most `limit` times the factor.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as above
    pub fn within(self, limit: u64) -> u64 {
        if self.is_one() {
            return limit;
        }
        let limit = limit.min(MOST);
        let mut count = ((limit as f64 / self.0) as u64).min(MOST_COUNTED);
        while self.of(count) > limit {
            count -= 1;
        }
        while count < MOST_COUNTED && self.of(count + 1) <= limit {
            count += 1;
        }
        count
    }

    /// Returns the product of a text's count if it is at most `limit`, else
    /// None. It means nothing once `stop` is set.
    pub fn count(
        self,
        exact: &Exact,
        text: Text<'_>,
        limit: u64,
        stop: &AtomicBool,
    ) -> Option<u64> {
        exact.count_text(text, self.within(limit), stop).map(|count| self.of(count))
    }

    /// Returns the product of the count of `text`, whose part `known`, in units,
    /// has the product `product`. None where that does not tell: the whole text
    /// must be counted then.
    #[must_use]
    pub fn count_around(
        self,
        exact: &Exact,
        text: Text<'_>,
        known: Range<usize>,
        product: u64,
    ) -> Option<u64> {
        let tokens = self.only(product)?;
        let more = joint::around(exact.model(), text, known)?;
        Some(self.of(tokens.saturating_add_signed(more)))
    }

    /// Returns the only count that has that product, None if there are several.
    fn only(self, product: u64) -> Option<u64> {
        let count = self.within(product);
        let is_only = count == 0 || self.of(count - 1) < product;
        (self.of(count) == product && is_only).then_some(count)
    }

    /// Returns the tokens that are left where `count` are, rounded down.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as above
    pub(crate) fn left(self, count: u64) -> u64 {
        if self.is_one() { count } else { (count as f64 * self.0) as u64 }
    }

    pub(crate) fn times(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

/// The counts of another counter times a factor, rounded up: a margin for one
/// that may count too few, or what is known of another tokenizer.
///
/// Over an encoding it packs as fast as that.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::{Encoding, Scaled, TokenCounter};
///
/// let counter = Scaled::new(Encoding::O200k, 1.05)?;
/// assert_eq!(counter.count("Hello, world!"), 5); // 4.2
/// assert!(!counter.is_exact());
/// assert!(Scaled::new(Encoding::O200k, 0.0).is_err());
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled<C> {
    counter: C,
    factor: Factor,
}

impl<C: TokenCounter> Scaled<C> {
    /// Returns the counts of `counter` times `factor`, from 0.01 to 100.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for
    /// any other factor, or an [`Estimate`](crate::Estimate) with a ratio out of
    /// its range.
    pub fn new(counter: C, factor: f64) -> Result<Self, Error> {
        check(&counter)?;
        if !(0.01..=100.0).contains(&factor) {
            return Err(Error::limit("factor", "from 0.01 to 100", factor.to_string()));
        }
        Ok(Self::times(counter, Factor::new(factor)))
    }

    pub(crate) fn times(counter: C, factor: Factor) -> Self {
        Self { counter, factor }
    }

    pub(crate) fn factor(&self) -> Factor {
        self.factor
    }

    pub(crate) fn shared(&self) -> Option<Scaled<Arc<dyn TokenCounter + Send + Sync>>> {
        Some(Scaled { counter: self.counter.to_shared()?, factor: self.factor })
    }
}

impl<C: TokenCounter> TokenCounter for Scaled<C> {
    fn count(&self, text: &str) -> usize {
        match self.native() {
            // Factors of factors are one product, rounded up once, as in a packing.
            Some(native) => native.count(text),
            None => size(self.factor.of(self.counter.count(text) as u64)),
        }
    }

    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        if let Some(native) = self.native() {
            return native.count_till_limit(text, limit);
        }
        let count = self.counter.count_till_limit(text, size(self.factor.within(limit as u64)))?;
        Some(size(self.factor.of(count as u64))).filter(|&count| count <= limit)
    }

    fn is_exact(&self) -> bool {
        self.factor.is_one() && self.counter.is_exact()
    }

    fn basis(&self) -> Basis {
        match self.counter.basis() {
            Basis::Exact if !self.factor.is_one() => Basis::Factor,
            basis => basis,
        }
    }

    fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
        Some(Arc::new(self.shared()?))
    }

    fn native(&self) -> Option<Native> {
        match self.counter.native()? {
            Native::Exact(exact, factor) => Some(Native::Exact(exact, factor.times(self.factor))),
            // One that is refused is shown under any factor, so that it is refused.
            Native::Estimate(estimate) => (self.factor.is_one() || estimate.check().is_err())
                .then_some(Native::Estimate(estimate)),
        }
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_rounded_down() {
        for (factor, left) in [(1.0, 9), (0.5, 4), (0.4, 3), (2.0, 18)] {
            assert_eq!(left, Factor::new(factor).left(9));
        }
    }

    #[test]
    #[cfg(feature = "o200k")]
    fn one_of_the_crate_may_be_kept() {
        let counter = Scaled::new(crate::Encoding::O200k, 1.5).expect("it is in range");
        let kept = counter.to_shared().expect("it is of the crate");
        assert_eq!([3, 3], [counter.count("Green tea"), kept.count("Green tea")]);
        let own = Scaled::new(|text: &str| text.len(), 1.5).expect("it is in range");
        assert!(own.to_shared().is_none());
    }

    /// A count is told from its product, or is not the only one.
    #[test]
    fn the_only_count_is_the_one() {
        for factor in [0.01, 0.5, 0.999, 1.0, 1.02, 3.0, 100.0].map(Factor::new) {
            for count in (0..2_000).chain([1 << 20]) {
                let product = factor.of(count);
                let is_only = factor.of(count + 1) > product
                    && (count == 0 || factor.of(count - 1) < product);
                assert_eq!(factor.only(product), is_only.then_some(count), "{factor:?} {count}");
            }
        }
    }

    #[test]
    fn the_count_within_a_limit_is_the_largest() {
        for factor in [0.01, 0.25, 0.999, 1.0, 1.02, 1.1, 1.18, 3.0, 100.0, 400.0] {
            let factor = Factor::new(factor);
            for limit in (0..2_000).chain([1 << 20, MOST - 1, MOST, u64::MAX]) {
                let count = factor.within(limit);
                assert!(factor.of(count) <= limit, "{factor:?} {limit}");
                assert!(limit > MOST || factor.of(count + 1) > limit, "{factor:?} {limit}");
            }
        }
    }
}
