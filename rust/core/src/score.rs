//! Relevance of texts to a query.

use std::collections::HashMap;

use crate::chunk::Batch;
use crate::keywords::{self, for_each_word, has_keyword, keyword_at, keywords};
use crate::scan::{MAX_KEYWORDS, Scanner, WideKeywords};
use crate::text::Text;

pub(crate) mod bm25;
pub(crate) mod feedback;
pub(crate) mod heading;
pub(crate) mod hybrid;
pub(crate) mod lexical;
pub(crate) mod link;

/// Scores texts by the share of a query's keywords that they contain.
#[derive(Debug)]
pub(crate) struct KeywordScorer {
    search: Search,
    wanted: usize,
}

#[derive(Debug)]
enum Search {
    /// A query as people write them: the scanner looks for its ASCII keywords,
    /// and only words that begin like the others are compared with them.
    Few { scanner: Box<Scanner>, wide: Option<Box<Wide>> },
    /// A whole text as the query: every word is looked up.
    Many { wanted: HashMap<Vec<u8>, usize> },
}

/// The keywords of a query that are not in ASCII.
#[derive(Debug)]
struct Wide {
    scanner: WideKeywords,
    /// A bit for each.
    wanted: HashMap<Vec<u8>, u64>,
}

/// Buffers that are used again for each text.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    folded: Vec<u8>,
    folded_title: Vec<u8>,
    lowered: Vec<u8>,
    found: Vec<usize>,
    codes: Vec<u32>,
    bits: Vec<u64>,
}

impl KeywordScorer {
    pub(crate) fn new(query: Text<'_>) -> Self {
        let wanted = keywords(query);
        let count = wanted.len();
        let search = if count > MAX_KEYWORDS {
            Search::Many { wanted: wanted.into_iter().zip(0..).collect() }
        } else {
            let (ascii, wide): (Vec<_>, Vec<_>) =
                wanted.into_iter().partition(|word| word.is_ascii());
            let wanted: HashMap<_, _> =
                wide.into_iter().enumerate().map(|(i, word)| (word, 1 << i)).collect();
            let wide = WideKeywords::new(wanted.keys().map(Vec::as_slice))
                .map(|scanner| Box::new(Wide { scanner, wanted }));
            Search::Few { scanner: Box::new(Scanner::new(ascii)), wide }
        };
        Self { search, wanted: count }
    }

    /// Returns the score of `text` with its title, from 0 to 1.
    ///
    /// A text without any keyword scores 0, whatever its title.
    #[allow(clippy::cast_precision_loss)] // no query has 2^53 keywords
    pub(crate) fn score(&self, text: Text<'_>, title: Text<'_>, scratch: &mut Scratch) -> f64 {
        let matched = match &self.search {
            _ if self.wanted == 0 => 0,
            Search::Few { scanner, wide } => few(scanner, wide.as_deref(), text, title, scratch),
            Search::Many { wanted } => many(wanted, text, title, scratch),
        };
        if matched == 0 { 0.0 } else { matched as f64 / self.wanted as f64 }
    }
}

fn few(
    scanner: &Scanner,
    wide: Option<&Wide>,
    text: Text<'_>,
    title: Text<'_>,
    scratch: &mut Scratch,
) -> usize {
    let Scratch { folded, folded_title, lowered, codes, bits, .. } = scratch;
    let folded = text.fold(folded);
    let mut find_wide = |text: Text<'_>, folded: &[u8], found, lowered: &mut Vec<u8>| match wide {
        Some(wide) if !matches!(text, Text::Ascii(_)) => {
            wide.find(text.decoded(codes), folded, found, bits, lowered)
        }
        _ => found,
    };
    let mut found = scanner.scan(folded, 0, lowered);
    let mut found_wide = find_wide(text, folded, 0, lowered);
    if !title.is_empty() {
        let without_title = found | found_wide;
        let folded_title = title.fold(folded_title);
        found = scanner.scan(folded_title, found, lowered);
        found_wide = find_wide(title, folded_title, found_wide, lowered);
        if without_title == 0 && (found | found_wide) != 0 && !has_keyword(text, folded, lowered) {
            return 0;
        }
    }
    (found.count_ones() + found_wide.count_ones()) as usize
}

impl Wide {
    /// Returns `found` together with the bits of the keywords in `text`.
    fn find(
        &self,
        text: Text<'_>,
        folded: &[u8],
        mut found: u64,
        bits: &mut Vec<u64>,
        lowered: &mut Vec<u8>,
    ) -> u64 {
        self.scanner.scan(text, folded, bits, |at| {
            let word = keyword_at(text, folded, at, lowered);
            found |= word.and_then(|word| self.wanted.get(word)).copied().unwrap_or(0);
            found.count_ones() as usize != self.wanted.len()
        });
        found
    }
}

fn many(
    wanted: &HashMap<Vec<u8>, usize>,
    text: Text<'_>,
    title: Text<'_>,
    scratch: &mut Scratch,
) -> usize {
    let Scratch { folded, folded_title, lowered, found, .. } = scratch;
    found.clear();
    let mut any = false;
    for_each_word(text, text.fold(folded), lowered, |word| {
        any |= keywords::is_keyword(word);
        found.extend(wanted.get(word));
    });
    if !any {
        return 0;
    }
    for_each_word(title, title.fold(folded_title), lowered, |word| {
        found.extend(wanted.get(word));
    });
    found.sort_unstable();
    found.dedup();
    found.len()
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
    let mut scratch = Scratch::default();
    (0..batch.len()).map(|i| scorer.score(batch.text(i), batch.title(i), &mut scratch)).collect()
}
