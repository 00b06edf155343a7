//! Escaping, so that no chunk can pass for the template's own text.
//!
//! Each escape has an inverse, and what cannot be mistaken stays as it is. All
//! work is on UTF-8. A text in another form becomes UTF-8 only if it may need
//! escaping.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::Style;
use crate::text::{Text, decode};

/// Returns the text as it is written in the template, encoded as in
/// [`Text::Utf8`]; None if nothing is escaped.
pub(crate) fn body(style: &Style, text: Text<'_>) -> Option<Vec<u8>> {
    match style {
        Style::Plain | Style::Format { .. } | Style::Written(_) => None,
        Style::Tagged | Style::Markdown => {
            has(text, b'[').then(|| lines(style, &utf8(text), Lines::Escape)).flatten()
        }
        Style::Xml => may_need(text, is_xml_special).then(|| xml(&utf8(text), false)).flatten(),
        Style::Json => may_need(text, is_json_special).then(|| json(&utf8(text))).flatten(),
    }
}

/// Returns the original of `escaped`, which [`body`] made.
pub(crate) fn unescaped(style: &Style, escaped: &str) -> String {
    match style {
        Style::Plain | Style::Format { .. } | Style::Written(_) => escaped.to_owned(),
        Style::Tagged | Style::Markdown => {
            let text = lines(style, escaped.as_bytes(), Lines::Unescape);
            text.and_then(|text| String::from_utf8(text).ok()).unwrap_or_else(|| escaped.to_owned())
        }
        Style::Xml => replaced(escaped, '&', |rest| {
            let end = rest.find(';')? + 1;
            let character = match &rest[..end] {
                "&amp;" => '&',
                "&lt;" => '<',
                "&gt;" => '>',
                "&#13;" => '\r',
                "&#92;" => return from_hex(rest.get(end + 1..end + 5)?, end + 5),
                _ => return None,
            };
            Some((character, end))
        }),
        Style::Json => replaced(escaped, '\\', |rest| {
            let character = match rest.as_bytes()[1] {
                b'u' => return from_hex(&rest[2..6], 6),
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'b' => '\u{8}',
                b'f' => '\u{C}',
                other => other.into(),
            };
            Some((character, 2))
        }),
    }
}

/// Returns the character of a number in hexadecimal digits, and `size`.
fn from_hex(digits: &str, size: usize) -> Option<(char, usize)> {
    Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, size))
}

/// Returns the text with escapes replaced. Each begins with `mark`. `replace`
/// gets the text from there on, and returns a character and the number of bytes
/// that it replaces.
fn replaced(text: &str, mark: char, replace: impl Fn(&str) -> Option<(char, usize)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(mark) {
        let (front, escape) = rest.split_at(at);
        let (character, size) = replace(escape).unwrap_or((mark, mark.len_utf8()));
        out.push_str(front);
        out.push(character);
        rest = &escape[size..];
    }
    out.push_str(rest);
    out
}

fn utf8(text: Text<'_>) -> Cow<'_, [u8]> {
    match text {
        Text::Ascii(bytes) | Text::Utf8(bytes) => Cow::Borrowed(bytes),
        _ => {
            let mut bytes = Vec::new();
            text.write_utf8(&mut bytes);
            Cow::Owned(bytes)
        }
    }
}

fn has(text: Text<'_>, wanted: u8) -> bool {
    match text {
        Text::Ascii(units) | Text::Latin1(units) | Text::Utf8(units) => {
            memchr(wanted, units).is_some()
        }
        Text::Ucs2(units) => units.contains(&u16::from(wanted)),
        Text::Ucs4(units) => units.contains(&u32::from(wanted)),
    }
}

/// How many units are looked at without a branch, so that the compiler makes
/// vector instructions of it.
const BLOCK: usize = 128;

/// Returns whether a text that is not stored as UTF-8 has anything special. One
/// that is UTF-8 need not be looked at twice.
fn may_need(text: Text<'_>, is_special: impl Fn(u32) -> bool + Copy) -> bool {
    fn any<U: Copy + Into<u32>>(units: &[U], is_special: impl Fn(u32) -> bool) -> bool {
        units
            .chunks(BLOCK)
            .any(|block| block.iter().fold(false, |any, &unit| any | is_special(unit.into())))
    }
    match text {
        Text::Ascii(_) | Text::Utf8(_) => true,
        Text::Latin1(units) => any(units, is_special),
        Text::Ucs2(units) => any(units, is_special),
        Text::Ucs4(units) => any(units, is_special),
    }
}

/// Whether a code point may have to be escaped in XML.
#[allow(clippy::needless_bitwise_bool)] // a block is looked at without branches
fn is_xml_special(unit: u32) -> bool {
    (unit < 0x20) & (unit != 0xA) & (unit != 0x9)
        | (unit == 0x26)
        | (unit == 0x3C)
        | (unit == 0x3E)
        | (unit & !0x7FF == 0xD800)
        | (unit & !1 == 0xFFFE)
}

#[allow(clippy::needless_bitwise_bool)] // a block is looked at without branches
fn is_json_special(unit: u32) -> bool {
    (unit < 0x20) | (unit == 0x22) | (unit == 0x5C)
}

/// What to do with lines that may pass for the line in front of a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    Escape,
    Unescape,
}

