//! Packing, for Rust programs.

use std::fmt;
use std::sync::Arc;

use crate::chunk::{Batch, Document, Documents};
use crate::corpus::Index;
#[cfg(feature = "o200k")]
use crate::count::Factor;
use crate::count::{Estimate, Native, TokenCounter};
use crate::error::Error;
use crate::gate::Gate;
use crate::packing::{MadeBy, Maker, Packing, packing};
use crate::pipeline::{self, BUDGETS, Outcome};
use crate::plan::{
    Call, Counting, Dedupe, MinScore, Order, Overflow, Plan, Policy, Selection, Units,
};
use crate::ranking::RankBy;
use crate::similarity::Vectors;
use crate::template::{self, Template};

use caller::Caller;
use prompt::{Prompted, Render};

mod caller;
mod checks;
mod corpus;
mod keys;
mod prompt;

/// Packs chunks into a budget, with options chosen once.
///
/// # Examples
///
/// ```
/// use budgeteer::{Overflow, Packer, Ranking};
///
/// let packer = Packer::new(8).ranking(Ranking::Keyword).overflow(Overflow::Skip);
/// let packing = packer.pack("green tea", &["Coffee.", "Tea is green or black."])?;
/// assert_eq!(packing.text, "Tea is green or black.\n\nCoffee.");
/// assert_eq!(packing.total_tokens, 8);
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone)]
pub struct Packer {
    pub(crate) max_tokens: usize,
    reserve_tokens: usize,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    plan: Plan,
    /// What makes the final text, in place of the template.
    prompt: Option<Render>,
    /// Whether the notice cannot be written.
    has_bad_notice: bool,
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer")
            .field("max_tokens", &self.max_tokens)
            .field("reserve_tokens", &self.reserve_tokens)
            .field("ranking", &self.plan.ranking)
            .field("overflow", &self.plan.overflow)
            .finish_non_exhaustive()
    }
}

impl Packer {
    /// Returns a packer for at most `max_tokens` tokens. It counts with
    /// `Encoding::O200k` by default, or without the feature `o200k` with
    /// [`Estimate::CharsDiv4`].
    #[must_use]
    pub fn new(max_tokens: usize) -> Self {
        #[cfg(feature = "o200k")]
        let counter = Native::Exact(budgeteer_vocab::Encoding::O200k.into(), Factor::ONE);
        #[cfg(not(feature = "o200k"))]
        let counter = Native::Estimate(Estimate::CharsDiv4);
        let plan = Plan::new(counting(&counter));
        let counter = Arc::new(counter);
        Self { max_tokens, reserve_tokens: 0, counter, plan, prompt: None, has_bad_notice: false }
    }

    /// Takes tokens off the budget: 0 by default. Where nothing is left, the
    /// packing is empty.
    #[must_use]
    pub fn reserve_tokens(mut self, tokens: usize) -> Self {
        self.reserve_tokens = tokens;
        self
    }

    /// Counts with an estimate.
    #[must_use]
    pub fn estimate(self, estimate: Estimate) -> Self {
        self.counter(estimate)
    }

