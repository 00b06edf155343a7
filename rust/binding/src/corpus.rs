//! `budgeteer::Index` with the strings that it was made of, for Python.
#![allow(unsafe_code)] // strings are read where they lie

use std::os::raw::c_int;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use budgeteer::pipeline::{Counting, Outcome, Signal};
use budgeteer::{Batch, DroppedColumns, ErrorKind, Index, Statistics, Stored, Text};
use pyo3::exceptions::PyOSError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::arrow::ArrowTexts;
use crate::chunk::{Strings, Texts};
use crate::codes;
use crate::column::TextColumn;
use crate::convert::{borrow_text, column, signed, string, work};
use crate::error::{CorpusError, InvalidArgumentError, guard};
use crate::score::{Words, words_of};

/// Indexing the texts takes as long as reading them this many times.
const INDEXING: usize = 20;

/// Writing a byte of postings anew takes as long as reading this many code
/// points.
const REWRITING: usize = 10;

/// A corpus as the backend sees it. It never changes.
#[pyclass(frozen, module = "budgeteer._native")]
pub(crate) struct CorpusIndex {
    pub(crate) index: Arc<Index>,
    pub(crate) texts: Kept,
}

impl CorpusIndex {
    /// Returns an error if damage was met in the file that the texts are from.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let (Err(error), Kept::Grown(Grown { base: Base::File(_, path), .. })) =
            (self.index.check(), &self.texts)
        else {
            return Ok(());
        };
        let path = path.as_os_str().into_pyobject(py)?.repr()?;
        Err(CorpusError::new_err(format!("{path} cannot be read as a corpus: {error}")))
    }

    /// Returns itself for Python, unless damage was met while it was made.
    fn checked(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.check(py)?;
        Ok(Bound::new(py, self)?.into_any())
    }
}

/// The texts of a corpus.
pub(crate) enum Kept {
    /// The caller's strings.
    Strings(OwnStrings),
    /// A file or a column, and the chunks that were added to it. Both are
    /// encoded alike, as equal texts must be stored alike.
    Grown(Grown),
}

/// Texts whose memory is not Python's.
#[derive(Clone)]
enum Base {
    /// Those of a file, with its path.
    File(Arc<Stored>, Arc<Path>),
    Column(Arc<ArrowTexts>),
}

impl Base {
    fn len(&self) -> usize {
        match self {
            Self::File(stored, _) => stored.len(),
            Self::Column(column) => column.len(),
        }
    }

    fn text(&self, place: usize) -> Text<'_> {
        match self {
            Self::File(stored, _) => stored.text(place),
            Self::Column(column) => column.text(place),
        }
    }

    fn title(&self, place: usize) -> Text<'_> {
        match self {
            Self::File(stored, _) => stored.title(place),
            Self::Column(column) => column.title(place),
        }
    }
}

/// The chunks of a file or a column, and others.
pub(crate) struct Grown {
    base: Base,
    more: Vec<Added>,
    /// Where each chunk is: its place in the base, or from the end of that on in
    /// `more`. None as long as they follow one another.
    order: Option<Vec<u32>>,
}

impl Grown {
    /// Returns the place of chunk `index` in the base, or the chunk itself.
    fn find(&self, index: usize) -> Result<usize, &Added> {
        let place = self.order.as_ref().map_or(index, |order| order[index] as usize);
        place.checked_sub(self.base.len()).map_or(Ok(place), |at| Err(&self.more[at]))
    }

