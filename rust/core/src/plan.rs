//! The options of a packer, and one call of it.
//!
//! All values here were validated. Each stage reads them, and imports them from
//! here.

use std::sync::atomic::AtomicBool;

use crate::count::{Estimate, Exact, Factor};
use crate::gate::Gate;
use crate::ranking::{Needs, RankBy, Words};
use crate::template::{Tag, Template};
use crate::text::Text;
use crate::truncate::Keep;

#[cfg(test)]
pub(crate) mod watching;

/// What happens to a chunk that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// It is dropped, and packing goes on: a smaller chunk may still fit. The
    /// default.
    #[default]
    Skip,
    /// It is dropped, and so is every chunk behind it.
    Stop,
    /// The first such chunk loses its end, in place of which stands ` [...]`.
    TruncateEnd,
    /// The first such chunk loses its middle, in place of which stands
    /// `[...truncated...]` on a line of its own.
    TruncateMiddle,
}

impl Overflow {
    /// Returns what a cut keeps, and its marker; None where nothing is cut.
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
    /// No chunk.
    Off,
    /// Chunks with the same text. The default.
    #[default]
    Exact,
    /// Chunks with the same text, and chunks that nearly repeat a kept one.
    ///
    /// Texts are compared by their shingles: all runs of five words, or of all
    /// words where a text has fewer. Words are those of BM25. A chunk that fits
    /// is a near duplicate of one of the 4,096 best kept ones if four fifths of
    /// all shingles of the two texts are in both, or if the kept text has all
    /// shingles of the chunk.
    Near,
}

impl From<bool> for Dedupe {
    /// Returns [`Dedupe::Exact`] or [`Dedupe::Off`].
    fn from(dedupe: bool) -> Self {
        if dedupe { Self::Exact } else { Self::Off }
    }
}

/// Which chunks are in scope, by score.
///
/// ```
/// use budgeteer::{Lexical, MinScore, Packer};
///
/// let chunks = ["Green tea is mild.", "Black tea is strong.", "Tea is hot."];
/// let packer = Packer::new(40).ranking(Lexical::default()).min_score(MinScore::Auto);
/// let packing = packer.pack("mild green tea", &chunks)?;
/// assert_eq!(packing.text, "Green tea is mild.");
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum MinScore {
    /// Those with this score or a higher one.
    At(f64),
    /// Those with at least 0.35 times the mean of the three best scores of the
    /// call, or of all scores where there are fewer; where that mean is 0, all.
    /// And with any score those that a link raised, and those whose whole
    /// heading the query has. It is an error under a ranking other than
    /// [`Lexical`](crate::Lexical) and [`Bm25`](crate::Bm25), and in
    /// [`context_gate`](crate::presets::context_gate).
    Auto,
}

impl From<f64> for MinScore {
    /// Returns [`MinScore::At`].
    fn from(score: f64) -> Self {
        Self::At(score)
    }
}

/// The order in which chunks are admitted. The packing fits in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// By rank. The default.
    #[default]
    Rank,
    /// The next chunk is the one that ranks well and adds most to the words of
    /// the query that those before cover. For chunks that say the same in other
    /// words.
    ///
    /// Among the 512 chunks of best rank, the greedy order maximises
    /// `2 * sum(C / sqrt(r)) + sum(sqrt(w * x))`. The first sum is over the
    /// chosen chunks: `r` is the place by rank, from 1 on, and `C` the most
    /// that one chunk has of all words. The second is over the words of the
    /// query: `w` is the weight of the word in BM25 over the 512, and `x` is
    /// the amount of it in the chosen chunks, as BM25 measures it. The other
    /// chunks follow by rank. Stemming and stopwords are those of the ranking,
    /// if that is by BM25.
    Coverage,
}

/// Whether whole chunks or sentences are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Units {
    /// Whole chunks. The default.
    #[default]
    Chunk,
    /// Sentences of the best chunks, then whole chunks into the room that is
    /// left.
    Sentence,
}

/// The order of the kept chunks in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// Best first. The default.
    #[default]
    Rank,
    /// In the order of the input.
    Input,
    /// By source, in the order in which the sources came. Within a source by
    /// position, then in the order of the input.
    Document,
    /// The best first, the next best last, and so on inwards, as models heed
    /// the middle of a long text least.
    Edges,
    /// As in the packing before, up to the first chunk that is gone; then best
    /// first. A provider need not read the unchanged start again.
    Sticky,
}

