//! Dividing a window among sections: flexbox for tokens.
//!
//! This is section 9.7 of CSS Flexible Box Layout Module Level 1, "Resolving
//! Flexible Lengths", except that sections are dropped where CSS would
//! overflow. It is computed exactly, in integers: factors are read as
//! millionths, so all shares of a round are fractions with one denominator.
//! Nothing is rounded before the end.
//!
//! In real numbers, a section grows or shrinks by its factor (times its basis,
//! when shrinking) times a level common to all, within its limits. The level
//! follows the window, so no section loses when the window grows. Rounding
//! keeps each section less than one token from its real size.

use std::cmp::{Ordering, Reverse};

use crate::error::Error;

mod prompt;
mod section;

pub use prompt::{Allocation, Layout};
pub use section::{Filling, Section};

/// The units of a factor of 1: factors are read as millionths.
const ONE: u32 = 1_000_000;

/// The allowed factors other than 0.
const FACTORS: std::ops::RangeInclusive<f64> = 0.000_001..=10_000.0;

/// The wording of [`FACTORS`] in an error.
const ALLOWED_FACTORS: &str = "0 or from 0.000001 to 10000";

/// The request of a section.
///
/// Factors are 0 or from 0.000001 to 10000, and read to the nearest millionth.
///
/// # Examples
///
/// ```
/// use budgeteer::Flex;
///
/// let history = Flex { basis: 2_000, min_tokens: 500, ..Flex::default() };
/// assert_eq!((0.0, 1.0), (history.grow, history.shrink));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flex {
    /// Its size before anything is divided, in tokens.
    pub basis: u64,
    /// Its share of the tokens that are left over. With 0 it does not grow.
    pub grow: f64,
    /// Its share of the tokens that are lacking, in proportion to its basis.
    /// With 0 it keeps its basis.
    pub shrink: f64,
    /// Its minimum, unless it is dropped.
    pub min_tokens: u64,
    /// Its maximum; `min_tokens` where that is larger.
    pub max_tokens: Option<u64>,
    /// Where not all sections fit, the one of the lowest priority is dropped
    /// first.
    pub priority: i64,
}

impl Default for Flex {
    /// Returns a section of no tokens, with a `shrink` of 1 and all else 0.
    fn default() -> Self {
        Self { basis: 0, grow: 0.0, shrink: 1.0, min_tokens: 0, max_tokens: None, priority: 0 }
    }
}

impl Flex {
    /// Returns its largest size.
    fn most(&self) -> u64 {
        self.max_tokens.unwrap_or(u64::MAX).max(self.min_tokens)
    }

    /// Returns its size where no tokens are left over and none are lacking.
    fn hypothetical(&self) -> u64 {
        self.basis.clamp(self.min_tokens, self.most())
    }

    /// Returns its smallest size.
    fn least(&self) -> u64 {
        if self.shrink > 0.0 { self.min_tokens } else { self.hypothetical() }
    }
}

/// A divided window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The size of each section; 0 where it is dropped.
    pub tokens: Vec<u64>,
    /// The sections that are dropped, in the order in which that was decided.
    pub dropped: Vec<usize>,
    /// The tokens that no section gets.
    pub free_tokens: u64,
}

/// Divides `space` tokens among `sections`.
///
/// Where the smallest sizes do not fit together, sections are dropped until
/// they do: the lowest priority first, and the last of equal ones. Every other
/// section gets its basis, within its limits. Tokens that are left over go to
/// the sections that grow; lacking tokens come from those that shrink. Grow
/// factors with a sum below 1 take only that part of the tokens left over.
///
/// - The sizes and `free_tokens` sum to `space`. Tokens are free only where no
///   section can grow, or where grow factors sum below 1.
/// - A section that is not dropped is within its limits.
/// - Each size is less than one token from its real number. The sections with
///   the largest remainders get the tokens that rounding leaves; among equal
///   ones, the first.
/// - As `space` grows, no more sections are dropped. While the same are in,
///   none loses more than one token, and the free tokens do not become fewer.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a
/// factor that is neither 0 nor from 0.000001 to 10000.
///
/// # Examples
///
/// ```
/// use budgeteer::{Flex, resolve_layout};
///
/// let system = Flex { basis: 300, shrink: 0.0, priority: 9, ..Flex::default() };
/// let chunks = Flex { grow: 2.0, min_tokens: 200, priority: 1, ..Flex::default() };
/// let history = Flex { grow: 1.0, max_tokens: Some(100), ..Flex::default() };
///
/// let resolved = resolve_layout(1_000, &[system, chunks, history])?;
/// assert_eq!(vec![300, 600, 100], resolved.tokens);
///
/// let resolved = resolve_layout(499, &[system, chunks, history])?;
/// assert_eq!(vec![300, 0, 0], resolved.tokens);
/// assert_eq!((vec![2, 1], 199), (resolved.dropped, resolved.free_tokens));
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn resolve_layout(space: u64, sections: &[Flex]) -> Result<Resolved, Error> {
    for (index, section) in sections.iter().enumerate() {
        for (name, factor) in [("grow", section.grow), ("shrink", section.shrink)] {
            check_factor(factor, || format!("sections[{index}].{name}"))?;
        }
    }
    Ok(resolve(space, sections))
}

