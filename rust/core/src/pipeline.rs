//! The order of the stages: count, score, rank, pack, assemble.
//!
//! This is the interface for bindings, which have texts and counters of their
//! own. Rust programs use [`Packer`](crate::Packer).

use std::borrow::Cow;
use std::sync::Arc;

use crate::assemble;
use crate::chunk::Batch;
use crate::corpus::Index;
use crate::corpus::found::{Found, Later};
pub use crate::count::Factor;
pub use crate::gate::Gate;
pub use crate::outcome::Part;
use crate::outcome::{Admitted, Dropped, DroppedColumns, Kept, Reason};
use crate::pack::indexed::{self, Ranks, Trail, may_skip};
use crate::pack::{self, Chunks};
pub use crate::plan::{Call, Counting, Host, Order, Plan, Policy, Subject};
use crate::plan::{Dedupe, Selection, Units};
use crate::rank::sort_descending;
use crate::ranking::{Hybrid, Lexical, RankBy, Weights};
pub use crate::ranking::{Needs, Own, SortKey, Words};
use crate::reading::{Measures, Reading};
use crate::scope::Scope;
use crate::score::hybrid::fuse;
use crate::score::lexical::{LexicalScorer, Scored};
pub use crate::score::lexical::{Signal, SignalKind};
use crate::selection;
pub use crate::template::Tag;
use crate::text::Text;

use read::{feed_back, finish, overlaps, read, read_all};
pub use rows::share_rows;
pub(crate) use sentences::BUDGETS;

mod extract;
mod read;
mod rows;
mod sentences;
mod split;
#[cfg(test)]
mod tests;

/// Adding up the scores of a corpus takes for each chunk as long as reading this
/// many code points.
const SCORED: usize = 16;

/// The result of packing a batch.
#[derive(Debug)]
pub struct Outcome {
    /// The tokens of the assembled text.
    pub total_tokens: u64,
    scores: Scores,
    admitted: Admitted,
    /// The places of the kept chunks, in the order of the text.
    places: Vec<u32>,
    pub(crate) scope: Scope,
    /// The record of the chunks of a corpus that were not looked at.
    unseen: Option<Unseen>,
    /// The kept chunks of which only some sentences are in the text, sorted.
    extracts: Vec<Extracted>,
}

/// The scores of all chunks.
#[derive(Debug)]
enum Scores {
    Known(Scored),
    /// Those of a corpus, for which few were needed.
    Later(Box<Later>),
}

/// A kept chunk of which only some sentences are in the text.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// The chunk.
    pub index: u32,
    /// Its text as it was packed, encoded as in [`Text::Utf8`].
    pub text: Vec<u8>,
    /// How many of its sentences these are, and how many it has.
    pub counts: (usize, usize),
}

/// The record of the chunks of a corpus that were not looked at.
#[derive(Debug)]
struct Unseen {
    trail: Trail,
    sorting: SortKey,
    /// The keys of [`SortKey::Own`], else empty.
    keys: Vec<f64>,
    /// What counts are multiplied by.
    factor: Factor,
}

impl Outcome {
    /// Returns the kept chunks, in the order of the text.
    #[must_use]
    pub fn kept(&self) -> impl ExactSizeIterator<Item = Kept> {
        self.places.iter().map(|&place| self.admitted.kept[place as usize])
    }