/// What only presets ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Nothing special. The default.
    #[default]
    None,
    /// Separators and markers do not count, as in theaios-context-router 0.2.2.
    /// This breaks the law, so it applies to estimates only: any other counter
    /// packs as under [`Policy::None`].
    SumOfParts,
    /// [`Host::cite`] is asked: texts and citations, each counted on its own,
    /// stay within the budget together. Nothing is cut.
    Cite,
    /// [`Call::gate`](field@Call::gate) ranks by weight, whatever the ranking,
    /// and drops documents: those that share no keyword with the question are
    /// out of scope, and those beyond a number are above the cap. Titles do not
    /// count.
    Gate {
        /// How many documents are considered at most.
        max_docs: u64,
    },
}

/// How texts are counted.
#[derive(Clone, Debug, PartialEq)]
pub enum Counting {
    /// By an estimate.
    Estimate(Estimate),
    /// By an encoding, times a factor, which is one under [`Policy::Cite`]:
    /// products that are rounded up one by one do not add up.
    Exact(Exact, Factor),
    /// By [`Host::count`].
    Host,
}

/// The options of a packer. A plan never changes, and several threads may use
/// it at a time.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How texts are counted.
    pub counting: Counting,
    /// The ranking of the chunks.
    pub ranking: RankBy,
    /// Which chunks are in scope; None for all.
    pub min_score: Option<MinScore>,
    /// What happens to a chunk that does not fit.
    pub overflow: Overflow,
    /// How many chunks are kept at most.
    pub max_chunks: Option<u64>,
    /// Which chunks are dropped as duplicates of kept ones.
    pub dedupe: Dedupe,
    /// The order in which chunks are admitted.
    pub selection: Selection,
    /// The order of the kept chunks in the text.
    pub order: Order,
    /// The template of the text.
    pub template: Template,
    /// The wording of the notice that chunks were left out, if there is one:
    /// the texts in front of their number and behind each mention of it.
    pub notice: Option<Vec<String>>,
    /// What only presets ask for.
    pub policy: Policy,
    /// Whether whole chunks or sentences are packed. Sentences are for no
    /// preset, no near duplicates, no other selection than by rank, and no
    /// template that is a function.
    pub units: Units,
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
            units: Units::default(),
        }
    }

    /// Returns a call with this query and budget and nothing else.
    #[must_use]
    pub fn call<'a>(&'a self, query: Text<'a>, budget: u64) -> Call<'a> {
        Call { plan: self, query, budget, keys: &[], previous: &[], gate: None, template: None }
    }

    /// Returns what must be known of the chunks: what the ranking needs, with
    /// two exceptions. A gate looks for keywords in texts alone, whatever the
    /// ranking, and coverage reads titles too, as do sentences.
    #[must_use]
    pub fn needs(&self) -> Needs<'_> {
        let needs = self.ranking.needs();
        match self.policy {
            Policy::Gate { .. } => Needs { words: Words::Keywords, has_titles: false, ..needs },
            _ if self.selection == Selection::Coverage || self.units == Units::Sentence => {
                Needs { has_titles: true, ..needs }
            }
            _ => needs,
        }
    }

    /// Returns what counts are multiplied by.
    pub(crate) fn factor(&self) -> Factor {
        match self.counting {
            Counting::Exact(_, factor) => factor,
            Counting::Estimate(_) | Counting::Host => Factor::ONE,
        }
    }

    /// Returns whether separators and markers do not count.
    pub(crate) fn is_sum_of_parts(&self) -> bool {
        self.policy == Policy::SumOfParts && matches!(self.counting, Counting::Estimate(_))
    }

    /// Returns whether [`Host::cite`] is asked.
    pub(crate) fn is_cited(&self) -> bool {
        self.policy == Policy::Cite
    }
}

/// One call of a packer: the plan, and the inputs of this call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The options of the packer.
    pub plan: &'a Plan,
    /// The query that the chunks are ranked for.
    pub query: Text<'a>,
    /// The upper bound for the assembled text, in tokens; below 2^63.
    pub budget: u64,
    /// The cosine of each chunk, then the score of each chunk's own, as far as
    /// [`Plan::needs`] has them; NaN stands for none.
    pub keys: &'a [f64],
    /// Under [`Order::Sticky`], the text of the packing before, split behind
    /// the text of each chunk, without what follows the last one. Each is
    /// encoded as in [`Text::Utf8`].
    pub previous: &'a [Vec<u8>],
    /// The properties of each chunk under [`Policy::Gate`]; not needed
    /// otherwise.
    pub gate: Option<&'a Gate>,
    /// A template for this call, in place of the plan's.
    pub template: Option<&'a Template>,
}

