//! Which characters may be side by side in a token.
//!
//! No merge goes across two characters that are side by side in no token. So a
//! piece of a text can be counted in parts there. In Chinese and Japanese most
//! neighbours are such.

use std::iter::StepBy;
use std::ops::RangeInclusive;

use budgeteer_vocab::Vocabulary;

use crate::huge::Table;
use crate::text::decode;

/// The number of bits of the filter of pairs, as a power of two: an eighth of a
/// megabyte.
const BITS: u32 = 20;

/// How many values the last byte of a character has, if it is not the first.
const TAILS: u32 = 1 << 6;

/// The bits of a character that its last two bytes hold, if it has more.
const LAST_TWO: u32 = TAILS * TAILS - 1;

/// The pairs of characters that are side by side in a token, at least one of
/// them outside ASCII; it may hold more.
#[derive(Debug)]
pub(crate) struct Joins {
    /// A bit for each pair, by a hash.
    pairs: Table<u64>,
    /// The bits that tell the left characters of pairs apart: all, or those of
    /// the last two bytes where some tokens begin inside of a character.
    left: u32,
}

impl Joins {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Self {
        let crosses = |token: &[u8]| is_tail(token[0]) && !token.iter().copied().all(is_tail);
        let left = if vocabulary.iter().any(crosses) { LAST_TWO } else { u32::MAX };
        let mut joins = Self { pairs: Table::new(1 << (BITS - 6)), left };
        vocabulary.iter().filter(|token| !token.is_ascii()).for_each(|token| joins.add(token));
        joins
    }

    /// Adds the pairs of a token. What is in no text needs none, and may add
    /// any: what is no character.
    fn add(&mut self, token: &[u8]) {
        let mut at = token.iter().take_while(|&&byte| is_tail(byte)).count();
        if at == token.len() {
            return;
        }
        self.add_all(&token[..at], &token[at..]);
        let mut before = None;
        while at < token.len() {
            if at + size(token[at]) > token.len() {
                return self.add_all(&token[..at], &token[at..]);
            }
            let (code, size) = decode(token, at);
            if let Some(before) = before
                && (before >= 0x80 || code >= 0x80)
            {
                self.set(before, code);
            }
            (before, at) = (Some(code), at + size);
        }
    }

    /// Adds all pairs of characters of which the first ends with `head` or is
    /// its end, and the second is the beginning of `tail` or begins with it.
    fn add_all(&mut self, head: &[u8], tail: &[u8]) {
        let (Some(before), Some(behind)) = (self.last_of(head), first_of(tail)) else { return };
        for before in before {
            behind.clone().for_each(|behind| self.set(before, behind));
        }
    }

    fn set(&mut self, before: u32, behind: u32) {
        let place = self.place(before, behind);
        self.pairs[place / 64] |= 1 << (place % 64);
    }

    /// Returns the last character of `head`, as far as [`Self::left`] keeps it,
    /// or all that end as `head` does where that is inside of one.
    fn last_of(&self, head: &[u8]) -> Option<StepBy<RangeInclusive<u32>>> {
        let tails = head.iter().rev().take_while(|&&byte| is_tail(byte)).count();
        match *head {
            [] => None,
            [low] if tails == 1 => {
                Some((u32::from(low) % TAILS..=LAST_TWO).step_by(TAILS as usize))
            }
            [.., high, low] if tails == head.len() => {
                let code = u32::from(high) % TAILS * TAILS + u32::from(low) % TAILS;
                Some((code..=code).step_by(1))
            }
            _ => {
                let (code, last) = codes(&head[head.len() - 1 - tails..])?;
                let is_one = code == last;
                let code = code & self.left;
                is_one.then(|| (code..=code).step_by(1))
            }
        }
    }

