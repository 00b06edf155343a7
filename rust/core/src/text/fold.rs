//! Folding: one byte for each code point, in which words and keywords are found.

use super::classes::Classes;
use super::{BLOCK, OTHER, Text, Unit, decode, is_wide_space, letters};
use crate::wide::with_widest;

impl<'a> Text<'a> {
    /// Returns one byte for each code point: ASCII as it is, Unicode whitespace
    /// as a space, the Kelvin sign (whose lowercase is ASCII) as `k`, and
    /// everything else as [`OTHER`].
    ///
    /// Words and ASCII keywords are at the same places in the folded text as in
    /// the text. ASCII text is its own folding and is not copied; other text is
    /// folded into `scratch`.
    pub(crate) fn fold<'s>(&self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'a: 's,
    {
        if let Self::Ascii(bytes) = self {
            return bytes;
        }
        scratch.clear();
        self.fold_onto(scratch);
        scratch
    }

    /// Appends the result of [`Text::fold`] to `out`.
    pub(crate) fn fold_onto(&self, out: &mut Vec<u8>) {
        self.fold_by(None, out);
    }

    /// Appends the result of [`Text::fold`] to `out`. With classes of
    /// characters, [`letters::fold_code`] folds each character outside ASCII.
    pub(crate) fn fold_by(&self, classes: Option<&Classes>, out: &mut Vec<u8>) {
        match self {
            Self::Ascii(bytes) => out.extend_from_slice(bytes),
            Self::Latin1(units) => fold_units(units, out, classes),
            Self::Ucs2(units) => fold_units(units, out, classes),
            Self::Ucs4(units) => fold_units(units, out, classes),
            Self::Utf8(bytes) => {
                out.reserve(bytes.len());
                let mut at = 0;
                while at < bytes.len() {
                    if bytes[at] < 0x80 {
                        let run = bytes[at..].iter().take_while(|byte| byte.is_ascii()).count();
                        out.extend_from_slice(&bytes[at..at + run]);
                        at += run;
                    } else {
                        let (code, size) = decode(bytes, at);
                        let before = out.last().copied().unwrap_or(b' ');
                        out.push(fold_code(code, before, classes));
                        at += size;
                    }
                }
            }
        }
    }
}

