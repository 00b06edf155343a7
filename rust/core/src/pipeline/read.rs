//! Reading every text once, for its score, its measure and its fingerprint.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use crate::chunk::Batch;
use crate::corpus::Index;
use crate::corpus::found::Found;
use crate::corpus::overlap::Overlap;
use crate::plan::{Call, Counting, Dedupe, Host};
use crate::ranking::Words;
use crate::reading::{Measures, Reading};
use crate::score::feedback::Feedback;
use crate::score::lexical::{LexicalScorer, Scored};
use crate::score::{KeywordScorer, Scorer, Scratch, joined, read_block};
use crate::sharing::Sharing;
use crate::text::Text;
use crate::threads::share;

/// How many code points a thread reads in one go, so that a host can act in
/// between: a few milliseconds' work, or a tenth of a second on the slowest path.
const SLICE_CHARS: usize = 16 << 20;

/// How many chunks ahead texts are prefetched.
const PREFETCH: usize = 1;

/// Where the relevance comes from.
enum Relevance<'a> {
    /// From what is known of the chunks already.
    Given,
    Lexical(Box<LexicalScorer<'a>>),
    Overlap(Arc<KeywordScorer>, Box<Scratch>),
}

/// What a thread reads texts with.
struct Reader<'a> {
    relevance: Relevance<'a>,
    /// A buffer for the words of a text.
    words: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(relevance: Relevance<'a>) -> Self {
        Self { relevance, words: Vec::new() }
    }

    /// Returns the same for another thread.
    fn another(&self) -> Self {
        Self::new(match &self.relevance {
            Relevance::Given => Relevance::Given,
            Relevance::Lexical(lexical) => Relevance::Lexical(Box::new(lexical.another())),
            Relevance::Overlap(overlap, _) => {
                Relevance::Overlap(Arc::clone(overlap), Box::default())
            }
        })
    }
}

/// Where the figures of some texts go. A column that is not wanted has no room.
#[derive(Default)]
struct Columns<'c> {
    found: &'c mut [f64],
    sizes: &'c mut [u32],
    prints: &'c mut [u32],
}

