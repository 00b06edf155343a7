//! Writing postings: while chunks are read, and from other postings.

use std::collections::HashMap;

use super::block::{Posting, put_posting};
use super::list::put_list;
use super::postings::{Postings, ROW};
use crate::fork::Shared;
use crate::stopwords;

/// A list that is being written. The last posting may still change.
#[derive(Debug)]
pub(super) struct Pending {
    bytes: Vec<u8>,
    pub(super) frequency: u32,
    /// The chunk behind the last one that was written.
    next: u32,
    last: Posting,
}

impl Pending {
    pub(super) fn new(first: u32) -> Self {
        let last = Posting { chunk: 0, count: 0, is_keyword: false };
        Self { bytes: Vec::new(), frequency: 0, next: first, last }
    }

    /// Counts the term in `chunk` once more, and notes where it is a keyword.
    fn add(&mut self, chunk: u32, is_keyword: bool) {
        if self.last.count == 0 || self.last.chunk != chunk {
            self.flush();
            self.last.chunk = chunk;
        }
        self.last.count = self.last.count.saturating_add(1);
        self.last.is_keyword |= is_keyword;
    }

    fn flush(&mut self) {
        if self.last.count > 0 {
            self.push(self.last);
            self.last = Posting { chunk: 0, count: 0, is_keyword: false };
        }
    }

    pub(super) fn push(&mut self, posting: Posting) {
        put_posting(posting, self.next, &mut self.bytes);
        self.frequency += 1;
        self.next = posting.chunk.wrapping_add(1);
    }
}

/// Makes postings of the terms of chunks, one chunk after another.
#[derive(Debug)]
pub(crate) struct Builder {
    first: u32,
    next: u32,
    /// Whether English stopwords get no list.
    skips_stopwords: bool,
    /// None for a word that gets no list.
    lists: HashMap<Box<[u8]>, Option<Pending>>,
}

impl Builder {
    /// Returns a builder whose first chunk will be `first`.
    pub(crate) fn new(first: u32) -> Self {
        Self { first, next: first, skips_stopwords: false, lists: HashMap::new() }
    }

    /// Does the same, for a builder that leaves out English stopwords.
    pub(crate) fn without_stopwords(first: u32) -> Self {
        Self { skips_stopwords: true, ..Self::new(first) }
    }

    /// Passes over the chunks in front of `chunk`, which is added next.
    pub(crate) fn pass_to(&mut self, chunk: u32) {
        self.next = chunk;
    }

    /// Counts a term in the next chunk, where it may be a keyword.
    #[inline]
    pub(crate) fn count(&mut self, term: &[u8], is_keyword: bool) {
        if let Some(list) = self.lists.get_mut(term) {
            if let Some(list) = list {
                list.add(self.next, is_keyword);
            }
            return;
        }
        let has_list = !(self.skips_stopwords && stopwords::is_english(term));
        let list = has_list.then(|| {
            let mut list = Pending::new(self.first);
            list.add(self.next, is_keyword);
            list
        });
        self.lists.insert(term.into(), list);
    }

    /// Passes to the chunk behind the next one.
    pub(crate) fn pass(&mut self) {
        self.next += 1;
    }

    /// Returns the postings. `lengths` has those of all chunks of the corpus.
    pub(crate) fn finish(self, lengths: &[u32]) -> Postings {
        let mut writer = Writer::new(self.first, self.next - self.first, lengths);
        let lists = self.lists.into_iter();
        let mut lists: Vec<_> = lists.filter_map(|(term, list)| Some((term, list?))).collect();
        lists.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (term, mut list) in lists {
            list.flush();
            writer.write(&term, &list);
        }
        writer.finish()
    }
}

/// Writes rows, terms and lists, in the order of the terms.
#[derive(Debug)]
pub(super) struct Writer<'l> {
    first: u32,
    chunks: u32,
    lengths: &'l [u32],
    rows: Vec<u8>,
    terms: Vec<u8>,
    lists: Vec<u8>,
}

impl<'l> Writer<'l> {
    pub(super) fn new(first: u32, chunks: u32, lengths: &'l [u32]) -> Self {
        Self { first, chunks, lengths, rows: Vec::new(), terms: Vec::new(), lists: Vec::new() }
    }

    /// Writes the row of a term, and returns which it is.
    pub(super) fn write(&mut self, term: &[u8], list: &Pending) -> u32 {
        self.terms.extend_from_slice(term);
        put_list(&list.bytes, list.frequency, self.first, self.lengths, &mut self.lists);
        self.rows.extend((self.terms.len() as u64).to_le_bytes());
        self.rows.extend((self.lists.len() as u64).to_le_bytes());
        self.rows.extend(list.frequency.to_le_bytes());
        u32::try_from(self.rows.len() / ROW - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn finish(self) -> Postings {
        let Self { first, chunks, mut rows, mut terms, mut lists, .. } = self;
        rows.shrink_to_fit();
        terms.shrink_to_fit();
        lists.shrink_to_fit();
        Postings {
            first,
            chunks,
            rows: rows.into(),
            terms: terms.into(),
            lists: lists.into(),
            stems: Shared::new(),
            frequencies: Shared::new(),
        }
    }
}
