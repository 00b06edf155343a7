//! JSON cut to a room, and still JSON.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use super::cut::{Clusters, plain, without_middle};
use super::scan::{Kind, Node, scan};
use super::share::{
    MOST_ROWS, Markers, Span, chars, digits, number, ranked, scores_of, share, size_of_characters,
    water_level,
};
use super::{Draft, Misfit, Shape};
use crate::text::Text;

/// Returns what a marker says of the items of an array.
fn items(count: usize, of: usize) -> Vec<u8> {
    format!("{count} of {} left out", number(of, "item")).into_bytes()
}

/// Returns what a marker says of the members of an object.
fn keys(count: usize, of: usize) -> Vec<u8> {
    format!("{count} of {} left out", number(of, "key")).into_bytes()
}

/// Returns the length of [`items`] or [`keys`] for all that there are.
fn size_of_all(count: usize, name: &str) -> usize {
    let plural = usize::from(count != 1);
    2 * digits(count) + " of ".len() + " ".len() + name.len() + plural + " left out".len()
}

/// Returns a marker between quotes. Its pointer comes escaped.
fn quoted(marker: &[u8]) -> Vec<u8> {
    [b"\"", marker, b"\""].concat()
}

/// Returns a marker as a member of an object.
fn member(marker: &[u8]) -> Vec<u8> {
    [b"\"...\":\"", marker, b"\""].concat()
}

/// A JSON text and its values. What is asked for again is remembered.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    text: Vec<u8>,
    nodes: Vec<Node>,
    query: Option<Text<'a>>,
    /// The array whose items are counted.
    rows: usize,
    orders: HashMap<usize, Rc<[usize]>>,
    clusters: HashMap<usize, Rc<Clusters>>,
    stop: &'a AtomicBool,
}

impl<'a> Tree<'a> {
    /// Reads a JSON text. The array of the place `rows` has its items counted,
    /// and the value of the place `fixed` is never cut. What is rendered means
    /// nothing once `stop` is set.
    pub(super) fn new(
        text: &[u8],
        query: Option<Text<'a>>,
        rows: usize,
        fixed: Option<usize>,
        stop: &'a AtomicBool,
    ) -> Result<Self, Misfit> {
        let (text, mut nodes) = scan(text, stop)?;
        measure(&mut nodes, fixed);
        let (orders, clusters) = (HashMap::new(), HashMap::new());
        Ok(Self { text, nodes, query, rows, orders, clusters, stop })
    }

    /// Returns the compact text.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the smallest text of this shape; None if it is the whole one.
    pub(super) fn bare(&self) -> Option<&'static [u8]> {
        self.nodes.first().and_then(|root| root.kind.bare())
    }

    /// Returns the number of items of the array that has them counted.
    pub(super) fn whole_rows(&self) -> usize {
        self.nodes.get(self.rows).map_or(0, |rows| rows.count)
    }

    /// Returns the places of what is directly in a node.
    fn inside(&self, at: usize) -> Vec<usize> {
        let mut next = at + 1;
        let mut found = Vec::with_capacity(self.nodes[at].count);
        for _ in 0..self.nodes[at].count {
            found.push(next);
            next = self.nodes[next].after;
        }
        found
    }

    /// Returns the places of what is in a node, the best first.
    fn order(&mut self, at: usize, inside: &[usize]) -> Rc<[usize]> {
        if let Some(found) = self.orders.get(&at) {
            return Rc::clone(found);
        }
        let order: Rc<[usize]> = if self.query.is_none() && self.nodes[at].kind == Kind::Object {
            (0..inside.len()).collect()
        } else {
            let text = |&at: &usize| {
                let node = &self.nodes[at];
                // Without a query nobody reads it.
                self.query
                    .map_or(Cow::Borrowed(&b""[..]), |_| plain(&self.text[node.key..node.end]))
            };
            let texts: Vec<_> = inside.iter().map(text).collect();
            ranked(&scores_of(self.query, &texts)).into()
        };
        self.orders.insert(at, Rc::clone(&order));
        order
    }

    /// Returns where the clusters of a string end, for a cut to `room`.
    fn clusters(&mut self, at: usize, room: usize) -> Rc<Clusters> {
        let found = self.clusters.get(&at).filter(|found| found.are_enough_for(room));
        if let Some(found) = found {
            return Rc::clone(found);
        }
        let node = &self.nodes[at];
        let content = &self.text[node.start + 1..node.end - 1];
        let found = Rc::new(Clusters::new(content, true, room, self.stop));
        self.clusters.insert(at, Rc::clone(&found));
        found
    }

    /// Returns an array of records as a table, its header once; None if it is
    /// not one.
    ///
    /// It is `{"columns":[...],"rows":[[...],...]}`. All records have the same
    /// keys in the same order, each once.
    pub(super) fn table(&self) -> Option<Self> {
        let records = self.inside(0);
        let is_object = |at: usize| self.nodes[at].kind == Kind::Object;
        // What is in an array has no keys to look for.
        if self.nodes[0].kind != Kind::Array || records.len() < 2 || !is_object(records[0]) {
            return None;
        }
        let first: Vec<_> = self.names(records[0]).collect();
        let mut sorted = first.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if first.is_empty() || sorted.len() < first.len() {
            return None;
        }
        let is_record = |&at: &usize| is_object(at) && self.names(at).eq(first.iter().copied());
        if !records.iter().all(is_record) {
            return None;
        }
        let mut text = b"{\"columns\":[".to_vec();
        text.extend(first.join(&b","[..]));
        text.extend(b"],\"rows\":[");
        for (row, &at) in records.iter().enumerate() {
            text.extend_from_slice(if row == 0 { b"[" } else { b",[" });
            for (column, at) in self.inside(at).into_iter().enumerate() {
                text.extend_from_slice(if column == 0 { b"" } else { b"," });
                text.extend_from_slice(&self.text[self.nodes[at].start..self.nodes[at].end]);
            }
            text.push(b']');
        }
        text.extend(b"]}");
        let rows = 2 + first.len();
        Self::new(&text, self.query, rows, Some(1), self.stop).ok()
    }

    /// Returns the keys of a record, as written.
    fn names(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        let inside = self.inside(at).into_iter();
        inside.map(|at| &self.text[self.nodes[at].key..self.nodes[at].start.max(1) - 1])
    }
}