    fn text(&self, index: usize) -> Text<'_> {
        match self.find(index) {
            Ok(place) => self.base.text(place),
            Err((text, _)) => Text::from_utf8(text),
        }
    }

    fn title(&self, index: usize) -> Text<'_> {
        match self.find(index) {
            Ok(place) => self.base.title(place),
            Err((_, title)) => Text::from_utf8(title),
        }
    }

    fn len(&self) -> usize {
        self.order.as_ref().map_or(self.base.len() + self.more.len(), Vec::len)
    }

    /// Returns these chunks with those of `read` behind them.
    fn with(&self, read: &Texts<'_, '_>) -> Self {
        let mut all =
            Self { base: self.base.clone(), more: self.more.clone(), order: self.order.clone() };
        for i in 0..read.len() {
            if let Some(order) = &mut all.order {
                order.push(number(self.base.len() + all.more.len()));
            }
            all.more.push(added(read, i));
        }
        all
    }

    /// Returns the chunks of `places`, each a place here or, from the end on,
    /// one in `read`.
    fn rearranged(
        &self,
        places: impl Iterator<Item = usize>,
        read: Option<&Texts<'_, '_>>,
    ) -> Self {
        let mut more = Vec::new();
        let place = |place: usize| {
            let kept = match place.checked_sub(self.len()) {
                None => match self.find(place) {
                    Ok(place) => return number(place),
                    Err(kept) => kept.clone(),
                },
                Some(new) => added(read.expect("places of new chunks come with them"), new),
            };
            more.push(kept);
            number(self.base.len() + more.len() - 1)
        };
        let order = Some(places.map(place).collect());
        Self { base: self.base.clone(), more, order }
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).expect("no corpus has 2^32 chunks")
}

/// Returns a text and its title as a file has them.
fn added(read: &Texts<'_, '_>, index: usize) -> Added {
    let utf8 = |text: Text<'_>| {
        let mut utf8 = Vec::new();
        text.write_utf8(&mut utf8);
        utf8.into()
    };
    (utf8(read.text(index)), utf8(read.title(index)))
}

/// A text and its title.
type Added = (Arc<[u8]>, Arc<[u8]>);

#[derive(Default)]
pub(crate) struct OwnStrings {
    /// Ready strings of the class itself.
    strings: Vec<Py<PyString>>,
    /// A title for each of the first chunks; None for no title.
    titles: Vec<Option<Py<PyString>>>,
}

impl OwnStrings {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        let title = |title: &Option<Py<PyString>>| title.as_ref().map(|title| title.clone_ref(py));
        Self {
            strings: self.strings.iter().map(|string| string.clone_ref(py)).collect(),
            titles: self.titles.iter().map(title).collect(),
        }
    }

    /// Returns the strings of `places`, each a place here or, from the end on,
    /// one in `read`.
    fn rearranged<'py>(
        &self,
        py: Python<'py>,
        places: impl Iterator<Item = usize>,
        read: Option<&Texts<'_, 'py>>,
    ) -> PyResult<Self> {
        let mut new = Self::default();
        if let Some(read) = read {
            read.move_into(py, &mut new.strings, &mut new.titles)?;
        }
        let mut all = Self::default();
        for place in places {
            let (from, at) = match place.checked_sub(self.strings.len()) {
                Some(at) => (&new, at),
                None => (self, place),
            };
            if let Some(Some(title)) = from.titles.get(at) {
                all.titles.resize_with(all.strings.len(), || None);
                all.titles.push(Some(title.clone_ref(py)));
            }
            all.strings.push(from.strings[at].clone_ref(py));
        }
        Ok(all)
    }
}

impl Kept {
    /// Returns these texts with those of `read` behind them.
    fn with<'py>(&self, py: Python<'py>, read: &Texts<'_, 'py>) -> PyResult<Self> {
        match self {
            Self::Strings(own) => {
                let mut own = own.clone_ref(py);
                read.move_into(py, &mut own.strings, &mut own.titles)?;
                Ok(Self::Strings(own))
            }
            Self::Grown(own) => Ok(Self::Grown(own.with(read))),
        }
    }

    /// Returns the texts of `places`, each a place here or, from the end on, one
    /// in `read`.
    fn rearranged<'py>(
        &self,
        py: Python<'py>,
        places: impl Iterator<Item = usize>,
        read: Option<&Texts<'_, 'py>>,
    ) -> PyResult<Self> {
        match self {
            Self::Strings(own) => own.rearranged(py, places, read).map(Self::Strings),
            Self::Grown(own) => Ok(Self::Grown(own.rearranged(places, read))),
        }
    }
}

impl Batch for Kept {
    fn len(&self) -> usize {
        match self {
            Self::Strings(own) => own.strings.len(),
            Self::Grown(own) => own.len(),
        }
    }

