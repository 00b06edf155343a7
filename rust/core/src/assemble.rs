//! Assembling the text of the kept chunks.

use std::collections::HashMap;

use crate::chunk::Batch;
use crate::outcome::{Admitted, Part};
use crate::plan::{Call, Order};
use crate::template::Template;

/// Returns the places of the kept chunks in the order of the text.
pub(crate) fn arrange<B: Batch>(admitted: &Admitted, call: &Call<'_>, batch: &B) -> Vec<u32> {
    let mut places: Vec<u32> = (0..).take(admitted.kept.len()).collect();
    let index = |place: u32| admitted.kept[place as usize].index;
    match call.plan.order {
        Order::Rank => {}
        Order::Input => places.sort_unstable_by_key(|&place| index(place)),
        Order::Document => {
            let mut firsts: HashMap<&[u8], u32> = HashMap::new();
            for (place, frame) in admitted.frames.iter().enumerate() {
                let first = firsts.entry(&frame.source).or_insert(u32::MAX);
                *first = admitted.kept[place].index.min(*first);
            }
            let sources: Vec<u32> =
                admitted.frames.iter().map(|frame| firsts[&frame.source[..]]).collect();
            places.sort_unstable_by(|&a, &b| {
                let of = |place: u32| {
                    (sources[place as usize], admitted.frames[place as usize].position)
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
        Order::Sticky => places = after_previous(admitted, call, batch, places),
    }
    places
}

/// Returns the places in the order of the packing before, up to the first chunk
/// that is gone, and behind them the others in their order.
fn after_previous<B: Batch>(
    admitted: &Admitted,
    call: &Call<'_>,
    batch: &B,
    places: Vec<u32>,
) -> Vec<u32> {
    if call.previous.is_empty() {
        return places;
    }
    let template = call.template();
    // Among equal texts the best is taken first.
    let mut by_text: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
    for &place in places.iter().rev() {
        let part = admitted.part(place as usize);
        let mut text = part.front.to_vec();
        part.body(batch).write_utf8(&mut text);
        by_text.entry(text).or_default().push(place);
    }
    let mut link = template.header.as_bytes().to_vec();
    let mut is_placed = vec![false; places.len()];
    let mut arranged = Vec::with_capacity(places.len());
    for previous in call.previous {
        let text = previous.strip_prefix(&link[..]);
        let found = text.and_then(|text| by_text.get_mut(text)).and_then(Vec::pop);
        let Some(place) = found else { break };
        is_placed[place as usize] = true;
        arranged.push(place);
        link.clear();
        link.extend_from_slice(admitted.part(place as usize).back);
        link.extend_from_slice(template.separator.as_bytes());
    }
    arranged.extend(places.into_iter().filter(|&place| !is_placed[place as usize]));
    arranged
}

/// Returns the assembled text, encoded as in [`Text::Utf8`](crate::Text::Utf8),
/// with `tail` behind the last chunk. It is empty if there is no chunk.
pub(crate) fn text<'a, B: Batch>(
    batch: &'a B,
    call: &Call<'_>,
    parts: impl ExactSizeIterator<Item = Part<'a>> + Clone,
    tail: &[u8],
) -> Vec<u8> {
    if parts.len() == 0 {
        return Vec::new();
    }
    let Template { header, separator, .. } = call.template();
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