/// Adds or removes a backslash at each line that looks like the line in front
/// of a chunk, with any number of backslashes in front. None if there is no
/// such line.
fn lines(style: &Style, text: &[u8], change: Lines) -> Option<Vec<u8>> {
    let (opening, starts_line) = match style {
        Style::Markdown => (&b"## ["[..], true),
        _ => (&b"["[..], false),
    };
    let mut changed = Vec::new();
    let mut from = 0;
    for bracket in memchr_iter(b'[', text) {
        let Some(start) = (bracket + 1).checked_sub(opening.len()) else { continue };
        if start < from || &text[start..=bracket] != opening {
            continue;
        }
        let line = text[..start].iter().rposition(|&byte| byte != b'\\').map_or(0, |at| at + 1);
        let is_first = if line == 0 { starts_line } else { ends_with_line_end(&text[..line]) };
        let is_opening = is_first && (opening.len() > 1 || is_tag(&text[bracket + 1..]));
        if is_opening && (change == Lines::Escape || line < start) {
            changed.extend_from_slice(&text[from..line]);
            from = line;
            match change {
                Lines::Escape => changed.push(b'\\'),
                Lines::Unescape => from += 1,
            }
        }
    }
    (from > 0 || !changed.is_empty()).then(|| {
        changed.extend_from_slice(&text[from..]);
        changed
    })
}

/// Returns whether `rest`, which follows a bracket, may be a tag `kind:id]` or
/// the notice.
fn is_tag(rest: &[u8]) -> bool {
    if rest.starts_with(b"notice]") {
        return true;
    }
    let mut has_colon = false;
    for (at, &byte) in rest.iter().enumerate() {
        match byte {
            b':' => has_colon = true,
            b']' if has_colon => return true,
            _ if line_end_at(rest, at) > 0 => return false,
            _ => {}
        }
    }
    false
}

/// Returns the number of bytes of the line end at `at`, by the line ends of
/// `str.splitlines`; 0 if there is none.
fn line_end_at(text: &[u8], at: usize) -> usize {
    match text[at] {
        b'\n' | b'\r' | 0xB | 0xC | 0x1C..=0x1E => 1,
        0xC2 if text.get(at + 1) == Some(&0x85) => 2,
        0xE2 if matches!(text.get(at + 1..at + 3), Some([0x80, 0xA8 | 0xA9])) => 3,
        _ => 0,
    }
}

fn ends_with_line_end(text: &[u8]) -> bool {
    (1..=3).any(|size| text.len().checked_sub(size).is_some_and(|at| line_end_at(text, at) == size))
}

/// Writes a field on one line, with a backslash in front of each of
/// `delimiters`.
pub(super) fn field(text: &[u8], delimiters: &[u8], out: &mut Vec<u8>) {
    let is_plain =
        |byte: &u8| (0x20..0x80).contains(byte) && *byte != b'\\' && !delimiters.contains(byte);
    if text.iter().all(is_plain) {
        out.extend_from_slice(text);
        return;
    }
    let mut at = 0;
    while at < text.len() {
        let size = line_end_at(text, at);
        match text[at] {
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            byte if byte == b'\\' || delimiters.contains(&byte) => out.extend([b'\\', byte]),
            _ if size > 0 => out.extend(format!("\\u{:04X}", decode(text, at).0).bytes()),
            byte => out.push(byte),
        }
        at += size.max(1);
    }
}

/// How many bytes are looked at together.
const LANES: usize = 16;

