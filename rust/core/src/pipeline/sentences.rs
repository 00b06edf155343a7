//! Packing sentences of the best chunks, for budgets with room for few whole
//! chunks.
//!
//! Chosen sentences are packed like any chunks: a chunk of which some sentences
//! are chosen has these as its text. So every promise of a packing holds. All
//! texts are read once, and how many sentences fit is found from the tokens that
//! a few tries add up to.

use std::borrow::Cow;

use super::extract::{Answers, AskedOnce, Extract, Extracts};
use super::split::Split;
use super::{Extracted, Outcome, Scores, scaled, sort_keys};
use crate::assemble;
use crate::chunk::Batch;
use crate::count::exact::GO_ON;
use crate::duplicate::Seen;
use crate::outcome::{Admitted, Dropped, DroppedColumns, Reason};
use crate::pack::{self, Chunks};
use crate::plan::{Call, Counting, Dedupe, Host, Overflow, Plan, Subject};
use crate::rank::sort_descending;
use crate::ranking::{Lexical, RankBy};
use crate::reading::{Measures, Reading};
use crate::scope::Scope;
use crate::score::heading::heading;
use crate::score::lexical::{Scored, batch_lexical_scores};
use crate::text::Text;

/// Chunks are split until they have this many times the tokens of the budget
/// together.
pub(crate) const BUDGETS: u128 = 4;

/// How many chunks are split at most.
const MAX_CHUNKS: usize = 128;

/// A chunk is not split if there would be more sentences with it.
const MAX_SENTENCES: usize = 4_096;

/// How many sentences behind the first that does not fit are tried one by one.
const TRIES: usize = 32;

/// A joint of whole chunks makes up for at most this many tokens that they count
/// too much.
const SLACK: u64 = 2;

/// How many tries go by what the tokens so far let expect. Those after that
/// halve what is left.
const GUESSES: usize = 8;

/// A sentence: the place of its chunk among those that were split, and its
/// number there.
type Sentence = (usize, usize);

/// Sentences with the headings of their chunks, as a batch.
struct Titled<'a>(Vec<(Text<'a>, Text<'a>)>);

impl Batch for Titled<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        self.0[index].0
    }

    fn title(&self, index: usize) -> Text<'_> {
        self.0[index].1
    }
}

/// Packs the best sentences that fit, and whole chunks into what is left.
/// `call` has its budget in tokens of the encoding.
pub(super) fn pack<B: Batch, H: Host>(
    call: &Call<'_>,
    batch: &B,
    scored: Scored,
    reading: Reading<'_>,
    host: &mut H,
) -> Result<Outcome, H::Error> {
    let scope = Scope::new(call.plan.min_score, &scored.scores, &scored.signals);
    let mut sentences = Sentences::new(call, batch, &scored, &scope, reading);
    sentences.split(host)?;
    let chosen = sentences.choose(host)?;
    let (admitted, total) = sentences.fill(chosen, host)?;
    let extracts = sentences.extracts(&admitted);
    let places = assemble::arrange(&admitted, call, &sentences.texts);
    let (admitted, total_tokens) = scaled(call.plan, admitted, total);
    Ok(Outcome {
        total_tokens,
        scores: Scores::Known(scored),
        admitted,
        places,
        scope,
        unseen: None,
        extracts,
    })
}

/// One call that packs sentences.
struct Sentences<'a, B> {
    call: &'a Call<'a>,
    batch: &'a B,
    scores: &'a [f64],
    /// The chunks in scope, best first, and the others.
    order: Vec<u32>,
    out_of_scope: DroppedColumns,
    /// The plan to try sentences by: without cuts, as a cut chunk fits whatever
    /// its text, and with repetitions, as more sentences may make two texts
    /// differ.
    trying: Plan,
    texts: Extracts<'a, B>,
    /// The measures of the texts as they are now; empty if the host counts.
    measures: Vec<u32>,
    prints: Cow<'a, [u32]>,
    split: Vec<Split<'a>>,
    /// Of each sentence of all whether it is tried or chosen.
    chosen: Vec<bool>,
    /// The chunks that were split, if repetitions are dropped.
    seen: Seen,
    /// The tokens of the chunks that were split, and their code points.
    tokens: u128,
    chars: u128,
    /// Whether the best sentence by itself leaves no room for the notice.
    may_yield: bool,
    /// The tokens that the sentences found to fit last leave.
    left: u64,
    answers: Answers,
    scratch: Vec<u8>,
}

