//! The postings of a range of chunks: of their words and of their headings.

use std::ops::Range;

use super::postings::Postings;
use super::storage::Numbers;
use super::writer;
use crate::fork::Shared;
use crate::keywords::{self, is_keyword};
use crate::ranking::{Bm25, Lexical};
use crate::score::heading::heading;
use crate::stem::Stemming;
use crate::stopwords::Stopwords;
use crate::terms::{self, fold, for_each_place, for_each_term};
use crate::text::Text;

/// For how many kinds of stems and stopwords a part knows the sizes of its
/// headings.
const KINDS: usize = 4;

/// The postings of a range of chunks.
#[derive(Debug)]
pub(crate) struct Part {
    /// The words of texts and titles, without English stopwords: few queries
    /// ask for them.
    pub(super) words: Postings,
    /// The words of headings.
    pub(super) headings: Postings,
    /// Whole headings: their terms, with a space between two.
    pub(super) runs: Postings,
    /// The sizes of the headings, once they were asked for.
    sizes: Shared<Vec<Sizes>>,
}

/// The number of different stems in the heading of each chunk, without
/// stopwords.
#[derive(Clone, Debug)]
struct Sizes {
    stemming: Option<Stemming>,
    stopwords: Stopwords,
    of_chunks: Numbers,
}

impl Part {
    pub(super) fn new(words: Postings, headings: Postings, runs: Postings) -> Self {
        Self { words, headings, runs, sizes: Shared::new() }
    }

    /// Returns the parts in the order in which they are stored.
    pub(super) fn all(&self) -> [&Postings; 3] {
        [&self.words, &self.headings, &self.runs]
    }

    fn each(&self, of: impl Fn(&Postings) -> Postings) -> Self {
        Self::new(of(&self.words), of(&self.headings), of(&self.runs))
    }

    pub(super) fn first(&self) -> u32 {
        self.words.first
    }

    pub(super) fn chunks(&self) -> u32 {
        self.words.chunks
    }

    /// Returns the places of the chunks.
    pub(super) fn range(&self) -> Range<usize> {
        let first = self.first() as usize;
        first..first + self.chunks() as usize
    }

    pub(super) fn bytes(&self) -> usize {
        self.all().iter().map(|postings| postings.bytes()).sum()
    }

    /// Returns the postings of two neighbouring ranges.
    pub(super) fn merged(before: &Self, behind: &Self, lengths: &[u32]) -> Self {
        let chunks = before.chunks() + behind.chunks();
        before.rearranged(before.first(), chunks, Some, Some(behind), lengths)
    }

    /// Returns the same for a range that begins at `first`.
    pub(super) fn moved(&self, first: u32) -> Self {
        let moved = self.each(|postings| postings.moved(first));
        if let Some(known) = self.sizes.get() {
            moved.sizes.update(|_| known.to_vec());
        }
        moved
    }

    /// Does what [`Postings::rearranged`] does.
    pub(super) fn rearranged(
        &self,
        first: u32,
        chunks: u32,
        place: impl Fn(u32) -> Option<u32>,
        more: Option<&Self>,
        lengths: &[u32],
    ) -> Self {
        let of =
            |postings: &Postings, more| postings.rearranged(first, chunks, &place, more, lengths);
        Self::new(
            of(&self.words, more.map(|more| &more.words)),
            of(&self.headings, more.map(|more| &more.headings)),
            of(&self.runs, more.map(|more| &more.runs)),
        )
    }

    /// Returns how many terms must still be stemmed for a query, and how many
    /// headings must still be counted.
    pub(super) fn unknown(&self, bm25: &Bm25, has_headings: bool) -> (usize, usize) {
        let unstemmed =
            |postings: &Postings| bm25.stemming.map_or(0, |stemming| postings.unstemmed(stemming));
        let words = unstemmed(&self.words);
        if !has_headings {
            return (words, 0);
        }
        let uncounted = if self.known_sizes(bm25).is_some() { 0 } else { self.chunks() as usize };
        (words + unstemmed(&self.headings), uncounted)
    }

