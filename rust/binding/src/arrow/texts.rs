//! A column of texts as a batch.

use budgeteer::{Batch, Text};

use super::column::{Misread, Strings};
use super::ffi::{Array, Import};

/// The texts of a column, where they lie.
pub(crate) struct ArrowTexts {
    /// The parts that have texts, each behind the number of texts before it.
    parts: Vec<(usize, Strings)>,
    len: usize,
    /// The bytes of all texts together.
    bytes: usize,
    /// What owns the memory of the parts. It is dropped last.
    _owner: Import,
}

/// Why a text cannot be read.
pub(crate) enum Unread {
    /// It is null.
    Null,
    /// It is none.
    Bad(Misread),
}

impl ArrowTexts {
    /// Reads the column, and each text of it once. Returns None if it has
    /// another type, and the first text that cannot be read.
    pub(crate) fn of(mut owner: Import) -> Option<Result<Self, (Unread, usize)>> {
        let Import { schema, arrays } = &mut owner;
        if arrays.is_empty() {
            arrays.push(Array::empty(schema)); // its type is looked at even so
        }
        let (mut len, mut bytes) = (0, 0);
        let mut parts = Vec::with_capacity(arrays.len());
        for array in arrays.iter() {
            let strings = Strings::of(schema, array)?;
            for place in 0..strings.len() {
                match strings.get(place) {
                    Ok(Some(text)) => bytes += text.len(),
                    Ok(None) => return Some(Err((Unread::Null, len + place))),
                    Err(misread) => return Some(Err((Unread::Bad(misread), len + place))),
                }
            }
            if strings.len() > 0 {
                let first = len;
                len += strings.len();
                parts.push((first, strings));
            }
        }
        Some(Ok(Self { parts, len, bytes, _owner: owner }))
    }
}

impl Batch for ArrowTexts {
    fn len(&self) -> usize {
        self.len
    }

    fn text(&self, index: usize) -> Text<'_> {
        let part = self.parts.partition_point(|(first, _)| *first <= index) - 1;
        let (first, strings) = &self.parts[part];
        // Each text was found to be one before.
        Text::from_utf8(strings.bytes(index - first).ok().flatten().unwrap_or_default())
    }

    fn title(&self, _: usize) -> Text<'_> {
        Text::EMPTY
    }

    fn total_chars(&self) -> usize {
        self.bytes
    }
}
