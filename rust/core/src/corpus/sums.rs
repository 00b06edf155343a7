//! Sums over the lists of a query's words: the scores of chunks.
//!
//! The chunks are taken in windows. Each score is added up in the order of the
//! adders, so it is the same to the bit whatever is asked for.

mod best;

use super::Index;
use super::cursor::Cursor;
use super::list::Bound;
use super::norms::Norms;

/// The number of chunks in a window.
const WINDOW: u32 = 2048;

/// A place in the order of ranks: the lower comes first.
pub(crate) type Rank = (u64, u32);

/// The list of a word: its part of the index, and its row there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) part: usize,
    pub(super) row: u32,
}

/// What adds to the scores of some chunks.
#[derive(Clone, Debug)]
pub(super) enum Adder {
    /// A term of that weight, in the lists of its forms.
    Term { weight: f64, rows: Vec<Row> },
    /// One for each chunk that has the term as a keyword.
    Keyword(Vec<Row>),
    /// These numbers for these chunks, which ascend.
    Numbers(Vec<(u32, f64)>),
}

/// Scores that are sums.
#[derive(Debug)]
pub(super) struct Sums<'a> {
    pub(super) index: &'a Index,
    pub(super) adders: &'a [Adder],
    pub(super) norms: &'a Norms<'a>,
    /// What each sum is divided by.
    pub(super) divisor: f64,
}

