//! Rankings: their options, and what they need to know of the chunks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Error;
use crate::statistics::Statistics;
use crate::stem::Stemming;
use crate::stopwords::Stopwords;
use crate::terms::for_each_term_of;
use crate::text::Text;

/// The default of [`Bm25::k1`].
pub const K1: f64 = 1.2;

/// The default of [`Bm25::b`].
pub const B: f64 = 0.75;

/// The default of [`Lexical::k3`].
pub const K3: f64 = 3.0;

/// The largest weight or parameter, so that no score is infinite.
const LARGEST: f64 = 1_000_000.0;

/// The ranking of chunks. Ties keep the input order.
///
/// Each is the short form of a [`RankBy`] with default options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ranking {
    /// BM25 with headings, links and feedback; [`Lexical`] has its options.
    /// The default.
    #[default]
    Lexical,
    /// The relevance of a chunk with its title to the query, by
    /// [BM25](crate::bm25_scores) over the batch; [`Bm25`] has its options.
    Bm25,
    /// The share of the query's keywords that a chunk or its title contains.
    Keyword,
    /// The time of the last change, newest first.
    Recency,
    /// The input order.
    Input,
    /// The chunk's own score; chunks without one come last.
    Score,
    /// The [cosine](crate::cosine_scores) between the vector of a chunk and
    /// that of the query.
    Embedding,
    /// Several of these scores mixed into one; [`Hybrid`] has its options.
    Hybrid,
}

/// A ranking with its options, for [`Packer::ranking`](crate::Packer::ranking).
/// Made from a [`Ranking`], a [`Lexical`], a [`Bm25`] or a [`Hybrid`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RankBy {
    /// [`Ranking::Lexical`], or [`Ranking::Bm25`], which has none of its
    /// further signals.
    Lexical(Lexical),
    /// [`Ranking::Keyword`].
    Keyword,
    /// [`Ranking::Recency`].
    Recency,
    /// [`Ranking::Input`].
    Input,
    /// [`Ranking::Score`].
    Score,
    /// [`Ranking::Embedding`].
    Embedding,
    /// [`Ranking::Hybrid`].
    Hybrid(Hybrid),
}

impl Default for RankBy {
    fn default() -> Self {
        Ranking::default().into()
    }
}

impl From<Ranking> for RankBy {
    fn from(ranking: Ranking) -> Self {
        match ranking {
            Ranking::Lexical => Lexical::default().into(),
            Ranking::Bm25 => Bm25::default().into(),
            Ranking::Keyword => Self::Keyword,
            Ranking::Recency => Self::Recency,
            Ranking::Input => Self::Input,
            Ranking::Score => Self::Score,
            Ranking::Embedding => Self::Embedding,
            Ranking::Hybrid => Self::Hybrid(Hybrid::default()),
        }
    }
}

impl From<Bm25> for RankBy {
    fn from(bm25: Bm25) -> Self {
        Lexical::from(bm25).into()
    }
}

impl From<Lexical> for RankBy {
    fn from(lexical: Lexical) -> Self {
        Self::Lexical(lexical)
    }
}

impl From<Hybrid> for RankBy {
    fn from(hybrid: Hybrid) -> Self {
        Self::Hybrid(hybrid)
    }
}

impl RankBy {
    /// Returns the needs of this ranking. All code that reads chunks, asks for
    /// vectors or sorts goes by this table.
    #[must_use]
    pub fn needs(&self) -> Needs<'_> {
        let (words, has_vectors, own, sorting) = match self {
            Self::Lexical(lexical) => (Words::Terms(lexical), false, None, SortKey::Score),
            Self::Keyword => (Words::Keywords, false, None, SortKey::Score),
            Self::Recency => (Words::Keywords, false, Some(Own::Mtime), SortKey::Own),
            Self::Input => (Words::Keywords, false, None, SortKey::Place),
            Self::Score => (Words::None, false, Some(Own::Score), SortKey::Score),
            Self::Embedding => (Words::None, true, None, SortKey::Score),
            Self::Hybrid(Hybrid { weights, bm25, .. }) => {
                let words = if weights.bm25 > 0.0 { Words::Terms(bm25) } else { Words::None };
                let own = (weights.score > 0.0).then_some(Own::Score);
                (words, weights.embedding > 0.0, own, SortKey::Score)
            }
        };
        Needs { words, has_titles: words != Words::None, has_vectors, own, sorting }
    }

    /// Returns the options of a ranking by words for uses beside the ranking:
    /// its own, else those of the default [`Bm25`].
    pub(crate) fn lexical(&self) -> Cow<'_, Lexical> {
        match self {
            Self::Lexical(lexical) | Self::Hybrid(Hybrid { bm25: lexical, .. }) => {
                Cow::Borrowed(lexical)
            }
            _ => Cow::Owned(Bm25::default().into()),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Lexical(lexical) => lexical.check(),
            Self::Hybrid(hybrid) => hybrid.check(),
            _ => Ok(()),
        }
    }
}

