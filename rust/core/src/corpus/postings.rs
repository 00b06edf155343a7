//! Postings: for each term the chunks that have it, and how often.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::block::Posting;
use super::list::List;
use super::storage::{Bytes, Numbers};
use super::writer::{Pending, Writer};
use crate::fork::Shared;
use crate::stem::Stemming;
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
    /// How many chunks have each stem, as far as that was asked for.
    pub(super) frequencies: Shared<Vec<(Stemming, Arc<[AtomicU32]>)>>,
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
        let row = u32::try_from(at).unwrap_or(u32::MAX);
        let list = List { frequency, first: self.first, row, bytes: self.lists.read(list) };
        (self.terms.read(term), list)
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

    /// Returns the lists of the terms with that stem, except stopwords.
    pub(crate) fn find_stem(
        &self,
        stem: &[u8],
        stemming: Stemming,
        stopwords: &Stopwords,
    ) -> Vec<List<'_>> {
        let rows = self.with_stem(&self.by_stem(stemming), stem, stemming).1;
        self.lists_at(&rows, stopwords)
    }

    /// Returns the lists of the terms in these rows, except stopwords.
    fn lists_at(&self, rows: &[u32], stopwords: &Stopwords) -> Vec<List<'_>> {
        let terms = rows.iter().map(|&row| self.entry(row as usize));
        terms.filter(|(term, _)| !stopwords.contains(term)).map(|(_, list)| list).collect()
    }

    /// Returns how many chunks have a term with that stem, except stopwords.
    /// That of several terms is found once.
    pub(super) fn frequency_of_stem(
        &self,
        stem: &[u8],
        stemming: Stemming,
        stopwords: &Stopwords,
    ) -> u32 {
        let (first, rows) = self.with_stem(&self.by_stem(stemming), stem, stemming);
        let lists = self.lists_at(&rows, stopwords);
        if let [] | [_] = lists.as_slice() {
            return lists.first().map_or(0, |list| list.frequency);
        }
        if lists.len() < rows.len() {
            return self.frequency_of(&lists); // for these stopwords only
        }
        let known = self.frequencies(stemming);
        let Some(known) = known.get(first) else { return 0 };
        match known.load(Ordering::Relaxed) {
            0 => {
                let found = self.frequency_of(&lists);
                known.store(found, Ordering::Relaxed);
                found
            }
            found => found,
        }
    }

    /// Returns how many chunks are in any of these lists.
    fn frequency_of(&self, lists: &[List<'_>]) -> u32 {
        let mut have = vec![0_u64; (self.chunks as usize).div_ceil(64)];
        let mut count = 0;
        for list in lists {
            list.for_each(|Posting { chunk, .. }| {
                let at = chunk.wrapping_sub(self.first) as usize;
                // A damaged file's list may name any chunk.
                if let Some(word) = have.get_mut(at / 64) {
                    let bit = 1 << (at % 64);
                    count += u32::from(*word & bit == 0);
                    *word |= bit;
                }
            });
        }
        count.min(self.chunks)
    }

    /// Returns the places for the frequencies of stems, each where the rows of a
    /// stem begin among those by stem; 0 stands for one that is not known.
    fn frequencies(&self, stemming: Stemming) -> Arc<[AtomicU32]> {
        let find = |known: &[(Stemming, Arc<[AtomicU32]>)]| {
            known.iter().find(|(other, _)| *other == stemming).map(|(_, found)| Arc::clone(found))
        };
        if let Some(found) = self.frequencies.get().and_then(|known| find(&known)) {
            return found;
        }
        let new: Arc<[AtomicU32]> = (0..self.rows()).map(|_| AtomicU32::new(0)).collect();
        self.frequencies.update(|known| {
            let mut known = known.cloned().unwrap_or_default();
            if find(&known).is_none() {
                known.push((stemming, Arc::clone(&new)));
            }
            known
        });
        new
    }

    /// Returns how many chunks have that one of these terms which most have.
    pub(super) fn least_frequency(
        &self,
        stem: &[u8],
        stemming: Stemming,
        stopwords: &Stopwords,
    ) -> u32 {
        let rows = self.with_stem(&self.by_stem(stemming), stem, stemming).1.into_iter();
        let rows = rows.map(|row| self.row(row as usize));
        let rows = rows.filter(|(term, ..)| !stopwords.contains(self.terms.read(term.clone())));
        rows.map(|(_, _, frequency)| frequency).max().unwrap_or_default()
    }

    /// Returns the stem of the term in a row.
    fn stem_of(&self, row: u32, stemming: Stemming) -> Cow<'_, [u8]> {
        stemming.of_term(self.term(row as usize))
    }

    /// Returns those of `rows`, which are by stem, that have this one,
    /// ascending, and where they begin.
    fn with_stem(&self, rows: &Numbers, stem: &[u8], stemming: Stemming) -> (usize, Vec<u32>) {
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
        (from, same)
    }

    /// Calls `visit` for each stem, without stopwords, with each chunk that has
    /// it; without stemming, for each term.
    pub(super) fn for_each_stem(
        &self,
        stemming: Option<Stemming>,
        stopwords: &Stopwords,
        mut visit: impl FnMut(u32),
    ) {
        let mut left = self.lists.len();
        let Some(stemming) = stemming else {
            for row in 0..u32::try_from(self.rows()).unwrap_or(u32::MAX) {
                self.for_each_of(&[row], stopwords, &mut left, &mut visit);
            }
            return;
        };
        let rows = self.by_stem(stemming);
        let (mut stem, mut same) = (Cow::Borrowed(&[][..]), Vec::new());
        for row in rows.iter() {
            let here = self.stem_of(row, stemming);
            if here != stem {
                self.for_each_of(&same, stopwords, &mut left, &mut visit);
                same.clear();
                stem = here;
            }
            same.push(row);
        }
        self.for_each_of(&same, stopwords, &mut left, &mut visit);
    }

    /// Calls `visit` with each chunk that has one of the terms in these rows,
    /// stopwords aside, once. The lists have at most `left` bytes, which becomes
    /// what is left of them: a forged file could have one list for many terms.
    fn for_each_of(
        &self,
        rows: &[u32],
        stopwords: &Stopwords,
        left: &mut usize,
        visit: &mut impl FnMut(u32),
    ) {
        let mut lists = self.lists_at(rows, stopwords);
        lists.retain(|list| self.spend(list, left).is_some());
        if let [list] = lists.as_slice() {
            return list.for_each(|found| visit(found.chunk));
        }
        let mut chunks = Vec::new();
        for list in &lists {
            list.for_each(|found| chunks.push(found.chunk));
        }
        chunks.sort_unstable();
        chunks.dedup();
        chunks.into_iter().for_each(visit);
    }

    /// Takes the bytes of a list off those that are left; None, and notes it,
    /// where there are not so many.
    fn spend(&self, list: &List<'_>, left: &mut usize) -> Option<()> {
        let rest = left.checked_sub(list.bytes.len());
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

    /// Returns the postings of a range from `first` on, with each chunk where
    /// `place` says, which keeps the order, and those of `more` among them. A
    /// chunk that has no place is left out. `lengths` has those of all chunks of
    /// the corpus.
    pub(crate) fn rearranged(
        &self,
        first: u32,
        chunks: u32,
        place: impl Fn(u32) -> Option<u32>,
        more: Option<&Self>,
        lengths: &[u32],
    ) -> Self {
        let mut writer = Writer::new(first, chunks, lengths);
        let mut others: Vec<Posting> = Vec::new();
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
                part.for_each(|found| others.push(found));
                j += 1;
            }
            let mut others = others.iter().copied().peekable();
            if let Some((_, part)) = left.as_ref().filter(|(left, _)| left == term) {
                if self.spend(part, &mut sizes.0).is_none() {
                    break;
                }
                part.for_each(|found| {
                    let Some(chunk) = place(found.chunk) else { return };
                    while let Some(other) = others.next_if(|other| other.chunk < chunk) {
                        list.push(other);
                    }
                    list.push(Posting { chunk, ..found });
                });
                i += 1;
            }
            others.for_each(|found| list.push(found));
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
            frequencies: Shared::new(),
        }
    }
}

