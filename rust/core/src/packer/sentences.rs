//! Packing sentences of the best chunks, for budgets with room for few whole
//! chunks.
//!
//! Chosen sentences are packed like any chunks: a chunk of which some sentences
//! are chosen has these as its text. So every promise of a packing holds, and
//! nothing here counts except by packing.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::caller::Caller;
use super::{Packer, Packing, packing};
use crate::chunk::{Document, Documents};
use crate::count::Estimate;
use crate::outcome::Reason;
use crate::pipeline::{self, Outcome, Signal};
use crate::plan::{Call, Counting, Dedupe, Order, Overflow, Plan, Selection};
use crate::ranking::{Lexical, RankBy};
use crate::scope::Scope;
use crate::score::heading::heading;
use crate::score::lexical::batch_lexical_scores;
use crate::sentences::sentence_spans;
use crate::template::Template;

/// Chunks are split until they have this many times the tokens of the budget
/// together.
pub(super) const BUDGETS: u128 = 4;

/// How many chunks are split at most.
const MAX_CHUNKS: usize = 256;

/// A chunk is not split if there would be more sentences with it.
const MAX_SENTENCES: usize = 4_096;

/// How many sentences behind the first that does not fit are tried one by one.
const TRIES: usize = 32;

/// Stands in place of sentences left out between two others.
const GAP: &str = " [...] ";

/// A sentence: the place of its chunk among those that were split, and its
/// number there.
type Sentence = (usize, usize);

/// A chunk that was split into sentences.
struct Split<'a> {
    index: usize,
    text: &'a str,
    sentences: Vec<Range<usize>>,
}

impl<'a> Split<'a> {
    fn new(index: usize, text: &'a str) -> Self {
        let mut bytes = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        let mut next = 0;
        let spans = sentence_spans(text.into());
        let ends = spans.into_iter().map(|chars| {
            let at = bytes.nth(chars - next).expect("a span is within the text");
            next = chars + 1;
            at
        });
        let ends: Vec<usize> = ends.collect();
        let (pairs, _) = ends.as_chunks::<2>();
        Self { index, text, sentences: pairs.iter().map(|&[start, end]| start..end).collect() }
    }

    /// Returns the sentences with these sorted numbers. Neighbours stand as
    /// they do in the text.
    fn extract(&self, numbers: &[usize]) -> Cow<'a, str> {
        if numbers.len() == self.sentences.len() {
            return self.text.into();
        }
        let mut extract = String::new();
        let mut before: Option<usize> = None;
        for &number in numbers {
            let sentence = self.sentences[number].clone();
            match before {
                Some(last) if last + 1 == number => {
                    extract += &self.text[self.sentences[last].end..sentence.start];
                }
                Some(_) => extract += GAP,
                None => {}
            }
            extract += &self.text[sentence];
            before = Some(number);
        }
        extract.into()
    }
}

/// A chunk with another text.
struct WithText<'a, D> {
    chunk: &'a D,
    text: Cow<'a, str>,
}

impl<D: Document> Document for WithText<'_, D> {
    fn text(&self) -> &str {
        &self.text
    }

    fn title(&self) -> &str {
        self.chunk.title()
    }

    fn tag(&self) -> (&str, Option<&str>) {
        self.chunk.tag()
    }

    fn source(&self) -> &str {
        self.chunk.source()
    }

    fn position(&self) -> Option<f64> {
        self.chunk.position()
    }
}

/// A sentence with the heading of its chunk.
struct Titled<'a> {
    text: &'a str,
    title: &'a str,
}

impl Document for Titled<'_> {
    fn text(&self) -> &str {
        self.text
    }

    fn title(&self) -> &str {
        self.title
    }
}

/// One call of a packer that packs sentences.
pub(super) struct Sentences<'a, D> {
    packer: &'a Packer,
    query: &'a str,
    chunks: &'a [D],
    max_tokens: usize,
    previous: &'a [Vec<u8>],
    /// The plan to pack chunks by keys of their places. A chunk with a key
    /// below 0 is out of scope.
    plan: Plan,
    /// The same plan without cuts: a cut chunk fits whatever its text. More
    /// sentences may make two texts differ.
    fitting: Plan,
    scores: Vec<f64>,
    signals: Vec<Signal>,
    scope: Scope,
    /// All chunks: those out of scope, then the others, best first.
    order: Vec<usize>,
    split: Vec<Split<'a>>,
    /// Whether the best sentence by itself leaves no room for the notice.
    may_yield: bool,
}