/// The needs of a ranking: what it must know of the chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs<'a> {
    /// What to look for in each text. If that is nothing, the scores are the
    /// keys of the call, or are made of them.
    pub words: Words<'a>,
    /// Whether titles are read with the texts.
    pub has_titles: bool,
    /// Whether vectors are needed: the cosines are keys of the call.
    pub has_vectors: bool,
    /// The property of chunks that is a key of the call, behind the cosines.
    pub own: Option<Own>,
    /// The keys by which chunks are sorted.
    pub sorting: SortKey,
}

/// What a ranking looks for in texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Words<'a> {
    /// Nothing.
    None,
    /// The keywords of the query.
    Keywords,
    /// The terms of the query, and what else the ranking takes from them.
    Terms(&'a Lexical),
}

/// A property of a chunk that is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// The score.
    Score,
    /// The time of the last change.
    Mtime,
}

/// The keys by which chunks are sorted, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// None: the input order.
    Place,
    /// The scores.
    Score,
    /// The chunks' own keys, which are not the scores.
    Own,
}

/// BM25 and its options.
///
/// # Examples
///
/// ```
/// use budgeteer::{Bm25, Packer, Stopwords};
///
/// let bm25 = Bm25 { stopwords: Stopwords::none(), b: 0.0, ..Bm25::default() };
/// let packing = Packer::new(5).ranking(bm25).pack("the", &["Rye bread.", "The tea."])?;
/// assert_eq!(packing.kept[0].index, 1);
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bm25 {
    /// The stemming, if any: forms of a word count as one term. None by
    /// default.
    pub stemming: Option<Stemming>,
    /// The stopwords, which match nothing, in queries and in texts; the English
    /// ones by default.
    pub stopwords: Stopwords,
    /// How soon repetitions of a term stop counting, from 0, where one
    /// occurrence is enough, to 1000000.
    pub k1: f64,
    /// How much the length of a text counts, from 0 to 1.
    pub b: f64,
}

impl Default for Bm25 {
    fn default() -> Self {
        Self { stemming: None, stopwords: Stopwords::default(), k1: K1, b: B }
    }
}

impl Bm25 {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(0.0..=LARGEST).contains(&self.k1) {
            return Err(Error::limit("k1", "from 0 to 1000000", self.k1.to_string()));
        }
        if !(0.0..=1.0).contains(&self.b) {
            return Err(Error::limit("b", "from 0 to 1", self.b.to_string()));
        }
        Ok(())
    }

    /// Returns the terms of `query`, stemmed, each once, in order of first
    /// occurrence, encoded as in [`Text::Utf8`].
    pub(crate) fn terms_of(&self, query: Text<'_>) -> Vec<Vec<u8>> {
        self.counted_terms_of(query).into_iter().map(|(term, _)| term).collect()
    }

    /// Does the same as [`Bm25::terms_of`], with the number of occurrences.
    pub(crate) fn counted_terms_of(&self, query: Text<'_>) -> Vec<(Vec<u8>, u32)> {
        let (mut places, mut found) = (HashMap::new(), Vec::new());
        for_each_term_of(query, |term| {
            let Some(stem) = self.stem_of(term) else { return };
            let place = *places.entry(stem.to_vec()).or_insert(found.len());
            if place == found.len() {
                found.push((stem.into_owned(), 0));
            }
            found[place].1 += 1;
        });
        found
    }

    /// Returns the stem of a term; None for a stopword.
    pub(crate) fn stem_of<'t>(&self, term: &'t [u8]) -> Option<Cow<'t, [u8]>> {
        if self.stopwords.contains(term) {
            return None;
        }
        Some(self.stemming.map_or(Cow::Borrowed(term), |stemming| stemming.of_term(term)))
    }
}

