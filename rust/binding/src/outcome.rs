//! What became of chunks, as objects of the facade's classes.
#![allow(unsafe_code)] // columns are read where they lie

use pyo3::IntoPyObjectExt;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySequence, PyString, PyTuple, PyType};

use crate::convert::slice;
use crate::error::guard;
use crate::slots::Maker;

/// The columns of kept chunks: their indices, their scores, the tokens of their
/// texts, those of their citations, and where the texts start and end.
type Kept = (PyBuffer<u32>, PyBuffer<f64>, PyBuffer<i64>, PyBuffer<i64>, PyBuffer<i64>);

/// The columns of dropped chunks: their indices, the scores of all chunks, the
/// reasons, the tokens that were needed, and those that were available.
type Dropped = (PyBuffer<u32>, PyBuffer<f64>, PyBuffer<u8>, PyBuffer<i64>, PyBuffer<i64>);

/// Returns the kept chunks from one place to another as objects of `kind`.
/// `texts` are theirs, or the one text in which theirs stand. `cut` has the places
/// of those that were cut.
#[pyfunction]
#[pyo3(signature = (
    kind: "type",
    chunks: "object",
    places: "tuple[int, int]",
    texts: "str | list[str]",
    columns: "tuple[memoryview, memoryview, memoryview, memoryview, memoryview]",
    cut: "list[int]",
) -> "list[object]")]
#[allow(clippy::needless_pass_by_value)] // the extracted columns are ours
pub(crate) fn kept_chunks<'py>(
    kind: &Bound<'py, PyType>,
    chunks: &Bound<'py, PySequence>,
    places: (usize, usize),
    texts: &Bound<'py, PyAny>,
    columns: Kept,
    cut: Vec<usize>,
) -> PyResult<Bound<'py, PyList>> {
    let py = kind.py();
    guard(|| {
        let maker = Maker::of(kind)?;
        let (kept, scores, counts, citations, spans) = &columns;
        let (kept, scores, spans) = (numbers(kept)?, numbers(scores)?, numbers(spans)?);
        let (counts, citations) = (numbers(counts)?, numbers(citations)?);
        let made = |place: usize| {
            let index = at(kept, place)?;
            let (start, end) = (at(spans, 2 * place)?, at(spans, 2 * place + 1)?);
            let text = match texts.cast::<PyString>() {
                Ok(text) => slice(text, start.try_into()?, end.try_into()?)?,
                Err(_) => texts.get_item(place - places.0)?,
            };
            let span = if start < 0 { None } else { Some((start, end)) };
            maker.make([
                chunks.get_item(index as usize)?,
                index.into_bound_py_any(py)?,
                text,
                score(py, scores, place)?,
                at(counts, place)?.into_bound_py_any(py)?,
                at(citations, place)?.into_bound_py_any(py)?,
                span.into_bound_py_any(py)?,
                cut.binary_search(&place).is_ok().into_bound_py_any(py)?,
            ])
        };
        made_list(py, places, made)
    })
}

/// Returns the dropped chunks from one place to another as objects of `kind`.
/// `names` has the name of each reason, and `duplicates` the kept chunk that each
/// duplicate repeats.
#[pyfunction]
#[pyo3(signature = (
    kind: "type",
    chunks: "object",
    places: "tuple[int, int]",
    names: "tuple[str, ...]",
    columns: "tuple[memoryview, memoryview, bytes, memoryview, memoryview]",
    duplicates: "dict[int, int]",
) -> "list[object]")]
#[allow(clippy::needless_pass_by_value)] // the extracted columns are ours
pub(crate) fn dropped_chunks<'py>(
    kind: &Bound<'py, PyType>,
    chunks: &Bound<'py, PySequence>,
    places: (usize, usize),
    names: &Bound<'py, PyTuple>,
    columns: Dropped,
    duplicates: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyList>> {
    let py = kind.py();
    guard(|| {
        let maker = Maker::of(kind)?;
        let (dropped, scores, reasons, needed, available) = &columns;
        let (dropped, scores, reasons) = (numbers(dropped)?, numbers(scores)?, numbers(reasons)?);
        let (needed, available) = (numbers(needed)?, numbers(available)?);
        let made = |place: usize| {
            let index = at(dropped, place)?;
            let number = index.into_bound_py_any(py)?;
            let original =
                if duplicates.is_empty() { None } else { duplicates.get_item(&number)? };
            maker.make([
                chunks.get_item(index as usize)?,
                number,
                score(py, scores, index as usize)?,
                names.get_item(at(reasons, place)?.into())?,
                at(needed, place)?.into_bound_py_any(py)?,
                at(available, place)?.into_bound_py_any(py)?,
                original.into_bound_py_any(py)?,
            ])
        };
        made_list(py, places, made)
    })
}

fn made_list<'py>(
    py: Python<'py>,
    (start, stop): (usize, usize),
    made: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, (start..stop).map(made).collect::<PyResult<Vec<_>>>()?)
}

/// Returns the numbers of a column, which never change.
fn numbers<T: Element>(column: &PyBuffer<T>) -> PyResult<&[T]> {
    let numbers = column.as_slice_ptr();
    let numbers = numbers.ok_or_else(|| PyIndexError::new_err("a column is not contiguous"))?;
    // SAFETY: the memory is lent as long as the buffer lives. It is that of
    // bytes, or of the result of a packing, which nobody writes to.
    Ok(unsafe { numbers.as_ref() })
}

fn at<T: Element>(numbers: &[T], place: usize) -> PyResult<T> {
    numbers.get(place).copied().ok_or_else(|| PyIndexError::new_err("a column is too short"))
}

/// Returns the score at `place`, None for none.
fn score<'py>(py: Python<'py>, scores: &[f64], place: usize) -> PyResult<Bound<'py, PyAny>> {
    let score = at(scores, place)?;
    Some(score).filter(|score| !score.is_nan()).into_bound_py_any(py)
}