impl Shape for Tree<'_> {
    fn size(&self) -> usize {
        self.nodes.first().map_or(0, |root| root.size)
    }

    fn render(&mut self, room: usize, pointer: Option<&[u8]>) -> Draft {
        let pointer = pointer.map(escaped);
        let markers = Markers::new(pointer.as_deref());
        let mut writer = Writer { tree: self, markers, draft: Draft::default() };
        writer.value(0, room);
        writer.draft
    }
}

/// Returns a text as it stands between the quotes of JSON.
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            8 => out.extend(b"\\b"),
            9 => out.extend(b"\\t"),
            10 => out.extend(b"\\n"),
            12 => out.extend(b"\\f"),
            13 => out.extend(b"\\r"),
            0..0x20 => {
                let mut code = String::new();
                write!(code, "\\u{byte:04x}").expect("a String takes all");
                out.extend(code.as_bytes());
            }
            _ => out.push(byte),
        }
    }
    out
}

/// Finds the least sizes of all values. The one of the place `fixed` has only
/// its own.
fn measure(nodes: &mut [Node], fixed: Option<usize>) {
    // What stands around what a marker says, in a string, an array, and an object.
    let frame = Markers::new(None).size(0);
    let (in_string, in_array) = (frame + 2, frame + 4);
    let in_object = frame + chars(&member(b"")) + 2;
    // What the members of each object take at least: its own are behind it.
    let mut members = vec![0; nodes.len()];
    for at in (0..nodes.len()).rev() {
        let Node { kind, name, size, count, parent, .. } = nodes[at];
        let mut least = size;
        let mut bare = size;
        if kind != Kind::Scalar && fixed != Some(at) {
            let marker = match kind {
                Kind::String => in_string + size_of_characters(size - 2),
                Kind::Array => in_array + size_of_all(count, "item"),
                _ => in_object + size_of_all(count, "key"),
            };
            if kind == Kind::Object && count > 0 {
                least = size.min(1 + members[at]);
            }
            bare = least.min(marker);
            if kind != Kind::Object {
                least = bare;
            }
        }
        nodes[at].least = least;
        nodes[at].bare = bare;
        if let Some(parent) = parent {
            members[parent] += name + least + 1;
        }
    }
}

/// Writes one draft.
struct Writer<'w, 'a> {
    tree: &'w mut Tree<'a>,
    markers: Markers<'w>,
    draft: Draft,
}

impl Writer<'_, '_> {
    /// Writes a value. Values are at most 128 deep.
    fn value(&mut self, at: usize, room: usize) {
        let node = &self.tree.nodes[at];
        let (start, end) = (node.start, node.end);
        if node.size <= room || node.size == node.bare {
            self.draft.text.extend_from_slice(&self.tree.text[start..end]);
            if self.tree.rows == at {
                self.draft.rows = node.count;
            }
            return;
        }
        match node.kind {
            Kind::Array => self.array(at, room),
            Kind::Object => self.object(at, room),
            _ => {
                let clusters = self.tree.clusters(at, room);
                let content = &self.tree.text[start + 1..end - 1];
                let room = room.saturating_sub(2);
                let (cut, lost) = without_middle(content, &clusters, room, &mut self.markers, b"");
                self.draft.text.extend(quoted(&cut));
                self.draft.left_out += lost;
            }
        }
    }

