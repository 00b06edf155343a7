//! Splitting a text into pretokens: the pieces that a tokenizer counts one by
//! one.
//!
//! No pattern is compiled for the tokenizers that are known: the functions here
//! are the published patterns, written out. Those of most tokenizers differ in
//! a few rules, as [`Rules`] says. The patterns (tiktoken 0.14,
//! `tiktoken_ext/openai_public.py`):
//!
//! ```text
//! cl100k_base  '(?i:[sdmt]|ll|ve|re) | [^\r\n\p{L}\p{N}]?+\p{L}++ | \p{N}{1,3}+
//!              | _?[^\s\p{L}\p{N}]++[\r\n]*+ | \s++$ | \s*[\r\n] | \s+(?!\S) | \s
//! o200k_base   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+C?
//!              | [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*C?
//!              | \p{N}{1,3} | _?[^\s\p{L}\p{N}]+[\r\n/]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//! ```
//!
//! where `_` is a space and `C` is `(?i:'s|'t|'re|'ve|'m|'ll|'d)`. Llama 3's is
//! that of `cl100k_base` with `\s*[\r\n]+` in place of `\s++$ | \s*[\r\n]`;
//! Qwen 2's has `\p{N}` besides, and Qwen 3.5's takes marks for letters as well.
//! Tekken's is that of `o200k_base` with `\p{N}` and without `C`.

pub(crate) mod deepseek;
pub(crate) mod gpt2;
pub(crate) mod pieces;
#[cfg(feature = "files")]
pub(crate) mod regex;

use crate::text::classes::{Class, Classes};

const LETTER: u8 = Class::UPPER | Class::LOWER | Class::OTHER_LETTER;
/// What may stand in front of the lowercase part of a word.
const UPPER_PART: u8 = Class::UPPER | Class::OTHER_LETTER | Class::MARK;
const LOWER_PART: u8 = Class::LOWER | Class::OTHER_LETTER | Class::MARK;
/// The classes that are in both parts of a word.
const EITHER_PART: u8 = UPPER_PART & LOWER_PART;
const SPACE: u8 = Class::SPACE | Class::NEWLINE;

/// Splits a text.
pub(crate) trait Pattern: Copy {
    /// The rules of the pattern, if [`super::blocks`] knows it.
    const RULES: Option<Rules> = None;

    /// Returns where the pretoken that starts at `at` ends. `text` must be
    /// UTF-8.
    fn end(self, classes: &Classes, text: &[u8], at: usize) -> usize;
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// A run of letters.
    Letters,
    /// A run of letters and marks.
    Marked,
    /// A run of letters and marks that ends where uppercase follows lowercase.
    Cased,
}

/// Where contractions such as `'s` are pretokens, or end one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contractions {
    /// Nowhere: `'s` is a word.
    None,
    /// Each is a pretoken.
    Alone,
    /// Each goes with the word in front.
    Behind,
}

/// In what patterns differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) words: Words,
    pub(crate) contractions: Contractions,
    /// How many digits a pretoken has at most.
    pub(crate) digits: usize,
    /// Whether slashes may follow the line ends behind punctuation.
    pub(crate) takes_slashes: bool,
    /// Whether whitespace at the end of the text is one pretoken, whatever line
    /// ends are in it.
    pub(crate) ends_whole: bool,
    /// Whether digits are split off first: whitespace in front of them is as at
    /// the end of a text. The blocks leave control characters to such a pattern.
    pub(crate) parts_digits: bool,
}

impl Rules {
    pub(crate) const fn is_cased(self) -> bool {
        matches!(self.words, Words::Cased)
    }

    pub(crate) const fn is(self, contractions: Contractions) -> bool {
        self.contractions as u8 == contractions as u8
    }

    /// The classes of the characters of a word that need not be cased.
    const fn word(self) -> u8 {
        if matches!(self.words, Words::Letters) { LETTER } else { LETTER | Class::MARK }
    }
}

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident: $words:ident, $contractions:ident, $digits:literal, $takes_slashes:literal, $ends_whole:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct $name;

            impl Pattern for $name {
                const RULES: Option<Rules> = Some(Rules {
                    words: Words::$words,
                    contractions: Contractions::$contractions,
                    digits: $digits,
                    takes_slashes: $takes_slashes,
                    ends_whole: $ends_whole,
                    parts_digits: false,
                });

                fn end(self, classes: &Classes, text: &[u8], at: usize) -> usize {
                    const RULES: Rules = $name::RULES.expect("they are above");
                    end(RULES, classes, text, at)
                }
            }
        )*
    };
}

patterns! {
    /// The pattern of `cl100k_base`.
    Cl100k: Letters, Alone, 3, false, true;
    /// The pattern of `o200k_base`.
    O200k: Cased, Behind, 3, true, false;
    /// The pattern of Llama 3 and GLM 4.
    Llama3: Letters, Alone, 3, false, false;
    /// The pattern of Qwen 2, 2.5 and 3.
    Qwen2: Letters, Alone, 1, false, false;
    /// The pattern of Qwen 3.5.
    Qwen35: Marked, Alone, 1, false, false;
    /// The pattern of Mistral's Tekken.
    Tekken: Cased, None, 1, true, false;
}

