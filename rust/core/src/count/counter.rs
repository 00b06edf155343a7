//! Exact counting, with the cache of whole texts.

use std::sync::atomic::{AtomicBool, Ordering};

use budgeteer_vocab::Encoding;

use super::cache::{self, CacheInfo, Known};
use super::exact::{GO_ON, count_text};
use super::tokenizer::{Model, Tokenizer};
use super::{Factor, Native, TokenCounter};
use crate::chunk::Batch;
use crate::text::Text;
use crate::threads::{extra, share};

/// Counts exactly as an encoding does.
///
/// For every text the count is that of the maker's tokenizer, or that of the
/// reconstruction. The names of special tokens count as plain text.
///
/// Counts of whole texts are cached for the process, unless
/// [`Exact::without_cache`] says otherwise: a text that was counted before is
/// only hashed. For each encoding or file the cache takes at most 32 MiB, or
/// those that `BUDGETEER_COUNT_CACHE_MB` says when it is first used; 0 keeps
/// nothing.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::{Encoding, Exact, TokenCounter};
///
/// let counter = Exact::new(Encoding::O200k);
/// assert_eq!(counter.count("Hello, world!"), 4);
/// assert_eq!(counter.count_till_limit("Hello, world!", 3), None);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    tokenizer: Tokenizer,
    remembers: bool,
}

/// From this many code points on, texts are counted by several threads: a few
/// milliseconds' work.
const PARALLEL_CHARS: usize = 2_000_000;

/// A text is long if it has more bytes or code points than this for each token
/// of the limit.
const LONG: u64 = 64;

/// The number of texts that a thread takes at a time.
const BLOCK: usize = 32;

impl Exact {
    /// Returns the counter of an encoding or of a [`Tokenizer`].
    #[must_use]
    pub fn new(tokenizer: impl Into<Tokenizer>) -> Self {
        Self { tokenizer: tokenizer.into(), remembers: true }
    }

    /// Returns the counter without the cache: it neither reads it nor adds to
    /// it.
    #[must_use]
    pub fn without_cache(&self) -> Self {
        Self { remembers: false, ..self.clone() }
    }

    /// Returns the tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the figures of the tokenizer's cache.
    #[must_use]
    pub fn cache_info(&self) -> CacheInfo {
        self.model().cache.info()
    }

    /// Empties the tokenizer's cache.
    pub fn clear_cache(&self) {
        self.model().cache.clear();
    }

    #[inline]
    pub(crate) fn model(&self) -> &Model {
        self.tokenizer.model()
    }

    /// Returns the number of tokens of `text` if it is at most `limit`, else
    /// None. The result means nothing once `stop` is set.
    #[must_use]
    pub fn count_text(&self, text: Text<'_>, limit: u64, stop: &AtomicBool) -> Option<u64> {
        // Hashing all of a long text costs more than counting its start.
        let is_long = text.units() as u64 / LONG > limit;
        let model = self.model();
        if !self.remembers || is_long || !model.cache.keeps() {
            return count_text(model, text, limit, stop);
        }
        let hash = cache::hash(text);
        let known = model.cache.get(hash, limit);
        let to = match known {
            Some(Known::Count(count)) => return (count <= limit).then_some(count),
            Some(Known::MoreThan(least)) if least >= limit => return None,
            // A text that is asked for again and again is counted to its end
            // once.
            Some(Known::MoreThan(_)) => u64::MAX,
            None => limit,
        };
        let count = count_text(model, text, to, stop);
        if !stop.load(Ordering::Relaxed) {
            model.cache.insert(hash, count.map_or(Known::MoreThan(limit), Known::Count));
        }
        count.filter(|&count| count <= limit)
    }