impl<'a, D: Document> Sentences<'a, D> {
    /// Ranks the chunks by `keys`, and splits the best of them.
    pub(super) fn new(
        packer: &'a Packer,
        query: &'a str,
        chunks: &'a [D],
        max_tokens: usize,
        keys: &[f64],
        previous: &'a [Vec<u8>],
    ) -> Self {
        // Nothing fits, so every chunk is dropped in its turn.
        let plan = Plan {
            counting: Counting::Estimate(Estimate::CharsDiv4),
            overflow: Overflow::Skip,
            max_chunks: None,
            dedupe: Dedupe::Off,
            selection: Selection::Rank,
            order: Order::Rank,
            template: Template::default(),
            notice: None,
            ..packer.plan.clone()
        };
        let call = Call { keys, ..plan.call(query.into(), 0) };
        let mut host = Caller { packer, chunks, indices: None, citation: None };
        let Ok(outcome) = pipeline::run(&call, &Documents::new(chunks), &mut host);
        let order = outcome.dropped().iter().map(|dropped| dropped.index as usize).collect();
        let Outcome { scores, signals, scope, .. } = outcome;
        let plan =
            Plan { ranking: RankBy::Score, min_score: Some(0.0.into()), ..packer.plan.clone() };
        let fitting = Plan { overflow: Overflow::Skip, dedupe: Dedupe::Off, ..plan.clone() };
        let mut sentences = Self {
            packer,
            query,
            chunks,
            max_tokens,
            previous,
            plan,
            fitting,
            scores,
            signals,
            scope,
            order,
            split: Vec::new(),
            may_yield: false,
        };
        sentences.split = sentences.split();
        sentences
    }

