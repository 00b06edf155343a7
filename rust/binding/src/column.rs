//! Columns of texts whose memory is another program's.

use std::sync::Arc;

use budgeteer::Batch;
use pyo3::exceptions::{PyException, PyIndexError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PySequence, PySlice};

use crate::arrow::{ArrowTexts, Unread, import};
use crate::chunk::Strings;
use crate::codes::BadRow;
use crate::corpus::utf8_string;
use crate::error::guard;

/// A column of texts, which become strs when they are asked for.
#[pyclass(frozen, sequence, module = "budgeteer._native")]
pub(crate) struct TextColumn {
    texts: Arc<ArrowTexts>,
}

impl TextColumn {
    pub(crate) fn texts(&self) -> Arc<ArrowTexts> {
        Arc::clone(&self.texts)
    }
}

#[pymethods]
impl TextColumn {
    /// Returns the number of texts.
    fn __len__(&self) -> usize {
        self.texts.len()
    }

    /// Returns a text; of a slice a list of texts.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        guard(|| {
            let len = self.texts.len();
            if let Ok(slice) = index.cast::<PySlice>() {
                let places = slice.indices(len.try_into()?)?;
                let step = |nth: usize| places.start + places.step * nth.cast_signed();
                let texts = (0..places.slicelength)
                    .map(|nth| self.texts.string(py, step(nth).cast_unsigned()));
                return Ok(PyList::new(py, texts.collect::<PyResult<Vec<_>>>()?)?.into_any());
            }
            let given = index.extract::<isize>()?;
            let place = if given < 0 { given + len.cast_signed() } else { given };
            let place = usize::try_from(place).ok().filter(|&place| place < len);
            let place = place.ok_or_else(|| PyIndexError::new_err("no text has this index"))?;
            self.texts.string(py, place)
        })
    }
}

impl Strings for ArrowTexts {
    fn string<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        utf8_string(py, self.text(index))
    }

    fn is_string(&self, _: usize) -> bool {
        true
    }
}

/// Reads a column, which gives Arrow; or returns a code and the index of the
/// first text that cannot be read, or None if it does not hold texts.
#[pyfunction]
#[pyo3(signature = (column: "object") -> "TextColumn | tuple[int, int] | None", text_signature = "(column)")]
pub(crate) fn read_column<'py>(column: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    let py = column.py();
    guard(|| {
        REGISTERED.get_or_try_init(py, || PySequence::register::<TextColumn>(py))?;
        let found = match import(column) {
            Ok(Ok(found)) => found,
            Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
            // The column may still be read as a sequence.
            Ok(Err(_)) | Err(_) => return Ok(None),
        };
        match py.detach(|| ArrowTexts::of(found)) {
            None => Ok(None),
            Some(Ok(texts)) => {
                Ok(Some(Bound::new(py, TextColumn { texts: Arc::new(texts) })?.into_any()))
            }
            Some(Err((unread, index))) => {
                let code = match unread {
                    Unread::Null => BadRow::Null,
                    Unread::Bad(misread) => misread.into(),
                };
                Ok(Some((code as u8, index).into_pyobject(py)?.into_any()))
            }
        }
    })
}
