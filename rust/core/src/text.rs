//! A text, however its code points are stored.
//!
//! Rust stores UTF-8. Python stores one, two or four bytes per code point, and
//! allows lone surrogates. The core reads each where it lies, so no text is
//! copied before it is known to be kept.

use std::hash::{Hash, Hasher};

pub(crate) mod classes;
mod fold;
pub(crate) mod letters;
mod parts;
mod starts;

pub(crate) use parts::{Cursor, LOOK};
use starts::count_starts;
pub(crate) use starts::is_start;

/// Stands in a folded text for a character that is neither ASCII nor
/// whitespace, nor becomes ASCII when lowercased.
pub(crate) const OTHER: u8 = 0x80;

/// A borrowed text. All counting is in code points. What reads a text may panic
/// where its bytes are not as its variant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// Bytes below 0x80.
    Ascii(&'a [u8]),
    /// Bytes that are code points, U+0000 to U+00FF.
    Latin1(&'a [u8]),
    /// 16-bit code points; surrogates stand for themselves, never for pairs.
    Ucs2(&'a [u16]),
    /// 32-bit code points.
    Ucs4(&'a [u32]),
    /// UTF-8, in which a surrogate may be encoded like any other code point.
    Utf8(&'a [u8]),
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        if text.is_ascii() { Self::Ascii(text.as_bytes()) } else { Self::Utf8(text.as_bytes()) }
    }
}

impl<'a> Text<'a> {
    /// The empty text.
    pub const EMPTY: Self = Self::Ascii(&[]);

    /// Returns the text of `bytes`, which are encoded as in [`Text::Utf8`]. On
    /// other bytes whatever reads the text may panic.
    #[must_use]
    pub fn from_utf8(bytes: &'a [u8]) -> Self {
        if bytes.is_ascii() { Self::Ascii(bytes) } else { Self::Utf8(bytes) }
    }

    /// Returns the number of code points.
    #[must_use]
    pub fn chars(&self) -> usize {
        match self {
            Self::Ascii(units) | Self::Latin1(units) => units.len(),
            Self::Ucs2(units) => units.len(),
            Self::Ucs4(units) => units.len(),
            Self::Utf8(bytes) => bytes.chunks(128).map(starts).map(usize::from).sum(),
        }
    }

    /// Returns whether there is no code point.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Ascii(units) | Self::Latin1(units) | Self::Utf8(units) => units.is_empty(),
            Self::Ucs2(units) => units.is_empty(),
            Self::Ucs4(units) => units.is_empty(),
        }
    }

    /// Calls `visit` with each code point.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u32)) {
        match self {
            Self::Ascii(units) | Self::Latin1(units) => {
                units.iter().for_each(|&unit| visit(u32::from(unit)));
            }
            Self::Ucs2(units) => units.iter().for_each(|&unit| visit(u32::from(unit))),
            Self::Ucs4(units) => units.iter().for_each(|&unit| visit(unit)),
            Self::Utf8(bytes) => {
                let mut at = 0;
                while at < bytes.len() {
                    let (code, size) = decode(bytes, at);
                    visit(code);
                    at += size;
                }
            }
        }
    }

    /// Returns the code points from `start` to before `end`.
    ///
    /// # Panics
    ///
    /// Where `start` is above `end`, or `end` above the length.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Text<'a> {
        match self {
            Self::Ascii(units) => Text::Ascii(&units[start..end]),
            Self::Latin1(units) => Text::Latin1(&units[start..end]),
            Self::Ucs2(units) => Text::Ucs2(&units[start..end]),
            Self::Ucs4(units) => Text::Ucs4(&units[start..end]),
            Self::Utf8(bytes) => {
                let from = byte_offset(bytes, 0, start);
                Text::Utf8(&bytes[from..byte_offset(bytes, from, end - start)])
            }
        }
    }

    /// Returns the text with a unit for each code point: UTF-8 is decoded into
    /// `codes`.
    pub(crate) fn decoded<'s>(self, codes: &'s mut Vec<u32>) -> Text<'s>
    where
        'a: 's,
    {
        if !matches!(self, Self::Utf8(_)) {
            return self;
        }
        codes.clear();
        self.for_each(|code| codes.push(code));
        Text::Ucs4(codes)
    }

    /// Appends the text to `out`, encoded as in [`Text::Utf8`].
    pub fn write_utf8(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ascii(bytes) | Self::Utf8(bytes) => out.extend_from_slice(bytes),
            Self::Latin1(units) => write_units(units, out),
            Self::Ucs2(units) => write_units(units, out),
            Self::Ucs4(units) => write_units(units, out),
        }
    }

    /// Appends the text to `out` as UTF-8, as tiktoken reads a str: a pair of
    /// surrogates becomes the character that the pair spells, and a lone one
    /// becomes U+FFFD.
    pub(crate) fn write_scalars(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ascii(bytes) => out.extend_from_slice(bytes),
            Self::Latin1(units) => write_scalar_units(units, out),
            Self::Ucs2(units) => write_scalar_units(units, out),
            Self::Ucs4(units) => write_scalar_units(units, out),
            Self::Utf8(bytes) => match self.scalars() {
                Some(scalars) => out.extend_from_slice(&scalars),
                None => out.extend_from_slice(bytes),
            },
        }
    }

    /// Returns the output of [`Text::write_scalars`], if that differs from the
    /// stored form.
    pub(crate) fn scalars(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        if let Self::Utf8(bytes) = self {
            // Surrogates are encoded as ED A0 80 to ED BF BF.
            let mut leads = memchr::memchr_iter(0xED, bytes);
            if !leads.any(|at| bytes[at + 1] >= 0xA0) {
                return None;
            }
            let mut units = Vec::with_capacity(bytes.len());
            self.for_each(|code| units.push(code));
            write_scalar_units(&units, &mut out);
        } else {
            self.write_scalars(&mut out);
        }
        Some(out)
    }

    /// Returns the code point at `at`. Slow for UTF-8.
    pub(crate) fn code(&self, at: usize) -> u32 {
        match self {
            Self::Ascii(units) | Self::Latin1(units) => u32::from(units[at]),
            Self::Ucs2(units) => u32::from(units[at]),
            Self::Ucs4(units) => units[at],
            Self::Utf8(bytes) => decode(bytes, byte_offset(bytes, 0, at)).0,
        }
    }

    /// Returns the first code point and the last.
    pub(crate) fn ends(&self) -> Option<(u32, u32)> {
        let mut last = self.units().checked_sub(1)?;
        if let Self::Utf8(bytes) = self {
            while bytes[last].cast_signed() < -64 {
                last -= 1;
            }
        }
        Some((self.code_at_unit(0), self.code_at_unit(last)))
    }

    /// Returns the number of units that the text is stored in: bytes of UTF-8,
    /// else code points.
    pub(crate) fn units(&self) -> usize {
        match self {
            Self::Utf8(bytes) => bytes.len(),
            _ => self.chars(),
        }
    }

    /// Returns the units from `start` to before `end`, where code points start.
    pub(crate) fn slice_units(&self, start: usize, end: usize) -> Text<'a> {
        match self {
            Self::Utf8(bytes) => Text::Utf8(&bytes[start..end]),
            _ => self.slice(start, end),
        }
    }

    /// Returns the code point that starts at the unit `at`.
    pub(crate) fn code_at_unit(&self, at: usize) -> u32 {
        match self {
            Self::Utf8(bytes) => decode(bytes, at).0,
            _ => self.code(at),
        }
    }

    /// Returns the number of places where a token starts in any case, under
    /// most tokenizers: a lower bound of their counts.
    pub(crate) fn starts(&self) -> usize {
        match self {
            Self::Ascii(units) | Self::Latin1(units) | Self::Utf8(units) => count_starts(units),
            Self::Ucs2(units) => count_starts(units),
            Self::Ucs4(units) => count_starts(units),
        }
    }

    /// Returns a number that equal texts in equal storage share, and few
    /// others. Reads only a few places of the text.
    pub(crate) fn fingerprint(&self) -> u32 {
        match self {
            Self::Ascii(units) | Self::Latin1(units) | Self::Utf8(units) => sample(units),
            Self::Ucs2(units) => sample(units),
            Self::Ucs4(units) => sample(units),
        }
    }

    /// Feeds the whole text to `hasher`.
    pub(crate) fn hash(&self, hasher: &mut impl Hasher) {
        match self {
            Self::Ascii(units) | Self::Latin1(units) | Self::Utf8(units) => units.hash(hasher),
            Self::Ucs2(units) => units.hash(hasher),
            Self::Ucs4(units) => units.hash(hasher),
        }
    }
}