impl<'a> Call<'a> {
    /// Returns the template of the text.
    #[must_use]
    pub fn template(&self) -> &'a Template {
        self.template.unwrap_or(&self.plan.template)
    }

    /// Returns the call with its budget in tokens of the encoding, before any
    /// factor.
    pub(crate) fn unscaled(&self) -> Self {
        Self { budget: self.plan.factor().within(self.budget), ..*self }
    }

    /// Returns the properties of the chunks and the number of documents to
    /// consider, under a gate.
    pub(crate) fn gate(&self) -> Option<(&'a Gate, u64)> {
        match self.plan.policy {
            Policy::Gate { max_docs } => {
                Some((self.gate.expect("a gate knows each chunk"), max_docs))
            }
            _ => None,
        }
    }

    /// Returns whether the host is asked for anything but [`Host::work`].
    #[must_use]
    pub fn asks_host(&self) -> bool {
        self.plan.counting == Counting::Host || self.is_framed() || self.plan.is_cited()
    }

    /// Returns whether [`Host::tag`] is asked.
    pub(crate) fn is_framed(&self) -> bool {
        !self.template().is_plain() || self.plan.order == Order::Document
    }

    /// Returns whether the text has nothing but chunks and separators.
    pub(crate) fn is_bare(&self) -> bool {
        let Template { header, footer, .. } = self.template();
        let is_bare = !self.is_framed() && header.is_empty() && footer.is_empty();
        is_bare && self.plan.notice.is_none()
    }

    /// Returns the separator and the notice for `count` chunks left out.
    pub(crate) fn notice(&self, count: usize) -> Vec<u8> {
        let mut notice = Vec::new();
        if let Some(pieces) = &self.plan.notice {
            let template = self.template();
            notice.extend_from_slice(template.separator.as_bytes());
            notice.extend(template.notice(pieces, count));
        }
        notice
    }

    /// Returns the text behind the last chunk when `dropped` chunks were
    /// dropped.
    pub(crate) fn tail(&self, dropped: usize) -> Vec<u8> {
        let mut tail = if dropped > 0 { self.notice(dropped) } else { Vec::new() };
        tail.extend_from_slice(self.template().footer.as_bytes());
        tail
    }
}

/// A text that the host counts.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The whole text of a chunk.
    Chunk(usize),
    /// The rest of a chunk after a cut, encoded as in [`Text::Utf8`].
    Piece {
        /// The chunk.
        index: usize,
        /// The rest of its text.
        text: &'a [u8],
    },
    /// The assembled text, encoded as in [`Text::Utf8`].
    Assembled(&'a [u8]),
}

/// The program around the pipeline.
pub trait Host {
    /// An error of the host.
    type Error;

    /// Returns the number of tokens of `subject`.
    ///
    /// # Errors
    ///
    /// The host's counter failed.
    fn count(&mut self, subject: Subject<'_>) -> Result<u64, Self::Error>;

    /// Returns the tag of chunk `index`. Asked for chunks that are kept or may
    /// be, and only where the template or the order needs it.
    ///
    /// # Errors
    ///
    /// The host failed.
    fn tag(&mut self, index: usize) -> Result<Tag, Self::Error>;

    /// Returns what a template by a function writes for chunk `index`, encoded
    /// as in [`Text::Utf8`]. Asked under [`Template::by`], once for each chunk
    /// considered.
    ///
    /// # Errors
    ///
    /// The host failed.
    fn write(&mut self, index: usize) -> Result<Vec<u8>, Self::Error>;

    /// Returns the tokens of citing chunk `index`. Asked under
    /// [`Policy::Cite`], for chunks whose text fits.
    ///
    /// # Errors
    ///
    /// The host failed.
    fn cite(&mut self, index: usize) -> Result<u64, Self::Error>;

    /// Does `work`, which takes as long as reading about `chars` code points
    /// and needs nothing of the host. A host may release its locks meanwhile.
    /// It may also set the flag that `work` gets, to have it end early; then it
    /// must return an error.
    ///
    /// # Errors
    ///
    /// The host does not go on.
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
