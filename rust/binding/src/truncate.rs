//! `budgeteer::truncate` for Python.

use budgeteer::Text;
use budgeteer::pipeline::Counting;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::codes::{self, Kind, LOOSE};
use crate::convert::{self, string, text};
use crate::error::guard;

/// Cutting takes for each code point as long as reading this many.
pub(crate) const CUTTING: usize = 40;

/// Returns the places, in code points, where grapheme clusters end.
#[pyfunction]
#[pyo3(signature = (text: "str") -> "list[int]", text_signature = "(text)")]
pub(crate) fn grapheme_boundaries(text: &Bound<'_, PyString>) -> PyResult<Vec<usize>> {
    guard(|| Ok(budgeteer::grapheme_boundaries(self::text(text)?)))
}

/// Cuts `text` to at most `max_tokens` tokens, marker included.
#[pyfunction]
#[pyo3(signature = (
    kind: "int | Tokenizer",
    ratio: "float",
    ask: "object | None",
    text: "str",
    max_tokens: "int",
    keep: "int",
    marker: "str",
) -> "str", text_signature = "(kind, ratio, ask, text, max_tokens, keep, marker)")]
pub(crate) fn truncate<'py>(
    kind: Kind<'_>,
    ratio: f64,
    ask: Option<&Bound<'py, PyAny>>,
    text: &Bound<'py, PyString>,
    max_tokens: u64,
    keep: u8,
    marker: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    guard(|| {
        let (whole, marker) = (self::text(text)?, self::text(marker)?);
        let keep = codes::keep(keep);
        let cut = match (codes::counting(kind, ratio), ask) {
            (Counting::Exact(exact, factor), _) => {
                convert::work(py, whole.chars().saturating_mul(CUTTING), |stop| {
                    exact.truncate(whole, factor.within(max_tokens), keep, marker, stop)
                })?
            }
            (Counting::Estimate(estimate), _) => {
                convert::work(py, whole.chars().saturating_mul(CUTTING), |stop| {
                    estimate.truncate_till(whole, max_tokens, keep, marker, stop)
                })?
            }
            (Counting::Host, Some(ask)) => {
                budgeteer::truncate(whole, max_tokens, keep, marker, |piece: Text<'_>| {
                    let mut utf8 = Vec::new();
                    piece.write_utf8(&mut utf8);
                    ask.call1((string(py, &utf8)?, LOOSE))?.extract()
                })?
            }
            (Counting::Host, None) => unreachable!("the facade gives what is to be asked"),
        };
        cut.map_or_else(|| Ok(text.clone().into_any()), |cut| string(py, &cut))
    })
}
