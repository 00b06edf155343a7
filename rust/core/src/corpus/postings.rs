//! Postings: for each term the chunks that have it, and how often.
//!
//! A list is written as LEB128, in bytes of seven bits. For each chunk it has
//! the number of chunks that were passed over since the one before, times two,
//! plus one if the term occurs more than once; then the count less two follows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::storage::{Bytes, Numbers};
use crate::fork::Shared;
use crate::stem::Stemming;
use crate::stopwords;
use crate::stopwords::Stopwords;

/// The size of the row of a term: where the term ends and where its list ends,
/// eight bytes each, and how many chunks have it, four bytes; little-endian.
pub(super) const ROW: usize = 20;

/// The postings of a range of chunks.
#[derive(Debug)]
pub(crate) struct Postings {
    /// The first chunk, and the number of chunks.
    pub(super) first: u32,
    pub(super) chunks: u32,
    /// The rows, sorted by term.
    pub(super) rows: Bytes,
    pub(super) terms: Bytes,
    pub(super) lists: Bytes,
    /// The rows by stem, once stems were asked for.
    pub(super) stems: Shared<Vec<(Stemming, Numbers)>>,
}

/// The chunks that have a term.
#[derive(Clone, Debug)]
pub(crate) struct List<'a> {
    pub(super) frequency: u32,
    entries: Entries<'a>,
}

#[derive(Clone, Debug)]
enum Entries<'a> {
    Written(&'a [u8]),
    /// Each chunk and how often it has the term.
    Read(Vec<(u32, u32)>),
}

impl Postings {
    pub(crate) fn bytes(&self) -> usize {
        self.rows.len() + self.terms.len() + self.lists.len()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.len() / ROW
    }

    /// Returns the row at `at`: where the term is, where its list is, and how
    /// many chunks have it. All are empty where there is no row, or damage.
    fn row(&self, at: usize) -> (Range<usize>, Range<usize>, u32) {
        // The row in front says where term and list start.
        let from = at.saturating_sub(1).saturating_mul(ROW);
        let rows = self.rows.read(from..at.saturating_add(1).saturating_mul(ROW));
        let Some((before, row)) = rows.split_last_chunk::<ROW>() else { return (0..0, 0..0, 0) };
        let long = |row: &[u8], from: usize| {
            let bytes = row.get(from..from + 8).unwrap_or(&[0; 8]);
            let bytes = bytes.try_into().expect("eight bytes");
            usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
        };
        let frequency = u32::from_le_bytes(row[16..].try_into().expect("four bytes"));
        (
            long(before, 0)..long(row, 0),
            long(before, 8)..long(row, 8),
            frequency.min(self.chunks), // a forged row may have any number
        )
    }

    /// Returns the term at `at`.
    fn term(&self, at: usize) -> &[u8] {
        self.terms.read(self.row(at).0)
    }

    /// Returns the term at `at` and its list.
    pub(super) fn entry(&self, at: usize) -> (&[u8], List<'_>) {
        let (term, list, frequency) = self.row(at);
        let entries = Entries::Written(self.lists.read(list));
        (self.terms.read(term), List { frequency, entries })
    }

