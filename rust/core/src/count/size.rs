//! How the measures of the parts of a text add up.

use super::Estimate;
use crate::text::{Text, is_space};

/// The measure of a part of a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    pub(crate) measured: u64,
    /// Where words are counted: whether a word may begin in front of the part,
    /// and whether one may go on behind it. None for the empty part.
    ends: Option<(bool, bool)>,
}

impl Size {
    /// Returns a size that simply adds to others.
    pub(crate) fn additive(measured: u64) -> Self {
        Self { measured, ends: None }
    }

    /// Returns the size of both parts together, `next` behind this one.
    pub(crate) fn then(self, next: Self) -> Self {
        let measured = self.measured + next.measured;
        match (self.ends, next.ends) {
            (Some((opens, is_open)), Some((goes_on, closes))) => Self {
                measured: measured - u64::from(is_open && goes_on),
                ends: Some((opens, closes)),
            },
            (ends, None) | (None, ends) => Self { measured, ends },
        }
    }
}

impl Estimate {
    /// Returns the size of a text.
    pub(crate) fn size(self, text: Text<'_>, scratch: &mut Vec<u8>) -> Size {
        self.size_of(text, self.measure(text, scratch))
    }

    /// Returns the size of a text whose measure is known.
    pub(crate) fn size_of(self, text: Text<'_>, measured: u64) -> Size {
        let ends = if self == Self::Words { text.ends() } else { None };
        Size { measured, ends: ends.map(|(first, last)| (!is_space(first), !is_space(last))) }
    }
}
