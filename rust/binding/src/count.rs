//! `budgeteer::count` for Python.

use budgeteer::pipeline::Counting;
use budgeteer::{Batch, Text};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PySequence, PyString, PyTuple};

use crate::chunk::Texts;
use crate::codes::{self, Kind};
use crate::column::TextColumn;
use crate::convert::{self, mutable_column, signed, work};
use crate::error::guard;

/// Counting a code point exactly takes as long as reading this many.
pub(crate) const COUNTING: usize = 8;

/// Few texts have more code points for each token.
const MOST_CHARS: usize = 16;

/// Counts the tokens of `text`.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer", ratio: "float", text: "str") -> "int", text_signature = "(kind, ratio, text)")]
pub(crate) fn count(kind: Kind<'_>, ratio: f64, text: &Bound<'_, PyString>) -> PyResult<u64> {
    guard(|| {
        let limit = i64::MAX.cast_unsigned();
        Ok(till_limit(text.py(), kind, ratio, convert::text(text)?, limit)?.unwrap_or(limit))
    })
}

/// Counts the tokens of `text`, or returns None if there are more than `limit`.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer", ratio: "float", text: "str", limit: "int") -> "int | None", text_signature = "(kind, ratio, text, limit)")]
pub(crate) fn count_till_limit(
    kind: Kind<'_>,
    ratio: f64,
    text: &Bound<'_, PyString>,
    limit: u64,
) -> PyResult<Option<u64>> {
    guard(|| till_limit(text.py(), kind, ratio, convert::text(text)?, limit))
}

fn till_limit(
    py: Python<'_>,
    kind: Kind<'_>,
    ratio: f64,
    text: Text<'_>,
    limit: u64,
) -> PyResult<Option<u64>> {
    match codes::counting(kind, ratio) {
        Counting::Estimate(estimate) => {
            Ok(Some(estimate.count_text(text, &mut Vec::new())).filter(|&count| count <= limit))
        }
        Counting::Exact(exact, factor) => {
            let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_mul(MOST_CHARS);
            let chars = text.chars().min(most).saturating_mul(COUNTING);
            work(py, chars, |stop| factor.count(&exact, text, limit, stop))
        }
        Counting::Host => unreachable!("the facade asks a callable itself"),
    }
}

/// Counts `text` with an encoding. Its characters from `start` to `end` count
/// `tokens`.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer", ratio: "float", text: "str", start: "int", end: "int", tokens: "int") -> "int", text_signature = "(kind, ratio, text, start, end, tokens)")]
pub(crate) fn count_around(
    kind: Kind<'_>,
    ratio: f64,
    text: &Bound<'_, PyString>,
    start: usize,
    end: usize,
    tokens: u64,
) -> PyResult<u64> {
    guard(|| {
        let (known, read) = (start..end, convert::text(text)?);
        let Counting::Exact(exact, factor) = codes::counting(kind, ratio) else {
            unreachable!("the facade asks for encodings only")
        };
        if let Some(count) = factor.count_around(&exact, read, known, tokens) {
            return Ok(count);
        }
        let chars = read.chars().saturating_mul(COUNTING);
        let count = work(text.py(), chars, |stop| factor.count(&exact, read, u64::MAX, stop))?;
        Ok(count.unwrap_or(u64::MAX))
    })
}

/// Counts the text of each chunk, which can be read; None for more than its limit.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer", ratio: "float", chunks: "tuple[object, ...]", limits: "list[int]") -> "list[int | None]", text_signature = "(kind, ratio, chunks, limits)")]
#[allow(clippy::needless_pass_by_value)] // the extracted limits are ours
pub(crate) fn count_chunks(
    kind: Kind<'_>,
    ratio: f64,
    chunks: &Bound<'_, PyTuple>,
    limits: Vec<u64>,
) -> PyResult<Vec<Option<u64>>> {
    guard(|| {
        let texts = Texts::of_chunks(chunks, false)?;
        let texts = texts.map_err(|_| PyTypeError::new_err("a chunk has no text any more"))?;
        let counting = codes::counting(kind, ratio);
        let chars = texts.total_chars().saturating_mul(COUNTING);
        work(chunks.py(), chars, |stop| {
            let count = |(index, &limit)| match &counting {
                Counting::Exact(exact, factor) => {
                    factor.count(exact, texts.text(index), limit, stop)
                }
                Counting::Estimate(estimate) => {
                    let count = estimate.count_text(texts.text(index), &mut Vec::new());
                    Some(count).filter(|&count| count <= limit)
                }
                Counting::Host => unreachable!("the facade asks a callable itself"),
            };
            limits.iter().enumerate().map(count).collect()
        })
    })
}

/// Counts each of `texts`, as int64; or returns the index of the first that is
/// not a str.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer", ratio: "float", texts: "list[object] | tuple[object, ...]") -> "bytearray | int")]
pub(crate) fn count_batch<'py>(
    kind: Kind<'_>,
    ratio: f64,
    texts: &Bound<'py, PySequence>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = texts.py();
    guard(|| {
        let texts = texts.to_tuple()?;
        let texts = match Texts::of_texts(&texts, None)? {
            Ok(texts) => texts,
            Err((_, index)) => return Ok(index.into_pyobject(py)?.into_any()),
        };
        Ok(counts_of(py, kind, ratio, &texts)?.into_any())
    })
}

/// Counts each text of a column, as int64.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer", ratio: "float", column: "TextColumn") -> "bytearray", text_signature = "(kind, ratio, column)")]
pub(crate) fn count_column<'py>(
    kind: Kind<'_>,
    ratio: f64,
    column: &Bound<'py, TextColumn>,
) -> PyResult<Bound<'py, PyByteArray>> {
    guard(|| counts_of(column.py(), kind, ratio, &*column.get().texts()))
}

fn counts_of<'py>(
    py: Python<'py>,
    kind: Kind<'_>,
    ratio: f64,
    texts: &impl Batch,
) -> PyResult<Bound<'py, PyByteArray>> {
    let chars = texts.total_chars();
    let counts = match codes::counting(kind, ratio) {
        Counting::Estimate(estimate) => work(py, chars, |_| {
            let mut scratch = Vec::new();
            let count = |index| estimate.count_text(texts.text(index), &mut scratch);
            (0..texts.len()).map(count).collect::<Vec<_>>()
        })?,
        Counting::Exact(exact, factor) => work(py, chars.saturating_mul(COUNTING), |stop| {
            let indices: Vec<u32> = (0..).take(texts.len()).collect();
            let counts = exact.count_batch(texts, &indices, stop);
            counts.into_iter().map(|count| factor.of(count)).collect()
        })?,
        Counting::Host => unreachable!("the facade asks a callable itself"),
    };
    mutable_column(py, counts.into_iter().map(signed))
}

/// Returns figures of the cache of counts: hits, misses, entries, bytes and the
/// maximum of bytes.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer") -> "tuple[int, int, int, int, int]", text_signature = "(kind)")]
pub(crate) fn cache_info(kind: Kind<'_>) -> PyResult<(u64, u64, u64, u64, u64)> {
    guard(|| {
        let info = codes::exact(kind).cache_info();
        Ok((info.hits, info.misses, info.entries, info.bytes, info.max_bytes))
    })
}

/// Empties the cache of counts.
#[pyfunction]
#[pyo3(signature = (kind: "int | Tokenizer") -> "None", text_signature = "(kind)")]
pub(crate) fn clear_cache(kind: Kind<'_>) -> PyResult<()> {
    guard(|| {
        codes::exact(kind).clear_cache();
        Ok(())
    })
}
