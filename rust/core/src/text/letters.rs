//! Letters: which characters of a folded text are part of a word.

use super::OTHER;
use super::classes::{Class, Classes};
use crate::once::Once;

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

/// Returns whether a character is part of a term of a script without spaces,
/// where it stands behind such a letter.
pub(crate) fn is_of_unspaced(code: u32) -> bool {
    fold_code(Classes::get(), code, UNSPACED) == UNSPACED
}

/// Its lowercase is two characters: an i and [`DOT`].
pub(crate) const DOTTED_I: u32 = 0x130;
pub(crate) const DOT: u32 = 0x307;

/// The ordinary small sigma.
pub(crate) const SIGMA: u32 = 0x3C3;

/// Returns a character in lowercase, the final sigma as the ordinary one. It is
/// the first of two for U+0130 alone, which stays as it is.
#[inline]
pub(crate) fn small(code: u32) -> u32 {
    match u8::try_from(code) {
        Ok(byte) if byte < 0x80 => byte.to_ascii_lowercase().into(),
        _ => Smalls::get().of(code),
    }
}

/// Returns the characters that [`small`] makes `code`, which it leaves as it is.
pub(crate) fn cases(code: u32) -> Vec<u32> {
    let Ok(unit) = u16::try_from(code) else {
        let other = char::from_u32(code).into_iter().flat_map(char::to_uppercase).map(u32::from);
        return [code].into_iter().chain(other.filter(|&other| other != code)).collect();
    };
    let capitals = &Smalls::get().capitals;
    let from = capitals.partition_point(|&(small, _)| small < unit);
    let own = capitals[from..].iter().take_while(|(small, _)| *small == unit);
    [code].into_iter().chain(own.map(|&(_, capital)| capital.into())).collect()
}

/// The small letters of the characters of the first plane.
#[derive(Debug)]
pub(crate) struct Smalls {
    /// For each 256 characters, where theirs are; most have themselves.
    blocks: [u8; 256],
    entries: Vec<[u16; 256]>,
    /// Small letters and the others that have them, in order.
    capitals: Vec<(u16, u16)>,
}

impl Smalls {
    pub(crate) fn get() -> &'static Self {
        static SMALLS: Once<Smalls> = Once::new();
        SMALLS.get(Self::new)
    }

    fn new() -> Self {
        let mut found = Self { blocks: [0; 256], entries: vec![[0; 256]], capitals: Vec::new() };
        for block in 0..=u8::MAX {
            let mut own = [0; 256];
            for (low, small) in (0..=u8::MAX).zip(&mut own) {
                let code = u16::from_be_bytes([block, low]);
                *small = u16::try_from(lowercase(code.into())).expect("none leaves the plane");
            }
            let alike = |(low, &small)| small == u16::from_be_bytes([block, low]);
            if !(0..=u8::MAX).zip(&own).all(alike) {
                found.blocks[usize::from(block)] =
                    u8::try_from(found.entries.len()).expect("at most 255");
                found.entries.push(own);
                let codes = (0..=u8::MAX).map(|low| u16::from_be_bytes([block, low]));
                found
                    .capitals
                    .extend(own.into_iter().zip(codes).filter(|(small, code)| small != code));
            }
        }
        found.capitals.sort_unstable();
        found
    }

    /// Does the same as [`small`].
    #[inline]
    pub(crate) fn of(&self, code: u32) -> u32 {
        let Ok(unit) = u16::try_from(code) else { return lowercase(code) };
        let [high, low] = unit.to_be_bytes();
        match self.blocks[usize::from(high)] {
            0 => code,
            block => self.entries[usize::from(block)][usize::from(low)].into(),
        }
    }
}

fn lowercase(code: u32) -> u32 {
    match char::from_u32(code).map(char::to_lowercase) {
        Some(mut small) if small.len() == 1 => match small.next() {
            Some('ς') => 'σ'.into(),
            small => small.map_or(code, u32::from),
        },
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_are_those_of_unicode() {
        for code in 0..0x11_0000 {
            assert_eq!(lowercase(code), small(code));
            let of_more = char::from_u32(code).is_some_and(|char| char.to_lowercase().len() > 1);
            assert_eq!(code == 0x130, of_more, "{code:X}");
        }
    }

    #[test]
    fn cases_are_those_with_that_small_letter() {
        for code in 0..0x11_0000 {
            let small = small(code);
            assert!(cases(small).contains(&code), "{code:X}");
            assert!(cases(small).iter().all(|&other| super::small(other) == small), "{code:X}");
        }
        assert_eq!([0x3C3, 0x3A3, 0x3C2], *cases(0x3C3));
    }

    /// Digits and signs of a script without spaces are no letters of it, and its
    /// marks only behind one.
    #[test]
    fn characters_are_folded_by_their_class() {
        let fold = |code: char, before| fold_code(Classes::get(), code.into(), before);
        for (letter, mark, digit, sign) in
            [('ก', '\u{E31}', '๑', '฿'), ('က', '\u{102D}', '၁', '၊'), ('か', '\u{3099}', '²', '・')]
        {
            assert_eq!([UNSPACED, OTHER, b' '], [letter, digit, sign].map(|code| fold(code, b' ')));
            let behind = [UNSPACED, OTHER, b'7', b' '];
            assert_eq!([UNSPACED, OTHER, OTHER, b' '], behind.map(|before| fold(mark, before)));
        }
        assert_eq!([b'k', OTHER, b' '], ['\u{212A}', 'я', '—'].map(|code| fold(code, b' ')));
    }

    /// No letter of a script without spaces has a case.
    #[test]
    fn unspaced_letters_are_small() {
        for code in (0..0x11_0000).filter(|&code| is_of_unspaced(code)) {
            assert_eq!(code, small(code), "{code:X}");
        }
    }
}