    /// Returns the number of tokens of each text of `indices`. The result means
    /// nothing once `stop` is set.
    ///
    /// Large batches are shared among threads: in the whole process at most
    /// `BUDGETEER_NUM_THREADS`, or the number of processors.
    #[must_use]
    pub fn count_batch<B: Batch>(&self, batch: &B, indices: &[u32], stop: &AtomicBool) -> Vec<u64> {
        let count = |index: u32| {
            let text = batch.text(index as usize);
            self.count_text(text, u64::MAX, stop).unwrap_or(u64::MAX)
        };
        let chars: usize = indices.iter().map(|&index| batch.text(index as usize).chars()).sum();
        let blocks = indices.len().div_ceil(BLOCK);
        let extra = extra((chars / PARALLEL_CHARS).min(blocks));
        let mut workers = vec![(); 1 + extra.count()];
        let blocks = share(&mut workers, indices.chunks(BLOCK), stop, |(), indices| {
            indices.iter().copied().map(count).collect::<Vec<_>>()
        });
        let mut counts = blocks.concat();
        counts.resize(indices.len(), 0);
        counts
    }
}

impl<T: Into<Tokenizer>> From<T> for Exact {
    fn from(tokenizer: T) -> Self {
        Self::new(tokenizer)
    }
}

impl TokenCounter for Exact {
    fn count(&self, text: &str) -> usize {
        self.count_till_limit(text, usize::MAX).unwrap_or(usize::MAX)
    }

    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        let count = self.count_text(text.into(), limit as u64, &GO_ON)?;
        usize::try_from(count).ok()
    }

    fn native(&self) -> Option<Native> {
        Some(Native::Exact(self.clone(), Factor::ONE))
    }
}

macro_rules! count_exactly {
    ($kind:ty) => {
        impl TokenCounter for $kind {
            fn count(&self, text: &str) -> usize {
                Exact::new(self.clone()).count(text)
            }

            fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
                Exact::new(self.clone()).count_till_limit(text, limit)
            }

            fn native(&self) -> Option<Native> {
                Exact::new(self.clone()).native()
            }
        }
    };
}

count_exactly!(Encoding);
count_exactly!(Tokenizer);
#[cfg(feature = "claude")]
count_exactly!(super::claude::Claude);

#[cfg(all(test, feature = "o200k"))]
mod tests {
    use super::*;

    /// A counter without the cache does not add to it; nor does a text that is long
    /// for its limit.
    #[test]
    fn some_counts_are_not_remembered() {
        let text = "A text that is counted in this test alone. ".repeat(6);
        let (text, limit) = (text.as_str(), text.len() as u64 / LONG);
        let counter = Exact::new(Encoding::O200k);
        let known = || counter.model().cache.peek(cache::hash(text.into()));
        assert!(counter.without_cache().count(text) > 30);
        assert_eq!(None, counter.count_text(text.into(), limit - 1, &GO_ON));
        assert_eq!(None, known());
        assert_eq!(None, counter.count_text(text.into(), limit, &GO_ON));
        assert_eq!(Some(Known::MoreThan(limit)), known());
    }

    /// That a text has more than some tokens is remembered. Asked for more, it
    /// is counted to its end, once.
    #[test]
    fn more_than_a_limit_is_remembered() {
        let text = "A text that no other test counts. ".repeat(20);
        let text = text.as_str();
        let counter = Exact::new(Encoding::O200k);
        let count = counter.without_cache().count(text);
        assert!(count > 30);
        let known = || counter.model().cache.peek(cache::hash(text.into()));

        assert_eq!(None, counter.count_till_limit(text, 20));
        assert_eq!(Some(Known::MoreThan(20)), known());
        assert_eq!(None, counter.count_till_limit(text, 20));
        assert_eq!(None, counter.count_till_limit(text, 15));
        assert_eq!(Some(Known::MoreThan(20)), known());

        assert_eq!(None, counter.count_till_limit(text, 21));
        assert_eq!(Some(Known::Count(count as u64)), known());
        assert_eq!(None, counter.count_till_limit(text, 15));
        assert_eq!(Some(Known::Count(count as u64)), known());
        assert_eq!(count, counter.count(text));
    }
}