/// Returns where the pretoken that starts at `at` ends.
#[inline]
fn end(rules: Rules, classes: &Classes, text: &[u8], at: usize) -> usize {
    let (class, size) = classes.at(text, at);
    let behind = at + size;
    if rules.is_cased() {
        if let Some(end) = word(classes, text, at, class, behind) {
            let is_contracted = rules.is(Contractions::Behind);
            return if is_contracted { end + contraction(text, end) } else { end };
        }
    } else {
        let letters = rules.word();
        if class & letters != 0 {
            return run(classes, text, behind, letters);
        }
        if rules.is(Contractions::Alone) {
            let contraction = contraction(text, at);
            if contraction > 0 {
                return at + contraction;
            }
        }
        let starts_word = |at| at < text.len() && classes.at(text, at).0 & letters != 0;
        if class & (Class::NUMBER | Class::NEWLINE) == 0 && starts_word(behind) {
            return run(classes, text, behind, letters);
        }
    }
    if class & Class::NUMBER != 0 {
        return digits(rules.digits, classes, text, behind);
    }
    if class & SPACE == 0 {
        return punctuation(rules, classes, text, behind);
    }
    if text[at] == b' ' && behind < text.len() {
        let (class, size) = classes.at(text, behind);
        // A mark behind the space has started a word where it may.
        if class & (SPACE | LETTER | Class::NUMBER) == 0 {
            return punctuation(rules, classes, text, behind + size);
        }
    }
    space(rules.ends_whole, classes, text, at)
}

/// Returns where a run of characters of `wanted` classes ends.
fn run(classes: &Classes, text: &[u8], mut at: usize, wanted: u8) -> usize {
    while at < text.len() {
        let (class, size) = classes.at(text, at);
        if class & wanted == 0 {
            break;
        }
        at += size;
    }
    at
}

/// Returns where the word of o200k that starts at `at` ends, without its
/// contraction. The word may begin with one character that is not a letter.
/// `behind` is where the character at `at`, which is of that `class`, ends.
fn word(classes: &Classes, text: &[u8], at: usize, class: u8, behind: usize) -> Option<usize> {
    if class & LETTER != 0 {
        let (end, _) = parts(classes, text, at)?;
        return Some(end);
    }
    if class & (Class::NUMBER | Class::NEWLINE) != 0 {
        return None;
    }
    // The first alternative is tried with the character in front, then without;
    // then the second one.
    match parts(classes, text, behind) {
        Some((end, true)) => Some(end),
        _ if class & Class::MARK != 0 => parts(classes, text, at).map(|(end, _)| end),
        behind => behind.map(|(end, _)| end),
    }
}

/// Returns where the upper and lower parts that start at `at` end, and whether
/// the first alternative matches them. That one wants a lower part.
fn parts(classes: &Classes, text: &[u8], at: usize) -> Option<(usize, bool)> {
    let mut upper = at;
    let mut last_either = None;
    while upper < text.len() {
        let (class, size) = classes.at(text, upper);
        if class & UPPER_PART == 0 {
            break;
        }
        upper += size;
        if class & EITHER_PART != 0 {
            last_either = Some(upper);
        }
    }
    let lower = run(classes, text, upper, LOWER_PART);
    if lower > upper {
        Some((lower, true))
    } else if let Some(end) = last_either {
        Some((end, true))
    } else {
        (upper > at).then_some((upper, false))
    }
}

/// Returns the length of the contraction at `at`, 0 where there is none.
#[inline]
pub(super) fn contraction(text: &[u8], at: usize) -> usize {
    let [b'\'', rest @ ..] = &text[at..] else { return 0 };
    match rest {
        // The long s is an s where case is ignored.
        [0xC5, 0xBF, ..] => 3,
        [letter, ..] if matches!(letter | 0x20, b's' | b't' | b'm' | b'd') => 2,
        [first, second, ..]
            if matches!((first | 0x20, second | 0x20), (b'l', b'l') | (b'v' | b'r', b'e')) =>
        {
            3
        }
        _ => 0,
    }
}

/// Returns where a group of at most `most` digits ends. The first of them ends
/// at `at`.
fn digits(most: usize, classes: &Classes, text: &[u8], mut at: usize) -> usize {
    for _ in 1..most {
        if at == text.len() {
            break;
        }
        let (class, size) = classes.at(text, at);
        if class & Class::NUMBER == 0 {
            break;
        }
        at += size;
    }
    at
}

/// Returns where punctuation and the line ends behind it end.
fn punctuation(rules: Rules, classes: &Classes, text: &[u8], mut at: usize) -> usize {
    let others = if rules.words == Words::Marked { Class::MARK } else { 0 };
    while at < text.len() {
        let (class, size) = classes.at(text, at);
        if class & (SPACE | LETTER | Class::NUMBER | others) != 0 {
            break;
        }
        at += size;
    }
    let is_tail =
        |byte: &&u8| matches!(byte, b'\r' | b'\n') || (rules.takes_slashes && **byte == b'/');
    at + text[at..].iter().take_while(is_tail).count()
}

