//! Drafts: texts that are much alike, counted one after the other.
//!
//! Whoever looks for the longest text that fits counts some twenty drafts. Each
//! begins and ends as one before it. What is in front of a safe split there, or
//! behind one, was counted before: only what is between is counted.

use std::sync::atomic::AtomicBool;

use super::exact::count_text;
use super::{Exact, Factor};
use crate::text::Text;

/// About how many bytes there are from one mark to the next.
const STEP: usize = 2048;

/// How far behind its place a mark may be, in bytes.
const REACH: usize = 256;

/// The most bytes of a code point.
const LONGEST: usize = 4;

/// How many bytes are compared at once.
const COMPARED: usize = 1024;

/// Counts drafts exactly, as [`Exact::without_cache`] does.
#[doc(hidden)]
#[derive(Debug)]
pub struct Drafts {
    exact: Exact,
    factor: Factor,
    step: usize,
    /// The last draft that was within its limit, and the last that was not.
    fitting: Known,
    over: Known,
}

/// What is known of a draft.
#[derive(Debug, Default)]
struct Known {
    /// All of one that fits, up to the last mark of one that does not, and
    /// nothing without marks.
    text: Vec<u8>,
    /// Its first marks, in order.
    marks: Vec<Mark>,
    /// Its tokens; 0 if it was over.
    total: u64,
}

/// A safe split of a draft.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Its place, in bytes.
    at: usize,
    /// The tokens in front of it.
    tokens: u64,
}

impl Drafts {
    /// Returns a counter of drafts, which multiplies counts by `factor`.
    #[must_use]
    pub fn new(exact: &Exact, factor: Factor) -> Self {
        let exact = exact.without_cache();
        Self { exact, factor, step: STEP, fitting: Known::default(), over: Known::default() }
    }

    /// Returns what [`Factor::count`] does.
    pub fn count(&mut self, text: Text<'_>, limit: u64, stop: &AtomicBool) -> Option<u64> {
        let (Text::Ascii(bytes) | Text::Utf8(bytes)) = text else {
            return self.factor.count(&self.exact, text, limit, stop);
        };
        if bytes.len() < 2 * self.step || !self.exact.model().is_exact() {
            return self.factor.count(&self.exact, text, limit, stop);
        }
        let mut marks = Vec::new();
        let total = self.tokens(text, bytes, self.factor.within(limit), &mut marks, stop);
        let known = if total.is_some() { &mut self.fitting } else { &mut self.over };
        known.text.clear();
        if let Some(last) = marks.last() {
            let start = bytes.len().min(last.at + LONGEST);
            known.text.extend_from_slice(if total.is_some() { bytes } else { &bytes[..start] });
        }
        known.marks = marks;
        known.total = total.unwrap_or(0);
        total.map(|total| self.factor.of(total))
    }

    /// Returns the tokens of `text`, whose bytes these are, if they are at most
    /// `limit`. Appends its marks, as far as it was counted.
    fn tokens(
        &self,
        text: Text<'_>,
        bytes: &[u8],
        limit: u64,
        marks: &mut Vec<Mark>,
        stop: &AtomicBool,
    ) -> Option<u64> {
        let Self { fitting, over, .. } = self;
        let model = self.exact.model();
        let starts = [fitting.start(bytes), over.start(bytes)];
        let place = |start: &&[Mark]| start.last().map_or(0, |mark| mark.at);
        marks.extend_from_slice(starts.into_iter().max_by_key(place).unwrap_or_default());
        let (mut at, mut tokens) = marks.last().map_or((0, 0), |mark| (mark.at, mark.tokens));
        let ends = fitting.end(bytes, at);
        let shifted = |mark: &Mark| mark.at + bytes.len() - fitting.text.len();
        let (end, behind) = ends
            .first()
            .map_or((bytes.len(), 0), |mark| (shifted(mark), fitting.total - mark.tokens));
        while at < end {
            let split = self.split(text, bytes, at, end);
            let left = limit.checked_sub(tokens + behind)?;
            tokens += count_text(model, text.slice_units(at, split), left, stop)?;
            if split < end {
                marks.push(Mark { at: split, tokens });
            }
            at = split;
        }
        let total = tokens + behind;
        let before = |mark: &Mark| total - (fitting.total - mark.tokens);
        marks.extend(ends.iter().map(|mark| Mark { at: shifted(mark), tokens: before(mark) }));
        marks.dedup_by_key(|mark| mark.at); // the last at the start may be the first at the end
        (total <= limit).then_some(total)
    }

