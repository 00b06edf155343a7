//! JSON as a tree of spans. Nothing is converted, so that numbers, escapes and
//! duplicate keys stay as they are written.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Misfit;
use super::share::chars;

/// The most levels of arrays and objects.
const DEEPEST: usize = 128;

/// The kind of a value of JSON, as far as it can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    String,
    Array,
    Object,
}

impl Kind {
    /// Returns the smallest text of such a value; None if it cannot be cut.
    pub(super) fn bare(self) -> Option<&'static [u8]> {
        match self {
            Self::Scalar => None,
            Self::String => Some(b"\"\""),
            Self::Array => Some(b"[]"),
            Self::Object => Some(b"{}"),
        }
    }
}

/// A value: where it stands in the compact text, and how long it is.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The byte at which its key starts, if it has one, else where it starts.
    pub(super) key: usize,
    /// The bytes at which it starts and ends.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The code points of its key and the colon.
    pub(super) name: usize,
    /// The code points of the value; while it is read, those in front of it.
    pub(super) size: usize,
    /// The place of the node behind all that is in it.
    pub(super) after: usize,
    /// The number of values directly in it.
    pub(super) count: usize,
    /// The place of the node that it is in.
    pub(super) parent: Option<usize>,
    /// The least size at which objects keep all their keys.
    pub(super) least: usize,
    /// The least size at which it says that something was left out.
    pub(super) bare: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Key,
    Value,
    Next,
}

/// Returns a text without the whitespace between its tokens, and its values:
/// first the whole, and each before those in it. They mean nothing once `stop`
/// is set.
pub(super) fn scan(text: &[u8], stop: &AtomicBool) -> Result<(Vec<u8>, Vec<Node>), Misfit> {
    let mut scanner = Scanner {
        text,
        at: end_of_space(text, 0),
        compact: Vec::with_capacity(text.len()),
        size: 0,
        key: 0,
        name: 0,
        nodes: Vec::new(),
        opened: Vec::new(),
    };
    let mut expected = Expected::Value;
    while !stop.load(Ordering::Relaxed) {
        expected = match expected {
            Expected::Key => scanner.key_of_member()?,
            Expected::Value => scanner.value()?,
            Expected::Next => scanner.next()?,
        };
        scanner.at = end_of_space(text, scanner.at);
        if expected == Expected::Next && scanner.opened.is_empty() {
            break;
        }
    }
    if scanner.at < text.len() {
        return Err(scanner.refused());
    }
    Ok((scanner.compact, scanner.nodes))
}

/// What was read of a JSON text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    compact: Vec<u8>,
    /// The code points of the compact text.
    size: usize,
    /// Where the key of the next value starts in the compact text, and the code
    /// points of it and its colon.
    key: usize,
    name: usize,
    nodes: Vec<Node>,
    /// The places of the arrays and objects that are not closed yet.
    opened: Vec<usize>,
}

impl Scanner<'_> {
    /// Returns the error for what stands here.
    #[cold]
    fn refused(&self) -> Misfit {
        Misfit::NotJson { at: chars(&self.text[..self.at]) }
    }

    /// Goes behind the token that ends at `end`, and writes it.
    fn take(&mut self, end: Option<usize>) -> Result<usize, Misfit> {
        let end = end.ok_or_else(|| self.refused())?;
        let token = &self.text[self.at..end];
        self.compact.extend_from_slice(token);
        let size = chars(token);
        self.size += size;
        self.at = end;
        Ok(size)
    }

    /// Reads a key and the colon.
    fn key_of_member(&mut self) -> Result<Expected, Misfit> {
        self.key = self.compact.len();
        self.name = 1 + self.take(end_of_string(self.text, self.at))?;
        self.at = end_of_space(self.text, self.at);
        let is_colon = self.text.get(self.at) == Some(&b':');
        self.take(is_colon.then_some(self.at + 1))?;
        Ok(Expected::Value)
    }

    /// Reads a value, or the bracket that opens it.
    fn value(&mut self) -> Result<Expected, Misfit> {
        let kind = match self.text.get(self.at) {
            Some(b'[') => Kind::Array,
            Some(b'{') => Kind::Object,
            Some(b'"') => Kind::String,
            _ => Kind::Scalar,
        };
        let parent = self.opened.last().copied();
        let is_member = parent.is_some_and(|at| self.nodes[at].kind == Kind::Object);
        let start = self.compact.len();
        let (key, name) = if is_member { (self.key, self.name) } else { (start, 0) };
        let place = self.nodes.len();
        if let Some(parent) = parent {
            self.nodes[parent].count += 1;
        }
        let (size, least, bare) = (self.size, 0, 0);
        let (end, after, count) = (start, place + 1, 0);
        self.nodes.push(Node {
            kind,
            key,
            start,
            end,
            name,
            size,
            after,
            count,
            parent,
            least,
            bare,
        });
        if matches!(kind, Kind::Scalar | Kind::String) {
            let is_string = kind == Kind::String;
            let end = if is_string { end_of_string } else { end_of_scalar }(self.text, self.at);
            self.nodes[place].size = self.take(end)?;
            self.nodes[place].end = self.compact.len();
            return Ok(Expected::Next);
        }
        if self.opened.len() == DEEPEST {
            return Err(Misfit::TooDeep { at: chars(&self.text[..self.at]) });
        }
        self.opened.push(place);
        self.take(Some(self.at + 1))?;
        let next = self.text.get(end_of_space(self.text, self.at));
        Ok(if next == Some(&closing(kind)) { Expected::Next } else { first_in(kind) })
    }

    /// Reads what is behind a value in an array or object.
    fn next(&mut self) -> Result<Expected, Misfit> {
        let last = self.opened[self.opened.len() - 1];
        let kind = self.nodes[last].kind;
        let byte = self.text.get(self.at).copied();
        if byte == Some(b',') {
            self.take(Some(self.at + 1))?;
            return Ok(first_in(kind));
        }
        let is_end = byte == Some(closing(kind));
        self.take(is_end.then_some(self.at + 1))?;
        self.opened.pop();
        let after = self.nodes.len();
        let node = &mut self.nodes[last];
        node.end = self.compact.len();
        node.size = self.size - node.size;
        node.after = after;
        Ok(Expected::Next)
    }
}