    /// Returns the text of each kept chunk with its frame, in the order of the
    /// text.
    #[must_use]
    pub fn parts(&self) -> impl ExactSizeIterator<Item = Part<'_>> + Clone {
        self.places.iter().map(|&place| {
            let part = self.admitted.part(place as usize);
            Part { changed: part.changed.or_else(|| self.extract_of(part.index)), ..part }
        })
    }

    /// Returns the kept chunks of which only some sentences are in the text, in
    /// the order of the input.
    #[must_use]
    pub fn extracts(&self) -> &[Extracted] {
        &self.extracts
    }

    fn extract_of(&self, index: usize) -> Option<&[u8]> {
        let place = self.extracts.binary_search_by_key(&index, |extract| extract.index as usize);
        place.ok().map(|place| &self.extracts[place].text[..])
    }

    /// Returns the dropped chunks in the order in which that was decided; for a
    /// corpus only those that were looked at.
    #[must_use]
    pub fn dropped(&self) -> &DroppedColumns {
        &self.admitted.dropped
    }

    /// Returns the score of each chunk of the batch; NaN stands for none.
    #[must_use]
    pub fn scores(&self) -> &[f64] {
        match &self.scores {
            Scores::Known(scored) => &scored.scores,
            Scores::Later(later) => later.all(),
        }
    }

    /// Returns the scores of the kept chunks, in the order of the text.
    #[must_use]
    pub fn kept_scores(&self) -> Vec<f64> {
        let indices: Vec<u32> = self.kept().map(|kept| kept.index).collect();
        match &self.scores {
            Scores::Known(Scored { scores, .. }) => {
                indices.into_iter().map(|index| scores[index as usize]).collect()
            }
            Scores::Later(later) => {
                let mut sorted = indices.clone();
                sorted.sort_unstable();
                let scores = later.of(&sorted);
                let place = |index| sorted.partition_point(|&other| other < index);
                indices.into_iter().map(|index| scores[place(index)]).collect()
            }
        }
    }

    /// Returns what scores by words have besides those of the query's words.
    #[must_use]
    pub fn signals(&self) -> &[Signal] {
        match &self.scores {
            Scores::Known(scored) => &scored.signals,
            Scores::Later(later) => later.signals(),
        }
    }

    /// Returns the scores, the signals and the dropped chunks, and frees the
    /// rest.
    #[must_use]
    pub fn into_columns(self) -> (Vec<f64>, Vec<Signal>, DroppedColumns) {
        let Scored { scores, signals } = match self.scores {
            Scores::Known(scored) => scored,
            Scores::Later(later) => later.scored(),
        };
        (scores, signals, self.admitted.dropped)
    }

    /// Returns all dropped chunks in the order in which that was decided.
    /// `measures` must be [`Index::measures`] of the index and counting of
    /// [`run_indexed`].
    #[must_use]
    pub fn dropped_of(&self, measures: &[u32]) -> Cow<'_, DroppedColumns> {
        let Some(unseen) = &self.unseen else { return Cow::Borrowed(&self.admitted.dropped) };
        let Unseen { trail, sorting, keys, factor } = unseen;
        let count = self.scores().len();
        let ranks = ranks(*sorting, keys, &self.scope, &self.scores, count);
        Cow::Owned(trail.columns(&ranks, measures, &self.admitted.dropped, *factor))
    }

    /// Returns the score from which on chunks are in scope, if it was found from
    /// the scores: under [`MinScore::Auto`](crate::MinScore::Auto).
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        self.scope.found()
    }

    /// Returns the dropped duplicates, each with the kept chunk that it
    /// repeats, in the order in which that was decided.
    #[must_use]
    pub fn duplicates(&self) -> &[(u32, u32)] {
        &self.admitted.duplicates
    }

    /// Returns what stands behind the last chunk, where there is one: the
    /// notice if something was dropped and it did not yield, and the footer.
    #[must_use]
    pub fn tail(&self, call: &Call<'_>) -> Vec<u8> {
        call.tail(self.admitted.noticed())
    }

    /// Returns the assembled text, encoded as in [`Text::Utf8`].
    pub fn text<B: Batch>(&self, call: &Call<'_>, batch: &B) -> Vec<u8> {
        assemble::text(batch, call, self.parts(), &self.tail(call))
    }
}

/// Packs `batch` as `call` says.
///
/// # Errors
///
/// An error of the host.
///
/// # Panics
///
/// When the batch has 2^32 chunks or more, when `keys` has not one for each
/// chunk that the ranking needs, or when a gate has not all chunks.
pub fn run<B: Batch, H: Host>(
    call: &Call<'_>,
    batch: &B,
    host: &mut H,
) -> Result<Outcome, H::Error> {
    let call = &asked(call.unscaled(), batch);
    let (found, reading) = read(call, batch, host)?;
    let scored = fused(call, batch.len(), found);
    pack_all(call, batch, scored, reading, host)
}

/// Returns the call with the question that a gate finds in the batch.
fn asked<'a>(call: Call<'a>, batch: &'a impl Batch) -> Call<'a> {
    let query = call.gate().map_or(call.query, |(gate, _)| gate.question(batch, call.query));
    Call { query, ..call }
}