    fn text(&self, index: usize) -> Text<'_> {
        match self {
            // SAFETY: a ready string that lives as long as `self`.
            Self::Strings(own) => unsafe { borrow_text(own.strings[index].as_ptr()) },
            Self::Grown(own) => own.text(index),
        }
    }

    fn title(&self, index: usize) -> Text<'_> {
        match self {
            Self::Strings(own) => match own.titles.get(index) {
                // SAFETY: a ready string that lives as long as `self`.
                Some(Some(title)) => unsafe { borrow_text(title.as_ptr()) },
                _ => Text::EMPTY,
            },
            Self::Grown(own) => own.title(index),
        }
    }
}

impl Strings for Kept {
    fn string<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        if let Self::Strings(own) = self {
            return Ok(own.strings[index].bind(py).as_any().clone());
        }
        utf8_string(py, self.text(index))
    }

    fn is_string(&self, _index: usize) -> bool {
        false // only the facade knows the types of the chunks
    }
}

/// Returns a text of a file or a column as a str.
pub(crate) fn utf8_string<'py>(py: Python<'py>, text: Text<'_>) -> PyResult<Bound<'py, PyAny>> {
    match text {
        Text::Ascii(utf8) | Text::Utf8(utf8) => string(py, utf8),
        _ => unreachable!("a file or a column holds UTF-8"),
    }
}

#[pymethods]
impl CorpusIndex {
    /// Returns the number of chunks.
    fn __len__(&self) -> usize {
        self.index.len()
    }
}

/// Indexes chunks behind those of `index`, or a column as the first chunks of
/// all; or returns a code and the index of a bad chunk.
#[pyfunction]
#[pyo3(signature = (chunks: "tuple[object, ...] | TextColumn", index: "object | None") -> "object", text_signature = "(chunks, index)")]
pub(crate) fn index_chunks<'py>(
    chunks: &Bound<'py, PyAny>,
    index: Option<&Bound<'py, CorpusIndex>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = chunks.py();
    guard(|| {
        if let Ok(column) = chunks.cast::<TextColumn>() {
            let base = Base::Column(column.get().texts());
            let chars = column.get().texts().total_chars();
            let texts = Kept::Grown(Grown { base, more: Vec::new(), order: None });
            let index = work(py, chars.saturating_mul(INDEXING), |stop| {
                Index::default().extended_until(&texts, stop)
            })?;
            return Ok(Bound::new(py, CorpusIndex { index: Arc::new(index), texts })?.into_any());
        }
        let read = match Texts::of_chunks(chunks.cast::<PyTuple>()?, true)? {
            Ok(texts) => texts,
            Err((code, place)) => {
                return Ok((code as u8, place).into_pyobject(py)?.into_any());
            }
        };
        let chars = read.total_chars();
        let before = index.map(Bound::get);
        let nothing = Kept::Strings(OwnStrings::default());
        let texts = before.map_or(&nothing, |before| &before.texts).with(py, &read)?;
        let known = before.map(|before| Arc::clone(&before.index)).unwrap_or_default();
        let index =
            work(py, chars.saturating_mul(INDEXING), |stop| known.extended_until(&texts, stop))?;
        CorpusIndex { index: Arc::new(index), texts }.checked(py)
    })
}

/// Returns the index of the chunks that are not at `places`.
#[pyfunction]
#[pyo3(signature = (index: "object", places: "list[int]") -> "object", text_signature = "(index, places)")]
#[allow(clippy::needless_pass_by_value)] // as it is converted
pub(crate) fn remove_chunks<'py>(
    index: &Bound<'py, CorpusIndex>,
    places: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = index.py();
    guard(|| {
        let CorpusIndex { index, texts } = index.get();
        let mut gone = vec![false; index.len()];
        for &place in &places {
            gone[place] = true;
        }
        let rest = (0..gone.len()).filter(|&place| !gone[place]);
        let texts = texts.rearranged(py, rest, None)?;
        let index = work(py, index.postings_bytes().saturating_mul(REWRITING), |stop| {
            index.without_until(&gone, stop)
        })?;
        CorpusIndex { index: Arc::new(index), texts }.checked(py)
    })
}

