//! Counting for Claude as `ctok` defines it: the whole text is written with
//! markers, then covered with as few pieces as possible.
//!
//! The rules are those of `ctok` 1.3.0, by Sander Land, one after another. The
//! pieces and the kinds of characters come from the vocabulary.

use std::collections::HashSet;
use std::sync::LazyLock;

use budgeteer::Claude;
use budgeteer_vocab::{Claude as Source, ClaudeCharacters as Of, ClaudePieces};
use unicode_normalization::UnicodeNormalization as _;

const BEGIN: u8 = ClaudePieces::WORD_BEGIN;
const END: u8 = ClaudePieces::WORD_END;

const CONTRACTIONS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// The fewest characters that are written as capitals, for Claude 3.
const CAPITALS: usize = 4;

/// The most bytes of a piece.
const LONGEST: usize = 128;

/// A family: its pieces, and the rules that it has.
pub struct Family {
    pieces: HashSet<Vec<u8>>,
    heads: HashSet<Vec<u8>>,
    is_three: bool,
    /// Whether what is in front of the text ends with a marker.
    has_marker: bool,
}

static CHARACTERS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut bits = vec![0; 0x11_0000];
    for (first, last, value) in Of::load().ranges() {
        bits[first as usize..=last as usize].fill(value);
    }
    bits
});

static LOWERS: LazyLock<Vec<(char, char)>> = LazyLock::new(|| Of::load().lowers().collect());

static ALL: LazyLock<[Family; 3]> = LazyLock::new(|| Claude::ALL.map(Family::new));

/// Returns the count of a text by a generation.
#[must_use]
pub fn count(claude: Claude, text: &str) -> usize {
    if text.is_empty() { 0 } else { ALL[claude as usize].count(text) }
}

fn bits(char: char) -> u32 {
    CHARACTERS[char as usize]
}

fn kind(char: char) -> u32 {
    bits(char) & Of::KIND
}

fn has(char: char, bit: u32) -> bool {
    bits(char) & bit != 0
}

fn lower(char: char) -> char {
    let found = LOWERS.binary_search_by_key(&char, |pair| pair.0);
    found.map_or(char, |place| LOWERS[place].1)
}

/// What a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Word,
    /// Marks without a letter in front of them.
    Stray,
    Digit,
    Punctuation,
    Space,
    Hard,
}

#[derive(Clone, Debug)]
struct Run {
    class: Class,
    body: Vec<char>,
}

fn class(char: char) -> Class {
    match kind(char) {
        Of::WORDY => Class::Word,
        Of::DIGIT => Class::Digit,
        Of::PUNCTUATION => Class::Punctuation,
        Of::SPACE => Class::Space,
        _ => Class::Hard,
    }
}

/// Which part of a hard run a character belongs to.
fn hard_kind(char: char) -> u32 {
    match kind(char) {
        Of::SYMBOL => Of::SYMBOL,
        Of::DECIMAL | Of::NUMBER => Of::NUMBER,
        _ => Of::LETTER,
    }
}

fn runs(text: &str) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    for char in text.chars() {
        let class = class(char);
        let is_stray = class == Class::Word && has(char, Of::STRAY);
        let last = found.last().map(|run| run.class);
        let joins = last == Some(class) || last == Some(Class::Stray) && is_stray;
        match found.last_mut() {
            Some(run) if joins => run.body.push(char),
            _ => {
                let class = if is_stray { Class::Stray } else { class };
                found.push(Run { class, body: vec![char] });
            }
        }
    }
    let mut split: Vec<Run> = Vec::new();
    for run in found {
        if run.class != Class::Hard {
            split.push(run);
            continue;
        }
        let mut part: Vec<char> = Vec::new();
        let mut last = None;
        for char in run.body {
            let is_selector = kind(char) == Of::SELECTOR && !part.is_empty();
            if !is_selector && last.is_some_and(|last| last != hard_kind(char)) {
                split.push(Run { class: Class::Hard, body: std::mem::take(&mut part) });
            }
            if part.is_empty() {
                last = Some(hard_kind(char));
            }
            part.push(char);
        }
        split.push(Run { class: Class::Hard, body: part });
    }
    split
}

impl Run {
    fn first(&self) -> char {
        self.body[0]
    }

    fn last(&self) -> char {
        self.body[self.body.len() - 1]
    }

    fn is(&self, text: &str) -> bool {
        self.body.iter().copied().eq(text.chars())
    }

    fn takes_begin(&self) -> bool {
        takes_border(self.first())
    }

    fn takes_end(&self) -> bool {
        takes_border(self.last())
    }