/// BM25 with three more signals: headings, links and feedback.
///
/// A chunk whose heading (its title, else its short first line) has words of
/// the query scores more. A chunk whose heading stands word for word in one of
/// the three best chunks gets a fifth of that one's score. The ten words that
/// stand out most in the best chunk count up to a fifth, as if the query had
/// them. No model is asked.
///
/// # Examples
///
/// ```
/// use budgeteer::{Chunk, Lexical, Packer};
///
/// let chunks = [
///     Chunk::new("It rains in spring.").title("Weather"),
///     Chunk::new("It is in Lyon.").title("The Blue Library"),
///     Chunk::new("Ada Byron gave her books to the Blue Library, not to The Blue Library Cafe."),
/// ];
/// let packing = Packer::new(40).ranking(Lexical::default()).pack("Ada's books", &chunks)?;
/// assert_eq!(packing.kept[1].index, 1);
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lexical {
    /// Words, stems and lengths. By default with English stems; with none where
    /// the feature `stemming` is off.
    pub bm25: Bm25,
    /// How soon repetitions of a word in the query stop counting, from 0,
    /// where one occurrence is enough, to 1000000.
    pub k3: f64,
    /// Whether headings with words of the query count more.
    pub headings: bool,
    /// Whether the best chunks raise those whose headings they name.
    pub links: bool,
    /// Whether words of the best chunk count.
    pub feedback: bool,
    /// Those of the collection that the chunks of a call are from, which must
    /// have the stemming and stopwords of `bm25`: words weigh, and texts are
    /// long, by these. A word that more chunks of the call have counts as in so
    /// many. None, the default, takes all from the chunks of the call.
    pub statistics: Option<Arc<Statistics>>,
}

impl Default for Lexical {
    fn default() -> Self {
        let bm25 = Bm25 { stemming: Stemming::of("english"), ..Bm25::default() };
        Self { bm25, k3: K3, headings: true, links: true, feedback: true, statistics: None }
    }
}

impl From<Bm25> for Lexical {
    /// Returns BM25 without any further signal.
    fn from(bm25: Bm25) -> Self {
        Self { bm25, k3: 0.0, headings: false, links: false, feedback: false, statistics: None }
    }
}

impl Lexical {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(0.0..=LARGEST).contains(&self.k3) {
            return Err(Error::limit("k3", "from 0 to 1000000", self.k3.to_string()));
        }
        let Bm25 { stemming, stopwords, .. } = &self.bm25;
        let fits = |known: &Arc<Statistics>| known.are_of(*stemming, stopwords);
        if !self.statistics.as_ref().is_none_or(fits) {
            let message = "statistics must have the stemming and the stopwords of the ranking";
            return Err(Error::shape(message.to_owned()));
        }
        self.bm25.check()
    }
}

/// A mixture of several scores, with their weights.
///
/// # Examples
///
/// ```
/// use budgeteer::{Chunk, Hybrid, Packer, Weights};
///
/// let chunks = [Chunk::new("Green tea.").score(0.2), Chunk::new("Coffee.").score(0.9)];
/// let weights = Weights { bm25: 0.7, embedding: 0.0, score: 0.3 };
/// let packer = Packer::new(100).ranking(Hybrid { weights, ..Hybrid::default() });
/// let packing = packer.pack("tea", &chunks)?;
/// assert_eq!(packing.kept[0].score, Some(0.7));
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Hybrid {
    /// The weight of each score.
    pub weights: Weights,
    /// How scores of different scales are made comparable.
    pub fusion: Fusion,
    /// The options of the score by words: a [`Bm25`] without further signals
    /// by default. Others are an error where that score has no weight.
    pub bm25: Lexical,
}

impl Default for Hybrid {
    fn default() -> Self {
        let bm25 = Bm25::default().into();
        Self { weights: Weights::default(), fusion: Fusion::default(), bm25 }
    }
}

