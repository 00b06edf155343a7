//! Where sentences start and end.
//!
//! A sentence ends after a full stop, exclamation mark or question mark of any
//! script, and the quotes and brackets that close after it, if whitespace
//! follows. After those of Chinese and Japanese no whitespace is needed. A
//! sentence also ends with its line.
//!
//! A sentence does not start with a lowercase letter, except after a blank
//! line. A full stop does not end a sentence after an initial, the number of an
//! item, a word with a full stop in it, or one of a short list of
//! abbreviations.

use crate::text::classes::{Class, Classes};
use crate::text::{Text, is_space};

const LINE_ENDS: [char; 10] =
    ['\n', '\u{B}', '\u{C}', '\r', '\u{1C}', '\u{1D}', '\u{1E}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Marks that end a sentence without whitespace after them.
const WIDE_ENDS: [char; 5] = ['。', '！', '．', '？', '｡'];

const ENDS: [char; 13] = ['.', '!', '?', '؟', '۔', '।', '॥', '…', '‼', '‽', '⁇', '⁈', '⁉'];

/// Closing marks, which belong to the sentence that ends before them.
const CLOSERS: [char; 15] =
    ['"', '\'', ')', ']', '}', '»', '’', '”', '›', '〉', '》', '」', '』', '】', '）'];

/// Words after which a full stop does not end a sentence.
const ABBREVIATIONS: [&str; 64] = [
    "al", "approx", "apr", "art", "aug", "av", "bd", "bros", "bzw", "ca", "capt", "cf", "cmdr",
    "co", "col", "corp", "dec", "dept", "dr", "ed", "eds", "est", "feb", "fig", "figs", "ft",
    "gen", "gov", "hl", "hon", "inc", "jan", "jr", "jul", "jun", "lt", "ltd", "maj", "mar", "mlle",
    "mme", "mr", "mrs", "ms", "mt", "no", "nos", "nov", "nr", "oct", "pp", "pres", "prof", "rep",
    "rev", "sen", "sep", "sept", "sgt", "sr", "st", "vol", "vols", "vs",
];

/// How many code points before a full stop are looked at.
const MAX_WORD: usize = 8;

/// Returns the start and end of each sentence of `text`, in code points, without
/// the whitespace around it: start, end, start, end and so on.
///
/// # Examples
///
/// ```
/// use budgeteer::sentence_spans;
///
/// assert_eq!(sentence_spans("Dr. Oolong is in. Is she?".into()), [0, 17, 18, 25]);
/// ```
#[must_use]
pub fn sentence_spans(text: Text<'_>) -> Vec<usize> {
    let mut codes = Vec::new();
    text.for_each(|code| codes.push(code));
    let text = Codes { codes, classes: Classes::get() };
    let mut spans = Vec::new();
    let (mut start, mut place) = (0, 0);
    while let Some(&code) = text.codes.get(place) {
        place += 1;
        if is_one_of(code, &LINE_ENDS) {
            let breaks;
            (place, breaks) = text.end_of_lines(place - 1);
            if breaks > 1 || text.may_start(place) {
                start = text.close(start, place, &mut spans);
            }
        } else if is_end(code) {
            let first = place - 1;
            place = text.end_of(place, is_end);
            let is_wide = text.codes[first..place].iter().any(|&code| is_one_of(code, &WIDE_ENDS));
            let (is_stop, end) = (code == u32::from('.') && place == first + 1, place);
            place = text.end_of(place, |code| is_one_of(code, &CLOSERS));
            let behind = text.end_of(place, |code| is_space(code) && !is_one_of(code, &LINE_ENDS));
            if (behind > place || is_wide)
                && text.may_start(behind)
                && !(is_stop && place == end && text.is_abbreviated(start, first))
            {
                start = text.close(start, place, &mut spans);
            }
        }
    }
    text.close(start, text.codes.len(), &mut spans);
    spans
}

fn is_one_of(code: u32, characters: &[char]) -> bool {
    characters.iter().any(|&character| u32::from(character) == code)
}

fn is_end(code: u32) -> bool {
    is_one_of(code, &ENDS) || is_one_of(code, &WIDE_ENDS)
}

/// A text by its code points.
struct Codes {
    codes: Vec<u32>,
    classes: &'static Classes,
}

impl Codes {
    /// Returns where the run of code points that satisfy `is_so` ends, from
    /// `place` on.
    fn end_of(&self, place: usize, is_so: impl Fn(u32) -> bool) -> usize {
        place + self.codes[place..].iter().take_while(|&&code| is_so(code)).count()
    }

    /// Returns where the whitespace from `place` on ends, and how many line ends
    /// it has.
    fn end_of_lines(&self, place: usize) -> (usize, usize) {
        let end = self.end_of(place, is_space);
        let is_break = |at: &usize| {
            let is_second = self.codes[*at] == u32::from('\n')
                && at.checked_sub(1).is_some_and(|before| self.codes[before] == u32::from('\r'));
            is_one_of(self.codes[*at], &LINE_ENDS) && !is_second
        };
        (end, (place..end).filter(is_break).count())
    }

    /// Returns whether a sentence may start at `place`: not with a lowercase
    /// letter.
    fn may_start(&self, place: usize) -> bool {
        self.codes.get(place).is_none_or(|&code| self.classes.of(code) & Class::LOWER == 0)
    }

    /// Returns whether the full stop at `end` belongs to the word before it: Dr,
    /// e.g, an initial, the number of an item. The sentence began at `start`.
    fn is_abbreviated(&self, start: usize, end: usize) -> bool {
        const LETTER: u8 = Class::UPPER | Class::LOWER | Class::OTHER_LETTER;
        let from = start.max(end.saturating_sub(MAX_WORD));
        let is_part = |&&code: &&u32| {
            code == u32::from('.') || self.classes.of(code) & (LETTER | Class::NUMBER) != 0
        };
        let length = self.codes[from..end].iter().rev().take_while(is_part).count();
        let word = &self.codes[end - length..end];
        if word.iter().any(|&code| self.classes.of(code) & Class::NUMBER != 0) {
            // The number of an item stands at the start of its sentence.
            return self.codes[start..end - length].iter().all(|&code| is_space(code));
        }
        if length == 1 || word.contains(&u32::from('.')) {
            return true;
        }
        let word: Option<String> = word.iter().map(|&code| char::from_u32(code)).collect();
        let lowered = word.unwrap_or_default().to_lowercase();
        ABBREVIATIONS.binary_search(&lowered.as_str()).is_ok()
    }

    /// Adds the sentence from `start` to `end`, without the whitespace around it,
    /// and returns `end`.
    fn close(&self, start: usize, end: usize, spans: &mut Vec<usize>) -> usize {
        let first = self.end_of(start, is_space).min(end);
        let inner = &self.codes[first..end];
        if let Some(last) = inner.iter().rposition(|&code| !is_space(code)) {
            spans.extend([first, first + last + 1]);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The binary search needs them sorted, and a longer one would never be
    /// found.
    #[test]
    fn abbreviations_are_sorted_and_short() {
        assert!(ABBREVIATIONS.is_sorted());
        assert!(ABBREVIATIONS.iter().all(|word| word.len() < MAX_WORD));
    }
}
