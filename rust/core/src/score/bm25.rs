//! BM25 over a batch.
//!
//! One pass over the texts counts the query's terms and the words. The scores
//! follow from these counts. No index is built.

use super::search::Search;
use super::{Scorer, read_all};
use crate::chunk::Batch;
use crate::error::Error;
use crate::ranking::Bm25;
use crate::scan::Tally;
use crate::statistics::{Known, Statistics};
use crate::text::Text;

/// Counts what BM25 needs, text by text, and scores the texts in the end.
#[derive(Debug)]
pub(crate) struct Bm25Scorer {
    k1: f64,
    b: f64,
    search: Search,
    tally: Tally,
    /// The tally of a part of a text.
    part: Tally,
    counted: Counted,
    /// What is known of the collection that the texts are from.
    known: Option<Known>,
}

/// What was counted in some texts.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) texts: usize,
    /// The number of words of all texts.
    words: u64,
    /// By term of the query, the number of texts that have it.
    frequencies: Vec<u64>,
    /// For each text its number of words, how many of the terms it has, and
    /// then for each of these its number and its count. Each block has some of
    /// the texts, in their order.
    blocks: Vec<Vec<u32>>,
    /// The same, for the texts behind those blocks.
    counts: Vec<u32>,
}

impl Counted {
    fn new(terms: usize) -> Self {
        Self { frequencies: vec![0; terms], ..Self::default() }
    }

    /// Adds what was counted in the texts behind these.
    fn extend(&mut self, behind: Self) {
        if self.texts == 0 {
            *self = behind;
            return;
        }
        self.texts += behind.texts;
        self.words += behind.words;
        for (frequency, more) in self.frequencies.iter_mut().zip(&behind.frequencies) {
            *frequency += more;
        }
        self.blocks.push(std::mem::take(&mut self.counts));
        self.blocks.extend(behind.blocks);
        self.counts = behind.counts;
    }
}

impl Bm25Scorer {
    /// Returns a scorer with the options of `bm25`.
    pub(crate) fn new(query: Text<'_>, bm25: &Bm25) -> Self {
        Self::of_terms(bm25.terms_of(query), bm25)
    }

    /// Does the same as [`Bm25Scorer::of_terms`], for texts from a collection
    /// that has `statistics`.
    pub(crate) fn of_collection(
        wanted: Vec<Vec<u8>>,
        bm25: &Bm25,
        statistics: Option<&Statistics>,
    ) -> Self {
        let known = statistics.map(|statistics| statistics.known(&wanted));
        Self { known, ..Self::of_terms(wanted, bm25) }
    }

    /// Returns a scorer for terms that differ, stemmed if `bm25` says so.
    pub(crate) fn of_terms(wanted: Vec<Vec<u8>>, bm25: &Bm25) -> Self {
        let terms = wanted.len();
        Self::with(Search::new(wanted, bm25), terms, bm25.k1, bm25.b)
    }

    fn with(search: Search, terms: usize, k1: f64, b: f64) -> Self {
        Self {
            k1,
            b,
            search,
            tally: Tally::new(terms),
            part: Tally::new(terms),
            counted: Counted::new(terms),
            known: None,
        }
    }

    /// Returns whether there is no term to look for.
    pub(crate) fn is_idle(&self) -> bool {
        self.counted.frequencies.is_empty()
    }

    /// Returns the number of texts read.
    pub(crate) fn texts(&self) -> usize {
        self.counted.texts
    }

    /// Returns whether a term was found since the text began.
    pub(crate) fn has_found(&self) -> bool {
        self.tally.len() > 0
    }

    /// Returns the terms in a part of a text, in ascending order.
    pub(crate) fn found_in(&mut self, part: Text<'_>) -> Vec<u32> {
        std::mem::swap(&mut self.tally, &mut self.part);
        self.count(part);
        std::mem::swap(&mut self.tally, &mut self.part);
        let mut found = Vec::with_capacity(self.part.len());
        self.part.drain(|term, _| found.push(term));
        found
    }