/// Folds units with the widest instructions that the processor has.
fn fold_units<U: Unit>(units: &[U], out: &mut Vec<u8>, classes: Option<&Classes>) {
    with_widest!(fold_blocks::<U>(units: &[U], out: &mut Vec<u8>, classes: Option<&Classes>));
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn fold_blocks<U: Unit>(units: &[U], out: &mut Vec<u8>, classes: Option<&Classes>) {
    out.reserve(units.len());
    let (blocks, rest) = units.as_chunks::<BLOCK>();
    for block in blocks {
        let mut folded = [0; BLOCK];
        let mut most = 0;
        for (to, &unit) in folded.iter_mut().zip(block) {
            *to = unit.at_most(OTHER);
            most = most.max(*to);
        }
        let is_needed =
            || classes.is_some() || block.iter().fold(false, |any, unit| any | unit.may_be_space());
        if most >= OTHER && is_needed() {
            most = match classes {
                None => fold_block(block, &mut folded, U::folded),
                Some(_) if highest(block).into() < ALPHABETS => {
                    fold_block(block, &mut folded, U::alphabetic)
                }
                Some(_) => fold_block(block, &mut folded, U::classed),
            };
            if most == UNSURE {
                let before = out.last().copied().unwrap_or(b' ');
                fold_unsure(&mut folded, block, before, classes);
            }
        }
        out.extend_from_slice(&folded);
    }
    let mut before = out.last().copied().unwrap_or(b' ');
    out.extend(rest.iter().map(|&unit| {
        before = fold_code(unit.into(), before, classes);
        before
    }));
}

#[inline(always)]
#[allow(clippy::inline_always)] // as above
fn highest<U: Unit>(block: &[U; BLOCK]) -> U {
    block.iter().fold(block[0], |highest, &unit| highest.max(unit))
}

/// Folds a block by `fold` and returns the highest byte of it.
#[inline(always)]
#[allow(clippy::inline_always)] // as above
fn fold_block<U: Unit>(block: &[U; BLOCK], folded: &mut [u8; BLOCK], fold: impl Fn(U) -> u8) -> u8 {
    let mut most = 0;
    for (to, &unit) in folded.iter_mut().zip(block) {
        *to = fold(unit);
        most = most.max(*to);
    }
    most
}

/// Folds each [`UNSURE`] of `folded` anew.
fn fold_unsure<U: Unit>(
    folded: &mut [u8; BLOCK],
    units: &[U; BLOCK],
    mut before: u8,
    classes: Option<&Classes>,
) {
    // Most texts have few of them: find them by their two highest bits, eight
    // bytes at once.
    let (words, _) = folded.as_chunks_mut::<8>();
    for (word, units) in words.iter_mut().zip(units.as_chunks::<8>().0) {
        let bits = u64::from_le_bytes(*word);
        let mut unsure = bits & bits << 1 & 0x8080_8080_8080_8080;
        while unsure != 0 {
            let place = unsure.trailing_zeros() as usize / 8;
            unsure &= unsure - 1;
            let before = if place > 0 { word[place - 1] } else { before };
            word[place] = fold_code(units[place].into(), before, classes);
        }
        before = word[7];
    }
}

/// Stands for a character whose class is to be looked up. It has the two
/// highest bits, unlike any byte of a folded text.
pub(super) const UNSURE: u8 = 0xFF;

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
#[allow(clippy::needless_bitwise_bool)] // without a branch
pub(super) fn folded_byte(byte: u8) -> u8 {
    let is_space = (byte == 0x85) | (byte == 0xA0);
    if is_space { b' ' } else { byte.min(OTHER) }
}

#[inline(always)]
#[allow(clippy::inline_always)] // as above
pub(super) fn may_be_space_byte(byte: u8) -> bool {
    byte.wrapping_sub(0x80) < 0x21
}

#[inline(always)]
#[allow(clippy::inline_always)] // as above
#[allow(clippy::needless_bitwise_bool)] // as above
pub(super) fn classed_byte(byte: u8) -> u8 {
    let is_letter = (byte >= 0xC0) & (byte != 0xD7) & (byte != 0xF7);
    let other = if is_letter { OTHER } else { UNSURE };
    if byte < 0x80 { byte } else { other }
}

/// Letters of Latin, Greek, Cyrillic and Arabic are below it.
pub(super) const ALPHABETS: u32 = 0x900;

macro_rules! fold_by_ranges {
    ($type:ty, $space:ident, $folded:ident, $alphabetic:ident, $classed:ident, $signs:expr) => {
        #[inline(always)]
        #[allow(clippy::inline_always)] // as above
        #[allow(clippy::needless_bitwise_bool)] // as above
        pub(super) fn $space(code: $type) -> bool {
            let within = |first: $type, size: $type| code.wrapping_sub(first) < size;
            within(0x80, 0x21) | within(0x1680, 0x98B) | within(0x2028, 0xFD9)
        }

        #[inline(always)]
        #[allow(clippy::inline_always)] // as above
        #[allow(clippy::cast_possible_truncation)] // ASCII fits
        #[allow(clippy::needless_bitwise_bool)] // as above
        pub(super) fn $folded(code: $type) -> u8 {
            let within = |first: $type, size: $type| code.wrapping_sub(first) < size;
            let is_space = (code == 0x85)
                | (code == 0xA0)
                | (code == 0x1680)
                | within(0x2000, 11)
                | within(0x2028, 2)
                | (code == 0x202F)
                | (code == 0x205F)
                | (code == 0x3000);
            let other = if is_space { b' ' } else { OTHER };
            let other = if code == 0x212A { b'k' } else { other };
            if code < 0x80 { code as u8 } else { other }
        }

        #[inline(always)]
        #[allow(clippy::inline_always)] // as above
        #[allow(clippy::cast_possible_truncation)] // ASCII fits
        #[allow(clippy::needless_bitwise_bool)] // as above
        pub(super) fn $alphabetic(code: $type) -> u8 {
            let within = |first: $type, size: $type| code.wrapping_sub(first) < size;
            let is_letter = (within(0xC0, 0x1F0) & (code != 0xD7) & (code != 0xF7))
                | (within(0x391, 0xF1) & (code != 0x3A2) & (code != 0x3F6))
                | within(0x620, 0x2B);
            let other = if is_letter { OTHER } else { UNSURE };
            if code < 0x80 { code as u8 } else { other }
        }

        #[inline(always)]
        #[allow(clippy::inline_always)] // as above
        #[allow(clippy::needless_bitwise_bool)] // as above
        pub(super) fn $classed(code: $type) -> u8 {
            let within = |first: $type, size: $type| code.wrapping_sub(first) < size;
            let other = if within(0x904, 0x36) { OTHER } else { $alphabetic(code) }; // Devanagari
            // Han, Hangul, Hiragana and Katakana, Thai
            let is_unspaced = within(0x4E00, 0x5200)
                | within(0xAC00, 0x2BA4)
                | within(0x3041, 0x56)
                | within(0x30A1, 0x5A)
                | within(0x30FC, 3)
                | within(0xE01, 0x30);
            // Quotes, dashes and joiners, symbols, wide ones, and what else the type has
            let is_sign = within(0x2000, 0x70)
                | within(0x2600, 0x176)
                | within(0x3000, 4)
                | within(0x3008, 0x19)
                | within(0xFF01, 15)
                | within($signs.0, $signs.1);
            let other = if is_unspaced { letters::UNSPACED } else { other };
            if is_sign { b' ' } else { other }
        }
    };
}

fold_by_ranges!(u16, may_be_space_u16, folded_u16, alphabetic_u16, classed_u16, (0x2000, 0x70));
fold_by_ranges!(u32, may_be_space_u32, folded_u32, alphabetic_u32, classed_u32, (0x1_F10D, 0x9F3));

/// Returns how `code` is folded behind `before`.
#[inline]
fn fold_code(code: u32, before: u8, classes: Option<&Classes>) -> u8 {
    match (u8::try_from(code), classes) {
        (Ok(byte), _) if byte < 0x80 => byte,
        (_, Some(classes)) => letters::fold_code(classes, code, before),
        _ if is_wide_space(code) => b' ',
        _ if code == 0x212A => b'k',
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges tell the same as looking each character up.
    #[test]
    fn ranges_fold_as_classes_do() {
        let table = Classes::get();
        for code in 0..0x11_0000_u32 {
            let plain = fold_code(code, b' ', None);
            assert_eq!(plain, folded_u32(code), "{code:X}");
            let is_plain = plain == OTHER || code < 0x80;
            assert!(is_plain || may_be_space_u32(code), "{code:X}");
            let classed = classed_u32(code);
            assert!(code >= ALPHABETS || classed == alphabetic_u32(code), "{code:X}");
            if classed != UNSURE {
                for before in [b' ', b'a', OTHER, letters::UNSPACED] {
                    assert_eq!(fold_code(code, before, Some(table)), classed, "{code:X}");
                }
            }
            if let Ok(unit) = u16::try_from(code) {
                assert_eq!((plain, classed), (folded_u16(unit), classed_u16(unit)), "{code:X}");
                assert!(code >= ALPHABETS || classed == alphabetic_u16(unit), "{code:X}");
                assert_eq!(may_be_space_u32(code), may_be_space_u16(unit), "{code:X}");
            }
            if let Ok(byte) = u8::try_from(code) {
                assert_eq!((plain, classed), (folded_byte(byte), classed_byte(byte)), "{code:X}");
                assert_eq!(may_be_space_u32(code), may_be_space_byte(byte), "{code:X}");
            }
        }
    }
}
