//! Counting for Claude, by a reconstruction.
//!
//! Claude's tokenizers are not public. What is known of them was measured by
//! Sander Land's project `ctok`, through the counts that Anthropic's endpoint
//! returns: a text is normalized, then written with markers for words and
//! capitals, then covered with as few pieces as possible. A character that is
//! no piece costs as much as its bytes.
//!
//! A count is that of a message of a user with this text alone, less what a
//! message with nothing in it costs: the frame. The frame touches both ends of
//! the text, so that the count of a text is not always the sum of those of its
//! parts. Before the text, the frame of Claude 3 and 4.7 ends with the marker
//! of a word's begin. It takes the place of one space, and is a token of its
//! own where the text starts with something else that takes no such marker.
//! Behind the text it has two newlines, which join with those of the text.

use std::sync::atomic::AtomicBool;

use budgeteer_vocab::{Claude as Source, ClaudeCharacters as Of};

use self::normal::normalize;
use self::scan::Scan;
use self::tables::{ALONE, Tables};
use self::tile::decode;
use self::words::Words;
use super::pool::Pool;
use crate::once::Once;

mod normal;
mod scan;
mod tables;
#[cfg(test)]
mod tests;
mod tile;
mod trie;
mod words;

/// A generation of Claude's models, all of which count alike. A count is an
/// estimate: the tokenizers are not public, and what is known was measured.
///
/// # Examples
///
/// ```
/// use budgeteer::{Claude, TokenCounter};
///
/// assert_eq!(Claude::V3.count("Hello, world!"), 4);
/// assert!(!Claude::V3.is_exact());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claude {
    /// Claude 3 to Claude Opus 4.6.
    V3,
    /// Claude Opus 4.7.
    V47,
    /// Claude Opus 4.8 and models after it. It has the pieces of 4.7.
    V48,
}

/// How many bytes of a text are counted at once. The last of them may be more
/// where the text has no place to split it.
const WINDOW: usize = 1 << 14;

/// The smallest window, where the limit is near.
const SMALL_WINDOW: usize = 1 << 9;

/// Where a part is in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The text starts with it.
    pub(crate) is_first: bool,
    /// The text ends with it.
    pub(crate) is_last: bool,
}

impl Claude {
    /// All generations.
    pub const ALL: [Self; 3] = [Self::V3, Self::V47, Self::V48];

