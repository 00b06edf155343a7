//! The answers to the rows of a table, as columns.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use budgeteer::pipeline::{self, Host, Own, Subject, Tag, share_rows};
use budgeteer::{RankBy, Text};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arrow::{Bits, Frame, Out, schema_capsule, stream_capsule};
use crate::convert::{signed, work};
use crate::error::{InternalError, guard};
use crate::pack::Plan;

use super::{Bad, Row, Rows, Wants};

/// The columns of some rows, as they are made.
pub(super) struct Block {
    texts: (Bits, Vec<i64>, Vec<u8>),
    tokens: (Bits, Vec<i64>),
    kept: (Bits, Vec<i32>, Vec<i64>),
    /// The rows that could not be packed, with their errors.
    errors: Vec<(usize, String)>,
    /// Those whose errors are still to be worded.
    unworded: Vec<(usize, Bad)>,
    rows: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            texts: (Bits::default(), vec![0], Vec::new()),
            tokens: (Bits::default(), Vec::new()),
            kept: (Bits::default(), vec![0], Vec::new()),
            errors: Vec::new(),
            unworded: Vec::new(),
            rows: 0,
        }
    }
}

impl Block {
    /// Adds a row that was packed.
    pub(super) fn push(&mut self, text: &[u8], tokens: i64, kept: impl Iterator<Item = i64>) {
        self.texts.2.extend_from_slice(text);
        self.kept.2.extend(kept);
        self.push_row(Some(tokens));
    }

    /// Adds a row that could not be packed.
    pub(super) fn push_error(&mut self, error: String) {
        self.errors.push((self.rows, error));
        self.push_row(None);
    }

    fn push_bad(&mut self, bad: Bad) {
        self.unworded.push((self.rows, bad));
        self.push_row(None);
    }

    fn push_row(&mut self, tokens: Option<i64>) {
        self.texts.0.push(tokens.is_some());
        self.texts.1.push(signed(self.texts.2.len() as u64));
        self.tokens.0.push(tokens.is_some());
        self.tokens.1.push(tokens.unwrap_or_default());
        self.kept.0.push(tokens.is_some());
        self.kept.1.push(i32::try_from(self.kept.2.len()).unwrap_or(i32::MAX));
        self.rows += 1;
    }

    /// Returns the columns, behind one of keys if there is one.
    pub(super) fn finish(self, keys: Option<Out>) -> PyResult<Frame> {
        if i32::try_from(self.kept.2.len()).is_err() {
            let what = "2**31 chunks were kept in one part of a table";
            return Err(InternalError::new_err(what));
        }
        let (mut valid, mut ends, mut bytes) = (Bits::default(), vec![0], Vec::new());
        let mut errors = self.errors.iter().peekable();
        for row in 0..self.rows {
            let error = errors.next_if(|(nth, _)| *nth == row);
            valid.push(error.is_some());
            bytes.extend_from_slice(error.map_or(&[], |(_, error)| error.as_bytes()));
            ends.push(signed(bytes.len() as u64));
        }
        let columns = [
            Out::Texts(self.texts.0, self.texts.1, self.texts.2),
            Out::Ints(self.tokens.0, self.tokens.1),
            Out::Lists(self.kept.0, self.kept.1, self.kept.2),
            Out::Texts(valid, ends, bytes),
        ];
        Ok(Frame { rows: self.rows, columns: keys.into_iter().chain(columns).collect() })
    }
}

/// The columns of all answers.
#[pyclass(frozen, module = "budgeteer._native")]
pub(crate) struct Columns {
    names: Arc<[String]>,
    /// An empty column of each type.
    kinds: Arc<[Out]>,
    frames: Vec<Arc<Frame>>,
}

impl Columns {
    pub(super) fn new(rows: &Rows, frames: Vec<Frame>) -> Self {
        let names = ["text", "total_tokens", "kept", "error"].map(str::to_owned);
        let kinds = [
            Out::Texts(Bits::default(), Vec::new(), Vec::new()),
            Out::Ints(Bits::default(), Vec::new()),
            Out::Lists(Bits::default(), Vec::new(), Vec::new()),
            Out::Texts(Bits::default(), Vec::new(), Vec::new()),
        ];
        Self {
            names: rows.key.iter().cloned().chain(names).collect(),
            kinds: rows.keys(0..0).into_iter().chain(kinds).collect(),
            frames: frames.into_iter().map(Arc::new).collect(),
        }
    }
}

