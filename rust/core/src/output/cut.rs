//! One string without its middle.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::share::{Markers, characters, chars};
use crate::text::{LOOK, Text, decode, push_code};
use crate::truncate::Boundaries;

/// The least part of a long string whose clusters are looked for at either end.
const LEAST_REACH: usize = 4096;

/// The most bytes of an escape, or of two that spell one character.
const LONGEST_ESCAPE: usize = 12;

/// Where the grapheme clusters of a string end, near its own ends.
#[derive(Debug)]
pub(super) struct Clusters {
    /// How many code points from either end they are known.
    reach: usize,
    places: Places,
}

#[derive(Debug)]
enum Places {
    /// After each byte, but within a line end: ASCII without escapes.
    Bytes,
    /// At these places, from the start and up to the end; the first are all of
    /// them where there are no others.
    At(Vec<Place>, Option<Vec<Place>>),
}

/// A place in a string.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// In code points of the string as it is written.
    written: usize,
    /// The same in bytes.
    byte: usize,
    /// In code points of the string as it is read.
    read: usize,
}

impl Clusters {
    /// Finds the places that a cut to `room` code points may need. An `escaped`
    /// text stands between the quotes of JSON. They mean nothing once `stop` is
    /// set.
    pub(super) fn new(text: &[u8], escaped: bool, room: usize, stop: &AtomicBool) -> Self {
        let has_escapes = escaped && text.contains(&b'\\');
        let bytes = Self { reach: usize::MAX, places: Places::Bytes };
        if !has_escapes && text.is_ascii() {
            return bytes;
        }
        let reach = room.saturating_mul(2).max(LEAST_REACH);
        let reader = Reader { text, has_escapes, stop };
        let found = if let Some((head, tail)) = reader.ends(reach) {
            let head = reader.places(Place::default(), head.byte);
            let tail = reader.places(tail, text.len());
            Self { reach, places: Places::At(head, Some(tail)) }
        } else {
            let all = reader.places(Place::default(), text.len());
            Self { reach: usize::MAX, places: Places::At(all, None) }
        };
        if reader.is_over() { bytes } else { found }
    }

    /// Returns whether a cut to `room` code points needs no other places.
    pub(super) fn are_enough_for(&self, room: usize) -> bool {
        room <= self.reach
    }

    /// Returns the last place up to `at` code points where a cluster ends.
    fn last(&self, text: &[u8], at: usize) -> Place {
        match &self.places {
            Places::Bytes => same(at - usize::from(splits_line_end(text, at))),
            Places::At(head, _) => head[head.partition_point(|place| place.written <= at) - 1],
        }
    }

    /// Returns the first place from `at` code points on where a cluster ends.
    fn next(&self, text: &[u8], at: usize) -> Place {
        match &self.places {
            Places::Bytes => same(at + usize::from(splits_line_end(text, at))),
            Places::At(head, tail) => {
                let tail = tail.as_ref().unwrap_or(head);
                tail[tail.partition_point(|place| place.written < at)]
            }
        }
    }
}