    fn split(&self) -> Vec<Split<'a>> {
        let wanted = BUDGETS * self.packer.budget_tokens(self.max_tokens) as u128;
        let (mut split, mut seen) = (Vec::new(), HashSet::new());
        let (mut tokens, mut sentences) = (0, 0);
        for &index in &self.order {
            if split.len() == MAX_CHUNKS || tokens >= wanted {
                break;
            }
            let text = self.chunks[index].text();
            let is_out = text.is_empty() || self.is_out_of_scope(index);
            if is_out || self.packer.plan.dedupe != Dedupe::Off && !seen.insert(text) {
                continue;
            }
            let chunk = Split::new(index, text);
            if sentences + chunk.sentences.len() <= MAX_SENTENCES {
                tokens += self.packer.count(text) as u128;
                sentences += chunk.sentences.len();
                split.push(chunk);
            }
        }
        split
    }

    fn is_out_of_scope(&self, index: usize) -> bool {
        let number = u32::try_from(index).expect("no batch has 2^32 chunks");
        !self.scope.has(number, self.scores[index])
    }

    /// Packs the best sentences that fit, and whole chunks into what is left.
    pub(super) fn pack(mut self) -> Packing {
        let mut chosen = self.choose();
        loop {
            let extracts = self.extracts(&chosen);
            let first: Vec<usize> = extracts.iter().map(|(index, _)| *index).collect();
            let (packing, kept, cut, yields) =
                self.pack_with(&self.plan, &extracts, &first, &chosen);
            let is_repeated = |index: &usize| {
                let mut dropped = packing.dropped.iter();
                dropped.any(|other| other.index == *index && other.reason == Reason::Duplicate)
            };
            let is_all = first.iter().all(|index| kept.contains(index) || is_repeated(index));
            let may_yield = self.may_yield || chosen.len() <= 1;
            if !is_all || (yields && !may_yield) {
                chosen.pop(); // a notice of more digits took its room
                continue;
            }
            // A chunk that was cut for the room that was left would take more
            // of it in front of others.
            let ranked = self.order.iter().copied();
            let ranked = ranked.filter(|index| kept.contains(index) && cut != Some(*index));
            let ranked: Vec<usize> = ranked.chain(cut).collect();
            let first = first.into_iter().filter(|index| kept.contains(index));
            if ranked == first.collect::<Vec<_>>() {
                return packing;
            }
            // The others had room behind them. A notice that yielded to the best
            // sentence would not yield to it behind another chunk.
            let mut plan = self.plan.clone();
            if yields {
                plan.notice = None;
            }
            return self.pack_with(&plan, &extracts, &ranked, &chosen).0;
        }
    }

    fn choose(&mut self) -> Vec<Sentence> {
        let mut ranked = self.ranked();
        if self.packer.plan.dedupe != Dedupe::Off {
            let mut seen = HashSet::new();
            let firsts = ranked.iter().copied().filter(|&(place, number)| {
                let split = &self.split[place];
                seen.insert(&split.text[split.sentences[number].clone()])
            });
            let firsts: Vec<Sentence> = firsts.collect();
            if firsts.len() < ranked.len() && self.fits(&ranked) {
                return ranked; // whole chunks, repetitions included
            }
            ranked = firsts;
        }
        // The best `fit` sentences fit, and the best `over` do not.
        let (mut fit, mut over) = (0, 1);
        while over <= ranked.len() && self.fits(&ranked[..over]) {
            (fit, over) = (over, 2 * over);
        }
        over = over.min(ranked.len() + 1);
        while over - fit > 1 {
            let middle = fit.midpoint(over);
            if self.fits(&ranked[..middle]) {
                fit = middle;
            } else {
                over = middle;
            }
        }
        let mut chosen = ranked[..fit].to_vec();
        for &sentence in ranked.iter().skip(fit + 1).take(TRIES) {
            chosen.push(sentence);
            if !self.fits(&chosen) {
                chosen.pop();
            }
        }
        chosen
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
        let split = self.split.iter().enumerate();
        let sentences: Vec<Sentence> = split
            .flat_map(|(place, split)| (0..split.sentences.len()).map(move |n| (place, n)))
            .collect();
        let headings: Vec<&str> = self.split.iter().map(|split| self.heading_of(split)).collect();
        let titled = sentences.iter().map(|&(place, number)| {
            let Split { index, text, sentences } = &self.split[place];
            let has_it = number == 0 && self.chunks[*index].title().is_empty();
            let title = if has_it { "" } else { headings[place] };
            Titled { text: &text[sentences[number].clone()], title }
        });
        let titled: Vec<_> = titled.collect();
        let lexical = self.packer.plan.ranking.lexical().into_owned();
        let words = Lexical { headings: false, links: false, feedback: false, ..lexical };
        let scores = batch_lexical_scores(self.query.into(), &Documents::new(&titled), &words);
        let highest = scores.iter().copied().fold(0.0, f64::max);
        let shares = self.shares();
        let values = sentences.iter().zip(&scores).map(|(&(place, _), score)| {
            let share = if highest > 0.0 { score / highest } else { 0.0 };
            share + shares[place]
        });
        let mut ranked: Vec<_> = values.zip(sentences.iter().copied()).collect();
        ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        ranked.into_iter().map(|(_, sentence)| sentence).collect()
    }

    fn heading_of(&self, split: &Split<'a>) -> &'a str {
        let title = self.chunks[split.index].title();
        let size = heading(split.text.into(), title.into()).units();
        &(if title.is_empty() { split.text } else { title })[..size]
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
        if !matches!(self.packer.plan.ranking, RankBy::Lexical(_)) {
            return (0..self.split.len()).map(|place| 1.0 / (1.0 + place as f64)).collect();
        }
        let scores = self.split.iter().map(|split| self.scores[split.index]);
        let highest = scores.clone().fold(0.0, f64::max);
        scores.map(|score| if highest > 0.0 { 2.0 * (score / highest) } else { 0.0 }).collect()
    }

    /// Returns whether all of these are kept when nothing else is packed, with
    /// room for the notice. That yields to the best sentence only.
    #[allow(clippy::cast_precision_loss)] // 256 chunks are split at most
    fn fits(&mut self, sentences: &[Sentence]) -> bool {
        let mut extracts: Vec<_> = self.extracts(sentences).into_iter().enumerate().collect();
        extracts.sort_unstable_by_key(|(_, (index, _))| *index);
        let count = extracts.len();
        let mut keys: Vec<f64> = extracts.iter().map(|(rank, _)| (count - rank) as f64).collect();
        let indices: Vec<usize> = extracts.iter().map(|(_, (index, _))| *index).collect();
        let chunks = extracts.into_iter().map(|(_, (index, text))| self.with_text(index, text));
        let mut chunks: Vec<_> = chunks.collect();
        if count < self.chunks.len() && self.packer.plan.notice.is_some() {
            // A chunk that is left out, so that there is room for the notice.
            chunks.push(self.with_text(0, "out of scope".into()));
            keys.push(-1.0);
        }
        let call = self.call(&self.fitting, &keys);
        let mut host = Caller {
            packer: self.packer,
            chunks: &chunks,
            indices: Some(&indices),
            citation: None,
        };
        let documents = Documents::new(&chunks);
        let Ok(outcome) = pipeline::run(&call, &documents, &mut host);
        let yields = outcome.notice_yields();
        let is_all = outcome.kept().len() == count;
        if sentences.len() == 1 {
            self.may_yield = yields;
        }
        is_all && (self.may_yield || !yields)
    }

    fn with_text(&self, index: usize, text: Cow<'a, str>) -> WithText<'a, D> {
        WithText { chunk: &self.chunks[index], text }
    }

    fn call<'k>(&'k self, plan: &'k Plan, keys: &'k [f64]) -> Call<'k> {
        let budget = self.packer.budget(self.max_tokens);
        Call { keys, previous: self.previous, ..plan.call(self.query.into(), budget) }
    }

    /// Returns the text of each chunk of these sentences, best chunk first.
    fn extracts(&self, sentences: &[Sentence]) -> Vec<(usize, Cow<'a, str>)> {
        let mut chosen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(place, number) in sentences {
            chosen.entry(place).or_default().push(number);
        }
        let extract = |(place, mut numbers): (usize, Vec<usize>)| {
            numbers.sort_unstable();
            (self.split[place].index, self.split[place].extract(&numbers))
        };
        chosen.into_iter().map(extract).collect()
    }

    /// Packs all chunks, some of them with other texts, `first` before all
    /// others, and returns what is kept too, what of it was cut to fit, and
    /// whether the notice yielded.
    #[allow(clippy::cast_precision_loss)] // no batch has 2^53 chunks
    fn pack_with(
        &self,
        plan: &Plan,
        extracts: &[(usize, Cow<'a, str>)],
        first: &[usize],
        chosen: &[Sentence],
    ) -> (Packing, HashSet<usize>, Option<usize>, bool) {
        let mut texts: HashMap<usize, Cow<'a, str>> = extracts.iter().cloned().collect();
        if self.packer.plan.dedupe != Dedupe::Off {
            // A duplicate of a chunk repeats its chosen sentences too.
            let known =
                extracts.iter().map(|(index, extract)| (self.chunks[*index].text(), extract));
            let known: HashMap<&str, &Cow<'a, str>> = known.collect();
            for &index in &self.order {
                if let Some(extract) = known.get(self.chunks[index].text()) {
                    texts.insert(index, (*extract).clone());
                }
            }
        }
        let chunks = self.chunks.iter().enumerate().map(|(index, chunk)| {
            let text = texts.remove(&index).unwrap_or_else(|| chunk.text().into());
            WithText { chunk, text }
        });
        let chunks: Vec<_> = chunks.collect();
        let leading: HashSet<usize> = first.iter().copied().collect();
        let others = self.order.iter().filter(|index| !leading.contains(index));
        let mut keys = vec![0.0; chunks.len()];
        let ranked = self.order.len();
        for (place, &index) in first.iter().chain(others).enumerate() {
            keys[index] = (ranked - place) as f64;
        }
        let out = (0..keys.len()).filter(|&index| self.is_out_of_scope(index));
        out.for_each(|index| keys[index] = -1.0);
        let call = self.call(plan, &keys);
        let mut host =
            Caller { packer: self.packer, chunks: &chunks, indices: None, citation: None };
        let documents = Documents::new(&chunks);
        let Ok(mut outcome) = pipeline::run(&call, &documents, &mut host);
        outcome.scores.clone_from(&self.scores);
        outcome.signals.clone_from(&self.signals);
        outcome.scope.clone_from(&self.scope);
        let yields = outcome.notice_yields();
        let mut packing = {
            let text = outcome.text(&call, &documents);
            packing(outcome, &call, self.packer.maker(), &chunks, text, None)
        };
        let was_cut = packing.kept.iter().find(|kept| kept.was_cut).map(|kept| kept.index);
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for &(place, _) in chosen {
            *counts.entry(place).or_default() += 1;
        }
        let cut = counts.into_iter().filter_map(|(place, count)| {
            let Split { index, sentences, .. } = &self.split[place];
            (count < sentences.len()).then_some((*index, (count, sentences.len())))
        });
        packing.set_extracts(cut.collect());
        let kept = packing.kept.iter().map(|kept| kept.index).collect();
        (packing, kept, was_cut, yields)
    }
}
