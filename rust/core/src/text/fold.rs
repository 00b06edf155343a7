//! Folding: one byte for each code point, in which words and keywords are found.

use super::classes::Classes;
use super::{BLOCK, OTHER, Text, Unit, decode, is_wide_space, letters};
use crate::wide::with_avx2;

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
    with_avx2!(fold_blocks::<U>(units: &[U], out: &mut Vec<u8>, classes: Option<&Classes>));
}

#[inline(always)]
#[allow(clippy::inline_always)] // compiled anew for each set of instructions
fn fold_blocks<U: Unit>(units: &[U], out: &mut Vec<u8>, classes: Option<&Classes>) {
    out.reserve(units.len());
    let (blocks, rest) = units.as_chunks::<BLOCK>();
    for block in blocks {
        let mut folded = [0; BLOCK];
        let mut all = 0;
        for (to, unit) in folded.iter_mut().zip(block) {
            *to = unit.at_most(OTHER);
            all |= *to;
        }
        if all >= OTHER {
            let before = out.last().copied().unwrap_or(b' ');
            fold_others(&mut folded, block, before, classes);
        }
        out.extend_from_slice(&folded);
    }
    let mut before = out.last().copied().unwrap_or(b' ');
    out.extend(rest.iter().map(|&unit| {
        before = fold_code(unit.into(), before, classes);
        before
    }));
}

/// Folds each [`OTHER`] of `folded` anew.
fn fold_others<U: Unit>(
    folded: &mut [u8; BLOCK],
    units: &[U; BLOCK],
    mut before: u8,
    classes: Option<&Classes>,
) {
    // Most texts have few of them: find them by their high bits, eight bytes at
    // once.
    let (words, _) = folded.as_chunks_mut::<8>();
    for (word, units) in words.iter_mut().zip(units.as_chunks::<8>().0) {
        let mut others = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        while others != 0 {
            let place = others.trailing_zeros() as usize / 8;
            others &= others - 1;
            let before = if place > 0 { word[place - 1] } else { before };
            word[place] = fold_code(units[place].into(), before, classes);
        }
        before = word[7];
    }
}

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