#[cfg(all(test, feature = "stemming"))]
mod tests {
    use super::*;
    use crate::corpus::part::Builder;

    /// Each language has its own rows by stem, and its own frequencies.
    #[test]
    fn languages_are_kept_apart() {
        let mut builder = Builder::new(0);
        for text in ["brewing teas", "brewed tea", "tea", "brew", "brew"] {
            builder.add(text.into(), "".into());
        }
        let part = builder.finish(&[2, 2, 1, 1, 1]);
        let postings = &part.words;
        let [english, german] =
            ["english", "german"].map(|name| Stemming::of(name).expect("it is known"));
        let rows = [english, german].map(|language| postings.by_stem(language));
        assert_eq!([0, 0], [english, german].map(|language| postings.unstemmed(language)));
        for (language, rows) in [english, german].into_iter().zip(rows) {
            let known = postings.known_by_stem(language).expect("it was asked for");
            assert!(rows.iter().eq(known.iter()));
        }
        let of = |language| postings.frequencies(language);
        assert!(Arc::ptr_eq(&of(english), &of(english)) && Arc::ptr_eq(&of(german), &of(german)));
        assert!(!Arc::ptr_eq(&of(english), &of(german)));
        let none = Stopwords::none();
        let [own, other] =
            ["brewed", "brew"].map(|word| Stopwords::of_terms([word.as_bytes().to_vec()].into()));
        for _ in 0..2 {
            assert_eq!(3, postings.frequency_of_stem(b"brew", english, &own));
            assert_eq!(2, postings.frequency_of_stem(b"brew", english, &other));
            assert_eq!(4, postings.frequency_of_stem(b"brew", english, &none));
            assert_eq!(3, postings.frequency_of_stem(b"tea", english, &none));
        }
        let Postings { rows, terms, lists, .. } = postings;
        let sizes = [rows.len(), terms.len(), lists.len()];
        assert!(sizes.iter().all(|&size| size > 0));
        assert_eq!(sizes.iter().sum::<usize>(), postings.bytes());
    }
}
