//! Which lines of a log stay first.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::{memchr_iter, memmem, memrchr3};

use super::lines::{Lines, is_blank, is_object, split};
use super::share::{from_ends, rank, scores_of};
use crate::text::Text;

/// How many lines at either end of a log stay after its errors and warnings.
const EDGE: usize = 2;

/// How many lines on either side of an error stay after those.
const CONTEXT: usize = 2;

/// The order in which lines stay: the last and the other repeats of an error,
/// those of the rest.
const ANSWER: u8 = 0;
const ERROR: u8 = 1;
const LAST: u8 = 2;
const INSIDE: u8 = 3;
const WARNING: u8 = 4;
const END: u8 = 5;
const AROUND: u8 = 6;
const ERROR_AGAIN: u8 = 7;
const OTHER: u8 = 8;
const WARNING_AGAIN: u8 = 9;
const AGAIN: u8 = 10;

/// The fewest lines of a log.
const FEWEST: usize = 4;

/// How many code points of a line may say that it is one of a log.
const LOOKED_AT: usize = 64;

const ERRORS: [&[u8]; 19] = [
    b"abort",
    b"aborted",
    b"crit",
    b"critical",
    b"emerg",
    b"emergency",
    b"err",
    b"error",
    b"errors",
    b"exception",
    b"fail",
    b"failed",
    b"failure",
    b"fatal",
    b"panic",
    b"panicked",
    b"segfault",
    b"severe",
    b"traceback",
];

/// The low bits of the letters with which [`ERRORS`] begin, each as a bit.
const FIRSTS: u32 = {
    let mut firsts = 0;
    let mut at = 0;
    while at < ERRORS.len() {
        firsts |= 1 << (ERRORS[at][0] & 0x1F);
        at += 1;
    }
    firsts
};

/// How the errors of builds begin where no place stands before them.
const DIAGNOSTICS: [&[u8]; 14] = [
    b"error: ",
    b"error[",
    b"fatal: ",
    b"fatal error: ",
    b"ERROR: ",
    b"ERROR ",
    b"[ERROR]",
    b"FAILED: ",
    b"FAILED ",
    b"FAIL ",
    b"--- FAIL: ",
    b"make: *** ",
    b"npm ERR! ",
    b"Traceback (most recent call last):",
];

/// How lines of a page begin, which may quote an error: no build has them.
const MARKDOWN: [&[u8]; 3] = [b"```", b"## ", b"|"];

/// What has the level of a line that is an object of JSON.
const KEYS: [&[u8]; 7] = [
    b"level\"",
    b"lvl\"",
    b"levelname\"",
    b"loglevel\"",
    b"log.level\"",
    b"severity\"",
    b"severitytext\"",
];

const LEVELS: [&[u8]; 9] =
    [b"DEBUG", b"INFO", b"NOTICE", b"WARN", b"WARNING", b"ERROR", b"FATAL", b"CRITICAL", b"TRACE"];