    fn known_sizes(&self, Bm25 { stemming, stopwords, .. }: &Bm25) -> Option<Numbers> {
        let known = self.sizes.get()?;
        let same = |known: &&Sizes| known.stemming == *stemming && known.stopwords == *stopwords;
        known.iter().find(same).map(|known| known.of_chunks.clone())
    }

    /// Returns the number of different stems in the heading of each chunk,
    /// without stopwords; nothing where no chunk has a heading.
    pub(super) fn sizes(&self, bm25: &Bm25) -> Numbers {
        if let Some(sizes) = self.known_sizes(bm25) {
            return sizes;
        }
        let chunks = if self.headings.rows() == 0 { 0 } else { self.chunks() };
        let mut sizes = vec![0_u32; chunks as usize];
        let first = self.first();
        self.headings.for_each_stem(bm25.stemming, &bm25.stopwords, |chunk| {
            // A damaged file's list may name any chunk.
            if let Some(size) = sizes.get_mut(chunk.wrapping_sub(first) as usize) {
                *size += 1;
            }
        });
        let sizes = Numbers::Memory(sizes.into());
        self.put_sizes(bm25, sizes.clone());
        sizes
    }

    /// Remembers the sizes of the headings.
    fn put_sizes(&self, Bm25 { stemming, stopwords, .. }: &Bm25, of_chunks: Numbers) {
        self.sizes.update(|known| {
            let mut known = known.cloned().unwrap_or_default();
            known.truncate(KINDS - 1);
            let stopwords = stopwords.clone();
            known.insert(0, Sizes { stemming: *stemming, stopwords, of_chunks });
            known
        });
    }

    /// Returns what the default ranking needs beside the postings, and what
    /// takes long to find: the rows of words and those of headings by stem, and
    /// the sizes of the headings. None without stemming.
    pub(super) fn prepared(&self) -> Option<[Numbers; 3]> {
        let bm25 = Lexical::default().bm25;
        let stemming = bm25.stemming?;
        Some([self.words.by_stem(stemming), self.headings.by_stem(stemming), self.sizes(&bm25)])
    }

    /// Remembers the result of [`Part::prepared`], as far as a file has it: what
    /// has no numbers is found when it is needed.
    pub(super) fn remember(&self, [words, headings, sizes]: [Numbers; 3]) {
        let bm25 = Lexical::default().bm25;
        let Some(stemming) = bm25.stemming else { return };
        for (postings, rows) in [(&self.words, words), (&self.headings, headings)] {
            if rows.len() == postings.rows() {
                postings.stems.update(|_| vec![(stemming, rows.clone())]);
            }
        }
        if self.headings.rows() == 0 || sizes.len() == self.chunks() as usize {
            self.put_sizes(&bm25, sizes);
        }
    }
}

/// Makes the postings of texts.
#[derive(Debug)]
pub(super) struct Builder {
    words: writer::Builder,
    headings: writer::Builder,
    runs: writer::Builder,
    folded: Vec<u8>,
    wide: Vec<u8>,
    lowered: Vec<u8>,
    run: Vec<u8>,
}

impl Builder {
    /// Returns a builder whose first chunk will be `first`.
    pub(super) fn new(first: u32) -> Self {
        Self {
            words: writer::Builder::without_stopwords(first),
            headings: writer::Builder::new(first),
            runs: writer::Builder::new(first),
            folded: Vec::new(),
            wide: Vec::new(),
            lowered: Vec::new(),
            run: Vec::new(),
        }
    }

    /// Passes over the chunks in front of `chunk`, which is added next.
    pub(super) fn pass_to(&mut self, chunk: u32) {
        for builder in [&mut self.words, &mut self.headings, &mut self.runs] {
            builder.pass_to(chunk);
        }
    }

