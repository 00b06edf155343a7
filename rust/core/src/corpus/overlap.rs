//! Which keywords of a query the chunks of a corpus have.

use super::Index;
use super::found::Found;
use super::query::WORDS;
use super::sums::{Adder, Row};
use crate::keywords::keywords;
use crate::ranking::Bm25;
use crate::text::Text;

/// What the lists say of a query's keywords.
#[derive(Debug)]
pub(crate) struct Overlap {
    /// The shares of the keywords that are terms.
    pub(crate) found: Found,
    /// The other keywords, which are looked for in texts.
    pub(crate) rest: Vec<Vec<u8>>,
    /// The chunks that may have any of these, ascending; None if any chunk may.
    pub(crate) chunks: Option<Vec<u32>>,
}

impl Index {
    /// Returns what the lists say of the keywords of `query`.
    #[allow(clippy::cast_precision_loss)] // no query has 2^53 keywords
    pub(crate) fn overlap(&self, query: Text<'_>) -> Overlap {
        let (mut found, mut rest) = (Found::new(&Bm25::default(), None), Vec::new());
        let wanted = keywords(query);
        found.divisor = wanted.len().max(1) as f64;
        let bm25 = Bm25::default();
        for keyword in wanted {
            // An English stopword, which has no list, has no terms.
            let terms = bm25.terms_of(Text::from_utf8(&keyword));
            if terms.as_slice() == std::slice::from_ref(&keyword) {
                found.adders.push(Adder::Keyword(self.rows_of(WORDS, &keyword, &bm25)));
            } else {
                rest.push(keyword);
            }
        }
        let chunks = self.candidates(&rest);
        Overlap { found, rest, chunks }
    }

    /// Returns the chunks that may have one of these keywords, ascending; None
    /// if any chunk may.
    ///
    /// A chunk with a keyword has the terms of the keyword, whatever stands
    /// around it: whitespace and stripped punctuation separate terms too.
    fn candidates(&self, keywords: &[Vec<u8>]) -> Option<Vec<u32>> {
        let mut chunks = Vec::new();
        let bm25 = Bm25::default();
        for keyword in keywords {
            let terms = bm25.terms_of(Text::from_utf8(keyword));
            let rows = terms.iter().map(|term| {
                let rows = self.rows_of(WORDS, term, &bm25);
                let frequency = |&row: &Row| u64::from(self.list(row).frequency);
                (rows.iter().map(frequency).sum::<u64>(), rows)
            });
            // A keyword without terms, or of stopwords alone, may be in any
            // chunk.
            let (_, rows) = rows.min_by_key(|(frequency, _)| *frequency)?;
            for row in rows {
                self.list(row).for_each(|posting| chunks.push(posting.chunk));
            }
        }
        chunks.sort_unstable();
        chunks.dedup();
        self.keep_known(&mut chunks);
        Some(chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Documents;

    #[test]
    fn only_chunks_with_the_terms_of_a_keyword_may_have_it() {
        let index =
            Index::new(&Documents::new(&["rye-bread", "tea", "bread, rye", "the tea-time"]));
        let overlap = |query: &str| {
            let Overlap { found, rest, chunks } = index.overlap(query.into());
            (found.adders.len(), rest.len(), chunks)
        };
        assert_eq!((1, 0, Some(vec![])), overlap("bread"));
        assert_eq!((0, 1, Some(vec![0, 2])), overlap("rye-bread"));
        assert_eq!((1, 1, Some(vec![3])), overlap("bread tea-time"));
        // The rarest of its terms is asked for.
        assert_eq!((0, 1, Some(vec![3])), overlap("tea-time"));
        assert_eq!((0, 2, None), overlap("themselves rye-bread"));
    }
}
