//! The record of a chunk in a file: all but its text and title.
//!
//! It is empty for a text alone, else JSON, which Python programs write too:
//! `[1, key, fields]` for a mapping in Python, and
//! `[2, id, source, score, metadata]` for a chunk. Fields that only a chunk in
//! Rust has are in the metadata in Python; here they follow it, in a mapping of
//! their own.

use std::borrow::Cow;

use super::file::is_text;
use crate::chunk::{Chunk, DEFAULT_KIND, Document};
use crate::error::Error;
use crate::text::Text;

/// How deep lists and mappings may be nested: a little more than is written.
const DEEPEST: usize = 80;

const MAPPING: &str = "1";
const CHUNK: &str = "2";

/// A JSON value. Numbers stay as they are written.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    fn get(&self, name: &str) -> Option<&Value> {
        let Self::Map(fields) = self else { return None };
        fields.iter().find(|(key, value)| key == name && *value != Self::Null).map(|(_, it)| it)
    }

    /// Returns the number; true and false are not numbers.
    fn number(&self) -> Option<f64> {
        let Self::Number(digits) = self else { return None };
        match digits.as_str() {
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            digits => digits.parse().ok().filter(|number: &f64| !number.is_nan()),
        }
    }

    /// Returns the value as a template shows it, if it is a text or a number.
    fn shown(&self) -> Option<String> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Appends the value without spaces, its keys sorted.
    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                let mut mark = '[';
                for item in items {
                    out.push(mark);
                    item.write(out);
                    mark = ',';
                }
                out.push_str(if items.is_empty() { "[]" } else { "]" });
            }
            Self::Map(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                let mut mark = '{';
                for (key, value) in &fields {
                    out.push(mark);
                    write_text(key, out);
                    out.push(':');
                    value.write(out);
                    mark = ',';
                }
                out.push_str(if fields.is_empty() { "{}" } else { "}" });
            }
        }
    }
}

/// Appends `text` in quotes, escaped as by Python's `json` with `ensure_ascii`
/// off.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                out.push_str("\\u00");
                out.push(if character < '\u{10}' { '0' } else { '1' });
                out.extend(char::from_digit(u32::from(character) & 15, 16));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Reads JSON, and unless it is strict also the infinities that Python writes.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    is_strict: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, is_strict: bool) -> Self {
        Self { text, at: 0, is_strict }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Passes `mark` and the whitespace in front of it.
    fn take(&mut self, mark: &str) -> Option<()> {
        let rest = self.rest();
        let found = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let after = found.strip_prefix(mark)?;
        self.at += rest.len() - after.len();
        Some(())
    }

    fn end(&mut self) -> Option<()> {
        self.take("")?;
        self.rest().is_empty().then_some(())
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        self.take("")?;
        match self.rest().as_bytes().first()? {
            b'"' => self.string().map(Value::Text),
            b'[' => {
                self.take("[")?;
                let mut items = Vec::new();
                if self.take("]").is_some() {
                    return Some(Value::List(items));
                }
                loop {
                    items.push(self.value(depth + 1)?);
                    if self.take(",").is_none() {
                        self.take("]")?;
                        return Some(Value::List(items));
                    }
                }
            }
            b'{' => {
                self.take("{")?;
                let mut fields = Vec::new();
                if self.take("}").is_some() {
                    return Some(Value::Map(fields));
                }
                loop {
                    self.take("")?;
                    let key = self.string()?;
                    self.take(":")?;
                    fields.push((key, self.value(depth + 1)?));
                    if self.take(",").is_none() {
                        self.take("}")?;
                        return Some(Value::Map(fields));
                    }
                }
            }
            _ => self.word(),
        }
    }

    /// Reads a number or one of the known names.
    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let size = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let word = &rest[..size];
        self.at += size;
        match word {
            "null" => Some(Value::Null),
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "Infinity" | "-Infinity" if !self.is_strict => Some(Value::Number(word.into())),
            _ => is_number(word).then(|| Value::Number(word.into())),
        }
    }

    /// Reads a text in quotes. A lone surrogate becomes U+FFFD.
    fn string(&mut self) -> Option<String> {
        let mut rest = self.rest().strip_prefix('"')?;
        let mut text = String::new();
        loop {
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ')?;
            text.push_str(&rest[..plain]);
            let mark = rest.as_bytes()[plain];
            rest = &rest[plain + 1..];
            match mark {
                b'"' => {
                    self.at = self.text.len() - rest.len();
                    return Some(text);
                }
                b'\\' => {}
                _ => return None,
            }
            let escaped = rest.chars().next()?;
            rest = &rest[escaped.len_utf8()..];
            text.push(match escaped {
                '"' | '\\' | '/' => escaped,
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let first = unit(&mut rest)?;
                    let mut units = [first, 0];
                    let mut size = 1;
                    if (0xD800..0xDC00).contains(&first) && rest.starts_with("\\u") {
                        let mut behind = &rest[2..];
                        let second = unit(&mut behind)?;
                        if (0xDC00..0xE000).contains(&second) {
                            units[1] = second;
                            size = 2;
                            rest = behind;
                        }
                    }
                    char::decode_utf16(units[..size].iter().copied()).next()?.unwrap_or('\u{fffd}')
                }
                _ => return None,
            });
        }
    }
}

