//! Where tokens start, whatever else is in the text: a lower bound of their
//! number.

use super::{BLOCK, OTHER, Unit};
use crate::wide::with_widest;

/// Counts with the widest instructions that the processor has.
pub(super) fn count_starts<U: Unit>(units: &[U]) -> usize {
    with_widest!(count_start_blocks::<U>(units: &[U]) -> usize)
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn count_start_blocks<U: Unit>(units: &[U]) -> usize {
    // A sum for each place of a block. This many blocks fit a byte. At the end
    // of the text some places are left out.
    const BLOCKS: usize = 255;
    let mut starts = usize::from(!units.is_empty());
    for part in units.windows(BLOCK * BLOCKS + 2).step_by(BLOCK * BLOCKS) {
        starts += count_start_block(part);
    }
    let rest = units.len().saturating_sub(2) / (BLOCK * BLOCKS) * (BLOCK * BLOCKS);
    starts + count_start_block(&units[rest..])
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn count_start_block<U: Unit>(units: &[U]) -> usize {
    let mut sums = [0_u8; BLOCK];
    let (before, _) = units.as_chunks::<BLOCK>();
    let (here, _) = units.get(1..).unwrap_or_default().as_chunks::<BLOCK>();
    let (behind, _) = units.get(2..).unwrap_or_default().as_chunks::<BLOCK>();
    for ((before, here), behind) in before.iter().zip(here).zip(behind) {
        for (place, sum) in sums.iter_mut().enumerate() {
            let [before, here, behind] =
                [before[place], here[place], behind[place]].map(|unit| unit.at_most(OTHER));
            *sum += is_start_unit(before, here, behind);
        }
    }
    sums.iter().map(|&sum| usize::from(sum)).sum()
}

/// Returns whether a token starts at `at`, which is not the first byte of
/// `text`, whatever else is in the text.
pub(crate) fn is_start(text: &[u8], at: usize) -> bool {
    let unit = |at: usize| text.get(at).map_or(0, |&byte| byte.min(OTHER));
    is_start_unit(unit(at - 1), unit(at), unit(at + 1)) == 1
}

/// Returns 1 if a token starts at `here` whatever else is in the text, else 0.
/// A character outside ASCII is [`OTHER`].
#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn is_start_unit(before: u8, here: u8, behind: u8) -> u8 {
    let letter = |byte: u8| u8::from((byte | 0x20).wrapping_sub(b'a') < 26);
    let digit = |byte: u8| u8::from(byte.wrapping_sub(b'0') < 10);
    let word = letter(before) | digit(before);
    let same = letter(before) & letter(here) | digit(before) & digit(here);
    // A word ends, unless its contraction follows.
    let ends = word & (same ^ 1) & u8::from(here < OTHER) & u8::from(here != b'\'');
    // A space goes with the word behind it.
    let spaced = (word ^ 1) & u8::from(here == b' ') & letter(behind);
    // A line starts; punctuation may take slashes behind line ends.
    let white = u8::from(here.wrapping_sub(9) < 5) | u8::from(here == b' ');
    let line =
        u8::from(before == b'\n') & (white ^ 1) & u8::from(here < OTHER) & u8::from(here != b'/');
    ends | spaced | line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_start_where_words_end_and_lines_begin() {
        for (text, starts) in [
            ("tea bag", &[3][..]),
            ("Tea's a", &[5]),
            ("Z9z0 a", &[1, 2, 3, 4]),
            ("10.5", &[2]),
            ("@a[b`c{d/e:f", &[2, 4, 6, 8, 10]),
            (". b. 1. .", &[1, 3, 6]),
            ("\nb\n/\n 1\n\t\n[", &[1, 2, 7, 10]),
            ("\n a\rb\n\x0ex\n\x08", &[1, 3, 5, 6, 8, 9]),
            ("a\u{e9} b\n\u{e9}", &[3, 5]),
        ] {
            let found: Vec<usize> =
                (1..text.len()).filter(|&at| is_start(text.as_bytes(), at)).collect();
            assert_eq!(starts, found, "{text:?}");
        }
    }

    /// All starts of long texts are counted, but for some at the end.
    #[test]
    fn starts_of_blocks_add_up() {
        let pieces = ["tea", " ", "\n", "/", "12", "'", "\u{80}", ".", "\t", "s"];
        let mut text = Vec::new();
        let mut state = 7_usize;
        for _ in 0..9_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let piece = pieces[(state >> 33) % pieces.len()];
            text.extend(piece.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(OTHER)));
        }
        for size in [0, 1, 2, 33, 34, 35, 65, 66, 8_161, 8_162, 8_163, 8_194, 16_322, text.len()] {
            let units = &text[..size.min(text.len())];
            let seen = units.len().saturating_sub(2) / BLOCK * BLOCK;
            let starts = (1..=seen).filter(|&at| is_start(units, at)).count();
            let expected = usize::from(!units.is_empty()) + starts;
            let wide: Vec<u32> = units.iter().map(|&unit| unit.into()).collect();
            let narrow: Vec<u16> = units.iter().map(|&unit| unit.into()).collect();
            assert_eq!(expected, count_starts(units), "{size}");
            assert_eq!(expected, count_starts(&narrow), "{size}");
            assert_eq!(expected, count_starts(&wide), "{size}");
        }
    }
}
