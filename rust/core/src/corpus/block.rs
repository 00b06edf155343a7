//! The postings of a block, in bytes.
//!
//! Those of a short list are written as LEB128, in bytes of seven bits. For each
//! chunk there is its gap, which is the number of chunks that were passed over
//! since the one before, times four, plus two if the term is a keyword there,
//! plus one if it occurs more than once; then the count less two follows.
//!
//! A block of a longer list begins with the number of its postings, the bits of
//! its largest gap and those of its largest count less one, a byte each. Then
//! each posting has as many bits, from the lowest one on: one that says whether
//! the term is a keyword, the gap, and the count less one. So each is read by one
//! load, and no branch depends on its size. Where a load is too small the first
//! byte is 0, and the postings follow as in a short list.

/// The number of chunks in a block of a list.
pub(super) const BLOCK: u32 = 128;

/// A posting has at most so many bits, so that eight bytes have it all.
const WIDEST: u32 = 57;

/// So many zeros follow the last block, so that eight bytes are there for each
/// posting.
pub(super) const PADDING: [u8; 7] = [0; 7];

/// A chunk that has a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) chunk: u32,
    pub(super) count: u32,
    /// Whether the term is a keyword of the chunk: a whole word between
    /// whitespace, punctuation aside.
    pub(super) is_keyword: bool,
}

/// The postings of a block that are left.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entries<'a> {
    Few(&'a [u8]),
    Packed(Packed<'a>),
}

/// Postings of the same size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    bytes: &'a [u8],
    /// How many there are.
    count: u8,
    /// The bit where the first one begins.
    from: usize,
    /// How many bits a gap has, and a posting.
    gap: u32,
    size: u32,
}

impl<'a> Entries<'a> {
    pub(super) const NONE: Self = Self::Few(&[]);

    /// Returns the block of a longer list that `bytes` begin with, which has so
    /// many bytes; none where there is damage.
    pub(super) fn of_block(bytes: &'a [u8], size: usize) -> Self {
        match bytes.get(..size) {
            Some([0, few @ ..]) => Self::Few(few),
            Some([count, gap, more, ..]) => {
                let (gap, more) = (u32::from(*gap), u32::from(*more));
                let size = 1 + gap + more;
                if gap > 32 || more > 32 || size > WIDEST {
                    return Self::NONE;
                }
                Self::Packed(Packed { bytes: &bytes[3..], count: *count, from: 0, gap, size })
            }
            _ => Self::NONE,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(bytes) => bytes.is_empty(),
            Self::Packed(packed) => packed.count == 0,
        }
    }

    /// Returns the first posting, whose gap is counted from `next`.
    #[inline]
    pub(super) fn first(&self, next: u32) -> Option<Posting> {
        match *self {
            Self::Few(mut bytes) => take_posting(&mut bytes, next),
            Self::Packed(packed) => packed.first(next),
        }
    }

    /// Calls `visit` with each posting in front of chunk `end`, and passes it.
    /// The gap of the first one is counted from `next`, which becomes that of the
    /// first one that is left.
    #[inline]
    pub(super) fn read_until(&mut self, next: &mut u32, end: u32, visit: impl FnMut(Posting)) {
        match self {
            Self::Few(bytes) => read_few(bytes, next, end, visit),
            Self::Packed(packed) => packed.read_until(next, end, visit),
        }
    }
}

impl Packed<'_> {
    #[inline]
    fn first(&self, next: u32) -> Option<Posting> {
        if self.count == 0 {
            return None;
        }
        let at = self.from / 8;
        let bytes = self.bytes.get(at..at + 8)?.first_chunk()?;
        let posting = u64::from_le_bytes(*bytes) >> (self.from % 8);
        let low = |number: u64, bits: u32| {
            #[allow(clippy::cast_possible_truncation)] // at most 32 bits
            let low = (number & ((1 << bits) - 1)) as u32;
            low
        };
        Some(Posting {
            chunk: next.wrapping_add(low(posting >> 1, self.gap)),
            count: low(posting >> (1 + self.gap), self.size - 1 - self.gap).saturating_add(1),
            is_keyword: posting & 1 != 0,
        })
    }

    #[inline]
    fn read_until(&mut self, next: &mut u32, end: u32, mut visit: impl FnMut(Posting)) {
        let (mut rest, mut from) = (*self, *next);
        while let Some(posting) = rest.first(from) {
            if posting.chunk >= end {
                (*self, *next) = (rest, from);
                return;
            }
            visit(posting);
            from = posting.chunk.wrapping_add(1);
            rest.from += rest.size as usize;
            rest.count -= 1;
        }
        rest.count = 0; // what is cut off is damaged
        (*self, *next) = (rest, from);
    }
}