    /// Adds the next chunk, and returns how many terms it has.
    pub(super) fn add(&mut self, text: Text<'_>, title: Text<'_>) -> u32 {
        let Self { words, headings, runs, folded, wide, lowered, run } = self;
        let mut length = 0_u64;
        let mut has_keyword = false;
        for (nth, part) in [text, title].into_iter().enumerate() {
            if nth == 1 && !has_keyword && !part.is_empty() {
                // Without a keyword in the text those of the title do not count.
                has_keyword = keywords::has_keyword(text, text.fold(wide), lowered);
            }
            fold(part, folded);
            let plain = part.fold(wide);
            for_each_place(part, folded, lowered, |term, place| {
                length += 1;
                let counts = nth == 0 || has_keyword;
                let is_whole = counts && keywords::is_whole(term, &place, plain);
                if is_whole && !has_keyword {
                    has_keyword = is_keyword(term);
                }
                words.count(term, is_whole);
            });
        }
        let heading = heading(text, title);
        fold(heading, folded);
        run.clear();
        for_each_term(heading, folded, lowered, |term| {
            headings.count(term, false);
            terms::push(run, term);
        });
        if !run.is_empty() {
            runs.count(run, false);
        }
        [words, headings, runs].into_iter().for_each(writer::Builder::pass);
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    /// Returns the postings. `lengths` has those of all chunks of the corpus.
    pub(super) fn finish(self, lengths: &[u32]) -> Part {
        let Self { words, headings, runs, .. } = self;
        Part::new(words.finish(lengths), headings.finish(lengths), runs.finish(lengths))
    }
}

#[cfg(all(test, feature = "stemming"))]
mod tests {
    use super::*;

    fn part_of(chunks: &[(&str, &str)]) -> Part {
        let mut builder = Builder::new(0);
        for &(text, title) in chunks {
            builder.add(text.into(), title.into());
        }
        builder.finish(&vec![8; chunks.len()])
    }

    fn without_stems() -> Bm25 {
        Bm25 { stemming: None, ..Bm25::default() }
    }

    #[test]
    fn what_is_not_known_yet_is_counted() {
        let part = part_of(&[("brewing tea", "Brewed teas"), ("rye bread", "")]);
        let bm25 = Lexical::default().bm25;
        let [words, headings] = [&part.words, &part.headings].map(Postings::rows);
        assert_eq!((6, 2), (words, headings));
        assert_eq!((words, 0), part.unknown(&bm25, false));
        assert_eq!((words + headings, 2), part.unknown(&bm25, true));
        assert_eq!((0, 2), part.unknown(&without_stems(), true));
        part.sizes(&without_stems());
        assert_eq!((0, 0), part.unknown(&without_stems(), true));
        assert_eq!((words + headings, 2), part.unknown(&bm25, true));
        part.prepared();
        assert_eq!((0, 0), part.unknown(&bm25, true));
        let own = Bm25 { stopwords: Stopwords::none(), ..Lexical::default().bm25 };
        assert_eq!((0, 2), part.unknown(&own, true));
    }

    #[test]
    fn sizes_are_known_for_the_last_kinds() {
        let part = part_of(&[("tea", "Brewed teas"), ("bread", ""), ("tea", "The tea")]);
        let words = |word: &str| Stopwords::of_terms([word.into()].into());
        let kinds: Vec<Bm25> = ["a", "tea", "teas", "brewed", "rye"]
            .map(|word| Bm25 { stopwords: words(word), ..without_stems() })
            .into();
        let sizes: Vec<Vec<u32>> =
            kinds.iter().map(|kind| part.sizes(kind).iter().collect()).collect();
        let expected = [[2, 0, 2], [2, 0, 1], [1, 0, 2], [1, 0, 2], [2, 0, 2]];
        assert_eq!(expected.map(Vec::from), *sizes);
        let known = |kind| part.known_sizes(kind).map(|sizes| sizes.iter().collect::<Vec<_>>());
        assert_eq!(None, known(&kinds[0]));
        for (kind, sizes) in kinds.iter().zip(sizes).skip(1) {
            assert_eq!(Some(sizes), known(kind));
        }
    }