/// Reads four hexadecimal digits.
fn unit(rest: &mut &str) -> Option<u16> {
    let digits = rest.get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    *rest = &rest[4..];
    u16::from_str_radix(digits, 16).ok()
}

/// Returns whether `word` is a JSON number.
fn is_number(word: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let word = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let power = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && power.is_none_or(digits)
}

/// Returns a record without surrogates, which Python writes as they are where an
/// escape of two would be one character; None if it is no text.
fn text_of(record: &[u8]) -> Option<Cow<'_, str>> {
    match std::str::from_utf8(record) {
        Ok(text) => Some(text.into()),
        Err(_) if is_text(record) => {
            Some(String::from_utf8(Text::Utf8(record).scalars()?).ok()?.into())
        }
        Err(_) => None,
    }
}

/// Returns the chunk of a record, without text and title; None for a record
/// that a corpus does not write.
pub(crate) fn read(record: &[u8]) -> Option<Chunk> {
    if record.is_empty() {
        return Some(Chunk::default());
    }
    let text = text_of(record)?;
    let mut reader = Reader::new(&text, false);
    reader.take("[")?;
    let Value::Number(kind) = reader.value(0)? else { return None };
    let (mut items, mut written) = (Vec::new(), Vec::new());
    while reader.take(",").is_some() {
        let from = reader.at;
        items.push(reader.value(0)?);
        written.push(&reader.text[from..reader.at]);
    }
    reader.take("]")?;
    reader.end()?;
    match (kind.as_str(), items.as_slice()) {
        (MAPPING, [Value::Text(_), fields @ Value::Map(_)]) => {
            let get = |name| fields.get(name);
            Some(of_python(get("id"), get("source"), get("score"), get("metadata"), fields))
        }
        (CHUNK, [id, Value::Text(source), score, metadata, own @ ..]) => {
            if !matches!(metadata, Value::Null | Value::Map(_)) {
                return None;
            }
            let source = Value::Text(source.clone());
            let chunk = of_python(
                Some(id).filter(|id| **id != Value::Null),
                Some(&source),
                Some(score),
                Some(metadata),
                &Value::Null,
            );
            let Some(own) = own.first() else { return Some(chunk) };
            let number = |name| own.get(name).and_then(Value::number);
            Some(Chunk {
                kind: own.get("kind").and_then(Value::shown),
                authority: own.get("authority").and_then(Value::shown),
                priority: number("priority").unwrap_or_default(),
                mtime: number("mtime").unwrap_or_default(),
                position: number("position"),
                metadata: if *metadata == Value::Null { String::new() } else { written[3].into() },
                ..chunk
            })
        }
        _ => None,
    }
}