/// Runs `$run` with the units of a text that has one for each code point.
macro_rules! with_units {
    ($text:expr, $units:ident => $run:expr) => {
        match $text {
            $crate::text::Text::Ascii($units) | $crate::text::Text::Latin1($units) => $run,
            $crate::text::Text::Ucs2($units) => $run,
            $crate::text::Text::Ucs4($units) => $run,
            $crate::text::Text::Utf8(_) => unreachable!("the text was decoded"),
        }
    };
}

pub(crate) use with_units;

/// A stored code point.
pub(crate) trait Unit: Copy + Ord + Hash + Into<u32> {
    /// Returns the code point if it is less than `limit`, else `limit`.
    fn at_most(self, limit: u8) -> u8;

    /// Returns the seven lowest bits.
    fn low(self) -> u8;

    /// Returns whether the code point may be folded without classes to something
    /// else than itself or [`OTHER`].
    fn may_be_space(self) -> bool;

    /// Returns how the code point is folded without classes, in a way that the
    /// compiler makes vector instructions of.
    fn folded(self) -> u8;

    /// Does the same with classes. It is [`fold::UNSURE`] for most code points
    /// whose class a range does not tell.
    fn classed(self) -> u8;

    /// Does the same for code points below [`fold::ALPHABETS`].
    fn alphabetic(self) -> u8;
}

