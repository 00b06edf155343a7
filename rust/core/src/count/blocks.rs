//! Where pretokens start in 64 bytes of ASCII, all at once.
//!
//! A block begins where a pretoken starts, so nothing in front of it matters.
//! Each class of characters is a set of 64 bits. Shifts and masks on these sets
//! tell where the pattern starts a pretoken, without a branch for each
//! character. What they cannot decide is left to [`super::pretokenize`]:
//! characters outside ASCII, whitespace at the end of the block, and blank
//! lines with spaces in them.

use super::pretokenize::{Contractions, Rules, contraction};

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;

/// The number of bytes in a block.
pub(crate) const BLOCK: usize = 64;

/// The bytes of a block by class: byte `i` is bit `i`. A byte in none of the
/// sets is punctuation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sets {
    pub(crate) upper: u64,
    pub(crate) lower: u64,
    pub(crate) digits: u64,
    /// U+0020.
    pub(crate) spaces: u64,
    /// Whitespace that is neither U+0020 nor a line end.
    pub(crate) tabs: u64,
    pub(crate) newlines: u64,
    pub(crate) apostrophes: u64,
    pub(crate) slashes: u64,
    /// Control characters that are not whitespace.
    pub(crate) controls: u64,
    /// Bytes outside ASCII.
    pub(crate) others: u64,
}

/// Sorts 64 bytes by class, with the instructions of one kind of processor.
pub(crate) trait Classify: Copy {
    fn sets(self, block: &[u8; BLOCK]) -> Sets;
}

/// The pretokens of a block, as far as the block alone tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Starts {
    /// Where pretokens start. Bit 0 is always set.
    pub(crate) bits: u64,
    /// Where the text ends, if that is in the block and the last pretoken ends
    /// there.
    pub(crate) end: Option<usize>,
}

/// Returns the lowest `count` bits.
#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn low(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Returns the pretokens that surely start in `block`. Its first `length` bytes
/// are text, and zeros must follow. `is_last` says that the text ends there.
#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
pub(crate) fn starts(
    rules: Rules,
    sets: Sets,
    block: &[u8; BLOCK],
    length: usize,
    is_last: bool,
) -> Starts {
    let others =
        if rules.parts_digits { sets.others | sets.controls & low(length) } else { sets.others };
    let known = length.min(others.trailing_zeros() as usize);
    let is_last = is_last && known == length;
    let text = low(known);
    let (upper, lower) = (sets.upper & text, sets.lower & text);
    let letters = upper | lower;
    let digits = sets.digits & text;
    let spaces = sets.spaces & text;
    let newlines = sets.newlines & text;
    let blanks = (sets.spaces | sets.tabs) & text;
    let white = blanks | newlines;
    let marks = text & !(letters | digits | white);
    let mut sure = text;

    // A blank goes with what follows it, or with the line end that follows. So
    // of whitespace that may go on, only the start is known.
    if known > 0 && white >> (known - 1) & 1 == 1 {
        let run = (white << (64 - known)).leading_ones() as usize;
        sure &= low(known - run + 1);
    }
    // Blanks between two line ends go with the second.
    let indents = blanks & newlines << 1;
    let blank_lines = indents.wrapping_add(blanks) & !blanks & newlines;
    if blank_lines != 0 {
        let at = blank_lines.trailing_zeros() as usize;
        let run = (white << (64 - at)).leading_ones() as usize;
        sure &= low(at - run + 1);
    }
    if rules.takes_slashes {
        // A slash behind a line end may go with the punctuation in front.
        let slashes = sets.slashes & text & newlines << 1;
        if slashes != 0 {
            sure &= low(slashes.trailing_zeros() as usize);
        }
    }

    let mark_starts = marks & !(marks << 1) & !(spaces << 1);
    let mut bits = letters & !(letters << 1) & !((blanks | mark_starts) << 1);
    if rules.is_cased() {
        bits |= upper & lower << 1;
    }
    bits |= mark_starts;
    bits |= white & !(white << 1) & !(newlines & marks << 1);
    bits |= indents;
    bits |= blanks & !(white >> 1) & !(if rules.parts_digits { digits >> 1 } else { 0 });
    if rules.digits == 1 {
        bits |= digits;
    } else {
        bits |= digits & !(digits << 1);
        if digits & digits << 1 & digits << 2 & digits << 3 != 0 {
            bits |= thirds(digits);
        }
    }

    let ends_word = rules.is(Contractions::Behind);
    let mut apostrophes = match rules.contractions {
        Contractions::None => 0,
        Contractions::Alone => sets.apostrophes & mark_starts & letters >> 1,
        Contractions::Behind => sets.apostrophes & letters << 1 & letters >> 1,
    };
    let mut taken = usize::MAX;
    while apostrophes & sure != 0 {
        let at = apostrophes.trailing_zeros() as usize;
        apostrophes &= apostrophes - 1;
        if ends_word && at == taken {
            continue; // the word in front has its contraction already
        }
        if at + 2 >= known && !is_last {
            sure &= low(at + usize::from(!ends_word));
            break;
        }
        let size = contraction(block, at);
        if size == 0 {
            continue;
        }
        if ends_word {
            bits &= !(low(size) << at);
        }
        taken = at + size;
        if taken < BLOCK {
            bits |= letters & 1 << taken;
        }
    }
    // An apostrophe at the end of the block may begin a contraction.
    if ends_word && !is_last && known > 0 && sets.apostrophes >> (known - 1) & 1 == 1 {
        sure &= low(known - 1);
    }
    let end = (is_last && sure == text).then_some(length);
    Starts { bits: bits & sure | 1, end }
}

