//! Escaping, so that no chunk can pass for what stands around chunks.
//!
//! Each escape has an inverse, and what cannot be mistaken stays as it is. All
//! work is on UTF-8, to which a text is brought only where something in it may
//! need escaping.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::template::Style;
use crate::text::{Text, decode};

/// Returns the text as it stands in the template, encoded as in
/// [`Text::Utf8`]; None where that is the text itself.
pub(crate) fn body(style: &Style, text: Text<'_>) -> Option<Vec<u8>> {
    match style {
        Style::Plain | Style::Format { .. } => None,
        Style::Tagged => has(text, b'[').then(|| lines(&utf8(text), b"[", false)).flatten(),
        Style::Markdown => has(text, b'[').then(|| lines(&utf8(text), b"## [", true)).flatten(),
        Style::Xml => may_need(text, is_xml_special).then(|| xml(&utf8(text), false)),
        Style::Json => may_need(text, is_json_special).then(|| json(&utf8(text))),
    }
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

/// So many units are looked at without a branch, so that the compiler makes
/// vector instructions of it.
const BLOCK: usize = 128;

/// Returns whether any unit of the text is special; for UTF-8, a byte.
fn may_need(text: Text<'_>, is_special: impl Fn(u32) -> bool + Copy) -> bool {
    fn any<U: Copy + Into<u32>>(units: &[U], is_special: impl Fn(u32) -> bool) -> bool {
        units
            .chunks(BLOCK)
            .any(|block| block.iter().fold(false, |any, &unit| any | is_special(unit.into())))
    }
    match text {
        Text::Ascii(units) => any(units, is_special),
        // Bytes from 0x80 on are no code points there.
        Text::Latin1(units) => any(units, |unit| unit < 0x80 && is_special(unit)),
        Text::Ucs2(units) => any(units, is_special),
        Text::Ucs4(units) => any(units, is_special),
        Text::Utf8(units) => any(units, is_special),
    }
}

/// Whether a unit may have to be escaped in XML: also the bytes that surrogates
/// and noncharacters begin with.
fn is_xml_special(unit: u32) -> bool {
    (unit < 0x20) & (unit != 0xA) & (unit != 0x9)
        | (unit == 0x26)
        | (unit == 0x3C)
        | (unit == 0x3E)
        | (unit == 0xED)
        | (unit == 0xEF)
        | (unit & !0x7FF == 0xD800)
        | (unit & !1 == 0xFFFE)
}

fn is_json_special(unit: u32) -> bool {
    (unit < 0x20) | (unit == 0x22) | (unit == 0x5C)
}

/// Puts a backslash in front of each line that begins, behind backslashes, with
/// `opening` and may pass for the line in front of a chunk; None where there is
/// none. `opening` ends with `[`.
fn lines(text: &[u8], opening: &[u8], starts_line: bool) -> Option<Vec<u8>> {
    let mut escaped = Vec::new();
    let mut from = 0;
    for bracket in memchr_iter(b'[', text) {
        let Some(start) = (bracket + 1).checked_sub(opening.len()) else { continue };
        if start < from || &text[start..=bracket] != opening {
            continue;
        }
        let line = text[..start].iter().rposition(|&byte| byte != b'\\').map_or(0, |at| at + 1);
        let is_first = if line == 0 { starts_line } else { ends_with_line_end(&text[..line]) };
        if is_first && (opening.len() > 1 || is_tag(&text[bracket + 1..])) {
            escaped.extend_from_slice(&text[from..line]);
            escaped.push(b'\\');
            from = line;
        }
    }
    (!escaped.is_empty()).then(|| {
        escaped.extend_from_slice(&text[from..]);
        escaped
    })
}

/// Returns whether what follows a bracket may be a tag, `kind:id]`, or that of
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

/// Returns how many bytes the line end at `at` has, as `str.splitlines` knows
/// them; 0 where there is none.
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

/// Returns a field as it stands on one line between delimiters, each of which
/// gets a backslash in front.
pub(super) fn field(text: &[u8], delimiters: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let size = line_end_at(text, at).max(1);
        match text[at] {
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            byte if byte == b'\\' || delimiters.contains(&byte) => escaped.extend([b'\\', byte]),
            _ if line_end_at(text, at) > 0 => {
                escaped.extend(format!("\\u{:04X}", decode(text, at).0).bytes());
            }
            byte => escaped.push(byte),
        }
        at += size;
    }
    escaped
}

/// Returns how many bytes there are before the first special one.
fn run(text: &[u8], is_special: impl Fn(u32) -> bool) -> usize {
    let special = |&byte: &u8| is_special(u32::from(byte));
    let any = |block: &&[u8]| block.iter().fold(false, |any, byte| any | special(byte));
    let plain = 32 * text.chunks_exact(32).take_while(|block| !any(block)).count();
    plain + text[plain..].iter().position(special).unwrap_or(text.len() - plain)
}

/// Returns text or a value of an attribute as XML has it. What XML does not
/// allow is `\u` and four digits, the backslash as a reference: no text that
/// XML allows is written like that.
pub(super) fn xml(text: &[u8], in_attribute: bool) -> Vec<u8> {
    let is_special = |unit| is_xml_special(unit) | in_attribute & ((unit == 0x22) | (unit < 0x20));
    let mut escaped = Vec::with_capacity(text.len() + text.len() / 8);
    let mut at = 0;
    loop {
        let plain = run(&text[at..], is_special);
        escaped.extend_from_slice(&text[at..at + plain]);
        at += plain;
        if at == text.len() {
            return escaped;
        }
        let (code, size) = decode(text, at);
        match code {
            0x26 => escaped.extend(b"&amp;"),
            0x3C => escaped.extend(b"&lt;"),
            // Only there it would end something.
            0x3E if !in_attribute && text[..at].ends_with(b"]]") => escaped.extend(b"&gt;"),
            0x22 => escaped.extend(b"&quot;"),
            0x9 | 0xA | 0xD => escaped.extend(format!("&#{code};").bytes()),
            0..0x20 | 0xD800..0xE000 | 0xFFFE | 0xFFFF => {
                escaped.extend(format!("&#92;u{code:04X}").bytes());
            }
            _ => escaped.extend_from_slice(&text[at..at + size]),
        }
        at += size;
    }
}

/// Returns what stands between the quotes of a string of JSON.
pub(super) fn json(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    loop {
        let plain = run(rest, is_json_special);
        escaped.extend_from_slice(&rest[..plain]);
        let Some(&byte) = rest.get(plain) else { return escaped };
        match byte {
            b'"' | b'\\' => escaped.extend([b'\\', byte]),
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            b'\t' => escaped.extend(b"\\t"),
            0x8 => escaped.extend(b"\\b"),
            0xC => escaped.extend(b"\\f"),
            _ => escaped.extend(format!("\\u{byte:04x}").bytes()),
        }
        rest = &rest[plain + 1..];
    }
}
