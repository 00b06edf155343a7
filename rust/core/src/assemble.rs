//! Making one text of what was kept.

use crate::chunk::Batch;
use crate::pack::Admitted;
use crate::pipeline::Plan;
use crate::text::Text;

/// The order in which kept chunks stand in the text, as places in rank order.
#[derive(Debug)]
pub(crate) enum Arrangement {
    /// By rank.
    Rank(usize),
    /// Any other.
    Places(Vec<u32>),
}

impl Arrangement {
    pub(crate) fn new(plan: &Plan<'_>, admitted: &Admitted) -> Self {
        let count = admitted.kept.len();
        if !plan.input_order {
            return Self::Rank(count);
        }
        let mut places: Vec<u32> = (0..).take(count).collect();
        places.sort_unstable_by_key(|&place| admitted.kept[place as usize].index);
        Self::Places(places)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let (count, places) = match self {
            Self::Rank(count) => (*count, None),
            Self::Places(places) => (places.len(), Some(places)),
        };
        (0..count).map(move |i| places.map_or(i, |places| places[i] as usize))
    }
}

/// What stands in the text for a kept chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) label: &'a [u8],
    pub(crate) body: Text<'a>,
}

/// Returns what stands in the text for the kept chunk at `place` in rank order.
pub(crate) fn part<'a, B: Batch>(batch: &'a B, admitted: &'a Admitted, place: usize) -> Part<'a> {
    let index = admitted.kept[place].index;
    let label = admitted.labels.get(place).map_or(&[][..], Vec::as_slice);
    let body = match &admitted.cut {
        Some((cut, piece)) if *cut == index => Text::from_utf8(piece),
        _ => batch.text(index as usize),
    };
    Part { label, body }
}

/// Returns the assembled text, encoded as in [`Text::Utf8`].
pub(crate) fn text<B: Batch>(
    plan: &Plan<'_>,
    batch: &B,
    admitted: &Admitted,
    arrangement: &Arrangement,
) -> Vec<u8> {
    let parts = || arrangement.iter().map(|place| part(batch, admitted, place));
    let size: usize =
        parts().map(|part| part.label.len() + part.body.chars() + plan.separator.len()).sum();
    let mut text = Vec::with_capacity(size);
    for (i, part) in parts().enumerate() {
        if i > 0 {
            text.extend_from_slice(plan.separator.as_bytes());
        }
        text.extend_from_slice(part.label);
        part.body.write_utf8(&mut text);
    }
    text
}