    /// Returns the list of `term`, if it has one.
    pub(crate) fn find(&self, term: &[u8]) -> Option<List<'_>> {
        let (here, list) = self.entry_from(term)?;
        (here == term).then_some(list)
    }

    /// Returns the first term that is not in front of `term`, and its list.
    pub(super) fn entry_from(&self, term: &[u8]) -> Option<(&[u8], List<'_>)> {
        let (mut from, mut to) = (0, self.rows());
        while from < to {
            let middle = from.midpoint(to);
            if self.term(middle) < term { from = middle + 1 } else { to = middle }
        }
        (from < self.rows()).then(|| self.entry(from))
    }

    /// Returns the list of the terms with that stem, except stopwords.
    pub(crate) fn find_stem(
        &self,
        stem: &[u8],
        stemming: Stemming,
        stopwords: &Stopwords,
    ) -> Option<List<'_>> {
        let rows = self.with_stem(&self.by_stem(stemming), stem, stemming);
        self.union(&rows, stopwords, &mut self.lists.len())
    }

    /// Returns how many chunks have that one of these terms which most have.
    pub(super) fn least_frequency(
        &self,
        stem: &[u8],
        stemming: Stemming,
        stopwords: &Stopwords,
    ) -> u32 {
        let rows = self.with_stem(&self.by_stem(stemming), stem, stemming).into_iter();
        let rows = rows.map(|row| self.row(row as usize));
        let rows = rows.filter(|(term, ..)| !stopwords.contains(self.terms.read(term.clone())));
        rows.map(|(_, _, frequency)| frequency).max().unwrap_or_default()
    }

    /// Returns the stem of the term in a row.
    fn stem_of(&self, row: u32, stemming: Stemming) -> Cow<'_, [u8]> {
        stemming.of_term(self.term(row as usize))
    }

    /// Returns those of `rows`, which are by stem, that have this one,
    /// ascending.
    fn with_stem(&self, rows: &Numbers, stem: &[u8], stemming: Stemming) -> Vec<u32> {
        let (mut from, mut to) = (0, rows.len());
        while from < to {
            let middle = from.midpoint(to);
            let row = rows.get(middle).unwrap_or(u32::MAX);
            if *self.stem_of(row, stemming) < *stem { from = middle + 1 } else { to = middle }
        }
        let mut same: Vec<u32> = Vec::new();
        for row in (from..rows.len()).map_while(|at| rows.get(at)) {
            if *self.stem_of(row, stemming) != *stem {
                break;
            }
            if same.last().is_some_and(|&last| row <= last) {
                self.rows.contradict();
                break;
            }
            same.push(row);
        }
        same
    }

    /// Calls `visit` with the list of each stem, without stopwords; without
    /// stemming, of each term.
    pub(super) fn for_each_stem(
        &self,
        stemming: Option<Stemming>,
        stopwords: &Stopwords,
        mut visit: impl FnMut(&List<'_>),
    ) {
        let mut left = self.lists.len();
        let Some(stemming) = stemming else {
            let rows = 0..u32::try_from(self.rows()).unwrap_or(u32::MAX);
            let lists = rows.map(|row| self.union(&[row], stopwords, &mut left));
            return lists.flatten().for_each(|list| visit(&list));
        };
        let rows = self.by_stem(stemming);
        let (mut stem, mut same) = (Cow::Borrowed(&[][..]), Vec::new());
        let mut visit =
            |same: &[u32]| self.union(same, stopwords, &mut left).iter().for_each(&mut visit);
        for row in rows.iter() {
            let here = self.stem_of(row, stemming);
            if here != stem {
                visit(&same);
                same.clear();
                stem = here;
            }
            same.push(row);
        }
        visit(&same);
    }

    /// Returns the list of the chunks that have one of the terms in these rows,
    /// stopwords aside; None where there is none. The lists have at most `left`
    /// bytes, which becomes what is left of them: a forged file could have one
    /// list for many terms.
    fn union(&self, rows: &[u32], stopwords: &Stopwords, left: &mut usize) -> Option<List<'_>> {
        let mut lists = Vec::with_capacity(rows.len());
        for &row in rows {
            let (term, list) = self.entry(row as usize);
            if !stopwords.contains(term) {
                self.spend(&list, left)?;
                lists.push(list);
            }
        }
        if lists.len() < 2 {
            return lists.pop();
        }
        let mut counts: Vec<(u32, u32)> = Vec::new();
        for list in &lists {
            self.read(list, |chunk, count| counts.push((chunk, count)));
        }
        counts.sort_by_key(|(chunk, _)| *chunk); // the lists are sorted, so this sort merges them
        counts.dedup_by(|(chunk, count), (kept, sum)| {
            if chunk == kept {
                *sum = sum.saturating_add(*count);
            }
            chunk == kept
        });
        let frequency = u32::try_from(counts.len()).unwrap_or(u32::MAX).min(self.chunks);
        Some(List { frequency, entries: Entries::Read(counts) })
    }

    /// Takes the bytes of a list off those that are left; None, and notes it,
    /// where there are not so many.
    fn spend(&self, list: &List<'_>, left: &mut usize) -> Option<()> {
        let Entries::Written(bytes) = list.entries else { return Some(()) };
        let rest = left.checked_sub(bytes.len());
        if rest.is_none() {
            self.lists.contradict();
        }
        *left = rest?;
        Some(())
    }

    /// Returns the rows, sorted by the stems of their terms. Those of a
    /// language are made when first asked for.
    pub(super) fn by_stem(&self, stemming: Stemming) -> Numbers {
        if let Some(rows) = self.known_by_stem(stemming) {
            return rows;
        }
        let rows = u32::try_from(self.rows()).unwrap_or(u32::MAX);
        let mut sorted: Vec<_> = (0..rows).map(|row| (self.stem_of(row, stemming), row)).collect();
        sorted.sort_unstable();
        let rows = Numbers::Memory(sorted.into_iter().map(|(_, row)| row).collect());
        self.stems.update(|known| {
            let mut known = known.cloned().unwrap_or_default();
            // Another thread may have made them too.
            known.retain(|(other, _)| *other != stemming);
            known.push((stemming, rows.clone()));
            known
        });
        rows
    }

    fn known_by_stem(&self, stemming: Stemming) -> Option<Numbers> {
        let known = self.stems.get()?;
        known.iter().find(|(other, _)| *other == stemming).map(|(_, rows)| rows.clone())
    }

    /// Returns how many terms must still be stemmed when stems are asked for.
    pub(crate) fn unstemmed(&self, stemming: Stemming) -> usize {
        if self.known_by_stem(stemming).is_some() { 0 } else { self.rows() }
    }

    /// Calls `visit` with each chunk of a list and how often it has the term.
    #[inline]
    pub(crate) fn read(&self, list: &List<'_>, mut visit: impl FnMut(u32, u32)) {
        let mut bytes = match &list.entries {
            Entries::Written(bytes) => *bytes,
            Entries::Read(counts) => {
                return counts.iter().for_each(|&(chunk, count)| visit(chunk, count));
            }
        };
        let mut chunk = self.first;
        while let Some(head) = take(&mut bytes) {
            let count = if head & 1 == 0 { Some(1) } else { take(&mut bytes) };
            #[allow(clippy::cast_possible_truncation)] // half of 33 bits
            let gap = (head >> 1) as u32;
            chunk = chunk.wrapping_add(gap);
            let more = if head & 1 == 0 { 0 } else { 2 };
            let Some(count) = count else { return };
            visit(chunk, u32::try_from(count + more).unwrap_or(u32::MAX));
            chunk = chunk.wrapping_add(1);
        }
    }

    /// Returns the postings of a range from `first` on, with each chunk where
    /// `place` says, which keeps the order, and those of `more` among them. A
    /// chunk that has no place is left out.
    pub(crate) fn rearranged(
        &self,
        first: u32,
        chunks: u32,
        place: impl Fn(u32) -> Option<u32>,
        more: Option<&Self>,
    ) -> Self {
        let mut writer = Writer::new(first, chunks);
        let mut others: Vec<(u32, u32)> = Vec::new();
        let (mut i, mut j) = (0, 0);
        // Where each row goes, and the rows of other terms.
        let (mut places, mut new) = (vec![None; self.rows()], Vec::new());
        let mut sizes = (self.lists.len(), more.map_or(0, |more| more.lists.len()));
        loop {
            let left = (i < self.rows()).then(|| self.entry(i));
            let right = more.filter(|more| j < more.rows()).map(|more| (more, more.entry(j)));
            let term = match (&left, &right) {
                (Some((left, _)), Some((_, (right, _)))) => left.min(right),
                (Some((term, _)), None) | (None, Some((_, (term, _)))) => term,
                (None, None) => break,
            };
            let mut list = Pending::new(first);
            let own = left.as_ref().filter(|(left, _)| left == term).map(|_| i);
            others.clear();
            if let Some((more, (_, part))) = right.as_ref().filter(|(_, (right, _))| right == term)
            {
                if more.spend(part, &mut sizes.1).is_none() {
                    break;
                }
                more.read(part, |chunk, count| others.push((chunk, count)));
                j += 1;
            }
            let mut others = others.iter().copied().peekable();
            if let Some((_, part)) = left.as_ref().filter(|(left, _)| left == term) {
                if self.spend(part, &mut sizes.0).is_none() {
                    break;
                }
                self.read(part, |chunk, count| {
                    let Some(chunk) = place(chunk) else { return };
                    while let Some((other, count)) = others.next_if(|(other, _)| *other < chunk) {
                        list.push(other, count);
                    }
                    list.push(chunk, count);
                });
                i += 1;
            }
            others.for_each(|(chunk, count)| list.push(chunk, count));
            if list.frequency > 0 {
                let row = writer.write(term, &list);
                match own {
                    Some(own) => places[own] = Some(row),
                    None => new.push(row),
                }
            }
        }
        let postings = writer.finish();
        postings.take_stems(self, &places, &new);
        postings
    }

    /// Takes over the rows by stem of other postings, whose rows are at `places`
    /// now, and puts the `new` rows among them. Where many are new, the rows are
    /// sorted again once they are asked for.
    fn take_stems(&self, other: &Self, places: &[Option<u32>], new: &[u32]) {
        let Some(known) = other.stems.get().filter(|_| new.len() <= places.len() / 8) else {
            return;
        };
        let merged = known.iter().map(|(stemming, rows)| {
            let place = |row: u32| places.get(row as usize).copied().flatten();
            let rows: Vec<u32> = rows.iter().filter_map(place).collect();
            let key = |row: u32| (self.stem_of(row, *stemming), row);
            let mut new: Vec<_> = new.iter().map(|&row| key(row)).collect();
            new.sort_unstable();
            let (mut merged, mut rest) = (Vec::with_capacity(rows.len() + new.len()), &*rows);
            for found in new {
                let (before, behind) = rest.split_at(rest.partition_point(|&row| key(row) < found));
                merged.extend_from_slice(before);
                merged.push(found.1);
                rest = behind;
            }
            merged.extend_from_slice(rest);
            (*stemming, Numbers::Memory(merged.into()))
        });
        let merged = merged.collect();
        self.stems.update(|_| merged);
    }

    /// Returns the same postings for a range that begins at `first`.
    pub(crate) fn moved(&self, first: u32) -> Self {
        let stems = Shared::new();
        if let Some(known) = self.stems.get() {
            stems.update(|_| known.to_vec());
        }
        Self {
            first,
            chunks: self.chunks,
            rows: self.rows.clone(),
            terms: self.terms.clone(),
            lists: self.lists.clone(),
            stems,
        }
    }
}