/// Returns a log: answers and errors first, then warnings, the ends, what is
/// around errors, the rest.
///
/// Answers and errors take turns. Of similar lines the one that answers best
/// stands for all; without a query, the first. The last of similar errors is
/// early, too. Their other repeats take turns with the rest, so that neither a
/// flood of one error hides the rest, nor the rest an error that came back. The
/// result means nothing once `stop` is set.
pub(super) fn log_of<'a>(
    text: &'a [u8],
    query: Option<Text<'_>>,
    stop: &'a AtomicBool,
) -> Lines<'a> {
    let units = split(text);
    let lines: Vec<_> =
        units.iter().map(|unit| Cow::Borrowed(&text[unit.start..unit.body])).collect();
    let scores = scores_of(query, &lines);
    let count = lines.len();
    let mut tiers = Vec::with_capacity(count);
    // The error that a line is inside of, else the line.
    let mut heads: Vec<_> = (0..count).collect();
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut masked = Vec::new();
    let mut masks = Vec::with_capacity(count);
    // By mask: the best line, and the last error.
    let mut best = Vec::new();
    let mut last = Vec::new();
    let mut was_error = false;
    for (i, line) in lines.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Lines::new(text, Vec::new(), Vec::new(), "line", Vec::new(), stop);
        }
        let next = seen.len();
        let mut told = tells(line);
        // Lines that differ in a level that is a number are not alike.
        masked.clear();
        mask(line, &mut masked);
        masked.push(told);
        let mask = seen.get(&masked).copied().unwrap_or_else(|| {
            seen.insert(masked.clone(), next);
            next
        });
        masks.push(mask);
        if mask == next {
            best.push(i);
            last.push(None);
        }
        let is_inside = was_error && matches!(line.first(), Some(b' ' | b'\t'));
        was_error = told == ERROR || is_inside;
        if is_inside {
            heads[i] = heads[i - 1];
            told = INSIDE;
        } else if told == ERROR {
            last[mask] = Some(i);
        }
        tiers.push(if scores[i] > 0.0 { ANSWER } else { told });
        if scores[i] > scores[best[mask]] {
            best[mask] = i;
        }
    }
    for (i, &mask) in masks.iter().enumerate().filter(|&(i, &mask)| best[mask] != i) {
        tiers[i] = match tiers[i] {
            _ if last[mask] == Some(i) => LAST,
            ANSWER | ERROR => ERROR_AGAIN,
            WARNING => WARNING_AGAIN,
            _ => AGAIN,
        };
    }
    let important: Vec<_> = (0..count).filter(|&i| tiers[i] <= INSIDE).collect();
    for i in important {
        for tier in &mut tiers[i.saturating_sub(CONTEXT)..count.min(i + CONTEXT + 1)] {
            if *tier == OTHER {
                *tier = AROUND;
            }
        }
    }
    for i in (0..count).filter(|&i| i < EDGE || i + EDGE >= count) {
        tiers[i] = END.min(tiers[i]);
    }
    let heads = &heads;
    let with_inside = |at: usize| (at..count).take_while(move |&i| heads[i] == at);
    let mut order: Vec<_> = from_ends(count).flat_map(with_inside).collect();
    rank(&mut order, &scores, Some(&tiers));
    let order = taking_turns(&taking_turns(&order, &tiers, ERROR_AGAIN), &tiers, ANSWER);
    Lines::new(text, units, order, "line", masks, stop)
}

/// Returns lines in order of their tiers, but those of a tier in turns with the
/// next one's.
fn taking_turns(order: &[usize], tiers: &[u8], tier: u8) -> Vec<usize> {
    let start = order.partition_point(|&i| tiers[i] < tier);
    let middle = order.partition_point(|&i| tiers[i] <= tier);
    let end = order.partition_point(|&i| tiers[i] <= tier + 1);
    let (first, next) = (&order[start..middle], &order[middle..end]);
    let mut turns = order[..start].to_vec();
    for i in 0..first.len().max(next.len()) {
        turns.extend(first.get(i).into_iter().chain(next.get(i)));
    }
    turns.extend(&order[end..]);
    turns
}

/// Returns whether a line tells of an error, of a warning, or of neither.
fn tells(line: &[u8]) -> u8 {
    let level = if is_object(line) { level_of(line) } else { None };
    if let Some(number @ [b'0'..=b'9', ..]) = level {
        return told_by(number);
    }
    if line.starts_with(b"E  ") {
        return ERROR;
    }
    let mut told = OTHER;
    for word in level.unwrap_or(line).split(|byte| !byte.is_ascii_alphabetic()) {
        if is_error(word) {
            return ERROR;
        } else if is_warning(word) {
            told = WARNING;
        }
    }
    told
}

/// Returns what a level tells that is a number: as in syslog below 10, else as in
/// pino.
fn told_by(number: &[u8]) -> u8 {
    match number {
        [b'0'..=b'3'] | [b'5'..=b'9', _] | [_, _, _, ..] => ERROR,
        [b'4'] | [b'4', _] => WARNING,
        _ => OTHER,
    }
}