/// Returns the index of chunks that are others at `places`; or a code and the
/// index of a bad chunk.
#[pyfunction]
#[pyo3(signature = (index: "object", places: "list[int]", chunks: "tuple[object, ...]") -> "object", text_signature = "(index, places, chunks)")]
#[allow(clippy::needless_pass_by_value)] // as it is converted
pub(crate) fn replace_chunks<'py>(
    index: &Bound<'py, CorpusIndex>,
    mut places: Vec<usize>,
    chunks: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = index.py();
    guard(|| {
        let CorpusIndex { index, texts } = index.get();
        let read = match Texts::of_chunks(chunks, true)? {
            Ok(texts) => texts,
            Err((code, place)) => {
                return Ok((code as u8, place).into_pyobject(py)?.into_any());
            }
        };
        let chars = read.total_chars().saturating_mul(INDEXING);
        let mut order: Vec<usize> = (0..index.len()).collect();
        places.iter().zip(index.len()..).for_each(|(&place, new)| order[place] = new);
        let texts = texts.rearranged(py, order.into_iter(), Some(&read))?;
        places.sort_unstable();
        let writing = index.postings_bytes().saturating_mul(REWRITING);
        let index = work(py, chars.saturating_add(writing), |stop| {
            index.replaced_until(&places, &texts, stop)
        })?;
        CorpusIndex { index: Arc::new(index), texts }.checked(py)
    })
}

/// Returns the number of chunks, that of words, and of the chunks with each stem.
#[pyfunction]
#[pyo3(signature = (
    index: "object",
    of: "tuple[str | None, str | tuple[str, ...] | None]",
) -> "tuple[int, int, dict[str, int]]", text_signature = "(index, of)")]
pub(crate) fn corpus_statistics<'py>(
    index: &Bound<'py, CorpusIndex>,
    of: Words<'py>,
) -> PyResult<(u64, u64, Bound<'py, PyDict>)> {
    let py = index.py();
    guard(|| {
        let (stemming, stopwords) = words_of(of)?;
        let corpus = index.get();
        let chars = corpus.index.total_chars().saturating_mul(INDEXING);
        let found = work(py, chars, |stop| {
            Statistics::of_until(&corpus.texts, stemming, &stopwords, stop)
        })?;
        corpus.check(py)?;
        let frequencies = PyDict::new(py);
        for (stem, count) in found.frequencies() {
            frequencies.set_item(stem, count)?;
        }
        Ok((found.chunks(), found.words(), frequencies))
    })
}

/// Writes a corpus to a file, with a record of each chunk.
#[pyfunction]
#[pyo3(signature = (index: "object", path: "str", records: "list[bytes]") -> "None", text_signature = "(index, path, records)")]
#[allow(clippy::needless_pass_by_value)] // as it is converted
pub(crate) fn save_corpus(
    index: &Bound<'_, CorpusIndex>,
    path: PathBuf,
    records: &Bound<'_, PyList>,
) -> PyResult<()> {
    let py = index.py();
    guard(|| {
        let corpus = index.get();
        let CorpusIndex { index, texts } = corpus;
        let records: PyResult<Vec<_>> =
            records.iter().map(|record| Ok(record.cast_into::<PyBytes>()?.unbind())).collect();
        let records = records?;
        let records: Vec<&[u8]> = records.iter().map(|record| record.as_bytes(py)).collect();
        let saved = py.detach(|| index.save(&path, texts, |place| records[place]));
        corpus.check(py)?;
        saved.map_err(|error| refusal(&error, &path))
    })
}

/// Opens a file that `save_corpus` wrote; or returns what is wrong with it.
#[pyfunction]
#[pyo3(signature = (path: "str") -> "object", text_signature = "(path)")]
#[allow(clippy::needless_pass_by_value)] // as it is converted
pub(crate) fn open_corpus(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    guard(|| match py.detach(|| Stored::open(&path)) {
        Ok(stored) => {
            let index = Arc::clone(stored.index());
            let stored = Arc::new(stored);
            let base = Base::File(stored, Arc::from(path.as_path()));
            let texts = Kept::Grown(Grown { base, more: Vec::new(), order: None });
            Ok(Bound::new(py, CorpusIndex { index, texts })?.into_any())
        }
        Err(error) if error.kind() == ErrorKind::Corpus => {
            Ok(PyString::new(py, &error.to_string()).into_any())
        }
        Err(error) => Err(refusal(&error, &path)),
    })
}

