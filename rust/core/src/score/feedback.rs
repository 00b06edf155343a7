//! Feedback: the words that stand out in the best text count a little.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Scorer;
use super::bm25::{Bm25Scorer, Counted};
use super::lexical::{QueryTerms, Scored, Signal, SignalKind, index};
use crate::chunk::Batch;
use crate::ranking::{Bm25, Lexical};
use crate::terms::for_each_term_of;
use crate::text::Text;

/// The number of words taken from the best text.
pub(crate) const EXPANSION: usize = 10;

/// The weight of the strongest of these words.
pub(crate) const FEEDBACK: f64 = 0.2;

/// The number of texts that must have such a word.
pub(crate) const LEAST_FREQUENCY: u64 = 2;

/// Returns the stems of the text at `best` that may count, and how often it has
/// each. Those of the query and numbers may not. The result means nothing once
/// `stop` is set.
pub(crate) fn candidates(
    batch: &impl Batch,
    best: usize,
    query: &QueryTerms,
    bm25: &Bm25,
    stop: &AtomicBool,
) -> BTreeMap<Vec<u8>, u32> {
    let mut found: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for part in [batch.text(best), batch.title(best)] {
        for_each_term_of(part, |term| {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let Some(stem) = bm25.stem_of(term) else { return };
            let is_number = stem.first().is_some_and(u8::is_ascii_digit);
            if !is_number && !query.has(&stem) {
                let count = found.entry(stem.into_owned()).or_default();
                *count = count.saturating_add(1);
            }
        });
    }
    found
}

/// Counts the words of the best text in all texts.
#[derive(Debug)]
pub(crate) struct Feedback {
    best: usize,
    scorer: Bm25Scorer,
}

impl Feedback {
    /// Returns what counts the words of the text at `best`, as
    /// [`candidates`] found them.
    pub(crate) fn new(best: usize, words: BTreeMap<Vec<u8>, u32>, lexical: &Lexical) -> Self {
        let (words, statistics) = (words.into_keys().collect(), lexical.statistics.as_deref());
        Self { best, scorer: Bm25Scorer::of_collection(words, &lexical.bm25, statistics) }
    }

    /// Adds what the strongest of the words score to the scores of all texts.
    pub(crate) fn add_to(&self, Scored { scores, signals }: &mut Scored) {
        let idf = self.scorer.weights();
        let mut strong = Vec::new();
        let mut place = 0;
        self.scorer.for_each(|found, norm| {
            if place == self.best {
                let frequent = found
                    .iter()
                    .filter(|[term, _]| self.scorer.frequency(*term) >= LEAST_FREQUENCY);
                strong.extend(frequent.map(|&pair| (self.scorer.part(&idf, pair, norm), pair[0])));
            }
            place += 1;
        });
        // The terms are numbered in their order.
        strong.sort_by(|(a, at), (b, bt)| b.total_cmp(a).then(at.cmp(bt)));
        strong.truncate(EXPANSION);
        // In 2^52 texts or more a word of all of them weighs nothing.
        let Some(&(largest, _)) = strong.first().filter(|(strength, _)| *strength > 0.0) else {
            return;
        };
        let mut ranks = vec![u8::MAX; idf.len()];
        let mut weights = [0.0; EXPANSION];
        for (rank, &(strength, term)) in (0_u8..).zip(&strong) {
            ranks[term as usize] = rank;
            weights[usize::from(rank)] = (FEEDBACK * (strength / largest)) * idf[term as usize];
        }
        let kind = SignalKind::Feedback(index(self.best));
        let mut scores = (0..).zip(scores);
        self.scorer.for_each(|found, norm| {
            let (chunk, score) = scores.next().expect("there is one for each text");
            let mut counts = [0; EXPANSION];
            let mut any = false;
            for &[term, count] in found {
                if let Some(slot) = counts.get_mut(usize::from(ranks[term as usize])) {
                    (*slot, any) = (count, true);
                }
            }
            if any {
                let before = *score;
                for (rank, count) in (0..).zip(counts).filter(|&(_, count)| count > 0) {
                    *score += self.scorer.part(&weights, [rank, count], norm);
                }
                signals.push(Signal { chunk, kind, added: *score - before });
            }
        });
    }
}

impl Scorer for Feedback {
    type Read = Counted;

    fn another(&self) -> Self {
        Self { best: self.best, scorer: self.scorer.another() }
    }

    fn read(&mut self, text: Text<'_>, title: Text<'_>) {
        self.scorer.read(text, title);
    }

    fn take(&mut self) -> Counted {
        self.scorer.take()
    }

    fn extend(&mut self, behind: Counted) {
        self.scorer.extend(behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Documents;
    use crate::score::{joined, read_block};

    /// What two have read of the texts counts as what one has read of all.
    #[test]
    fn two_read_as_one() {
        let texts = ["green tea", "tea in a pot", "rye", "green rye", "a pot"];
        let batch = Documents::new(&texts);
        let scored = |of_first: usize| {
            let words = ["tea", "pot"].map(|word| (word.into(), 1)).into();
            let mut first = Feedback::new(1, words, &Lexical::default());
            let mut second = first.another();
            let read = vec![
                read_block(&mut first, &batch, 0..of_first),
                read_block(&mut second, &batch, of_first..texts.len()),
            ];
            let mut scored = Scored::from(vec![0.0; texts.len()]);
            joined(vec![first, second], read).add_to(&mut scored);
            scored.scores
        };
        let all = scored(texts.len());
        let has_word: Vec<_> = all.iter().map(|&score| score > 0.0).collect();
        assert_eq!([true, true, false, false, true], *has_word);
        assert_eq!(all, scored(2));
    }
}