/// Returns the word or the number that a member of an object of JSON has for a
/// level.
fn level_of(line: &[u8]) -> Option<&[u8]> {
    let spaces = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    memchr_iter(b'"', line).find_map(|at| {
        let rest = &line[at + 1..];
        let is_start = |key: &&&[u8]| {
            rest.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key))
        };
        let rest = &rest[KEYS.iter().find(is_start)?.len()..];
        let rest = rest[spaces(rest)..].strip_prefix(b":")?;
        let rest = &rest[spaces(rest)..];
        let (rest, is_part): (_, fn(&u8) -> bool) = match rest.strip_prefix(b"\"") {
            Some(word) => (word, u8::is_ascii_alphabetic),
            None => (rest, u8::is_ascii_digit),
        };
        let size = rest.iter().take_while(|byte| is_part(byte)).count();
        Some(&rest[..size]).filter(|level| !level.is_empty())
    })
}

/// Returns whether a word of a line tells of an error. `-Werror` does not.
fn is_error(word: &[u8]) -> bool {
    let ends: [&[u8]; 4] = [b"Error", b"Exception", b"ERROR", b"EXCEPTION"];
    let Some(first) = word.first() else { return false };
    let may_be_one = FIRSTS >> (first & 0x1F) & 1 == 1;
    (may_be_one && ERRORS.iter().any(|known| word.eq_ignore_ascii_case(known)))
        || ends.iter().any(|end| word.ends_with(end))
}