macro_rules! impl_unit {
    ($type:ty, $may_be_space:expr, $folded:expr, $alphabetic:expr, $classed:expr) => {
        impl Unit for $type {
            #[allow(clippy::cast_possible_truncation)] // the limit fits
            fn at_most(self, limit: u8) -> u8 {
                self.min(<$type>::from(limit)) as u8
            }

            #[inline(always)]
            #[allow(clippy::inline_always)] // compiled anew for each set of instructions
            #[allow(clippy::cast_possible_truncation)] // seven bits fit
            fn low(self) -> u8 {
                (self & 0x7F) as u8
            }

            #[inline(always)]
            #[allow(clippy::inline_always)] // as above
            fn may_be_space(self) -> bool {
                $may_be_space(self)
            }

            #[inline(always)]
            #[allow(clippy::inline_always)] // as above
            fn folded(self) -> u8 {
                $folded(self)
            }

            #[inline(always)]
            #[allow(clippy::inline_always)] // as above
            fn classed(self) -> u8 {
                $classed(self)
            }

            #[inline(always)]
            #[allow(clippy::inline_always)] // as above
            fn alphabetic(self) -> u8 {
                $alphabetic(self)
            }
        }
    };
}

impl_unit!(u8, fold::may_be_space_byte, fold::folded_byte, fold::classed_byte, fold::classed_byte);
impl_unit!(u16, fold::may_be_space_u16, fold::folded_u16, fold::alphabetic_u16, fold::classed_u16);
impl_unit!(u32, fold::may_be_space_u32, fold::folded_u32, fold::alphabetic_u32, fold::classed_u32);

/// How many code points are tested for ASCII at once. The compiler makes vector
/// instructions of the test and of the narrowing.
const BLOCK: usize = 32;

fn write_units<U: Unit>(units: &[U], out: &mut Vec<u8>) {
    out.reserve(units.len());
    for block in units.chunks(BLOCK) {
        if is_ascii(block) {
            out.extend(block.iter().map(|unit| unit.at_most(OTHER)));
        } else {
            for &unit in block {
                push_code(unit.into(), out);
            }
        }
    }
}