/// Returns a chunk with the fields that it had in Python. `data` is the mapping
/// that it was, if it was one.
fn of_python(
    id: Option<&Value>,
    source: Option<&Value>,
    score: Option<&Value>,
    metadata: Option<&Value>,
    data: &Value,
) -> Chunk {
    let metadata = metadata.filter(|metadata| matches!(metadata, Value::Map(_)));
    let inner = metadata.unwrap_or(&Value::Null);
    let has = |value: &&Value| **value != Value::Null;
    let get = |name: &str| inner.get(name).filter(has).or_else(|| data.get(name));
    let position = ["position", "index", "offset"];
    let mut written = String::new();
    if let Some(metadata @ Value::Map(fields)) = metadata
        && !fields.is_empty()
    {
        metadata.write(&mut written);
    }
    let source = source.and_then(Value::shown).filter(|source| !source.is_empty());
    Chunk {
        id: match id.and_then(Value::shown) {
            Some(own) if !own.is_empty() => Some(own),
            own => inner.get("id").and_then(Value::shown).or(own),
        },
        source: source.or_else(|| inner.get("source").and_then(Value::shown)).unwrap_or_default(),
        score: score.and_then(Value::number),
        kind: get("kind").and_then(Value::shown),
        authority: get("authority").and_then(Value::shown),
        priority: get("priority").and_then(Value::number).unwrap_or_default(),
        mtime: match get("mtime") {
            Some(Value::Bool(value)) => f64::from(u8::from(*value)),
            mtime => mtime.and_then(Value::number).unwrap_or_default(),
        },
        position: position.iter().find_map(|name| get(name).and_then(Value::number)),
        metadata: written,
        ..Chunk::default()
    }
}

/// Returns the record of chunk `index`.
pub(crate) fn write<D: Document>(chunk: &D, index: usize) -> Result<Vec<u8>, Error> {
    let (kind, id) = chunk.tag();
    let (authority, priority) = chunk.standing();
    let (score, mtime) = (chunk.score(), chunk.mtime());
    for (number, field) in
        [(score.unwrap_or_default(), "score"), (mtime, "mtime"), (priority, "priority")]
    {
        if number.is_nan() {
            return Err(Error::nan(index, field));
        }
    }
    let metadata = chunk.metadata().trim();
    let mut reader = Reader::new(metadata, true);
    let is_map = matches!(reader.value(0), Some(Value::Map(_))) && reader.end().is_some();
    if !(is_map || metadata.is_empty()) {
        return Err(Error::shape(format!(
            "chunks[{index}].metadata must be a JSON object to be saved"
        )));
    }
    let mut own = Vec::new();
    if kind != DEFAULT_KIND {
        own.push(("kind".to_owned(), Value::Text(kind.into())));
    }
    own.extend(authority.map(|name| ("authority".to_owned(), Value::Text(name.into()))));
    let numbers = [
        ("priority", Some(priority).filter(|number| *number != 0.0)),
        ("mtime", Some(mtime).filter(|number| *number != 0.0)),
        ("position", chunk.position().filter(|position| !position.is_nan())),
    ];
    for (name, number) in numbers {
        own.extend(number.map(|number| (name.to_owned(), Value::Number(digits(number)))));
    }
    let is_tagged = id.is_some() || !chunk.source().is_empty() || score.is_some();
    if !is_tagged && chunk.title().is_empty() && metadata.is_empty() && own.is_empty() {
        return Ok(Vec::new());
    }
    let mut out = format!("[{CHUNK},");
    id.map_or(Value::Null, |id| Value::Text(id.into())).write(&mut out);
    out.push(',');
    write_text(chunk.source(), &mut out);
    out.push(',');
    out.push_str(&score.map_or_else(|| "null".to_owned(), digits));
    out.push(',');
    out.push_str(if metadata.is_empty() { "null" } else { metadata });
    out.push(',');
    Value::Map(own).write(&mut out);
    out.push(']');
    Ok(out.into_bytes())
}

