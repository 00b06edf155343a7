//! Relevance of texts to a query.

use std::collections::HashMap;
use std::ops::Range;

use crate::chunk::Batch;
use crate::count::exact::GO_ON;
use crate::keywords::{has_keyword, keywords, lower};
use crate::scan::{FEW_KEYWORDS, Scanner, Sight, Tally, TermScanner, WideKeywords, WideScratch};
use crate::sharing::Sharing;
use crate::text::Text;
use crate::threads::share;

pub(crate) mod bm25;
pub(crate) mod feedback;
pub(crate) mod heading;
pub(crate) mod hybrid;
pub(crate) mod lexical;
pub(crate) mod link;
mod search;

/// Counts something in texts, one by one. Several can share the texts of a
/// batch.
pub(crate) trait Scorer: Send {
    /// What was counted in some texts.
    type Read: Send;

    /// Returns one that counts the same, and has read nothing.
    fn another(&self) -> Self;

    /// Counts in the next text and its title.
    fn read(&mut self, text: Text<'_>, title: Text<'_>);

    /// Returns what was counted, and forgets it.
    fn take(&mut self) -> Self::Read;

    /// Adds what was counted in the texts behind those that were read.
    fn extend(&mut self, behind: Self::Read);
}

/// Lets `scorer` read some texts of a batch, and returns what it counted.
pub(crate) fn read_block<S: Scorer>(
    scorer: &mut S,
    batch: &impl Batch,
    places: Range<usize>,
) -> S::Read {
    for at in places {
        batch.prefetch(at + 1);
        scorer.read(batch.text(at), batch.title(at));
    }
    scorer.take()
}

/// Lets `scorer` read all texts of a batch, and returns it.
pub(crate) fn read_all<S: Scorer>(scorer: S, batch: &impl Batch) -> S {
    let sharing = Sharing::of(batch.len(), batch.total_chars());
    let mut scorers = sharing.readers(scorer, S::another);
    let blocks = sharing.blocks(0..batch.len());
    let read =
        share(&mut scorers, blocks, &GO_ON, |scorer, block| read_block(scorer, batch, block));
    joined(scorers, read)
}

/// Returns the first of `scorers` with what all of them have read.
pub(crate) fn joined<S: Scorer>(mut scorers: Vec<S>, read: Vec<S::Read>) -> S {
    let mut scorer = scorers.swap_remove(0);
    for read in read {
        scorer.extend(read);
    }
    scorer
}

/// Scores texts by the share of a query's keywords that they contain.
#[derive(Debug)]
pub(crate) struct KeywordScorer {
    ascii: Ascii,
    wide: Option<Box<Wide>>,
    wanted: usize,
}

/// What looks for the keywords in ASCII.
#[derive(Debug)]
enum Ascii {
    Few(Box<Scanner>),
    Many(Box<TermScanner>),
}

/// The keywords that are not in ASCII.
#[derive(Debug)]
struct Wide {
    scanner: WideKeywords,
    wanted: HashMap<Vec<u8>, u32>,
}

/// Buffers that are used again for each text.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    folded: Vec<u8>,
    folded_title: Vec<u8>,
    search: Search,
}

/// Those of a search in a text.
#[derive(Debug, Default)]
struct Search {
    lowered: Vec<u8>,
    codes: Vec<u32>,
    wide: WideScratch,
    /// The keywords found, but for those that a [`Scanner`] finds.
    tally: Tally,
}

impl KeywordScorer {
    pub(crate) fn new(query: Text<'_>) -> Self {
        Self::of_keywords(keywords(query))
    }

    /// Returns what looks for these keywords, each of which comes once.
    pub(crate) fn of_keywords(wanted: Vec<Vec<u8>>) -> Self {
        let count = wanted.len();
        let (ascii, wide): (Vec<_>, Vec<_>) =
            wanted.into_iter().zip(0..).partition(|(word, _)| word.is_ascii());
        let ascii = if ascii.len() > FEW_KEYWORDS {
            Ascii::Many(Box::new(TermScanner::of_keywords(ascii)))
        } else {
            Ascii::Few(Box::new(Scanner::new(ascii.into_iter().map(|(word, _)| word).collect())))
        };
        let wanted: HashMap<_, _> = wide.into_iter().collect();
        let wide = WideKeywords::new(wanted.iter().map(|(word, &number)| (&**word, number)))
            .map(|scanner| Box::new(Wide { scanner, wanted }));
        Self { ascii, wide, wanted: count }
    }

