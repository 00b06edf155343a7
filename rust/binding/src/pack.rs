//! `budgeteer::pipeline` for Python.

use std::sync::atomic::AtomicBool;

use budgeteer::pipeline::{self, Call, Gate, Host, Outcome, Plan, Policy, Subject, Tag};
use budgeteer::{Ranking, Selection};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::chunk::{Strings, Texts};
use crate::codes::{self, ASSEMBLED};
use crate::convert::{self, Joiner, column, signed, string, text, utf8};
use crate::corpus::{CorpusIndex, Unseen, dropped_columns};
use crate::error::guard;
use crate::score::terms;

/// Packs chunks or what [`index_chunks`](crate::corpus::index_chunks) made of
/// them, and returns the columns of a packing; or a code and the index of a bad
/// chunk.
#[pyfunction]
#[pyo3(signature = (
    query: "str",
    chunks: "object",
    budget: "int",
    kind: "int",
    ratio: "float",
    ask: "object | None",
    ranking: "int",
    keys: "bytes | None",
    min_score: "float | None",
    overflow: "int",
    max_chunks: "int | None",
    dedupe: "int",
    selection: "int",
    order: "int",
    previous: "tuple[str, ...]",
    template: "tuple[int, str, str, str, str]",
    notice: "tuple[str, ...] | None",
    tag: "object",
    sum_of_parts: "bool",
    cite: "object | None",
    gate: "tuple[tuple[str, ...], tuple[str, ...], bytes, int] | None",
    hybrid: "tuple[float, float, float, float | None] | None",
    words: "tuple[str | None, str | tuple[str, ...] | None]",
) -> "tuple[object, ...]", text_signature = "(query, chunks, budget, kind, ratio, ask, ranking, keys, min_score, overflow, max_chunks, dedupe, selection, order, previous, template, notice, tag, sum_of_parts, cite, gate, hybrid, words)")]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // the facade names them
#[allow(clippy::needless_pass_by_value)] // what is extracted is ours
pub(crate) fn pack<'py>(
    query: &Bound<'py, PyString>,
    chunks: &Bound<'py, PyAny>,
    budget: u64,
    kind: u8,
    ratio: f64,
    ask: Option<&Bound<'py, PyAny>>,
    ranking: u8,
    keys: Option<&[u8]>,
    min_score: Option<f64>,
    overflow: u8,
    max_chunks: Option<u64>,
    dedupe: u8,
    selection: u8,
    order: u8,
    previous: &Bound<'py, PyTuple>,
    template: (u8, String, String, String, String),
    notice: Option<Vec<String>>,
    tag: &Bound<'py, PyAny>,
    sum_of_parts: bool,
    cite: Option<&Bound<'py, PyAny>>,
    gate: Option<GateColumns<'py>>,
    hybrid: Option<(f64, f64, f64, Option<f64>)>,
    words: (Option<String>, Bound<'py, PyAny>),
) -> PyResult<Bound<'py, PyTuple>> {
    let py = query.py();
    guard(|| {
        let (ranking, selection) = (codes::ranking(ranking), codes::selection(selection));
        let hybrid = hybrid.map(codes::hybrid).unwrap_or_default();
        let with_titles = match ranking {
            _ if gate.is_some() => false,
            _ if selection == Selection::Coverage => true,
            Ranking::Score | Ranking::Embedding => false,
            Ranking::Hybrid => hybrid.bm25 > 0.0,
            _ => true,
        };
        let keys: Vec<f64> = floats(keys.unwrap_or_default()).collect();
        let max_docs = gate.as_ref().map(|(_, _, _, max_docs)| *max_docs);
        let gate = gate.map(gate_of).transpose()?;
        let previous: Vec<Vec<u8>> =
            previous.iter_borrowed().map(|link| utf8(&link)).collect::<PyResult<_>>()?;
        let policy = match (cite.is_some(), max_docs) {
            (true, _) => Policy::Cite,
            (false, Some(max_docs)) => Policy::Gate { max_docs },
            _ if sum_of_parts => Policy::SumOfParts,
            _ => Policy::None,
        };
        let plan = Plan {
            counting: codes::counting(kind, ratio),
            ranking,
            hybrid,
            terms: terms(words)?,
            min_score,
            overflow: codes::overflow(overflow),
            max_chunks,
            dedupe: codes::dedupe(dedupe),
            selection,
            order: codes::order(order),
            template: codes::template(template),
            notice,
            policy,
        };
        let call = Call {
            keys: &keys,
            previous: &previous,
            gate: gate.as_ref(),
            ..plan.call(text(query)?, budget)
        };
        if let Ok(corpus) = chunks.cast::<CorpusIndex>() {
            let CorpusIndex { index, texts } = corpus.get();
            let mut caller = Caller { py, chunks: texts, ask, tag, cite };
            let outcome = pipeline::run_indexed(&call, texts, index, &mut caller)?;
            let (head, duplicates) = head(py, &outcome, texts, &call)?;
            let unseen = Unseen::new(outcome, plan.counting, index);
            let nothing = (py.None(), py.None(), py.None(), py.None());
            let rest = (unseen,).into_pyobject(py)?;
            let result = head.add(rest)?.add(nothing.into_pyobject(py)?)?;
            return Ok(result.add((duplicates,))?.cast_into()?);
        }
        let texts = match Texts::of_chunks(chunks.cast::<PyTuple>()?, with_titles)? {
            Ok(texts) => texts,
            Err((code, index)) => return (code as u8, index).into_pyobject(py),
        };
        let mut caller = Caller { py, chunks: &texts, ask, tag, cite };
        let outcome = pipeline::run(&call, &texts, &mut caller)?;
        let (head, duplicates) = head(py, &outcome, &texts, &call)?;
        let (scores, dropped) = outcome.into_columns();
        let scores = (column(py, scores.into_iter())?,).into_pyobject(py)?;
        let dropped = dropped_columns(py, dropped)?.into_pyobject(py)?;
        Ok(head.add(scores)?.add(dropped)?.add((duplicates,))?.cast_into()?)
    })
}

