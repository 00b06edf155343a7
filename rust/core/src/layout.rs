//! Dividing a window among sections: flexbox for tokens.
//!
//! This is section 9.7 of CSS Flexible Box Layout Module Level 1, "Resolving
//! Flexible Lengths", without its overflows, and computed exactly. A factor is
//! a binary float, that is, a natural number times a power of two, so that all
//! shares of a round are fractions with one denominator; numerators and
//! denominator are [`Natural`] numbers. Nothing is rounded before the end.
//!
//! In real numbers, what a section grows or shrinks by is its factor (times its
//! basis, when shrinking) times a level common to all, kept within its limits.
//! The level follows the window, so that no section loses where the window
//! grows; rounding keeps each section less than one token from its real size.

use std::cmp::{Ordering, Reverse};

mod prompt;
mod section;

pub use prompt::{Allocation, Layout};
pub use section::{Filling, Section};

/// What a section asks for.
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
    /// Its size before anything is divided.
    pub basis: u64,
    /// Its part of what is left over. What is negative or no number counts as
    /// 0, infinity as the largest float.
    pub grow: f64,
    /// Its part, in proportion to its basis, of what is lacking; read like
    /// `grow`. At 0 it keeps its basis.
    pub shrink: f64,
    /// It gets no fewer, unless it is dropped.
    pub min_tokens: u64,
    /// It gets no more, unless `min_tokens` is larger.
    pub max_tokens: Option<u64>,
    /// Where not all sections fit, the one of the lowest priority is dropped
    /// first.
    pub priority: i64,
}

impl Default for Flex {
    /// Nothing, that may shrink and does not grow.
    fn default() -> Self {
        Self { basis: 0, grow: 0.0, shrink: 1.0, min_tokens: 0, max_tokens: None, priority: 0 }
    }
}

impl Flex {
    /// Returns its largest size.
    fn most(&self) -> u64 {
        self.max_tokens.unwrap_or(u64::MAX).max(self.min_tokens)
    }

    /// Returns its size where nothing is left over and nothing is lacking.
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
    /// What no section gets.
    pub free_tokens: u64,
}

/// Divides `space` tokens among `sections`.
///
/// Where the smallest sizes do not fit together, sections are dropped until
/// they do: by priority, the lowest first, and the last of those that are
/// equal. The others get their basis, within their limits; what is left over
/// goes to those that grow, what is lacking comes from those that shrink. Grow
/// factors that sum below 1 take only that part of what is left over.
///
/// - The sizes and `free_tokens` sum to `space`. Something is free only where
///   no section can grow, or where grow factors sum below 1.
/// - A section that is not dropped is within its limits.
/// - Each size is less than one token from the real number that it stands for.
///   Those with the largest remainders get the tokens that rounding leaves,
///   the first of those that are equal.
/// - As `space` grows, no more sections are dropped; and while the same are in,
///   none gets more than one token less, and no fewer are free.
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
/// let resolved = resolve_layout(1_000, &[system, chunks, history]);
/// assert_eq!(vec![300, 600, 100], resolved.tokens);
///
/// let resolved = resolve_layout(499, &[system, chunks, history]);
/// assert_eq!(vec![300, 0, 0], resolved.tokens);
/// assert_eq!((vec![2, 1], 199), (resolved.dropped, resolved.free_tokens));
/// ```
#[must_use]
pub fn resolve_layout(space: u64, sections: &[Flex]) -> Resolved {
    let dropped = drop_sections(space, sections);
    let mut tokens: Vec<u64> = sections.iter().map(Flex::hypothetical).collect();
    for &index in &dropped {
        tokens[index] = 0;
    }
    flex(space, sections, &dropped, &mut tokens);
    let free_tokens = tokens.iter().fold(space, |free, &size| free - size);
    Resolved { tokens, dropped, free_tokens }
}

/// Returns the sections that must go for the smallest sizes of the others to
/// fit.
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

/// How a section leaves its basis.
struct Pull {
    index: usize,
    factor: Factor,
    /// What the factor is multiplied by.
    scale: u64,
    /// It moves no less, since its basis is outside its limits.
    least: u64,
    /// It moves no more.
    most: u64,
}

impl Pull {
    /// Returns None where the section keeps its hypothetical size.
    fn new(index: usize, section: &Flex, growing: bool) -> Option<Self> {
        let Flex { basis, min_tokens: min, .. } = *section;
        let max = section.most();
        let (factor, scale, least, most) = if growing {
            (section.grow, 1, min.saturating_sub(basis), max.checked_sub(basis)?)
        } else {
            (section.shrink, basis, basis.saturating_sub(max), basis.checked_sub(min)?)
        };
        let factor = Factor::new(factor).filter(|_| scale > 0)?;
        Some(Self { index, factor, scale, least, most })
    }