/// Returns where groups of three digits start.
#[cold]
fn thirds(digits: u64) -> u64 {
    let mut starts = digits & !(digits << 1);
    let mut group = starts;
    while group != 0 {
        // Three more digits, and a fourth to start the next group.
        group = group << 3 & digits & digits << 1 & digits << 2 & digits << 3;
        starts |= group;
    }
    starts
}

/// Sorts bytes one by one, as an oracle for the others.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneByOne;

#[cfg(test)]
impl Classify for OneByOne {
    fn sets(self, block: &[u8; BLOCK]) -> Sets {
        let set = |is: fn(u8) -> bool| {
            block.iter().enumerate().fold(0, |set, (i, &byte)| set | u64::from(is(byte)) << i)
        };
        Sets {
            upper: set(|byte| byte.is_ascii_uppercase()),
            lower: set(|byte| byte.is_ascii_lowercase()),
            digits: set(|byte| byte.is_ascii_digit()),
            spaces: set(|byte| byte == b' '),
            tabs: set(|byte| matches!(byte, 9 | 11 | 12)),
            newlines: set(|byte| matches!(byte, b'\r' | b'\n')),
            apostrophes: set(|byte| byte == b'\''),
            slashes: set(|byte| byte == b'/'),
            controls: set(|byte| matches!(byte, 0..9 | 14..32 | 127)),
            others: set(|byte| byte >= 0x80),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::pretokenize::deepseek::DeepSeek;
    use crate::count::pretokenize::{Cl100k, Llama3, O200k, Pattern, Qwen2, Qwen35, Tekken};
    use crate::text::classes::Classes;

    /// Blocks of all bytes, in many orders.
    fn blocks() -> impl Iterator<Item = [u8; BLOCK]> {
        (0..1024_usize).map(|seed| {
            std::array::from_fn(|i| {
                ((seed.wrapping_mul(2_654_435_761) >> 7) + i * (2 * seed + 1)).to_le_bytes()[0]
            })
        })
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    fn all_instructions_sort_alike() {
        for block in blocks() {
            let expected = OneByOne.sets(&block);
            if is_x86_feature_detected!("avx2") {
                // SAFETY: it was just detected.
                assert_eq!(expected, unsafe { avx2::Avx2::assume() }.sets(&block));
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                // SAFETY: they were just detected.
                assert_eq!(expected, unsafe { avx512::Avx512::assume() }.sets(&block));
            }
        }
    }

    /// Compares the sure pretokens of a block with those of the pattern,
    /// whatever stands behind.
    fn check<P: Pattern>(pattern: P, text: &str) {
        let classes = Classes::get();
        for behind in
            ["", " ", "a", "'s", "\n", "/", "1", "é", "\u{301}", "  \n", "S", "\u{7f}", "\u{3042}"]
        {
            let whole = format!("{text}{behind}");
            let mut block = [0; BLOCK];
            let length = whole.len().min(BLOCK);
            block[..length].copy_from_slice(&whole.as_bytes()[..length]);
            let is_last = whole.len() <= BLOCK;
            let rules = P::RULES.expect("the blocks know it");
            let found = starts(rules, OneByOne.sets(&block), &block, length, is_last);
            let mut expected = Vec::new();
            let mut at = 0;
            while at < length {
                expected.push(at);
                at = pattern.end(classes, whole.as_bytes(), at);
            }
            let sure: Vec<usize> = (0..64).filter(|&at| found.bits >> at & 1 == 1).collect();
            let last = *sure.last().expect("bit 0 is always set");
            expected.retain(|&start| found.end.is_some() || start <= last);
            assert_eq!(expected, sure, "{whole:?} {found:?}");
        }
    }

    #[test]
    fn blocks_split_as_the_pattern_does() {
        let alphabet =
            ["a", "B", "1", " ", "\n", "\t", "!", "'", "/", "s", "ll", "é", "\u{17f}", "\u{1}"];
        let mut state = 1_u64;
        let mut draw = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..5_000 {
            let length = draw(40);
            let few = 1 + draw(alphabet.len());
            let text: String = (0..length).map(|_| alphabet[draw(few)]).collect();
            let size = text.char_indices().map(|(at, _)| at).take_while(|&at| at <= 62).last();
            let text = &text[..size.unwrap_or(0)];
            if !text.is_empty() {
                check(Cl100k, text);
                check(O200k, text);
                check(Llama3, text);
                check(Qwen2, text);
                check(Qwen35, text);
                check(Tekken, text);
                check(DeepSeek, text);
            }
        }
    }
}
