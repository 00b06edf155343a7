//! The order of the stages: count, score, rank, pack, assemble.
//!
//! This is the interface for bindings, which bring texts and counters of their
//! own. Rust programs use [`Packer`](crate::Packer).

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use crate::assemble;
pub use crate::assemble::template::Tag;
use crate::assemble::template::Template;
pub use crate::assemble::{Order, Part};
use crate::chunk::Batch;
use crate::corpus::Index;
use crate::count::{Estimate, Exact};
pub use crate::gate::Gate;
use crate::pack::indexed::{Ranks, Trail, may_skip};
use crate::pack::{self, Chunks, Dedupe, Dropped, DroppedColumns, Kept, Overflow, Reason};
use crate::rank::{Ranking, sort_descending};
use crate::score::bm25::{Bm25, Bm25Scorer};
use crate::score::hybrid::{Hybrid, fuse};
use crate::selection::{self, Selection};
use crate::terms::Terms;
use crate::text::Text;

use read::{Measures, Reading, overlaps, read, read_slices};

pub(crate) mod read;

/// How texts are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counting {
    /// By a formula.
    Estimate(Estimate),
    /// As an encoding does.
    Exact(Exact),
    /// By [`Host::count`].
    Host,
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The whole text of that chunk.
    Chunk(usize),
    /// What a cut leaves of a chunk, encoded as in [`Text::Utf8`].
    Piece {
        /// The chunk.
        index: usize,
        /// What is left of it.
        text: &'a [u8],
    },
    /// The assembled text, encoded as in [`Text::Utf8`].
    Assembled(&'a [u8]),
}

/// What the pipeline asks of the program around it.
pub trait Host {
    /// What may go wrong there.
    type Error;

    /// Returns the number of tokens of `subject`.
    ///
    /// # Errors
    ///
    /// Whatever keeps the host's counter from answering.
    fn count(&mut self, subject: Subject<'_>) -> Result<u64, Self::Error>;

    /// Returns what chunk `index` says of itself. Asked of chunks that are, or
    /// may be, kept, and only where the template or the order wants to know.
    ///
    /// # Errors
    ///
    /// Whatever keeps the host from telling.
    fn tag(&mut self, index: usize) -> Result<Tag, Self::Error>;

    /// Returns the tokens of citing chunk `index`; asked of chunks whose text
    /// fits, if [`Plan::is_cited`].
    ///
    /// # Errors
    ///
    /// Whatever keeps the host from telling.
    fn cite(&mut self, index: usize) -> Result<u64, Self::Error>;

    /// Does `work`, which takes as long as reading about `chars` code points and
    /// needs nothing of the host. A host may let go of its locks meanwhile,
    /// set the flag that `work` gets to have it end early, and afterwards
    /// refuse to go on, as it must if it set the flag.
    ///
    /// # Errors
    ///
    /// The host does not want to go on.
    fn work<R: Send>(
        &mut self,
        chars: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, Self::Error>;
}

/// What to do, validated.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct Plan<'a> {
    /// Upper bound for the assembled text, in tokens; below 2^63.
    pub budget: u64,
    /// How texts are counted.
    pub counting: Counting,
    /// What comes first.
    pub ranking: Ranking,
    /// A key for each chunk under [`Ranking::Recency`], [`Ranking::Score`] and
    /// [`Ranking::Embedding`], where it is the cosine; NaN stands for none.
    /// Under [`Ranking::Hybrid`] the cosines, then the chunks' own scores, each
    /// where it weighs something. Not needed otherwise.
    pub keys: &'a [f64],
    /// What [`Ranking::Hybrid`] weighs.
    pub hybrid: Hybrid,
    /// What BM25 counts.
    pub terms: &'a Terms,
    /// Chunks that score below it are out of scope.
    pub min_score: Option<f64>,
    /// What happens to a chunk that does not fit.
    pub overflow: Overflow,
    /// So many chunks are kept at most.
    pub max_chunks: Option<u64>,
    /// Which chunks are dropped as duplicates of kept ones.
    pub dedupe: Dedupe,
    /// In which order they are admitted.
    pub selection: Selection,
    /// How the kept chunks stand in the text.
    pub order: Order,
    /// Under [`Order::Sticky`], the text before: split behind the text of each
    /// chunk, without what stands behind the last one. Each is encoded as in
    /// [`Text::Utf8`].
    pub previous: &'a [Vec<u8>],
    /// What the text looks like.
    pub template: &'a Template,
    /// What says that chunks were left out, if that is to be said: what stands
    /// in front of their number, and behind each mention of it.
    pub notice: Option<&'a [String]>,
    /// Whether separators and markers go uncounted, as theaios-context-router
    /// 0.2.2 has it. Breaks the law, and so holds for estimates only: under any
    /// other counter a plan is the same without.
    pub sum_of_parts: bool,
    /// Whether [`Host::cite`] is asked: texts and citations, each counted by
    /// itself, stay within the budget together. Nothing is cut then.
    pub is_cited: bool,
    /// Ranks by weight, whatever the ranking, and refuses documents: those that
    /// share no keyword with the question, and those beyond a number. Titles do
    /// not count then.
    pub gate: Option<&'a Gate>,
}

impl Plan<'_> {
    /// Returns whether separators and markers go uncounted.
    pub(crate) fn is_sum_of_parts(&self) -> bool {
        self.sum_of_parts && matches!(self.counting, Counting::Estimate(_))
    }