/// Packs the chunks of a corpus, as [`run`] does. `index` was made of `batch`,
/// and is read in its place wherever possible.
///
/// # Errors
///
/// An error of the host.
///
/// # Panics
///
/// When `keys` has not one for each chunk that the ranking needs, or when a
/// gate has not all chunks.
pub fn run_indexed<B: Batch, H: Host>(
    call: &Call<'_>,
    batch: &B,
    index: &Arc<Index>,
    host: &mut H,
) -> Result<Outcome, H::Error> {
    let Call { plan, query, .. } = *call;
    if call.gate().is_some() {
        return run(call, batch, host); // a gate asks for words without titles
    }
    let call = &call.unscaled();
    let needs = plan.needs();
    let found = match needs.words {
        Words::None => Scores::Known(Scored::default()),
        Words::Keywords => later(index, overlaps(query, batch, index, host)?),
        Words::Terms(lexical) => lexical_scores(lexical, query, batch, index, host)?,
    };
    let bounds = match &plan.counting {
        Counting::Exact(exact, _) => Some(index.bounds(exact)),
        _ => None,
    };
    let reading = Reading {
        measures: match &bounds {
            Some(bounds) => Measures::Bounds(bounds),
            None => Measures::Lent(index.measures(&plan.counting)),
        },
        prints: Cow::Borrowed(if plan.dedupe == Dedupe::Off { &[] } else { index.prints() }),
    };
    let is_all = plan.units == Units::Sentence || !may_skip(call);
    let is_mixed = matches!(plan.ranking, RankBy::Hybrid(_)) || needs.words == Words::None;
    let has_own = needs.sorting != SortKey::Score && plan.min_score.is_some();
    let scores = match found {
        Scores::Later(later) if !(is_all || is_mixed || has_own) => Scores::Later(later),
        found => {
            let cost = SCORED * index.len();
            let scored = host.work(cost, |_| found.scored())?;
            Scores::Known(fused(call, batch.len(), scored))
        }
    };
    let scores = match scores {
        Scores::Known(all) if is_all => return pack_all(call, batch, all, reading, host),
        scores => scores,
    };
    let scope = match &scores {
        Scores::Known(Scored { scores, signals }) => Scope::new(plan.min_score, scores, signals),
        Scores::Later(later) => {
            let signals = later.sure_signals();
            Scope::of(plan.min_score, index.len(), || later.highest(), signals)
        }
    };
    let packer = pack::Packer::new(call, batch, reading, host, DroppedColumns::default());
    let ranks = ranks(needs.sorting, call.keys, &scope, &scores, batch.len());
    let (admitted, total_tokens, trail) = packer.pack(&Chunks::Ranked(&ranks))?;
    let (admitted, total_tokens) = scaled(plan, admitted, total_tokens);
    let places = assemble::arrange(&admitted, call, batch);
    let sorting = needs.sorting;
    let keys = if sorting == SortKey::Own { call.keys.to_vec() } else { Vec::new() };
    let unseen = trail.map(|trail| Unseen { trail, sorting, keys, factor: plan.factor() });
    let extracts = Vec::new();
    Ok(Outcome { total_tokens, scores, admitted, places, scope, unseen, extracts })
}

fn later(index: &Arc<Index>, found: Found) -> Scores {
    Scores::Later(Box::new(Later::new(index, found)))
}

impl Scores {
    fn scored(self) -> Scored {
        match self {
            Self::Known(scored) => scored,
            Self::Later(later) => later.scored(),
        }
    }
}

/// Returns the scores of a corpus by words.
fn lexical_scores<B: Batch, H: Host>(
    lexical: &Lexical,
    query: Text<'_>,
    batch: &B,
    index: &Arc<Index>,
    host: &mut H,
) -> Result<Scores, H::Error> {
    let lists = match index.query_cost(lexical) {
        0 => index.query(query, lexical),
        cost => host.work(cost, |_| index.query(query, lexical))?,
    };
    let total = index.total_chars();
    if let Some(query) = lists {
        let (found, feedback) = host.work(query.cost(), |stop| query.found(batch, stop))?;
        if feedback.is_none() {
            return host.work(query.cost(), |_| later(index, found));
        }
        let mut scored = host.work(query.cost(), |_| found.scored(index))?;
        feed_back(feedback, &mut scored, batch, total, host)?;
        return Ok(Scores::Known(scored));
    }
    let scorer = LexicalScorer::new(query, lexical);
    let scorer = read_all(scorer, batch, total, host)?;
    Ok(Scores::Known(finish(&scorer, batch, total, host)?))
}

/// Returns the scores of all chunks. `found` has what was found in the texts,
/// if the ranking looks for something.
fn fused(call: &Call<'_>, count: usize, found: Scored) -> Scored {
    let scores = match &call.plan.ranking {
        RankBy::Hybrid(hybrid) => mixed(call, hybrid, count, &found.scores),
        _ if call.plan.needs().words == Words::None => call.keys.to_vec(),
        _ => return found,
    };
    Scored { scores, ..found }
}