    /// Returns the name of the counter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "claude3",
            Self::V47 => "claude4.7",
            Self::V48 => "claude4.8",
        }
    }

    /// Returns the place of the pieces in an array of all.
    fn place(self) -> usize {
        usize::from(self != Self::V3)
    }

    /// Returns the tables, which the process makes once.
    fn tables(self) -> &'static Tables {
        static TABLES: [Once<Tables>; 2] = [const { Once::new() }; 2];
        let source = if self.place() == 0 { Source::Three } else { Source::FourSeven };
        TABLES[self.place()].get(|| Tables::new(source))
    }

    /// Returns whether the frame ends with a marker before the text.
    fn has_marker(self) -> bool {
        self != Self::V48
    }

    /// Calls `work` with words that earlier calls counted.
    fn with_words<R>(self, work: impl FnOnce(&mut Words) -> R) -> R {
        static POOLS: [Pool<Words>; 2] = [const { Pool::new() }; 2];
        POOLS[self.place()].with(Words::new, |words| {
            let result = work(words);
            words.shrink();
            result
        })
    }

    /// Returns the tokens of a text of UTF-8 as the only one of a message,
    /// without the frame, if they are at most `limit`. The empty text, of which
    /// no message can be made, has none. The result means nothing once `stop`
    /// is set.
    pub(crate) fn tokens(self, text: &[u8], limit: u64, stop: &AtomicBool) -> Option<u64> {
        if text.is_empty() {
            return Some(0);
        }
        self.count_part(text, Place { is_first: true, is_last: true }, limit, stop)
    }

    /// Returns the tokens that a part adds to its text, if they are at most
    /// `limit`. Parts of a text that is split where it is safe by
    /// [`Claude::is_safe_split`] add up to its count. A text has at most one
    /// token more than as a part in the middle. The result means nothing once
    /// `stop` is set.
    pub(crate) fn count_part(
        self,
        text: &[u8],
        place: Place,
        limit: u64,
        stop: &AtomicBool,
    ) -> Option<u64> {
        self.with_words(|words| {
            let mut count = 0;
            let mut from = 0;
            // Where the limit is near, little is read: a token has four bytes
            // on average.
            let size = limit.saturating_mul(8).clamp(SMALL_WINDOW as u64, WINDOW as u64);
            let size = usize::try_from(size).unwrap_or(WINDOW);
            while from < text.len() {
                let to = self.end_of_window(text, from, size);
                let here = Place {
                    is_first: place.is_first && from == 0,
                    is_last: place.is_last && to == text.len(),
                };
                count += self.count_window(words, &text[from..to], here, limit - count, stop)?;
                from = to;
            }
            Some(count)
        })
    }

    /// Returns where a window ends that starts at `from`: at a safe split after
    /// `size` bytes, or with the text.
    fn end_of_window(self, text: &[u8], from: usize, size: usize) -> usize {
        if text.len() - from <= size {
            return text.len();
        }
        let mut at = from + size;
        while at > from && text[at] & 0xC0 == 0x80 {
            at -= 1;
        }
        let mut before = 0;
        while at < text.len() {
            let (code, width) = decode(text, at);
            if at >= from + size && self.is_safe_split(before, code) {
                return at;
            }
            before = code;
            at += width;
        }
        text.len()
    }

    /// Counts a part at once.
    fn count_window(
        self,
        words: &mut Words,
        text: &[u8],
        place: Place,
        limit: u64,
        stop: &AtomicBool,
    ) -> Option<u64> {
        let tables = self.tables();
        let mut buffer = std::mem::take(&mut words.buffer);
        let mut normal = normalize(tables, text, &mut buffer);
        let mut tail = 0;
        if place.is_last {
            let newlines = normal.iter().rev().take_while(|&&byte| byte == b'\n').count();
            tail = tables.count_tail(newlines);
            normal = &normal[..normal.len() - newlines];
        }
        let has_marker = place.is_first && self.has_marker();
        // The frame's marker stands for one space, but not for the first of
        // several, nor for one that was another character before.
        if has_marker
            && text.starts_with(b" ")
            && let Some((b' ', rest)) = normal.split_first()
            && rest.first() != Some(&b' ')
        {
            normal = rest;
        }
        let scan = Scan::new(tables, words, normal, stop, place.is_first, has_marker);
        let count = limit.checked_sub(tail).and_then(|limit| scan.count(limit));
        words.buffer = buffer;
        Some(count? + tail)
    }

    /// Returns whether any text may be split between these two code points so
    /// that its parts add up, each counted by [`Claude::count_part`] for what
    /// it is: the first part, the last part, or neither.
    ///
    /// That is so before newlines and behind them, behind a letter before a
    /// space, and between ideographs. The counts of both sides as texts of their
    /// own need not add up: the frame touches each of them.
    pub(crate) fn is_safe_split(self, before: u32, behind: u32) -> bool {
        const NEWLINE: u32 = b'\n' as u32;
        const SPACE: u32 = b' ' as u32;
        let tables = self.tables();
        // Nothing changes it, takes it away or joins with it before the text is
        // split into runs, and it is no space.
        let stays = |code: u32| {
            let changes = Of::COMPOSES | Of::COMBINING | Of::STRIPPED | Of::BLANK;
            let bits = tables.bits(code);
            bits & changes == 0 && bits & Of::KIND != Of::SPACE && !(0xD800..0xE000).contains(&code)
        };
        let is_kind = |code: u32, kind: u32| tables.bits(code) & Of::KIND == kind && stays(code);
        let is_alone = |code: u32| is_kind(code, Of::LETTER) && tables.bits(code) & ALONE != 0;
        match (before, behind) {
            (_, NEWLINE) => stays(before),
            (NEWLINE, _) => stays(behind),
            (_, SPACE) => is_kind(before, Of::WORDY),
            _ => is_alone(before) && is_alone(behind),
        }
    }
}