    /// Returns the score of `text` with its title, from 0 to 1.
    ///
    /// A text without any keyword scores 0, whatever its title.
    #[allow(clippy::cast_precision_loss)] // no query has 2^53 keywords
    pub(crate) fn score(&self, text: Text<'_>, title: Text<'_>, scratch: &mut Scratch) -> f64 {
        let matched = if self.wanted == 0 { 0 } else { self.matched(text, title, scratch) };
        if matched == 0 { 0.0 } else { matched as f64 / self.wanted as f64 }
    }

    /// Returns how many keywords a text with its title has.
    pub(crate) fn matched(&self, text: Text<'_>, title: Text<'_>, scratch: &mut Scratch) -> usize {
        let Scratch { folded, folded_title, search } = scratch;
        let folded = text.fold(folded);
        let mut found = self.find(text, folded, 0, search);
        let mut matched = search.matched(found);
        if !title.is_empty() {
            found = self.find(title, title.fold(folded_title), found, search);
            let with_title = search.matched(found);
            let is_about = matched > 0 || with_title == 0;
            if is_about || has_keyword(text, folded, &mut search.lowered) {
                matched = with_title;
            }
        }
        search.tally.drain(|_, _| {});
        matched
    }

    /// Adds the keywords in `text`: to `found`, or to the tally.
    fn find(&self, text: Text<'_>, folded: &[u8], found: u64, search: &mut Search) -> u64 {
        let Search { lowered, codes, wide: buffers, tally } = search;
        let found = match &self.ascii {
            Ascii::Few(scanner) => scanner.scan(folded, found, lowered),
            Ascii::Many(scanner) => {
                tally.grow(self.wanted);
                scanner.scan(folded, tally);
                found
            }
        };
        if let (Some(wide), false) = (&self.wide, matches!(text, Text::Ascii(_))) {
            tally.grow(self.wanted);
            let text = text.decoded(codes);
            let others = self.wanted - found.count_ones() as usize;
            wide.scanner.scan(text, folded, buffers, |sight| {
                let number = match sight {
                    Sight::Word(number) => Some(number),
                    Sight::Maybe(start, end) => {
                        lowered.clear();
                        lower(text.slice(start, end), lowered);
                        wide.wanted.get(&**lowered).copied()
                    }
                };
                if let Some(number) = number {
                    tally.add(number);
                }
                tally.len() < others
            });
        }
        found
    }
}

impl Search {
    /// Returns how many keywords were found: those of `found`, and of the tally.
    fn matched(&self, found: u64) -> usize {
        found.count_ones() as usize + self.tally.len()
    }
}

/// Returns the share of the keywords of `query` that each text or its title
/// contains, from 0 to 1.
///
/// A text without any keyword scores 0, whatever its title.
///
/// # Examples
///
/// ```
/// use budgeteer::{keyword_scores, Chunk};
///
/// let chunks = [Chunk::new("Remote work is allowed.").title("Policy"), Chunk::new("Lunch.")];
/// assert_eq!(keyword_scores("remote work policy", &chunks), [1.0, 0.0]);
/// ```
#[must_use]
pub fn keyword_scores<D: crate::Document>(query: &str, chunks: &[D]) -> Vec<f64> {
    batch_keyword_scores(query.into(), &crate::chunk::Documents::new(chunks))
}

/// Does the same as [`keyword_scores`], for any batch.
#[must_use]
pub fn batch_keyword_scores(query: Text<'_>, batch: &impl Batch) -> Vec<f64> {
    let scorer = KeywordScorer::new(query);
    let sharing = Sharing::of(batch.len(), batch.total_chars());
    let mut readers = sharing.readers(Scratch::default(), |_| Scratch::default());
    let mut found = vec![0.0; batch.len()];
    let blocks = sharing.blocks(0..batch.len()).zip(found.chunks_mut(sharing.size()));
    share(&mut readers, blocks, &GO_ON, |scratch, (places, found)| {
        for (at, to) in places.zip(found) {
            *to = scorer.score(batch.text(at), batch.title(at), scratch);
        }
    });
    found
}