/// Refuses a factor that is out of range. `name` returns its name in the error.
fn check_factor(factor: f64, name: impl FnOnce() -> String) -> Result<(), Error> {
    if factor == 0.0 || FACTORS.contains(&factor) {
        return Ok(());
    }
    Err(Error::limit(&name(), ALLOWED_FACTORS, factor.to_string()))
}

/// Returns a factor in millionths. It was checked.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is at most 10^10
fn millionths(factor: f64) -> u64 {
    (factor * f64::from(ONE)).round_ties_even() as u64
}

/// Does the same as [`resolve_layout`], with factors that were checked.
fn resolve(space: u64, sections: &[Flex]) -> Resolved {
    let dropped = drop_sections(space, sections);
    let mut tokens: Vec<u64> = sections.iter().map(Flex::hypothetical).collect();
    for &index in &dropped {
        tokens[index] = 0;
    }
    flex(space, sections, &dropped, &mut tokens);
    let free_tokens = tokens.iter().fold(space, |free, &size| free - size);
    Resolved { tokens, dropped, free_tokens }
}

/// Returns the sections to drop so that the smallest sizes of the others fit.
fn drop_sections(space: u64, sections: &[Flex]) -> Vec<usize> {
    let mut needed: u128 = sections.iter().map(|section| u128::from(section.least())).sum();
    if needed <= u128::from(space) {
        return Vec::new();
    }
    let mut dropped: Vec<usize> = (0..sections.len()).collect();
    dropped.sort_unstable_by_key(|&index| (sections[index].priority, Reverse(index)));
    let count = dropped.iter().take_while(|&&index| {
        let over = needed > u128::from(space);
        needed -= u128::from(sections[index].least());
        over
    });
    dropped.truncate(count.count());
    dropped
}

/// Moves `tokens` from their hypothetical sizes to those that fill `space`.
fn flex(space: u64, sections: &[Flex], dropped: &[usize], tokens: &mut [u64]) {
    let total: u128 = tokens.iter().map(|&size| u128::from(size)).sum();
    let space = u128::from(space);
    if total == space {
        return;
    }
    let growing = total < space;
    let mut is_in = vec![true; sections.len()];
    for &index in dropped {
        is_in[index] = false;
    }
    let mut pulls: Vec<Pull> = (0..sections.len())
        .filter(|&index| is_in[index])
        .filter_map(|index| Pull::new(index, &sections[index], growing))
        .collect();
    if !growing {
        pulls.reverse(); // of equal remainders, the last gives its token first
    }
    let at_least: u128 = pulls.iter().map(|pull| u128::from(pull.least)).sum();
    let moves = divide(space.abs_diff(total) + at_least, &pulls, growing);
    for (pull, moved) in pulls.iter().zip(moves) {
        let basis = sections[pull.index].basis;
        tokens[pull.index] = if growing { basis + moved } else { basis - moved };
    }
}

/// The way of a section from its basis.
struct Pull {
    index: usize,
    /// Its factor in millionths, times its basis when shrinking.
    weight: u128,
    /// It moves at least this, if its basis is outside its limits.
    least: u64,
    /// It moves at most this.
    most: u64,
}

impl Pull {
    /// Returns None if the section keeps its hypothetical size.
    fn new(index: usize, section: &Flex, growing: bool) -> Option<Self> {
        let Flex { basis, min_tokens: min, .. } = *section;
        let max = section.most();
        let (factor, scale, least, most) = if growing {
            (section.grow, 1, min.saturating_sub(basis), max.checked_sub(basis)?)
        } else {
            (section.shrink, basis, basis.saturating_sub(max), basis.checked_sub(min)?)
        };
        let weight = u128::from(millionths(factor)) * u128::from(scale);
        (weight > 0).then_some(Self { index, weight, least, most })
    }

    /// Returns whether a share is below the limits, within them, or above.
    fn side(&self, share: Share) -> Ordering {
        if share.tokens < u128::from(self.least) {
            return Ordering::Less;
        }
        let is_above = (share.tokens, share.rest) > (u128::from(self.most), 0);
        if is_above { Ordering::Greater } else { Ordering::Equal }
    }

    /// Returns the limit on that side.
    fn limit(&self, side: Ordering) -> u64 {
        if side.is_lt() { self.least } else { self.most }
    }
}

