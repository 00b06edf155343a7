//! Making one text of what was kept.

use std::collections::HashMap;

use crate::chunk::Batch;
use crate::pack::{Admitted, Kept};
use crate::pipeline::Plan;
use crate::text::Text;

pub(crate) mod escape;
pub(crate) mod template;

/// How the kept chunks stand in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// Best first.
    #[default]
    Rank,
    /// As they came.
    Input,
    /// By source, in the order in which the sources came; within a source by
    /// position where there is one, then as they came.
    Document,
    /// The best first, the next best last, and so on inwards: models heed the
    /// middle of a long text least.
    Edges,
    /// As in the packing before, up to the first chunk that is gone; then best
    /// first. What stays in front a provider need not read again.
    Sticky,
}

/// What stands around the text of a kept chunk, and what becomes of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// What stands in front of the text.
    pub(crate) front: Vec<u8>,
    /// What stands behind it.
    pub(crate) back: Vec<u8>,
    /// The text as it is escaped, if anything is.
    pub(crate) escaped: Option<Vec<u8>>,
    /// Where the chunk comes from, and where it stands there, NaN for unknown.
    pub(crate) source: Vec<u8>,
    pub(crate) position: f64,
}

/// What stands in the text for a kept chunk. All is encoded as in
/// [`Text::Utf8`].
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// What stands in front of the text.
    pub front: &'a [u8],
    /// The chunk.
    pub index: usize,
    /// What stands for its text, where that was cut or escaped.
    pub changed: Option<&'a [u8]>,
    /// Whether something of its text was left out.
    pub was_cut: bool,
    /// What stands behind the text.
    pub back: &'a [u8],
}

impl<'a> Part<'a> {
    /// Returns what stands for the text of the chunk.
    pub fn body<B: Batch>(&self, batch: &'a B) -> Text<'a> {
        self.changed.map_or_else(|| batch.text(self.index), Text::from_utf8)
    }
}

impl Admitted {
    /// Returns what stands in the text for the kept chunk at `place`.
    pub(crate) fn part(&self, place: usize) -> Part<'_> {
        let Kept { index, .. } = self.kept[place];
        let cut = self.cut.as_ref().filter(|(cut, _)| *cut == index);
        let frame = self.frames.get(place);
        let escaped = frame.and_then(|frame| frame.escaped.as_deref());
        Part {
            front: frame.map_or(&[], |frame| &frame.front),
            index: index as usize,
            changed: cut.map(|(_, piece)| piece.as_slice()).or(escaped),
            was_cut: cut.is_some(),
            back: frame.map_or(&[], |frame| &frame.back),
        }
    }

    /// Returns the places of the kept chunks in the order of the text.
    pub(crate) fn arranged<B: Batch>(&self, plan: &Plan<'_>, batch: &B) -> Vec<u32> {
        let mut places: Vec<u32> = (0..).take(self.kept.len()).collect();
        let index = |place: u32| self.kept[place as usize].index;
        match plan.order {
            Order::Rank => {}
            Order::Input => places.sort_unstable_by_key(|&place| index(place)),
            Order::Document => {
                let mut firsts: HashMap<&[u8], u32> = HashMap::new();
                for (place, frame) in self.frames.iter().enumerate() {
                    let first = firsts.entry(&frame.source).or_insert(u32::MAX);
                    *first = self.kept[place].index.min(*first);
                }
                let sources: Vec<u32> =
                    self.frames.iter().map(|frame| firsts[&frame.source[..]]).collect();
                places.sort_unstable_by(|&a, &b| {
                    let of = |place: u32| {
                        (sources[place as usize], self.frames[place as usize].position)
                    };
                    let ((source, one), (other_source, other)) = (of(a), of(b));
                    let by_position = one
                        .is_nan()
                        .cmp(&other.is_nan())
                        .then_with(|| one.partial_cmp(&other).unwrap_or(std::cmp::Ordering::Equal));
                    source.cmp(&other_source).then(by_position).then(index(a).cmp(&index(b)))
                });
            }
            Order::Edges => {
                let (first, last) = (places.iter().step_by(2), places.iter().skip(1).step_by(2));
                places = first.chain(last.rev()).copied().collect();
            }
            Order::Sticky => places = self.after_previous(plan, batch, places),
        }
        places
    }

    /// Returns places as they stood in the packing before, up to the first that
    /// is gone, and behind them the others as they are.
    fn after_previous<B: Batch>(&self, plan: &Plan<'_>, batch: &B, places: Vec<u32>) -> Vec<u32> {
        if plan.previous.is_empty() {
            return places;
        }
        // Of equal ones the best is taken first.
        let mut by_text: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
        for &place in places.iter().rev() {
            let part = self.part(place as usize);
            let mut text = part.front.to_vec();
            part.body(batch).write_utf8(&mut text);
            by_text.entry(text).or_default().push(place);
        }
        let mut link = plan.template.header.as_bytes().to_vec();
        let mut is_placed = vec![false; places.len()];
        let mut arranged = Vec::with_capacity(places.len());
        for previous in plan.previous {
            let text = previous.strip_prefix(&link[..]);
            let found = text.and_then(|text| by_text.get_mut(text)).and_then(Vec::pop);
            let Some(place) = found else { break };
            is_placed[place as usize] = true;
            arranged.push(place);
            link.clear();
            link.extend_from_slice(self.part(place as usize).back);
            link.extend_from_slice(plan.template.separator.as_bytes());
        }
        arranged.extend(places.into_iter().filter(|&place| !is_placed[place as usize]));
        arranged
    }
}

/// Returns the assembled text, encoded as in [`Text::Utf8`]; `tail` is what
/// stands behind the last chunk. Nothing stands around no chunk.
pub(crate) fn text<'a, B: Batch>(
    batch: &'a B,
    plan: &Plan<'_>,
    parts: impl ExactSizeIterator<Item = Part<'a>> + Clone,
    tail: &[u8],
) -> Vec<u8> {
    if parts.len() == 0 {
        return Vec::new();
    }
    let (header, separator) = (&plan.template.header, &plan.template.separator);
    let size = |part: Part<'a>| {
        part.front.len() + part.body(batch).chars() + part.back.len() + separator.len()
    };
    let size = header.len() + parts.clone().map(size).sum::<usize>() + tail.len();
    let mut text = Vec::with_capacity(size);
    text.extend_from_slice(header.as_bytes());
    for (i, part) in parts.enumerate() {
        if i > 0 {
            text.extend_from_slice(separator.as_bytes());
        }
        text.extend_from_slice(part.front);
        part.body(batch).write_utf8(&mut text);
        text.extend_from_slice(part.back);
    }
    text.extend_from_slice(tail);
    text
}
