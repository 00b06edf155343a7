//! A text by its paragraphs or lines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use memchr::memchr;

use super::cut::{Clusters, without_middle};
use super::share::{
    MOST_ROWS, Markers, Span, chars, number, ranked, scores_of, share, size_of_characters,
};
use super::tree::Tree;
use super::{Draft, Shape};
use crate::text::Text;

/// A line of a log is cut if it is as long as this many of its markers, else it
/// stays or goes.
const CUT_FROM: usize = 3;

/// A line that is cut keeps this many: its marker, and as much of its own.
const CUT_TO: usize = 2;

/// A line or a paragraph, with the line ends behind it, as places in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) start: usize,
    /// Where its text ends, and line ends begin.
    pub(super) body: usize,
    pub(super) end: usize,
}

/// A text in units, and the order in which they stay.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a [u8],
    units: Vec<Unit>,
    /// Their sizes, and the least ones, in code points.
    spans: Vec<Span>,
    /// The places of the units, the best first.
    order: Vec<usize>,
    name: &'static str,
    /// Equal numbers for lines that differ in numbers and identifiers alone;
    /// empty where that does not matter.
    masks: Vec<usize>,
    is_log: bool,
    /// The least size of the best unit, where it does not fit whole.
    least_of_best: usize,
    /// What stands behind a marker, and on both sides of one within a unit.
    behind: &'static [u8],
    around: &'static [u8],
    clusters: HashMap<usize, Clusters>,
    trees: HashMap<usize, Option<Tree<'a>>>,
    stop: &'a AtomicBool,
}

impl<'a> Lines<'a> {
    /// Takes the units of a text, the best first in `order`; units with equal
    /// `masks` are similar.
    pub(super) fn new(
        text: &'a [u8],
        units: Vec<Unit>,
        order: Vec<usize>,
        name: &'static str,
        masks: Vec<usize>,
        stop: &'a AtomicBool,
    ) -> Self {
        let is_log = !masks.is_empty() && units.len() > 1;
        let markers = Markers::new(None);
        let frame = markers.size(0);
        let span = |unit: &Unit| {
            let body = chars(&text[unit.start..unit.body]);
            let ends = chars(&text[unit.body..unit.end]);
            let marker = frame + size_of_characters(body);
            let least = if is_log && body < CUT_FROM * marker {
                body
            } else if is_log {
                CUT_TO * marker
            } else {
                body.min(marker)
            };
            Span { size: body + ends, least: least + ends }
        };
        let mut spans: Vec<_> = units.iter().map(span).collect();
        let least_of_best = order.first().map_or(0, |&best| spans[best].least);
        // JSON among the lines of a log stays whole, but for the best one.
        let pairs = units.iter().zip(&mut spans).filter(|_| is_log);
        for (_, span) in pairs.filter(|(unit, _)| is_object(&text[unit.start..unit.body])) {
            span.least = span.size;
        }
        let (behind, around): (&[u8], &[u8]) =
            if name == "paragraph" { (b"\n\n", b"\n") } else { (b"\n", b" ") };
        let (clusters, trees) = (HashMap::new(), HashMap::new());
        Self {
            text,
            units,
            spans,
            order,
            name,
            masks,
            is_log,
            least_of_best,
            behind,
            around,
            clusters,
            trees,
            stop,
        }
    }

    /// Returns a unit, without its middle where it has no room for it, and what
    /// it lost.
    fn unit(
        &mut self,
        at: usize,
        room: usize,
        markers: &mut Markers<'_>,
    ) -> (Cow<'a, [u8]>, usize) {
        let Unit { start, body, end } = self.units[at];
        let Span { size, least } = self.spans[at];
        let content = &self.text[start..body];
        let ends = chars(&self.text[body..end]);
        let mut is_whole = size <= room;
        let mut room = room.saturating_sub(ends);
        if self.is_log && !is_whole {
            // A marker is never longer than what it saves, the pointer included.
            let marker = markers.size(size_of_characters(size - ends));
            is_whole = size - ends < (room + marker).max(CUT_FROM * marker);
            room = room.max(CUT_TO * marker);
        }
        if is_whole || (size == least && !self.is_log) {
            return (Cow::Borrowed(&self.text[start..end]), 0);
        }
        if let Some(tree) = self.tree(at) {
            let mut draft = tree.render(room, markers.pointer());
            if draft.left_out > 0 {
                markers.point();
            }
            let behind = body - usize::from(self.text[start..body].ends_with(b"\r"));
            draft.text.extend_from_slice(&self.text[behind..end]);
            return (Cow::Owned(draft.text), draft.left_out);
        }
        let new = || Clusters::new(content, false, room, self.stop);
        let clusters = self.clusters.entry(at).or_insert_with(new);
        if !clusters.are_enough_for(room) {
            *clusters = new();
        }
        let (mut cut, lost) = without_middle(content, clusters, room, markers, self.around);
        cut.extend_from_slice(&self.text[body..end]);
        (Cow::Owned(cut), lost)
    }

