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
