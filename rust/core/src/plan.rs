//! What is to be done: the options of a packer, and one call of it.
//!
//! Everything here is validated. Each stage reads it, and imports it from here.

use std::sync::atomic::AtomicBool;

use crate::count::{Estimate, Exact};
use crate::gate::Gate;
use crate::ranking::{Needs, RankBy, Words};
use crate::template::{Tag, Template};
use crate::text::Text;
use crate::truncate::Keep;

/// What happens to a chunk that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// It is dropped, and packing goes on: a smaller one may still fit.
    #[default]
    Skip,
    /// It is dropped, and so is everything behind it.
    Stop,
    /// The first such chunk loses its end, and ` [...]` stands there.
    TruncateEnd,
    /// The first such chunk loses its middle, and `[...truncated...]` stands
    /// there on a line of its own.
    TruncateMiddle,
}

impl Overflow {
    /// Returns what a cut keeps and its marker, or None where nothing is cut.
    pub(crate) fn cut(self) -> Option<(Keep, &'static str)> {
        match self {
            Self::Skip | Self::Stop => None,
            Self::TruncateEnd => Some((Keep::Start, " [...]")),
            Self::TruncateMiddle => Some((Keep::Both, "\n[...truncated...]\n")),
        }
    }
}

/// Which chunks are dropped as duplicates of kept ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dedupe {
    /// None.
    Off,
    /// Those with the same text.
    #[default]
    Exact,
    /// Those with the same text, and those that nearly repeat one.
    ///
    /// Texts are compared by their shingles: all runs of five words (of all words
    /// where there are fewer), as BM25 knows words. A chunk that fits is a
    /// duplicate where four fifths of the shingles that either has are in both,
    /// or all of its own are in the kept text.
    Near,
}

impl From<bool> for Dedupe {
    /// Returns [`Dedupe::Exact`] or [`Dedupe::Off`].
    fn from(dedupe: bool) -> Self {
        if dedupe { Self::Exact } else { Self::Off }
    }
}

/// In which order chunks are admitted. What is packed fits in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// By rank.
    #[default]
    Rank,
    /// Each time the one that adds most to what those before cover of the
    /// query's words, and ranks well: for chunks that say the same in other
    /// words.
    ///
    /// Of the 512 that rank best the greedy order maximises
    /// `2 * sum(C / sqrt(r)) + sum(sqrt(w * x))`: over the chunks in question, r
    /// being their places by rank from 1 on, and over the words of the query, w
    /// being their weight in BM25 over the 512, and x what the chunks have of
    /// them, as BM25 reckons; C is the most that one
    /// chunk has of all words. The others follow by rank. Stemming and stopwords
    /// are those of the ranking, where it is by BM25.
    Coverage,
}

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

/// How the kept chunks stand in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// Best first.
    #[default]
    Rank,
    /// As they came.
    Input,
    /// By source, in the order in which the sources came; within a source by
    /// position where there is one, then as they came.
    Document,
    /// The best first, the next best last, and so on inwards: models heed the
    /// middle of a long text least.
    Edges,
    /// As in the packing before, up to the first chunk that is gone; then best
    /// first. What stays in front a provider need not read again.
    Sticky,
}

/// What only presets ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Nothing.
    #[default]
    None,
    /// Separators and markers go uncounted, as theaios-context-router 0.2.2 has
    /// it. Breaks the law, and so holds for estimates only: any other counter
    /// packs as under [`Policy::None`].
    SumOfParts,
    /// [`Host::cite`] is asked: texts and citations, each counted by itself, stay
    /// within the budget together. Nothing is cut then.
    Cite,
    /// [`Call::gate`](field@Call::gate) ranks by weight, whatever the ranking,
    /// and refuses documents: those that share no keyword with the question, and
    /// those beyond a number. Titles do not count then.
    Gate {
        /// The number of documents that are considered at most.
        max_docs: u64,
    },
}

/// How texts are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counting {
    /// By a formula.
    Estimate(Estimate),
    /// As an encoding does.
    Exact(Exact),
    /// By [`Host::count`].
    Host,
}

