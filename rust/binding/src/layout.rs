//! `budgeteer::resolve_layout` for Python.

use budgeteer::Flex;
use pyo3::prelude::*;

use crate::convert;
use crate::error::guard;

/// Resolving a section takes about as long as reading this many code points.
const RESOLVING: usize = 2_000;

/// Divides `space` tokens among sections. Returns their sizes, the dropped ones
/// and the free tokens.
#[pyfunction]
#[pyo3(signature = (
    space: "int",
    basis: "list[int]",
    grow: "list[float]",
    shrink: "list[float]",
    minimum: "list[int]",
    maximum: "list[int]",
    priority: "list[int]",
) -> "tuple[list[int], list[int], int]", text_signature = "(space, basis, grow, shrink, minimum, maximum, priority)")]
#[allow(clippy::too_many_arguments)] // the facade names them
pub(crate) fn resolve_layout(
    py: Python<'_>,
    space: u64,
    basis: Vec<u64>,
    grow: Vec<f64>,
    shrink: Vec<f64>,
    minimum: Vec<u64>,
    maximum: Vec<u64>,
    priority: Vec<i64>,
) -> PyResult<(Vec<u64>, Vec<usize>, u64)> {
    guard(|| {
        let rows = basis.into_iter().zip(grow).zip(shrink).zip(minimum).zip(maximum).zip(priority);
        let sections: Vec<Flex> = rows
            .map(|(((((basis, grow), shrink), min_tokens), max_tokens), priority)| {
                let max_tokens = Some(max_tokens);
                Flex { basis, grow, shrink, min_tokens, max_tokens, priority }
            })
            .collect();
        let resolved = convert::work(py, sections.len().saturating_mul(RESOLVING), |_| {
            budgeteer::resolve_layout(space, &sections).expect("the facade has checked the factors")
        })?;
        Ok((resolved.tokens, resolved.dropped, resolved.free_tokens))
    })
}
