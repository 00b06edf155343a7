//! Corpora with their chunks, for Rust programs.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::found::Later;
use super::{Index, record};
use crate::chunk::{Batch, Chunk, Document};
use crate::count::exact::GO_ON;
use crate::error::Error;
use crate::mapped::Mapped;
use crate::rank::sort_descending;
use crate::ranking::{Bm25, Lexical};
use crate::score::lexical::batch_lexical_scores;
use crate::statistics::Statistics;
use crate::text::Text;

/// How many identifiers an error names, and how much of each.
const IDS_SHOWN: usize = 5;
const ID_SHOWN: usize = 80;

/// Chunks that are indexed once and packed many times.
///
/// [`Packer::pack_corpus`](crate::Packer::pack_corpus) returns the same as
/// [`Packer::pack`](crate::Packer::pack) for the slice of its chunks. But it
/// reads only what the index has on the query's words, and few of the texts.
///
/// Threads share a corpus by reference. To change it while others pack, keep it
/// behind an `RwLock`, or replace an `Arc` of it.
///
/// The chunks must not change while they are in a corpus.
///
/// A corpus is also a [`Retriever`](crate::service::Retriever), which returns
/// the best chunks by words.
///
/// # Examples
///
/// ```
/// use budgeteer::{Corpus, Packer};
///
/// let mut corpus = Corpus::new(["Green tea is not oxidized.", "Coffee is roasted."]);
/// corpus.append(["Black tea is oxidized."]);
/// assert_eq!(corpus.len(), 3);
///
/// let packing = Packer::new(8).pack_corpus("Which tea is oxidized?", &corpus)?;
/// assert_eq!(packing.text, "Black tea is oxidized.");
/// assert_eq!(corpus.get(packing.kept[0].index), Some(&"Black tea is oxidized."));
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone)]
pub struct Corpus<D = Chunk> {
    pub(crate) index: Arc<Index>,
    /// At least the chunks that are indexed: one whose text panicked is behind
    /// them.
    chunks: Vec<D>,
    /// The files that some of the chunks are read from.
    files: Vec<Arc<Mapped>>,
    scores: OnceLock<Vec<Option<f64>>>,
    mtimes: OnceLock<Vec<f64>>,
}

impl<D> fmt::Debug for Corpus<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corpus").field("len", &self.index.len()).finish_non_exhaustive()
    }
}

impl<D> Default for Corpus<D> {
    fn default() -> Self {
        Self::of(Arc::default(), Vec::new())
    }
}

impl<D: Document + Sync> FromIterator<D> for Corpus<D> {
    fn from_iter<I: IntoIterator<Item = D>>(chunks: I) -> Self {
        Self::new(chunks)
    }
}

impl<D: Document + Sync> Extend<D> for Corpus<D> {
    fn extend<I: IntoIterator<Item = D>>(&mut self, chunks: I) {
        self.append(chunks);
    }
}

impl<D> Corpus<D> {
    pub(super) fn of(index: Arc<Index>, chunks: Vec<D>) -> Self {
        let files = Vec::new();
        Self { index, chunks, files, scores: OnceLock::new(), mtimes: OnceLock::new() }
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether there is no chunk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the chunks, in the order in which they were added.
    #[must_use]
    pub fn chunks(&self) -> &[D] {
        &self.chunks[..self.index.len()]
    }

    /// Returns chunk `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&D> {
        self.chunks().get(index)
    }

    /// Returns the index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns an error if damage was met in the file that the corpus was opened
    /// from. What is damaged reads as empty: ask this after reading chunks.
    ///
    /// [`Packer::pack_corpus`](crate::Packer::pack_corpus), [`Corpus::save`],
    /// [`Corpus::remove`] and [`Corpus::replace`] ask it themselves.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus); once returned, it is
    /// returned from then on.
    pub fn check(&self) -> Result<(), Error> {
        self.index.check()?;
        self.files.iter().try_for_each(|file| file.check())
    }
}

impl<D: Document + Sync> Corpus<D> {
    /// Returns a corpus of `chunks`.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    #[must_use]
    pub fn new(chunks: impl IntoIterator<Item = D>) -> Self {
        let mut corpus = Self::default();
        corpus.append(chunks);
        corpus
    }