/// What adds, at some chunk.
#[derive(Clone, Debug)]
enum Running<'a> {
    Term { weight: f64, cursors: Vec<Cursor<'a>> },
    Keyword(Vec<Cursor<'a>>),
    Numbers(&'a [(u32, f64)]),
}

/// Chunks whose scores are added up together.
struct Window {
    start: u32,
    end: u32,
    scores: Vec<f64>,
    counts: Counts,
}

/// Counts of one term in a window, all 0 between two terms.
struct Counts {
    counts: Vec<u32>,
    /// The places of those that are not, and room for one more.
    touched: Vec<u32>,
}

impl Window {
    fn new() -> Self {
        let size = WINDOW as usize;
        let counts = Counts { counts: vec![0; size], touched: vec![0; size + 1] };
        Self { start: 0, end: 0, scores: vec![0.0; WINDOW as usize], counts }
    }

    fn begin(&mut self, start: u32, end: u32) {
        (self.start, self.end) = (start, end);
        self.scores.truncate((end - start) as usize);
        self.counts.counts.truncate((end - start) as usize);
        self.scores.fill(0.0);
    }

    fn chunks(&self) -> impl Iterator<Item = (u32, f64)> {
        (self.start..).zip(self.scores.iter().copied())
    }
}

impl<'a> Sums<'a> {
    fn count(&self) -> u32 {
        u32::try_from(self.norms.lengths().len()).expect("no corpus has 2^32 chunks")
    }

    /// Returns the number of postings of all lists.
    pub(super) fn postings(&self) -> u64 {
        self.sizes().iter().sum()
    }

    /// Returns the number of postings of each adder.
    fn sizes(&self) -> Vec<u64> {
        let frequency = |&row: &Row| u64::from(self.index.list(row).frequency);
        let of = |adder: &Adder| match adder {
            Adder::Term { rows, .. } | Adder::Keyword(rows) => rows.iter().map(frequency).sum(),
            Adder::Numbers(numbers) => numbers.len() as u64,
        };
        self.adders.iter().map(of).collect()
    }

    fn running(&self) -> Vec<Running<'a>> {
        let cursors = |rows: &[Row]| {
            let cursor = |&row: &Row| Cursor::new(&self.index.list(row), self.norms.lengths());
            rows.iter().map(cursor).collect()
        };
        let run = |adder: &'a Adder| match adder {
            &Adder::Term { weight, ref rows } => Running::Term { weight, cursors: cursors(rows) },
            Adder::Keyword(rows) => Running::Keyword(cursors(rows)),
            Adder::Numbers(numbers) => Running::Numbers(numbers),
        };
        self.adders.iter().map(run).collect()
    }

    fn windows(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let count = self.count();
        (0..count)
            .step_by(WINDOW as usize)
            .map(move |start| (start, count.min(start.saturating_add(WINDOW))))
    }

    /// Returns the scores of all chunks.
    pub(super) fn all(&self) -> Vec<f64> {
        let mut scores = Vec::with_capacity(self.norms.lengths().len());
        let (mut running, mut window) = (self.running(), Window::new());
        for (start, end) in self.windows() {
            window.begin(start, end);
            for adder in &mut running {
                self.add(adder, &mut window);
            }
            scores.extend(window.scores.iter().map(|score| score / self.divisor));
        }
        scores
    }

    /// Returns the chunks whose scores are above 0, and these.
    pub(super) fn positive(&self) -> Vec<(u32, f64)> {
        let mut found = Vec::new();
        let (mut running, mut window) = (self.running(), Window::new());
        for (start, end) in self.windows() {
            if !running.iter().any(|adder| adder.has_any(end)) {
                continue;
            }
            window.begin(start, end);
            for adder in &mut running {
                self.add(adder, &mut window);
            }
            let positive = window.chunks().filter(|&(_, score)| score > 0.0);
            found.extend(positive.map(|(chunk, score)| (chunk, score / self.divisor)));
        }
        found
    }

    /// Returns the chunks to which the adders from `first` on add, and how much.
    pub(super) fn added(&self, first: usize) -> Vec<(u32, f64)> {
        let mut found = Vec::new();
        let (mut running, mut window, mut own) = (self.running(), Window::new(), Window::new());
        let (before, behind) = running.split_at_mut(first);
        for (start, end) in self.windows() {
            if !behind.iter().any(|adder| adder.has_any(end)) {
                for adder in &mut *before {
                    adder.pass_to(end, end);
                }
                continue;
            }
            window.begin(start, end);
            own.begin(start, end);
            for adder in &mut *before {
                self.add(adder, &mut window);
            }
            let without = window.scores.clone();
            for adder in behind.iter_mut() {
                self.add(&mut adder.clone(), &mut own);
                self.add(adder, &mut window);
            }
            for (((chunk, own), with), without) in own.chunks().zip(&window.scores).zip(without) {
                if own > 0.0 {
                    found.push((chunk, with - without));
                }
            }
        }
        found
    }

    /// Adds what an adder has in a window.
    fn add(&self, adder: &mut Running<'a>, window: &mut Window) {
        let Window { start, end, scores, counts } = window;
        self.add_to(scores, adder, (*start, *end), counts);
    }

    /// Adds what an adder has in a window to these scores of its chunks.
    fn add_to(
        &self,
        scores: &mut [f64],
        adder: &mut Running<'a>,
        (start, end): (u32, u32),
        Counts { counts, touched }: &mut Counts,
    ) {
        match adder {
            Running::Term { weight, cursors } => {
                let (weight, near) = (*weight, self.norms.near(start, end));
                if let [cursor] = cursors.as_mut_slice() {
                    cursor.read_until(end, move |found| {
                        let at = found.chunk.wrapping_sub(start) as usize;
                        if let Some(score) = scores.get_mut(at)
                            && let Some(part) = near.part(found.count, at)
                        {
                            *score += weight * part;
                        }
                    });
                    return;
                }
                let mut found_some = 0;
                for cursor in cursors {
                    cursor.read_until(end, |found| {
                        let at = found.chunk.wrapping_sub(start);
                        if let Some(count) = counts.get_mut(at as usize) {
                            // No branch: none could foresee which come again.
                            touched[found_some] = at;
                            found_some += usize::from(*count == 0);
                            *count = count.saturating_add(found.count);
                        }
                    });
                }
                for at in touched[..found_some].iter().map(|&at| at as usize) {
                    let count = std::mem::take(&mut counts[at]);
                    if let Some(part) = near.part(count, at) {
                        scores[at] += weight * part;
                    }
                }
            }
            Running::Keyword(cursors) => {
                for cursor in cursors {
                    cursor.read_until(end, |found| {
                        let score = scores.get_mut(found.chunk.wrapping_sub(start) as usize);
                        if let Some(score) = score.filter(|_| found.is_keyword) {
                            *score += 1.0;
                        }
                    });
                }
            }
            Running::Numbers(numbers) => {
                while let [(chunk, added), rest @ ..] = *numbers
                    && *chunk < end
                {
                    if let Some(score) = scores.get_mut(chunk.wrapping_sub(start) as usize) {
                        *score += added;
                    }
                    *numbers = rest;
                }
            }
        }
    }

    /// Returns a number that no chunk of a window gets more than, but for
    /// rounding; 0 where none gets anything.
    fn bound(&self, adder: &mut Running<'a>, start: u32, end: u32) -> f64 {
        adder.pass_to(start, end);
        match adder {
            Running::Term { weight, cursors } => {
                let mut bound: Option<Bound> = None;
                for found in cursors.iter().filter_map(|cursor| cursor.bound(end)) {
                    let bound = bound.get_or_insert(Bound::NONE);
                    bound.most = bound.most.saturating_add(found.most);
                    bound.least = bound.least.min(found.least);
                }
                bound.map_or(0.0, |Bound { most, least }| {
                    *weight * self.norms.saturated(most, self.norms.of_length(least))
                })
            }
            Running::Keyword(cursors) => {
                let any = cursors.iter().any(|cursor| cursor.bound(end).is_some());
                f64::from(u8::from(any))
            }
            Running::Numbers(numbers) => {
                let here = numbers.iter().take_while(|(chunk, _)| *chunk < end);
                here.fold(0.0, |most, (_, added)| most.max(*added))
            }
        }
    }

    /// Returns what an adder gives a chunk, if it has it.
    fn seek(&self, adder: &mut Running<'a>, chunk: u32) -> Option<f64> {
        match adder {
            Running::Term { weight, cursors } => {
                let found = cursors.iter_mut().filter_map(|cursor| cursor.seek(chunk));
                let count = found.fold(0_u32, |sum, found| sum.saturating_add(found.count));
                let part = (count > 0).then(|| self.norms.part(count, chunk)).flatten();
                part.map(|part| *weight * part)
            }
            Running::Keyword(cursors) => {
                let mut found = cursors.iter_mut().filter_map(|cursor| cursor.seek(chunk));
                found.any(|found| found.is_keyword).then_some(1.0)
            }
            Running::Numbers(numbers) => {
                while let [(place, _), rest @ ..] = *numbers
                    && *place < chunk
                {
                    *numbers = rest;
                }
                numbers.first().filter(|(place, _)| *place == chunk).map(|(_, added)| *added)
            }
        }
    }

    /// Returns the scores of these chunks, which ascend.
    pub(super) fn of(&self, chunks: &[u32]) -> Vec<f64> {
        let mut running = self.running();
        let sum = |&chunk: &u32| {
            let add = |sum, adder: &mut _| sum + self.seek(adder, chunk).unwrap_or_default();
            running.iter_mut().fold(0.0, add) / self.divisor
        };
        chunks.iter().map(sum).collect()
    }
}

