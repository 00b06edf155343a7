//! Corpora: an index that is built once and used for many queries.
//!
//! The index holds figures of each chunk, and for each term the chunks that
//! have it in their text or heading. It never changes: extending it makes another index, which shares
//! the common part. Texts are not part of it; the caller of a query has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::chunk::Batch;
use crate::count::Exact;
use crate::mapped::Mapped;
use crate::plan::Counting;

mod block;
pub(crate) mod bounds;
mod cursor;
pub(crate) mod documents;
pub(crate) mod file;
pub(crate) mod found;
mod list;
mod norms;
pub(crate) mod overlap;
pub(crate) mod part;
pub(crate) mod postings;
pub(crate) mod query;
pub(crate) mod record;
pub(crate) mod saved;
pub(crate) mod storage;
pub(crate) mod sums;
mod writer;

use bounds::{AllBounds, Bounds};
use part::{Builder, Part};

/// From how many chunks on a part is large: for fewer, the first query finds in
/// some milliseconds what it needs beside the lists.
const LARGE: u32 = 10_000;

/// The figures of each chunk.
#[derive(Clone, Debug, Default)]
struct Columns {
    /// Lower bounds of the exact counts, by tokenizer.
    bounds: AllBounds,
    /// The places where a token starts in any case.
    starts: Vec<u32>,
    chars: Vec<u32>,
    /// Words between whitespace.
    words: Vec<u32>,
    /// The number of terms, with those of the title: the length in BM25.
    lengths: Vec<u32>,
    prints: Vec<u32>,
}

impl Columns {
    /// Adds the figures of the next chunk.
    fn push(&mut self, figures: &Figures) {
        self.starts.push(figures.starts);
        self.chars.push(figures.chars);
        self.words.push(figures.words);
        self.lengths.push(figures.length);
        self.prints.push(figures.print);
    }

    /// Puts the figures of another text in the place of chunk `at`.
    fn replace(&mut self, at: usize, figures: &Figures) {
        self.bounds.forget(at, figures.starts, figures.chars);
        self.starts[at] = figures.starts;
        self.chars[at] = figures.chars;
        self.words[at] = figures.words;
        self.lengths[at] = figures.length;
        self.prints[at] = figures.print;
    }

    /// Returns the figures of the chunks that are not `gone`.
    fn without(&self, gone: &[bool]) -> Self {
        let rest = |numbers: &[u32]| kept(numbers.iter().copied(), gone).collect();
        let bounds = |bounds: &Bounds| Bounds::of_stored(kept(bounds.stored(), gone));
        Self {
            bounds: self.bounds.map(bounds),
            starts: rest(&self.starts),
            chars: rest(&self.chars),
            words: rest(&self.words),
            lengths: rest(&self.lengths),
            prints: rest(&self.prints),
        }
    }
}

/// Returns the items that are not `gone`.
fn kept<T>(items: impl Iterator<Item = T>, gone: &[bool]) -> impl Iterator<Item = T> {
    items.zip(gone).filter_map(|(item, is_gone)| (!is_gone).then_some(item))
}

/// The figures of a chunk.
#[derive(Debug)]
struct Figures {
    starts: u32,
    chars: u32,
    words: u32,
    length: u32,
    print: u32,
}

/// Reads chunks for their figures and for postings.
#[derive(Debug)]
struct Reader {
    builder: Builder,
    folded: Vec<u8>,
}

impl Reader {
    /// Returns a reader whose first chunk will be `first`.
    fn new(first: u32) -> Self {
        Self { builder: Builder::new(first), folded: Vec::new() }
    }

    /// Adds chunk `at` to the postings, and returns its figures.
    fn read(&mut self, batch: &impl Batch, at: usize) -> Figures {
        let text = batch.text(at);
        let length = self.builder.add(text, batch.title(at));
        let words = crate::count::Estimate::Words.measure(text, &mut self.folded);
        Figures {
            starts: capped(text.starts()),
            chars: capped(text.chars()),
            words: u32::try_from(words).unwrap_or(u32::MAX),
            length,
            print: text.fingerprint(),
        }
    }
}

/// An index of the chunks of a corpus.
///
/// # Examples
///
/// ```
/// use budgeteer::{Documents, Index};
///
/// let index = Index::new(&Documents::new(&["Green tea.", "Black tea."]));
/// assert_eq!(index.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Index {
    columns: Columns,
    total_chars: usize,
    total_length: u64,
    /// The length of the longest chunk.
    longest: u32,
    /// In the order of the chunks that they cover, without a gap.
    parts: Vec<Arc<Part>>,
    /// The file that it was opened from.
    file: Option<Arc<Mapped>>,
}

impl Index {
    /// Returns the index of a batch.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    #[must_use]
    pub fn new(batch: &impl Batch) -> Self {
        Self::default().extended(batch)
    }

    /// Returns an index that also covers the chunks of `batch` behind those
    /// that this one covers.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    #[must_use]
    pub fn extended(&self, batch: &impl Batch) -> Self {
        self.extended_until(batch, &AtomicBool::new(false))
    }

