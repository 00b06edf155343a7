//! Joints: what texts count more, or less, together than one by one.
//!
//! Counts do not add up where texts meet. But a text can be split at a safe
//! split, which no pretoken crosses whatever stands around it. So only the part
//! between the last safe split of one text and the first of the next is counted
//! anew.

use std::ops::Range;

use super::exact::{GO_ON, count_text};
use super::tokenizer::Model;
use crate::text::Text;

/// How far from the end of a text a safe split is looked for. If there is none,
/// the whole text is counted.
const REACH: usize = 512;

fn count(model: &Model, text: &[u8]) -> u64 {
    count_text(model, Text::from_utf8(text), u64::MAX, &GO_ON).unwrap_or(u64::MAX)
}

/// Returns what `tail` adds to the count of `text` when it stands behind it,
/// with `head` in front of the text.
pub(crate) fn behind(model: &Model, head: &[u8], text: Text<'_>, tail: &[u8]) -> i64 {
    let split = last_split(model, text);
    let mut end = if split.is_none() { head.to_vec() } else { Vec::new() };
    text.slice_units(split.unwrap_or(0), text.units()).write_utf8(&mut end);
    let alone = count(model, &end);
    end.extend_from_slice(tail);
    count(model, &end).cast_signed() - alone.cast_signed()
}

/// Returns what `head` adds to the count of `text` when it stands in front.
pub(crate) fn before(model: &Model, head: &[u8], text: Text<'_>) -> i64 {
    let split = first_split(model, text);
    let mut start = Vec::new();
    text.slice_units(0, split.unwrap_or(text.units())).write_utf8(&mut start);
    let alone = count(model, &start);
    let joined = [head, &start].concat();
    count(model, &joined).cast_signed() - alone.cast_signed()
}

/// Returns what `left`, `between` and `right` count together more than the texts
/// do one by one; None where a text has no safe split near the joint.
pub(crate) fn between(
    model: &Model,
    left: Text<'_>,
    between: &[u8],
    right: Text<'_>,
) -> Option<i64> {
    let (from, to) = (last_split(model, left)?, first_split(model, right)?);
    let (mut joined, mut start) = (Vec::new(), Vec::new());
    left.slice_units(from, left.units()).write_utf8(&mut joined);
    right.slice_units(0, to).write_utf8(&mut start);
    let alone = count(model, &joined) + count(model, &start);
    joined.extend_from_slice(between);
    joined.extend_from_slice(&start);
    Some(count(model, &joined).cast_signed() - alone.cast_signed())
}

/// Returns what `text` counts more than its part `known`, in units, does by
/// itself; None where the part has no safe split near one of its ends.
pub(crate) fn around(model: &Model, text: Text<'_>, known: Range<usize>) -> Option<i64> {
    let part = text.slice_units(known.start, known.end);
    let joint = |from, to, own: Range<usize>| {
        let count = |from, to| {
            let mut joined = Vec::new();
            text.slice_units(from, to).write_utf8(&mut joined);
            count(model, &joined).cast_signed()
        };
        count(from, to) - count(own.start, own.end)
    };
    let mut more = 0;
    if known.start > 0 {
        let to = known.start + first_split(model, part)?;
        more += joint(0, to, known.start..to);
    }
    if known.end < text.units() {
        let from = known.start + last_split(model, part)?;
        more += joint(from, text.units(), from..known.end);
    }
    Some(more)
}

/// Returns where the last safe split of a text is, if that is near its end.
fn last_split(model: &Model, text: Text<'_>) -> Option<usize> {
    let units = text.units();
    (units.saturating_sub(REACH).max(1)..units).rev().find(|&at| text.splits(model, at))
}

/// Returns where the first safe split of a text is, if that is near its start.
fn first_split(model: &Model, text: Text<'_>) -> Option<usize> {
    (1..text.units().min(REACH)).find(|&at| text.splits(model, at))
}

/// Returns whether `text` may be counted by itself behind a separator that ends
/// with `last`.
pub(crate) fn starts_anew(model: &Model, last: Option<char>, text: Text<'_>) -> bool {
    let Some((last, (first, _))) = last.zip(text.ends()) else { return false };
    model.is_safe_split(last.into(), first)
}

impl Text<'_> {
    /// Returns whether there is a safe split before the unit `at`, which is not
    /// the first.
    pub(super) fn splits(&self, model: &Model, at: usize) -> bool {
        match self {
            Self::Utf8(bytes) if bytes[at].cast_signed() < -64 => false,
            Self::Utf8(bytes) => {
                let mut before = at - 1;
                while bytes[before].cast_signed() < -64 {
                    before -= 1;
                }
                let code = |at| self.code_at_unit(at);
                model.is_safe_split(code(before), code(at))
            }
            _ => model.is_safe_split(self.code(at - 1), self.code(at)),
        }
    }
}