#[inline]
fn read_few(bytes: &mut &[u8], next: &mut u32, end: u32, mut visit: impl FnMut(Posting)) {
    let (mut rest, mut from) = (*bytes, *next);
    let mut behind = rest;
    while let Some(posting) = take_posting(&mut behind, from) {
        if posting.chunk >= end {
            (*bytes, *next) = (rest, from);
            return;
        }
        visit(posting);
        (rest, from) = (behind, posting.chunk.wrapping_add(1));
    }
    (*bytes, *next) = (&[], from);
}

/// Takes a posting of a short list off the front of `bytes`; None where there is
/// none. Its gap is counted from `next`.
#[inline]
fn take_posting(bytes: &mut &[u8], next: u32) -> Option<Posting> {
    let head = take(bytes)?;
    let count = if head & 1 == 0 { 1 } else { take(bytes)?.saturating_add(2) };
    #[allow(clippy::cast_possible_truncation)] // a damaged file's may be any
    let gap = (head >> 2) as u32;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    Some(Posting { chunk: next.wrapping_add(gap), count, is_keyword: head & 2 != 0 })
}

/// Appends a posting of a short list. Its gap is counted from `next`.
pub(super) fn put_posting(posting: Posting, next: u32, bytes: &mut Vec<u8>) {
    let Posting { chunk, count, is_keyword } = posting;
    let gap = u64::from(chunk.wrapping_sub(next));
    let head = gap << 2 | u64::from(is_keyword) << 1 | u64::from(count > 1);
    put(head, bytes);
    if count > 1 {
        put(u64::from(count - 2), bytes);
    }
}