fn first_in(kind: Kind) -> Expected {
    if kind == Kind::Array { Expected::Value } else { Expected::Key }
}

fn closing(kind: Kind) -> u8 {
    if kind == Kind::Array { b']' } else { b'}' }
}

/// Returns where the whitespace from `at` on ends.
fn end_of_space(text: &[u8], at: usize) -> usize {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    at + text[at..].iter().take_while(is_space).count()
}

/// Returns where the string that starts at `at` ends; None if none starts there.
fn end_of_string(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at +=
            text[at..].iter().take_while(|&&byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count();
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match text.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' if text.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at += 6,
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// Returns where the number or literal that starts at `at` ends.
fn end_of_scalar(text: &[u8], at: usize) -> Option<usize> {
    for literal in [&b"true"[..], b"false", b"null"] {
        if text[at..].starts_with(literal) {
            return Some(at + literal.len());
        }
    }
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = at + usize::from(text.get(at) == Some(&b'-'));
    match text.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at += digits(at),
        _ => return None,
    }
    if text.get(at) == Some(&b'.') && digits(at + 1) > 0 {
        at += 1 + digits(at + 1);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        if digits(at + 1 + sign) > 0 {
            at += 1 + sign + digits(at + 1 + sign);
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts where values end, at the start of a text and further back.
    fn assert_ends(end_of: fn(&[u8], usize) -> Option<usize>, cases: &[(&str, Option<usize>)]) {
        for &(text, end) in cases {
            assert_eq!(end, end_of(text.as_bytes(), 0), "{text}");
            let behind = format!("[ {text}");
            assert_eq!(end.map(|end| end + 2), end_of(behind.as_bytes(), 2), "{text}");
        }
    }

    #[test]
    fn numbers_and_literals_end_where_json_ends_them() {
        let cases = [
            ("1.5e-3,", Some(6)),
            ("12E+34]", Some(6)),
            ("-0.25", Some(5)),
            ("0x", Some(1)),
            ("00", Some(1)),
            ("1.", Some(1)),
            ("1.5.5", Some(3)),
            ("1e", Some(1)),
            ("1e+", Some(1)),
            ("1e5e5", Some(3)),
            ("100}", Some(3)),
            ("true}", Some(4)),
            ("nullx", Some(4)),
            ("false", Some(5)),
            ("tru", None),
            (".5", None),
            ("-", None),
            ("-a", None),
            ("", None),
        ];
        assert_ends(end_of_scalar, &cases);
    }

    #[test]
    fn strings_end_at_their_quote() {
        let cases = [
            (r#""tea" "#, Some(5)),
            (r#""a\"b""#, Some(6)),
            (r#""\u00e9\n\/" "#, Some(12)),
            (r#""\u00g9""#, None),
            (r#""\u00e""#, None),
            (r#""\x""#, None),
            ("\"a\nb\"", None),
            ("\"a", None),
            ("a\"", None),
        ];
        assert_ends(end_of_string, &cases);
    }
}
