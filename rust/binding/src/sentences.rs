//! `budgeteer::sentence_spans` for Python.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::guard;

/// Returns where each sentence starts and ends, in one list.
#[pyfunction]
#[pyo3(signature = (text: "str") -> "list[int]", text_signature = "(text)")]
pub(crate) fn sentence_spans(text: &Bound<'_, PyString>) -> PyResult<Vec<usize>> {
    guard(|| Ok(budgeteer::sentence_spans(crate::convert::text(text)?)))
}
