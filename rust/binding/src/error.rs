//! Panics of the core as Python exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::{PyResult, import_exception};

import_exception!(budgeteer.errors, CorpusError);
import_exception!(budgeteer.errors, InternalError);
import_exception!(budgeteer.errors, InvalidArgumentError);

/// Calls `work`; a panic in it becomes an `InternalError`.
///
/// What `work` leaves half done is dropped with it: none of our state outlives
/// a call.
pub(crate) fn guard<R>(work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(&*panic)))
}

#[cold]
fn internal(panic: &(dyn Any + Send)) -> pyo3::PyErr {
    let what = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    InternalError::new_err(format!("a defect of budgeteer, please report it: {what}"))
}