/// Returns whether a word of a line tells of a warning.
fn is_warning(word: &[u8]) -> bool {
    let end = &word[word.len().saturating_sub(b"warning".len())..];
    end.eq_ignore_ascii_case(b"warning")
        || [&b"warn"[..], b"warnings"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Writes a line with its numbers, times and identifiers masked.
fn mask(line: &[u8], masked: &mut Vec<u8>) {
    let (mut at, mut written) = (0, 0);
    while at < line.len() {
        let start = at;
        let mut found = 0;
        while let Some(class) = line.get(at).map(|&byte| CLASSES[usize::from(byte)])
            && class != 0
        {
            found |= class;
            at += 1;
        }
        let is_hex = at - start >= 4 && found & LETTER == 0;
        if is_hex || found & DIGIT != 0 {
            masked.extend_from_slice(&line[written..start]);
            masked.push(b'#');
            written = at;
        }
        at += usize::from(at < line.len());
    }
    masked.extend_from_slice(&line[written..]);
}

const DIGIT: u8 = 1;
const HEX_LETTER: u8 = 2;
const LETTER: u8 = 4;

/// What each byte is of a word; 0 for what is of none.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 0x80 {
        classes[byte as usize] = match byte {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'f' | b'A'..=b'F' => HEX_LETTER,
            b'g'..=b'z' | b'G'..=b'Z' => LETTER,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// Returns whether a text is a log, by its lines that are not blank: half of them
/// have a level or a clock's time; or all are objects of JSON; or one of them is
/// the error of a build, and half have digits, slashes or the like, and none
/// begins as in Markdown. The result means nothing once `stop` is set.
pub(super) fn is_log(text: &[u8], stop: &AtomicBool) -> bool {
    let units = split(text);
    let (mut lines, mut found, mut are_objects) = (0, 0, true);
    for unit in units.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        let line = &text[unit.start..unit.body];
        if !is_blank(line) {
            lines += 1;
            found += usize::from(is_line_of_log(line));
            are_objects = are_objects && is_object(line);
        }
    }
    let each = || units.iter().map(|unit| &text[unit.start..unit.body]);
    (lines > 1 && are_objects)
        || (lines >= FEWEST && (2 * found >= lines || is_build(text, each, lines)))
}

/// Returns whether a text of these lines, and that many without the blank ones,
/// is the output of a build that has an error.
fn is_build<'a, L: Iterator<Item = &'a [u8]>>(
    text: &[u8],
    each: impl Fn() -> L,
    lines: usize,
) -> bool {
    let begins = |line: &[u8], starts: &[&[u8]]| starts.iter().any(|start| line.starts_with(start));
    let is_error = |line: &[u8]| {
        // Most lines begin with another letter, which one comparison tells.
        let first = line.first().copied().unwrap_or_default();
        b"EFT[efmn-".contains(&first) && begins(line, &DIAGNOSTICS)
    };
    (each().any(is_error) || has_place_of_error(text))
        && !each().any(|line| begins(line, &MARKDOWN))
        && 2 * each().filter(|line| line.iter().any(|byte| is_mark(*byte))).count() >= lines
}

/// Returns whether prose has a character seldom.
fn is_mark(byte: u8) -> bool {
    byte.is_ascii_digit() || br"/\_=[]<>{}|".contains(&byte)
}

/// Returns whether a line tells of an error behind its place, which has no
/// spaces, such as `a.c:3:5: error: ...`.
fn has_place_of_error(text: &[u8]) -> bool {
    let signs: [&[u8]; 2] = [b": error", b": fatal error"];
    signs.iter().any(|sign| {
        memmem::find_iter(text, sign).any(|at| {
            let (before, said) = (&text[..at], &text[at + sign.len()..]);
            let (place, is_start) = match memrchr3(b'\n', b' ', b'\t', before) {
                Some(end) => (&before[end + 1..], before[end] == b'\n'),
                None => (before, true),
            };
            let is_said = said.starts_with(b": ");
            is_start
                && !place.is_empty()
                && (is_said || (place.ends_with(b")") && said.starts_with(b" ")))
        })
    })
}

fn is_line_of_log(line: &[u8]) -> bool {
    let start = match line.get(..LOOKED_AT) {
        Some(start) if start.is_ascii() => start,
        Some(_) => &line[..end_of_chars(line, LOOKED_AT)],
        None => line,
    };
    let is_time = |at: usize| {
        let around = [at.wrapping_sub(2), at.wrapping_sub(1), at + 1, at + 2];
        around.iter().all(|&at| start.get(at).is_some_and(u8::is_ascii_digit))
    };
    memchr_iter(b':', start).any(is_time)
        || start.split(|byte| !byte.is_ascii_alphabetic()).any(|word| LEVELS.contains(&word))
}

/// Returns where the first `count` code points of UTF-8 end.
fn end_of_chars(text: &[u8], count: usize) -> usize {
    let mut starts = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, 0x80..0xC0));
    starts.nth(count).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_place_before_it() {
        for text in [
            "a.c:3:5: error: x",
            "tea\na.c:3:5: error: x",
            "\na: fatal error: x\n",
            "a.cs(3,5): error CS1: x",
            "a.cs(3): error: x",
            "tea: error\na: error: x",
        ] {
            assert!(has_place_of_error(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "see a.c:3:5: error: x",
            "\ta.c:3:5: error: x",
            ": error: x",
            "\n: error: x",
            "tea\n: error: x",
            "a.c:3: error x",
            "a.cs(3): errors",
            "a.c:3: errors: x",
            "a.c:3: error",
            "a.c:3:error: x",
        ] {
            assert!(!has_place_of_error(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_time_or_a_level_stands_in_the_first_characters() {
        let far = |before: &str, count: usize, what: &str| {
            is_line_of_log([&before.repeat(count), what].concat().as_bytes())
        };
        assert_eq!([true, false], [60, 61].map(|count| far(" ", count, "INFO")));
        assert_eq!([true, false], [59, 60].map(|count| far(" ", count, "12:30")));
        assert_eq!([true, false], [60, 61].map(|count| far("\u{8336}", count, "INFO")));
        assert_eq!([true, false], [59, 60].map(|count| far("\u{8336}", count, "12:30")));
        assert!(!is_line_of_log(b"1:30 and 12:3") && !is_line_of_log(b"INFORMED"));
    }
}