fn write_scalar_units<U: Unit>(units: &[U], out: &mut Vec<u8>) {
    out.reserve(units.len());
    let mut at = 0;
    while at < units.len() {
        let block = &units[at..units.len().min(at + BLOCK)];
        at += block.len();
        if is_ascii(block) {
            out.extend(block.iter().map(|unit| unit.at_most(OTHER)));
            continue;
        }
        // Each code point takes at most four bytes, and is written with four.
        let mut utf8 = [0; 4 * BLOCK];
        let mut size = 0;
        for (place, &unit) in block.iter().enumerate() {
            let mut code: u32 = unit.into();
            if code & !0x7FF == 0xD800 {
                let here = at - block.len() + place;
                let is_high = |place: usize| {
                    let code: u32 = units[place].into();
                    code & !0x3FF == 0xD800
                };
                if code >= 0xDC00 && here > 0 && is_high(here - 1) {
                    continue; // the first of the pair has written both
                }
                let low = units.get(here + 1).map_or(0, |&unit| unit.into());
                code = if code < 0xDC00 && low & !0x3FF == 0xDC00 {
                    0x1_0000 + ((code & 0x3FF) << 10 | low & 0x3FF)
                } else {
                    0xFFFD
                };
            }
            if code > u32::from(char::MAX) {
                code = 0xFFFD;
            }
            let (bytes, count) = encode(code);
            utf8[size..size + 4].copy_from_slice(&bytes);
            size += count;
        }
        out.extend_from_slice(&utf8[..size]);
    }
}

/// Returns a code point as UTF-8, with zeros behind, and its size in bytes.
#[inline(always)]
#[allow(clippy::inline_always)] // into a loop over all characters
#[allow(clippy::cast_possible_truncation)] // the shifts and masks leave at most a byte
fn encode(code: u32) -> ([u8; 4], usize) {
    let tail = |shift: u32| 0x80 | ((code >> shift) & 0x3F) as u8;
    match code {
        0..0x80 => ([code as u8, 0, 0, 0], 1),
        0x80..0x800 => ([0xC0 | (code >> 6) as u8, tail(0), 0, 0], 2),
        0x800..0x1_0000 => ([0xE0 | (code >> 12) as u8, tail(6), tail(0), 0], 3),
        _ => ([0xF0 | (code >> 18) as u8, tail(12), tail(6), tail(0)], 4),
    }
}

/// How many code points are sampled at each place, and at how many places.
const SAMPLE: usize = 8;
const SAMPLES: usize = 5;

fn sample<U: Unit>(units: &[U]) -> u32 {
    let mix =
        |print: u64, word: u64| (print ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let pack = |units: &[U]| {
        units.iter().fold(0_u64, |word, &unit| word.rotate_left(8) ^ u64::from(unit.into()))
    };
    let mut print = mix(0, units.len() as u64);
    if let Some(range) = units.len().checked_sub(SAMPLE) {
        for place in 0..SAMPLES {
            let start = range * place / (SAMPLES - 1);
            print = mix(print, pack(&units[start..start + SAMPLE]));
        }
    } else {
        print = mix(print, pack(units));
    }
    (print >> 32) as u32
}

#[inline]
fn is_ascii<U: Unit>(units: &[U]) -> bool {
    units.iter().fold(0, |all, &unit| all | unit.into()) < 0x80
}

/// Returns whether Python's `str.split()` splits at `code`.
pub(crate) fn is_space(code: u32) -> bool {
    matches!(code, 0x9..=0xD | 0x1C..=0x20) || is_wide_space(code)
}

/// Returns whether Python's `str.split()` splits at `code`, for codes from
/// 0x80 on.
fn is_wide_space(code: u32) -> bool {
    matches!(
        code,
        0x85 | 0xA0 | 0x1680 | 0x2000..=0x200A | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000
    )
}

/// Appends `code`, a surrogate like any other code point.
pub(crate) fn push_code(code: u32, out: &mut Vec<u8>) {
    let (bytes, count) = encode(code);
    out.extend_from_slice(&bytes[..count]);
}

/// Returns how many code points start in at most 255 bytes of UTF-8. The count
/// is in bytes, so the compiler makes vector instructions of it.
fn starts(bytes: &[u8]) -> u8 {
    // Continuation bytes are 0x80 to 0xBF: -128 to -65 as signed.
    bytes.iter().map(|&byte| u8::from(byte.cast_signed() >= -64)).sum()
}

/// Returns the code point at `at`, and its size in bytes.
#[inline]
pub(crate) fn decode(bytes: &[u8], at: usize) -> (u32, usize) {
    let bits = |offset: usize| u32::from(bytes[at + offset] & 0x3F);
    let first = u32::from(bytes[at]);
    match first {
        0..0x80 => (first, 1),
        0x80..0xE0 => ((first & 0x1F) << 6 | bits(1), 2),
        0xE0..0xF0 => ((first & 0x0F) << 12 | bits(1) << 6 | bits(2), 3),
        _ => ((first & 0x07) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3), 4),
    }
}