    /// Returns whether [`Host::tag`] is asked.
    pub(crate) fn is_framed(&self) -> bool {
        !self.template.is_plain() || self.order == Order::Document
    }

    /// Returns whether there is nothing in the text but chunks and separators.
    pub(crate) fn is_bare(&self) -> bool {
        let Template { header, footer, .. } = self.template;
        !self.is_framed() && header.is_empty() && footer.is_empty() && self.notice.is_none()
    }

    /// Returns the separator and the notice that so many chunks were left out.
    pub(crate) fn notice(&self, count: usize) -> Vec<u8> {
        let mut notice = Vec::new();
        if let Some(pieces) = self.notice {
            notice.extend_from_slice(self.template.separator.as_bytes());
            notice.extend(self.template.notice(pieces, count));
        }
        notice
    }

    /// Returns what stands behind the last chunk when so many were dropped.
    pub(crate) fn tail(&self, dropped: usize) -> Vec<u8> {
        let mut tail = if dropped > 0 { self.notice(dropped) } else { Vec::new() };
        tail.extend_from_slice(self.template.footer.as_bytes());
        tail
    }
}

/// What became of a batch.
#[derive(Debug)]
pub struct Outcome {
    /// The tokens of the assembled text.
    pub total_tokens: u64,
    /// The score of each chunk of the batch; NaN stands for none.
    pub scores: Vec<f64>,
    admitted: pack::Admitted,
    /// The places of the kept chunks in the order of the text.
    places: Vec<u32>,
    /// What tells of the chunks of a corpus that were not looked at.
    trail: Option<Trail>,
}

impl Outcome {
    /// Returns what is in the text, in its order.
    #[must_use]
    pub fn kept(&self) -> impl ExactSizeIterator<Item = Kept> {
        self.places.iter().map(|&place| self.admitted.kept[place as usize])
    }