    /// Whether all are decimal digits, or all other numbers.
    fn is_number(&self) -> bool {
        let sort = |char: char| match kind(char) {
            Of::DIGIT | Of::DECIMAL => Some(Of::DECIMAL),
            Of::NUMBER => Some(Of::NUMBER),
            _ => None,
        };
        matches!(self.class, Class::Digit | Class::Hard)
            && sort(self.first()).is_some()
            && self.body.iter().all(|&char| sort(char) == sort(self.first()))
    }

    fn starts_as_number(&self) -> bool {
        self.is_number() && !self.first().is_ascii()
    }

    fn ends_as_number(&self) -> bool {
        self.is_number() && !self.last().is_ascii()
    }

    /// Whether its end has a border of its own, behind which no contraction is.
    fn is_border(&self) -> bool {
        self.class == Class::Punctuation || self.takes_end() || self.ends_as_number()
    }
}

/// Whether a run takes a marker where this character touches a space.
fn takes_border(char: char) -> bool {
    matches!(kind(char), Of::SYMBOL | Of::SELECTOR) || has(char, Of::BORDER)
}

/// Whether a run is a lone apostrophe that opens the word behind it.
fn opens_word(runs: &[Run], at: usize) -> bool {
    let next = runs.get(at + 1).map(|run| run.class);
    runs[at].is("'") && matches!(next, Some(Class::Word | Class::Stray))
}

fn is_contraction(runs: &[Run], at: usize) -> bool {
    CONTRACTIONS.iter().any(|word| runs[at].is(word))
        && at > 0
        && runs[at - 1].class == Class::Punctuation
        && runs[at - 1].is("'")
        && (at < 2 || !runs[at - 2].is_border())
}

impl Family {
    fn new(claude: Claude) -> Self {
        let is_three = claude == Claude::V3;
        let pieces = if is_three { Source::Three } else { Source::FourSeven }.load();
        Self {
            pieces: pieces.iter().map(<[u8]>::to_vec).collect(),
            heads: pieces.heads().map(<[u8]>::to_vec).collect(),
            is_three,
            has_marker: claude != Claude::V48,
        }
    }

    fn count(&self, text: &str) -> usize {
        let normal = self.normalized(text);
        let body = normal.trim_end_matches('\n');
        let newlines = normal.len() - body.len();
        let tail = if newlines == 0 { 0 } else { self.tile(&vec![b'\n'; newlines + 2]) - 1 };
        let stream = self.stream(body, text.starts_with(' '));
        self.tile(&without_seams(&stream)) + tail
    }

    fn normalized(&self, text: &str) -> String {
        // Unicode 15.0 knows nothing that it has not assigned.
        let is_unknown = |char: char| has(char, Of::UNASSIGNED);
        let mut composed = String::new();
        for part in text.split_inclusive(is_unknown) {
            let known = part.trim_end_matches(is_unknown);
            composed.extend(known.nfc());
            composed.push_str(&part[known.len()..]);
        }
        let is_private = |char: &char| ('\u{E000}'..='\u{F8FF}').contains(char);
        let is_control = |char: &char| has(*char, Of::STRIPPED) && !is_private(char);
        let composed: String = composed.chars().filter(|char| !is_control(char)).collect();
        let joined = composed.replace("\u{E4D}\u{E32}", "\u{E33}");
        let kept = joined.chars().filter(|char| !is_private(char));
        kept.map(|char| match char {
            _ if has(char, Of::BLANK) => ' ',
            _ if self.is_three && has(char, Of::SINGLE_QUOTE) => '\'',
            _ if self.is_three && has(char, Of::DOUBLE_QUOTE) => '"',
            _ => char,
        })
        .collect()
    }

    /// Returns the text with markers.
    fn stream(&self, text: &str, has_space: bool) -> Vec<u8> {
        let is_single = text.starts_with(' ') && !text.starts_with("  ");
        let text = if self.has_marker && has_space && is_single { &text[1..] } else { text };
        let runs = runs(text);
        let mut out = Vec::new();
        let Some(first) = runs.first() else {
            out.extend(self.has_marker.then_some(BEGIN));
            return out;
        };
        let is_quote = opens_word(&runs, 0);
        let has_begin = !is_quote
            && (matches!(first.class, Class::Word | Class::Punctuation | Class::Stray)
                || first.takes_begin()
                || first.starts_as_number()
                || first.class == Class::Space && first.first() == ' ');
        if self.has_marker && !has_begin {
            out.push(if is_quote { b' ' } else { BEGIN });
        }
        for (at, run) in runs.iter().enumerate() {
            let before = match at.checked_sub(1) {
                None => self.has_marker,
                Some(before) => runs[before].class == Class::Space && runs[before].last() == ' ',
            };
            let behind = runs.get(at + 1).is_some_and(|next| {
                next.class == Class::Space && next.first() == ' ' && next.body.get(1) != Some(&' ')
            });
            let (mut begins, mut ends) = (false, false);
            match run.class {
                Class::Word => {
                    let is_behind_stray = at > 0 && runs[at - 1].class == Class::Stray;
                    let begins = !is_behind_stray && !is_contraction(&runs, at);
                    self.word(&run.body, is_behind_stray, begins, &mut out);
                    continue;
                }
                Class::Stray => {
                    begins = true;
                    ends = runs.get(at + 1).is_none_or(|next| next.class != Class::Word);
                }
                class if class == Class::Punctuation || run.takes_begin() || run.takes_end() => {
                    let is_signs = class == Class::Punctuation;
                    begins = before && !opens_word(&runs, at) && (is_signs || run.takes_begin());
                    ends = behind && (is_signs || run.takes_end());
                }
                _ if run.is_number() => {
                    begins = before && run.starts_as_number();
                    ends = behind && run.ends_as_number();
                }
                _ => {}
            }
            out.extend(begins.then_some(BEGIN));
            push(&run.body, &mut out);
            out.extend(ends.then_some(END));
        }
        out
    }