/// Returns where, in bytes, `chars` code points behind `from` end.
fn byte_offset(bytes: &[u8], from: usize, chars: usize) -> usize {
    let mut at = from;
    for _ in 0..chars {
        at += decode(bytes, at).1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_surrogate_begins_no_pair() {
        for (units, expected) in [
            ([0xDC00, 0xDC01], "\u{FFFD}\u{FFFD}"),
            ([0xD800, 0xD801], "\u{FFFD}\u{FFFD}"),
            ([0xD800, 0xDC00], "\u{10000}"),
            ([0xDBFF, 0xDFFF], "\u{10FFFF}"),
            ([0xDFFF, 0xDBFF], "\u{FFFD}\u{FFFD}"),
        ] {
            let mut out = Vec::new();
            write_scalar_units::<u16>(&units, &mut out);
            assert_eq!(expected.as_bytes(), out, "{units:x?}");
        }
    }

    const SAMPLE: &str = "K\u{212A}elvin ~\u{85}naïve\u{3000}日本 🦀\u{1c}x";

    fn folded(text: Text<'_>) -> Vec<u8> {
        text.fold(&mut Vec::new()).to_vec()
    }

    /// Every storage of the same text folds, encodes, counts and slices alike.
    #[test]
    fn storages_agree() {
        let long = SAMPLE.repeat(9);
        let wide: Vec<u32> = long.chars().map(u32::from).collect();
        let narrow: Vec<u16> =
            wide.iter().map(|&code| u16::try_from(code).unwrap_or(0x65E5)).collect();
        let replaced = long.replace('🦀', "日");
        for (text, expected) in
            [(Text::Ucs4(&wide), long.as_str()), (Text::Ucs2(&narrow), replaced.as_str())]
        {
            let utf8 = Text::from(expected);
            assert_eq!(folded(utf8), folded(text));
            assert_eq!(expected.chars().count(), text.chars());
            assert_eq!(text.chars(), utf8.chars());
            let (mut encoded, mut part) = (Vec::new(), Vec::new());
            text.write_utf8(&mut encoded);
            assert_eq!(expected.as_bytes(), encoded);
            text.slice(3, 30).write_utf8(&mut part);
            let expected: String = expected.chars().skip(3).take(27).collect();
            assert_eq!(expected.as_bytes(), part);
        }
    }

    #[test]
    fn folding_keeps_ascii_and_places() {
        assert_eq!(b"Kkelvin ~ na\x80ve \x80\x80 \x80\x1cx".to_vec(), folded(SAMPLE.into()));
        assert_eq!(b"\x80 ".to_vec(), folded(Text::Latin1(&[0xE9, 0xA0])));
    }

    #[test]
    fn surrogates_are_code_points() {
        let text = Text::Ucs2(&[0xD83D, 0xDE00]);
        let mut encoded = Vec::new();
        text.write_utf8(&mut encoded);
        assert_eq!(b"\xED\xA0\xBD\xED\xB8\x80".to_vec(), encoded);
        assert_eq!(2, Text::Utf8(&encoded).chars());
    }

    #[test]
    fn tokens_start_where_words_end() {
        // At the end some places are left out.
        let starts = |text: &str| Text::from(text).starts();
        assert_eq!((0, 1), (starts(""), starts("tea")));
        let found = starts(&"tea ".repeat(10_000));
        assert!((9_900..=10_000).contains(&found), "{found}");
        assert!(is_ascii(&[0_u8, 0x7F]) && is_ascii::<u16>(&[]));
        assert!(!is_ascii(&[0x41_u8, 0x80]) && !is_ascii(&[0x3000_u32]));
    }
}