/// Returns the scores that the ranking mixes, as one.
fn mixed(call: &Call<'_>, hybrid: &Hybrid, count: usize, found: &[f64]) -> Vec<f64> {
    let Weights { bm25, embedding, score } = hybrid.weights;
    let mut keys = call.keys;
    let mut columns = Vec::with_capacity(3);
    if bm25 > 0.0 {
        columns.push((bm25, found));
    }
    for weight in [embedding, score] {
        if weight > 0.0 {
            let (column, rest) = keys.split_at(count);
            columns.push((weight, column));
            keys = rest;
        }
    }
    fuse(count, &columns, hybrid.fusion)
}

/// Returns the numbers with the factor of the counts, in which none of the
/// stages before has them.
fn scaled(plan: &Plan, mut admitted: Admitted, total: u64) -> (Admitted, u64) {
    let factor = plan.factor();
    if !factor.is_one() {
        admitted.kept.iter_mut().for_each(|kept| kept.tokens = factor.of(kept.tokens));
        admitted.dropped.scale(factor);
    }
    (admitted, factor.of(total))
}

fn ranks<'a>(
    sorting: SortKey,
    keys: &'a [f64],
    scope: &'a Scope,
    scores: &'a Scores,
    count: usize,
) -> Ranks<'a> {
    let order = match (sorting, scores) {
        (SortKey::Score, Scores::Later(later)) => indexed::Order::Scores(later),
        // Then the scope asks for no scores.
        (_, Scores::Later(_)) => indexed::Order::Keys(sort_keys(sorting, keys, &[]), &[]),
        (_, Scores::Known(Scored { scores, .. })) => {
            indexed::Order::Keys(sort_keys(sorting, keys, scores), scores)
        }
    };
    Ranks { count: u32::try_from(count).expect("no corpus has 2^32 chunks"), order, scope }
}

/// Returns the keys by which chunks are sorted; None for the input order.
fn sort_keys<'a>(sorting: SortKey, keys: &'a [f64], scores: &'a [f64]) -> Option<&'a [f64]> {
    match sorting {
        SortKey::Place => None,
        SortKey::Score => Some(scores),
        SortKey::Own => Some(keys),
    }
}

/// Packs, looking at every chunk.
fn pack_all<B: Batch, H: Host>(
    call: &Call<'_>,
    batch: &B,
    Scored { scores, signals }: Scored,
    reading: Reading<'_>,
    host: &mut H,
) -> Result<Outcome, H::Error> {
    let Call { plan, query, .. } = *call;
    if plan.units == Units::Sentence {
        return sentences::pack(call, batch, Scored { scores, signals }, reading, host);
    }
    let gate = call.gate().map(|(gate, _)| gate);
    let count = u32::try_from(batch.len()).expect("no batch has 2^32 chunks");
    let mut dropped = DroppedColumns::default();
    dropped.reserve(batch.len());
    let mut order: Vec<u32> = (0..count).collect();
    let scope = Scope::new(plan.min_score, &scores, &signals);
    if !scope.is_all() {
        order.retain(|&index| {
            let is_in_scope = scope.has(index, scores[index as usize]);
            if !is_in_scope {
                let reason = Reason::OutOfScope;
                dropped.push(Dropped { index, reason, needed: 0, available: 0 });
            }
            is_in_scope
        });
    }
    if let Some(gate) = gate {
        order.retain(|&index| {
            let is_related = scores[index as usize] > 0.0 || !gate.is_document(index);
            if !is_related {
                let reason = Reason::OutOfScope;
                dropped.push(Dropped { index, reason, needed: 0, available: 0 });
            }
            is_related
        });
        sort_descending(&mut order, gate.weights());
    } else if let Some(keys) = sort_keys(plan.needs().sorting, call.keys, &scores) {
        sort_descending(&mut order, keys);
    }

    if plan.selection == Selection::Coverage {
        let candidates = &order[..order.len().min(selection::CANDIDATES)];
        let chars = candidates.iter().map(|&index| batch.text(index as usize).chars()).sum();
        let with_titles = plan.needs().has_titles;
        let bm25 = &plan.ranking.lexical().bm25;
        order =
            host.work(chars, |_| selection::by_coverage(query, bm25, batch, with_titles, &order))?;
    }

    let packer = pack::Packer::new(call, batch, reading, host, dropped);
    let (admitted, total_tokens, _) = packer.pack(&Chunks::Listed(&order))?;
    let (admitted, total_tokens) = scaled(plan, admitted, total_tokens);
    let places = assemble::arrange(&admitted, call, batch);
    let scores = Scores::Known(Scored { scores, signals });
    let (unseen, extracts) = (None, Vec::new());
    Ok(Outcome { total_tokens, scores, admitted, places, scope, unseen, extracts })
}
