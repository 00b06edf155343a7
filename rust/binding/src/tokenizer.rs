//! `budgeteer::Tokenizer` for Python.

use std::hash::{Hash, Hasher};

use budgeteer::{ErrorKind, Exact};
use pyo3::exceptions::PyOSError;
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::codes;
use crate::error::guard;

import_exception!(budgeteer.errors, CounterError);

/// A tokenizer that was read from a file. Immutable, and equal to another of what was
/// read once.
#[pyclass(frozen, eq, hash, module = "budgeteer._native")]
pub(crate) struct Tokenizer {
    exact: Exact,
    has_cache: bool,
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.exact.tokenizer() == other.exact.tokenizer() && self.has_cache == other.has_cache
    }
}

impl Hash for Tokenizer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.exact.tokenizer().hash(state);
    }
}

impl Tokenizer {
    pub(crate) fn exact(&self) -> Exact {
        self.exact.clone()
    }

    fn with(&self, has_cache: bool) -> Self {
        let exact = if has_cache { self.exact() } else { self.exact.without_cache() };
        Self { exact, has_cache }
    }
}

#[pymethods]
impl Tokenizer {
    /// Reads the file, or the one in a directory.
    #[new]
    #[pyo3(signature = (path: "str", has_cache: "bool"))]
    fn new(py: Python<'_>, path: &str, has_cache: bool) -> PyResult<Self> {
        guard(|| match py.detach(|| budgeteer::Tokenizer::open(path)) {
            Ok(tokenizer) => Ok(Self { exact: tokenizer.into(), has_cache: true }.with(has_cache)),
            Err(error) => Err(match error.kind() {
                ErrorKind::Io(_) => PyOSError::new_err((error.os_error(), error.to_string())),
                _ => CounterError::new_err(error.to_string()),
            }),
        })
    }

    /// Returns the same tokenizer, which counts without a cache.
    #[pyo3(signature = () -> "Tokenizer")]
    fn fresh(&self) -> Self {
        self.with(false)
    }

    /// Returns the arguments that it was made with.
    #[pyo3(signature = () -> "tuple[str, bool]")]
    fn made_with(&self) -> (String, bool) {
        (self.exact.tokenizer().name().to_string(), self.has_cache)
    }
}

/// Returns the vocabulary of an encoding, packed.
#[pyfunction]
#[pyo3(signature = (kind: "int") -> "bytes", text_signature = "(kind)")]
pub(crate) fn packed_vocabulary(py: Python<'_>, kind: u8) -> PyResult<Bound<'_, PyBytes>> {
    guard(|| Ok(PyBytes::new(py, &codes::encoding(kind).load().pack())))
}
