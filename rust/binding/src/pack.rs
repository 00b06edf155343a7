//! `budgeteer::pipeline` for Python: a plan that is made once, and the result
//! of a call.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use budgeteer::pipeline::{self, Call, Gate, Host, Outcome, Subject, Tag, Words};
use budgeteer::{Batch, Dedupe, Selection, Units};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::chunk::{Strings, Texts};
use crate::codes::{self, ASSEMBLED, HybridOptions, Kind, MinScoreOption, TemplateOptions};
use crate::column::TextColumn;
use crate::convert::{End, Joiner, Lock, column, signed, string, text, utf8};
use crate::corpus::{CorpusIndex, Unseen, dropped_columns, signals_column};
use crate::error::guard;
use crate::score::{self, LexicalOptions};

/// What a packer knows when it is made. It never changes.
#[pyclass(frozen, module = "budgeteer._native")]
pub(crate) struct Plan {
    plan: pipeline::Plan,
}

impl Plan {
    pub(crate) fn plan(&self) -> &pipeline::Plan {
        &self.plan
    }
}

/// Packs the texts of a batch.
fn run<'py, S: Strings>(
    py: Python<'py>,
    call: &Call<'_>,
    texts: &S,
    asks: Asks<'_>,
    end: End<'_>,
    releases: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let lock = lock(call, texts.total_chars(), end, releases);
    let mut caller = Caller::new(texts, asks, lock);
    let outcome = lock.run(py, || pipeline::run(call, texts, &mut caller))?;
    let packed = Packed::new(py, &outcome, texts, call)?.with_columns(py, outcome)?;
    Ok(Bound::new(py, packed)?.into_any())
}

/// Returns the way to treat a call of `chars` code points.
fn lock<'a>(call: &Call<'_>, chars: usize, end: End<'a>, releases: bool) -> Lock<'a> {
    let cost = chars.saturating_mul(readings(call.plan));
    Lock::during(chars, cost, releases, call.asks_host(), end)
}