    /// Ends the text: what was counted is all of it.
    pub(crate) fn close(&mut self) {
        let Self { tally, counted: Counted { texts, words: all, frequencies, counts, .. }, .. } =
            self;
        *texts += 1;
        if frequencies.is_empty() {
            return;
        }
        let place = counts.len();
        let terms = u32::try_from(tally.len()).expect("a query's terms were numbered");
        counts.extend([0, terms]);
        let words = tally.drain(|term, count| {
            frequencies[term as usize] += 1;
            counts.extend([term, count]);
        });
        // More words than that only fit a text of more than eight gigabytes.
        counts[place] = u32::try_from(words).unwrap_or(u32::MAX);
        *all += u64::from(counts[place]);
    }

    /// Counts the terms and words of a part of the text. Parts end where words
    /// do.
    pub(crate) fn count(&mut self, text: Text<'_>) {
        if text.is_empty() {
            return;
        }
        self.search.count(text, &mut self.tally);
    }

    /// Returns the score of each text of a batch, with its title.
    pub(crate) fn scores_of(self, batch: &impl Batch) -> Vec<f64> {
        read_all(self, batch).scores()
    }

    /// Returns the score of each text that was read.
    ///
    /// The order of the operations is part of the result: the reference has the
    /// same.
    pub(crate) fn scores(&self) -> Vec<f64> {
        self.weighted(&self.weights())
    }

    /// Returns the score of each text that was read, with a weight for each
    /// term.
    pub(crate) fn weighted(&self, weights: &[f64]) -> Vec<f64> {
        if self.is_idle() {
            return vec![0.0; self.texts()];
        }
        let mut scores = Vec::with_capacity(self.texts());
        self.for_each(|found, norm| {
            let parts = found.iter().map(|&pair| self.part(weights, pair, norm));
            scores.push(parts.fold(0.0, |score, part| score + part));
        });
        scores
    }

    /// Returns what each term adds to the score of each text that was read.
    pub(crate) fn parts(self) -> Parts {
        let (weights, mut found, mut ends) = (self.weights(), Vec::new(), Vec::new());
        if self.is_idle() {
            ends = vec![0; self.texts()];
        }
        self.for_each(|pairs, norm| {
            found.extend(pairs.iter().map(|&pair| (pair[0], self.part(&weights, pair, norm))));
            ends.push(found.len());
        });
        Parts { weights, found, ends }
    }

    /// Returns the weight of each term.
    #[allow(clippy::cast_precision_loss)] // no batch has 2^53 texts
    pub(crate) fn weights(&self) -> Vec<f64> {
        let texts = self.counted.texts as u64;
        let texts = self.known.as_ref().map_or(texts, |known| known.chunks.max(texts));
        let terms = 0..u32::try_from(self.counted.frequencies.len()).expect("they were numbered");
        terms.map(|term| idf(texts as f64, self.frequency(term) as f64)).collect()
    }

    /// Returns how many texts have the term.
    pub(crate) fn frequency(&self, term: u32) -> u64 {
        let counted = self.counted.frequencies[term as usize];
        self.known.as_ref().map_or(counted, |known| known.frequencies[term as usize].max(counted))
    }

    /// Calls `visit` for each text, in their order, with its terms and their
    /// counts, and with the norm of its length.
    #[allow(clippy::cast_precision_loss)] // no batch has 2^53 words
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&[[u32; 2]], f64)) {
        let Self { k1, b, counted, known, .. } = self;
        let average = counted.words as f64 / counted.texts as f64;
        let average = known.as_ref().and_then(|known| known.average).unwrap_or(average);
        for mut counts in counted.blocks.iter().chain([&counted.counts]).map(Vec::as_slice) {
            while let [words, terms, rest @ ..] = counts {
                let (found, rest) = rest.split_at(2 * *terms as usize);
                let norm = match found {
                    [] => 0.0,
                    _ => k1 * ((1.0 - b) + b * (f64::from(*words) / average)),
                };
                visit(found.as_chunks::<2>().0, norm);
                counts = rest;
            }
        }
    }

    /// Returns what a term with its count adds to the score of a text.
    #[inline]
    pub(crate) fn part(&self, weights: &[f64], [term, count]: [u32; 2], norm: f64) -> f64 {
        let count = f64::from(count);
        weights[term as usize] * ((count * (self.k1 + 1.0)) / (count + norm))
    }
}