/// Returns where the whitespace at `at` ends.
fn space(ends_whole: bool, classes: &Classes, text: &[u8], at: usize) -> usize {
    let mut end = at;
    let mut last = at;
    let mut behind_newline = None;
    while end < text.len() {
        let (class, size) = classes.at(text, end);
        if class & SPACE == 0 {
            break;
        }
        last = end;
        end += size;
        if class & Class::NEWLINE != 0 {
            behind_newline = Some(end);
        }
    }
    if ends_whole && end == text.len() {
        end
    } else if let Some(end) = behind_newline {
        end
    } else if end == text.len() || last == at {
        end
    } else {
        last
    }
}

/// Returns whether the place between two code points is a safe split under
/// every pattern that [`Rules`] describes: the parts of the text can be counted
/// one by one there, whatever stands around it. A pretoken ends there, and no
/// other one depends on what is behind.
///
/// That is so between a letter or digit and whitespace; between these and
/// punctuation other than an apostrophe; and behind a line end that neither
/// whitespace follows nor a character that the pattern takes to the punctuation
/// in front.
pub(crate) fn is_safe_split(classes: &Classes, before: u32, behind: u32) -> bool {
    ends_word(classes, before, behind)
        || (matches!(before, 0xA | 0xD)
            && classes.of(behind) & SPACE == 0
            && behind != u32::from(b'/'))
}

/// Returns whether a letter or digit is in front of whitespace, or of
/// punctuation other than an apostrophe.
fn ends_word(classes: &Classes, before: u32, behind: u32) -> bool {
    let class = classes.of(behind);
    classes.of(before) & (LETTER | Class::NUMBER) != 0
        && (class & SPACE != 0 || (class & !Class::SIGN == 0 && behind != u32::from(b'\'')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits(pattern: impl Pattern, text: &str) -> Vec<&str> {
        let (classes, mut at, mut splits) = (Classes::get(), 0, Vec::new());
        while at < text.len() {
            let end = pattern.end(classes, text.as_bytes(), at);
            splits.push(&text[at..end]);
            at = end;
        }
        splits
    }

    /// As the patterns above say; `|` stands between pretokens.
    #[test]
    fn pretokens() {
        let check = |split: fn(&str) -> Vec<&str>, all: &[&str]| {
            for expected in all {
                assert_eq!(*expected, split(&expected.replace('|', "")).join("|"));
            }
        };
        let of_cl100k = [
            "I|'ll| go",
            "we|'Re|'VE",
            "it|'s|'D|'m|'T",
            "a|'\u{17f}|b",
            "a|'lx",
            "a|'v| '|e",
            "TeA",
            "_a|\u{301}b| \u{301}|c",
            "..\u{301}|a",
            "123|4|a",
            " |1|.\n\n|b",
            " !?\r\n|b",
            "a|/\n|/b",
            "x| | y",
            "x| \n| y",
            "x|\n\n| y",
            "a| \n ",
            "a|  ",
        ];
        check(|text| splits(Cl100k, text), &of_cl100k);
        check(|text| splits(Llama3, text), &["a| \n| ", "123|4"]);
        check(|text| splits(Qwen2, text), &["a| \n| ", "1|2|3|."]);
        check(|text| splits(Qwen35, text), &["_a\u{301}b| \u{301}c|.\u{301}d|1| ?", "..|\u{301}a"]);
        let of_o200k = [
            "I'll| go",
            "a'\u{17f}|b",
            "Te|A",
            "TEa|Bc",
            "tea|TEA",
            "\u{301}a|B\u{301}c",
            "\u{301}|AB",
            " \u{301}a",
            ".\u{301}|.\u{301}",
            "TE\u{301}Ab",
            "A\u{301}|1",
            "\u{65e5}a\u{65e5}|A",
            "123|4",
            "a|/\n/|b",
            "x|  | y",
            "a| \n\n| ",
        ];
        check(|text| splits(O200k, text), &of_o200k);
        check(|text| splits(Tekken, text), &["I|'ll| go|1|2|/\n/|b", "Te|A"]);
    }

    #[test]
    fn safe_splits() {
        let is_safe = |two: &str| {
            let codes: Vec<u32> = two.chars().map(u32::from).collect();
            is_safe_split(Classes::get(), codes[0], codes[1])
        };
        for two in ["a ", "1 ", "a\n", "a.", "1!", "\u{e9}-", "\na", "\r.", "\n1", "\n\u{301}"] {
            assert!(is_safe(two), "{two:?}");
        }
        for two in
            ["ab", "a1", "a'", "a\u{301}", ". ", "..", " a", "\u{301} ", "\n/", "\n ", "\n\n"]
        {
            assert!(!is_safe(two), "{two:?}");
        }
    }
}
