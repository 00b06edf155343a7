//! `budgeteer::keyword_scores`, `budgeteer::bm25_scores`,
//! `budgeteer::lexical_scores` and `budgeteer::keywords` for Python.

use std::sync::Arc;

use budgeteer::{Batch, Bm25, Lexical, Stemming, Stopwords, Text};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySequence, PyString, PyTuple};

use crate::chunk::Texts;
use crate::convert::{mutable_column, string, text, utf8, work};
use crate::error::guard;

/// Returns the keywords of `text`, each once, in order of first occurrence.
#[pyfunction]
#[pyo3(signature = (text: "str") -> "list[str]", text_signature = "(text)")]
pub(crate) fn keywords<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyList>> {
    let py = text.py();
    guard(|| {
        let found = budgeteer::keywords(self::text(text)?);
        let found: PyResult<Vec<_>> = found.iter().map(|word| string(py, word)).collect();
        PyList::new(py, found?)
    })
}

/// Scores each text as float64; or returns a code and the index of the first
/// that is not a str.
#[pyfunction]
#[pyo3(signature = (
    query: "str",
    texts: "list[object] | tuple[object, ...]",
    titles: "list[object] | tuple[object, ...] | None",
) -> "bytearray | tuple[int, int]")]
pub(crate) fn keyword_scores<'py>(
    query: &Bound<'py, PyString>,
    texts: &Bound<'py, PySequence>,
    titles: Option<&Bound<'py, PySequence>>,
) -> PyResult<Bound<'py, PyAny>> {
    scores(query, texts, titles, |query, texts| budgeteer::batch_keyword_scores(query, texts))
}

/// Scores each text as float64; or returns a code and the index of the first
/// that is not a str.
#[pyfunction]
#[pyo3(signature = (
    query: "str",
    texts: "list[object] | tuple[object, ...]",
    titles: "list[object] | tuple[object, ...] | None",
    k1: "float",
    b: "float",
    words: "tuple[str | None, str | tuple[str, ...] | None]",
) -> "bytearray | tuple[int, int]")]
pub(crate) fn bm25_scores<'py>(
    query: &Bound<'py, PyString>,
    texts: &Bound<'py, PySequence>,
    titles: Option<&Bound<'py, PySequence>>,
    k1: f64,
    b: f64,
    words: Words<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let bm25 = guard(|| bm25(k1, b, words))?;
    scores(query, texts, titles, |query, texts| budgeteer::batch_bm25_scores(query, texts, &bm25))
}

/// Scores each text as float64; or returns a code and the index of the first
/// that is not a str.
#[pyfunction]
#[pyo3(signature = (
    query: "str",
    texts: "list[object] | tuple[object, ...]",
    titles: "list[object] | tuple[object, ...] | None",
    options: "tuple[float, float, str | None, str | tuple[str, ...] | None, float, bool, bool, bool, Statistics | None]",
) -> "bytearray | tuple[int, int]")]
pub(crate) fn lexical_scores<'py>(
    query: &Bound<'py, PyString>,
    texts: &Bound<'py, PySequence>,
    titles: Option<&Bound<'py, PySequence>>,
    options: LexicalOptions<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let lexical = guard(|| lexical(options))?;
    scores(query, texts, titles, |query, texts| {
        budgeteer::batch_lexical_scores(query, texts, &lexical)
    })
}

/// The options of the lexical ranking: k1, b, the language of the stems, the
/// stopwords (their language, the words themselves, or None), k3, whether
/// headings, links and feedback count, and the statistics.
pub(crate) type LexicalOptions<'py> = (
    f64,
    f64,
    Option<String>,
    Bound<'py, PyAny>,
    f64,
    bool,
    bool,
    bool,
    Option<Bound<'py, Statistics>>,
);

/// Returns the lexical ranking with its options.
pub(crate) fn lexical(options: LexicalOptions<'_>) -> PyResult<Lexical> {
    let (k1, b, stemming, stopwords, k3, headings, links, feedback, statistics) = options;
    let bm25 = bm25(k1, b, (stemming, stopwords))?;
    let statistics = statistics.map(|statistics| Arc::clone(&statistics.get().0));
    Ok(Lexical { bm25, k3, headings, links, feedback, statistics })
}

/// The statistics of a collection, for the rankings by words.
#[pyclass(frozen, module = "budgeteer._native")]
pub(crate) struct Statistics(Arc<budgeteer::Statistics>);

#[pymethods]
impl Statistics {
    #[new]
    #[pyo3(signature = (
        of: "tuple[str | None, str | tuple[str, ...] | None]",
        chunks: "int",
        words: "int",
        frequencies: "dict[str, int]",
    ))]
    fn new(
        of: Words<'_>,
        chunks: u64,
        words: u64,
        frequencies: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        guard(|| {
            let (stemming, stopwords) = words_of(of)?;
            let mut known = Vec::with_capacity(frequencies.len());
            for (word, count) in frequencies {
                // A word with a lone surrogate is none that a text has.
                if let Ok(word) = word.extract::<String>() {
                    known.push((word, count.extract::<u64>()?));
                }
            }
            let made = budgeteer::Statistics::new(stemming, stopwords, chunks, words, known);
            Ok(Self(Arc::new(made.expect("the facade has checked them"))))
        })
    }
}

/// The language of the stems, and the stopwords.
pub(crate) type Words<'py> = (Option<String>, Bound<'py, PyAny>);

fn bm25(k1: f64, b: f64, words: Words<'_>) -> PyResult<Bm25> {
    let (stemming, stopwords) = words_of(words)?;
    Ok(Bm25 { stemming, stopwords, k1, b })
}

/// Returns the stemming and the stopwords.
pub(crate) fn words_of(
    (stemming, stopwords): Words<'_>,
) -> PyResult<(Option<Stemming>, Stopwords)> {
    let stopwords = if stopwords.is_none() {
        Stopwords::none()
    } else if let Ok(language) = stopwords.cast::<PyString>() {
        Stopwords::of(language.to_str()?).expect("the facade knows the languages")
    } else {
        let words = stopwords.cast::<PyTuple>()?;
        let words: Vec<_> =
            words.iter_borrowed().map(|word| utf8(&word)).collect::<PyResult<_>>()?;
        Stopwords::words(words.iter().map(|word| Text::from_utf8(word)))
    };
    let stemming = stemming
        .as_deref()
        .map(|language| Stemming::of(language).expect("the facade knows the languages"));
    Ok((stemming, stopwords))
}

fn scores<'py>(
    query: &Bound<'py, PyString>,
    texts: &Bound<'py, PySequence>,
    titles: Option<&Bound<'py, PySequence>>,
    score: impl FnOnce(Text<'_>, &Texts<'_, 'py>) -> Vec<f64> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let py = texts.py();
    guard(|| {
        let texts = texts.to_tuple()?;
        let titles = titles.map(PySequenceMethods::to_tuple).transpose()?;
        match Texts::of_texts(&texts, titles.as_ref())? {
            Ok(texts) => {
                let query = text(query)?;
                let scores = work(py, texts.total_chars(), |_| score(query, &texts))?;
                Ok(mutable_column(py, scores.into_iter())?.into_any())
            }
            Err((code, index)) => Ok((code as u8, index).into_pyobject(py)?.into_any()),
        }
    })
}
