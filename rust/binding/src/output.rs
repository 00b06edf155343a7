//! `budgeteer::fit_output` for Python.

use budgeteer::pipeline::Counting;
use budgeteer::{Drafts, Misfit, Request, Text, fit_text};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::codes::{self, Kind, LOOSE};
use crate::convert::{self, string, text};
use crate::error::guard;
use crate::truncate::CUTTING;

/// Cuts the result of a tool to at most `max_tokens` tokens. Returns the text,
/// its tokens, how many code points it leaves out, and its kind; or a code and
/// a number: what is wrong with `text` and where, or the tokens of its smallest
/// text.
#[pyfunction]
#[pyo3(signature = (
    kind: "int | Tokenizer",
    ratio: "float",
    ask: "object | None",
    text: "str",
    max_tokens: "int",
    shape: "int",
    query: "str | None",
    pointer: "str | None",
) -> "tuple[str, int, int, int] | tuple[int, int]", text_signature = "(kind, ratio, ask, text, max_tokens, shape, query, pointer)")]
#[allow(clippy::too_many_arguments)] // the facade names them
pub(crate) fn fit_output<'py>(
    kind: Kind<'_>,
    ratio: f64,
    ask: Option<&Bound<'py, PyAny>>,
    text: &Bound<'py, PyString>,
    max_tokens: u64,
    shape: u8,
    query: Option<&Bound<'py, PyString>>,
    pointer: Option<&Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    guard(|| {
        let request = Request {
            text: self::text(text)?,
            max_tokens,
            kind: codes::output_kind(shape),
            query: query.map(self::text).transpose()?,
            pointer: pointer.map(self::text).transpose()?,
        };
        let chars = request.text.chars();
        let answer = match (codes::counting(kind, ratio), ask) {
            (Counting::Exact(exact, factor), _) => {
                let mut drafts = Drafts::new(&exact, factor);
                convert::work(py, chars.saturating_mul(CUTTING), |stop| {
                    fit_text(request, stop, &mut |text, limit| {
                        Ok::<_, PyErr>(drafts.count(text, limit, stop))
                    })
                })??
            }
            (Counting::Estimate(estimate), _) => {
                convert::work(py, chars.saturating_mul(CUTTING), |stop| {
                    let mut scratch = Vec::new();
                    fit_text(request, stop, &mut |text, limit| {
                        let count = estimate.count_text(text, &mut scratch);
                        Ok::<_, PyErr>(Some(count).filter(|&count| count <= limit))
                    })
                })??
            }
            (Counting::Host, Some(ask)) => {
                fit_text(request, &false.into(), &mut |text: Text<'_>, limit| {
                    let mut utf8 = Vec::new();
                    text.write_utf8(&mut utf8);
                    let count: u64 = ask.call1((string(py, &utf8)?, LOOSE))?.extract()?;
                    Ok::<_, PyErr>(Some(count).filter(|&count| count <= limit))
                })?
            }
            (Counting::Host, None) => unreachable!("the facade gives what is to be asked"),
        };
        match answer {
            Ok(fit) => {
                let kind = codes::output_code(fit.kind);
                let text = string(py, &fit.text)?;
                Ok((text, fit.total_tokens, fit.left_out, kind).into_pyobject(py)?.into_any())
            }
            Err(misfit) => {
                let (code, number) = match misfit {
                    Misfit::NotJson { at } => (1_u8, at as u64),
                    Misfit::TooDeep { at } => (2, at as u64),
                    Misfit::NotDiff => (3, 0),
                    Misfit::NoRoom { needed } => (4, needed),
                };
                Ok((code, number).into_pyobject(py)?.into_any())
            }
        }
    })
}
