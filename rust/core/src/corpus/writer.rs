//! Writing postings: while chunks are read, and from other postings.

use std::collections::HashMap;

use super::postings::{BLOCK, Posting, Postings, ROW, take_posting};
use crate::fork::Shared;
use crate::stopwords;

fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        #[allow(clippy::cast_possible_truncation)] // the low bits
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[allow(clippy::cast_possible_truncation)] // below 0x80
    bytes.push(number as u8);
}

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

    pub(super) fn push(&mut self, Posting { chunk, count, is_keyword }: Posting) {
        let gap = u64::from(chunk.wrapping_sub(self.next));
        let head = gap << 2 | u64::from(is_keyword) << 1 | u64::from(count > 1);
        put(head, &mut self.bytes);
        if count > 1 {
            put(u64::from(count - 2), &mut self.bytes);
        }
        self.frequency += 1;
        self.next = chunk.wrapping_add(1);
    }

    /// Returns the table of the blocks of a list that starts at `first`.
    fn table(&self, first: u32, lengths: &[u32]) -> Vec<u8> {
        let mut table = Vec::new();
        let mut rest = self.bytes.as_slice();
        let mut next = first;
        while !rest.is_empty() {
            let (before, from) = (rest, next);
            let (mut most, mut least) = (0, u32::MAX);
            for _ in 0..BLOCK {
                let Some(found) = take_posting(&mut rest, next) else { break };
                most = most.max(found.count);
                least = least.min(lengths.get(found.chunk as usize).copied().unwrap_or_default());
                next = found.chunk.wrapping_add(1);
            }
            let size = before.len() - rest.len();
            for number in
                [u64::from(next.wrapping_sub(from)), size as u64, most.into(), least.into()]
            {
                put(number, &mut table);
            }
        }
        table
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
        if list.frequency > BLOCK {
            let table = list.table(self.first, self.lengths);
            put(table.len() as u64, &mut self.lists);
            self.lists.extend(table);
        }
        self.lists.extend_from_slice(&list.bytes);
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