impl Scorer for Bm25Scorer {
    type Read = Counted;

    fn another(&self) -> Self {
        Self::with(self.search.another(), self.counted.frequencies.len(), self.k1, self.b)
    }

    fn read(&mut self, text: Text<'_>, title: Text<'_>) {
        if !self.is_idle() {
            self.count(text);
            self.count(title);
        }
        self.close();
    }

    fn take(&mut self) -> Counted {
        let mut none = Counted::new(self.counted.frequencies.len());
        none.counts.reserve(self.counted.counts.len());
        std::mem::replace(&mut self.counted, none)
    }

    fn extend(&mut self, behind: Counted) {
        self.counted.extend(behind);
    }
}

/// The contributions of the terms of a query to the scores of texts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// The weight of each term.
    pub(crate) weights: Vec<f64>,
    /// The terms of a text and the contribution of each, text by text.
    pub(crate) found: Vec<(u32, f64)>,
    /// Where the next text begins.
    pub(crate) ends: Vec<usize>,
}

impl Parts {
    /// Returns the terms of text `place` and their contributions to its score.
    pub(crate) fn of(&self, place: usize) -> &[(u32, f64)] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.found[start..self.ends[place]]
    }
}

/// Returns the weight of a term that `frequency` of `texts` texts have.
pub(crate) fn idf(texts: f64, frequency: f64) -> f64 {
    ln(1.0 + (texts - frequency + 0.5) / (frequency + 0.5))
}