/// Returns which bytes are control characters or among `specials`, as bits.
#[cfg(target_arch = "x86_64")]
fn special_bits<const N: usize>(block: [u8; LANES], specials: [u8; N]) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_max_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };
    let block = u128::from_le_bytes(block).cast_signed();
    #[allow(clippy::cast_possible_truncation)] // its halves
    // SAFETY: every processor of this architecture has SSE2.
    #[allow(unsafe_code)]
    unsafe {
        let block = _mm_set_epi64x((block >> 64) as i64, block as i64);
        let last = _mm_set1_epi8(0x1F);
        let controls = _mm_cmpeq_epi8(_mm_max_epu8(block, last), last);
        let found = specials.iter().fold(controls, |found, byte| {
            _mm_or_si128(found, _mm_cmpeq_epi8(block, _mm_set1_epi8(byte.cast_signed())))
        });
        _mm_movemask_epi8(found).cast_unsigned()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn special_bits<const N: usize>(block: [u8; LANES], specials: [u8; N]) -> u32 {
    let is_special = |byte: u8| specials.iter().fold(byte < 0x20, |is, &one| is | (byte == one));
    (0..).zip(block).fold(0, |bits, (at, byte)| bits | u32::from(is_special(byte)) << at)
}

/// Bytes to write in place of some bytes of a text.
struct Replacement {
    bytes: [u8; 12],
    length: usize,
    /// How many bytes of the text are replaced.
    size: usize,
}

impl Replacement {
    #[inline]
    fn new(size: usize, replacement: &[u8]) -> Self {
        let mut bytes = [0; 12];
        bytes[..replacement.len()].copy_from_slice(replacement);
        Self { bytes, length: replacement.len(), size }
    }
}

/// Returns the text with special places replaced as `replace` returns; None if
/// it replaces none.
fn rewrite<const N: usize>(
    text: &[u8],
    specials: [u8; N],
    replace: impl Fn(usize) -> Option<Replacement>,
) -> Option<Vec<u8>> {
    let mut escaped = Vec::new();
    let mut from = 0;
    let (blocks, rest) = text.as_chunks::<LANES>();
    let mut last = [b' '; LANES];
    last[..rest.len()].copy_from_slice(rest);
    for (start, block) in (0..).step_by(LANES).zip(blocks.iter().chain([&last])) {
        let mut bits = special_bits(*block, specials);
        while bits != 0 {
            let at = start + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if at < from {
                continue; // a part of a replaced place
            }
            if let Some(Replacement { bytes, length, size }) = replace(at) {
                if escaped.is_empty() {
                    escaped.reserve(text.len() + text.len() / 8 + 64);
                }
                append(&mut escaped, text, from, at);
                // A fixed size is copied without a call.
                escaped.extend_from_slice(&bytes);
                escaped.truncate(escaped.len() - bytes.len() + length);
                from = at + size;
            }
        }
    }
    (!escaped.is_empty()).then(|| {
        escaped.extend_from_slice(&text[from..]);
        escaped
    })
}

/// Appends a part of the text, which is short as a rule.
#[inline]
fn append(escaped: &mut Vec<u8>, text: &[u8], from: usize, to: usize) {
    const SHORT: usize = 32;
    match text.get(from..from + SHORT) {
        Some(wide) if to - from <= SHORT => {
            escaped.extend_from_slice(wide.first_chunk::<SHORT>().expect("it has as many"));
            escaped.truncate(escaped.len() - SHORT + (to - from));
        }
        _ => escaped.extend_from_slice(&text[from..to]),
    }
}

/// Returns a text or the value of an attribute as XML writes it; None if
/// nothing changes. A character that XML does not allow is written as `\u` and
/// four digits, with the backslash as a reference. No text that XML allows is
/// written like that.
pub(super) fn xml(text: &[u8], in_attribute: bool) -> Option<Vec<u8>> {
    let replace = |at: usize| {
        let (code, size) = match text[at] {
            ascii @ 0..0x80 => (u32::from(ascii), 1),
            _ => decode(text, at),
        };
        let replacement: &'static [u8] = match code {
            0x26 => b"&amp;",
            0x3C => b"&lt;",
            // Only there would it end a section.
            0x3E if !in_attribute && text[..at].ends_with(b"]]") => b"&gt;",
            0x22 if in_attribute => b"&quot;",
            0x9 if in_attribute => b"&#9;",
            0xA if in_attribute => b"&#10;",
            0xD => b"&#13;",
            0x9 | 0xA => return None,
            0..0x20 | 0xD800..0xE000 | 0xFFFE | 0xFFFF => {
                return Some(Replacement::new(size, format!("&#92;u{code:04X}").as_bytes()));
            }
            _ => return None,
        };
        Some(Replacement::new(size, replacement))
    };
    // Surrogates and noncharacters begin with 0xED and 0xEF.
    if in_attribute {
        rewrite(text, [b'&', b'<', b'"', 0xED, 0xEF], replace)
    } else {
        rewrite(text, [b'&', b'<', b'>', 0xED, 0xEF], replace)
    }
}

