//! Headings: titles, and short first lines.

use crate::text::{Text, is_space};

/// The most code points of a first line that is a heading.
const MAX_CHARS: usize = 120;

/// Returns the heading of a text with its title: the title, else a first line
/// of at most 120 code points that is not blank and has something
/// behind it; else nothing. Spaces and words in parentheses at its end are left
/// out, together.
///
/// It is the beginning of the title, or of the text where that is empty.
#[must_use]
pub fn heading<'a>(text: Text<'a>, title: Text<'a>) -> Text<'a> {
    if !title.is_empty() {
        return without_parentheses(title);
    }
    match end_of_line(text) {
        Some(end) if end > 0 && !is_blank(text, end) => {
            without_parentheses(text.slice_units(0, end))
        }
        _ => Text::EMPTY,
    }
}

/// Returns the unit at which the first line ends, if it is short enough.
fn end_of_line(text: Text<'_>) -> Option<usize> {
    fn find<T: Copy + PartialEq + From<u8>>(units: &[T]) -> Option<usize> {
        units.iter().take(MAX_CHARS + 1).position(|&unit| unit == T::from(b'\n'))
    }
    match text {
        Text::Ascii(units) | Text::Latin1(units) => {
            memchr::memchr(b'\n', &units[..units.len().min(MAX_CHARS + 1)])
        }
        Text::Ucs2(units) => find(units),
        Text::Ucs4(units) => find(units),
        Text::Utf8(bytes) => {
            let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(4 * MAX_CHARS + 1)])?;
            (text.slice_units(0, end).chars() <= MAX_CHARS).then_some(end)
        }
    }
}

/// Returns whether there are only spaces from the unit `at` on.
fn is_blank(text: Text<'_>, mut at: usize) -> bool {
    while at < text.units() {
        let code = text.code_at_unit(at);
        if !is_space(code) {
            return false;
        }
        at += match text {
            Text::Utf8(_) => char::from_u32(code).map_or(3, char::len_utf8),
            _ => 1,
        };
    }
    true
}

fn without_parentheses(heading: Text<'_>) -> Text<'_> {
    if let Text::Ascii(bytes) = heading {
        let end = bytes.iter().rposition(|&byte| !is_space(byte.into()));
        if end.is_none_or(|end| bytes[end] != b')') {
            return heading; // as most are
        }
    }
    let mut codes = Vec::new();
    heading.for_each(|code| codes.push(code));
    while codes.last().is_some_and(|&code| is_space(code)) {
        codes.pop();
    }
    if codes.pop() != Some(u32::from(b')')) {
        return heading;
    }
    let mark = codes.iter().rposition(|&code| code == u32::from(b'(') || code == u32::from(b')'));
    match mark {
        Some(start) if codes[start] == u32::from(b'(') => heading.slice(0, start),
        _ => heading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, title: &str) -> String {
        let (text, title) = (Text::from(text), Text::from(title));
        let mut out = Vec::new();
        heading(text, title).write_utf8(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn titles_come_before_first_lines() {
        assert_eq!("Tea", of("Coffee\nIt is black.", "Tea"));
        assert_eq!("Coffee", of("Coffee\nIt is black.", ""));
        for text in ["Coffee", "Coffee\n \u{3000}\n", "\nCoffee", "", "\n"] {
            assert_eq!("", of(text, ""), "{text:?}");
        }
        for letter in ["x", "é", "茶", "🍵"] {
            let line = letter.repeat(MAX_CHARS);
            assert_eq!(line, of(&format!("{line}\nmore"), ""));
            assert_eq!("", of(&format!("{line}{letter}\nmore"), ""));
        }
    }

    #[test]
    fn first_lines_of_wide_units_are_as_long() {
        for (length, expected) in [(MAX_CHARS, MAX_CHARS), (MAX_CHARS + 1, 0)] {
            let mut units = vec![0x8336_u16; length];
            units.extend([u16::from(b'\n'), 0x8336]);
            assert_eq!(expected, heading(Text::Ucs2(&units), Text::EMPTY).units());
            let units: Vec<u32> = units.into_iter().map(u32::from).collect();
            assert_eq!(expected, heading(Text::Ucs4(&units), Text::EMPTY).units());
        }
    }

    #[test]
    fn words_in_parentheses_at_the_end_are_left_out() {
        for (title, expected) in [
            ("Paris (Texas)", "Paris "),
            ("Paris (Texas) \u{3000}", "Paris "),
            ("Paris (a) (b)", "Paris (a) "),
            ("Paris (a)b)", "Paris (a)b)"),
            ("Paris )", "Paris )"),
            ("(1)", ""),
            ("茶 (绿)", "茶 "),
            ("Paris (Texas) is", "Paris (Texas) is"),
        ] {
            assert_eq!(expected, of("", title));
        }
    }
}