    /// Adds `chunks` behind the others. Each call takes a little time for each
    /// chunk in the corpus, so add many at once.
    ///
    /// It may meet damage in the file that the corpus was opened from. Then
    /// [`Corpus::check`] returns an error, and so does each packing.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    pub fn append(&mut self, chunks: impl IntoIterator<Item = D>) {
        self.chunks.truncate(self.index.len());
        let first = self.chunks.len();
        self.chunks.extend(chunks);
        note_files(&mut self.files, &self.chunks[first..]);
        let batch = Slice { chunks: &self.chunks, total_chars: 0 };
        self.index = Arc::new(self.index.extended(&batch));
        self.forget();
    }

    /// Removes each chunk that has one of these identifiers. The others stay in
    /// their order, and the corpus packs as a new one of them.
    ///
    /// Each call takes some time for each chunk, far less than indexing it; so
    /// remove many at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// no chunk has an identifier; the message names some. Or
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus), as for
    /// [`Corpus::check`]. Then nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::{Chunk, Corpus};
    ///
    /// let teas = [Chunk::new("Green tea.").id("a"), Chunk::new("Black tea.").id("b")];
    /// let mut corpus = Corpus::new(teas);
    /// corpus.remove(["a"])?;
    /// assert_eq!(corpus.len(), 1);
    ///
    /// let error = corpus.remove(["b", "x"]).unwrap_err();
    /// assert_eq!(error.to_string(), r#"ids has 1 that no chunk of the corpus has: "x""#);
    /// assert_eq!(corpus.len(), 1);
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn remove<I: AsRef<str>>(&mut self, ids: impl IntoIterator<Item = I>) -> Result<(), Error> {
        let ids: Vec<I> = ids.into_iter().collect();
        let wanted: HashSet<&str> = ids.iter().map(AsRef::as_ref).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let places = self.places();
        self.check()?; // an identifier that is damaged reads as none
        let mut gone = vec![false; self.len()];
        let mut unknown: Vec<&str> = Vec::new();
        for id in &wanted {
            match places.get(id) {
                Some(places) => {
                    for &at in places {
                        gone[at] = true;
                    }
                }
                None => unknown.push(id),
            }
        }
        if !unknown.is_empty() {
            if places.is_empty() && !self.is_empty() {
                return Err(Error::shape(
                    "no chunk of the corpus has an id, and chunks are removed by id: make the \
                     corpus of chunks that have one"
                        .to_owned(),
                ));
            }
            unknown.sort_unstable();
            return Err(Error::shape(format!(
                "ids has {} that no chunk of the corpus has: {}",
                unknown.len(),
                named(&unknown)
            )));
        }
        drop(places);
        let index = self.index.without(&gone);
        index.check()?;
        self.index = Arc::new(index);
        let mut gone = gone.into_iter();
        // One behind the indexed chunks goes too.
        self.chunks.retain(|_| gone.next() == Some(false));
        self.forget();
        Ok(())
    }

    /// Puts each of `chunks` in the place of the chunk with its identifier. The
    /// corpus then packs as a new one of its chunks.
    ///
    /// Each call takes some time for each chunk, far less than indexing it; so
    /// replace many at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// a chunk has no identifier, or that of another of `chunks`, of no chunk of
    /// the corpus, or of several. Or
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus), as for
    /// [`Corpus::check`]. Then nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::{Chunk, Corpus};
    ///
    /// let teas = [Chunk::new("Green tea.").id("a"), Chunk::new("Black tea.").id("b")];
    /// let mut corpus = Corpus::new(teas);
    /// corpus.replace([Chunk::new("White tea.").id("a")])?;
    /// assert_eq!(corpus.chunks()[0].text, "White tea.");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn replace(&mut self, chunks: impl IntoIterator<Item = D>) -> Result<(), Error> {
        let chunks: Vec<D> = chunks.into_iter().collect();
        let known = self.places();
        self.check()?; // as above
        let mut firsts: HashMap<&str, usize> = HashMap::new();
        let mut places = Vec::with_capacity(chunks.len());
        for (i, chunk) in chunks.iter().enumerate() {
            let Some(id) = chunk.tag().1 else {
                return Err(Error::shape(format!(
                    "chunks[{i}] has no id, and the chunk that it replaces is found by its id"
                )));
            };
            if let Some(first) = firsts.insert(id, i) {
                return Err(Error::shape(format!(
                    "chunks[{i}] must not have the id of chunks[{first}]"
                )));
            }
            match known.get(id).map(Vec::as_slice) {
                Some(&[place]) => places.push(place),
                Some(several) => {
                    return Err(Error::shape(format!(
                        "{} chunks of the corpus have the id of chunks[{i}], {}: remove them and \
                         append the new ones",
                        several.len(),
                        named(&[id])
                    )));
                }
                None => {
                    return Err(Error::shape(format!(
                        "no chunk of the corpus has the id of chunks[{i}], {}: append adds a chunk",
                        named(&[id])
                    )));
                }
            }
        }
        drop(known);
        let mut new: Vec<(usize, D)> = places.into_iter().zip(chunks).collect();
        new.sort_unstable_by_key(|(place, _)| *place);
        let places: Vec<usize> = new.iter().map(|(place, _)| *place).collect();
        // The chunks are replaced last, as reading the new ones may panic.
        let index = self.index.replaced(&places, &Replaced { new: &new, all: self.len() });
        index.check()?;
        self.index = Arc::new(index);
        for (place, chunk) in new {
            note_files(&mut self.files, std::slice::from_ref(&chunk));
            self.chunks[place] = chunk;
        }
        self.forget();
        Ok(())
    }

    /// Returns how many chunks have each word that `bm25` counts. Reads all
    /// texts.
    ///
    /// # Errors
    ///
    /// As for [`Corpus::check`].
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::{Bm25, Corpus};
    ///
    /// let statistics = Corpus::new(["Green tea.", "A tea."]).statistics(&Bm25::default())?;
    /// assert_eq!((2, 4), (statistics.chunks(), statistics.words()));
    /// assert_eq!((2, 1), (statistics.frequency("tea"), statistics.frequency("green")));
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn statistics(&self, bm25: &Bm25) -> Result<Statistics, Error> {
        let (stemming, stopwords) = (bm25.stemming, &bm25.stopwords);
        let never = AtomicBool::new(false);
        let found = Statistics::of_until(&self.batch(), stemming, stopwords, &never);
        self.check()?;
        Ok(found)
    }

    /// Returns the places of the chunks with each identifier.
    fn places(&self) -> HashMap<&str, Vec<usize>> {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, chunk) in self.chunks().iter().enumerate() {
            if let Some(id) = chunk.tag().1 {
                places.entry(id).or_default().push(place);
            }
        }
        places
    }

    /// Forgets what the chunks were asked once.
    fn forget(&mut self) {
        self.scores = OnceLock::new();
        self.mtimes = OnceLock::new();
    }

    /// Writes the corpus to a file. [`Corpus::open`] reads it on any platform,
    /// and so does `budgeteer.Corpus.open` in Python. The file at `path`, or
    /// what that links to, is replaced once the new one is whole, which has its
    /// permissions.
    ///
    /// In Python a chunk that has nothing but a text is a str. Any other is a
    /// `Chunk`, with kind, authority, priority, time and position in its
    /// metadata.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where the file cannot be
    /// written,
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a
    /// score, priority or time that is NaN, metadata that is not a JSON object or a
    /// `path` that is a pipe or a device, and [`ErrorKind::Corpus`](crate::ErrorKind::Corpus), as for
    /// [`Corpus::check`]. Then nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "o200k")] {
    /// use budgeteer::{Chunk, Corpus, Document, Packer};
    ///
    /// let path = std::env::temp_dir().join("budgeteer-corpus-of-teas");
    /// Corpus::new([Chunk::new("Green tea.").id("7"), Chunk::new("Rye.")]).save(&path)?;
    ///
    /// let mut corpus = Corpus::open(&path)?;
    /// corpus.append([Chunk::new("Black tea.").into()]);
    /// let packing = Packer::new(7).pack_corpus("tea", &corpus)?;
    /// assert_eq!(packing.text, "Green tea.\n\nBlack tea.");
    /// assert_eq!(corpus.chunks()[0].tag().1, Some("7"));
    /// # std::fs::remove_file(path).unwrap();
    /// # }
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let records = self.chunks().iter().enumerate().map(|(index, chunk)| match chunk.record() {
            Some(record) => Ok(record.to_vec()),
            None => record::write(chunk, index),
        });
        let records = records.collect::<Result<Vec<_>, Error>>()?;
        let record = |index: usize| &*records[index];
        let path = path.as_ref();
        let saved = self.index.save_if(path, &self.batch(), record, || self.check());
        saved.map_err(|error| error.at(path))
    }

    pub(crate) fn batch(&self) -> Slice<'_, D> {
        Slice { chunks: self.chunks(), total_chars: self.index.total_chars() }
    }

    /// Returns the chunks' own scores. The chunks are asked once.
    pub(crate) fn scores(&self) -> &[Option<f64>] {
        self.scores.get_or_init(|| self.chunks().iter().map(Document::score).collect())
    }

    /// Returns the places of the best chunks for `query`, and their scores, as
    /// packing computes them by default.
    pub(crate) fn best(&self, query: &str, limit: usize) -> Vec<(usize, f64)> {
        let (query, lexical) = (query.into(), Lexical::default());
        let scores = match self.index.query(query, &lexical) {
            Some(query) => {
                let later = Later::new(&self.index, query.found(&self.batch(), &GO_ON).0);
                let (best, _) = later.best(limit, |_| true, |_, _| true);
                let best = best.into_iter().map(|((_, place), score)| (place as usize, score));
                let mut best: Vec<_> = best.collect();
                if best.len() < limit {
                    // Those that score 0 follow in their order.
                    let found: HashSet<usize> = best.iter().map(|(place, _)| *place).collect();
                    let others = (0..self.len()).filter(|place| !found.contains(place));
                    best.extend(others.take(limit - found.len()).map(|place| (place, 0.0)));
                }
                return best;
            }
            // English stopwords are left out, and all other words have lists.
            None => batch_lexical_scores(query, &self.batch(), &lexical),
        };
        let mut order: Vec<u32> = (0..).take(scores.len()).collect();
        sort_descending(&mut order, &scores);
        order.into_iter().take(limit).map(|at| (at as usize, scores[at as usize])).collect()
    }

    /// Returns when the chunks were last changed. The chunks are asked once.
    pub(crate) fn mtimes(&self) -> &[f64] {
        self.mtimes.get_or_init(|| self.chunks().iter().map(Document::mtime).collect())
    }
}

