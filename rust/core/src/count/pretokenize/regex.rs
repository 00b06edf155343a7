//! Splitting by patterns that nobody has written out here.

use fancy_regex::{Regex, RegexBuilder};

use super::Pattern;
use crate::text::classes::Classes;

/// How often a match may go back before the piece is given up: then each of its
/// bytes counts one token, so that no text counts less than it has.
const BACKTRACKS: usize = 1_000_000;

/// How large a compiled pattern may be, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// Patterns, each of which splits the pieces of the one before. What a pattern
/// does not match is a piece, too.
#[derive(Debug)]
pub(crate) struct Patterns(Vec<Regex>);

/// Where the pieces of a text end.
#[derive(Debug, Default)]
pub(crate) struct Ends(Vec<usize>);

impl Patterns {
    /// Returns the patterns; None where one cannot be compiled.
    pub(crate) fn new(patterns: &[impl AsRef<str>]) -> Option<Self> {
        let compile = |pattern: &str| {
            RegexBuilder::new(pattern)
                .backtrack_limit(BACKTRACKS)
                .delegate_size_limit(MOST_BYTES)
                .delegate_dfa_size_limit(MOST_BYTES)
                .build()
                .ok()
        };
        Some(Self(patterns.iter().map(|pattern| compile(pattern.as_ref())).collect::<Option<_>>()?))
    }

    /// Splits a text, which is UTF-8.
    pub(crate) fn split(&self, text: &[u8]) -> Ends {
        let mut ends = Ends::default();
        split(&self.0, std::str::from_utf8(text).expect("a text is UTF-8"), 0, &mut ends);
        ends
    }
}

/// Adds the ends of the pieces of `text`, which begins at `start`.
fn split(patterns: &[Regex], text: &str, start: usize, ends: &mut Ends) {
    let Some((pattern, rest)) = patterns.split_first() else {
        if !text.is_empty() {
            ends.0.push(start + text.len());
        }
        return;
    };
    let mut at = 0;
    for found in pattern.find_iter(text) {
        let Ok(found) = found else {
            return ends.0.extend(start + at + 1..=start + text.len());
        };
        split(rest, &text[at..found.start()], start + at, ends);
        split(rest, found.as_str(), start + found.start(), ends);
        at = found.end();
    }
    split(rest, &text[at..], start + at, ends);
}

impl Pattern for &Ends {
    fn end(self, _: &Classes, text: &[u8], at: usize) -> usize {
        let Ends(ends) = self;
        ends.get(ends.partition_point(|&end| end <= at)).copied().unwrap_or(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(patterns: &[&str], text: &str) -> Vec<usize> {
        Patterns::new(patterns).expect("they are patterns").split(text.as_bytes()).0
    }

    #[test]
    fn each_pattern_splits_the_pieces_of_the_one_before() {
        assert_eq!(vec![2, 3, 6, 8], ends(&["[0-9]+"], "ab1cde23"));
        assert_eq!(vec![2, 3, 6, 7, 8], ends(&["[0-9]+", "[0-9]"], "ab1cde23"));
        assert_eq!(vec![2, 3, 5, 6, 7, 8], ends(&["[0-9]+", "[0-9]", "e"], "ab1cde23"));
        assert_eq!(vec![4], ends(&["x"], "abcd"));
        assert_eq!(vec![4], ends(&[], "abcd"));
        assert_eq!(Vec::<usize>::new(), ends(&["x"], ""));
    }

    #[test]
    fn a_piece_ends_behind_each_place_in_it() {
        let classes = Classes::get();
        let found = Ends(vec![2, 3, 6]);
        let behind = |at| (&found).end(classes, b"ab1cdefg", at);
        assert_eq!([2, 2, 3, 6, 6, 6, 8, 8], [0, 1, 2, 3, 4, 5, 6, 7].map(behind));
    }

    #[test]
    fn bytes_are_pieces_where_a_pattern_gives_up() {
        let slow = RegexBuilder::new(r"(a|aa)+\1b").backtrack_limit(20).build();
        let slow = slow.expect("it is a pattern");
        let mut ends = Ends::default();
        let first = Regex::new("c+").expect("it is a pattern");
        split(&[first, slow], "xbccaaaaaaaa", 10, &mut ends);
        let mut expected = vec![12, 14];
        expected.extend(15..=22);
        assert_eq!(expected, ends.0);

        // Here it gives up behind what it has found.
        let slow = RegexBuilder::new(r"x|(a|aa)+\1b").backtrack_limit(20).build();
        let mut ends = Ends::default();
        split(&[slow.expect("it is a pattern")], "yxaaaaaaaa", 10, &mut ends);
        expected = vec![11, 12];
        expected.extend(13..=20);
        assert_eq!(expected, ends.0);
    }
}