impl Hybrid {
    /// Returns the reciprocal rank fusion of Cormack, Clarke and Büttcher, of
    /// BM25 and the cosine: k is 60, and both weights are 1.
    #[must_use]
    pub fn reciprocal_rank() -> Self {
        let weights = Weights { bm25: 1.0, embedding: 1.0, score: 0.0 };
        Self { weights, fusion: Fusion::ReciprocalRank { k: 60.0 }, ..Self::default() }
    }

    fn check(&self) -> Result<(), Error> {
        let Weights { bm25, embedding, score } = self.weights;
        let mut numbers = vec![
            ("weights.bm25", bm25),
            ("weights.embedding", embedding),
            ("weights.score", score),
        ];
        if let Fusion::ReciprocalRank { k } = self.fusion {
            numbers.push(("k", k));
        }
        for (name, value) in numbers {
            if !(0.0..=LARGEST).contains(&value) {
                return Err(Error::limit(name, "from 0 to 1000000", value.to_string()));
            }
        }
        if bm25 == 0.0 && embedding == 0.0 && score == 0.0 {
            return Err(Error::shape("a hybrid ranking must weigh something".to_owned()));
        }
        if bm25 == 0.0 && self.bm25 != Bm25::default().into() {
            let message = "bm25 must be Bm25::default() where weights.bm25 is 0";
            return Err(Error::shape(message.to_owned()));
        }
        self.bm25.check()
    }
}

/// The weights of the scores of a [`Hybrid`], each from 0 to 1000000. A score
/// of weight 0 is not asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// The weight of the score by words.
    pub bm25: f64,
    /// The weight of the [cosine](crate::cosine_scores); above 0, vectors are
    /// needed.
    pub embedding: f64,
    /// The weight of the chunk's own score.
    pub score: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { bm25: 0.5, embedding: 0.5, score: 0.0 }
    }
}

/// How scores of different scales are made comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Fusion {
    /// From 0 for the lowest of the batch to 1 for the highest; 0 for all if
    /// they are equal, and for a chunk without that score. The default.
    #[default]
    MinMax,
    /// `1 / (k + r)` for the chunk in place r, from 1 on, by descending score
    /// and then by input order; 0 for a chunk without that score.
    ReciprocalRank {
        /// How little the first places stand out, from 0 to 1000000.
        k: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each ranking reads and asks for what is documented, and nothing else.
    #[test]
    fn the_table_of_needs() {
        let (lexical, bm25) = (Lexical::default(), Bm25::default().into());
        let (terms, keywords, none) = (Words::Terms(&bm25), Words::Keywords, Words::None);
        let table = [
            (Ranking::Lexical, (Words::Terms(&lexical), false, None, SortKey::Score)),
            (Ranking::Bm25, (terms, false, None, SortKey::Score)),
            (Ranking::Keyword, (keywords, false, None, SortKey::Score)),
            (Ranking::Recency, (keywords, false, Some(Own::Mtime), SortKey::Own)),
            (Ranking::Input, (keywords, false, None, SortKey::Place)),
            (Ranking::Score, (none, false, Some(Own::Score), SortKey::Score)),
            (Ranking::Embedding, (none, true, None, SortKey::Score)),
            (Ranking::Hybrid, (terms, true, None, SortKey::Score)),
        ];
        for (ranking, (words, has_vectors, own, sorting)) in table {
            let has_titles = words != Words::None;
            let expected = Needs { words, has_titles, has_vectors, own, sorting };
            assert_eq!(expected, RankBy::from(ranking).needs(), "{ranking:?}");
        }
    }

    /// A hybrid ranking needs the scores with a weight, and no others.
    #[test]
    fn a_hybrid_needs_what_it_weighs() {
        for mask in 1..8_u8 {
            let weigh = |bit: u8| if mask & bit == 0 { 0.0 } else { 2.0 };
            let weights = Weights { bm25: weigh(1), embedding: weigh(2), score: weigh(4) };
            let by = RankBy::from(Hybrid { weights, ..Hybrid::default() });
            let needs = by.needs();
            assert_eq!(mask & 1 != 0, needs.words != Words::None);
            assert_eq!(mask & 1 != 0, needs.has_titles);
            assert_eq!(mask & 2 != 0, needs.has_vectors);
            assert_eq!((mask & 4 != 0).then_some(Own::Score), needs.own);
            assert!(by.check().is_ok());
        }
    }
}