/// Returns how much each pull moves: together `amount`, in proportion to the
/// weights, each within its least and most.
///
/// Each round divides the rest among the pulls that are not yet at a limit. If
/// keeping the others within their limits takes more than there is, those below
/// their least stay there; if it takes less, those above their most stay there.
/// Nothing is left to correct after at most one round for each pull.
///
/// With `partly`, factors that sum below 1 move only that part of `amount`.
fn divide(amount: u128, pulls: &[Pull], partly: bool) -> Vec<u64> {
    let one = u128::from(ONE);
    let mut moves = vec![0; pulls.len()];
    let mut rest = amount;
    let mut active: Vec<usize> = (0..pulls.len()).collect();
    let mut shares: Vec<Share> = Vec::new();
    let mut sides: Vec<Ordering> = Vec::new();
    while !active.is_empty() {
        let mut whole: u128 = active.iter().map(|&place| pulls[place].weight).sum();
        // A share is given * weight / whole, and at most amount * factor. Only
        // factors that sum below 1 could exceed that.
        let mut given = rest;
        if partly && whole < one && amount * whole < rest * one {
            (given, whole) = (amount, one);
        }
        shares.clear();
        shares.extend(active.iter().map(|&place| Share::new(given, pulls[place].weight, whole)));
        sides.clear();
        // What the limits add to the shares: `tokens - missing`.
        let (mut tokens, mut missing) = (0_i128, Share::default());
        for (&place, &share) in active.iter().zip(&shares) {
            let side = pulls[place].side(share);
            sides.push(side);
            if side.is_ne() {
                moves[place] = pulls[place].limit(side);
                tokens += i128::from(moves[place]) - share.tokens.cast_signed();
                missing.add(share.rest, whole);
            }
        }
        let added = tokens.cmp(&missing.tokens.cast_signed()).then(0.cmp(&missing.rest));
        if added.is_eq() {
            round(&active, &sides, &shares, whole, &mut moves);
            break;
        }
        let mut sides = sides.iter();
        active.retain(|&place| {
            let stays = sides.next() != Some(&added.reverse());
            rest -= if stays { 0 } else { u128::from(moves[place]) };
            stays
        });
    }
    moves
}

/// Writes the shares that are within their limits to `moves`, as whole tokens.
/// Their sum is the sum of the shares, or the nearest whole number.
fn round(active: &[usize], sides: &[Ordering], shares: &[Share], whole: u128, moves: &mut [u64]) {
    let mut sum = Share::default();
    let mut rounded: Vec<(u128, usize)> = Vec::new();
    for ((&place, side), share) in active.iter().zip(sides).zip(shares) {
        if side.is_eq() {
            moves[place] = u64::try_from(share.tokens).expect("it is within its limits");
            sum.add(share.rest, whole);
            rounded.push((share.rest, place));
        }
    }
    let over = sum.tokens + u128::from(2 * sum.rest >= whole);
    // The sort is stable: of equal remainders the first comes first.
    rounded.sort_by_key(|&(rest, _)| Reverse(rest));
    for (_, (_, place)) in (0..over).zip(rounded) {
        moves[place] += 1;
    }
}

/// Tokens and a part of one, over the common denominator of the shares of a
/// round.
///
/// A weight has up to 98 bits: a factor up to 34, a basis up to 64. A hundred
/// million weights together have less than 126.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    tokens: u128,
    rest: u128,
}

impl Share {
    /// Returns `given * weight / whole`; `weight` is at most `whole`.
    fn new(given: u128, weight: u128, whole: u128) -> Self {
        if let Some(product) = given.checked_mul(weight) {
            return Self { tokens: product / whole, rest: product % whole };
        }
        // The product is too large: multiply and divide bit by bit.
        let mut share = Self::default();
        for bit in (0..u128::BITS - given.leading_zeros()).rev() {
            let Self { tokens, rest } = share;
            share = Self { tokens: 2 * tokens, rest: 0 };
            share.add(2 * rest, whole);
            if given >> bit & 1 == 1 {
                share.add(weight, whole);
            }
        }
        share
    }

    /// Adds `rest`, which is at most twice `whole`, in parts of a token.
    fn add(&mut self, rest: u128, whole: u128) {
        self.rest += rest;
        while self.rest >= whole {
            self.rest -= whole;
            self.tokens += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product of more than 128 bits is divided as one of fewer is.
    #[test]
    fn large_shares_are_exact() {
        let bits = [1_u128, 3, 0xFFFF, u128::from(u64::MAX), 1 << 64, (1 << 98) - 1];
        for weight in bits {
            for whole in bits.map(|more| weight + more) {
                // Twice the whole plus five: twice the weight, plus five times
                // over.
                let five = Share::new(5, weight, whole);
                let twice = Share { tokens: five.tokens + 2 * weight, ..five };
                assert_eq!(twice, Share::new(2 * whole + 5, weight, whole));
            }
            let all = Share { tokens: u128::MAX, rest: 0 };
            assert_eq!(all, Share::new(u128::MAX, weight, weight));
        }
    }
}