impl<'a, B: Batch> Sentences<'a, B> {
    fn new(
        call: &'a Call<'a>,
        batch: &'a B,
        Scored { scores, .. }: &'a Scored,
        scope: &Scope,
        Reading { measures, prints }: Reading<'a>,
    ) -> Self {
        let Call { plan, budget, .. } = *call;
        let count = u32::try_from(batch.len()).expect("no batch has 2^32 chunks");
        let (mut order, others): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|&index| scope.has(index, scores[index as usize]));
        if let Some(keys) = sort_keys(plan.needs().sorting, call.keys, scores) {
            sort_descending(&mut order, keys);
        }
        let mut out_of_scope = DroppedColumns::default();
        for index in others {
            out_of_scope.push(left_out(index));
        }
        let trying = Plan { overflow: Overflow::Stop, dedupe: Dedupe::Off, ..plan.clone() };
        let measures = match measures {
            Measures::Read(measures) => measures,
            Measures::Lent(measures) => measures.to_vec(),
            Measures::Bounds(bounds) => (0..batch.len()).map(|index| bounds.get(index)).collect(),
        };
        Self {
            call,
            batch,
            scores,
            order,
            out_of_scope,
            trying,
            texts: Extracts::new(batch),
            measures,
            prints,
            split: Vec::new(),
            chosen: Vec::new(),
            seen: Seen::default(),
            tokens: 0,
            chars: 0,
            may_yield: false,
            left: budget,
            answers: Answers::default(),
            scratch: Vec::new(),
        }
    }

    /// Splits the best chunks until they overfill the budget.
    fn split<H: Host>(&mut self, host: &mut H) -> Result<(), H::Error> {
        let batch = self.batch;
        let wanted = BUDGETS * u128::from(self.call.budget);
        for at in 0..self.order.len() {
            if self.split.len() == MAX_CHUNKS || self.tokens >= wanted {
                break;
            }
            let index = self.order[at];
            let text = batch.text(index as usize);
            if text.is_empty() {
                continue;
            }
            if let Some(&print) = self.prints.get(index as usize) {
                let text_of = |index: u32| batch.text(index as usize);
                if self.seen.find(print, index, text_of).is_some() {
                    continue;
                }
                self.seen.insert(print, index, text_of);
            }
            let measured = self.measures.get(index as usize).copied();
            let first = self.chosen.len();
            let split = host.work(text.chars(), |_| Split::new(index, text, measured, first))?;
            let count = first + split.sentences.len();
            if count <= MAX_SENTENCES {
                self.chosen.resize(count, false);
                self.chars += text.chars() as u128;
                self.split.push(split);
                let tokens = self.count(self.split.len() - 1, None, u64::MAX, host)?;
                self.tokens += u128::from(tokens.unwrap_or(u64::MAX));
            }
        }
        Ok(())
    }

    /// Returns the tokens of an extract of the chunk at `place`, or of its whole
    /// text, if they are at most `limit`.
    fn count<H: Host>(
        &mut self,
        place: usize,
        extract: Option<&[u8]>,
        limit: u64,
        host: &mut H,
    ) -> Result<Option<u64>, H::Error> {
        let split = &self.split[place];
        let whole = || self.batch.text(split.index as usize);
        let text = extract.map_or_else(whole, Text::from_utf8);
        let tokens = match &self.call.plan.counting {
            Counting::Estimate(estimate) => estimate.count_text(text, &mut self.scratch),
            Counting::Exact(exact, _) => return Ok(exact.count_text(text, limit, &GO_ON)),
            Counting::Host => {
                let (answers, extracts) = (&mut self.answers, &self.texts);
                let index = split.index as usize;
                let mut host = AskedOnce { host, answers, extracts };
                match extract {
                    Some(text) => host.count(Subject::Piece { index, text })?,
                    None => host.count_whole(index)?,
                }
            }
        };
        Ok(Some(tokens).filter(|&tokens| tokens <= limit))
    }

    /// Returns the best sentences that fit.
    ///
    /// What the tries add up to tells which number to try next; then further
    /// sentences are tried one by one.
    fn choose<H: Host>(&mut self, host: &mut H) -> Result<Vec<Sentence>, H::Error> {
        let chars = usize::try_from(self.chars).unwrap_or(usize::MAX);
        let mut ranked = host.work(chars, |_| self.ranked())?;
        if self.call.plan.dedupe != Dedupe::Off {
            let firsts = self.firsts(&ranked);
            let most = u128::from(self.call.budget) + u128::from(SLACK) * self.split.len() as u128;
            if firsts.len() < ranked.len() && self.tokens <= most && self.fits(&ranked, host)? {
                return Ok(ranked); // whole chunks, repetitions included
            }
            ranked = firsts;
        }
        let fit = self.most(&ranked, host)?;
        let tries = ranked.iter().copied().skip(fit + 1).take(TRIES);
        let mut chosen = ranked[..fit].to_vec();
        // Those that fit by the tokens of their chunks mostly do together.
        self.set(&chosen);
        let mut left = self.left;
        for sentence in tries.clone() {
            if let Some((tokens, is_new)) = self.needed(sentence, left, host)? {
                let split = &mut self.split[sentence.0];
                split.tokens = if is_new { tokens } else { split.tokens.saturating_add(tokens) };
                left = left.saturating_sub(tokens).saturating_sub(u64::from(is_new));
                chosen.push(sentence);
                self.set(&chosen);
            }
        }
        if chosen.len() == fit || self.fits(&chosen, host)? {
            return Ok(chosen);
        }
        chosen.truncate(fit);
        self.fits(&chosen, host)?; // for its figures
        for sentence in tries {
            self.set(&chosen);
            if self.needed(sentence, self.left, host)?.is_some() {
                chosen.push(sentence);
                if !self.fits(&chosen, host)? {
                    chosen.pop();
                }
            }
        }
        Ok(chosen)
    }

    /// Returns the first of each group of equal sentences.
    fn firsts(&self, ranked: &[Sentence]) -> Vec<Sentence> {
        let mut seen = Seen::with_capacity(ranked.len());
        let text = |at: u32| {
            let (place, number) = ranked[at as usize];
            self.split[place].sentence(number)
        };
        let firsts = (0_u32..).zip(ranked).filter(|&(at, _)| {
            let print = text(at).fingerprint();
            let is_first = seen.find(print, at, text).is_none();
            if is_first {
                seen.insert(print, at, text);
            }
            is_first
        });
        firsts.map(|(_, &sentence)| sentence).collect()
    }

    /// Returns how many of the best fit, if not one more does.
    fn most<H: Host>(&mut self, ranked: &[Sentence], host: &mut H) -> Result<usize, H::Error> {
        let sizes = ranked.iter().map(|&(place, number)| self.split[place].sizes[number] as u128);
        let sums: Vec<u128> = sizes
            .scan(0, |sum, size| {
                *sum += size + 1;
                Some(*sum)
            })
            .collect();
        let (tokens, chars) = (self.tokens.max(1), self.chars);
        // The number of sentences to expect in this many tokens behind others.
        let expected = |fit: usize, left: u64| {
            let behind = fit.checked_sub(1).map_or(0, |last| sums[last]);
            let reach = behind + u128::from(left) * chars / tokens;
            sums.partition_point(|&sum| sum <= reach)
        };
        // The best `fit` fit, and the best `over` do not.
        let (mut fit, mut over) = (0, ranked.len() + 1);
        if self.call.plan.notice.is_some() && over > 1 {
            if self.fits(&ranked[..1], host)? { fit = 1 } else { over = 1 }
        }
        let mut next = expected(fit, self.left);
        let (mut tries, mut misses) = (0, 0);
        while over - fit > 1 {
            next = next.clamp(fit + 1, over - 1);
            if next == fit + 1 {
                self.set(&ranked[..fit]);
                if self.needed(ranked[fit], self.left, host)?.is_none() {
                    over = next;
                    continue;
                }
            }
            if self.fits(&ranked[..next], host)? {
                fit = next;
                next = expected(fit, self.left);
            } else {
                over = next;
                misses += 1;
                let step = (over << misses) / 32;
                next = if fit > 0 { fit.midpoint(over) } else { over.saturating_sub(step.max(1)) };
            }
            tries += 1;
            if tries >= GUESSES {
                next = fit.midpoint(over);
            }
        }
        Ok(fit)
    }

    /// Returns the sentences, best first.
    ///
    /// The value of a sentence is its share of the highest score over all of
    /// them, plus that of its chunk. It is scored by words as the ranking says,
    /// but without headings, links and feedback, which find no more evidence
    /// here. The words of the chunk's heading count in every sentence, but not
    /// once more in the line that is the heading.
    ///
    /// The order of the operations is part of the result.
    fn ranked(&self) -> Vec<Sentence> {
        let count = self.split.iter().map(|split| split.sentences.len()).sum();
        let (mut sentences, mut titled) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (place, split) in self.split.iter().enumerate() {
            let index = split.index as usize;
            let title = self.batch.title(index);
            let heading = heading(self.batch.text(index), title);
            for number in 0..split.sentences.len() {
                let has_it = number == 0 && title.is_empty();
                titled.push((split.sentence(number), if has_it { Text::EMPTY } else { heading }));
                sentences.push((place, number));
            }
        }
        let lexical = self.call.plan.ranking.lexical().into_owned();
        let words =
            Lexical { headings: false, links: false, feedback: false, statistics: None, ..lexical };
        let scores = batch_lexical_scores(self.call.query, &Titled(titled), &words);
        let highest = scores.iter().copied().fold(0.0, f64::max);
        let shares = self.shares();
        let values = sentences.iter().zip(&scores).map(|(&(place, _), score)| {
            let share = if highest > 0.0 { score / highest } else { 0.0 };
            share + shares[place]
        });
        // No value is below 0, so that its bits are in its order.
        let keys = values.map(|value| !value.to_bits());
        let mut ranked: Vec<(u64, u32)> = keys.zip(0..).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, at)| sentences[at as usize]).collect()
    }

    /// Returns what each chunk that was split adds to its sentences.
    ///
    /// Under a ranking by words it is twice the share of the highest score,
    /// under any other the reciprocal of the chunk's place. The scores that
    /// callers bring may be below 0 or missing, cosines have no zero that says
    /// that there is nothing, and times and the input order are no scores. The
    /// shares of keyword overlaps find less evidence than places, those of
    /// hybrid scores no more.
    #[allow(clippy::cast_precision_loss)] // 256 chunks are split at most
    fn shares(&self) -> Vec<f64> {
        if !matches!(self.call.plan.ranking, RankBy::Lexical(_)) {
            return (0..self.split.len()).map(|place| 1.0 / (1.0 + place as f64)).collect();
        }
        let scores = self.split.iter().map(|split| self.scores[split.index as usize]);
        let highest = scores.clone().fold(0.0, f64::max);
        scores.map(|score| if highest > 0.0 { 2.0 * (score / highest) } else { 0.0 }).collect()
    }

    /// Returns how many tokens its chunk counts more with one more sentence, if
    /// they are at most `left`, and whether that is its first.
    fn needed<H: Host>(
        &mut self,
        (place, number): Sentence,
        left: u64,
        host: &mut H,
    ) -> Result<Option<(u64, bool)>, H::Error> {
        if left == 0 {
            return Ok(None);
        }
        let split = &self.split[place];
        let mut of_chunk = self.chosen[split.range()].to_vec();
        let is_new = !of_chunk.contains(&true);
        let tokens = if is_new { 0 } else { split.tokens };
        of_chunk[number] = true;
        let extract = of_chunk.contains(&false).then(|| split.extract(&of_chunk));
        let count = self.count(place, extract.as_deref(), tokens.saturating_add(left), host)?;
        Ok(count.map(|count| (count.saturating_sub(tokens), is_new)))
    }

    /// Returns whether all of these are kept when nothing else is packed, with
    /// room for the notice. That yields to the best sentence only.
    fn fits<H: Host>(&mut self, sentences: &[Sentence], host: &mut H) -> Result<bool, H::Error> {
        self.set(sentences);
        let order = self.in_order();
        let mut dropped = DroppedColumns::default();
        if order.len() < self.batch.len() && self.call.plan.notice.is_some() {
            // A chunk that is left out, so that there is room for the notice.
            dropped.push(left_out(0));
        }
        let call = Call { plan: &self.trying, ..*self.call };
        let (admitted, total) = {
            let reading =
                Reading { measures: Measures::Lent(&self.measures), prints: Cow::Borrowed(&[]) };
            let mut host = AskedOnce { host, answers: &mut self.answers, extracts: &self.texts };
            let packer = pack::Packer::new(&call, &self.texts, reading, &mut host, dropped);
            let (admitted, total, _) = packer.pack(&Chunks::Listed(&order))?;
            (admitted, total)
        };
        if sentences.len() == 1 {
            self.may_yield = admitted.notice_yields;
        }
        let fits =
            admitted.kept.len() == order.len() && (self.may_yield || !admitted.notice_yields);
        if fits {
            self.left = self.call.budget.saturating_sub(total);
            let mut kept = admitted.kept.iter();
            for split in &mut self.split {
                if self.chosen[split.range()].contains(&true) {
                    split.tokens = kept.next().map_or(0, |kept| kept.tokens);
                }
            }
        }
        Ok(fits)
    }

    /// Sets the texts of the chunks to these of their sentences.
    fn set(&mut self, sentences: &[Sentence]) {
        let before = self.chosen.clone();
        self.chosen.fill(false);
        for &(place, number) in sentences {
            self.chosen[self.split[place].first + number] = true;
        }
        for (place, split) in self.split.iter().enumerate() {
            let now = &self.chosen[split.range()];
            if *now == before[split.range()] {
                continue;
            }
            let index = split.index;
            let whole = self.batch.text(index as usize);
            let is_extract = now.contains(&true) && now.contains(&false);
            let extract = is_extract.then(|| Extract::new(split.extract(now), whole));
            let measured = match (&extract, &self.call.plan.counting) {
                (None, _) => split.measured,
                (Some(extract), Counting::Estimate(estimate)) => {
                    let measured = estimate.measure(extract.text(), &mut self.scratch);
                    Some(u32::try_from(measured).unwrap_or(u32::MAX))
                }
                // No text counts less.
                (Some(_), _) => Some(0),
            };
            if let Some(measure) = self.measures.get_mut(index as usize) {
                *measure = measured.unwrap_or(0);
            }
            self.texts.set(index, place, extract);
        }
    }

    /// Returns the chunks that have sentences, best first.
    fn in_order(&self) -> Vec<u32> {
        let has_some = |split: &&Split<'_>| self.chosen[split.range()].contains(&true);
        let split = self.split.iter().filter(has_some);
        split.map(|split| split.index).collect()
    }

    /// Packs the chosen sentences, and whole chunks into what is left.
    fn fill<H: Host>(
        &mut self,
        mut chosen: Vec<Sentence>,
        host: &mut H,
    ) -> Result<(Admitted, u64), H::Error> {
        let repeats = self.repeats();
        let prints = self.prints.to_vec();
        loop {
            self.set(&chosen);
            self.print(&prints, &repeats);
            let first = self.in_order();
            let (admitted, total) = self.packed(self.call.plan, &first, host)?;
            let mut is_kept = vec![false; self.batch.len()];
            for kept in &admitted.kept {
                is_kept[kept.index as usize] = true;
            }
            let mut is_short = first.iter().any(|&index| !is_kept[index as usize]);
            if is_short {
                let dropped = admitted.dropped.iter();
                let is_there = |index: u32| first.contains(&index);
                is_short = dropped
                    .into_iter()
                    .any(|dropped| dropped.reason != Reason::Duplicate && is_there(dropped.index));
            }
            let may_yield = self.may_yield || chosen.len() <= 1;
            if is_short || (admitted.notice_yields && !may_yield) {
                chosen.pop(); // a notice of more digits took its room
                continue;
            }
            // A chunk that was cut for the room that was left would take more
            // of it in front of others.
            let cut = admitted.cuts.first().map(|&(index, _)| index);
            let is_ahead = |index: &u32| is_kept[*index as usize] && cut != Some(*index);
            let ranked: Vec<u32> = self.order.iter().copied().filter(is_ahead).chain(cut).collect();
            let kept = first.into_iter().filter(|&index| is_kept[index as usize]);
            if kept.eq(ranked.iter().copied()) {
                return Ok((admitted, total));
            }
            // The others had room behind them. A notice that yielded to the best
            // sentence would not yield to it behind another chunk.
            if !admitted.notice_yields {
                return self.packed(self.call.plan, &ranked, host);
            }
            let quiet = Plan { notice: None, ..self.call.plan.clone() };
            let (mut admitted, total) = self.packed(&quiet, &ranked, host)?;
            admitted.notice_yields = true;
            return Ok((admitted, total));
        }
    }

    /// Returns the chunks that repeat one that was split, each with that.
    fn repeats(&self) -> Vec<(u32, u32)> {
        if self.prints.is_empty() {
            return Vec::new();
        }
        let text = |index: u32| self.batch.text(index as usize);
        let original = |&index: &u32| {
            let original = self.seen.find(self.prints[index as usize], index, text)?;
            (original != index).then_some((index, original))
        };
        self.order.iter().filter_map(original).collect()
    }

    /// Sets the fingerprints of the texts as they are now: `prints` are those
    /// of the whole chunks. A duplicate of a chunk repeats its sentences too.
    fn print(&mut self, prints: &[u32], repeats: &[(u32, u32)]) {
        if prints.is_empty() {
            return;
        }
        let mut now = prints.to_vec();
        for split in &self.split {
            if let Some((_, extract)) = self.texts.of(split.index as usize) {
                now[split.index as usize] = extract.text().fingerprint();
            }
        }
        for &(index, original) in repeats {
            self.texts.repeat(index, original);
            now[index as usize] = now[original as usize];
            if let Some(&measured) = self.measures.get(original as usize) {
                self.measures[index as usize] = measured;
            }
        }
        self.prints = now.into();
    }

    /// Packs all chunks, `first` before all others.
    fn packed<H: Host>(
        &mut self,
        plan: &Plan,
        first: &[u32],
        host: &mut H,
    ) -> Result<(Admitted, u64), H::Error> {
        let mut is_first = vec![false; self.batch.len()];
        for &index in first {
            is_first[index as usize] = true;
        }
        let others = self.order.iter().copied().filter(|&index| !is_first[index as usize]);
        let order: Vec<u32> = first.iter().copied().chain(others).collect();
        let call = Call { plan, ..*self.call };
        let reading = Reading {
            measures: Measures::Lent(&self.measures),
            prints: Cow::Borrowed(&self.prints),
        };
        let mut host = AskedOnce { host, answers: &mut self.answers, extracts: &self.texts };
        let dropped = self.out_of_scope.clone();
        let packer = pack::Packer::new(&call, &self.texts, reading, &mut host, dropped);
        let (admitted, total, _) = packer.pack(&Chunks::Listed(&order))?;
        Ok((admitted, total))
    }

    /// Returns what is kept of each chunk of which only some sentences are.
    fn extracts(&self, admitted: &Admitted) -> Vec<Extracted> {
        let of = |index: u32| {
            let (place, extract) = self.texts.of(index as usize)?;
            let chosen = &self.chosen[self.split[place].range()];
            let counts = (chosen.iter().filter(|&&is_in| is_in).count(), chosen.len());
            Some(Extracted { index, text: extract.utf8().to_vec(), counts })
        };
        let mut found: Vec<_> = admitted.kept.iter().filter_map(|kept| of(kept.index)).collect();
        found.sort_unstable_by_key(|extract| extract.index);
        found
    }
}

fn left_out(index: u32) -> Dropped {
    Dropped { index, reason: Reason::OutOfScope, needed: 0, available: 0 }
}