    /// Returns what stands in the text for each kept chunk, in its order.
    #[must_use]
    pub fn parts(&self) -> impl ExactSizeIterator<Item = Part<'_>> + Clone {
        self.places.iter().map(|&place| self.admitted.part(place as usize))
    }

    /// Returns what is not in the text, in the order in which that was decided;
    /// of a corpus only what was looked at.
    #[must_use]
    pub fn dropped(&self) -> &DroppedColumns {
        &self.admitted.dropped
    }

    /// Returns the scores and what is not in the text, and lets go of the rest.
    #[must_use]
    pub fn into_columns(self) -> (Vec<f64>, DroppedColumns) {
        (self.scores, self.admitted.dropped)
    }

    /// Returns all that is not in the text, in the order in which that was
    /// decided. The arguments must be what [`run_indexed`] had: of the plan, and
    /// [`Index::measures`].
    #[must_use]
    pub fn dropped_of(
        &self,
        ranking: Ranking,
        keys: &[f64],
        min_score: Option<f64>,
        measures: &[u32],
    ) -> Cow<'_, DroppedColumns> {
        let Some(trail) = &self.trail else { return Cow::Borrowed(&self.admitted.dropped) };
        let ranks = ranks(ranking, keys, min_score, &self.scores);
        Cow::Owned(trail.columns(&ranks, measures, &self.admitted.dropped))
    }

    /// Returns the dropped duplicates, each with the kept chunk that it
    /// repeats, in the order in which that was decided.
    #[must_use]
    pub fn duplicates(&self) -> &[(u32, u32)] {
        &self.admitted.duplicates
    }

    /// Returns what stands behind the last chunk, where there is one: the
    /// notice if something was dropped, and the footer.
    #[must_use]
    pub fn tail(&self, plan: &Plan<'_>) -> Vec<u8> {
        plan.tail(self.dropped().index.len())
    }

    /// Returns the assembled text, encoded as in [`Text::Utf8`].
    pub fn text<B: Batch>(&self, plan: &Plan<'_>, batch: &B) -> Vec<u8> {
        assemble::text(batch, plan, self.parts(), &self.tail(plan))
    }
}

/// Packs `batch` for `query`.
///
/// # Errors
///
/// Whatever the host answers.
///
/// # Panics
///
/// When the batch has 2^32 chunks or more, or `keys` has not one for each where
/// the ranking asks for them.
pub fn run<B: Batch, H: Host>(
    plan: &Plan<'_>,
    query: Text<'_>,
    batch: &B,
    host: &mut H,
) -> Result<Outcome, H::Error> {
    let query = plan.gate.map_or(query, |gate| gate.question(batch, query));
    let (scores, reading) = read(plan, query, batch, host)?;
    pack_all(plan, query, batch, scores, reading, host)
}

/// Packs the chunks of a corpus for `query`, as [`run`] does: `index` was made
/// of `batch`, and is read in its place wherever it can be.
///
/// # Errors
///
/// Whatever the host answers.
///
/// # Panics
///
/// When `keys` has not one for each chunk where the ranking asks for them.
pub fn run_indexed<B: Batch, H: Host>(
    plan: &Plan<'_>,
    query: Text<'_>,
    batch: &B,
    index: &Index,
    host: &mut H,
) -> Result<Outcome, H::Error> {
    if plan.gate.is_some() {
        return run(plan, query, batch, host); // it asks for words without titles
    }
    let mut bm25 = || {
        let lists = match index.query_cost(plan.terms) {
            0 => index.query(query, plan.terms),
            cost => host.work(cost, |_| index.query(query, plan.terms))?,
        };
        if let Some(query) = lists {
            return host.work(query.cost(), |_| query.scores(Bm25::default()));
        }
        let mut scorer = Bm25Scorer::new(query, plan.terms, Bm25::default());
        read_slices(batch, index.total_chars(), host, |at| {
            scorer.read(batch.text(at), batch.title(at));
        })?;
        Ok(scorer.scores())
    };
    let scores = match plan.ranking {
        Ranking::Score | Ranking::Embedding => plan.keys.to_vec(),
        Ranking::Bm25 => bm25()?,
        Ranking::Hybrid => {
            let bm25 = if plan.hybrid.bm25 > 0.0 { bm25()? } else { Vec::new() };
            hybrid_scores(plan, batch.len(), &bm25)
        }
        _ => overlaps(query, batch, index, host)?,
    };
    let reading = Reading {
        measures: match plan.counting {
            Counting::Exact(exact) => Measures::Bounds(index.bounds(exact)),
            _ => Measures::Lent(index.measures(plan.counting)),
        },
        prints: Cow::Borrowed(if plan.dedupe == Dedupe::Off { &[] } else { index.prints() }),
    };
    if !may_skip(plan) {
        return pack_all(plan, query, batch, scores, reading, host);
    }
    let packer = pack::Packer::new(plan, batch, reading, host, DroppedColumns::default());
    let ranks = ranks(plan.ranking, plan.keys, plan.min_score, &scores);
    let (admitted, total_tokens, trail) = packer.pack(&Chunks::Ranked(&ranks))?;
    let places = admitted.arranged(plan, batch);
    Ok(Outcome { total_tokens, scores, admitted, places, trail })
}