    /// Returns the next safe split behind `at` where a mark can be; `end` if
    /// there is none in front of that.
    fn split(&self, text: Text<'_>, bytes: &[u8], at: usize, end: usize) -> usize {
        let mut step = self.step;
        while at + step < end {
            let mut near = at + step..end.min(at + step + REACH);
            let is_split = |&split: &usize| {
                may_split(bytes[split - 1], bytes[split]) && text.splits(self.exact.model(), split)
            };
            if let Some(split) = near.find(is_split) {
                return split;
            }
            step *= 2;
        }
        end
    }
}

impl Known {
    /// Returns the marks that `text` has at its start, too.
    fn start(&self, text: &[u8]) -> &[Mark] {
        let same = same_start(&self.text, text);
        let count = self.marks.partition_point(|mark| mark.at + LONGEST <= same);
        &self.marks[..count]
    }

    /// Returns the marks that `text` has at its end, too, from its byte `from`
    /// on.
    fn end(&self, text: &[u8], from: usize) -> &[Mark] {
        let same = same_end(&self.text, text).min(text.len() - from + LONGEST);
        let first = self.marks.partition_point(|mark| {
            mark.at < LONGEST || self.text.len() - (mark.at - LONGEST) > same
        });
        &self.marks[first..]
    }
}

/// Returns whether a safe split is worth looking for between two bytes. Most
/// are between a letter or digit and ASCII that is neither, or behind a line.
fn may_split(before: u8, behind: u8) -> bool {
    if before == b'\n' {
        return behind.is_ascii();
    }
    (before.is_ascii_alphanumeric() || !before.is_ascii())
        && behind.is_ascii()
        && !behind.is_ascii_alphanumeric()
}

