//! How long a text is, in tokens.

use std::sync::Arc;

use self::exact::GO_ON;
use crate::error::Error;
use crate::text::Text;
use crate::wide::with_widest;

mod blocks;
mod bpe;
pub(crate) mod cache;
#[cfg(feature = "claude")]
mod claude;
mod counter;
mod drafts;
mod early;
pub(crate) mod exact;
#[cfg(feature = "files")]
mod files;
mod joins;
pub(crate) mod joint;
mod lookup;
pub(crate) mod merges;
pub(crate) mod normal;
mod pool;
pub(crate) mod pretokenize;
mod scaled;
mod size;
#[cfg(test)]
#[allow(dead_code)] // which tests use it depends on the features
mod spread;
pub(crate) mod tokenizer;

pub use cache::CacheInfo;
#[cfg(feature = "claude")]
pub use claude::Claude;
pub use counter::Exact;
#[doc(hidden)]
pub use drafts::Drafts;
pub use scaled::{Factor, Scaled};
pub(crate) use size::Size;
pub use tokenizer::Tokenizer;

/// Counts the tokens of a text.
///
/// Every `Fn(&str) -> usize` is a counter, and so are `Arc<T>` of a counter and
/// `Box<dyn TokenCounter + Send>`. It should return the same count for the same
/// text. If it does not, a packing keeps the budget by the count that was
/// returned. A packing without text has 0 tokens, whatever a counter says of it.
///
/// # Examples
///
/// ```
/// use budgeteer::TokenCounter;
///
/// let bytes = |text: &str| text.len();
/// assert_eq!(bytes.count("four"), 4);
/// let boxed: Box<dyn TokenCounter + Send> = Box::new(bytes);
/// assert_eq!(boxed.count_till_limit("four", 3), None);
/// ```
pub trait TokenCounter: Sync {
    /// Returns the number of tokens in `text`.
    fn count(&self, text: &str) -> usize;

    /// Returns the number of tokens in `text` if it is at most `limit`, else
    /// None. A counter that can stop at the limit does so.
    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        Some(self.count(text)).filter(|&count| count <= limit)
    }

    /// Returns whether it counts what a tokenizer makes of a text. False for
    /// every estimate, and for closures and counters of the caller's own that
    /// do not say otherwise.
    fn is_exact(&self) -> bool {
        matches!(self.native(), Some(Native::Exact(exact, factor))
            if factor.is_one() && exact.tokenizer().is_exact())
    }

    /// Returns what the counts rest on. For a counter of the caller's own that
    /// follows from [`TokenCounter::is_exact`] by default.
    fn basis(&self) -> Basis {
        match self.native() {
            Some(Native::Estimate(_)) => Basis::Estimate,
            Some(Native::Exact(exact, _)) if !exact.tokenizer().is_exact() => Basis::Reconstruction,
            Some(Native::Exact(_, factor)) if !factor.is_one() => Basis::Factor,
            _ if self.is_exact() => Basis::Exact,
            _ => Basis::Callable,
        }
    }

    /// Returns a counter of the same counts that may be kept, or None where this
    /// one is only borrowed, as a closure is. A counter that can be cloned does
    /// well to return its clone: [`Section::chunks`](crate::Section::chunks)
    /// packs with it.
    fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
        Some(Arc::new(self.native()?))
    }

    /// Returns the counter of this crate that this one is, if it is one: the
    /// crate counts faster with it than by calling.
    #[doc(hidden)]
    fn native(&self) -> Option<Native> {
        None
    }
}

/// What counts rest on.
///
/// # Examples
///
/// ```
/// use budgeteer::{Basis, Estimate, TokenCounter};
///
/// assert_eq!(Estimate::Words.basis(), Basis::Estimate);
/// assert_eq!((|text: &str| text.len()).basis(), Basis::Callable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Basis {
    /// A tokenizer: its vocabulary, or a counter that says it is exact.
    Exact,
    /// A vocabulary that was measured, as nobody published it.
    Reconstruction,
    /// Bills, by which a counter was corrected.
    Learned,
    /// Another model's tokenizer, times a factor that may be 1.
    Factor,
    /// A formula.
    Estimate,
    /// A function of the caller that does not say it is exact.
    Callable,
}

/// A counter that this crate knows.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub enum Native {
    /// An estimate by a formula.
    Estimate(Estimate),
    /// An encoding, and what its counts are multiplied by.
    Exact(Exact, Factor),
}

impl TokenCounter for Native {
    fn count(&self, text: &str) -> usize {
        self.count_till_limit(text, usize::MAX).unwrap_or(usize::MAX)
    }

    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        let count = match self {
            Self::Estimate(estimate) => return estimate.count_till_limit(text, limit),
            Self::Exact(exact, factor) => factor.count(exact, text.into(), limit as u64, &GO_ON)?,
        };
        usize::try_from(count).ok()
    }

    fn native(&self) -> Option<Native> {
        Some(self.clone())
    }
}

impl<F: Fn(&str) -> usize + Sync> TokenCounter for F {
    fn count(&self, text: &str) -> usize {
        self(text)
    }
}

macro_rules! forward_counter {
    ($($kind:tt)*) => {
        $($kind)* {
            fn count(&self, text: &str) -> usize {
                (**self).count(text)
            }

            fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
                (**self).count_till_limit(text, limit)
            }

            fn is_exact(&self) -> bool {
                (**self).is_exact()
            }

            fn basis(&self) -> Basis {
                (**self).basis()
            }

            fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
                (**self).to_shared()
            }

            fn native(&self) -> Option<Native> {
                (**self).native()
            }
        }
    };
}