/// Kinds, authorities and priorities of all chunks, and how many documents are
/// considered.
type GateColumns<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyBytes>, u64);

fn gate_of((kinds, authorities, priorities, _): GateColumns<'_>) -> PyResult<Gate> {
    let mut gate = Gate::default();
    let priorities = floats(priorities.as_bytes());
    for ((kind, authority), priority) in kinds.iter().zip(authorities.iter()).zip(priorities) {
        // What is not UTF-8 is as unknown as what stands in its place.
        let kind = kind.cast::<PyString>()?.to_string_lossy();
        gate.push(&kind, &authority.cast::<PyString>()?.to_string_lossy(), priority);
    }
    Ok(gate)
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(8).map(|float| f64::from_ne_bytes(float.try_into().expect("eight bytes")))
}

/// The Python program around the pipeline.
struct Caller<'a, 'py, S> {
    py: Python<'py>,
    chunks: &'a S,
    ask: Option<&'a Bound<'py, PyAny>>,
    tag: &'a Bound<'py, PyAny>,
    cite: Option<&'a Bound<'py, PyAny>>,
}

impl<S: Strings> Host for Caller<'_, '_, S> {
    type Error = PyErr;

    fn count(&mut self, subject: Subject<'_>) -> PyResult<u64> {
        let (text, index) = match subject {
            Subject::Chunk(index) => (self.chunks.string(self.py, index)?, Some(index)),
            Subject::Piece { index, text } => (string(self.py, text)?, Some(index)),
            Subject::Assembled(text) => (string(self.py, text)?, None),
        };
        let index = index.map_or(Ok(ASSEMBLED), i64::try_from)?;
        let ask = self.ask.expect("the facade gives what is to be asked");
        ask.call1((text, index))?.extract()
    }

    fn tag(&mut self, index: usize) -> PyResult<Tag> {
        if self.chunks.is_string(index) {
            return Ok(Tag::of_text(index));
        }
        let tag = self.tag.call1((index,))?;
        let (kind, id, source, title, position) = tag.extract::<TagFields<'_>>()?;
        Ok(Tag {
            kind: utf8(&kind)?,
            id: utf8(&id)?,
            source: utf8(&source)?,
            title: utf8(&title)?,
            position,
        })
    }

    fn cite(&mut self, index: usize) -> PyResult<u64> {
        self.cite.expect("the facade gives what is to be asked").call1((index,))?.extract()
    }

    fn work<R: Send>(
        &mut self,
        chars: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> PyResult<R> {
        convert::work(self.py, chars, work)
    }
}

/// Kind, identifier, source and title of a chunk, and its position.
type TagFields<'py> =
    (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, f64);

/// Returns the first of the columns that `budgeteer._packing.Packing` wraps, up
/// to the cut, and the last of them, the duplicates.
fn head<'py>(
    py: Python<'py>,
    outcome: &Outcome,
    texts: &impl Strings,
    call: &Call<'_>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let mut joiner = Joiner::with_capacity(outcome.parts().len());
    let gap = PyString::new(py, call.template().between());
    let mut spans = Vec::with_capacity(2 * outcome.parts().len());
    let mut cut = -1;
    for (place, part) in outcome.parts().enumerate() {
        if place > 0 {
            joiner.push(gap.as_any().clone())?;
        } else {
            joiner.push_utf8(py, call.template().front().as_bytes())?;
        }
        joiner.push_utf8(py, part.front)?;
        spans.push(signed(joiner.chars() as u64));
        match part.changed {
            Some(changed) => joiner.push_utf8(py, changed)?,
            None => joiner.push(texts.string(py, part.index)?)?,
        }
        if part.was_cut {
            cut = i64::try_from(place)?;
        }
        spans.push(signed(joiner.chars() as u64));
        joiner.push_utf8(py, part.back)?;
    }
    if !spans.is_empty() {
        joiner.push_utf8(py, &outcome.tail(call))?;
    }
    let text = joiner.join(py)?;
    let duplicates = PyDict::new(py);
    for (index, original) in outcome.duplicates() {
        duplicates.set_item(index, original)?;
    }
    let kept = column(py, outcome.kept().map(|kept| kept.index))?;
    let counts = column(py, outcome.kept().map(|kept| signed(kept.tokens)))?;
    let citations = column(py, outcome.kept().map(|kept| signed(kept.citation)))?;
    let spans = column(py, spans.into_iter())?;
    let total = outcome.total_tokens;
    let head = (text, total, kept, (counts, citations), spans, cut).into_pyobject(py)?;
    Ok((head.into_any(), duplicates))
}
