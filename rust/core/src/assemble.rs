//! Making one text of what was kept.

use crate::chunk::Batch;
use crate::pack::{Admitted, Kept};
use crate::text::Text;

/// What stands in the text for a kept chunk.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// What stands in front of the text, encoded as in [`Text::Utf8`].
    pub label: &'a [u8],
    /// The chunk.
    pub index: usize,
    /// What is left of its text if it was cut, encoded as in [`Text::Utf8`].
    pub cut: Option<&'a [u8]>,
}

impl<'a> Part<'a> {
    /// Returns the text of the chunk, cut where it was cut.
    pub fn body<B: Batch>(&self, batch: &'a B) -> Text<'a> {
        self.cut.map_or_else(|| batch.text(self.index), Text::from_utf8)
    }
}

impl Admitted {
    /// Returns what stands in the text for the kept chunk at `place`.
    pub(crate) fn part(&self, place: usize) -> Part<'_> {
        let Kept { index, .. } = self.kept[place];
        let cut = self.cut.as_ref().filter(|(cut, _)| *cut == index);
        Part {
            label: self.labels.get(place).map_or(&[][..], Vec::as_slice),
            index: index as usize,
            cut: cut.map(|(_, piece)| piece.as_slice()),
        }
    }

    /// Returns the places of the kept chunks in the order of the text.
    pub(crate) fn arranged(&self, input_order: bool) -> Vec<u32> {
        let mut places: Vec<u32> = (0..).take(self.kept.len()).collect();
        if input_order {
            places.sort_unstable_by_key(|&place| self.kept[place as usize].index);
        }
        places
    }
}

/// Returns the assembled text, encoded as in [`Text::Utf8`].
pub(crate) fn text<'a, B: Batch>(
    batch: &'a B,
    separator: &str,
    parts: impl Iterator<Item = Part<'a>> + Clone,
) -> Vec<u8> {
    let size = |part: Part<'a>| part.label.len() + part.body(batch).chars() + separator.len();
    let mut text = Vec::with_capacity(parts.clone().map(size).sum());
    for (i, part) in parts.enumerate() {
        if i > 0 {
            text.extend_from_slice(separator.as_bytes());
        }
        text.extend_from_slice(part.label);
        part.body(batch).write_utf8(&mut text);
    }
    text
}