/// Returns the content of a JSON string, between its quotes; None if nothing
/// changes.
pub(super) fn json(text: &[u8]) -> Option<Vec<u8>> {
    rewrite(text, *b"\"\\", |at| {
        let replacement: &'static [u8] = match text[at] {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x8 => b"\\b",
            0xC => b"\\f",
            byte => return Some(Replacement::new(1, format!("\\u{byte:04x}").as_bytes())),
        };
        Some(Replacement::new(1, replacement))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An opening without a backslash stays beside one that has one.
    #[test]
    fn only_what_is_escaped_loses_a_backslash() {
        let of = |text: &str, change| {
            let changed = lines(&Style::Markdown, text.as_bytes(), change);
            changed.map(|text| String::from_utf8(text).expect("it is text"))
        };
        assert_eq!(Some("## [a\n## [b".into()), of("\\## [a\n## [b", Lines::Unescape));
        assert_eq!(Some("\\## [a\n\\## [b".into()), of("## [a\n## [b", Lines::Escape));
        assert_eq!(None, of("## [a\n## [b", Lines::Unescape));
    }

    /// Returns texts in which much looks like an escape or like an opening.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "\\", "[", "a:b]", "notice]", "## [", "\n", "\r", "\u{2028}", "&", "amp;", "#92;",
            "u000A", "]]>", "<", "\"", "\u{8}", "\u{1}", "\u{FFFE}", "n", "é",
        ]);
        prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// Each escape has an inverse.
        #[test]
        fn unescaped_texts_are_as_before(text in texts()) {
            for style in [Style::Plain, Style::Tagged, Style::Markdown, Style::Xml, Style::Json] {
                if let Some(escaped) = body(&style, text.as_str().into()) {
                    let escaped = String::from_utf8(escaped).unwrap();
                    prop_assert_eq!(&text, &unescaped(&style, &escaped));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// In XML and JSON each character is escaped by itself, wherever it stands, but for the end
        /// of CDATA.
        #[test]
        fn characters_are_escaped_by_themselves(texts in prop::collection::vec(texts(), 0..20)) {
            let text = texts.join("tea with lemon and much sugar");
            for style in [Style::Xml, Style::Json] {
                let escaped = |text: &str| match body(&style, text.into()) {
                    Some(escaped) => String::from_utf8(escaped).unwrap(),
                    None => text.to_owned(),
                };
                let expected: String = text.chars().map(|c| escaped(&c.to_string())).collect();
                let expected = match style {
                    Style::Xml => expected.replace("]]>", "]]&gt;"),
                    _ => expected,
                };
                prop_assert_eq!(expected, escaped(&text));
            }
        }
    }

    fn written(text: &str, of: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<String> {
        of(text.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("it is UTF-8"))
    }

    #[test]
    fn an_attribute_is_escaped_otherwise_than_a_text() {
        for (text, as_text, as_attribute) in [
            ("a\"b", None, Some("a&quot;b")),
            ("a\tb\nc", None, Some("a&#9;b&#10;c")),
            ("]]>", Some("]]&gt;"), None),
            ("a>b", None, None),
            ("<&\r", Some("&lt;&amp;&#13;"), Some("&lt;&amp;&#13;")),
            ("\u{1}\u{ffff}", Some("&#92;u0001&#92;uFFFF"), Some("&#92;u0001&#92;uFFFF")),
            ("tea \u{e9}\u{d7a3}\u{fb00}", None, None),
        ] {
            let texts =
                [false, true].map(|in_attribute| written(text, |text| xml(text, in_attribute)));
            assert_eq!([as_text, as_attribute], texts.each_ref().map(Option::as_deref), "{text:?}");
        }
    }

    #[test]
    fn a_field_is_on_one_line() {
        for (text, expected) in [
            ("tea ~", "tea ~"),
            ("\u{e9}", "\u{e9}"),
            ("::]", "\\:\\:\\]"),
            ("\\\\", "\\\\\\\\"),
            ("a\nb\rc", "a\\nb\\rc"),
            ("\u{2028}a\u{85}\u{b}", "\\u2028a\\u0085\\u000B"),
            ("\u{2027}\u{84}", "\u{2027}\u{84}"),
        ] {
            let mut out = Vec::new();
            field(text.as_bytes(), b":]", &mut out);
            assert_eq!(Ok(expected), std::str::from_utf8(&out), "{text:?}");
        }
    }

    #[test]
    fn only_openings_at_the_start_of_a_line_are_escaped() {
        for (text, tagged, markdown) in [
            ("[a:b]", None, None),
            ("\n[a:b]", Some("\n\\[a:b]"), None),
            ("tea [a:b]", None, None),
            ("\n[ab]", None, None),
            ("\n[a\nb:c]", None, None),
            ("\n[a:b\u{2028}c]", None, None),
            ("\n[notice]", Some("\n\\[notice]"), None),
            ("\u{2028}[a:b]", Some("\u{2028}\\[a:b]"), None),
            ("\u{2027}[a:b]", None, None),
            ("\u{85}[a:b]", Some("\u{85}\\[a:b]"), None),
            ("\u{84}[a:b]", None, None),
            ("## [a", None, Some("\\## [a")),
            ("## [a\n## [b", None, Some("\\## [a\n\\## [b")),
            ("\n\\[a:b]", Some("\n\\\\[a:b]"), None),
        ] {
            let texts = [Style::Tagged, Style::Markdown]
                .map(|style| written(text, |text| body(&style, Text::Utf8(text))));
            assert_eq!([tagged, markdown], texts.each_ref().map(Option::as_deref), "{text:?}");
        }
    }

    /// What has nothing special is not looked at again.
    #[test]
    fn texts_without_special_characters_need_nothing() {
        let text: Vec<u32> = "tea \u{e9}~\u{65e5}".chars().map(u32::from).collect();
        for special in [None, Some('['), Some('&'), Some('"')] {
            for before in [0, 300] {
                let mut units = text.repeat(before);
                units.extend(special.map(u32::from));
                units.extend(&text);
                let narrow: Vec<u16> =
                    units.iter().map(|&unit| u16::try_from(unit).expect("it is")).collect();
                for text in [Text::Ucs2(&narrow), Text::Ucs4(&units)] {
                    assert_eq!(special == Some('['), has(text, b'['));
                    assert_eq!(special == Some('&'), may_need(text, is_xml_special));
                    assert_eq!(special == Some('"'), may_need(text, is_json_special));
                }
            }
        }
        for unit in ['\t', '\n', ' ', '"', '\u{7f}', '\u{d7ff}', '\u{e000}', '\u{fffd}'] {
            assert!(!is_xml_special(unit.into()), "{unit:?}");
        }
        for unit in ['\t', '\n', '\u{1f}', '"', '\\'] {
            assert!(is_json_special(unit.into()) && !is_json_special(' '.into()), "{unit:?}");
        }
    }

    /// A text is escaped alike however it is stored.
    #[test]
    fn each_encoding_is_escaped_alike() {
        let edges = [0xD7FE..0xD802, 0xDFFE..0xE002, 0xFFF0..0x10010, 0x1FFFE..0x20000];
        for unit in (0..0x100).chain(edges.into_iter().flatten()) {
            let (long, longer) = ("a".repeat(127), "a".repeat(301));
            for before in ["", "a", "aa", "\n[a:b]\na", &long, &longer] {
                let behind = if before.is_empty() { "" } else { "b" };
                let [front, back] = [before, behind].map(|text| text.chars().map(u32::from));
                let wide: Vec<u32> = front.chain([unit]).chain(back).collect();
                let narrow: Vec<u16> =
                    wide.iter().filter_map(|&unit| unit.try_into().ok()).collect();
                let latin: Vec<u8> = wide.iter().filter_map(|&unit| unit.try_into().ok()).collect();
                let mut bytes = Vec::new();
                Text::Ucs4(&wide).write_utf8(&mut bytes);
                for style in [Style::Tagged, Style::Markdown, Style::Xml, Style::Json] {
                    let expected = body(&style, Text::Utf8(&bytes));
                    assert_eq!(expected, body(&style, Text::Ucs4(&wide)), "{unit:x} {before}");
                    if narrow.len() == wide.len() {
                        assert_eq!(
                            expected,
                            body(&style, Text::Ucs2(&narrow)),
                            "{unit:x} {before}"
                        );
                    }
                    if latin.len() == wide.len() {
                        assert_eq!(
                            expected,
                            body(&style, Text::Latin1(&latin)),
                            "{unit:x} {before}"
                        );
                    }
                }
            }
        }
    }
}