    /// Counts with an encoding, or with the caller's own counter.
    ///
    /// The caller's own counter is asked once for each chunk considered, and
    /// whenever a text is assembled.
    ///
    /// ```
    /// use budgeteer::Packer;
    ///
    /// let packing = Packer::new(9).counter(|text: &str| text.len()).pack("", &["four", "five"])?;
    /// assert_eq!(packing.text, "four");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn counter(self, counter: impl TokenCounter + Send + 'static) -> Self {
        self.shared_counter(Arc::new(counter))
    }

    pub(crate) fn shared_counter(mut self, counter: Arc<dyn TokenCounter + Send + Sync>) -> Self {
        self.plan.counting = counting(&*counter);
        self.counter = counter;
        self.cited()
    }

    /// Has the counter count each text where it is cited: products that are
    /// rounded up one by one do not add up.
    fn cited(mut self) -> Self {
        if self.plan.is_cited()
            && matches!(self.plan.counting, Counting::Exact(_, factor) if !factor.is_one())
        {
            self.plan.counting = Counting::Host;
        }
        self
    }

    /// Sets the ranking: a [`Ranking`](crate::Ranking), or a
    /// [`Lexical`](crate::Lexical), a [`Bm25`](crate::Bm25) or a
    /// [`Hybrid`](crate::Hybrid) with options.
    /// [`Ranking::Lexical`](crate::Ranking::Lexical) by default.
    ///
    /// ```
    /// # #[cfg(feature = "stemming")] {
    /// use budgeteer::{Bm25, Packer, Stemming};
    ///
    /// let bm25 = Bm25 { stemming: Stemming::of("english"), ..Bm25::default() };
    /// let packer = Packer::new(5).ranking(bm25);
    /// let packing = packer.pack("remote working", &["Lunch is at noon.", "We work remotely."])?;
    /// assert_eq!(packing.text, "We work remotely.");
    /// # }
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn ranking(mut self, ranking: impl Into<RankBy>) -> Self {
        self.plan.ranking = ranking.into();
        self
    }

    /// Puts chunks with a lower score out of scope: none by default. A score,
    /// or [`MinScore::Auto`].
    #[must_use]
    pub fn min_score(mut self, score: impl Into<MinScore>) -> Self {
        self.plan.min_score = Some(score.into());
        self
    }

    /// Sets what happens to a chunk that does not fit; [`Overflow::Skip`] by
    /// default.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.plan.overflow = overflow;
        self
    }

    /// Sets how many chunks are kept at most: no limit by default.
    #[must_use]
    pub fn max_chunks(mut self, count: usize) -> Self {
        self.plan.max_chunks = Some(count as u64);
        self
    }

    /// Sets which chunks are dropped as duplicates of kept ones;
    /// [`Dedupe::Exact`] by default. `true` means [`Dedupe::Exact`], and
    /// `false` means [`Dedupe::Off`].
    ///
    /// ```
    /// use budgeteer::{Dedupe, Packer};
    ///
    /// let chunks = ["All teas come from one plant.", "all teas come from one plant"];
    /// let packing = Packer::new(20).dedupe(Dedupe::Near).pack("tea", &chunks)?;
    /// assert_eq!(packing.dropped[0].duplicate_of, Some(0));
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn dedupe(mut self, dedupe: impl Into<Dedupe>) -> Self {
        self.plan.dedupe = dedupe.into();
        self
    }

    /// Sets the order in which chunks are admitted; by rank by default.
    ///
    /// ```
    /// use budgeteer::{Estimate, Packer, Selection};
    ///
    /// let chunks = ["Green tea.", "Green tea, green tea.", "Spring in May."];
    /// let packer = Packer::new(7).estimate(Estimate::Words).selection(Selection::Coverage);
    /// let packing = packer.pack("green tea, spring", &chunks)?;
    /// assert_eq!(packing.text, "Green tea, green tea.\n\nSpring in May.");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn selection(mut self, selection: Selection) -> Self {
        self.plan.selection = selection;
        self
    }

    /// Sets the order of the kept chunks in the text; best first by default.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.plan.order = order;
        self
    }

    /// Sets the template of the text; [`Template::plain`] by default.
    #[must_use]
    pub fn template(mut self, template: Template) -> Self {
        self.plan.template = template;
        self
    }

    /// Says in the text, behind the chunks, that some were left out, where some
    /// were and any is kept. `{count}` in `notice` stands for their number; a brace
    /// is written twice. Where it would take the room of the best chunk that
    /// fits, it is not said. Packing with an empty notice, or with another field
    /// in it, is an error.
    ///
    /// ```
    /// use budgeteer::Packer;
    ///
    /// let packer = Packer::new(10).notice("Left out: {count}.");
    /// let packing = packer.pack("tea", &["Green tea.", "Rye bread and butter with jam."])?;
    /// assert_eq!(packing.text, "Green tea.\n\nLeft out: 1.");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn notice(mut self, notice: &str) -> Self {
        let found = template::parsed(notice).filter(|(fields, last)| {
            let is_empty = fields.is_empty() && last.is_empty();
            !is_empty && fields.iter().all(|&(_, name)| name == "count")
        });
        self.has_bad_notice = found.is_none();
        self.plan.notice = found.map(|(fields, last)| {
            fields.into_iter().map(|(literal, _)| literal).chain([last]).collect()
        });
        self
    }

    /// Sets whether whole chunks are packed or sentences of the best; whole
    /// chunks by default.
    ///
    /// The best chunks are split: those that together have four times the
    /// tokens of the budget, and at most 128. The value of a sentence is its
    /// share of the highest score over all of them, plus twice its chunk's
    /// share of the highest score. Sentences are scored by BM25, with `k3` if
    /// the ranking has it, and the words of the chunk's heading count in each.
    /// Under a ranking other than [`Lexical`](crate::Lexical) and
    /// [`Bm25`](crate::Bm25) the reciprocal of the chunk's place stands for
    /// that. The chosen sentences of a chunk stand in their order, with
    /// `" [...] "` where others were between; such a chunk was cut. The
    /// caller's own counter is asked some more questions. It is an error in a
    /// preset, with [`Dedupe::Near`], and under a [`Selection`] other than by
    /// rank.
    ///
    /// ```
    /// use budgeteer::{Packer, Units};
    ///
    /// let chunks = ["Tea is old. Green tea is from China. So is silk.", "Rye bread is dark."];
    /// let packing = Packer::new(6).units(Units::Sentence).pack("green tea", &chunks)?;
    /// assert_eq!(packing.text, "Green tea is from China.");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn units(mut self, units: Units) -> Self {
        self.plan.units = units;
        self
    }

    pub(crate) fn policy(mut self, policy: Policy) -> Self {
        self.plan.policy = policy;
        self.cited()
    }

    /// Returns the budget before the reserve comes off, and the reserve.
    pub(crate) fn limits(&self) -> (usize, usize) {
        (self.max_tokens, self.reserve_tokens.min(self.max_tokens))
    }

    /// Returns the reserve, in tokens.
    pub(crate) fn reserve(&self) -> usize {
        self.reserve_tokens
    }

    /// Returns the most tokens of a text.
    pub(crate) fn bound(&self) -> usize {
        self.budget_tokens(self.max_tokens)
    }

    /// Returns the maximum number of kept chunks.
    pub(crate) fn most_chunks(&self) -> Option<usize> {
        self.plan.max_chunks.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Returns whether it leaves out chunks that fit and repeat nothing.
    pub(crate) fn chooses(&self) -> bool {
        self.plan.min_score.is_some() || matches!(self.plan.policy, Policy::Gate { .. })
    }

    /// Returns whether chunks that come best first are taken one after another,
    /// whatever follows.
    pub(crate) fn takes_as_they_come(&self) -> bool {
        matches!(self.plan.ranking, RankBy::Input | RankBy::Score)
            && !self.chooses()
            && self.plan.dedupe != Dedupe::Near
            && self.plan.units == Units::Chunk
            && self.plan.selection == Selection::Rank
    }

    /// Returns how many tokens of chunks are looked at for this budget.
    pub(crate) fn considered(&self, budget: usize) -> usize {
        match self.plan.units {
            Units::Chunk => budget,
            Units::Sentence => usize::try_from(BUDGETS * budget as u128).unwrap_or(usize::MAX),
        }
    }

    /// Returns whether a chunk that does not fit is skipped for later ones that
    /// do.
    pub(crate) fn skips(&self) -> bool {
        self.plan.overflow == Overflow::Skip
    }

    /// Returns whether a text may have more tokens than the budget.
    pub(crate) fn overruns(&self) -> bool {
        self.plan.is_sum_of_parts()
    }

    /// Returns whether each text is packed only once.
    pub(crate) fn dedupes(&self) -> bool {
        self.plan.dedupe != Dedupe::Off
    }

    /// Returns the number of tokens in `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.counter.count(text)
    }

    /// Packs the best of `chunks` for `query`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a
    /// score, time, priority or minimum that is NaN, a score that is infinite
    /// under a hybrid ranking, a ratio of [`Estimate::CharsPerToken`] that is not
    /// from 0.001 to 1000000, an option of a ranking that is out of range, a
    /// notice that is no format string, and under rankings that need vectors; see
    /// [`pack_with_vectors`](Self::pack_with_vectors). Also for options that
    /// contradict each other, or would do nothing: [`MinScore::Auto`] under
    /// other rankings than it is for, sentences with near duplicates or a
    /// selection, cuts of what a function writes, and what the
    /// [`presets`](crate::presets) name.
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus) for chunks of a file that
    /// is damaged.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    pub fn pack<D: Document>(&self, query: &str, chunks: &[D]) -> Result<Packing, Error> {
        self.run(query, chunks, self.max_tokens, None, &[])
    }

    /// Like [`Packer::pack`], with another number of tokens.
    pub(crate) fn pack_within<D: Document>(
        &self,
        max_tokens: usize,
        query: &str,
        chunks: &[D],
    ) -> Result<Packing, Error> {
        self.run(query, chunks, max_tokens, None, &[])
    }

    /// Returns the error of packing `chunks`, if any.
    pub(crate) fn check<D: Document>(&self, chunks: &[D]) -> Result<(), Error> {
        self.check_options()?;
        self.keys_of(chunks, None)?;
        self.gate(chunks).map(|_| ())
    }

    /// Like [`Packer::pack`]. Under [`Order::Sticky`] the text begins like that
    /// of `previous`, as far as the same chunks are kept.
    ///
    /// ```
    /// use budgeteer::{Order, Packer};
    ///
    /// let packer = Packer::new(50).order(Order::Sticky);
    /// let chunks = ["Green tea.", "Rye bread."];
    /// let packing = packer.pack("tea", &chunks)?;
    /// let next = packer.pack_after(&packing, "bread", &chunks)?;
    /// assert_eq!(next.text, "Green tea.\n\nRye bread.");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack`], and
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) under
    /// any other order.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    pub fn pack_after<D: Document>(
        &self,
        previous: &Packing,
        query: &str,
        chunks: &[D],
    ) -> Result<Packing, Error> {
        self.run(query, chunks, self.max_tokens, None, &self.links_of(previous)?)
    }

    /// Returns the text of a previous packing, split behind the text of each
    /// chunk.
    fn links_of(&self, previous: &Packing) -> Result<Vec<Vec<u8>>, Error> {
        if self.plan.order != Order::Sticky {
            let message = "order must be Order::Sticky to pack after another packing";
            return Err(Error::shape(message.into()));
        }
        previous.links()
    }

    /// Packs the best of `chunks` for `query` by their vectors: under
    /// [`Ranking::Embedding`](crate::Ranking::Embedding), or under
    /// [`Ranking::Hybrid`](crate::Ranking::Hybrid) with a weight for the
    /// embedding.
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack`], and
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// the ranking takes no vectors, there is not one for each chunk, or a
    /// number in them is infinite or NaN.
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    pub fn pack_with_vectors<D: Document>(
        &self,
        query: &str,
        chunks: &[D],
        vectors: Vectors<'_>,
    ) -> Result<Packing, Error> {
        self.run(query, chunks, self.max_tokens, Some(vectors), &[])
    }

    fn run<D: Document>(
        &self,
        query: &str,
        chunks: &[D],
        max_tokens: usize,
        vectors: Option<Vectors<'_>>,
        previous: &[Vec<u8>],
    ) -> Result<Packing, Error> {
        self.check_options()?;
        let keys = self.keys_of(chunks, vectors)?;
        let documents = Documents::new(chunks);
        let run = |call: &Call<'_>, host: &mut Caller<'_, D>| {
            let Ok(outcome) = pipeline::run(call, &documents, host);
            outcome
        };
        let packing =
            self.called(query, chunks, max_tokens, &keys, previous, &documents, run, None);
        // A chunk of a file that is damaged was read as empty.
        chunks.iter().filter_map(Document::file).try_for_each(|file| file.check())?;
        packing
    }

    /// Returns the packing of `batch`, which has the texts of `chunks`. `run`
    /// packs as a call says; `index` is that of the corpus, if they are one.
    #[allow(clippy::too_many_arguments)] // they are one call
    fn called<D: Document, B: Batch>(
        &self,
        query: &str,
        chunks: &[D],
        max_tokens: usize,
        keys: &[f64],
        previous: &[Vec<u8>],
        batch: &B,
        run: impl Fn(&Call<'_>, &mut Caller<'_, D>) -> Outcome,
        index: Option<Arc<Index>>,
    ) -> Result<Packing, Error> {
        let gate = self.gate(chunks)?;
        let call = Call { keys, previous, gate: gate.as_ref(), ..self.call(query, max_tokens) };
        let mut packing = if let Some(render) = &self.prompt {
            let made = Prompted::new(self, render, chunks, call, run).pack();
            let plan = Plan { counting: made.counting, ..self.plan.clone() };
            let call = Call { plan: &plan, ..call };
            let text = made.outcome.text(&call, batch);
            let mut packing = packing(made.outcome, &call, self.maker(), chunks, text, index);
            packing.set_prompt(made.text, made.total);
            packing
        } else {
            let mut host = Caller { packer: self, chunks, citation: None };
            let outcome = run(&call, &mut host);
            let text = outcome.text(&call, batch);
            packing(outcome, &call, self.maker(), chunks, text, index)
        };
        packing.budget_tokens = self.budget_tokens(max_tokens);
        Ok(packing)
    }

    /// Returns the properties that a packing keeps of its packer.
    pub(crate) fn maker(&self) -> Maker {
        let plan = &self.plan;
        let usize_of = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Maker {
            counter: Arc::clone(&self.counter),
            max_chunks: plan.max_chunks.map(usize_of),
            max_docs: match plan.policy {
                Policy::Gate { max_docs } => Some(usize_of(max_docs)),
                _ => None,
            },
            is_citing: plan.is_cited(),
            is_lazy: matches!(plan.counting, Counting::Exact(..)),
            is_near: plan.dedupe == Dedupe::Near,
            made_by: match (&self.prompt, plan.template.writer()) {
                (Some(_), _) => MadeBy::Prompt,
                (None, Some(_)) => MadeBy::Writer,
                (None, None) => MadeBy::Template,
            },
        }
    }

    fn budget_tokens(&self, max_tokens: usize) -> usize {
        max_tokens.saturating_sub(self.reserve_tokens)
    }

    fn call<'a>(&'a self, query: &'a str, max_tokens: usize) -> Call<'a> {
        self.plan.call(query.into(), self.budget(max_tokens))
    }

    /// Returns the budget as a plan has it.
    fn budget(&self, max_tokens: usize) -> u64 {
        (self.budget_tokens(max_tokens) as u64).min(i64::MAX.cast_unsigned())
    }

    fn gate<D: Document>(&self, chunks: &[D]) -> Result<Option<Gate>, Error> {
        let Policy::Gate { .. } = self.plan.policy else { return Ok(None) };
        let mut gate = Gate::default();
        for (index, chunk) in chunks.iter().enumerate() {
            let (authority, priority) = chunk.standing();
            if priority.is_nan() {
                return Err(Error::nan(index, "priority"));
            }
            gate.push(chunk.tag().0, authority.unwrap_or_default(), priority);
        }
        Ok(Some(gate))
    }
}

/// Returns how a counter counts in the core.
fn counting(counter: &dyn TokenCounter) -> Counting {
    match counter.native() {
        Some(Native::Estimate(estimate)) => Counting::Estimate(estimate),
        Some(Native::Exact(exact, factor)) => Counting::Exact(exact, factor),
        None => Counting::Host,
    }
}
