//! Packing, for Rust programs.

use std::fmt;
use std::sync::Arc;

use crate::assemble::Order;
use crate::assemble::template::Template;
use crate::chunk::{Document, Documents};
use crate::count::{Counter, Estimate, Native, TokenCounter};
use crate::error::Error;
use crate::gate::Gate;
use crate::pack::{Dedupe, Overflow};
use crate::packing::{Maker, Packing, packing};
use crate::pipeline::{self, Counting, Plan};
use crate::rank::Ranking;
use crate::score::hybrid::Hybrid;
use crate::selection::Selection;
use crate::similarity::Vectors;
use crate::stem::Stemming;
use crate::stopwords::Stopwords;
use crate::terms::Terms;

use caller::Caller;
use sentences::{BUDGETS, Sentences};

mod caller;
mod keys;
mod sentences;

/// What is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Units {
    /// Whole chunks.
    #[default]
    Chunk,
    /// Sentences of the best chunks, and whole chunks into what is left.
    Sentence,
}

const SENTENCES: &str =
    "units must be chunk in a preset, and where duplicates are near ones or chunks are selected";

/// What only presets ask for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Policy {
    #[default]
    None,
    /// Texts and citations, each counted by itself, stay within the budget.
    Cite,
    /// A context gate decides what comes first, and which documents enter.
    Gate { max_docs: usize },
    /// Markers and separators are not counted: see `presets::context_router`.
    SumOfParts,
}

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
    counter: Counter,
    ranking: Ranking,
    hybrid: Hybrid,
    terms: Terms,
    min_score: Option<f64>,
    overflow: Overflow,
    max_chunks: Option<usize>,
    dedupe: Dedupe,
    selection: Selection,
    order: Order,
    template: Template,
    notice: Option<Vec<String>>,
    pub(crate) units: Units,
    policy: Policy,
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer")
            .field("max_tokens", &self.max_tokens)
            .field("reserve_tokens", &self.reserve_tokens)
            .field("ranking", &self.ranking)
            .field("overflow", &self.overflow)
            .finish_non_exhaustive()
    }
}

impl Packer {
    /// Returns a packer for at most `max_tokens` tokens, counted as
    /// `Encoding::O200k` unless told otherwise; without the feature `o200k`, as
    /// [`Estimate::CharsDiv4`].
    #[must_use]
    pub fn new(max_tokens: usize) -> Self {
        Self {
            max_tokens,
            reserve_tokens: 0,
            #[cfg(feature = "o200k")]
            counter: Counter::Native(Native::Exact(budgeteer_vocab::Encoding::O200k.into())),
            #[cfg(not(feature = "o200k"))]
            counter: Counter::Native(Native::Estimate(Estimate::CharsDiv4)),
            ranking: Ranking::default(),
            hybrid: Hybrid::default(),
            terms: Terms::default(),
            min_score: None,
            overflow: Overflow::default(),
            max_chunks: None,
            dedupe: Dedupe::default(),
            selection: Selection::default(),
            order: Order::default(),
            template: Template::default(),
            notice: None,
            units: Units::default(),
            policy: Policy::None,
        }
    }

    /// Takes so many tokens off the budget. Where nothing is left, the packing
    /// is empty.
    #[must_use]
    pub fn reserve_tokens(mut self, tokens: usize) -> Self {
        self.reserve_tokens = tokens;
        self
    }

    /// Counts by a formula.
    #[must_use]
    pub fn estimate(mut self, estimate: Estimate) -> Self {
        self.counter = Counter::Native(Native::Estimate(estimate));
        self
    }