    /// Returns a line of a log that is an object of JSON, to be cut as one; None
    /// for others.
    fn tree(&mut self, at: usize) -> Option<&mut Tree<'a>> {
        let Unit { start, body, .. } = self.units[at];
        let line = &self.text[start..body];
        let is_tree = self.is_log && is_object(line);
        let new = || is_tree.then(|| Tree::new(line, None, 0, None, self.stop).ok()).flatten();
        self.trees.entry(at).or_insert_with(new).as_mut()
    }

    /// Returns what a marker says of the units from `start` to `end`.
    fn said(&self, start: usize, end: usize) -> Vec<u8> {
        if start > 0 && !self.masks.is_empty() {
            let mask = self.masks[start - 1];
            if self.masks[start..end].iter().all(|&other| other == mask) {
                let lines = if end - start == 1 { "line" } else { "lines" };
                return format!("{} similar {lines}", end - start).into_bytes();
            }
        }
        format!("{} left out", number(end - start, self.name)).into_bytes()
    }
}

impl Shape for Lines<'_> {
    fn size(&self) -> usize {
        self.spans.iter().map(|span| span.size).sum()
    }

    fn render(&mut self, room: usize, pointer: Option<&[u8]>) -> Draft {
        let mut markers = Markers::new(pointer);
        let count = self.units.len();
        let got = if count == 1 {
            vec![room.max(1)]
        } else {
            let marker = chars(&markers.show(&self.said(0, count))) + self.behind.len();
            let room = room.saturating_sub(marker);
            let cap = room / count.clamp(1, MOST_ROWS);
            let best = self.order.first().copied().filter(|_| self.is_log);
            if let Some(best) = best {
                // The best is whole before others get a part; if it does not
                // fit, it gets half.
                let mut spans = self.spans.clone();
                let size = spans[best].size;
                spans[best].least =
                    if size <= room { size } else { self.least_of_best.max(room / 2) };
                share(&spans, &self.order, room, cap, false)
            } else {
                share(&self.spans, &self.order, room, cap, false)
            }
        };
        let (mut draft, mut at) = (Draft::default(), 0);
        while at < count {
            if got[at] > 0 {
                let (text, lost) = self.unit(at, got[at], &mut markers);
                draft.text.extend_from_slice(&text);
                draft.left_out += lost;
                at += 1;
                continue;
            }
            let start = at;
            at += got[at..].iter().take_while(|&&got| got == 0).count();
            let lost = self.spans[start..at].iter().map(|span| span.size).sum::<usize>();
            let said = self.said(start, at);
            let behind: &[u8] = if at < count { self.behind } else { b"" };
            if lost <= chars(&markers.show(&said)) + behind.len() {
                let whole = self.units[start].start..self.units[at - 1].end;
                draft.text.extend_from_slice(&self.text[whole]);
            } else {
                draft.text.extend(markers.write(&said));
                draft.text.extend_from_slice(behind);
                draft.left_out += lost;
            }
        }
        draft
    }
}

/// Returns a text as one unit, or by a query as its paragraphs. What is rendered
/// means nothing once `stop` is set.
pub(super) fn text_of<'a>(
    text: &'a [u8],
    query: Option<Text<'_>>,
    stop: &'a AtomicBool,
) -> Lines<'a> {
    if query.is_none() {
        let whole = Unit { start: 0, body: text.len(), end: text.len() };
        return Lines::new(text, vec![whole], vec![0], "paragraph", Vec::new(), stop);
    }
    let mut units = Vec::new();
    let (mut start, mut body, mut end) = (0, 0, 0);
    for line in split(text) {
        let is_blank = is_blank(&text[line.start..line.body]);
        if !is_blank && end > body + 1 && body > start {
            units.push(Unit { start, body, end });
            start = end;
        }
        if !is_blank {
            body = line.body;
        }
        end = line.end;
    }
    units.push(Unit { start, body: body.max(start), end });
    let texts: Vec<_> =
        units.iter().map(|unit| Cow::Borrowed(&text[unit.start..unit.end])).collect();
    let order = ranked(&scores_of(query, &texts));
    Lines::new(text, units, order, "paragraph", Vec::new(), stop)
}

/// Returns the lines of a text. Each ends behind its line feed.
pub(super) fn split(text: &[u8]) -> Vec<Unit> {
    let (mut units, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let body = memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at);
        let end = text.len().min(body + 1);
        units.push(Unit { start, body, end });
        start = end;
    }
    units
}

/// Returns whether a line begins and ends as an object of JSON.
pub(super) fn is_object(line: &[u8]) -> bool {
    let mut bytes = line.iter().filter(|byte| !is_space(**byte));
    bytes.next() == Some(&b'{')
        && matches!(bytes.next(), Some(b'"' | b'}'))
        && line.iter().rfind(|byte| !is_space(**byte)) == Some(&b'}')
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| is_space(byte))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0xB | 0xC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_begins_and_ends_as_one() {
        for line in ["{}", " { \"a\": 1}\r", "{\"a\"}"] {
            assert!(is_object(line.as_bytes()), "{line}");
        }
        for line in ["", "{", "{\"a\": 1", "{1}", "\"a\": 1}", "x{\"a\"}", "x\"}"] {
            assert!(!is_object(line.as_bytes()), "{line}");
        }
    }
}
