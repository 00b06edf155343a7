//! Strings as an interpreter keeps them, and a fixed sequence of numbers, for the
//! programs that `scripts/` runs under callgrind.

use budgeteer::{Batch, Text};

/// A fixed linear congruential sequence.
pub(crate) struct Random(pub(crate) u32);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) as usize % end
    }
}

/// A text as an interpreter keeps it: all its characters have one width.
pub(crate) enum Wide {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

impl Wide {
    /// Returns a text of these code points, lone surrogates included.
    pub(crate) fn new(codes: impl Iterator<Item = u32> + Clone) -> Self {
        let largest = codes.clone().max().unwrap_or(0);
        if largest <= 0xff {
            Self::One(codes.map(|c| u8::try_from(c).expect("it is small")).collect())
        } else if largest <= 0xffff {
            Self::Two(codes.map(|c| u16::try_from(c).expect("it is small")).collect())
        } else {
            Self::Four(codes.collect())
        }
    }

    pub(crate) fn text(&self) -> Text<'_> {
        match self {
            Self::One(text) if text.is_ascii() => Text::Ascii(text),
            Self::One(text) => Text::Latin1(text),
            Self::Two(text) => Text::Ucs2(text),
            Self::Four(text) => Text::Ucs4(text),
        }
    }
}

/// Chunks without titles.
pub(crate) struct Strings(pub(crate) Vec<Wide>);

impl Batch for Strings {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        self.0[index].text()
    }

    fn title(&self, _: usize) -> Text<'_> {
        Text::EMPTY
    }
}