    /// Writes a word between its markers.
    fn word(&self, body: &[char], is_behind_stray: bool, begins: bool, out: &mut Vec<u8>) {
        let marker = if is_behind_stray { None } else { self.case_of(body) };
        out.extend(marker);
        out.extend(begins.then_some(BEGIN));
        let lowered = |&char: &char| if marker.is_some() { lower(char) } else { char };
        push(&body.iter().map(lowered).collect::<Vec<_>>(), out);
        out.push(END);
    }

    /// Returns the marker of a word that is written in small letters.
    fn case_of(&self, body: &[char]) -> Option<u8> {
        let is_upper = |char: &char| has(*char, Of::UPPER);
        if body.contains(&'ẞ') {
            return None;
        }
        let starts = is_upper(&body[0]);
        if body.contains(&'İ') {
            let is_title = starts
                && body[0] != 'İ'
                && !body[1..].iter().any(|char| is_upper(char) && *char != 'İ');
            return is_title.then_some(ClaudePieces::SHIFT);
        }
        let is_cased = |char: &&char| has(**char, Of::UPPER | Of::LOWER);
        let mut cased = body.iter().filter(is_cased).peekable();
        if self.is_three
            && body.len() >= CAPITALS
            && cased.peek().is_some()
            && cased.all(is_upper)
            && !body.iter().any(|&char| has(char, Of::CASELESS))
        {
            return Some(ClaudePieces::CAPS);
        }
        let is_title = starts && !body[1..].iter().any(is_upper);
        is_title.then_some(ClaudePieces::SHIFT)
    }

    /// Returns the fewest tokens that cover the symbols.
    fn tile(&self, symbols: &[u8]) -> usize {
        let mut best = vec![usize::MAX; symbols.len() + 1];
        best[0] = 0;
        for at in 0..symbols.len() {
            if best[at] == usize::MAX {
                continue; // inside of a character
            }
            let width = width(symbols[at]);
            let single = &symbols[at..at + width];
            let cost = if self.pieces.contains(single) { 1 } else { self.floor(single) };
            best[at + width] = best[at + width].min(best[at] + cost);
            for end in at + 1..=(at + LONGEST).min(symbols.len()) {
                if self.pieces.contains(&symbols[at..end]) {
                    best[end] = best[end].min(best[at] + 1);
                }
            }
        }
        best[symbols.len()]
    }

    /// Returns the fewest tokens of a character that is no piece.
    fn floor(&self, bytes: &[u8]) -> usize {
        let mut best = vec![usize::MAX; bytes.len() + 1];
        best[0] = 0;
        for at in 0..bytes.len() {
            for end in at + 1..=bytes.len() {
                if end == at + 1 || self.heads.contains(&bytes[at..end]) {
                    best[end] = best[end].min(best[at] + 1);
                }
            }
        }
        best[bytes.len()]
    }
}

fn push(body: &[char], out: &mut Vec<u8>) {
    out.extend(body.iter().collect::<String>().into_bytes());
}

/// The bytes of a character or a marker by its first byte.
fn width(first: u8) -> usize {
    match first {
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0..BEGIN => 4,
        _ => 1,
    }
}

/// Takes away single spaces between two markers.
fn without_seams(stream: &[u8]) -> Vec<u8> {
    let is_case = |byte: &u8| [ClaudePieces::SHIFT, ClaudePieces::CAPS].contains(byte);
    let is_seam = |at: usize| {
        let behind = stream[at + 1..].iter().find(|byte| !is_case(byte));
        stream[at] == b' ' && at > 0 && stream[at - 1] == END && behind == Some(&BEGIN)
    };
    let kept = (0..stream.len()).filter(|&at| !is_seam(at));
    kept.map(|at| stream[at]).collect()
}