/// Returns a number in the form that Python's `json` writes.
fn digits(number: f64) -> String {
    match number {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        number => format!("{number:?}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the value, if the whole of `text` is one.
    fn parsed(text: &str) -> Option<Value> {
        let mut reader = Reader::new(text, true);
        let value = reader.value(0)?;
        reader.end().map(|()| value)
    }

    proptest! {
        /// The reader takes the same JSON as serde_json, and what it writes has
        /// the same value.
        #[test]
        fn json_is_that_of_serde_json(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"a\"", "\"a\":", "\"b\":1", "{}", "[]", "1", "0",
                    "-0.5", "01", "1e5 ", "-1E-7 ", "1.", "-", "true", "null", "nul", " ", "\n", "\t",
                    "\"", "\\", "\\u00e9", "\"\\n\\/\"", "\"\\ud83d\\ude00\"", "\u{1}", "\u{e9}",
                ]),
                0..12,
            ),
        ) {
            let text = parts.concat();
            let expected = serde_json::from_str::<serde_json::Value>(&text).ok();
            let found = parsed(&text);
            prop_assert_eq!(expected.is_some(), found.is_some(), "{}", text);
            if let Some(found) = found {
                let mut written = String::new();
                found.write(&mut written);
                prop_assert_eq!(expected, serde_json::from_str(&written).ok());
            }
        }

        /// Reading never panics, whatever a file holds.
        #[test]
        fn damaged_records_are_no_records(
            at in 0_usize..100,
            byte: u8,
            bytes in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let record = br#"[2,"\ud83d\ude00","t\u00e9",-1.5e3,{"a":[{}]},{"kind":"k","mtime":3}]"#;
            let mut damaged = record.to_vec();
            damaged[at % record.len()] = byte;
            let _ = (read(&damaged), read(&damaged[..at % record.len()]), read(&bytes));
        }
    }

    /// It is what Python's `json` writes with `ensure_ascii` off.
    #[test]
    fn texts_are_written_as_in_python() {
        let source: String = (0..0x20).map(char::from).chain("\"\\/\u{7f}\u{e9}".chars()).collect();
        let written = concat!(
            r#"[2,null,"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e"#,
            r"\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c",
            r#"\u001d\u001e\u001f\"\\/"#,
            "\u{7f}\u{e9}\",null,null,{}]",
        );
        let found = write(&Chunk::new("").source(&source), 0).unwrap();
        assert_eq!(written, String::from_utf8(found).unwrap());
        assert_eq!(source, read(written.as_bytes()).unwrap().source);
    }

    #[test]
    fn lists_are_nested_up_to_eighty_deep() {
        let nested = |depth: usize, open: &str, close: &str| {
            parsed(&format!("{}0{}", open.repeat(depth), close.repeat(depth))).is_some()
        };
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            assert_eq!([true, false], [80, 81].map(|depth| nested(depth, open, close)));
        }
    }

    /// An identifier goes before that of the metadata, unless it is empty.
    #[test]
    fn identifiers_of_mappings() {
        let id = |fields: &str| read(format!(r#"[1,"text",{fields}]"#).as_bytes()).unwrap().id;
        let some = |id: &str| Some(id.to_owned());
        assert_eq!(some("own"), id(r#"{"id":"own","metadata":{"id":"inner"}}"#));
        assert_eq!(some("inner"), id(r#"{"id":"","metadata":{"id":"inner"}}"#));
        assert_eq!(some("inner"), id(r#"{"id":false,"metadata":{"id":"inner"}}"#));
        assert_eq!([some(""), None], [id(r#"{"id":""}"#), id("{}")]);
    }

    /// A field of the metadata goes before that of the mapping itself.
    #[test]
    fn fields_of_mappings() {
        let read = |fields: &str| read(format!(r#"[1,"text",{fields}]"#).as_bytes()).unwrap();
        let own = read(r#"{"text":"t","mtime":3,"kind":"k","metadata":{"kind":null}}"#);
        assert_eq!((3.0, Some("k")), (own.mtime, own.kind.as_deref()));
        let inner = read(r#"{"text":"t","mtime":3,"kind":"k","metadata":{"mtime":true}}"#);
        assert_eq!((1.0, Some("k")), (inner.mtime, inner.kind.as_deref()));
    }

    #[test]
    fn surrogates_are_replaced() {
        let record = |id: &[u8]| [b"[2,\"", id, b"\",\"\",null,null]"].concat();
        let id = |bytes: &[u8]| read(&record(bytes)).and_then(|chunk| chunk.id);
        assert_eq!(Some("\u{fffd}x".into()), id(b"\xED\xA0\x80x"));
        assert_eq!(Some("😀".into()), id(b"\xED\xA0\xBD\xED\xB8\x80"));
        assert_eq!(None, id(b"\xED\xA0"));
        let text = |json: &str| parsed(json).and_then(|value| value.shown());
        assert_eq!(Some("\u{fffd}x".into()), text(r#""\ud800x""#));
        assert_eq!(Some("\u{fffd}\u{fffd}".into()), text(r#""\udc00\ud800""#));
        assert_eq!(None, text(r#""\ud800\u00""#));
        assert_eq!(None, parsed(&"[".repeat(100_000)));
        assert_eq!(None, read(b"[2,null,\"\",NaN,null]"));
    }
}
