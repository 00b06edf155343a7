//! `budgeteer::count` for Python.

use budgeteer::pipeline::Counting;
use budgeteer::{Batch, Estimate};
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};

use crate::chunk::Texts;
use crate::codes;
use crate::convert::{mutable_column, signed, text, work};
use crate::error::guard;

/// Counts the tokens of `text`.
#[pyfunction]
#[pyo3(signature = (kind: "int", ratio: "float", text: "str") -> "int", text_signature = "(kind, ratio, text)")]
pub(crate) fn count(kind: u8, ratio: f64, text: &Bound<'_, PyString>) -> PyResult<u64> {
    guard(|| Ok(estimate(kind, ratio).count_text(self::text(text)?, &mut Vec::new())))
}

/// Counts each of `texts`, as int64; or returns the index of the first that is
/// no str.
#[pyfunction]
#[pyo3(signature = (kind: "int", ratio: "float", texts: "list[object] | tuple[object, ...]") -> "bytearray | int")]
pub(crate) fn count_batch<'py>(
    kind: u8,
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
        let estimate = estimate(kind, ratio);
        let counts = work(py, texts.total_chars(), || {
            let mut scratch = Vec::new();
            let count = |index| signed(estimate.count_text(texts.text(index), &mut scratch));
            (0..texts.len()).map(count).collect::<Vec<_>>()
        })?;
        Ok(mutable_column(py, counts.into_iter())?.into_any())
    })
}

fn estimate(kind: u8, ratio: f64) -> Estimate {
    match codes::counting(kind, ratio) {
        Counting::Estimate(estimate) => estimate,
        Counting::Host => unreachable!("the facade asks a callable itself"),
    }
}