forward_counter!(impl<T: TokenCounter + Send + ?Sized> TokenCounter for Arc<T>);
forward_counter!(impl TokenCounter for Box<dyn TokenCounter>);
forward_counter!(impl TokenCounter for Box<dyn TokenCounter + Send>);
forward_counter!(impl TokenCounter for Box<dyn TokenCounter + Send + Sync>);

/// An estimate of tokens by a formula.
///
/// Each gives 0 for the empty text and at least 1 otherwise. Characters
/// divided by four under-counts Chinese, Japanese, Korean, emoji, code and
/// JSON two to six times.
///
/// # Examples
///
/// ```
/// use budgeteer::{Estimate, TokenCounter};
///
/// assert_eq!(Estimate::CharsDiv4.count("Hello, world"), 3);
/// assert_eq!(Estimate::Words.count("Hello, world"), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Estimate {
    /// Code points divided by four, rounded up.
    CharsDiv4,
    /// Words between whitespace.
    Words,
    /// Code points divided by that number, from 0.001 to 1,000,000, rounded up.
    CharsPerToken(f64),
}

impl TokenCounter for Estimate {
    fn count(&self, text: &str) -> usize {
        usize::try_from(self.count_text(text.into(), &mut Vec::new())).unwrap_or(usize::MAX)
    }

    fn native(&self) -> Option<Native> {
        Some(Native::Estimate(*self))
    }
}

/// Checks that a counter that is an estimate may count.
pub(crate) fn check(counter: &dyn TokenCounter) -> Result<(), Error> {
    match counter.native() {
        Some(Native::Estimate(estimate)) => estimate.check(),
        _ => Ok(()),
    }
}

impl Estimate {
    /// Checks that the ratio of a formula is from 0.001 to 1,000,000.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::CharsPerToken(ratio) if !(0.001..=1_000_000.0).contains(&ratio) => {
                Err(Error::ratio(ratio))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of tokens in `text`. `scratch` is used where the
    /// text is not ASCII.
    #[must_use]
    pub fn count_text(self, text: Text<'_>, scratch: &mut Vec<u8>) -> u64 {
        if text.is_empty() { 0 } else { self.tokens(self.measure(text, scratch)) }
    }

    /// Returns a measure that adds up when texts are joined by whitespace: code
    /// points or words.
    pub(crate) fn measure(self, text: Text<'_>, scratch: &mut Vec<u8>) -> u64 {
        match self {
            Self::Words => self.measure_folded(text.fold(scratch)),
            Self::CharsDiv4 | Self::CharsPerToken(_) => text.chars() as u64,
        }
    }

    /// Returns the measure of a folded text.
    pub(crate) fn measure_folded(self, folded: &[u8]) -> u64 {
        match self {
            Self::Words => count_words(folded),
            Self::CharsDiv4 | Self::CharsPerToken(_) => folded.len() as u64,
        }
    }

    /// Returns the tokens of a non-empty text from its measure.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // no text has 2^53 code points, and the ratio is positive
    pub(crate) fn tokens(self, measured: u64) -> u64 {
        match self {
            Self::Words => measured.max(1),
            Self::CharsDiv4 => measured.div_ceil(4),
            // At least 1 under any ratio: not every call can refuse one.
            Self::CharsPerToken(ratio) => ((measured as f64 / ratio).ceil() as u64).max(1),
        }
    }
}

/// Returns the number of words in a folded text.
///
/// A word begins at each byte that is not a space and has a space in front.
/// Sums of at most 255 fit a byte, so that the compiler counts in whole
/// vectors.
fn count_words(folded: &[u8]) -> u64 {
    with_widest!(count_starts(folded: &[u8]) -> u64)
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn count_starts(folded: &[u8]) -> u64 {
    let is_space = |byte: u8| (byte.wrapping_sub(9) < 5) | (byte.wrapping_sub(28) < 5);
    let Some(&first) = folded.first() else { return 0 };
    let mut words = u64::from(!is_space(first));
    for (before, after) in folded.chunks(255).zip(folded[1..].chunks(255)) {
        let starts = before.iter().zip(after).fold(0_u8, |starts, (&before, &after)| {
            starts + u8::from(is_space(before) & !is_space(after))
        });
        words += u64::from(starts);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_str_split() {
        for (text, words) in [
            ("", 0),
            (" ", 1),
            ("a", 1),
            (" a ", 1),
            ("a\u{1c}b\u{85}c\u{3000}d", 4),
            ("a\u{200b}b", 1),
            ("a\tb\nc\u{b}d\u{c}e\rf", 6),
        ] {
            assert_eq!(words, Estimate::Words.count(text), "{text:?}");
        }
        for length in 0..600 {
            let text = "ab  c".repeat(length)[..length].to_string();
            assert_eq!(
                text.split_whitespace().count().max(usize::from(length > 0)),
                Estimate::Words.count(&text)
            );
        }
    }

    #[test]
    #[cfg(feature = "o200k")]
    fn a_factor_is_what_a_count_rests_on() {
        let counter = |factor| match crate::Encoding::O200k.native() {
            Some(Native::Exact(exact, _)) => Native::Exact(exact, Factor::new(factor)),
            other => panic!("an encoding counts exactly: {other:?}"),
        };
        let basis = |factor| counter(factor).basis();
        assert_eq!([Basis::Exact, Basis::Factor], [basis(1.0), basis(1.5)]);
    }

    #[test]
    fn ratios_round_up() {
        for (ratio, text, tokens) in [(2.5, "abcde", 2), (2.5, "abcdef", 3), (100.0, "a", 1)] {
            assert_eq!(tokens, Estimate::CharsPerToken(ratio).count(text));
        }
        assert_eq!(0, Estimate::CharsDiv4.count(""));
        assert_eq!(2, Estimate::CharsDiv4.count("日本語日本"));
    }
}
