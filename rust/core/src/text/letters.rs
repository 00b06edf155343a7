//! Letters: which characters of a folded text are part of a word.

use super::OTHER;
use super::classes::{Class, Classes};

/// Stands in a folded text for a letter of a script without spaces.
pub(crate) const UNSPACED: u8 = 0x81;

/// The scripts whose letters are terms in pairs: Thai and Lao, Myanmar, Hangul,
/// Khmer, Kana, Bopomofo and Han.
const UNSPACED_SCRIPTS: [(u32, u32); 17] = [
    (0x0E01, 0x0EFF),
    (0x1000, 0x109F),
    (0x1100, 0x11FF),
    (0x1780, 0x17FF),
    (0x3005, 0x3006),
    (0x3031, 0x3035),
    (0x303B, 0x303C),
    (0x3041, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFFDC),
];

/// Han and Kana beyond the first plane.
const UNSPACED_PLANES: [(u32, u32); 2] = [(0x1_AFF0, 0x1_B16F), (0x2_0000, 0x3_FFFF)];

fn is_unspaced(code: u32) -> bool {
    let within = |&(first, last): &(u32, u32)| (first..=last).contains(&code);
    code >= UNSPACED_SCRIPTS[0].0
        && (UNSPACED_SCRIPTS.iter().any(within) || UNSPACED_PLANES.iter().any(within))
}

/// Returns whether a byte of a folded text is part of a word.
#[inline]
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == OTHER
}

/// Returns how a code point outside ASCII is folded behind `before`.
pub(crate) fn fold_code(classes: &Classes, code: u32, before: u8) -> u8 {
    const LETTER: u8 = Class::UPPER | Class::LOWER | Class::OTHER_LETTER;
    match classes.of(code) {
        _ if code == 0x212A => b'k',
        class if class & LETTER != 0 && is_unspaced(code) => UNSPACED,
        class if class & (LETTER | Class::NUMBER) != 0 => OTHER,
        // A mark goes with the letter in front of it.
        Class::MARK if before == UNSPACED => UNSPACED,
        Class::MARK if is_word(before) => OTHER,
        _ => b' ',
    }
}