/// What a packer knows when it is made. It never changes, and serves any number
/// of calls, of several threads at a time too.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How texts are counted.
    pub counting: Counting,
    /// What comes first.
    pub ranking: RankBy,
    /// Chunks that score below it are out of scope.
    pub min_score: Option<f64>,
    /// What happens to a chunk that does not fit.
    pub overflow: Overflow,
    /// The number of chunks that are kept at most.
    pub max_chunks: Option<u64>,
    /// Which chunks are dropped as duplicates of kept ones.
    pub dedupe: Dedupe,
    /// In which order they are admitted.
    pub selection: Selection,
    /// How the kept chunks stand in the text.
    pub order: Order,
    /// What the text looks like.
    pub template: Template,
    /// What says that chunks were left out, if that is to be said: what stands
    /// in front of their number, and behind each mention of it.
    pub notice: Option<Vec<String>>,
    /// What only presets ask for.
    pub policy: Policy,
}

impl Plan {
    /// Returns a plan with the default of every other option.
    #[must_use]
    pub fn new(counting: Counting) -> Self {
        Self {
            counting,
            ranking: RankBy::default(),
            min_score: None,
            overflow: Overflow::default(),
            max_chunks: None,
            dedupe: Dedupe::default(),
            selection: Selection::default(),
            order: Order::default(),
            template: Template::default(),
            notice: None,
            policy: Policy::default(),
        }
    }

    /// Returns a call that has nothing but a query and a budget.
    #[must_use]
    pub fn call<'a>(&'a self, query: Text<'a>, budget: u64) -> Call<'a> {
        Call { plan: self, query, budget, keys: &[], previous: &[], gate: None, template: None }
    }

    /// Returns what is needed to know of the chunks: what the ranking needs, but
    /// that a gate looks for keywords in texts alone, whatever the ranking, and
    /// coverage reads titles too.
    #[must_use]
    pub fn needs(&self) -> Needs<'_> {
        let needs = self.ranking.needs();
        match self.policy {
            Policy::Gate { .. } => Needs { words: Words::Keywords, has_titles: false, ..needs },
            _ if self.selection == Selection::Coverage => Needs { has_titles: true, ..needs },
            _ => needs,
        }
    }

    /// Returns whether separators and markers go uncounted.
    pub(crate) fn is_sum_of_parts(&self) -> bool {
        self.policy == Policy::SumOfParts && matches!(self.counting, Counting::Estimate(_))
    }

    /// Returns whether [`Host::cite`] is asked.
    pub(crate) fn is_cited(&self) -> bool {
        self.policy == Policy::Cite
    }
}

/// What a packer is asked: a plan, and all that is of one call only.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What the packer knows.
    pub plan: &'a Plan,
    /// What the chunks are ranked for.
    pub query: Text<'a>,
    /// Upper bound for the assembled text, in tokens; below 2^63.
    pub budget: u64,
    /// The cosine of each chunk, then what each says of itself, where
    /// [`Plan::needs`] has these; NaN stands for none.
    pub keys: &'a [f64],
    /// Under [`Order::Sticky`], the text before: split behind the text of each
    /// chunk, without what stands behind the last one. Each is encoded as in
    /// [`Text::Utf8`].
    pub previous: &'a [Vec<u8>],
    /// What is known of each chunk under [`Policy::Gate`]; not needed otherwise.
    pub gate: Option<&'a Gate>,
    /// Stands for the plan's template, where that differs from call to call.
    pub template: Option<&'a Template>,
}