    /// Writes an array: its best rows whole, or cut where one alone would take
    /// much.
    fn array(&mut self, at: usize, room: usize) {
        let inside = self.tree.inside(at);
        let count = inside.len();
        if count == 1 && self.tree.nodes[inside[0]].least + 2 <= room {
            if self.tree.rows == at {
                self.draft.rows = 1;
            }
            self.inside(&inside, &[room - 1], *b"[]", |_| Vec::new());
            return;
        }
        let marker = chars(&quoted(&self.markers.show(&items(count, count))));
        let room = room.saturating_sub(marker + 2);
        let order = self.tree.order(at, &inside);
        let nodes = || inside.iter().map(|&at| &self.tree.nodes[at]);
        let parts: Vec<_> =
            nodes().map(|node| Span { size: node.size + 1, least: node.least + 1 }).collect();
        let cap = room / count.clamp(1, MOST_ROWS);
        // Without a query there is one gap.
        let stops = self.tree.query.is_none();
        let mut got = share(&parts, &order, room, cap, stops);
        if got.iter().all(|&got| got == 0) {
            let parts: Vec<_> =
                nodes().map(|node| Span { size: node.size + 1, least: node.bare + 1 }).collect();
            got = share(&parts, &order, room, cap, stops);
        }
        let dropped = got.iter().filter(|&&got| got == 0).count();
        if self.tree.rows == at {
            self.draft.rows = count - dropped;
        }
        self.inside(&inside, &got, *b"[]", |markers| {
            quoted(&markers.write(&items(dropped, count)))
        });
    }

    /// Writes an object: all its keys if they fit, else those of the best
    /// members.
    fn object(&mut self, at: usize, room: usize) {
        let inside = self.tree.inside(at);
        let count = inside.len();
        let parts = |least: fn(&Node) -> usize| -> Vec<_> {
            let nodes = inside.iter().map(|&at| &self.tree.nodes[at]);
            nodes
                .map(|node| {
                    let name = node.name + 1;
                    Span { size: name + node.size, least: name + least(node) }
                })
                .collect()
        };
        let bare = parts(|node| node.bare);
        let fitting = [parts(|node| node.least), bare.clone()]
            .into_iter()
            .find(|parts| parts.iter().map(|part| part.least).sum::<usize>() < room);
        let got = if let Some(parts) = fitting {
            let level = water_level(&parts, room - 1);
            parts.into_iter().map(|part| part.at(level)).collect()
        } else {
            let marker = chars(&member(&self.markers.show(&keys(count, count))));
            let order = self.tree.order(at, &inside);
            share(&bare, &order, room.saturating_sub(marker + 2), 0, false)
        };
        let dropped = got.iter().filter(|&&got| got == 0).count();
        self.inside(&inside, &got, *b"{}", |markers| member(&markers.write(&keys(dropped, count))));
    }

    /// Writes what stays in an array or object, with one marker where something
    /// was first left out.
    fn inside(
        &mut self,
        inside: &[usize],
        got: &[usize],
        [opening, closing]: [u8; 2],
        marker: impl Fn(&mut Markers<'_>) -> Vec<u8>,
    ) {
        self.draft.text.push(opening);
        let mut separator: &[u8] = b"";
        let mut is_marked = false;
        for (&at, &room) in inside.iter().zip(got) {
            let node = &self.tree.nodes[at];
            if room > 0 {
                self.draft.text.extend_from_slice(separator);
                self.draft.text.extend_from_slice(&self.tree.text[node.key..node.start]);
                let name = node.name;
                self.value(at, room - 1 - name);
            } else {
                self.draft.left_out += node.name + node.size + 1;
                if is_marked {
                    continue;
                }
                is_marked = true;
                self.draft.text.extend_from_slice(separator);
                self.draft.text.extend(marker(&mut self.markers));
            }
            separator = b",";
        }
        if got.iter().all(|&got| got == 0) {
            // There is a comma less than there are parts.
            self.draft.left_out -= 1;
        }
        self.draft.text.push(closing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_json_does() {
        let text: String = (0..0x80).map(char::from).chain("é日".chars()).collect();
        let written = serde_json::to_string(&text).expect("it is a text");
        assert_eq!(written.as_bytes(), [b"\"", &*escaped(text.as_bytes()), b"\""].concat());
    }

    #[test]
    fn sizes_are_those_of_what_is_written() {
        for count in [0, 1, 2, 9, 10, 100, 98_765] {
            assert_eq!(items(count, count).len(), size_of_all(count, "item"));
            assert_eq!(keys(count, count).len(), size_of_all(count, "key"));
        }
    }
}
