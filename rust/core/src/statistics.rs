//! How many chunks of a collection have each word.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::chunk::Batch;
use crate::error::Error;
use crate::stem::Stemming;
use crate::stopwords::Stopwords;
use crate::terms::{fold, for_each_term};

/// The statistics of a collection of chunks, for [`Lexical::statistics`]: how
/// many chunks and words it has, and in how many chunks each word stands.
///
/// The chunks of a call may be a few of a collection that several machines
/// hold. With its statistics a word weighs what it weighs there. Made by
/// [`Corpus::statistics`] for each part, and [merged](Statistics::merged).
///
/// [`Lexical::statistics`]: crate::Lexical::statistics
/// [`Corpus::statistics`]: crate::Corpus::statistics
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "stemming")] {
/// use std::sync::Arc;
/// use budgeteer::{Bm25, Corpus, Lexical, Packer, Statistics};
///
/// let shards = [Corpus::new(["Green tea.", "Rye."]), Corpus::new(["Tea leaves.", "A tea."])];
/// let bm25 = Bm25::default();
/// let parts: Result<Vec<_>, _> = shards.iter().map(|shard| shard.statistics(&bm25)).collect();
/// let statistics = Statistics::merged(parts?)?;
/// assert_eq!((4, 3), (statistics.chunks(), statistics.frequency("tea")));
///
/// let ranking = Lexical { statistics: Some(Arc::new(statistics)), ..Lexical::from(bm25) };
/// let packing = Packer::new(5).ranking(ranking).pack("rye tea", &["Green tea.", "Rye."])?;
/// assert_eq!(packing.text, "Rye.");
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    stemming: Option<Stemming>,
    stopwords: Stopwords,
    chunks: u64,
    words: u64,
    frequencies: HashMap<Vec<u8>, u64>,
}

impl Statistics {
    /// Returns the statistics of a collection of `chunks` with that many
    /// `words` in all, titles included; `frequencies` has each stem (each word,
    /// without stemming) that is no stopword, and how many chunks have it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if a
    /// frequency is above `chunks`.
    pub fn new(
        stemming: Option<Stemming>,
        stopwords: Stopwords,
        chunks: u64,
        words: u64,
        frequencies: impl IntoIterator<Item = (String, u64)>,
    ) -> Result<Self, Error> {
        let frequencies = frequencies.into_iter().map(|(term, count)| (term.into_bytes(), count));
        let mut found = Self { chunks, words, ..Self::none(stemming, stopwords) };
        found.frequencies = frequencies.collect();
        match found.frequencies.values().find(|&&count| count > chunks) {
            None => Ok(found),
            Some(count) => {
                let allowed = format!("at most {chunks}, the chunks");
                Err(Error::limit("a frequency", allowed, count.to_string()))
            }
        }
    }

    fn none(stemming: Option<Stemming>, stopwords: Stopwords) -> Self {
        Self { stemming, stopwords, chunks: 0, words: 0, frequencies: HashMap::new() }
    }

    /// Returns the statistics of a batch. Soon after `stop` is set it returns
    /// some that are of no use.
    #[must_use]
    pub fn of_until(
        batch: &impl Batch,
        stemming: Option<Stemming>,
        stopwords: &Stopwords,
        stop: &AtomicBool,
    ) -> Self {
        let mut found = Self::none(stemming, stopwords.clone());
        found.chunks = batch.len() as u64;
        let (mut folded, mut lowered) = (Vec::new(), Vec::new());
        // By word the number of its stem, and by that its chunks and the last of these.
        let mut known: HashMap<Vec<u8>, Option<usize>> = HashMap::new();
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut counts: Vec<(u64, usize)> = Vec::new();
        for index in 0..batch.len() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            for part in [batch.text(index), batch.title(index)] {
                fold(part, &mut folded);
                for_each_term(part, &folded, &mut lowered, |term| {
                    found.words += 1;
                    let place = known.get(term).copied().unwrap_or_else(|| {
                        let stem = || stemming.map_or(Cow::Borrowed(term), |by| by.of_term(term));
                        let place = (!stopwords.contains(term)).then(|| {
                            *places.entry(stem().into_owned()).or_insert_with(|| {
                                counts.push((0, usize::MAX));
                                counts.len() - 1
                            })
                        });
                        known.insert(term.to_vec(), place);
                        place
                    });
                    if let Some((count, last)) = place.map(|place| &mut counts[place])
                        && *last != index
                    {
                        (*count, *last) = (*count + 1, index);
                    }
                });
            }
        }
        found.frequencies =
            places.into_iter().map(|(stem, place)| (stem, counts[place].0)).collect();
        found
    }

    /// Returns the statistics of a collection from those of its parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if
    /// there is no part, or two differ in stemming or stopwords.
    pub fn merged(parts: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let mut parts = parts.into_iter();
        let mut all =
            parts.next().ok_or_else(|| Error::shape("there must be a part to merge".to_owned()))?;
        for part in parts {
            if !all.are_of(part.stemming, &part.stopwords) {
                let message = "all parts must have the same stemming and stopwords";
                return Err(Error::shape(message.to_owned()));
            }
            all.chunks = all.chunks.saturating_add(part.chunks);
            all.words = all.words.saturating_add(part.words);
            for (term, count) in part.frequencies {
                let sum = all.frequencies.entry(term).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        Ok(all)
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Returns the number of words of all chunks and titles, stopwords included.
    #[must_use]
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Returns how many chunks have a stem or, without stemming, a word.
    #[must_use]
    pub fn frequency(&self, term: &str) -> u64 {
        self.frequency_of(term.as_bytes())
    }

    /// Returns each stem and how many chunks have it, in no order.
    #[must_use]
    pub fn frequencies(&self) -> impl ExactSizeIterator<Item = (Cow<'_, str>, u64)> {
        self.frequencies.iter().map(|(term, &count)| (String::from_utf8_lossy(term), count))
    }

    /// Returns what they say of some terms.
    pub(crate) fn known(&self, terms: &[Vec<u8>]) -> Known {
        let frequencies = terms.iter().map(|term| self.frequency_of(term)).collect();
        Known { chunks: self.chunks, average: self.average(), frequencies }
    }

    pub(crate) fn frequency_of(&self, term: &[u8]) -> u64 {
        self.frequencies.get(term).copied().unwrap_or_default()
    }

    /// Returns whether they are of these words.
    pub(crate) fn are_of(&self, stemming: Option<Stemming>, stopwords: &Stopwords) -> bool {
        (self.stemming, &self.stopwords) == (stemming, stopwords)
    }

    /// Returns the mean length of a chunk in words; None if there are none.
    #[allow(clippy::cast_precision_loss)] // no collection has 2^53 words
    pub(crate) fn average(&self) -> Option<f64> {
        (self.words > 0 && self.chunks > 0).then(|| self.words as f64 / self.chunks as f64)
    }
}

/// What statistics say of some terms.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) chunks: u64,
    pub(crate) average: Option<f64>,
    pub(crate) frequencies: Vec<u64>,
}