fn ranks<'a>(
    ranking: Ranking,
    keys: &'a [f64],
    min_score: Option<f64>,
    scores: &'a [f64],
) -> Ranks<'a> {
    Ranks {
        count: u32::try_from(scores.len()).expect("no corpus has 2^32 chunks"),
        scores,
        keys: match ranking {
            Ranking::Input => None,
            Ranking::Recency => Some(keys),
            _ => Some(scores),
        },
        min_score,
    }
}

/// Packs with every chunk looked at.
fn pack_all<B: Batch, H: Host>(
    plan: &Plan<'_>,
    query: Text<'_>,
    batch: &B,
    scores: Vec<f64>,
    reading: Reading<'_>,
    host: &mut H,
) -> Result<Outcome, H::Error> {
    let count = u32::try_from(batch.len()).expect("no batch has 2^32 chunks");
    let mut dropped = DroppedColumns::default();
    let mut order: Vec<u32> = (0..count).collect();
    if let Some(min_score) = plan.min_score {
        order.retain(|&index| {
            let score = scores[index as usize];
            // Without a score of its own (NaN) a chunk is the lowest there is.
            let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
            if score < min_score {
                let reason = Reason::OutOfScope;
                dropped.push(Dropped { index, reason, needed: 0, available: 0 });
            }
            score >= min_score
        });
    }
    if let Some(gate) = plan.gate {
        order.retain(|&index| {
            let is_related = scores[index as usize] > 0.0 || !gate.is_document(index);
            if !is_related {
                let reason = Reason::OutOfScope;
                dropped.push(Dropped { index, reason, needed: 0, available: 0 });
            }
            is_related
        });
        sort_descending(&mut order, gate.weights());
    } else {
        match plan.ranking {
            Ranking::Input => {}
            Ranking::Recency => sort_descending(&mut order, plan.keys),
            _ => sort_descending(&mut order, &scores),
        }
    }

    if plan.selection == Selection::Coverage && !plan.is_sum_of_parts() {
        let candidates = &order[..order.len().min(selection::CANDIDATES)];
        let chars = candidates.iter().map(|&index| batch.text(index as usize).chars()).sum();
        let with_titles = plan.gate.is_none();
        order = host.work(chars, |_| {
            selection::by_coverage(query, plan.terms, batch, with_titles, &order)
        })?;
    }

    let packer = pack::Packer::new(plan, batch, reading, host, dropped);
    let (admitted, total_tokens, trail) = packer.pack(&Chunks::Listed(&order))?;
    let places = admitted.arranged(plan, batch);
    Ok(Outcome { total_tokens, scores, admitted, places, trail })
}

/// Returns one score of those that the ranking weighs.
fn hybrid_scores(plan: &Plan<'_>, count: usize, bm25: &[f64]) -> Vec<f64> {
    let Hybrid { bm25: weight, embedding, score, fusion } = plan.hybrid;
    let mut keys = plan.keys;
    let mut columns = Vec::with_capacity(3);
    if weight > 0.0 {
        columns.push((weight, bm25));
    }
    for weight in [embedding, score] {
        if weight > 0.0 {
            let (column, rest) = keys.split_at(count);
            columns.push((weight, column));
            keys = rest;
        }
    }
    fuse(count, &columns, fusion)
}
