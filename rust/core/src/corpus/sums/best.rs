//! The best chunks.
//!
//! The blocks of the lists bound what a window may have: some windows are passed
//! over, and in others the lists of frequent words are only asked about chunks
//! that other words make good enough.

use super::{Adder, Rank, Running, Sums, WINDOW, Window};
use crate::rank::sortable;
use crate::wide::with_widest;

/// Up to so many chunks of a window are sought in a list one by one.
const SOUGHT: usize = 16;

/// Of up to so many adders it is kept what each gives to the chunks of a window:
/// 16 KiB for each.
const PARTED: usize = 256;

/// How much larger a bound is taken than it was added up, for the rounding.
const SLACK: f64 = 1.0 + 1e-9;

/// What an adder may add in a window.
#[derive(Clone, Copy, Debug)]
struct MayAdd {
    /// Which adder it is.
    at: usize,
    /// No chunk gets more, but for rounding; 0 where none gets anything.
    most: f64,
    /// How much that is for each posting of the adder.
    of_each: f64,
}

impl<'a> Sums<'a> {
    /// Writes what an adder gives these chunks of a window, which ascend.
    fn seek_all(&self, adder: &mut Running<'a>, chunks: &[u32], start: u32, parts: &mut [f64]) {
        for &chunk in chunks {
            parts[(chunk - start) as usize] = self.seek(adder, chunk).unwrap_or_default();
        }
    }

    /// Returns at most `most` of the wanted chunks whose scores are above 0 and
    /// that `accept` takes by these and their ranks: the best, best first. Also
    /// returns whether there are no others.
    pub(in crate::corpus) fn best(
        &self,
        most: usize,
        is_wanted: impl Fn(u32) -> bool,
        accept: impl Fn(Rank, f64) -> bool,
    ) -> (Vec<(Rank, f64)>, bool) {
        // Whole numbers are added up without rounding.
        let is_exact = !self.adders.iter().any(|adder| matches!(adder, Adder::Term { .. }));
        let slack = if is_exact { 1.0 } else { SLACK };
        let mut best = Best { most, found: Vec::new(), least: 0.0, is_all: true };
        let offer = |best: &mut Best, chunk, sum: f64| {
            let score = sum / self.divisor;
            let rank = (!sortable(score), chunk);
            if is_wanted(chunk) && accept(rank, score) {
                best.push(rank, score, sum);
            }
        };
        let (mut running, mut window) = (self.running(), Window::new());
        let mut saved = running.clone();
        let sizes = self.sizes();
        let all: u64 = sizes.iter().sum();
        let mut bounds: Vec<MayAdd> = Vec::with_capacity(running.len());
        let (mut chosen, mut rest): (Vec<u32>, Vec<f64>) = (Vec::new(), Vec::new());
        // What each adder gives the chosen chunks of a window.
        let mut parts = Vec::new();
        for (start, end) in self.windows() {
            bounds.clear();
            for (at, (adder, &size)) in running.iter_mut().zip(&sizes).enumerate() {
                let most = self.bound(adder, start, end);
                #[allow(clippy::cast_precision_loss)] // no corpus has 2^53 postings
                bounds.push(MayAdd { at, most, of_each: most / size.max(1) as f64 });
            }
            let total: f64 = bounds.iter().map(|bound| bound.most).sum();
            if total * slack <= best.least {
                continue;
            }
            // First come the adders that cannot make a chunk good enough
            // together, those with much to read for little. `rest` has the sum
            // of the first ones' bounds.
            bounds.sort_unstable_by(|one, other| one.of_each.total_cmp(&other.of_each));
            rest.clear();
            rest.push(0.0);
            for bound in &bounds {
                let sum = rest[rest.len() - 1] + bound.most;
                if sum * slack > best.least {
                    break;
                }
                rest.push(sum);
            }
            let (minor, major) = bounds.split_at(rest.len() - 1);
            window.begin(start, end);
            self.norms.fetch(start, end);
            let read: u64 = major.iter().map(|bound| sizes[bound.at]).sum();
            if rest[minor.len()] == 0.0 || 2 * read > all || running.len() > PARTED {
                for adder in &mut running {
                    self.add(adder, &mut window);
                }
                window.choose(&mut chosen, best.least);
                for &chunk in &chosen {
                    let sum = window.scores[(chunk - start) as usize];
                    if sum > best.least {
                        offer(&mut best, chunk, sum);
                    }
                }
                continue;
            }
            parts.resize(running.len() * WINDOW as usize, 0.0);
            for &MayAdd { at, .. } in major {
                saved[at].go_to(&running[at]);
                self.add(&mut running[at], &mut window);
            }
            let needed = best.least / slack;
            window.choose(&mut chosen, (needed - rest[minor.len()]).max(0.0));
            keep(&mut chosen, &is_wanted);
            for (&MayAdd { at, .. }, rest) in minor.iter().zip(&rest).rev() {
                let parts = &mut parts[at * WINDOW as usize..][..(end - start) as usize];
                if chosen.len() > SOUGHT {
                    // What is left there for the other chunks is not asked for.
                    for &chunk in &chosen {
                        parts[(chunk - start) as usize] = 0.0;
                    }
                    self.add_to(parts, &mut running[at], (start, end), &mut window.counts);
                } else {
                    self.seek_all(&mut running[at], &chosen, start, parts);
                }
                keep(&mut chosen, |chunk| {
                    let at = (chunk - start) as usize;
                    window.scores[at] += parts[at];
                    window.scores[at] > needed - rest
                });
                if chosen.is_empty() {
                    break;
                }
            }
            // Now in the order of the adders.
            for &MayAdd { at, .. } in major {
                let parts = &mut parts[at * WINDOW as usize..];
                self.seek_all(&mut saved[at], &chosen, start, parts);
            }
            for &chunk in &chosen {
                let parts = parts.iter().skip((chunk - start) as usize).step_by(WINDOW as usize);
                let sum = parts.fold(0.0, |sum, part| sum + part);
                if sum > best.least {
                    offer(&mut best, chunk, sum);
                }
            }
        }
        best.finish()
    }
}