    /// Counts with an encoding, or with the caller's own counter.
    ///
    /// The caller's own is asked once for each chunk considered and at each
    /// assembling.
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
        self.counter = counter.native().map_or(Counter::Custom(counter), Counter::Native);
        self
    }

    /// Sets what comes first.
    #[must_use]
    pub fn ranking(mut self, ranking: Ranking) -> Self {
        self.ranking = ranking;
        self
    }

    /// Sets what [`Ranking::Hybrid`] weighs.
    #[must_use]
    pub fn hybrid(mut self, hybrid: Hybrid) -> Self {
        self.hybrid = hybrid;
        self
    }

    /// Has BM25 take the forms of a word for one, where it ranks.
    ///
    /// ```
    /// # #[cfg(feature = "stemming")] {
    /// use budgeteer::{Packer, Stemming};
    ///
    /// let packer = Packer::new(5).stemming(Stemming::of("english"));
    /// let packing = packer.pack("remote working", &["Lunch is at noon.", "We work remotely."])?;
    /// assert_eq!(packing.text, "We work remotely.");
    /// # }
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn stemming(mut self, stemming: Option<Stemming>) -> Self {
        self.terms.stemming = stemming;
        self
    }

    /// Sets which words BM25 leaves out, where it ranks; English ones unless
    /// told otherwise.
    #[must_use]
    pub fn stopwords(mut self, stopwords: Stopwords) -> Self {
        self.terms.stopwords = stopwords;
        self
    }

    /// Drops chunks that score less.
    #[must_use]
    pub fn min_score(mut self, score: f64) -> Self {
        self.min_score = Some(score);
        self
    }

    /// Sets what happens to a chunk that does not fit.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Keeps at most so many chunks.
    #[must_use]
    pub fn max_chunks(mut self, count: usize) -> Self {
        self.max_chunks = Some(count);
        self
    }

    /// Sets which chunks are dropped as duplicates of kept ones; `true` stands
    /// for [`Dedupe::Exact`], `false` for [`Dedupe::Off`].
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
        self.dedupe = dedupe.into();
        self
    }

    /// Sets in which order chunks are admitted.
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
        self.selection = selection;
        self
    }

    /// Sets how the kept chunks stand in the text.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets what the text looks like.
    #[must_use]
    pub fn template(mut self, template: Template) -> Self {
        self.template = template;
        self
    }

    /// Says in the text, behind the chunks, that some were left out, where some
    /// were and any is kept. `{count}` in `notice` stands for their number.
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
        self.notice = Some(notice.split("{count}").map(str::to_owned).collect());
        self
    }

    /// Sets whether whole chunks are packed, or sentences of the best.
    ///
    /// The best chunks that together have four times the tokens of the budget, and
    /// at most 256, are split. A sentence counts its share of the highest score by
    /// BM25 over all of them, title included, and the reciprocal of its chunk's
    /// place. Chosen sentences of a chunk stand in their order, `" [...] "` where
    /// others were between; such a chunk was cut. The caller's own counter is asked
    /// some more. Packing is refused in a preset, with [`Dedupe::Near`], and
    /// under a [`Selection`] other than by rank.
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
        self.units = units;
        self
    }

    pub(crate) fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the budget before the reserve comes off, and the reserve.
    pub(crate) fn limits(&self) -> (usize, usize) {
        (self.max_tokens, self.reserve_tokens.min(self.max_tokens))
    }

    /// Returns the tokens that come off the budget.
    pub(crate) fn reserve(&self) -> usize {
        self.reserve_tokens
    }

    /// Returns how many chunks are kept at most.
    pub(crate) fn most_chunks(&self) -> Option<usize> {
        self.max_chunks
    }

    /// Returns whether it leaves chunks out that fit and repeat nothing.
    pub(crate) fn chooses(&self) -> bool {
        self.min_score.is_some() || matches!(self.policy, Policy::Gate { .. })
    }

    /// Returns whether chunks that come best first are taken one after another,
    /// whatever comes behind them.
    pub(crate) fn takes_as_they_come(&self) -> bool {
        matches!(self.ranking, Ranking::Input | Ranking::Score)
            && !self.chooses()
            && self.dedupe != Dedupe::Near
            && self.units == Units::Chunk
            && self.selection == Selection::Rank
    }

    /// Returns how many tokens of chunks are looked at for a budget of so many.
    pub(crate) fn considered(&self, budget: usize) -> usize {
        match self.units {
            Units::Chunk => budget,
            Units::Sentence => usize::try_from(BUDGETS * budget as u128).unwrap_or(usize::MAX),
        }
    }

    /// Returns whether what does not fit is passed over for what does.
    pub(crate) fn skips(&self) -> bool {
        self.overflow == Overflow::Skip
    }

    /// Returns whether a text is packed once only.
    pub(crate) fn dedupes(&self) -> bool {
        self.dedupe != Dedupe::Off
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
    /// score, time or minimum that is NaN, for a ratio of
    /// [`Estimate::CharsPerToken`] that is not from 0.001 to 1000000, and under
    /// rankings that need vectors; see [`pack_with_vectors`](Self::pack_with_vectors).
    ///
    /// # Panics
    ///
    /// When there are 2^32 chunks or more.
    pub fn pack<D: Document>(&self, query: &str, chunks: &[D]) -> Result<Packing, Error> {
        self.run(query, chunks, self.max_tokens, None, &[])
    }

    /// Like [`Packer::pack`], for another number of tokens.
    pub(crate) fn pack_within<D: Document>(
        &self,
        max_tokens: usize,
        query: &str,
        chunks: &[D],
    ) -> Result<Packing, Error> {
        self.run(query, chunks, max_tokens, None, &[])
    }

    /// Returns the error that packing `chunks` ends with, if any.
    pub(crate) fn check<D: Document>(&self, chunks: &[D]) -> Result<(), Error> {
        self.check_options()?;
        self.keys_of(chunks, None)?;
        self.gate(chunks).map(|_| ())
    }

    /// Like [`Packer::pack`]; under [`Order::Sticky`] the text begins as that of
    /// `previous` does, as far as the same chunks are kept.
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
    /// As for [`Packer::pack`].
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
        self.run(query, chunks, self.max_tokens, None, &previous.links())
    }

    /// Packs the best of `chunks` for `query` by their vectors: under
    /// [`Ranking::Embedding`], or under [`Ranking::Hybrid`] where the embedding
    /// weighs something.
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
        if self.units == Units::Sentence {
            return Ok(self.pack_sentences(query, chunks, max_tokens, &keys, previous));
        }
        let documents = Documents::new(chunks);
        self.planned(chunks, max_tokens, &keys, previous, |plan, host| {
            let Ok(outcome) = pipeline::run(plan, query.into(), &documents, host);
            let text = outcome.text(plan, &documents);
            packing(outcome, plan, self.maker(), chunks, text, None)
        })
    }

    /// Checks what needs no chunk.
    pub(crate) fn check_options(&self) -> Result<(), Error> {
        if let Counter::Native(Native::Estimate(estimate)) = self.counter {
            estimate.check()?;
        }
        if self.min_score.is_some_and(f64::is_nan) {
            return Err(Error::nan_min_score());
        }
        if self.units == Units::Sentence
            && (self.dedupe == Dedupe::Near
                || self.selection != Selection::Rank
                || !matches!(self.policy, Policy::None))
        {
            return Err(Error::shape(SENTENCES.into()));
        }
        Ok(())
    }

    /// Returns what `pack` answers for the plan and the program that it needs.
    pub(crate) fn planned<D: Document>(
        &self,
        chunks: &[D],
        max_tokens: usize,
        keys: &[f64],
        previous: &[Vec<u8>],
        pack: impl FnOnce(&Plan<'_>, &mut Caller<'_, D>) -> Packing,
    ) -> Result<Packing, Error> {
        let gate = self.gate(chunks)?;
        let plan = self.plan(max_tokens, keys, previous, gate.as_ref());
        let mut packing = pack(&plan, &mut Caller { packer: self, chunks, indices: None });
        packing.budget_tokens = self.budget_tokens(max_tokens);
        Ok(packing)
    }

    pub(crate) fn pack_sentences<D: Document>(
        &self,
        query: &str,
        chunks: &[D],
        max_tokens: usize,
        keys: &[f64],
        previous: &[Vec<u8>],
    ) -> Packing {
        let mut packing = Sentences::new(self, query, chunks, max_tokens, keys, previous).pack();
        packing.budget_tokens = self.budget_tokens(max_tokens);
        packing
    }

    /// Returns what a packing remembers of its packer.
    pub(crate) fn maker(&self) -> Maker {
        Maker {
            counter: self.counter.clone(),
            max_chunks: self.max_chunks,
            max_docs: match self.policy {
                Policy::Gate { max_docs } => Some(max_docs),
                _ => None,
            },
            is_citing: matches!(self.policy, Policy::Cite),
            is_near: self.dedupe == Dedupe::Near,
        }
    }

    fn budget_tokens(&self, max_tokens: usize) -> usize {
        max_tokens.saturating_sub(self.reserve_tokens)
    }

    fn plan<'a>(
        &'a self,
        max_tokens: usize,
        keys: &'a [f64],
        previous: &'a [Vec<u8>],
        gate: Option<&'a Gate>,
    ) -> Plan<'a> {
        Plan {
            budget: (self.budget_tokens(max_tokens) as u64).min(i64::MAX.cast_unsigned()),
            counting: match &self.counter {
                Counter::Native(Native::Estimate(estimate)) => Counting::Estimate(*estimate),
                Counter::Native(Native::Exact(exact)) => Counting::Exact(*exact),
                Counter::Custom(_) => Counting::Host,
            },
            ranking: self.ranking,
            keys,
            hybrid: self.hybrid,
            terms: &self.terms,
            min_score: self.min_score,
            overflow: self.overflow,
            max_chunks: self.max_chunks.map(|count| count as u64),
            dedupe: self.dedupe,
            selection: self.selection,
            order: self.order,
            previous,
            template: &self.template,
            notice: self.notice.as_deref(),
            sum_of_parts: matches!(self.policy, Policy::SumOfParts),
            is_cited: matches!(self.policy, Policy::Cite),
            gate,
        }
    }

    fn gate<D: Document>(&self, chunks: &[D]) -> Result<Option<Gate>, Error> {
        let Policy::Gate { max_docs } = self.policy else { return Ok(None) };
        let mut gate = Gate::new(max_docs as u64);
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