    /// Returns the result of [`Index::extended`]. Soon after `stop` is set it
    /// returns an index that is of no use.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    #[must_use]
    pub fn extended_until(&self, batch: &impl Batch, stop: &AtomicBool) -> Self {
        let count = u32::try_from(batch.len()).expect("no corpus has 2^32 chunks");
        let mut index = self.clone();
        let first = u32::try_from(self.len()).expect("no corpus has 2^32 chunks");
        if first >= count {
            return index;
        }
        let mut reader = Reader::new(first);
        for at in first as usize..batch.len() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            batch.prefetch(at + 1);
            let figures = reader.read(batch, at);
            index.columns.push(&figures);
        }
        index.parts.push(Arc::new(reader.builder.finish(&index.columns.lengths)));
        index.merge();
        index.prepare(stop);
        index.with_totals()
    }

    /// Returns the index of the chunks that are not `gone`: the same as a new
    /// one of them. No text is read, but the postings are written anew where
    /// they have such a chunk.
    ///
    /// # Panics
    ///
    /// When `gone` does not say it of each chunk.
    #[must_use]
    pub fn without(&self, gone: &[bool]) -> Self {
        self.without_until(gone, &AtomicBool::new(false))
    }

    /// Returns the result of [`Index::without`]. Soon after `stop` is set it
    /// returns an index that is of no use.
    ///
    /// # Panics
    ///
    /// When `gone` does not say it of each chunk.
    #[must_use]
    pub fn without_until(&self, gone: &[bool], stop: &AtomicBool) -> Self {
        assert_eq!(self.len(), gone.len(), "each chunk is gone or not");
        let mut places = Vec::with_capacity(gone.len());
        let mut next = 0;
        for is_gone in gone {
            places.push((!is_gone).then_some(next));
            next += u32::from(!is_gone);
        }
        let place = |chunk: u32| places.get(chunk as usize).copied().flatten();
        let columns = self.columns.without(gone);
        let mut parts = Vec::with_capacity(self.parts.len());
        let mut first = 0;
        for part in &self.parts {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let left = gone[part.range()].iter().map(|is_gone| u32::from(!is_gone)).sum();
            if left == part.chunks() && first == part.first() {
                parts.push(Arc::clone(part));
            } else if left == part.chunks() {
                parts.push(Arc::new(part.moved(first)));
            } else if left > 0 {
                parts.push(Arc::new(part.rearranged(first, left, place, None, &columns.lengths)));
            }
            first += left;
        }
        let file = self.file.clone();
        let index = Self { columns, parts, file, ..Self::default() };
        index.prepare(stop);
        index.with_totals()
    }

    /// Returns the index of `batch`, which differs at `places` only, ascending,
    /// from what this index covers: the same as a new one. The postings are
    /// written anew where they have such a chunk.
    ///
    /// # Panics
    ///
    /// When a place is not below the number of chunks.
    #[must_use]
    pub fn replaced(&self, places: &[usize], batch: &impl Batch) -> Self {
        self.replaced_until(places, batch, &AtomicBool::new(false))
    }

    /// Returns the result of [`Index::replaced`]. Soon after `stop` is set it
    /// returns an index that is of no use.
    ///
    /// # Panics
    ///
    /// When a place is not below the number of chunks.
    #[must_use]
    pub fn replaced_until(&self, places: &[usize], batch: &impl Batch, stop: &AtomicBool) -> Self {
        let mut index = self.clone();
        let mut is_new = vec![false; self.len()];
        for &at in places {
            is_new[at] = true;
        }
        let place =
            |chunk: u32| (!is_new.get(chunk as usize).copied().unwrap_or(true)).then_some(chunk);
        let mut places = places;
        for part in &mut index.parts {
            let here = places.partition_point(|&at| at < part.range().end);
            let (inside, behind) = places.split_at(here);
            places = behind;
            if inside.is_empty() {
                continue;
            }
            let mut reader = Reader::new(part.first());
            for &at in inside {
                if stop.load(Ordering::Relaxed) {
                    return index;
                }
                reader.builder.pass_to(u32::try_from(at).expect("no corpus has 2^32 chunks"));
                index.columns.replace(at, &reader.read(batch, at));
            }
            let lengths = &index.columns.lengths;
            let new = reader.builder.finish(lengths);
            let (first, chunks) = (part.first(), part.chunks());
            *part = Arc::new(part.rearranged(first, chunks, place, Some(&new), lengths));
        }
        index.prepare(stop);
        index.with_totals()
    }

    /// Finds for large parts what the first query would have to wait for. That
    /// adds a fortieth to building them.
    fn prepare(&self, stop: &AtomicBool) {
        for part in self.parts.iter().filter(|part| part.chunks() >= LARGE) {
            if !stop.load(Ordering::Relaxed) {
                part.prepared();
            }
        }
    }

    /// Returns the index with the sums of its columns.
    fn with_totals(mut self) -> Self {
        self.total_chars = self.columns.chars.iter().map(|&chars| chars as usize).sum();
        self.total_length = self.columns.lengths.iter().map(|&length| u64::from(length)).sum();
        self.longest = self.columns.lengths.iter().copied().max().unwrap_or(0);
        self
    }

    /// Merges the last two postings while the first of them is less than twice
    /// as long. Thus many small additions leave few lists to read.
    fn merge(&mut self) {
        while let [.., before, last] = self.parts.as_slice() {
            if before.chunks() / 2 >= last.chunks() {
                break;
            }
            let merged = Arc::new(Part::merged(before, last, &self.columns.lengths));
            self.parts.truncate(self.parts.len() - 2);
            self.parts.push(merged);
        }
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.prints.len()
    }

    /// Returns whether there is no chunk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that the postings and their terms take.
    #[must_use]
    pub fn postings_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    /// Returns the number of code points of all texts together.
    #[must_use]
    pub fn total_chars(&self) -> usize {
        self.total_chars
    }

    /// Returns the measure of each text under an estimate; none under another
    /// counter.
    #[must_use]
    pub fn measures(&self, counting: &Counting) -> &[u32] {
        match counting {
            Counting::Estimate(crate::count::Estimate::Words) => &self.columns.words,
            Counting::Estimate(_) => &self.columns.chars,
            Counting::Exact(..) | Counting::Host => &[],
        }
    }

    pub(crate) fn bounds(&self, exact: &Exact) -> Arc<Bounds> {
        let Columns { bounds, starts, chars, .. } = &self.columns;
        bounds.of(exact.tokenizer(), starts, chars)
    }

    pub(crate) fn prints(&self) -> &[u32] {
        &self.columns.prints
    }

    /// Returns the number of code points of text `index`; `u32::MAX` if there
    /// are more.
    pub(crate) fn chars(&self, index: u32) -> usize {
        self.columns.chars[index as usize] as usize
    }

    /// Removes what is no chunk: a damaged file's list may name any.
    fn keep_known(&self, chunks: &mut Vec<u32>) {
        chunks.retain(|&chunk| (chunk as usize) < self.len());
    }
}