#[cfg(all(test, feature = "cl100k", feature = "o200k"))]
mod tests {
    use proptest::prelude::*;

    use budgeteer_vocab::Encoding;

    use super::*;
    use crate::count::tokenizer::Tokenizer;

    fn last(text: &str) -> Option<usize> {
        last_split(Tokenizer::from(Encoding::Cl100k).model(), Text::from(text))
    }

    fn first(text: &str) -> Option<usize> {
        first_split(Tokenizer::from(Encoding::Cl100k).model(), Text::from(text))
    }

    #[test]
    fn splits_near_the_ends_are_found() {
        assert_eq!((Some(3), Some(7)), (first("one two three"), last("one two three")));
        let text = "\u{e9}\u{e9} \u{65e5}a\u{e9} \u{e9}";
        assert_eq!((Some(4), Some(11)), (first(text), last(text)));
        for text in ["", "a", "aaaa", " ", "\u{e9}\u{e9}"] {
            assert_eq!((None, None), (first(text), last(text)), "{text:?}");
        }
        let long = |length: usize| "b".repeat(length);
        assert_eq!(Some(REACH - 1), first(&[&*long(REACH - 1), " c"].concat()));
        assert_eq!(None, first(&[&*long(REACH), " c"].concat()));
        assert_eq!(Some(1), last(&["a ", &*long(REACH - 1)].concat()));
        assert_eq!(None, last(&["a ", &*long(REACH)].concat()));
    }

    #[test]
    fn joints_are_known_where_there_are_splits() {
        let tokenizer = Tokenizer::from(Encoding::Cl100k);
        let model = tokenizer.model();
        let joint = |left: &str, right: &str| between(model, left.into(), b" ", right.into());
        assert!(joint("one two", "three four").is_some());
        assert_eq!([None; 2], [joint("one", "three four"), joint("one two", "three")]);
        let around = |text: &str, known| around(model, text.into(), known);
        let text = "one two three four";
        assert_eq!(Some(0), around(text, 0..18));
        assert!(around(text, 4..13).is_some() && around(text, 0..7).is_some());
        // A part without a split, at an end that matters and at one that does not.
        assert_eq!([None; 2], [around(text, 4..7), around("one two", 0..3)]);
        assert!(starts_anew(model, Some('a'), " tea".into()));
        assert!(!starts_anew(model, Some('a'), "tea".into()));
        assert!(!starts_anew(model, None, " tea".into()));
        assert!(!starts_anew(model, Some('a'), "".into()));
    }

    const TEXTS: &str = "[a-cA1 \n\r\t!'/.stlve\u{e9}\u{301}\u{3000}\u{65e5}]{0,40}";

    proptest! {
        /// A text counts what is around a part of it, and the part.
        #[test]
        fn a_part_and_what_is_around_it_add_up(texts in prop::collection::vec(TEXTS, 3)) {
            let (text, part) = (texts.concat(), &texts[1]);
            let known = texts[0].len()..texts[0].len() + part.len();
            for encoding in Encoding::ALL {
                let tokenizer = Tokenizer::from(*encoding);
                let model = tokenizer.model();
                let size = |text: &str| count(model, text.as_bytes()).cast_signed();
                if let Some(more) = around(model, text.as_str().into(), known.clone()) {
                    prop_assert_eq!(size(&text), size(part) + more, "{:?}", &texts);
                }
            }
        }

        /// Joints tell what the texts around them count together.
        #[test]
        fn joints_add_up(
            texts in prop::collection::vec(TEXTS, 2..5),
            separator in "[ \n.a'/]{0,3}",
        ) {
            for encoding in Encoding::ALL {
                let tokenizer = Tokenizer::from(*encoding);
                let model = tokenizer.model();
                let size = |text: &str| count(model, text.as_bytes()).cast_signed();
                let joints: Option<Vec<i64>> = texts
                    .windows(2)
                    .map(|pair| {
                        let [left, right] = [&pair[0], &pair[1]].map(|text| text.as_str().into());
                        between(model, left, separator.as_bytes(), right)
                    })
                    .collect();
                if let Some(joints) = joints {
                    let parts: i64 = texts.iter().map(|text| size(text)).sum();
                    let whole = size(&texts.join(&separator));
                    prop_assert_eq!(whole, parts + joints.iter().sum::<i64>(), "{:?}", &texts);
                }
            }
        }
    }
}