impl Running<'_> {
    /// Goes where another one of the same adder is.
    fn go_to(&mut self, other: &Self) {
        match (self, other) {
            (Self::Term { cursors, .. }, Self::Term { cursors: others, .. })
            | (Self::Keyword(cursors), Self::Keyword(others)) => cursors.clone_from(others),
            (saved, other) => *saved = other.clone(),
        }
    }

    /// Passes what is in front of `start`, as far as that is quick.
    fn pass_to(&mut self, start: u32, end: u32) {
        match self {
            Self::Term { cursors, .. } | Self::Keyword(cursors) => {
                for cursor in cursors {
                    cursor.pass_to(start, end);
                }
            }
            Self::Numbers(numbers) => {
                *numbers = &numbers[numbers.partition_point(|(chunk, _)| *chunk < start)..];
            }
        }
    }

    /// Returns whether anything may be in front of `end`.
    fn has_any(&self, end: u32) -> bool {
        match self {
            Self::Term { cursors, .. } | Self::Keyword(cursors) => {
                cursors.iter().any(|cursor| cursor.bound(end).is_some())
            }
            Self::Numbers(numbers) => numbers.first().is_some_and(|(chunk, _)| *chunk < end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Documents;
    use crate::corpus::found::Found;
    use crate::count::exact::GO_ON;
    use crate::rank::sortable;
    use crate::ranking::{Bm25, Lexical};

    /// Returns texts of words of which some are frequent and some rare, with
    /// repetitions, in no order.
    fn texts(count: usize) -> Vec<String> {
        let mut state = 7_u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut text = |at: usize| {
            let words = (0..3 + next(30)).map(|_| {
                let most = 1 + next(200);
                format!("word{}{}", next(most), if next(5) == 0 { "s" } else { "" })
            });
            let words: Vec<_> = words.collect();
            format!(
                "{}\n{}",
                if at.is_multiple_of(50) { "word3 word9" } else { "" },
                words.join(" ")
            )
        };
        (0..count).map(&mut text).collect()
    }

    /// The best chunks, and the scores of some, are those that adding up all
    /// scores finds, to the bit.
    #[test]
    fn nothing_that_is_passed_over_is_among_the_best() {
        let texts = texts(9_000);
        let index = Index::new(&Documents::new(&texts[..3_500]));
        let index = index.extended(&Documents::new(&texts[..3_600]));
        let index = index.extended(&Documents::new(&texts));
        let lexicals = [Lexical::default(), Bm25::default().into(), {
            let bm25 = Bm25 { k1: 0.0, b: 0.3, ..Bm25::default() };
            bm25.into()
        }];
        for lexical in &lexicals {
            // More adders than are told apart, where stems do not join them.
            let many: Vec<_> = (0..200).map(|at| format!("word{at} word{at}s")).collect();
            let some = "word3 word9 word40 word180 word199 word0";
            for query in ["word1", "word150 word2", some, &many.join(" "), ""] {
                let batch = Documents::new(&texts);
                let asked = index.query(query.into(), lexical).expect("it has lists");
                check(&index, &asked.found(&batch, &GO_ON).0);
            }
        }
        let mut overlap = index.overlap("word1 word7 word60 words word120".into());
        assert!(overlap.rest.is_empty());
        check(&index, &overlap.found);
        // The chunks at the ends of windows have numbers, too.
        let numbered = [0, WINDOW - 1, WINDOW, 2 * WINDOW, 8_999].map(|chunk| (chunk, 3.0));
        let without = overlap.found.all(&index);
        overlap.found.add_numbers(numbered.to_vec());
        let mut with = overlap.found.all(&index);
        for (chunk, _) in numbered {
            with[chunk as usize] -= 3.0 / overlap.found.divisor;
        }
        assert!(without.iter().zip(with).all(|(one, other)| (one - other).abs() < 1e-9));
        check(&index, &overlap.found);
    }

    fn check(index: &Index, found: &Found) {
        found.with(index, |sums| {
            let all = sums.all();
            // A chunk with a score is in a list, as far as there are lists for it.
            let scored = all.iter().filter(|score| **score > 0.0).count() as u64;
            assert!(sums.postings() >= scored && (scored > 0 || sums.postings() == 0));
            let mut order: Vec<Rank> =
                (0..).zip(&all).map(|(at, score)| (!sortable(*score), at)).collect();
            order.sort_unstable();
            let positive = all.iter().filter(|score| **score > 0.0).count();
            for most in [0, 1, 3, 16, 128, 2_000, 9_000] {
                let (best, is_all) = sums.best(most, |_| true, |_, _| true);
                let found: Vec<Rank> = best.iter().map(|(rank, _)| *rank).collect();
                assert_eq!(order[..most.min(positive)], found);
                assert!(
                    best.iter()
                        .all(|((_, at), score)| score.to_bits() == all[*at as usize].to_bits())
                );
                assert_eq!(most >= positive, is_all);
            }
            let (odd, _) = sums.best(40, |at| at % 2 == 1, |_, _| true);
            let expected = order.iter().filter(|(key, at)| at % 2 == 1 && *key < !sortable(0.0));
            assert!(expected.take(40).eq(odd.iter().map(|(rank, _)| rank)));
            let some: Vec<u32> = (0..9_000).step_by(37).collect();
            let expected: Vec<f64> = some.iter().map(|&at| all[at as usize]).collect();
            assert_eq!(expected, sums.of(&some));
            let expected = (0..).zip(all.iter().copied()).filter(|(_, score)| *score > 0.0);
            assert!(expected.eq(sums.positive()));
        });
    }
}