/// What is asked for a count, a tag, a written text and a citation.
type Asks<'a> = [Option<&'a Py<PyAny>>; 4];

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (
        *,
        counter: "tuple[int | Tokenizer, float]",
        ranking: "tuple[int, tuple[float, float, str | None, str | tuple[str, ...] | None, float, bool, bool, bool], tuple[float, float, float, float | None] | None]",
        min_score: "float | str | None",
        overflow: "int",
        max_chunks: "int | None",
        dedupe: "int",
        selection: "int",
        order: "int",
        template: "tuple[int, str, str, str, str]",
        notice: "tuple[str, ...] | None",
        policy: "tuple[int, int]",
        units: "int",
    ))]
    #[allow(clippy::too_many_arguments)] // the facade names them
    fn new(
        counter: (Kind<'_>, f64),
        ranking: (u8, LexicalOptions<'_>, Option<HybridOptions>),
        min_score: Option<MinScoreOption>,
        overflow: u8,
        max_chunks: Option<u64>,
        dedupe: u8,
        selection: u8,
        order: u8,
        template: TemplateOptions,
        notice: Option<Vec<String>>,
        policy: (u8, u64),
        units: u8,
    ) -> PyResult<Self> {
        guard(|| {
            let (code, lexical, weights) = ranking;
            let lexical = score::lexical(lexical)?;
            let plan = pipeline::Plan {
                counting: codes::counting(counter.0, counter.1),
                ranking: codes::ranking(code, lexical, weights),
                min_score: min_score.map(codes::min_score),
                overflow: codes::overflow(overflow),
                max_chunks,
                dedupe: codes::dedupe(dedupe),
                selection: codes::selection(selection),
                order: codes::order(order),
                template: codes::template(template),
                notice,
                policy: codes::policy(policy),
                units: codes::units(units),
            };
            Ok(Self { plan })
        })
    }

    /// Returns the number of code points in the texts of chunks; 0 where one
    /// cannot be read.
    #[staticmethod]
    #[pyo3(signature = (chunks: "tuple[object, ...] | TextColumn") -> "int", text_signature = "(chunks)")]
    fn text_chars(chunks: &Bound<'_, PyAny>) -> PyResult<usize> {
        guard(|| {
            if let Ok(column) = chunks.cast::<TextColumn>() {
                return Ok(column.get().texts().total_chars());
            }
            let texts = Texts::of_chunks(chunks.cast::<PyTuple>()?, false)?;
            Ok(texts.map_or(0, |texts| texts.total_chars()))
        })
    }

    /// Packs chunks, a column of texts, or the result of
    /// [`index_chunks`](crate::corpus::index_chunks); or returns a code and the
    /// index of a bad chunk. What `watch` raises ends the call. If `releases`,
    /// other threads run meanwhile, however quick the work is.
    #[pyo3(signature = (
        query: "str",
        chunks: "object",
        budget: "int",
        *,
        keys: "bytes | None" = None,
        previous: "tuple[str, ...]" = Vec::new(),
        template: "tuple[int, str, str, str, str] | None" = None,
        ask: "object | None" = None,
        tag: "object | None" = None,
        write: "object | None" = None,
        cite: "object | None" = None,
        gate: "tuple[tuple[str, ...], tuple[str, ...], bytes] | None" = None,
        watch: "object | None" = None,
        releases: "bool" = false,
    ) -> "Packed | tuple[int, int]")]
    #[allow(clippy::too_many_arguments)] // the facade names them
    #[allow(clippy::needless_pass_by_value)] // the extracted values are ours
    fn pack<'py>(
        &self,
        query: &Bound<'py, PyString>,
        chunks: &Bound<'py, PyAny>,
        budget: u64,
        keys: Option<&[u8]>,
        previous: Vec<Bound<'py, PyAny>>,
        template: Option<TemplateOptions>,
        ask: Option<&Bound<'py, PyAny>>,
        tag: Option<&Bound<'py, PyAny>>,
        write: Option<&Bound<'py, PyAny>>,
        cite: Option<&Bound<'py, PyAny>>,
        gate: Option<GateColumns<'py>>,
        watch: Option<&Bound<'py, PyAny>>,
        releases: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = query.py();
        guard(|| {
            let keys: Vec<f64> = floats(keys.unwrap_or_default()).collect();
            let gate = gate.map(gate_of).transpose()?;
            let previous: Vec<Vec<u8>> = previous.iter().map(utf8).collect::<PyResult<_>>()?;
            let template = template.map(codes::template);
            let call = Call {
                keys: &keys,
                previous: &previous,
                gate: gate.as_ref(),
                template: template.as_ref(),
                ..self.plan.call(text(query)?, budget)
            };
            let asks = [ask, tag, write, cite].map(|given| given.map(Bound::as_unbound));
            let end = End::by(watch.map(Bound::as_unbound));
            end.begin(py)?;
            if let Ok(corpus) = chunks.cast::<CorpusIndex>() {
                let corpus = corpus.get();
                let CorpusIndex { index, texts } = corpus;
                // How much will be read is not known before.
                let lock = lock(&call, if releases { usize::MAX } else { 0 }, end, releases);
                let mut caller = Caller::new(texts, asks, lock);
                let run = || pipeline::run_indexed(&call, texts, index, &mut caller);
                let outcome = lock.run(py, run)?;
                let packed = Packed::new(py, &outcome, texts, &call)?;
                corpus.check(py)?;
                let unseen = Unseen::new(outcome, self.plan.counting.clone(), index);
                let unseen = Some(Py::new(py, unseen)?.into_any());
                return Ok(Bound::new(py, Packed { unseen, ..packed })?.into_any());
            }
            if let Ok(column) = chunks.cast::<TextColumn>() {
                return run(py, &call, &*column.get().texts(), asks, end, releases);
            }
            let with_titles = self.plan.needs().has_titles;
            match Texts::of_chunks(chunks.cast::<PyTuple>()?, with_titles)? {
                Ok(texts) => run(py, &call, &texts, asks, end, releases),
                Err((code, index)) => Ok((code as u8, index).into_pyobject(py)?.into_any()),
            }
        })
    }
}

/// Returns how many times reading the texts takes as long as packing them. Some
/// ways to pack take so long that the number hardly matters.
fn readings(plan: &pipeline::Plan) -> usize {
    if plan.dedupe == Dedupe::Near
        || plan.selection != Selection::Rank
        || plan.units != Units::Chunk
    {
        return 100;
    }
    match plan.needs().words {
        Words::Terms(lexical) if lexical.feedback => 3,
        _ => 1,
    }
}

/// Kinds, authorities and priorities of all chunks.
type GateColumns<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyBytes>);

