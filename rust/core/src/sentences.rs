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
use crate::text::{OTHER, Text, Unit, is_space, with_units};
use crate::wide::with_widest;

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
    with_units!(text.decoded(&mut codes), units => Units::new(units).spans())
}

fn is_one_of(code: u32, characters: &[char]) -> bool {
    characters.iter().any(|&character| u32::from(character) == code)
}

fn is_end(code: u32) -> bool {
    if code < 0x80 {
        return matches!(code, 0x21 | 0x2E | 0x3F);
    }
    is_one_of(code, &ENDS) || is_one_of(code, &WIDE_ENDS)
}

/// Returns whether a sentence may end at `code`. That is so for few code
/// points, so that most are passed over at once.
#[inline]
fn may_end(code: u32) -> bool {
    match code {
        0..0x80 => matches!(code, 0x0A..=0x0D | 0x1C..=0x1E | 0x21 | 0x2E | 0x3F),
        0x80..0x2000 => matches!(code, 0x85 | 0x61F | 0x6D4 | 0x964 | 0x965),
        0x2000..0x3000 => code < 0x2050,
        _ => matches!(code, 0x3002 | 0xFF01 | 0xFF0E | 0xFF1F | 0xFF61),
    }
}

/// How many code points are looked at in one go.
const BLOCK: usize = 32;

/// Returns the places where a sentence may end.
fn ends_of<U: Unit>(codes: &[U]) -> Vec<usize> {
    with_widest!(look::<U>(codes: &[U]) -> Vec<usize>)
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn look<U: Unit>(codes: &[U]) -> Vec<usize> {
    let mut ends = Vec::with_capacity(codes.len() / 16);
    let mut visit = |at: usize| {
        if may_end(codes[at].into()) {
            ends.push(at);
        }
    };
    let (blocks, rest) = codes.as_chunks::<BLOCK>();
    for (nth, block) in blocks.iter().enumerate() {
        let mut found = [0_u8; BLOCK];
        for (found, code) in found.iter_mut().zip(block) {
            let code = code.at_most(OTHER);
            *found = [
                code.wrapping_sub(0x0A) < 4,
                code.wrapping_sub(0x1C) < 3,
                code == b'.',
                code == b'!',
                code == b'?',
                code == OTHER,
            ]
            .map(u8::from)
            .iter()
            .fold(0, |found, one| found | one);
        }
        let (words, _) = found.as_chunks::<8>();
        for (place, word) in words.iter().enumerate() {
            let mut word = u64::from_le_bytes(*word);
            while word != 0 {
                visit(nth * BLOCK + place * 8 + word.trailing_zeros() as usize / 8);
                word &= word - 1;
            }
        }
    }
    (codes.len() - rest.len()..codes.len()).for_each(visit);
    ends
}

/// A text by its code points.
struct Units<'a, U> {
    codes: &'a [U],
    classes: &'static Classes,
}

impl<'a, U: Unit> Units<'a, U> {
    fn new(codes: &'a [U]) -> Self {
        Self { codes, classes: Classes::get() }
    }

    fn spans(&self) -> Vec<usize> {
        let mut spans = Vec::with_capacity(self.codes.len() / 32);
        let (mut start, mut place) = (0, 0);
        for at in ends_of(self.codes) {
            if at < place {
                continue;
            }
            let code = self.codes[at].into();
            place = at + 1;
            if is_one_of(code, &LINE_ENDS) {
                let breaks;
                (place, breaks) = self.end_of_lines(at);
                if breaks > 1 || self.may_start(place) {
                    start = self.close(start, place, &mut spans);
                }
            } else if is_end(code) {
                place = self.end_of(place, is_end);
                let mut ends = self.codes[at..place].iter();
                let is_wide = ends.any(|&code| is_one_of(code.into(), &WIDE_ENDS));
                let (is_stop, end) = (code == u32::from('.') && place == at + 1, place);
                place = self.end_of(place, |code| is_one_of(code, &CLOSERS));
                let behind =
                    self.end_of(place, |code| is_space(code) && !is_one_of(code, &LINE_ENDS));
                if (behind > place || is_wide)
                    && self.may_start(behind)
                    && !(is_stop && place == end && self.is_abbreviated(start, at))
                {
                    start = self.close(start, place, &mut spans);
                }
            }
        }
        self.close(start, self.codes.len(), &mut spans);
        spans
    }