impl Window {
    /// Chooses the chunks whose sums are above `least`.
    fn choose(&self, chosen: &mut Vec<u32>, least: f64) {
        let mut above = [0; WINDOW as usize];
        write_above(&self.scores, least, &mut above);
        chosen.clear();
        for (first, eight) in (self.start..).step_by(8).zip(above.as_chunks().0) {
            let mut bits = u64::from_le_bytes(*eight);
            while bits != 0 {
                chosen.push(first + bits.trailing_zeros() / 8);
                bits &= bits - 1;
            }
        }
    }
}

/// Writes 1 for each sum that is above `least`, else 0.
fn write_above(sums: &[f64], least: f64, above: &mut [u8]) {
    with_widest!(set_above(sums: &[f64], least: f64, above: &mut [u8]));
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn set_above(sums: &[f64], least: f64, above: &mut [u8]) {
    for (above, &sum) in above.iter_mut().zip(sums) {
        *above = (sum > least).into();
    }
}

/// Keeps those chunks that `may_stay`. No branch depends on one, as none could be
/// foreseen.
fn keep(chunks: &mut Vec<u32>, mut may_stay: impl FnMut(u32) -> bool) {
    let mut kept = 0;
    for at in 0..chunks.len() {
        let chunk = chunks[at];
        chunks[kept] = chunk;
        kept += usize::from(may_stay(chunk));
    }
    chunks.truncate(kept);
}

/// The best chunks so far.
struct Best {
    most: usize,
    found: Vec<(Rank, f64, f64)>,
    /// The sum that a chunk must be above.
    least: f64,
    is_all: bool,
}

impl Best {
    fn push(&mut self, rank: Rank, score: f64, sum: f64) {
        self.found.push((rank, score, sum));
        if self.found.len() >= self.most.saturating_mul(2).max(1) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.is_all = false;
        if self.most == 0 {
            self.found.clear();
            self.least = f64::INFINITY;
            return;
        }
        let last = self.found.select_nth_unstable_by_key(self.most - 1, |(rank, ..)| *rank).1;
        self.least = last.2;
        self.found.truncate(self.most);
    }

    fn finish(mut self) -> (Vec<(Rank, f64)>, bool) {
        if self.found.len() > self.most {
            self.cut();
        }
        self.found.sort_unstable_by_key(|(rank, ..)| *rank);
        (self.found.into_iter().map(|(rank, score, _)| (rank, score)).collect(), self.is_all)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::chunk::Documents;
    use crate::corpus::Index;
    use crate::count::exact::GO_ON;
    use crate::ranking::Bm25;

    /// Chunks of several lengths, all with one word and few with others.
    fn texts() -> Vec<String> {
        let text = |at: usize| {
            let mut words = vec!["tea"; 1 + at * 7 % 4];
            words.extend(["green"].repeat(usize::from(at.is_multiple_of(3)) * (1 + at % 5)));
            words.extend(["oolong"].repeat(usize::from(at % 500 == 7) * (1 + at / 1_000)));
            words.extend(["hill"].repeat(usize::from(at / 2_100 == 2 && at.is_multiple_of(2))));
            words.extend(["of"].repeat(at * 5 % 11));
            words.join(" ")
        };
        (0..10_000).map(text).collect()
    }

    /// Only chunks that may be among the best are asked about, and of some windows
    /// none.
    #[test]
    fn few_are_asked_about() {
        let texts = texts();
        let batch = Documents::new(&texts);
        let index = Index::new(&batch);
        let lexical = Bm25::default().into();
        let mut asked = Vec::new();
        for query in ["tea green oolong hill", "tea oolong", "green hill", "tea"] {
            let lists = index.query(query.into(), &lexical).expect("it has lists");
            lists.found(&batch, &GO_ON).0.with(&index, |sums| {
                let all = sums.all();
                for most in [1, 16, 300] {
                    let (wanted, accepted) = (Cell::new(0), Cell::new(0));
                    let is_wanted = |_| {
                        wanted.set(wanted.get() + 1);
                        true
                    };
                    let (best, _) = sums.best(most, is_wanted, |_, _| {
                        accepted.set(accepted.get() + 1);
                        true
                    });
                    let mut ranks: Vec<Rank> =
                        (0..).zip(&all).map(|(at, score)| (!sortable(*score), at)).collect();
                    ranks.sort_unstable();
                    assert!(ranks[..most].iter().eq(best.iter().map(|(rank, _)| rank)));
                    asked.push((wanted.get(), accepted.get()));
                }
            });
        }
        let expected = [
            [(25, 10), (1_105, 199), (3_908, 2_213)],
            [(18, 11), (128, 128), (1_720, 1_720)],
            [(31, 9), (257, 215), (1_825, 1_747)],
            [(6, 6), (112, 112), (1_710, 1_710)],
        ];
        assert_eq!(expected.concat(), asked);
    }

    #[test]
    fn sums_above_a_bound_are_marked() {
        let sums = [0.0, 1.0, 1.5, 2.0, 0.5, 9.0, 1.0, 1.25, 3.0];
        let mut above = [7; 9];
        write_above(&sums, 1.0, &mut above);
        assert_eq!([0, 0, 1, 1, 0, 1, 0, 1, 1], above);
    }

    #[test]
    fn chunks_stay_in_their_order() {
        let mut chunks = vec![3, 5, 8, 9];
        keep(&mut chunks, |chunk| chunk != 5 && chunk < 9);
        assert_eq!(vec![3, 8], chunks);
    }

    /// The least is what the last of the best has.
    #[test]
    fn the_best_are_cut() {
        let mut best = Best { most: 2, found: Vec::new(), least: 0.0, is_all: true };
        for (at, sum) in (0..).zip([1.0, 4.0, 2.0, 3.0]) {
            assert_eq!((0.0, true), (best.least, best.is_all));
            best.push((!sortable(sum), at), sum, sum);
        }
        assert_eq!((3.0, false, 2), (best.least, best.is_all, best.found.len()));
        let (found, is_all) = best.finish();
        assert_eq!((vec![1, 3], false), (found.iter().map(|(rank, _)| rank.1).collect(), is_all));
    }
}
