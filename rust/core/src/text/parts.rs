//! Reading a text from left to right, part by part.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Text, byte_offset};

/// The most units that are worked on between two looks at whether to stop.
pub(crate) const LOOK: usize = 1 << 16;

/// Slices a text from left to right, so that UTF-8 is walked once.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: Text<'a>,
    chars: usize,
    bytes: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: Text<'a>) -> Self {
        Self { text, chars: 0, bytes: 0 }
    }

    /// Returns the same as [`Text::slice`]. `start` must not be less than any
    /// earlier `end`.
    pub(crate) fn slice(&mut self, start: usize, end: usize) -> Text<'a> {
        let Text::Utf8(bytes) = self.text else { return self.text.slice(start, end) };
        let from = byte_offset(bytes, self.bytes, start - self.chars);
        let to = byte_offset(bytes, from, end - start);
        (self.chars, self.bytes) = (end, to);
        Text::Utf8(&bytes[from..to])
    }
}

/// The parts of a text, none of which ends within a pair of surrogates. There
/// are no more once `stop` is set.
#[derive(Debug)]
pub(crate) struct Parts<'a, 's> {
    rest: Text<'a>,
    stop: &'s AtomicBool,
}

impl<'a> Text<'a> {
    /// Returns the parts of the text.
    pub(crate) fn parts<'s>(self, stop: &'s AtomicBool) -> Parts<'a, 's> {
        Parts { rest: self, stop }
    }

    /// Appends what [`Text::write_scalars`] does, until `stop` is set.
    pub(crate) fn write_scalars_till(self, out: &mut Vec<u8>, stop: &AtomicBool) {
        self.parts(stop).for_each(|part| part.write_scalars(out));
    }

    /// Returns the last place in units up to `at` that is neither within a
    /// character nor within a pair of surrogates. A pair may stand in front of
    /// the place.
    fn split_before(&self, mut at: usize) -> usize {
        let Self::Utf8(bytes) = self else {
            return at - usize::from(is_high(self.code(at - 1)));
        };
        while bytes[at].cast_signed() < -64 {
            at -= 1;
        }
        let is_high = matches!(bytes[..at], [.., 0xED, 0xA0..0xB0, _]);
        if is_high { at - 3 } else { at }
    }
}

/// Returns whether a code point is the first of a pair of surrogates.
fn is_high(code: u32) -> bool {
    code & !0x3FF == 0xD800
}

impl<'a> Iterator for Parts<'a, '_> {
    type Item = Text<'a>;

    fn next(&mut self) -> Option<Text<'a>> {
        let units = self.rest.units();
        if units == 0 || self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let end = if units <= LOOK { units } else { self.rest.split_before(LOOK) };
        let part = self.rest.slice_units(0, end);
        self.rest = self.rest.slice_units(end, units);
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::exact::GO_ON;

    /// Returns the lengths of the parts.
    fn lengths(text: Text<'_>) -> Vec<usize> {
        text.parts(&GO_ON).map(|part| part.units()).collect()
    }

    #[test]
    fn no_part_ends_within_a_pair() {
        let mut units = vec![u16::from(b'a'); LOOK - 1];
        units.extend([0xD83D, 0xDE00]);
        assert_eq!(vec![LOOK - 1, 2], lengths(Text::Ucs2(&units)));
        units.insert(0, u16::from(b'a'));
        assert_eq!(vec![LOOK, 2], lengths(Text::Ucs2(&units)));
        units.truncate(LOOK);
        assert_eq!(vec![LOOK], lengths(Text::Ucs2(&units)));
    }

    #[test]
    fn no_part_of_utf8_ends_within_a_character() {
        for before in LOOK - 8..=LOOK {
            // A pair of surrogates, as Python may store it, and "é".
            let mut bytes = vec![b'a'; before];
            bytes.extend(b"\xED\xA0\xBD\xED\xB8\x80\xC3\xA9");
            let parts: Vec<_> = Text::from_utf8(&bytes).parts(&GO_ON).collect();
            let first = parts[0].units();
            assert_eq!(before + 8, parts.iter().map(Text::units).sum::<usize>());
            let whole = [before, before + 6, before + 8];
            assert!(first == LOOK || whole.contains(&first), "{before}: {first}");
            assert!((before..=LOOK).contains(&first), "{before}: {first}");
        }
    }

    #[test]
    fn nothing_follows_once_it_stops() {
        let stop = AtomicBool::new(false);
        let text = "a".repeat(3 * LOOK);
        let mut parts = Text::from(text.as_str()).parts(&stop);
        assert!(parts.next().is_some());
        stop.store(true, Ordering::Relaxed);
        assert!(parts.next().is_none());
    }
}