#[pymethods]
impl Columns {
    /// Returns the number of rows.
    fn __len__(&self) -> usize {
        self.frames.iter().map(|frame| frame.rows).sum()
    }

    /// Returns a capsule with the columns. They come in the types that they have.
    #[pyo3(signature = (requested_schema: "object | None" = None) -> "object")]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = requested_schema;
        stream_capsule(py, &self.names, &self.kinds, &self.frames)
    }

    /// Returns a capsule with the types of the columns.
    #[pyo3(signature = () -> "object")]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        schema_capsule(py, &self.names, &self.kinds)
    }
}

/// A call was told to end.
struct Stopped;

/// What is around a call for a row: nobody who would be asked.
struct Alone<'a, 'r> {
    row: &'a Row<'r>,
    stop: &'a AtomicBool,
}

impl Host for Alone<'_, '_> {
    type Error = Stopped;

    fn count(&mut self, _: Subject<'_>) -> Result<u64, Stopped> {
        unreachable!("the facade packs row by row where a callable counts")
    }

    fn tag(&mut self, index: usize) -> Result<Tag, Stopped> {
        Ok(self.row.tag(index))
    }

    fn write(&mut self, _: usize) -> Result<Vec<u8>, Stopped> {
        unreachable!("the facade packs row by row where a function writes")
    }

    fn cite(&mut self, _: usize) -> Result<u64, Stopped> {
        unreachable!("tables are packed by no preset")
    }

    fn work<R: Send>(
        &mut self,
        _: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, Stopped> {
        let done = work(self.stop);
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(done) }
    }
}

/// Returns the text, its tokens, and the kept chunks.
fn pack_row(
    plan: &pipeline::Plan,
    row: &Row<'_>,
    budget: u64,
    stop: &AtomicBool,
) -> Result<(Vec<u8>, i64, Vec<u32>), Stopped> {
    let call = pipeline::Call { keys: &row.keys, ..plan.call(row.query.into(), budget) };
    let outcome = pipeline::run(&call, row, &mut Alone { row, stop })?;
    let kept = outcome.kept().map(|kept| kept.index).collect();
    Ok((outcome.text(&call, row), signed(outcome.total_tokens), kept))
}

/// Packs each row. `refuse` words the errors of rows that cannot be read.
#[pyfunction]
#[pyo3(signature = (plan: "Plan", rows: "Rows", budget: "int", needs_query: "bool", refuse: "object") -> "Columns", text_signature = "(plan, rows, budget, needs_query, refuse)")]
pub(crate) fn pack_rows(
    plan: &Bound<'_, Plan>,
    rows: &Bound<'_, Rows>,
    budget: u64,
    needs_query: bool,
    refuse: &Bound<'_, PyAny>,
) -> PyResult<Columns> {
    guard(|| {
        let (plan, rows) = (plan.get().plan(), rows.get());
        let needs = plan.needs();
        let wants = Wants {
            query: needs_query,
            titles: needs.has_titles,
            scores: needs.own == Some(Own::Score),
            finite: matches!(plan.ranking, RankBy::Hybrid(_)),
            times: needs.own == Some(Own::Mtime),
            tags: plan.call(Text::EMPTY, 0).asks_host(),
        };
        let pack = |stop: &AtomicBool, places: Range<usize>| {
            let mut block = Block::default();
            for nth in places.clone() {
                match rows.read(nth, wants) {
                    Err(bad) => block.push_bad(bad),
                    Ok(row) => match pack_row(plan, &row, budget, stop) {
                        Ok((text, tokens, kept)) => {
                            block.push(&text, tokens, kept.into_iter().map(|at| row.named(at)));
                        }
                        Err(Stopped) => break,
                    },
                }
            }
            (block, places)
        };
        let blocks = work(refuse.py(), usize::MAX, |stop| {
            share_rows(rows.len(), stop, |places| pack(stop, places))
        })?;
        let mut frames = Vec::with_capacity(blocks.len());
        for (mut block, places) in blocks {
            if block.rows < places.len() {
                return Err(PyKeyboardInterrupt::new_err(()));
            }
            for (row, bad) in std::mem::take(&mut block.unworded) {
                let error = refuse.call1(bad.wire())?;
                block.errors.push((row, error.cast::<PyString>()?.to_str()?.to_owned()));
            }
            frames.push(block.finish(rows.keys(places))?);
        }
        Ok(Columns::new(rows, frames))
    })
}