    #[test]
    fn a_part_has_the_bytes_of_its_postings() {
        let part = part_of(&[("brewing tea", "Brewed teas")]);
        let bytes = part.words.bytes() + part.headings.bytes() + part.runs.bytes();
        assert_eq!(bytes, part.bytes());
        assert!(bytes > 40, "{bytes}");
    }

    /// Keywords of a title count where the text has any, of whatever kind.
    #[test]
    fn keywords_of_titles_need_one_in_the_text() {
        let is_keyword = |text: &str, title: &str, term: &str| {
            let part = part_of(&[(text, title)]);
            let mut found = Vec::new();
            let list = part.words.find(term.as_bytes()).expect("it is a word of it");
            list.for_each(|posting| found.push(posting.is_keyword));
            found == [true]
        };
        for (text, expected) in
            [("leaves", true), ("rye-bread", true), ("", false), ("-- a", false), ("of the", false)]
        {
            assert_eq!(expected, is_keyword(text, "tea", "tea"), "{text:?}");
        }
        assert!(is_keyword("tea", "", "tea"));
        assert!(!is_keyword("rye-bread", "", "rye"));
    }

    /// What a file has is taken if it has a figure for each row.
    #[test]
    fn figures_of_a_file_are_taken_if_they_are_as_many() {
        let chunks = [("brewing tea", "Brewed teas"), ("rye bread", "")];
        let bm25 = Lexical::default().bm25;
        let [words, headings, sizes] = part_of(&chunks).prepared().expect("it has stems");
        let part = part_of(&chunks);
        part.remember([words.clone(), headings.clone(), sizes.clone()]);
        assert_eq!((0, 0), part.unknown(&bm25, true));
        let less = |numbers: &Numbers| {
            let less: Vec<u32> = numbers.iter().skip(1).collect();
            Numbers::Memory(less.into())
        };
        let part = part_of(&chunks);
        part.remember([less(&words), headings.clone(), sizes.clone()]);
        assert_eq!((6, 0), part.unknown(&bm25, true));
        let part = part_of(&chunks);
        part.remember([words, less(&headings), less(&sizes)]);
        assert_eq!((2, 2), part.unknown(&bm25, true));
    }

    /// After chunks are taken out and put in, the rows by stem that were taken
    /// over are those that sorting finds; where they move, they are kept.
    #[test]
    fn stems_are_taken_over() {
        let part = |texts: &[(u32, String)]| {
            let mut builder = Builder::new(0);
            for (chunk, text) in texts {
                builder.pass_to(*chunk);
                builder.add(text.as_str().into(), "Brewed teas".into());
            }
            builder.finish(&[8; 300])
        };
        let text =
            |i: u32| format!("brew{i} brews{} brewing leaves{i} leaf tea{} teas", i % 9, i / 2);
        let before = part(&(0..300).map(|i| (i, text(i))).collect::<Vec<_>>());
        before.prepared();
        let english = Lexical::default().bm25.stemming.expect("it has stems");
        for every in [2, 7, 50, 299] {
            let new: Vec<_> =
                (0..300_u32).step_by(every).map(|i| (i, format!("a{i} brewer{i}"))).collect();
            let place = |chunk: u32| (!(chunk as usize).is_multiple_of(every)).then_some(chunk);
            let changed = before.rearranged(0, 300, place, Some(&part(&new)), &[8; 300]);
            assert_eq!(every > 2, changed.words.unstemmed(english) == 0);
            for changed in [changed.moved(7), changed] {
                for postings in changed.all() {
                    let fresh = Postings {
                        stems: Shared::new(),
                        frequencies: Shared::new(),
                        rows: postings.rows.clone(),
                        terms: postings.terms.clone(),
                        lists: postings.lists.clone(),
                        ..*postings
                    };
                    let rows =
                        |postings: &Postings| postings.by_stem(english).iter().collect::<Vec<_>>();
                    assert_eq!(rows(&fresh), rows(postings));
                }
            }
        }
    }
}