/// Reads a string character by character.
struct Reader<'a> {
    text: &'a [u8],
    has_escapes: bool,
    stop: &'a AtomicBool,
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the code point at a place, and the place behind it.
    fn read(&self, at: Place) -> (u32, Place) {
        let (code, bytes, written) = if self.has_escapes && self.text[at.byte] == b'\\' {
            let (code, size) = escape(self.text, at.byte);
            (code, size, size)
        } else {
            let (code, bytes) = decode(self.text, at.byte);
            (code, bytes, 1)
        };
        let Place { written: before, byte, read } = at;
        (code, Place { written: before + written, byte: byte + bytes, read: read + 1 })
    }

    /// Returns the places from `from` up to the byte `end` where clusters end.
    fn places(&self, from: Place, end: usize) -> Vec<Place> {
        let (mut codes, mut places, mut at) = (Vec::new(), vec![from], from);
        while at.byte < end && !(places.len().is_multiple_of(LOOK) && self.is_over()) {
            let (code, next) = self.read(at);
            push_code(code, &mut codes);
            places.push(next);
            at = next;
        }
        let boundaries = Boundaries::of(Text::from_utf8(&codes), self.stop);
        let mut at = 0;
        places.retain(|_| {
            at += 1;
            boundaries.has(at - 1)
        });
        places
    }

    /// Returns a place behind the first `reach` code points and one in front of
    /// the last of them, both between two plain characters; None where they
    /// would meet.
    fn ends(&self, reach: usize) -> Option<(Place, Place)> {
        if self.text.len() <= 2 * reach {
            return None;
        }
        let mut at = Place::default();
        let mut was_plain = false;
        let head = loop {
            if at.byte >= self.text.len() {
                return None;
            }
            let (code, next) = self.read(at);
            let plain = is_plain(code);
            if plain && was_plain && at.written >= reach {
                break at;
            }
            (at, was_plain) = (next, plain);
        };
        let mut starts = (head.byte..self.text.len())
            .rev()
            .filter(|&byte| !matches!(self.text[byte], 0x80..0xC0));
        let last = starts.by_ref().nth(reach)?;
        let start =
            std::iter::once(last).chain(starts).find(|&byte| self.is_pair(byte, head.byte))?;
        while at.byte < start {
            at = self.read(at).1;
        }
        Some((head, at))
    }

    /// Returns whether two plain characters meet at a byte, neither of which is
    /// a part of an escape; both are behind the byte `from`.
    fn is_pair(&self, byte: usize, from: usize) -> bool {
        let before = &self.text[from..byte];
        let before = &before[before.len().saturating_sub(LONGEST_ESCAPE + 4)..];
        let is_start = |byte: &u8| !matches!(byte, 0x80..0xC0);
        let Some(last) = before.iter().rposition(is_start) else { return false };
        before.len() > LONGEST_ESCAPE
            && !(self.has_escapes && (before.contains(&b'\\') || self.text[byte] == b'\\'))
            && is_plain(decode(self.text, byte - (before.len() - last)).0)
            && is_plain(decode(self.text, byte).0)
    }
}

/// Returns whether a cluster ends between a character and another such one:
/// letters of scripts that do not join them, and the rest of ASCII but line
/// ends.
fn is_plain(code: u32) -> bool {
    matches!(
        code,
        0x20..=0x7E
            | 0xC0..=0x24F
            | 0x3B1..=0x3C9
            | 0x400..=0x482
            | 0x627..=0x64A
            | 0x3041..=0x3096
            | 0x30A1..=0x30FA
            | 0x4E00..=0x9FFF
            | 0xAC00..=0xD7A3
    )
}

fn same(at: usize) -> Place {
    Place { written: at, byte: at, read: at }
}

fn splits_line_end(text: &[u8], at: usize) -> bool {
    at > 0 && text[at - 1..].starts_with(b"\r\n")
}

/// Returns what the escape at `at` means, and its length.
fn escape(text: &[u8], at: usize) -> (u32, usize) {
    match text[at + 1] {
        b'u' => {
            let high = hex(text, at + 2);
            if high & !0x3FF == 0xD800 && text[at + 6..].starts_with(b"\\u") {
                let low = hex(text, at + 8);
                if low & !0x3FF == 0xDC00 {
                    return (0x1_0000 + ((high & 0x3FF) << 10) + (low & 0x3FF), 12);
                }
            }
            (high, 6)
        }
        b'b' => (8, 2),
        b'f' => (12, 2),
        b'n' => (10, 2),
        b'r' => (13, 2),
        b't' => (9, 2),
        other => (u32::from(other), 2),
    }
}

/// Returns the number of the four hexadecimal digits at `at`.
fn hex(text: &[u8], at: usize) -> u32 {
    let digit = |&byte: &u8| char::from(byte).to_digit(16).unwrap_or(0);
    text[at..at + 4].iter().fold(0, |number, byte| number << 4 | digit(byte))
}

/// Returns a piece of JSON with its escapes read, for its words.
pub(super) fn plain(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let (mut read, mut at) = (Vec::new(), 0);
    while at < text.len() {
        if text[at] == b'\\' {
            let (code, size) = escape(text, at);
            push_code(code, &mut read);
            at += size;
        } else {
            read.push(text[at]);
            at += 1;
        }
    }
    Cow::Owned(read)
}