/// Adds the files that `chunks` are read from, each once.
fn note_files(files: &mut Vec<Arc<Mapped>>, chunks: &[impl Document]) {
    for file in chunks.iter().filter_map(Document::file) {
        if !files.iter().any(|known| Arc::ptr_eq(known, file)) {
            files.push(Arc::clone(file));
        }
    }
}

/// Returns some identifiers as an error names them.
fn named(ids: &[&str]) -> String {
    let short = |id: &&str| format!("{:?}", id.chars().take(ID_SHOWN).collect::<String>());
    let shown = ids.iter().take(IDS_SHOWN).map(short).collect::<Vec<_>>().join(", ");
    match ids.len().checked_sub(IDS_SHOWN + 1) {
        None => shown,
        Some(more) => format!("{shown} and {} more", more + 1),
    }
}

/// A corpus of which only the new chunks are read, each with its place.
struct Replaced<'a, D> {
    new: &'a [(usize, D)],
    all: usize,
}

impl<D: Document> Replaced<'_, D> {
    fn chunk(&self, index: usize) -> &D {
        let at = self.new.partition_point(|(place, _)| *place < index);
        &self.new[at].1
    }
}

impl<D: Document + Sync> Batch for Replaced<'_, D> {
    fn len(&self) -> usize {
        self.all
    }

    fn text(&self, index: usize) -> Text<'_> {
        self.chunk(index).text().into()
    }

    fn title(&self, index: usize) -> Text<'_> {
        self.chunk(index).title().into()
    }
}

/// Documents that are read by reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice<'a, D> {
    chunks: &'a [D],
    total_chars: usize,
}

impl<D: Document + Sync> Batch for Slice<'_, D> {
    fn len(&self) -> usize {
        self.chunks.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        self.chunks[index].text().into()
    }

    fn title(&self, index: usize) -> Text<'_> {
        self.chunks[index].title().into()
    }

    fn total_chars(&self) -> usize {
        self.total_chars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_the_sizes_of_their_chunks() {
        let replaced = Replaced { new: &[(1, "tea"), (4, "rye")], all: 6 };
        assert_eq!(6, replaced.len());
        assert_eq!([3, 3], [replaced.text(1).chars(), replaced.text(4).chars()]);
        let slice = Slice { chunks: &["tea", "rye bread"], total_chars: 12 };
        assert_eq!((2, 12), (slice.len(), slice.total_chars()));
    }
}