/// Appends a block of a longer list. The first gap is counted from `next`.
pub(super) fn put_block(postings: &[Posting], next: u32, bytes: &mut Vec<u8>) {
    let each = || {
        let mut next = next;
        postings.iter().map(move |posting| {
            let gap = posting.chunk.wrapping_sub(next);
            next = posting.chunk.wrapping_add(1);
            (gap, posting)
        })
    };
    let (gaps, more) = each()
        .fold((0, 0), |(gaps, more), (gap, posting)| (gaps | gap, more | (posting.count - 1)));
    let [gap_bits, more_bits] = [gaps, more].map(|number| 32 - number.leading_zeros());
    let size = 1 + gap_bits + more_bits;
    if size > WIDEST {
        bytes.push(0);
        for (gap, posting) in each() {
            put_posting(*posting, posting.chunk.wrapping_sub(gap), bytes);
        }
        return;
    }
    #[allow(clippy::cast_possible_truncation)] // at most 128, and 32
    bytes.extend([postings.len() as u8, gap_bits as u8, more_bits as u8]);
    let start = bytes.len();
    let end = start + (postings.len() * size as usize).div_ceil(8);
    bytes.resize(end + PADDING.len(), 0);
    let mut at = 0;
    for (gap, posting) in each() {
        let more = u64::from(posting.count - 1);
        let bits = u64::from(posting.is_keyword) | u64::from(gap) << 1 | more << (1 + gap_bits);
        if let Some(here) = bytes[start + at / 8..].first_chunk_mut() {
            *here = (u64::from_le_bytes(*here) | bits << (at % 8)).to_le_bytes();
        }
        at += size as usize;
    }
    bytes.truncate(end);
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

/// Appends a number.
fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        #[allow(clippy::cast_possible_truncation)] // the low bits
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[allow(clippy::cast_possible_truncation)] // below 0x80
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns postings whose gaps and counts have so many bits.
    fn postings(count: u32, gap_bits: u32, count_bits: u32) -> Vec<Posting> {
        let mut state = 5_u64;
        let mut next = move |bits: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from((state >> 31) & ((1 << bits) - 1)).expect("at most 32 bits")
        };
        let mut behind = 7_u32;
        let mut posting = |_| {
            let chunk = behind.wrapping_add(next(gap_bits));
            behind = chunk.wrapping_add(1);
            let count = 1 + next(count_bits).min(u32::MAX - 1);
            Posting { chunk, count, is_keyword: next(1) == 1 }
        };
        (0..count).map(&mut posting).collect()
    }

    fn read(mut entries: Entries<'_>) -> Vec<Posting> {
        let (mut found, mut next) = (Vec::new(), 7);
        while let Some(posting) = entries.first(next) {
            let mut here = Vec::new();
            entries.read_until(&mut next, posting.chunk.saturating_add(1), |one| here.push(one));
            assert_eq!([posting], *here);
            found.extend(here);
        }
        entries.read_until(&mut next, u32::MAX, |one| found.push(one));
        assert!(entries.is_empty());
        found
    }

    /// What is written in either form is read again, whatever its size.
    #[test]
    fn postings_come_back() {
        for count in [1, 2, 127, 128] {
            for (gaps, counts) in [(0, 0), (0, 3), (1, 0), (7, 2), (13, 8), (22, 32), (24, 31)] {
                let written = postings(count, gaps, counts);
                let mut bytes = Vec::new();
                put_block(&written, 7, &mut bytes);
                let size = bytes.len();
                assert_eq!(gaps + counts > WIDEST - 1, bytes[0] == 0, "{gaps} {counts} {count}");
                bytes.extend(PADDING);
                assert_eq!(written, read(Entries::of_block(&bytes, size)));
                let (mut few, mut next) = (Vec::new(), 7);
                for posting in &written {
                    put_posting(*posting, next, &mut few);
                    next = posting.chunk.wrapping_add(1);
                }
                assert_eq!(written, read(Entries::Few(&few)));
            }
        }
    }

    /// A posting of more bits than are read at once is written as one of a short
    /// list.
    #[test]
    fn wide_postings_come_back() {
        for (gap_bits, is_wide) in [(24, false), (25, true), (32, true)] {
            let gap = u32::MAX >> (32 - gap_bits);
            let chunk = 7_u32.wrapping_add(gap);
            let written = [Posting { chunk, count: u32::MAX, is_keyword: true }];
            let mut bytes = Vec::new();
            put_block(&written, 7, &mut bytes);
            assert_eq!(is_wide, bytes[0] == 0, "{gap_bits}");
            let size = bytes.len();
            bytes.extend(PADDING);
            assert_eq!(Some(written[0]), Entries::of_block(&bytes, size).first(7));
        }
    }

    /// The place in a block is kept between two calls.
    #[test]
    fn reading_goes_on_where_it_ended() {
        let written = postings(100, 6, 2);
        let mut bytes = Vec::new();
        put_block(&written, 7, &mut bytes);
        let size = bytes.len();
        bytes.extend(PADDING);
        let mut entries = Entries::of_block(&bytes, size);
        let (mut found, mut next) = (Vec::new(), 7);
        for end in (0..8_000).step_by(93) {
            entries.read_until(&mut next, end, |posting| found.push(posting));
            assert!(written.iter().take_while(|posting| posting.chunk < end).eq(&found));
        }
        assert!(entries.is_empty());
    }

    /// What is damaged ends, wherever it is cut off.
    #[test]
    fn damage_reads_as_less() {
        let written = postings(128, 9, 3);
        let mut bytes = Vec::new();
        put_block(&written, 7, &mut bytes);
        let size = bytes.len();
        for length in 0..size {
            assert!(Entries::of_block(&bytes[..length], size).is_empty());
            let found = read(Entries::of_block(&bytes[..length], length));
            assert!(found.len() < 128);
            assert!(written.starts_with(&found));
        }
        for (gap, more) in [(33, 0), (0, 33), (32, 25), (255, 255)] {
            let forged = [&[128, gap, more][..], &[7; 90]].concat();
            assert!(Entries::of_block(&forged, 93).is_empty(), "{gap} {more}");
        }
        assert_eq!(
            1,
            read(Entries::of_block(&[[1, 32, 24, 0], [0; 4], [0; 4]].concat(), 12)).len()
        );
    }
}
