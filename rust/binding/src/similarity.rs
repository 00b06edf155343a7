//! `budgeteer::CosineScorer` for Python.
#![allow(unsafe_code)] // buffers have no safe interface without the interpreter's lock

use std::slice;
use std::sync::atomic::Ordering;

use budgeteer::CosineScorer;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::convert::{mutable_column, work};
use crate::error::guard;

/// How many numbers are read before the call may be interrupted: a
/// millisecond's work.
const SLICE: usize = 1 << 22;

/// Scores each of `vectors` as float64; or returns the index of the first
/// vector with a number that is not finite, -1 for the query's.
#[pyfunction]
#[pyo3(signature = (query: "object", vectors: "object") -> "bytearray | int")]
pub(crate) fn cosine_scores(
    query: PyBuffer<f32>,
    vectors: PyBuffer<f32>,
    py: Python<'_>,
) -> PyResult<Bound<'_, PyAny>> {
    guard(|| {
        let (query, vectors) = (Numbers(query), Numbers(vectors));
        let (query, vectors) = (query.numbers(), vectors.numbers());
        let dimensions = query.len();
        let Some(scorer) = CosineScorer::new(query) else {
            return Ok((-1_i64).into_pyobject(py)?.into_any());
        };
        let mut cosines = Vec::with_capacity(vectors.len() / dimensions);
        let slice = (SLICE / dimensions).max(1) * dimensions;
        // A number is read in the time of about one code point.
        let done: Result<(), usize> = work(py, vectors.len(), |stop| {
            for vectors in vectors.chunks(slice) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let before = cosines.len();
                scorer.score(vectors, &mut cosines).map_err(|index| before + index)?;
            }
            Ok(())
        })?;
        match done {
            Ok(()) => Ok(mutable_column(py, cosines.into_iter())?.into_any()),
            Err(index) => Ok(index.into_pyobject(py)?.into_any()),
        }
    })
}

/// A contiguous buffer of float32 numbers.
struct Numbers(PyBuffer<f32>);

impl Numbers {
    fn numbers(&self) -> &[f32] {
        assert!(self.0.is_c_contiguous(), "the facade makes them contiguous");
        if self.0.item_count() == 0 {
            return &[]; // there may be no memory at all
        }
        // SAFETY: the buffer holds `item_count` numbers of that type, aligned
        // and one behind the other, for as long as it is borrowed. Whatever
        // writes to them meanwhile, every pattern of bits is a number.
        unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.item_count()) }
    }
}