impl Columns<'_> {
    /// Returns those of the first `count` texts, and leaves the others.
    fn split(&mut self, count: usize) -> Self {
        let Columns { found, sizes, prints } = take(self);
        let (found, more_found) = found.split_at_mut(count.min(found.len()));
        let (sizes, more_sizes) = sizes.split_at_mut(count.min(sizes.len()));
        let (prints, more_prints) = prints.split_at_mut(count.min(prints.len()));
        *self = Columns { found: more_found, sizes: more_sizes, prints: more_prints };
        Columns { found, sizes, prints }
    }
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
    let (count, total) = (batch.len(), batch.total_chars());
    let relevance = match needs.words {
        Words::None => Relevance::Given,
        Words::Keywords => Relevance::Overlap(Arc::new(KeywordScorer::new(query)), Box::default()),
        Words::Terms(lexical) => Relevance::Lexical(Box::new(LexicalScorer::new(query, lexical))),
    };
    let has_found = matches!(relevance, Relevance::Overlap(..));
    let mut found = vec![0.0; if has_found { count } else { 0 }];
    let mut sizes = vec![0; if plan.counting == Counting::Host { 0 } else { count }];
    let mut prints = vec![0; if plan.dedupe == Dedupe::Off { 0 } else { count }];
    let mut columns = Columns { found: &mut found, sizes: &mut sizes, prints: &mut prints };

    let read_block = |reader: &mut Reader<'_>, (places, columns): (Range<usize>, Columns<'_>)| {
        let Reader { relevance, words } = reader;
        for (nth, index) in places.enumerate() {
            batch.prefetch(index + PREFETCH);
            let text = batch.text(index);
            if let Some(to) = columns.sizes.get_mut(nth) {
                let size = match &plan.counting {
                    Counting::Estimate(estimate) => estimate.measure(text, words),
                    Counting::Exact(exact, _) => {
                        exact.model().least(|| text.starts(), || text.chars()) as u64
                    }
                    Counting::Host => unreachable!("there is no room for its sizes"),
                };
                *to = u32::try_from(size).unwrap_or(u32::MAX);
            }
            let title = if has_titles { batch.title(index) } else { Text::EMPTY };
            match relevance {
                Relevance::Given => {}
                Relevance::Lexical(lexical) => lexical.read(text, title),
                Relevance::Overlap(overlap, scratch) => {
                    columns.found[nth] = overlap.score(text, title, scratch);
                }
            }
            if let Some(to) = columns.prints.get_mut(nth) {
                // This is last, when the whole text is in the cache.
                *to = text.fingerprint();
            }
        }
        match relevance {
            Relevance::Lexical(lexical) => Some(lexical.take()),
            Relevance::Given | Relevance::Overlap(..) => None,
        }
    };

    let sharing = Sharing::of(count, total);
    let mut readers = sharing.readers(Reader::new(relevance), Reader::another);
    let block = |places: Range<usize>| {
        let columns = columns.split(places.len());
        (places, columns)
    };
    let read = in_slices(batch, total, host, &sharing, &mut readers, block, read_block)?;
    let Reader { mut relevance, .. } = readers.swap_remove(0);
    if let Relevance::Lexical(lexical) = &mut relevance {
        read.into_iter().flatten().for_each(|read| lexical.extend(read));
    }
    drop(sharing); // feedback wants the threads again
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
    let (mut scored, feedback) = host.work(total, |stop| {
        let scored = lexical.scored(batch);
        let feedback = lexical.feedback(batch, &scored, stop);
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
    let Some(feedback) = feedback else { return Ok(()) };
    read_all(feedback, batch, total, host)?.add_to(scored);
    Ok(())
}

/// Returns the share of the query's keywords that each chunk of a corpus
/// contains. Texts are read only for keywords that are no terms.
#[allow(clippy::cast_precision_loss)] // no query has 2^53 keywords
pub(super) fn overlaps<B: Batch, H: Host>(
    query: Text<'_>,
    batch: &B,
    index: &Index,
    host: &mut H,
) -> Result<Found, H::Error> {
    let Overlap { mut found, rest, chunks } = index.overlap(query);
    if rest.is_empty() {
        return Ok(found);
    }
    let count = u32::try_from(batch.len()).expect("no corpus has 2^32 chunks");
    let chunks = chunks.unwrap_or_else(|| (0..count).collect());
    let (scorer, mut scratch) = (KeywordScorer::of_keywords(rest), Scratch::default());
    let mut numbers = Vec::new();
    let mut rest = chunks.as_slice();
    while !rest.is_empty() {
        let (count, chars) = slice_of(rest.iter().map(|&chunk| index.chars(chunk)), SLICE_CHARS);
        let (slice, behind) = rest.split_at(count);
        rest = behind;
        let (numbers, scorer, scratch) = (&mut numbers, &scorer, &mut scratch);
        host.work(chars, move |_| {
            for (nth, &chunk) in slice.iter().enumerate() {
                if let Some(&next) = slice.get(nth + PREFETCH) {
                    batch.prefetch(next as usize);
                }
                let place = chunk as usize;
                let matched = scorer.matched(batch.text(place), batch.title(place), scratch);
                if matched > 0 {
                    numbers.push((chunk, matched as f64));
                }
            }
        })?;
    }
    found.add_numbers(numbers);
    Ok(found)
}

/// Lets `scorer` read all texts of `batch`, which have `total` code points, and
/// returns it.
pub(super) fn read_all<B: Batch, H: Host, S: Scorer>(
    scorer: S,
    batch: &B,
    total: usize,
    host: &mut H,
) -> Result<S, H::Error> {
    let sharing = Sharing::of(batch.len(), total);
    let mut scorers = sharing.readers(scorer, S::another);
    let read = |scorer: &mut S, places| read_block(scorer, batch, places);
    let read = in_slices(batch, total, host, &sharing, &mut scorers, |places| places, read)?;
    Ok(joined(scorers, read))
}

/// Lets `readers` read all texts of `batch`, slice by slice. Returns what they
/// read of each block, which is what `block` makes of its places.
fn in_slices<B: Batch, H: Host, S: Send, T, R: Send>(
    batch: &B,
    total: usize,
    host: &mut H,
    sharing: &Sharing,
    readers: &mut [S],
    mut block: impl FnMut(Range<usize>) -> T + Send,
    read: impl Fn(&mut S, T) -> R + Sync + Send,
) -> Result<Vec<R>, H::Error> {
    let most = SLICE_CHARS.saturating_mul(sharing.threads());
    let (mut from, mut done) = (0, Vec::new());
    while from < batch.len() {
        let rest = from..batch.len();
        let (count, chars) = if total <= most {
            (rest.len(), total)
        } else {
            slice_of(rest.map(|index| batch.text(index).chars()), most)
        };
        let to = from + count;
        let blocks = sharing.blocks(from..to).map(&mut block);
        let (readers, read) = (&mut *readers, &read);
        done.extend(host.work(chars, move |stop| share(readers, blocks, stop, read))?);
        from = to;
    }
    Ok(done)
}

/// Returns how many texts of these lengths make a slice, which ends once it has
/// `most` code points, and how many it has.
fn slice_of(lengths: impl Iterator<Item = usize>, most: usize) -> (usize, usize) {
    let (mut count, mut chars) = (0, 0);
    for length in lengths {
        count += 1;
        chars += length;
        if chars >= most {
            break;
        }
    }
    (count, chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_ends_with_the_text_that_fills_it() {
        let of = |lengths: &[usize], most| slice_of(lengths.iter().copied(), most);
        assert_eq!((2, 7), of(&[3, 4, 5], 4));
        assert_eq!((2, 7), of(&[3, 4, 5], 7));
        assert_eq!((3, 12), of(&[3, 4, 5], 8));
        assert_eq!((3, 12), of(&[3, 4, 5], 100));
        assert_eq!((1, 9), of(&[9, 1], 1));
        assert_eq!((0, 0), of(&[], 1));
    }
}
