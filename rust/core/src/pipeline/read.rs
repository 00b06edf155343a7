//! Reading every text once, for its score, its measure and its fingerprint.

use crate::chunk::Batch;
use crate::corpus::Index;
use crate::plan::{Call, Counting, Dedupe, Host};
use crate::ranking::Words;
use crate::reading::{Measures, Reading};
use crate::score::feedback::Feedback;
use crate::score::lexical::{LexicalScorer, Scored};
use crate::score::{KeywordScorer, Scratch};
use crate::text::Text;

/// How many code points are read in one go, so that a host can act in between:
/// a few milliseconds' work, or a tenth of a second on the slowest path.
const SLICE_CHARS: usize = 8 << 20;

/// How many chunks ahead texts are prefetched.
const PREFETCH: usize = 1;

/// Where the relevance comes from.
enum Relevance<'a> {
    /// From what is known of the chunks already.
    Given,
    Lexical(Box<LexicalScorer<'a>>),
    Overlap(Box<(KeywordScorer, Scratch)>),
}

/// Reads every text once. Returns what the ranking needs to know of its words,
/// and what packing needs.
pub(super) fn read<B: Batch, H: Host>(
    call: &Call<'_>,
    batch: &B,
    host: &mut H,
) -> Result<(Scored, Reading<'static>), H::Error> {
    let Call { plan, query, .. } = *call;
    let needs = plan.needs();
    let has_titles = needs.has_titles;
    let count = batch.len();
    let mut relevance = match needs.words {
        Words::None => Relevance::Given,
        Words::Keywords => {
            Relevance::Overlap(Box::new((KeywordScorer::new(query), Scratch::default())))
        }
        Words::Terms(lexical) => Relevance::Lexical(Box::new(LexicalScorer::new(query, lexical))),
    };
    let mut found = Vec::new();
    if let Relevance::Overlap(..) = relevance {
        found.reserve_exact(count);
    }
    let mut sizes = Vec::with_capacity(if plan.counting == Counting::Host { 0 } else { count });
    let has_prints = plan.dedupe != Dedupe::Off;
    let mut prints = Vec::with_capacity(if has_prints { count } else { 0 });
    let mut words = Vec::new();
    let total = batch.total_chars();
    let mut from = 0;
    while from < count {
        let (to, chars) =
            if total <= SLICE_CHARS { (count, total) } else { slice_from(batch, from) };
        let (found, sizes, prints) = (&mut found, &mut sizes, &mut prints);
        let (words, relevance) = (&mut words, &mut relevance);
        host.work(chars, move |_| {
            for index in from..to {
                batch.prefetch(index + PREFETCH);
                let text = batch.text(index);
                let size = match &plan.counting {
                    Counting::Estimate(estimate) => Some(estimate.measure(text, words)),
                    Counting::Exact(exact, _) => {
                        Some(exact.model().least(|| text.starts(), || text.chars()) as u64)
                    }
                    Counting::Host => None,
                };
                if let Some(size) = size {
                    sizes.push(u32::try_from(size).unwrap_or(u32::MAX));
                }
                let title = if has_titles { batch.title(index) } else { Text::EMPTY };
                match relevance {
                    Relevance::Given => {}
                    Relevance::Lexical(lexical) => lexical.read(text, title),
                    Relevance::Overlap(overlap) => {
                        let (overlap, scratch) = &mut **overlap;
                        found.push(overlap.score(text, title, scratch));
                    }
                }
                if has_prints {
                    // This is last, when the whole text is in the cache.
                    prints.push(text.fingerprint());
                }
            }
        })?;
        from = to;
    }
    let found = match relevance {
        Relevance::Lexical(lexical) => finish(&lexical, batch, total, host)?,
        Relevance::Given | Relevance::Overlap(..) => found.into(),
    };
    Ok((found, Reading { measures: Measures::Read(sizes), prints: prints.into() }))
}

/// Returns the scores of a batch of `total` code points, which `lexical` has
/// read.
pub(super) fn finish<B: Batch, H: Host>(
    lexical: &LexicalScorer<'_>,
    batch: &B,
    total: usize,
    host: &mut H,
) -> Result<Scored, H::Error> {
    let (mut scored, feedback) = host.work(total, |_| {
        let scored = lexical.scored(batch);
        let feedback = lexical.feedback(batch, &scored);
        (scored, feedback)
    })?;
    feed_back(feedback, &mut scored, batch, total, host)?;
    Ok(scored)
}

/// Reads the texts once more for `feedback`, if there is any, and adds it to
/// their scores.
pub(super) fn feed_back<B: Batch, H: Host>(
    feedback: Option<Feedback>,
    scored: &mut Scored,
    batch: &B,
    total: usize,
    host: &mut H,
) -> Result<(), H::Error> {
    let Some(mut feedback) = feedback else { return Ok(()) };
    read_slices(batch, total, host, |at| feedback.read(batch.text(at), batch.title(at)))?;
    feedback.add_to(scored);
    Ok(())
}

/// Returns the share of the query's keywords that each chunk of a corpus
/// contains. Only chunks that may contain one are read.
pub(super) fn overlaps<B: Batch, H: Host>(
    query: Text<'_>,
    batch: &B,
    index: &Index,
    host: &mut H,
) -> Result<Vec<f64>, H::Error> {
    let (overlap, mut scratch) = (KeywordScorer::new(query), Scratch::default());
    let count = u32::try_from(batch.len()).expect("no corpus has 2^32 chunks");
    let candidates = index.candidates(query).unwrap_or_else(|| (0..count).collect());
    let mut scores = vec![0.0; batch.len()];
    let mut rest = candidates.as_slice();
    while !rest.is_empty() {
        let mut chars = 0;
        let last = rest.iter().position(|&chunk| {
            chars += index.chars(chunk);
            chars >= SLICE_CHARS
        });
        let (slice, behind) = rest.split_at(last.map_or(rest.len(), |last| last + 1));
        rest = behind;
        let (scores, overlap, scratch) = (&mut scores, &overlap, &mut scratch);
        host.work(chars, move |_| {
            for (nth, &chunk) in slice.iter().enumerate() {
                if let Some(&next) = slice.get(nth + PREFETCH) {
                    batch.prefetch(next as usize);
                }
                let chunk = chunk as usize;
                scores[chunk] = overlap.score(batch.text(chunk), batch.title(chunk), scratch);
            }
        })?;
    }
    Ok(scores)
}

/// Calls `visit` with each place in `batch`, slice by slice. The texts have
/// `total` code points.
pub(super) fn read_slices<B: Batch, H: Host>(
    batch: &B,
    total: usize,
    host: &mut H,
    mut visit: impl FnMut(usize) + Send,
) -> Result<(), H::Error> {
    let mut from = 0;
    while from < batch.len() {
        let (to, chars) =
            if total <= SLICE_CHARS { (batch.len(), total) } else { slice_from(batch, from) };
        let visit = &mut visit;
        host.work(chars, move |_| {
            for at in from..to {
                batch.prefetch(at + PREFETCH);
                visit(at);
            }
        })?;
        from = to;
    }
    Ok(())
}

/// Returns where the slice that starts at `from` ends, and its code points.
fn slice_from(batch: &impl Batch, from: usize) -> (usize, usize) {
    let mut chars = 0;
    let last = (from..batch.len()).find(|&index| {
        chars += batch.text(index).chars();
        chars >= SLICE_CHARS
    });
    (last.map_or(batch.len(), |index| index + 1), chars)
}
