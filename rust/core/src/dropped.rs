//! The dropped chunks of a packing.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::corpus::Index;
use crate::outcome::{Dropped, Reason};
use crate::pipeline::{Outcome, Signal};
use crate::plan::Counting;

/// A dropped chunk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DroppedChunk {
    /// Its place in the input.
    pub index: usize,
    /// Its relevance; None under [`Ranking::Score`](crate::Ranking::Score) for a
    /// chunk without a score.
    pub score: Option<f64>,
    /// Why it was dropped.
    pub reason: Reason,
    /// Under [`Reason::Budget`], the tokens that it would have added, or fewer
    /// where counting stopped early.
    pub needed_tokens: usize,
    /// Under [`Reason::Budget`], the tokens that were left.
    pub available_tokens: usize,
    /// Under [`Reason::Duplicate`], the kept chunk with the same or nearly the
    /// same text.
    pub duplicate_of: Option<usize>,
}

/// The dropped chunks of a packing, in the order in which that was decided.
///
/// Reads like a slice of [`DroppedChunk`]. The rows are made when they are
/// first read, because that takes longer than packing for a large corpus.
/// [`len`](Self::len) does not make them.
///
/// # Examples
///
/// ```
/// use budgeteer::Packer;
///
/// let packing = Packer::new(3).pack("tea", &["Green tea.", "Rye bread."])?;
/// assert_eq!(packing.dropped.len(), 1);
/// assert_eq!(packing.dropped[0].index, 1);
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone)]
pub struct DroppedChunks {
    count: usize,
    rows: OnceLock<Vec<DroppedChunk>>,
    /// For each chunk of the input its place in the rows, or one past the last.
    places: OnceLock<Vec<usize>>,
    decided: Arc<Decided>,
}

/// The source of the rows.
struct Decided {
    outcome: Outcome,
    index: Option<Arc<Index>>,
    counting: Counting,
}

impl DroppedChunks {
    /// Returns the dropped chunks of `outcome`. There are `chunks` chunks in
    /// all, and `index` is that of the corpus, if they are one.
    pub(crate) fn new(
        outcome: Outcome,
        counting: Counting,
        index: Option<Arc<Index>>,
        chunks: usize,
    ) -> Self {
        let kept = outcome.kept().len();
        Self {
            count: chunks - kept,
            rows: OnceLock::new(),
            places: OnceLock::new(),
            decided: Arc::new(Decided { outcome, index, counting }),
        }
    }

    /// Returns the number of dropped chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the dropped chunk whose place in the input is `index`.
    pub(crate) fn of(&self, index: usize) -> Option<&DroppedChunk> {
        let places = self.places.get_or_init(|| {
            let mut places = vec![self.count; self.decided.outcome.scores().len()];
            for (place, row) in self.iter().enumerate() {
                places[row.index] = place;
            }
            places
        });
        self.get(*places.get(index)?)
    }

    /// Returns what the scores by words have besides those of the query's words.
    pub(crate) fn signals(&self) -> &[Signal] {
        self.decided.outcome.signals()
    }

    /// Returns whether no chunk was dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Decided {
    fn rows(&self) -> Vec<DroppedChunk> {
        let Self { outcome, index, counting } = self;
        let tokens = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let measures = index.as_ref().map_or(&[][..], |index| index.measures(counting));
        // Both lists are in the order of the decisions.
        let mut duplicates = outcome.duplicates().iter();
        let dropped = outcome.dropped_of(measures);
        let scores = outcome.scores();
        let row = |dropped: Dropped| DroppedChunk {
            index: dropped.index as usize,
            score: Some(scores[dropped.index as usize]).filter(|score| !score.is_nan()),
            reason: dropped.reason,
            needed_tokens: tokens(dropped.needed),
            available_tokens: tokens(dropped.available),
            duplicate_of: (dropped.reason == Reason::Duplicate)
                .then(|| duplicates.next().map(|&(_, kept)| kept as usize))
                .flatten(),
        };
        dropped.iter().map(row).collect()
    }
}

impl Deref for DroppedChunks {
    type Target = [DroppedChunk];

    fn deref(&self) -> &[DroppedChunk] {
        self.rows.get_or_init(|| self.decided.rows())
    }
}

impl PartialEq for DroppedChunks {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && **self == **other
    }
}

impl fmt::Debug for DroppedChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'a> IntoIterator for &'a DroppedChunks {
    type Item = &'a DroppedChunk;
    type IntoIter = std::slice::Iter<'a, DroppedChunk>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for DroppedChunks {
    type Item = DroppedChunk;
    type IntoIter = std::vec::IntoIter<DroppedChunk>;

    fn into_iter(self) -> Self::IntoIter {
        let Self { rows, decided, .. } = self;
        rows.into_inner().unwrap_or_else(|| decided.rows()).into_iter()
    }
}