    /// Returns factor times scale, in units of two to the power of `lowest`.
    fn weight(&self, lowest: i64) -> Natural {
        let number = u128::from(self.factor.odd) * u128::from(self.scale);
        Natural::shifted(number, (self.factor.exponent - lowest).unsigned_abs())
    }

    /// Returns whether a share is below its limits, within, or above.
    fn side(&self, quotient: u128, remainder: &Natural) -> Ordering {
        if quotient < u128::from(self.least) {
            return Ordering::Less;
        }
        let whole = quotient.cmp(&u128::from(self.most));
        let share = whole.then_with(|| remainder.cmp(&Natural::default()));
        share.max(Ordering::Equal)
    }

    /// Returns the limit on that side.
    fn limit(&self, side: Ordering) -> u64 {
        if side.is_lt() { self.least } else { self.most }
    }
}

/// Returns what each pull moves: as much of `amount` as there is a factor for,
/// in proportion to factor times scale, within least and most.
///
/// Each round divides what is left among those not yet at a limit. If keeping
/// the others within their limits takes more than there is, those below their
/// least are at it for good; if it takes less, those above their most. At the
/// latest after as many rounds as there are pulls nothing is left to correct.
///
/// `partly` says that factors which sum below 1 move only that part.
fn divide(amount: u128, pulls: &[Pull], partly: bool) -> Vec<u64> {
    let lowest = pulls.iter().map(|pull| pull.factor.exponent).min().unwrap_or(0).min(0);
    let one = Natural::shifted(1, lowest.unsigned_abs());
    let weights: Vec<Natural> = pulls.iter().map(|pull| pull.weight(lowest)).collect();
    let mut moves = vec![0; pulls.len()];
    let mut rest = amount;
    let mut active: Vec<usize> = (0..pulls.len()).collect();
    let mut shares: Vec<(u128, Natural)> = Vec::new();
    let mut sides: Vec<Ordering> = Vec::new();
    while !active.is_empty() {
        let mut whole = Natural::default();
        for &place in &active {
            whole.add(&weights[place]);
        }
        // A share is given * weight / whole, and at most amount * factor, which
        // only factors that sum below 1 could exceed.
        let mut given = rest;
        if partly && whole.times(amount) < one.times(rest) {
            (given, whole) = (amount, one.clone());
        }
        shares.clear();
        shares.extend(active.iter().map(|&place| weights[place].times(given).divide(&whole)));
        sides.clear();
        // What the limits add to the shares is tokens - missing / whole.
        let (mut tokens, mut missing) = (0_i128, Natural::default());
        for (&place, (quotient, remainder)) in active.iter().zip(&shares) {
            let side = pulls[place].side(*quotient, remainder);
            sides.push(side);
            if side.is_ne() {
                moves[place] = pulls[place].limit(side);
                tokens += i128::from(moves[place]) - quotient.cast_signed();
                missing.add(remainder);
            }
        }
        let added = match u128::try_from(tokens) {
            Ok(tokens) => whole.times(tokens).cmp(&missing),
            Err(_) => Ordering::Less,
        };
        if added.is_eq() {
            round(&active, &sides, &shares, &whole, &mut moves);
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

/// Writes the shares that are within their limits to `moves`, as whole tokens
/// that sum to what they sum to, or the nearest whole number.
fn round(
    active: &[usize],
    sides: &[Ordering],
    shares: &[(u128, Natural)],
    whole: &Natural,
    moves: &mut [u64],
) {
    let mut sum = Natural::default();
    let mut rounded: Vec<(&Natural, usize)> = Vec::new();
    for ((&place, side), (quotient, remainder)) in active.iter().zip(sides).zip(shares) {
        if side.is_eq() {
            moves[place] = u64::try_from(*quotient).expect("it is within its limits");
            sum.add(remainder);
            rounded.push((remainder, place));
        }
    }
    let (mut over, half) = sum.divide(whole);
    over += u128::from(half.times(2) >= *whole);
    // The sort is stable: of equal remainders the first comes first.
    rounded.sort_by_key(|&(remainder, _)| Reverse(remainder));
    for (_, (_, place)) in (0..over).zip(rounded) {
        moves[place] += 1;
    }
}

/// A positive float: an odd number times a power of two.
#[derive(Clone, Copy)]
struct Factor {
    odd: u64,
    exponent: i64,
}

impl Factor {
    /// Returns None where it counts as 0.
    fn new(factor: f64) -> Option<Self> {
        if factor.is_nan() || factor <= 0.0 {
            return None;
        }
        let bits = factor.min(f64::MAX).to_bits();
        let (exponent, fraction) = ((bits >> 52).cast_signed(), bits & ((1 << 52) - 1));
        // Below the smallest normal float there is no hidden bit.
        let (number, exponent) =
            if exponent == 0 { (fraction, 1) } else { (fraction | 1 << 52, exponent) };
        let zeros = number.trailing_zeros();
        Some(Self { odd: number >> zeros, exponent: exponent - 1_075 + i64::from(zeros) })
    }
}

/// A natural number of any size, its lowest 64 bits first, none of the highest
/// zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Natural(Vec<u64>);

impl Natural {
    /// Returns `number` times two to the power of `bits`.
    fn shifted(number: u128, bits: u64) -> Self {
        let mut digits = vec![0; usize::try_from(bits / 64).expect("a float has 2,098 bits")];
        let (low, middle) = halves(number << (bits % 64));
        // The 64 bits that the shift may push out.
        let high = match bits % 64 {
            0 => 0,
            shift => halves(number >> (128 - shift)).0,
        };
        digits.extend([low, middle, high]);
        Self(digits).trimmed()
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    /// Returns it where it has up to 128 bits.
    fn small(&self) -> Option<u128> {
        match *self.0 {
            [] => Some(0),
            [low] => Some(u128::from(low)),
            [low, high] => Some(u128::from(high) << 64 | u128::from(low)),
            _ => None,
        }
    }

    fn bits(&self) -> u64 {
        self.0.last().map_or(0, |high| 64 * self.0.len() as u64 - u64::from(high.leading_zeros()))
    }

    /// Returns 128 of its bits, the lowest being bit `from`.
    fn window(&self, from: u64) -> u128 {
        let first = usize::try_from(from / 64).unwrap_or(usize::MAX);
        let digit = |place: usize| u128::from(self.0.get(first + place).copied().unwrap_or(0));
        let number = digit(1) << 64 | digit(0);
        match from % 64 {
            0 => number,
            shift => number >> shift | digit(2) << (128 - shift),
        }
    }

    fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut carry = false;
        for (place, digit) in self.0.iter_mut().enumerate() {
            let added = other.0.get(place).copied().unwrap_or(0);
            let (sum, first) = digit.overflowing_add(added);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*digit, carry) = (sum, first || second);
        }
        if carry {
            self.0.push(1);
        }
    }

    /// Subtracts what is no larger.
    fn subtract(mut self, other: &Self) -> Self {
        let mut carry = false;
        for (place, digit) in self.0.iter_mut().enumerate() {
            let taken = other.0.get(place).copied().unwrap_or(0);
            let (difference, first) = digit.overflowing_sub(taken);
            let (difference, second) = difference.overflowing_sub(u64::from(carry));
            (*digit, carry) = (difference, first || second);
        }
        debug_assert!(!carry);
        self.trimmed()
    }

    fn times(&self, factor: u128) -> Self {
        let mut product = vec![0; self.0.len() + 2];
        let (low, high) = halves(factor);
        for (shift, factor) in [low, high].into_iter().enumerate() {
            let mut carry = 0;
            for (place, &digit) in self.0.iter().enumerate() {
                let to = &mut product[place + shift];
                let digits = u128::from(digit) * u128::from(factor);
                (*to, carry) = halves(digits + u128::from(*to) + u128::from(carry));
            }
            product[self.0.len() + shift] = carry;
        }
        Self(product).trimmed()
    }

    /// Returns quotient and remainder. The quotient must have up to 128 bits.
    fn divide(mut self, by: &Self) -> (u128, Self) {
        if let (Some(number), Some(by)) = (self.small(), by.small()) {
            return (number / by, Self::shifted(number % by, 0));
        }
        // The quotient is estimated from the highest bits, never too high, and
        // what is left is divided again. Each time 62 bits more are right.
        let skipped = by.bits().saturating_sub(64);
        let divisor = by.window(skipped) + u128::from(skipped > 0);
        let mut quotient = 0;
        while self >= *by {
            let shift = self.bits().saturating_sub(skipped + 128);
            let part = (self.window(skipped + shift) / divisor).max(1) << shift;
            self = self.subtract(&by.times(part));
            quotient += part;
        }
        (quotient, self)
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the lower and the upper 64 bits.
#[allow(clippy::cast_possible_truncation)] // the upper half is the other one
fn halves(number: u128) -> (u64, u64) {
    (number as u64, (number >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_and_remainders_make_the_number() {
        let numbers = [1, 2, 3, 0xFFFF, u128::from(u64::MAX), 1 << 64, u128::MAX - 1, u128::MAX];
        for shift in [0, 1, 63, 64, 65, 127, 128, 130, 1_000, 2_097] {
            for (divisor, quotient) in numbers.iter().flat_map(|&n| numbers.map(|m| (n, m))) {
                let mut divisor = Natural::shifted(divisor, shift);
                for rest in [0, 1, u128::from(u64::MAX)].map(|rest| Natural::shifted(rest, 0)) {
                    divisor.add(&rest);
                    let mut number = divisor.times(quotient);
                    assert_eq!((quotient, Natural::default()), number.clone().divide(&divisor));
                    if rest < divisor {
                        number.add(&rest);
                        assert_eq!((quotient, rest), number.divide(&divisor));
                    }
                }
            }
        }
    }
}