impl<'a> Call<'a> {
    /// Returns what the text looks like.
    #[must_use]
    pub fn template(&self) -> &'a Template {
        self.template.unwrap_or(&self.plan.template)
    }

    /// Returns what is known of the chunks, and how many documents are
    /// considered, where a gate decides.
    pub(crate) fn gate(&self) -> Option<(&'a Gate, u64)> {
        match self.plan.policy {
            Policy::Gate { max_docs } => {
                Some((self.gate.expect("a gate knows each chunk"), max_docs))
            }
            _ => None,
        }
    }

    /// Returns whether [`Host::tag`] is asked.
    pub(crate) fn is_framed(&self) -> bool {
        !self.template().is_plain() || self.plan.order == Order::Document
    }

    /// Returns whether there is nothing in the text but chunks and separators.
    pub(crate) fn is_bare(&self) -> bool {
        let Template { header, footer, .. } = self.template();
        let is_bare = !self.is_framed() && header.is_empty() && footer.is_empty();
        is_bare && self.plan.notice.is_none()
    }

    /// Returns the separator and the notice that `count` chunks were left out.
    pub(crate) fn notice(&self, count: usize) -> Vec<u8> {
        let mut notice = Vec::new();
        if let Some(pieces) = &self.plan.notice {
            let template = self.template();
            notice.extend_from_slice(template.separator.as_bytes());
            notice.extend(template.notice(pieces, count));
        }
        notice
    }

    /// Returns what stands behind the last chunk when `dropped` chunks were
    /// dropped.
    pub(crate) fn tail(&self, dropped: usize) -> Vec<u8> {
        let mut tail = if dropped > 0 { self.notice(dropped) } else { Vec::new() };
        tail.extend_from_slice(self.template().footer.as_bytes());
        tail
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The whole text of that chunk.
    Chunk(usize),
    /// What a cut leaves of a chunk, encoded as in [`Text::Utf8`].
    Piece {
        /// The chunk.
        index: usize,
        /// What is left of it.
        text: &'a [u8],
    },
    /// The assembled text, encoded as in [`Text::Utf8`].
    Assembled(&'a [u8]),
}

/// What packing asks of the program around it.
pub trait Host {
    /// What may go wrong there.
    type Error;

    /// Returns the number of tokens of `subject`.
    ///
    /// # Errors
    ///
    /// Whatever keeps the host's counter from answering.
    fn count(&mut self, subject: Subject<'_>) -> Result<u64, Self::Error>;

    /// Returns what chunk `index` says of itself. Asked of chunks that are, or
    /// may be, kept, and only where the template or the order wants to know.
    ///
    /// # Errors
    ///
    /// Whatever keeps the host from telling.
    fn tag(&mut self, index: usize) -> Result<Tag, Self::Error>;

    /// Returns the tokens of citing chunk `index`; asked of chunks whose text
    /// fits, under [`Policy::Cite`].
    ///
    /// # Errors
    ///
    /// Whatever keeps the host from telling.
    fn cite(&mut self, index: usize) -> Result<u64, Self::Error>;

    /// Does `work`, which takes as long as reading about `chars` code points and
    /// needs nothing of the host. A host may let go of its locks meanwhile,
    /// set the flag that `work` gets to have it end early, and afterwards
    /// refuse to go on, as it must if it set the flag.
    ///
    /// # Errors
    ///
    /// The host does not want to go on.
    fn work<R: Send>(
        &mut self,
        chars: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::Ranking;

    /// A gate reads texts alone, coverage reads titles too, and neither changes
    /// what the call brings along.
    #[test]
    fn policies_and_selections_change_what_is_read() {
        let all = [
            Ranking::Bm25,
            Ranking::Keyword,
            Ranking::Recency,
            Ranking::Input,
            Ranking::Score,
            Ranking::Embedding,
            Ranking::Hybrid,
        ];
        for ranking in all {
            let plan = Plan { ranking: ranking.into(), ..Plan::new(Counting::Host) };
            let needs = plan.needs();
            assert_eq!(plan.ranking.needs(), needs);
            let covering = Plan { selection: Selection::Coverage, ..plan.clone() };
            assert_eq!(Needs { has_titles: true, ..needs }, covering.needs());
            let gated = Plan { policy: Policy::Gate { max_docs: 3 }, ..covering.clone() };
            let expected = Needs { words: Words::Keywords, has_titles: false, ..needs };
            assert_eq!(expected, gated.needs());
        }
    }
}