fn gate_of((kinds, authorities, priorities): GateColumns<'_>) -> PyResult<Gate> {
    let mut gate = Gate::default();
    let priorities = floats(priorities.as_bytes());
    for ((kind, authority), priority) in kinds.iter().zip(authorities.iter()).zip(priorities) {
        // A kind that is not UTF-8 is unknown, and so is its replacement.
        let kind = kind.cast::<PyString>()?.to_string_lossy();
        gate.push(&kind, &authority.cast::<PyString>()?.to_string_lossy(), priority);
    }
    Ok(gate)
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(8).map(|float| f64::from_ne_bytes(float.try_into().expect("eight bytes")))
}

/// The Python program around the pipeline.
struct Caller<'a, S> {
    chunks: &'a S,
    ask: Option<&'a Py<PyAny>>,
    tag: Option<&'a Py<PyAny>>,
    write: Option<&'a Py<PyAny>>,
    cite: Option<&'a Py<PyAny>>,
    lock: Lock<'a>,
}

impl<'a, S> Caller<'a, S> {
    fn new(chunks: &'a S, [ask, tag, write, cite]: Asks<'a>, lock: Lock<'a>) -> Self {
        Self { chunks, ask, tag, write, cite, lock }
    }
}

impl<S: Strings> Host for Caller<'_, S> {
    type Error = PyErr;

    fn count(&mut self, subject: Subject<'_>) -> PyResult<u64> {
        self.lock.look()?;
        let ask = self.ask.expect("the facade gives what is to be asked");
        Python::attach(|py| {
            let (text, index) = match subject {
                Subject::Chunk(index) => (self.chunks.string(py, index)?, Some(index)),
                Subject::Piece { index, text } => (string(py, text)?, Some(index)),
                Subject::Assembled(text) => (string(py, text)?, None),
            };
            let index = index.map_or(Ok(ASSEMBLED), i64::try_from)?;
            ask.bind(py).call1((text, index))?.extract()
        })
    }

    fn tag(&mut self, index: usize) -> PyResult<Tag> {
        self.lock.look()?;
        Python::attach(|py| {
            if self.chunks.is_string(index) {
                return Ok(Tag::of_text(index));
            }
            let tag = self.tag.expect("the facade gives what is to be asked");
            let tag = tag.bind(py).call1((index,))?;
            let (kind, id, source, title, position) = tag.extract::<TagFields<'_>>()?;
            Ok(Tag {
                kind: utf8(&kind)?,
                id: utf8(&id)?,
                source: utf8(&source)?,
                title: utf8(&title)?,
                position,
            })
        })
    }

    fn write(&mut self, index: usize) -> PyResult<Vec<u8>> {
        self.lock.look()?;
        let write = self.write.expect("the facade gives what is to be asked");
        Python::attach(|py| utf8(&write.bind(py).call1((index,))?))
    }

    fn cite(&mut self, index: usize) -> PyResult<u64> {
        self.lock.look()?;
        let cite = self.cite.expect("the facade gives what is to be asked");
        Python::attach(|py| cite.bind(py).call1((index,))?.extract())
    }

    fn work<R: Send>(
        &mut self,
        chars: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> PyResult<R> {
        self.lock.work(chars, work)
    }
}

/// Kind, identifier, source and title of a chunk, and its position.
type TagFields<'py> =
    (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, f64);