/// Takes a number off the front of `bytes`; None where there is none.
#[inline]
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut number = u64::from(first & 0x7F);
    // A number has at most five bytes.
    for shift in [7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        #[allow(clippy::cast_possible_truncation)] // the low bits
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[allow(clippy::cast_possible_truncation)] // below 0x80
    bytes.push(number as u8);
}

/// A list that is being written. The count of its last chunk may still grow.
#[derive(Debug)]
struct Pending {
    bytes: Vec<u8>,
    frequency: u32,
    /// The chunk behind the last one that was written.
    next: u32,
    chunk: u32,
    count: u32,
}

impl Pending {
    fn new(first: u32) -> Self {
        Self { bytes: Vec::new(), frequency: 0, next: first, chunk: 0, count: 0 }
    }

    /// Counts the term in `chunk` once more.
    fn add(&mut self, chunk: u32) {
        if self.count == 0 || self.chunk != chunk {
            self.flush();
            self.chunk = chunk;
        }
        self.count = self.count.saturating_add(1);
    }

    fn flush(&mut self) {
        let count = std::mem::take(&mut self.count);
        if count > 0 {
            self.push(self.chunk, count);
        }
    }

    fn push(&mut self, chunk: u32, count: u32) {
        let gap = u64::from(chunk.wrapping_sub(self.next));
        put(gap << 1 | u64::from(count > 1), &mut self.bytes);
        if count > 1 {
            put(u64::from(count - 2), &mut self.bytes);
        }
        self.frequency += 1;
        self.next = chunk.wrapping_add(1);
    }
}