    /// Returns where the run of code points that satisfy `is_so` ends, from
    /// `place` on.
    fn end_of(&self, place: usize, is_so: impl Fn(u32) -> bool) -> usize {
        place + self.codes[place..].iter().take_while(|&&code| is_so(code.into())).count()
    }

    /// Returns where the whitespace from `place` on ends, and how many line ends
    /// it has.
    fn end_of_lines(&self, place: usize) -> (usize, usize) {
        let end = self.end_of(place, is_space);
        let is_break = |at: &usize| {
            let code = |at: usize| -> u32 { self.codes[at].into() };
            let is_second = code(*at) == u32::from('\n')
                && at.checked_sub(1).is_some_and(|before| code(before) == u32::from('\r'));
            is_one_of(code(*at), &LINE_ENDS) && !is_second
        };
        (end, (place..end).filter(is_break).count())
    }

    /// Returns whether a sentence may start at `place`: not with a lowercase
    /// letter.
    fn may_start(&self, place: usize) -> bool {
        self.codes.get(place).is_none_or(|&code| self.classes.of(code.into()) & Class::LOWER == 0)
    }

    /// Returns whether the full stop at `end` belongs to the word before it: Dr,
    /// e.g, an initial, the number of an item. The sentence began at `start`.
    fn is_abbreviated(&self, start: usize, end: usize) -> bool {
        const LETTER: u8 = Class::UPPER | Class::LOWER | Class::OTHER_LETTER;
        let from = start.max(end.saturating_sub(MAX_WORD));
        let is_part = |code: u32| {
            code == u32::from('.') || self.classes.of(code) & (LETTER | Class::NUMBER) != 0
        };
        let before = self.codes[from..end].iter().rev();
        let length = before.take_while(|&&code| is_part(code.into())).count();
        let word = &self.codes[end - length..end];
        if word.iter().any(|&code| self.classes.of(code.into()) & Class::NUMBER != 0) {
            // The number of an item stands at the start of its sentence.
            let mut before = self.codes[start..end - length].iter();
            return before.all(|&code| is_space(code.into()));
        }
        if length == 1 || word.iter().any(|&code| code.into() == u32::from('.')) {
            return true;
        }
        let mut lowered = [0; MAX_WORD];
        for (lowered, &code) in lowered.iter_mut().zip(word) {
            *lowered = code.at_most(OTHER).to_ascii_lowercase();
        }
        let lowered = &lowered[..length];
        if lowered.contains(&OTHER) {
            let word: Option<String> =
                word.iter().map(|&code| char::from_u32(code.into())).collect();
            let lowered = word.unwrap_or_default().to_lowercase();
            return ABBREVIATIONS.binary_search(&lowered.as_str()).is_ok();
        }
        ABBREVIATIONS.binary_search_by(|one| one.as_bytes().cmp(lowered)).is_ok()
    }

    /// Adds the sentence from `start` to `end`, without the whitespace around it,
    /// and returns `end`.
    fn close(&self, start: usize, end: usize, spans: &mut Vec<usize>) -> usize {
        let first = self.end_of(start, is_space).min(end);
        let inner = &self.codes[first..end];
        if let Some(last) = inner.iter().rposition(|&code| !is_space(code.into())) {
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

    /// Separators of files end lines, in a block of code points, too.
    #[test]
    fn every_line_end_is_seen_in_a_block() {
        for end in LINE_ENDS {
            let text = format!("Tea is green{end}Milk is white, and so is some tea.");
            assert_eq!([0, 12, 13, 47], *sentence_spans(Text::from(&*text)), "{end:?}");
        }
    }

    /// A line end of two characters is one; one of them twice is two.
    #[test]
    fn two_line_ends_end_a_sentence() {
        let count = |text: &str| sentence_spans(Text::from(text)).len() / 2;
        let texts = ["Tea is\r\ngreen.", "Tea is\r\rgreen.", "Tea is\n\rgreen.", "Tea is\ngreen."];
        assert_eq!([1, 2, 2, 1], texts.map(count));
    }

    /// What is passed over ends no sentence.
    #[test]
    fn every_end_is_looked_at() {
        let ends = (0..=0x10_FFFF).filter(|&code| is_one_of(code, &LINE_ENDS) || is_end(code));
        assert!(ends.clone().all(may_end));
        assert_eq!(LINE_ENDS.len() + WIDE_ENDS.len() + ENDS.len(), ends.count());
    }
}