/// What became of the chunks: the text, and columns of numbers. A
/// `budgeteer.Packing` wraps it.
#[pyclass(frozen, get_all, module = "budgeteer._native")]
pub(crate) struct Packed {
    /// The assembled text.
    text: Py<PyString>,
    /// Its tokens.
    total_tokens: u64,
    /// The index of each kept chunk, in the order of the text, as uint32.
    kept: Py<PyBytes>,
    /// The score of each kept chunk, as float64; NaN for none.
    kept_scores: Py<PyBytes>,
    /// The token count of the text of each kept chunk, as int64.
    token_counts: Py<PyBytes>,
    /// The tokens set aside for citing each kept chunk, as int64.
    citation_tokens: Py<PyBytes>,
    /// Where the text of each kept chunk starts and ends, as int64.
    spans: Py<PyBytes>,
    /// Which of the kept chunks was cut, by its place in the text; -1 for none.
    cut: i64,
    /// Each kept chunk of which only some sentences are in the text, how many,
    /// and how many it has, as uint32.
    extracts: Py<PyBytes>,
    /// The score of each chunk, as float64; None of a corpus.
    scores: Option<Py<PyBytes>>,
    /// What scores by words have besides those of the query's words: for each
    /// a chunk, a kind and another chunk, or whether a heading is a whole one, as
    /// uint32, and the score as float64; None of a corpus.
    signals: Option<Py<PyBytes>>,
    /// The score from which on chunks are in scope, if it was found from the
    /// scores; else None.
    least: Option<f64>,
    /// For a corpus, the object that has the scores, the signals and the
    /// dropped chunks; else None.
    unseen: Option<Py<PyAny>>,
    /// The index of each dropped chunk, in the order in which that was decided,
    /// as uint32. For a corpus this and the next three are None.
    dropped: Option<Py<PyBytes>>,
    /// Why each dropped chunk was dropped, as uint8.
    reasons: Option<Py<PyBytes>>,
    /// The tokens that each dropped chunk needed, as int64.
    needed: Option<Py<PyBytes>>,
    /// The tokens that were available, as int64.
    available: Option<Py<PyBytes>>,
    /// The kept chunk that each duplicate repeats, by the index of the
    /// duplicate.
    duplicates: Duplicates,
}

/// A dict; its type says what is in it.
struct Duplicates(Py<PyDict>);

impl<'py> IntoPyObject<'py> for &Duplicates {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = Infallible;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr =
        <std::collections::BTreeMap<u32, u32> as IntoPyObject<'py>>::OUTPUT_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(self.0.bind(py).clone())
    }
}

impl Packed {
    /// Returns the text and the kept chunks. The dropped ones must follow.
    fn new(
        py: Python<'_>,
        outcome: &Outcome,
        texts: &impl Strings,
        call: &Call<'_>,
    ) -> PyResult<Self> {
        let template = call.template();
        let mut joiner = Joiner::with_capacity(outcome.parts().len());
        let gap = PyString::new(py, template.between());
        let mut spans = Vec::with_capacity(2 * outcome.parts().len());
        let mut cut = -1;
        for (place, part) in outcome.parts().enumerate() {
            if place > 0 {
                joiner.push(gap.as_any().clone())?;
            } else {
                joiner.push_utf8(py, template.front().as_bytes())?;
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
        let duplicates = PyDict::new(py);
        for (index, original) in outcome.duplicates() {
            duplicates.set_item(index, original)?;
        }
        let extracts = outcome.extracts().iter().map(|extract| {
            let (some, all) = extract.counts;
            Ok([extract.index, u32::try_from(some)?, u32::try_from(all)?])
        });
        let extracts = extracts.collect::<PyResult<Vec<_>>>()?.concat();
        let tokens = outcome.kept().map(|kept| signed(kept.tokens));
        let citations = outcome.kept().map(|kept| signed(kept.citation));
        Ok(Self {
            text: joiner.join(py)?.cast_into::<PyString>()?.unbind(),
            total_tokens: outcome.total_tokens,
            kept: column(py, outcome.kept().map(|kept| kept.index))?.unbind(),
            kept_scores: column(py, outcome.kept_scores().into_iter())?.unbind(),
            token_counts: column(py, tokens)?.unbind(),
            citation_tokens: column(py, citations)?.unbind(),
            spans: column(py, spans.into_iter())?.unbind(),
            cut,
            extracts: column(py, extracts.into_iter())?.unbind(),
            scores: None,
            signals: None,
            least: outcome.least(),
            unseen: None,
            dropped: None,
            reasons: None,
            needed: None,
            available: None,
            duplicates: Duplicates(duplicates.unbind()),
        })
    }

    /// Returns the same with the scores, the signals and the dropped chunks.
    fn with_columns(self, py: Python<'_>, outcome: Outcome) -> PyResult<Self> {
        let (scores, signals, dropped) = outcome.into_columns();
        let signals = signals_column(py, &signals);
        let scores = column(py, scores.into_iter())?;
        let (dropped, reasons, needed, available) = dropped_columns(py, dropped)?;
        Ok(Self {
            scores: Some(scores.unbind()),
            signals: Some(signals.unbind()),
            dropped: Some(dropped.unbind()),
            reasons: Some(reasons.unbind()),
            needed: Some(needed.unbind()),
            available: Some(available.unbind()),
            ..self
        })
    }
}