/// Makes postings of the terms of chunks, one chunk after another.
#[derive(Debug)]
pub(crate) struct Builder {
    first: u32,
    next: u32,
    /// Whether English stopwords get no list.
    skips_stopwords: bool,
    lists: HashMap<Box<[u8]>, Pending>,
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

    /// Counts a term in the next chunk.
    #[inline]
    pub(crate) fn count(&mut self, term: &[u8]) {
        if let Some(list) = self.lists.get_mut(term) {
            list.add(self.next);
        } else if !(self.skips_stopwords && stopwords::is_english(term)) {
            let mut list = Pending::new(self.first);
            list.add(self.next);
            self.lists.insert(term.into(), list);
        }
    }

    /// Passes to the chunk behind the next one.
    pub(crate) fn pass(&mut self) {
        self.next += 1;
    }

    pub(crate) fn finish(self) -> Postings {
        let mut writer = Writer::new(self.first, self.next - self.first);
        let mut lists: Vec<_> = self.lists.into_iter().collect();
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
struct Writer {
    first: u32,
    chunks: u32,
    rows: Vec<u8>,
    terms: Vec<u8>,
    lists: Vec<u8>,
}

impl Writer {
    fn new(first: u32, chunks: u32) -> Self {
        Self { first, chunks, rows: Vec::new(), terms: Vec::new(), lists: Vec::new() }
    }

    /// Writes the row of a term, and returns which it is.
    fn write(&mut self, term: &[u8], list: &Pending) -> u32 {
        self.terms.extend_from_slice(term);
        self.lists.extend_from_slice(&list.bytes);
        self.rows.extend((self.terms.len() as u64).to_le_bytes());
        self.rows.extend((self.lists.len() as u64).to_le_bytes());
        self.rows.extend(list.frequency.to_le_bytes());
        u32::try_from(self.rows.len() / ROW - 1).unwrap_or(u32::MAX)
    }

    fn finish(self) -> Postings {
        let Self { first, chunks, mut rows, mut terms, mut lists } = self;
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
        }
    }
}