/// Returns text, title and record of chunk `place` of an opened file, or an
/// error where it is damaged.
#[pyfunction]
#[pyo3(signature = (index: "object", place: "int") -> "tuple[str, str, bytes]", text_signature = "(index, place)")]
pub(crate) fn stored_chunk<'py>(
    index: &Bound<'py, CorpusIndex>,
    place: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = index.py();
    guard(|| {
        let corpus = index.get();
        let Kept::Grown(Grown { base: Base::File(stored, _), .. }) = &corpus.texts else {
            unreachable!("the facade asks for chunks of files only")
        };
        let text = utf8_string(py, stored.text(place))?;
        let title = utf8_string(py, stored.title(place))?;
        let record = PyBytes::new(py, stored.record(place));
        corpus.check(py)?;
        (text, title, record).into_pyobject(py)
    })
}

/// Returns an error of the operating system as Python has it.
fn refusal(error: &budgeteer::Error, path: &Path) -> PyErr {
    let message = error.to_string();
    if error.kind() == ErrorKind::InvalidArgument {
        return InvalidArgumentError::new_err(message);
    }
    match error.os_error() {
        Some(code) => {
            let message = message.replace(&format!(" (os error {code})"), "");
            PyOSError::new_err((code, message, path.display().to_string()))
        }
        None => PyOSError::new_err(format!("{message}: {}", path.display())),
    }
}

/// What became of the chunks of a corpus, most of which were not looked at. As
/// a buffer it gives the scores.
#[pyclass(frozen, module = "budgeteer._native")]
pub(crate) struct Unseen {
    outcome: Outcome,
    index: Arc<Index>,
    counting: Counting,
}

impl Unseen {
    pub(crate) fn new(outcome: Outcome, counting: Counting, index: &Arc<Index>) -> Self {
        Self { outcome, index: Arc::clone(index), counting }
    }
}

#[pymethods]
impl Unseen {
    /// Returns the columns of the dropped chunks: index, reason, needed tokens
    /// and available tokens.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        guard(|| {
            let dropped = work(py, 100 * self.index.len(), |_| {
                self.outcome.dropped_of(self.index.measures(&self.counting))
            })?;
            dropped_columns(py, dropped.into_owned())?.into_pyobject(py)
        })
    }

    /// Returns the signals, as [`signals_column`] does.
    fn signals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guard(|| Ok(signals_column(py, py.detach(|| self.outcome.signals()))))
    }

    /// Lends the scores as a buffer.
    ///
    /// # Safety
    ///
    /// `view` must be writable, as Python makes sure of.
    #[allow(clippy::needless_pass_by_value)] // as Python calls it
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let unseen = slf.get();
        let scores = guard(|| Ok(slf.py().detach(|| unseen.outcome.scores())))?;
        let length = size_of_val(scores).try_into()?;
        let start = scores.as_ptr().cast_mut().cast();
        // SAFETY: the scores never change nor move while `slf`, of which the
        // view keeps a reference, is alive; the view is read-only.
        let failed = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        if failed == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

type Columns<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Returns the columns of the dropped chunks.
pub(crate) fn dropped_columns(py: Python<'_>, dropped: DroppedColumns) -> PyResult<Columns<'_>> {
    // Each column is let go of as soon as Python has it.
    let DroppedColumns { index, reason, needed, available } = dropped;
    Ok((
        column(py, index.into_iter())?,
        column(py, reason.into_iter().map(codes::reason))?,
        column(py, needed.into_iter().map(signed))?,
        column(py, available.into_iter().map(signed))?,
    ))
}

/// Returns for each signal a chunk, a kind and another chunk, as uint32, and
/// what it adds, as float64.
pub(crate) fn signals_column<'py>(py: Python<'py>, signals: &[Signal]) -> Bound<'py, PyBytes> {
    let mut bytes = Vec::with_capacity(20 * signals.len());
    for &Signal { chunk, kind, added } in signals {
        let (kind, source) = codes::signal(kind);
        for number in [chunk, kind, source] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(added.to_ne_bytes());
    }
    PyBytes::new(py, &bytes)
}