    /// Returns the place of a pair. The low bits of a right character of four
    /// bytes do not matter.
    #[inline]
    fn place(&self, before: u32, behind: u32) -> usize {
        let behind = if behind < 0x1_0000 { behind } else { 0x1_0000 + behind / TAILS };
        let pair = u64::from(before & self.left) << 32 | u64::from(behind);
        (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
    }

    /// Returns whether two characters, at least one of them outside ASCII, may
    /// be side by side in a token.
    #[inline]
    pub(crate) fn may_join(&self, before: u32, behind: u32) -> bool {
        let place = self.place(before, behind);
        self.pairs[place / 64] >> (place % 64) & 1 == 1
    }

    /// Calls `visit` with where the parts of a text start and end: no merge goes
    /// across these places. They are between characters outside ASCII.
    #[inline]
    pub(crate) fn parts(&self, text: &[u8], mut visit: impl FnMut(usize, usize)) {
        debug_assert!(!text.is_empty(), "a pretoken has characters");
        let (mut before, mut at) = decode(text, 0);
        let mut start = 0;
        while at < text.len() {
            let (code, size) = decode(text, at);
            if before >= 0x80 && code >= 0x80 && !self.may_join(before, code) {
                visit(start, at);
                start = at;
            }
            (before, at) = (code, at + size);
        }
        visit(start, text.len());
    }
}

/// Returns the first character of `tail`, or all that begin so where that ends
/// inside of one.
fn first_of(tail: &[u8]) -> Option<StepBy<RangeInclusive<u32>>> {
    let (first, last) = codes(tail)?;
    // As far as `place` tells them apart.
    let step = if first < 0x1_0000 { 1 } else { TAILS };
    Some((first..=last).step_by(step as usize))
}

/// Returns the least and the greatest character that begins as `bytes` do; None
/// where none does.
fn codes(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = size(bytes[0]);
    let tails = bytes[1..].iter().take_while(|&&byte| is_tail(byte)).count();
    if tails >= size || tails + 1 < size.min(bytes.len()) {
        return None;
    }
    let with = |fill| {
        let mut whole = [fill; 4];
        whole[..=tails].copy_from_slice(&bytes[..=tails]);
        decode(&whole, 0).0
    };
    let least = if size == 4 { 0x1_0000 } else { 0 };
    Some((with(0x80).max(least), with(0xBF)))
}

/// Returns the number of bytes of a character with that first byte.
fn size(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

/// Returns whether a byte is one of a character, but not its first.
fn is_tail(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the vocabulary of these tokens, each of which merges from the
    /// left.
    fn vocabulary(tokens: &[&[u8]]) -> Vocabulary {
        let singles = std::array::from_fn(|byte| u8::try_from(byte).expect("there are 256"));
        let mut made: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut merges = Vec::new();
        for token in tokens {
            for end in 2..=token.len() {
                if !made.iter().any(|known| *known == token[..end]) {
                    let rank = |part: &[u8]| {
                        let place = made.iter().position(|known| known == part);
                        u32::try_from(place.expect("it is made")).expect("there are few")
                    };
                    merges.push((rank(&token[..end - 1]), rank(&token[end - 1..end])));
                    made.push(token[..end].to_vec());
                }
            }
        }
        Vocabulary::from_merges(&singles, merges, vec![], vec![]).expect("parts come first")
    }

    fn parts(joins: &Joins, text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        joins.parts(text.as_bytes(), |start, end| parts.push(text[start..end].to_string()));
        parts
    }

    #[test]
    fn a_text_is_parted_where_no_token_is() {
        let joins = Joins::new(&vocabulary(&["日本".as_bytes(), "é語".as_bytes()]));
        assert_eq!(["日本", "日", "é語", "語"], *parts(&joins, "日本日é語語"));
        assert_eq!(["日a本"], *parts(&joins, "日a本"));
    }

    /// The end of a character may be of many, and its beginning too.
    #[test]
    fn parts_of_characters() {
        assert_eq!(Some((0x61, 0x61)), codes(b"a"));
        assert_eq!(Some((0x6000, 0x6FFF)), codes(&[0xE6]));
        assert_eq!(Some((0x65C0, 0x65FF)), codes(&[0xE6, 0x97]));
        assert_eq!(Some((0x65E5, 0x65E5)), codes("\u{65e5}a".as_bytes()));
        assert_eq!(Some((0x1_0000, 0x3_FFFF)), codes(&[0xF0]));
        assert_eq!([None, None], [&[b'a', 0x97][..], &[0xE6, b'a']].map(codes));
        let steps = |tail: &[u8]| first_of(tail).expect("it is one").take(2).collect::<Vec<_>>();
        assert_eq!(vec![0x1_0000, 0x1_0040], steps(&[0xF0]));
        assert_eq!(vec![0xF000, 0xF001], steps(&[0xEF]));

        let joins = Joins::new(&vocabulary(&["\u{65e5}\u{672c}".as_bytes()]));
        let last = |head: &[u8]| joins.last_of(head).map(Iterator::collect::<Vec<_>>);
        assert_eq!([None, Some(vec![0x61])], [&b""[..], b"a"].map(last));
        let all = last(&[0x97]).expect("there are many");
        assert_eq!([0x17, 0x57], all[..2]);
        assert_eq!(Some(vec![0x5E5]), last(&[0x97, 0xA5]));
    }

    /// A token may begin or end inside of a character: it joins all that it may
    /// be in.
    #[test]
    fn parts_of_characters_join() {
        // 日 is E6 97 A5, 本 is E6 9C AC, 語 is E8 AA 9E. The beginnings of these
        // tokens are tokens, too.
        for (token, joined, parted) in [
            (&b"\xE6\x97\xA5\xE6"[..], "日本", "日語"),
            (b"\xE6\x97\xA5\xE6\x9C", "日本", "本日"),
            (b"\xA5\xE6\x9C\xAC", "日本", "語本"),
            (b"\x97\xA5\xE6\x9C", "日本", "本日"),
            (b"\xA5\xC3", "日é", "本é"),
            (b"\xE6\x97\xA5\xF0", "日\u{1f600}", "本\u{1f600}"),
            (b"\xE6\x97\xA5\xF0\x9F\x98", "日\u{1f600}", "本\u{1f600}"),
        ] {
            let joins = Joins::new(&vocabulary(&[token]));
            assert_eq!(1, parts(&joins, joined).len(), "{token:x?}");
            assert_eq!(2, parts(&joins, parted).len(), "{token:x?}");
        }
    }

    /// No token of a vocabulary is parted.
    #[test]
    fn all_that_is_in_a_token_joins() {
        for encoding in budgeteer_vocab::Encoding::ALL {
            let vocabulary = encoding.load();
            let joins = Joins::new(&vocabulary);
            let texts = vocabulary.iter().filter_map(|token| std::str::from_utf8(token).ok());
            for text in texts {
                assert_eq!(1, parts(&joins, text).len(), "{encoding:?} {text:?}");
            }
        }
    }

    #[test]
    fn few_other_characters_may_join() {
        let joins =
            Joins::new(&vocabulary(&["\u{65e5}\u{672c}".as_bytes(), "\u{e9}\u{8a9e}".as_bytes()]));
        assert!(joins.may_join(0x65E5, 0x672C) && joins.may_join(0xE9, 0x8A9E));
        let mut joined = 0;
        for before in 0x6500..0x6700 {
            for behind in 0x6700..0x6800 {
                joined += usize::from(joins.may_join(before, behind));
            }
        }
        assert!(joined < 4_000, "{joined} of 131072");
    }
}