fn capped(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Documents;

    fn sizes(index: &Index) -> Vec<u32> {
        index.parts.iter().map(|part| part.chunks()).collect()
    }

    /// Small additions are merged with what is not twice as long.
    #[test]
    fn parts_are_twice_as_long_as_the_next() {
        let texts: Vec<String> = (1..20).map(|number| "tea ".repeat(number)).collect();
        let mut index = Index::new(&Documents::new(&texts[..4]));
        for (count, expected) in
            [(5, &[4, 1][..]), (6, &[4, 2]), (9, &[9]), (10, &[9, 1]), (11, &[9, 2])]
        {
            index = index.extended(&Documents::new(&texts[..count]));
            assert_eq!(expected, sizes(&index));
        }
        assert_eq!([4, 8, 44], [0, 1, 10].map(|at| index.chars(at)));
        // Nothing is left of a part whose chunks are gone.
        let index = Index::new(&Documents::new(&texts[..4])).extended(&Documents::new(&texts[..5]));
        assert_eq!(vec![4], sizes(&index.without(&[false, false, false, false, true])));
        assert_eq!(vec![1], sizes(&index.without(&[true, true, true, true, false])));
    }

    #[test]
    fn what_is_no_chunk_is_removed() {
        let mut chunks = vec![0, 1, 2, 3, u32::MAX];
        Index::new(&Documents::new(&["tea", "rye"])).keep_known(&mut chunks);
        assert_eq!(vec![0, 1], chunks);
    }

    /// A chunk that is replaced is found by its new words alone, in whichever part
    /// it is.
    #[test]
    fn replaced_chunks_lose_their_words() {
        let mut texts = ["tea", "rye", "tea", "rye", "milk"];
        let index = Index::new(&Documents::new(&texts[..4])).extended(&Documents::new(&texts));
        assert_eq!(vec![4, 1], sizes(&index));
        for places in [&[3][..], &[4], &[0, 4]] {
            texts = ["tea", "rye", "tea", "rye", "milk"];
            for &place in places {
                texts[place] = "hill";
            }
            let index = index.replaced(places, &Documents::new(&texts));
            for word in ["tea", "rye", "milk", "hill"] {
                let found = index.overlap(word.into()).found;
                let expected = texts.map(|text| f64::from(u8::from(text == word)));
                assert_eq!(expected.to_vec(), found.all(&index), "{word} {places:?}");
            }
        }
    }

    /// What the first query would wait for is found at once where it takes long.
    #[test]
    #[cfg(feature = "stemming")]
    fn large_parts_are_prepared() {
        let lexical = crate::Lexical::default();
        for (count, is_ready) in [(LARGE, true), (LARGE - 1, false)] {
            let index = Index::new(&Documents::new(&vec!["teas"; count as usize]));
            assert_eq!(is_ready, index.query_cost(&lexical) == 0);
        }
    }
}