/// Returns how many bytes two texts have in common at their starts.
fn same_start(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(COMPARED).zip(b.chunks_exact(COMPARED));
    let at = COMPARED * blocks.take_while(|(a, b)| a == b).count();
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

/// Returns how many bytes two texts have in common at their ends.
fn same_end(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(COMPARED).zip(b.rchunks_exact(COMPARED));
    let same = COMPARED * blocks.take_while(|(a, b)| a == b).count();
    let rest = |text: &'_ [u8]| text.len() - same;
    let (a, b) = (&a[..rest(a)], &b[..rest(b)]);
    same + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(all(test, feature = "cl100k", feature = "o200k"))]
mod tests {
    use budgeteer_vocab::Encoding;
    use proptest::prelude::*;

    use super::*;
    use crate::count::exact::GO_ON;

    const PART: &str =
        "([a-cA1 \n\r\t!'/.,\"{}stlve\u{e9}\u{301}\u{9df}\u{3000}\u{65e5}]{0,9}|[a-z]{9})";

    proptest! {
        /// A draft counts what it does alone, whatever was counted before it.
        #[test]
        fn drafts_count_as_they_do_alone(
            parts in prop::collection::vec(PART, 1..40),
            cuts in prop::collection::vec((0..40_usize, 0..40_usize, PART, 0..200_u64), 1..12),
            factor in prop::sample::select(vec![1.0, 1.1]),
        ) {
            for encoding in Encoding::ALL {
                let exact = Exact::new(*encoding);
                let factor = Factor::new(factor);
                let mut drafts = Drafts { step: 8, ..Drafts::new(&exact, factor) };
                for (head, tail, middle, limit) in &cuts {
                    let head = parts[..parts.len().min(*head)].concat();
                    let tail = parts[parts.len().saturating_sub(*tail)..].concat();
                    let draft = format!("{head}{middle}{tail}");
                    let text = Text::from(draft.as_str());
                    let alone = factor.count(&exact.without_cache(), text, *limit, &GO_ON);
                    prop_assert_eq!(alone, drafts.count(text, *limit, &GO_ON), "{:?}", draft);
                }
            }
        }

        #[test]
        fn what_is_the_same_is_found(
            start in "[ab]{0,3000}", left in "a{0,9}", right in "b{0,9}", end in "[ab]{0,3000}"
        ) {
            let texts = [&left, &right].map(|middle| format!("{start}{middle}{end}"));
            let [a, b] = [0, 1].map(|at| texts[at].as_bytes());
            let zip = a.iter().zip(b);
            prop_assert_eq!(zip.take_while(|(a, b)| a == b).count(), same_start(a, b));
            let zip = a.iter().rev().zip(b.iter().rev());
            prop_assert_eq!(zip.take_while(|(a, b)| a == b).count(), same_end(a, b));
        }
    }

    /// What a draft has in common with the one before is not counted again.
    #[test]
    fn only_what_changes_is_counted() {
        let mut drafts = Drafts::new(&Exact::new(Encoding::O200k), Factor::ONE);
        let text = (0..9_000).map(|number| format!("tea {number}, ")).collect::<Vec<_>>().concat();
        let count = drafts.count(text.as_str().into(), u64::MAX, &GO_ON).expect("no limit");
        drafts.fitting.total += 12;
        for mark in &mut drafts.fitting.marks[20..] {
            mark.tokens += 7;
        }
        let changed = text.replacen("tea 4500", "rye 4500", 1);
        assert_eq!(Some(count + 12), drafts.count(changed.as_str().into(), u64::MAX, &GO_ON));
        let others = drafts.fitting.marks.windows(2).filter(|two| two[1].at - two[0].at > 2 * STEP);
        assert_eq!(0, others.count());
        // Nor are marks noted twice.
        let marks = drafts.fitting.marks.len();
        for _ in 0..9 {
            drafts.count(changed.as_str().into(), u64::MAX, &GO_ON);
        }
        assert_eq!(marks, drafts.fitting.marks.len());
    }

    fn places(marks: &[Mark]) -> Vec<usize> {
        marks.iter().map(|mark| mark.at).collect()
    }

    /// Only as much is taken for known as the next draft has, too, with the
    /// character at each mark.
    #[test]
    fn marks_of_another_draft() {
        let marks = [4, 9, 14].map(|at| Mark { at, tokens: 0 }).to_vec();
        let known = Known { text: b"aaaa bbbb cccc dddd".to_vec(), marks, total: 0 };
        let start = |text: &str| places(known.start(text.as_bytes()));
        assert_eq!(vec![4, 9, 14], start("aaaa bbbb cccc dddd"));
        assert_eq!(vec![4, 9], start("aaaa bbbb cccX"));
        assert_eq!(vec![4], start("aaaa bbbb ccX"));
        let end = |text: &str, from| places(known.end(text.as_bytes(), from));
        assert_eq!(vec![4, 9, 14], end("aaaa bbbb cccc dddd", 0));
        assert_eq!(vec![9, 14], end("aaaa bbbb cccc dddd", 9));
        assert_eq!(vec![14], end("aaaa bbbb cccc dddd", 14));
        assert_eq!(Vec::<usize>::new(), end("aaaa bbbb cccc dddd", 15));
        assert_eq!(vec![14], end("Xcccc dddd", 0));
        assert_eq!(Vec::<usize>::new(), end("Xccc dddd", 0));
        let early = Known { marks: vec![Mark { at: 3, tokens: 0 }], ..known };
        assert!(early.end(b"aaaa bbbb cccc dddd", 0).is_empty());
    }

    /// Marks are some way apart, where the text may be split.
    #[test]
    fn marks_of_a_draft() {
        let mut drafts = Drafts { step: 8, ..Drafts::new(&Encoding::O200k.into(), Factor::ONE) };
        for (text, marks) in [
            ("tea tea tea tea", &[][..]),
            ("tea tea tea teas", &[11]),
            ("tea tea tea tea tea ", &[11, 19]),
            ("teateateateateateateatea", &[]),
            (&format!("{}. tea", "tea".repeat(86)), &[258]),
            (&format!("{}. tea", "tea".repeat(90)), &[270]),
        ] {
            assert!(drafts.count(text.into(), 1_000, &GO_ON).is_some());
            assert_eq!(marks, places(&drafts.fitting.marks), "{text}");
            assert_eq!(!marks.is_empty(), !drafts.fitting.text.is_empty());
        }
        assert_eq!(None, drafts.count("tea tea tea tea tea tea tea".into(), 6, &GO_ON));
        assert_eq!(vec![11, 19], places(&drafts.over.marks));
        assert_eq!(b"tea tea tea tea tea tea".to_vec(), drafts.over.text);
    }

    #[test]
    fn splits_are_sought_behind_words_and_lines() {
        let may = |two: &str| {
            let at = two.char_indices().nth(1).expect("there are two").0;
            may_split(two.as_bytes()[at - 1], two.as_bytes()[at])
        };
        for two in ["a ", "1.", "\u{e9} ", "\na", "\n "] {
            assert!(may(two), "{two:?}");
        }
        for two in ["ab", " a", "  ", ". ", "a1", "a\u{e9}", "\n\u{e9}"] {
            assert!(!may(two), "{two:?}");
        }
    }
}