/// Returns the natural logarithm of `x`, which must be finite and at least 1.
///
/// This is fdlibm's `__ieee754_log` without its other cases, so that every
/// platform gives the same. The reference has it too.
#[allow(clippy::many_single_char_names)] // as in the original
#[allow(clippy::unreadable_literal)] // bits
fn ln(x: f64) -> f64 {
    const LN2_HI: f64 = f64::from_bits(0x3FE62E42_FEE00000);
    const LN2_LO: f64 = f64::from_bits(0x3DEA39EF_35793C76);
    const LG: [f64; 7] = [
        f64::from_bits(0x3FE55555_55555593),
        f64::from_bits(0x3FD99999_9997FA04),
        f64::from_bits(0x3FD24924_94229359),
        f64::from_bits(0x3FCC71C5_1D8E78AF),
        f64::from_bits(0x3FC74664_96CB03DE),
        f64::from_bits(0x3FC39A09_D078C69F),
        f64::from_bits(0x3FC2F112_DF3E5244),
    ];
    let bits = x.to_bits();
    let high = (bits >> 32) as i32;
    let mut exponent = (high >> 20) - 1023;
    let high = high & 0x000F_FFFF;
    // Where the mantissa is above the square root of 2 it is halved.
    let half = (high + 0x95F64) & 0x10_0000;
    exponent += half >> 20;
    let top = (high | (half ^ 0x3FF0_0000)).cast_unsigned();
    let f = f64::from_bits(u64::from(top) << 32 | bits & 0xFFFF_FFFF) - 1.0;
    let dk = f64::from(exponent);

    if (0x000F_FFFF & (2 + high)) < 3 {
        // |f| < 2^-20
        if f == 0.0 {
            return if exponent == 0 { 0.0 } else { dk * LN2_HI + dk * LN2_LO };
        }
        let r = f * f * (0.5 - 0.3333333333333333 * f);
        return if exponent == 0 { f - r } else { dk * LN2_HI - ((r - dk * LN2_LO) - f) };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (LG[1] + w * (LG[3] + w * LG[5]));
    let t2 = z * (LG[0] + w * (LG[2] + w * (LG[4] + w * LG[6])));
    let r = t2 + t1;
    if (high - 0x6147A) | (0x6B851 - high) > 0 {
        let hfsq = 0.5 * f * f;
        if exponent == 0 {
            f - (hfsq - s * (hfsq + r))
        } else {
            dk * LN2_HI - ((hfsq - (s * (hfsq + r) + dk * LN2_LO)) - f)
        }
    } else if exponent == 0 {
        f - s * (f - r)
    } else {
        dk * LN2_HI - ((s * (f - r) - dk * LN2_LO) - f)
    }
}

/// Returns the relevance of each text with its title to `query`, by BM25 over
/// the batch. It is 0 for a text with none of the query's terms, and has no
/// upper bound.
///
/// A term of the query counts `ln(1 + (N - n + 0.5) / (n + 0.5))` times
/// `f * (k1 + 1) / (f + k1 * (1 - b + b * L / A))`. There `n` of `N` texts have
/// the term, this text has it `f` times among its `L` words, and `A` is the mean
/// number of words. Stopwords of the query are left out.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a `k1`
/// that is not from 0 to 1000000, and a `b` that is not from 0 to 1.
///
/// # Examples
///
/// ```
/// use budgeteer::{Bm25, bm25_scores};
///
/// let chunks = ["Green tea.", "Black tea, and more black tea.", "Coffee."];
/// let scores = bm25_scores("What is black tea?", &chunks, &Bm25::default())?;
/// assert!(scores[1] > scores[0] && scores[0] > scores[2]);
/// assert_eq!(scores[2], 0.0);
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn bm25_scores<D: crate::Document>(
    query: &str,
    chunks: &[D],
    bm25: &Bm25,
) -> Result<Vec<f64>, Error> {
    bm25.check()?;
    let documents = crate::chunk::Documents::new(chunks);
    Ok(batch_bm25_scores(query.into(), &documents, bm25))
}

/// Does the same as [`bm25_scores`], for any batch and options in range.
#[must_use]
pub fn batch_bm25_scores(query: Text<'_>, batch: &impl Batch, bm25: &Bm25) -> Vec<f64> {
    Bm25Scorer::new(query, bm25).scores_of(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The port is within a unit in the last place of the platform's logarithm,
    /// for all values of an inverse document frequency.
    #[test]
    fn ln_is_that_of_the_platform() {
        let mut x = 1.0 + f64::EPSILON;
        while x < 1e12 {
            let (expected, found) = (x.ln(), ln(x));
            let apart = expected.to_bits().abs_diff(found.to_bits());
            assert!(apart <= 1, "{x}: {expected} {found}");
            x = (x * 1.000_37).max(x + (x - 1.0) * 0.3);
        }
        // Beside a power of two another formula is used.
        for power in [1.0, 2.0, 1_024.0] {
            for apart in [0.0, 1e-16, 1e-10, 2e-7, 9e-7, 1e-6, -1e-16, -1e-10, -2e-7, -9e-7, -1e-6]
            {
                let x: f64 = power * (1.0 + apart);
                let (expected, found) = (x.ln(), ln(x));
                let apart = (expected - found).abs();
                assert!(apart <= expected.abs() * f64::EPSILON, "{x}: {expected} {found}");
            }
        }
        for (x, expected) in [(1.0, 0.0), (2.0, std::f64::consts::LN_2), (8.0, 8_f64.ln())] {
            assert!((ln(x) - expected).abs() <= f64::EPSILON);
        }
    }

    /// It is the reference's to the last bit: the hash is that of the reference.
    #[test]
    fn ln_is_that_of_the_reference() {
        let powers = (0..40).map(|power| 2_f64.powi(power));
        let beside = powers.flat_map(|power| {
            (-40..=40).map(move |step| power * (1.0 + f64::from(step) * 2_f64.powi(-22)))
        });
        let many = std::iter::successors(Some(1.001_5), |x| Some(x * 1.001_5)).take(20_000);
        let hash = beside.filter(|&x| x >= 1.0).chain(many).fold(0_u64, |hash, x| {
            (hash.rotate_left(5) ^ ln(x).to_bits()).wrapping_mul(0x517c_c1b7_2722_0a95)
        });
        assert_eq!(0xb73a_5a99_4811_a30c, hash);
    }
}