/// Returns a string of at most `room` code points if the marker fits at all,
/// and what it lost. The start gets the odd one. `around` stands on both sides
/// of the marker.
pub(super) fn without_middle(
    text: &[u8],
    clusters: &Clusters,
    room: usize,
    markers: &mut Markers<'_>,
    around: &[u8],
) -> (Vec<u8>, usize) {
    let size = chars(text);
    let marker = chars(&markers.show(&characters(size))) + 2 * around.len();
    let room = room.saturating_sub(marker);
    let (mut head, mut tail) = (Place::default(), clusters.next(text, size));
    let count;
    if room > 0 {
        head = clusters.last(text, room - room / 2);
        tail = clusters.next(text, size - room / 2);
        count = tail.read - head.read;
    } else {
        count = tail.read;
    }
    let mut cut = text[..head.byte].to_vec();
    if head.written > 0 {
        cut.extend_from_slice(around);
    }
    cut.extend(markers.write(&characters(count)));
    if tail.written < size {
        cut.extend_from_slice(around);
    }
    cut.extend_from_slice(&text[tail.byte..]);
    (cut, tail.written - head.written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(text: &str, escaped: bool, room: usize) -> Clusters {
        Clusters::new(text.as_bytes(), escaped, room, &AtomicBool::new(false))
    }

    /// Returns every place in a text where a cluster ends.
    fn all(text: &str, has_escapes: bool) -> Vec<Place> {
        let stop = &AtomicBool::new(false);
        let reader = Reader { text: text.as_bytes(), has_escapes, stop };
        reader.places(Place::default(), text.len())
    }

    fn figures(place: Place) -> [usize; 3] {
        [place.written, place.byte, place.read]
    }

    /// Long texts in which places are looked for at both ends alone.
    fn long() -> Vec<(String, bool)> {
        let repeated = |part: &str, escaped: bool| (part.repeat(9_000), escaped);
        vec![
            repeated("\u{447}\u{430}\u{439} ", false),
            // The part that is needed ends in front of an accent.
            repeated("e\u{301}a", false),
            repeated("\u{8336}e\u{301}\u{1f468}\u{200d}\u{1f469}ab", false),
            repeated("tea\\n\\u00e9\\\\ and milk, and sugar", true),
            repeated("\\ud83c\\udf75 tea\u{e9} with a long line", true),
            repeated(
                "\u{447}\u{430}\u{439}\u{43d}\u{438}\u{43a}\\t\u{438} \u{43c}\u{435}\u{434}",
                true,
            ),
        ]
    }

    #[test]
    fn the_ends_of_a_long_text_have_the_places_of_the_whole() {
        for (text, escaped) in long() {
            let bytes = text.as_bytes();
            let (found, all) = (clusters(&text, escaped, 100), all(&text, escaped));
            let size = all.last().expect("it has an end").written;
            let Places::At(head, Some(tail)) = &found.places else { panic!("both ends are") };
            let (first, last) = (head[head.len() - 1], tail[0]);
            // Only little more is looked at than is needed.
            assert!((LEAST_REACH..LEAST_REACH + 100).contains(&first.written), "{first:?}");
            assert!((LEAST_REACH..2 * LEAST_REACH + 9_000).contains(&(size - last.written)));
            assert!(first.byte < last.byte);
            for at in 0..=LEAST_REACH {
                let expected = all[all.partition_point(|place| place.written <= at) - 1];
                assert_eq!(figures(expected), figures(found.last(bytes, at)), "{at}");
                let at = size - at;
                let expected = all[all.partition_point(|place| place.written < at)];
                assert_eq!(figures(expected), figures(found.next(bytes, at)), "{at}");
            }
        }
    }

    #[test]
    fn a_short_text_is_looked_at_as_a_whole() {
        let text = "\u{447}".repeat(LEAST_REACH);
        let found = clusters(&text, false, 100);
        assert!(matches!(&found.places, Places::At(all, None) if all.len() == LEAST_REACH + 1));
        assert!(found.are_enough_for(usize::MAX));
        let text = "\u{447}".repeat(3 * LEAST_REACH);
        let found = clusters(&text, false, 100);
        assert!(matches!(&found.places, Places::At(_, Some(_))));
        assert!(found.are_enough_for(LEAST_REACH) && !found.are_enough_for(LEAST_REACH + 1));
        let found = clusters(&text, false, LEAST_REACH);
        assert!(found.are_enough_for(2 * LEAST_REACH));
        // A long text without two plain characters side by side.
        let text = "\u{1f469}\u{200d}".repeat(2 * LEAST_REACH);
        assert!(matches!(&clusters(&text, false, 1).places, Places::At(_, None)));
    }

    #[test]
    fn plain_ascii_ends_everywhere_but_within_a_line_end() {
        let found = clusters("a\r\nb\\n", false, 100);
        assert!(matches!(found.places, Places::Bytes) && found.are_enough_for(usize::MAX));
        let text = b"a\r\nb\\n";
        assert_eq!([0, 1, 1, 3, 4], [0, 1, 2, 3, 4].map(|at| found.last(text, at).byte));
        assert_eq!([0, 1, 3, 3, 4], [0, 1, 2, 3, 4].map(|at| found.next(text, at).written));
        assert!(matches!(clusters("a\\n", true, 100).places, Places::At(_, None)));
        assert!(matches!(clusters("a\n", true, 100).places, Places::Bytes));
    }

    #[test]
    fn what_is_stopped_has_no_places() {
        let text = "\u{447}".repeat(100);
        let found = Clusters::new(text.as_bytes(), false, 9, &AtomicBool::new(true));
        assert!(matches!(found.places, Places::Bytes));
    }

    #[test]
    fn all_of_a_text_is_read() {
        let text = "\u{447}".repeat(2 * LOOK + 1);
        assert_eq!(2 * LOOK + 2, all(&text, false).len());
    }

    #[test]
    fn two_plain_characters_are_a_pair_behind_enough_of_them() {
        let stop = &AtomicBool::new(false);
        let pair = |text: &str, has_escapes, byte, from| {
            Reader { text: text.as_bytes(), has_escapes, stop }.is_pair(byte, from)
        };
        let text = "a".repeat(40);
        assert_eq!([false, true, true], [12, 13, 20].map(|byte| pair(&text, false, byte, 0)));
        assert_eq!([false, true], [17, 18].map(|byte| pair(&text, false, byte, 5)));
        let text = "\u{447}".repeat(40);
        assert_eq!([false, true, true], [12, 14, 40].map(|byte| pair(&text, true, byte, 0)));
        let text = ["a".repeat(20), "\u{301}".into(), "b".repeat(20)].concat();
        assert_eq!(
            [true, false, false, true],
            [19, 20, 22, 23].map(|byte| pair(&text, false, byte, 0))
        );
        let text = ["a".repeat(20), "\\n".into(), "b".repeat(20)].concat();
        let places = [19, 20, 21, 36, 37].map(|byte| pair(&text, true, byte, 0));
        assert_eq!([true, false, false, false, true], places);
        assert!([19, 20, 21, 36, 37].iter().all(|&byte| pair(&text, false, byte, 0)));
    }

    #[test]
    fn characters_that_join_nothing_are_plain() {
        for char in " ~a\u{c0}\u{24f}\u{3b1}\u{400}\u{627}\u{3041}\u{30a1}\u{4e00}\u{ac00}".chars()
        {
            assert!(is_plain(char.into()), "{char:?}");
        }
        for char in "\r\n\t\u{7f}\u{ad}\u{300}\u{483}\u{64b}\u{200d}\u{1f469}\u{1100}".chars() {
            assert!(!is_plain(char.into()), "{char:?}");
        }
    }

    #[test]
    fn only_a_line_end_of_two_is_split() {
        let text = b"\r\na\r\n";
        let split = [0, 1, 2, 3, 4, 5].map(|at| splits_line_end(text, at));
        assert_eq!([false, true, false, false, true, false], split);
    }
}
